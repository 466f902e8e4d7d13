"""What the other hand may be, and who plays it: inference for the gin rummy house bot `master`.

A `Story` is one way in which everything that was seen of the other seat may have come about: its
ten cards of the deal, and what it drew from the stock. Stories are changed at random, and the
changes are kept as often as the story explains what the seat has done (Metropolis and Hastings).
What a seat would have done is told by a `Habit`; the shares of the habits follow from the hands
that are shown when a round ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from random import Random
from typing import NamedTuple

from bots.gin_playout import ALL, OF_VALUE, VALUES, Manner, Table, cards_of, outs_of
from protocol.gin_melds import mask_deadwood

__all__ = ["HABITS", "Beliefs", "Event", "Habit", "Seen", "Story", "evidence"]

_DEALT = 10


class Event(NamedTuple):
    """Something that the other seat did.

    Attributes:
        left: the discard that it left, or 0.
        taken: the discard that it took, or 0.
        discarded: what it discarded; 0 if it only passed the up-card.
        knocked: whether it knocked.
    """

    left: int
    taken: int
    discarded: int
    knocked: bool = False


class Habit(NamedTuple):
    """A kind of player.

    Attributes:
        manner: how it goes on in playouts.
        knocks: by its own turn (later ones as the last), the chance that it knocks if it may and it
            is not gin.
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

_NOT_TAKEN = 0.01  # the chance of not taking, or taking, what its manner would
_DEARER = 0.05  # the chance of not discarding the dearest of equal cards
_PER_POINT = 0.25  # how fast the chance of an expert's discard falls, per point of its worth
_SPREAD = 0.4  # the chance of an expert's best discard
_EVERYTHING = Table(0)


class Seen:
    """What a seat has seen of a round: the cards that are out, and what the other seat did."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.dead = 0
        self.known = 0
        self.events: list[Event] = []
        self.turns = [0, 0]  # own, the other's
        self.takes = 0  # discards that this seat took

    def passed(self, card: int) -> None:
        """The other seat passed the up-card."""
        self.events.append(Event(card, 0, 0))

    def turn(self, own: bool, drew_discard: bool, discarded: int) -> None:
        """A turn was taken."""
        if not own:
            first = self.turns == [0, 0]  # it passed the up-card already
            left = 0 if first or drew_discard else self.top
            self.events.append(Event(left, self.top if drew_discard else 0, discarded))
            if drew_discard:
                self.known |= self.top
            self.known &= ~discarded
        self.takes += own and drew_discard
        if not drew_discard:
            self.dead |= self.top
        self.top = discarded
        self.turns[not own] += 1

    def unseen(self, hand: int) -> int:
        """The cards that are in the stock or in the other hand."""
        return ALL & ~(hand | self.dead | self.known | self.top)


class Story:
    """One way in which the other seat's doings may have come about.

    Attributes:
        habit: who plays it, as an index of `HABITS`.
        slots: the ten cards dealt, then the cards drawn from the stock, one bit each.
        free: the cards that are still in the stock.
        hand: its ten cards now.
        chance: how well the story explains what was seen.
    """

    __slots__ = ("chance", "free", "habit", "hand", "slots")

    def __init__(self, habit: int) -> None:
        self.habit = habit
        self.slots: list[int] = []
        self.free: list[int] = []
        self.hand = 0
        self.chance = 0.0

    def copy(self, other: Story) -> None:
        """Become another story."""
        self.slots, self.free = other.slots[:], other.free[:]
        self.habit, self.hand, self.chance = other.habit, other.hand, other.chance

    def repair(self, events: Sequence[Event], unseen: int, rng: Random) -> None:
        """Change as little as is needed for the story to be possible."""
        out = 0  # of its discards, those that were its own before
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
        # Discards that the story did not have: a card just drawn, or any earlier one.
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

    def _order(self, events: Sequence[Event], rng: Random) -> None:
        """See to it that every discard came before it went."""
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

    def explains(self, events: Sequence[Event], habit: int, least: float) -> float:
        """The chance that a habit does what was seen; 0 as soon as it is below `least`."""
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

    def change(self, events: Sequence[Event], unseen: int, rng: Random) -> None:
        """Try one change at random."""
        slots, free = self.slots, self.free
        before = self.hand
        count = len(slots)
        place = int(rng.random() * count)
        bound = rng.random() * self.chance
        if count > _DEALT and (not slots[place] & unseen or rng.random() < 0.3):
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
    """How many of eleven cards are worth so much and leave so much."""
    cards = eleven & OF_VALUE[value]
    if not cards & (cards - 1):
        return 1
    ties = 0
    while cards:
        bit = cards & -cards
        cards ^= bit
        ties += mask_deadwood(eleven ^ bit) == left
    return ties


def held_now(slots: Sequence[int], events: Sequence[Event]) -> int:
    """The ten cards of the other seat after these events."""
    hand = 0
    for card in slots:
        hand |= card
    for event in events:
        hand = (hand | event.taken) & ~event.discarded
    return hand


def _likes(hand: int, deadwood: int, best: int, best_deadwood: int) -> float:
    """The chance that an expert does not discard what its manner likes best, but this."""
    worth = deadwood - 0.7 * outs_of(hand).bit_count()
    best_worth = best_deadwood - 0.7 * outs_of(best).bit_count()
    return _SPREAD * max(exp(_PER_POINT * (best_worth - worth)), 0.02)


class Beliefs:
    """Stories about the round, kept up to date when they are asked for."""

    def __init__(self, rng: Random, stories: int, changes: int) -> None:
        self._rng = rng
        self._count = stories
        self._changes = changes
        self.stories: list[Story] = []
        self._heard = -1

    def begin(self) -> None:
        """A new round begins."""
        self.stories = []
        self._heard = -1

    def update(self, seen: Seen, hand: int, shares: Sequence[float]) -> list[Story]:
        """The stories, after all that was seen."""
        rng, unseen = self._rng, seen.unseen(hand)
        if not self.stories:
            habits = rng.choices(range(len(HABITS)), shares, k=self._count)
            self.stories = [Story(habit) for habit in habits]
            self._heard = 0
        for count in range(self._heard + 1, len(seen.events) + 1):
            events = seen.events[:count]
            before = self._repair(events, unseen)
            self._resample(before)
            self._rehabit(events, shares)
            self.change(events, unseen, self._changes)
        if self._heard == len(seen.events):
            self._repair(seen.events, unseen)
            self.change(seen.events, unseen, 1)
        self._heard = len(seen.events)
        return self.stories

    def change(self, events: Sequence[Event], unseen: int, times: int) -> None:
        """Try so many changes of every story."""
        if events:
            for story in self.stories:
                for _ in range(times):
                    story.change(events, unseen, self._rng)

    def _repair(self, events: Sequence[Event], unseen: int) -> list[float]:
        """Make every story possible; returns how well they explained things before."""
        before = [story.chance or 1.0 for story in self.stories]
        for story in self.stories:
            story.repair(events, unseen, self._rng)
        return before

    def _rehabit(self, events: Sequence[Event], shares: Sequence[float]) -> None:
        """Let every story try another player."""
        rng = self._rng
        for story in self.stories:
            habit = rng.choices(range(len(HABITS)), shares)[0]
            if habit != story.habit:
                before = story.hand
                chance = story.explains(events, habit, rng.random() * story.chance)
                if chance > 0:
                    story.habit, story.chance = habit, chance
                else:
                    story.hand = before

    def _resample(self, before: Sequence[float]) -> None:
        """Let stories that explain the last events make copies in the place of those that do not.

        Args:
            before: how well they explained what was seen earlier.
        """
        stories, rng = self.stories, self._rng
        weights = [
            story.chance / max(old, 1e-30) for story, old in zip(stories, before, strict=True)
        ]
        total = sum(weights)
        if not total:
            return
        step, at, reached = total / len(stories), rng.random(), 0.0
        counts = []
        for weight in weights:
            reached += weight / step
            count = 0
            while at < reached:
                at, count = at + 1, count + 1
            counts.append(count)
        idle = [story for story, count in zip(stories, counts, strict=True) if not count]
        for story, count in zip(stories, counts, strict=True):
            for _ in range(count - 1):
                if idle:
                    idle.pop().copy(story)


_STEPS = 60
_MOST = 6.0  # how much one round may say for or against a habit, as a logarithm


def evidence(seen: Seen, shown: int, knocked: bool, rng: Random) -> list[float]:
    """By habit, the logarithm of how well it explains a round after which a hand was shown."""
    events = list(seen.events)
    if knocked and events:
        events[-1] = events[-1]._replace(knocked=True)
    story = Story(0)
    # Only the shown cards can be in its hand, apart from those that it took.
    own = shown & ~seen.known
    story.repair(events, own, rng)
    found = []
    for habit in range(len(HABITS)):
        story.habit = habit
        best = story.chance = story.explains(events, habit, 0.0)
        for _ in range(_STEPS):
            story.change(events, own, rng)
            best = max(best, story.chance)
        found.append(log(max(best, 1e-9)))
    top = max(found)
    return [max(one - top, -_MOST) for one in found]
