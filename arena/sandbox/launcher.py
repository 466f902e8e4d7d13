"""Bots as processes of ours: started with what they need, limited, and stopped with all that they have started.

The arena never imports a bot's code to play: `python -m bots` is a program like any student's. What it takes:

- `arena/sandbox/command.py`: the command line, and which files it may see;
- `arena/sandbox/workdir.py`: its directory, with those files, and its environment;
- `arena/sandbox/process.py`, `arena/sandbox/supervisor.py`: the process, its stderr, its end and that of its children (on Windows `arena/sandbox/windows.py`);
- `arena/sandbox/bubblewrap.py`, `arena/sandbox/cgroup.py`, `arena/sandbox/sampler.py`: isolation and limits, as far as this machine has them.

This module holds them together: it knows who runs, whom to tell, and what is to be cleared away.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from arena.engine.verdict import Finding
from arena.sandbox.command import Program, bot_command, read_program
from arena.sandbox.process import Process
from arena.sandbox.process_usage import Peak
from arena.sandbox.sampler import Sampler
from arena.sandbox.windows import PlainProcess
from arena.sandbox.workdir import PreparedBot, clear, environment, prepare, remove, with_companions
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["LaunchedBot", "Launcher", "Program", "bot_command", "read_program"]

_SHELL_SIGNAL = 128  # how bubblewrap says that its program was ended by a signal

OnFinding = Callable[[str, Finding], None]


class LaunchedBot:
    """A bot that was started.

    Attributes:
        name: what we call it.
        pid: of its program, or of the sandbox around it.
        stdin_fd: our end of its standard input if it is a `stdio` program, non-blocking: whoever takes it closes it.
        stdout_fd: the same of its standard output.
        enforced: which limits it is held to, and by what, for people.
        is_metered: whether its CPU time can be measured here.
    """

    def __init__(
        self,
        name: str,
        process: Process | PlainProcess,
        enforced: str,
        is_metered: bool,
        cpu_ms: Callable[[], float],
        peak: Callable[[], Peak],
    ) -> None:
        self.name = name
        self.pid = process.pid
        self.stdin_fd = process.stdin_fd
        self.stdout_fd = process.stdout_fd
        self.enforced = enforced
        self.is_metered = is_metered
        self._cpu_ms = cpu_ms
        self._peak = peak

    def cpu_ms(self) -> float:
        """The CPU time of all its processes so far; after its end, what it was by then."""
        return self._cpu_ms()

    def peak(self) -> Peak:
        """The most memory and processes that it was seen to have; zeros where nothing is sampled."""
        return self._peak()


class _RunningBot:
    """What the launcher knows of a running bot."""

    def __init__(self, name: str, prepared: PreparedBot, process: Process | PlainProcess) -> None:
        self.name = name
        self.prepared = prepared
        self.process = process
        self.is_muted = False  # somebody knows already why it ends
        self.final_cpu_ms: float | None = None
        self.final_peak: Peak | None = None
        self.watcher: asyncio.Task[None] | None = None


class Launcher:
    """The bots that this arena has started.

    Args:
        limits: `memory_mib` and `processes` are held for each.
        hidden: the arena's files and folders, which need not exist yet; SQLite's companions of each are hidden too.
        on_finding: told a bot's name and its offence, once, in the event loop: it ended by itself, or took too much.
        isolate: False never to use bubblewrap.
    """

    def __init__(
        self, limits: Limits, hidden: Iterable[Path], on_finding: OnFinding, *, isolate: bool = True
    ) -> None:
        self._limits = limits
        self._hidden = with_companions(tuple(hidden))
        self._on_finding = on_finding
        self._isolate = isolate
        self._bots: dict[str, _RunningBot] = {}
        self._starting: set[str] = set()
        self._root: Path | None = None
        self._sampler: Sampler | None = None
        self._closed = False

    async def start(
        self, name: str, program: Program, *, url: str = "", token: str = ""
    ) -> LaunchedBot:
        """Start a program.

        Args:
            name: of the bot; none that runs has it.
            program: its command line.
            url: the arena's address, if it is to connect.
            token: what it says `hello` with, for this once.

        Raises:
            UsageError: the name is taken, or the program cannot be shown what it names.
            ArenaError: it cannot be started on this machine, or the launcher is closed.
        """
        if name in self._bots or name in self._starting:
            raise UsageError(f"expected a name that no bot has, got {name!r}")
        self._starting.add(name)
        try:
            prepared = await asyncio.to_thread(
                prepare,
                name,
                program,
                self._limits,
                root=self._make_root(),
                hidden=self._hidden,
                isolate=self._isolate,
            )
            try:
                if self._closed:
                    raise ArenaError(f"cannot start {name}: the arena is closing")
                variables = environment(name, prepared.scratch, url, token)
                process = await _execute(prepared, variables, stdio=program.stdio)
            except BaseException:
                clear(prepared)
                raise
            return self._started(name, prepared, process)
        finally:
            self._starting.discard(name)

    async def stop(self, name: str) -> None:
        """End a bot and all that it has started: politely, then not; nothing is told of it any more.

        A bot that has ended, or never was, is no error.
        """
        if (bot := self._bots.get(name)) is not None:
            bot.is_muted = True
            await bot.process.stop()
            if bot.watcher is not None:
                await asyncio.wait([bot.watcher])

    async def close(self) -> None:
        """End all bots; comes back within some seconds whatever they do."""
        self._closed = True
        while self._bots or self._starting:
            if self._bots:
                await asyncio.gather(*(self.stop(name) for name in list(self._bots)))
            else:  # one that is being started will be here in a moment, or fail
                await asyncio.sleep(0.01)
        if self._sampler is not None:
            await asyncio.to_thread(self._sampler.close)
            self._sampler = None
        if self._root is not None:
            await asyncio.to_thread(remove, self._root)
            self._root = None

    def tail(self, name: str) -> str:
        """The end of what a running bot wrote to stderr; nothing once it has ended, as its finding has it."""
        bot = self._bots.get(name)
        return bot.process.tail if bot is not None else ""

    # ---- To start

    def _make_root(self) -> Path:
        """The folder of all scratch directories, which only we can enter."""
        if self._root is None or not self._root.is_dir():
            self._root = Path(tempfile.mkdtemp(prefix="arena-")).resolve()
        return self._root

    def _started(
        self, name: str, prepared: PreparedBot, process: Process | PlainProcess
    ) -> LaunchedBot:
        if self._sampler is None:
            self._sampler = Sampler(self._limits, self._found)
            self._sampler.start()
        bot = self._bots[name] = _RunningBot(name, prepared, process)
        if process.keeper_pid is not None:
            self._sampler.watch(name, process.keeper_pid)
        bot.watcher = asyncio.create_task(self._watch(bot))
        in_group = prepared.group is not None
        sampled = process.keeper_pid is not None and self._sampler.inactive is None
        enforced = _enforced(in_group=in_group, sampled=sampled, isolated=prepared.isolated)
        return LaunchedBot(
            name,
            process,
            enforced,
            in_group or sampled,
            lambda: self._cpu_ms(bot),
            lambda: self._peak(bot),
        )

    # ---- To watch

    def _found(self, name: str, finding: Finding) -> None:
        """The sampler has found something: a hog is not left running until somebody stops it."""
        if (bot := self._bots.get(name)) is not None:
            bot.process.kill()
            self._tell(bot, finding)

    async def _watch(self, bot: _RunningBot) -> None:
        """Wait for the end of a bot, and clear away what it had."""
        status = await bot.process.ended
        bot.final_cpu_ms = self._cpu_ms(bot)
        bot.final_peak = self._peak(bot)
        try:
            self._tell(bot, _ending(bot, status))
        finally:
            await bot.process.gone
            if self._sampler is not None:
                self._sampler.forget(bot.name)
            del self._bots[bot.name]
            await asyncio.to_thread(clear, bot.prepared)

    def _tell(self, bot: _RunningBot, finding: Finding) -> None:
        if not bot.is_muted:
            bot.is_muted = True
            self._on_finding(bot.name, msgspec.structs.replace(finding, stderr=bot.process.tail))

    def _cpu_ms(self, bot: _RunningBot) -> float:
        if bot.final_cpu_ms is not None:
            return bot.final_cpu_ms
        if bot.prepared.group is not None:
            return bot.prepared.group.cpu_ms()
        if self._sampler is None or bot.process.keeper_pid is None:
            return 0.0
        return self._sampler.cpu_ms(bot.name)

    def _peak(self, bot: _RunningBot) -> Peak:
        if bot.final_peak is not None:
            return bot.final_peak
        if self._sampler is None or bot.process.keeper_pid is None:
            return Peak()
        return self._sampler.peak(bot.name)


async def _execute(
    prepared: PreparedBot, variables: dict[str, str], *, stdio: bool
) -> Process | PlainProcess:
    """Start what was prepared, in the way that this system has."""
    command, scratch = prepared.command, prepared.scratch
    if os.name == "nt":
        return await PlainProcess.start(
            command, scratch=scratch, environment=variables, stdio=stdio
        )
    return await Process.start(
        command,
        scratch=scratch,
        environment=variables,
        stdio=stdio,
        isolated=prepared.isolated,
        procs=prepared.group.procs if prepared.group else None,
    )


def _enforced(*, in_group: bool, sampled: bool, isolated: bool) -> str:
    """Which limits a bot is held to, in words."""
    words = "time"
    if in_group or sampled:
        words += f", memory and processes ({'cgroup' if in_group else 'sampled'})"
    words += ", isolated (bubblewrap)" if isolated else ", not isolated"
    if sys.platform != "linux":
        words += ", what leaves its process group is not stopped"
    return words


def _ending(bot: _RunningBot, status: int | None) -> Finding:
    """What is found when a bot ends by itself."""
    if bot.prepared.isolated and status is not None and status > _SHELL_SIGNAL:
        with contextlib.suppress(ValueError):  # else it is a status of its own
            status = -signal.Signals(status - _SHELL_SIGNAL)
    group = bot.prepared.group
    if group is not None and (finding := group.finding()) is not None:
        return msgspec.structs.replace(finding, exit_status=status)
    return Finding(
        kind=Ending.CRASH,
        # Nobody asked it to go, but a program that ends in order has not crashed in its author's words.
        text=f"{'ended by itself' if status == 0 else 'crashed'}: {_in_words(status)}",
        mechanism=Mechanism.EXIT,
        exit_status=status,
    )


def _in_words(status: int | None) -> str:
    if status is None:
        return "the process that keeps it was killed"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
