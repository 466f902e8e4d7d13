"""Whether a worker was fit to judge bots by time and memory, and which offences it does not charge.

Nothing that the machine did is charged to a bot (J5). A worker measures its own event loop, free
memory, free disk and how long a program takes to start. What was bad since a match was opened makes
an offence that may have come of it void: the bot was absent, used too much memory, did not answer
in time on the wall, or was killed by the kernel when memory ran out.
"""

from __future__ import annotations

import asyncio
import math
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from protocol.messages import Ending, Mechanism, Verdict

__all__ = ["MachineState", "Trouble", "TroubleKind", "WorkerHealth", "free_memory_mib", "measure"]

_LOOK_S = 0.1
_STATE_EVERY = 10  # looks between two measurements of memory and disk
_LAG_MS = 1_000  # deadlines are moved by the time in which we stood still, but bots wait as well
_MEMORY_MIB = 128  # the kernel swaps, and looks for whom to kill
_DISK_MIB = 64  # programs are unpacked and started there
_START_S = 3.0  # 50 to 150 ms on an idle machine, measured
_KEPT_S = 3600.0  # a longer match is judged by its last hour
_RECENT_S = 5.0
_SIGKILL = 9


class TroubleKind(StrEnum):
    """What was bad."""

    LAG = "lag"
    MEMORY = "memory"
    DISK = "disk"
    START = "start"


class Trouble(msgspec.Struct, frozen=True):
    """Something was bad at a time, on the loop's clock; `text` says what, with figures."""

    at: float
    kind: TroubleKind
    text: str


class MachineState(msgspec.Struct, frozen=True):
    """What a machine has free; None where that cannot be measured."""

    memory_mib: int | None = None
    disk_mib: int | None = None


class WorkerHealth:
    """What was bad on this machine, and when.

    `state` measures the machine; it is called in the event loop and must be quick.
    """

    def __init__(self, state: Callable[[], MachineState], clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._troubles: deque[Trouble] = deque()
        self._lags: deque[tuple[float, float]] = deque()  # (when, ms) of the last seconds
        self._due = math.inf  # when the loop is to be here next
        self.is_short_of_memory = False
        self.shortage = ""  # of memory or disk, just now

    async def watch(self) -> None:
        """Measure, until this is cancelled."""
        looks = 0
        while True:
            if looks % _STATE_EVERY == 0:
                self.look(self._state())
            looks += 1
            self._due = self._clock() + _LOOK_S
            await asyncio.sleep(_LOOK_S)
            self.lagged(self._late_ms())

    def lagged(self, by_ms: float) -> None:
        """The event loop was late by so much just now."""
        now = self._clock()
        self._lags.append((now, by_ms))
        while now - self._lags[0][0] > _RECENT_S:
            self._lags.popleft()
        if by_ms >= _LAG_MS:
            self._note(TroubleKind.LAG, f"the worker stood still for {by_ms:,.0f} ms")

    def look(self, state: MachineState) -> None:
        """Take what the machine has free just now."""
        memory, disk = state.memory_mib, state.disk_mib
        self.is_short_of_memory = memory is not None and memory < _MEMORY_MIB
        self.shortage = ""
        if self.is_short_of_memory:
            self.shortage = f"{memory:,} MiB of memory left"
            self._note(TroubleKind.MEMORY, f"the worker had {self.shortage}")
        if disk is not None and disk < _DISK_MIB:
            self.shortage = f"{disk:,} MiB of disk left"
            self._note(TroubleKind.DISK, f"the worker had {self.shortage}")

    def started(self, took_s: float) -> None:
        """The machine has taken so long to start a program."""
        if took_s >= _START_S:
            self._note(TroubleKind.START, f"the worker took {took_s:,.1f} s to start a program")

    @property
    def lag_ms(self) -> float:
        """The worst of the last seconds."""
        return max((by_ms for _, by_ms in self._lags), default=0.0)

    def excuse(self, verdict: Verdict, since: float) -> str:
        """Why an offence is not charged, of a match that was opened then; empty if it is."""
        # What is found right after a stall may be judged before that was measured.
        if (late_ms := self._late_ms()) >= _LAG_MS:
            self.lagged(late_ms)
        kinds = _excusing(verdict)
        for trouble in reversed(self._troubles):
            if trouble.at >= since and trouble.kind in kinds:
                return trouble.text
        return ""

    def _late_ms(self) -> float:
        return max(0.0, self._clock() - self._due) * 1000

    def _note(self, kind: TroubleKind, text: str) -> None:
        now = self._clock()
        self._troubles.append(Trouble(now, kind, text))
        while now - self._troubles[0].at > _KEPT_S:
            self._troubles.popleft()


def _excusing(verdict: Verdict) -> frozenset[TroubleKind]:
    """What can have made a bot offend so; CPU time and what it sends are its own."""
    match verdict.kind:
        case Ending.ABSENT if verdict.mechanism is not Mechanism.CPU_CLOCK:
            return frozenset(TroubleKind)
        case Ending.TIMEOUT if verdict.mechanism is not Mechanism.CPU_CLOCK:
            return frozenset(TroubleKind)
        case Ending.MEMORY:
            return frozenset(TroubleKind)
        case Ending.CRASH if verdict.exit_status == -_SIGKILL:  # by the kernel, perhaps
            return frozenset({TroubleKind.MEMORY})
        case _:
            return frozenset()


def measure(folders: Sequence[Path]) -> MachineState:
    """What this machine has free, of disk where the least is left of these folders."""
    free = []
    for folder in folders:
        try:
            free.append(shutil.disk_usage(folder).free >> 20)
        except OSError:
            continue
    return MachineState(free_memory_mib(), min(free, default=None))


def free_memory_mib() -> int | None:
    """The memory that programs can still get; None if this system does not say."""
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) >> 10
    except (OSError, ValueError):
        return None
    return None
