"""The throttle limits the connections that have not logged in: their number and share of time.

They are called strangers. Their number is limited, per address and in total. If there are too many,
the stranger that has been silent longest is cut. An eighth of the places is reserved for strangers
that have sent a whole request, so that partial requests cannot lock anybody out.

Normally a stranger is read at once. But while matches are played, strangers from an address with
many recent failures stand in line: their sockets are read only in their turns. All turns together
take at most a twentieth of the loop's time, by a token bucket. No address is refused, as a whole
class may share it with somebody who guesses tokens. A peer with a valid token waits its turn, too.

A peer that asks for the page is no stranger once it has its answer. This is no failure, unless its
address sends more requests than anybody needs.

The throttle does not know what strangers send. A turn ends with the first bytes that are read, or
with the tick if none came. A stranger that has then sent no whole request goes to the end of the
line, so that silence or half a message holds nobody up.

With TLS, a handshake comes first. A failing address is charged an estimate when it begins.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from arena.referee.budget import Share
from protocol.messages import Limits

__all__ = ["Allowance", "Throttle", "ThrottledConnection"]

_FAILURES = 10  # of an address in a minute: a class has some in its first lesson
_FAILURES_ANYWHERE = 500  # of all addresses in a minute: then every address counts as failing
_MEMORY_S = 60.0
_MOST_ADDRESSES = 4096  # remembered
_MOST = 4096  # strangers in total: a flood must not use up all sockets
_KEPT = 8  # one place in eight is for strangers that have sent a whole request
_SHARE = 0.05  # of the loop's time while matches are played
_SAVED_S = 0.01  # most unused time that is saved up: more would allow a burst
_TURNS = 8  # at once, as the cost of a turn is known only afterwards
_ASKS, _ASKS_PER_S = 3_000, 50
"""The request limits of an address: a hundred browsers load the page at once, then look around."""


class Allowance:
    """A token bucket per address, with `at_once` tokens, of which `per_s` come back per second."""

    def __init__(self, at_once: float, per_s: float, clock: Callable[[], float]) -> None:
        self._at_once = at_once
        self._per_s = per_s
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # (tokens, time of that count)

    def spend(self, address: str) -> bool:
        """Take a token; return False if none is left."""
        now = self._clock()
        left, at = self._left.pop(address, (self._at_once, now))
        left = min(self._at_once, left + (now - at) * self._per_s)
        is_within = left >= 1
        self._left[address] = (left - 1 if is_within else left, now)  # as the latest
        if len(self._left) > _MOST_ADDRESSES:
            del self._left[next(iter(self._left))]
        return is_within


class ThrottledConnection(Protocol):
    """A connection as the throttle needs it; those with one `address` are counted together."""

    address: str

    @property
    def handshake_s(self) -> float:
        """The estimated time of its TLS handshake, in seconds; 0 without TLS."""

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""

    def resume_reading(self) -> None:
        """Read on, until the deadline for logging in."""

    def cut(self) -> None: ...


_Place: TypeAlias = "dict[_ThrottleEntry, None]"  # ordered, with fast removal


@dataclass(eq=False, slots=True)
class _ThrottleEntry:
    stranger: ThrottledConnection
    place: _Place
    has_failed: bool = False
    has_requested: bool = False  # a WebSocket or a plain answer
    has_asked: bool = False  # for a plain answer, or to watch


class Throttle:
    """Serves the strangers of one gateway; unless matches make it busy, nobody has to wait."""

    def __init__(
        self, limits: Limits, is_busy: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._limits = limits
        self._is_busy = is_busy
        self._clock = clock
        self._entries: dict[object, _ThrottleEntry] = {}
        self._near = Counter[str]()  # strangers by address
        self._requested = Counter[str]()  # strangers that have sent a whole request, by address
        self._free: _Place = {}  # read at any time
        self._line: _Place = {}  # wait for a first turn, or have sent a whole request
        self._last: _Place = {}  # had a turn without sending a whole request, and wait again
        self._turn: _Place = {}  # have their turns now
        self._heard: _Place = {}  # all that could send, in the order in which they last did
        self._failures: dict[str, deque[float]] = {}  # the latest times, by address
        self._asks = Allowance(_ASKS, _ASKS_PER_S, clock)
        self._anywhere = deque[float](maxlen=_FAILURES_ANYWHERE)
        self._share = Share(_SHARE, _SAVED_S)

    def __len__(self) -> int:
        return len(self._entries)

    def connected(self, stranger: ThrottledConnection) -> None:
        """Take a new stranger: serve, queue or cut it."""
        entry = self._entries[stranger] = _ThrottleEntry(stranger, self._free)
        self._free[entry] = self._heard[entry] = None
        if self._counted(entry):
            stranger.resume_reading()

    def moved(self, stranger: object, address: str) -> bool:
        """Count a stranger at its request's address; return False if it has to wait or is cut."""
        entry = self._entries.get(stranger)
        if entry is None:
            return False
        self._uncounted(entry)
        entry.stranger.address, entry.has_requested = address, True
        return self._counted(entry)

    def was_read(self, stranger: object, took_s: float) -> None:
        """Charge a stranger for the processing of its bytes, and end its turn."""
        entry = self._entries.get(stranger)
        if entry is None:
            return
        self._heard.pop(entry, None)
        self._heard[entry] = None
        if entry.place is not self._free or self._is_failing(entry.stranger.address):
            if self._is_busy():
                self._share.spend(self._clock(), took_s)
                if not entry.has_asked:  # otherwise it is no stranger now, and nobody resumes it
                    self._queue(entry, self._line if entry.has_requested else self._last)
            elif entry.place is self._free:
                self._move(entry, self._turn)
        if entry.has_asked:
            self.known(stranger)

    def requested(self, stranger: object) -> None:
        """Note that a stranger has sent a whole request."""
        entry = self._entries.get(stranger)
        if entry is not None and not entry.has_requested:
            entry.has_requested = True
            self._requested[entry.stranger.address] += 1

    def known(self, stranger: object) -> None:
        """Forget a connection that has logged in or got its answer: it is no stranger now."""
        entry = self._entries.pop(stranger, None)
        if entry is not None:
            del entry.place[entry]
            self._heard.pop(entry, None)
            self._uncounted(entry)

    def asked(self, stranger: object) -> None:
        """Note a plain request, or a beginning viewer: it is no stranger after this turn."""
        entry = self._entries.get(stranger)
        if entry is not None and not entry.has_asked:
            entry.has_asked = True
            self.spent(entry.stranger.address)

    def spent(self, address: str) -> bool:
        """Count a request from an address; return False, and count a failure, if it is too many."""
        is_within = self._asks.spend(address)
        if not is_within:
            self.blame(address)
        return is_within

    def blame(self, address: str) -> None:
        """Count a failure at an address, by a stranger or not."""
        now = self._clock()
        times = self._failures.pop(address, None) or deque(maxlen=_FAILURES)
        was_failing = len(times) == times.maxlen and times[0] > now - _MEMORY_S
        times.append(now)
        self._failures[address] = times  # as the latest
        if not was_failing:  # a failing address is throttled already; it must not harm others
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
        """Forget a lost connection; it is a failure if a stranger has asked for nothing."""
        entry = self._entries.get(stranger)
        if entry is None or not entry.has_asked:
            self.failed(stranger)
        self.known(stranger)

    def tick(self) -> None:
        """Serve strangers in line, as far as their share of the time allows."""
        if not self._is_busy():
            self._share = Share(_SHARE, _SAVED_S)
            for entry in (*self._line, *self._last):
                self._serve(entry)
            return
        for silent in tuple(self._turn):
            self._queue(silent, self._last)
        for entry in (*self._line, *self._last)[:_TURNS]:
            if self._share.is_spent(self._clock()):
                break
            self._serve(entry)

    def _counted(self, entry: _ThrottleEntry) -> bool:
        """Count a stranger at its address; return whether it can be served at once."""
        address, waits = entry.stranger.address, False
        self._near[address] += 1
        self._requested[address] += entry.has_requested
        if entry.place is self._free and self._is_failing(address):
            waits = self._is_busy()
            if waits:
                del self._heard[entry]
                self._queue(entry, self._line)
            else:
                self._move(entry, self._turn)
        if self._near[address] > self._limits.strangers:
            self._make_room(entry, self._limits.strangers, address)
        elif len(self) > _MOST:
            self._make_room(entry, _MOST)
        return not waits and entry.stranger in self._entries

    def _uncounted(self, entry: _ThrottleEntry) -> None:
        address = entry.stranger.address
        self._near[address] -= 1
        self._requested[address] -= entry.has_requested
        if not self._near[address]:
            del self._near[address], self._requested[address]

    def _make_room(self, newest: _ThrottleEntry, places: int, address: str | None = None) -> None:
        """Cut one stranger, at an address or anywhere, as there is one too many.

        A stranger that waits for its first turn has not been silent: if all wait, cut the newest.
        """
        crowd = (each for each in self._heard if address in (None, each.stranger.address))
        requested = self._requested.total() if address is None else self._requested[address]
        gone = next(crowd, newest)
        if gone.has_requested and requested <= places // _KEPT:
            gone = next((each for each in crowd if not each.has_requested), gone)
        self.disconnected(gone.stranger)
        gone.stranger.cut()

    def _serve(self, entry: _ThrottleEntry) -> None:
        self._move(entry, self._turn)
        self._heard.setdefault(entry)
        self._share.spend(self._clock(), entry.stranger.handshake_s)
        entry.stranger.resume_reading()

    def _queue(self, entry: _ThrottleEntry, line: _Place) -> None:
        self._move(entry, line)
        entry.stranger.pause_reading()

    def _move(self, entry: _ThrottleEntry, place: _Place) -> None:
        del entry.place[entry]
        place[entry] = None
        entry.place = place

    def _is_failing(self, address: str) -> bool:
        since = self._clock() - _MEMORY_S
        here = self._failures.get(address)
        return any(
            times is not None and len(times) == times.maxlen and times[0] > since
            for times in (here, self._anywhere)
        )
