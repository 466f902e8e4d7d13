"""Estimates the value of a hand for the gin rummy expert, in percent of the game.

Every discard has a `Prospect`: the deadwood that it leaves, the unseen cards that would still make
a meld, and the chance that it completes a meld of the other seat. `keep_worth` is the value of
playing on, `knock_worth` the value of knocking.

The weights were fitted in two steps: by regression on the outcomes of half a million rounds, then
by hill climbing on games won. They only work together. Features overlap, so that one weight often
offsets another, and the sign of a single weight says little. Against a seat that knocks at once it
pays to wait with little deadwood, and to undercut the knock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from protocol.cards import PACK, Card
from protocol.gin_melds import CARD_BITS, arrange, card_mask, deadwood_value, is_meld, mask_deadwood

__all__ = [
    "GIN_SCORES",
    "TARGET",
    "TOO_MUCH",
    "Prospect",
    "chances_held",
    "keep_worth",
    "knock_worth",
    "prospect",
]

_HAND = 10
_VALUE = {card: deadwood_value(card) for card in PACK}
_RANKS = "A23456789TJQK"


def _near(card: Card) -> list[Card]:
    """Return the cards that can share a meld of three with this one."""
    place = _RANKS.index(card[0])
    ranks = _RANKS[max(place - 2, 0) : place + 3]
    return [
        c for c in PACK if c != card and (c[0] == card[0] or (c[1] == card[1] and c[0] in ranks))
    ]


# By card, the two others of every meld of three with it.
_PAIRS = {
    card: [pair for pair in combinations(_near(card), 2) if is_meld([card, *pair])] for card in PACK
}

_PAIR_MASKS = {card: [card_mask(pair) for pair in pairs] for card, pairs in _PAIRS.items()}

TARGET = 50  # the points that won a game when the weights were fitted (G15)
GIN_SCORES = 44  # about what gin scores: 25 and the other seat's deadwood

TOO_MUCH = 12  # a discard with this much more deadwood than another is skipped, as it is never best

# Chances that the other seat has a card.
_PARTNER = 0.3  # a certain unseen neighbour of a card that it took
_DEAR = 10
_DEAR_LEAVES = 0.17  # the share of its tens and faces that a seat discards per turn,
_DEAR_STAYS = 0.3  # and the share that it never discards

# The weights, in percent of the game. Deadwood is in tens of points, LATE the change in ten turns.
_DEADWOOD = -9.8  # ten points of deadwood
_OVER_5 = -1.4  # the part of it over 5
_OVER_10 = 8.2  # the part over 10, with which a seat cannot knock
_DEADWOOD_LATE = -2.3  # its change in ten turns
_OVER_10_LATE = 0.1
_DEADWOOD_PER_TAKEN = -1.7  # for every known card of the other seat
_ONE_MELD = 5.4  # having melded three,
_TWO_MELDS = 9.3  # six
_THREE_MELDS = 4.2  # and nine cards: each on top
_SEVEN_OR_EIGHT = 2.1  # with seven or eight melded cards
_OUTS_EARLY = -16.7  # if the next card is sure to meld: with fewer than six melded,
_OUTS_TWO_MELDS = -9.1  # with two melds,
_OUTS_THREE_MELDS = -3.4  # with three
_OUTS_LATE = 13.5  # and the change in ten turns
_GIN = 27.0  # if the next card is sure to make gin
_GIN_LATE = -31.2
_GIN_WINS = 17.7  # on top, if gin would win the game
_GAIN = 28.0  # if the next card is sure to take off ten points
_GAIN_LATE = -14.5
_DANGER = -5.6  # for each meld of the other seat that the discard completes
_DANGER_LATE = 2.4
_WANTED = 2.2  # if it certainly completes one
_THREE_MELDS_LATE = -0.6
_THREE_MELDS_DEADWOOD = 4.9
_TWO_MELDS_LATE = -5.9
_KNOCK = 14.8  # knocking at once, compared with playing on
_KNOCK_GIN = 20.2  # with gin
_KNOCK_DEADWOOD = -3.0
_KNOCK_OVER_5 = -5.1
_KNOCK_LATE = -14.6  # its change in ten turns
_KNOCK_AFTER_4 = 4.8  # added to that after four turns
_KNOCK_TAKEN = -4.4
_KNOCK_TAKES_LATE = 3.1
_KNOCK_DEADWOOD_LATE = -10.4
_KNOCK_GIN_WINS = -3.2
_KNOCK_ENDS = 13.7  # when few points are missing
_KNOCK_BEHIND = 6.4


class Prospect(NamedTuple):
    """The ten cards that a discard leaves.

    Attributes:
        deadwood: in tens of points.
        melded: how many of the cards are in melds.
        outs: the chance that the next card drawn goes into a meld.
        gin: the chance that it makes gin.
        gain: the expected fall of the deadwood by it, in tens of points.
        danger: the expected number of melds that the discard completes for the other seat.
        wanted: whether it certainly completes one, with cards that the other seat took.
    """

    deadwood: float
    melded: int
    outs: float
    gin: float
    gain: float
    danger: float
    wanted: bool


def chances_held(unseen: Sequence[Card], taken: int, turn: int) -> dict[Card, float]:
    """Return by unseen card the probability that the other seat has it.

    Args:
        unseen: the cards that are in the stock or in the other hand.
        taken: how many other cards of that hand are known.
        turn: how many turns this seat has had; cards of ten points do not stay long in a hand.
    """
    thrown = max(_DEAR_STAYS, 1 - _DEAR_LEAVES * turn)
    weights = {card: thrown if _VALUE[card] == _DEAR else 1.0 for card in unseen}
    share = min((_HAND - taken) / max(sum(weights.values()), 0.1), 0.95)
    return {card: weight * share for card, weight in weights.items()}


def prospect(
    hand: Sequence[Card], discard: Card, held: Mapping[Card, float], taken: Collection[Card]
) -> Prospect:
    """Compute the `Prospect` of a discard.

    Args:
        hand: the eleven cards.
        discard: one of them.
        held: by unseen card, the probability that the other seat has it.
        taken: the cards that the other seat took and still has.
    """
    kept = [card for card in hand if card != discard]
    mask = card_mask(kept)
    melds, left = arrange(kept)
    melded = set(chain.from_iterable(melds))
    loose = [card for card in kept if card not in melded]
    loose.sort(key=_VALUE.__getitem__, reverse=True)
    outs = gin = gain = total = 0.0
    for card, chance in held.items():
        drawable = 1 - chance
        total += drawable
        if not any(pair & mask == pair for pair in _PAIR_MASKS[card]):
            continue
        eleven = mask | CARD_BITS[card]
        then = mask_deadwood(eleven)
        if then >= left + _VALUE[card]:
            continue  # its possible partners are worth more in their present melds
        dearest = _dearest_loose(eleven, then, loose)
        outs += drawable
        gain += drawable * (left - then + dearest)
        gin += drawable * (then == dearest)
    total = total or 1.0
    return Prospect(
        left / 10,
        len(melded),
        outs / total,
        gin / total,
        gain / total / 10,
        *_danger(discard, held, taken),
    )


def keep_worth(left: Prospect, turn: int, taken: int, gin_wins: bool) -> float:
    """Estimate the value of playing on after a discard.

    Args:
        left: the prospect after it.
        turn: how many turns this seat has had.
        taken: how many cards of the other seat are known.
        gin_wins: whether gin would win the game.
    """
    late = min(turn, 12) / 10
    deadwood, over_10 = left.deadwood, max(left.deadwood - 1, 0)
    per_ten = _DEADWOOD + _DEADWOOD_LATE * late + _DEADWOOD_PER_TAKEN * taken
    worth = deadwood * per_ten + _OVER_5 * max(deadwood - 0.5, 0)
    worth += over_10 * (_OVER_10 + _OVER_10_LATE * late)
    worth += _worth_of_melds(left, late) + left.gain * (_GAIN + _GAIN_LATE * late)
    worth += left.gin * (_GIN + _GIN_LATE * late + _GIN_WINS * gin_wins)
    worth += left.danger * (_DANGER + _DANGER_LATE * late)
    return worth + _WANTED * left.wanted


def knock_worth(
    deadwood: float, turn: int, taken: int, takes: int, scores: tuple[int, int]
) -> float:
    """Estimate the value of knocking.

    Args:
        deadwood: the deadwood of the knock, in tens of points.
        turn: how many turns this seat has had.
        taken: how many cards of the other seat are known.
        takes: how often it has taken a discard.
        scores: this seat's points and the other's.
    """
    late = turn / 10
    missing = TARGET - scores[0]
    worth = _KNOCK + _KNOCK_LATE * late + _KNOCK_AFTER_4 * max(late - 0.4, 0)
    worth += deadwood * (_KNOCK_DEADWOOD + _KNOCK_DEADWOOD_LATE * late)
    worth += _KNOCK_OVER_5 * max(deadwood - 0.5, 0)
    worth += _KNOCK_TAKEN * taken + _KNOCK_TAKES_LATE * takes * late
    if deadwood == 0:
        worth += _KNOCK_GIN + _KNOCK_GIN_WINS * (missing <= 40)
    worth += _KNOCK_ENDS * max(0, min(1, (12 - missing) / 12))
    return worth + _KNOCK_BEHIND * deadwood * scores[1] / TARGET


def _worth_of_melds(left: Prospect, late: float) -> float:
    """Estimate the value of the melds, and of the chances to make another."""
    worth, outs = 0.0, _OUTS_EARLY
    if left.melded >= 3:
        worth += _ONE_MELD
    if left.melded >= 6:
        worth += _TWO_MELDS + _TWO_MELDS_LATE * late
        outs = _OUTS_TWO_MELDS
    if left.melded >= 9:
        worth += _THREE_MELDS + _THREE_MELDS_LATE * late
        worth += _THREE_MELDS_DEADWOOD * left.deadwood
        outs = _OUTS_THREE_MELDS
    elif left.melded > 6:
        worth += _SEVEN_OR_EIGHT
    return worth + left.outs * (outs + _OUTS_LATE * late)


def _danger(
    discard: Card, held: Mapping[Card, float], taken: Collection[Card]
) -> tuple[float, bool]:
    """Compute the `danger` and `wanted` of a discard's `Prospect`."""
    danger, wanted = 0.0, False
    for first, second in _PAIRS[discard]:
        if first in taken and second in taken:
            danger, wanted = danger + 1, True
        elif (first in taken and second in held) or (second in taken and first in held):
            danger += _PARTNER
        elif first in held and second in held:
            danger += held[first] * held[second]
    return danger, wanted


def _dearest_loose(eleven: int, left: int, loose: Sequence[Card]) -> int:
    """Return the most by which a discard of `loose` lowers the deadwood `left` of eleven cards."""
    for card in loose:
        if mask_deadwood(eleven ^ CARD_BITS[card]) == left - _VALUE[card]:
            return _VALUE[card]
    return 0
