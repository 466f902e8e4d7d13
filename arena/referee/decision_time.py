"""What a bot's decisions cost it at one seat (J7).

A bot that connected from outside is charged wall-clock time, minus the floor of its link and the
arena's own lag. A bot that the arena launched is charged the CPU time of its processes since its
latest answer, so neither load nor thinking while others decide makes a difference. For such a bot
wall-clock time has a cap, which grows by the time for which its processes were ready to run without
a core. The rest of a decision's time, without that wait and the CPU time, drains a bank of its own.
`now` is in seconds of the loop's monotonic clock.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from arena.games.verdict import Finding, out_of_clock_time, out_of_time
from arena.referee.clock import (
    QUICK_MS,
    CoreWait,
    LoopLag,
    RoundTripFloor,
    SeatClock,
    charged_from,
    start_cap_ms,
)
from arena.referee.timers import Timer
from arena.referee.transport import LaunchedProcess
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["BotTime", "ConnectionLoss", "SeatTime", "TimeCharge"]

_CORES = os.cpu_count() or 1
_LEAST_LOOK_S = 0.05  # between looks at CPU time
_CPU_TICK_S = 0.01  # Linux counts CPU time in hundredths of a second


class TimeCharge(NamedTuple):
    """What a decision has taken, and what it may take."""

    kind: Ending  # the offence if it takes too much
    taken_ms: float  # credit included
    limit_ms: float  # without the credit
    credit_ms: float
    mechanism: Mechanism
    # Of a launched bot on the clock: the parts of `taken_ms` without a core and with the CPU time,
    # and the charge to the bank of clock time.
    waited_ms: float = 0.0
    cpu_ms: float = 0.0
    idle_ms: float = 0.0
    wall_bank_ms: float | None = None  # what that bank held, if it is the limit

    @property
    def left_ms(self) -> float:
        """How much more the decision may take; negative if it is too late."""
        return self.limit_ms + self.credit_ms - self.taken_ms


@dataclass(slots=True, eq=False)
class ConnectionLoss:
    """A lost or silent connection, until the pending questions are written again (J7)."""

    since: float  # on the loop's clock
    lag_s: float  # the arena's total lag at that moment
    by_arena: bool  # caused by a stall of the arena: no seat's time is used up
    by_ping: bool = False  # only an answered ping ends it, not what a kernel acknowledges
    match: str = ""  # a match that the bot was playing
    closed: tuple[float, float] | None = None  # when, and the lag then; None while it is silent
    timer: Timer | None = None

    @property
    def is_silent(self) -> bool:
        return self.closed is None

    def parts_s(self, opened_at: float, now: float, lag_s: float) -> tuple[float, float]:
        """How long it was silent and lost, without the arena's lag and time before `opened_at`."""
        closed_at, closed_lag_s = self.closed or (now, lag_s)
        silent_s = closed_at - max(self.since, opened_at) - (closed_lag_s - self.lag_s)
        lost_s = now - max(closed_at, opened_at) - (lag_s - closed_lag_s)
        return max(0.0, silent_s), max(0.0, lost_s)

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


@dataclass(slots=True, eq=False, repr=False)
class BotTime:
    """The time of a bot, which counts as one worker, however many tables it has."""

    # None if it connected from outside
    process: LaunchedProcess | None = field(default=None, kw_only=True)
    is_metered: bool = field(init=False)  # charged by CPU time, not by wall-clock time
    link: RoundTripFloor = field(default_factory=RoundTripFloor, init=False)
    loss: ConnectionLoss | None = field(default=None, init=False)  # while its connection is lost
    last_answer: float = field(default=0.0, init=False)
    cpu_ms: float = field(default=0.0, init=False)  # at its last answer
    # How long it had had no core, at its last answer that was not quick.
    waited_ms: float | None = field(default=None, init=False)
    _cpu_read_at: float = field(default=-math.inf, init=False)
    _cpu_read_ms: float = field(default=0.0, init=False)

    def cpu_used_ms(self, now: float) -> float:
        """The CPU time of its processes; not read more often than the kernel counts."""
        assert self.process is not None, "only of what the arena has launched"
        if now - self._cpu_read_at >= _CPU_TICK_S:
            self._cpu_read_at = now
            self._cpu_read_ms = self.process.cpu_ms()
        return self._cpu_read_ms

    def lag(self, by_arena: LoopLag) -> LoopLag:
        """The lag of what comes from it: the arena's, or that of its host."""
        own = None if self.process is None else self.process.lag
        return own or by_arena

    def used_ms(self) -> float:
        """How long its processes have computed, or were ready to run without a core."""
        process = self.process
        return 0.0 if process is None else process.cpu_ms() + (process.waited_ms() or 0.0)


@dataclass(slots=True, eq=False, repr=False)
class SeatTime:
    """The time of one seat, which the current question or invitation uses."""

    player: BotTime
    limits: Limits  # of time, for the player at this seat
    free_until_s: float = field(init=False)  # a quicker answer costs nothing, so no clock is read
    clock: SeatClock = field(init=False)
    nonce: str | None = field(default=None, init=False)  # None until the seat is ready
    asked_at: float = field(default=0.0, init=False)  # when the question or invitation was written
    lag_s: float = field(default=0.0, init=False)  # the arena's total lag at that moment
    waiting: int = field(default=0, init=False)  # other questions open at the bot then
    cpu_ms: float = field(default=0.0, init=False)  # of a metered bot, at its invitation
    # Of the latest decision, unless it was too quick to be measured.
    time_charge: TimeCharge | None = field(default=None, init=False)
    _quick_ms: float = field(init=False)  # a quicker decision is within all wall-clock limits
    # Since the bot began the question, and when that was, if its process had to be looked at.
    _core_wait: CoreWait | None = field(default=None, init=False)
    _looked_from: float = field(default=math.nan, init=False)
    _cpu_from_ms: float = field(default=0.0, init=False)
    _wall: TimeCharge | None = field(default=None, init=False)  # at the latest measure

    def __post_init__(self) -> None:
        limits = self.limits
        free_until_ms: float = min(limits.decision_ms, limits.hard_ms, limits.start_ms)
        self._quick_ms = min(QUICK_MS, limits.wall_ms)
        if self.player.is_metered:
            free_until_ms = min(free_until_ms, self._quick_ms)
        self.free_until_s = free_until_ms / 1000
        self.clock = SeatClock(limits)

    def clock_time(self, now: float) -> float:
        """The time on this seat's clock: `now`, unless a lost connection has stopped the clock.

        For a bot on a host, it is when the host has read it last. It stands until the host has
        handed the question over.
        """
        loss, process = self.player.loss, self.player.process
        if process is not None:
            read_at = process.clock(now)
            now = self.asked_at if read_at is None else read_at
        return now if loss is None else max(loss.since, self.asked_at)

    def measure(self, now: float, lag: LoopLag) -> TimeCharge:
        player, limits = self.player, self.limits
        now, lag = self.clock_time(now), player.lag(lag)
        is_starting = self.nonce is None
        allowed_ms = limits.start_ms if is_starting else self.clock.allowed_ms
        if not player.is_metered:
            late = Ending.ABSENT if is_starting else Ending.TIMEOUT
            took_ms = self._on_wall_ms(now, limits.decision_ms)
            credit_ms = self._credit_ms(now, lag)
            return TimeCharge(late, took_ms, allowed_ms, credit_ms, Mechanism.WALL_CLOCK)
        self._wall = wall = self.measure_wall(now, lag)
        if wall is not None and wall.left_ms < 0:
            return wall
        if is_starting:
            # CPU time since `match`, or since its latest answer in another match if that is later.
            used_ms = player.cpu_used_ms(now) - max(self.cpu_ms, player.cpu_ms)
            return TimeCharge(Ending.ABSENT, used_ms, allowed_ms, 0.0, Mechanism.CPU_CLOCK)
        used_ms = player.cpu_used_ms(now) - player.cpu_ms
        return TimeCharge(Ending.CPU, used_ms, allowed_ms, 0.0, Mechanism.CPU_CLOCK)

    def measure_wall(self, now: float, lag: LoopLag | None) -> TimeCharge | None:
        """The wall-clock charge of a launched bot's decision or start; None if it is quick.

        Both the cap and the bank of clock time limit it; the tighter of the two is returned. For
        the bank, a decision begins with the bot's latest answer if that is later than its question,
        so each moment is charged to one match only. Without `lag` there is no credit.
        """
        limits = self.limits
        on_wall_ms = self._on_wall_ms(now, limits.wall_ms)
        if on_wall_ms <= self._quick_ms:
            return None
        is_starting = self.nonce is None
        late = Ending.ABSENT if is_starting else Ending.TIMEOUT
        credit_ms = 0.0 if lag is None else self._credit_ms(now, lag)
        is_known, waited_ms = self._look_at_process(now)
        cap_ms = waited_ms + (start_cap_ms(limits) if is_starting else limits.wall_ms)
        cap = TimeCharge(late, on_wall_ms, cap_ms, credit_ms, Mechanism.WALL_CAP, waited_ms)
        if is_starting or not (is_known and self.player.is_metered):
            return cap
        # The loop of a busy machine is always a little late, which must not excuse sleep.
        clock_ms = (now - self._began) * 1000
        credit_ms = 0.0 if lag is None else lag.stalled_s(self._began, now) * 1000
        if clock_ms - credit_ms <= QUICK_MS:
            return cap
        cpu_ms = self.player.cpu_used_ms(now) - self._cpu_from_ms
        idle_ms = max(0.0, clock_ms - credit_ms - cpu_ms - waited_ms)
        cap = cap._replace(cpu_ms=cpu_ms, idle_ms=idle_ms)
        bank_ms = self.clock.wall_bank_ms
        limit_ms = bank_ms + cpu_ms + waited_ms
        bank = cap._replace(
            taken_ms=clock_ms, limit_ms=limit_ms, credit_ms=credit_ms, wall_bank_ms=bank_ms
        )
        return min(cap, bank, key=lambda charge: charge.left_ms)

    def charge(self, now: float, lag: LoopLag) -> bool:
        """Charge the decision that was just taken; False if it came too late."""
        self.time_charge = time_charge = self.measure(now, lag)
        player = self.player
        if player.is_metered:
            player.cpu_ms = player.cpu_used_ms(now)
            if self._wall is not None:
                self.pay_wall(self._wall)
            if time_charge.mechanism is Mechanism.WALL_CAP:
                return False  # the bank holds CPU time and cannot pay for wall-clock time
        in_time = self.clock.charge(time_charge.taken_ms, time_charge.credit_ms)
        return in_time and time_charge.left_ms >= 0

    def pay_wall(self, wall: TimeCharge) -> None:
        """Pay for the decision that was just measured from the bank of clock time."""
        assert self._core_wait is not None, "it was not quick"
        self.player.waited_ms = self._core_wait.waited_ms
        self.clock.wall_bank_ms = max(0.0, self.clock.wall_bank_ms - wall.idle_ms)

    def next_check(self, now: float, lag: LoopLag) -> float:
        """When to check for lateness again; the decision is too late if that is not after `now`."""
        on_wall_s = self._on_wall_ms(now, self.limits.wall_ms) / 1000
        if self.player.is_metered and on_wall_s < self.free_until_s:
            return now + self.free_until_s - on_wall_s  # another question came meanwhile
        time_charge = self.measure(now, lag)
        left_s = time_charge.left_ms / 1000
        if time_charge.mechanism is not Mechanism.CPU_CLOCK or left_s <= 0:
            return now + left_s
        wall_left_s = 0.0 if self._wall is None else self._wall.left_ms / 1000
        if (free_s := self.limits.decision_ms / 1000 - on_wall_s) > 0:
            wall_left_s = min(wall_left_s, free_s)
        # With all cores at work, the bot may use its CPU time that many times faster.
        return now + max(_LEAST_LOOK_S, min(left_s / _CORES, wall_left_s))

    def too_late(self) -> Finding:
        """The finding for a decision that was charged and came too late."""
        time_charge = self.time_charge
        assert time_charge is not None, "it has been measured"
        if time_charge.kind is Ending.ABSENT:
            of_cpu = " of CPU" if time_charge.mechanism is Mechanism.CPU_CLOCK else ""
            text = f"not ready within {time_charge.limit_ms:,.0f} ms{of_cpu} after match"
        elif (bank_ms := time_charge.wall_bank_ms) is not None:
            waited_ms, cpu_ms = time_charge.waited_ms, time_charge.cpu_ms
            clock_ms = time_charge.taken_ms - time_charge.credit_ms
            text = out_of_clock_time(clock_ms, cpu_ms, waited_ms, bank_ms, self.limits)
        else:
            text = out_of_time(
                time_charge.taken_ms,
                time_charge.limit_ms,
                time_charge.credit_ms,
                None if time_charge.mechanism is Mechanism.WALL_CAP else self.clock.bank_ms,
                "CPU" if time_charge.kind is Ending.CPU else "",
            )
        return Finding(kind=time_charge.kind, text=text, mechanism=time_charge.mechanism)

    def _on_wall_ms(self, now: float, turn_ms: int) -> float:
        """How many milliseconds the bot is charged with for its question (J7)."""
        if self.nonce is None:  # the question is whether it is ready
            return (now - self.asked_at) * 1000
        last_answer = self.player.last_answer
        return (now - charged_from(self.asked_at, last_answer, self.waiting, turn_ms)) * 1000

    @property
    def _began(self) -> float:
        """When the bot could begin its question: it may have answered others first."""
        is_starting = self.nonce is None
        return self.asked_at if is_starting else max(self.asked_at, self.player.last_answer)

    def _credit_ms(self, now: float, lag: LoopLag) -> float:
        """The milliseconds that are not charged: the floor of the link, and the lag of the arena's
        loop, or of the bot's host, since the question, up to the loss of its connection.
        """
        loss = self.player.loss
        lag_s = lag.total_s(now) if loss is None else loss.lag_s
        return self.player.link.floor_ms + max(0.0, lag_s - self.lag_s) * 1000

    def _look_at_process(self, now: float) -> tuple[bool, float]:
        """Whether the wait for a core is known, and how many ms the bot waited since its question.

        Nothing was read when the question came, as most decisions are quick. So the wait since the
        last figures before it counts, but for at most the time from the question to this look.
        """
        player, began = self.player, self._began
        read_ms = None if player.process is None else player.process.waited_ms()
        waited_ms = read_ms or 0.0
        if self._core_wait is None or self._looked_from != began:
            before_ms = waited_ms if player.waited_ms is None else player.waited_ms
            self._core_wait, self._looked_from = CoreWait(before_ms, began), began
            self._core_wait.look(waited_ms, now)
            if player.is_metered:
                most_ms = (now - began) * 1000 - self._core_wait.total_ms
                self._cpu_from_ms = max(player.cpu_ms, player.cpu_used_ms(now) - most_ms)
        else:
            self._core_wait.look(waited_ms, now)
        return read_ms is not None, self._core_wait.total_ms
