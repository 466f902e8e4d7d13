"""The arbiter of a competition: opens its matches, records their results, and rules on forfeits.

The stages say when a match is opened (`stage_runner.py`, `ladder_runner.py`). The arbiter carries
pairings to the referee and results to the ledger, and knows who may play and who is away. The
referee rules in matches. The arbiter rules where there is no match: a bot that is absent, or has
offended between matches, loses by forfeit (J2).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.engine.match import MatchResult, MatchState, Result
from arena.engine.names import owner_of
from arena.engine.verdict import Finding, advice
from arena.formats.elimination import saved
from arena.formats.eta import Workload
from arena.formats.schedule import Outcomes, Pairing
from arena.formats.spec import WAIT_S, Form
from arena.referee.bot_session import BotSession
from arena.referee.live_match import LiveMatch, OnOver
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from arena.storage.models import ARENA, Act
from protocol.errors import ArenaError
from protocol.messages import Ending, Mechanism, Termination, Verdict

__all__ = ["Arbiter", "LaunchHouseBot"]

LaunchHouseBot = Callable[[str, str], Awaitable[None]]
"""Takes a game and a name, and starts a house bot of that name, which will connect."""


class Arbiter:
    """The matches of one competition.

    It begins with a pause if it was interrupted in one. If it is not attended, a match that is void
    three times ends it, as there is no instructor to ask (J5). `wall` is the time of day in Unix
    seconds.

    Attributes:
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
    ) -> None:
        self.plan = ledger.plan
        self.is_paused = is_paused
        self.guests: set[str] = set()
        self.findings: dict[str, Finding] = {}
        self.ledger = ledger
        self.gateway = gateway
        self.wall = wall
        self._call_house = call_house
        self.listener = listener
        self._is_attended = is_attended
        self._rules = self.plan.rules
        self._settings = self.plan.read_settings()
        self.workload = Workload(self._rules.decisions(self._settings))
        self._loop = asyncio.get_running_loop()
        self._tables: dict[int, LiveMatch] = {}
        self._excused: set[str] = set()  # house bots whose offence made a match void
        self._calls = BackgroundTasks()

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        return tuple(self._tables.values())

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

    def player(self, name: str) -> BotSession | None:
        """The bot of that name, if it is here and can be given new matches."""
        player = self.gateway.players.get(name)
        if player is None or player.leaving or self.plan.game not in player.games:
            return None
        return None if self.listener.is_non_competing(name) else player

    def plays(self) -> list[BotSession]:
        """All bots that are here and play the game, without people and others' house bots."""
        others = self.listener.house_bots_elsewhere(self.temporary_house_bots)
        players = self.gateway.players.of_game(self.plan.game)
        return [bot for bot in players if not bot.leaving and bot.name not in others]

    def climbs(self, name: str) -> bool:
        """Whether a bot is one of those that `plays` returns."""
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
        """How many seconds the matches of a bot wait that is away; a house bot is started again."""
        if name not in self.plan.house:
            return self.plan.wait_s
        self._calls.start(self._launch_again(name))
        return max(self.plan.wait_s, WAIT_S)

    async def launch_house_bots(self, pairings: Sequence[Pairing]) -> None:
        """Start the house bots of unplayed pairings, or raise `ArenaError` if one cannot start."""
        for pairing in pairings:
            for name in pairing.players:
                if name in self.plan.house and self.ledger.known(pairing) is None:
                    await self._call_house(self.plan.game, name)

    # --- matches ---

    def open(self, pairing: Pairing, on_over: OnOver) -> LiveMatch:
        """Open a pairing's match; all its players are free."""
        players = [self.gateway.players[name] for name in pairing.players]
        if self.plan.form is Form.LADDER:  # whose players are not known when it begins
            for name in pairing.players:
                self.gateway.players.spellings.add(name)
        table = self.gateway.referee.open(
            self._rules,
            self._settings,
            players,
            self.plan.limits,
            partial(self._over, pairing, on_over),
            forgives=self.ledger.forgives,
        )
        self._tables[pairing.number] = table
        return table

    def note(
        self, pairing: Pairing, table: LiveMatch, result: MatchResult, verdict: Verdict | None
    ) -> Result:
        """Record a match that has ended; returns its result without the record."""
        now = self._loop.time()
        is_whole = result.termination.kind is Ending.COMPLETED
        self.workload.ended(table.decisions, is_whole=is_whole)
        if self.workload.is_due(now):
            self.workload.mark(now, self.decisions)
        return self._note(table.id, pairing, result, verdict, now - table.opened_at)

    def void_too_often(self, pairing: Pairing) -> None:
        """Tell the instructor of a match void too often (J5); without one, raise `ArenaError`."""
        names = " against ".join(pairing.players)
        text = f"{names} was void {MOST_VOIDS} times by faults of the arena"
        if not self._is_attended:
            raise ArenaError(text)
        self.ledger.acted(self._flag(text))
        self.tell(
            f"{text} and waits for the instructor: "
            f"see the log, then `arena resume {self.ledger.id}`"
        )

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
        match = MatchState(self._rules, self._settings, seed=secrets.token_bytes(32), start=False)
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
        on_over: OnOver,
        table: LiveMatch,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        del self._tables[pairing.number]
        seat = result.termination.seat
        # An offence of a house bot in a final's free seat is a fault of the arena (J5).
        if seat is not None and pairing.players[seat] in self.plan.house:
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
        return self.findings.get(name) or Finding(
            kind=Ending.ABSENT,
            text=f"did not come within {self.plan.wait_s * 1000:,.0f} ms",
            mechanism=Mechanism.SESSION,
        )

    def _verdict(self, match: str, pairing: Pairing, seat: int) -> Verdict:
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


def _voided(result: MatchResult) -> MatchResult:
    void = Termination(Ending.VOID, None, FAULT)
    record = msgspec.structs.replace(result.record, termination=void)
    return msgspec.structs.replace(result, termination=void, record=record)
