"""Mistakes in gin rummy, by the house bot that judges them."""

from __future__ import annotations

from itertools import islice
from random import Random
from statistics import fmean

import pytest

import arena
from arena.games.analysis import Judgement
from arena.games.catalogue import GAMES
from arena.games.gin_rummy import evaluator as gin_rummy_evaluator
from arena.games.match import Record
from arena.records.mistakes import JudgedSeat, JudgedUnit, judged, mistakes_of
from arena.records.seat_document import seat_match
from protocol.strategy import find
from tests.arena.records.test_hidden_cards import stopped, with_other_cards
from tests.support.not_none import not_none

GIN = not_none(GAMES["gin_rummy"].judging)


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gin_rummy_evaluator, "CHOOSE", 40)
    monkeypatch.setattr(gin_rummy_evaluator, "MEASURE", 40)


def test_a_mistake_that_is_shown_costs_something_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gin_rummy_evaluator, "MEASURE", 120)
    bots = [find("gin_rummy", "simple")() for _ in range(2)]
    for seat, bot in enumerate(bots):
        bot.seed(str(seat))
    record = arena.play("gin_rummy", bots, seed=3_000_003).record
    costs = looked_at_again(record, 0)

    assert len(costs) > 1
    assert min(costs) > 0


def looked_at_again(record: Record, seat: int) -> list[float]:
    """What the mistakes of a seat cost in percent, by another instance of the house bot."""
    mistakes = {mistake.index: mistake for mistake in mistakes_of(record, seat).mistakes}
    match = seat_match(record, seat)
    appraiser = find("gin_rummy", "master")()
    appraiser.seed("again")
    appraiser.reset()
    costs = []
    for decision in match.decisions:
        for news in decision.news:
            appraiser.hear(news)
        if (mistake := mistakes.get(decision.index)) is not None:
            worths = [
                fmean(found.worths[found.answers.index(answer)])
                for answer in (mistake.judgement.best, decision.answer)
                for found in [appraiser.appraise(decision.question, answer, samples=100)]
            ]
            costs.append(100 * (worths[0] - worths[1]))
        appraiser.recall(decision.question, decision.answer)
    return costs


def test_cards_that_the_seat_does_not_know_change_no_judgement() -> None:
    seen = 0
    for number in range(2):
        record, seat = stopped("gin_rummy", number, 12), number % 2
        other = with_other_cards(record, seat, Random(number))
        assert other.decks != record.decks
        first = list(islice(judged(record, seat), 4))
        assert first == list(islice(judged(other, seat), 4))
        seen += len(first)

    assert seen > 5


def test_order_and_choice_change_no_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    for samples in "CHOOSE", "MEASURE":
        monkeypatch.setattr(gin_rummy_evaluator, samples, 4)
    bots = [find("gin_rummy", "simple")() for _ in range(2)]
    for seat, bot in enumerate(bots):
        bot.seed(str(seat))
    record = arena.play("gin_rummy", bots, settings={"games": 2, "max_rounds": 10}, seed=5).record
    one = JudgedSeat(record, 0)
    first, second = one.units

    def costs(*units: JudgedUnit) -> dict[int, Judgement]:
        return {decision.index: decision.judgement for decision in one.judged(units)}

    both = costs(first, second)
    assert both == costs(second, first)
    assert costs(second) == {index: both[index] for index in both.keys() - costs(first).keys()}
    assert [unit.number for unit in one.lost_first] in ([1, 2], [2, 1])


def test_what_else_was_judged_in_a_round_changes_no_judgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for samples in "CHOOSE", "MEASURE":
        monkeypatch.setattr(gin_rummy_evaluator, samples, 4)
    bots = [find("gin_rummy", "simple")() for _ in range(2)]
    for seat, bot in enumerate(bots):
        bot.seed(str(seat))
    match = seat_match(arena.play("gin_rummy", bots, seed=5).record, 0)

    def judged_at(places: range) -> dict[int, Judgement | None]:
        judge, found = GIN.judge(match.settings, 0), dict[int, Judgement | None]()
        for place, decision in enumerate(match.decisions[:10]):
            for news in decision.news:
                judge.heard(news)
            if place in places:
                found[place] = judge.judged(decision.question, decision.answer)
            judge.decided(decision.question, decision.answer)
        return found

    every, third = judged_at(range(10)), judged_at(range(0, 10, 3))
    assert third == {place: every[place] for place in third}
    assert any(one is not None and one.cost for one in third.values())
