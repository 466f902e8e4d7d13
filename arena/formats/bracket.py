"""An elimination while it is played: who is still in, and who went out in which stage (K2).

The schedule draws the tables again, so only the seed and the results so far are needed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from arena.formats.elimination import advanced
from arena.formats.formats import schedule_of
from arena.formats.schedule import Outcome, Pairing, Ranking, RankingPlace, Stage
from arena.formats.spec import Plan
from arena.games.match import Result
from protocol.errors import ArenaError
from protocol.messages import Termination

__all__ = ["Bracket", "BracketRow", "BracketStage", "StageStatus", "reached"]


class StageStatus(StrEnum):
    """Where a bot stands in a stage."""

    PLAYING = "playing"
    BYE = "bye"
    THROUGH = "through"
    OUT = "out"
    NOT_THERE = "not there"


class BracketRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line in an elimination that is still being played."""

    name: str
    stage: int  # the last that it played, from 1; 0 if it was absent when the competition started
    stands: StageStatus
    eliminated: Termination | None = None  # its offence
    version: str | None = None  # the latest that has played a match that counts; None without any


class BracketStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage as it was drawn, with its results so far."""

    number: int  # from 1
    tables: tuple[tuple[Pairing, Result | None], ...]
    byes: tuple[str, ...]
    is_final: bool


class Bracket:
    """An elimination to which results are added; within a stage in any order.

    Raises UsageError if it cannot be drawn: no seed, or no names for house bots.
    """

    def __init__(self, plan: Plan) -> None:
        self._game = plan.rules
        self._players = plan.players
        self._not_there = plan.not_there
        self._schedule = schedule_of(plan)
        self._stage = 1
        self._tables: Stage = next(self._schedule)
        self._is_final = len(plan.players) <= self._game.seats
        self._results: dict[int, Result] = {}
        self._out: dict[str, BracketRow] = {}
        self._past: list[BracketStage] = []
        self._byes = self._resting()
        self.ranking: Ranking = ()  # empty until the end

    def add(self, pairing: Pairing, result: Result) -> None:
        """Add the result of a table, and draw the next stage after the last result of this one.

        Raises `ArenaError` if it is no table of this stage.
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
        return (*self._past, self._present())

    def rows(self) -> tuple[BracketRow, ...]:
        """The bots that are in, in the order of entry, then those that are out, then the absent."""
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
            tables=tuple((table, self._results.get(table.number)) for table in self._tables),
            byes=self._byes,
            is_final=self._is_final,
        )

    def _resting(self) -> tuple[str, ...]:
        """The bots that are in but sit at no table when a stage begins."""
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
        through = advanced(self._game, result)
        for seat, name in enumerate(players):
            if seat not in through:
                self._out[name] = BracketRow(
                    name=name,
                    stage=self._stage,
                    stands=StageStatus.OUT,
                    eliminated=result.termination if seat in result.out else None,
                )

    def _draw(self) -> None:
        """Draw the next stage, or end with the ranking."""
        outcomes = tuple(Outcome(table, self._results[table.number]) for table in self._tables)
        present = self._present()
        try:
            self._tables = self._schedule.send(outcomes)
        except StopIteration as end:
            self.ranking = end.value
            return
        self._past.append(present)
        self._stage += 1
        self._is_final = len(self._players) - len(self._out) <= self._game.seats
        self._byes = self._resting()


def reached(ranking: Ranking) -> Iterator[tuple[RankingPlace, str]]:
    """Yield every place with the name of the last stage its bots played: a number, or `final`."""
    last = max((placed.stage for placed in ranking), default=0)
    has_final = any(placed.score is not None for placed in ranking)
    for placed in ranking:
        is_final = has_final and placed.stage == last
        yield placed, "final" if is_final else str(placed.stage)
