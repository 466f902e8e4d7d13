"""Samples memory, processes and CPU time of all launched bots ten times a second.

A bot's tree is everything below its supervisor (`arena/sandbox/supervisor.py`), which adopts
orphans, so no child can leave it. One thread samples all bots, by
`arena/sandbox/process_table.py`, and reads only what may have changed: new processes, and those of
bots that have run since the last sample. `arena/sandbox/process_usage.py` judges the figures.

The memory of a process is VmHWM, the kernel's own high-water mark, so that no peak falls between
two samples. The memory of a tree is PSS, as processes share pages, plus all that its memfds hold,
each counted once, mapped or not. rusage would not do, as a child inherits it, nor RLIMIT_AS, which
kills Go, Node and Java at start.

It cannot see:

- the CPU time of a process that starts and ends between two samples, if its parent ignores
  SIGCHLD; the limit on wall-clock time covers that;
- memory that no process has mapped and that is in no memfd of /proc/PID/fd: a memfd in transit over
  a socket or in a thread's own file table, a detached segment of shared memory. A control group
  counts these.

Sampling takes at most a tenth of a core: with many processes it is less frequent.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from arena.games.verdict import Finding
from arena.sandbox.process_table import ProcessCpu, ProcessEntry, Processes, ProcessMemory
from arena.sandbox.process_usage import MIB, Meter, Peak, ProcessReading, WaitMeter, judge, tree_of
from arena.sandbox.scarcity import PAUSE_S, Scarcity
from protocol.messages import Limits

__all__ = ["Sampler"]

INTERVAL_S = 0.1  # a bot that doubles its memory in that time has written 2 GiB/s
SHARE = 9  # it pauses nine times as long as a sample took, and so uses at most a tenth of a core
ALL = 10  # samples: each tenth reads everything, as an id may be another process's by then
JOIN_S = 5.0  # a sample takes milliseconds; a thread that hangs must not hang the arena

log = logging.getLogger(__name__)


class _WatchedBot:
    """A watched bot; `lock` guards `meter`, `waits` and `pids`."""

    def __init__(
        self, name: str, supervisor: int, started: float | None, is_behind: Callable[[], bool]
    ) -> None:
        self.name = name
        self.is_behind = is_behind
        self.supervisor = supervisor
        self.started = started  # of the supervisor, None if it was gone by then
        self.lock = threading.Lock()
        self.meter = Meter()
        self.waits = WaitMeter()
        self.pids: tuple[int, ...] = ()
        self.readings: dict[int, ProcessCpu] = {}  # the latest
        self.clocks: dict[int, float | None] = {}  # at the last sample
        self.is_suspect = False
        self.is_found = False
        self.peak = Peak()


class Sampler:
    """Samples all launched bots ten times a second, and a bot's CPU time on request.

    `on_finding` is called in the event loop with a bot's name and its first offence.
    """

    def __init__(
        self, limits: Limits, on_finding: Callable[[str, Finding], None], processes: Processes
    ) -> None:
        self.samples = 0  # the number so far
        self._limits = limits
        self._on_finding = on_finding
        self._processes = processes
        self._bots: dict[str, _WatchedBot] = {}
        self._most_in_files = 0  # of the whole machine, at this sample
        # The processes that belonged to no bot at the last sample, and the bots of that sample.
        self._strangers: tuple[set[int], Mapping[str, _WatchedBot]] = set(), {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; `on_finding` is not called any more."""
        self._closing.set()
        self._bots = {}
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def watch(
        self, name: str, supervisor_pid: int, is_behind: Callable[[], bool] = lambda: False
    ) -> None:
        """Watch all processes below this one as a bot, replacing an earlier bot of that name.

        While `is_behind` returns true, they run only when the rest of the machine is idle.
        """
        supervisor = self._processes.cpu(supervisor_pid)
        started = supervisor.started if supervisor else None
        bot = _WatchedBot(name, supervisor_pid, started, is_behind)
        if supervisor is not None:
            bot.meter.read([supervisor._replace(own_ms=0.0)])
            bot.meter.total_ms = 0.0  # time of children reaped before this is not the bot's
        self._bots = {**self._bots, name: bot}  # replaced, as the thread may be iterating over it

    def forget(self, name: str) -> None:
        self._bots = {key: bot for key, bot in self._bots.items() if key != name}

    def cpu_ms(self, name: str) -> float:
        """The CPU time of all the bot's processes so far, ended ones included, or a `KeyError`.

        A process that is younger than the last sample is counted from the next one on.
        """
        bot = self._bots[name]
        with bot.lock:
            if not bot.pids:  # before the first sample
                self._find(bot, self._processes.entries(self._processes.pids()))
            self._meter(bot)
            return bot.meter.total_ms

    def sampled_cpu_ms(self, name: str) -> float:
        """The bot's CPU time as it was last read, or a `KeyError`."""
        return self._bots[name].meter.total_ms

    def waited_ms(self, name: str) -> float:
        """How long the bot's processes have waited for a core so far, or a `KeyError`.

        Waits of processes that have ended since the last call are unknown.
        """
        bot = self._bots[name]
        with bot.lock:
            if not bot.pids:  # before the first sample
                self._find(bot, self._processes.entries(self._processes.pids()))
            waits: dict[int, float] = {}
            for pid in bot.pids:
                waits |= self._processes.waits(pid, are_behind=bot.is_behind())
            bot.waits.read(waits)
            return bot.waits.total_ms

    def peak(self, name: str) -> Peak:
        """The most that the bot had at any sample; a `KeyError` if no such bot is watched."""
        return self._bots[name].peak

    def _run(self) -> None:
        pause_s = INTERVAL_S
        has_failed = False
        scarcity = Scarcity("no bot's memory and CPU time can be sampled (%s): matches go on")
        while not self._closing.wait(pause_s):
            # Thread time, not wall-clock time: waiting for a core must not lengthen the pause.
            began_s = time.thread_time()
            try:
                self.sample()
            except Exception as error:  # our fault, not a bot's: log it once and go on (J5)
                if scarcity.tell(error):
                    pause_s = PAUSE_S
                    continue
                if not has_failed:
                    log.exception("a sample failed")
                has_failed = True
            pause_s = max(INTERVAL_S, SHARE * (time.thread_time() - began_s))

    def sample(self) -> None:
        bots = self._bots
        if bots:
            # A process that is new in the list has a parent whose clock has advanced since.
            clocks = [self._clocks(bot) for bot in bots.values()]
            pids = self._processes.pids()
            strangers, of = self._strangers
            if of is not bots or self.samples % ALL == 0:
                strangers, at_rest = set[int](), list[_WatchedBot]()
            else:
                at_rest = [bot for bot in bots.values() if not self._has_moved(bot)]
            entries = self._processes.entries(pids - strangers - _processes_of(at_rest))
            self._most_in_files = self._processes.most_in_files()
            for bot, before in zip(bots.values(), clocks, strict=True):
                bot.clocks = before
                if bot not in at_rest:
                    self._look_at(bot, entries)
                with bot.lock:
                    bot.meter.forgive()
            self._strangers = pids - _processes_of(bots.values()), bots
        self.samples += 1

    def _clocks(self, bot: _WatchedBot) -> dict[int, float | None]:
        return {pid: self._processes.clock(pid) for pid in (bot.supervisor, *bot.pids)}

    def _has_moved(self, bot: _WatchedBot) -> bool:
        """Whether one of the bot's processes has run, or ended, since before the last sample."""
        clocks = self._clocks(bot)
        return not bot.pids or bot.is_suspect or None in clocks.values() or clocks != bot.clocks

    def _find(
        self, bot: _WatchedBot, entries: Mapping[int, ProcessEntry]
    ) -> tuple[list[ProcessEntry], set[int]]:
        """The bot's processes and which of them are the sandbox's; the caller holds the lock."""
        supervisor = entries.get(bot.supervisor)
        is_there = supervisor is not None and supervisor.started == bot.started
        tree, structure = tree_of(bot.supervisor, entries.values() if is_there else ())
        bot.pids = tuple(entry.pid for entry in tree)
        return tree, structure

    def _look_at(self, bot: _WatchedBot, entries: Mapping[int, ProcessEntry]) -> None:
        with bot.lock:
            tree, structure = self._find(bot, entries)
            self._meter(bot)
        if bot.is_behind():  # each time, as a process may have been started meanwhile
            for pid in bot.pids:
                self._processes.put_behind(pid)
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
        """The finding if the tree is too large, though no process is, at two samples in a row.

        One sample is no proof: between vfork and exec, for less than a millisecond, a child seems
        to have all its parent's memory.
        """
        rss_bytes = sum(reading.rss_bytes for reading in readings)
        limit_bytes = self._limits.memory_mib * MIB
        files: dict[int, int] = {}
        # Otherwise even all files in memory on this machine would not make the tree too large.
        if rss_bytes + self._most_in_files > limit_bytes:
            for reading in readings:
                files |= self._processes.files(reading.pid)
        files_bytes = sum(files.values())
        finding = None
        if rss_bytes + files_bytes > limit_bytes:  # only then, as reading PSS takes milliseconds
            shares = (self._processes.pss(reading.pid, files) or 0 for reading in readings)
            finding = judge(readings, self._limits, sum(shares) + files_bytes)
        was_suspect, bot.is_suspect = bot.is_suspect, finding is not None
        return finding if was_suspect else None

    def _read(self, pids: Sequence[int], structure: set[int]) -> list[ProcessReading]:
        gone = ProcessMemory(0, 0)
        return [
            ProcessReading(
                pid, *(self._processes.memory(pid) or gone), is_structure=pid in structure
            )
            for pid in pids
        ]

    def _meter(self, bot: _WatchedBot) -> None:
        """Read the CPU time of all processes, the supervisor first; the caller holds the lock."""
        latest: dict[int, ProcessCpu] = {}
        for pid in (bot.supervisor, *bot.pids):
            reading = bot.readings.get(pid)
            # A process that has not run since cannot have waited for a child.
            if reading is None or reading.own_ms != self._processes.clock(pid):
                reading = self._processes.cpu(pid)
            if reading is not None:
                latest[pid] = reading
        bot.readings = dict(latest)
        supervisor = latest.pop(bot.supervisor, None)
        readings = list(latest.values())
        if supervisor is not None and supervisor.started == bot.started:
            readings.insert(0, supervisor._replace(own_ms=0.0))
        bot.meter.read(readings)

    def _tell(self, bot: _WatchedBot, finding: Finding) -> None:
        def tell() -> None:
            if self._bots.get(bot.name) is bot:  # neither forgotten nor started again
                self._on_finding(bot.name, finding)

        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(tell)


def _processes_of(bots: Iterable[_WatchedBot]) -> set[int]:
    """All processes of these bots at the last sample, and their supervisors."""
    return {pid for bot in bots for pid in (bot.supervisor, *bot.pids)}
