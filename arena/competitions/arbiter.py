"""The arbiter of a competition: opens its matches, writes down what comes of them, and rules on bots that do not come.

When a match is opened is for the stages to say (`arena/competitions/stage_runner.py`, `arena/competitions/ladder_runner.py`). The arbiter
carries pairings to the referee and results to the ledger, and knows who may play and who is away. What a match itself rules is the
referee's business; the arbiter rules where there is no match: a bot that is absent, or has offended while it sat nowhere, loses by forfeit (J2).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

import msgspec

from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.engine.match import MatchResult, MatchState, Result
from arena.engine.names import owner_of
from arena.engine.verdict import Finding, advice
from arena.formats.elimination import saved
from arena.formats.eta import Left, Workload
from arena.formats.schedule import Outcomes, Pairing
from arena.formats.spec import WAIT_S, Form
from arena.referee.bot_session import BotSession
from arena.referee.live_match import LiveMatch, OnOver
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.referee.timers import Timer
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from arena.storage.models import ARENA, Act
from protocol.errors import ArenaError
from protocol.messages import Ending, Mechanism, Termination, Verdict

__all__ = ["Arbiter", "LaunchHouseBot"]

LaunchHouseBot = Callable[[str, str], Awaitable[None]]
"""(game, name) → a house bot of that name is started and will connect."""


class Arbiter:
    """The matches of one competition.

    Args:
        ledger: its plan, and what has been played of it.
        gateway: where its bots are connected.
        wall: the time of day in Unix seconds.
        launch_house_bots: starts house bots for the free chairs of a final.
        listener: told of what happens.
        is_attended: whether there is an instructor to ask; without one a match that is void three times ends the competition (J5).

    Attributes:
        is_paused: whether no match is to be opened now.
        guests: house bots that were started to play in it.
        findings: what bots have done that lose their next match by it.
        workload: the pace of the matches.
    """

    def __init__(
        self,
        ledger: Ledger,
        gateway: Gateway,
        wall: Callable[[], float],
        call_house: LaunchHouseBot,
        listener: Listener,
        *,
        is_attended: bool = False,
    ) -> None:
        self.plan = ledger.plan
        self.is_paused = False
        self.guests: set[str] = set()
        self.findings: dict[str, Finding] = {}
        self._ledger = ledger
        self._gateway = gateway
        self._wall = wall
        self._call_house = call_house
        self._listener = listener
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
        """The matches that are being played."""
        return tuple(self._tables.values())

    @property
    def temporary_house_bots(self) -> tuple[str, ...]:
        """The house bots that are there for this competition only, as players or in a final's free chairs."""
        return (*self.plan.house, *self.guests)

    @property
    def decisions(self) -> list[int]:
        """How many have been made in each match that is being played."""
        return [table.decisions for table in self._tables.values()]

    @property
    def link_s(self) -> float:
        """How long a question and its answer are on their way, in the mean of the seats that are played."""
        links = [seat.player.link.floor_ms for one in self._tables.values() for seat in one.chairs]
        return sum(links) / max(1, len(links)) / 1000

    @property
    def beside(self) -> Collection[Left]:
        """What is left of the other competitions with the same bots."""
        return self._listener.beside(self._ledger.id)

    # --- who plays ---

    def player(self, name: str) -> BotSession | None:
        """The bot of that name, if there is one that can still be dealt to."""
        player = self._gateway.players.get(name)
        if player is None or player.leaving or self.plan.game not in player.games:
            return None
        return None if self._listener.is_non_competing(name) else player

    def plays(self) -> list[BotSession]:
        """All that are here and play the game, but for people and the house bots of other competitions."""
        others = self._listener.house_bots_elsewhere(self.temporary_house_bots)
        return [
            player
            for player in self._gateway.players.of_game(self.plan.game)
            if not player.leaving and player.name not in others
        ]

    def climbs(self, name: str) -> bool:
        """Whether a bot is one of those that `plays`."""
        others = self._listener.house_bots_elsewhere(self.temporary_house_bots)
        return self.player(name) is not None and name not in others

    def is_out(self, *names: str) -> bool:
        """Whether one of them has been eliminated (J3)."""
        return not self._ledger.book.out.keys().isdisjoint(names)

    def is_barred(self, name: str) -> bool:
        """Whether a bot may not play here any more, or its owner."""
        return self.is_out(name, owner_of(name))

    def rests_s(self, owner: str) -> float:
        """How long everything of an owner still rests after its offences, in seconds (J3)."""
        return self._ledger.book.pauses.left_s(owner, self._wall())

    def awaited(self, name: str) -> float:
        """A bot is away and its matches wait; for how long, in seconds. A house bot that has gone is started again."""
        if name not in self.plan.house:
            return self.plan.wait_s
        self._calls.start(self._launch_again(name))
        return max(self.plan.wait_s, WAIT_S)

    async def launch_house_bots(self, pairings: Sequence[Pairing]) -> None:
        """Start the house bots that sit in these, where they have not been played.

        Raises:
            ArenaError: one cannot be started on this machine.
        """
        for pairing in pairings:
            for name in pairing.players:
                if name in self.plan.house and self.known(pairing) is None:
                    await self._call_house(self.plan.game, name)

    # --- matches ---

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Call in so many seconds in which the arena has not stood still."""
        return self._gateway.timers.after(delay_s, call)

    def known(self, pairing: Pairing) -> Result | None:
        """Its result, if it has been played before the arena was interrupted, or not been taken back."""
        return self._ledger.known(pairing)

    def open(self, pairing: Pairing, on_over: OnOver) -> LiveMatch:
        """Open a pairing's match; all its players are free."""
        players = [self._gateway.players[name] for name in pairing.players]
        if self.plan.form is Form.LADDER:  # which nobody is in before
            for name in pairing.players:
                self._gateway.players.spellings.add(name)
        table = self._gateway.referee.open(
            self._rules,
            self._settings,
            players,
            self.plan.limits,
            partial(self._over, pairing, on_over),
            forgives=self._ledger.forgives,
        )
        self._tables[pairing.number] = table
        return table

    def note(
        self, pairing: Pairing, table: LiveMatch, result: MatchResult, verdict: Verdict | None
    ) -> None:
        """Write down what came of a match, and rule who is out."""
        now = self._loop.time()
        is_whole = result.termination.kind is Ending.COMPLETED
        lasted_s = now - table.opened_at
        self.workload.ended(table.decisions, is_whole=is_whole)
        if self.workload.is_due(now):
            self.workload.mark(now, self.decisions)
        self._note(table.id, pairing, result, verdict, lasted_s)

    def share(self, name: str) -> float:
        """Which part of a bot's tables is this competition's now."""
        return self._listener.share(self._ledger.id, name)

    def freed(self, names: Sequence[str]) -> None:
        """These bots have a table free, for this competition or another."""
        self._listener.freed(names)

    def void_table(self, table: LiveMatch, text: str) -> None:
        """Stop a match that cannot count any more."""
        self._gateway.referee.void(table, text)

    def void_too_often(self, pairing: Pairing) -> None:
        """A match was void three times by faults of the arena: the instructor has to look at it (J5).

        Raises:
            ArenaError: there is no instructor to ask.
        """
        names = " against ".join(pairing.players)
        text = f"{names} was void {MOST_VOIDS} times by faults of the arena"
        if not self._is_attended:
            raise ArenaError(text)
        self._ledger.acted(self._flag(text))
        self.tell(
            f"{text} and waits for the instructor: see the log, then `arena resume {self._ledger.id}`"
        )

    # --- rulings ---

    def is_excused(self, name: str) -> bool:
        """Whether a house bot's offence has made its match void already; asked once of each."""
        is_excused = name in self._excused
        self._excused.discard(name)
        return is_excused

    def forfeit(self, pairing: Pairing, seat: int, also: Sequence[int] = ()) -> MatchResult:
        """Rule that a bot does not come to its match, as it is absent or has offended before (J2); the result of that.

        Those in the seats `also` do not come either, and are out as well.
        """
        match = MatchState(self._rules, self._settings, seed=secrets.token_bytes(32), start=False)
        match_id = f"{self._ledger.id}-{pairing.number}-{secrets.token_hex(2)}"
        if pairing.players[seat] in self.plan.house:
            match.end(Ending.VOID, None, FAULT)
            self._note(match_id, pairing, match.result(), None)
            return match.result()
        also = tuple(one for one in also if pairing.players[one] not in self.plan.house)
        finding = self._finding(pairing.players[seat])
        verdict, *others = (self._verdict(match_id, pairing, one) for one in (seat, *also))
        events = tuple(one.event for one in (verdict, *others))
        match.end(finding.kind, seat, finding.text, also, events)
        result = match.result()
        self._note(match_id, pairing, result, verdict, others=others)
        for ruled in (verdict, *others):
            if not self.is_out(ruled.bot):
                self.findings.pop(ruled.bot, None)  # it has paid for that
            self._listener.verdict_given(ruled)
        return result

    def flag_saved(self, outcomes: Outcomes) -> None:
        """Who goes on because a team-mate offended (K2): that is for the instructor to judge; told once, also after a restart."""
        for pairing, result in ((one.pairing, one.result) for one in outcomes):
            if result is None or not self.plan.teams:
                continue
            match = self._ledger.match_of(pairing)
            for name in saved(pairing.players, result, self.plan.teams):
                seat = result.termination.seat
                assert seat is not None, "there was an offence"
                offender = pairing.players[seat]
                text = f"the offence of {offender} in {match} saved its team-mate {name}"
                if self._ledger.flag(self._flag(text, match, offender)):
                    self.tell(text)

    def tell(self, text: str) -> None:
        """Something that the instructor should know of this competition."""
        self._listener.told(f"{self.plan.run or self.plan.game}: {text}")

    # --- within ---

    async def _launch_again(self, name: str) -> None:
        try:
            await self._call_house(self.plan.game, name)
        except ArenaError as error:
            self._listener.told(f"{name}: {error}")

    def _over(
        self,
        pairing: Pairing,
        on_over: OnOver,
        table: LiveMatch,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        """A match has ended; if a house bot in a final's free chair is to blame, that is the arena's own fault (J5)."""
        del self._tables[pairing.number]
        seat = result.termination.seat
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
    ) -> None:
        """Write a match down, and tell what it means."""
        now = self._wall()
        self._ledger.note(match, pairing, result, verdict, now - lasted_s, now, others)
        self._listener.match_finished(self._ledger, match, pairing, result)

    def _finding(self, name: str) -> Finding:
        """Why a bot does not come to its match."""
        return self.findings.get(name) or Finding(
            kind=Ending.ABSENT,
            text=f"did not come within {self.plan.wait_s * 1000:,.0f} ms",
            mechanism=Mechanism.SESSION,
        )

    def _verdict(self, match: str, pairing: Pairing, seat: int) -> Verdict:
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
            forgiven=self._ledger.forgives(name, finding.kind, event),
        )

    def _flag(self, text: str, match: str | None = None, bot: str | None = None) -> Act:
        """What the instructor should look at, as it is written down."""
        return Act(
            competition=self._ledger.id,
            at=self._wall(),
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
