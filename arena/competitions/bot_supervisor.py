"""The bots that an arena has launched: each gets a word that nobody else has, is awaited, and has nothing left when it has ended.

What they play and what an offence costs is known to others; here a bot is a process with a name.
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

_LAUNCH_S = 60.0  # for a program to say hello, on a machine that starts thirty of them
_DISMISSED = "nobody needs it any more"

OnOffence: TypeAlias = Callable[[str, Finding], None]


class _SupervisedBot:
    """A bot that the arena has launched, from before it is started until after its end."""

    def __init__(self, name: str, launcher: Launcher) -> None:
        self._name = name
        self._launcher = launcher
        self.launched: LaunchedBot | None = None

    @property
    def enforced(self) -> str:
        """The limits that it is held to, and by what."""
        return "time" if self.launched is None else self.launched.enforced

    @property
    def is_metered(self) -> bool:
        """Whether its CPU time can be measured here."""
        return self.launched is None or self.launched.is_metered

    def cpu_ms(self) -> float:
        """The CPU time that its processes have used so far."""
        return 0.0 if self.launched is None else self.launched.cpu_ms()

    def tail(self) -> str:
        """The end of what it wrote to stderr."""
        return self._launcher.tail(self._name)


class BotSupervisor:
    """All of them.

    Args:
        gateway: where they come in.
        limits: of time and space.
        hidden: the arena's files, which they must not see.
        url: says how a bot on this machine reaches the arena.
        wait_for_change: until a bot comes or goes.
        on_offence: told of one that is gone for good before it came, or after it had left.
        on_change: told when one has ended.

    Attributes:
        ended: what has become of those that have ended by themselves, by name.
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
        self._written: dict[str, RelaunchSpec] = {}  # how what we launched can be launched again
        self._stopping = BackgroundTasks()
        self._is_closing = False
        self._loop = asyncio.get_running_loop()

    def __contains__(self, name: str) -> bool:
        """Whether a bot of that name was launched, and has not ended."""
        return name in self._ours

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._ours)

    def written(self, names: Sequence[str]) -> tuple[RelaunchSpec, ...]:
        """How those of them that are called so can be launched again."""
        return tuple(self._written[name] for name in names if name in self._ours)

    async def launch(
        self, bot: Sequence[str], name: str, *, tables: int = 1, encoding: Encoding = Encoding.JSON
    ) -> None:
        """Start a bot of ours, given as GAME NAME, as a process that connects like any other."""
        url = self._url()
        words = bot_command(bot, url=url, name=name, tables=tables, encoding=encoding)
        await self.launch_program(Program(tuple(words)), name)
        self._written[name] = RelaunchSpec(name=name, house=bot[1], tables=tables)

    async def launch_program(self, program: Program, name: str) -> None:
        """Start a bot that somebody has written, as a process that connects like any other or speaks over its pipes.

        It is called `name` whatever it calls itself. What becomes of it if it ends by itself is in `ended`.

        Raises:
            UsageError: the program cannot be shown what it names.
            ArenaError: the name is taken, or it cannot be started on this machine.
        """
        here = self._gateway.players.like(name)
        other = spelled(name, self._ours) if here is None else here.name
        if here is not None or other in self._ours:
            got = f"{name!r}" if other == name else f"{name!r}, and {other!r} is here"
            raise ArenaError(f"expected a name that no bot has, got {got}")
        self.ended.pop(name, None)  # it may be started once more
        ours = _SupervisedBot(name, self._launcher)
        token = secrets.token_urlsafe(16)
        self._admission.expect(name, token, ours)
        self._ours[name] = ours
        self._written[name] = RelaunchSpec(
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
        self._gateway.timers.after(_LAUNCH_S, partial(self._awaited, name, ours))
        if launched.stdin_fd is not None and launched.stdout_fd is not None:
            address = f"stdio:{name}"
            self._admission.forget(name, keeps_name=True)
            self._gateway.login.preauthenticate(address, (name, ours))
            fds = launched.stdin_fd, launched.stdout_fd
            await Pipe.open(self._gateway, self._limits, self._gateway.timers, address, *fds)

    async def launch_house_bot(self, game: str, name: str, bot: str, tables: int = 1) -> None:
        """Start a house bot, once nothing is left of one of that name.

        Raises:
            ArenaError: it cannot be started on this machine.
        """
        if name in self._ours:
            return  # it is on its way
        while name in self._gateway.players:  # the one before it, which is going
            await self._wait_for_change()
        await self._launcher.stop(name)  # until nothing of it is left
        await self.launch((game, bot), name, tables=tables)

    def dismiss(self, name: str) -> None:
        """Stop one that nobody needs any more."""
        if name in self._ours:
            self.stop(
                name, Finding(kind=Ending.DISCONNECT, text=_DISMISSED, mechanism=Mechanism.SESSION)
            )

    def stop(self, name: str, finding: Finding) -> None:
        """Stop one, which is told why."""
        self._gateway.dismissals.dismiss(name, finding)
        task = self._stopping.start(self._launcher.stop(name))
        task.add_done_callback(lambda _: self._stopped(name))

    async def gone(self, name: str) -> None:
        """Wait until nothing is left of one that has offended: then it can be started again."""
        while name in self._ours or name in self._gateway.players:
            await self._wait_for_change()
        await self._launcher.stop(name)

    def offended(self, name: str, finding: Finding) -> None:
        """A player is gone for good: if it is one of these, its process has to go, too."""
        is_known = finding.kind is Ending.CRASH or finding.text == _DISMISSED
        if name in self._ours and not is_known:
            got = f"; got {finding.got}" if finding.got else ""
            self.ended.setdefault(name, finding.text + got)
            self._loop.call_soon(self.stop, name, finding)

    def closes(self) -> None:
        """The arena closes: from now on they end because it does."""
        self._is_closing = True

    async def close(self) -> None:
        """End all that are left."""
        await self._launcher.close()

    # --- within ---

    def _found(self, name: str, finding: Finding) -> None:
        """One has ended by itself, or taken too much and been ended."""
        if self._is_closing:
            return
        last = one_line((finding.stderr or "").strip().rpartition("\n")[2])
        said = f"; it said: {last}" if last else ""
        self.ended.setdefault(name, finding.text + said)  # what came first counts
        ours = self._forget(name)
        if name in self._gateway.players:
            self._gateway.dismissals.dismiss(name, finding)
        else:  # it never came, or has gone before
            enforced = "time" if ours is None else ours.enforced
            self._on_offence(name, msgspec.structs.replace(finding, enforced=enforced))
        self._on_change()

    def _awaited(self, name: str, ours: _SupervisedBot) -> None:
        """One that was started should be here by now."""
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
        """One has ended: its name is free again."""
        self._admission.forget(name)
        return self._ours.pop(name, None)


def program_of(bot: RelaunchSpec) -> Program:
    """The command line of a bot that is none of ours."""
    folder = None if bot.folder is None else Path(bot.folder)
    return Program(bot.words, stdio=bot.stdio, folder=folder)
