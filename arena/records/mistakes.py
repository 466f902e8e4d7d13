"""What the decisions of one seat cost in a finished match, judged from what that seat knew alone.

The game's judge gets a `SeatMatch` and not a record, so its judgements can tell the seat's owner no
card that J8 hides from them. Pure.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from arena.games.analysis import Judge, Judgement, Judging, SeatDecision
from arena.games.catalogue import game_named
from arena.games.match import Record
from arena.games.rules import Game
from arena.records.seat_document import SeatDocument, seat_match
from protocol.errors import NoAnalysis

__all__ = [
    "JudgedDecision",
    "JudgedSeat",
    "JudgedUnit",
    "MatchMistakes",
    "UnitTotal",
    "added",
    "badness",
    "dearest",
    "judged",
    "judging_of",
    "mistakes_of",
]

OnProgress = Callable[[int, int], object]


class JudgedDecision(SeatDecision, frozen=True, gc=False, kw_only=True):
    """A decision of a seat, and its cost.

    Attributes:
        turn: the number of the question among the seat's questions in its round, from 1.
        unit: the number of the game's unit (`Game.unit`) that it was in, such as a game of several
            rounds, from 1; the number of the round if the game has no unit.
    """

    turn: int
    unit: int
    judgement: Judgement

    @property
    def is_mistake(self) -> bool:
        """Whether another answer would clearly have been better."""
        return self.judgement.cost > 0 and not self.judgement.is_level


class UnitTotal(msgspec.Struct, frozen=True):
    """The number of mistakes whose cost is counted in one unit, and their total cost.

    Some games have two such units: the cost of a play, and the chance of a goal that an ante costs.
    """

    unit: str
    count: int
    total: float


class MatchMistakes(msgspec.Struct, frozen=True, kw_only=True):
    """The mistakes of a seat in one match.

    Attributes:
        version: of the method of judging, `Judging.version`.
        decisions, judged: how many decisions the seat made, and how many of them could be judged.
        totals: the cost of all mistakes, those not in `mistakes` included; empty without a mistake.
        mistakes: in the order of play; only the most costly of each round or game (`Judging.most`).
    """

    seat: int
    version: int
    decisions: int
    judged: int
    totals: tuple[UnitTotal, ...]
    mistakes: tuple[JudgedDecision, ...]


def judging_of(game: Game, settings: Any) -> Judging:
    """The way to judge decisions with these settings; raises `NoAnalysis` if there is none."""
    if game.judging is None:
        raise NoAnalysis(f"{game.name} does not say what decisions cost")
    if (reason := game.judging.refuses(settings)) is not None:
        raise NoAnalysis(reason)
    return game.judging


def _judging(record: Record | SeatDocument) -> tuple[Game, Judging]:
    if isinstance(record, SeatDocument):
        record = record.record
    game = game_named(record.game, record.package)
    return game, judging_of(game, game.vocabulary.read_settings(record.settings))


class JudgedUnit(msgspec.Struct, frozen=True):
    """A unit of a match (`JudgedDecision.unit`), which can be judged by itself.

    `margin` is by how much the seat was ahead at its end, negative if it was behind; None if the
    unit did not end, or the game has no units.
    """

    number: int
    decisions: int
    margin: float | None


class JudgedSeat:
    """A seat of a match, whose decisions can be judged in any order of the match's units.

    Raises `NoAnalysis` if the game has no judge or refuses the settings, and what `seat_match`
    raises.

    Attributes:
        units: those in which the seat was asked, in the order of play.
    """

    def __init__(self, record: Record | SeatDocument, seat: int) -> None:
        game, self._judging = _judging(record)
        self._seat = seat
        match = seat_match(record, seat)
        self._settings = match.settings
        unit, closes = game.unit, game.vocabulary.closes
        closes_unit = closes if unit is None else unit.closes
        margins: dict[int, float] = {}
        self._asked: dict[int, list[tuple[SeatDecision, int]]] = {}  # by unit, each with its turn
        turns = Counter[int]()  # decisions in each round
        number = 1  # of the unit
        for decision in (*match.decisions, None):
            for news in match.news if decision is None else decision.news:
                if type(news) is closes_unit:
                    if unit is not None:
                        margins[number] = (unit.margins or unit.payoffs)(news)[seat]
                    number += 1
            if decision is not None:
                turns[decision.round] += 1
                placed = decision, turns[decision.round]
                self._asked.setdefault(number, []).append(placed)
        self.units = tuple(
            JudgedUnit(number, len(asked), margins.get(number))
            for number, asked in self._asked.items()
        )

    @property
    def lost_first(self) -> tuple[JudgedUnit, ...]:
        """The units, those lost by most first; in the order of play if margins are unknown."""
        return tuple(sorted(self.units, key=lambda unit: unit.margin or 0.0))

    def judged(
        self, units: Sequence[JudgedUnit], on_progress: OnProgress = lambda done, of: None
    ) -> Iterator[JudgedDecision]:
        """Yield the decisions in these units that can be judged, in the given order of units.

        After every decision `on_progress` gets the number done and the number of all.
        """
        order = [unit.number for unit in units]
        done, of = itertools.count(1), sum(unit.decisions for unit in units)
        judge = self._judging.judge(self._settings, self._seat)
        is_in_order, copies = order == sorted(order), dict[int, Judge]()

        def judged_by(judge: Judge, unit: int) -> Iterator[JudgedDecision]:
            for decision, turn in self._asked[unit]:
                for news in decision.news:
                    judge.heard(news)
                judgement = judge.judged(decision.question, decision.answer)
                judge.decided(decision.question, decision.answer)
                on_progress(next(done), of)
                if judgement is not None:
                    fields = msgspec.structs.astuple(decision)
                    yield JudgedDecision(*fields, turn=turn, unit=unit, judgement=judgement)

        for number, asked in self._asked.items():
            if number in order and is_in_order:
                yield from judged_by(judge, number)
                continue
            if number in order:
                copies[number] = copy.deepcopy(judge)
            for decision, _ in asked:
                for news in decision.news:
                    judge.heard(news)
                judge.decided(decision.question, decision.answer)
        for number in () if is_in_order else order:
            yield from judged_by(copies.pop(number), number)

    def mistakes(self, found: Iterable[JudgedDecision]) -> MatchMistakes:
        """The seat's mistakes among these decisions."""
        found = sorted(found, key=lambda decision: decision.number)
        mistakes = [decision for decision in found if decision.is_mistake]
        costs = (decision.judgement for decision in mistakes)
        return MatchMistakes(
            seat=self._seat,
            version=self._judging.version,
            decisions=sum(unit.decisions for unit in self.units),
            judged=len(found),
            totals=added(UnitTotal(judgement.unit, 1, judgement.cost) for judgement in costs),
            mistakes=tuple(_shown(mistakes, self._judging.most)),
        )


def judged(
    record: Record | SeatDocument, seat: int, on_progress: OnProgress = lambda done, of: None
) -> Iterator[JudgedDecision]:
    """The decisions of a seat, from 0, that can be judged, in order.

    Errors are those of `JudgedSeat`, and `on_progress` is as in `JudgedSeat.judged`.
    """
    one = JudgedSeat(record, seat)
    return one.judged(one.units, on_progress)


def mistakes_of(
    record: Record | SeatDocument, seat: int, on_progress: OnProgress = lambda done, of: None
) -> MatchMistakes:
    """The mistakes of a seat, from 0; arguments and errors as in `judged`."""
    one = JudgedSeat(record, seat)
    return one.mistakes(one.judged(one.units, on_progress))


def added(totals: Iterable[UnitTotal]) -> tuple[UnitTotal, ...]:
    """Add totals up, one for each unit."""
    sums: dict[str, UnitTotal] = {}
    for each in totals:
        before = sums.get(each.unit, UnitTotal(each.unit, 0, 0.0))
        sums[each.unit] = UnitTotal(each.unit, before.count + each.count, before.total + each.total)
    return tuple(sums.values())


def dearest(decisions: Iterable[JudgedDecision], most: int | None = None) -> list[JudgedDecision]:
    """The worst decisions first, by `badness`; at most `most`."""
    return sorted(decisions, key=badness)[:most]


def badness(decision: JudgedDecision) -> tuple[int, float]:
    """A key that sorts the worst decision first: by grade, then cost, which may be in two units."""
    return -decision.judgement.grade, -decision.judgement.cost


def _shown(mistakes: Sequence[JudgedDecision], most: int | None) -> list[JudgedDecision]:
    """The worst mistakes of every unit, at most `most` of each, in the order of play."""
    return [
        mistake
        for _, together in itertools.groupby(mistakes, lambda mistake: mistake.unit)
        for mistake in sorted(dearest(together, most), key=lambda one: one.number)
    ]
