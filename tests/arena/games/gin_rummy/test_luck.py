"""The luck of gin rummy: true means, by enumeration and by play."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from random import Random
from statistics import fmean, stdev, variance

import pytest

from arena.games.gin_rummy.luck import (
    TERMS,
    GinRummyMeter,
    at_stake,
    deadwoods_with,
    draw_terms,
    win_chance,
)
from arena.games.gin_rummy.rules import GAME
from arena.games.rules import EVERYONE, AskSeat, TellSeat
from protocol.cards import PACK
from protocol.gin_melds import CARD_BITS, card_mask, discard_deadwoods
from protocol.gin_rummy import (
    Dealt,
    GameOver,
    GinRummySettings,
    RoundOver,
    Turn,
    TurnAnswer,
    turn_answers,
)
from tests.support.long import sized
from tests.tools.luck_tables import MeasuredTable, samples

SETTINGS = GinRummySettings()


def told_deal(
    first: Sequence[str], second: Sequence[str], upcard: str, *, starter: int = 0
) -> list[TellSeat]:
    """What both seats hear of a deal."""
    return [
        TellSeat(seat, Dealt(1, 1, starter, tuple(hand), upcard))
        for seat, hand in enumerate((first, second))
    ]


def luck_of(meter: GinRummyMeter, winner: int | None = 0) -> float:
    """Seat 0's luck in a game that ends now."""
    meter.told(TellSeat(EVERYONE, GameOver(winner, (0, 0), (0, 0))))
    return meter.rounds[-1].luck[0]


def dealt_meter(cards: Sequence[str], *, starter: int = 0) -> GinRummyMeter:
    meter = GinRummyMeter(SETTINGS)
    for told in told_deal(cards[:10], cards[10:20], cards[20], starter=starter):
        meter.told(told)
    return meter


def drawing(hand: Sequence[str], card: str, seat: int = 0) -> AskSeat:
    eleven = (*hand, card)
    return AskSeat(seat, Turn(card, eleven, turn_answers(eleven)))


def shuffled(seed: int) -> list[str]:
    return Random(seed).sample(PACK, 52)


# ---- Each mean is the true one


@pytest.mark.parametrize("seed", range(3))
def test_luck_of_the_up_card_is_0_in_the_mean_over_all_that_may_be(seed: int) -> None:
    deck = shuffled(seed)
    hands, unseen = deck[:20], deck[20:]
    lucks = [luck_of(dealt_meter([*hands, upcard])) for upcard in unseen]
    swapped = [*hands[10:], *hands[:10]]
    others = [luck_of(dealt_meter([*swapped, upcard])) for upcard in unseen]

    assert len(set(lucks)) > 1
    assert fmean(lucks + others) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_two_hands_that_change_seats_change_the_luck_of_the_deal(seed: int) -> None:
    deck = shuffled(seed)

    def of_the_deal(cards: Sequence[str]) -> float:
        return fmean(luck_of(dealt_meter([*cards, upcard])) for upcard in deck[20:])

    mine, theirs = of_the_deal(deck[:20]), of_the_deal([*deck[10:20], *deck[:10]])

    assert mine != 0
    assert mine == pytest.approx(-theirs, abs=1e-12)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_luck_of_a_draw_is_0_in_the_mean_over_all_cards_of_the_stock(seed: int, seat: int) -> None:
    deck = shuffled(seed)
    hand = deck[10 * seat : 10 * seat + 10]
    without = luck_of(dealt_meter(deck))
    lucks = []
    for card in deck[21:]:
        meter = dealt_meter(deck)
        meter.asked(drawing(hand, card, seat))
        lucks.append(luck_of(meter) - without)

    assert len(set(lucks)) > 5
    assert fmean(lucks) == pytest.approx(0, abs=1e-12)


def test_a_later_draw_is_compared_with_the_cards_that_are_still_there() -> None:
    deck = shuffled(5)
    first, hand = deck[21], deck[:10]

    def before() -> GinRummyMeter:
        meter = dealt_meter(deck)
        meter.asked(drawing(hand, first))
        meter.answered(drawing(hand, first), TurnAnswer(first))
        return meter

    without, lucks = luck_of(before()), []
    for card in deck[22:]:
        meter = before()
        meter.asked(drawing(deck[10:20], card, 1))
        lucks.append(luck_of(meter) - without)

    assert len(set(lucks)) > 5
    assert fmean(lucks) == pytest.approx(0, abs=1e-12)


def test_a_card_from_the_pile_is_no_luck() -> None:
    deck = shuffled(7)
    meter = dealt_meter(deck)
    meter.asked(drawing(deck[:10], deck[20]))

    assert luck_of(meter) == luck_of(dealt_meter(deck))


def test_the_hand_of_a_seat_is_what_it_has_after_its_discard() -> None:
    deck = shuffled(8)
    kept, card = deck[:9], deck[21]
    meter, same = dealt_meter(deck), dealt_meter([*kept, card, *deck[10:]])
    meter.asked(drawing(deck[:10], card))
    meter.answered(drawing(deck[:10], card), TurnAnswer(deck[9]))
    for each in (meter, same):
        each._sums = [0.0] * len(TERMS)  # only the draw after it is compared
        each._stock = card_mask(deck[22:])
        each.asked(drawing([*kept, card], deck[30]))

    assert luck_of(meter) == luck_of(same) != 0


# ---- What the terms are


@pytest.mark.parametrize("seed", range(20))
def test_deadwood_with_a_card_is_that_after_the_best_discard(seed: int) -> None:
    deck = shuffled(seed)
    # Half of the hands have many melds.
    hand = sorted(deck[:10]) if seed % 2 else sorted(PACK, key=lambda card: card[0])[seed:][:10]
    cards = [card for card in PACK if card not in hand]

    found = deadwoods_with(card_mask(hand), [CARD_BITS[card] for card in cards])

    assert found == [min(discard_deadwoods((*hand, card))) for card in cards]


def test_near_gin_the_card_that_makes_it_is_the_luckiest() -> None:
    hand = ["2s", "3s", "4s", "7h", "7d", "7c", "Js", "Jh", "Jd", "9c"]
    others = ["Ks", "Kh", "Qd", "Qc", "9s", "8h", "6d", "6c", "5h", "Ad"]
    dealt, lucks = luck_of(dealt_meter([*hand, *others, "8s"])), {}
    for card in PACK:
        if card not in (*hand, *others, "8s"):
            meter = dealt_meter([*hand, *others, "8s"])
            meter.asked(drawing(hand, card))
            lucks[card] = luck_of(meter) - dealt
    best = sorted(lucks, key=lambda card: -lucks[card])[:4]

    assert set(best) == {"As", "5s", "7s", "Jc"}
    assert lucks["Jc"] > 0 > lucks["Kc"]


@pytest.mark.parametrize(
    ("other", "sign"),
    [
        ("2h 4h 6h 8d Td Qd Ac 3c 5c Kh", 1),
        ("2h 3h 4h 8d 9d Td 5c 6c 7c 6d", 0),  # the same deadwood
        ("2h 3h 4h 8d 9d Td 5c 6c 7c Ad", -1),  # an undercut
    ],
)
def test_a_knock_counts_as_what_it_would_change_now(other: str, sign: int) -> None:
    hand = "2s 3s 4s 7h 7d 7c Js Jh Jd Kc"
    [terms] = draw_terms(
        card_mask(hand.split()), card_mask(other.split()), [CARD_BITS["6s"]], (50, 50)
    )
    knock = dict(zip(list(TERMS)[-len(terms) :], terms, strict=True))["knock"]

    assert (knock > 0) - (knock < 0) == sign


def test_a_seat_that_needs_nothing_has_won() -> None:
    assert win_chance(0, 30) == 1
    assert win_chance(-5, 1) == 1
    assert win_chance(30, 0) == 0


@pytest.mark.parametrize("needs", [(50, 50), (10, 50), (1, 1), (700, 900)])
def test_the_chances_of_both_seats_are_1_in_sum(needs: tuple[int, int]) -> None:
    mine, theirs = needs

    assert win_chance(mine, theirs) + win_chance(theirs, mine) == pytest.approx(1)
    assert at_stake(mine, theirs) == pytest.approx(at_stake(theirs, mine))


def test_more_is_at_stake_near_the_end_of_a_level_game() -> None:
    assert at_stake(20, 20) > at_stake(50, 50) > at_stake(50, 5) > 0


# ---- Games


def scored(meter: GinRummyMeter, scores: tuple[int, int]) -> None:
    """End a round with these scores."""
    nothing: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    news = RoundOver(None, False, nothing, ((), ()), (), (0, 0), scores, "stock")
    meter.told(TellSeat(EVERYONE, news))


def test_luck_weighs_by_the_score_and_a_new_game_begins_at_0() -> None:
    deck = shuffled(3)

    def next_deal(meter: GinRummyMeter) -> float:
        for told in told_deal(deck[:10], deck[10:20], deck[20]):
            meter.told(told)
        return luck_of(meter)

    at_first, level, apart = (GinRummyMeter(SETTINGS) for _ in range(3))
    scored(level, (45, 45))
    scored(apart, (45, 0))
    usual, late = next_deal(at_first), next_deal(level)

    assert late / usual == pytest.approx(at_stake(5, 5) / at_stake(50, 50))
    assert next_deal(apart) / usual == pytest.approx(at_stake(5, 50) / at_stake(50, 50))
    assert next_deal(level) == usual
    assert len(level.rounds) == 2


@pytest.mark.parametrize(
    ("winner", "gains"), [(0, (1.0, 0.0)), (1, (0.0, 1.0)), (None, (0.0, 0.0))]
)
def test_a_game_gains_1_for_the_winner_and_the_luck_is_0_in_sum(
    winner: int | None, gains: tuple[float, float]
) -> None:
    meter = dealt_meter(shuffled(4))
    luck_of(meter, winner)

    assert meter.rounds[0].gains == gains
    assert sum(meter.rounds[0].luck) == 0 != meter.rounds[0].luck[0]


def test_a_match_has_the_luck_of_each_game_and_what_each_won() -> None:
    table = MeasuredTable("gin_rummy", ("expert", "simple"), {"games": 3, "target": 20}, True)
    values = samples(table, 11)

    assert len(values) == 3
    assert all(one.gain + other.gain == 1 for one, other in values)
    assert all(one.luck == -other.luck != 0 for one, other in values)


@pytest.mark.stats
def test_luck_is_0_in_the_mean_and_explains_a_third_of_the_games() -> None:
    """Games that the weights were not fitted on."""
    table = MeasuredTable("gin_rummy", ("simple", "simple"), {"games": 10}, per_round=True)
    values = [value[0] for seed in range(sized(15, 5)) for value in samples(table, 500 + seed)]
    luck = [one.luck for one in values]

    assert abs(fmean(luck)) < 3.5 * stdev(luck) / sqrt(len(luck))
    assert variance([one.without for one in values]) < 0.7 * variance([one.gain for one in values])


def test_the_game_says_how_its_luck_is_measured() -> None:
    assert GAME.luck is not None
    assert GAME.luck.unit == "game"
    assert GAME.luck.refuses(SETTINGS) is None
    assert isinstance(GAME.luck.meter(SETTINGS), GinRummyMeter)
