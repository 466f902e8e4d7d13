"""Passes on what happens in competitions: to the other competitions, to the page, to the bots that were launched, and to whoever listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from arena.competitions.competition import Competition
from arena.competitions.competition_bots import CompetitionBots
from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.table_sharing import beside, in_turn, share
from arena.engine.match import Result
from arena.formats.eta import Left
from arena.formats.schedule import Pairing
from arena.server.entrance import EntrancePage
from protocol.messages import Verdict

__all__ = ["HostPage", "PeoplePlaying", "Relay"]


class PeoplePlaying(Protocol):
    """Those who play at the page, and the house bots that play with them."""

    @property
    def non_competing(self) -> Collection[str]:
        """Their names: no competition takes these."""

    def is_non_competing(self, name: str) -> bool:
        """Whether no competition takes who is called so."""

    def record(self, match: str) -> object | None:
        """A match that was played there lately."""

    def changed(self) -> None:
        """A bot or a person has come or gone."""

    def competition_started(self, competition: Competition) -> None:
        """A competition begins: who has to play in it does not play there."""


class HostPage(EntrancePage, Protocol):
    """What there is for browsers, as the host drives it."""

    @property
    def people(self) -> PeoplePlaying:
        """Those who play at it."""

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """A match is over and written down."""

    async def close(self) -> None:
        """Stop what has been started for it."""


class Relay(Listener):
    """The listener of all competitions of an arena.

    Args:
        competitions: those that are on, at any time.
        listener: told of what happens in them.
        on_verdict: told of every elimination as it happens.

    Attributes:
        bots: those that were launched for competitions, if any can be.
        page: the page, if there is one.
    """

    def __init__(
        self,
        competitions: Sequence[Competition],
        listener: Listener,
        on_verdict: Callable[[Verdict], None],
    ) -> None:
        self.bots: CompetitionBots | None = None
        self.page: HostPage | None = None
        self._competitions = competitions
        self._listener = listener
        self._on_verdict = on_verdict

    @property
    def non_competing(self) -> Collection[str]:
        """The names of people, and of the house bots that play with them."""
        return () if self.page is None else self.page.people.non_competing

    def is_non_competing(self, name: str) -> bool:
        """Whether who is called so does not compete, as it is a person."""
        return self.page is not None and self.page.people.is_non_competing(name)

    def house_bots_elsewhere(self, fillers: Collection[str]) -> Collection[str]:
        """The house bots of other competitions than that with these, and those with the people who play against them."""
        others = {name for one in self._competitions for name in one.temporary_house_bots}
        return others.difference(fillers).union(self.non_competing)

    def freed(self, names: Sequence[str]) -> None:
        """A match has ended; its players may be awaited in any competition, once its own has counted it."""
        asyncio.get_running_loop().call_soon(self._seat, names)

    def share(self, competition: str, name: str) -> float:
        """Which part of a bot's tables is that competition's now."""
        return share(competition, self._competitions, name)

    def beside(self, competition: str) -> Collection[Left]:
        """What is left of the other competitions with the same bots."""
        others = beside(competition, self._competitions)
        return [left for one in others if (left := one.left) is not None]

    def verdict_given(self, verdict: Verdict) -> None:
        """A bot is out. What happens where people play is known to those at the table, and has no consequences."""
        if self.page is not None and self.page.people.record(verdict.match) is not None:
            return
        self._on_verdict(verdict)
        if self.bots is not None:
            self.bots.ruled(verdict)

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """A match is over and written down."""
        if self.page is not None:
            self.page.match_finished(ledger, match, pairing, result)
        self._listener.match_finished(ledger, match, pairing, result)

    def told(self, text: str) -> None:
        """Something that the instructor should know."""
        self._listener.told(text)

    def _seat(self, names: Sequence[str]) -> None:
        if self.bots is not None:
            self.bots.end_forgiven(names)
        for competition in in_turn(self._competitions):
            competition.seat(names)
