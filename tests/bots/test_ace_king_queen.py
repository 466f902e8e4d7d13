"""The interface for Ace-King-Queen strategies, and the house bots: their play and their gains."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import Any

import pytest

import arena
from bots.ace_king_queen import Bluffer, Honest, Learner, Nash, PlayerStrategy, Random
from protocol.ace_king_queen import Card, HandOver, Open, Respond


class AlwaysBets(PlayerStrategy):
    """Always bets and always calls."""

    def bet(self, card: Card) -> bool:
        return True

    def call(self, card: Card) -> bool:
        return True


class KeepsFeedback(AlwaysBets):
    """Keeps what it is fed back."""

    def __init__(self, bets: bool = True, calls: bool = True) -> None:
        self.bets, self.calls = bets, calls
        self.fed: list[tuple[object, ...]] = []

    def bet(self, card: Card) -> bool:
        return self.bets

    def call(self, card: Card) -> bool:
        return self.calls

    def feedback(self, *hand: object) -> None:
        self.fed.append(hand)


def meet(first: PlayerStrategy, second: PlayerStrategy, decks: list[str]) -> arena.MatchResult:
    return arena.play("akq", [first, second], settings={"hands": len(decks)}, decks=decks)


def share(bot: PlayerStrategy, question: Open | Respond, trials: int = 9000) -> float:
    """How often a bot bets or calls."""
    done = Counter(bot.decide(question) for _ in range(trials))
    return (done["bet"] + done["call"]) / trials


# ---- The interface


@pytest.mark.parametrize("will", [True, False])
def test_A3_A4_bet_and_call_say_whether_to(will: bool) -> None:
    bot = KeepsFeedback(bets=will, calls=will)

    assert bot.decide(Open(1, "K")) == ("bet" if will else "check")
    assert bot.decide(Respond(1, "K")) == ("call" if will else "fold")


def test_A9_after_a_reset_the_sides_are_right_again() -> None:
    bot = KeepsFeedback(bets=False)
    meet(bot, AlwaysBets(), ["AK"])
    bot.fed.clear()
    meet(KeepsFeedback(bets=False), bot, ["AK"])

    assert bot.fed == [("K", "A", "check", None, False)]


def test_a_strategy_that_overrides_nothing_plays_its_aces() -> None:
    bot = PlayerStrategy()

    assert [bot.decide(Open(1, card)) for card in ("A", "K", "Q")] == ["bet", "check", "check"]
    assert [bot.decide(Respond(1, card)) for card in ("A", "K", "Q")] == ["call", "fold", "fold"]
    bot.hear(HandOver(1, 0, ("A", "K"), "check", None, (1, -1), (1, -1)))  # and learns nothing


# ---- The house bots


@pytest.mark.parametrize(
    ("bot", "bets", "calls"),
    [
        (Honest(), {"A": 1, "K": 0, "Q": 0}, {"A": 1, "K": 0, "Q": 0}),
        (Bluffer(), {"A": 1, "K": 0, "Q": 1}, {"A": 1, "K": 1, "Q": 0}),
        (Nash(), {"A": 1, "K": 0, "Q": 1 / 3}, {"A": 1, "K": 1 / 3, "Q": 0}),
        (Random(), {"A": 1 / 2, "K": 1 / 2, "Q": 1 / 2}, {"A": 1 / 2, "K": 1 / 2, "Q": 1 / 2}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_how_often_the_bots_bet_and_call(
    bot: PlayerStrategy, bets: dict[Card, float], calls: dict[Card, float]
) -> None:
    bot.seed(1)
    error = 4 * sqrt(1 / 4 / 9000)
    for question, shares in ((Open, bets), (Respond, calls)):
        for card, expected in shares.items():
            tolerance = error if 0 < expected < 1 else 0
            assert abs(share(bot, question(1, card)) - expected) <= tolerance


def learner(*hands: tuple[Any, ...]) -> Learner:
    """A learner that has seen these hands a hundred times."""
    bot = Learner()
    bot.seed(1)
    for hand in hands * 100:
        bot.feedback(*hand)
    return bot


@pytest.mark.parametrize(
    ("hands", "question", "expected"),
    [
        pytest.param([("A", "K", "bet", "fold", True)], Open(1, "Q"), 1, id="bluffs who folds"),
        pytest.param([("A", "K", "bet", "call", True)], Open(1, "Q"), 0, id="not who calls"),
        pytest.param([("K", "Q", "bet", "fold", False)], Respond(1, "K"), 1, id="calls a bluffer"),
        pytest.param(
            [("K", "Q", "check", None, False), ("K", "A", "bet", "fold", False)],
            Respond(1, "K"),
            0,
            id="folds to who bets only aces",
        ),
        pytest.param(
            [("K", "A", "check", None, False)], Respond(1, "K"), 1, id="calls who checks aces"
        ),
    ],
)
def test_the_learner_answers_what_the_other_seat_does(
    hands: list[tuple[Any, ...]], question: Open | Respond, expected: float
) -> None:
    assert share(learner(*hands), question, 100) == expected


def test_A9_the_learner_forgets_when_it_is_reset() -> None:
    bot = learner(("A", "K", "bet", "call", True))
    bot.reset()

    assert 0 < share(bot, Open(1, "Q"), 200) < 1
