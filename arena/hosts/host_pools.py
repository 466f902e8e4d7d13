"""Launched bots' processes on hosts: keeps a pool for each host, and asks hosts for more room."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from arena.competitions.bot_supervisor import BotSupervisor, SupervisedBot
from arena.competitions.elsewhere import HostLost
from arena.competitions.process_pool import Launch, OnStderr, ProcessPool, SeatBot
from arena.hosts.directory import HostDirectory
from arena.hosts.messages import BotLink
from arena.hosts.remote_bot import RemoteLauncher
from arena.hosts.seat_programs import SeatPrograms
from arena.referee.compute_gate import ComputeGate
from arena.server.background import BackgroundTasks
from protocol.errors import ArenaError, UsageError

__all__ = ["HostPools"]

_ASKS = 4  # most requests at once, for matches without room
_AGAIN_S = 1.0  # pause after no host had room


class HostPools:
    """The pools of all hosts with a link to this arena.

    Attributes:
        directory: the hosts to ask for room; None until the bus is connected.
        on_room: called when there may be room for a match that had none.
    """

    def __init__(
        self, supervisor: BotSupervisor, programs: SeatPrograms, on_stderr: OnStderr
    ) -> None:
        self.directory: HostDirectory | None = None
        self.on_room: Callable[[], None] = lambda: None
        self._supervisor = supervisor
        self._programs = programs
        self._on_stderr = on_stderr
        self._pools: dict[RemoteLauncher, ProcessPool] = {}
        self._asking: set[tuple[SeatBot, ...]] = set()
        self._rests_until = -math.inf
        self._loop = asyncio.get_running_loop()
        self._tasks = BackgroundTasks()

    @property
    def pools(self) -> Sequence[ProcessPool]:
        """The pools where matches may begin: a draining host only ends its matches."""
        draining = self._draining
        return tuple(pool for at, pool in self._pools.items() if at.host not in draining)

    @property
    def at_once(self) -> int:
        """How many matches of this arena can be played at once on the hosts that are there.

        A host without a report still counts by its link, which goes on without the bus.
        """
        alive = () if self.directory is None else self.directory.alive()
        at_once = {report.host: _at_once(report.cores) for report in alive}
        at_once |= {launcher.host: pool.at_once for launcher, pool in self._pools.items()}
        return sum(at_once[host] for host in at_once.keys() - self._draining)

    def is_portable(self, name: str, game: str) -> bool:
        """Return whether hosts can start a bot that was launched here, as far as is known."""
        return self._programs.is_portable(name, game)

    def opened(self, host: str, link: BotLink) -> RemoteLauncher:
        """Make a pool for a host that has opened its link."""
        launcher = RemoteLauncher(
            host,
            link,
            self._supervisor.limits,
            self._programs.part,
            self._supervisor.found,
            self._supervisor.lost,
            lambda key: pool.end_if_idle(key),
            self.directory,
        )
        pool = ProcessPool(
            self._supervisor,
            ComputeGate(sys.maxsize),
            partial(self._prepared, launcher),
            None,
            self._on_stderr,
        )
        assert self.directory is not None, "it was asked for room"
        report = next(each.report for each in self.directory.hosts() if each.report.host == host)
        pool.at_once = _at_once(report.cores)
        pool.on_room = self.on_room
        self._pools[launcher] = pool
        return launcher

    def closed(self, launcher: RemoteLauncher) -> None:
        """Close the pool of a host whose link is lost."""
        self._pools.pop(launcher).close()
        self.on_room()

    def ask(self, bots: Sequence[SeatBot]) -> None:
        """Ask hosts for room for a match of these bots."""
        wanted = tuple(bots)
        is_asked = wanted in self._asking or len(self._asking) >= _ASKS
        if self.directory is None or is_asked or self._loop.time() < self._rests_until:
            return
        self._asking.add(wanted)
        self._tasks.start(self._ask(self.directory, wanted))

    def close(self) -> None:
        self._tasks.cancel()
        for pool in self._pools.values():
            pool.close()

    @property
    def _draining(self) -> set[str]:
        """The hosts that have reported that they take no more bots."""
        known = () if self.directory is None else self.directory.hosts()
        return {each.report.host for each in known if each.report.is_draining}

    async def _ask(self, directory: HostDirectory, bots: tuple[SeatBot, ...]) -> None:
        host = ""
        try:
            programs = [await self._programs.seat_program(*bot) for bot in bots]
            at = {launcher.host: pool for launcher, pool in self._pools.items()}
            load = {host: pool.playing / pool.at_once for host, pool in at.items()}
            warmest = max(at, key=lambda host: at[host].warm(bots), default="")
            game = bots[0].game
            host = await directory.place(len(bots), programs, game, warm_at=warmest, load=load)
        except ArenaError:
            pass  # the program cannot be sent; the arena plays the match when it has room
        finally:
            self._asking.discard(bots)
        pools = [pool for launcher, pool in self._pools.items() if launcher.host == host]
        if pools:
            pools[-1].grant(len(bots))
            self.on_room()
        else:
            self._rests_until = self._loop.time() + _AGAIN_S
            self._loop.call_later(_AGAIN_S, self.on_room)

    async def _prepared(self, launcher: RemoteLauncher, bot: SeatBot) -> Launch:
        try:
            program = await self._programs.seat_program(*bot)
        except UsageError as error:  # it cannot be sent; `is_portable` knows that from now on
            raise HostLost(str(error)) from None

        def launch(key: str) -> Awaitable[SupervisedBot]:
            start = partial(launcher.start, key, bot.game, program)
            return self._supervisor.launch_by(launcher, key, start)

        return launch


def _at_once(cores: int) -> int:
    """Return how many matches a host plays at once: more than cores, as many wait for messages."""
    return 2 * cores + 2
