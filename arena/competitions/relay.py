"""Passes on what happens in competitions: to other competitions, launched bots and the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from arena.competitions.competition import Competition
from arena.competitions.competition_bots import CompetitionBots
from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.seating import Seating
from arena.competitions.table_sharing import beside, in_turn, share
from arena.engine.match import Result
from arena.formats.eta import Left
from arena.formats.schedule import Pairing
from arena.server.entrance import EntrancePage
from protocol.messages import Verdict

__all__ = ["HostPage", "PeoplePlaying", "Relay"]


class PeoplePlaying(Protocol):
    """The people who play at the page, and the house bots that play with them."""

    @property
    def non_competing(self) -> Collection[str]:
        """Their names, which do not take part in competitions."""

    def is_non_competing(self, name: str) -> bool:
        """Whether this is one of the `non_competing` names."""

    def record(self, match: str) -> object | None:
        """A recent match that was played at the page, else None."""

    def changed(self) -> None:
        """Told when a bot or a person has come or gone."""

    def competition_started(self, competition: Competition) -> None:
        """Told when a competition begins, whose bots stop playing with people."""


class HostPage(EntrancePage, Protocol):
    """The page for browsers, as the host drives it."""

    @property
    def people(self) -> PeoplePlaying:
        """The people who play at it."""

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """Told when a match has ended and is recorded."""

    async def close(self) -> None:
        """Stop its tasks and processes."""


class Relay(Listener):
    """The listener of all `competitions`; the host sets the other parts, as they need it."""

    def __init__(
        self,
        competitions: Sequence[Competition],
        listener: Listener,
        on_verdict: Callable[[Verdict], None],
    ) -> None:
        self.bots: CompetitionBots | None = None
        self.page: HostPage | None = None
        self.seating: Seating | None = None
        self._competitions = competitions
        self._listener = listener
        self._on_verdict = on_verdict
        self._freed: dict[str, None] = {}  # to be offered in the next turn of the loop

    @property
    def non_competing(self) -> Collection[str]:
        return () if self.page is None else self.page.people.non_competing

    def is_non_competing(self, name: str) -> bool:
        return self.page is not None and self.page.people.is_non_competing(name)

    def house_bots_elsewhere(self, own: Collection[str]) -> Collection[str]:
        bots = {name for running in self._competitions for name in running.temporary_house_bots}
        return bots.difference(own).union(self.non_competing)

    def freed(self, names: Sequence[str]) -> None:
        """Offer these bots to all competitions, after their own one has counted the match."""
        if not self._freed:
            asyncio.get_running_loop().call_soon(self._seat)
        self._freed.update(dict.fromkeys(names))

    def share(self, competition: str, name: str) -> float:
        return share(competition, self._competitions, name)

    def beside(self, competition: str) -> Collection[Left]:
        others = beside(competition, self._competitions)
        return [left for other in others if (left := other.left) is not None]

    def verdict_given(self, verdict: Verdict) -> None:
        """Tell that a bot is out, and stop its process."""
        # An offence in a match with a person has no consequences.
        if self.page is not None and self.page.people.record(verdict.match) is not None:
            return
        self._on_verdict(verdict)
        if self.bots is not None:
            self.bots.ruled(verdict)

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        if self.page is not None:
            self.page.match_finished(ledger, match, pairing, result)
        self._listener.match_finished(ledger, match, pairing, result)

    def told(self, text: str) -> None:
        self._listener.told(text)

    def _seat(self) -> None:
        names, self._freed = tuple(self._freed), {}
        if self.bots is not None:
            self.bots.end_forgiven(names)
        if self.seating is not None:
            self.seating.look()
        for competition in in_turn(self._competitions):
            competition.seat(names)
