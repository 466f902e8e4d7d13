"""Gin rummy's interface, call by call, and how strong its house bots are."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import pytest

import arena
from bots.gin_rummy import Expert, Patient, PlayerStrategy, Random, Simple
from bots.strategy import BaseStrategy
from protocol.cards import Card
from protocol.gin_melds import Meld
from protocol.messages import Ending

# Seat 0 lacks 4h for gin, seat 1 holds loose high cards.
MINE = "As 2s 3s 7h 7d 7c Jc Qc Kc 5h".split()
OTHER = "9s 9h 4d 6d 8c Th Js 2h Kd Ks".split()
DECK = [*MINE, *OTHER, "Qd", "Qh", "3c", "5d", "8s", "Tc", "4h"]


class NotesGinCalls(PlayerStrategy):
    """Writes down which calls come, and plays by the base's defaults."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.calls.append(("reset",))

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        self.calls.append(("receive_initial_hand", tuple(hand)))

    def will_take_top_discard(self, card: Card) -> bool:
        self.calls.append(("will_take_top_discard", card))
        return super().will_take_top_discard(card)

    def take_turn(self, drawn: Card) -> Card:
        self.calls.append(("take_turn", drawn))
        return super().take_turn(drawn)

    def knock(self) -> bool:
        self.calls.append(("knock",))
        return True

    def get_melds(self) -> tuple[Meld, ...] | None:
        self.calls.append(("get_melds",))
        return None

    def opponent_end_turn_feedback(
        self, drew_discard: bool, previous_discard_top: Card, opponent_discarded: Card
    ) -> None:
        call = "opponent_end_turn_feedback"
        self.calls.append((call, drew_discard, previous_discard_top, opponent_discarded))

    def opponent_end_round_feedback(
        self, opponent_hand: tuple[Card, ...], opponent_melds: tuple[Meld, ...]
    ) -> None:
        self.calls.append(("opponent_end_round_feedback", opponent_hand, opponent_melds))


def notes() -> tuple[NotesGinCalls, NotesGinCalls]:
    """Both seats' calls in one round, which seat 0 ends by a knock with 5 in its first turn."""
    first, second = NotesGinCalls(), NotesGinCalls()
    first.calls.clear()
    second.calls.clear()
    result = arena.play("gin_rummy", [first, second], settings={"max_rounds": 1}, decks=[DECK])

    assert result.termination.kind is Ending.COMPLETED
    return first, second


def test_the_calls_of_the_seat_that_knocks() -> None:
    first, _ = notes()

    assert first.calls == [
        ("reset",),
        ("receive_initial_hand", tuple(MINE)),
        ("will_take_top_discard", "Qd"),
        ("take_turn", "Qh"),  # both declined: the starter draws from the stock (G5)
        ("knock",),
        ("get_melds",),
        ("opponent_end_round_feedback", tuple(OTHER), first.calls[-1][2]),
    ]


def test_the_calls_of_the_seat_that_is_knocked() -> None:
    _, second = notes()

    assert second.calls == [
        ("reset",),
        ("receive_initial_hand", tuple(OTHER)),
        ("will_take_top_discard", "Qd"),
        ("opponent_end_turn_feedback", False, "Qd", "Qh"),
        ("get_melds",),
        (
            "opponent_end_round_feedback",
            tuple(MINE),
            (("7h", "7d", "7c"), ("As", "2s", "3s"), ("Jc", "Qc", "Kc")),
        ),
    ]


def test_the_hand_has_eleven_cards_in_a_turn_and_ten_after_it() -> None:
    class CountsCards(NotesGinCalls):
        def take_turn(self, drawn: Card) -> Card:
            assert len(self.hand) == 11
            assert self.hand[-1] == drawn
            return super().take_turn(drawn)

        def knock(self) -> bool:
            assert len(self.hand) == 10
            return super().knock()

    result = arena.play("gin", [CountsCards(), CountsCards()], settings={"games": 5}, seed=1)

    assert result.termination.kind is Ending.COMPLETED


def test_a_seat_knows_where_it_sits() -> None:
    first, second = notes()

    assert (first.seat, second.seat) == (0, 1)


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


def share(bot: BaseStrategy, other: BaseStrategy, games: int, seed: int) -> tuple[float, float]:
    """The share of games that a bot wins, and its standard error."""
    bot.seed(seed)
    other.seed(seed + 1)
    result = arena.play("gin", [bot, other], settings={"games": games}, seed=seed)

    assert result.termination.kind is Ending.COMPLETED
    won = result.scores[0] / games
    return won, sqrt(max(won * (1 - won), 1 / games) / games)


@pytest.mark.stats
@pytest.mark.parametrize(
    ("bot", "other", "games", "least"), [(Expert, Simple, 1000, 0.7), (Simple, Random, 400, 0.95)]
)
def test_G16_a_strong_bot_wins_at_least_that_share_of_games(
    bot: type[BaseStrategy], other: type[BaseStrategy], games: int, least: float
) -> None:
    won, _ = share(bot(), other(), games=games, seed=21)

    assert won >= least


@pytest.mark.stats
def test_G16_patient_differs_from_simple_by_more_than_four_errors() -> None:
    won, error = share(Patient(), Simple(), games=1000, seed=23)

    assert abs(won - 0.5) > 4 * error


@pytest.mark.stats
def test_G16_expert_beats_patient_by_more_than_four_errors() -> None:
    won, error = share(Expert(), Patient(), games=400, seed=24)

    assert won - 0.5 > 4 * error
