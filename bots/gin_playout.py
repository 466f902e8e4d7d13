"""Quickly plays a gin rummy round to its end, with all cards known, for the house bot `master`.

Hands are masks of `card_mask`, cards are single bits. Both seats play by a `Manner`, which uses
only the seat's own hand and the discards; the hidden cards only determine the draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from typing import NamedTuple

from protocol.cards import PACK
from protocol.gin_melds import CARD_BITS, arrange, card_mask, deadwood_value, mask_deadwood

__all__ = [
    "ALL",
    "CARDS",
    "MOST",
    "OF_VALUE",
    "TARGET",
    "VALUES",
    "Manner",
    "Table",
    "TenCards",
    "after_drawing",
    "cards_of",
    "hand_of",
    "least_after",
    "outs_of",
    "shares",
    "showdown",
]

TARGET = 50  # the points that win a game by default (G15); a seat is not told other settings
_BONUS = 25  # G11
MOST = 130  # more points than a round can bring

ALL = (1 << 52) - 1
_ACES = 1 | 1 << 13 | 1 << 26 | 1 << 39
_SUIT = (1 << 13) - 1
_NO_ACE = ALL ^ _ACES
_NO_ACE_TWO = _NO_ACE ^ _ACES << 1
_NO_QUEEN_KING = ALL ^ _ACES << 11 ^ _ACES << 12
_BY_RANK = tuple(_ACES << rank for rank in range(12, -1, -1))  # kings first
# The cards by value, the highest first.
_BY_VALUE = (
    (sum(_BY_RANK[:4]), 10),
    *[(rank, 9 - place) for place, rank in enumerate(_BY_RANK[4:])],
)

OF_VALUE = {value: cards for cards, value in _BY_VALUE}

CARDS = {bit: card for card, bit in CARD_BITS.items()}
VALUES = {CARD_BITS[card]: deadwood_value(card) for card in PACK}

_ENOUGH = 300_000  # entries of a cache, 40 MB, after which it is emptied


class Manner(NamedTuple):
    """How a seat plays in a playout.

    Attributes:
        takes_low: whether it takes every discard that lowers its deadwood, not only melding ones.
        counts_outs: whether it discards the loose card that leaves the most chances to meld.
        knocks: by its own turn in the round (later turns as the last), the most deadwood with
            which it knocks.
    """

    takes_low: bool
    counts_outs: bool
    knocks: tuple[int, ...]


class TenCards(NamedTuple):
    """Facts about a hand of ten cards.

    Attributes:
        deadwood: the least deadwood of the ten.
        outs: the cards that make a meld with two of them.
        spare: the card whose removal leaves the least deadwood; of several, the highest.
        without: the deadwood without it.
    """

    deadwood: int
    outs: int
    spare: int
    without: int


def cards_of(mask: int) -> list[int]:
    """List the cards of a mask, one bit each, kings first."""
    cards = []
    for rank in _BY_RANK:
        held = mask & rank
        while held:
            bit = held & -held
            cards.append(bit)
            held ^= bit
    return cards


def outs_of(hand: int) -> int:
    """Return the other cards that make a meld with two of this hand."""
    pairs = hand & (hand & _NO_ACE) >> 1  # the lower of two neighbours
    gaps = hand & (hand & _NO_ACE_TWO) >> 2
    outs = (pairs & _NO_ACE) >> 1 | (pairs & _NO_QUEEN_KING) << 2 | gaps << 1
    spades, hearts = hand & _SUIT, hand >> 13 & _SUIT
    diamonds, clubs = hand >> 26 & _SUIT, hand >> 39
    twice = (spades | hearts) & (diamonds | clubs) | spades & hearts | diamonds & clubs
    return (outs | twice * _ACES) & ~hand


_HANDS: dict[int, TenCards] = {}
_LEAST: dict[int, tuple[int, int]] = {}
_FITS: dict[int, int] = {}


def hand_of(mask: int) -> TenCards:
    """Return the `TenCards` of a hand; cached."""
    known = _HANDS.get(mask)
    if known is None:
        if len(_HANDS) > _ENOUGH:
            _HANDS.clear()
        deadwood = mask_deadwood(mask)
        known = _HANDS[mask] = TenCards(deadwood, outs_of(mask), *_least_without(mask, deadwood))
    return known


def least_after(mask: int) -> tuple[int, int]:
    """Return the discard of eleven cards that leaves the least deadwood, and that deadwood."""
    known = _LEAST.get(mask)
    if known is not None:
        return known
    if len(_LEAST) > _ENOUGH:
        _LEAST.clear()
    known = _LEAST[mask] = _least_without(mask, mask_deadwood(mask))
    return known


def _least_without(mask: int, whole: int) -> tuple[int, int]:
    """Return the card whose removal leaves the least deadwood, and that; the highest if tied."""
    least, best = 1000, 0
    for rank, value in _BY_VALUE:
        if whole - value >= least:
            break  # removing a card takes off at most its points
        held = mask & rank
        while held:
            bit = held & -held
            held ^= bit
            left = mask_deadwood(mask ^ bit)
            if left < least:
                least, best = left, bit
    return best, least


def after_drawing(hand: int, card: int) -> tuple[int, int]:
    """Return the best discard after drawing a card (the highest if tied), and the deadwood left."""
    deadwood, outs, spare, without = hand_of(hand)
    if card & outs:
        return least_after(hand | card)
    value = VALUES[card]
    if without + value < deadwood or (without + value == deadwood and VALUES[spare] >= value):
        return spare, without + value
    return card, deadwood


class Table:
    """Plays rounds out for one decision.

    Args:
        dead: the cards that nobody can get any more, those under the top of the pile.
        out_worth: the value of an available card that would meld, in points of deadwood.
    """

    def __init__(self, dead: int, out_worth: float = 0.7) -> None:
        self._live = ALL ^ dead
        self._out_worth = out_worth
        self._kept: dict[int, tuple[int, int]] = {}

    def discard(self, hand: int, drawn: int, counts_outs: bool) -> tuple[int, int]:
        """Return the discard after a card was drawn to ten, and the deadwood it leaves."""
        if not counts_outs:
            return after_drawing(hand, drawn)
        mask = hand | drawn
        known = self._kept.get(mask)
        if known is not None:
            return known
        whole = mask_deadwood(mask)
        best, score, deadwood, tried = 0, 1000.0, 0, 0
        for rank in _BY_RANK:
            held = mask & rank
            while held:
                bit = held & -held
                held ^= bit
                left = mask_deadwood(mask ^ bit)
                is_loose = left == whole - VALUES[bit]
                if not is_loose and tried:
                    continue
                outs = (outs_of(mask ^ bit) & self._live).bit_count()
                worth = left - self._out_worth * outs
                if (is_loose and not tried) or worth < score:
                    best, score, deadwood = bit, worth, left
                tried += is_loose
            if tried >= 4:
                break
        self._kept[mask] = best, deadwood
        return best, deadwood

    def takes(self, hand: int, card: int, manner: Manner) -> bool:
        """Whether a seat with this manner takes a discard."""
        deadwood, outs, _, _ = hand_of(hand)
        if manner.takes_low:
            return after_drawing(hand, card)[1] < deadwood
        if not card & outs:
            return False
        return mask_deadwood(hand | card) < deadwood + VALUES[card]

    def play(
        self,
        hands: tuple[int, int],
        manners: tuple[Manner, Manner],
        stock: Sequence[int],
        mover: int,
        top: int,
        turns: tuple[int, int],
        drawn: int = 0,
        top_is_barred: bool = False,
    ) -> int:
        """Play a round out; return its points for seat 0, negative if the other seat gets them.

        Args:
            hands: by seat.
            manners: by seat.
            stock: the next card is the last item.
            mover: the seat to move.
            top: the top of the discard pile.
            turns: by seat, how many turns it has had.
            drawn: the card that the mover has already drawn, or 0.
            top_is_barred: whether the mover must draw from the stock.
        """
        hand, other = hands[mover], hands[1 - mover]
        manner, other_manner = manners[mover], manners[1 - mover]
        turn, other_turn = turns[mover], turns[1 - mover]
        left = len(stock)
        while True:
            if not drawn:
                if left <= 0:
                    return 0  # G12
                if not top_is_barred and self.takes(hand, top, manner):
                    drawn = top
                else:
                    left -= 1
                    drawn = stock[left]
            bit, deadwood = self.discard(hand, drawn, manner.counts_outs)
            hand = (hand | drawn) ^ bit
            knocks = manner.knocks
            if deadwood <= knocks[turn if turn < len(knocks) else -1]:
                won = showdown(hand, deadwood, other)
                return won if mover == 0 else -won
            top, drawn, top_is_barred = bit, 0, False
            hand, other = other, hand
            manner, other_manner = other_manner, manner
            turn, other_turn = other_turn, turn + 1
            mover = 1 - mover


def showdown(knocker: int, deadwood: int, defender: int) -> int:
    """Return the points of a knock, negative for an undercut (G10, G11)."""
    against = hand_of(defender).deadwood
    if deadwood == 0:
        return _BONUS + against
    fits = _fits(knocker)
    while cards := fits & defender:
        laid = 0
        for bit in cards_of(cards):
            if mask_deadwood(defender ^ bit) == against - VALUES[bit]:  # the card is unmelded
                defender ^= bit
                against -= VALUES[bit]
                laid |= bit
        if not laid:
            break
        fits |= _beyond(laid, knocker)
        knocker |= laid
    difference = against - deadwood
    return difference if difference >= 0 else difference - _BONUS


def _fits(knocker: int) -> int:
    """Return the cards that can be laid off on the melds of a hand."""
    known = _FITS.get(knocker)
    if known is None:
        if len(_FITS) > _ENOUGH:
            _FITS.clear()
        known = 0
        for meld in arrange([CARDS[bit] for bit in cards_of(knocker)])[0]:
            mask = card_mask(meld)
            if meld[0][0] == meld[1][0]:
                known |= _BY_RANK[12 - "A23456789TJQK".index(meld[0][0])] & ~mask
            else:
                known |= (mask & _NO_ACE) >> 1 | (mask << 1 & _NO_ACE & ALL)
                known &= ~mask
        _FITS[knocker] = known
    return known


def _beyond(laid: int, knocker: int) -> int:
    """Return the cards that fit next to cards laid off on a run."""
    more = 0
    if laid & (knocker & _NO_ACE) >> 1:
        more |= (laid & _NO_ACE) >> 1
    if laid & knocker << 1 & _NO_ACE:
        more |= laid << 1 & _NO_ACE
    return more & ALL & ~knocker


def _win_chance(needs: int, other_needs: int) -> float:
    """Estimate the chance to win a game in which the seats still need these points.

    The curve was fitted to games of equal bots whose rounds bring as many points as house bots'.
    """
    if needs <= 0 or other_needs <= 0:
        return float(needs <= 0)
    return 1 / (1 + exp((needs - other_needs) / sqrt(554 + 8.65 * (needs + other_needs))))


def shares(mine: int, theirs: int) -> list[float]:
    """Return the share of the game that is won after a round of -MOST to MOST points."""
    needs, other = TARGET - mine, TARGET - theirs
    lost = [_win_chance(needs, other - points) for points in range(MOST, 0, -1)]
    return lost + [_win_chance(needs - points, other) for points in range(MOST + 1)]
