"""A person's booking of a seat at a table, and which bots have time for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from arena.formats.spec import Form
from arena.games.rules import Game
from arena.referee.bot_session import BotSession, LiveMatch
from arena.referee.budget import Share
from arena.referee.timers import Timer
from protocol.vocabulary import Settings

if TYPE_CHECKING:
    from arena.competitions.competition import Competition

__all__ = ["Booking", "PersonSocket", "is_needed"]


class PersonSocket(Protocol):
    """A person's socket at `/watch`; `browser` is the same for all sockets of one browser."""

    browser: str

    def send(self, data: bytes) -> None: ...


class Booking(msgspec.Struct, eq=False):
    """A person's seat and table, from the request to the end of the match.

    `socket` is None when it is closed, or the person has stood up. `person` is as `person_of` says.
    The person's name is the first of `names`; it says `hello` with `token`. `began` is in Unix
    seconds. `deadline` ends a booking whose players do not come, `unseen` one that nobody sees.
    `ended` is why it has ended.
    """

    socket: PersonSocket | None
    browser: str
    person: str
    address: str
    game: Game
    settings: Settings
    names: tuple[str, ...]
    token: str
    share: Share
    has_come: bool = False
    table: LiveMatch | None = None
    began: float = 0.0
    deadline: Timer | None = None
    unseen: Timer | None = None
    ended: str = ""

    @property
    def name(self) -> str:
        return self.names[0]

    def cancel(self) -> None:
        for timer in (self.deadline, self.unseen):
            if timer is not None:
                timer.cancel()


def is_needed(player: BotSession, competition: Competition) -> bool:
    """Whether a running competition may deal to a bot at any time."""
    if competition.plan.form is Form.LADDER:
        is_barred = competition.arbiter.bots.is_barred(player.name)
        return competition.plan.game in player.games and not is_barred
    return competition.is_in(player.name) and not competition.only_waits
