"""The arbiter of a competition opens its matches, records their results, and rules on forfeits.

The stages decide when a match is opened (`stage_runner.py`, `ladder_runner.py`). The arbiter passes
pairings to the referee and results to the ledger, and knows who may play and who is away. A match
that needs processes waits for its seats (`seating.py`). The referee rules in matches. The arbiter
rules where there is no match: a bot loses by forfeit if it is absent, cannot be started, or has
offended between matches (J2).
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from arena.competitions.competing_bots import CompetingBots
from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.process_pool import SeatBot
from arena.competitions.seating import Seating, WantedSeats
from arena.formats.elimination import saved
from arena.formats.eta import Workload
from arena.formats.schedule import Outcomes, Pairing
from arena.formats.spec import WAIT_S, Form
from arena.games.match import MatchResult, MatchState, Result
from arena.games.names import is_process
from arena.games.statistics import time_of
from arena.games.verdict import UNCOUNTED, Finding, advice
from arena.referee.bot_session import BotSession, LiveMatch
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from arena.storage.models import ARENA, Act
from arena.submissions.service import SubmissionService
from protocol.errors import ArenaError
from protocol.messages import Ending, Mechanism, Termination, Verdict

__all__ = ["Arbiter", "EndedMatch", "OnMatchOver"]

log = logging.getLogger(__name__)


class EndedMatch(msgspec.Struct, frozen=True):
    """How the match of a pairing has ended.

    Attributes:
        id: empty if the match was never opened; then there is nothing to record.
        verdict: on the bot that ended it by an offence; None if no bot did.
        others: on further bots that are out by it.
        lasted_s: how long it was played, in seconds.
    """

    id: str
    result: MatchResult
    verdict: Verdict | None = None
    others: tuple[Verdict, ...] = ()
    decisions: int = 0
    lasted_s: float = 0.0

    @property
    def is_fault(self) -> bool:
        """Whether it is void because of the arena, a host, or bots that were away (J5, J9)."""
        return self.result.termination.text.endswith(UNCOUNTED)


OnMatchOver: TypeAlias = Callable[[EndedMatch], None]


class Arbiter:
    """The matches of one competition.

    It begins paused if it was interrupted in a pause. If it is not attended, a match that is void
    three times ends it, as there is no instructor to ask (J5). `is_resumed` means that an earlier
    arena began it. `wall` returns the time of day in Unix seconds. Without `submitted`, the arena
    takes no submissions.

    Attributes:
        is_paused: whether the instructor has paused it.
        is_held: whether no match is opened because results do not reach the disk.
        bots: the bots that may play in it.
        findings: offences between matches; each costs its bot the next match.
    """

    def __init__(
        self,
        ledger: Ledger,
        gateway: Gateway,
        wall: Callable[[], float],
        listener: Listener,
        seating: Seating,
        *,
        is_paused: bool = False,
        is_attended: bool = False,
        is_resumed: bool = False,
        submitted: SubmissionService | None = None,
    ) -> None:
        self.plan = ledger.plan
        self.is_paused = is_paused
        self.is_held = False
        self.findings: dict[str, Finding] = {}
        self.ledger = ledger
        self.gateway = gateway
        self.wall = wall
        self.listener = listener
        self._is_attended = is_attended
        self._seating = seating
        self.bots = CompetingBots(
            ledger, gateway.players, listener, seating, submitted, self.findings, wall
        )
        self._rules = self.plan.rules
        self._settings = self.plan.read_settings()
        self.workload = Workload(self._rules.decisions(self._settings))
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        # Why bots are away, as far as it was known when they left.
        self._restarted = (
            ": it has not played since the arena was started again at "
            f"{time_of(self.wall(), '%H:%M:%S')}"
        )
        self._causes = dict.fromkeys(self.plan.players if is_resumed else (), self._restarted)
        # By number of the pairing: matches that are played, and those that wait for their seats.
        self._tables: dict[int, LiveMatch] = {}
        self._wanted: dict[int, WantedSeats] = {}
        self._excused: set[str] = set()  # house bots whose offence made a match void
        self._calls = BackgroundTasks()

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        """The matches that are being played."""
        return tuple(self._tables.values())

    @property
    def is_halted(self) -> bool:
        """Whether no match may be opened; then no bot can be absent either."""
        return self.is_paused or self.is_held

    @property
    def playing(self) -> int:
        """How many matches are being played or wait for their seats."""
        return len(self._tables) + len(self._wanted)

    @property
    def decisions(self) -> Iterator[int]:
        """The number of decisions so far in each match that is being played."""
        return (table.decisions for table in self._tables.values())

    def awaited(self, name: str) -> float:
        """Return how many seconds the matches of an absent bot wait; restart a house bot.

        For a bot that was lost in a match or is silent, the wait begins when its time to come back
        is over (J9). Otherwise chance would decide whether its other matches wait. After a restart
        of the arena, a bot that has not come back gets that time too, as it may be silent. Matches
        that are played again after the end wait for ever, as nobody had to stay for them (K5).
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

    async def launch_house_bots(self, pairings: Sequence[Pairing]) -> None:
        """Start the house bots of unplayed pairings; raises `ArenaError` if one cannot start."""
        for pairing in pairings:
            for name in pairing.players:
                if name in self.plan.house and self.ledger.known(pairing) is None:
                    await self.listener.launch_house_bot(self.plan.game, name)

    # --- matches ---

    def open(self, pairing: Pairing, on_over: OnMatchOver) -> None:
        """Open a pairing's match, at once or when its seats are free."""
        names, game = pairing.players, self.plan.game
        for name in names:
            self._causes.pop(name, None)
        bots = [SeatBot(name, self.bots.submission(name), game) for name in names]
        versions = self.bots.versions(names)
        if self.plan.form is Form.LADDER:  # its players are not known when it begins
            for bot, version in zip(bots, versions or names, strict=True):
                self.gateway.players.spellings.add(bot.name)
                if bot.submission is not None and version:
                    self.ledger.version_in_play(bot.name, version, self.wall())
        if any(bot.submission is not None for bot in bots) or self.bots.are_on_hosts(names):
            self._want_seats(pairing, bots, versions, on_over)
        else:
            sessions = [self.gateway.players[name] for name in names]
            self._begin(pairing, sessions, versions, on_over, None)

    def _want_seats(
        self,
        pairing: Pairing,
        bots: Sequence[SeatBot],
        versions: Sequence[str],
        on_over: OnMatchOver,
    ) -> None:
        """Open a match as soon as its seats are free."""
        match = self._new_id(pairing)
        here = [bot.name for bot in bots if bot.submission is None]

        def failed(why: str) -> None:
            del self._wanted[pairing.number]
            void = MatchState(self._rules, self._settings, seed=bytes(32), start=False)
            void.end(Ending.VOID, None, why)
            on_over(EndedMatch("", void.result()))

        def refused(seat: int, finding: Finding) -> None:
            del self._wanted[pairing.number]
            ended = self._forfeited(match, pairing, (seat,), finding, versions)
            on_over(ended)
            if ended.verdict is not None:
                self.listener.verdict_given(ended.verdict)

        wanted = self._wanted[pairing.number] = WantedSeats(
            match,
            bots,
            is_portable=all(map(self.bots.is_portable, here)),
            is_limited=all(self.gateway.players[name].process is not None for name in here),
            seated=lambda sessions: self._begin(pairing, sessions, versions, on_over, wanted),
            refused=refused,
            failed=failed,
        )
        self._seating.want(wanted)

    def cancel(self, pairing: Pairing, why: str) -> None:
        """Void the match of a pairing, if it is open."""
        table = self._tables.get(pairing.number)
        if table is not None:
            self.gateway.referee.void(table, why)
        elif pairing.number in self._wanted:
            self._seating.fail(self._wanted[pairing.number], why)

    def void_all(self, why: str) -> None:
        for table in self.tables:
            self.gateway.referee.void(table, why)
        self.withdraw(why)

    def withdraw(self, why: str, only: Callable[[WantedSeats], bool] = lambda wanted: True) -> None:
        """Cancel the matches that wait for their seats; their pairings wait again."""
        for number, wanted in tuple(self._wanted.items()):
            # Failing an earlier one may have given this one back and opened its pairing anew.
            if self._wanted.get(number) is wanted and only(wanted):
                self._seating.fail(wanted, why)

    def withdraw_replaced(self) -> None:
        """Cancel waiting matches of versions that are no longer in play."""
        self.withdraw(
            "another version is in play",
            lambda wanted: any(
                self.bots.submission(bot.name) != bot.submission for bot in wanted.bots
            ),
        )

    def removed(self, name: str, finding: Finding) -> None:
        """End the matches of a removed bot: one by its removal, the others as void.

        A bot that is out plays no more (J3), so only one match can put it out.
        """
        playing = [table for table in self.tables if name in table.names]
        players = (table.chairs[table.names.index(name)].player for table in playing)
        for player in dict.fromkeys(players):
            self.gateway.referee.offence(player, finding, dict.fromkeys(playing, ()))
        self.withdraw(f"{name} was removed", lambda wanted: name in wanted.names)

    def _begin(
        self,
        pairing: Pairing,
        sessions: Sequence[BotSession],
        versions: Sequence[str],
        on_over: OnMatchOver,
        wanted: WantedSeats | None,
    ) -> None:
        """Open a match whose seats are all taken."""
        try:
            table = self.gateway.referee.open(
                self._rules,
                self._settings,
                sessions,
                self.plan.limits,
                partial(self._over, pairing, on_over, wanted),
                forgives=self.ledger.forgives,
                versions=versions,
                spares_away=self.ledger.is_reopened,
                teams=self.plan.teams,
            )
        except Exception:
            if wanted is None:
                raise
            log.exception("the match of %s cannot be opened", " and ".join(pairing.players))
            self._seating.fail(wanted, FAULT)
            return
        self._wanted.pop(pairing.number, None)
        self._tables[pairing.number] = table

    def _new_id(self, pairing: Pairing) -> str:
        """Make an id for a match that the referee does not open."""
        return f"{self.ledger.id}-{pairing.number}-{secrets.token_hex(2)}"

    def note(self, pairing: Pairing, ended: EndedMatch) -> Result:
        """Record an ended match if it was opened; return its result without the record."""
        result = ended.result
        if not ended.id:
            return Result(result.scores, result.points, result.termination)
        now = self._loop.time()
        is_whole = result.termination.kind is Ending.COMPLETED
        self.workload.ended(ended.decisions, now, self.decisions, is_whole=is_whole)
        return self._note(pairing, ended)

    def void_too_often(self, pairing: Pairing) -> None:
        """Report a match void too often (J5, J9); raise `ArenaError` if there is no instructor."""
        left = self.ledger.left_again(pairing)
        names = " against ".join(pairing.players)
        text = left or f"{names} was void {MOST_VOIDS} times by faults of the arena"
        if not self._is_attended:
            raise ArenaError(text)
        if left is None:
            self.ledger.acted(self._flag(text))
        else:
            self.ledger.flag(self._flag(text))  # once only: an earlier arena may have done it
        look = "see the log, then" if left is None else "to have it played again,"
        self.tell(f"{text} and waits for the instructor: {look} `arena resume {self.ledger.id}`")

    def flag_left(self, pairing: Pairing) -> None:
        """Tell the instructor if bots left a ladder's match again (J9); nothing waits for that."""
        text = self.ledger.left_again(pairing)
        if text is not None and self.ledger.flag(self._flag(text)):
            self.tell(text)

    # --- rulings ---

    def is_excused(self, name: str) -> bool:
        """Return whether a house bot's offence has voided its match; True once per offence."""
        is_excused = name in self._excused
        self._excused.discard(name)
        return is_excused

    def forfeit(self, pairing: Pairing, seat: int, also: Sequence[int] = ()) -> Result:
        """Rule that a bot forfeits its match, as it is absent or has offended before (J2).

        The bots in the seats `also` do not come either, and are out as well. A house bot never
        forfeits: the match is void instead.
        """
        name = pairing.players[seat]
        also = tuple(late for late in also if pairing.players[late] not in self.plan.house)
        ended = self._forfeited(
            self._new_id(pairing),
            pairing,
            (seat, *also),
            self._finding(name),
            self.bots.versions(pairing.players),
        )
        result = self._note(pairing, ended)
        for verdict in () if ended.verdict is None else (ended.verdict, *ended.others):
            if not self.bots.is_out(verdict.bot):
                self.findings.pop(verdict.bot, None)  # this forfeit was the price of its offence
            self.listener.verdict_given(verdict)
        return result

    def _forfeited(
        self,
        match_id: str,
        pairing: Pairing,
        seats: Sequence[int],
        finding: Finding,
        versions: Sequence[str],
    ) -> EndedMatch:
        """Make a match that a finding ends before it is opened; a house bot's is void (J5)."""
        match = MatchState(
            self._rules,
            self._settings,
            seed=secrets.token_bytes(32),
            start=False,
            versions=tuple(versions),
        )
        seat, *also = seats
        if pairing.players[seat] in self.plan.house:
            match.end(Ending.VOID, None, FAULT)
            return EndedMatch(match_id, match.result())
        findings = [finding, *(self._finding(pairing.players[late]) for late in also)]
        verdicts = [
            self._verdict(match_id, pairing, late, found)
            for late, found in zip(seats, findings, strict=True)
        ]
        events = tuple(verdict.event for verdict in verdicts)
        match.end(finding.kind, seat, finding.text, tuple(also), events)
        return EndedMatch(match_id, match.result(), verdicts[0], tuple(verdicts[1:]))

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
            await self.listener.launch_house_bot(self.plan.game, name)
        except ArenaError as error:
            self.listener.told(f"{name}: {error}")

    def _over(
        self,
        pairing: Pairing,
        on_over: OnMatchOver,
        wanted: WantedSeats | None,
        table: LiveMatch,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        del self._tables[pairing.number]
        if wanted is not None:
            self._seating.give_back(wanted, table.id)
        for player in (chair.player for chair in table.chairs):
            if player.loss is not None:  # note it now, as the session may be over in a moment
                self._causes[player.name] = self._cause(player)
        seat = result.termination.seat
        # An offence of a house bot in a final's free seat is a fault of the arena (J5).
        if seat is not None and pairing.players[seat] in self.plan.house:
            if not is_process(table.chairs[seat].player.name):  # otherwise the bot here is well
                self._excused.add(pairing.players[seat])
            void = Termination(Ending.VOID, None, FAULT)
            record = msgspec.structs.replace(result.record, termination=void)
            result = msgspec.structs.replace(result, termination=void, record=record)
            verdict = None
        on_over(
            EndedMatch(
                table.id,
                result,
                verdict,
                result.others,
                table.decisions,
                self._loop.time() - table.opened_at,
            )
        )

    def _note(self, pairing: Pairing, ended: EndedMatch) -> Result:
        now = self.wall()
        noted = self.ledger.note(
            ended.id, pairing, ended.result, ended.verdict, now - ended.lasted_s, now, ended.others
        )
        self.listener.match_finished(self.ledger, ended.id, pairing, noted)
        return noted

    def _finding(self, name: str) -> Finding:
        text = f"did not come within {self.plan.wait_s * 1000:,.0f} ms"
        return self.findings.get(name) or Finding(
            kind=Ending.ABSENT, text=text + self._causes.get(name, ""), mechanism=Mechanism.SESSION
        )

    def _cause(self, player: BotSession) -> str:
        """Return why a bot that was here does not come, as far as that is known."""
        if player.loss is not None:
            table = f" in match {player.loss.match}" if player.loss.match else ""
            lost_at = self.wall() - (self._loop.time() - player.loss.since)
            return f": its connection was lost at {time_of(lost_at, '%H:%M:%S')}{table}"
        if player.is_unresponsive:
            table = next((f" in match {chair.table.id}" for chair in player.chairs.values()), "")
            return f": it was too late{table} and has not been heard since"
        return ""

    def _verdict(self, match: str, pairing: Pairing, seat: int, finding: Finding) -> Verdict:
        """Make the verdict on a bot whose match ends before it was asked anything (J2, J4)."""
        limits, name = self.plan.limits, pairing.players[seat]
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

    def _flag(self, text: str, match: str | None = None, bot: str | None = None) -> Act:
        """Make an act that asks the instructor to look at something."""
        return Act(
            competition=self.ledger.id,
            at=self.wall(),
            who=ARENA,
            what="flag",
            match=match,
            bot=bot,
            text=text,
        )
