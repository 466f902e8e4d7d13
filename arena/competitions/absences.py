"""How long a stage waits for bots that are away while their matches are due."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from arena.referee.timers import Timer

__all__ = ["Absences"]

_ALL_BUT_S = 1.0  # between deadlines that were set one after another
_GIVEN_BACK = 0.1
"""Of the time that a bot is here, to be away later: whoever is here nine tenths of the time meets anybody else who is."""


class Absences:
    """The deadlines of bots that are away.

    Who comes and goes has what it had left, and some more for having been here. Else two that are never here at the same time
    would hold up everybody who waits for them.

    Args:
        after: calls in so many seconds.
        clock: the time in seconds.
        on_absent: told of a bot that has not come in time.
    """

    def __init__(
        self,
        after: Callable[[float, Callable[[], None]], Timer],
        clock: Callable[[], float],
        on_absent: Callable[[str], None],
    ) -> None:
        self._after = after
        self._clock = clock
        self._on_absent = on_absent
        self._timers: dict[str, Timer] = {}
        self._left: dict[str, tuple[float, float]] = {}

    def __iter__(self) -> Iterator[str]:
        """The bots that are waited for."""
        return iter(self._timers)

    def begin(self, name: str, whole_s: float) -> None:
        """A bot is away, and has so long to come, unless it was waited for before."""
        left_s, since = self._left.get(name, (whole_s, self._clock()))
        wait_s = min(whole_s, left_s + (self._clock() - since) * _GIVEN_BACK)

        def absent() -> None:
            del self._timers[name]
            self._on_absent(name)

        self._timers[name] = self._after(wait_s, absent)

    def came(self, name: str) -> None:
        """A bot is here; what it had left is kept, if it was waited for."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
            self._left[name] = max(0.0, timer.left_s), self._clock()

    def forgive(self, name: str) -> None:
        """The next time a bot has all the time again, as it plays or its absence was forgiven."""
        self._left.pop(name, None)

    def cancel(self, name: str) -> None:
        """A bot is not waited for any more."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        """Nobody is waited for any more."""
        for name in tuple(self._timers):
            self.cancel(name)

    def is_as_late(self, name: str) -> bool:
        """Whether a bot's deadline is over, or all but, if it has one."""
        timer = self._timers.get(name)
        return timer is not None and timer.left_s <= _ALL_BUT_S
