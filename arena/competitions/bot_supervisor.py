"""The bots that an arena has launched, as processes with names.

Each gets a token of its own, has a minute to connect, and leaves nothing behind when it has ended.
What it plays and what an offence costs it is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from arena.engine.names import spelled
from arena.engine.verdict import Finding
from arena.formats.spec import RelaunchSpec
from arena.sandbox.launcher import LaunchedBot, Launcher, Program, bot_command
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from arena.server.stdio import Pipe
from protocol.codec import Encoding
from protocol.errors import ArenaError, one_line
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["BotSupervisor", "program_of"]

_LAUNCH_S = 60.0  # for a program to say hello on a machine that starts thirty of them
_DISMISSED = "nobody needs it any more"

OnOffence: TypeAlias = Callable[[str, Finding], None]


class _SupervisedBot:
    """A launched bot, from before its process starts until after its end."""

    def __init__(self, name: str, launcher: Launcher) -> None:
        self._name = name
        self._launcher = launcher
        self.launched: LaunchedBot | None = None

    @property
    def enforced(self) -> str:
        """The limits that are enforced, and by what, for people."""
        return "time" if self.launched is None else self.launched.enforced

    @property
    def is_metered(self) -> bool:
        return self.launched is None or self.launched.is_metered

    def cpu_ms(self) -> float:
        return 0.0 if self.launched is None else self.launched.cpu_ms()

    def tail(self) -> str:
        """The last of what it wrote to stderr."""
        return self._launcher.tail(self._name)


class BotSupervisor:
    """Launches bots, waits until they connect, and stops them.

    Args:
        hidden: the arena's files, which they must not see.
        url: returns the address of the arena for bots on this machine.
        on_offence: called when a bot does not say hello in time, or its process ends before it has
            connected or after it has left.

    Attributes:
        ended: why each bot ended that was not stopped on purpose, by name.
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
        self._limits = limits
        self._url = url
        self._wait_for_change = wait_for_change
        self._on_offence = on_offence
        self._on_change = on_change
        self._launcher = Launcher(limits, hidden, self._found)
        self._ours: dict[str, _SupervisedBot] = {}
        self._specs: dict[str, RelaunchSpec] = {}  # also of those that have ended
        self._stopping = BackgroundTasks()
        self._is_closing = False
        self._loop = asyncio.get_running_loop()

    def __contains__(self, name: str) -> bool:
        return name in self._ours

    def __iter__(self) -> Iterator[str]:
        return iter(self._ours)

    def relaunch_specs(self, names: Sequence[str]) -> tuple[RelaunchSpec, ...]:
        """How the bots of these names that were launched can be launched again."""
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

        It is called `name` whatever it calls itself. If it ends by itself, `ended` says how.

        Raises:
            UsageError: the program cannot be shown what it names.
            ArenaError: the name is taken, or it cannot be started on this machine.
        """
        here = self._gateway.players.like(name)
        other = spelled(name, self._ours) if here is None else here.name
        if here is not None or other in self._ours:
            got = f"{name!r}" if other == name else f"{name!r}, and {other!r} is here"
            raise ArenaError(f"expected a name that no bot has, got {got}")
        self.ended.pop(name, None)  # of its last process
        ours = _SupervisedBot(name, self._launcher)
        token = secrets.token_urlsafe(16)
        self._admission.expect(name, token, ours)
        self._ours[name] = ours
        self._specs[name] = RelaunchSpec(
            name=name,
            words=program.words,
            stdio=program.stdio,
            folder=None if program.folder is None else str(program.folder),
        )
        try:
            ours.launched = launched = await self._launcher.start(
                name, program, url=self._url(), token=token
            )
        except BaseException:
            self._admission.forget(name)
            del self._ours[name]
            raise
        self._gateway.timers.after(_LAUNCH_S, partial(self._check_connected, name, ours))
        if launched.stdin_fd is not None and launched.stdout_fd is not None:
            address = f"stdio:{name}"
            self._admission.forget(name, keeps_name=True)
            self._gateway.login.preauthenticate(address, (name, ours))
            fds = launched.stdin_fd, launched.stdout_fd
            await Pipe.open(self._gateway, self._limits, self._gateway.timers, address, *fds)

    async def launch_house_bot(self, game: str, name: str, bot: str, tables: int = 1) -> None:
        """Start a house bot when nothing is left of an earlier one; raises as `launch_program`."""
        if name in self._ours:
            return  # it is starting or here
        while name in self._gateway.players:  # an earlier one, which is leaving
            await self._wait_for_change()
        await self._launcher.stop(name)  # until nothing of it is left
        await self.launch((game, bot), name, tables=tables)

    def dismiss(self, name: str) -> None:
        """Stop a bot that nobody needs any more."""
        if name in self._ours:
            kind, mechanism = Ending.DISCONNECT, Mechanism.SESSION
            self.stop(name, Finding(kind=kind, text=_DISMISSED, mechanism=mechanism))

    def stop(self, name: str, finding: Finding) -> None:
        self._gateway.dismissals.dismiss(name, finding)
        task = self._stopping.start(self._launcher.stop(name))
        task.add_done_callback(lambda _: self._stopped(name))

    async def gone(self, name: str) -> None:
        """Wait until nothing is left of a bot that ends: then it can be started again."""
        while name in self._ours or name in self._gateway.players:
            await self._wait_for_change()
        await self._launcher.stop(name)

    def offended(self, name: str, finding: Finding) -> None:
        """Stop the process of a bot that is gone for good, if it has one."""
        is_known = finding.kind is Ending.CRASH or finding.text == _DISMISSED
        if name in self._ours and not is_known:
            got = f"; got {finding.got}" if finding.got else ""
            self.ended.setdefault(name, finding.text + got)
            self._loop.call_soon(self.stop, name, finding)

    def closes(self) -> None:
        """Note that the arena closes: processes that end from now on are no news."""
        self._is_closing = True

    async def close(self) -> None:
        await self._launcher.close()

    def _found(self, name: str, finding: Finding) -> None:
        """A process has ended by itself, or was ended at one of its limits."""
        if self._is_closing:
            return
        last_line = one_line((finding.stderr or "").strip().rpartition("\n")[2])
        quote = f"; it said: {last_line}" if last_line else ""
        self.ended.setdefault(name, finding.text + quote)  # the first cause counts
        ours = self._forget(name)
        if name in self._gateway.players:
            self._gateway.dismissals.dismiss(name, finding)
        else:  # it never connected, or had left before
            enforced = "time" if ours is None else ours.enforced
            self._on_offence(name, msgspec.structs.replace(finding, enforced=enforced))
        self._on_change()

    def _check_connected(self, name: str, ours: _SupervisedBot) -> None:
        if self._ours.get(name) is ours and name not in self._gateway.players:
            finding = Finding(
                kind=Ending.ABSENT,
                text=f"did not say hello with its ARENA_TOKEN within {_LAUNCH_S:.0f} s",
                mechanism=Mechanism.SESSION,
                enforced=ours.enforced,
            )
            self._on_offence(name, finding)

    def _stopped(self, name: str) -> None:
        self._forget(name)
        if not self._is_closing:
            self._on_change()

    def _forget(self, name: str) -> _SupervisedBot | None:
        self._admission.forget(name)
        return self._ours.pop(name, None)


def program_of(bot: RelaunchSpec) -> Program:
    """The program of a bot that is no house bot."""
    folder = None if bot.folder is None else Path(bot.folder)
    return Program(bot.words, stdio=bot.stdio, folder=folder)
