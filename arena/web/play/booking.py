"""A person's booking: a chair and a table, from the asking to the end of the match; and which bots have time for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from arena.engine.rules import Game
from arena.formats.spec import Form
from arena.referee.bot_session import BotSession
from arena.referee.budget import Share
from arena.referee.live_match import LiveMatch
from arena.referee.timers import Timer
from protocol.vocabulary import Settings

if TYPE_CHECKING:
    from arena.competitions.competition import Competition

__all__ = ["Booking", "PersonSocket", "has_time", "is_needed"]


class PersonSocket(Protocol):
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
        socket: PersonSocket,
        person: str,
        address: str,
        game: Game,
        settings: Settings,
        names: tuple[str, ...],
        token: str,
        share: Share,
    ) -> None:
        self.socket: PersonSocket | None = socket
        self.browser = socket.browser
        self.person = person
        self.address = address
        self.game = game
        self.settings = settings
        self.names = names
        self.token = token
        self.share = share
        self.has_come = False
        self.table: LiveMatch | None = None
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


def has_time(player: BotSession, tables: int) -> bool:
    """Whether it is here, and can be dealt to at so many chairs more."""
    free = player.tables - len(player.chairs)
    return not (player.is_away or player.leaving) and free >= tables


def is_needed(player: BotSession, competition: Competition) -> bool:
    """Whether a competition that is on may deal to a bot at any time."""
    if competition.plan.form is Form.LADDER:
        is_barred = competition.arbiter.is_barred(player.name)
        return competition.plan.game in player.games and not is_barred
    return competition.is_in(player.name)
