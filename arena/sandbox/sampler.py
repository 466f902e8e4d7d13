"""Memory, processes and CPU time of the bots that this arena has launched, sampled ten times a second.

A bot's tree is everything below its keeper (arena/sandbox/supervisor.py), which adopts orphans: a child cannot leave it. One thread looks at the table of
all processes once for all bots; what the figures mean for a bot is in `arena/sandbox/process_usage.py`, without I/O, and how
the system is asked in `arena/sandbox/process_table.py`.

Memory is VmHWM, the kernel's own high-water mark, so that no peak of a process falls between two samples, and PSS for a tree, as processes
share pages, with all that the tree's memfds hold, each once, mapped or not. It is neither rusage, which a child inherits, nor RLIMIT_AS, which ends Go, Node and Java at start.

What it cannot see: a process that starts and ends between two samples and whose parent ignores SIGCHLD leaves no trace of its
CPU time in /proc; the clock on the wall limits that. Nor can it see memory that no process has mapped and that is in no memfd of /proc/PID/fd:
a memfd on its way through a socket or in a thread's own table of files, a detached segment of shared memory. A cgroup counts these. It takes at most a tenth of a core: with many processes it samples less often.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from arena.engine.verdict import Finding
from arena.sandbox.process_table import (
    ProcessCpu,
    ProcessEntry,
    Processes,
    ProcessMemory,
    probe,
    reader,
)
from arena.sandbox.process_usage import MIB, Meter, Peak, ProcessReading, judge, tree_of
from protocol.messages import Limits

__all__ = ["Sampler"]

INTERVAL_S = 0.1  # a bot that doubles its memory in that time has written 2 GiB/s
SHARE = 9  # rests nine times as long as a sample took: at most a tenth of a core
JOIN_S = 5.0  # a sample takes milliseconds; a thread that hangs must not hang the arena

log = logging.getLogger(__name__)


class _WatchedBot:
    """A bot that is watched; everything here is under its lock."""

    def __init__(self, name: str, keeper: int, started: float | None) -> None:
        self.name = name
        self.keeper = keeper
        self.started = started  # of the keeper, None if it had gone by then
        self.lock = threading.Lock()
        self.meter = Meter()
        self.pids: tuple[int, ...] = ()
        self.is_suspect = False
        self.is_found = False
        self.peak = Peak()


class Sampler:
    """Looks at all launched bots ten times a second, and at a bot's CPU time whenever it is asked.

    Args:
        limits: `memory_mib` and `processes` are what it is about.
        on_finding: told the bot's name and its first offence, in the event loop.
        processes: how to read the system; found out if it is None.

    Attributes:
        inactive: why nothing is sampled here, or None. Then CPU time is always 0 and nothing is ever found.
        samples: how often all bots have been looked at.
    """

    def __init__(
        self,
        limits: Limits,
        on_finding: Callable[[str, Finding], None],
        processes: Processes | None = None,
    ) -> None:
        self.inactive = probe() if processes is None else None
        self.samples = 0
        if processes is None and self.inactive is None:
            processes = reader()
        self._limits = limits
        self._on_finding = on_finding
        self._processes = processes
        self._bots: dict[str, _WatchedBot] = {}
        self._most_in_files = 0  # of the whole machine, at this sample
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin; the event loop that runs now is the one that is told of findings."""
        assert self._thread is None, "a sampler starts once"
        self._loop = asyncio.get_running_loop()
        if self._processes is None:
            return
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; nothing is told any more."""
        self._closing.set()
        self._bots = {}
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def watch(self, name: str, keeper_pid: int) -> None:
        """From now on, all that is below that process is the bot; a bot of the same name is forgotten."""
        keeper = self._processes.cpu(keeper_pid) if self._processes else None
        bot = _WatchedBot(name, keeper_pid, keeper.started if keeper else None)
        if keeper is not None:
            bot.meter.read([keeper._replace(own_ms=0.0)])
            bot.meter.total_ms = 0.0  # what the keeper had waited for is not the bot's
        self._bots = {**self._bots, name: bot}  # replaced: the thread may be in it

    def forget(self, name: str) -> None:
        """The bot has ended; nothing more is found of it."""
        self._bots = {key: bot for key, bot in self._bots.items() if key != name}

    def cpu_ms(self, name: str) -> float:
        """The CPU time of the bot since it was started, by now, of all its processes, those that have ended included.

        A process that is younger than the last sample is counted from the next one.

        Raises:
            KeyError: no such bot is watched.
        """
        bot = self._bots[name]
        with bot.lock:
            if not bot.pids and self._processes is not None:  # before the first sample
                self._find(bot, self._processes.table())
            self._meter(bot)
            return bot.meter.total_ms

    def peak(self, name: str) -> Peak:
        """The most that the bot was seen to have, at the samples so far.

        Raises:
            KeyError: no such bot is watched.
        """
        return self._bots[name].peak

    def _run(self) -> None:
        pause_s = INTERVAL_S
        has_failed = False
        while not self._closing.wait(pause_s):
            # Its own time, not the wall's: who is made to wait for a core must not rest nine times as long.
            began_s = time.thread_time()
            try:
                self._sample()
            except Exception:  # ours, not a bot's: say so once and go on (J5)
                if not has_failed:
                    log.exception("a sample failed")
                has_failed = True
            pause_s = max(INTERVAL_S, SHARE * (time.thread_time() - began_s))

    def _sample(self) -> None:
        bots = self._bots
        if bots and self._processes is not None:
            table = self._processes.table()
            self._most_in_files = self._processes.most_in_files()
            for bot in bots.values():
                self._look_at(bot, table)
        self.samples += 1

    def _find(
        self, bot: _WatchedBot, table: Mapping[int, ProcessEntry]
    ) -> tuple[list[ProcessEntry], set[int]]:
        """The bot's processes and which of them are the sandbox's; call it with the lock."""
        keeper = table.get(bot.keeper)
        is_there = keeper is not None and keeper.started == bot.started
        tree, structure = tree_of(bot.keeper, table.values() if is_there else ())
        bot.pids = tuple(entry.pid for entry in tree)
        return tree, structure

    def _look_at(self, bot: _WatchedBot, table: Mapping[int, ProcessEntry]) -> None:
        with bot.lock:
            tree, structure = self._find(bot, table)
            self._meter(bot)
            bot.meter.forgive()
        if bot.is_found:
            return
        living = [entry.pid for entry in tree if not entry.is_zombie]
        readings = self._read(living, structure)
        bot.peak = bot.peak.and_now(readings)
        finding = judge(readings, self._limits)
        if finding is None:
            finding = self._judge_together(bot, readings)
        if finding is not None:
            bot.is_found = True
            self._tell(bot, finding)

    def _judge_together(
        self, bot: _WatchedBot, readings: Sequence[ProcessReading]
    ) -> Finding | None:
        """Whether the tree is too large, though no process is: at two samples in a row.

        A child between vfork and exec shares all its parent's memory without having any, for less than a millisecond.
        """
        assert self._processes is not None, "who samples has a reader"
        rss_bytes = sum(reading.rss_bytes for reading in readings)
        limit_bytes = self._limits.memory_mib * MIB
        # With so little in all files on the machine there is no need to look for the bot's.
        looks = readings if rss_bytes + self._most_in_files > limit_bytes else ()
        files = dict(file for each in looks for file in self._processes.files(each.pid).items())
        files_bytes = sum(files.values())
        finding = None
        if rss_bytes + files_bytes > limit_bytes:  # reading PSS takes milliseconds
            shares = [self._with_pss(each, files) for each in readings]
            finding = judge(shares, self._limits, files_bytes)
        was_suspect, bot.is_suspect = bot.is_suspect, finding is not None
        return finding if was_suspect else None

    def _read(self, pids: Sequence[int], structure: set[int]) -> list[ProcessReading]:
        assert self._processes is not None, "who samples has a reader"
        gone = ProcessMemory(0, 0)
        return [
            ProcessReading(
                pid, *(self._processes.memory(pid) or gone), is_structure=pid in structure
            )
            for pid in pids
        ]

    def _with_pss(self, reading: ProcessReading, but: Collection[int]) -> ProcessReading:
        assert self._processes is not None, "who samples has a reader"
        share = self._processes.pss(reading.pid, but)
        return reading._replace(pss_bytes=share or 0)

    def _meter(self, bot: _WatchedBot) -> None:
        """Read the CPU time of the processes that are known, the keeper's first; call it with the lock."""
        if self._processes is None:
            return
        readings: list[ProcessCpu] = []
        keeper = self._processes.cpu(bot.keeper)
        if keeper is not None and keeper.started == bot.started:
            readings.append(keeper._replace(own_ms=0.0))
        for pid in bot.pids:
            if (reading := self._processes.cpu(pid)) is not None:
                readings.append(reading)
        bot.meter.read(readings)

    def _tell(self, bot: _WatchedBot, finding: Finding) -> None:
        def tell() -> None:
            if self._bots.get(bot.name) is bot:  # neither forgotten nor started again
                self._on_finding(bot.name, finding)

        assert self._loop is not None, "it was started"
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(tell)
