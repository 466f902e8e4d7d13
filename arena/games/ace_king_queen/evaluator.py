"""What ways to play Ace-King-Queen are worth: exact, without any cards being dealt.

A way to play that does not learn is six shares: how often it bets, and calls, with each card
(`SPOTS`). All values are chips a hand, a seat being the betting player in every second one (A2).
They are exact where the shares are fractions, and as good as floats where they are floats.

A decision is worth what it brings against the equilibrium. Where that mixes, both answers are
level: they cost nothing against it. What they may cost against one who knows how a bot plays, no
single decision shows.

Only the deal is chance. Its luck is the value of the two cards to the betting player in
equilibrium, less that of the game. What a bot does with its cards is not looked at, so bots may
adapt as they like.
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
"""How often, by spot; or by card, for one role."""
Spot: TypeAlias = tuple[Literal["bet", "call"], Card]
Count: TypeAlias = tuple[int, int]
"""How often something was done, and how often it could be."""

SPOTS: tuple[Spot, ...] = (*(("bet", card) for card in CARDS), *(("call", card) for card in CARDS))
"""Where there is something to decide; the first three for the betting player."""

ANSWERS: tuple[tuple[str, ...], ...] = (*[OPENINGS] * len(CARDS), *[RESPONSES] * len(CARDS))
"""By spot, to bet or call, and not to."""

_THIRD = Fraction(1, 3)
EQUILIBRIUM = (Fraction(1), Fraction(0), _THIRD, Fraction(1), _THIRD, Fraction(0))
"""The only one: it loses to nobody."""

_ROLE = len(CARDS)
_DEALS = tuple(permutations(range(_ROLE), 2))  # the betting player's card, and the other one
_EACH = Fraction(1, len(_DEALS))


def spot_of(question: Question[Any]) -> int:
    """The number in `SPOTS` of what is asked."""
    if type(question) is Open:
        return CARDS.index(question.card)
    assert type(question) is Respond, "rules A ask nothing else"
    return _ROLE + CARDS.index(question.card)


def _deal_value(bettor: int, caller: int, bets: Shares, calls: Shares) -> Share:
    """What these cards bring the betting player (A5)."""
    shown = 1 if bettor < caller else -1
    after_bet = 1 + calls[caller] * (2 * shown - 1)
    return shown + bets[bettor] * (after_bet - shown)


def bettor_value(bets: Shares, calls: Shares) -> Share:
    """What a hand brings the betting player."""
    return sum((_deal_value(*deal, bets, calls) for deal in _DEALS), Fraction(0)) * _EACH


def value(mine: Shares, other: Shares) -> Share:
    """What a hand brings me, as often the betting player as not."""
    as_bettor = bettor_value(mine[:_ROLE], other[_ROLE:])
    return (as_bettor - bettor_value(other[:_ROLE], mine[_ROLE:])) / 2


def gains(other: Shares) -> list[Share]:
    """By spot, what it adds to `value` against `other` to bet or call there, and not to pass."""
    by_spot: list[Share] = [Fraction(0)] * len(SPOTS)
    for bettor, caller in _DEALS:
        shown = 1 if bettor < caller else -1
        bet = 1 + other[_ROLE + caller] * (2 * shown - 1) - shown
        call = other[bettor] * (1 - 2 * shown)
        by_spot[bettor] += bet * _EACH / 2
        by_spot[_ROLE + caller] += call * _EACH / 2
    return by_spot


def best_response(other: Shares) -> tuple[Fraction, ...]:
    """The best play against `other`; where it is level, what the equilibrium always does."""
    return tuple(
        Fraction(gain > 0 or (gain == 0 and usual == 1))
        for gain, usual in zip(gains(other), EQUILIBRIUM, strict=True)
    )


def exploitability(shares: Shares) -> Share:
    """What one who knows these shares can win a hand."""
    return value(best_response(shares), shares)


def losses(shares: Shares) -> list[Share]:
    """By spot, what is given away to the equilibrium; they sum to what that wins."""
    spots = zip(EQUILIBRIUM, shares, gains(EQUILIBRIUM), strict=True)
    return [(best - share) * gain for best, share, gain in spots]


def exploited(shares: Shares) -> list[Share]:
    """By spot, its part of the exploitability: its value by Shapley; they sum to the whole.

    Whoever mends one spot gains by that what depends on the others. Shapley's value is the mean
    over all orders in which the six can be mended.
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
    """By seat, how much better than the average deal these cards are, in chips."""
    of_bettor, of_caller = CARDS.index(cards[bettor]), CARDS.index(cards[1 - bettor])
    bets, calls = EQUILIBRIUM[:_ROLE], EQUILIBRIUM[_ROLE:]
    luck = Fraction(_deal_value(of_bettor, of_caller, bets, calls) - bettor_value(bets, calls))
    return (luck, -luck) if bettor == 0 else (-luck, luck)


def frequencies(counts: Sequence[Count], costs: Sequence[float] | None = None) -> Chart:
    """The six shares as a chart, with what they cost if that is known."""
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


# Chips, which a `?!`, a `?` and a `??` cost more: to bet a king costs 1/2, to call with a queen 1.
_GRADES = (0.0, 0.4, 0.9)
# By spot, in what share of all hands it comes up: for a caller, only after an equilibrium's bet.
_ASKED = [_EACH] * _ROLE + [
    (sum(EQUILIBRIUM[:_ROLE]) - EQUILIBRIUM[caller]) * _EACH / 2 for caller in range(_ROLE)
]
_GAINS = [float(gain / asked) for gain, asked in zip(gains(EQUILIBRIUM), _ASKED, strict=True)]
"""By spot, what a bet or call brings more than a check or fold, each time, in chips."""
_LUCK = {
    (cards, bettor): tuple(map(float, deal_luck(cards, bettor)))
    for cards in permutations(CARDS, 2)
    for bettor in (0, 1)
}


class AceKingQueenEvaluator(Evaluator):
    """Any match of Ace-King-Queen: a spot and a deal are the same everywhere."""

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
