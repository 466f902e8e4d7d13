"""How long a competition has to go.

What lies before a pause says nothing of what comes after it: the time of the pause would be counted as play. Nothing here reads a
clock; any that goes forward will do.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Left", "Pace", "Workload"]

_LATEST = 100  # matches; how fast the first ones were does not matter in the end

_MARK_S = 1.0
_MARKS = 60  # a minute, if matches end so often
_TINY = 1e-9
_RECENT_S = 5.0  # say how fast it goes
_RECENT = 2_000  # decisions: fewer would say it less well
_CLASS = 0.05
"""Lengths of matches that differ by less than a twentieth are one class."""

_FIXED = 0.5
"""Of the time in which every table decides once, however few tables there are: frames cost it. 44 % measured with 64 tables a bot."""


class Pace:
    """The moments at which matches ended, the latest of them, in seconds."""

    def __init__(self) -> None:
        self._ended = deque[float](maxlen=_LATEST)

    def ended(self, at: float) -> None:
        """One more match is over."""
        self._ended.append(at)

    @property
    def last(self) -> float | None:
        """When the last match ended; None before there was any."""
        return max(self._ended, default=None)

    def left_s(self, matches: int, since: float = 0.0) -> float | None:
        """How long so many more matches take at this pace.

        Args:
            matches: how many there still are.
            since: when the competition last began to go on.

        Returns:
            Seconds; None as long as fewer than two matches have ended since then.
        """
        ended = [at for at in self._ended if at >= since]
        if len(ended) < 2:
            return None
        each_s = (max(ended) - min(ended)) / (len(ended) - 1)
        return round(each_s * max(0, matches), 1)


class Left(NamedTuple):
    """What is left of a competition.

    Attributes:
        decisions: that are to be made, in all.
        last: of these, those that are made when nothing waits any more.
        longest: of these, those of one long match.
        tables: how many matches are played at once.
        per_s: how many decisions are made in a second.
        round_s: the time from one decision of a match to its next.
        link_s: of that, how long a question and its answer are on their way.
        waits: whether matches wait for a table.
    """

    decisions: float
    last: float
    longest: float
    tables: int
    per_s: float
    round_s: float
    link_s: float
    waits: bool

    def s(self, beside: Collection[Left] = ()) -> float:
        """How long it takes, in seconds, beside others that are played by the same bots.

        As long as matches wait, tables go to whichever competition has the fewest for what is left of it: so all end together. The
        last matches are slower, as frames with few questions cost nearly as much.
        """
        rivals = [one for one in beside if one.waits]
        together = [self, *(rivals if self.waits else ())]
        last = sum(one.last for one in together)
        tables = sum(one.tables for one in together)
        per_s = sum(one.per_s for one in together)
        round_s = sum(one.round_s for one in together) / len(together)
        fixed_s = min(self.link_s + _FIXED * (round_s - self.link_s), round_s)
        if rivals and not self.waits:
            fixed_s = round_s  # others take the tables that become free
        longest = max(one.longest for one in together)
        before_s = (sum(one.decisions for one in together) - last) / per_s
        after_s = fixed_s * longest + (round_s - fixed_s) * last / tables
        return float(before_s + after_s)


class Workload:
    """The decisions of a competition: how many a match takes, and how fast they are made.

    Matches that are played at the same time end at about the same time; decisions come evenly.

    Args:
        usual: the decisions of a match, as far as the game knows.
    """

    def __init__(self, usual: float) -> None:
        self._usual = self._each = usual
        self._marks = deque[_Mark](maxlen=_MARKS)
        self._made = 0
        self._ended = Counter[int]()  # matches by the class of their length
        self._full: tuple[int, float] | None = None
        """How many matches were played when some last waited, and in how many seconds each of them made a decision."""

    def begin(self, at: float, playing: Collection[int] = ()) -> None:
        """It begins, or goes on after a pause, with so many decisions made in each of the matches that are being played."""
        self._marks.clear()
        self._marks.append(_Mark(at, self._made + sum(playing), len(playing)))

    def ended(self, decisions: int, *, is_whole: bool) -> None:
        """A match is over; only one that has run its course says how long a match is."""
        self._made += decisions
        if is_whole:
            self._ended[_class_of(decisions)] += 1

    def is_due(self, at: float) -> bool:
        """Whether it is time for another `mark`."""
        return not self._marks or at - self._marks[-1].at >= _MARK_S

    def mark(self, at: float, playing: Collection[int]) -> None:
        """So many decisions have been made by now in each of the matches that are being played."""
        self._marks.append(_Mark(at, self._made + sum(playing), len(playing)))
        self._each = _Lengths(self._ended, playing, self._usual).mean

    def rest(self, playing: int, waiting: int) -> float:
        """How many decisions are left, about, in so many matches that are being played and so many that wait."""
        return (playing / 2 + max(0, waiting)) * self._each

    def left(
        self, at: float, playing: Collection[int], waiting: int, link_s: float = 0.0
    ) -> Left | None:
        """What is left, and how fast it goes.

        Args:
            at: the time.
            playing: the decisions of each match that is being played.
            waiting: how many matches have not been begun.
            link_s: how long a question and its answer are on their way.

        Returns:
            None as long as no match has run its course, or nothing has been decided lately.
        """
        now = _Mark(at, self._made + sum(playing), len(playing))
        then = self._recent(now)
        if not self._ended or now.made <= then.made:
            return None
        lengths = _Lengths(self._ended, playing, self._usual)
        rests = [lengths.rest(made) for made in playing]
        decisions = sum(rests) + max(0, waiting) * lengths.mean
        per_s = (now.made - then.made) / max(at - then.at, _TINY)
        if waiting > 0 or self._full is None:
            self._full = max(1, now.tables), max(1, now.tables) / per_s
        tables, round_s = self._full
        last, longest = decisions, max(rests, default=0.0)
        if waiting > 0:
            last, longest = min(decisions, tables * lengths.half), lengths.mean
        if len(playing) > 1:
            longest += lengths.spread
        return Left(decisions, last, longest, tables, per_s, round_s, link_s, waiting > 0)

    def _recent(self, now: _Mark) -> _Mark:
        """The latest mark that is long enough ago to tell the speed; else the earliest."""
        for mark in reversed(self._marks):
            if now.at - mark.at >= _RECENT_S and now.made - mark.made >= _RECENT:
                return mark
        return self._marks[0] if self._marks else now


class _Mark(NamedTuple):
    """How many decisions had been made at a moment, and how many matches were being played."""

    at: float
    made: int
    tables: int


class _Lengths:
    """How long matches are, told by those that are over and by those that are still on: at first only the short ones are over.

    The estimator is Kaplan and Meier's (1958), over classes of length.

    Attributes:
        mean: the decisions of a match.
        half: those that a match still has to make if one looks at any moment.
        spread: their standard deviation.
    """

    def __init__(self, ended: Counter[int], playing: Collection[int], usual: float) -> None:
        on = Counter(map(_class_of, playing))
        at_risk = ended.total() + len(playing)
        lasting = 1.0  # the share of matches that are longer than the classes so far
        shares: dict[int, float] = {}
        for length in sorted(ended.keys() | on.keys()):
            shares[length] = lasting * ended[length] / at_risk
            lasting -= shares[length]
            at_risk -= ended[length] + on[length]
        # Of those that are longer than any that is over nothing else is known.
        self._longest = max(usual, *map(_length_of, shares), 0.0)
        mean, squares = lasting * self._longest, lasting * self._longest**2
        self._beyond: dict[int, float] = {}
        for length in sorted(shares, reverse=True):
            lasting += shares[length]
            mean += shares[length] * _length_of(length)
            squares += shares[length] * _length_of(length) ** 2
            if lasting > _TINY:
                self._beyond[length] = mean / lasting
        self.mean = mean
        self.half = squares / mean / 2
        self.spread = math.sqrt(max(0.0, squares - mean * mean))

    def rest(self, made: int) -> float:
        """How many decisions a match has to make that has made so many."""
        whole = self._beyond.get(_class_of(made), self._longest)
        return max(0.0, whole - made)


@lru_cache(maxsize=4_096)
def _class_of(decisions: int) -> int:
    return int(math.log(max(1, decisions)) / _CLASS)


def _length_of(class_: int) -> float:
    """The middle of a class, in decisions."""
    return math.exp((class_ + 0.5) * _CLASS)
