"""Decides when an order is settled: which bots are told apart, and which ranks each may have.

Matches come in blocks, and a race is given one whole block after another. At any moment it says
what is sure so far, and what is still open, so that only that is played on (K6). Anybody may look
after every block and stop at will: everything here follows from confidence sequences
(`arena/games/statistics.py`).

It makes two promises, for bots that do not change while they play. Each mark of a pairing is ever
wrong with a probability of at most 1 in 20. And all rank ranges together are always right in at
least 95 of 100 competitions, as the 5 % are shared out over the bots. Pure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from math import inf, log, sqrt
from typing import TypeAlias

import msgspec

from arena.games.statistics import (
    LEVEL,
    Interval,
    Sample,
    beta_refuses,
    beta_sequence,
    normal_sequence,
)

__all__ = ["Goal", "LeagueRace", "Mark", "Meeting", "PairRace", "Race", "RankRange", "block_size"]

_ALPHA = 1 - LEVEL
_MIX = 10.0  # of leads: intervals are narrowest when all have met each other some 200 times
_GROWTH = 10  # a block adds a tenth of the matches so far: few blocks, little wasted


class Goal(StrEnum):
    """What a competition plays on for: every pairing, who is first, or the whole order."""

    PAIRS = "pairs"
    FIRST = "first"
    ORDER = "order"


class Mark(StrEnum):
    """What is known of a pairing, from the view of its first bot."""

    BETTER = ">"
    WORSE = "<"
    LEVEL = "="
    OPEN = "?"

    def turned(self) -> Mark:
        return {Mark.BETTER: Mark.WORSE, Mark.WORSE: Mark.BETTER}.get(self, self)


class RankRange(msgspec.Struct, frozen=True):
    """The ranks that a bot may have, from 1; equal bots may each have any rank that they share."""

    low: int
    high: int


class Meeting(msgspec.Struct, frozen=True, gc=False):
    """The matches of two bots in a block: the sum of what the first won, 1, 0.5 or 0 a match."""

    first: str
    second: str
    won: float
    count: int = 1


Values: TypeAlias = Sequence[tuple[str, float | None]]
"""In a league: a bot and the value of its match, None if it was not played."""


def block_size(done: int, least: int, most: int) -> int:
    """How often each pairing of the next block is played, after `done` matches each.

    The first block has `least` matches. Later blocks have a tenth of what has been played, rounded
    to an even number, as both seats must be had equally often. All blocks together have at most
    `most` matches; the result is 0 when these have been played.
    """
    size = max(2, done // (2 * _GROWTH) * 2) if done else least
    return max(0, min(size, most - done))


class Race(ABC):
    """The base of both races: each bot's lead over each other one, and what follows from the leads.

    `level` is the difference that does not matter, in the unit of the means. `names` are the bots
    that may have a rank; `strike` takes bots out and adds everything up again.
    """

    def __init__(self, names: Sequence[str], goal: Goal, level: float) -> None:
        self.goal = goal
        self.level = level
        self._entered = len(names)  # the 5 % are shared by all, also by bots struck later
        self._names = tuple(names)

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def strike(self, names: Iterable[str]) -> None:
        """Leave out all matches of these bots, from the first block on; repeating has no effect."""
        gone = frozenset(names)
        if not gone.isdisjoint(self._names):
            self._names = tuple(name for name in self._names if name not in gone)
            self._add_up()

    def ranges(self) -> dict[str, RankRange]:
        """The ranks of each bot that are still possible."""
        low = dict.fromkeys(self._names, 1)
        high = dict.fromkeys(self._names, len(self._names))
        for better in self._names:
            for worse in self._names:
                if better != worse and self._lead(better, worse) > 0:
                    low[worse] += 1
                    high[better] -= 1
        return {name: RankRange(low[name], high[name]) for name in self._names}

    def open_bots(self) -> frozenset[str]:
        """The bots whose rank is still open, as far as the goal needs it; never exactly one.

        Two bots are settled once the one behind is surely at most `level` better. For the first
        place, only bots count that no other bot surely leads.
        """
        if self.goal is not Goal.FIRST:
            order = sorted(self._names, key=self._mean, reverse=True)
            pairs = (
                (ahead, behind) for at, ahead in enumerate(order) for behind in order[at + 1 :]
            )
            return frozenset(
                name for pair in pairs if self._lead(*pair) < -self.level for name in pair
            )
        ranges = self.ranges()
        firsts = [name for name in self._names if ranges[name].low == 1]
        if not firsts:
            return frozenset()

        def least_lead(name: str) -> float:
            return min((self._lead(name, other) for other in firsts if other != name), default=inf)

        leader = max(firsts, key=least_lead)
        rivals = {
            name for name in firsts if name != leader and self._lead(leader, name) < -self.level
        }
        return frozenset(rivals | {leader} if rivals else ())

    @abstractmethod
    def _lead(self, first: str, second: str) -> float:
        """The least that one bot's mean is surely ahead of another's; −inf if unknown."""

    @abstractmethod
    def _mean(self, name: str) -> float:
        """The mean found for a bot, used for an order."""

    @abstractmethod
    def _add_up(self) -> None:
        """Add up all blocks again from the start."""


class PairRace(Race):
    """The race of a round robin: a bot's mean is over its opponents, each with equal weight.

    The lead of one bot over another is computed from the blocks in which both have met all others
    equally often. A match brings between 0 and 1, so the normal mixture with the greatest possible
    variance is valid for each pair of bots. The 5 % are shared out over the pairs.
    """

    def __init__(self, names: Sequence[str], goal: Goal, level: float) -> None:
        super().__init__(names, goal, level)
        self._pairs: dict[tuple[str, str], _Sums] = {}
        self._bots: dict[str, _Sums] = {}
        self._common: dict[tuple[str, str], _Sums] = {}
        self._leads: dict[tuple[str, str], float] = {}
        self._marks: dict[tuple[str, str], Mark] = {}
        self._blocks: list[dict[tuple[str, str], _Sums]] = []

    def add(self, block: Iterable[Meeting]) -> None:
        """Add all meetings of the next block; matches that were not played are left out."""
        sums: dict[tuple[str, str], _Sums] = {}
        for meeting in block:
            pair, count = (meeting.first, meeting.second), meeting.count
            sums.setdefault(pair, _Sums()).add(meeting.won, count)
            sums.setdefault(pair[::-1], _Sums()).add(count - meeting.won, count)
        self._blocks.append(sums)
        self._add_block(sums)

    def mark(self, first: str, second: str) -> Mark:
        """What is sure of two bots; a mark never changes once it is not open."""
        return self._marks.get((first, second), Mark.OPEN)

    def open_pairs(self) -> list[tuple[str, str]]:
        """The pairs that play in the next block, in the order of the names."""
        is_pairs = self.goal is Goal.PAIRS
        bots = frozenset[str]() if is_pairs else self.open_bots()
        return [
            (first, second)
            for first, second in combinations(self._names, 2)
            if (is_pairs and self.mark(first, second) is Mark.OPEN)
            or first in bots
            or second in bots
        ]

    def _lead(self, first: str, second: str) -> float:
        return self._leads.get((first, second), -inf)

    def _mean(self, name: str) -> float:
        bot = self._bots.get(name)
        return bot.won / bot.count if bot else 0.0

    def _add_up(self) -> None:
        for sums in (self._pairs, self._bots, self._common):
            sums.clear()
        self._leads.clear()
        self._marks.clear()
        for block in self._blocks:
            self._add_block(block)

    def _add_block(self, sums: Mapping[tuple[str, str], _Sums]) -> None:
        for pair in combinations(self._names, 2):
            if pair in sums:
                self._pairs.setdefault(pair, _Sums()).join(sums[pair])
                if self.mark(*pair) is Mark.OPEN:
                    self._decide(pair)
        whole = {name: met for name in self._names if (met := self._whole(name, sums))}
        for name, met in whole.items():
            self._bots.setdefault(name, _Sums()).join(met)
        for pair in combinations(whole, 2):  # both have met all others, so their counts are equal
            first, second = pair
            self._compare(pair, whole[first], whole[second])

    def _decide(self, pair: tuple[str, str]) -> None:
        sums = self._pairs[pair]
        mark = _mark_of(sums.won, sums.count, self.level)
        if mark is not Mark.OPEN:
            self._marks[pair] = mark
            self._marks[pair[::-1]] = mark.turned()

    def _whole(self, name: str, sums: Mapping[tuple[str, str], _Sums]) -> _Sums | None:
        """What a bot won in a block, if it met all others equally often in it; else None."""
        met = [sums.get((name, other)) for other in self._names if other != name]
        if not met or None in met:
            return None
        total = _Sums()
        for each in met:
            assert each is not None, "just looked"
            total.join(each)
        return total if all(each and each.count * len(met) == total.count for each in met) else None

    def _compare(self, pair: tuple[str, str], first: _Sums, second: _Sums) -> None:
        """Tighten the bounds on one bot's lead over another; all bounds so far hold at once."""
        common = self._common.setdefault(pair, _Sums())
        common.won += first.won - second.won
        common.count += first.count
        others = len(self._names) - 1
        meetings = common.count / others  # with each opponent
        # Per opponent, 1/4 for both bots; their own matches count twice, which adds 1.
        variance = (others + 1) / (2 * others * others)
        alpha = _ALPHA / (self._entered * (self._entered - 1) / 2)
        half = sqrt(variance * _mixture(meetings, alpha)) / meetings
        lead = common.won / common.count
        for key, bound in ((pair, lead - half), (pair[::-1], -lead - half)):
            self._leads[key] = max(self._lead(*key), bound)


class LeagueRace(Race):
    """The race of a league: each bot's mean value, which is a share or chips.

    Bots do not meet, so each has an interval of its own, with an equal part of the 5 %. Intervals
    of chips are only approximate, as the spread is estimated.
    """

    def __init__(self, names: Sequence[str], goal: Goal, level: float, *, is_share: bool) -> None:
        super().__init__(names, goal, level)
        self._is_share = is_share
        self._samples: dict[str, Sample] = {}
        self._intervals: dict[str, Interval] = {}
        self._blocks: list[Values] = []

    def add(self, block: Values) -> None:
        self._blocks.append(tuple(block))
        self._add_block(self._blocks[-1])

    def _lead(self, first: str, second: str) -> float:
        one, other = self._intervals.get(first), self._intervals.get(second)
        return -inf if one is None or other is None else one.low - other.high

    def _mean(self, name: str) -> float:
        sample = self._samples.get(name)
        return sample.total / sample.count if sample else 0.0

    def _add_up(self) -> None:
        self._samples.clear()
        self._intervals.clear()
        for block in self._blocks:
            self._add_block(block)

    def _add_block(self, block: Values) -> None:
        for name, value in block:
            if value is not None:
                self._samples.setdefault(name, Sample()).add(value)
        for name in {name for name, value in block if value is not None} & {*self._names}:
            self._narrow(name, self._samples[name])

    def _narrow(self, name: str, sample: Sample) -> None:
        """Intersect the intervals of a share so far, as all of them hold at once.

        Intervals of chips only hold approximately, one by one, so the latest replaces the others:
        an early one, from matches that happened to be alike, may be far too narrow.
        """
        alpha = _ALPHA / self._entered
        if not self._is_share:
            mean = sample.total / sample.count
            latest = normal_sequence(mean, sample.variance or 0.0, sample.count, alpha)
            if latest is not None:
                self._intervals[name] = latest
            return
        found = beta_sequence(sample.total, sample.count, alpha)
        old = self._intervals.get(name, found)
        low, high = max(old.low, found.low), min(old.high, found.high)
        if low <= high:
            found = msgspec.structs.replace(found, low=low, high=high)
        self._intervals[name] = found


class _Sums(msgspec.Struct, gc=False):
    """The sum over matches of one bot against another."""

    won: float = 0
    count: int = 0

    def add(self, won: float, count: int) -> None:
        self.won += won
        self.count += count

    def join(self, other: _Sums) -> None:
        self.add(other.won, other.count)


def _mark_of(won: float, count: int, level: float) -> Mark:
    """The mark of a pairing by its beta sequence: told apart, within `level` of a half, or open."""
    if beta_refuses(0.5, won, count, _ALPHA):
        return Mark.BETTER if 2 * won > count else Mark.WORSE
    low, high = 0.5 - level, 0.5 + level
    is_between = low < won / max(1, count) < high
    if is_between and all(beta_refuses(edge, won, count, _ALPHA) for edge in (low, high)):
        return Mark.LEVEL
    return Mark.OPEN


def _mixture(count: float, alpha: float) -> float:
    """The squared half width of a normal mixture, for a sum of `count` values of variance one."""
    return (count + _MIX) * log((count + _MIX) / (_MIX * alpha * alpha))
