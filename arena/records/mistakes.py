"""What the decisions of one seat cost in a finished match, from what that seat knew alone.

The game's judge is handed a `SeatMatch`, and no record: what it says can tell the seat's owner no
card that J8 keeps from them. Pure.
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
    """A decision of a seat, and what it cost.

    Attributes:
        turn: which of the seat's questions of its round it is, from 1.
        unit: which of the game's units (`Game.unit`) it was in, such as a game of several rounds,
            from 1; the round where the game has none.
    """

    turn: int
    unit: int
    judgement: Judgement

    @property
    def is_mistake(self) -> bool:
        """Whether another answer would have been better, as far as that can be told."""
        return self.judgement.cost > 0 and not self.judgement.is_level


class UnitTotal(msgspec.Struct, frozen=True):
    """What `count` mistakes cost together that are counted in the same unit.

    Some games have two: what a play costs, and what an ante costs of the chance to reach a goal.
    """

    unit: str
    count: int
    total: float


class MatchMistakes(msgspec.Struct, frozen=True, kw_only=True):
    """What a seat did wrong in one match.

    Attributes:
        version: of the way to judge, `Judging.version`.
        decisions, judged: how many the seat made, and of how many something can be said.
        totals: what all mistakes cost, those not in `mistakes` included; none without a mistake.
        mistakes: in the order of play; of a round or game only the dearest (`Judging.most`).
    """

    seat: int
    version: int
    decisions: int
    judged: int
    totals: tuple[UnitTotal, ...]
    mistakes: tuple[JudgedDecision, ...]


def judging_of(game: Game, settings: Any) -> Judging:
    """How decisions are judged with these settings; raises `NoAnalysis` if they are not."""
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
    """A unit of a match (`JudgedDecision.unit`) that can be judged by itself.

    `margin` is by how much the seat was ahead at its end, negative if it was behind; None if that
    is not known, as it was not ended, or the game has no units.
    """

    number: int
    decisions: int
    margin: float | None


class JudgedSeat:
    """A seat of a match, whose decisions can be judged in any order of the match's units.

    Raises `NoAnalysis` if the game has no judge or refuses the settings, and otherwise as
    `seat_match`.

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
        self._asked: dict[int, list[tuple[SeatDecision, int]]] = {}  # with the turn, by unit
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
        """The units, those first that were lost highest; as they were played if nobody knows."""
        return tuple(sorted(self.units, key=lambda unit: unit.margin or 0.0))

    def judged(
        self, units: Sequence[JudgedUnit], on_progress: OnProgress = lambda done, of: None
    ) -> Iterator[JudgedDecision]:
        """The decisions in these units that can be judged, in the order that is given.

        `on_progress` gets, after every decision, how many are done and how many there are.
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
        """What the seat did wrong, as far as these of its decisions say."""
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
    """The decisions of a seat, from 0, that can be judged, in their order.

    The rest is as in `JudgedSeat`.
    """
    one = JudgedSeat(record, seat)
    return one.judged(one.units, on_progress)


def mistakes_of(
    record: Record | SeatDocument, seat: int, on_progress: OnProgress = lambda done, of: None
) -> MatchMistakes:
    """What a seat, from 0, did wrong; the arguments and errors are those of `judged`."""
    one = JudgedSeat(record, seat)
    return one.mistakes(one.judged(one.units, on_progress))


def added(totals: Iterable[UnitTotal]) -> tuple[UnitTotal, ...]:
    """One total for each unit."""
    sums: dict[str, UnitTotal] = {}
    for each in totals:
        before = sums.get(each.unit, UnitTotal(each.unit, 0, 0.0))
        sums[each.unit] = UnitTotal(each.unit, before.count + each.count, before.total + each.total)
    return tuple(sums.values())


def dearest(decisions: Iterable[JudgedDecision], most: int | None = None) -> list[JudgedDecision]:
    """Decisions by how bad they are (`Judgement.grade`), then by cost; at most so many."""
    return sorted(decisions, key=badness)[:most]


def badness(decision: JudgedDecision) -> tuple[int, float]:
    """Sorts the worst first: by grade, as costs may be in two units."""
    return -decision.judgement.grade, -decision.judgement.cost


def _shown(mistakes: Sequence[JudgedDecision], most: int | None) -> list[JudgedDecision]:
    """At most so many of every unit, the dearest, in the order of play."""
    return [
        mistake
        for _, together in itertools.groupby(mistakes, lambda mistake: mistake.unit)
        for mistake in sorted(dearest(together, most), key=lambda one: one.number)
    ]
