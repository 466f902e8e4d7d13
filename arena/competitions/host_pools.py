"""The processes of submissions on hosts: a pool for each host, and room for more of them."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

from arena.competitions.bot_supervisor import BotSupervisor
from arena.competitions.process_pool import STDERR_BYTES, Launch, OnStderr, ProcessPool
from arena.hosts.directory import HostDirectory
from arena.hosts.host_control import HostControl
from arena.hosts.link import BotLink
from arena.hosts.messages import SeatProgram
from arena.hosts.remote_bot import RemoteLauncher, RemoteProgram
from arena.referee.compute_gate import ComputeGate
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from protocol.errors import ArenaError
from protocol.messages import Limits

__all__ = ["HostPools", "ProgramOf"]

ProgramOf: TypeAlias = Callable[[int], Awaitable[SeatProgram]]
"""What a host needs to start a submission; raises `UsageError` and `StoreFailed`."""

_ASKS = 4  # at once, for matches that have no room
_AGAIN_S = 1.0  # after hosts had none


class HostPools:
    """The pools of all hosts that have a link to this arena.

    Args:
        program: what a host needs to start a submission.
        part: returns bytes of a program by its key and an offset.

    Attributes:
        directory: whom to ask for room; None before the bus is there.
        control: counts the bots that start on hosts, and those lost with one; None likewise.
        on_room: called when a match may have room that had none.
    """

    def __init__(
        self,
        supervisor: BotSupervisor,
        gateway: Gateway,
        limits: Limits,
        program: ProgramOf,
        part: Callable[[str, int], Awaitable[bytes]],
        on_stderr: OnStderr,
    ) -> None:
        self.directory: HostDirectory | None = None
        self.control: HostControl | None = None
        self.on_room: Callable[[], None] = lambda: None
        self._supervisor = supervisor
        self._gateway = gateway
        self._limits = limits
        self._program = program
        self._part = part
        self._on_stderr = on_stderr
        self._pools: dict[RemoteLauncher, ProcessPool] = {}
        self._games: dict[int, str] = {}
        self._asking: set[tuple[tuple[str, int], ...]] = set()
        self._rests_until = -math.inf
        self._loop = asyncio.get_running_loop()
        self._tasks = BackgroundTasks()

    @property
    def pools(self) -> Sequence[ProcessPool]:
        return tuple(self._pools.values())

    def opened(self, host: str, link: BotLink) -> RemoteLauncher:
        """A host has opened its link: make a pool for it."""
        launcher = RemoteLauncher(
            host,
            link,
            self._limits,
            self._part,
            self._supervisor.found,
            self._supervisor.lost,
            lambda key: pool.end_if_idle(key),
            self.control,
        )
        pool = ProcessPool(
            self._supervisor,
            self._gateway,
            ComputeGate(sys.maxsize),
            partial(self._launches, launcher),
            None,
            self._on_stderr,
        )
        pool.at_once = self._at_once(host)
        pool.on_room = self.on_room
        self._pools[launcher] = pool
        return launcher

    def closed(self, launcher: RemoteLauncher) -> None:
        """A host has no link any more."""
        self._pools.pop(launcher).close()
        self.on_room()

    def ask(self, game: str, seats: Sequence[tuple[str, int]]) -> None:
        """Ask hosts for room for a match, whose seats are (public name, submission)."""
        wanted = tuple(seats)
        is_asked = wanted in self._asking or len(self._asking) >= _ASKS
        if self.directory is None or is_asked or self._loop.time() < self._rests_until:
            return
        for _, submission in wanted:
            self._games[submission] = game
        self._asking.add(wanted)
        self._tasks.start(self._ask(self.directory, game, wanted))

    def close(self) -> None:
        self._tasks.cancel()
        for pool in self.pools:
            pool.close()

    async def _ask(
        self, directory: HostDirectory, game: str, seats: tuple[tuple[str, int], ...]
    ) -> None:
        host = ""
        try:
            programs = [await self._program(submission) for _, submission in seats]
            warm = {launcher.host: pool.warm(seats) for launcher, pool in self._pools.items()}
            busy = [
                launcher.host
                for launcher, pool in self._pools.items()
                if pool.playing >= pool.at_once
            ]
            warmest = max(warm, key=lambda host: warm[host], default="")
            host = await directory.place(len(seats), programs, game, warm_at=warmest, busy=busy)
        except ArenaError:
            pass  # the program cannot be sent; the arena plays the match when it has room
        finally:
            self._asking.discard(seats)
        pools = [pool for launcher, pool in self._pools.items() if launcher.host == host]
        if pools:
            pools[-1].grant(len(seats))
            self.on_room()
        else:
            self._rests_until = self._loop.time() + _AGAIN_S
            self._loop.call_later(_AGAIN_S, self.on_room)

    async def _launches(self, launcher: RemoteLauncher, submission: int) -> Launch:
        program = RemoteProgram(self._games[submission], await self._program(submission))
        return partial(self._supervisor.launch_on_host, launcher, program, STDERR_BYTES)

    def _at_once(self, host: str) -> int:
        """As many as an arena plays at once with the cores of that host."""
        assert self.directory is not None, "it was asked for room"
        report = next(each.report for each in self.directory.hosts() if each.report.host == host)
        return 2 * report.cores + 2
