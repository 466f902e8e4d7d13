"""Hands, decisions, luck and counts of three card poker, exactly: over all hands of the dealer."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import combinations
from statistics import fmean

import pytest

import arena
from arena.games.analysis import Chart, ChartCell, Judgement, SeatMatch, heard_by
from arena.games.rules import LuckRound, TellSeat
from arena.games.three_card_poker.chain import best_for_goal
from arena.games.three_card_poker.evaluator import BEST
from arena.games.three_card_poker.rules import GAME
from arena.games.three_card_poker.table import (
    CLASSES,
    DEALERS_HANDS,
    GROUPS,
    HANDS,
    LINE,
    OUTCOMES,
    TABLE_FILE,
    class_of,
    group_of,
    hand_classes,
    members,
)
from arena.records.luck import luck_of
from arena.records.seat_document import seat_match
from bots.three_card_poker import Q64, Always, PlayerStrategy
from protocol.cards import PACK
from protocol.three_card_poker import (
    FOLDED,
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
from tests.tools.three_card_poker_table import packed

EACH_KICKER = pytest.mark.parametrize("pair_kicker", [False, True])
JUDGING = not_none(GAME.judging)
JUNK: Hand = ("7s", "5h", "2d")
DEALER: Hand = ("Qc", "3c", "2h")
ROW = 2 * len(OUTCOMES)


def cards_of(hand: str) -> Hand:
    a, b, c = hand.split()
    return a, b, c


def dealers_hands(hand: Hand) -> list[Hand]:
    return [*combinations([card for card in PACK if card not in hand], 3)]


@cache
def paid(hand: Hand, pair_kicker: bool) -> int:
    """What playing it brings, in antes, over all hands of the dealer (T6), one by one."""
    return sum(outcome_of_play(hand, dealer, pair_kicker) for dealer in dealers_hands(hand))


# ---- The table


def test_every_hand_is_in_one_class_whatever_the_order_of_its_cards() -> None:
    hands = [hand for one in members() for hand in one]

    assert len(members()) == CLASSES
    assert {*hands} == {*combinations(PACK, 3)}
    assert len(hands) == HANDS
    assert class_of(("9s", "9h", "5s")) == class_of(("5d", "9c", "9d"))
    assert class_of(("9s", "9h", "5s")) != class_of(("9s", "9h", "5d"))
    assert class_of(("As", "Kd", "2c")) == class_of(("2h", "As", "Kd"))
    assert class_of(("As", "Ks", "2c")) != class_of(("As", "Kc", "2c"))


@EACH_KICKER
def test_what_is_shipped_is_what_the_program_makes(pair_kicker: bool) -> None:
    shipped = files("arena.games.three_card_poker").joinpath(TABLE_FILE).read_bytes()
    some = range(pair_kicker, CLASSES, 7)
    rows = [shipped[at * ROW : (at + 1) * ROW] for at in range(len(shipped) // ROW)]

    assert len(rows) == 2 * CLASSES
    assert b"".join(rows[pair_kicker * CLASSES + number] for number in some) == packed(
        pair_kicker, [members()[number][0] for number in some]
    )


@EACH_KICKER
def test_all_hands_played_best_bring_the_value_of_the_game(pair_kicker: bool) -> None:
    classes = hand_classes(pair_kicker)
    best = sum(one.size * max(0, one.gain) for one in classes)
    always = sum(one.size * one.gain for one in classes)

    assert {sum(one.counts) for one in classes} == {DEALERS_HANDS}
    assert Fraction(best, HANDS * DEALERS_HANDS) - 1 == BEST
    assert float(BEST) == pytest.approx(-0.086580, abs=1e-6)
    assert always / HANDS / DEALERS_HANDS - 1 == pytest.approx(-0.1294, abs=1e-4)


@EACH_KICKER
def test_the_best_play_is_to_play_the_groups_above_the_line(pair_kicker: bool) -> None:
    assert all((one.gain > 0) == (one.group < LINE) for one in hand_classes(pair_kicker))
    assert {one.group for one in hand_classes(pair_kicker)} == {*range(len(GROUPS))}


@pytest.mark.parametrize(
    ("hand", "group"),
    [
        ("4s 3s 2s", "straight flushes"),
        ("2s 2h 2d", "three of a kind"),
        ("As 3h 2d", "straights"),
        ("5s 3s 2s", "flushes"),
        ("2s 2h 3d", "pairs"),
        ("As 4h 2d", "ace-high"),
        ("Ks 3h 2d", "king-high"),
        ("Qs 7h 2d", "queen-high from Q-7-2"),
        ("Qs 6h 5d", "Q-6-5 and Q-6-4"),
        ("Qs 6h 4d", "Q-6-5 and Q-6-4"),
        ("Qs 6h 3d", "queen-high below Q-6-4"),
        ("Js 9h 8d", "jack-high"),
        ("Ts 8h 7d", "ten-high or lower"),
        ("5s 3h 2d", "ten-high or lower"),
    ],
)
def test_a_hand_is_in_the_group_that_people_say(hand: str, group: str) -> None:
    assert GROUPS[group_of(cards_of(hand)[::-1])] == group


# ---- Decisions


def judged(match: SeatMatch) -> list[Judgement | None]:
    judge = JUDGING.judge(match.settings, match.seat)
    found = []
    for decision in match.decisions:
        for news in decision.news:
            judge.heard(news)
        found.append(judge.judged(decision.question, decision.answer))
    return found


def play(hand: str, answer: Decision, ante: int = 10, pair_kicker: bool = False) -> Judgement:
    judge = JUDGING.judge(ThreeCardPokerSettings(pair_kicker=pair_kicker), 0)
    return not_none(judge.judged(Play(cards_of(hand), ante, 1000), answer))


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
    more = 10 * (paid(cards_of(hand), pair_kicker) / DEALERS_HANDS + 1)  # than folding, in chips
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
    settings = {"rounds": 40, "stake": 10_000}
    always = arena.play("three_card_poker", [Always()], settings=settings, seed=1).record
    q64 = arena.play("three_card_poker", [Q64()], settings=settings, seed=1).record
    match = seat_match(always, 0)
    costs = [one.cost for one in judged(match) if one is not None]
    hands = [one.question.hand for one in match.decisions if type(one.question) is Play]
    lost = [10 * max(0, -1 - paid(hand, False) / DEALERS_HANDS) for hand in hands]

    assert {one.cost for one in judged(seat_match(q64, 0)) if one is not None} == {0}
    assert costs == pytest.approx(lost)
    assert sum(costs) > 0


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


# ---- Luck


def measured_round(hand: Hand, dealer: Hand, outcome: int, ante: int = 7) -> LuckRound:
    meter = not_none(GAME.luck).meter(ThreeCardPokerSettings())
    meter.told(TellSeat(0, RoundOver(hand, dealer, ante, outcome, 1000)))
    (played,) = meter.rounds
    return played


@pytest.mark.stats
def test_the_dealers_hand_is_no_luck_on_average() -> None:
    hand: Hand = ("Qs", "6h", "4d")
    luck = [
        measured_round(hand, dealer, outcome_of_play(hand, dealer)).luck[0]
        for dealer in dealers_hands(hand)
    ]

    of_hand = max(paid(hand, False) / DEALERS_HANDS, FOLDED) - float(BEST)
    assert fmean(luck) == pytest.approx(of_hand)
    assert min(luck) < of_hand - 0.5
    assert max(luck) > of_hand + 0.5


def test_T6_after_a_fold_the_dealers_hand_is_no_luck() -> None:
    luck = {measured_round(JUNK, dealer, FOLDED).luck for dealer in dealers_hands(JUNK)[::100]}

    assert luck == {(FOLDED - float(BEST),)}


def test_a_hand_that_should_be_folded_is_a_mistake_and_no_luck() -> None:
    folded = measured_round(JUNK, DEALER, FOLDED)
    played = measured_round(JUNK, DEALER, outcome_of_play(JUNK, DEALER))

    mistake = FOLDED - paid(JUNK, False) / DEALERS_HANDS
    assert mistake > 0.1
    assert folded.gains[0] - folded.luck[0] == pytest.approx(float(BEST))
    assert played.gains[0] - played.luck[0] == pytest.approx(float(BEST) - mistake)


def test_gains_and_luck_are_counted_in_antes() -> None:
    assert measured_round(JUNK, DEALER, -2, ante=1) == measured_round(JUNK, DEALER, -2, ante=50)


@EACH_KICKER
def test_who_plays_best_brings_the_value_of_the_game_in_every_round(pair_kicker: bool) -> None:
    settings = {"rounds": 200, "pair_kicker": pair_kicker, "stake": 10_000}
    best = luck_of(arena.play("three_card_poker", [Q64()], settings=settings, seed=1).record)
    always = luck_of(arena.play("three_card_poker", [Always()], settings=settings, seed=1).record)

    assert len(best.rounds) == len(always.rounds) == 200
    assert {round(played.gains[0] - played.luck[0], 9) for played in best.rounds} == {
        round(float(BEST), 9)
    }
    assert always.gains[0] - always.luck[0] < best.gains[0] - best.luck[0]


# ---- Charts

ROUNDS = {"rounds": 400, "stake": 10_000}


def chart_of(*bots: PlayerStrategy) -> Chart:
    meter = not_none(GAME.habits)()
    for seed, bot in enumerate(bots):
        played = arena.play("three_card_poker", [bot], settings=ROUNDS, seed=seed)
        heard_by(seat_match(played.record, 0), meter)
    (chart,) = meter.charts()
    return chart


def chart_of_answers(*answers: tuple[Hand, Decision]) -> Chart:
    meter = not_none(GAME.habits)()
    meter.begin(ThreeCardPokerSettings(), 0)
    for hand, answer in answers:
        meter.decided(Play(hand, 10, 1000), answer)
    return meter.charts()[0]


def cells(chart: Chart) -> dict[str, ChartCell]:
    found = {}
    for row, (cell,) in zip(chart.rows, chart.cells, strict=True):
        assert cell is not None
        found[row] = cell
    return found


def test_q64_plays_what_is_above_the_line_and_nothing_below() -> None:
    chart = chart_of(Q64(), Q64())
    shown = cells(chart)

    assert chart.rows == GROUPS
    assert chart.line == LINE
    assert chart.rows[LINE] == "queen-high below Q-6-4"
    assert sum(cell.of for cell in shown.values()) == 800
    for row, cell in shown.items():
        assert cell.mark == (GROUPS.index(row) < LINE)
        if cell.of:
            assert cell.share == cell.mark
            assert cell.cost == 0
            assert cell.low is not None
            assert cell.high is not None
            assert cell.low <= cell.share <= cell.high


def test_hands_are_counted_in_their_groups_with_what_they_cost() -> None:
    pair: Hand = ("9s", "9h", "5s")
    shown = cells(chart_of_answers((pair, "play"), (pair, "fold"), (JUNK, "play"), (JUNK, "play")))
    lost = 100 * (paid(pair, False) / DEALERS_HANDS + 1) / 4  # of four hands one was folded wrongly

    assert (shown["pairs"].count, shown["pairs"].of, shown["pairs"].share) == (1, 2, 0.5)
    assert shown["pairs"].cost == pytest.approx(lost)
    assert shown["ten-high or lower"].share == 1
    assert shown["ace-high"] == ChartCell(mark=1.0)
