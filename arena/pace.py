"""How fast a competition goes, and so how long it has to go: by the moments at which its latest matches ended.

What lies before a pause says nothing of what comes after it: the time of the pause would be counted as play. Nothing here reads a
clock; any that goes forward will do.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Pace"]

_LATEST = 100  # matches; how fast the first ones were does not matter in the end


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
