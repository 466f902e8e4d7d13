"""What a bot's living processes use, and whether that is within its limits: memory, how many they are, and CPU time; without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from arena.engine.verdict import Finding
from arena.sandbox.process_table import ProcessCpu, ProcessEntry
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["MIB", "Meter", "Peak", "ProcessReading", "judge", "tree_of"]

ROUNDING_MS = 20.0  # of a child two times are known, each rounded down to a tick of 10 ms
MIB = 1 << 20
BWRAP = "bwrap"  # as /proc names it


class ProcessReading(NamedTuple):
    """A living process of a bot.

    Attributes:
        rss_bytes: pages in memory, shared or not.
        peak_bytes: the most that ever was.
        pss_bytes: pages in memory, each divided by the number of those who share it; None if it was not asked for.
        is_structure: a process of the sandbox. It does not count as one of the bot's, but its memory does,
            a MiB or two: so there is nothing to gain by looking like one.
    """

    pid: int
    rss_bytes: int
    peak_bytes: int
    pss_bytes: int | None = None
    is_structure: bool = False


class Peak(NamedTuple):
    """The most that a bot was ever seen to have: memory, of one process ever or of all at one moment, and processes."""

    memory_bytes: int = 0
    processes: int = 0

    def and_now(self, tree: Sequence[ProcessReading]) -> Peak:
        """With another look at its living processes; pages that they share count for each of them."""
        together = sum(process.rss_bytes for process in tree)
        highest = max((process.peak_bytes for process in tree), default=0)
        count = sum(not process.is_structure for process in tree)
        return Peak(max(self.memory_bytes, together, highest), max(self.processes, count))


def judge(tree: Sequence[ProcessReading], limits: Limits, files_bytes: int = 0) -> Finding | None:
    """What a bot's living processes do against its limits, if they do; `files_bytes` are in files, and in nobody's PSS."""
    limit_bytes = limits.memory_mib * MIB
    held = max((process.peak_bytes for process in tree), default=0)
    if held <= limit_bytes:
        held = (_shares(tree) or 0) + files_bytes
    if held > limit_bytes:
        text = f"memory {ceil(held / MIB)} MiB > {limits.memory_mib} MiB (sampled)"
        return Finding(kind=Ending.MEMORY, text=text, mechanism=Mechanism.SAMPLED)
    count = sum(not process.is_structure for process in tree)
    if count > limits.processes:
        text = f"processes {count} > {limits.processes} (sampled)"
        return Finding(kind=Ending.PROCESSES, text=text, mechanism=Mechanism.SAMPLED)
    return None


def _shares(tree: Sequence[ProcessReading]) -> int | None:
    """What the tree holds together in bytes, if that is known of all of it."""
    shares = [process.pss_bytes for process in tree]
    known = [share for share in shares if share is not None]
    return sum(known) if len(known) == len(shares) else None


def tree_of(keeper: int, table: Iterable[ProcessEntry]) -> tuple[list[ProcessEntry], set[int]]:
    """All processes below the keeper, parents first, and which of them are the sandbox's.

    bwrap is the keeper's only child, and its only child is bwrap again, as the first process of the bot's namespace. Whoever else
    stands there under that name has two processes more than others, and nothing else.
    """
    children: dict[int, list[ProcessEntry]] = {}
    for entry in table:
        children.setdefault(entry.parent, []).append(entry)
    tree: list[ProcessEntry] = []
    layer = children.get(keeper, [])
    while layer:
        tree += layer
        layer = [
            child for entry in layer for child in children.pop(entry.pid, ()) if child.pid != keeper
        ]
    return tree, _structure(keeper, [entry for entry in tree if not entry.is_zombie])


def _structure(keeper: int, tree: Sequence[ProcessEntry]) -> set[int]:
    found: set[int] = set()
    parent = keeper
    for _ in range(2):
        below = [entry for entry in tree if entry.parent == parent]
        if len(below) != 1 or below[0].name != BWRAP:
            break
        parent = below[0].pid
        found.add(parent)
    return found


class Meter:
    """The CPU time of a tree, in which processes come and go: it never runs backwards.

    A process that has ended is found again in the time of the one that waited for it, and must not be counted twice; nor may it be
    forgotten if nobody waited for it. Readings must have parents first: then a child's time is never read as its own and,
    a moment later, as its parent's.
    """

    def __init__(self) -> None:
        self.total_ms = 0.0
        self._last: dict[tuple[int, float], ProcessCpu] = {}
        self._owed_ms = 0.0  # of processes that have just gone: counted already
        self._owed_before_ms = 0.0

    def read(self, readings: Iterable[ProcessCpu]) -> None:
        """Add what has been used since the last reading; it has all processes that are still there."""
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
        """A sample has passed: who was not waited for by the next one never will be, but for what rounding hides."""
        rounding_ms = min(self._owed_before_ms, ROUNDING_MS)
        self._owed_before_ms = self._owed_ms + rounding_ms
        self._owed_ms = 0.0

    def _settle(self, reaped_ms: float) -> float:
        """What of the time of children that were waited for is new."""
        known_ms = min(reaped_ms, self._owed_before_ms)
        self._owed_before_ms -= known_ms
        reaped_ms -= known_ms
        known_ms = min(reaped_ms, self._owed_ms)
        self._owed_ms -= known_ms
        return reaped_ms - known_ms
