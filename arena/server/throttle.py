"""Those who are connected and have not said who they are: how many there may be, and how much of the loop's time they may take.

Whoever means well says `hello` at once and is read at once. Strangers from an address where many have failed lately stand in a
line while matches are played: their sockets are read only in their turns, and all their turns together take at most a twentieth of the
loop's time. Nobody is refused for an address: a whole class may sit behind the one that somebody guesses tokens from, and
who has a good token gets its turn like the others.

Whoever only asks for the page is no stranger any more when it has its answer, and has not failed, unless its address asks more than
anybody needs.

Nothing here knows what strangers say. A turn ends with the first bytes that were read, or with the tick if none came, and whoever is
a stranger still goes to the end of the line: one that says nothing, or half of something, holds nobody up.

With TLS a handshake comes first. Of all handshakes only so many steps are worked off in a tick, and for only so long, whoever they are with; those with an
address where many have failed only while its strangers have some of their share of the time left, and are paid for out of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from protocol.messages import Limits

__all__ = ["Allowance", "Throttle", "ThrottledConnection"]

_FAILURES = 10  # in a minute: a class has some in its first lesson
_FAILURES_ANYWHERE = 500  # then they may come from many addresses, and no longer count by
_MEMORY_S = 60.0
_MOST_ADDRESSES = 4096  # remembered: more than that is `anywhere`
_MOST = 4096  # from everywhere: a flood of them must not use up all sockets
_SHARE = 0.05  # of the loop's time while matches are played
_SAVED_S = 0.01  # what is not used does not gather: it would be a burst
_MOST_DEBT_S = 0.005  # by accepting, a tenth of a second's share: what a flood has cost is not paid by who comes next
_PATIENCE = 2  # turns without a word: those who mean well have something to say
_STEPS = 8  # of handshakes of TLS in a tick
_STEPS_S = 0.004  # and so long at most: with a key of RSA-4096 one takes nearly as long
_TURNS = 8  # at once, as what one costs is known only afterwards
_ASKS, _ASKS_PER_S = 3_000, 50
"""The requests of an address: a hundred browsers load the page at the same moment, and each looks at something now and then."""
_ACCEPT_S = 0.000_15
"""What asyncio takes to accept a socket and to close it, which cannot be measured from here."""


class Allowance:
    """How many requests an address may send: so many at once, and then so many a second.

    A whole class behind one address opens the page in the same minute, which is fine; one program that asks without end is not.

    Args:
        at_once: what an address has that was quiet for long.
        per_s: what comes back in a second.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, at_once: float, per_s: float, clock: Callable[[], float]) -> None:
        self._at_once = at_once
        self._per_s = per_s
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # and when

    def spend(self, address: str) -> bool:
        """Take one; False if there is none left."""
        now = self._clock()
        left, at = self._left.pop(address, (self._at_once, now))
        left = min(self._at_once, left + (now - at) * self._per_s)
        is_within = left >= 1
        self._left[address] = (left - 1 if is_within else left, now)  # as the latest
        if len(self._left) > _MOST_ADDRESSES:
            del self._left[next(iter(self._left))]
        return is_within


class ThrottledConnection(Protocol):
    """A connection, as far as it matters here.

    Attributes:
        address: where connections of the same origin are counted together.
        handshake_s: what serving it will cost at first beyond what is told by `shake` and to `was_read`.
    """

    address: str

    @property
    def handshake_s(self) -> float:
        """See above."""

    def shake(self) -> float:
        """Work off what has come of its handshake of TLS; the seconds that it took."""

    def pause_reading(self) -> None:
        """Read no more from it."""

    def resume_reading(self) -> None:
        """Read on; what it has to say it must say soon."""

    def cut(self) -> None:
        """Close without a word."""


_Queue: TypeAlias = "dict[_ThrottleEntry, None]"  # in order, and quick to leave


@dataclass(eq=False, slots=True)
class _ThrottleEntry:
    stranger: ThrottledConnection
    queue: _Queue
    has_failed: bool = False
    has_asked: bool = False
    silent: int = 0  # turns in which nothing came


class Throttle:
    """The strangers of one gateway.

    Args:
        limits: of their number.
        is_busy: whether matches are played; else nobody has to wait.
        clock: the loop's monotonic clock, in seconds.
    """

    def __init__(
        self, limits: Limits, is_busy: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._limits = limits
        self._is_busy = is_busy
        self._clock = clock
        self._places: dict[object, _ThrottleEntry] = {}
        self._near = Counter[str]()  # how many there are, by address
        self._free: _Queue = {}  # are read at any time
        self._line: _Queue = {}  # wait for their turns
        self._turn: _Queue = {}  # have it
        self._shaking: _Queue = {}  # wait for a step of their handshakes
        self._steps, self._steps_s = 0, 0.0  # in this tick
        self._failures: dict[str, deque[float]] = {}  # when: the latest, by address
        self._asks = Allowance(_ASKS, _ASKS_PER_S, clock)
        self._anywhere = deque[float](maxlen=_FAILURES_ANYWHERE)
        self._credit_s = 0.0
        self._ticked_at = clock()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._places)

    def connected(self, stranger: ThrottledConnection) -> None:
        """A new one: it is served at once, or gets into the line, or has no place."""
        place = self._places[stranger] = _ThrottleEntry(stranger, self._free)
        self._free[place] = None
        if self._counted(place):
            stranger.resume_reading()

    def moved(self, stranger: object, address: str) -> bool:
        """By its request one turns out to come from elsewhere, through a proxy; whether it may go on, or has to wait to be served, or has no place."""
        place = self._places.get(stranger)
        if place is None:
            return False
        self._uncounted(place.stranger.address)
        place.stranger.address = address
        return self._counted(place)

    def was_read(self, stranger: object, took_s: float) -> None:
        """Something that one said has been dealt with, in so many seconds."""
        place = self._places.get(stranger)
        if place is None:
            return
        is_failing = self._is_failing(place.stranger.address)
        if place.queue is not self._free or is_failing:
            self._credit_s -= took_s
            if self._is_busy() and not place.has_asked:
                self._queue(place)
            elif place.queue is self._free:
                self._move(place, self._turn)
        if place.has_asked:
            self.known(stranger)

    def shakes(self, stranger: object) -> None:
        """Something of a handshake of TLS has come from one: it is worked off now, or in a later tick."""
        place = self._places.get(stranger)
        if place is not None:
            self._shaking[place] = None
            if self._shakes_more:
                self._shake(place)

    def known(self, stranger: object) -> None:
        """One has said who it is: it is none any more."""
        place = self._places.pop(stranger, None)
        if place is not None:
            self._shaking.pop(place, None)
            del place.queue[place]
            self._uncounted(place.stranger.address)

    def asked(self, stranger: object) -> None:
        """One has sent a request: it gets its answer, or watches from now on, and wants nothing else."""
        place = self._places.get(stranger)
        if place is not None and not place.has_asked:
            place.has_asked = True
            self.spent(place.stranger.address)

    def spent(self, address: str) -> bool:
        """Somebody there, stranger or not, has had us do something; False if that was too much, which is a failure."""
        is_within = self._asks.spend(address)
        if not is_within:
            self._count(address)
        return is_within

    def blame(self, address: str) -> None:
        """Somebody there, who is no stranger any more, was refused."""
        self._count(address)

    def failed(self, stranger: object) -> None:
        """One was refused; until it has gone its words cost time."""
        place = self._places.get(stranger)
        if place is not None and not place.has_failed:
            place.has_failed = True
            self._count(place.stranger.address)

    def disconnected(self, stranger: object) -> None:
        """One has gone; without ever being known or asking for anything, that is a failure."""
        place = self._places.get(stranger)
        if place is None or not place.has_asked:
            self.failed(stranger)
        self.known(stranger)

    def tick(self) -> None:
        """The next turns, as far as there is time for them."""
        now = self._clock()
        passed_s, self._ticked_at = now - self._ticked_at, now
        self._steps, self._steps_s = 0, 0.0
        if not self._is_busy():
            self._credit_s = _SAVED_S
            for place in tuple(self._line):
                self._serve(place)
            self._shake_on()
            return
        self._credit_s = min(self._credit_s + _SHARE * passed_s, _SAVED_S)
        for silent in tuple(self._turn):
            silent.silent += 1
            self._queue(silent)
        for place in tuple(self._line)[:_TURNS]:
            if self._credit_s <= 0:
                break
            self._serve(place)
        self._shake_on()

    # --- within ---

    def _counted(self, place: _ThrottleEntry) -> bool:
        """Count one where it comes from; whether it can be served at once."""
        address = place.stranger.address
        is_failing = self._is_failing(address)
        had_its_turn = place.queue is not self._free
        waits = is_failing and self._is_busy() and not had_its_turn
        self._near[address] += 1
        if is_failing and self._credit_s > -_MOST_DEBT_S:  # else it is less already
            self._credit_s = max(self._credit_s - _ACCEPT_S, -_MOST_DEBT_S)
        if waits:
            self._queue(place)
        elif is_failing:
            self._move(place, self._turn)
        if self._near[address] > self._limits.strangers or len(self) > _MOST:
            self._make_room(place)
        return not waits and place.stranger in self._places

    def _uncounted(self, address: str) -> None:
        self._near[address] -= 1
        if not self._near[address]:
            del self._near[address]

    def _shake_on(self) -> None:
        """The next steps of handshakes, in the order in which they came."""
        for place in tuple(self._shaking):
            if not self._shakes_more:
                break
            self._shake(place)

    @property
    def _shakes_more(self) -> bool:
        """Whether there is room for another step in this tick; what one takes is known only afterwards."""
        return self._steps < _STEPS and self._steps_s < _STEPS_S

    def _shake(self, place: _ThrottleEntry) -> None:
        """One step, unless it has to wait."""
        is_failing = self._is_failing(place.stranger.address)
        if is_failing and self._is_busy() and self._credit_s <= 0:
            return
        del self._shaking[place]
        self._steps += 1
        took_s = place.stranger.shake()
        self._steps_s += took_s
        if is_failing:
            self._credit_s -= took_s

    def _make_room(self, newest: _ThrottleEntry) -> None:
        """There is one too many, who must go.

        Of those that are read at any time the oldest, as it had the time to say who it is. In the line the newest: those before it
        have their turns soon, and if they went for whoever comes next, a flood would see to it that nobody ever gets there.
        """
        address = newest.stranger.address
        crowd = self._near[address] > self._limits.strangers
        waits = newest.queue is self._line
        gone = next(
            (
                place
                for place in self._places.values()
                if (not crowd or place.stranger.address == address)
                and (place.silent >= _PATIENCE or not waits)
            ),
            newest,
        )
        self.disconnected(gone.stranger)
        gone.stranger.cut()

    def _serve(self, place: _ThrottleEntry) -> None:
        self._move(place, self._turn)
        self._credit_s -= place.stranger.handshake_s
        place.stranger.resume_reading()

    def _queue(self, place: _ThrottleEntry) -> None:
        self._move(place, self._line)
        place.stranger.pause_reading()

    def _move(self, place: _ThrottleEntry, queue: _Queue) -> None:
        del place.queue[place]
        queue[place] = None
        place.queue = queue

    def _is_failing(self, address: str) -> bool:
        since = self._clock() - _MEMORY_S
        here = self._failures.get(address)
        return any(
            times is not None and len(times) == times.maxlen and times[0] > since
            for times in (here, self._anywhere)
        )

    def _count(self, address: str) -> None:
        now = self._clock()
        times = self._failures.pop(address, None) or deque(maxlen=_FAILURES)
        has_line = len(times) == times.maxlen and times[0] > now - _MEMORY_S
        times.append(now)
        self._failures[address] = times  # as the latest
        if not has_line:  # who has a line of its own says nothing of others
            self._anywhere.append(now)
        if len(self._failures) > _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
