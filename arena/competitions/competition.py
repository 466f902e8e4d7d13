"""A competition while it is played: its stages one after another, what the instructor does to it, and its report.

The schedule says who plays whom (`arena/formats/schedule.py`), a stage opens what can be opened (`arena/competitions/stage_runner.py`), the arbiter has
the matches played (`arena/competitions/arbiter.py`), and the ledger keeps what came of them (`arena/competitions/ledger.py`). One slow bot delays nothing
but its own matches. A competition that was interrupted begins like a new one, only with results in its ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from arena.competitions.arbiter import Arbiter, LaunchHouseBot
from arena.competitions.ladder_runner import LadderStage
from arena.competitions.ledger import CompetitionReport, Ledger
from arena.competitions.listener import Listener
from arena.competitions.stage_runner import CompetitionStopped, RunningStage
from arena.engine.verdict import Finding
from arena.formats.eta import Left
from arena.formats.formats import expected_matches, schedule_of
from arena.formats.schedule import Outcomes, Pairing, Ranking, Stage
from arena.formats.spec import Form, Plan
from arena.referee.live_match import LiveMatch
from arena.server.gateway import Gateway
from arena.storage.models import Act, CompetitionState
from protocol.errors import UsageError
from protocol.messages import Ending, Mechanism, Progress, Verdict

__all__ = ["Competition"]


class Competition:
    """One competition while it is played.

    Args:
        ledger: its plan, and what has been played of it.
        gateway: where its bots are connected.
        wall: the time of day in Unix seconds.
        call_house: starts house bots for the free chairs of a final.
        listener: told of what happens.
        is_paused: whether it begins with a pause, as it was interrupted in one.
        is_attended: whether there is an instructor to ask; without one a match that is void three times ends it (J5).

    Attributes:
        arbiter: has its matches played.
        scheduled: how many matches have been drawn so far.
        started_at: when it was begun; of one that was interrupted, its owner knows better.
    """

    def __init__(
        self,
        ledger: Ledger,
        gateway: Gateway,
        wall: Callable[[], float],
        call_house: LaunchHouseBot,
        listener: Listener,
        *,
        is_paused: bool = False,
        is_attended: bool = False,
    ) -> None:
        self.id = ledger.id
        self.plan: Plan = ledger.plan
        self.ledger = ledger
        self.scheduled = 0
        self.is_over = False
        self.arbiter = Arbiter(ledger, gateway, wall, call_house, listener, is_attended=is_attended)
        self.arbiter.is_paused = is_paused
        self._gateway = gateway
        self._wall = wall
        self._settled = 0
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.started_at = wall()
        if self.plan.form is Form.ELIMINATION:
            self.arbiter.findings |= ledger.findings
            for name, ended in ledger.book.removed.items():
                self.arbiter.findings[name] = _removed(ended.text)
        self._names = frozenset((*self.plan.players, *self.plan.house))
        self._stage: RunningStage | LadderStage | None = None
        self._stopped_by: Act | None = None
        self._is_closed = False
        self.ledger.on_rated = self._reopen  # perhaps without a pause
        self._first = 1  # the number of the present stage's first pairing

    @property
    def title(self) -> str:
        """What people call it."""
        return self.plan.run or self.plan.game

    @property
    def played(self) -> int:
        """How many matches count or ended by an offence."""
        return self.ledger.played

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Every offence so far."""
        return tuple(self.ledger.verdicts)

    @property
    def is_paused(self) -> bool:
        """Whether no match is opened now."""
        return self.arbiter.is_paused

    @property
    def temporary_house_bots(self) -> tuple[str, ...]:
        """The house bots that are there for this competition only, as players or in a final's free chairs."""
        return self.arbiter.temporary_house_bots

    @property
    def settled(self) -> int:
        """How many of the scheduled matches have been played or will never be."""
        return self._settled + (0 if self._stage is None else self._stage.settled)

    @property
    def state(self) -> CompetitionState:
        """Whether it goes on."""
        if self.is_over:
            return CompetitionState.STOPPED if self._stopped_by else CompetitionState.FINISHED
        return CompetitionState.PAUSED if self.is_paused else CompetitionState.RUNNING

    @property
    def is_stuck(self) -> bool:
        """Whether a match waits for the instructor, as it was void too often."""
        return isinstance(self._stage, RunningStage) and self._stage.is_stuck

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        """The matches that are being played."""
        return self.arbiter.tables

    @property
    def waiting(self) -> int:
        """How many pairings wait for a table now; none on a ladder, where whoever is free plays."""
        return self._stage.waiting if isinstance(self._stage, RunningStage) else 0

    def queue(self, most: int) -> tuple[Pairing, ...]:
        """Some of the pairings that wait, about those that come next."""
        stage = self._stage
        return stage.queue(most) if isinstance(stage, RunningStage) else ()

    @property
    def left(self) -> Left | None:
        """What is left of it; None if nobody knows, as on a ladder, in a pause, and before a match has ended."""
        if self.is_paused or self.plan.form is Form.LADDER:
            return None
        playing = self.arbiter.decisions
        waiting = self._expected - self.settled - len(playing)
        now = self._loop.time()
        return self.arbiter.workload.left(now, playing, waiting, self.arbiter.link_s)

    @property
    def rest(self) -> float:
        """How many decisions are left to be made in what is scheduled, about."""
        stage = self._stage
        if not isinstance(stage, RunningStage):
            return 0.0
        return self.arbiter.workload.rest(stage.playing, stage.waiting)

    @property
    def is_spreading(self) -> bool:
        """Whether its first matches are still on, so that more begin as these go on; see `tables_at_once`."""
        return isinstance(self._stage, RunningStage) and self._stage.come < 1.0

    def wants(self, name: str) -> bool:
        """Whether a match of that bot waits for a table; not on a ladder, where whoever is free plays."""
        stage = self._stage
        return isinstance(stage, RunningStage) and stage.wants(name)

    @property
    def progress(self) -> Progress:
        """How far it is."""
        left = self.left
        return Progress(
            competition=self.id,
            run=self.plan.run,
            game=self.plan.game,
            form=self.plan.form.value,
            state=self.state.value,
            settled=self.settled,
            scheduled=self._expected,
            left_s=left and round(left.s(self.arbiter.beside), 1),
            waits_for=() if self._stage is None else self._stage.waits_for,
        )

    async def run(self) -> CompetitionReport:
        """Play it to its end.

        Raises:
            ArenaError: a match was void three times (J5) and nobody is there to ask, the results cannot be stored, or those that
                are there are not those of this schedule.
        """
        self._began = self._loop.time()
        self.arbiter.workload.begin(self._began)
        ranking: Ranking = ()
        with contextlib.suppress(CompetitionStopped):
            ranking = await self._play_all()
        await self.ledger.rated()
        self.is_over = True
        self.ledger.finished(self._wall(), ranking, self.state, self._stopped_by)
        return self.ledger.report(ranking, self.state, self._loop.time() - self._began)

    def changed(self, names: Sequence[str]) -> None:
        """These bots have come or gone: matches may be opened now."""
        is_ladder = self.plan.form is Form.LADDER
        mine = [
            name
            for name in names
            if (self.arbiter.climbs(name) if is_ladder else name in self._names)
        ]
        if self._stage is not None and mine:
            self._stage.seat(mine)

    def offended(self, name: str, finding: Finding) -> None:
        """A bot is gone for good; if that did not end a match here, it is out all the same (J3).

        Leaving is no offence while nothing is played: whoever comes back in time may go on. On a ladder nothing is but at a table.
        """
        if finding.kind is Ending.DISCONNECT or self.plan.form is Form.LADDER:
            return
        if self.arbiter.is_excused(name):
            return
        if name in self.plan.house:
            self.arbiter.tell(f"the house bot {name} {finding.text}")
            if self._stage is not None:
                self._stage.offended(name)
        elif self.is_in(name) and not self.ledger.book.knows(name, finding.event):
            is_new = name not in self.arbiter.findings
            self.arbiter.findings.setdefault(name, finding)
            if self._stage is not None:
                self._stage.offended(name)
            rests = self.plan.form is Form.ELIMINATION and name not in self.ledger.book.out
            if is_new and rests:
                # It rests, or has played: its next table will have to know, also after a power cut.
                self.ledger.note_offence(name, finding, self._wall())

    def is_in(self, name: str) -> bool:
        """Whether a bot takes part and has neither been eliminated nor removed."""
        if name in self.ledger.book.out or name in self.ledger.book.removed:
            return False
        return name in self._names or (
            self.plan.form is Form.LADDER
            and (name in self.ledger.ladder() or self.arbiter.climbs(name))
        )

    def seat(self, names: Sequence[str]) -> None:
        """Open what can be opened for these bots."""
        if self._stage is not None:
            self._stage.seat(names)

    # --- what the instructor wants ---

    def pause(self, act: Act) -> None:
        """Open nothing more; what is being played goes on."""
        if self.is_paused:
            raise UsageError(f"expected a competition that goes on, {self.id} is paused")
        self.ledger.state_changed(CompetitionState.PAUSED, act)
        self.arbiter.is_paused = True
        if self._stage is not None:
            self._stage.paused()

    def resume(self, act: Act) -> None:
        """Go on, also with what was void too often."""
        self.ledger.state_changed(CompetitionState.RUNNING, act)
        self.arbiter.is_paused = False
        self.arbiter.workload.begin(self._loop.time(), self.arbiter.decisions)
        self._reopen(retries=True)

    def stop(self, act: Act) -> None:
        """End it here and now: what is being played is void, the standings stay as they are."""
        self._stopped_by = act
        if self._stage is not None:
            self._stage.stop()

    def close(self) -> None:
        """A ladder's time is over."""
        self._is_closed = True
        if isinstance(self._stage, LadderStage):
            self._stage.close()

    def table(self, match: str) -> LiveMatch | None:
        """The match of that id, if it is being played here."""
        return next((table for table in self.tables if table.id == match), None)

    def void(self, match: str, act: Act) -> None:
        """Have a match played again that is being played, or whose result counts.

        Raises:
            UsageError: there is none, or its result cannot be taken back any more.
        """
        table = self.table(match)
        if table is not None:
            self.ledger.acted(act)
            self._gateway.referee.void(table, act.text)
            return
        played = self.ledger.take_back(match, act, self._first)
        seat = played.result.termination.seat
        if seat is not None and played.players[seat] not in self.ledger.book.removed:
            name = played.players[seat]
            self.arbiter.findings.pop(name, None)
            self.ledger.clear_offence(name, self._wall())
        self._reopen()

    def remove(self, name: str, act: Act) -> None:
        """Take a bot out, like an offender.

        Raises:
            UsageError: it is not in it, or not any more.
        """
        if not self.is_in(name) or name in self.plan.house:
            raise UsageError(f"expected a bot that is in {self.id}, got {name!r}")
        self.ledger.acted(act)
        finding = _removed(act.text)
        self.arbiter.findings[name] = finding
        tables = self.tables
        player = self._gateway.players.get(name)
        if player is not None:
            self._gateway.referee.offence(player, finding, tables)
        if self._stage is not None:
            self._stage.offended(name)
        self.ledger.remove(name, act.text)
        self._reopen()

    # --- within ---

    @property
    def _expected(self) -> int:
        return max(expected_matches(self.plan) or 0, self.scheduled)

    def _reopen(self, *, retries: bool = False) -> None:
        """Go on with what has no result any more; whom the instructor has removed does not play in it."""
        if self._stage is not None:
            self._stage.reopen(tuple(self.ledger.book.removed), retries=retries)

    async def _play_all(self) -> Ranking:
        if self.plan.form is Form.LADDER:
            self._stage = ladder = LadderStage(
                self.arbiter, self.ledger.ladder, self.ledger.last_pairing + 1
            )
            if self._stopped_by is not None:
                ladder.stop()
            elif self._is_closed:
                ladder.close()
            try:
                await ladder.outcomes()
            finally:
                self._stage = None
            return ()
        schedule = schedule_of(self.plan)
        stage: Stage = next(schedule)
        while True:
            outcomes = await self._play(stage)
            try:
                stage = schedule.send(outcomes)
            except StopIteration as done:
                ranking: Ranking = done.value
                return ranking
            self.arbiter.flag_saved(outcomes)

    async def _play(self, pairings: Stage) -> Outcomes:
        self.scheduled += len(pairings)
        self._first = pairings[0].number
        await self.arbiter.launch_house_bots(pairings)
        self._stage = stage = RunningStage(self.arbiter, pairings)
        for name in tuple(self.arbiter.findings):
            stage.offended(name)
        if self._stopped_by is not None:
            stage.stop()
        try:
            return await stage.outcomes()
        finally:
            self._settled += stage.settled
            self._stage = None


def _removed(text: str) -> Finding:
    return Finding(kind=Ending.REMOVED, text=text, mechanism=Mechanism.INSTRUCTOR)
