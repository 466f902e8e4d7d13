"""The client: it connects strategies to an arena, plays all their matches over one connection, and comes back when it is lost.

A frame in, its questions answered one after another, a frame out: like the arena, the client does all that a frame asks for in one
synchronous pass. Every match has a strategy instance of its own. The connection may be lost at any time: the client then
connects again, with longer and longer pauses, and goes on where it was; its strategies keep their memory.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidURI, WebSocketException
from websockets.uri import parse_uri

from protocol.codec import Encoding, decode_from_arena, encode, join
from protocol.errors import ArenaError, Unreachable, UsageError, in_words, one_line
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_DONE,
    CLOSE_REPLACED,
    VERSION,
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Goodbye,
    Hello,
    Match,
    Over,
    Ready,
    Refused,
    Welcome,
)
from protocol.session import Session
from protocol.strategy import Strategy
from protocol.version import __version__

__all__ = ["Client", "StrategyFailed"]

_REASON_BYTES = 120  # RFC 6455 has room for 123
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 10.0
_OPEN_TIMEOUT_S = 10.0
_HOLD_S = 0.02
"""Answers wait for those that come after them so long, and not for all of a slow strategy's: its time is measured to their arrival."""


class StrategyFailed(ArenaError):
    """A strategy raised; the cause has its traceback."""


@contextmanager
def _blaming(doing: str) -> Iterator[None]:
    """Whatever is raised in here is the strategy's fault."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failure(doing, error) from error


def _failure(doing: str, error: BaseException) -> StrategyFailed:
    return StrategyFailed(f"the strategy raised at {doing}: {in_words(error)}")


class _Seat:
    """A match that the client plays: its strategy and its latest answer, in case the arena did not get it."""

    __slots__ = ("answer", "match", "nonce", "strategy")

    def __init__(self, match: Match, strategy: Strategy) -> None:
        self.match = match
        self.strategy = strategy
        self.nonce = secrets.token_hex(16)
        self.answer: Answer | None = None


class Client:
    """Plays for one bot.

    Args:
        url: the arena's address, `ws://host:port`.
        name: what the bot is called there.
        strategies: for each game that it plays, what makes a strategy for one match.
        token: what the instructor gave out, if the arena asks for one.
        tables: how many matches to play at once.
        patience_s: how long to try to get a lost connection back.
        encoding: JSON in text frames or msgpack in binary ones.
        batch: whether frames may hold several messages.
        on_event: told of what happens, a line for people each time.
        on_over: told of every match that is over.
    """

    def __init__(
        self,
        url: str,
        name: str,
        strategies: Mapping[str, Callable[[], Strategy]],
        *,
        token: str | None = None,
        tables: int = 1,
        encoding: Encoding = Encoding.JSON,
        batch: bool = True,
        patience_s: float = 3600.0,
        on_event: Callable[[str], None] = lambda line: None,
        on_over: Callable[[Match, Over], None] = lambda match, over: None,
    ) -> None:
        self._url = url
        self._name = name
        self._strategies = strategies
        self._token = token
        self._tables = tables
        self._encoding = encoding
        self._batch = batch
        self._patience_s = patience_s
        self._on_event = on_event
        self._on_over = on_over
        self._session = Session()
        self._secret: str | None = None
        self._seats: dict[str, _Seat] = {}
        self._lost_at: float | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._outbox: list[bytes] = []
        self._filled = asyncio.Event()
        self._filled_at = 0.0

    async def run(self) -> None:
        """Play until the arena closes; cancelling says goodbye first.

        Raises:
            Unreachable: nothing answers at the address, at the first attempt or for as long as patience lasts.
            UsageError: the address is none, or the arena does not take this bot; the text says why.
            StrategyFailed: a strategy raised.
        """
        _check_address(self._url)
        _keep_memory_mapped()
        known = False
        while True:
            try:
                async with connect(
                    self._url,
                    compression=None,  # frames are small: it costs more than it saves
                    max_size=None,  # the arena is trusted with our memory
                    open_timeout=_OPEN_TIMEOUT_S,
                ) as websocket:
                    known = True
                    if await self._talk(websocket):
                        return
                why = "the connection was lost"
            except (OSError, WebSocketException) as error:
                if not known:
                    text = str(error) or type(error).__name__
                    raise Unreachable(
                        f"no arena answers at {self._url}: {text}"
                    ) from None
                why = "the arena does not answer"
            self._session.disconnected()
            await self._pause(why)

    async def _pause(self, why: str) -> None:
        """Wait before the next attempt, longer every time until a `welcome` comes."""
        now = asyncio.get_running_loop().time()
        if self._lost_at is None:
            self._lost_at = now
        if now - self._lost_at >= self._patience_s:
            raise Unreachable(f"no arena answers at {self._url} any more")
        self._on_event(f"{why}; next attempt in {self._pause_s:.1f} s")
        spread = random.uniform(0.8, 1.2)  # a class does not come back in one moment
        await asyncio.sleep(self._pause_s * spread)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)

    async def _talk(self, websocket: ClientConnection) -> bool:
        """One connection from `hello` on; True if there is no reason to connect again."""
        self._outbox = []
        self._say(self._hello())
        writer = asyncio.create_task(self._write(websocket))
        try:
            while True:
                await self._frame(await websocket.recv(decode=False))
        except ConnectionClosed:
            pass  # `close_code` below says what there is to say
        except asyncio.CancelledError:
            writer.cancel()
            await self._leave(websocket)
            raise
        except StrategyFailed as error:
            reason = str(error).encode()[:_REASON_BYTES].decode(errors="ignore")
            await websocket.close(CLOSE_CRASHED, reason)
            raise
        finally:
            writer.cancel()
        code = websocket.close_code
        if code == CLOSE_DONE:
            self._on_event("the arena has closed")
        elif code == CLOSE_REPLACED:
            self._on_event("the session goes on over another connection")
        return code in (CLOSE_DONE, CLOSE_REPLACED)

    async def _leave(self, websocket: ClientConnection) -> None:
        try:
            goodbye = encode(Goodbye(), self._encoding)
            await websocket.send(goodbye, text=self._encoding is Encoding.JSON)
            await websocket.close()
        except ConnectionClosed:
            pass  # it is gone already, which is what we want

    def _hello(self) -> Hello:
        return Hello(
            protocol=VERSION,
            name=self._name,
            games=tuple(self._strategies),
            token=self._token,
            tables=self._tables,
            batch=self._batch,
            resume=self._secret,
            client=f"card-arena {__version__}",
        )

    async def _write(self, websocket: ClientConnection) -> None:
        """Send what gathers in the outbox.

        A task of its own: it gets its turn when all frames that have come in are answered, so that they share a frame.
        """
        is_text = self._encoding is Encoding.JSON
        with suppress(ConnectionClosed):  # the reader sees that, too
            while True:
                await self._filled.wait()
                self._filled.clear()
                frames, self._outbox = self._outbox, []
                if self._batch and len(frames) > 1:
                    frames = [join(frames, self._encoding)]
                for frame in frames:
                    await websocket.send(frame, text=is_text)

    def _say(self, message: BotMessage) -> None:
        """Put a message into the outbox."""
        self._session.note(message)
        try:
            self._outbox.append(encode(message, self._encoding))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise StrategyFailed(f"its answer cannot be sent: {error}") from error
        if not self._filled.is_set():
            self._filled.set()
            self._filled_at = time.monotonic()

    async def _frame(self, frame: bytes) -> None:
        """Do all that a frame asks for; the arena writes frames as we do."""
        for message in decode_from_arena(frame, self._encoding, self._game_of):
            if self._session.note(message):
                reply = self._take(message)
                if reply is not None:
                    self._say(reply)
                    if time.monotonic() - self._filled_at > _HOLD_S:
                        await asyncio.sleep(0)  # the writer's turn

    def _game_of(self, match: str) -> str:
        return self._seats[match].match.game

    def _take(self, message: ArenaMessage) -> BotMessage | None:
        match message:
            case Ask():
                return self._decide(self._seats[message.match], message)
            case Match():
                return self._sit(message)
            case Over():
                self._over(self._seats.pop(message.match, None), message)
            case Welcome():
                back = "back" if self._secret else "connected"
                self._secret = message.session
                self._lost_at, self._pause_s = None, _FIRST_PAUSE_S
                self._on_event(f"{back} as {message.bot} at {self._url}")
            case Refused():
                self._refused(message)
        return None

    def _sit(self, invitation: Match) -> BotMessage | None:
        """Take a chair; after a reconnect the invitation comes again."""
        seat = self._seats.get(invitation.match)
        if seat is None:
            with _blaming("reset"):
                strategy = self._strategies[invitation.game]()
                strategy.reset()
            seat = self._seats[invitation.match] = _Seat(invitation, strategy)
        return Ready(invitation.match, seat.nonce)

    def _decide(self, seat: _Seat, ask: Ask) -> Answer:
        """Hear the news, then decide; a question that comes again gets the same answer."""
        if seat.answer is not None and seat.answer.ask == ask.ask:
            return seat.answer
        strategy = seat.strategy
        try:
            for news in ask.news:
                strategy.hear(news)
            value: Any = strategy.decide(ask.question)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _failure(ask.question.kind, error) from error
        seat.answer = Answer(ask.match, ask.ask, value)
        return seat.answer

    def _over(self, seat: _Seat | None, over: Over) -> None:
        """Hear the last news of a match."""
        if seat is None:
            return  # its invitation was lost with a connection
        with _blaming("the last news"):
            for news in over.news:
                seat.strategy.hear(news)
        self._on_over(seat.match, over)

    def _refused(self, refused: Refused) -> None:
        if self._secret is None or refused.match is None:
            if refused.code == "session":
                self._secret, self._seats, self._session = None, {}, Session()
                return
            raise UsageError(f"the arena refuses this bot: {refused.text}")
        self._on_event(f"refused: {refused.text}")


def _check_address(url: str) -> None:
    try:
        parse_uri(url)
    except (InvalidURI, ValueError):
        raise UsageError(
            f"expected an address such as ws://127.0.0.1:7700, got {one_line(url)!r}"
        ) from None


def _keep_memory_mapped() -> None:
    """Raise malloc's threshold for mapping memory: asyncio else maps and unmaps 256 KiB at every receive (design §4)."""
    block = bytearray(1 << 20)
    del block
