"""What a bot's processes use, and whether that is within its limits: memory, number, CPU time.

Pure: `process_table` reads the system, and `sampler` combines both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from arena.games.verdict import Finding
from arena.sandbox import relay
from arena.sandbox.process_table import ProcessCpu, ProcessEntry
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["MIB", "Meter", "Peak", "ProcessReading", "WaitMeter", "judge", "tree_of"]

ROUNDING_MS = 20.0  # a child has two times, each rounded down to a tick of 10 ms
MIB = 1 << 20
BWRAP = "bwrap"  # as /proc names bubblewrap


class ProcessReading(NamedTuple):
    """A living process of a bot; `rss_bytes` are its pages in memory, shared or not.

    `is_structure` marks a process of the sandbox. It does not count as one of the bot's processes,
    but its memory does: 2 MiB for bubblewrap and 10 for the relay. So a bot gains nothing by
    looking like one.
    """

    pid: int
    rss_bytes: int
    peak_bytes: int
    is_structure: bool = False


class Peak(NamedTuple):
    """The most memory, of one process or of all at once, and the most processes seen of a bot."""

    memory_bytes: int = 0
    processes: int = 0

    def and_now(self, tree: Sequence[ProcessReading]) -> Peak:
        """The peak after another sample; shared pages count for each process that has them."""
        together = sum(process.rss_bytes for process in tree)
        highest = max((process.peak_bytes for process in tree), default=0)
        count = sum(not process.is_structure for process in tree)
        return Peak(max(self.memory_bytes, together, highest), max(self.processes, count))


def judge(tree: Sequence[ProcessReading], limits: Limits, held_bytes: int = 0) -> Finding | None:
    """The limit that a bot's living processes exceed, if any.

    `held_bytes` is what they hold together, each page counted once, where that was read.
    """
    held = max((process.peak_bytes for process in tree), default=0)
    if held <= limits.memory_mib * MIB:
        held = held_bytes
    if held > limits.memory_mib * MIB:
        text = f"memory {ceil(held / MIB)} MiB > {limits.memory_mib} MiB (sampled)"
        return Finding(kind=Ending.MEMORY, text=text, mechanism=Mechanism.SAMPLED)
    count = sum(not process.is_structure for process in tree)
    if count > limits.processes:
        text = f"processes {count} > {limits.processes} (sampled)"
        return Finding(kind=Ending.PROCESSES, text=text, mechanism=Mechanism.SAMPLED)
    return None


def tree_of(supervisor: int, table: Iterable[ProcessEntry]) -> tuple[list[ProcessEntry], set[int]]:
    """All processes below the supervisor, parents first, and which of them belong to the sandbox.

    bwrap is the supervisor's only child, and its only child is bwrap again, as the first process of
    the bot's namespace. Below them, or below the supervisor, may be one relay. A bot that imitates
    these gains three processes and nothing else.
    """
    children: dict[int, list[ProcessEntry]] = {}
    for entry in table:
        if entry.pid != supervisor:  # ids may be reused while the table is read: no loop
            children.setdefault(entry.parent, []).append(entry)
    tree = children.pop(supervisor, [])
    for entry in tree:
        tree += children.pop(entry.pid, ())  # extends the list that this loop runs over
    return tree, _structure(supervisor, [entry for entry in tree if not entry.is_zombie])


def _structure(supervisor: int, tree: Sequence[ProcessEntry]) -> set[int]:
    structure: set[int] = set()
    parent = supervisor
    for _ in range(2):
        below = [entry for entry in tree if entry.parent == parent]
        if len(below) != 1 or below[0].name != BWRAP:
            break
        parent = below[0].pid
        structure.add(parent)
    relays = [entry.pid for entry in tree if entry.parent == parent and entry.name == relay.NAME]
    return structure | set(relays[:1])


class Meter:
    """The CPU time of a tree in which processes start and end; it never decreases.

    The time of an ended process reappears in that of the parent that waited for it. It must not be
    counted twice, nor be lost if no parent waited. Readings must have parents first: otherwise a
    child's time could be read as its own and, a moment later, as its parent's.
    """

    def __init__(self) -> None:
        self.total_ms = 0.0
        self._last: dict[tuple[int, float], ProcessCpu] = {}
        # Counted time of processes that have just ended, which a parent may report again.
        self._owed_ms = 0.0
        self._owed_before_ms = 0.0

    def read(self, readings: Iterable[ProcessCpu]) -> None:
        """Add what was used since the last call; the readings have all processes that still run."""
        now: dict[tuple[int, float], ProcessCpu] = {}
        reaped_ms = 0.0
        for reading in readings:
            key = (reading.pid, reading.started)
            last = self._last.pop(key, ProcessCpu(*key, 0.0, 0.0))
            own_ms = max(last.own_ms, reading.own_ms)
            self.total_ms += own_ms - last.own_ms
            reaped_ms += max(0.0, reading.reaped_ms - last.reaped_ms)
            now[key] = ProcessCpu(*key, own_ms, max(last.reaped_ms, reading.reaped_ms))
        self._owed_ms += sum(gone.own_ms + gone.reaped_ms for gone in self._last.values())
        self._last = now
        self.total_ms += self._settle(reaped_ms)

    def forgive(self) -> None:
        """End a sample: what no parent reports by the end of the next one is never reported."""
        rounding_ms = min(self._owed_before_ms, ROUNDING_MS)
        self._owed_before_ms = self._owed_ms + rounding_ms
        self._owed_ms = 0.0

    def _settle(self, reaped_ms: float) -> float:
        """The part of the reaped children's time that has not been counted yet."""
        known_ms = min(reaped_ms, self._owed_before_ms)
        self._owed_before_ms -= known_ms
        reaped_ms -= known_ms
        known_ms = min(reaped_ms, self._owed_ms)
        self._owed_ms -= known_ms
        return reaped_ms - known_ms


class WaitMeter:
    """How long the threads of a tree were ready to run without a core; it never decreases.

    Their times are summed, as a wait may pass from thread to thread, and between a bot and its
    relay. So the sum can grow faster than time passes; a sleeping tree adds nothing.
    """

    def __init__(self) -> None:
        self.total_ms = 0.0
        self._last: dict[int, float] = {}

    def read(self, waits: Mapping[int, float]) -> None:
        """Add the wait since the last call; the last wait of a thread that has ended is lost."""
        for thread, waited_ms in waits.items():
            last_ms = self._last.get(thread, 0.0)
            # A lower value belongs to a new thread with the id of an ended one.
            self.total_ms += waited_ms - (last_ms if waited_ms >= last_ms else 0.0)
        self._last = dict(waits)
