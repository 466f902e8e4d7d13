"""Estimates how long a competition has to go.

Measurements start again after a pause, as its time would be counted as play. Nothing here reads a
clock; any monotonic one will do.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Left", "Pace", "Workload"]

_LATEST = 100  # matches that tell the pace

_MARK_S = 1.0  # between marks
_MARKS = 60  # a minute of them
_TINY = 1e-9
_RECENT_S = 5.0  # the speed is measured over at least so long
_RECENT = 2_000  # and over so many decisions: fewer say less
_UNKNOWN = 1.5  # times as long as usual are matches that are longer than all that are over
_CLASS = 0.05  # lengths of matches that differ by less than a twentieth are one class

# Of the time in which every table decides once, this part stays however few tables there are, as
# frames with few questions cost it. Fitted to logs of 40 bots at 0 and at 20 ms.
_FIXED = 0.05


class Pace:
    """The moments at which the latest matches ended, in seconds."""

    def __init__(self) -> None:
        self._ended = deque[float](maxlen=_LATEST)

    def ended(self, at: float) -> None:
        self._ended.append(at)

    @property
    def last(self) -> float | None:
        return max(self._ended, default=None)

    def left_s(self, matches: int, since: float = 0.0) -> float | None:
        """How long so many more matches take, in s; None until two have ended since `since`."""
        ended = [at for at in self._ended if at >= since]
        if len(ended) < 2:
            return None
        each_s = (max(ended) - min(ended)) / (len(ended) - 1)
        return round(each_s * max(0, matches), 1)


class Left(NamedTuple):
    """What is left of a competition."""

    decisions: float
    last: float  # of these, those that are made when no match waits any more
    longest: float  # of these, those of the match that ends last
    tables: int  # matches that are played at once
    per_s: float  # decisions per second
    round_s: float  # from one decision of a match to its next
    link_s: float  # of that, a question and its answer are on their way
    waits: bool  # whether matches wait for a table

    def s(self, beside: Collection[Left] = ()) -> float:
        """How long it takes, in seconds, beside others that are played by the same bots.

        As long as matches wait, tables go to the competition that has the fewest for what is left
        of it, so that none waits long when no match of another does. From then on each table makes
        its decisions faster, but not much, as frames with few questions cost nearly as much.
        """
        everything = [self, *beside]
        queued = [left for left in everything if left.waits]
        full_s = 0.0  # for so long all tables are in use
        if queued:
            first = sum(left.decisions - left.last for left in queued)
            full_s = first / sum(left.per_s for left in queued)
        longest = self.longest
        if not self.waits:
            longest -= full_s / self.round_s
            if longest <= 0:
                return self.longest * self.round_s
        # Of those that wait for nothing some is decided meanwhile.
        last = sum(
            left.last if left.waits else max(0.0, left.last - full_s * left.per_s)
            for left in everything
        )
        round_s = sum(left.round_s for left in everything) / len(everything)
        fixed_s = min(self.link_s + _FIXED * (round_s - self.link_s), round_s)
        others_s = (round_s - fixed_s) * last / sum(left.tables for left in everything)
        return float(full_s + fixed_s * longest + others_s)


class Workload:
    """The decisions of a competition: how many a match takes, and how fast they are made.

    It counts decisions, which come evenly: matches that are played at once end at about the same
    time. `usual` is the game's own estimate of the decisions of a match.
    """

    def __init__(self, usual: float) -> None:
        self._usual = self._each = self._longest = usual
        self._marks = deque[_Mark](maxlen=_MARKS)
        self._made = 0
        self._ended = Counter[int]()  # matches by the class of their length
        # When some matches last waited: how many were played, and the seconds that a decision took
        # in each of them.
        self._full: tuple[int, float] | None = None

    def begin(self, at: float, playing: Collection[int] = ()) -> None:
        """It begins, or goes on after a pause; `playing` has the decisions of each open match."""
        self._marks.clear()
        self._marks.append(self._now(at, playing))

    def ended(self, decisions: int, *, is_whole: bool) -> None:
        """Note that a match has ended; only a completed one tells how long a match is."""
        self._made += decisions
        if is_whole:
            self._ended[_class_of(decisions)] += 1

    def is_due(self, at: float) -> bool:
        return not self._marks or at - self._marks[-1].at >= _MARK_S

    def mark(self, at: float, playing: Collection[int]) -> None:
        """Note how many decisions have been made by now in each open match."""
        self._marks.append(self._now(at, playing))
        if self._ended:
            lengths = _Lengths(self._ended, playing, self._usual)
            self._each, self._longest = lengths.mean, lengths.longest_of(len(playing))

    def rest(self, playing: int, waiting: int) -> float:
        """About how many decisions are left in so many matches that are played and that wait.

        Those that are played may all be long, so that a competition with a few long matches has
        begun them when nothing waits any more.
        """
        return playing / 2 * self._longest + max(0, waiting) * self._each

    def left(
        self, at: float, playing: Collection[int], waiting: int, link_s: float = 0.0
    ) -> Left | None:
        """What is left, and how fast it goes; None until a match and a decision are completed.

        `playing` has the decisions made in each open match, `waiting` is the number not begun.
        """
        now = self._now(at, playing)
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
        if waiting > 0:
            last, longest = min(decisions, tables * lengths.half), lengths.longest_of(tables)
        else:
            latest = lengths.longest_of(len(playing)) - min(playing, default=0)
            last, longest = decisions, max(latest, *rests, 0.0) if playing else 0.0
        return Left(decisions, last, longest, tables, per_s, round_s, link_s, waiting > 0)

    def _now(self, at: float, playing: Collection[int]) -> _Mark:
        return _Mark(at, self._made + sum(playing), len(playing))

    def _recent(self, now: _Mark) -> _Mark:
        """The latest mark that is long enough ago to tell the speed; else the earliest."""
        for mark in reversed(self._marks):
            if now.at - mark.at >= _RECENT_S and now.made - mark.made >= _RECENT:
                return mark
        return self._marks[0] if self._marks else now


class _Mark(NamedTuple):
    """The decisions that had been made at a moment, and the matches that were open."""

    at: float
    made: int
    tables: int


class _Lengths:
    """How long matches are, from those that are over and those that are open.

    At first only the short ones are over, so the estimator is Kaplan and Meier's (1958), over
    classes of length.
    """

    def __init__(self, ended: Counter[int], playing: Collection[int], usual: float) -> None:
        on = Counter(map(_class_of, playing))
        at_risk = ended.total() + len(playing)
        lasting = 1.0  # the share of matches that are longer than the classes up to here
        shares: dict[int, float] = {}
        for length in sorted(ended.keys() | on.keys()):
            shares[length] = lasting * ended[length] / at_risk
            lasting -= shares[length]
            at_risk -= ended[length] + on[length]
        if max(on, default=0) > max(ended, default=0):  # longer than all that are over
            usual *= _UNKNOWN
        self._longest = max(usual, *map(_length_of, shares), 0.0)
        mean, squares = lasting * self._longest, lasting * self._longest**2
        self._beyond: dict[int, float] = {}
        for length in sorted(shares, reverse=True):
            lasting += shares[length]
            mean += shares[length] * _length_of(length)
            squares += shares[length] * _length_of(length) ** 2
            if lasting > _TINY:
                self._beyond[length] = mean / lasting
        self.mean = mean  # decisions of a match
        self.half = squares / mean / 2  # those still to be made, seen at a random moment
        self._shares = shares

    def longest_of(self, matches: int) -> float:
        """How many decisions the longest of so many matches takes: about one of them is longer."""
        longer = 1.0
        for length in sorted(self._shares):
            longer -= self._shares[length]
            if longer * matches < 1:
                return _length_of(length)
        return self._longest

    def rest(self, made: int) -> float:
        """How many decisions are left in a match with `made` ones."""
        whole = self._beyond.get(_class_of(made), self._longest)
        return max(0.0, whole - made)


@lru_cache(maxsize=4_096)
def _class_of(decisions: int) -> int:
    return int(math.log(max(1, decisions)) / _CLASS)


def _length_of(class_: int) -> float:
    return math.exp((class_ + 0.5) * _CLASS)  # its middle
