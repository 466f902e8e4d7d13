"""Decides how long a stage waits for bots that are away while their matches are due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from arena.referee.timers import Timer

__all__ = ["Absences"]

_ALMOST_S = 1.0  # deadlines of bots that are late together were set one after another
# The part of its time here that a bot regains for later absences. With a tenth, two bots that are
# here nine tenths of the time are sure to meet.
_REGAINED = 0.1


class Absences:
    """The deadlines of bots that are away.

    A bot that comes and goes does not start afresh each time: it has what it had left, and regains
    a part of the time that it was here. Otherwise two bots that are never here together could hold
    up a stage. `after` and `clock` count seconds; `on_absent` gets the name of a bot that has not
    come in time.
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
        self._extended: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        return iter(self._timers)

    def begin(self, name: str, whole_s: float) -> None:
        """Wait for a bot for `whole_s` seconds, or less if it has been waited for before."""
        left_s, since = self._left.get(name, (whole_s, self._clock()))
        wait_s = min(whole_s, left_s + (self._clock() - since) * _REGAINED)

        def absent() -> None:
            del self._timers[name]
            self._on_absent(name)

        self._timers[name] = self._after(wait_s, absent)

    def came(self, name: str) -> None:
        """Stop waiting for a bot that is here now, and remember how much time it had left."""
        self._extended.discard(name)
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
            self._left[name] = max(0.0, timer.left_s), self._clock()

    def forgive(self, name: str) -> None:
        """Give a bot its full time again, as it plays or its absence was forgiven."""
        self._left.pop(name, None)
        self._extended.discard(name)

    def cancel(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        for name in tuple(self._timers):
            self.cancel(name)

    def is_due(self, name: str, within_s: float = _ALMOST_S) -> bool:
        """Return whether a bot is being waited for and has at most `within_s` seconds left."""
        timer = self._timers.get(name)
        return timer is not None and timer.left_s <= within_s

    def extend(self, name: str, others: Iterable[str]) -> bool:
        """Extend the wait for a bot until these other absent bots are due; False if impossible.

        A wait is extended only once. Otherwise a bot that is away whenever another is due would
        hold up its stage for ever.
        """
        left_s = (self._timers[other].left_s for other in others if other in self._timers)
        due_s = max(left_s, default=0.0)
        if due_s <= _ALMOST_S or name in self._extended:
            return False
        self.forgive(name)
        self._extended.add(name)
        self.begin(name, due_s)
        return True
