"""A match that another machine plays, as it is seen here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from arena.engine.rules import Game
from arena.records.document import UNREADABLE
from protocol.messages import Limits
from protocol.vocabulary import Settings
from protocol.watching import Turn

__all__ = ["PublicFrame", "RemoteMatch"]


class PublicFrame(msgspec.Struct, frozen=True, kw_only=True):
    """What is new for everybody in a match that another machine plays (J8); in JSON.

    Frames may be lost. One that is `reset` begins at the start of its round, and needs no other.
    There is one at least every second, if only to say that nothing has happened.

    Attributes:
        number: 0 for the first one of whoever sends them, then one more each time.
        round: the round of the first event, from 1.
        events: as spectators get them (`arena/records/visibility.py`).
        present: how many of the events, at the end, are of round `present_round`, which goes on.
        turn: the question that is pending after them, if any.
        scores, decisions: after them.
    """

    number: int
    reset: bool
    round: int
    events: tuple[dict[str, Any], ...]
    present: int
    present_round: int
    turn: Turn | None
    scores: tuple[int, ...]
    decisions: int


class RemoteMatch:
    """What is told to everybody in a match of another machine (J8), as far as it has come here.

    `watch` is called with True when somebody wants to see it, and again when frames are missing,
    and with False when nobody does.

    Attributes:
        id: that of the match.
        worker: the name of the machine that plays it.
        opened_at: when the attempt was granted, on the loop's clock.
        competition: its id; empty for a match of no competition.
        scores: as they were told last.
        on_frame: gets what `feed` has read; one spectators' view at a time.
    """

    def __init__(
        self,
        match: str,
        worker: str,
        game: Game,
        settings: Settings,
        limits: Limits,
        names: tuple[str, ...],
        versions: tuple[str, ...],
        opened_at: float,
        watch: Callable[[bool], None],
        competition: str = "",
    ) -> None:
        self.id = match
        self.worker = worker
        self.game = game
        self.settings = settings
        self.limits = limits
        self.names = names
        self.versions = versions
        self.opened_at = opened_at
        self.competition = competition
        self.decisions = 0
        self.is_over = False
        self.scores: tuple[int, ...] = (0,) * game.seats
        self.watch = watch
        self.on_frame: Callable[[PublicFrame], None] | None = None

    def feed(self, data: bytes) -> None:
        """Take what the worker has sent for spectators (`arena/workers/live_frames.py`).

        What is no `PublicFrame` of this match is ignored.
        """
        try:
            frame = _decode(data)
        except UNREADABLE:
            return
        self.reported(frame.decisions, frame.scores)
        if self.on_frame is not None:
            self.on_frame(frame)

    def reported(self, decisions: int, scores: Sequence[int] = ()) -> None:
        """The worker says how far it is; older news than is known here changes nothing."""
        if decisions < self.decisions:
            return
        self.decisions = decisions
        if len(scores) == self.game.seats:
            self.scores = tuple(scores)

    def ended(self) -> None:
        """The match is over, or nobody plays it any more."""
        self.is_over = True


_decode = msgspec.json.Decoder(PublicFrame).decode
