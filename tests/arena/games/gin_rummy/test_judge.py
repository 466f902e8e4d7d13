"""How decisions in gin rummy are judged, with an appraiser whose opinion is known."""

from __future__ import annotations

from itertools import takewhile
from random import Random
from typing import Any

import pytest

import arena
from arena.games.analysis import Judgement
from arena.games.catalogue import GAMES
from arena.games.gin_rummy import judge as gin_rummy_judge
from arena.games.gin_rummy.judge import CHOOSE, MEASURE, GinRummyJudge, refuses
from arena.records.mistakes import judged, mistakes_of
from bots.gin_rummy import Random as RandomBot
from bots.gin_rummy import Simple
from protocol.gin_rummy import DISCARDS, Draw, GinRummySettings, Melds, Turn, TurnAnswer
from protocol.strategy import Appraisal
from protocol.vocabulary import News, Question
from tests.support.not_none import not_none

SETTINGS = GinRummySettings()
DRAW = Draw("5h", ("As", "2s", "3s", "7d", "7h", "7c", "9d", "Th", "Jc", "Kd"))


class FakeAppraiser:
    """Thinks that the first legal answer is worth `ahead` more than the others, with some noise.

    From its second look on at a question it is of another opinion if `later` is given.
    """

    ahead: float = 0.0
    later: float | None = None
    noise: float = 0.1

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def seed(self, text: str) -> None:
        self._rng = Random(text)

    def reset(self) -> None:
        self.calls.append(("reset", None))

    def decide(self, question: Question[Any]) -> object:
        raise AssertionError("it is only asked what answers are worth")

    def hear(self, news: News) -> None:
        self.calls.append(("hear", news))

    def recall(self, question: Question[Any], answer: Any) -> None:
        self.calls.append(("recall", answer))

    def appraise(self, question: Any, answer: Any = None, /, *, samples: int) -> Appraisal:
        self.calls.append(("appraise", samples))
        answers = question.legal if answer in question.legal else (*question.legal, answer)
        ahead = self.ahead if samples == CHOOSE or self.later is None else self.later
        worths = [[0.5 + self._rng.gauss(0, self.noise) for _ in range(samples)] for _ in answers]
        worths[0] = [worth + ahead for worth in worths[0]]
        return Appraisal(answers, tuple(map(tuple, worths)))


@pytest.fixture
def appraiser(monkeypatch: pytest.MonkeyPatch) -> type[FakeAppraiser]:
    kind = type("Master", (FakeAppraiser,), {})
    monkeypatch.setattr(gin_rummy_judge, "find", lambda game, name: kind)
    monkeypatch.setattr(gin_rummy_judge, "house_bots", lambda game, slow: {"master": kind})
    return kind


def judgement(question: Question[Any], answer: Any) -> Judgement:
    return not_none(GinRummyJudge(SETTINGS, 0).judged(question, answer))


def test_the_best_answer_costs_nothing(appraiser: type[FakeAppraiser]) -> None:
    appraiser.ahead = 0.2

    found = judgement(DRAW, "stock")

    assert (found.cost, found.best, found.unit, found.grade) == (0, "stock", "% of the game", 0)


@pytest.mark.parametrize(("ahead", "grade"), [(0.02, 1), (0.05, 2), (0.15, 3)])
def test_a_mistake_is_measured_in_percent_of_the_game(
    appraiser: type[FakeAppraiser], ahead: float, grade: int
) -> None:
    appraiser.ahead, appraiser.noise = ahead, 0.01

    found = judgement(DRAW, "discard")

    assert found.cost == pytest.approx(100 * ahead, abs=0.5)
    assert found.error == pytest.approx(100 * 0.01 * (2 / MEASURE) ** 0.5, rel=0.2)
    assert (found.best, found.is_level, found.grade) == ("stock", False, grade)


def test_what_chose_the_best_answer_does_not_measure_it(appraiser: type[FakeAppraiser]) -> None:
    appraiser.ahead, appraiser.later, appraiser.noise = 0.3, 0.1, 0.01

    assert judgement(DRAW, "discard").cost == pytest.approx(10, abs=1)

    appraiser.later = -0.1
    found = judgement(DRAW, "discard")

    assert (found.cost, found.is_level, found.grade) == (0, True, 0)


def test_what_may_be_chance_is_level(appraiser: type[FakeAppraiser]) -> None:
    appraiser.ahead, appraiser.noise = 0.03, 0.3

    found = judgement(DRAW, "discard")

    assert found.is_level
    assert found.grade == 0


def test_what_is_small_is_level(appraiser: type[FakeAppraiser]) -> None:
    appraiser.ahead, appraiser.noise = 0.008, 0.001

    assert judgement(DRAW, "discard").is_level


def test_an_answer_that_is_almost_the_best_is_measured_no_further(
    appraiser: type[FakeAppraiser],
) -> None:
    appraiser.ahead, appraiser.noise = 0.01, 1.0
    judge = GinRummyJudge(SETTINGS, 0)
    asked = [judge.judged(DRAW, answer) for answer in ("stock", "discard") * 10]

    calls = judge._appraiser.calls  # type: ignore[attr-defined]
    assert all(one is not None for one in asked)
    assert calls.count(("appraise", CHOOSE)) == 20
    assert 0 < calls.count(("appraise", MEASURE)) < 20


def test_melds_that_were_declared_with_a_knock_are_among_the_answers(
    appraiser: type[FakeAppraiser],
) -> None:
    hand = ("As", "2s", "3s", "7d", "7h", "7c", "9d", "9h", "9c", "Kd", "Qd")
    legal = (*map(DISCARDS.__getitem__, hand), TurnAnswer("Kd", True), TurnAnswer("Qd", True))
    answer = TurnAnswer("Kd", True, (("As", "2s", "3s"), ("7d", "7h", "7c"), ("9d", "9h", "9c")))
    appraiser.ahead = 0.2

    assert judgement(Turn("Qd", hand, legal), answer).best == DISCARDS["As"]


def test_the_appraiser_hears_the_match_of_its_seat(appraiser: type[FakeAppraiser]) -> None:
    record = arena.play("gin_rummy", [Simple(), RandomBot()], seed=4).record
    found = list(judged(record, 0))
    judge = GinRummyJudge(SETTINGS, 0)

    assert len(found) > 10
    assert judge.judged(Melds(DRAW.hand), None) is None
    judge.decided(Melds(DRAW.hand), None)
    assert judge._appraiser.calls == [("reset", None), ("recall", None)]  # type: ignore[attr-defined]
    assert [one.judgement for one in found] == [one.judgement for one in judged(record, 0)]


def test_at_most_five_mistakes_of_a_game_are_shown(appraiser: type[FakeAppraiser]) -> None:
    appraiser.ahead, appraiser.noise = 0.1, 0.01
    record = arena.play("gin_rummy", [Simple(), Simple()], settings={"games": 2}, seed=1).record

    found = mistakes_of(record, 0)

    [total] = found.totals
    assert total.count > 20
    assert [one.unit for one in found.mistakes] == [1] * 5 + [2] * 5
    numbers = [one.number for one in found.mistakes]
    assert numbers == sorted(numbers)
    assert total.unit == "% of the game"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (GinRummySettings(target=60), "in games to 50 points, not 60"),
        (GinRummySettings(max_rounds=9), "in games of 10 rounds and more"),
        (GinRummySettings(max_turns=30), "of 31 turns and more"),
    ],
)
def test_games_of_another_kind_are_refused(
    appraiser: type[FakeAppraiser], settings: GinRummySettings, why: str
) -> None:
    judging = not_none(GAMES["gin_rummy"].judging)

    reason = not_none(judging.refuses(settings))

    assert why in reason
    assert refuses(SETTINGS) is None


def test_without_the_house_bot_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gin_rummy_judge, "house_bots", lambda game, slow: {})

    assert refuses(SETTINGS) == "the house bot master is not installed, which judges"


@pytest.mark.stats
def test_G12_a_round_that_goes_on_to_the_last_card_of_the_stock_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gin_rummy_judge, "CHOOSE", 2)
    monkeypatch.setattr(gin_rummy_judge, "MEASURE", 2)
    settings = {"max_rounds": 10, "max_turns": 60}
    bots = RandomBot(), RandomBot()
    for bot in bots:
        bot.seed(1)
    record = arena.play("gin_rummy", bots, settings=settings, seed=1).record
    first = list(takewhile(lambda one: one.round == 1, judged(record, 0)))

    assert len(first) > 30, "it takes no short cut"
