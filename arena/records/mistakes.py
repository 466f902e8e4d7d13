"""What the decisions of one seat cost in a finished match, from what that seat knew alone.

The game's judge is handed a `SeatMatch`, and no record: what it says can tell the seat's owner no
card that J8 keeps from them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from arena.engine.analysis import Judgement, Judging
from arena.engine.match import Record
from arena.engine.rules import Game
from arena.games import game_named
from arena.records.seat_document import SeatDocument
from arena.records.seat_matches import numbered_seat_match
from protocol.errors import NoAnalysis
from protocol.vocabulary import News, Question

__all__ = [
    "JudgedDecision",
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


class JudgedDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision of a seat, and what it cost.

    Attributes:
        number: which of the seat's questions it answered, from 1.
        index: the place of the answer in the record, from 0.
        round: which round of the match it was in, from 1.
        turn: which of the seat's questions of that round, from 1.
        unit: which of the game's units (`Game.unit`), such as a game of several rounds, from 1; the
            round where the game has none.
    """

    number: int
    index: int
    round: int
    turn: int
    unit: int
    question: Question[Any]
    answer: Any
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


def judged(
    record: Record | SeatDocument, seat: int, on_progress: OnProgress = lambda done, of: None
) -> Iterator[JudgedDecision]:
    """The decisions of a seat, from 0, that can be judged, in their order.

    `on_progress` gets, after every decision, how many are done and how many there are. Raises
    `NoAnalysis` if the game has no judge or refuses the settings, and otherwise as `reopened` and
    `MatchState.step`.
    """
    game, judging = _judging(record)
    match, places = numbered_seat_match(record, seat)
    judge = judging.judge(match.settings, seat)
    rounds = _RoundCounter(game)
    begun, before = 1, 0  # the present round, and how many decisions came before it
    for number, (decision, index) in enumerate(zip(match.decisions, places, strict=True), start=1):
        for news in decision.news:
            rounds.hear(news)
            judge.heard(news)
        if rounds.round != begun:
            begun, before = rounds.round, number - 1
        judgement = judge.decided(decision.question, decision.answer)
        on_progress(number, len(places))
        if judgement is not None:
            yield JudgedDecision(
                number,
                index,
                rounds.round,
                number - before,
                rounds.unit,
                decision.question,
                decision.answer,
                judgement,
            )


def mistakes_of(
    record: Record | SeatDocument, seat: int, on_progress: OnProgress = lambda done, of: None
) -> MatchMistakes:
    """What a seat, from 0, did wrong; the arguments and errors are those of `judged`."""
    decisions = 0

    def count(done: int, of: int) -> None:
        nonlocal decisions
        decisions = of
        on_progress(done, of)

    found = list(judged(record, seat, count))
    _, judging = _judging(record)
    mistakes = [decision for decision in found if decision.is_mistake]
    return MatchMistakes(
        seat=seat,
        version=judging.version,
        decisions=decisions,
        judged=len(found),
        totals=added(
            UnitTotal(decision.judgement.unit, 1, decision.judgement.cost) for decision in mistakes
        ),
        mistakes=tuple(_shown(mistakes, judging.most)),
    )


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
    units: dict[int, list[JudgedDecision]] = {}
    for mistake in mistakes:
        units.setdefault(mistake.unit, []).append(mistake)
    return [
        mistake
        for together in units.values()
        for mistake in sorted(dearest(together, most), key=lambda one: one.number)
    ]


class _RoundCounter:
    """Which round and which unit of a match it is, as its news end them."""

    def __init__(self, game: Game) -> None:
        self.round = self.unit = 1
        self._closes = game.vocabulary.closes
        self._closes_unit = self._closes if game.unit is None else game.unit.closes

    def hear(self, news: News) -> None:
        self.round += type(news) is self._closes
        self.unit += type(news) is self._closes_unit
