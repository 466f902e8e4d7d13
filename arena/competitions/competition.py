"""A competition while it is played: its stages in turn, the instructor's commands, and its report.

The schedule decides who plays whom (`arena/formats/schedule.py`). A stage opens the possible
matches (`stage_runner.py`), the arbiter runs them (`arbiter.py`), and the ledger keeps the results
(`ledger.py`). A slow bot delays only its own matches. An interrupted competition begins like a new
one, but with results in its ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from arena.competitions.arbiter import Arbiter
from arena.competitions.ladder_runner import LadderStage
from arena.competitions.stage import CompetitionStage, CompetitionStopped
from arena.competitions.stage_runner import RunningStage
from arena.formats.eta import Left
from arena.formats.formats import expected_matches, open_stages
from arena.formats.schedule import OpenStages, Outcome, Outcomes, Pairing, Ranking
from arena.formats.spec import Form, Plan
from arena.games.names import owner_of
from arena.games.verdict import Finding
from arena.referee.bot_session import LiveMatch
from arena.sandbox.bot_spec import some
from arena.storage.models import Act, CompetitionReport, CompetitionState, MatchRow
from protocol.errors import UsageError
from protocol.instructions import Unplayed
from protocol.messages import Ending, Mechanism, Progress

__all__ = ["Competition"]


class Competition:
    """One competition while it is played.

    Attributes:
        stage: the current one.
        scheduled: how many matches have been drawn so far.
        started_at: when it was begun, in Unix seconds; the scheduler corrects it after an
            interruption.
    """

    def __init__(self, arbiter: Arbiter) -> None:
        self.arbiter = arbiter
        self.ledger = ledger = arbiter.ledger
        self.id = ledger.id
        self.plan: Plan = ledger.plan
        self.scheduled = 0
        self.is_over = False
        self._wall = arbiter.wall
        self._settled = 0
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.started_at = self._wall()
        if self.plan.form is Form.ELIMINATION:
            self.arbiter.findings |= ledger.findings
            for name, ended in ledger.book.removed.items():
                self.arbiter.findings[name] = _removed(ended.text)
        self._names = frozenset((*self.plan.players, *self.plan.house))
        self.stage = self._nothing = CompetitionStage(arbiter)
        self._stopped_by: Act | None = None
        self._is_stopped = False
        self._is_closed = False
        self.ledger.on_rated = self._reopen  # an owner's rest may be over now
        self._first = 1  # the number of the current stage's first pairing

    @property
    def title(self) -> str:
        return self.plan.run or self.plan.game

    @property
    def settled(self) -> int:
        """How many of the scheduled matches have been played or never will be."""
        if self.stage is not self._nothing:
            return self._settled + self.stage.settled
        # Before its first stage, these are the matches that an earlier arena has played.
        return max(self._settled, 0 if self.plan.form is Form.LADDER else self.ledger.played)

    @property
    def state(self) -> CompetitionState:
        if self.is_over:
            return CompetitionState.STOPPED if self._is_stopped else CompetitionState.FINISHED
        return CompetitionState.PAUSED if self.arbiter.is_paused else CompetitionState.RUNNING

    @property
    def left(self) -> Left | None:
        """What is left to play; None on a ladder, in a pause, and before a match has ended.

        It is also None while everything left waits for bots that may never come.
        """
        if self.arbiter.is_halted or self.plan.form is Form.LADDER or self.only_waits:
            return None
        playing = tuple(self.arbiter.decisions)
        waiting = self._expected - self.settled - len(playing)
        return self.arbiter.workload.left(self._loop.time(), playing, waiting)

    @property
    def rest(self) -> float:
        """Roughly how many decisions are left in the scheduled matches."""
        if self.plan.form is Form.LADDER:
            return 0.0
        return self.arbiter.workload.rest(self.stage.playing, self.stage.waiting)

    @property
    def is_spreading(self) -> bool:
        """Whether its first matches are still on; until then `tables_at_once` allows few."""
        is_spreading = self.stage.progress < 1.0
        return is_spreading and not self.only_waits  # otherwise it would keep tables for weeks

    @property
    def submitted(self) -> Sequence[str]:
        """The bots that play by submissions; on a ladder, those that currently do."""
        if self.plan.form is Form.LADDER:
            return self.arbiter.bots.climbing_submissions()
        return tuple(self.plan.versions)

    def leaving_costs(self, name: str) -> str:
        """Return a line on what leaving now costs a bot; empty if it costs nothing (J10)."""
        is_played = isinstance(self.stage, RunningStage) and self.is_in(name)
        if not is_played or self.arbiter.bots.submission(name) is not None:
            return ""  # it does not play here, or its submission does
        waiting = len(self.stage.waiting_for(name))
        what = "1 match waits" if waiting == 1 else f"{waiting} matches wait"
        if not waiting and (self.plan.form is Form.ELIMINATION or self.plan.settle):
            what = "what is drawn next waits"
        elif not waiting:
            return ""
        until = "however long that takes"
        if not self.ledger.is_reopened:
            until = f"for up to {self.plan.wait_s:g} s, then you are absent"
        return f"{what} for you in {self.title} {until}"

    @property
    def progress(self) -> Progress:
        left = None if self.plan.settle else self.left  # later draws are not known yet
        return Progress(
            competition=self.id,
            run=self.plan.run,
            game=self.plan.game,
            form=self.plan.form.value,
            state=self.state.value,
            settled=self.settled,
            scheduled=0 if self.plan.settle else self._expected,
            left_s=left and round(left.s(self.arbiter.listener.beside(self.id)), 1),
            waits_for=self.stage.waits_for,
            reopened=self.ledger.is_reopened,
        )

    @property
    def unplayed(self) -> str:
        """What a reopened competition waits for, and how to end that, in a line; else empty.

        A competition is reopened if a match was made void after its end.
        """
        if not self.ledger.is_reopened:
            return ""
        waits_for = self.stage.waits_for
        waits = f"; it waits for {some(waits_for)}, however long that takes" if waits_for else ""
        if self.stage.is_stuck:
            waits += f" (`arena resume {self.id}` has played what was void too often)"
        return (
            f"{self.id} was over and goes on for its void matches{waits}: `arena stop {self.id} "
            "--unplayed before` ends that, and what was not played again counts as before; "
            "with `--unplayed void` it stays void"
        )

    async def run(self) -> CompetitionReport:
        """Play it to its end. Raises `ArenaError` if a match was void three times (J5) and there is
        no instructor to ask, if results cannot be stored, or if those in the database do not fit
        the schedule.
        """
        self._began = self._loop.time()
        self.arbiter.workload.begin(self._began)
        ranking: Ranking = ()
        try:
            ranking = await self._play_all()
        except CompetitionStopped:
            self._is_stopped = True
        await self.ledger.rated()
        self.is_over = True
        self.ledger.finished(self._wall(), ranking, self.state, self._stopped_by)
        return self.report(ranking)

    def report(self, ranking: Ranking = ()) -> CompetitionReport:
        """Report its current state; `ranking` is that of an elimination that is over."""
        return self.ledger.report(ranking, self.state, self._loop.time() - self._began)

    def changed(self, names: Sequence[str]) -> None:
        """Open the matches that are possible now that these bots have come or gone."""
        plays = self._climbs if self.plan.form is Form.LADDER else self._names.__contains__
        mine = [name for name in names if plays(name)]
        self.arbiter.bots.room_changed()
        if mine:
            self.stage.seat(mine)

    def look_anew(self) -> None:
        """Open matches after hosts or their room have changed, or versions in play."""
        self.arbiter.bots.room_changed()
        self.stage.look_anew()

    def offended(self, name: str, finding: Finding) -> None:
        """Eliminate a bot that is gone for good, even if that ended no match here (J3).

        Leaving between matches is no offence: a bot that comes back in time may go on. On a ladder,
        and in matches that are played again after the end, only offences in a match count.
        """
        if finding.kind is Ending.DISCONNECT or self.plan.form is Form.LADDER:
            return
        if self.ledger.is_reopened and finding.kind is not Ending.REMOVED:
            return  # nobody had to stay for these matches
        if self.arbiter.bots.submission(name) is not None:
            return  # a connected bot of that name, which does not play here, has left
        if self.arbiter.is_excused(name):
            return
        if name in self.plan.house:
            self.arbiter.tell(f"the house bot {name} {finding.text}")
            self.stage.offended(name)
        elif self.is_in(name) and not self.ledger.book.knows(name, finding.event):
            is_new = name not in self.arbiter.findings
            self.arbiter.findings.setdefault(name, finding)
            self.stage.offended(name)
            rests = self.plan.form is Form.ELIMINATION and name not in self.ledger.book.out
            if is_new and rests:
                # It is not playing now; its next match has to know, even after a power cut.
                self.ledger.note_offence(name, finding, self._wall())

    def is_in(self, name: str) -> bool:
        """Return whether a bot takes part and has neither been eliminated nor removed."""
        if name in self.ledger.book.out or name in self.ledger.book.removed:
            return False
        return name in self._names or (
            self.plan.form is Form.LADDER
            and (name in self.ledger.ladder() or self.arbiter.bots.climbs(name))
        )

    # --- the instructor's commands ---

    def pause(self, act: Act) -> None:
        """Open no more matches; matches that are being played go on."""
        if self.arbiter.is_paused:
            raise UsageError(f"expected a competition that goes on, {self.id} is paused")
        self.ledger.state_changed(CompetitionState.PAUSED, act)
        self.arbiter.is_paused = True
        self._halt("its competition is paused")

    def resume(self, act: Act) -> None:
        """Go on, and retry matches that were void too often."""
        self.ledger.state_changed(CompetitionState.RUNNING, act)
        self.arbiter.is_paused = False
        self._go_on(retries=True)

    def hold(self, is_held: bool) -> None:
        """Open no more matches while results do not reach the disk, or go on."""
        was_halted = self.arbiter.is_halted
        self.arbiter.is_held = is_held
        if was_halted and not self.arbiter.is_halted:
            self._go_on()
        elif not was_halted and is_held:
            self._halt("results do not reach the disk")

    def stop(self, act: Act, unplayed: Unplayed | None = None) -> tuple[MatchRow, ...]:
        """End it now: matches that are being played are void, and the standings stay.

        If it was reopened, `unplayed` decides about results that were taken back and not played
        again. Returns those that count as before; if none is missing, the competition is finished.
        """
        restored: tuple[MatchRow, ...] = ()
        if unplayed is Unplayed.BEFORE:
            self.arbiter.is_paused = True  # opens no more matches
            self.arbiter.void_all(act.text)
            restored = self.ledger.restore(act)
            self._reopen()
        self._stopped_by = act
        self.stage.stop()
        return restored

    def close(self) -> None:
        """End a ladder whose time is over."""
        self._is_closed = True
        self.stage.close()

    def table(self, match: str) -> LiveMatch | None:
        return next((table for table in self.arbiter.tables if table.id == match), None)

    def check_back(self, match: str) -> None:
        """Raise `UsageError` if the result of a match cannot be taken back any more."""
        self.ledger.check_back(match, self._first)

    def void(self, match: str, act: Act, reopened: Act | None = None) -> None:
        """Void a match, so that it is played again; `UsageError` if there is none, or too late.

        With the act `reopened`, the competition was over and goes on for that match.
        """
        table = self.table(match)
        if table is not None:
            self.ledger.acted(act)
            self.arbiter.gateway.referee.void(table, act.text)
            return
        played = self.ledger.take_back(match, act, self._first, reopened)
        seat = played.result.termination.seat
        if seat is not None and played.players[seat] not in self.ledger.book.removed:
            name = played.players[seat]
            self.arbiter.findings.pop(name, None)
            self.ledger.clear_offence(name, self._wall())
        self._reopen()

    def remove(self, name: str, act: Act) -> None:
        """Remove a bot like an offender; raises `UsageError` if it does not take part now."""
        if not self.is_in(name) or name in self.plan.house:
            raise UsageError(f"expected a bot that is in {self.id}, got {name!r}")
        self.ledger.acted(act)
        finding = _removed(act.text)
        self.arbiter.findings[name] = finding
        self.arbiter.removed(name, finding)
        self.stage.offended(name)
        self.ledger.remove(name, act.text)
        self._reopen()

    @property
    def only_waits(self) -> bool:
        """Whether it was over, goes on for results taken back, and plays no match now.

        What is left may then wait for bots that never come.
        """
        return self.ledger.is_reopened and not self.arbiter.playing

    @property
    def _expected(self) -> int:
        return max(expected_matches(self.plan) or 0, self.scheduled)

    def _climbs(self, name: str) -> bool:
        """Return whether the ladder has a bot that has come or gone, or its owner's version."""
        return (
            self.arbiter.bots.climbs(name)
            or self.arbiter.bots.submission(owner_of(name)) is not None
        )

    def _halt(self, why: str) -> None:
        self.arbiter.withdraw(why)
        self.stage.halted()

    def _go_on(self, *, retries: bool = False) -> None:
        self.arbiter.workload.begin(self._loop.time(), self.arbiter.decisions)
        self._reopen(retries=retries)

    def _reopen(self, *, retries: bool = False) -> None:
        self.stage.reopen(self._first, retries=retries)

    async def _play_all(self) -> Ranking:
        if self.plan.form is Form.LADDER:
            first = self.ledger.last_pairing + 1
            await self._outcomes(LadderStage(self.arbiter, self.ledger.ladder, first))
            return ()
        stages = open_stages(self.plan)
        if self.plan.settle:
            together = [pairing for stage in stages.open for pairing in stage]
            await self._play(together, partial(self._follow, stages))
            return ()
        while stage := stages.oldest:
            outcomes = await self._play(stage)
            if stages.hear(outcomes):
                self.arbiter.flag_saved(outcomes)
        return stages.ranking or ()

    def _follow(self, stages: OpenStages, outcomes: Mapping[int, Outcome]) -> Sequence[Pairing]:
        """Return the pairings drawn by these outcomes while others are being played (K6)."""
        pairings = stages.follow(outcomes)
        self.scheduled += len(pairings)
        if stages.oldest:
            self._first = stages.oldest[0].number
        return pairings

    async def _play(
        self,
        pairings: Sequence[Pairing],
        follow: Callable[[Mapping[int, Outcome]], Sequence[Pairing]] | None = None,
    ) -> Outcomes:
        self.scheduled += len(pairings)
        self._first = pairings[0].number
        await self.arbiter.launch_house_bots(pairings)
        return await self._outcomes(RunningStage(self.arbiter, pairings, follow))

    async def _outcomes(self, stage: CompetitionStage) -> Outcomes:
        self.stage = stage
        for name in tuple(self.arbiter.findings):
            stage.offended(name)
        if self._stopped_by is not None:
            stage.stop()
        elif self._is_closed:
            stage.close()
        try:
            return await stage.outcomes()
        finally:
            self._settled += stage.settled
            self.stage = self._nothing


def _removed(text: str) -> Finding:
    return Finding(kind=Ending.REMOVED, text=text, mechanism=Mechanism.INSTRUCTOR)
