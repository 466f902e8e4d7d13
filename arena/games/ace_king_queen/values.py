"""What ways to play Ace-King-Queen are worth: exact, without any cards being dealt.

A way to play that does not learn is six shares: how often it bets, and calls, with each card
(`SPOTS`). All values are chips a hand, a seat being the betting player in every second one (A2).
They are exact where the shares are fractions, and as good as floats where they are floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import factorial
from typing import Literal, TypeAlias

from arena.games.ace_king_queen.luck import BETS, CALLS
from protocol.ace_king_queen import CARDS, Card

__all__ = [
    "EQUILIBRIUM",
    "SPOTS",
    "Share",
    "Shares",
    "Spot",
    "best_response",
    "bettor_value",
    "exploitability",
    "exploited",
    "gains",
    "losses",
    "value",
]

Share: TypeAlias = Fraction | float
Shares: TypeAlias = Sequence[Share]
"""How often, by spot; or by card, for one role."""
Spot: TypeAlias = tuple[Literal["bet", "call"], Card]

SPOTS: tuple[Spot, ...] = (*(("bet", card) for card in CARDS), *(("call", card) for card in CARDS))
"""Where there is something to decide; the first three for the betting player."""

EQUILIBRIUM: tuple[Fraction, ...] = (
    *(BETS[card] for card in CARDS),
    *(CALLS[card] for card in CARDS),
)
"""The only one: it loses to nobody."""

_ROLE = len(CARDS)
_DEALS = tuple(
    (bettor, caller, 1 if bettor < caller else -1)  # what the betting player wins if it checks
    for bettor, caller in permutations(range(_ROLE), 2)
)
_EACH = Fraction(1, len(_DEALS))


def bettor_value(bets: Shares, calls: Shares) -> Share:
    """What a hand brings the betting player (A5)."""
    total: Share = Fraction(0)
    for bettor, caller, shown in _DEALS:
        after_bet = 1 + calls[caller] * (2 * shown - 1)
        total += shown + bets[bettor] * (after_bet - shown)
    return total * _EACH


def value(mine: Shares, other: Shares) -> Share:
    """What a hand brings me, as often the betting player as not."""
    as_bettor = bettor_value(mine[:_ROLE], other[_ROLE:])
    return (as_bettor - bettor_value(other[:_ROLE], mine[_ROLE:])) / 2


def gains(other: Shares) -> list[Share]:
    """By spot, what it adds to `value` against `other` to bet or call there, and not to pass."""
    by_spot: list[Share] = [Fraction(0)] * len(SPOTS)
    for bettor, caller, shown in _DEALS:
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
