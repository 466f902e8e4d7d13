"""The expert of gin rummy: it weighs every discard by what it leaves and what it gives away.

Each of the eleven discards becomes a `_Prospect`: how much deadwood it leaves, which unseen cards would still make a meld, and how
likely the discard completes one for the other seat, given what that seat took and threw. `_keep_worth` and `_knock_worth` price that
in percent of the game; the dearest price wins, and it knocks when knocking is worth more than playing on.

The weights were fitted in two steps: by regression on the outcomes of half a million rounds, then by hill-climbing on games won.
They belong together: as the features overlap, one weight often takes back a part of another, and its sign alone says little.
Against a seat that knocks at once, waiting with little deadwood pays: the other's knock is undercut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from bots.gin_rummy import PlayerStrategy
from protocol.cards import PACK, Card
from protocol.gin_melds import (
    arrange,
    card_mask,
    deadwood_value,
    discard_deadwoods,
    is_meld,
    mask_deadwood,
)
from protocol.gin_rummy import KNOCK_LIMIT

__all__ = ["Expert"]

_HAND = 10
_BIT = {card: card_mask([card]) for card in PACK}
_VALUE = {card: deadwood_value(card) for card in PACK}
_RANKS = "A23456789TJQK"


def _near(card: Card) -> list[Card]:
    """The cards that can share a meld of three with this one."""
    place = _RANKS.index(card[0])
    ranks = _RANKS[max(place - 2, 0) : place + 3]
    return [
        c
        for c in PACK
        if c != card and (c[0] == card[0] or (c[1] == card[1] and c[0] in ranks))
    ]


_PAIRS = {
    card: [pair for pair in combinations(_near(card), 2) if is_meld([card, *pair])]
    for card in PACK
}
"""By card, the two others of every meld of three that it can be in."""

_PAIR_MASKS = {
    card: [card_mask(pair) for pair in pairs] for card, pairs in _PAIRS.items()
}

_TARGET = 50  # the points that win the game which the weights were fitted to (G15)
_GIN_SCORES = 44  # about what gin brings: 25 and what the other still holds

_TOO_MUCH = 12  # no discard is worth that much more deadwood than another; saves time

# What a card is likely to be in the other hand for.
_PARTNER = 0.3  # a card that it took lies there with one certain unseen neighbour
_DEAR = 10
_DEAR_LEAVES = 0.17  # by turn, how many of its tens and faces a seat has thrown,
_DEAR_STAYS = 0.3  # and how many it never throws

# The worth of things in percent of the game, deadwood in tens of points; LATE: per ten turns of one's own.
_DEADWOOD = -9.8  # ten points of deadwood
_OVER_5 = -1.4  # of it, what is over 5
_OVER_10 = 8.2  # of it, what forbids to knock
_DEADWOOD_LATE = -2.3  # the same, more every ten turns
_OVER_10_LATE = 0.1
_DEADWOOD_PER_TAKEN = -1.7  # for every card it is known to hold
_ONE_MELD = 5.4  # having melded three,
_TWO_MELDS = 9.3  # six
_THREE_MELDS = 4.2  # and nine cards: each on top
_SEVEN_OR_EIGHT = 2.1  # a meld longer than three on the way
_OUTS_EARLY = -16.7  # a card that melds is sure to come: below six melded,
_OUTS_TWO_MELDS = -9.1  # with two melds,
_OUTS_THREE_MELDS = -3.4  # with three
_OUTS_LATE = 13.5  # and every ten turns
_GIN = 27.0  # gin is sure to come
_GIN_LATE = -31.2
_GIN_WINS = 17.7  # it would also win the game
_GAIN = 28.0  # ten points sure to come off
_GAIN_LATE = -14.5
_DANGER = -5.6  # completing a meld of the other seat
_DANGER_LATE = 2.4
_WANTED = 2.2  # completing one surely
_THREE_MELDS_LATE = -0.6
_THREE_MELDS_DEADWOOD = 4.9
_TWO_MELDS_LATE = -5.9
_KNOCK = 14.8  # knocking at once, compared with playing on
_KNOCK_GIN = 20.2  # with gin
_KNOCK_DEADWOOD = -3.0
_KNOCK_OVER_5 = -5.1
_KNOCK_LATE = -14.6  # every ten turns
_KNOCK_AFTER_4 = 4.8  # slower after four turns
_KNOCK_TAKEN = -4.4
_KNOCK_TAKES_LATE = 3.1
_KNOCK_DEADWOOD_LATE = -10.4
_KNOCK_GIN_WINS = -3.2
_KNOCK_ENDS = 13.7  # few points are missing
_KNOCK_BEHIND = 6.4


class _Prospect(NamedTuple):
    """What one discard leaves.

    Attributes:
        deadwood: of the ten cards kept, in tens of points.
        melded: how many of them are in melds.
        outs: the chance that the next card drawn goes into a meld.
        gin: the chance that it makes gin.
        gain: the deadwood that it is expected to take off, in tens of points.
        danger: how many melds the discard is expected to complete for the other seat.
        wanted: whether it surely completes one, with cards that the other seat took.
    """

    deadwood: float
    melded: int
    outs: float
    gin: float
    gain: float
    danger: float
    wanted: bool


class Expert(PlayerStrategy):
    """Weighs discards by what melds they could still make and what the other seat showed it wants."""

    def reset(self) -> None:
        """Forget the last opponent, and what it took."""
        super().reset()
        self._begin(())

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        """A round begins: only the up-card is out."""
        self._begin([self.top])

    def opponent_end_turn_feedback(
        self, drew_discard: bool, previous_discard_top: Card, opponent_discarded: Card
    ) -> None:
        """Remember what it took, as long as it keeps it, and what it threw."""
        if drew_discard:
            self._taken.add(previous_discard_top)
            self._out.discard(previous_discard_top)
            self._takes += 1
        self._taken.discard(opponent_discarded)
        self._out.add(opponent_discarded)

    def take_turn(self, drawn: Card) -> Card:
        """The discard with the best price, kept or knocked with."""
        gone = {*self.hand, *self._out, *self._taken}
        unseen = [card for card in PACK if card not in gone]
        held = self._chances_held(unseen)
        best, discard, self._knocks = float("-inf"), drawn, False
        deadwoods = discard_deadwoods(self.hand)
        bound = min(deadwoods) + _TOO_MUCH
        for card, left in zip(self.hand, deadwoods, strict=True):
            if left > bound:
                continue
            prospect = self._prospect(card, unseen, held)
            worth, knocks = self._keep_worth(prospect), False
            if prospect.deadwood * 10 <= KNOCK_LIMIT:
                knock_worth = self._knock_worth(prospect.deadwood)
                knocks = knock_worth > worth or prospect.deadwood == 0
                worth = max(worth, knock_worth)
            if worth > best:
                best, discard, self._knocks = worth, card, knocks
        self._out.add(discard)
        self._turn += 1
        return discard

    def knock(self) -> bool:
        """Whether that was worth more than playing on."""
        return self._knocks

    def _begin(self, out: Iterable[Card]) -> None:
        self._out = set(out)
        self._taken: set[Card] = set()
        self._takes = 0
        self._turn = 0
        self._knocks = False

    def _chances_held(self, unseen: Sequence[Card]) -> dict[Card, float]:
        """By card that may be there, how likely the other seat holds it."""
        thrown = max(_DEAR_STAYS, 1 - _DEAR_LEAVES * self._turn)
        weights = {card: thrown if _VALUE[card] == _DEAR else 1.0 for card in unseen}
        share = (_HAND - len(self._taken)) / max(sum(weights.values()), 0.1)
        plain = min(share, 0.95)
        return {card: weight * plain for card, weight in weights.items()}

    def _prospect(
        self, discard: Card, unseen: Sequence[Card], held: dict[Card, float]
    ) -> _Prospect:
        kept = [card for card in self.hand if card != discard]
        mask = card_mask(kept)
        melds, left = arrange(kept)
        melded = set(chain.from_iterable(melds))
        loose = sorted(
            (card for card in kept if card not in melded),
            key=_VALUE.__getitem__,
            reverse=True,
        )
        outs = gin = gain = total = 0.0
        for card in unseen:
            drawable = 1 - held[card]
            total += drawable
            for pair in _PAIR_MASKS[card]:
                if pair & mask == pair:
                    break
            else:
                continue
            eleven = mask | _BIT[card]
            then = mask_deadwood(eleven)
            if then >= left + _VALUE[card]:
                continue  # what it could join is better used where it is
            dearest = _dearest_loose(eleven, then, loose)
            outs += drawable
            gain += drawable * (left - then + dearest)
            gin += drawable * (then == dearest)
        danger, wanted = self._danger(discard, held)
        total = total or 1.0
        return _Prospect(
            left / 10,
            len(melded),
            outs / total,
            gin / total,
            gain / total / 10,
            danger,
            wanted,
        )

    def _danger(self, discard: Card, held: dict[Card, float]) -> tuple[float, bool]:
        danger, wanted, taken = 0.0, False, self._taken
        for one, two in _PAIRS[discard]:
            if one in taken:
                if two in taken:
                    danger, wanted = danger + 1, True
                elif two in held:
                    danger += _PARTNER
            elif one in held:
                if two in taken:
                    danger += _PARTNER
                elif two in held:
                    danger += held[one] * held[two]
        return danger, wanted

    def _keep_worth(self, left: _Prospect) -> float:
        """The price of playing on with what is left."""
        late = min(self._turn, 12) / 10
        deadwood, over_10 = left.deadwood, max(left.deadwood - 1, 0)
        worth = deadwood * (
            _DEADWOOD + _DEADWOOD_LATE * late + _DEADWOOD_PER_TAKEN * len(self._taken)
        )
        worth += _OVER_5 * max(deadwood - 0.5, 0) + over_10 * (
            _OVER_10 + _OVER_10_LATE * late
        )
        if left.melded >= 3:
            worth += _ONE_MELD
        if left.melded >= 6:
            worth += _TWO_MELDS + _TWO_MELDS_LATE * late
        if left.melded >= 9:
            worth += (
                _THREE_MELDS
                + _THREE_MELDS_LATE * late
                + _THREE_MELDS_DEADWOOD * deadwood
            )
            outs = _OUTS_THREE_MELDS
        elif left.melded >= 6:
            worth += _SEVEN_OR_EIGHT * (left.melded > 6)
            outs = _OUTS_TWO_MELDS
        else:
            outs = _OUTS_EARLY
        worth += left.outs * (outs + _OUTS_LATE * late) + left.gain * (
            _GAIN + _GAIN_LATE * late
        )
        gin_wins = self.scores[self.seat] + _GIN_SCORES >= _TARGET
        worth += left.gin * (_GIN + _GIN_LATE * late + _GIN_WINS * gin_wins)
        return (
            worth
            + left.danger * (_DANGER + _DANGER_LATE * late)
            + _WANTED * left.wanted
        )

    def _knock_worth(self, deadwood: float) -> float:
        """The price of knocking with so much deadwood."""
        late = self._turn / 10
        missing = _TARGET - self.scores[self.seat]
        worth = _KNOCK + _KNOCK_LATE * late + _KNOCK_AFTER_4 * max(late - 0.4, 0)
        worth += deadwood * (_KNOCK_DEADWOOD + _KNOCK_DEADWOOD_LATE * late)
        worth += _KNOCK_OVER_5 * max(deadwood - 0.5, 0)
        worth += (
            _KNOCK_TAKEN * len(self._taken) + _KNOCK_TAKES_LATE * self._takes * late
        )
        if deadwood == 0:
            worth += _KNOCK_GIN + _KNOCK_GIN_WINS * (missing <= 40)
        worth += _KNOCK_ENDS * max(0, min(1, (12 - missing) / 12))
        return worth + _KNOCK_BEHIND * deadwood * self.scores[1 - self.seat] / _TARGET


def _dearest_loose(eleven: int, left: int, loose: Sequence[Card]) -> int:
    """The most that a discard takes off the deadwood `left` of these eleven cards."""
    for card in loose:
        if mask_deadwood(eleven ^ _BIT[card]) == left - _VALUE[card]:
            return _VALUE[card]
    return 0
