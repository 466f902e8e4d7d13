"""The luck of high-low: true means, by enumeration and by play."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import sqrt
from random import Random
from statistics import fmean, stdev, variance

import pytest

from arena.games.high_low.luck import TABLES, HighLowMeter, deal_luck
from arena.games.high_low.rules import GAME, payoffs
from arena.games.rules import EVERYONE, TellSeat
from protocol.cards import PACK
from protocol.high_low import Dealt, HighLowSettings, Points, RoundOver
from tests.support.long import sized
from tests.tools.luck_tables import LuckOfSeat, MeasuredTable, samples

NEVER = 1_000_000_000
SETTINGS = HighLowSettings()


def round_of(
    meter: HighLowMeter,
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


def meter_after(rounds: int, *, gap: int = 100) -> HighLowMeter:
    """A meter that has heard so many rounds, in which the seats did not gain alike."""
    meter = HighLowMeter(HighLowSettings(gap=gap), payoffs)
    scores = [0, 0, 0, 0]
    for number in range(rounds):
        cards = Random(number).sample(PACK, 5)
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
    five = Random(seed).sample(PACK, 5)
    tables = [deal_luck(each[:4], each[4], starter, payoffs) for each in rotations(five)]

    for seat in range(4):
        for table in range(len(TABLES)):
            assert sum(each[seat][table] for each in tables) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("rounds", [0, 1, 47])
@pytest.mark.parametrize("gap", [100, 10, NEVER])
def test_luck_is_0_in_the_mean_over_the_rotations_whatever_has_been(rounds: int, gap: int) -> None:
    five = Random(99).sample(PACK, 5)
    lucks = [
        round_of(meter_after(rounds, gap=gap), cards, (2, 2, -2, -2)) for cards in rotations(five)
    ]

    assert len(set(lucks)) == 4
    for seat in range(4):
        assert fmean(luck[seat] for luck in lucks) == pytest.approx(0, abs=1e-12)


def test_luck_does_not_depend_on_what_the_round_brought() -> None:
    cards = Random(5).sample(PACK, 5)

    assert round_of(meter_after(20), cards, (30, -10, -10, -10)) == round_of(
        meter_after(20), cards, (-2, -2, -2, 6)
    )


@pytest.mark.parametrize("seed", range(10))
def test_what_a_table_pays_is_0_in_sum(seed: int) -> None:
    five = Random(seed).sample(PACK, 5)

    for table in zip(*deal_luck(five[:4], five[4], 0, payoffs), strict=True):
        assert sum(table) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("rounds", [0, 30])
def test_luck_is_0_in_sum_although_every_seat_has_its_own_weights(rounds: int) -> None:
    luck = round_of(meter_after(rounds), Random(1).sample(PACK, 5), (0, 0, 0, 0))

    assert sum(luck) == pytest.approx(0, abs=1e-12)
    assert max(luck) > 0.5


# ---- What is luck


def test_where_nobody_quits_the_highest_and_the_lowest_card_win() -> None:
    luck = deal_luck(["As", "2c", "7h", "8d"], "8c", 0, payoffs)

    assert [one for one, _ in luck] == [10, 10, -10, -10]  # +10 or -10, and 0 in the mean


def test_the_other_table_stays_with_extreme_cards_alone() -> None:
    luck = deal_luck(["As", "6h", "7h", "8d"], "8c", 0, payoffs)

    assert [two for _, two in luck] == [6, -2, -2, -2]


def test_who_speaks_first_owes_nothing_to_its_card_if_the_dealer_card_is_the_best() -> None:
    """It takes the ace, or keeps the two, and wins in every rotation."""
    luck = deal_luck(["8d", "2c", "7h", "Kh"], "As", 0, payoffs)

    assert luck[0][0] == 0
    assert luck[1][0] > 0


def test_a_seat_that_follows_no_table_is_soon_left_with_little_luck() -> None:
    five = ["As", "2c", "7h", "8d", "8c"]
    meters = [HighLowMeter(HighLowSettings(gap=NEVER), payoffs) for _ in range(2)]
    random = Random(3)
    for _ in range(300):
        cards = random.sample(PACK, 5)
        round_of(meters[0], cards, (-2, -2, -2, -2))
        paid = [round(table[0]) for table in deal_luck(cards[:4], cards[4], 0, payoffs)]
        one, two, three, four = paid
        round_of(meters[1], cards, (one, two, three, four))

    indifferent, bold = (round_of(meter, five, (0, 0, 0, 0))[0] for meter in meters)

    assert abs(indifferent) < 0.2
    assert bold == pytest.approx(10, rel=0.1)


def test_luck_between_second_and_third_shortens_the_match_for_a_seat_that_loses() -> None:
    def heard(gap: int) -> HighLowMeter:
        meter = HighLowMeter(HighLowSettings(gap=gap), payoffs)
        for number in range(200):
            random = Random(number)
            round_of(meter, random.sample(PACK, 5), (3, 1, 1, -5), scores=(600, 60, 59, -719))
        return meter

    five = ["7h", "As", "8d", "9d", "8c"]  # the second seat is lucky
    ends, lasts = round_of(heard(100), five, (0,) * 4), round_of(heard(NEVER), five, (0,) * 4)

    assert lasts[1] > lasts[2]
    assert ends[3] > lasts[3]
    assert ends[0] < lasts[0]


# ---- Matches


def values_of(table: MeasuredTable, seeds: range) -> list[tuple[LuckOfSeat, ...]]:
    return list(chain.from_iterable(samples(table, seed) for seed in seeds))


def test_a_match_gains_what_each_scored() -> None:
    meters_of = MeasuredTable("high_low", ("timid", "bold", "bold", "counter"), {"max_shuffles": 1})
    [value] = values_of(meters_of, range(1, 2))

    assert sum(one.gain for one in value) == 0
    assert sum(one.luck for one in value) == pytest.approx(0, abs=1e-9)
    assert any(one.gain for one in value)


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


def test_the_game_says_how_its_luck_is_measured() -> None:
    assert GAME.luck is not None
    assert GAME.luck.unit == "point"
    assert GAME.luck.refuses(SETTINGS) is None
    assert isinstance(GAME.luck.meter(SETTINGS), HighLowMeter)
