"""An elimination as it looks from outside while it is played: who is still in, who is out since when (K2).

The schedule draws the tables again from the seed and the results so far, so that nothing but these need be known. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from arena.engine.match import Result
from arena.formats.formats import schedule_of
from arena.formats.schedule import Outcome, Pairing, Ranking, RankingPlace, Stage
from arena.formats.spec import Plan
from arena.games.high_low import survivors
from protocol.errors import ArenaError
from protocol.high_low import SEATS
from protocol.messages import Termination

__all__ = ["Bracket", "BracketRow", "BracketStage", "StageStatus", "advanced", "reached"]


class StageStatus(StrEnum):
    """How a bot stands in a stage."""

    PLAYING = "playing"
    BYE = "bye"
    THROUGH = "through"
    OUT = "out"
    NOT_THERE = "not there"


class BracketRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line in an elimination that is being played.

    Attributes:
        name: of the bot.
        stage: the last that it was or is in, from 1; 0 for who was not there when it started.
        stands: how it stands there.
        eliminated: the word and text of its offence, or None.
    """

    name: str
    stage: int
    stands: StageStatus
    eliminated: Termination | None = None


class BracketStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage as it is drawn, with what has come of it so far.

    Attributes:
        number: from 1.
        tables: each with its result, or None while there is none.
        byes: who rests.
        is_final: whether its scores rank.
    """

    number: int
    tables: tuple[tuple[Pairing, Result | None], ...]
    byes: tuple[str, ...]
    is_final: bool


class Bracket:
    """An elimination that results are added to, in any order within a stage.

    Attributes:
        ranking: the places, once all has been played; before that empty.

    Raises:
        UsageError: it cannot be drawn: no seed, or no names for house bots.
    """

    def __init__(self, plan: Plan) -> None:
        self._players = plan.players
        self._not_there = plan.not_there
        self._schedule = schedule_of(plan)
        self._stage = 1
        self._tables: Stage = next(self._schedule)
        self._is_final = len(plan.players) <= SEATS
        self._results: dict[int, Result] = {}
        self._out: dict[str, BracketRow] = {}
        self._past: list[BracketStage] = []
        self._byes = self._resting()
        self.ranking: Ranking = ()

    def add(self, pairing: Pairing, result: Result) -> None:
        """One more table is over.

        Raises:
            ArenaError: no such table has been drawn.
        """
        if pairing not in self._tables:
            raise ArenaError(
                f"expected a table of stage {self._stage}, got table {pairing.number} with "
                f"{', '.join(pairing.players)}; ask `arena verify` what is wrong with the database"
            )
        self._results[pairing.number] = result
        if not self._is_final:
            self._drop(pairing.players, result)
        if all(table.number in self._results for table in self._tables):
            self._draw()

    @property
    def stages(self) -> tuple[BracketStage, ...]:
        """All stages that have been drawn, the present one or the last at the end."""
        return (*self._past, self._present())

    def rows(self) -> tuple[BracketRow, ...]:
        """Those who are in, in the order of entry, then those who are out, the last first, then who was not there."""
        out = sorted(self._out.values(), key=lambda row: (-row.stage, row.eliminated is not None))
        left = (name for name in self._players if name not in self._out)
        return (
            *(BracketRow(name=name, stage=self._stage, stands=self._stands(name)) for name in left),
            *out,
            *(
                BracketRow(name=name, stage=0, stands=StageStatus.NOT_THERE)
                for name in self._not_there
            ),
        )

    def _present(self) -> BracketStage:
        return BracketStage(
            number=self._stage,
            tables=tuple((one, self._results.get(one.number)) for one in self._tables),
            byes=self._byes,
            is_final=self._is_final,
        )

    def _resting(self) -> tuple[str, ...]:
        """Those who are in and sit at no table, as a stage begins."""
        seated = {name for table in self._tables for name in table.players}
        out = {*seated, *self._out}
        return tuple(name for name in self._players if name not in out)

    def _stands(self, name: str) -> StageStatus:
        for table in self._tables:
            if name in table.players:
                is_over = table.number in self._results
                return StageStatus.THROUGH if is_over else StageStatus.PLAYING
        return StageStatus.BYE

    def _drop(self, players: tuple[str, ...], result: Result) -> None:
        through = advanced(result)
        for seat, name in enumerate(players):
            if seat not in through:
                self._out[name] = BracketRow(
                    name=name,
                    stage=self._stage,
                    stands=StageStatus.OUT,
                    eliminated=result.termination if seat in result.out else None,
                )

    def _draw(self) -> None:
        """The next stage, or the end."""
        outcomes = tuple(Outcome(table, self._results[table.number]) for table in self._tables)
        present = self._present()
        try:
            self._tables = self._schedule.send(outcomes)
        except StopIteration as end:
            self.ranking = end.value
            return
        self._past.append(present)
        self._stage += 1
        self._is_final = len(self._players) - len(self._out) <= SEATS
        self._byes = self._resting()


def advanced(result: Result) -> frozenset[int]:
    """The seats that go on after a table before the final (H11–H13)."""
    return frozenset(survivors(result.scores, result.offender)) - set(result.out)


def reached(ranking: Ranking) -> Iterator[tuple[RankingPlace, str]]:
    """Every place, with what people call the last stage that its bots were in: its number, or `final`."""
    last = max((placed.stage for placed in ranking), default=0)
    has_final = any(placed.score is not None for placed in ranking)
    for placed in ranking:
        is_final = has_final and placed.stage == last
        yield placed, "final" if is_final else str(placed.stage)
