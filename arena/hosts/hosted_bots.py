"""The bots of one arena on this host: started, read and stopped as the arena says over its link.

What a bot writes goes to the arena as it comes, each piece with what the host reads of the bot at
that moment. What the arena writes to a bot is handed over at once, but for questions: a bot that is
asked waits for a core, and its time begins when it has one.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from arena.engine.verdict import Finding
from arena.hosts import messages
from arena.hosts.link import MOST_PIECE, BotLink, BotReading, read_input
from arena.hosts.program_cache import Fetch
from arena.referee.compute_gate import BotGate, ComputeGate
from arena.referee.transport import Gate
from arena.sandbox.command import Program
from arena.sandbox.launcher import LaunchedBot, Launcher, OnFinding
from arena.sandbox.process import StderrTail
from arena.server.background import BackgroundTasks
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits

__all__ = ["READING_S", "HostedBots", "Launches", "Programs"]

log = logging.getLogger(__name__)

READING_S = 0.1
"""Between two readings of a bot that has not answered yet."""

_KILLED_S = 1.0  # who ends a whole job signals its processes one after another

Programs: TypeAlias = Callable[[messages.SeatProgram, str, str, Fetch], Awaitable[Program]]
"""(program, game, name of the bot, fetch) → how it is launched, once it was fetched and built."""

Launches: TypeAlias = Callable[[Limits, Sequence[Path], OnFinding], Launcher]
"""Makes the launcher of an arena's bots."""


class _HostedBot(asyncio.Protocol):
    """A bot's process, and what passes through its pipes. To asyncio it reads the output."""

    def __init__(self, bots: HostedBots, seat: int, program: str, stderr: StderrTail) -> None:
        self.seat = seat
        self.program = program  # its key
        self.stderr = stderr
        self.launched: LaunchedBot | None = None
        self.is_asked = False  # and has not written a line since
        self.finding: Finding | None = None
        self._bots = bots
        self._gate: Gate = bots.gate
        self._loop = asyncio.get_running_loop()
        self._queued = deque[tuple[bool, bytes]]()  # input that waits for a core, and what follows
        self._inward: asyncio.ReadTransport | None = None
        self._outward: asyncio.WriteTransport | None = None
        self._is_waiting = False  # for a core
        self._is_ending = False  # its input, after what is queued
        self._handed = 0
        self._handed_at = 0.0
        self._told = 0  # bytes of its stderr

    @property
    def reading(self) -> BotReading:
        launched, outward = self.launched, self._outward
        assert launched is not None, "it was started"
        waits = 0 if outward is None else outward.get_write_buffer_size()
        waited_ms = launched.waited_ms()
        return BotReading(
            self.seat,
            self._handed - waits,
            self._loop.time(),
            self._handed_at,
            launched.cpu_ms(),
            -1.0 if waited_ms is None else waited_ms,
            self._bots.lag_s(),
        )

    # --- input ---

    def take(self, data: bytes, *, asks: bool) -> None:
        """Hand input over in its order, with a core if it asks."""
        self._queued.append((asks, data))
        if len(self._queued) == 1:
            self._hand_on()

    def end_input(self) -> None:
        self._is_ending = True
        if not self._queued and self._outward is not None:
            self._outward.close()

    async def core(self) -> None:
        """Wait for a core, which it has until it has written a line."""
        has_core = self._loop.create_future()
        self._gate.enter(self, partial(has_core.set_result, None), self._used_ms)
        await has_core
        self.is_asked = True

    def let_go(self) -> None:
        """Give its core to others, and wait for none."""
        self.is_asked = self._is_waiting = False
        self._gate.leave(self)

    def _hand_on(self) -> None:
        """Hand over what is queued, up to a question that has to wait for a core."""
        while self._queued and not self._is_waiting:
            if self._queued[0][0] and not self.is_asked:
                self._is_waiting = True
                self._gate.enter(self, self._begin, self._used_ms)
                return
            self._hand_over()
        if self._is_ending and not self._queued and self._outward is not None:
            self._outward.close()

    def _begin(self) -> None:
        """It has a core."""
        self.is_asked, self._is_waiting = True, False
        self._bots.read_later(self)
        self._hand_over()
        self._loop.call_soon(self._hand_on)  # `enter` may be on its way out

    def _hand_over(self) -> None:
        _, data = self._queued.popleft()
        self._handed += len(data)
        self._handed_at = self._loop.time()
        if self._outward is not None:
            self._outward.write(data)

    def _used_ms(self) -> float:
        launched = self.launched
        return 0.0 if launched is None else launched.cpu_ms() + (launched.waited_ms() or 0.0)

    # --- output: what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport), "it is a pipe's"
        self._inward = transport

    def data_received(self, data: bytes) -> None:
        self.tell_stderr()
        reading = self.reading
        for first in range(0, len(data), MOST_PIECE):
            self._bots.link.carry(reading.piece(data[first : first + MOST_PIECE]))
        if self.is_asked and b"\n" in data:
            self.let_go()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inward = None
        self._bots.link.tell(messages.WholeBotOutput(self.seat))

    def rest(self, goes_on: bool) -> None:
        if self._inward is not None:
            (self._inward.resume_reading if goes_on else self._inward.pause_reading)()

    def tell_stderr(self) -> None:
        """Send what it has written there since the last time, as far as that is kept."""
        if self.stderr.written != self._told:
            new = self.stderr.since(self._told)
            self._told = self.stderr.written
            self._bots.link.tell(messages.BotStderr(self.seat, new.encode()))

    async def connect(self, launched: LaunchedBot) -> None:
        self._gate = BotGate(self._bots.gate, launched, self._loop.time, (self,))
        pipes = launched.pipes
        assert pipes is not None, "a host starts what speaks over pipes"
        await pipes.connect(self, _Input(self))

    def input_opened(self, transport: asyncio.WriteTransport) -> None:
        transport.set_write_buffer_limits(0)
        self._outward = transport

    def input_read(self) -> None:
        """It has read all that was handed over."""
        self._handed_at = self._loop.time()

    def input_lost(self) -> None:
        self._outward = None


class _Input(asyncio.BaseProtocol):
    """The host's end of a bot's standard input."""

    def __init__(self, bot: _HostedBot) -> None:
        self._bot = bot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport), "it is a pipe's"
        self._bot.input_opened(transport)

    def resume_writing(self) -> None:
        self._bot.input_read()

    def connection_lost(self, exc: Exception | None) -> None:
        self._bot.input_lost()


class HostedBots:
    """The bots of one arena; `limits` are those of memory and processes for all of them.

    Args:
        programs: fetches and builds.
        hidden: files that no bot sees.
        lag_s: returns how late this process's event loop has been in all.
        on_change: called with True when a bot comes, and with False when one is gone.
        left_at: returns when this host was told to leave, infinite if it was not.
    """

    def __init__(
        self,
        link: BotLink,
        limits: Limits,
        gate: ComputeGate,
        programs: Programs,
        hidden: Sequence[Path],
        lag_s: Callable[[], float],
        on_change: Callable[[bool], None],
        launches: Launches = Launcher,
        left_at: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self.link = link
        self.gate = gate
        self.lag_s = lag_s
        self._limits = limits
        self._programs = programs
        self._on_change = on_change
        self._left_at = left_at
        self._launcher = launches(limits, hidden, self._found)
        self._bots: dict[int, _HostedBot] = {}
        self._by_name: dict[str, _HostedBot] = {}
        self._starting: dict[int, asyncio.Task[None]] = {}
        self._fetching: dict[tuple[str, int], asyncio.Future[bytes]] = {}
        self._asked: dict[_HostedBot, None] = {}
        self._tasks = BackgroundTasks()
        self._loop = asyncio.get_running_loop()
        self._reads: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many bots there are, with those that start or end."""
        return len(self._bots)

    @property
    def programs(self) -> tuple[str, ...]:
        """The keys of their programs; may be read in a thread."""
        return tuple(bot.program for bot in tuple(self._bots.values()))

    async def close(self) -> None:
        """End all bots, and keep nothing."""
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
        """Take input of a bot; raises `struct.error` if it is no piece."""
        seat, asks, data = read_input(frame)
        if (bot := self._bots.get(seat)) is not None:
            bot.take(data, asks=asks)

    def message(self, frame: bytes) -> None:
        """Take a message; raises `msgspec.DecodeError` if it is none."""
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
        bot = self._bots[message.seat] = _HostedBot(
            self, message.seat, message.program.key, StderrTail(message.stderr_bytes)
        )
        self._by_name[message.name] = bot
        task = self._starting[message.seat] = self._tasks.start(self._launch(bot, message))
        task.add_done_callback(lambda _: self._starting.pop(message.seat, None))
        self._on_change(True)

    async def _launch(self, bot: _HostedBot, message: messages.StartBot) -> None:
        try:
            fetch = partial(self._fetch, message.program.key)
            program = await self._programs(message.program, message.game, message.name, fetch)
            await bot.core()
            launched = await self._launcher.start(message.name, program, stderr_tail=bot.stderr)
            # Before its output is read, which may come at once.
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
        except Exception as error:  # whatever it is: the arena waits for an answer
            if not isinstance(error, ArenaError | OSError):
                log.exception("%s cannot be started", message.name)
            if bot.launched is not None:
                await self._launcher.stop(message.name)
            self._forget(bot)
            self.link.tell(messages.StartRefused(bot.seat, str(error)))

    async def _stop(self, bot: _HostedBot) -> None:
        """End a bot; one that still starts is given up."""
        bot.let_go()
        if (starting := self._starting.get(bot.seat)) is not None:
            starting.cancel()
            await asyncio.wait((starting,))
        if bot.launched is not None:
            await self._launcher.stop(bot.launched.name)
        self._end(bot)

    def _found(self, name: str, finding: Finding) -> None:
        """A bot has ended by itself, or was ended at one of its limits."""
        bot = self._by_name[name]
        bot.tell_stderr()
        bot.finding = finding
        crashed = finding.kind is Ending.CRASH
        self._tasks.start(self._crashed(bot) if crashed else self._stop(bot))

    async def _crashed(self, bot: _HostedBot) -> None:
        """End what is left of a bot, unless all of this host was killed, which is no offence."""
        crashed_at = self._loop.time()
        await asyncio.sleep(_KILLED_S)
        if abs(self._left_at() - crashed_at) <= _KILLED_S:
            self.link.cut()
        else:
            await self._stop(bot)

    def _end(self, bot: _HostedBot) -> None:
        """Nothing is left of a bot."""
        if self._bots.get(bot.seat) is bot:
            self._forget(bot)
            self.link.tell(messages.BotEnded(bot.seat, bot.finding))

    def _forget(self, bot: _HostedBot) -> None:
        bot.let_go()
        del self._bots[bot.seat]
        for name in [name for name, other in self._by_name.items() if other is bot]:
            del self._by_name[name]
        self._on_change(False)

    # --- programs ---

    async def _fetch(self, key: str, offset: int) -> bytes:
        """Ask the arena for a part of a program."""
        future = self._fetching.get((key, offset))
        if future is None:
            future = self._fetching[key, offset] = self._loop.create_future()
            future.add_done_callback(lambda _: self._fetching.pop((key, offset), None))
            self.link.tell(messages.WantedPart(key, offset))
        return await asyncio.shield(future)

    def _fetched(self, part: messages.ProgramPart) -> None:
        future = self._fetching.get((part.key, part.offset))
        if future is None or future.done():
            return
        if part.why:
            future.set_exception(ArenaError(part.why))
        else:
            future.set_result(part.data)
