"""Spectators without sockets, and the matches that they watch, whose bots answer on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from arena.games.catalogue import GAMES
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.bot_session import LiveMatch
from arena.web.spectators import Spectators
from protocol.watching import Watch
from tests.support import fake_host
from tests.support.fake_bots import ANY_GAME

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena, FakeBot

__all__ = ["INSTRUCTOR", "NAMES", "FakeSpectator", "PlayedOnDemand", "WatchedArena", "begun"]

INSTRUCTOR = Viewer(ViewerKind.INSTRUCTOR, "eva")
NAMES = ("ann", "ben", "cem", "dee")


class FakeSpectator:
    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.is_behind = False
        self.on_send: Callable[[], None] = lambda: None

    def send(self, data: bytes) -> None:
        self.frames.append(data)
        self.on_send()

    def read(self) -> list[dict[str, Any]]:
        """What has come since the last call."""
        frames, self.frames = self.frames, []
        return [json.loads(frame) for frame in frames]


class WatchedArena:
    """Spectators with a clock that tests set; with `work_s` each look at it takes so long."""

    def __init__(self, house: FakeArena) -> None:
        self.house = house
        self.document: dict[str, Any] = {"bots": []}
        self.competition: str | None = "7"
        self.work_s = 0.0
        self.worked_s = 0.0
        self.spectators = Spectators(
            house.referee,
            lambda table: self.competition,
            lambda: json.dumps(self.document).encode(),
            self._clock,
        )

    def _clock(self) -> float:
        self.worked_s += self.work_s
        return self.house.now + self.worked_s

    def begun(self, game: str = ANY_GAME, **settings: object) -> PlayedOnDemand:
        """A match that has begun."""
        return begun(self.house, game, **settings)

    def comes(self, table: LiveMatch | None = None, viewer: Viewer = INSTRUCTOR) -> FakeSpectator:
        """A new spectator of a match, or else of the lobby."""
        spectator = FakeSpectator()
        self.watches(spectator, table, viewer)
        return spectator

    def watches(
        self, spectator: FakeSpectator, table: LiveMatch | None, viewer: Viewer = INSTRUCTOR
    ) -> None:
        watch = Watch("lobby") if table is None else Watch("match", table.id)
        self.spectators.watch(spectator, watch, viewer)

    def passes(self, seconds: float) -> None:
        """Let time pass, with a tick every 50 ms."""
        for _ in range(round(seconds / 0.05)):
            self.house.held_up(0.05)
            self.spectators.tick(self.house.now)


class PlayedOnDemand:
    """A match whose bots answer when they are told to."""

    def __init__(self, house: FakeArena, game: str, **settings: Any) -> None:
        names = NAMES[: GAMES[game].seats]
        self.house = house
        self.bots = [house.bot(name) for name in names]
        settings = {**fake_host.SHORT[game], **settings}
        self.table = house.open(*self.bots, game=game, **settings)

    def begins(self) -> PlayedOnDemand:
        self.house.sit(*self.bots)
        return self

    @property
    def asked(self) -> FakeBot | None:
        match = self.table.match
        if match is None or match.pending is None:
            return None
        return self.bots[match.pending.seat]

    def goes_on(self, answers: int = 1, value: Any = None) -> int:
        """Answer so many questions, if there are as many; returns their number."""
        for number in range(answers):
            bot = self.asked
            if bot is None:
                return number
            [ask] = bot.asks()
            self.house.answer(bot, ask, value)
        return answers

    def ends(self) -> None:
        while self.goes_on(100) == 100:
            pass


def begun(house: FakeArena, game: str = ANY_GAME, **settings: object) -> PlayedOnDemand:
    return PlayedOnDemand(house, game, **settings).begins()
