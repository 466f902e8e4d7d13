"""What single decisions in Ace-King-Queen give away."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import pytest

from arena.games.ace_king_queen.values import EQUILIBRIUM, value
from arena.games.analysis import Judge, Judgement
from arena.games.catalogue import GAMES
from protocol.ace_king_queen import AceKingQueenSettings, Card, HandOver, Open, Respond
from tests.support.not_none import not_none


def new_judge() -> Judge:
    judging = not_none(GAMES["ace_king_queen"].judging)
    return judging.judge(AceKingQueenSettings(), 0)


def judged(card: Card, answer: str) -> Judgement:
    asked = Open(1, card) if answer in ("bet", "check") else Respond(1, card)
    return not_none(new_judge().judged(asked, answer))


@pytest.mark.parametrize(
    ("card", "answer", "best", "cost", "grade"),
    [
        ("A", "check", "bet", 1 / 6, 1),  # one king in three would have called
        ("K", "bet", "check", 1 / 2, 2),  # the ace calls, and the queen loses as much as it would
        ("Q", "call", "fold", 1, 3),  # only the ace bets
        ("A", "fold", "call", 3, 3),
    ],
)
def test_a_mistake_costs_what_the_equilibrium_gains(
    card: Card, answer: str, best: str, cost: float, grade: int
) -> None:
    assert judged(card, answer) == Judgement(cost=cost, best=best, unit="chips", grade=grade)


@pytest.mark.parametrize(
    ("card", "answer"), [("A", "bet"), ("K", "check"), ("A", "call"), ("Q", "fold")]
)
def test_the_best_answer_costs_nothing(card: Card, answer: str) -> None:
    assert judged(card, answer) == Judgement(cost=0, best=answer, unit="chips")


@pytest.mark.parametrize(
    ("card", "answer"), [("Q", "bet"), ("Q", "check"), ("K", "call"), ("K", "fold")]
)
def test_where_the_equilibrium_mixes_both_answers_are_level(card: Card, answer: str) -> None:
    level = Judgement(cost=0, best=answer, unit="chips", is_level=True)

    assert judged(card, answer) == level


@pytest.mark.parametrize("shares", [*product((0, 1), repeat=6)])
def test_what_decisions_cost_against_the_equilibrium_is_what_it_wins(
    shares: tuple[int, ...],
) -> None:
    total = Fraction(0)
    for mine, other in permutations("AKQ", 2):
        total += Fraction(1, 12) * cost_of(mine, "bet" if shares["AKQ".index(mine)] else "check")
        bet = EQUILIBRIUM["AKQ".index(other)]
        answer = "call" if shares[3 + "AKQ".index(mine)] else "fold"
        total += Fraction(1, 12) * bet * cost_of(mine, answer)

    assert total == value(EQUILIBRIUM, shares)


def cost_of(card: str, answer: str) -> Fraction:
    return Fraction(judged(card, answer).cost).limit_denominator(100)  # type: ignore[arg-type]


def test_what_happened_in_other_hands_changes_no_judgement() -> None:
    judge = new_judge()
    judge.heard(HandOver(1, 1, ("A", "Q"), "bet", "call", (2, -2), (2, -2)))

    assert judge.judged(Open(2, "K"), "bet") == judged("K", "bet")
