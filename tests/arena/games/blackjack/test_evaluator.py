"""Decisions, luck and counts of blackjack, against a program that deals card after card."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import fmean

import msgspec
import pytest

from arena.games.analysis import Chart, ChartCell, Judgement, SeatMatch
from arena.games.blackjack.evaluator import dealers_row, hit_row, played_worth
from arena.games.blackjack.rules import GAME
from arena.games.blackjack.values import fresh_deck
from arena.games.match import MatchState
from arena.games.rules import AskSeat, LuckMeter, TellSeat
from arena.games.statistics import wilson
from arena.records.seat_document import seat_match
from protocol.blackjack import (
    MINIMUM,
    NEW_DECK,
    POINTS,
    Bet,
    BlackjackSettings,
    Draw,
    Exposed,
    HandOver,
    Shuffled,
    Side,
    hand_value,
)
from protocol.cards import Card
from protocol.vocabulary import News, Range
from tests.arena.games.blackjack.test_values import stood, worths
from tests.support.not_none import not_none

JUDGING, LUCK = not_none(GAME.judging), not_none(GAME.luck)
UNIFORM = BlackjackSettings(bankroll=1000, hands=2, shuffle="uniform")


# ---- Decisions


def judged(match: SeatMatch, first: int = 0) -> list[tuple[Draw, str, Judgement]]:
    """What is said of the decisions, from this one on."""
    judge = JUDGING.judge(match.settings, match.seat)
    found = []
    for number, decision in enumerate(match.decisions):
        for news in decision.news:
            judge.heard(news)
        if number < first:
            judge.decided(decision.question, decision.answer)
            continue
        judgement = judge.judged(decision.question, decision.answer)
        judge.decided(decision.question, decision.answer)
        if type(decision.question) is Draw:
            assert judgement is not None
            found.append((decision.question, decision.answer, judgement))
        else:
            assert judgement is None, "the size of a bet is not judged"
    return found


def played(cards: str, answers: Sequence[object], hands: int = 1) -> SeatMatch:
    """A match whose first deck begins with these cards, and goes on in the order of a new one."""
    first = cards.split()
    deck = [*first, *(card for card in NEW_DECK if card not in first)]
    settings = BlackjackSettings(bankroll=1000, hands=hands, shuffle="uniform")
    match = MatchState(GAME, settings, decks=[deck, deck])
    for answer in answers:
        match.answer(answer)
    assert match.pending is None
    return seat_match(match.result().record, 0)


def unseen_of(*cards: str) -> tuple[int, ...]:
    left = [POINTS[card] for card in NEW_DECK if card not in cards]
    return tuple(left.count(points) for points in range(1, 11))


def test_a_stand_costs_what_the_hit_would_have_brought_more_times_the_bet() -> None:
    [(_, _, judgement)] = judged(played("Ts Th 6s 2c", [40, "stand"]))
    deck = unseen_of("Ts", "Th", "6s")
    stands, hits, _ = worths(deck, 16, False, 10)

    assert judgement.cost == pytest.approx(40 * (hits - stands), abs=1e-10)
    assert judgement.cost > 0
    assert (judgement.best, judgement.unit, judgement.error) == ("hit", "chips", None)
    # So it is a small mistake, whatever the bet.
    assert judgement.grade == sum(hits - stands > least for least in (0.02, 0.1, 0.3)) < 3


def test_the_cards_that_a_hit_brings_count_as_seen() -> None:
    match = played("2s Th 4s 2c 5s 9s", [10, "hit", "stand"])
    first, second = judged(match)
    deck = unseen_of("2s", "Th", "4s", "5s")
    stands, hits, _ = worths(deck, 11, False, 10)

    assert first[2].cost == 0
    assert stood(deck, 11, 10) < hits
    assert second[2].cost == pytest.approx(10 * (hits - stood(deck, 11, 10)), abs=1e-10)
    assert (second[2].best, second[2].grade) == ("hit", 3)
    assert stands < hits
    assert judged(match, first=2) == [second], "whatever else was judged"


def test_earlier_cards_count_as_seen_and_a_hole_card_that_was_never_shown_does_not() -> None:
    # A natural at first, so the two of clubs stays face down; then sixteen against a ten.
    match = played("As Th Ks 2c Ts Jh 6s 3c", [10, 10, "stand"], hands=2)
    [(question, _, judgement)] = judged(match)
    stands, hits, _ = worths(unseen_of("As", "Th", "Ks", "Ts", "Jh", "6s"), 16, False, 10)

    assert question.hand == ("Ts", "6s")
    assert judgement.cost == pytest.approx(10 * max(0, hits - stands), abs=1e-10)


def test_no_judgement_tells_the_hole_card() -> None:
    answers = [25, "hit", "stand"]
    found = [judged(played(f"5s Th 7s {hole} 2s Qc", answers)) for hole in ("As", "6d", "Kh", "9c")]

    assert all(each == found[0] for each in found)


def test_a_shuffle_puts_all_cards_back() -> None:
    judge = JUDGING.judge(UNIFORM, 0)
    again = judged(played("Ts Th 6s 2c", [40, "stand"]))[0][2]
    match = played("Ts Th 6s 2c", [40, "stand"])
    for news in match.news:
        judge.heard(news)
    judge.heard(Shuffled())
    for news in match.decisions[1].news:
        judge.heard(news)
    judge.decided(Bet(1, 1000, Range(5, 1000)), 40)

    assert judge.judged(match.decisions[1].question, "stand") == again


def test_answers_of_the_same_worth_are_level() -> None:
    # With nothing but tens left, twenty-one of the dealer's cannot be, and twelve loses either way.
    judge = JUDGING.judge(UNIFORM, 0)
    deck = [card for card in NEW_DECK if POINTS[card] != 10]
    exposed = [*deck, "Th", "Ts"]
    judge.heard(Shuffled())
    for card in exposed:
        judge.heard(Exposed(card, "player"))
    judge.decided(Bet(1, 1000, Range(5, 1000)), 40)
    judgement = judge.judged(Draw("Ts", ("Th", "2h"), 12, False), "hit")

    assert judgement is not None
    assert (judgement.cost, judgement.is_level, judgement.grade) == (0.0, True, 0)


# ---- Luck

DEALT = ["Ts p", "9h d", "5c p"]  # a player's 15 against a nine

Stage = Sequence[str]
"""Cards and whom they go to, `p` or `d`."""


def bet(meter: LuckMeter, chips: int) -> None:
    asked = AskSeat(0, Bet(1, 1000, Range(MINIMUM, 1000)))
    meter.asked(asked)
    meter.answered(asked, chips)


def tell(meter: LuckMeter, news: News) -> None:
    meter.told(TellSeat(0, news))


def show(meter: LuckMeter, stage: Stage) -> None:
    for card, to in map(str.split, stage):
        side: Side = "player" if to == "p" else "dealer"
        tell(meter, Exposed(card, side))


def luck_so_far(hand: Stage, *, before: Stage = (), chips: int = 5) -> float:
    """The luck of a hand up to its last card, in chips; `before` was shown in a hand before."""
    meter = LUCK.meter(UNIFORM)
    tell(meter, Shuffled())
    bet(meter, 5)
    show(meter, before)
    tell(meter, HandOver(5, (), (), "push", 0, 1000))
    bet(meter, chips)
    show(meter, hand)
    tell(meter, HandOver(chips, (), (), "push", 0, 1000))
    return meter.rounds[-1].luck[0]


def unseen(*stages: Stage) -> list[Card]:
    seen = {shown.split()[0] for stage in stages for shown in stage}
    return [card for card in NEW_DECK if card not in seen]


@pytest.mark.parametrize("before", [(), ("Ah p", "Kh d", "Kd p")], ids=["fresh", "after_a_natural"])
@pytest.mark.parametrize(
    ("hand", "to"),
    [
        pytest.param([], "p", id="first"),
        pytest.param(["As p"], "d", id="upcard"),
        pytest.param(["As p", "6h d"], "p", id="second"),
        pytest.param(DEALT, "p", id="hit"),
        pytest.param(DEALT, "d", id="hole"),
        pytest.param([*DEALT, "4h d"], "d", id="dealers_draw"),
        pytest.param([*DEALT, "Ac p", "2h d"], "d", id="dealer_after_a_hit"),
    ],
)
def test_a_card_is_no_luck_on_average_over_all_that_are_unseen(
    before: Stage, hand: Stage, to: str
) -> None:
    cards = unseen(before, hand)
    luck = [luck_so_far([*hand, f"{card} {to}"], before=before) for card in cards]
    until_then = luck_so_far(hand, before=before)

    assert fmean(luck) == pytest.approx(until_then, abs=1e-12)
    assert max(luck) > until_then > min(luck)


def test_B8_a_natural_is_worth_what_it_pays_rounded_down() -> None:
    hand = ["As p", "6h d"]
    natural = luck_so_far([*hand, "Ks p"], chips=5)
    twenty = luck_so_far([*hand, "9s p"], chips=5)

    assert natural - twenty == pytest.approx(7 - 5 * played_worth(6, 10, True))


def test_luck_is_as_large_as_the_bet() -> None:
    hand = [*DEALT, "6d p"]

    assert luck_so_far(hand, chips=40) == pytest.approx(4 * luck_so_far(hand, chips=10))


def test_B9_a_bust_is_worth_the_bet_that_it_costs() -> None:
    hit = hit_row(9, 15, False)

    assert hit[7] == -1.0
    assert hit[6] > 0.5


def test_B10_the_dealer_busts_as_often_as_is_known() -> None:
    # Without end, standing on 12 wins if the dealer busts and loses otherwise; the chances of a
    # bust, a natural of the dealer's not excluded, are in every book.
    known = {2: 0.3536, 3: 0.3739, 4: 0.3945, 5: 0.4164, 6: 0.4232, 7: 0.2617, 8: 0.2447}
    for upcard, busts in known.items():
        stands = sum(
            chance * worth
            for worth, chance in zip(
                dealers_row(12, upcard, False), [0, *[1 / 13] * 9, 4 / 13], strict=True
            )
        )

        assert (stands + 1) / 2 == pytest.approx(busts, abs=2e-3)


def luck_of_deck(cards: Sequence[Card]) -> list[float]:
    """The luck by hand of a bot that always stands and bets the minimum, with this deck."""
    match = MatchState(GAME, UNIFORM, decks=[cards])
    meter = LUCK.meter(UNIFORM)
    while (asked := match.pending) is not None:
        for told in match.take_news():
            meter.told(told)
        answer = MINIMUM if type(asked.question) is Bet else "stand"
        match.answer(answer)
        meter.answered(asked, match.answers[-1])
    for told in match.take_news():
        meter.told(told)
    return [played.luck[0] for played in meter.rounds]


def test_B8_a_hole_card_that_was_never_shown_is_still_among_the_unseen() -> None:
    dealt = "As 9h Ks 2c Th 8d Tc 7c".split()  # a natural, then 20 against 15 and what comes
    deck = [*dealt, *unseen(dealt)]
    other = [*deck]
    other[3], other[-1] = other[-1], other[3]

    assert deck[3] != other[3]
    assert len(luck_of_deck(deck)) == 2
    assert luck_of_deck(deck) == luck_of_deck(other)


def test_B11_after_a_shuffle_all_cards_may_come_again() -> None:
    def first_card(*, shuffles: bool) -> float:
        meter = LUCK.meter(UNIFORM)
        tell(meter, Shuffled())
        bet(meter, 5)
        show(meter, ["Ah p", "Ad d", "Ac p"])
        tell(meter, HandOver(5, (), (), "push", 0, 1000))
        if shuffles:
            tell(meter, Shuffled())
        bet(meter, 5)
        show(meter, ["As p"])
        tell(meter, HandOver(5, (), (), "push", 0, 1000))
        return meter.rounds[-1].luck[0]

    assert first_card(shuffles=True) == luck_so_far(["As p"])
    assert first_card(shuffles=False) > first_card(shuffles=True)  # aces are rarer then


@pytest.mark.parametrize("shuffle", ["riffle", "uniform"])
def test_B14_after_a_riffle_nothing_is_judged_and_no_luck_measured(shuffle: str) -> None:
    settings = GAME.vocabulary.read_settings({"shuffle": shuffle})
    for refuses in JUDGING.refuses, LUCK.refuses:
        assert (refuses(settings) is None) == (shuffle == "uniform")


# ---- Charts


def charts_of(*draws: tuple[str, str, int, bool, str]) -> tuple[Chart, ...]:
    habits = not_none(GAME.habits)()
    habits.begin(UNIFORM, 0)
    habits.decided(Bet(1, 100, Range(5, 100)), 5)
    for upcard, hand, total, is_soft, answer in draws:
        habits.decided(Draw(upcard, tuple(hand.split()), total, is_soft), answer)
    return habits.charts()


def cell(chart: Chart, row: str, column: str) -> ChartCell:
    return not_none(chart.cells[chart.rows.index(row)][chart.columns.index(column)])


def test_hits_are_counted_by_total_and_upcard_hard_and_soft() -> None:
    hard, soft = charts_of(
        ("Th", "Ts 6s", 16, False, "hit"),
        ("Kh", "9s 7s", 16, False, "stand"),
        ("Kd", "9s 7d", 16, False, "stand"),
        ("Ah", "As 5s", 16, True, "hit"),
    )
    tens = cell(hard, "16", "10")
    aces = cell(soft, "16", "A")

    assert (tens.count, tens.of, tens.share) == (1, 3, 1 / 3)
    assert (tens.low, tens.high) == wilson(1 / 3, 3).bounds
    assert (aces.count, aces.of, aces.share) == (1, 1, 1.0)
    assert (aces.cost, aces.mark) == (0.0, 1.0)
    assert cell(hard, "16", "9").share is None
    assert cell(hard, "16", "9").cost is None


def test_without_numpy_hits_are_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = ("Th", "Ts 6s", 16, False, "hit"), ("Kh", "9s 7s", 16, False, "stand")
    full = charts_of(*draws)
    monkeypatch.setattr("arena.games.analysis.find_spec", lambda name: None)
    plain = charts_of(*draws)

    tens, whole = (cell(charts[0], "16", "10") for charts in (plain, full))
    assert (tens.mark, tens.cost) == (None, None)
    assert tens == msgspec.structs.replace(whole, mark=None, cost=None)
    assert cell(plain[0], "16", "9") == ChartCell()
    for one, other in zip(plain, full, strict=True):
        assert (one.title, one.rows, one.columns) == (other.title, other.rows, other.columns)


def test_marks_are_the_best_play_which_may_depend_on_the_cards() -> None:
    hard, soft = charts_of()

    assert [cell(hard, total, "7").mark for total in ("11", "17", "21")] == [1.0, 0.0, 0.0]
    assert cell(soft, "18", "9").mark == 1.0
    assert 0 < (cell(hard, "16", "10").mark or 0) < 1
    assert (len(hard.rows), len(soft.rows), len(hard.columns)) == (18, 10, 10)


def test_the_costs_of_the_cells_sum_to_the_distance_from_the_best_play() -> None:
    habits = not_none(GAME.habits)()
    habits.begin(UNIFORM, 0)
    for upcard, first, second in product(NEW_DECK[:13], NEW_DECK[13:26], NEW_DECK[26:39]):
        total, is_soft = hand_value((first, second))
        if total < 21:
            habits.decided(Draw(upcard, (first, second), total, is_soft), "stand")
    charts = habits.charts()
    cells = [cell for chart in charts for row in chart.cells for cell in row if cell is not None]
    fresh = fresh_deck()
    stands = fresh.best.copy()
    stands[fresh.is_asked] = 0.0
    distance = 100 * (fresh.value(fresh.best) - fresh.value(stands))

    assert sum(cell.cost or 0 for cell in cells) == pytest.approx(distance)
    assert distance > 10
    assert {cell.share for cell in cells} == {0.0, None}
