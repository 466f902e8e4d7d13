"""A person's booking: a chair and a table, from the asking to the end of the match."""

from __future__ import annotations

from typing import Protocol

from arena.engine.rules import Game
from arena.referee.budget import Share
from arena.referee.referee import Table
from arena.referee.timers import Timer
from protocol.vocabulary import Settings

__all__ = ["Booking", "Guest"]


class Guest(Protocol):
    """The socket at which a person asks for a chair.

    Attributes:
        browser: the same for all sockets of one browser.
    """

    browser: str

    def send(self, data: bytes) -> None:
        """Send one text frame."""


class Booking:
    """A person's chair and table, from the asking to the end of the match."""

    def __init__(
        self,
        guest: Guest,
        person: str,
        address: str,
        game: Game,
        settings: Settings,
        names: tuple[str, ...],
        token: str,
        share: Share,
    ) -> None:
        self.guest: Guest | None = guest
        self.browser = guest.browser
        self.person = person
        self.address = address
        self.game = game
        self.settings = settings
        self.names = names
        self.token = token
        self.share = share
        self.has_come = False
        self.table: Table | None = None
        self.began = 0.0
        self.deadline: Timer | None = None
        self.unseen: Timer | None = None  # while nobody looks at it

    @property
    def name(self) -> str:
        """What the person is called."""
        return self.names[0]

    def cancel(self) -> None:
        """Wait for nobody any more."""
        for timer in (self.deadline, self.unseen):
            if timer is not None:
                timer.cancel()
