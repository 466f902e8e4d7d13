"""A match that another machine plays, as it is seen here."""

from __future__ import annotations

from collections.abc import Callable

from arena.engine.rules import Game
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = ["RemoteMatch"]


class RemoteMatch:
    """What is told to everybody in a match of another machine (J8), as far as it has come here.

    `watch` is called with True when somebody wants to see it, and with False when nobody does.

    Attributes:
        id: that of the match.
        worker: the name of the machine that plays it.
        opened_at: when the attempt was granted, on the loop's clock.
        scores: as they were told last.
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
    ) -> None:
        self.id = match
        self.worker = worker
        self.game = game
        self.settings = settings
        self.limits = limits
        self.names = names
        self.versions = versions
        self.opened_at = opened_at
        self.decisions = 0
        self.is_over = False
        self.scores: tuple[int, ...] = (0,) * game.seats
        self.watch = watch

    def feed(self, data: bytes) -> None:
        """Take what the worker has sent for spectators (`arena/workers/live_frames.py`)."""

    def ended(self) -> None:
        """The match is over, or nobody plays it any more."""
        self.is_over = True
