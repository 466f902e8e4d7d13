"""An arena in virtual time whose submissions run on hosts: links, hosts, and processes by script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from pathlib import Path
from typing import Any, cast

from arena.competitions.process_pool import Launch, ProcessPool, SeatBot
from arena.formats.spec import Plan, Take, plan_of
from arena.games.catalogue import GAMES
from arena.games.verdict import Finding
from arena.hosts.bus import BusDown
from arena.hosts.directory import HostDirectory
from arena.hosts.host_links import HostLinks, open_link
from arena.hosts.host_pools import HostPools
from arena.hosts.hosted_bots import BotHost
from arena.hosts.messages import HostKind, HostReport, HouseBot, SeatProgram, Source
from arena.referee.compute_gate import ComputeGate
from arena.sandbox.command import Program
from arena.sandbox.process import StderrTail
from arena.sandbox.process_usage import Peak
from protocol.errors import UsageError
from protocol.messages import Ending, Limits, Mechanism
from protocol.version import __version__
from tests.support.arena_in_memory import HostArena, in_host
from tests.support.fake_bots import ANY_GAME
from tests.support.fake_submissions import FakeVersionService
from tests.support.memory_network import MACHINE

__all__ = ["KIND", "HostedArena", "Machine", "ScriptedProcess", "hosted_arena", "report_of"]

KIND = HostKind(
    arena_version=__version__,
    system="linux",
    machine="x86_64",
    isolation="bubblewrap",
    languages=("python",),
    commands=(),
    games=(ANY_GAME,),
)


def report_of(host: str, **about: Any) -> HostReport:
    """What a host says of itself."""
    usual = {"kind": KIND, "cores": 1, "memory_mib": 1, "bots": 0, "room": 0}
    return HostReport(host=host, session="s", **{**usual, **about})


class ScriptedProcess(asyncio.Transport):
    """A bot's process that gives the first legal answer, after `think` says for how long.

    `think` gets the bot's name and returns seconds, all of which are CPU time.
    """

    program = Program(("bot",), stdio=True)
    enforced = "time (script)"
    is_metered = True
    is_restless = False
    lag = None

    def __init__(self, name: str, think: Callable[[str], float], stderr: StderrTail) -> None:
        super().__init__()
        self.name = name
        self.stderr = stderr
        self.asked: list[float] = []
        self._think = think
        self._loop = asyncio.get_running_loop()
        self._line = b""
        self._used_s = 0.0
        self._since: float | None = None  # it computes
        self._reader: asyncio.Protocol | None = None

    @property
    def pipes(self) -> ScriptedProcess:
        return self

    async def connect(self, inward: asyncio.Protocol, outward: asyncio.BaseProtocol) -> None:
        outward.connection_made(self)
        inward.connection_made(cast(asyncio.BaseTransport, self))
        self._reader = inward
        self._says(type="hello", protocol=1, name="x", games=[ANY_GAME])

    def clock(self, now: float) -> float | None:
        return now

    def cpu_ms(self) -> float:
        running = 0.0 if self._since is None else self._loop.time() - self._since
        return 1000 * (self._used_s + running)

    def sampled_cpu_ms(self) -> float:
        return self.cpu_ms()

    def waited_ms(self) -> float | None:
        return 0.0

    def peak(self) -> Peak:
        return Peak()

    def end(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.connection_lost(None)

    # --- as its pipes ---

    def write(self, data: Any) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in filter(None, lines):
            it = json.loads(line)
            if it["type"] == "match":
                self._says(type="ready", match=it["match"], nonce="n")
            elif it["type"] == "ask":
                self._since = self._loop.time()
                self._loop.call_later(self._think(self.name), self._answers, it)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It reads all at once."""

    def is_closing(self) -> bool:
        return self._reader is None

    def close(self) -> None:
        """Its input has ended; it goes on until it is stopped."""

    abort = pause_reading = resume_reading = close

    def _answers(self, it: dict[str, Any]) -> None:
        if self._since is not None:
            self._used_s += self._loop.time() - self._since
            self._since = None
        self._says(type="answer", match=it["match"], ask=it["ask"], value=it["legal"][0])

    def _says(self, **message: Any) -> None:
        line = json.dumps(message).encode() + b"\n"
        if self._reader is not None:
            self._loop.call_soon(self._reader.data_received, line)


class ScriptedLauncher:
    """Stands in for `Launcher` on a machine."""

    def __init__(
        self,
        machine: Machine,
        limits: Limits,
        hidden: Sequence[Path],
        on_finding: Callable[[str, Finding], None],
    ) -> None:
        self._machine = machine
        self._on_finding = on_finding
        self._running: dict[str, ScriptedProcess] = {}
        machine.launchers.append(self)

    async def start(
        self, name: str, program: Program, *, stderr_tail: StderrTail | None = None
    ) -> ScriptedProcess:
        await asyncio.sleep(0.05)
        process = ScriptedProcess(name, self._machine.think, stderr_tail or StderrTail())
        self._running[name] = process
        self._machine.launched += 1
        self._machine.running += 1
        return process

    async def stop(self, name: str) -> None:
        if (process := self._running.pop(name, None)) is not None:
            self._machine.running -= 1
            process.end()

    def kill(self) -> None:
        """Kill all processes, as somebody else on that machine does."""
        for name, process in self._running.items():
            process.end()
            killed = Finding(kind=Ending.CRASH, text="killed", mechanism=Mechanism.EXIT)
            self._on_finding(name, killed)

    async def close(self) -> None:
        for name in tuple(self._running):
            await self.stop(name)


class Machine:
    """A machine with a host on it; `name` is also its address in the network."""

    def __init__(self, name: str, bus: MemoryHostBus, think: Callable[[str], float]) -> None:
        self.name = name
        self.think = think
        self.launched = 0
        self.running = 0  # processes
        self.launchers: list[ScriptedLauncher] = []
        self.bots = 8
        self.cores = 2
        self._bus = bus
        self._running: asyncio.Task[None] | None = None
        self.host: BotHost | None = None

    def start(self) -> None:
        """Switch it on."""
        MACHINE.set(self.name)
        self._running = asyncio.ensure_future(self._run())

    async def die(self) -> None:
        """End it as a power cut does: nothing is said to anybody."""
        assert self._running is not None, "it was started"
        self._bus.leaves(self.name)
        self._running.cancel()
        await asyncio.wait((self._running,))

    async def _run(self) -> None:
        host = self.host = BotHost(
            report_of(self.name, cores=self.cores),
            lambda limits: self.bots,
            _programs,
            (),
            partial(open_link, self.name),
            launches=cast(Any, partial(ScriptedLauncher, self)),
        )
        self._bus.comes(self.name, host)
        try:
            await host.run(partial(self._bus.report, self.name))
        finally:
            await host.close()


async def _programs(wanted: object, game: str, name: str, fetch: object) -> Program:
    return Program(("bot",), stdio=True)


class MemoryHostBus:
    """The bus in memory; while it `is_down` nothing passes."""

    def __init__(self) -> None:
        self.is_down = False
        self._hosts: dict[str, BotHost] = {}
        self._contexts: dict[str, Context] = {}  # where each is in the network
        self._calls: list[Callable[[str, bytes], None]] = []

    @property
    def is_up(self) -> bool:
        return not self.is_down

    async def on_reports(self, call: Callable[[str, bytes], None]) -> None:
        self._calls.append(call)

    async def report(self, host: str, data: bytes) -> None:
        if not self.is_down:
            for call in self._calls:
                call(host, data)

    async def place(self, host: str, data: bytes) -> bytes:
        if self.is_down or host not in self._hosts:
            raise BusDown("nobody answers on the bus")
        asked = self._hosts[host].place(data)
        return await asyncio.create_task(asked, context=self._contexts[host])

    async def drain(self, host: str, data: bytes) -> None:
        if self.is_down:
            raise BusDown("the bus is gone")
        if host in self._hosts:
            self._hosts[host].drain(data)

    def comes(self, name: str, host: BotHost) -> None:
        self._hosts[name] = host
        self._contexts[name] = copy_context()

    def leaves(self, name: str) -> None:
        self._hosts.pop(name, None)


class HostedArena:
    """An arena whose submissions are all played on hosts, which a test switches on."""

    def __init__(self, arena: HostArena, in_play: dict[str, int]) -> None:
        self.arena = arena
        self.host = host = arena.host
        self.bus = MemoryHostBus()
        self.machines: list[Machine] = []
        self.stderr: list[tuple[int, str, str]] = []
        self.portable: set[str] = set()
        self.service = FakeVersionService(**in_play)
        on_stderr = lambda *told: self.stderr.append(told)  # noqa: E731
        here = ProcessPool(host.supervisor, ComputeGate(1), _not_here, 4, on_stderr)
        host.take_submissions(cast(Any, self.service), here, 1)
        here.at_once = 0
        self.pools = HostPools(host.supervisor, cast(Any, self), on_stderr)
        self.links = HostLinks(self.pools.opened, self.pools.closed)
        self.directory = self.pools.directory = HostDirectory(
            self.bus, "arena1", host.limits, host.url, self.links.ticket, self.links.bots
        )
        host.take_hosts(self.pools, self.links)

    def machine(self, name: str, think: Callable[[str], float] = lambda name: 0.01) -> Machine:
        """A machine that is off."""
        self.machines.append(Machine(name, self.bus, think))
        return self.machines[-1]

    def plan(self, *players: str, **more: Any) -> Plan:
        rules = GAMES[ANY_GAME]
        settings = rules.vocabulary.read_settings({"hands": 4})
        in_play = self.host.versions_in_play(ANY_GAME)
        versions = {name: in_play[name] for name in players}
        limits = self.host.limits
        return plan_of(
            rules, settings, players, take=Take.SUBMITTED, versions=versions, limits=limits, **more
        )

    # --- its programs, as hosts get them ---

    async def seat_program(self, name: str, submission: int | None, game: str) -> SeatProgram:
        return HouseBot(name) if submission is None else Source(f"{submission:064x}", 1, "python")

    def is_portable(self, name: str, game: str) -> bool:
        return name in self.portable

    async def part(self, key: str, offset: int) -> bytes:
        raise UsageError("nothing is fetched here")


async def _not_here(bot: SeatBot) -> Launch:
    raise UsageError("nothing is played here")


@asynccontextmanager
async def hosted_arena(limits: Limits, **in_play: int) -> AsyncIterator[HostedArena]:
    """An arena with these submissions in play, by owner."""
    async with in_host(limits=limits) as arena:
        made = HostedArena(arena, in_play)
        await made.directory.open()
        try:
            yield made
        finally:
            for machine in made.machines:
                if machine.host is not None:
                    await machine.die()
            made.links.close()
            made.pools.close()
