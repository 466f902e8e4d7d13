"""What ways to play, decisions and deals of Ace-King-Queen are worth, by an enumeration apart."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from random import Random

import pytest

import arena
from arena.games.ace_king_queen.evaluator import (
    EQUILIBRIUM,
    best_response,
    bettor_value,
    deal_luck,
    exploitability,
    exploited,
    frequencies,
    gains,
    losses,
    value,
)
from arena.games.analysis import ChartCell, Judgement, heard_by
from arena.games.catalogue import GAMES
from arena.games.rules import EVERYONE, TellSeat
from arena.records.seat_document import seat_match
from bots.ace_king_queen import Bluffer, Honest
from protocol.ace_king_queen import CARDS, AceKingQueenSettings, Card, HandOver, Open, Respond
from tests.support.not_none import not_none

GAME = GAMES["ace_king_queen"]
SETTINGS = AceKingQueenSettings()
THIRD, HALF = Fraction(1, 3), Fraction(1, 2)
Six = tuple[Fraction | int, ...]

# By house bot: bets with A, K, Q, and calls with A, K, Q.
BOTS: dict[str, Six] = {
    "honest": (1, 0, 0, 1, 0, 0),
    "bluffer": (1, 0, 1, 1, 1, 0),
    "nash": (1, 0, THIRD, 1, THIRD, 0),
    "random": (HALF,) * 6,
    "bets and calls all": (1,) * 6,
    "checks and folds all": (0,) * 6,
}
PURE: list[Six] = [*product((0, 1), repeat=6)]


def enumerated(first: Six, second: Six) -> Fraction:
    """What a hand brings the first, as a sum over all that can happen (rules A2 to A5)."""
    total = Fraction(0)
    for first_bets in True, False:
        bettor, caller = (first, second) if first_bets else (second, first)
        for cards in permutations("AKQ", 2):
            higher = 1 if cards[0] < cards[1] else -1  # A, K, Q is also the order of the alphabet
            bets = Fraction(bettor["AKQ".index(cards[0])])
            calls = Fraction(caller[3 + "AKQ".index(cards[1])])
            won = (1 - bets) * higher + bets * (1 - calls) * 1 + bets * calls * 2 * higher
            total += Fraction(1, 12) * (won if first_bets else -won)
    return total


def some_strategies(number: int) -> list[Six]:
    random = Random(20)
    return [tuple(Fraction(random.randint(0, 7), 7) for _ in range(6)) for _ in range(number)]


# ---- Ways to play


@pytest.mark.parametrize("first", BOTS.values(), ids=BOTS)
@pytest.mark.parametrize("second", BOTS.values(), ids=BOTS)
def test_the_value_of_a_pair_is_that_of_all_hands(first: Six, second: Six) -> None:
    assert value(first, second) == enumerated(first, second)


@pytest.mark.stats
@pytest.mark.parametrize("bot", [*BOTS.values(), *some_strategies(20)])
def test_no_pure_strategy_wins_more_than_the_best_response(bot: Six) -> None:
    best = max(enumerated(pure, bot) for pure in PURE)

    assert exploitability(bot) == best
    assert enumerated(best_response(bot), bot) == best
    assert sum(exploited(bot)) == best


@pytest.mark.parametrize(
    ("bot", "taken"),
    [
        ("nash", 0),
        ("honest", Fraction(1, 12)),
        ("bluffer", Fraction(1, 6)),
        ("bets and calls all", THIRD),
    ],
)
def test_an_opponent_that_knows_a_bot_takes_so_much(bot: str, taken: Fraction) -> None:
    assert exploitability(BOTS[bot]) == sum(exploited(BOTS[bot])) == taken


@pytest.mark.parametrize("bot", [*BOTS.values(), *some_strategies(20)])
def test_losses_sum_to_what_the_equilibrium_wins(bot: Six) -> None:
    assert sum(losses(bot)) == enumerated(EQUILIBRIUM, bot)
    assert all(loss >= 0 for loss in losses(bot))


def test_a_spot_is_exploited_as_far_as_it_does_something_to_others() -> None:
    only_calls_queens = (1, 0, THIRD, 1, THIRD, 1)
    random = BOTS["random"]

    # The only mistake: a twelfth a hand that calls, as two queens in three are not bet against.
    assert exploited(only_calls_queens) == [0, 0, 0, 0, 0, exploitability(only_calls_queens)]
    # Betting and calling do not depend on one another, so each role's parts sum to its own.
    assert sum(exploited(random)[:3]) == exploitability((*random[:3], *EQUILIBRIUM[3:]))


def test_gains_are_what_changing_one_spot_brings() -> None:
    for other in some_strategies(5):
        for spot, gain in enumerate(gains(other)):
            does = tuple(int(at == spot) for at in range(6))
            assert gain == enumerated(does, other) - enumerated((0,) * 6, other)


# ---- Decisions


def judged(card: Card, answer: str) -> Judgement:
    asked = Open(1, card) if answer in ("bet", "check") else Respond(1, card)
    return not_none(not_none(GAME.judging).judge(SETTINGS, 0).judged(asked, answer))


@pytest.mark.parametrize(
    ("card", "answer", "best", "cost", "grade", "is_level"),
    [
        ("A", "check", "bet", 1 / 6, 1, False),  # one king in three would have called
        ("K", "bet", "check", 1 / 2, 2, False),  # the queen loses as much as it would
        ("Q", "call", "fold", 1, 3, False),  # only the ace bets
        ("A", "fold", "call", 3, 3, False),
        ("A", "bet", "bet", 0, 0, False),
        ("K", "check", "check", 0, 0, False),
        ("A", "call", "call", 0, 0, False),
        ("Q", "fold", "fold", 0, 0, False),
        # The equilibrium mixes.
        ("Q", "bet", "bet", 0, 0, True),
        ("Q", "check", "check", 0, 0, True),
        ("K", "call", "call", 0, 0, True),
        ("K", "fold", "fold", 0, 0, True),
    ],
)
def test_a_decision_costs_what_the_equilibrium_gains(
    card: Card, answer: str, best: str, cost: float, grade: int, is_level: bool
) -> None:
    assert judged(card, answer) == Judgement(
        cost=cost, best=best, unit="chips", grade=grade, is_level=is_level
    )


@pytest.mark.parametrize("shares", PURE)
def test_what_decisions_cost_against_the_equilibrium_is_what_it_wins(shares: Six) -> None:
    total = Fraction(0)
    for mine, other in permutations("AKQ", 2):
        opening = "bet" if shares["AKQ".index(mine)] else "check"
        response = "call" if shares[3 + "AKQ".index(mine)] else "fold"
        bet = EQUILIBRIUM["AKQ".index(other)]
        for answer, often in (opening, 1), (response, bet):
            cost = judged(mine, answer).cost  # type: ignore[arg-type]
            total += Fraction(1, 12) * often * Fraction(cost).limit_denominator(100)

    assert total == value(EQUILIBRIUM, shares)


# ---- Deals

DEALS: list[tuple[Card, Card]] = [*permutations(CARDS, 2)]


@pytest.mark.parametrize(
    ("cards", "worth"),
    [
        ("AK", Fraction(4, 3)),  # bet, and one king in three calls
        ("AQ", Fraction(1)),  # bet, and the queen folds
        ("KA", Fraction(-1)),
        ("KQ", Fraction(1)),
        ("QA", Fraction(-4, 3)),  # one queen in three bets, and the ace calls
        ("QK", Fraction(-2, 3)),  # a bluff is worth nothing, as one king in three calls
    ],
)
@pytest.mark.parametrize("bettor", [0, 1])
def test_A5_a_deal_is_luck_as_far_as_the_equilibrium_brings_more(
    cards: str, worth: Fraction, bettor: int
) -> None:
    dealt: tuple[Card, Card] = (cards[0], cards[1]) if bettor == 0 else (cards[1], cards[0])  # type: ignore[assignment]
    lucks = deal_luck(dealt, bettor)
    meter = not_none(GAME.luck).meter(SETTINGS)
    meter.told(TellSeat(EVERYONE, HandOver(1, bettor, dealt, "check", None, (1, -1), (1, -1))))
    (played,) = meter.rounds

    assert bettor_value(EQUILIBRIUM[:3], EQUILIBRIUM[3:]) == Fraction(1, 18)
    assert lucks[bettor] == -lucks[1 - bettor] == worth - Fraction(1, 18)
    assert (played.gains, played.luck) == ((1, -1), tuple(map(float, lucks)))
    assert sum(deal_luck(each, bettor)[0] for each in DEALS) == 0


# ---- Charts


def test_bets_and_calls_are_counted_by_card() -> None:
    decks = map(list, ["QK", "AQ", "QA", "KQ", "AK", "QK"])
    result = arena.play(GAME.name, [Honest(), Bluffer()], settings={"hands": 6}, decks=decks)
    counted = []
    for seat in 0, 1:
        meter = not_none(GAME.habits)()
        heard_by(seat_match(result.record, seat), meter)
        counted.append([[(c.count, c.of) for c in row if c] for row in meter.charts()[0].cells])

    # In hands 1, 3 and 5 the honest bot is the betting player.
    assert counted[0] == [[(1, 1), (1, 1)], [(0, 0), (0, 1)], [(0, 2), (0, 0)]]
    assert counted[1] == [[(0, 0), (0, 0)], [(0, 1), (1, 1)], [(2, 2), (0, 0)]]


def test_the_equilibrium_is_marked_and_an_unseen_spot_has_no_share_and_no_cost() -> None:
    counts = [(1, 2), (0, 0), (0, 4), (3, 3), (1, 4), (0, 5)]
    chart, costly = frequencies(counts), frequencies(counts, [0.25] * 6)
    third = pytest.approx(1 / 3)

    assert [[not_none(cell).share for cell in row] for row in chart.cells] == [
        [0.5, 1.0],
        [None, 0.25],
        [0.0, 0.0],
    ]
    assert [[not_none(cell).mark for cell in row] for row in chart.cells] == [
        [1, 1],
        [0, third],
        [third, 0],
    ]
    assert not_none(costly.cells[0][0]).cost == 0.25
    assert costly.cells[1][0] == ChartCell(mark=0)
    assert (chart.cost_unit, costly.cost_unit) == ("", "chips a hand")
