"""Where a submission that is in play plays next, by the lobby of its arena."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from arena.cli._arena_pages import ArenaPages
from arena.formats.spec import Form, Take
from arena.games.statistics import time_of
from protocol.errors import ArenaError

__all__ = ["next_runs"]

_MOST = 3


class _RunToCome(msgspec.Struct, frozen=True):
    """A run to come.

    `next_at` is null if it starts as soon as enough bots are there, `submitted` if it takes none.
    """

    run: str
    game: str
    form: Form
    next_at: float | None
    submitted: int | None

    def __str__(self) -> str:
        when = "when enough bots are there" if self.next_at is None else time_of(self.next_at)
        return f"{self.run}, {self.form.value.replace('_', ' ')}, {when}"


class _Ongoing(msgspec.Struct, frozen=True):
    """A competition that is on."""

    run: str
    game: str
    form: Form
    take: Take


class _Lobby(msgspec.Struct, frozen=True):
    competitions: tuple[_Ongoing, ...]
    runs: tuple[_RunToCome, ...]


def next_runs(url: str, games: Collection[str]) -> list[str]:
    """The ladders of these games that take submissions, and the first such runs, each in words.

    Empty if the arena at `url` has no page, or plans nothing.
    """
    try:
        lobby = msgspec.json.decode(ArenaPages(url).get("lobby"), type=_Lobby)
    except (ArenaError, msgspec.MsgspecError):
        return []
    ladders = [
        f"{each.run or each.game}, ladder, now"
        for each in lobby.competitions
        if each.game in games and each.form is Form.LADDER and each.take is not Take.CONNECTED
    ]
    planned = (
        str(each) for each in lobby.runs if each.game in games and each.submitted is not None
    )
    return [*ladders, *planned][:_MOST]
