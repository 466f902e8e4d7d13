"""How long a competition has to go.

What lies before a pause says nothing of what comes after it: the time of the pause would be counted as play. Nothing here reads a
clock; any that goes forward will do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

__all__ = ["Pace", "Workload"]

_LATEST = 100  # matches; how fast the first ones were does not matter in the end

_MARK_S = 1.0
_MARKS = 60  # a minute, if matches end so often
_TINY_S = 1e-6
_RECENT_S = 5.0  # say how fast it goes
_RECENT = 2_000  # decisions: fewer would say it less well


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


class Workload:
    """The decisions of a competition: how many a match takes, and how fast they are made.

    Matches that are played at the same time end at about the same time; decisions come evenly.
    """

    def __init__(self) -> None:
        self._marks = deque[tuple[float, int]](maxlen=_MARKS)
        self._made = 0
        self._matches = self._in_matches = 0
        self._fastest = 0.0  # decisions a second at one table

    def begin(self, at: float, playing: int = 0) -> None:
        """It begins, or goes on after a pause, with so many decisions made in the matches that are being played."""
        self._marks.clear()
        self._marks.append((at, self._made + playing))

    def ended(self, decisions: int, lasted_s: float, *, is_whole: bool) -> None:
        """A match is over; only one that has run its course says how long a match is."""
        self._made += decisions
        if is_whole:
            self._matches += 1
            self._in_matches += decisions
            self._fastest = max(self._fastest, decisions / max(lasted_s, _TINY_S))

    def is_due(self, at: float) -> bool:
        """Whether it is time for another `mark`."""
        return not self._marks or at - self._marks[-1][0] >= _MARK_S

    def mark(self, at: float, playing: int) -> None:
        """So many decisions have been made by now in the matches that are being played."""
        self._marks.append((at, self._made + playing))

    def left_s(self, at: float, playing: Collection[int], waiting: int) -> float | None:
        """How long the rest takes: at the present speed, but no less than a match takes at its table.

        Args:
            at: the time.
            playing: the decisions of each match that is being played.
            waiting: how many matches have not been begun.

        Returns:
            Seconds; None as long as no match has run its course, or nothing has been decided lately.
        """
        now = self._made + sum(playing)
        since, then = self._recent(at, now)
        if not self._in_matches or now <= then:
            return None
        each = self._in_matches / self._matches
        rests = [max(0.0, each - one) for one in playing]
        at_once_s = (sum(rests) + max(0, waiting) * each) * (at - since) / (now - then)
        if waiting > 0:
            longest = each + min(rests, default=0.0)
        else:
            longest = max(rests, default=0.0)
        return round(max(at_once_s, longest / self._fastest), 1)

    def _recent(self, at: float, now: int) -> tuple[float, int]:
        """The latest mark that is long enough ago to tell the speed; else the earliest."""
        for mark in reversed(self._marks):
            if at - mark[0] >= _RECENT_S and now - mark[1] >= _RECENT:
                return mark
        return self._marks[0] if self._marks else (at, now)
