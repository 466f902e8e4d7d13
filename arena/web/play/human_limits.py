"""What is different for people: short matches, time to think, and the browser's cookie. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from arena.engine.rules import Game
from arena.server.reply import Header, Headers
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = ["browser_of", "limits_for", "remembering", "settings_for"]

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_COOKIE = "arena-browser"
_BROWSER = re.compile(r"[A-Za-z0-9_-]{16,64}")

_SHORT: Mapping[str, Mapping[str, object]] = {
    "ace_king_queen": {"hands": 20},
    "gin_rummy": {"games": 1, "target": 50},
    "high_low": {"max_shuffles": 2},
    "three_card_poker": {"rounds": 20, "stake": 1000},
    "blackjack": {"hands": 20, "shuffle": "uniform"},
}
"""The defaults for people: each match takes some minutes."""

_MOST = {
    "hands": 1_000,
    "rounds": 1_000,
    "games": 10,
    "max_rounds": 100,
    "max_turns": 200,
    "max_shuffles": 50,
}
"""Longer than anybody plays; a program may play as a person, and the records stay in memory."""


def settings_for(game: Game, chosen: Mapping[str, object]) -> Settings:
    """A person's settings for a match; raises BadSettings, or UsageError if that were too long."""
    settings = game.vocabulary.read_settings({**_SHORT[game.name], **chosen})
    for name, value in msgspec.structs.asdict(settings).items():
        most = _MOST.get(name)
        if most is not None and value > most:
            raise UsageError(
                f"expected {name} of at most {most:,} with a person at the table, got {value:,}"
            )
    return settings


def limits_for(limits: Limits) -> Limits:
    """The limits of a person's seat: ten minutes for a decision, an hour in all."""
    return msgspec.structs.replace(
        limits, decision_ms=10 * _MINUTE_MS, bank_ms=_HOUR_MS, hard_ms=_HOUR_MS, start_ms=_MINUTE_MS
    )


def remembering(browser: str, *, is_secure: bool) -> Header:
    """The header that sets a cookie with the id of a browser, until the browser is closed.

    Tables are counted by it, and it gives no rights. It has no path, so it is sent to wherever the
    page is, below a `--base-path` too. With `is_secure` it is sent over TLS only.
    """
    secure = "; Secure" if is_secure else ""
    return "Set-Cookie", f"{_COOKIE}={browser}; HttpOnly; SameSite=Lax{secure}"


def browser_of(headers: Headers) -> str:
    """The id of the browser that sent a request, "" if there is none; anybody can invent one."""
    for cookies in headers.get_all("Cookie"):
        for cookie in cookies.split(";"):
            name, _, value = cookie.strip().partition("=")
            if name == _COOKIE and _BROWSER.fullmatch(value):
                return value
    return ""
