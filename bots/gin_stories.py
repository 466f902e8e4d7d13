"""Hypotheses about the other seat's hand, for the gin rummy house bot `master`.

A `Story` is one possible history of the other seat that fits everything that was seen: the ten
cards it was dealt, and the cards it drew from the stock. A `Habit` is a model of a kind of player,
which tells how well a story explains what was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from random import Random
from typing import NamedTuple

from bots.gin_playout import OF_VALUE, VALUES, Manner, Table, cards_of, outs_of
from protocol.gin_melds import mask_deadwood

__all__ = ["HABITS", "Deed", "Habit", "Story"]

_DEALT = 10


class Deed(NamedTuple):
    """A visible action of the other seat.

    Attributes:
        left: the discard that it did not take, or 0.
        taken: the discard that it took, or 0.
        discarded: the card that it discarded; 0 if it only passed the up-card.
        knocked: whether it knocked.
    """

    left: int
    taken: int
    discarded: int
    knocked: bool = False


class Habit(NamedTuple):
    """A model of a kind of player.

    Attributes:
        manner: how it plays in playouts.
        knocks: by its own turn (later ones as the last), the chance that it knocks if it may and
            does not have gin.
        strict: the chance of a discard that its manner would not choose.
    """

    name: str
    manner: Manner
    knocks: tuple[float, ...]
    strict: float


HABITS = (
    Habit("simple", Manner(True, False, (10,)), (0.98,), 0.005),
    Habit("patient", Manner(False, False, (0,)), (0.01,), 0.005),
    Habit("plain", Manner(False, False, (10,)), (0.98,), 0.005),
    Habit("expert", Manner(False, True, (10, 10, 10, 0)), (0.7, 0.6, 0.4, 0.3, 0.1, 0.04), 0.03),
)

_NOT_TAKEN = 0.01  # the chance of doing the opposite of its manner with a discard
_DEARER = 0.05  # the chance of not discarding the highest of equally good cards
_PER_POINT = 0.8  # how fast the chance of an expert's discard falls, per point of its worth
_SPREAD = 0.55  # the chance of an expert's best discard
_EVERYTHING = Table(0)


class Story:
    """One possible history of the other seat.

    Attributes:
        habit: the kind of player, as an index of `HABITS`.
        slots: the ten cards dealt, then the cards drawn from the stock, one bit each.
        free: the cards that are still in the stock.
        hand: its ten cards now.
        chance: the probability of what was seen, given the story.
    """

    __slots__ = ("chance", "free", "habit", "hand", "slots")

    def __init__(self, habit: int) -> None:
        self.habit = habit
        self.slots: list[int] = []
        self.free: list[int] = []
        self.hand = 0
        self.chance = 0.0

    def copy(self, other: Story) -> None:
        """Turn this story into a copy of another."""
        self.slots, self.free = other.slots[:], other.free[:]
        self.habit, self.hand, self.chance = other.habit, other.hand, other.chance

    def repair(self, events: Sequence[Deed], unseen: int, rng: Random) -> None:
        """Change the story as little as is needed to make it possible."""
        out = 0  # its discards, except cards taken from the pile
        taken = 0
        draws = 0
        for event in events:
            if event.taken:
                taken |= event.taken
            elif event.discarded:
                draws += 1
            if event.discarded & ~taken:
                out |= event.discarded
            taken &= ~event.discarded
        slots, need = self.slots, _DEALT + draws
        held = 0
        spare: list[int] = []
        for place, card in enumerate(slots):
            if card & (unseen | out) and not card & held:
                held |= card
            else:
                spare.append(place)
        spare += range(len(slots), need)
        slots.extend([0] * (need - len(slots)))
        # Discards missing in the story replace a spare slot or any earlier card.
        missing = cards_of(out & ~held)
        rng.shuffle(spare)
        for card in missing:
            if spare and rng.random() < 0.15:
                place = spare.pop()
            else:
                places = [p for p in range(need) if not slots[p] & out and p not in spare]
                place = places[int(rng.random() * len(places))] if places else spare.pop()
                if slots[place]:
                    held &= ~slots[place]
            slots[place] = card
            held |= card
        free = cards_of(unseen & ~held)
        rng.shuffle(free)
        for place in spare:
            slots[place] = free.pop()
        self._order(events, rng)
        self.free = free
        self.hand = held_now(slots, events)
        self.chance = self.explains(events, self.habit, 0.0)

    def _order(self, events: Sequence[Deed], rng: Random) -> None:
        """Reorder the slots so that every card was held before it was discarded."""
        slots, at, taken = self.slots, _DEALT, 0
        for event in events:
            taken |= event.taken
            if event.discarded and not event.taken:
                at += 1
            if event.discarded & taken:
                taken &= ~event.discarded
                continue
            if event.discarded and event.discarded in slots:
                place = slots.index(event.discarded)
                if place >= at:
                    other = int(rng.random() * at)
                    for _ in range(20):
                        if not any(slots[other] == e.discarded for e in events):
                            break
                        other = int(rng.random() * at)
                    slots[place], slots[other] = slots[other], slots[place]

    def explains(self, events: Sequence[Deed], habit: int, least: float) -> float:
        """Return the chance that a habit does what was seen, or 0 once it falls below `least`."""
        _, manner, knocks, strict = HABITS[habit]
        slots = self.slots
        hand = 0
        for card in slots[:_DEALT]:
            hand |= card
        at, turn, chance = _DEALT, 0, 1.0
        takes, discard = _EVERYTHING.takes, _EVERYTHING.discard
        for left, taken, discarded, knocked in events:
            if taken:
                if not takes(hand, taken, manner):
                    chance *= _NOT_TAKEN
                drawn = taken
            else:
                if left and takes(hand, left, manner):
                    chance *= _NOT_TAKEN
                if not discarded:
                    continue
                drawn = slots[at]
                at += 1
            eleven = hand | drawn
            if not eleven & discarded or chance < least:
                return 0.0
            best, least_left = discard(hand, drawn, manner.counts_outs)
            hand = eleven ^ discarded
            deadwood = least_left if best == discarded else mask_deadwood(hand)
            if manner.counts_outs:
                chance *= (
                    _SPREAD
                    if best == discarded
                    else _likes(hand, deadwood, eleven ^ best, least_left)
                )
            elif deadwood > least_left:
                chance *= strict
            elif VALUES[best] != VALUES[discarded]:
                chance *= _DEARER
            else:
                chance /= _ties(eleven, VALUES[discarded], deadwood)
            if deadwood <= 10:
                likely = 0.98 if not deadwood else knocks[min(turn, len(knocks) - 1)]
                chance *= likely if knocked else 1 - likely
            elif knocked:
                chance *= 0.001
            turn += 1
            if chance < least:
                return 0.0
        self.hand = hand
        return chance

    def change(self, events: Sequence[Deed], unseen: int, rng: Random) -> None:
        """Try one random change."""
        slots, free = self.slots, self.free
        before = self.hand
        count = len(slots)
        place = int(rng.random() * count)
        bound = rng.random() * self.chance
        if count > _DEALT and (not free or not slots[place] & unseen or rng.random() < 0.3):
            other = _DEALT + int(rng.random() * (count - _DEALT))
            if other == place:
                return
            slots[place], slots[other] = slots[other], slots[place]
            chance = self.explains(events, self.habit, bound)
            if chance > bound:
                self.chance = chance
            else:
                slots[place], slots[other] = slots[other], slots[place]
                self.hand = before
        elif free and slots[place] & unseen:
            other = int(rng.random() * len(free))
            slots[place], free[other] = free[other], slots[place]
            chance = self.explains(events, self.habit, bound)
            if chance > bound:
                self.chance = chance
            else:
                slots[place], free[other] = free[other], slots[place]
                self.hand = before


def _ties(eleven: int, value: int, left: int) -> int:
    """Count the cards of eleven with this value whose discard leaves this deadwood."""
    cards = eleven & OF_VALUE[value]
    if not cards & (cards - 1):
        return 1
    ties = 0
    while cards:
        bit = cards & -cards
        cards ^= bit
        ties += mask_deadwood(eleven ^ bit) == left
    return ties


def held_now(slots: Sequence[int], events: Sequence[Deed]) -> int:
    """Return the other seat's ten cards after these events."""
    hand = 0
    for card in slots:
        hand |= card
    for event in events:
        hand = (hand | event.taken) & ~event.discarded
    return hand


def _likes(hand: int, deadwood: int, best: int, best_deadwood: int) -> float:
    """Return the chance that an expert makes this discard instead of its manner's best."""
    worth = deadwood - 0.7 * outs_of(hand).bit_count()
    best_worth = best_deadwood - 0.7 * outs_of(best).bit_count()
    return _SPREAD * max(exp(_PER_POINT * (best_worth - worth)), 0.004)
