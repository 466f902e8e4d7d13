"""What decisions of three card poker cost."""

from __future__ import annotations

from itertools import combinations

import pytest

import arena
from arena.games.analysis import Judgement, SeatMatch
from arena.games.three_card_poker.chain import best_for_goal
from arena.games.three_card_poker.luck import play_values
from arena.games.three_card_poker.rules import GAME
from arena.records.seat_document import seat_match
from bots.three_card_poker import Q64, Always, Random
from protocol.cards import PACK
from protocol.three_card_poker import (
    Ante,
    Decision,
    Hand,
    Play,
    RoundOver,
    ThreeCardPokerSettings,
    outcome_of_play,
)
from protocol.vocabulary import Range
from tests.support.not_none import not_none

JUDGING = not_none(GAME.judging)


def judged(match: SeatMatch) -> list[Judgement | None]:
    judge = JUDGING.judge(match.settings, match.seat)
    found = []
    for decision in match.decisions:
        for news in decision.news:
            judge.heard(news)
        found.append(judge.judged(decision.question, decision.answer))
    return found


def play(hand: str, answer: Decision, ante: int = 10, pair_kicker: bool = False) -> Judgement:
    a, b, c = hand.split()
    judge = JUDGING.judge(ThreeCardPokerSettings(pair_kicker=pair_kicker), 0)
    return not_none(judge.judged(Play((a, b, c), ante, 1000), answer))


def ante(cash: int, answer: int, round_number: int = 1, **settings: int | None) -> Judgement | None:
    read = GAME.vocabulary.read_settings({"goal": 60, **settings})
    question = Ante(round_number, cash, Range(1, cash // 2))
    return JUDGING.judge(read, 0).judged(question, answer)


@pytest.mark.stats
@pytest.mark.parametrize("pair_kicker", [False, True])
@pytest.mark.parametrize("hand", ["7s 5h 2d", "Qs 6h 3d", "Qs 6h 4d", "9s 9h 5d", "4s 3s 2s"])
def test_T6_a_wrong_answer_costs_what_all_hands_of_the_dealer_pay(
    hand: str, pair_kicker: bool
) -> None:
    a, b, c = hand.split()
    dealers = [*combinations([card for card in PACK if card not in (a, b, c)], 3)]
    paid = sum(outcome_of_play((a, b, c), dealer, pair_kicker) for dealer in dealers)
    more = 10 * (paid / len(dealers) + 1)  # than folding, in chips
    answers = {answer: play(hand, answer, 10, pair_kicker) for answer in ("play", "fold")}

    assert answers["play"].cost == pytest.approx(max(0, -more))
    assert answers["fold"].cost == pytest.approx(max(0, more))
    assert {one.best for one in answers.values()} == {"play" if more > 0 else "fold"}
    assert sorted(one.grade > 0 for one in answers.values()) == [False, True]
    assert {one.unit for one in answers.values()} == {"chips"}


def test_grades_follow_the_cost_per_chip_of_the_ante() -> None:
    assert play("Qs 6h 3d", "play").grade == 1
    assert play("5s 3h 2d", "play").grade == 2
    assert play("9s 9h 5d", "fold").grade == 3
    assert play("Qs 6h 3d", "play", ante=500).grade == 1
    costs = [play("Qs 6h 3d", "play", ante).cost for ante in (10, 500)]
    assert costs[1] == pytest.approx(50 * costs[0])


def test_q64_makes_no_mistake_with_its_hands_and_always_what_luck_calls_its_mistakes() -> None:
    settings = {"rounds": 200, "stake": 10_000}
    always = arena.play("three_card_poker", [Always()], settings=settings, seed=1).record
    q64 = arena.play("three_card_poker", [Q64()], settings=settings, seed=1).record
    match = seat_match(always, 0)
    costs = [one.cost for one in judged(match) if one is not None]
    hands = [one.question.hand for one in match.decisions if type(one.question) is Play]
    lost = [10 * max(0, -1 - play_values(False).mean(hand)) for hand in hands]

    assert {one.cost for one in judged(seat_match(q64, 0)) if one is not None} == {0}
    assert costs == pytest.approx(lost)
    assert sum(costs) > 0


def test_the_dealers_hand_changes_no_judgement() -> None:
    mine: Hand = ("7s", "5h", "2d")
    found = []
    for dealer in (("As", "Ah", "Ad"), ("2s", "3h", "5d")):
        decks = [[*mine, *dealer], [*mine, *dealer]]
        bot = Random(10)
        bot.seed(1)
        record = arena.play(
            "three_card_poker", [bot], settings={"rounds": 2, "stake": 10_000}, decks=decks
        ).record
        match = seat_match(record, 0)
        assert dealer not in [getattr(one.question, "hand", None) for one in match.decisions]
        found.append(judged(match))

    assert found[0] == found[1]


def test_a_judge_learns_nothing_from_news_and_answers() -> None:
    judge = JUDGING.judge(ThreeCardPokerSettings(), 0)
    before = judge.judged(Play(("7s", "5h", "2d"), 10, 1000), "play")
    judge.heard(RoundOver(("7s", "5h", "2d"), ("As", "Ah", "Ad"), 10, -2, 980))
    judge.decided(Play(("7s", "5h", "2d"), 10, 1000), "play")

    assert judge.judged(Play(("7s", "5h", "2d"), 10, 1000), "play") == before


# ---- Antes


def test_an_ante_costs_what_it_takes_from_the_probability_of_the_goal() -> None:
    best = best_for_goal(60, False)
    for cash in 20, 40, 55:
        for answer in 1, cash // 4, int(best.antes[cash]):
            judgement = not_none(ante(cash, answer))

            assert judgement.cost == pytest.approx(100 * best.cost_of(cash, answer))
            assert judgement.unit == "% of reaching the goal"
            assert judgement.is_level == (best.cost_of(cash, answer) <= 1e-4)
            assert judgement.best == (answer if judgement.is_level else best.antes[cash])
            assert not (judgement.grade and judgement.is_level)


def test_grades_of_antes_follow_the_probability() -> None:
    grades = []
    for answer in 10, 2, 15, 20:
        judgement = not_none(ante(40, answer))
        grades.append(judgement.grade)
        assert judgement.grade == sum(judgement.cost > cost for cost in (0.1, 1, 5))

    assert grades == [0, 1, 2, 3]


def test_antes_are_not_judged_where_no_chain_says_what_they_cost() -> None:
    assert ante(40, 1, goal=None) is None
    assert ante(1000, 1, goal=2501) is None
    assert ante(40, 1, rounds=1000, round_number=1) is not None


def test_antes_are_not_judged_where_the_rounds_that_are_left_would_decide_too() -> None:
    needed = best_for_goal(60, False).rounds_needed(1e-4)

    assert ante(40, 1, rounds=needed - 1) is None
    assert ante(40, 1, rounds=needed) is not None
    assert ante(40, 1, round_number=2, rounds=needed) is None
    assert ante(40, 1, round_number=1000 - needed + 1, rounds=1000) is not None


def test_a_match_with_a_goal_is_judged_as_a_whole() -> None:
    settings = {"stake": 40, "goal": 60}
    record = arena.play("three_card_poker", [Always(1)], settings=settings, seed=2).record
    judgements = judged(seat_match(record, 0))

    assert len(judgements) == len(record.answers)
    assert None not in judgements
    assert {one.unit for one in judgements if one} == {"chips", "% of reaching the goal"}
