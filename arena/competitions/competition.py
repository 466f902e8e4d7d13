"""Runs a competition: opens its matches as bots are free, rules who is out, and does what the instructor wants.

The schedule says who plays whom (`arena/formats/schedule.py`), a stage opens what can be opened (`arena/competitions/stage_runner.py`), the ledger keeps what
came of it (`arena/competitions/scorebook.py`); the director carries pairings to the conduct and results back. One slow bot delays nothing but its own
matches. A competition that was interrupted begins like a new one, only with results in its ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from arena.competitions.ladder_runner import LadderStage
from arena.competitions.scorebook import Ledger
from arena.competitions.stage_runner import RunningStage, Stopped
from arena.engine.match import Match, MatchResult, Result
from arena.engine.names import owner_of
from arena.engine.verdict import Finding, advice
from arena.formats.eta import Left, Workload
from arena.formats.formats import expected_matches, schedule_of
from arena.formats.schedule import Outcomes, Pairing, Placed, Ranking, Stage, saved
from arena.formats.spec import WAIT_S, Form, Plan
from arena.referee.bot_session import Player
from arena.referee.live_match import OnOver, Table
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.referee.timers import Timer
from arena.server.gateway import Gateway
from arena.storage.models import ARENA, Act, State
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Mechanism, Progress, Termination, Verdict

__all__ = ["Competition", "Listener", "Report", "in_turn"]

HouseCall = Callable[[str, str], Awaitable[None]]
"""(game, name) → a house bot of that name is started and will connect."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How a competition ended.

    Attributes:
        competition, run: its id, and the name of its run or empty.
        game, form, players: what was played, by whom.
        state: `finished`, or `stopped` by the instructor.
        standings: rows, best first, the eliminated at the end; empty for an elimination.
        cross_table: who has done how against whom, in a round robin.
        ranking: the places of an elimination.
        not_there: those of the roster who had not come when it started.
        verdicts: every offence, with its evidence.
        played: how many matches count or ended by an offence.
        seconds: how long it took, since the arena was last started.
    """

    competition: str
    run: str
    game: str
    form: Form
    players: tuple[str, ...]
    state: State
    standings: tuple[Any, ...]
    cross_table: dict[str, dict[str, Any]]
    ranking: tuple[Placed, ...]
    verdicts: tuple[Verdict, ...]
    played: int
    seconds: float
    not_there: tuple[str, ...] = ()


class Listener:
    """Who wants to know what happens in a competition; this one does not."""

    def freed(self, competition: Competition, names: Sequence[str]) -> None:
        """A match is over, and these bots have a table free; by default for the same competition."""
        competition.seat(names)

    def share(self, competition: Competition, name: str) -> float:
        """Which part of a bot's tables is the competition's while matches are still being spread; by default all."""
        return 1.0

    def beside(self, competition: Competition) -> Collection[Competition]:
        """Which others are played by the same bots."""
        return ()

    def ruled(self, verdict: Verdict) -> None:
        """A bot is out, by what did not end a match."""

    def matched(
        self, competition: Competition, match: str, pairing: Pairing, result: Result
    ) -> None:
        """A match is over and written down."""

    def told(self, text: str) -> None:
        """Something that the instructor should know."""

    def guests_elsewhere(self, competition: Competition) -> Collection[str]:
        """It asks for the house bots that are there for other competitions only, and for people."""
        return ()

    def is_aside(self, name: str) -> bool:
        """Whether who is called so does not compete, as it is a person."""
        return False


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
    """

    def __init__(
        self,
        ledger: Ledger,
        gateway: Gateway,
        wall: Callable[[], float],
        call_house: HouseCall,
        listener: Listener | None = None,
        *,
        is_paused: bool = False,
        is_attended: bool = False,
    ) -> None:
        self.id = ledger.id
        self.plan: Plan = ledger.plan
        self.ledger = ledger
        self.scheduled = 0
        self.is_paused = is_paused
        self.is_over = False
        self.guests: set[str] = set()  # house bots that were started to play in it
        self._settled = 0
        self._rules = self.plan.rules
        self._settings = self.plan.read_settings()
        self._gateway = gateway
        self._wall = wall
        self._call_house = call_house
        self._listener = listener or Listener()
        self._is_attended = is_attended
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.started_at = wall()  # of one that was interrupted, its owner knows better
        self._workload = Workload(self._rules.decisions(self._settings))
        self._findings: dict[str, Finding] = {}
        if self.plan.form is Form.ELIMINATION:
            self._findings |= ledger.findings
            for name, ended in ledger.removed.items():
                self._findings[name] = _removed(ended.text)
        self._names = frozenset((*self.plan.players, *self.plan.house))
        self._stage: RunningStage | LadderStage | None = None
        self._stopped_by: Act | None = None
        self._is_closed = False
        self._excused: set[str] = set()  # house bots whose offence made a match void
        self.ledger.on_rated = self._reopen  # perhaps without a pause
        self._calls: set[asyncio.Task[None]] = set()
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
    def house(self) -> tuple[str, ...]:
        """The names of house bots in a final's free chairs."""
        return self.plan.house

    @property
    def fillers(self) -> tuple[str, ...]:
        """The house bots that are there for this competition only, as players or in a final's free chairs."""
        return (*self.plan.house, *self.guests)

    @property
    def settled(self) -> int:
        """How many of the scheduled matches have been played or will never be."""
        return self._settled + (0 if self._stage is None else self._stage.settled)

    @property
    def state(self) -> State:
        """Whether it goes on."""
        if self.is_over:
            return State.STOPPED if self._stopped_by else State.FINISHED
        return State.PAUSED if self.is_paused else State.RUNNING

    @property
    def is_stuck(self) -> bool:
        """Whether a match waits for the instructor, as it was void too often."""
        return isinstance(self._stage, RunningStage) and self._stage.is_stuck

    @property
    def tables(self) -> tuple[Table, ...]:
        """The matches that are being played."""
        return () if self._stage is None else self._stage.tables

    @property
    def waiting(self) -> int:
        """How many pairings wait for a table now; none on a ladder, where whoever is free plays."""
        return self._stage.waiting if isinstance(self._stage, RunningStage) else 0

    @property
    def left(self) -> Left | None:
        """What is left of it; None if nobody knows, as on a ladder, in a pause, and before a match has ended."""
        if self.is_paused or self.plan.form is Form.LADDER:
            return None
        playing = [table.decisions for table in self.tables]
        waiting = self._expected - self.settled - len(playing)
        links = [
            seat.player.link.floor_ms for one in self.tables for seat in one.chairs
        ]
        link_s = sum(links) / max(1, len(links)) / 1000
        return self._workload.left(self._loop.time(), playing, waiting, link_s)

    @property
    def _expected(self) -> int:
        return max(expected_matches(self.plan) or 0, self.scheduled)

    @property
    def is_spreading(self) -> bool:
        """Whether its first matches are still on, so that more begin as these go on; see `tables_at_once`."""
        return isinstance(self._stage, RunningStage) and self._stage.come < 1.0

    @property
    def rest(self) -> float:
        """How many decisions are left to be made in what is scheduled, about."""
        stage = self._stage
        if not isinstance(stage, RunningStage):
            return 0.0
        return self._workload.rest(stage.playing, stage.waiting)

    def wants(self, name: str) -> bool:
        """Whether a match of that bot waits for a table; not on a ladder, where whoever is free plays."""
        stage = self._stage
        return isinstance(stage, RunningStage) and stage.wants(name)

    def share(self, name: str) -> float:
        """Which part of a bot's tables is this competition's now."""
        return self._listener.share(self, name)

    def queue(self, most: int) -> tuple[Pairing, ...]:
        """Some of the pairings that wait, about those that come next."""
        stage = self._stage
        return stage.queue(most) if isinstance(stage, RunningStage) else ()

    @property
    def progress(self) -> Progress:
        """How far it is."""
        left = self.left
        others = [one.left for one in self._listener.beside(self)]
        return Progress(
            competition=self.id,
            run=self.plan.run,
            game=self.plan.game,
            form=self.plan.form.value,
            state=self.state.value,
            settled=self.settled,
            scheduled=self._expected,
            left_s=left and round(left.s([one for one in others if one]), 1),
            waits_for=() if self._stage is None else self._stage.waits_for,
        )

    async def run(self) -> Report:
        """Play it to its end.

        Raises:
            ArenaError: a match was void three times (J5) and nobody is there to ask, the results cannot be stored, or those that
                are there are not those of this schedule.
        """
        self._began = self._loop.time()
        self._workload.begin(self._began)
        ranking: Ranking = ()
        with contextlib.suppress(Stopped):
            ranking = await self._play_all()
        await self.ledger.rated()
        self.is_over = True
        self.ledger.finished(self._wall(), ranking, self.state, self._stopped_by)
        return Report(
            competition=self.id,
            run=self.plan.run,
            game=self.plan.game,
            form=self.plan.form,
            players=self.plan.players,
            state=self.state,
            standings=self.ledger.rows,
            cross_table=self.ledger.cross_table,
            ranking=ranking,
            verdicts=self.verdicts,
            played=self.played,
            seconds=self._loop.time() - self._began,
            not_there=self.plan.not_there,
        )

    def changed(self, names: Sequence[str]) -> None:
        """These bots have come or gone: matches may be opened now."""
        is_ladder = self.plan.form is Form.LADDER
        mine = [
            name
            for name in names
            if (self._climbs(name) if is_ladder else name in self._names)
        ]
        if self._stage is not None and mine:
            self._stage.seat(mine)

    def offended(self, name: str, finding: Finding) -> None:
        """A bot is gone for good; if that did not end a match here, it is out all the same (J3).

        Leaving is no offence while nothing is played: whoever comes back in time may go on. On a ladder nothing is but at a table.
        """
        if finding.kind is Ending.DISCONNECT or self.plan.form is Form.LADDER:
            return
        if name in self._excused:
            self._excused.discard(name)  # its match is void already
        elif name in self.house:
            self._listener.told(f"{self.title}: the house bot {name} {finding.text}")
            if self._stage is not None:
                self._stage.offended(name)
        elif self.is_in(name) and not self.ledger.knows(name, finding.event):
            is_new = name not in self._findings
            self._findings.setdefault(name, finding)
            if self._stage is not None:
                self._stage.offended(name)
            rests = self.plan.form is Form.ELIMINATION and name not in self.ledger.out
            if is_new and rests:
                # It rests, or has played: its next table will have to know, also after a power cut.
                self.ledger.found(name, finding, self._wall())

    def is_in(self, name: str) -> bool:
        """Whether a bot takes part and has neither been eliminated nor removed."""
        if name in self.ledger.out or name in self.ledger.removed:
            return False
        return name in self._names or (
            self.plan.form is Form.LADDER
            and (name in self.ledger.ladder() or self._climbs(name))
        )

    def seat(self, names: Sequence[str]) -> None:
        """Open what can be opened for these bots."""
        if self._stage is not None:
            self._stage.seat(names)

    # --- what the instructor wants ---

    def pause(self, act: Act) -> None:
        """Open nothing more; what is being played goes on."""
        if self.is_paused:
            raise UsageError(
                f"expected a competition that goes on, {self.id} is paused"
            )
        self.ledger.state_changed(State.PAUSED, act)
        self.is_paused = True
        if self._stage is not None:
            self._stage.paused()

    def resume(self, act: Act) -> None:
        """Go on, also with what was void too often."""
        self.ledger.state_changed(State.RUNNING, act)
        self.is_paused = False
        playing = [one.decisions for one in self.tables]
        self._workload.begin(self._loop.time(), playing)
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

    def table(self, match: str) -> Table | None:
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
            self._gateway.conduct.void(table, act.text)
            return
        played = self.ledger.take_back(match, act, self._first)
        seat = played.result.termination.seat
        if seat is not None and played.players[seat] not in self.ledger.removed:
            name = played.players[seat]
            self._findings.pop(name, None)
            self.ledger.excused(name, self._wall())
        self._reopen()

    def remove(self, name: str, act: Act) -> None:
        """Take a bot out, like an offender.

        Raises:
            UsageError: it is not in it, or not any more.
        """
        if not self.is_in(name) or name in self.house:
            raise UsageError(f"expected a bot that is in {self.id}, got {name!r}")
        self.ledger.acted(act)
        finding = _removed(act.text)
        self._findings[name] = finding
        tables = self.tables
        player = self._gateway.players.get(name)
        if player is not None:
            self._gateway.conduct.offence(player, finding, tables)
        if self._stage is not None:
            self._stage.offended(name)
        self.ledger.remove(name, act.text)
        self._reopen()

    # --- what a stage asks for ---

    def awaited(self, name: str) -> float:
        """A bot is away and its matches wait; for how long, in seconds. A house bot that has gone is started again."""
        if name not in self.house:
            return self.plan.wait_s
        task = self._loop.create_task(self._call_again(name))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return max(self.plan.wait_s, WAIT_S)

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call in so many seconds in which the arena has not stood still."""
        return self._gateway.timers.after(delay_s, call)

    def known(self, pairing: Pairing) -> Result | None:
        """Its result, if there is one."""
        return self.ledger.known(pairing)

    def is_out(self, *names: str) -> bool:
        """Whether one of them has been eliminated (J3)."""
        return any(name in self.ledger.out for name in names)

    def is_barred(self, name: str) -> bool:
        """Whether a bot may not play here any more, or its owner."""
        return name in self.ledger.out or owner_of(name) in self.ledger.out

    def rests_s(self, owner: str) -> float:
        """How long everything of an owner still rests after its offences, in seconds (J3)."""
        return self.ledger.pauses.left_s(owner, self._wall())

    def plays(self) -> list[Player]:
        """All that are here and play the game, but for people and the house bots of other competitions."""
        others = self._listener.guests_elsewhere(self)
        return [
            player
            for player in self._gateway.players.of_game(self.plan.game)
            if not player.leaving and player.name not in others
        ]

    def stuck(self, pairing: Pairing) -> None:
        """A match was void three times by faults of the arena (J5).

        Raises:
            ArenaError: there is no instructor to ask.
        """
        names = " against ".join(pairing.players)
        text = f"{names} was void {MOST_VOIDS} times by faults of the arena"
        if not self._is_attended:
            raise ArenaError(text)
        self.ledger.acted(self._act("flag", text))
        self._listener.told(
            f"{self.title}: {text} and waits for the instructor: see the log, then `arena resume {self.id}`"
        )

    def open(self, pairing: Pairing, on_over: OnOver) -> Table:
        """Open a pairing's match; all its players are free."""
        players = [self._gateway.players[name] for name in pairing.players]
        if self.plan.form is Form.LADDER:  # which nobody is in before
            for name in pairing.players:
                self._gateway.players.spellings.add(name)
        return self._gateway.conduct.open(
            self._rules,
            self._settings,
            players,
            self.plan.limits,
            partial(self._over, pairing, on_over),
            forgives=self.ledger.forgives,
        )

    def note(
        self,
        pairing: Pairing,
        table: Table,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        """Write down what came of a match, and rule who is out."""
        now = self._loop.time()
        is_whole = result.termination.kind is Ending.COMPLETED
        lasted_s = now - table.opened_at
        self._workload.ended(table.decisions, is_whole=is_whole)
        if self._workload.is_due(now):
            self._workload.mark(now, [one.decisions for one in self.tables])
        self._note(table.id, pairing, result, verdict, lasted_s)

    def freed(self, names: Sequence[str]) -> None:
        """These bots have a table free, for this competition or another."""
        self._listener.freed(self, names)

    def player(self, name: str) -> Player | None:
        """The bot of that name, if there is one that can still be dealt to."""
        player = self._gateway.players.get(name)
        if player is None or player.leaving or self.plan.game not in player.games:
            return None
        return None if self._listener.is_aside(name) else player

    def forfeit(
        self, pairing: Pairing, seat: int, also: Sequence[int] = ()
    ) -> MatchResult:
        """Rule that a bot does not come to its match, as it is absent or has offended before (J2); the result of that.

        Those in the seats `also` do not come either, and are out as well.
        """
        game = self._rules
        match = Match(game, self._settings, seed=secrets.token_bytes(32), start=False)
        name = pairing.players[seat]
        match_id = f"{self.id}-{pairing.number}-{secrets.token_hex(2)}"
        if name in self.house:
            match.end(Ending.VOID, None, FAULT)
            self._note(match_id, pairing, match.result(), None)
            return match.result()
        also = tuple(one for one in also if pairing.players[one] not in self.house)
        finding = self._finding(name)
        verdict, *others = (
            self._ruling(match_id, pairing, one) for one in (seat, *also)
        )
        events = tuple(one.event for one in (verdict, *others))
        match.end(finding.kind, seat, finding.text, also, events)
        result = match.result()
        self._note(match_id, pairing, result, verdict, others=others)
        for ruled in (verdict, *others):
            if not self.is_out(ruled.bot):
                self._findings.pop(ruled.bot, None)  # it has paid for that
            self._listener.ruled(ruled)
        return result

    def _finding(self, name: str) -> Finding:
        """Why a bot does not come to its match."""
        return self._findings.get(name) or Finding(
            kind=Ending.ABSENT,
            text=f"did not come within {self.plan.wait_s * 1000:,.0f} ms",
            mechanism=Mechanism.SESSION,
        )

    def _ruling(self, match: str, pairing: Pairing, seat: int) -> Verdict:
        """The evidence against a bot that does not come."""
        limits, name = self.plan.limits, pairing.players[seat]
        finding = self._finding(name)
        event = finding.event or f"{match}.{seat}"
        return Verdict(
            kind=finding.kind,
            match=match,
            game=self.plan.game,
            bot=name,
            seat=seat,
            text=finding.text,
            advice=advice(finding, limits),
            mechanism=finding.mechanism,
            got=finding.got,
            exit_status=finding.exit_status,
            stderr=finding.stderr,
            enforced=finding.enforced,
            bank_ms=limits.bank_ms,
            limits=limits,
            event=event,
            forgiven=self.ledger.forgives(name, finding.kind, event),
        )

    def void_table(self, table: Table, text: str) -> None:
        """Stop a match that cannot count any more."""
        self._gateway.conduct.void(table, text)

    # --- within ---

    def _climbs(self, name: str) -> bool:
        """Whether a bot is one of those that `plays`."""
        others = self._listener.guests_elsewhere(self)
        return self.player(name) is not None and name not in others

    def _reopen(self, *, retries: bool = False) -> None:
        """Go on with what has no result any more; whom the instructor has removed does not play in it."""
        if self._stage is not None:
            self._stage.reopen(tuple(self.ledger.removed), retries=retries)

    async def _play_all(self) -> Ranking:
        if self.plan.form is Form.LADDER:
            self._stage = ladder = LadderStage(
                self, self.ledger.ladder, self.ledger.last_pairing + 1
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
            self._flag(outcomes)

    async def _play(self, pairings: Stage) -> Outcomes:
        self.scheduled += len(pairings)
        self._first = pairings[0].number
        for pairing in pairings:
            for name in pairing.players:
                if name in self.house and self.known(pairing) is None:
                    await self._call_house(self.plan.game, name)
        self._stage = stage = RunningStage(self, pairings)
        for name in tuple(self._findings):
            stage.offended(name)
        if self._stopped_by is not None:
            stage.stop()
        try:
            return await stage.outcomes()
        finally:
            self._settled += stage.settled
            self._stage = None

    async def _call_again(self, name: str) -> None:
        try:
            await self._call_house(self.plan.game, name)
        except ArenaError as error:
            self._listener.told(f"{name}: {error}")

    def _over(
        self,
        pairing: Pairing,
        on_over: OnOver,
        table: Table,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        """A match has ended; if a house bot in a final's free chair is to blame, that is the arena's own fault (J5)."""
        seat = result.termination.seat
        if seat is not None and pairing.players[seat] in self.house:
            self._excused.add(pairing.players[seat])
            result, verdict = _voided(result), None
        on_over(table, result, verdict)

    def _note(
        self,
        match: str,
        pairing: Pairing,
        result: MatchResult,
        verdict: Verdict | None,
        lasted_s: float = 0.0,
        others: Sequence[Verdict] = (),
    ) -> None:
        """Write a match down, and tell what it means."""
        now = self._wall()
        self.ledger.note(match, pairing, result, verdict, now - lasted_s, now, others)
        self._listener.matched(self, match, pairing, result)

    def _flag(self, outcomes: Outcomes) -> None:
        """Who goes on because a team-mate offended (K2): that is for the instructor to judge; told once, also after a restart."""
        for pairing, result in ((one.pairing, one.result) for one in outcomes):
            if result is None or not self.plan.teams:
                continue
            match = self.ledger.match_of(pairing)
            for name in saved(pairing.players, result, self.plan.teams):
                seat = result.termination.seat
                assert seat is not None, "there was an offence"
                offender = pairing.players[seat]
                text = (
                    f"the offence of {offender} in {match} saved its team-mate {name}"
                )
                if self.ledger.flag(self._act("flag", text, match, offender)):
                    self._listener.told(f"{self.title}: {text}")

    def _act(
        self, what: str, text: str, match: str | None = None, bot: str | None = None
    ) -> Act:
        return Act(
            competition=self.id,
            at=self._wall(),
            who=ARENA,
            what=what,
            match=match,
            bot=bot,
            text=text,
        )


def in_turn(competitions: Iterable[Competition]) -> list[Competition]:
    """In which order they are offered bots: eliminations first, as a stage waits for every match of it, ladders last, as they have no end.

    Of the others those with the fewest tables for what is left to decide, so that the standings of all move, and their pace stays as it is.
    """
    order = {Form.ELIMINATION: 0, Form.LADDER: 2}
    return sorted(
        competitions,
        key=lambda one: (
            order.get(one.plan.form, 1),
            len(one.tables) / max(1.0, one.rest),
        ),
    )


def share(
    competition: Competition, competitions: Iterable[Competition], name: str
) -> float:
    """Which part of a bot's tables is a competition's while its first matches are on, or those of another that waits for the bot.

    As much as is left to decide in it, so that all go on at the pace at which they began. Afterwards it is enough who is
    offered a bot first: see `in_turn`. An elimination waits for every match of a stage, and has what it needs.
    """
    rivals = [one for one in competitions if one is not competition and one.wants(name)]
    if competition.plan.form is Form.ELIMINATION:
        return 1.0
    if not any(one.is_spreading for one in (competition, *rivals)):
        return 1.0
    rest = competition.rest
    return rest / max(1.0, rest + sum(one.rest for one in rivals))


def _voided(result: MatchResult) -> MatchResult:
    void = Termination(Ending.VOID, None, FAULT)
    record = msgspec.structs.replace(result.record, termination=void)
    return msgspec.structs.replace(result, termination=void, record=record)


def _removed(text: str) -> Finding:
    return Finding(kind=Ending.REMOVED, text=text, mechanism=Mechanism.INSTRUCTOR)
