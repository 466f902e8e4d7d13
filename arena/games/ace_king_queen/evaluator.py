"""The value of strategies and deals in Ace-King-Queen, computed exactly without dealing cards.

A strategy that does not learn is six shares: how often it bets, and how often it calls, with each
card (`SPOTS`). All values are in chips a hand; a seat is the betting player in every second hand
(A2). Values are exact if the shares are fractions, and rounded if they are floats.

A decision is judged by its value against the equilibrium. Where the equilibrium mixes, both answers
are equally good and cost nothing. An opponent who knows how the bot plays might punish them, but
no single decision shows that.

Chance is only in the deal. Its luck is the equilibrium value of the two cards for the betting
player, minus the value of the game. What the bots do with their cards plays no part in it, so bots
may adapt as they like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import factorial
from typing import Any, Literal, TypeAlias

from arena.games.analysis import Chart, counted_cell, drawn
from arena.games.evaluator import Answered, Cell, Evaluator, Tally, Worths
from arena.games.rules import AskSeat, TellSeat
from protocol.ace_king_queen import CARDS, OPENINGS, RESPONSES, Card, HandOver, Open, Respond
from protocol.vocabulary import News, Question

__all__ = [
    "ANSWERS",
    "EQUILIBRIUM",
    "SPOTS",
    "AceKingQueenEvaluator",
    "Count",
    "Share",
    "Shares",
    "Spot",
    "best_response",
    "bettor_value",
    "deal_luck",
    "exploitability",
    "exploited",
    "frequencies",
    "gains",
    "losses",
    "spot_of",
    "value",
]

Share: TypeAlias = Fraction | float
Shares: TypeAlias = Sequence[Share]
"""How often, by spot; or by card if only one role is meant."""
Spot: TypeAlias = tuple[Literal["bet", "call"], Card]
Count: TypeAlias = tuple[int, int]
"""How often something was done, and how often it could be."""

SPOTS: tuple[Spot, ...] = (*(("bet", card) for card in CARDS), *(("call", card) for card in CARDS))
"""All decisions of the game; the first three are the betting player's."""

ANSWERS: tuple[tuple[str, ...], ...] = (*[OPENINGS] * len(CARDS), *[RESPONSES] * len(CARDS))
"""By spot, the two answers: to bet or call, and to pass."""

_THIRD = Fraction(1, 3)
EQUILIBRIUM = (Fraction(1), Fraction(0), _THIRD, Fraction(1), _THIRD, Fraction(0))
"""The only equilibrium: no opponent wins against it in the long run."""

_ROLE = len(CARDS)
_DEALS = tuple(permutations(range(_ROLE), 2))  # the betting player's card, and the other one
_EACH = Fraction(1, len(_DEALS))


def spot_of(question: Question[Any]) -> int:
    """The index in `SPOTS` of a question."""
    if type(question) is Open:
        return CARDS.index(question.card)
    assert type(question) is Respond, "rules A ask nothing else"
    return _ROLE + CARDS.index(question.card)


def _deal_value(bettor: int, caller: int, bets: Shares, calls: Shares) -> Share:
    """The value of a deal for the betting player (A5)."""
    shown = 1 if bettor < caller else -1
    after_bet = 1 + calls[caller] * (2 * shown - 1)
    return shown + bets[bettor] * (after_bet - shown)


def bettor_value(bets: Shares, calls: Shares) -> Share:
    """The value of a hand for the betting player."""
    return sum((_deal_value(*deal, bets, calls) for deal in _DEALS), Fraction(0)) * _EACH


def value(mine: Shares, other: Shares) -> Share:
    """The value of a hand for `mine`, averaged over both roles."""
    as_bettor = bettor_value(mine[:_ROLE], other[_ROLE:])
    return (as_bettor - bettor_value(other[:_ROLE], mine[_ROLE:])) / 2


def gains(other: Shares) -> list[Share]:
    """By spot, the gain in `value` against `other` from a bet or call there instead of a pass."""
    by_spot: list[Share] = [Fraction(0)] * len(SPOTS)
    for bettor, caller in _DEALS:
        shown = 1 if bettor < caller else -1
        bet = 1 + other[_ROLE + caller] * (2 * shown - 1) - shown
        call = other[bettor] * (1 - 2 * shown)
        by_spot[bettor] += bet * _EACH / 2
        by_spot[_ROLE + caller] += call * _EACH / 2
    return by_spot


def best_response(other: Shares) -> tuple[Fraction, ...]:
    """The best answers to `other`; of two equal ones, that which the equilibrium always gives."""
    return tuple(
        Fraction(gain > 0 or (gain == 0 and usual == 1))
        for gain, usual in zip(gains(other), EQUILIBRIUM, strict=True)
    )


def exploitability(shares: Shares) -> Share:
    """How much an opponent who knows these shares can win per hand."""
    return value(best_response(shares), shares)


def losses(shares: Shares) -> list[Share]:
    """By spot, the loss against the equilibrium; the losses sum to what the equilibrium wins."""
    spots = zip(EQUILIBRIUM, shares, gains(EQUILIBRIUM), strict=True)
    return [(best - share) * gain for best, share, gain in spots]


def exploited(shares: Shares) -> list[Share]:
    """By spot, its part of the exploitability (its Shapley value); the parts sum to the whole.

    How much is gained by correcting one spot depends on which others are corrected already. The
    Shapley value is the mean over all orders in which the six can be corrected.
    """
    count = len(SPOTS)
    worth: dict[frozenset[int], Share] = {}
    parts: list[Share] = [Fraction(0)] * count
    for size in range(count + 1):
        for faulty in map(frozenset, combinations(range(count), size)):
            mixed = [shares[at] if at in faulty else EQUILIBRIUM[at] for at in range(count)]
            worth[faulty] = exploitability(mixed)
            for spot in faulty:
                orders = factorial(size - 1) * factorial(count - size)
                gained = worth[faulty] - worth[faulty - {spot}]
                parts[spot] += gained * Fraction(orders, factorial(count))
    return parts


def deal_luck(cards: tuple[Card, Card], bettor: int) -> tuple[Fraction, Fraction]:
    """By seat, how much better these cards are than the average deal, in chips."""
    of_bettor, of_caller = CARDS.index(cards[bettor]), CARDS.index(cards[1 - bettor])
    bets, calls = EQUILIBRIUM[:_ROLE], EQUILIBRIUM[_ROLE:]
    luck = Fraction(_deal_value(of_bettor, of_caller, bets, calls) - bettor_value(bets, calls))
    return (luck, -luck) if bettor == 0 else (-luck, luck)


def frequencies(counts: Sequence[Count], costs: Sequence[float] | None = None) -> Chart:
    """The six shares as a chart, with their costs if these are given."""
    return drawn(
        "Bets and calls",
        "how often it bets, or calls a bet",
        {"ace": 0, "king": 1, "queen": 2},
        {"bets": 0, "calls": _ROLE},
        lambda card, role: counted_cell(
            *counts[card + role],
            mark=float(EQUILIBRIUM[card + role]),
            cost=None if costs is None else costs[card + role],
        ),
        cost_unit="" if costs is None else "chips a hand",
        note="The marks are the equilibrium, which loses to nobody.",
    )


# Costs in chips above which a mistake is `?!`, `?`, `??`: betting a king costs 1/2, calling with a
# queen 1.
_GRADES = (0.0, 0.4, 0.9)
# By spot, the share of all hands in which it is asked: a caller only after an equilibrium's bet.
_ASKED = [_EACH] * _ROLE + [
    (sum(EQUILIBRIUM[:_ROLE]) - EQUILIBRIUM[caller]) * _EACH / 2 for caller in range(_ROLE)
]
_GAINS = [float(gain / asked) for gain, asked in zip(gains(EQUILIBRIUM), _ASKED, strict=True)]
"""By spot, the gain in chips of a bet or call over a check or fold, each time that it is asked."""
_LUCK = {
    (cards, bettor): tuple(map(float, deal_luck(cards, bettor)))
    for cards in permutations(CARDS, 2)
    for bettor in (0, 1)
}


class AceKingQueenEvaluator(Evaluator):
    """Evaluates Ace-King-Queen, where a spot or a deal is worth the same in every match."""

    def worths(self, question: Question[Any], answer: Any) -> Worths:
        spot = spot_of(question)
        does, passes = ANSWERS[spot]
        is_mixed = 0 < EQUILIBRIUM[spot] < 1
        return Worths(
            values={does: (_GAINS[spot],), passes: (0.0,)},
            unit="chips",
            grades=_GRADES,
            least=0.0 if is_mixed else None,
        )

    def luck(self, event: TellSeat | AskSeat) -> Sequence[float] | None:
        news = event.news if type(event) is TellSeat else None
        return _LUCK[news.cards, news.bettor] if type(news) is HandOver else None

    def gains(self, news: News) -> Sequence[float] | None:
        return news.payoffs if type(news) is HandOver else None

    def cells(self, event: TellSeat | Answered) -> Iterable[tuple[Cell, bool]]:
        if type(event) is not Answered:
            return ()
        spot = spot_of(event.question)
        return [(spot, event.answer == ANSWERS[spot][0])]

    @staticmethod
    def charts(tally: Tally) -> tuple[Chart, ...]:
        return (frequencies([tally.count(spot) for spot in range(len(SPOTS))]),)
