"""One stage of a competition while it is played: matches are opened as bots are free, until every pairing has its outcome.

A stage knows who waits for whom, who is away, and what an elimination takes with it; what a match is, where it is written down and who
is out is its competition's business. It is driven by what happens elsewhere (a bot comes, a match ends, time is up), so nothing that
goes wrong in it may be raised there: it becomes the stage's own end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import Protocol, TypeAlias

from arena.engine.match import MatchResult, Result
from arena.formats.schedule import Outcome, Outcomes, Pairing
from arena.referee.bot_session import Player
from arena.referee.live_match import OnOver, Table
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.referee.timers import Timer
from protocol.messages import Ending, Verdict

__all__ = ["Referee", "RunningStage", "Stopped"]


class Referee(Protocol):
    """What a stage asks of its competition."""

    @property
    def is_paused(self) -> bool:
        """Whether no match is to be opened now."""

    def known(self, pairing: Pairing) -> Result | None:
        """Its result, if it has been played before the arena was interrupted, or not been taken back."""

    def is_out(self, *names: str) -> bool:
        """Whether one of them has been eliminated (J3)."""

    def stuck(self, pairing: Pairing) -> None:
        """A match was void three times by faults of the arena: have the instructor look at it (J5), or raise."""

    def open(self, pairing: Pairing, on_over: OnOver) -> Table:
        """Open a pairing's match; all its players are free."""

    def note(
        self,
        pairing: Pairing,
        table: Table,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        """Write down what came of a match, and rule who is out."""

    def freed(self, names: Sequence[str]) -> None:
        """These bots have a table free, for this competition or another."""

    def share(self, name: str) -> float:
        """Which part of a bot's tables is this competition's now."""

    def player(self, name: str) -> Player | None:
        """The bot of that name, if there is one that can still be dealt to."""

    def awaited(self, name: str) -> float:
        """A bot is away and its matches wait; for how long, in seconds."""

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call in so many seconds in which the arena has not stood still."""

    def forfeit(
        self, pairing: Pairing, seat: int, also: Sequence[int] = ()
    ) -> MatchResult:
        """Rule that a bot does not come to its match, as it is absent or has offended before (J2); the result of that.

        Those in the seats `also` do not come either, and are out as well.
        """

    def void_table(self, table: Table, text: str) -> None:
        """Stop a match that cannot count any more."""


_GROW_S = 0.5  # between looks whether there is room for more matches
_CROWD = 100  # companies of a bot that are sorted
_TRIES = 1_000  # companies in a look: some 5 ms
_ALL_BUT_S = 1.0  # between deadlines that were set one after another
_GIVEN_BACK = 0.1
"""Of the time that a bot is here, to be away later: whoever is here nine tenths of the time meets anybody else who is."""

_Company: TypeAlias = frozenset[str]
"""Those who meet in a pairing; one, where a bot meets itself."""


class Stopped(Exception):
    """The instructor has ended the competition."""


class RunningStage:
    """The pairings of one stage, from waiting to their outcomes.

    All pairings of the same bots can be opened at the same times, so they wait together, as one company. Every bot has a list of its
    companies: the end of a match costs a look at its own players' possible opponents, however often they meet, and however
    large the competition is. Whoever has met goes to the end of the lists.

    Attributes:
        come: how far the first of its matches have come, from 0 to 1.
    """

    def __init__(self, referee: Referee, pairings: Sequence[Pairing]) -> None:
        self._referee = referee
        self._pairings = pairings
        self._companies: dict[_Company, dict[int, Pairing]] = {}
        self._waiting: dict[str, dict[_Company, None]] = {}
        self._tables: dict[int, Table] = {}
        self._playing: Counter[str] = Counter()
        self.come = 0.0
        self._ended = 0
        self._full: set[str] = set()  # had no room when last looked at
        self._outcomes: dict[int, Outcome] = {}
        self._voids: Counter[int] = Counter()
        self._stuck: dict[int, Pairing] = {}
        self._had: Counter[str] = Counter()
        self._turn: Iterator[str] = iter(())
        self._growth: Timer | None = None
        self._tries = 0
        self._expected: dict[str, Timer] = {}
        self._left: dict[str, tuple[float, float]] = {}
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        for pairing in pairings:
            result = referee.known(pairing)
            if result is None and not referee.is_out(*pairing.players):
                self._list(pairing)
            else:
                self._outcomes[pairing.number] = Outcome(pairing, result)
                self._had.update(pairing.players)
        self._end_if_all_settled()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The matches that are being played."""
        return tuple(self._tables.values())

    @property
    def playing(self) -> int:
        """How many matches are being played."""
        return len(self._tables)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Bots that are away and have a deadline, and those whose match waits for the instructor."""
        stuck = (name for one in self._stuck.values() for name in one.players)
        return tuple(dict.fromkeys((*self._expected, *stuck)))

    @property
    def waiting(self) -> int:
        """How many pairings wait for a table."""
        return len(self._pairings) - len(self._outcomes) - self.playing

    def wants(self, name: str) -> bool:
        """Whether a pairing of that bot waits for a table."""
        return bool(self._waiting.get(name)) and not self._referee.is_paused

    def queue(self, most: int) -> tuple[Pairing, ...]:
        """Some pairings that wait, about those that come next: the first of each company, in the order of the schedule."""
        companies = islice(self._companies.values(), most)
        return tuple(next(iter(some.values())) for some in companies)

    @property
    def is_stuck(self) -> bool:
        """Whether a match waits for the instructor (J5)."""
        return bool(self._stuck)

    @property
    def _is_complete(self) -> bool:
        return len(self._outcomes) == len(self._pairings)

    @property
    def settled(self) -> int:
        """How many pairings have their outcome."""
        return len(self._outcomes)

    async def outcomes(self) -> Outcomes:
        """Play all pairings; their outcomes in order.

        Raises:
            ArenaError: a match was void three times (J5), and nobody is there to ask.
            Stopped: the instructor has ended it.
        """
        self.seat(tuple(self._waiting))
        self._grow()
        try:
            await self._done
            while not self._is_complete:
                await self._done  # a result was taken back just now
        finally:
            self._done.cancel()  # nothing is opened any more
            for timer in filter(None, (*self._expected.values(), self._growth)):
                timer.cancel()
            for table in tuple(self._tables.values()):
                self._referee.void_table(table, "its competition was stopped")
        return tuple(self._outcomes[pairing.number] for pairing in self._pairings)

    def stop(self) -> None:
        """End it here and now."""
        if not self._done.done():
            self._done.set_exception(Stopped())

    def paused(self) -> None:
        """Nobody has a deadline while nothing is opened; what is being played goes on."""
        for timer in self._expected.values():
            timer.cancel()
        self._expected.clear()

    def reopen(self, removed: Sequence[str] = (), *, retries: bool = False) -> None:
        """Go on after a pause, or after results were taken back: what has no result any more is played, but not by the removed.

        With `retries` also what was void too often.
        """
        for pairing in self._pairings:
            if pairing.number not in self._outcomes:
                continue
            result = self._referee.known(pairing)
            if result is None and not self._referee.is_out(*pairing.players):
                del self._outcomes[pairing.number]
                self._list(pairing)
            elif result is None:
                self._outcomes[pairing.number] = Outcome(pairing, None)
        done = self._done
        if done.done() and not done.cancelled() and done.exception() is None:
            self._done = self._loop.create_future()
            self._end_if_all_settled()
        if retries:
            for pairing in self._stuck.values():
                self._voids[pairing.number] = 0
                self._list(pairing)
            self._stuck.clear()
        for name in removed:
            self._forfeit(name)
        self.seat(tuple(self._waiting))

    def offended(self, name: str) -> None:
        """A bot that has offended while it sat nowhere does not play what it waits for."""
        self._forfeit(name)

    def seat(self, names: Sequence[str]) -> None:
        """Open what can be opened for these bots."""
        self._full.difference_update(names)
        with self._failing():
            for name in names:
                while self._seat_once(name):
                    pass

    def _seat_once(self, name: str) -> bool:
        """Try one pairing with each company of a bot; whether any was opened, and the bot has time for more."""
        has_opened = False
        for company in self._companies_of(name):
            for pairing in tuple(self._companies.get(company, {}).values()):
                self._try(pairing)
                if pairing.number in self._tables:
                    has_opened = True
                    self._to_the_end(company)
                if pairing.number not in self._outcomes:
                    break  # else it will never be played, and the next one may be
            if self._free_tables(name) < 1:
                return False
        return has_opened

    def _companies_of(self, name: str) -> Iterator[_Company]:
        """Those of a bot, first with those who have had the fewest matches, and of equals those who have not met for longest."""
        companies = tuple(
            one for one in self._waiting.get(name, ()) if self._full.isdisjoint(one)
        )
        first = sorted(companies[:_CROWD], key=self._had_by)
        return chain(first, companies[_CROWD:])

    def _had_by(self, company: _Company) -> float:
        """How many matches each of them has had, with those that are being played."""
        had = sum(self._had[name] + self._playing[name] for name in company)
        return had / len(company)

    def _grow(self) -> None:
        """From time to time there is room for more matches though none has ended; each look goes on where the last one stopped."""
        if self.come < 1.0:
            come = (table.progress for table in self._tables.values())
            self.come = max(self.come, *come, 0.0)
        enough = self._tries + _TRIES
        while not self._referee.is_paused and self._tries < enough:
            name = next(self._turn, None)
            if name is None:
                self._turn = iter(tuple(self._waiting))
                self._full.clear()
                break
            bot = self._here(name)
            if bot is not None and self._room(bot) > 0:
                self.seat([name])
        self._growth = self._referee.after(_GROW_S, self._grow)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """What is raised in here ends the stage instead of whatever caused it."""
        try:
            yield
        except Exception as error:
            if not self._done.done():
                self._done.set_exception(error)

    def _try(self, pairing: Pairing) -> None:
        """Open a pairing's match if all its players are free, or see that it will never be played."""
        self._tries += 1
        if self._done.done() or self._referee.is_paused:
            return
        if self._referee.is_out(*pairing.players) or self._cannot_meet_itself(pairing):
            self._settle(pairing, None)
        elif all(
            self._free_tables(name) >= pairing.players.count(name)
            for name in pairing.players
        ):
            self._unlist(pairing)
            for name in pairing.players:
                self._left.pop(name, None)
                self._playing[name] += 1
            if not self._tables:
                self.come, self._ended = 0.0, 0  # the first, or the first after a pause
            self._tables[pairing.number] = self._referee.open(
                pairing, partial(self._over, pairing)
            )

    def _free_tables(self, name: str) -> int:
        """How many matches more the bot would take now; one that is away gets a deadline."""
        player = self._here(name)
        if player is None:
            idle = self._done.done() or self._referee.is_paused
            if name not in self._expected and not idle:
                wait_s = self._patience_s(name)
                self._expected[name] = self._referee.after(
                    wait_s, partial(self._absent, name)
                )
            return 0
        timer = self._expected.pop(name, None)
        if timer is not None:
            timer.cancel()
            now = self._loop.time()
            self._left[name] = max(0.0, timer.left_s), now
        room = self._room(player)
        if room < 1:
            self._full.add(name)
        return room

    def _room(self, player: Player) -> int:
        share = self._referee.share(player.name)
        return player.room(self._playing[player.name], self.come, share)

    def _patience_s(self, name: str) -> float:
        """How long a bot that is away is waited for; who comes and goes has what it had left, and some more for having been here.

        Else two that are never here at the same time would hold up everybody who waits for them.
        """
        whole_s = self._referee.awaited(name)
        if name not in self._left:
            return whole_s
        left_s, since = self._left[name]
        return min(whole_s, left_s + (self._loop.time() - since) * _GIVEN_BACK)

    def _here(self, name: str) -> Player | None:
        """The bot, if its connection is not lost, and it has been heard since it was last out of time."""
        player = self._referee.player(name)
        if player is None or player.is_away or player.is_unheard:
            return None
        return player

    def _cannot_meet_itself(self, pairing: Pairing) -> bool:
        """A bot with one table has no second chair for itself."""
        name = pairing.players[0]
        player = self._referee.player(name)
        return player is not None and player.tables < pairing.players.count(name)

    def _absent(self, name: str) -> None:
        """A bot has not come in time to the matches that wait for it."""
        del self._expected[name]
        if self._here(name) is not None:
            return
        waiting = self._of(name)
        if all(one.is_alone for one in waiting):  # which would count for nobody
            for pairing in waiting:
                self._settle(pairing, None)
        else:
            self._forfeit(name, is_absent=True)

    def _forfeit(self, name: str, *, is_absent: bool = False) -> None:
        """A bot does not play a match that waits for it, or any if it is out for that; nor do others at its table who are as late."""
        waiting = self._of(name)
        if not waiting or self._done.done():
            return
        with self._failing():
            # One that counts, if there is any.
            pairing = min(waiting, key=lambda one: one.is_alone)
            seat = pairing.players.index(name)
            late = self._late(pairing, name) if is_absent else ()
            result = self._referee.forfeit(pairing, seat, late)
            if result.termination.kind is Ending.VOID:
                self._unlist(pairing)
                self._repeat(pairing)
                self.seat(pairing.players)
            else:
                self._settle(pairing, result)
                self._ruled(pairing, result)

    def _late(self, pairing: Pairing, name: str) -> tuple[int, ...]:
        """The other seats of a table whose bots have not come either: their deadlines are over, or all but."""
        return tuple(
            seat
            for seat, other in enumerate(pairing.players)
            if other != name
            and (timer := self._expected.get(other)) is not None
            and timer.left_s <= _ALL_BUT_S
        )

    def _over(
        self,
        pairing: Pairing,
        table: Table,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        """A match has ended: settle or repeat it, and go on with its players."""
        del self._tables[pairing.number]
        self._playing.subtract(pairing.players)
        self._full.difference_update(pairing.players)
        if result.termination.kind is Ending.COMPLETED:
            # One that was over early says little: the matches of some games are of very different length.
            self._ended += 1
            self.come = max(self.come, min(1.0, self._ended / (len(self._tables) + 1)))
        with self._failing():
            self._referee.note(pairing, table, result, verdict)
            if result.termination.kind is not Ending.VOID:
                self._settle(pairing, result)
                self._ruled(pairing, result)
            elif self._referee.is_out(*pairing.players):
                self._settle(pairing, None)
            elif result.termination.text == FAULT:
                self._repeat(pairing)
            else:
                self._list(pairing)  # it was the instructor's wish
        self._referee.freed(pairing.players)

    def _repeat(self, pairing: Pairing) -> None:
        """A match that the arena spoilt is played again, but not for ever (J5)."""
        self._voids[pairing.number] += 1
        if self._voids[pairing.number] < MOST_VOIDS:
            self._list(pairing)
        else:
            self._stuck[pairing.number] = pairing
            self._referee.stuck(pairing)

    def _ruled(self, pairing: Pairing, result: Result) -> None:
        """Offenders are out, or forgiven: such a one is waited for anew, if it is away (J3)."""
        for name in [pairing.players[seat] for seat in result.out]:
            if self._referee.is_out(name):
                self._strike(name)
            else:
                self._left.pop(name, None)
                if (timer := self._expected.pop(name, None)) is not None:
                    timer.cancel()
                if self._waiting.get(name):
                    self._free_tables(name)

    def _strike(self, name: str) -> None:
        """Nothing more is played with an offender: what runs is stopped, what waits is off (J3)."""
        for number, table in tuple(self._tables.items()):
            if number in self._tables and name in (
                chair.player.name for chair in table.chairs
            ):
                self._referee.void_table(table, f"{name} has been eliminated")
        for pairing in self._of(name):
            self._settle(pairing, None)

    def _of(self, name: str) -> tuple[Pairing, ...]:
        """A bot's pairings that wait, for tables or for the instructor."""
        stuck = (one for one in self._stuck.values() if name in one.players)
        waiting = (self._companies[one] for one in self._waiting.get(name, ()))
        return (*(pairing for some in waiting for pairing in some.values()), *stuck)

    def _settle(self, pairing: Pairing, result: Result | None) -> None:
        self._unlist(pairing)
        self._stuck.pop(pairing.number, None)
        self._outcomes[pairing.number] = Outcome(pairing, result)
        if result is not None:
            self._had.update(pairing.players)
        self._end_if_all_settled()

    def _end_if_all_settled(self) -> None:
        if self._is_complete and not self._done.done():
            self._done.set_result(None)

    def _list(self, pairing: Pairing) -> None:
        company = frozenset(pairing.players)
        self._companies.setdefault(company, {})[pairing.number] = pairing
        for name in company:
            self._waiting.setdefault(name, {})[company] = None

    def _unlist(self, pairing: Pairing) -> None:
        company = frozenset(pairing.players)
        waiting = self._companies.get(company, {})
        waiting.pop(pairing.number, None)
        if waiting:
            return
        self._companies.pop(company, None)
        for name in company:
            companies = self._waiting.get(name, {})
            companies.pop(company, None)
            if not companies and (timer := self._expected.pop(name, None)):
                timer.cancel()  # nothing waits for it any more

    def _to_the_end(self, company: _Company) -> None:
        """They have met just now: others have not."""
        for name in company:
            companies = self._waiting.get(name, {})
            if company in companies:
                del companies[company]
                companies[company] = None
