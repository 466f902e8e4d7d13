"""Gin rummy's interface, call by call, and how strong its house bots are."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import pytest

import arena
from bots.gin_rummy import Expert, Patient, PlayerStrategy, Random, Simple
from protocol.cards import Card
from protocol.messages import Ending
from tests.support.long import sized

# Seat 0 lacks 4h for gin, seat 1 holds loose high cards.
MINE = "As 2s 3s 7h 7d 7c Jc Qc Kc 5h".split()
OTHER = "9s 9h 4d 6d 8c Th Js 2h Kd Ks".split()


def test_a_seat_knows_its_hand_and_where_it_sits() -> None:
    seats: list[int | None] = []

    class CountsCards(PlayerStrategy):
        def take_turn(self, drawn: Card) -> Card:
            assert len(self.hand) == 11
            assert self.hand[-1] == drawn
            return super().take_turn(drawn)

        def knock(self) -> bool:
            assert len(self.hand) == 10
            seats.append(self.seat)
            return True

    bots = [CountsCards(), CountsCards()]
    result = arena.play("gin", bots, settings={"games": 5}, seed=1)

    assert result.termination.kind is Ending.COMPLETED
    assert set(seats) == {0, 1}
    assert [bot.seat for bot in bots] == [0, 1]


def test_a_discard_that_is_not_held_is_the_referees_to_judge() -> None:
    class DiscardsWhatItHasNot(PlayerStrategy):
        def take_turn(self, drawn: Card) -> Card:
            return next(card for card in ("As", "Ah") if card not in self.hand)

    result = arena.play("gin", [DiscardsWhatItHasNot(), Simple()], settings={"starter": 0}, seed=1)

    assert (result.termination.kind, result.termination.seat) == (Ending.ILLEGAL, 0)


def test_simple_takes_what_lowers_its_deadwood_and_patient_what_melds() -> None:
    simple, patient = Simple(), Patient()
    simple.hand = patient.hand = list(OTHER)

    assert simple.will_take_top_discard("Ad")  # an ace for a king
    assert not patient.will_take_top_discard("Ad")
    assert patient.will_take_top_discard("9c")


def test_patient_knocks_with_gin_alone() -> None:
    patient = Patient()
    patient.hand = [*MINE[:-1], "Ah"]
    almost = patient.knock()
    patient.hand = [*MINE[:-1], "7s"]

    assert (almost, patient.knock()) == (False, True)


def test_expert_keeps_from_the_other_seat_what_it_wants() -> None:
    # Equal deadwood, but the other seat has taken two sevens: the third is dangerous.
    hand = "As 2s 3s 4h 5h 6h 7c Tc Kd 9d".split()
    expert = Expert()
    expert.reset()
    expert.hand = [*hand, "7s"]
    expert.top = "Qd"
    expert.receive_initial_hand(hand)
    expert.opponent_end_turn_feedback(True, "7h", "Qs")
    expert.opponent_end_turn_feedback(True, "7d", "Js")

    assert expert.take_turn("7s")[0] != "7"


@pytest.mark.stats
@pytest.mark.parametrize(
    "pair", [*combinations_with_replacement((Expert, Patient, Simple, Random), 2)]
)
def test_G15_competitions_draw_no_game_of_a_pair_that_knocks(pair: tuple[type[Any], ...]) -> None:
    games = sized(1000, 15)
    settings = {"games": games, "max_rounds": 25}
    result = arena.play("gin", [bot() for bot in pair], settings=settings, seed=25)

    assert (sum(result.scores) == games) is (pair != (Random, Random))  # it hardly ever can
