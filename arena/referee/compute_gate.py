"""Shares the cores of this machine between submitted bots, which take turns on them.

A bot waits for a core, first come, first served, and keeps it until it has answered. While it
waits, its question has not been sent, so none of its clocks runs (issue 18: no bot is out because
of the load of others). A bot that has a core and sleeps loses it to the next one, as otherwise it
would delay all others until it is out of time. When it goes on, it does so without a core of its
own.

A bot that computes while it has no question takes the cores of others. It is *restless* if it ran
in such time, or was ready to run, at `_RESTLESS` looks in a row; fewer may be a runtime that
compiles. From then on all processes of its program run only when nobody else wants to
(`arena/sandbox`), and need no core here, so that nobody waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Protocol
from weakref import WeakSet

__all__ = ["LOOK_S", "BotGate", "ComputeGate"]

LOOK_S = 0.2
"""Between two looks for sleeping bots; CPU time is counted in steps of 10 ms."""
_LEAST_SHARE = 0.2  # of the time between two looks: a bot that used less sleeps
_IDLE_SHARE = 0.05  # of a core between two looks: a bot that used less is not watched closely
_REST_SHARE = 0.5  # of the time without a question: less is rest, as a runtime tidies up
_AGAIN_S = 5.0  # a resting bot is not watched for this long
_REST_S = 0.02  # less time without a question proves nothing
_RESTLESS = 10  # looks in a row


class _Holder:
    """A holder of a core: what it had used at the last look, and when that was."""

    def __init__(self, used_ms: Callable[[], float] | None) -> None:
        self.used_ms = used_ms
        self.at_ms = 0.0
        self.looked_at: float | None = None

    def sleeps(self, now: float) -> bool:
        """Whether it has hardly used a core, nor waited for one, since the last look."""
        if self.used_ms is None:
            return False
        before_ms, before = self.at_ms, self.looked_at
        self.at_ms, self.looked_at = self.used_ms(), now
        return before is not None and self.at_ms - before_ms < _LEAST_SHARE * (now - before) * 1000


class ComputeGate:
    """Lets at most `cores` of those that have entered compute at once."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._computing: dict[Hashable, _Holder] = {}
        # In the order of arrival.
        self._waiting: dict[Hashable, tuple[Callable[[], None], _Holder]] = {}
        self._bots = WeakSet[BotGate]()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def enter(
        self, who: Hashable, begin: Callable[[], None], used_ms: Callable[[], float] | None = None
    ) -> None:
        """Call `begin` once there is a core: now, or when another user leaves.

        `used_ms` returns how long it has computed so far, or was ready to run without a core of the
        machine. Without `used_ms` it keeps its core until it leaves.
        """
        assert who not in self._computing.keys() | self._waiting.keys(), "it has left before"
        self._waiting[who] = begin, _Holder(used_ms)
        self._admit()

    def leave(self, who: Hashable) -> None:
        """Free its core, or stop waiting for one. Ignored if it has not entered."""
        self._waiting.pop(who, None)
        self._computing.pop(who, None)
        self._admit()

    def look(self, now: float) -> None:
        """Take the cores of sleeping users if others wait, and find restless bots.

        Call this every `LOOK_S`.
        """
        for bot in tuple(self._bots):
            bot.look(now)
        if self._waiting:
            for who in [who for who, holder in self._computing.items() if holder.sleeps(now)]:
                del self._computing[who]
            self._admit()

    def _admit(self) -> None:
        while self._waiting and len(self._computing) < self.cores:
            who = next(iter(self._waiting))
            begin, self._computing[who] = self._waiting.pop(who)
            begin()


class ComputingBot(Protocol):
    """A launched bot on this machine."""

    @property
    def is_restless(self) -> bool: ...

    def cpu_ms(self) -> float:
        """The CPU time of its processes so far."""

    def waited_ms(self) -> float | None:
        """How long its threads were ready to run without a core; None if unknown."""

    def sampled_cpu_ms(self) -> float:
        """`cpu_ms` at the last sample; reading it costs nothing."""

    def is_found_restless(self, used_ms: float, of_ms: float) -> None:
        """Note that it ran, or was ready to, for `used_ms` of `of_ms` without a question."""

    def tell_owner(self) -> None:
        """Tell its owner once; called in a match, when its output reaches the owner."""


class BotGate:
    """How one bot passes a gate; it also watches whether the bot rests while it has no question.

    The bot's CPU time is only read at questions and answers if it used any since the last look.
    `asked` are the users of this bot that already have a core.
    """

    def __init__(
        self,
        gate: ComputeGate,
        bot: ComputingBot,
        clock: Callable[[], float],
        asked: Iterable[Hashable] = (),
    ) -> None:
        self._gate = gate
        self._bot = bot
        self._clock = clock
        self._asked = set(asked)
        self._is_suspect = False
        self._since: tuple[float, float] | None = None  # idle since, `_wanted_ms` then
        self._rest_s = self._used_ms = 0.0  # sums of such times, and of use in them
        self._found = 0  # looks in a row
        self._calm_until = 0.0
        self._looked_at, self._sampled_ms = clock(), bot.sampled_cpu_ms()
        gate._bots.add(self)

    def enter(
        self, who: Hashable, begin: Callable[[], None], used_ms: Callable[[], float] | None = None
    ) -> None:
        """Call `begin` once there is a core; at once if the bot is restless."""
        if self._bot.is_restless:
            self._bot.tell_owner()
            begin()
        else:
            self._gate.enter(who, partial(self._begin, who, begin), used_ms)

    def leave(self, who: Hashable) -> None:
        """Free the core of a user that has answered or is no longer asked."""
        self._gate.leave(who)
        self._asked.discard(who)
        if self._is_suspect and self._since is None and not self._asked:
            self._since = self._clock(), self._wanted_ms()

    def look(self, now: float) -> None:
        """Check whether the bot has computed without a question since the last look."""
        if self._bot.is_restless:
            for who in tuple(self._asked):
                self.leave(who)
            return
        self._count(now)
        if self._rest_s >= _REST_S:
            if self._used_ms >= _REST_SHARE * self._rest_s * 1000:
                self._found += 1
            else:
                self._found, self._calm_until = 0, now + _AGAIN_S
            if self._found == _RESTLESS:
                self._bot.is_found_restless(self._used_ms, self._rest_s * 1000)
            self._rest_s = self._used_ms = 0.0
        before, before_ms = self._looked_at, self._sampled_ms
        self._looked_at, self._sampled_ms = now, self._bot.sampled_cpu_ms()
        least_ms = _IDLE_SHARE * (now - before) * 1000
        is_idle = self._sampled_ms - before_ms < least_ms
        self._is_suspect = not is_idle and now >= self._calm_until
        if is_idle:
            self._found = 0
        elif self._is_suspect and not self._asked:
            self._since = now, self._wanted_ms()

    def _begin(self, who: Hashable, begin: Callable[[], None]) -> None:
        self._asked.add(who)
        if self._since is not None:
            self._count(self._clock())
        begin()

    def _count(self, now: float) -> None:
        """Add up a time without a question, which ends now."""
        if self._since is not None:
            since, before_ms = self._since
            self._since = None
            self._rest_s += now - since
            self._used_ms += self._wanted_ms() - before_ms

    def _wanted_ms(self) -> float:
        """How long it has run, or was ready to run: on a busy machine it runs less."""
        return self._bot.cpu_ms() + (self._bot.waited_ms() or 0.0)
