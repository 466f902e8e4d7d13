"""What is made of a game's evaluator for all games alike: costs, marks, luck by rounds, counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Any

import pytest

from arena.games.ace_king_queen.rules import GAME
from arena.games.analysis import Chart, counted_cell, drawn
from arena.games.evaluator import (
    Answered,
    Cell,
    CellMeter,
    ChanceMeter,
    Evaluated,
    Evaluator,
    Tally,
    Worths,
    judgement,
)
from arena.games.rules import EVERYONE, AskSeat, LuckMeter, LuckRound, TellSeat
from protocol.ace_king_queen import AceKingQueenSettings, HandOver, Open
from protocol.vocabulary import News
from tests.support.not_none import not_none

GRADES = (0.0, 1.0, 3.0)
SETTINGS = AceKingQueenSettings()


def exact(**worths: float) -> Worths:
    return Worths(values={say: (value,) for say, value in worths.items()}, unit="x", grades=GRADES)


def sampled(ahead: Sequence[float], **more: Any) -> Worths:
    """The first answer is better by each of these."""
    values = {"good": [5 + gap for gap in ahead], "bad": [5.0] * len(ahead)}
    return Worths(values=values, unit="x", grades=GRADES, **more)


def refused() -> Worths:
    raise AssertionError("it was the best, or close to it")


SURE, UNSURE, LEVEL = [4.0, 4.1] * 50, [4.0, -3.9] * 50, [0.5, 0.51] * 50


@pytest.mark.parametrize(
    ("worths", "answer", "cost", "best", "is_level", "grade"),
    [
        pytest.param(exact(a=1, b=0.5, c=-1), "a", 0, "a", False, 0, id="best"),
        pytest.param(exact(a=1, b=0.5, c=-1), "b", 0.5, "a", False, 1, id="small"),
        pytest.param(exact(a=1, b=0.5, c=-1), "c", 2, "a", False, 2, id="second_grade"),
        pytest.param(exact(a=1, b=-2.5), "b", 3.5, "a", False, 3, id="third_grade"),
        pytest.param(exact(a=1, b=1 - 1e-12, c=0), "b", 0, "b", False, 0, id="rounding"),
    ],
)
def test_an_exact_cost_is_what_the_best_answer_brings_more(
    worths: Worths, answer: str, cost: float, best: str, is_level: bool, grade: int
) -> None:
    found = not_none(judgement(worths, answer))

    assert (found.cost, found.best, found.error) == (cost, best, None)
    assert (found.is_level, found.grade, found.unit) == (is_level, grade, "x")


def test_grades_may_be_counted_in_something_else() -> None:
    bets = Worths(values={"a": (0,), "b": (-20,)}, unit="chips", grades=GRADES, scale=10)

    assert not_none(judgement(bets, "b")).grade == 2


@pytest.mark.parametrize(("least", "is_level"), [(None, False), (0.4, False), (0.5, True)])
def test_an_exact_cost_that_is_level_makes_the_answer_a_best_one(
    least: float | None, is_level: bool
) -> None:
    worths = Worths(values={"a": (1,), "b": (0.5,)}, unit="x", grades=GRADES, least=least)
    found, best = not_none(judgement(worths, "b")), not_none(judgement(worths, "a"))

    assert (found.cost, found.best, found.is_level) == (0.5, "b" if is_level else "a", is_level)
    assert found.grade == (not is_level)
    assert best.is_level == (least is not None)


@pytest.mark.parametrize(
    ("again", "is_level"),
    [(None, False), ([1.0, 2.0], False), ([1.0, -1.0], True), ([-1.0, -2.0], True)],
)
def test_an_exact_mistake_that_samples_deny_is_level(
    again: list[float] | None, is_level: bool
) -> None:
    other = None if again is None else sampled(again)
    worths = Worths(
        values={"good": (2,), "bad": (0,)}, unit="x", grades=GRADES, again=lambda: other
    )
    found = not_none(judgement(worths, "bad"))

    assert (found.cost, found.best, found.is_level) == (2, "good", is_level)


def test_an_answer_of_unknown_worth_is_not_judged() -> None:
    assert judgement(exact(a=1, b=0), "c") is None


@pytest.mark.parametrize(
    ("ahead", "answer", "cost", "is_level"),
    [
        (SURE, "bad", 4.05, False),
        (SURE, "good", 0, False),
        (UNSURE, "bad", 0.05, True),
        (UNSURE, "good", 0, False),
        ([0.0] * 9, "bad", 0, False),
    ],
)
def test_an_estimated_cost_has_an_error_and_within_it_is_level(
    ahead: list[float], answer: str, cost: float, is_level: bool
) -> None:
    worths = sampled(ahead)
    found = not_none(judgement(worths, answer))
    mean, error = worths.gap("good", "bad")
    spread = sum((gap - mean) ** 2 for gap in ahead) / (len(ahead) - 1)

    assert error == pytest.approx(sqrt(spread / len(ahead)))
    assert found.cost == pytest.approx(cost)
    assert (found.error, found.is_level) == (error, is_level)
    assert found.best == ("good" if cost or answer == "good" else "bad")


def test_from_few_observations_an_error_is_never_0() -> None:
    _, error = sampled([2.0] * 9, seen={"good": 7, "bad": 3}).gap("good", "bad")
    _, spread = sampled([1.0, 3.0], seen={"good": 4}).gap("good", "bad")

    assert error == pytest.approx(2 / 4)
    assert spread == pytest.approx(sqrt(2 * (1 / 4 + 1 / 2) + (2 / 5) ** 2))


@pytest.mark.parametrize(
    ("again", "cost", "is_level"),
    [(SURE, 4.05, False), ([-1.0, -1.1], 0, True), (LEVEL, 0.505, True), (UNSURE, 0.05, True)],
)
def test_what_chose_the_best_answer_does_not_measure_it(
    again: list[float], cost: float, is_level: bool
) -> None:
    worths = sampled(SURE, least=1.0, again=lambda: sampled(again))
    found = not_none(judgement(worths, "bad"))

    assert found.cost == pytest.approx(cost)
    assert found.best == "good"
    assert found.error == sampled(again).gap("good", "bad")[1]
    assert (found.is_level, found.grade) == (is_level, 0 if is_level else 3)


@pytest.mark.parametrize(("ahead", "answer"), [(SURE, "good"), (UNSURE, "bad"), ([0.0] * 9, "bad")])
def test_the_best_answer_and_one_close_to_it_are_measured_no_further(
    ahead: list[float], answer: str
) -> None:
    found = not_none(judgement(sampled(ahead, again=refused), answer))

    assert found.grade == 0
    assert (found.error is None) == (answer == "good")


# ---- Luck and counts


class CountedEvents(Evaluator):
    """Deals are luck by who bets, and hands are counted by it."""

    def __init__(self, settings: Any, seat: int | None = None) -> None:
        super().__init__(settings, seat)
        self.events: list[object] = []

    def heard(self, event: TellSeat | AskSeat | Answered) -> None:
        self.events.append(event)

    def luck(self, event: TellSeat | AskSeat) -> Sequence[float] | None:
        return (0.5, -0.5) if type(event) is AskSeat else None

    def gains(self, news: News) -> Sequence[float] | None:
        return news.payoffs if type(news) is HandOver else None

    def cells(self, event: TellSeat | Answered) -> Iterable[tuple[Cell, float]]:
        return [("all", len(self.events))]

    @staticmethod
    def charts(tally: Tally) -> tuple[Chart, ...]:
        return (drawn("All", "all", {"all": "all"}, {"one": 1}, lambda row, _: tally.cell(row)),)


OVER = HandOver(1, 0, ("A", "K"), "check", None, (1, -1), (1, -1))
ASKED = AskSeat(0, Open(1, "A"))


def test_luck_is_added_up_until_a_round_is_over_and_heard_after_it_was_asked() -> None:
    hands = CountedEvents(SETTINGS)
    meter = ChanceMeter(hands)
    for _ in range(2):
        meter.asked(ASKED)
        meter.answered(ASKED, "bet")
    meter.told(TellSeat(EVERYONE, OVER))
    meter.told(TellSeat(EVERYONE, OVER))

    assert meter.rounds == [LuckRound((1, -1), (1, -1)), LuckRound((1, -1), (0, 0))]
    assert hands.events[:2] == [ASKED, Answered(0, ASKED.question, "bet")]
    assert len(hands.events) == 6


def test_a_meter_from_outside_overrides_what_it_needs() -> None:
    class Silent(LuckMeter):
        def __init__(self) -> None:
            self.rounds = []

    silent = Silent()
    silent.dealt(("A", "K"))
    silent.asked(ASKED)
    silent.answered(ASKED, "bet")
    silent.told(TellSeat(EVERYONE, OVER))

    assert silent.rounds == []


def test_counts_go_on_over_matches_which_each_have_an_evaluator() -> None:
    meter = CellMeter(CountedEvents)
    for _ in range(2):
        meter.begin(SETTINGS, 1)
        meter.heard(OVER)
        meter.decided(ASKED.question, "bet")

    assert meter.tally.count("all") == (2, 4)
    assert meter.charts()[0].cells == ((counted_cell(2, 4),),)


def test_what_an_evaluator_makes_is_left_out_where_its_module_is_not_installed() -> None:
    gone = Evaluated("arena.games.gone:Gone", "arena.games.gone")

    parts = gone.luck("chip"), gone.judging(version=1), gone.analysing(version=1), gone.habits
    assert parts == (None, None, None, None)


def test_an_evaluator_that_says_nothing_is_one() -> None:
    silent = Evaluator(SETTINGS)

    said = silent.luck(ASKED), silent.gains(OVER), silent.worths(ASKED.question, "bet")
    assert said == (None, None, None)
    assert (silent.cells(TellSeat(0, OVER)), silent.refuses(SETTINGS)) == ((), None)
    assert silent.charts(Tally()) == ()


def test_what_happened_before_changes_no_judgement_of_a_card() -> None:
    judge = not_none(GAME.judging).judge(SETTINGS, 0)
    before = judge.judged(Open(2, "K"), "bet")
    judge.heard(OVER)
    judge.decided(Open(1, "A"), "bet")

    assert judge.judged(Open(2, "K"), "bet") == before
