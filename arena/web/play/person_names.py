"""What people who play at the page are called, and whose tables are counted together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from arena.engine.names import alike
from arena.records.visibility import Viewer, ViewerKind
from arena.server.admission import Unwelcome
from arena.web.play.booking import PersonSocket

__all__ = ["HOUSE", "name_for", "numbered", "person_of"]

HOUSE = "house:"
_LONGEST_NAME = 64  # letters


def name_for(said: str, viewer: Viewer) -> str:
    """The name that a person asks for; whoever is on the roster has it below its own name.

    Raises:
        Unwelcome: it is too long, or looks like a house bot's.
    """
    name = said
    if viewer.kind is ViewerKind.OWNER:
        first, slash, below = said.partition("/")
        is_own = alike(first) == alike(viewer.name)
        rest = (below if slash else "person") if is_own else said
        name = f"{viewer.name}/{rest}"
    if len(name) > _LONGEST_NAME or name.endswith("/"):
        raise Unwelcome("name", f"expected a shorter name below {viewer.name}/")
    if alike(name).startswith(HOUSE):
        text = f"expected a name that no house bot has, got {name!r}"
        raise Unwelcome("name", text)
    return name


def numbered(name: str, people: Iterable[str], is_taken: Callable[[str], bool]) -> str:
    """The name, or the first of `name 2`, `name 3` and so on that nobody has, nor one that looks like it."""
    others = set(map(alike, people))
    found, number = name, 1
    while alike(found) in others or is_taken(found):
        number += 1
        end = f" {number}"
        found = name[: _LONGEST_NAME - len(end)].rstrip() + end
    return found


def person_of(socket: PersonSocket, viewer: Viewer) -> str:
    """Whose tables are counted together: those of a login, or without one of a browser."""
    if viewer.kind is ViewerKind.PUBLIC:
        return socket.browser
    return f"{viewer.kind} {viewer.name}"
