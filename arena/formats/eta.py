"""Estimates how long a competition still takes.

Measurements restart after a pause, as the pause would otherwise count as play. Nothing here reads
a clock; any monotonic clock will do.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable
from typing import NamedTuple

__all__ = ["Left", "Pace", "Workload"]

_LATEST = 100  # matches from which the pace is measured

_MARK_S = 1.0  # between marks; the speed is measured from the oldest mark
_MARKS = 10
_UNKNOWN = 1.5  # how much longer than usual a match is, while none so long has ended


class Pace:
    """The pace of a competition, from when its latest matches ended, in seconds."""

    def __init__(self) -> None:
        self._ended = deque[float](maxlen=_LATEST)

    def ended(self, at: float) -> None:
        self._ended.append(at)

    @property
    def last(self) -> float | None:
        return max(self._ended, default=None)

    def left_s(self, matches: int, since: float = 0.0) -> float | None:
        """How many seconds the remaining matches take; None until two have ended since `since`."""
        ended = [at for at in self._ended if at >= since]
        if len(ended) < 2:
            return None
        each_s = (max(ended) - min(ended)) / (len(ended) - 1)
        return round(each_s * max(0, matches), 1)


class Left(NamedTuple):
    """What remains of a competition."""

    decisions: float
    per_s: float  # decisions per second
    waits: bool  # whether matches wait for a table

    def s(self, beside: Iterable[Left] = ()) -> float:
        """How many seconds it takes, beside other competitions that the same bots play.

        While matches wait, free tables go where most is left, so that all end together.
        """
        together = [self, *(left for left in beside if self.waits and left.waits)]
        return sum(left.decisions for left in together) / sum(left.per_s for left in together)


class Workload:
    """The decisions of a competition: how many a match takes, and how fast they are made.

    It counts decisions and not ended matches, as matches that begin together end at about the same
    time. `usual` is the game's own estimate of the decisions of a match; `playing` are the numbers
    of decisions made so far in each open match.
    """

    def __init__(self, usual: float) -> None:
        self._usual = self._each = usual
        self._marks = deque([(0.0, 0)], maxlen=_MARKS)  # the times, and the decisions made by then
        self._made = 0
        self._lengths = Counter[int]()  # of completed matches, with how often

    def begin(self, at: float, playing: Iterable[int] = ()) -> None:
        """Note that play begins, or resumes after a pause."""
        self._marks.clear()
        self._marks.append((at, self._made + sum(playing)))

    def ended(self, made: int, at: float, playing: Iterable[int], *, is_whole: bool) -> None:
        """Note that a match has ended; only a completed match tells how long a match is.

        `playing` is read at most once a second.
        """
        self._made += made
        if is_whole:
            self._lengths[made] += 1
        if at - self._marks[-1][0] >= _MARK_S:
            now = tuple(playing)
            self._marks.append((at, self._made + sum(now)))
            if self._lengths:
                self._each = self._whole(now)[0]

    def rest(self, playing: int, waiting: int) -> float:
        """A rough number of decisions left, given the numbers of open and of waiting matches."""
        return (playing / 2 + max(0, waiting)) * self._each

    def left(self, at: float, playing: Collection[int], waiting: int) -> Left | None:
        """What remains; None before a match is completed and a decision made since play began."""
        since, before = self._marks[0]
        made = self._made + sum(playing) - before
        if not self._lengths or made <= 0 or at <= since:
            return None
        whole = self._whole(playing)
        decisions = sum(max(0.0, whole[each] - each) for each in playing)
        decisions += max(0, waiting) * whole[0]
        return Left(decisions, made / (at - since), waiting > 0)

    def _whole(self, playing: Collection[int]) -> dict[int, float]:
        """The expected length of a match, by the decisions made in it so far.

        At first only short matches are over, so the estimator is Kaplan and Meier's (1958).
        """
        playing = Counter(playing)
        longest = max(self._lengths, default=0)
        usual = self._usual * (_UNKNOWN if max(playing, default=0) > longest else 1.0)
        length, at_risk = max(usual, longest), 0
        whole = {}
        for made in sorted({0, *self._lengths, *playing}, reverse=True):
            at_risk += self._lengths[made] + playing[made]
            if self._lengths[made]:
                ends = self._lengths[made] / at_risk
                length = ends * made + (1 - ends) * length
            whole[made] = length
        return whole
