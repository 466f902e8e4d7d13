"""Represents bots that run on a host, so that the arena uses them like bots of its own.

`RemoteLauncher` takes the place of a `Launcher`, and `RemoteBot` of a `LaunchedBot`. A bot's pipes
end at the host; their bytes travel over the link in pieces. With each piece, the host reads what
the bot has used so far. So neither the network nor a host that stands still is charged to anybody.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from arena.competitions.elsewhere import HostLost
from arena.games.verdict import Finding
from arena.hosts import messages
from arena.hosts.directory import HostDirectory
from arena.hosts.messages import MOST_PIECE, BotLink, BotReading, input_piece, read_output
from arena.sandbox.process import StderrTail
from arena.server.background import BackgroundTasks, ignore_error
from protocol.errors import ArenaError
from protocol.messages import Limits

__all__ = ["RemoteBot", "RemoteLauncher"]

LOST = "the host {host} was lost"


class RemoteBot(asyncio.Transport):
    """A bot on a host, and its pipes.

    Attributes:
        on_handed: called when the host has handed a question over, with the time of that on this
            loop's clock, and with `lag.total_s` at that moment.
    """

    def __init__(self, name: str, seat: int, link: BotLink, stderr: StderrTail) -> None:
        super().__init__()
        self.name = name
        self.seat = seat
        self.stderr = stderr
        self.enforced = ""
        self.is_metered = True
        self.on_handed: Callable[[float, float], None] = lambda at, lag_s: None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.started.add_done_callback(ignore_error)
        self._link = link
        self._reading = BotReading(seat, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self._ahead_s = 0.0  # by which this loop's clock is ahead of the host's
        self._written = 0
        self._asks = False  # the next write has to be answered
        self._is_handed = True
        self._handed_lag_s = 0.0
        self._is_muted = False
        self._inward: asyncio.Protocol | None = None
        self._early = b""  # output that came before there was a reader
        self._is_closing = False

    # --- as a launched bot ---

    @property
    def pipes(self) -> RemoteBot:
        """The transport of both pipes, which end at the host."""
        return self

    def cpu_ms(self) -> float:
        return self._reading.cpu_ms

    def waited_ms(self) -> float | None:
        waited_ms = self._reading.waited_ms
        return None if waited_ms < 0 else waited_ms

    def clock(self, now: float) -> float | None:
        """Return when the last reading was made; None until a question has reached the bot."""
        return self._reading.at + self._ahead_s if self._is_handed else None

    @property
    def lag(self) -> RemoteBot:
        return self

    def total_s(self, now: float) -> float:
        """Return the total time for which the host's event loop has stood still."""
        return self._reading.lag_s

    def stalled_s(self, since: float, now: float) -> float:
        """Return how long the host has stood still since it handed the question over."""
        return self._reading.lag_s - self._handed_lag_s

    async def connect(self, inward: asyncio.Protocol, outward: asyncio.BaseProtocol) -> None:
        """Send the bot's output to `inward`; `outward` gets the transport for its input."""
        self._inward = inward
        outward.connection_made(self)
        inward.connection_made(self)
        if self._early:
            inward.data_received(self._early)

    # --- as a gate: the host gives a bot that is asked its core ---

    def enter(self, who: object, begin: Callable[[], None], used_ms: object = None) -> None:
        """Begin at once; the host hands the question over when it has a core for the bot."""
        self._asks = True
        begin()

    def leave(self, who: object) -> None:
        """Do nothing: the host gives the core to others when the bot has answered."""

    # --- as the transport of both pipes ---

    def write(self, data: bytes | bytearray | memoryview) -> None:
        asks, self._asks = self._asks, False
        self._is_handed = self._is_handed and not asks
        for first in range(0, len(data), MOST_PIECE):
            piece = bytes(data[first : first + MOST_PIECE])
            self._written += len(piece)
            self._link.carry(input_piece(self.seat, piece, asks=asks))

    def get_write_buffer_size(self) -> int:
        return self._written - self._reading.handed

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._link.tell(messages.RestBot(self.seat, goes_on=False))

    def resume_reading(self) -> None:
        self._link.tell(messages.RestBot(self.seat, goes_on=True))

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._link.tell(messages.EndBotInput(self.seat))

    def abort(self) -> None:
        self.close()
        asyncio.get_running_loop().call_soon(self.output_ended)

    # --- what the host reports ---

    def runs(self, message: messages.BotStarted, now: float) -> None:
        self.enforced, self.is_metered = message.enforced, message.is_metered
        self._ahead_s = now - message.now
        self._reading = self._reading._replace(at=message.now)
        self.started.set_result(None)

    def read(self, reading: BotReading, data: bytes) -> None:
        self._reading = reading
        if not self._is_handed and reading.handed >= self._written:
            self._is_handed, self._handed_lag_s = True, reading.lag_s
            self.on_handed(reading.handed_at + self._ahead_s, reading.lag_s)
        if self._inward is None:
            self._early += data
        elif data:
            self._inward.data_received(data)

    def output_ended(self) -> None:
        """Close the output towards its reader."""
        inward, self._inward = self._inward, None
        if inward is not None:
            inward.connection_lost(None)

    def is_gone(self) -> None:
        """End all waiting for the bot, as it no longer exists."""
        self.output_ended()
        for waits in (self.started, self.ended):
            if not waits.done():
                waits.set_result(None)


class RemoteLauncher:
    """The bots of this arena on one host, over one link.

    Args:
        host: its name, for people.
        part: returns bytes of a program by key and offset.
        on_finding: called when a bot ends by itself or at a limit.
        on_lost: called with each bot that was running when the link is lost.
        on_retire: called with a bot whose room the host needs if it is idle.
        directory: counts the starts and losses of bots.
    """

    def __init__(
        self,
        host: str,
        link: BotLink,
        limits: Limits,
        part: Callable[[str, int], Awaitable[bytes]],
        on_finding: Callable[[str, Finding], None],
        on_lost: Callable[[str, str], None],
        on_retire: Callable[[str], None],
        directory: HostDirectory | None = None,
    ) -> None:
        self.host = host
        self._link = link
        self._limits = limits
        self._part = part
        self._on_finding = on_finding
        self._on_lost = on_lost
        self._on_retire = on_retire
        self._directory = directory
        self._seats = itertools.count(1)
        self._bots: dict[int, RemoteBot] = {}
        self._is_lost = False
        self._tasks = BackgroundTasks()
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        """Return how many bots there are, also starting and ending ones."""
        return len(self._bots)

    async def start(
        self, name: str, game: str, program: messages.SeatProgram, stderr: StderrTail | None = None
    ) -> RemoteBot:
        """Start a program for a game; wait until the host has fetched and built it.

        Raises `HostLost` if the host cannot do that.
        """
        bot = RemoteBot(name, next(self._seats), self._link, stderr or StderrTail())
        if self._is_lost:
            raise HostLost(LOST.format(host=self.host))
        self._bots[bot.seat] = bot
        if self._directory is not None:
            self._directory.started(name)
        self._link.tell(
            messages.StartBot(
                seat=bot.seat,
                name=name,
                game=game,
                program=program,
                limits=self._limits,
                stderr_bytes=bot.stderr.keeps,
            )
        )
        try:
            await asyncio.shield(bot.started)
        except BaseException:
            self._link.tell(messages.StopBot(bot.seat))
            raise
        if bot.ended.done():
            raise HostLost(LOST.format(host=self.host))
        return bot

    async def stop(self, name: str) -> None:
        """End a bot without a report of its end; ignored if there is none of that name."""
        for bot in [bot for bot in self._bots.values() if bot.name == name]:
            bot._is_muted = True
            self._link.tell(messages.StopBot(bot.seat))
            await asyncio.shield(bot.ended)

    def tail(self, name: str) -> str:
        """Return the end of a bot's stderr; empty once the bot has ended."""
        return next((bot.stderr.tail for bot in self._bots.values() if bot.name == name), "")

    # --- what comes over the link ---

    def piece(self, frame: bytes) -> None:
        """Take a piece; ignored if its bot is gone. Raises `struct.error` if it is no piece."""
        reading, data = read_output(frame)
        if (bot := self._bots.get(reading.seat)) is not None:
            bot.read(reading, data)

    def message(self, frame: bytes) -> None:
        """Take a message; raises `msgspec.DecodeError` if the frame is none."""
        message = messages.from_host(frame)
        if isinstance(message, messages.WantedPart):
            self._tasks.start(self._send_part(message))
        elif (bot := self._bots.get(message.seat)) is not None:
            self._heard(bot, message)

    def lost(self) -> None:
        """Report all bots of a lost link as lost: the host ends them, and nobody is to blame."""
        self._is_lost = True
        self._tasks.cancel()
        bots, self._bots = tuple(self._bots.values()), {}
        for bot in bots:
            if self._directory is not None:
                self._directory.was_lost(bot.name)
            if bot.started.done():
                self._on_lost(bot.name, LOST.format(host=self.host))
            bot.is_gone()

    def _heard(self, bot: RemoteBot, message: messages.AboutBot) -> None:
        if isinstance(message, messages.BotStarted):
            bot.runs(message, self._loop.time())
        elif isinstance(message, messages.StartRefused):
            del self._bots[bot.seat]
            bot.ended.set_result(None)
            bot.started.set_exception(HostLost(f"the host {self.host}: {message.why}"))
        elif isinstance(message, messages.BotStderr):
            bot.stderr.add(message.data)
        elif isinstance(message, messages.WholeBotOutput):
            bot.output_ended()
        elif isinstance(message, messages.RetireBot):
            self._on_retire(bot.name)
        else:
            del self._bots[bot.seat]
            if message.finding is not None and not bot._is_muted:
                self._on_finding(bot.name, message.finding)
            bot.is_gone()

    async def _send_part(self, wanted: messages.WantedPart) -> None:
        data, why = b"", ""
        try:
            data = await self._part(wanted.key, wanted.offset)
        except ArenaError as error:
            why = str(error)
        self._link.tell(messages.ProgramPart(wanted.key, wanted.offset, data, why))
