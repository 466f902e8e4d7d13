"""The names of people who play at the page, and whose tables are counted together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from arena.games.names import alike
from arena.records.visibility import Viewer, ViewerKind
from arena.server.admission import Unwelcome
from arena.web.play.booking import PersonSocket

__all__ = ["HOUSE", "name_for", "numbered", "person_of"]

HOUSE = "house:"
_LONGEST_NAME = 64  # letters


def name_for(requested: str, viewer: Viewer) -> str:
    """The name that a person asks for; a person on the roster gets it below its own name.

    Raises Unwelcome if it is too long, or looks like a house bot's.
    """
    name = requested
    if viewer.kind is ViewerKind.OWNER:
        first, slash, below = requested.partition("/")
        is_own = alike(first) == alike(viewer.name)
        rest = (below if slash else "person") if is_own else requested
        name = f"{viewer.name}/{rest}"
    if len(name) > _LONGEST_NAME or name.endswith("/"):
        raise Unwelcome("name", f"expected a shorter name below {viewer.name}/")
    if alike(name).startswith(HOUSE):
        raise Unwelcome("name", f"expected a name that no house bot has, got {name!r}")
    return name


def numbered(name: str, people: Iterable[str], is_taken: Callable[[str], bool]) -> str:
    """The name, or the first of `name 2`, `name 3` and so on that looks like nobody else's."""
    others = set(map(alike, people))
    free, number = name, 1
    while alike(free) in others or is_taken(free):
        number += 1
        end = f" {number}"
        free = name[: _LONGEST_NAME - len(end)].rstrip() + end
    return free


def person_of(socket: PersonSocket, viewer: Viewer) -> str:
    """The person whose tables are counted together: a login, or without one a browser."""
    if viewer.kind is ViewerKind.PUBLIC:
        return socket.browser
    return f"{viewer.kind} {viewer.name}"
