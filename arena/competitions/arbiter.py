"""The arbiter of a competition: opens its matches, records their results, and rules on forfeits.

The stages say when a match is opened (`stage_runner.py`, `ladder_runner.py`). The arbiter carries
pairings to the referee and results to the ledger, and knows who may play and who is away. A match
between bots of which none has connected by itself goes to the referee as a job. The referee rules
in matches. The arbiter rules where there is no match: a bot that is absent, or has
offended between matches, loses by forfeit (J2).
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import msgspec

from arena.competitions.forfeit import verdict_outside_play
from arena.competitions.job_match import JobMatch, OnMatchOver, OpenMatch
from arena.competitions.job_runner import JobRunner
from arena.competitions.jobs import MatchJob
from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.remote_play import RemotePlay, WaitNotice
from arena.competitions.submitted_bots import SubmittedBots
from arena.engine.match import MatchResult, MatchState, Result
from arena.engine.names import CONNECTED, owner_of
from arena.engine.verdict import Finding
from arena.formats.elimination import saved
from arena.formats.eta import Workload
from arena.formats.schedule import Outcomes, Pairing
from arena.formats.spec import WAIT_S, Form, Take
from arena.referee.bot_session import BotSession
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from arena.storage.models import ARENA, Act
from arena.strength.figures import time_of
from protocol.errors import ArenaError
from protocol.messages import Ending, Mechanism, Termination, Verdict

__all__ = ["Arbiter", "LaunchHouseBot"]

LaunchHouseBot = Callable[[str, str], Awaitable[None]]
"""Takes a game and a name, and starts a house bot of that name, which will connect."""


class Arbiter:
    """The matches of one competition.

    It begins with a pause if it was interrupted in one. If it is not attended, a match that is void
    three times ends it, as there is no instructor to ask (J5). If it `is_resumed`, an earlier arena
    has begun it. `wall` is the time of day in Unix seconds. Without a `runner` there are no jobs,
    and without `submitted` no submissions.

    Attributes:
        is_paused: whether the instructor has paused it.
        is_held: whether the arena opens nothing, as results do not reach the disk.
        remote: what other machines have to do with it.
        guests: house bots that were started to play in it.
        findings: offences between matches; each costs its bot the next match.
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
        is_resumed: bool = False,
        runner: JobRunner | None = None,
        submitted: SubmittedBots | None = None,
    ) -> None:
        self.plan = ledger.plan
        self.is_paused = is_paused
        self.is_held = False
        self.guests: set[str] = set()
        self.findings: dict[str, Finding] = {}
        self.ledger = ledger
        self.gateway = gateway
        self.wall = wall
        self._call_house = call_house
        self.listener = listener
        self._is_attended = is_attended
        self._runner = runner
        self._submitted = submitted
        self._rules = self.plan.rules
        self._settings = self.plan.read_settings()
        self.workload = Workload(self._rules.decisions(self._settings))
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        # Why bots are away, as far as that was known when it was noticed.
        self._restarted = (
            ": it has not played since the arena was started again at "
            f"{time_of(self.wall(), '%H:%M:%S')}"
        )
        self._causes = dict.fromkeys(self.plan.players if is_resumed else (), self._restarted)
        self._tables: dict[int, OpenMatch] = {}
        self._excused: set[str] = set()  # house bots whose offence made a match void
        self._calls = BackgroundTasks()
        jobs = None if runner is None else runner.jobs
        self.remote = RemotePlay(jobs, ledger.id, self.plan.game)
        self._wait_notice = WaitNotice()

    @property
    def tables(self) -> tuple[OpenMatch, ...]:
        return tuple(self._tables.values())

    @property
    def is_halted(self) -> bool:
        """Whether no match may be opened, and nobody is absent."""
        return self.is_paused or self.is_held

    @property
    def playing(self) -> int:
        return len(self._tables)

    @property
    def temporary_house_bots(self) -> tuple[str, ...]:
        """House bots that are here for this competition only, some in free seats of a final."""
        return (*self.plan.house, *self.guests)

    @property
    def decisions(self) -> list[int]:
        """How many decisions have been made in each match that is being played."""
        return [table.decisions for table in self.tables]

    @property
    def link_s(self) -> float:
        """The mean round trip of a question and its answer, over the seats that are played."""
        links = [seat.player.link.floor_ms for table in self.tables for seat in table.chairs]
        return sum(links) / max(1, len(links)) / 1000

    # --- who plays ---

    def submission(self, name: str) -> int | None:
        """The submission that plays as a bot in its next match; None if the bot has to be here.

        On a ladder it stands back while a bot of its owner's is here, or may come back, if the run
        takes either.
        """
        plan = self.plan
        if plan.form is not Form.LADDER:
            return plan.versions.get(name)
        if self._submitted is None or plan.take is Take.CONNECTED or name in self._own_bots:
            return None
        if plan.take is Take.EITHER and self.gateway.players.has_owner(plan.game, name):
            return None
        return self._submitted.in_play(plan.game).get(name)

    def climbing_submissions(self) -> Sequence[str]:
        """The bots of a ladder that are played from submissions now."""
        if self._submitted is None or self.plan.take is Take.CONNECTED:
            return ()
        owners = self._submitted.in_play(self.plan.game)
        return [name for name in owners if self.submission(name) is not None]

    @property
    def jobs_at_once(self) -> int:
        """How many matches are opened at once of a bot that needs no table here for them.

        All bots together have then as many as are played at once, so that none of those has to wait
        for the next match. A bot that meets itself needs two.
        """
        plan, at_once = self.plan, 1 if self._runner is None else self._runner.at_once
        is_ladder = plan.form is Form.LADDER
        bots = len(self.climbing_submissions() if is_ladder else plan.versions)
        if elsewhere := self.remote.at_once:
            at_once += elsewhere
            bots += self._carried(is_ladder)
        each = math.ceil(at_once * self._rules.seats / max(1, bots))
        return max(2 if plan.with_itself else 1, min(each, at_once))

    # --- other machines ---

    def is_carried(self, name: str) -> bool:
        """Whether other machines can play a bot that was launched here, and is well."""
        if not self.remote.at_once or name in self.findings:
            return False
        player = self.player(name)
        return player is not None and player.process is not None and self.remote.is_portable(name)

    def are_carried(self, names: Iterable[str]) -> bool:
        """Whether other machines can play all bots of a match, so that it takes no table here."""
        return self.remote.at_once > 0 and all(
            self.submission(name) is not None or self.is_carried(name) for name in names
        )

    def _carried(self, is_ladder: bool) -> int:
        """How many bots `is_carried`."""
        if self.remote.carried is None:
            here = [bot.name for bot in self.plays()] if is_ladder else self.plan.players
            self.remote.carried = sum(map(self.is_carried, here))
        return self.remote.carried

    def find_interrupted(self) -> None:
        """Look for matches that other machines still play, and end those that cannot count."""
        for job in self.remote.find_interrupted():
            if self.is_out(*job.players) or not self.findings.keys().isdisjoint(job.players):
                self._drop(job, "one of its bots is out")

    def take_up(self, pairing: Pairing, on_over: OnMatchOver) -> JobMatch | None:
        """Watch the match of a pairing that other machines still play; None if there is none."""
        job = self.remote.take(pairing)
        if job is None:
            return None
        table = self._job_match(job, partial(self._over, pairing, on_over), was_begun=True)
        self._begin(pairing, table)
        return table

    def drop_interrupted(self) -> None:
        """The competition is over: end what other machines still play for it."""
        for job in self.remote.interrupted:
            self._drop(job, "its competition is over")

    def _drop(self, job: MatchJob, why: str) -> None:
        self.remote.take(Pairing(job.pairing, job.players))
        table = self._job_match(job, _ignore, was_begun=True)
        table.begin()
        table.cancel(why)

    def tell_waiting(self) -> None:
        """Say it if all matches wait for machines of one speed."""
        if not self.plan.is_alike or self.is_halted:
            return
        if text := self._wait_notice.look(self.tables, self._loop.time()):
            self.tell(text)

    def player(self, name: str) -> BotSession | None:
        """The bot of that name, if it is here and can be given new matches; None if it is played
        from a submission.
        """
        if self.submission(name) is not None:
            return None
        player = self.gateway.players.get(name)
        if player is None or player.leaving or self.plan.game not in player.games:
            return None
        return None if self.listener.is_non_competing(name) else player

    def plays(self) -> list[BotSession]:
        """All bots that are here and climb a ladder, without people and others' house bots."""
        others = self.listener.house_bots_elsewhere(self.temporary_house_bots)
        players = self.gateway.players.of_game(self.plan.game)
        return [
            bot
            for bot in players
            if not bot.leaving and bot.name not in others and self._may_climb(bot.name)
        ]

    def climbs(self, name: str) -> bool:
        """Whether a bot is one of those that `plays` returns, or is played from a submission."""
        if self.submission(name) is not None:
            return True
        if not self._may_climb(name):
            return False
        others = self.listener.house_bots_elsewhere(self.temporary_house_bots)
        return self.player(name) is not None and name not in others

    def is_out(self, *names: str) -> bool:
        """Whether one of them has been eliminated (J3)."""
        return not self.ledger.book.out.keys().isdisjoint(names)

    def is_barred(self, name: str) -> bool:
        """Whether a bot or its owner has been eliminated."""
        return self.is_out(name, owner_of(name))

    def rests_s(self, owner: str) -> float:
        """How many seconds all bots of an owner still rest after its offences (J3)."""
        return self.ledger.book.pauses.left_s(owner, self.wall())

    def awaited(self, name: str) -> float:
        """How many seconds the matches of a bot wait that is away; a house bot is started again.

        That of a bot which was lost in a match, or is silent, begins when its time for that is over
        (J9): else it would be chance whether other matches of its wait. Of a bot that has not come
        back to an arena which was started again, nobody knows whether it is silent. What is played
        again after the end waits for ever, as nobody had to stay for it (K5).
        """
        if name not in self.plan.house:
            player = self.gateway.players.get(name)
            if player is not None:
                self._causes[name] = self._cause(player)
            if self.ledger.is_reopened:
                return math.inf
            loss = None if player is None else player.loss
            if player is None and self._causes.get(name) == self._restarted:
                limits = self.plan.limits
                away_s = max(limits.grace_ms, limits.silence_ms) / 1000
                left_s = self._began_at + away_s - self._loop.time()
                return max(0.0, left_s) + self.plan.wait_s
            if player is None or loss is None or not (loss.is_silent or player.chairs):
                return self.plan.wait_s
            return self.gateway.admission.left_s(player) + self.plan.wait_s
        self._calls.start(self._launch_again(name))
        return max(self.plan.wait_s, WAIT_S)

    @property
    def _own_bots(self) -> Iterable[str]:
        """The names of the bots that are launched for this competition."""
        return (*(bot.name for bot in self.plan.bots), *self.plan.house)

    def _may_climb(self, name: str) -> bool:
        """Whether a bot that is here may climb a ladder, which may take submissions only."""
        return self.plan.take is not Take.SUBMITTED or name in self._own_bots

    async def launch_house_bots(self, pairings: Sequence[Pairing]) -> None:
        """Start the house bots of unplayed pairings, or raise `ArenaError` if one cannot start."""
        for pairing in pairings:
            for name in pairing.players:
                if name in self.plan.house and self.ledger.known(pairing) is None:
                    await self._call_house(self.plan.game, name)

    # --- matches ---

    def open(self, pairing: Pairing, on_over: OnMatchOver) -> OpenMatch:
        """Open a pairing's match; all its players are free."""
        names = pairing.players
        for name in names:
            self._causes.pop(name, None)
        submissions = tuple(map(self.submission, names))
        versions = self._versions(names, submissions)
        if self.plan.form is Form.LADDER:  # whose players are not known when it begins
            for name, number, version in zip(names, submissions, versions or names, strict=True):
                self.gateway.players.spellings.add(name)
                if number is not None and version:
                    self.ledger.version_in_play(name, version, self.wall())
        over = partial(self._over, pairing, on_over)
        is_connected = all(number is None for number in submissions)
        if self._runner is not None and (not is_connected or self._are_launched(names)):
            return self._open_job(pairing, submissions, versions, over)
        table = self._tables[pairing.number] = self.gateway.referee.open(
            self._rules,
            self._settings,
            [self.gateway.players[name] for name in names],
            self.plan.limits,
            over,
            forgives=self.ledger.forgives,
            versions=versions,
            spares_away=self.ledger.is_reopened,
            teams=self.plan.teams,
        )
        return table

    def void(self, table: OpenMatch, why: str) -> None:
        """Stop a match without a result."""
        if isinstance(table, JobMatch):
            table.cancel(why)
        else:
            self.gateway.referee.void(table, why)

    def close(self, table: OpenMatch, why: str, *, goes_on: bool) -> None:
        """Stop a match as its stage ends; where the competition `goes_on` later, other machines
        play theirs to the end.
        """
        if not isinstance(table, JobMatch):
            self.gateway.referee.void(table, why)
        elif goes_on:
            table.abandon(why)
        else:
            table.close(why)

    def withdraw(self, why: str) -> None:
        """Open none of the matches that have not begun; their pairings wait again."""
        for table in self.tables:
            if isinstance(table, JobMatch) and not table.has_begun:
                table.cancel(why)

    def removed(self, name: str, finding: Finding) -> None:
        """End the matches of a bot that the instructor has removed: one by that, the others void.

        Whoever is out plays no more (J3), so that only one of its matches may say so.
        """
        live = [table.live if isinstance(table, JobMatch) else table for table in self.tables]
        playing = [table for table in live if table is not None and name in table.names]
        for player in {table.chairs[table.names.index(name)].player for table in playing}:
            self.gateway.referee.offence(player, finding, dict.fromkeys(playing, ()))
        is_ended = bool(playing)
        for table in self.tables:
            if not isinstance(table, JobMatch) or name not in table.names or table.live is not None:
                continue
            if not is_ended and table.offend(name, finding):
                is_ended = True
            else:
                table.cancel(f"{name} was removed")

    def _open_job(
        self,
        pairing: Pairing,
        submissions: Sequence[int | None],
        versions: Sequence[str],
        on_over: OnMatchOver,
    ) -> JobMatch:
        """Have a match played as a job, or by the runner if a bot has connected by itself."""
        job = MatchJob(
            id=f"{self.ledger.id}-{pairing.number}-{secrets.token_hex(4)}",
            game=self.plan.game,
            settings=self.plan.settings,
            limits=self.plan.limits,
            players=pairing.players,
            submissions=tuple(submissions),
            package=None if self.plan.package is msgspec.UNSET else self.plan.package,
            versions=tuple(versions),
            competition=self.ledger.id,
            pairing=pairing.number,
            is_alike=self.plan.is_alike,
            spares_away=self.ledger.is_reopened,
            teams={name: team for name, team in self.plan.teams.items() if name in pairing.players},
        )
        connected = (
            name
            for name, number in zip(pairing.players, submissions, strict=True)
            if number is None
        )
        table = self._job_match(job, on_over, is_direct=not self._are_launched(connected))
        self._begin(pairing, table)
        return table

    def _begin(self, pairing: Pairing, table: JobMatch) -> None:
        self._tables[pairing.number] = table
        table.begin()

    def _job_match(
        self,
        job: MatchJob,
        on_over: OnMatchOver,
        *,
        is_direct: bool = False,
        was_begun: bool = False,
    ) -> JobMatch:
        assert self._runner is not None, "without it there are no jobs"
        return JobMatch(
            job,
            self._runner,
            self.ledger.forgives,
            self._rules.decisions(self._settings),
            self._loop.time,
            on_over,
            self._lost,
            is_direct=is_direct,
            was_begun=was_begun,
        )

    def _lost(self, table: JobMatch) -> None:
        """Have no other attempt made at a match that would not be opened now."""
        is_same = tuple(map(self.submission, table.names)) == table.submissions
        if self.is_halted or self.is_out(*table.names) or not is_same:
            self._loop.call_soon(self._cancel_unbegun, table)

    def _cancel_unbegun(self, table: JobMatch) -> None:
        if not table.has_begun:
            table.cancel("it was lost, and is not played again now")

    def _are_launched(self, names: Iterable[str]) -> bool:
        return all(self.gateway.players[name].process is not None for name in names)

    def _versions(self, names: Sequence[str], submissions: Sequence[int | None]) -> tuple[str, ...]:
        """By seat, which version of its bot plays; empty where no submissions are taken."""
        if self._submitted is None or self.plan.take is Take.CONNECTED:
            return ()
        versions = []
        for name, number in zip(names, submissions, strict=True):
            if number is not None:
                versions.append(self._submitted.label(number))
            else:
                player = self.gateway.players.get(name)
                is_ours = name in self._own_bots or (player is not None and bool(player.process))
                versions.append("" if is_ours else CONNECTED)
        return tuple(versions)

    def note(
        self, pairing: Pairing, table: OpenMatch, result: MatchResult, verdict: Verdict | None
    ) -> Result:
        """Record a match that has ended, if it had begun; returns its result without the record."""
        if isinstance(table, JobMatch) and not table.has_begun:
            return Result(result.scores, result.points, result.termination)
        now = self._loop.time()
        is_whole = result.termination.kind is Ending.COMPLETED
        self.workload.ended(table.decisions, is_whole=is_whole)
        if self.workload.is_due(now):
            self.workload.mark(now, self.decisions)
        lasted_s = now - table.opened_at
        return self._note(table.id, pairing, result, verdict, lasted_s, result.others)

    def void_too_often(self, pairing: Pairing) -> None:
        """Tell the instructor of a match void too often (J5, J9); with none, raise `ArenaError`."""
        left = self.ledger.left_again(pairing)
        names = " against ".join(pairing.players)
        text = left or f"{names} was void {MOST_VOIDS} times by faults of the arena"
        if not self._is_attended:
            raise ArenaError(text)
        if left is None:
            self.ledger.acted(self._flag(text))
        else:
            self.ledger.flag(self._flag(text))  # an arena that was stopped may have done so
        look = "see the log, then" if left is None else "to have it played again,"
        self.tell(f"{text} and waits for the instructor: {look} `arena resume {self.ledger.id}`")

    def flag_left(self, pairing: Pairing) -> None:
        """Tell the instructor if bots left a match of a ladder again (J9). Nothing waits for it."""
        text = self.ledger.left_again(pairing)
        if text is not None and self.ledger.flag(self._flag(text)):
            self.tell(text)

    # --- rulings ---

    def is_excused(self, name: str) -> bool:
        """Whether a house bot's offence has already made its match void; true once per offence."""
        is_excused = name in self._excused
        self._excused.discard(name)
        return is_excused

    def forfeit(self, pairing: Pairing, seat: int, also: Sequence[int] = ()) -> Result:
        """Rule that a bot forfeits its match, as it is absent or has offended before (J2).

        The bots in the seats `also` do not come either, and are out as well. A house bot never
        forfeits: the match is void.
        """
        match = MatchState(
            self._rules,
            self._settings,
            seed=secrets.token_bytes(32),
            start=False,
            versions=self._versions(pairing.players, tuple(map(self.submission, pairing.players))),
        )
        match_id = f"{self.ledger.id}-{pairing.number}-{secrets.token_hex(2)}"
        if pairing.players[seat] in self.plan.house:
            match.end(Ending.VOID, None, FAULT)
            return self._note(match_id, pairing, match.result(), None)
        also = tuple(late for late in also if pairing.players[late] not in self.plan.house)
        finding = self._finding(pairing.players[seat])
        verdicts = [self._verdict(match_id, pairing, late) for late in (seat, *also)]
        events = tuple(verdict.event for verdict in verdicts)
        match.end(finding.kind, seat, finding.text, also, events)
        result = self._note(match_id, pairing, match.result(), verdicts[0], others=verdicts[1:])
        for verdict in verdicts:
            if not self.is_out(verdict.bot):
                self.findings.pop(verdict.bot, None)  # it has paid for that
            self.listener.verdict_given(verdict)
        return result

    def flag_saved(self, outcomes: Outcomes) -> None:
        """Tell the instructor, once over all restarts, whom a team-mate's offence saved (K2)."""
        for outcome in outcomes:
            pairing, result = outcome.pairing, outcome.result
            if result is None or not self.plan.teams:
                continue
            match = self.ledger.match_of(pairing)
            for name in saved(self._rules, pairing.players, result, self.plan.teams):
                seat = result.termination.seat
                assert seat is not None, "there was an offence"
                offender = pairing.players[seat]
                text = f"the offence of {offender} in {match} saved its team-mate {name}"
                if self.ledger.flag(self._flag(text, match, offender)):
                    self.tell(text)

    def tell(self, text: str) -> None:
        """Tell the instructor something about this competition."""
        self.listener.told(f"{self.plan.run or self.plan.game}: {text}")

    async def _launch_again(self, name: str) -> None:
        try:
            await self._call_house(self.plan.game, name)
        except ArenaError as error:
            self.listener.told(f"{name}: {error}")

    def _over(
        self,
        pairing: Pairing,
        on_over: OnMatchOver,
        table: OpenMatch,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        del self._tables[pairing.number]
        for player in (chair.player for chair in table.chairs):
            if player.loss is not None:  # its session may be over in a moment
                self._causes[player.name] = self._cause(player)
        seat = result.termination.seat
        # An offence of a house bot in a final's free seat is a fault of the arena (J5).
        if seat is not None and pairing.players[seat] in self.plan.house:
            if result.record.worker is msgspec.UNSET:  # else nothing happened to its process here
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
    ) -> Result:
        now = self.wall()
        noted = self.ledger.note(match, pairing, result, verdict, now - lasted_s, now, others)
        self.listener.match_finished(self.ledger, match, pairing, noted)
        return noted

    def _finding(self, name: str) -> Finding:
        text = f"did not come within {self.plan.wait_s * 1000:,.0f} ms"
        return self.findings.get(name) or Finding(
            kind=Ending.ABSENT, text=text + self._causes.get(name, ""), mechanism=Mechanism.SESSION
        )

    def _cause(self, player: BotSession) -> str:
        """Why a bot that was here does not come, as far as that is known."""
        if player.loss is not None:
            table = f" in match {player.loss.match}" if player.loss.match else ""
            lost_at = self.wall() - (self._loop.time() - player.loss.since)
            return f": its connection was lost at {time_of(lost_at, '%H:%M:%S')}{table}"
        if player.is_unresponsive:
            table = next((f" in match {chair.table.id}" for chair in player.chairs.values()), "")
            return f": it was too late{table} and has not been heard since"
        return ""

    def _verdict(self, match: str, pairing: Pairing, seat: int) -> Verdict:
        limits, name = self.plan.limits, pairing.players[seat]
        finding = self._finding(name)
        event = finding.event or f"{match}.{seat}"
        return verdict_outside_play(
            finding,
            match=match,
            game=self.plan.game,
            bot=name,
            seat=seat,
            limits=limits,
            event=event,
            forgiven=self.ledger.forgives(name, finding.kind, event),
        )

    def _flag(self, text: str, match: str | None = None, bot: str | None = None) -> Act:
        """A note in the database of what the instructor should look at."""
        return Act(
            competition=self.ledger.id,
            at=self.wall(),
            who=ARENA,
            what="flag",
            match=match,
            bot=bot,
            text=text,
        )


def _ignore(table: OpenMatch, result: MatchResult, verdict: Verdict | None) -> None:
    """The result of a match that cannot count."""


def _voided(result: MatchResult) -> MatchResult:
    void = Termination(Ending.VOID, None, FAULT)
    record = msgspec.structs.replace(result.record, termination=void)
    return msgspec.structs.replace(result, termination=void, record=record)
