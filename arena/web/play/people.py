"""Rules for people who play: names, short matches, time to think, and the browser's cookie."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from arena.games.names import alike
from arena.games.rules import Game
from arena.records.visibility import Viewer, ViewerKind
from arena.server.admission import Unwelcome
from arena.server.reply import Header, Headers
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = [
    "HOUSE",
    "browser_of",
    "limits_for",
    "name_for",
    "numbered",
    "remembering",
    "settings_for",
]

HOUSE = "house:"
_LONGEST_NAME = 64  # characters
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_COOKIE = "arena-browser"
_BROWSER = re.compile(r"[A-Za-z0-9_-]{16,64}")

_MOST_DECISIONS = 200_000
"""More than any person plays; programs may play as people, and records stay in memory."""


def name_for(requested: str, viewer: Viewer) -> str:
    """Return the requested name; a person on the roster gets it after their own name and a slash.

    Raises Unwelcome if the name is too long or looks like a house bot's.
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
    """Return the name, or the first of `name 2`, `name 3` and so on that is not taken."""
    others = set(map(alike, people))
    free, number = name, 1
    while alike(free) in others or is_taken(free):
        number += 1
        end = f" {number}"
        free = name[: _LONGEST_NAME - len(end)].rstrip() + end
    return free


def settings_for(game: Game, chosen: Mapping[str, object]) -> Settings:
    """Read a person's settings; raises BadSettings, or UsageError if the match may be too long."""
    settings = game.vocabulary.read_settings({**game.for_people, **chosen})
    for choice in game.choices:
        value = getattr(settings, choice.setting)
        if not choice.least <= value <= choice.most:
            is_more = value > choice.most
            bound = f"at most {choice.most:,}" if is_more else f"at least {choice.least:,}"
            raise UsageError(
                f"expected {choice.setting} of {bound} with a person at the table, got {value:,}"
            )
    if (decisions := game.decisions(settings)) > _MOST_DECISIONS:
        raise UsageError(
            f"expected a match of at most {_MOST_DECISIONS:,} decisions with a person at the "
            f"table, got one of about {decisions:,.0f}; choose less in the settings"
        )
    return settings


def limits_for(limits: Limits) -> Limits:
    """Return the limits of a person's seat: ten minutes for a decision, an hour in total."""
    return msgspec.structs.replace(
        limits, decision_ms=10 * _MINUTE_MS, bank_ms=_HOUR_MS, hard_ms=_HOUR_MS, start_ms=_MINUTE_MS
    )


def remembering(browser: str, *, is_secure: bool) -> Header:
    """Make the header that sets a session cookie with the id of a browser.

    The id is used to count tables, and gives no rights. The cookie has no path, so that it works
    below a `--base-path` too. With `is_secure` it is sent over TLS only.
    """
    secure = "; Secure" if is_secure else ""
    return "Set-Cookie", f"{_COOKIE}={browser}; HttpOnly; SameSite=Lax{secure}"


def browser_of(headers: Headers) -> str:
    """Return the browser's id in a request, or ""; not to be trusted, as anybody can invent one."""
    for cookies in headers.get_all("Cookie"):
        for cookie in cookies.split(";"):
            name, _, value = cookie.strip().partition("=")
            if name == _COOKIE and _BROWSER.fullmatch(value):
                return value
    return ""
