"""The throttle: limits connections that have not logged in, in number and in their share of time.

They are called strangers. A stranger is read at once. But while matches are played,
those from an address with many recent failures are queued: their sockets are read only in their
turns, and all turns together take at most a twentieth of the loop's time. No address is refused: a
whole class may share one with somebody who guesses tokens, and a peer with a valid token gets its
turn like the others.

A peer that asks for the page is no stranger once it has its answer. That is no failure, unless its
address sends more requests than anybody needs.

The throttle does not know what strangers send. A turn ends with the first bytes that were read, or
with the tick if none came. A peer that is still a stranger then goes to the end of the queue, so
that silence or half a message holds nobody up.

With TLS a handshake comes first. It is charged to a failing address as an estimate, when it begins.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from protocol.messages import Limits

__all__ = ["Allowance", "Throttle", "ThrottledConnection"]

_FAILURES = 10  # of an address in a minute: a class has some in its first lesson
_FAILURES_ANYWHERE = 500  # of all addresses in a minute: then every address counts as failing
_MEMORY_S = 60.0
_MOST_ADDRESSES = 4096  # remembered
_MOST = 4096  # strangers in all: a flood must not use up all sockets
_SHARE = 0.05  # of the loop's time while matches are played
_SAVED_S = 0.01  # of unused time at most: more would allow a burst
_MOST_DEBT_S = 0.005  # by accepting: the next strangers do not pay for all that a flood has cost
_PATIENCE = 2  # turns without a byte: an honest peer has something to send
_TURNS = 8  # at once, as the cost of a turn is known only afterwards
_ASKS, _ASKS_PER_S = 3_000, 50
"""The requests of an address: a hundred browsers load the page at once, and then look around."""
_ACCEPT_S = 0.000_15
"""The time that asyncio takes to accept and to close a socket; it cannot be measured from here."""


class Allowance:
    """A token bucket for each address; `at_once` is its size, and `per_s` tokens come back."""

    def __init__(self, at_once: float, per_s: float, clock: Callable[[], float]) -> None:
        self._at_once = at_once
        self._per_s = per_s
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # tokens, and at which time

    def spend(self, address: str) -> bool:
        """Take a token; False if there is none left."""
        now = self._clock()
        left, at = self._left.pop(address, (self._at_once, now))
        left = min(self._at_once, left + (now - at) * self._per_s)
        is_within = left >= 1
        self._left[address] = (left - 1 if is_within else left, now)  # as the latest
        if len(self._left) > _MOST_ADDRESSES:
            del self._left[next(iter(self._left))]
        return is_within


class ThrottledConnection(Protocol):
    """A connection, as the throttle needs it; those with one `address` are counted together."""

    address: str

    @property
    def handshake_s(self) -> float:
        """The estimated time of its TLS handshake, in seconds; 0 without one."""

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""

    def resume_reading(self) -> None:
        """Read on, for as long as the peer may take to log in."""

    def cut(self) -> None: ...


_Queue: TypeAlias = "dict[_ThrottleEntry, None]"  # ordered, and an entry is removed quickly


@dataclass(eq=False, slots=True)
class _ThrottleEntry:
    stranger: ThrottledConnection
    queue: _Queue
    has_failed: bool = False
    has_asked: bool = False
    silent: int = 0  # turns in which nothing came


class Throttle:
    """Serves the strangers of one gateway; unless it `is_busy` with matches, nobody has to wait."""

    def __init__(
        self, limits: Limits, is_busy: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._limits = limits
        self._is_busy = is_busy
        self._clock = clock
        self._entries: dict[object, _ThrottleEntry] = {}
        self._near = Counter[str]()  # strangers by address
        self._free: _Queue = {}  # are read at any time
        self._line: _Queue = {}  # wait for their turns
        self._turn: _Queue = {}  # have their turns
        self._failures: dict[str, deque[float]] = {}  # the latest times, by address
        self._asks = Allowance(_ASKS, _ASKS_PER_S, clock)
        self._anywhere = deque[float](maxlen=_FAILURES_ANYWHERE)
        self._credit_s = 0.0
        self._ticked_at = clock()

    def __len__(self) -> int:
        return len(self._entries)

    def connected(self, stranger: ThrottledConnection) -> None:
        """Take a new stranger: it is served at once, or queued, or cut."""
        entry = self._entries[stranger] = _ThrottleEntry(stranger, self._free)
        self._free[entry] = None
        if self._counted(entry):
            stranger.resume_reading()

    def moved(self, stranger: object, address: str) -> bool:
        """Count a stranger at its request's address; False if it has to wait, or is cut."""
        entry = self._entries.get(stranger)
        if entry is None:
            return False
        self._uncounted(entry.stranger.address)
        entry.stranger.address = address
        return self._counted(entry)

    def was_read(self, stranger: object, took_s: float) -> None:
        """Charge a stranger for processing what it has sent; its turn is over."""
        entry = self._entries.get(stranger)
        if entry is None:
            return
        is_failing = self._is_failing(entry.stranger.address)
        if entry.queue is not self._free or is_failing:
            self._credit_s -= took_s
            if self._is_busy() and not entry.has_asked:
                self._queue(entry)
            elif entry.queue is self._free:
                self._move(entry, self._turn)
        if entry.has_asked:
            self.known(stranger)

    def known(self, stranger: object) -> None:
        """A connection has logged in, or has its answer, and is no stranger any more."""
        entry = self._entries.pop(stranger, None)
        if entry is not None:
            del entry.queue[entry]
            self._uncounted(entry.stranger.address)

    def asked(self, stranger: object) -> None:
        """A stranger has sent a plain request, or begins to watch: after this turn it is known."""
        entry = self._entries.get(stranger)
        if entry is not None and not entry.has_asked:
            entry.has_asked = True
            self.spent(entry.stranger.address)

    def spent(self, address: str) -> bool:
        """Count a request from an address; False if that is one too many, which is a failure."""
        is_within = self._asks.spend(address)
        if not is_within:
            self.blame(address)
        return is_within

    def blame(self, address: str) -> None:
        """Count a failure at an address, of a stranger or not."""
        now = self._clock()
        times = self._failures.pop(address, None) or deque(maxlen=_FAILURES)
        was_failing = len(times) == times.maxlen and times[0] > now - _MEMORY_S
        times.append(now)
        self._failures[address] = times  # as the latest
        if not was_failing:  # a failing address is throttled already, and tells nothing of others
            self._anywhere.append(now)
        if len(self._failures) > _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]

    def failed(self, stranger: object) -> None:
        """Count a failure of a stranger, at most one; it stays a stranger until it is gone."""
        entry = self._entries.get(stranger)
        if entry is not None and not entry.has_failed:
            entry.has_failed = True
            self.blame(entry.stranger.address)

    def disconnected(self, stranger: object) -> None:
        """A connection is gone; a stranger's is a failure, unless it has asked for something."""
        entry = self._entries.get(stranger)
        if entry is None or not entry.has_asked:
            self.failed(stranger)
        self.known(stranger)

    def tick(self) -> None:
        """Serve queued strangers, as far as their share of the time allows."""
        now = self._clock()
        passed_s, self._ticked_at = now - self._ticked_at, now
        if not self._is_busy():
            self._credit_s = _SAVED_S
            for entry in tuple(self._line):
                self._serve(entry)
        else:
            self._credit_s = min(self._credit_s + _SHARE * passed_s, _SAVED_S)
            for silent in tuple(self._turn):
                silent.silent += 1
                self._queue(silent)
            for entry in tuple(self._line)[:_TURNS]:
                if self._credit_s <= 0:
                    break
                self._serve(entry)

    def _counted(self, entry: _ThrottleEntry) -> bool:
        """Count a stranger at its address; whether it can be served at once."""
        address = entry.stranger.address
        is_failing = self._is_failing(address)
        had_its_turn = entry.queue is not self._free
        waits = is_failing and self._is_busy() and not had_its_turn
        self._near[address] += 1
        if is_failing and self._credit_s > -_MOST_DEBT_S:
            self._credit_s = max(self._credit_s - _ACCEPT_S, -_MOST_DEBT_S)
        if waits:
            self._queue(entry)
        elif is_failing:
            self._move(entry, self._turn)
        if self._near[address] > self._limits.strangers or len(self) > _MOST:
            self._make_room(entry)
        return not waits and entry.stranger in self._entries

    def _uncounted(self, address: str) -> None:
        self._near[address] -= 1
        if not self._near[address]:
            del self._near[address]

    def _make_room(self, newest: _ThrottleEntry) -> None:
        """Cut one stranger, as there is one too many.

        Of those that are read at any time the oldest is cut, which had the time to log in. Of
        those in the queue the newest is cut: else, in a flood, nobody would ever get a turn.
        """
        address = newest.stranger.address
        crowd = self._near[address] > self._limits.strangers
        waits = newest.queue is self._line
        gone = next(
            (
                entry
                for entry in self._entries.values()
                if (not crowd or entry.stranger.address == address)
                and (entry.silent >= _PATIENCE or not waits)
            ),
            newest,
        )
        self.disconnected(gone.stranger)
        gone.stranger.cut()

    def _serve(self, entry: _ThrottleEntry) -> None:
        self._move(entry, self._turn)
        self._credit_s -= entry.stranger.handshake_s
        entry.stranger.resume_reading()

    def _queue(self, entry: _ThrottleEntry) -> None:
        self._move(entry, self._line)
        entry.stranger.pause_reading()

    def _move(self, entry: _ThrottleEntry, queue: _Queue) -> None:
        del entry.queue[entry]
        queue[entry] = None
        entry.queue = queue

    def _is_failing(self, address: str) -> bool:
        since = self._clock() - _MEMORY_S
        here = self._failures.get(address)
        return any(
            times is not None and len(times) == times.maxlen and times[0] > since
            for times in (here, self._anywhere)
        )
