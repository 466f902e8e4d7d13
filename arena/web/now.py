"""The parts of the lobby's document (`arena/web/lobby.py`), as structs: what goes on now, and what was and will be played.

Times are Unix seconds, names as they are.
"""

from __future__ import annotations

import msgspec

from arena.competitions.attendance import Upcoming

__all__ = [
    "Arena",
    "Bot",
    "Game",
    "Going",
    "Latest",
    "Lobby",
    "Playing",
    "Queued",
]


class Game(msgspec.Struct, frozen=True):
    """A game, with the house bots that play it."""

    name: str
    title: str
    seats: int
    house: tuple[str, ...]


class Arena(msgspec.Struct, frozen=True, kw_only=True):
    """The arena itself; `page_since` is another one after it was started again."""

    version: str
    practice: bool
    page_since: float
    games: tuple[Game, ...]
    requires_token: bool


class Going(msgspec.Struct, frozen=True, kw_only=True):
    """A competition that goes on; `waits_for` are bots that are away, or whose match waits for the instructor."""

    id: str
    run: str
    game: str
    title: str
    form: str
    state: str
    settled: int
    scheduled: int | None
    left_s: float | None
    waits_for: tuple[str, ...]
    bots: int
    started_at: float


class Bot(msgspec.Struct, frozen=True, kw_only=True):
    """A bot that is here, or may come back; `playing` are its matches now, `tables` the most that it takes."""

    name: str
    games: tuple[str, ...]
    tables: int
    playing: int
    state: str
    rtt_ms: float | None
    launched: bool


class Playing(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is being played."""

    match: str
    game: str
    competition: str | None
    players: tuple[str, ...]
    scores: tuple[int, ...]
    decisions: int
    since_s: float
    viewers: int


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A pairing that waits, and for which of its bots."""

    competition: str
    players: tuple[str, ...]
    waits_for: tuple[str, ...]


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is over; `termination` is the word, `seat` whose offence it was."""

    id: str
    competition: str
    game: str
    players: tuple[str, ...]
    scores: tuple[int, ...]
    termination: str
    seat: int | None
    finished_at: float


class Lobby(msgspec.Struct, frozen=True, kw_only=True):
    """`/api/lobby.json`; `…_more` is how many are not listed."""

    arena: Arena
    competitions: tuple[Going, ...]
    bots: tuple[Bot, ...]
    bots_more: int
    matches: tuple[Playing, ...]
    matches_more: int
    queue: tuple[Queued, ...]
    queue_more: int
    runs: tuple[Upcoming, ...]
    latest: tuple[Latest, ...]
