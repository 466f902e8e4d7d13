"""The luck of a deal of Ace-King-Queen, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest

from arena.games.ace_king_queen.luck import GAME_VALUE, AceKingQueenLuckMeter, deal_luck, deal_value
from arena.games.rules import EVERYONE, TellSeat
from protocol.ace_king_queen import CARDS, AceKingQueenSettings, Card, HandOver

DEALS: list[tuple[Card, Card]] = [*permutations(CARDS, 2)]


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
BOTS: dict[str, tuple[dict[Card, Fraction | int], dict[Card, Fraction | int]]] = {
    "honest": ({"A": 1, "K": 0, "Q": 0}, {"A": 1, "K": 0, "Q": 0}),
    "bluffer": ({"A": 1, "K": 0, "Q": 1}, {"A": 1, "K": 1, "Q": 0}),
    "nash": ({"A": 1, "K": 0, "Q": THIRD}, {"A": 1, "K": THIRD, "Q": 0}),
    "random": ({"A": HALF, "K": HALF, "Q": HALF}, {"A": HALF, "K": HALF, "Q": HALF}),
}
"""By house bot, how often it bets and calls with each card."""


def hands_of(first: str, second: str) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Each way a hand can go: its chance, what it brings the first bot, and the luck in that."""
    ways = []
    for bettor in 0, 1:
        bets = BOTS[(first, second)[bettor]][0]
        calls = BOTS[(second, first)[bettor]][1]
        for cards in DEALS:
            shown = 1 if CARDS.index(cards[0]) < CARDS.index(cards[1]) else -1
            folded = 1 if bettor == 0 else -1
            bet, call = Fraction(bets[cards[bettor]]), Fraction(calls[cards[1 - bettor]])
            ways += [
                (chance / 12, Fraction(gain), deal_luck(cards, bettor)[0])
                for chance, gain in (
                    (1 - bet, shown),
                    (bet * (1 - call), folded),
                    (bet * call, 2 * shown),
                )
            ]
    return ways


def luck_of_hand(cards: tuple[Card, Card], bettor: int) -> tuple[float, ...]:
    meter = AceKingQueenLuckMeter(AceKingQueenSettings())
    payoffs = (1, -1) if CARDS.index(cards[0]) < CARDS.index(cards[1]) else (-1, 1)
    meter.told(TellSeat(EVERYONE, HandOver(1, bettor, cards, "check", None, payoffs, payoffs)))
    (played,) = meter.rounds

    assert played.gains == payoffs
    return played.luck


def test_a_hand_is_worth_a_chip_in_eighteen_to_the_betting_player() -> None:
    assert Fraction(1, 18) == GAME_VALUE


@pytest.mark.parametrize(
    ("cards", "value"),
    [
        ("AK", Fraction(4, 3)),  # bet, and one king in three calls
        ("AQ", Fraction(1)),  # bet, and the queen folds
        ("KA", Fraction(-1)),
        ("KQ", Fraction(1)),
        ("QA", Fraction(-4, 3)),  # one queen in three bets, and the ace calls
        ("QK", Fraction(-2, 3)),  # a bluff is worth nothing, as one king in three calls
    ],
)
def test_A5_a_deal_is_worth_what_the_equilibrium_brings(
    cards: tuple[Card, Card], value: Fraction
) -> None:
    assert deal_value(cards[0], cards[1]) == value


@pytest.mark.parametrize("bettor", [0, 1])
@pytest.mark.parametrize("seat", [0, 1])
def test_A2_the_six_deals_are_no_luck_on_average_in_either_role(bettor: int, seat: int) -> None:
    assert sum(deal_luck(cards, bettor)[seat] for cards in DEALS) == 0


@pytest.mark.parametrize("bettor", [0, 1])
@pytest.mark.parametrize("cards", DEALS)
def test_a_meter_measures_the_cards_of_a_hand_in_their_role(
    cards: tuple[Card, Card], bettor: int
) -> None:
    luck = luck_of_hand(cards, bettor)

    value = deal_value(cards[bettor], cards[1 - bettor])
    assert luck == tuple(map(float, deal_luck(cards, bettor)))
    assert luck[bettor] == pytest.approx(float(value) - 1 / 18)
    assert luck[1 - bettor] == -luck[bettor]


@pytest.mark.parametrize(("first", "second"), [*permutations(BOTS, 2), ("nash", "nash")])
def test_no_deal_is_luck_on_average_and_without_it_a_third_of_the_variance_is_left(
    first: str, second: str
) -> None:
    ways = hands_of(first, second)
    mean = sum(chance * gain for chance, gain, _ in ways)
    variance = sum(chance * (gain - mean) ** 2 for chance, gain, _ in ways)
    left = sum(chance * (gain - luck - mean) ** 2 for chance, gain, luck in ways)

    assert sum(chance for chance, _, _ in ways) == 1
    assert sum(chance * luck for chance, _, luck in ways) == 0
    assert left / variance <= Fraction(32, 100)
