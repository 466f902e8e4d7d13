"""The luck of a round of three card poker, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from statistics import fmean

import pytest

import arena
from arena.games.rules import LuckRound, TellSeat
from arena.games.three_card_poker.luck import (
    BEST_PLAY,
    DEALERS_HANDS,
    HANDS,
    PlayValues,
    ThreeCardPokerLuckMeter,
    play_values,
)
from arena.records.luck import luck_of
from bots.three_card_poker import Q64, Always
from protocol.cards import PACK
from protocol.three_card_poker import (
    FOLDED,
    Hand,
    RoundOver,
    ThreeCardPokerSettings,
    outcome_of_play,
)

JUNK: Hand = ("7s", "5h", "2d")
DEALER: Hand = ("Qc", "3c", "2h")
EACH_KICKER = pytest.mark.parametrize("pair_kicker", [False, True])


def dealers_hands(hand: Hand) -> list[Hand]:
    return [*combinations([card for card in PACK if card not in hand], 3)]


def measured_round(hand: Hand, dealer: Hand, outcome: int, ante: int = 7) -> LuckRound:
    meter = ThreeCardPokerLuckMeter(ThreeCardPokerSettings())
    meter.told(TellSeat(0, RoundOver(hand, dealer, ante, outcome, 1000)))
    (played,) = meter.rounds
    return played


@pytest.mark.stats
@EACH_KICKER
@pytest.mark.parametrize("hand", ["7s 5h 2d", "Qs 6h 4d", "9s 5d 9h", "As Ah Ad", "4c 3c 2c"])
def test_T6_playing_a_hand_brings_what_all_hands_of_the_dealer_pay(
    hand: str, pair_kicker: bool
) -> None:
    a, b, c = hand.split()
    dealers = dealers_hands((a, b, c))
    paid = sum(outcome_of_play((a, b, c), dealer, pair_kicker) for dealer in dealers)

    assert len(dealers) == DEALERS_HANDS
    assert play_values(pair_kicker).total((a, b, c)) == paid


@pytest.mark.stats
@EACH_KICKER
def test_all_hands_played_best_bring_the_value_of_the_game(pair_kicker: bool) -> None:
    values = PlayValues(pair_kicker)
    totals = [values.total(hand) for hand in combinations(PACK, 3)]
    best = sum(max(total, FOLDED * DEALERS_HANDS) for total in totals)

    assert len(totals) == HANDS
    assert float(Fraction(best, HANDS * DEALERS_HANDS)) == BEST_PLAY
    assert pytest.approx(-0.086580, abs=1e-6) == BEST_PLAY
    assert sum(totals) / HANDS / DEALERS_HANDS == pytest.approx(-0.1294, abs=1e-4)


@pytest.mark.stats
def test_the_dealers_hand_is_no_luck_on_average() -> None:
    hand: Hand = ("Qs", "6h", "4d")
    luck = [
        measured_round(hand, dealer, outcome_of_play(hand, dealer)).luck[0]
        for dealer in dealers_hands(hand)
    ]

    of_hand = max(play_values(False).mean(hand), FOLDED) - BEST_PLAY
    assert fmean(luck) == pytest.approx(of_hand)
    assert min(luck) < of_hand - 0.5
    assert max(luck) > of_hand + 0.5


def test_T6_after_a_fold_the_dealers_hand_is_no_luck() -> None:
    luck = {measured_round(JUNK, dealer, FOLDED).luck for dealer in dealers_hands(JUNK)[::100]}

    assert luck == {(FOLDED - BEST_PLAY,)}


def test_a_hand_that_should_be_folded_is_a_mistake_and_no_luck() -> None:
    folded = measured_round(JUNK, DEALER, FOLDED)
    played = measured_round(JUNK, DEALER, outcome_of_play(JUNK, DEALER))

    mistake = FOLDED - play_values(False).mean(JUNK)
    assert mistake > 0.1
    assert folded.gains[0] - folded.luck[0] == pytest.approx(BEST_PLAY)
    assert played.gains[0] - played.luck[0] == pytest.approx(BEST_PLAY - mistake)


def test_gains_and_luck_are_counted_in_antes() -> None:
    assert measured_round(JUNK, DEALER, -2, ante=1) == measured_round(JUNK, DEALER, -2, ante=50)


@EACH_KICKER
def test_who_plays_best_brings_the_value_of_the_game_in_every_round(pair_kicker: bool) -> None:
    settings = {"rounds": 200, "pair_kicker": pair_kicker, "stake": 10_000}
    best = luck_of(arena.play("three_card_poker", [Q64()], settings=settings, seed=1).record)
    always = luck_of(arena.play("three_card_poker", [Always()], settings=settings, seed=1).record)

    assert len(best.rounds) == len(always.rounds) == 200
    assert {round(played.gains[0] - played.luck[0], 9) for played in best.rounds} == {
        round(BEST_PLAY, 9)
    }
    assert always.gains[0] - always.luck[0] < best.gains[0] - best.luck[0]
