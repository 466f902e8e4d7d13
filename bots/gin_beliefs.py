"""Infers the other seat's hand and kind of player, for the gin rummy house bot `master`.

`Beliefs` are many `Story`s of equal weight. After every event, stories that explain it well replace
those that do not (a particle filter). Then each is changed at random, and a change is kept with a
probability that depends on how well it explains what was seen (Metropolis-Hastings). The kind of
player is learnt from the hands shown at the end of rounds (`evidence`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import log
from random import Random

from bots.gin_playout import ALL
from bots.gin_stories import HABITS, Deed, Story

__all__ = ["Beliefs", "RoundSeen", "evidence"]


class RoundSeen:
    """What a seat has seen of a round: the cards out of play, and the other seat's deeds."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.dead = 0
        self.known = 0
        self.events: list[Deed] = []
        self.turns = [0, 0]  # of this seat and of the other
        self.takes = 0  # how many discards this seat took

    def copy(self) -> RoundSeen:
        """Return a copy, which later events do not change."""
        other = copy.copy(self)
        other.events, other.turns = [*self.events], [*self.turns]
        return other

    def passed(self, card: int) -> None:
        """Note that the other seat passed the up-card."""
        self.events.append(Deed(card, 0, 0))

    def turn(self, own: bool, drew_discard: bool, discarded: int) -> None:
        """Note a turn of this seat (`own`) or the other."""
        if not own:
            first = self.turns == [0, 0]  # it has already passed the up-card
            left = 0 if first or drew_discard else self.top
            self.events.append(Deed(left, self.top if drew_discard else 0, discarded))
            if drew_discard:
                self.known |= self.top
            self.known &= ~discarded
        self.takes += own and drew_discard
        if not drew_discard:
            self.dead |= self.top
        self.top = discarded
        self.turns[not own] += 1

    def unseen(self, hand: int) -> int:
        """Return the cards in the stock or in the other hand, given this seat's hand."""
        return ALL & ~(hand | self.dead | self.known | self.top)


class Beliefs:
    """Stories about the round, brought up to date by `update`."""

    def __init__(self, rng: Random, stories: int, changes: int) -> None:
        self._rng = rng
        self._count = stories
        self._changes = changes
        self.stories: list[Story] = []
        self._heard = -1

    def copy(self, rng: Random) -> Beliefs:
        """Return the same beliefs with another random generator."""
        other = Beliefs(rng, self._count, self._changes)
        other.stories = [Story(story.habit) for story in self.stories]
        for copied, story in zip(other.stories, self.stories, strict=True):
            copied.copy(story)
        other._heard = self._heard
        return other

    def begin(self) -> None:
        """Begin a new round."""
        self.stories = []
        self._heard = -1

    def update(self, seen: RoundSeen, hand: int, shares: Sequence[float]) -> list[Story]:
        """Return the stories, updated by everything that was seen."""
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

    def change(self, events: Sequence[Deed], unseen: int, times: int) -> None:
        """Try to change every story `times` times."""
        if events:
            for story in self.stories:
                for _ in range(times):
                    story.change(events, unseen, self._rng)

    def _repair(self, events: Sequence[Deed], unseen: int) -> list[float]:
        """Make every story possible again; return how well each explained the events before."""
        before = [story.chance or 1.0 for story in self.stories]
        for story in self.stories:
            story.repair(events, unseen, self._rng)
        return before

    def _rehabit(self, events: Sequence[Deed], shares: Sequence[float]) -> None:
        """Let every story try another habit, drawn by its share."""
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
        """Replace stories that do not explain the last events by copies of those that do.

        Args:
            before: how well each story explained the earlier events.
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


_STEPS = 100
_MOST = 6.0  # the largest evidence of one round for or against a habit, as a logarithm


def evidence(seen: RoundSeen, shown: int, knocked: bool, rng: Random) -> list[float]:
    """Return by habit the logarithm of how well it explains a round whose hand was shown."""
    events = list(seen.events)
    if knocked and events:
        events[-1] = events[-1]._replace(knocked=True)
    story = Story(0)
    # Apart from cards that it took, only the shown cards can be in its hand.
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
