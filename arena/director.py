"""Runs a competition: opens its matches as bots are free, rules who is out, and keeps the standings.

The schedule says who plays whom (`arena/schedule.py`), the standings what it adds up to (`arena/standings.py`); the director
only carries pairings to the conduct and outcomes back. One slow bot delays nothing but its own matches.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from arena.chance import Stream
from arena.conduct import OnOver, Table
from arena.gateway import Gateway
from arena.match import Match, MatchResult
from arena.player import Player
from arena.rules import Game
from arena.schedule import (
    Outcome,
    Outcomes,
    Pairing,
    Placed,
    Ranking,
    Schedule,
    Stage,
    elimination,
    league,
    round_robin,
)
from arena.stage import RunningStage
from arena.standings import League, RoundRobin, measure_for
from arena.store import Store
from arena.verdict import Finding, advice
from protocol.messages import Ending, Limits, Mechanism, Termination, Verdict
from protocol.vocabulary import Settings

__all__ = ["Competition", "Form", "Plan", "Report", "form_of"]

_HOUSE_SEATS = 3  # the most free chairs that a final can have (K2)


class Form(StrEnum):
    """The forms of competition (rules K)."""

    ROUND_ROBIN = "round_robin"
    ELIMINATION = "elimination"
    LEAGUE = "league"


def form_of(game: Game) -> Form:
    """The form in which a game is played if nobody says otherwise: by its number of seats."""
    return {1: Form.LEAGUE, 2: Form.ROUND_ROBIN}.get(game.seats, Form.ELIMINATION)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played.

    Attributes:
        game: its rules.
        settings: of every match.
        players: the bots' names.
        matches: how often each two meet, or each bot the dealer.
        with_itself: whether each bot also meets another instance of itself (A10), if it has two tables.
        limits: of time.
    """

    game: Game
    settings: Settings
    players: tuple[str, ...]
    matches: int = 1
    with_itself: bool = False
    limits: Limits = Limits()

    @property
    def form(self) -> Form:
        """Round robin, elimination or league."""
        return form_of(self.game)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How a competition ended.

    Attributes:
        game, form, players: what was played, by whom.
        standings: `Row`s or `LeagueRow`s, best first, the eliminated at the end; empty for an elimination.
        cross_table: who has done how against whom, in a round robin.
        ranking: the places of an elimination.
        verdicts: every elimination, with its evidence.
        played: how many matches count or ended by an offence.
        seconds: how long it took.
    """

    game: str
    form: Form
    players: tuple[str, ...]
    standings: tuple[Any, ...]
    cross_table: dict[str, dict[str, Any]]
    ranking: tuple[Placed, ...]
    verdicts: tuple[Verdict, ...]
    played: int
    seconds: float


HouseCall = Callable[[str, str], Awaitable[None]]
"""(game, name) → a house bot of that name is started and will connect."""


class Competition:
    """One competition while it is played.

    Args:
        plan: what is to be played.
        gateway: where its bots are connected.
        store: what every match is written to as it ends.
        wall: the time of day in Unix seconds.
        call_house: starts house bots for the free chairs of a final.
        on_freed: told whose tables a match has freed, as other competitions may wait for them.
        on_verdict: told of every elimination that did not end a match.
    """

    def __init__(
        self,
        plan: Plan,
        gateway: Gateway,
        store: Store,
        wall: Callable[[], float],
        call_house: HouseCall,
        on_freed: Callable[[Sequence[str]], None] = lambda names: None,
        on_verdict: Callable[[Verdict], None] = lambda verdict: None,
    ) -> None:
        self.plan = plan
        self.played = 0
        self.scheduled = 0
        self._settled = 0
        self.verdicts: list[Verdict] = []
        self._gateway = gateway
        self._store = store
        self._wall = wall
        self._call_house = call_house
        self._on_freed = on_freed
        self._on_verdict = on_verdict
        self._findings: dict[str, Finding] = {}
        self._loop = asyncio.get_running_loop()
        self._id = store.competition_started(
            plan.game.name,
            plan.form.value,
            msgspec.to_builtins(plan.settings),
            plan.players,
            wall(),
        )
        self._out: dict[str, Termination] = {}
        self._standings = _standings(plan)
        self._stage: RunningStage | None = None
        self.house = tuple(
            f"house-{secrets.token_hex(2)}-{n}" for n in range(_HOUSE_SEATS)
        )

    @property
    def patience_ms(self) -> int:
        """How long a bot that is away is waited for."""
        return self.plan.limits.start_ms + self.plan.limits.grace_ms

    @property
    def settled(self) -> int:
        """How many of the scheduled matches have been played or will never be."""
        running = 0 if self._stage is None else self._stage.settled
        return self._settled + running

    async def run(self) -> Report:
        """Play it to its end.

        Raises:
            ArenaError: a match was void three times (J5), or the results cannot be stored.
        """
        started = self._loop.time()
        schedule = self._schedule(self.house)
        stage: Stage = next(schedule)
        ranking: Ranking = ()
        while True:
            outcomes = await self._play(stage)
            try:
                stage = schedule.send(outcomes)
            except StopIteration as done:
                ranking = done.value
                break
        self._store.competition_finished(self._id, self._wall(), ranking)
        standings = self._standings
        return Report(
            game=self.plan.game.name,
            form=self.plan.form,
            players=self.plan.players,
            standings=standings.rows() if standings is not None else (),
            cross_table=(
                standings.cross_table() if isinstance(standings, RoundRobin) else {}
            ),
            ranking=ranking,
            verdicts=tuple(self.verdicts),
            played=self.played,
            seconds=self._loop.time() - started,
        )

    def changed(self) -> None:
        """A bot has come or gone: matches may be opened now."""
        self.seat((*self.plan.players, *self.house))

    def offended(self, name: str, finding: Finding) -> None:
        """A bot is gone for good; if that did not end a match here, it is out all the same (J3).

        Leaving is no offence while nothing is played: whoever comes back in time may go on.
        """
        if finding.kind is Ending.DISCONNECT or name not in (
            *self.plan.players,
            *self.house,
        ):
            return
        if name in self._out:
            return
        self._findings.setdefault(name, finding)
        if self._stage is not None:
            self._stage.offended(name)

    def is_in(self, name: str) -> bool:
        """Whether a bot takes part and has not been eliminated."""
        return name in (*self.plan.players, *self.house) and name not in self._out

    def seat(self, names: Sequence[str]) -> None:
        """Open what can be opened for these bots."""
        if self._stage is not None:
            self._stage.seat(names)

    # --- what a stage asks for ---

    def is_out(self, pairing: Pairing) -> bool:
        """Whether one of them has been eliminated (J3)."""
        return any(name in self._out for name in pairing.players)

    def open(self, pairing: Pairing, on_over: OnOver) -> Table:
        """Open a pairing's match; all its players are free."""
        players = [self._gateway.players[name] for name in pairing.players]
        return self._gateway.conduct.open(
            self.plan.game, self.plan.settings, players, self.plan.limits, on_over
        )

    def note(
        self,
        pairing: Pairing,
        table: Table,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        """Write down what came of a match, and rule who is out."""
        lasted_s = self._loop.time() - table.opened_at
        self._note(table.id, pairing, result, verdict, lasted_s)
        self._on_freed(pairing.players)

    def player(self, name: str) -> Player | None:
        """The bot of that name, if there is one that can still be dealt to."""
        player = self._gateway.players.get(name)
        return None if player is None or player.leaving else player

    def forfeit(self, pairing: Pairing, seat: int) -> MatchResult:
        """Rule that a bot does not come to its match, as it is absent or has offended before (J2); the result of that."""
        limits, game = self.plan.limits, self.plan.game
        match = Match(
            game, self.plan.settings, seed=secrets.token_bytes(32), start=False
        )
        name = pairing.players[seat]
        finding = self._findings.get(name) or Finding(
            kind=Ending.ABSENT,
            text=f"did not come within {self.patience_ms:,} ms",
            mechanism=Mechanism.SESSION,
        )
        match.end(finding.kind, seat, finding.text)
        verdict = Verdict(
            kind=finding.kind,
            match=f"{self._id}-{pairing.number}",
            game=game.name,
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
        )
        result = match.result()
        self._note(verdict.match, pairing, result, verdict)
        self._on_verdict(verdict)
        return result

    def void(self, table: Table, text: str) -> None:
        """Stop a match that cannot count any more."""
        self._gateway.conduct.void(table, text)

    # --- within ---

    def _schedule(self, house: Sequence[str]) -> Schedule:
        plan = self.plan
        if plan.form is Form.LEAGUE:
            return league(plan.players, plan.matches)
        if plan.form is Form.ROUND_ROBIN:
            return round_robin(plan.players, plan.matches, plan.with_itself)
        return elimination(plan.players, Stream(secrets.token_bytes(32)), house)

    async def _play(self, pairings: Stage) -> Outcomes:
        self.scheduled += len(pairings)
        for pairing in pairings:
            for name in pairing.players:
                if name in self.house:
                    await self._call_house(self.plan.game.name, name)
        self._stage = RunningStage(self, pairings)
        for name in self._findings:
            self._stage.offended(name)
        try:
            return await self._stage.outcomes()
        finally:
            self._settled += self._stage.settled
            self._stage = None

    def _note(
        self,
        match: str,
        pairing: Pairing,
        result: MatchResult,
        verdict: Verdict | None,
        lasted_s: float = 0.0,
    ) -> None:
        """Write a match down, count it, and strike an offender."""
        now = self._wall()
        self._store.match_finished(
            self._id, match, pairing.players, result, now - lasted_s, now, verdict
        )
        if self._standings is not None and not self.is_out(pairing):
            self._standings.add(Outcome(pairing, result))
        if result.termination.kind is not Ending.VOID:
            self.played += 1
        if verdict is not None and verdict.bot not in self._out:
            self.verdicts.append(verdict)
            self._out[verdict.bot] = result.termination


def _standings(plan: Plan) -> RoundRobin | League | None:
    """What keeps the standings; an elimination has a ranking instead."""
    match plan.form:
        case Form.ROUND_ROBIN:
            return RoundRobin(plan.players)
        case Form.LEAGUE:
            return League(plan.players, measure_for(plan.game.name))
    return None
