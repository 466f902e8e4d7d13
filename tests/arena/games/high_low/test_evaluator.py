"""Bids, luck and counts of high-low: all hidden cards and rotations one by one, and by play."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, permutations
from math import sqrt
from random import Random as Generator
from statistics import fmean, stdev, variance
from typing import Any

import pytest

from arena.games.analysis import Chart, ChartCell, Judge
from arena.games.high_low.evaluator import TABLES, deal_luck
from arena.games.high_low.rules import GAME, payoffs
from arena.games.rules import EVERYONE, LuckMeter, TellSeat
from protocol.cards import PACK, Card
from protocol.errors import NoAnalysis
from protocol.high_low import (
    Bid,
    Bidding,
    BidMade,
    Bids,
    Cards,
    Dealt,
    HighLowSettings,
    Points,
    RoundOver,
    Swap,
    Swapped,
    legal_bids,
)
from tests.support.long import sized
from tests.support.not_none import not_none
from tests.tools.luck_tables import LuckOfSeat, MeasuredTable, samples

NEVER = 1_000_000_000


def new_meter(gap: int = 100, **more: int) -> LuckMeter:
    return not_none(GAME.luck).meter(HighLowSettings(gap=gap, **more))


def round_of(
    meter: LuckMeter,
    cards: Sequence[str],
    paid: Points,
    *,
    scores: Points = (0, 0, 0, 0),
    starter: int = 0,
) -> tuple[float, ...]:
    """The luck of a round with these five cards."""
    for seat, card in enumerate(cards[:4]):
        meter.told(TellSeat(seat, Dealt(1, 1, starter, card, cards[4])))
    meter.told(TellSeat(EVERYONE, RoundOver((None, None, None, None), None, paid, scores)))
    return meter.rounds[-1].luck


def meter_after(rounds: int, *, gap: int = 100) -> LuckMeter:
    """A meter that has heard so many rounds, in which the seats did not gain alike."""
    meter = new_meter(gap)
    scores = [0, 0, 0, 0]
    for number in range(rounds):
        cards = Generator(number).sample(PACK, 5)
        paid: Points = ((10, -10, -6, 6), (3, -1, -1, -1), (-5, 8, -1, -2))[number % 3]
        scores = [score + one for score, one in zip(scores, paid, strict=True)]
        one, two, three, four = scores
        round_of(meter, cards, paid, scores=(one, two, three, four), starter=number % 4)
    return meter


def rotations(five: Sequence[str]) -> list[list[str]]:
    """The four ways in which the cards may go round the table."""
    *cards, dealer_card = five
    return [[*cards[by:], *cards[:by], dealer_card] for by in range(4)]


# ---- Each mean is the true one


@pytest.mark.parametrize("starter", range(4))
@pytest.mark.parametrize("seed", range(10))
def test_a_table_gives_each_seat_0_in_the_mean_over_the_rotations(seed: int, starter: int) -> None:
    five = Generator(seed).sample(PACK, 5)
    tables = [deal_luck(each[:4], each[4], starter) for each in rotations(five)]

    for seat in range(4):
        for table in range(len(TABLES)):
            assert sum(each[seat][table] for each in tables) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("rounds", [0, 1, 47])
@pytest.mark.parametrize("gap", [100, 10, NEVER])
def test_luck_is_0_in_the_mean_over_the_rotations_whatever_has_been(rounds: int, gap: int) -> None:
    five = Generator(99).sample(PACK, 5)
    lucks = [
        round_of(meter_after(rounds, gap=gap), cards, (2, 2, -2, -2)) for cards in rotations(five)
    ]

    assert len(set(lucks)) == 4
    for seat in range(4):
        assert fmean(luck[seat] for luck in lucks) == pytest.approx(0, abs=1e-12)


def test_luck_does_not_depend_on_what_the_round_brought() -> None:
    cards = Generator(5).sample(PACK, 5)

    assert round_of(meter_after(20), cards, (30, -10, -10, -10)) == round_of(
        meter_after(20), cards, (-2, -2, -2, 6)
    )


@pytest.mark.parametrize("rounds", [0, 30])
def test_luck_is_0_in_sum_although_every_seat_has_its_own_weights(rounds: int) -> None:
    luck = round_of(meter_after(rounds), Generator(1).sample(PACK, 5), (0, 0, 0, 0))

    assert sum(luck) == pytest.approx(0, abs=1e-12)
    assert max(luck) > 0.5


# ---- What is luck


def test_where_nobody_quits_the_highest_and_the_lowest_card_win() -> None:
    luck = deal_luck(["As", "2c", "7h", "8d"], "8c", 0)

    assert [one for one, _ in luck] == [10, 10, -10, -10]  # +10 or -10, and 0 in the mean


def test_the_other_table_stays_with_extreme_cards_alone() -> None:
    luck = deal_luck(["As", "6h", "7h", "8d"], "8c", 0)

    assert [two for _, two in luck] == [6, -2, -2, -2]


def test_a_seat_that_follows_no_table_is_soon_left_with_little_luck() -> None:
    five = ["As", "2c", "7h", "8d", "8c"]
    meters = [new_meter(NEVER) for _ in range(2)]
    random = Generator(3)
    for _ in range(300):
        cards = random.sample(PACK, 5)
        round_of(meters[0], cards, (-2, -2, -2, -2))
        paid = [round(table[0]) for table in deal_luck(cards[:4], cards[4], 0)]
        one, two, three, four = paid
        round_of(meters[1], cards, (one, two, three, four))

    indifferent, bold = (round_of(meter, five, (0, 0, 0, 0))[0] for meter in meters)

    assert abs(indifferent) < 0.2
    assert bold == pytest.approx(10, rel=0.1)


def test_luck_between_second_and_third_shortens_the_match_for_a_seat_that_loses() -> None:
    def heard(gap: int, **more: int) -> LuckMeter:
        meter = new_meter(gap, **more)
        for number in range(200):
            random = Generator(number)
            round_of(meter, random.sample(PACK, 5), (3, 1, 1, -5), scores=(600, 60, 59, -719))
        return meter

    five = ["7h", "As", "8d", "9d", "8c"]  # the second seat is lucky
    ends, lasts = round_of(heard(100), five, (0,) * 4), round_of(heard(NEVER), five, (0,) * 4)

    assert lasts[1] > lasts[2]
    assert ends[3] > lasts[3]
    assert ends[0] < lasts[0]
    # After the last round that may be played it is over anyhow.
    assert round_of(heard(20, max_shuffles=20), five, (0,) * 4) == lasts
    assert round_of(heard(20, max_shuffles=50), five, (0,) * 4) != lasts


# ---- Matches


def values_of(table: MeasuredTable, seeds: range) -> list[tuple[LuckOfSeat, ...]]:
    return list(chain.from_iterable(samples(table, seed) for seed in seeds))


@pytest.mark.stats
def test_luck_is_0_in_the_mean_and_half_of_what_bold_bots_gain() -> None:
    """100 matches of four shuffles."""
    settings = {"gap": NEVER, "max_shuffles": 4}
    table = MeasuredTable("high_low", ("bold", "bold", "timid", "timid"), settings)
    values = values_of(table, range(sized(100, 25)))

    for place in range(4):
        luck = [value[place].luck for value in values]
        assert abs(fmean(luck)) < 3.5 * stdev(luck) / sqrt(len(luck))
        without = variance([value[place].without for value in values])
        assert without < 0.8 * variance([value[place].gain for value in values])


# ---- Bids


def new_judge(seat: int) -> Judge:
    return not_none(GAME.judging).judge(HighLowSettings(), seat)


def deal(judge: Judge, card: Card, *swaps: Card | None, number: int = 1, dealer: Card) -> Card:
    """Deal a round that seat 0 starts; by seat, the card that it swaps for the dealer-card."""
    judge.heard(Dealt((number - 1) // 10 + 1, number, 0, card, dealer))
    for seat, given in enumerate(swaps):
        dealer = given or dealer
        judge.heard(Swapped(seat, given is not None, dealer))
    return dealer


def bid(judge: Judge, *bids: Bidding) -> None:
    for seat, said in enumerate(bids):
        judge.heard(BidMade(seat, said))


def rounds(judge: Judge, number: int, bids: tuple[Bidding, ...], cards: Cards) -> None:
    """So many rounds without a swap, each of them alike."""
    last = max((said for said in bids if said != "quit"), default=None)
    for each in range(1, number + 1):
        deal(judge, "7c", None, None, None, None, number=each, dealer="7d")
        bid(judge, *bids)
        judge.heard(RoundOver(cards, last, payoffs(cards, last), (0, 0, 0, 0)))


def asked(card: Card, bids: Bids, highest: int | None = None) -> Bid:
    return Bid(card, "8d", bids, legal_bids(highest))


def enumerated(
    card: Card, known: dict[int, Card], hidden: list[int], seen: set[Card], say: Bidding
) -> Fraction:
    """What the last seat's answer brings on average, over all hands of those who stay."""
    if say == "quit":
        return Fraction(-2)
    total = count = 0
    for drawn in permutations([other for other in PACK if other not in seen], len(hidden)):
        held = {**known, **dict(zip(hidden, drawn, strict=True)), 3: card}
        shown: Any = tuple(held.get(seat) for seat in range(4))
        total += payoffs(shown, say)[3]
        count += 1
    return Fraction(total, count)


@pytest.mark.parametrize("card", ["As", "Qs", "8c", "3h", "2c"])
@pytest.mark.parametrize(
    ("bids", "known", "hidden"),
    [
        ((2, 4, 4), {0: "7c"}, [1, 2]),
        ((2, 4, "quit"), {0: "7c"}, [1]),
        (("quit", 4, 6), {}, [1, 2]),
        (("quit", "quit", "quit"), {}, []),
        ((8, "quit", "quit"), {0: "7c"}, []),
    ],
)
def test_the_last_speakers_bid_costs_what_all_hidden_cards_say(
    card: Card, bids: tuple[Bidding, ...], known: dict[int, Card], hidden: list[int]
) -> None:
    judge = new_judge(3)
    # The first seat has taken the seven of clubs, and so the eight of diamonds lies there.
    deal(judge, card, "8d", None, None, None, dealer="7c")
    bid(judge, *bids)
    highest = max((said for said in bids if said != "quit"), default=None)
    question = asked(card, (bids[0], bids[1], bids[2], None), highest)
    means = {
        say: enumerated(card, known, hidden, {card, "7c", "8d"}, say) for say in question.legal
    }

    for say, mean in means.items():
        judgement = not_none(judge.judged(question, say))
        assert judgement.cost == pytest.approx(float(max(means.values()) - mean), abs=1e-9)
        assert means[judgement.best] == max(means.values())
        assert judgement.error is None
        assert judgement.grade == sum(judgement.cost > least for least in (0, 1, 3))


def cost_of_staying(judge: Judge) -> float:
    """Of the last speaker with a card from the middle, after two hidden cards."""
    bid(judge, 10, 10, "quit")
    judgement = not_none(judge.judged(asked("9c", (10, 10, "quit", None), 10), 10))
    return judgement.cost


def test_cards_that_were_seen_in_the_shuffle_are_not_hidden() -> None:
    fresh, later, after_a_shuffle = new_judge(3), new_judge(3), new_judge(3)
    shown: Cards = ("2c", "3c", "4c", "5c")  # without them there are more cards that are higher
    for judge, number in (later, 1), (after_a_shuffle, 10):
        deal(judge, "5c", None, None, None, None, number=number, dealer="6c")
        judge.heard(RoundOver(shown, 10, (0, 0, 0, 0), (0, 0, 0, 0)))
    for judge, number in (fresh, 1), (later, 2), (after_a_shuffle, 11):
        deal(judge, "9c", None, None, None, None, number=number, dealer="8d")
    costs = [cost_of_staying(judge) for judge in (fresh, later, after_a_shuffle)]

    assert costs[0] == costs[2] != costs[1]


def test_a_swap_is_not_judged() -> None:
    judge = new_judge(0)
    deal(judge, "7c", dealer="As")

    assert judge.judged(Swap("7c", "As"), "keep") is None


# ---- Where others still have to bid


def test_nothing_is_said_before_others_were_seen_to_answer() -> None:
    judge = new_judge(0)
    rounds(judge, 9, (10, "quit", "quit", "quit"), ("7c", None, None, None))
    deal(judge, "9c", None, None, None, None, dealer="8d")

    for say in "quit", 10:
        assert judge.judged(asked("9c", (None,) * 4), say) is None


def test_one_whom_nobody_follows_wins_what_the_others_left() -> None:
    judge = new_judge(0)
    rounds(judge, 12, (10, "quit", "quit", "quit"), ("7c", None, None, None))
    deal(judge, "9c", None, None, None, None, dealer="8d")
    question = asked("9c", (None,) * 4)

    # Six for a lone stayer (H9), instead of two that it costs to quit.
    quits = not_none(judge.judged(question, "quit"))
    stays = not_none(judge.judged(question, 10))
    assert (quits.cost, quits.best, quits.grade) == (8, 10, 3)
    assert (stays.cost, stays.best, stays.grade) == (0, 10, 0)
    assert quits.error == stays.error == pytest.approx(8 / 13)
    # Nobody has answered to a bid of 2.
    assert judge.judged(question, 2) is None


def test_those_who_follow_hold_what_they_have_shown() -> None:
    judge = new_judge(1)
    rounds(judge, 12, (8, 8, 8, 10), ("As", "7c", "Ks", "2c"))
    deal(judge, "Kd", None, None, None, None, dealer="8d")
    bid(judge, 8)

    # All come along, with an ace and a two among them: 10 are lost for sure.
    judgement = not_none(judge.judged(asked("Kd", (8, None, None, None), 8), 8))

    assert (judgement.cost, judgement.best, judgement.grade) == (8, "quit", 3)


def test_one_who_has_swapped_holds_what_it_took() -> None:
    judge = new_judge(2)
    for number in range(1, 13):
        deal(judge, "7c", "Kc", None, None, "6h", number=number, dealer="As")
        bid(judge, 10, "quit", 10, 10)
        judge.heard(RoundOver(("As", None, "7c", "Kc"), 10, (0, 0, 0, 0), (0, 0, 0, 0)))
    deal(judge, "9c", "2d", None, None, "6h", number=13, dealer="As")
    bid(judge, 10, "quit")

    # The last seat has always stayed after a swap, now with the two. Its kings were no lower.
    judgement = not_none(judge.judged(asked("9c", (10, "quit", None, None), 10), 10))

    assert (judgement.best, judgement.cost) == ("quit", 8)


def test_nothing_is_said_where_a_hidden_card_was_never_shown() -> None:
    judge = new_judge(2)
    rounds(judge, 12, ("quit", "quit", 10, "quit"), (None, None, "7c", None))
    deal(judge, "9c", None, None, None, None, dealer="8d")
    bid(judge, 10, "quit")

    assert judge.judged(asked("9c", (10, "quit", None, None), 10), 10) is None


def test_an_estimate_that_is_not_sure_is_level() -> None:
    judge = new_judge(2)
    for number in range(1, 21):
        deal(judge, "9c", None, None, None, None, number=number, dealer="8d")
        bid(judge, 10, "quit", 10, "quit" if number % 2 else 10)
        fourth = None if number % 2 else "2c"
        judge.heard(RoundOver(("As", None, "9c", fourth), 10, (0, 0, 0, 0), (0, 0, 0, 0)))
    deal(judge, "9c", None, None, None, None, dealer="8d")
    bid(judge, 10, "quit")
    question = asked("9c", (10, "quit", None, None), 10)

    # Two points are won if the last seat quits, and ten are lost if it stays.
    stays = not_none(judge.judged(question, 10))
    quits = not_none(judge.judged(question, "quit"))

    assert 0 < stays.cost < 5
    assert not_none(stays.error) > 1
    assert (stays.is_level, stays.grade) == (True, 0)
    assert (quits.cost, quits.is_level) == (0, False)
    assert judge.judged(question, 10) == stays, "what was judged before makes no difference"
    judge.decided(question, 10)
    assert judge.judged(question, 10) != stays, "each decision has draws of its own"


def test_the_last_speaker_makes_no_mistake_that_the_cards_shown_before_deny() -> None:
    judge = new_judge(3)
    rounds(judge, 12, (10, 10, "quit", "quit"), ("As", "2c", None, None))
    deal(judge, "Ks", None, None, None, None, dealer="8d")
    bid(judge, 10, 10, "quit")

    judgement = not_none(judge.judged(asked("Ks", (10, 10, "quit", None), 10), "quit"))

    # Against any two cards a king should stay; but these two have always had the ace and the two.
    assert (judgement.best, judgement.is_level, judgement.grade) == (10, True, 0)
    assert judgement.cost > 1


# ---- Whole matches


def test_a_bot_has_no_value_among_four() -> None:
    analysing = not_none(GAME.analysing)
    reason = not_none(analysing.refuses(HighLowSettings()))

    assert reason.startswith("a bot has no value at a table of four")
    with pytest.raises(NoAnalysis, match="at a table of four"):
        analysing.probe(HighLowSettings(), 1, [])


# ---- Charts


def cell(chart: Chart, row: str, column: str) -> ChartCell:
    return not_none(chart.cells[chart.rows.index(row)][chart.columns.index(column)])


def counted() -> tuple[Chart, Chart]:
    meter = not_none(GAME.habits)()
    meter.begin(HighLowSettings(), 2)
    meter.heard(Dealt(1, 1, 0, "Tc", "As"))
    meter.decided(Swap("Tc", "As"), "swap")
    meter.decided(Swap("Th", "2d"), "keep")
    meter.decided(Swap("Th", "8c"), "keep")
    for bid in "quit", 4, 4, 10:
        meter.decided(Bid("Kd", "8c", (None,) * 4, ("quit", 2, 4, 6, 8, 10)), bid)
    swaps, bids = meter.charts()
    return swaps, bids


def test_swaps_are_counted_by_card_and_by_what_there_is_to_take() -> None:
    swaps, _ = counted()
    nearer, other = swaps.columns

    assert (cell(swaps, "10", nearer).count, cell(swaps, "10", nearer).of) == (1, 2)
    assert (cell(swaps, "10", other).count, cell(swaps, "10", other).of) == (0, 1)


def test_bids_are_counted_by_card() -> None:
    _, bids = counted()
    king = {column: cell(bids, "K", column).share for column in bids.columns}

    assert king == {"quit": 0.25, "2": 0, "4": 0.5, "6": 0, "8": 0, "10": 0.25}
    assert cell(bids, "K", "4").of == 4
    assert cell(bids, "A", "4") == ChartCell()
