"""A host: runs bots on this machine for the arenas of a bus, and judges nothing.

A host reports its kind and its room twice a second. An arena asks for room for all launched bots of
a match. If the host has it, it reserves it for some seconds and opens a link to that arena. When
memory is short, arenas are served in turn, and idle processes are asked to make room.

The arena starts, reads and stops its bots over the link. A bot's output goes to the arena as it
comes, each piece with a reading of the bot at that moment. Input for a bot is handed over at once,
except for questions: a bot that is asked waits for a core, and its time begins when it has one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from arena.games.verdict import Finding
from arena.hosts import messages
from arena.hosts.messages import MOST_PIECE, BotLink, BotReading, HostReport, read_input
from arena.hosts.program_cache import Fetch
from arena.referee.clock import TICK_S, Lag
from arena.referee.compute_gate import LOOK_S, BotGate, ComputeGate
from arena.referee.transport import Gate
from arena.sandbox.command import Program
from arena.sandbox.launcher import LaunchedBot, Launcher, OnFinding
from arena.sandbox.process import StderrTail
from arena.server.background import BackgroundTasks, ignore_error
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits

__all__ = ["READING_S", "BotHost", "HostedBots", "Launches", "OpenLink", "Programs"]

log = logging.getLogger(__name__)

READING_S = 0.1
"""The pause between two readings of a bot that has not answered yet."""

REPORT_S = 0.5
KEPT_S = 10.0
"""How long room is reserved for bots that an arena has asked for."""
_WAITS_S = 3.0  # a refused arena that still wants room asks again each second
_KILLED_S = 1.0  # a job that is ended as a whole gets its signals one process after another

Programs: TypeAlias = Callable[[messages.SeatProgram, str, str, Fetch], Awaitable[Program]]
"""(program, game, name of the bot, fetch) → how to launch it, once it is fetched and built."""

Launches: TypeAlias = Callable[[Limits, Sequence[Path], OnFinding], Launcher]
"""Makes the launcher of an arena's bots."""

OpenLink: TypeAlias = Callable[[str, str, str, Callable[[BotLink], "HostedBots"]], Awaitable[None]]
"""(url, ticket, ca, opened): opens the link to an arena and serves it until it is lost.

It calls `opened` with the link, and hands what comes to the result; raises `ArenaError`.
"""


class _HostedBot(asyncio.Protocol):
    """A bot's process and its pipes; as an asyncio protocol, it reads the bot's output."""

    starting: asyncio.Task[None]

    def __init__(self, bots: HostedBots, start: messages.StartBot) -> None:
        self.seat = start.seat
        self.name = start.name
        self.program = start.program.key
        self.stderr = StderrTail(start.stderr_bytes)
        self.outward: asyncio.WriteTransport | None = None
        self.handed_at = 0.0
        self.launched: LaunchedBot | None = None
        self.is_asked = False  # and has not answered yet
        self.finding: Finding | None = None
        self._bots = bots
        self._gate: Gate = bots.host.gate
        self._loop = asyncio.get_running_loop()
        self._queued = deque[tuple[bool, bytes]]()  # input waiting for a core, and what follows it
        self._inward: asyncio.ReadTransport | None = None
        self._is_waiting = False  # for a core
        self._is_ending = False  # its input ends after what is queued
        self._handed = 0  # bytes of input
        self._told = 0  # bytes of its stderr that were sent

    @property
    def reading(self) -> BotReading:
        launched, outward = self.launched, self.outward
        assert launched is not None, "it was started"
        waits = 0 if outward is None else outward.get_write_buffer_size()
        waited_ms = launched.waited_ms()
        return BotReading(
            self.seat,
            self._handed - waits,
            self._loop.time(),
            self.handed_at,
            launched.cpu_ms(),
            -1.0 if waited_ms is None else waited_ms,
            self._bots.host.lag_s(),
        )

    # --- input ---

    def take(self, data: bytes, *, asks: bool) -> None:
        """Hand input over in order; if it asks something, wait for a core first."""
        self._queued.append((asks, data))
        if len(self._queued) == 1:
            self._hand_on()

    def end_input(self) -> None:
        self._is_ending = True
        self._hand_on()

    async def core(self) -> None:
        """Wait for a core; the bot has it until it writes a line (relayed bots: anything)."""
        has_core = self._loop.create_future()
        self._gate.enter(self, partial(has_core.set_result, None), self._used_ms)
        await has_core
        self.is_asked = True

    def let_go(self) -> None:
        """Release the bot's core, or stop waiting for one."""
        self.is_asked = self._is_waiting = False
        self._gate.leave(self)

    def _hand_on(self) -> None:
        """Hand over queued input, up to a question that has to wait for a core."""
        while self._queued and not self._is_waiting:
            if self._queued[0][0] and not self.is_asked:
                self._is_waiting = True
                self._gate.enter(self, self._begin, self._used_ms)
                return
            self._hand_over()
        if self._is_ending and not self._queued and self.outward is not None:
            self.outward.close()

    def _begin(self) -> None:
        """Hand over the question, as the bot now has a core."""
        self.is_asked, self._is_waiting = True, False
        self._bots.read_later(self)
        self._hand_over()
        self._loop.call_soon(self._hand_on)  # not at once: `enter` may not have returned yet

    def _hand_over(self) -> None:
        _, data = self._queued.popleft()
        self._handed += len(data)
        self.handed_at = self._loop.time()
        if self.outward is not None:
            self.outward.write(data)

    def _used_ms(self) -> float:
        launched = self.launched
        return 0.0 if launched is None else launched.cpu_ms() + (launched.waited_ms() or 0.0)

    # --- output: called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport), "it is a pipe's"
        self._inward = transport

    def data_received(self, data: bytes) -> None:
        self.tell_stderr()
        reading = self.reading
        for first in range(0, len(data), MOST_PIECE):
            self._bots.link.carry(reading.piece(data[first : first + MOST_PIECE]))
        assert self.launched is not None, "it was started"
        if self.is_asked and (self.launched.program.is_relayed or b"\n" in data):
            self.let_go()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inward = None
        self._bots.link.tell(messages.WholeBotOutput(self.seat))

    def rest(self, goes_on: bool) -> None:
        if self._inward is not None:
            (self._inward.resume_reading if goes_on else self._inward.pause_reading)()

    def tell_stderr(self) -> None:
        """Send what the bot has written to stderr since the last time, as far as it is kept."""
        if self.stderr.written != self._told:
            new = self.stderr.since(self._told)
            self._told = self.stderr.written
            self._bots.link.tell(messages.BotStderr(self.seat, new.encode()))

    async def connect(self, launched: LaunchedBot) -> None:
        self._gate = BotGate(self._bots.host.gate, launched, self._loop.time, (self,))
        pipes = launched.pipes
        assert pipes is not None, "a host starts what speaks over pipes"
        await pipes.connect(self, _Input(self))


class _Input(asyncio.BaseProtocol):
    """The host's end of a bot's standard input."""

    def __init__(self, bot: _HostedBot) -> None:
        self._bot = bot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport), "it is a pipe's"
        transport.set_write_buffer_limits(0)
        self._bot.outward = transport

    def resume_writing(self) -> None:
        """Note when the bot has read all of its input."""
        self._bot.handed_at = asyncio.get_running_loop().time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._bot.outward = None


class HostedBots:
    """The bots of one arena; `limits` apply to each of them.

    Attributes:
        link: the link to the arena, once `is_open` is done.
        kept: for each bot that is still to come, until when its room is reserved.
    """

    link: BotLink

    def __init__(self, host: BotHost, arena: str, limits: Limits) -> None:
        self.host = host
        self.arena = arena
        self.kept: list[float] = []
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_open.add_done_callback(ignore_error)
        self._launcher = host.launches(limits, host.hidden, self._found)
        self._bots: dict[int, _HostedBot] = {}
        self._fetching: dict[tuple[str, int], asyncio.Future[bytes]] = {}
        self._asked: dict[_HostedBot, None] = {}
        self._tasks = BackgroundTasks()
        self._loop = asyncio.get_running_loop()
        self._reads: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many bots there are, also starting and ending ones."""
        return len(self._bots)

    def taken(self, now: float) -> int:
        """Return how many places are taken: bots and reserved room."""
        self.kept = [until for until in self.kept if until > now]
        return len(self.kept) + len(self)

    @property
    def programs(self) -> tuple[str, ...]:
        """The keys of the bots' programs; may be read in a thread."""
        return tuple(bot.program for bot in tuple(self._bots.values()))

    async def close(self) -> None:
        """End all bots."""
        if self._reads is not None:
            self._reads.cancel()
        for bot in self._bots.values():
            bot.let_go()
        self._tasks.cancel()
        for part in tuple(self._fetching.values()):
            if not part.done():
                part.set_exception(ArenaError("the link to the arena was lost"))
        await self._launcher.close()
        await self._tasks.ended()

    def ask_to_retire(self, count: int) -> None:
        """Ask the arena to end idle bots, the oldest first and at most `count`."""
        for bot in [bot for bot in self._bots.values() if not bot.is_asked][:count]:
            self.link.tell(messages.RetireBot(bot.seat))

    # --- what comes over the link ---

    def piece(self, frame: bytes) -> None:
        """Take input for a bot; raises `struct.error` if the frame is no piece."""
        seat, asks, data = read_input(frame)
        if (bot := self._bots.get(seat)) is not None:
            bot.take(data, asks=asks)

    def message(self, frame: bytes) -> None:
        """Take a message; raises `msgspec.DecodeError` if the frame is none."""
        message = messages.from_arena(frame)
        if isinstance(message, messages.StartBot):
            self._start(message)
        elif isinstance(message, messages.ProgramPart):
            self._fetched(message)
        elif (bot := self._bots.get(message.seat)) is None:
            return
        elif isinstance(message, messages.RestBot):
            bot.rest(message.goes_on)
        elif isinstance(message, messages.EndBotInput):
            bot.end_input()
        else:
            self._tasks.start(self._stop(bot))

    def read_later(self, bot: _HostedBot) -> None:
        """Send readings of a bot until it has answered."""
        self._asked[bot] = None
        if self._reads is None:
            self._reads = self._loop.call_later(READING_S, self._read)

    # --- within ---

    def _read(self) -> None:
        self._reads = None
        for bot in tuple(self._asked):
            if not bot.is_asked:
                del self._asked[bot]
            else:
                bot.tell_stderr()
                self.link.carry(bot.reading.piece())
        if self._asked:
            self._reads = self._loop.call_later(READING_S, self._read)

    def _start(self, message: messages.StartBot) -> None:
        bot = self._bots[message.seat] = _HostedBot(self, message)
        bot.starting = self._tasks.start(self._launch(bot, message))
        del self.kept[:1]  # the bot's room, if it is still reserved

    async def _launch(self, bot: _HostedBot, message: messages.StartBot) -> None:
        try:
            fetch = partial(self._fetch, message.program.key)
            program = await self.host.programs(message.program, message.game, bot.name, fetch)
            await bot.core()
            launched = await self._launcher.start(bot.name, program, stderr_tail=bot.stderr)
            # Set this before the output is read, which may come at once.
            bot.launched = launched
            self.link.tell(
                messages.BotStarted(
                    seat=bot.seat,
                    enforced=launched.enforced,
                    is_metered=launched.is_metered,
                    now=self._loop.time(),
                )
            )
            await bot.connect(launched)
            self.read_later(bot)
        except Exception as error:  # any error: the arena waits for an answer
            if not isinstance(error, ArenaError | OSError):
                log.exception("%s cannot be started", bot.name)
            if bot.launched is not None:
                await self._launcher.stop(bot.name)
            self._forget(bot)
            self.link.tell(messages.StartRefused(bot.seat, str(error)))

    async def _stop(self, bot: _HostedBot) -> None:
        """End a bot, or cancel its start."""
        bot.let_go()
        bot.starting.cancel()
        await asyncio.wait((bot.starting,))
        if bot.launched is not None:
            await self._launcher.stop(bot.name)
        if bot.seat in self._bots:
            self._forget(bot)
            self.link.tell(messages.BotEnded(bot.seat, bot.finding))

    def _found(self, name: str, finding: Finding) -> None:
        """Handle the end of a bot that ended by itself or at one of its limits."""
        bot = next(bot for bot in self._bots.values() if bot.name == name)
        bot.tell_stderr()
        bot.finding = finding
        crashed = finding.kind is Ending.CRASH
        self._tasks.start(self._crashed(bot) if crashed else self._stop(bot))

    async def _crashed(self, bot: _HostedBot) -> None:
        """End the rest of a bot, unless the whole host was killed, which is no offence."""
        crashed_at = self._loop.time()
        await asyncio.sleep(_KILLED_S)
        if abs(self.host.left_at - crashed_at) <= _KILLED_S:
            self.link.cut()
        else:
            await self._stop(bot)

    def _forget(self, bot: _HostedBot) -> None:
        bot.let_go()
        del self._bots[bot.seat]

    # --- programs ---

    async def _fetch(self, key: str, offset: int) -> bytes:
        """Ask the arena for a part of a program; `ProgramCache` fetches each once at a time."""
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._fetching[key, offset] = future
        self.link.tell(messages.WantedPart(key, offset))
        return await future

    def _fetched(self, part: messages.ProgramPart) -> None:
        future = self._fetching.pop((part.key, part.offset), None)
        if future is None or future.done():
            return
        if part.why:
            future.set_exception(ArenaError(part.why))
        else:
            future.set_result(part.data)


class BotHost:
    """One host; `report` has the constant parts of its reports.

    Args:
        fitting: returns how many bots with these limits fit into the machine's memory.
        programs: fetches and builds; raises `ArenaError` for programs that cannot start here.
        hidden: files that no bot may see.
        shortage: says what this machine is short of now; empty if nothing.
        tell: called with a line for the operator.

    Attributes:
        is_draining: whether it takes no more bots, by an operator's order.
        left_at: when it was told to leave; infinite before.
    """

    def __init__(
        self,
        report: HostReport,
        fitting: Callable[[Limits], int],
        programs: Programs,
        hidden: Sequence[Path],
        open_link: OpenLink,
        shortage: Callable[[], str] = lambda: "",
        tell: Callable[[str], None] = lambda line: None,
        launches: Launches = Launcher,
    ) -> None:
        self.is_draining = False
        self.left_at = math.inf
        self.gate = ComputeGate(report.cores)
        self.programs = programs
        self.hidden = hidden
        self.launches = launches
        self._report = report
        self._fitting = fitting
        self._open_link = open_link
        self._shortage = shortage
        self._tell = tell
        self._link_error = ""  # why the last link could not be opened
        self._arenas: dict[str, HostedBots] = {}
        self._refused: dict[str, float] = {}  # when each waiting arena was last refused
        self._served: dict[str, int] = {}  # the turn in which each arena last got room
        self._turns = itertools.count()
        self._loop = asyncio.get_running_loop()
        self._lag = Lag(self._loop.time())
        self._tasks = BackgroundTasks()

    @property
    def is_leaving(self) -> bool:
        """Whether the host ends once its bots have played."""
        return self.left_at < math.inf

    @property
    def bots(self) -> int:
        """How many bots there are, of all arenas."""
        return sum(len(bots) for bots in self._arenas.values())

    @property
    def programs_in_use(self) -> tuple[str, ...]:
        """The keys of all bots' programs; may be read in a thread."""
        return tuple(key for bots in tuple(self._arenas.values()) for key in bots.programs)

    @property
    def report(self) -> HostReport:
        return msgspec.structs.replace(
            self._report,
            bots=self.bots,
            room=max(0, self._room(Limits())),
            is_draining=self.is_draining or self.is_leaving,
            lag_ms=round(1000 * self._lag.stalled_s(self._loop.time() - 5, self._loop.time()), 1),
            last_error=self._shortage() or self._link_error,
        )

    def lag_s(self) -> float:
        """Return how late this process's event loop has been in total, in seconds."""
        return self._lag.all_stalls_s(self._loop.time())

    async def run(self, publish: Callable[[bytes], Awaitable[None]]) -> None:
        """Report, measure and share the cores, until the host leaves and has no bots."""
        report_at = look_at = self._loop.time()
        while True:
            now = self._loop.time()
            self._lag.tick(now)
            if now >= look_at:
                look_at = now + LOOK_S
                self.gate.look(now)
            if now >= report_at:
                report_at = now + REPORT_S
                await publish(messages.encode(self.report))
                if self.is_leaving and not self.bots:
                    return
                if self.is_leaving:
                    for bots in self._arenas.values():
                        bots.ask_to_retire(len(bots))
            await asyncio.sleep(TICK_S)

    async def place(self, data: bytes) -> bytes:
        """Answer an arena's request for room with a `BotsPlaced`."""
        try:
            wanted = messages.decode(data, messages.PlaceBots)
            why = self._refusal(wanted)
            if not why:
                await self._serve(wanted)
        except msgspec.DecodeError as error:
            why = f"expected a request for room: {error}"
        except ArenaError as error:
            why = str(error)
            if why != self._link_error:  # the arena repeats its request each second
                self._tell(why)
            self._link_error = why
        return messages.encode(messages.BotsPlaced(self._report.host, why))

    def drain(self, data: bytes) -> None:
        """Take no more bots, or take them again, by an operator's order."""
        was_draining = self.is_draining
        self.is_draining = messages.decode(data, messages.DrainHost).is_draining
        if self.is_draining is not was_draining:
            self._tell("takes no more bots" if self.is_draining else "takes bots again")

    def leave(self) -> None:
        """Take no more bots, for good."""
        self.left_at = self._loop.time()

    async def close(self) -> None:
        """End all bots and links."""
        self._tasks.cancel()
        await self._tasks.ended()

    # --- within ---

    def _room(self, limits: Limits) -> int:
        now = self._loop.time()
        return self._fitting(limits) - sum(bots.taken(now) for bots in self._arenas.values())

    def _refusal(self, wanted: messages.PlaceBots) -> str:
        """Say why an arena gets no room now; empty if it does."""
        now, arena = self._loop.time(), wanted.arena
        if self.is_draining or self.is_leaving:
            return "it takes no more bots"
        if shortage := self._shortage():
            return f"it has {shortage}"
        self._refused = {name: at for name, at in self._refused.items() if now - at < _WAITS_S}
        missing = wanted.bots - self._room(wanted.limits)
        if missing > 0:
            self._refused[arena] = now
            # The arena has already replaced its own idle bots before it asks.
            others = (bots for bots in self._arenas.values() if bots.arena != arena)
            if (most := max(others, key=len, default=None)) is not None:
                most.ask_to_retire(missing)
            return "it has no memory left for them"
        last = self._served.get(arena, -1)
        before = [name for name in self._refused if self._served.get(name, last) < last]
        if before:
            self._refused[arena] = now
            return f"it is the turn of {min(before, key=self._served.__getitem__)}"
        return ""

    async def _serve(self, wanted: messages.PlaceBots) -> None:
        """Reserve room for an arena's bots, and wait for the link to it."""
        arena = wanted.arena
        bots = self._arenas.get(arena)
        if bots is None:
            bots = self._arenas[arena] = HostedBots(self, arena, wanted.limits)
            self._tasks.start(self._link(bots, wanted))
        bots.kept += [self._loop.time() + KEPT_S] * wanted.bots
        self._refused.pop(arena, None)
        self._served[arena] = next(self._turns)
        await asyncio.shield(bots.is_open)

    async def _link(self, bots: HostedBots, wanted: messages.PlaceBots) -> None:
        """Keep the link to an arena; when it is lost, end all of its bots."""
        why = ArenaError("the link was closed")

        def opened(link: BotLink) -> HostedBots:
            bots.link = link
            bots.is_open.set_result(None)
            self._link_error = ""
            self._tell(f"runs bots for {bots.arena}")
            return bots

        try:
            await self._open_link(wanted.url, wanted.ticket, wanted.ca, opened)
        except ArenaError as error:
            why = error
        finally:
            del self._arenas[bots.arena]
            if bots.is_open.done():
                await asyncio.shield(bots.close())
                self._tell(f"has ended all bots of {bots.arena}")
            else:
                bots.is_open.set_exception(why)
