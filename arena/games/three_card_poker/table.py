"""The payoff of playing each hand of three card poker: counts over the dealer's hands, and groups.

Suits have no order (T1), so the 22,100 hands fall into 1,755 classes, which differ in their ranks
or in which cards share a suit. `table.bin` says for each class how many of the dealer's 18,424
hands bring which outcome; `python -m tests.tools.three_card_poker_table` makes it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations

import msgspec

from protocol.cards import PACK, RANKS, Card
from protocol.three_card_poker import Hand, strength

__all__ = [
    "CLASSES",
    "DEALERS_HANDS",
    "GROUPS",
    "HANDS",
    "LINE",
    "OUTCOMES",
    "TABLE_FILE",
    "HandClass",
    "class_of",
    "group_of",
    "hand_classes",
    "members",
]

DEALERS_HANDS = 18_424
"""How many hands the dealer may have, given the player's: 3 of the other 49 cards."""
HANDS = 22_100
"""How many hands the player may have."""
CLASSES = 1755
OUTCOMES = (-2, 0, 1, 2)
"""The payoffs of a hand that is played, in antes (T6), in the order of the counts."""
TABLE_FILE = "table.bin"
"""Beside this module: by `pair_kicker`, class and outcome a little-endian number of 16 bits."""

GROUPS = (
    "straight flushes",
    "three of a kind",
    "straights",
    "flushes",
    "pairs",
    "ace-high",
    "king-high",
    "queen-high from Q-7-2",
    "Q-6-5 and Q-6-4",
    "queen-high below Q-6-4",
    "jack-high",
    "ten-high or lower",
)
"""Groups of hands under their usual names, the best first."""
LINE = 9
"""The first of `GROUPS` that the best play folds."""
_FLOORS = (
    *((5,), (4,), (3,), (2,), (1,), (0, 14), (0, 13), (0, 12, 7), (0, 12, 6, 4)),
    *((0, 12), (0, 11), (0,)),
)  # the lowest strength of each group


class HandClass(msgspec.Struct, frozen=True):
    """Hands that differ only in the names of their suits.

    Attributes:
        hand: one of them.
        size: how many they are.
        counts: by outcome in `OUTCOMES`, how many of the dealer's hands bring it after a play.
        group: the index of their group in `GROUPS`.
    """

    hand: Hand
    size: int
    counts: tuple[int, ...]
    group: int

    @property
    def gain(self) -> int:
        """The gain of playing over folding, in antes, summed over the dealer's hands (T6)."""
        two_lost, _, won, two_won = self.counts
        return DEALERS_HANDS - 2 * two_lost + won + 2 * two_won

    @property
    def mean(self) -> float:
        """The mean payoff of playing, in antes."""
        return (self.gain - DEALERS_HANDS) / DEALERS_HANDS

    @property
    def cost_of(self) -> tuple[int, int]:
        """The costs of folding and of playing, against the better one, in the unit of `gain`."""
        return max(0, self.gain), max(0, -self.gain)


def group_of(hand: Sequence[Card]) -> int:
    """The index of a hand's group in `GROUPS`."""
    worth = strength(hand)
    return next(group for group, floor in enumerate(_FLOORS) if worth >= floor)


def class_of(hand: Sequence[Card]) -> int:
    """The number of a hand's class."""
    a, b, c = hand
    return _numbers()[_BITS[a] | _BITS[b] | _BITS[c]]


@cache
def members() -> tuple[tuple[Hand, ...], ...]:
    """The hands of each class, in the order of their first ones."""
    found: dict[object, list[Hand]] = {}
    for hand in combinations(PACK, 3):
        found.setdefault(_shape(hand), []).append(hand)
    return tuple(map(tuple, found.values()))


@cache
def hand_classes(pair_kicker: bool) -> tuple[HandClass, ...]:
    """All classes, with the counts of the file."""
    packed = files(__package__).joinpath(TABLE_FILE).read_bytes()
    rows = [*struct.iter_unpack(f"<{len(OUTCOMES)}H", packed)]
    return tuple(
        HandClass(hands[0], len(hands), counts, group_of(hands[0]))
        for hands, counts in zip(members(), rows[pair_kicker * CLASSES :], strict=False)
    )


def _shape(hand: Hand) -> object:
    """What all hands of a class share: the ranks, and which of them have the same suit."""
    a, b, c = sorted(hand, key=_rank)
    return a[0] + b[0] + c[0], *(x[0] + y[0] for x, y in ((a, b), (a, c), (b, c)) if x[1] == y[1])


def _rank(card: Card) -> int:
    return RANKS.index(card[0])


_BITS = {card: 1 << place for place, card in enumerate(PACK)}


@cache
def _numbers() -> dict[int, int]:
    """The class of every hand, by the bits of its cards."""
    return {
        _BITS[a] | _BITS[b] | _BITS[c]: number
        for number, hands in enumerate(members())
        for a, b, c in hands
    }
