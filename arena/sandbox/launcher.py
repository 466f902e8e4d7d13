"""Launches bots as processes: starts, limits and stops them, with everything that they started.

The arena never imports a bot's code to play: `python -m bots` is a program like any student's.
This module combines:

- `command`: the command line, and which files it may see;
- `workdir`: the bot's directory with those files, and its environment;
- `process` and `supervisor`: the process, its stderr, its end and that of its children
  (on Windows `windows`);
- `bubblewrap`, `cgroup` and `sampler`: isolation and limits, as far as this machine has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec

from arena.games.names import public_name
from arena.games.verdict import Finding
from arena.sandbox.bubblewrap import SCRATCH_MIB
from arena.sandbox.command import Program, bot_command, read_program
from arena.sandbox.process import Process, StderrTail
from arena.sandbox.process_table import knows_waits, probe, reader
from arena.sandbox.process_usage import Peak
from arena.sandbox.sampler import Sampler
from arena.sandbox.supervisor import NICENESS
from arena.sandbox.windows import PlainProcess
from arena.sandbox.workdir import PreparedBot, clear, environment, prepare, remove, with_companions
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["LaunchedBot", "Launcher", "OnFinding", "Program", "bot_command", "read_program"]

_SHELL_SIGNAL = 128  # bubblewrap adds it to the number of the signal that ended its program

_OPEN_HEAP = (
    "limit Java's heap, as in `java -Xmx128m`: by default it takes up to a quarter of the "
    "machine's memory"
)

log = logging.getLogger(__name__)

_KIND = PlainProcess if os.name == "nt" else Process

OnFinding = Callable[[str, Finding], None]


class LaunchedBot:
    """A bot that was started; `pid` is that of its program, or of the sandbox around it.

    For a `stdio` program `pipes` are our ends of its streams, non-blocking; their user closes them.
    `enforced` says for display which limits it is held to, and what enforces them. `is_metered`
    says whether its CPU time can be measured here.
    """

    lag = None
    """No host reads its output, so its lag is that of this process."""

    def __init__(
        self,
        name: str,
        prepared: PreparedBot,
        process: Process | PlainProcess,
        sampler: Sampler | None,
        program: Program,
        restless: dict[Program, str],
    ) -> None:
        self.name = name
        self.program = program
        self.pid = process.pid
        self.pipes = process.pipes
        self.is_metered = prepared.group is not None or sampler is not None
        self.enforced = _enforced(prepared, is_sampled=sampler is not None)
        self._prepared = prepared
        self._process = process
        self._sampler = sampler
        self._restless = restless  # of all bots, with what their owners have to be told
        self._is_muted = False  # the reason of its end is already known
        self._final_cpu_ms: float | None = None
        self._final_peak: Peak | None = None
        self._watcher: asyncio.Task[None] | None = None

    def clock(self, now: float) -> float | None:
        """Until when its question has been measured: always now."""
        return now

    def cpu_ms(self) -> float:
        """The CPU time of all its processes so far; after its end, the total."""
        if self._final_cpu_ms is not None:
            return self._final_cpu_ms
        if self._prepared.group is not None:
            return self._prepared.group.cpu_ms()
        return 0.0 if self._sampler is None else self._sampler.cpu_ms(self.name)

    def sampled_cpu_ms(self) -> float:
        """The CPU time at the last sample; 0 where nothing is sampled."""
        if self._final_cpu_ms is not None or self._sampler is None:
            return self._final_cpu_ms or 0.0
        return self._sampler.sampled_cpu_ms(self.name)

    @property
    def is_restless(self) -> bool:
        """Whether a process of its program was found to compute without a question.

        From then on all processes of the program run only when the rest of the machine is idle.
        """
        return self.program in self._restless

    def is_found_restless(self, used_ms: float, of_ms: float) -> None:
        """Note and log that it ran, or was ready to, for this long without a question."""
        text = (
            f"computed, or wanted to, for {used_ms:.0f} ms in {of_ms:.0f} ms without a question: "
            "from now on it has only the cores that nobody else wants"
        )
        self._restless[self.program] = f"card-arena: {text}\n"
        log.warning("%s %s", public_name(self.name), text)

    def tell_owner(self) -> None:
        """Say on its stderr, once per program, that it is restless; called in a match."""
        self.stderr.add(self._restless[self.program].encode())
        self._restless[self.program] = ""

    def waited_ms(self) -> float | None:
        """How long its processes were ready to run without a core; None if unknown."""
        if self._sampler is None or not knows_waits():
            return None
        if self._final_cpu_ms is not None:
            return 0.0
        return self._sampler.waited_ms(self.name)

    @property
    def stderr(self) -> StderrTail:
        """The end of its stderr so far; available after its end, too."""
        self._process.drain()
        return self._process.stderr

    def peak(self) -> Peak:
        """The most memory and processes that were sampled; zeros where nothing is sampled."""
        if self._final_peak is not None:
            return self._final_peak
        return Peak() if self._sampler is None else self._sampler.peak(self.name)


class Launcher:
    """The bots that this arena has started, each with `memory_mib` and `processes` of `limits`.

    The `hidden` files and folders need not exist yet; SQLite's companion files of each are hidden,
    too. `on_finding` is called in the event loop, once per bot, when it ends by itself or exceeds a
    limit. With `isolate=False` bubblewrap is never used.
    """

    def __init__(
        self,
        limits: Limits,
        hidden: Iterable[Path],
        on_finding: OnFinding,
        *,
        isolate: bool = True,
        scratch_mib: int = SCRATCH_MIB,
    ) -> None:
        self._limits = limits
        self._hidden = with_companions(tuple(hidden))
        self._on_finding = on_finding
        self._isolate = isolate
        self._scratch_mib = scratch_mib
        self._bots: dict[str, LaunchedBot] = {}
        self._starting: set[str] = set()
        self._restless: dict[Program, str] = {}
        self._root: Path | None = None
        self._sampler: Sampler | None = None
        self._closed = False

    async def start(
        self,
        name: str,
        program: Program,
        *,
        url: str = "",
        token: str = "",
        stderr_tail: StderrTail | None = None,
    ) -> LaunchedBot:
        """Start a program, with a one-time `token` for its `hello` if it is to connect to `url`.

        The program is told its public name. Its stderr goes to `stderr_tail`, which must be used
        for no other bot.

        Raises `UsageError` if a running bot has that name, or the program cannot be shown what it
        names; `ArenaError` if it cannot be started on this machine, or the launcher is closed.
        """
        if name in self._bots or name in self._starting:
            raise UsageError(f"expected a name that no bot has, got {name!r}")
        self._starting.add(name)
        public = public_name(name)
        try:
            preparing = asyncio.create_task(
                asyncio.to_thread(
                    prepare,
                    public,
                    program,
                    self._limits,
                    root=self._make_root(),
                    hidden=self._hidden,
                    isolate=self._isolate,
                    scratch_mib=self._scratch_mib,
                )
            )
            try:
                prepared = await asyncio.shield(preparing)
            except asyncio.CancelledError:
                # The thread goes on, and only this code knows of the directory that it makes.
                with contextlib.suppress(ArenaError, OSError):
                    clear(await preparing)
                raise
            except OSError as error:
                raise ArenaError(f"cannot start {public}: {error.strerror}") from error
            try:
                if self._closed:
                    raise ArenaError(f"cannot start {public}: the arena is closing")
                variables = environment(public, prepared.scratch, url, token)
                process = await _KIND.start(
                    prepared, variables, stdio=program.stdio, stderr_tail=stderr_tail
                )
            except BaseException:
                clear(prepared)
                raise
            return self._started(name, prepared, process, program)
        finally:
            self._starting.discard(name)

    async def stop(self, name: str) -> None:
        """End a bot and everything that it started: with SIGTERM, then SIGKILL.

        Its end is not reported. It is no error if the bot has ended or never existed.
        """
        if (bot := self._bots.get(name)) is not None:
            bot._is_muted = True
            await bot._process.stop()
            if bot._watcher is not None:
                await asyncio.wait([bot._watcher])
                if bot._watcher.cancelled():  # with all tasks of the loop
                    await self._clear(bot)

    async def close(self) -> None:
        """End all bots; returns within some seconds, whatever they do."""
        self._closed = True
        while self._bots or self._starting:
            if self._bots:
                await asyncio.gather(*(self.stop(name) for name in list(self._bots)))
            else:  # a bot that is being started will soon be in `_bots`, or fail
                await asyncio.sleep(0.01)
        if self._sampler is not None:
            await asyncio.to_thread(self._sampler.close)
            self._sampler = None
        if self._root is not None:
            await asyncio.to_thread(remove, self._root)
            self._root = None

    def tail(self, name: str) -> str:
        """The end of a running bot's stderr; empty once the bot has ended."""
        bot = self._bots.get(name)
        return bot._process.stderr.tail if bot is not None else ""

    # ---- Start

    def _make_root(self) -> Path:
        """Make the folder of all scratch directories, which only we can enter."""
        if self._root is None or not self._root.is_dir():
            self._root = Path(tempfile.mkdtemp(prefix="arena-")).resolve()
        return self._root

    def _started(
        self, name: str, prepared: PreparedBot, process: Process | PlainProcess, program: Program
    ) -> LaunchedBot:
        if process.supervisor_pid is not None and probe() is None:
            if self._sampler is None:
                self._sampler = Sampler(self._limits, self._on_sampled, reader(NICENESS))
                self._sampler.start()
            is_restless = partial(self._restless.__contains__, program)
            self._sampler.watch(name, process.supervisor_pid, is_restless)
        bot = self._bots[name] = LaunchedBot(
            name, prepared, process, self._sampler, program, self._restless
        )
        bot._watcher = asyncio.create_task(self._watch(bot))
        return bot

    # ---- Watch

    def _on_sampled(self, name: str, finding: Finding) -> None:
        """End a bot at once for an offence that the sampler found, and report it."""
        if (bot := self._bots.get(name)) is not None:
            bot._process.kill()
            self._report(bot, finding)

    async def _watch(self, bot: LaunchedBot) -> None:
        """Wait for the end of a bot, report it, and remove its directory and group."""
        status = await bot._process.ended
        bot._final_cpu_ms = bot.cpu_ms()
        bot._final_peak = bot.peak()
        try:
            self._report(bot, _ending(bot._prepared, status))
        finally:
            await bot._process.gone
            await self._clear(bot)

    async def _clear(self, bot: LaunchedBot) -> None:
        """Forget a bot whose processes are gone, and remove its directory and group."""
        if self._bots.pop(bot.name, None) is not None:
            if self._sampler is not None:
                self._sampler.forget(bot.name)
            await asyncio.to_thread(clear, bot._prepared)

    def _report(self, bot: LaunchedBot, finding: Finding) -> None:
        if not bot._is_muted:
            bot._is_muted = True
            if finding.kind is Ending.MEMORY and bot.program.has_open_heap:
                finding = msgspec.structs.replace(finding, advice=_OPEN_HEAP)
            self._on_finding(
                bot.name, msgspec.structs.replace(finding, stderr=bot._process.stderr.tail)
            )


def _enforced(prepared: PreparedBot, *, is_sampled: bool) -> str:
    """Which limits a bot is held to, and what enforces them, as records say it."""
    words = "time"
    if prepared.group is not None or is_sampled:
        words += f", memory and processes ({'sampled' if prepared.group is None else 'cgroup'})"
    words += ", isolated (bubblewrap)" if prepared.isolated else ", not isolated"
    if sys.platform != "linux":
        words += ", what leaves its process group is not stopped"
    return words


def _ending(prepared: PreparedBot, status: int | None) -> Finding:
    if prepared.isolated and status is not None and status > _SHELL_SIGNAL:
        with contextlib.suppress(ValueError):  # no such signal: it is the program's own status
            status = -signal.Signals(status - _SHELL_SIGNAL)
    group = prepared.group
    if group is not None and (finding := group.finding()) is not None:
        return msgspec.structs.replace(finding, exit_status=status)
    return Finding(
        kind=Ending.CRASH,
        # Exit status 0 is an offence, too, but its author would not call it a crash.
        text=f"{'ended by itself' if status == 0 else 'crashed'}: {_in_words(status)}",
        mechanism=Mechanism.EXIT,
        exit_status=status,
    )


def _in_words(status: int | None) -> str:
    if status is None:
        return "its supervisor was killed"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
