"""Supervises the bots that an arena has launched, as processes with names.

Each bot gets a token of its own, has `start_ms` of CPU time to say `hello`, and leaves nothing
behind when it ends. Other modules decide what it plays and what an offence costs it.

The processes of a pool (`process_name`) use names that no bot can have. Processes of submissions
have no tokens, as their pipes identify them.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from arena.competitions.elsewhere import AnyLauncher, HostedBot
from arena.formats.spec import RelaunchSpec
from arena.games.names import is_process, process_name, spelled
from arena.games.verdict import UNCOUNTED, Finding
from arena.referee.bot_session import BotSession
from arena.referee.clock import CoreWait, LoopLag, start_cap_ms
from arena.referee.compute_gate import BotGate, ComputeGate
from arena.sandbox.launcher import LaunchedBot, Launcher, Program, bot_command
from arena.sandbox.process import StderrTail
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway, crash_reason
from arena.server.stdio import Pipe
from protocol.codec import Encoding
from protocol.errors import ArenaError, error_line, one_line
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["BotSupervisor", "SupervisedBot", "program_of"]

_LEAST_LOOK_S = 0.05  # between two checks of a bot that is starting
_CORES = os.cpu_count() or 1
_DISMISSED = "nobody needs it any more"
_STDERR_BYTES = 64 * 1024  # the end of stderr that is kept for a match

OnOffence: TypeAlias = Callable[[str, Finding], None]
StartedBot: TypeAlias = LaunchedBot | HostedBot


def program_of(bot: RelaunchSpec) -> Program:
    """Return the program of a bot that is not a house bot."""
    folder = None if bot.folder is None else Path(bot.folder)
    return Program(bot.words, stdio=bot.stdio, folder=folder)


class SupervisedBot:
    """A launched bot, from before its process starts until after its end.

    Attributes:
        finding: why it ended or is being ended, if not on purpose; the first cause counts.
        lost: a text if its host was lost; else empty.
        gone: done when its processes have ended.
    """

    def __init__(self, name: str, launcher: AnyLauncher, limits: Limits) -> None:
        self.finding: Finding | None = None
        self.lost = ""
        self.launcher = launcher
        self._name = name
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.launched: StartedBot | None = None
        self.pipe: Pipe | None = None
        self.is_stopping = False
        self._core_wait = CoreWait(0.0, 0.0)

    @property
    def enforced(self) -> str:
        """The limits that are enforced, and by what, for people."""
        return "time" if self.launched is None else self.launched.enforced

    @property
    def is_metered(self) -> bool:
        return self.launched is None or self.launched.is_metered

    def attach(self, session: BotSession, gate: ComputeGate) -> None:
        """Let the questions of its session wait for a core: at this gate, or on its host."""
        if isinstance(self.launched, LaunchedBot):
            session.gate = BotGate(gate, self.launched, self._loop.time)
        elif self.launched is not None:
            session.gate = self.launched
            self.launched.on_handed = session.handed

    def clock(self, now: float) -> float | None:
        return now if self.launched is None else self.launched.clock(now)

    @property
    def lag(self) -> LoopLag | None:
        return None if self.launched is None else self.launched.lag

    def cpu_ms(self) -> float:
        return 0.0 if self.launched is None else self.launched.cpu_ms()

    def waited_ms(self) -> float | None:
        return 0.0 if self.launched is None else self.launched.waited_ms()

    def tail(self) -> str:
        """Return the end of its stderr."""
        return self.launcher.tail(self._name)

    @property
    def first_look_s(self) -> float:
        """The seconds after its launch in which its start cannot have failed yet."""
        return max(_LEAST_LOOK_S, self._limits.start_ms / 1000 / _CORES)

    def start_left_s(self, on_wall_s: float) -> tuple[float, str]:
        """Return the seconds until the next check of its start, and why it has failed if negative.

        `on_wall_s` is how long ago it was launched. It is charged CPU time. The cap on wall-clock
        time grows by the time for which it had no core, as in a match (J7).
        """
        self._core_wait.look(self.waited_ms() or 0.0, on_wall_s)
        cap_ms = start_cap_ms(self._limits) + self._core_wait.total_ms
        wall_left_s = cap_ms / 1000 - on_wall_s
        if wall_left_s <= 0:
            return wall_left_s, f"within {cap_ms:,.0f} ms"
        if not self.is_metered:
            return wall_left_s, ""
        cpu_left_s = (self._limits.start_ms - self.cpu_ms()) / 1000
        if cpu_left_s < 0:
            return cpu_left_s, f"within {self._limits.start_ms:,} ms of CPU"
        # If it uses all cores, its remaining CPU time passes this many times as fast.
        return max(_LEAST_LOOK_S, min(wall_left_s, cpu_left_s / _CORES)), ""


class BotSupervisor:
    """Launches bots, waits until they connect, and stops them.

    Args:
        hidden: the arena's files, which bots must not see.
        url: returns the address of the arena for bots on this machine.
        on_offence: called when a bot does not say hello in time, or its process ends before it has
            connected or after it has left.
        on_change: called when a process has ended.

    Attributes:
        ended: by name, why each bot ended that was not stopped on purpose.
        is_closing: whether the arena is closing; then the end of a process is not reported.
    """

    def __init__(
        self,
        gateway: Gateway,
        limits: Limits,
        hidden: Sequence[Path],
        *,
        url: Callable[[], str],
        wait_for_change: Callable[[], Awaitable[None]],
        on_offence: OnOffence,
        on_change: Callable[[], None],
    ) -> None:
        self.ended: dict[str, str] = {}
        self._gateway = gateway
        self._admission = gateway.admission
        self.limits = limits
        self._url = url
        self._wait_for_change = wait_for_change
        self._on_offence = on_offence
        self._on_change = on_change
        self._launcher = Launcher(limits, hidden, self.found)
        self._ours: dict[str, SupervisedBot] = {}
        self._specs: dict[str, RelaunchSpec] = {}  # also of bots that have ended
        self._stopping = BackgroundTasks()
        self._processes = itertools.count(1)
        self.is_closing = False
        self._loop = asyncio.get_running_loop()

    def __contains__(self, name: str) -> bool:
        return name in self._ours

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the bots, without processes of pools."""
        return (name for name in self._ours if not is_process(name))

    def relaunch_specs(self, names: Sequence[str]) -> tuple[RelaunchSpec, ...]:
        """Return how to launch these bots again, for those that were launched here."""
        return tuple(self._specs[name] for name in names if name in self._ours)

    async def launch(
        self, bot: Sequence[str], name: str, *, tables: int = 1, encoding: Encoding = Encoding.JSON
    ) -> None:
        """Start a house bot, given as (game, bot), as a process that connects like any other."""
        url = self._url()
        words = bot_command(bot, url=url, name=name, tables=tables, encoding=encoding)
        await self.launch_program(Program(tuple(words)), name)
        self._specs[name] = RelaunchSpec(name=name, house=bot[1], tables=tables)

    async def launch_program(self, program: Program, name: str) -> None:
        """Start a bot's program, as a process that connects or speaks over its pipes.

        The bot is called `name`, whatever it calls itself. If it ends by itself, `ended` says why.

        Raises:
            UsageError: the program names files that it cannot be shown.
            ArenaError: the name is taken, or the program cannot be started on this machine.
        """
        here = self._gateway.players.like(name)
        other = spelled(name, self) if here is None else here.name
        if here is not None or other in self._ours:
            got = f"{name!r}" if other == name else f"{name!r}, and {other!r} is here"
            raise ArenaError(f"expected a name that no bot has, got {got}")
        self.ended.pop(name, None)  # from an earlier process
        self._specs[name] = RelaunchSpec(
            name=name,
            words=program.words,
            stdio=program.stdio,
            folder=None if program.folder is None else str(program.folder),
        )
        ours = self._ours[name] = SupervisedBot(name, self._launcher, self.limits)
        url, token = self._way_in(name)
        await self._start(ours, name, self._launcher.start(name, program, url=url, token=token))

    async def launch_process(self, name: str, program: Program) -> SupervisedBot:
        """Start a process of a pool on this machine.

        `name` is a `process_key`. The process speaks over its pipes, or connects with a token like
        other bots, which takes a network. Raises what `launch_program` raises.
        """

        def begin(tail: StderrTail) -> Awaitable[LaunchedBot]:
            url, token = ("", "") if program.stdio else self._way_in(name)
            return self._launcher.start(name, program, url=url, token=token, stderr_tail=tail)

        return await self.launch_by(self._launcher, name, begin)

    async def launch_by(
        self, launcher: AnyLauncher, name: str, begin: Callable[[StderrTail], Awaitable[StartedBot]]
    ) -> SupervisedBot:
        """Let a launcher `begin` a process of a pool; raises what that raises."""
        assert is_process(name), "others take a name"
        ours = self._ours[name] = SupervisedBot(name, launcher, self.limits)
        await self._start(ours, name, begin(StderrTail(_STDERR_BYTES)))
        return ours

    def process_key(self, name: str) -> str:
        """Return a name for the next process of a bot, unique among all pools."""
        return process_name(name, next(self._processes))

    def lost(self, name: str, why: str) -> None:
        """Void the match of a bot whose host is lost, without blame for anybody (J5)."""
        player = self._gateway.players.get(name)
        tables = {} if player is None else {chair.table for chair in player.chairs.values()}
        for table in tables:
            self._gateway.referee.void(table, f"{why}{UNCOUNTED}")
        if (ours := self._ours.get(name)) is not None:
            ours.lost = why
        self.dismiss(name)

    def _way_in(self, name: str) -> tuple[str, str]:
        """Return where a bot connects, and the token for its `hello`."""
        token = secrets.token_urlsafe(16)
        self._admission.expect(name, token, self._ours[name])
        return self._url(), token

    async def _start(
        self, ours: SupervisedBot, name: str, launching: Awaitable[StartedBot]
    ) -> None:
        try:
            ours.launched = launched = await launching
        except BaseException:
            self._forget(name)
            raise
        look = partial(self._look_at_start, name, ours, self._arena_s(ours))
        self._gateway.timers.after(ours.first_look_s, look)
        if (pipes := launched.pipes) is not None:
            address = f"stdio:{name}"
            self._admission.forget(name, keeps_name=True)
            self._gateway.preauthenticate(address, (name, ours))
            try:
                ours.pipe = await Pipe.open(
                    self._gateway, self.limits, self._gateway.timers, address, pipes
                )
            except BaseException:
                self.dismiss(name)
                raise

    async def launch_house_bot(self, game: str, name: str, bot: str, tables: int = 1) -> None:
        """Start a house bot once an earlier one is gone; raises what `launch_program` raises."""
        if name in self._ours:
            return  # it is starting or here already
        while name in self._gateway.players:  # an earlier bot of that name is leaving
            await self._wait_for_change()
        await self._launcher.stop(name)  # waits until its processes have ended
        await self.launch((game, bot), name, tables=tables)

    def dismiss(self, name: str) -> None:
        """Stop a bot that is no longer needed."""
        if name in self._ours:
            kind, mechanism = Ending.DISCONNECT, Mechanism.SESSION
            self.stop(name, Finding(kind=kind, text=_DISMISSED, mechanism=mechanism))

    def stop(self, name: str, finding: Finding) -> None:
        if (ours := self._ours.get(name)) is not None:
            ours.is_stopping = True
        self._gateway.dismiss(name, finding)
        launcher = self._launcher if ours is None else ours.launcher
        task = self._stopping.start(launcher.stop(name))
        task.add_done_callback(lambda _: self._stopped(name))

    async def arrived(self, name: str) -> BotSession | None:
        """Wait for the `hello` of a launched bot; return None if it ends before."""
        while name in self._ours and name not in self._gateway.players:
            await self._wait_for_change()
        return self._gateway.players.get(name)

    async def gone(self, name: str) -> None:
        """Wait until a bot has ended completely, so that it can be started again."""
        while name in self._ours or name in self._gateway.players:
            await self._wait_for_change()
        await self._launcher.stop(name)

    def offended(self, name: str, finding: Finding) -> None:
        """Stop the process of a bot that is out for good, if it has one."""
        is_known = finding.kind is Ending.CRASH or finding.text == _DISMISSED
        if name in self._ours and not is_known:
            got = f"; got {finding.got}" if finding.got else ""
            self._note_end(name, finding, finding.text + got)
            self._loop.call_soon(self.stop, name, finding)

    async def close(self) -> None:
        await self._launcher.close()

    def found(self, name: str, finding: Finding) -> None:
        """Handle a process that has ended by itself, or was ended at one of its limits."""
        if self.is_closing:
            return
        pipe = self._ours[name].pipe if name in self._ours else None
        is_crash = finding.kind is Ending.CRASH and finding.exit_status == 0
        if is_crash and pipe is not None and pipe.crash is not None:  # J7
            reason = one_line(crash_reason(pipe.crash)) or "it gave no reason"
            finding = msgspec.structs.replace(finding, text=f"crashed: {reason}")
        error = error_line(finding.stderr or "")
        quote = f"; it said: {error}" if error else ""
        advice = f"; {finding.advice}" if finding.advice else ""
        self._note_end(name, finding, finding.text + quote + advice)
        ours = self._forget(name)
        if name in self._gateway.players:
            self._gateway.dismiss(name, finding)
        else:  # the bot never connected, or had left before
            enforced = "time" if ours is None else ours.enforced
            self._on_offence(name, msgspec.structs.replace(finding, enforced=enforced))
        self._on_change()

    def _note_end(self, name: str, finding: Finding, text: str) -> None:
        """Note why a bot ends; the first cause counts."""
        if (ours := self._ours.get(name)) is not None:
            ours.finding = ours.finding or finding
        if not is_process(name):
            self.ended.setdefault(name, text)

    def no_hello(self, name: str, within: str) -> str:
        """Say that a launched bot has not said `hello`, and what the reason may be."""
        ours = self._ours.get(name)
        if ours is None or ours.launched is None or ours.launched.pipes is None:
            return f"did not say hello with its ARENA_TOKEN {within}"
        return f"did not say hello {within}; did it flush its output?"

    def _look_at_start(self, name: str, ours: SupervisedBot, since: float) -> None:
        """Check again and again whether a bot has said `hello`, until it has or is too late."""
        is_here = name in self._gateway.players
        if is_here or ours.is_stopping or self._ours.get(name) is not ours:
            return
        left_s, late = ours.start_left_s(self._arena_s(ours) - since)
        if left_s > 0:
            self._gateway.timers.after(left_s, partial(self._look_at_start, name, ours, since))
            return
        finding = Finding(
            kind=Ending.ABSENT,
            text=self.no_hello(name, late),
            mechanism=Mechanism.CPU_CLOCK if late.endswith("CPU") else Mechanism.WALL_CAP,
            stderr=ours.tail(),
            enforced=ours.enforced,
        )
        self._on_offence(name, finding)

    def _arena_s(self, ours: SupervisedBot) -> float:
        """Return the loop's time without stalls of the arena, or of the bot's host (J7).

        For a bot on a host, this is the time of its last reading.
        """
        now = self._loop.time()
        lag = ours.lag or self._gateway.referee.lag
        return (ours.clock(now) or now) - lag.total_s(now)

    def _stopped(self, name: str) -> None:
        self._forget(name)
        if not self.is_closing:
            self._on_change()

    def _forget(self, name: str) -> SupervisedBot | None:
        # A process reserves no name: its public name may look like a bot's.
        self._admission.forget(name, keeps_name=is_process(name))
        ours = self._ours.pop(name, None)
        if ours is not None and not ours.gone.done():
            ours.gone.set_result(None)
        return ours
