"""The client: it connects strategies to an arena, plays all their matches over one connection, and comes back when it is lost.

A frame in, its questions answered one after another, a frame out: like the arena, the client does all that a frame asks for in one
synchronous pass. Every match has a strategy instance of its own (bots/seat.py). The connection may be lost at any time: the client
then connects again, with longer and longer pauses, and goes on where it was; its strategies keep their memory.

With a session file (bots/session_file.py) that outlives the process, too: the next one resumes the session and asks for all that was
asked and answered before, and brings new strategies through that. A reconnect does the same while any of them is not complete.

While a strategy thinks, no ping is answered: the arena measures the link when it has asked nothing.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from bots.frames import join, read_frame, write_message
from bots.keeper import Keeper
from bots.reach import Link, NotAdmitted, begins, check_address
from bots.seat import StrategyFailed, StrategySeat
from protocol.codec import Encoding
from protocol.errors import one_line
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_DONE,
    VERSION,
    ArenaMessage,
    Ask,
    BotMessage,
    Goodbye,
    Hello,
    Match,
    Over,
    Past,
    Ready,
    Refused,
    Welcome,
)
from protocol.session import Session, State
from protocol.strategy import Strategy
from protocol.version import __version__
from protocol.vocabulary import shorten

__all__ = ["Client", "StrategyFailed"]

_REASON_BYTES = 120  # RFC 6455 has room for 123
_HOLD_S = 0.02
"""Answers wait for those that come after them so long, and not for all of a slow strategy's: its time is measured to their arrival."""
_BREATH_S = 0.005
"""So often the loop has its turn while strategies are brought back: there may be thousands of questions, and pings among them."""


class Client:
    """Plays for one bot.

    Args:
        url: the arena's address, `ws://host:port`.
        name: what the bot is called there.
        strategies: for each game that it plays, what makes a strategy for one match.
        token: what the instructor gave out, if the arena asks for one.
        tables: how many matches to play at once.
        wait_s: how long to wait for an arena that is not up yet.
        patience_s: how long to try to get a lost connection back.
        encoding: JSON in text frames or msgpack in binary ones.
        batch: whether frames may hold several messages.
        seed: makes what plays by chance repeatable: the n-th strategy of a session that has a method `seed` gets "<seed>:n".
        session_file: where to keep the session, to go on with it after a crash. Every strategy that has a method `seed` then
            gets one, which is kept, so that it decides as it did before.
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
        seed: str | None = None,
        session_file: Path | None = None,
        wait_s: float = 60.0,
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
        self._on_event = on_event
        self._on_over = on_over
        self._session = Session()
        self._keeper = Keeper(url, name, seed=seed, path=session_file, on_event=on_event)
        self._link = Link(url, wait_s=wait_s, patience_s=patience_s, on_event=on_event)
        self._is_retold = self._is_practice = False
        self._seats: dict[str, StrategySeat] = {}
        self._random = random.Random()
        self._outbox: list[bytes] = []
        self._filled = asyncio.Event()
        self._filled_at = self._breathed_at = 0.0

    async def run(self) -> None:
        """Play until the arena closes; cancelling says goodbye first.

        Raises:
            Unreachable: nothing answers at the address for as long as it waits or patience lasts, or what answers is no arena.
            UsageError: the address is none, or the arena does not take this bot (NotAdmitted); the text says why.
            StrategyFailed: a strategy raised.
        """
        check_address(self._url)  # before a session file is made
        _keep_memory_mapped()
        self._keeper.open()
        try:
            await self._link.keep(self._talk, self._disconnected)
        finally:
            self._keeper.close()

    async def _talk(self, websocket: ClientConnection) -> bool:
        """One connection from `hello` on; True if there is no reason to connect again."""
        self._outbox = []
        self._is_retold = self._keeper.misses(self._seats)
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
            self._keeper.drop()
            raise
        finally:
            writer.cancel()
        is_over = self._link.is_over(websocket)
        if websocket.close_code == CLOSE_DONE:
            self._keeper.drop()
        return is_over

    async def _leave(self, websocket: ClientConnection) -> None:
        try:
            goodbye = write_message(Goodbye(), self._encoding)
            await websocket.send(goodbye, text=self._encoding is Encoding.JSON)
            self._keeper.drop()
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
            resume=self._keeper.secret,
            from_=0 if self._is_retold else None,
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
                self._keeper.save()  # before the arena can count on what we say
                frames, self._outbox = self._outbox, []
                if self._batch and len(frames) > 1:
                    frames = [join(frames, self._encoding)]
                for frame in frames:
                    await websocket.send(frame, text=is_text)

    def _say(self, message: BotMessage) -> None:
        """Put a message into the outbox."""
        self._session.note(message)
        try:
            self._outbox.append(write_message(message, self._encoding))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise StrategyFailed(f"its answer cannot be sent: {error}") from error
        if not self._filled.is_set():
            self._filled.set()
            self._filled_at = time.monotonic()

    async def _frame(self, frame: bytes) -> None:
        """Do all that a frame asks for; the arena writes frames as we do."""
        for message in read_frame(frame, self._encoding, self._game_of):
            if self._session.note(message):
                reply = self._take(message)
                if reply is not None:
                    self._say(reply)
                    if time.monotonic() - self._filled_at > _HOLD_S:
                        await asyncio.sleep(0)  # the writer's turn
                elif type(message) is Past:
                    await self._breathe()
        self._keeper.save()

    async def _breathe(self) -> None:
        """Let the loop have its turn if it has not had one for a while."""
        if time.monotonic() - self._breathed_at > _BREATH_S:
            await asyncio.sleep(0)
            self._breathed_at = time.monotonic()

    def _game_of(self, match: str) -> str:
        return self._seats[match].match.game

    def _take(self, message: ArenaMessage) -> BotMessage | None:
        match message:
            case Ask():
                seat = self._seats[message.match]
                if seat.recalled and not seat.is_whole:
                    self._on_event(_brought_back(seat))
                return seat.decide(message)
            case Past():
                self._seats[message.match].recall(message)
            case Match():
                return self._sit(message)
            case Over():
                self._over(message)
            case Welcome():
                self._welcomed(message)
            case Refused():
                return self._refused(message)
        return None

    def _welcomed(self, welcome: Welcome) -> None:
        back = "back" if self._keeper.secret else "connected"
        self._keeper.welcome(welcome.session)
        self._link.welcomed()
        self._is_practice = welcome.practice
        rehearsal = ", for practice" if welcome.practice else ""
        self._on_event(f"{back} as {one_line(welcome.bot)} at {self._url}{rehearsal}")

    def _sit(self, invitation: Match) -> BotMessage | None:
        """Take a chair; after a reconnect the invitation comes again."""
        seat = self._seats.get(invitation.match)
        if seat is None:
            seat = self._seats[invitation.match] = StrategySeat(
                invitation,
                self._strategies[invitation.game],
                seed=self._keeper.seed_of(invitation.match),
                is_whole=not self._is_retold,
            )
            if invitation.page is not None:
                self._on_event(begins(self._url, invitation))
        return Ready(invitation.match, seat.nonce)

    def _over(self, over: Over) -> None:
        """Hear the last news of a match; its invitation may have been lost with a connection, or with a process."""
        seat = self._seats.pop(over.match, None)
        was_ours = self._keeper.over(over.match)
        if seat is not None:
            seat.end(over.news)
            self._on_over(seat.match, over)
        elif was_ours:
            scores = " ".join(f"{score:+}" for score in over.scores)
            self._on_event(f"match {over.match} was over meanwhile · {scores}")

    def _refused(self, refused: Refused) -> BotMessage | None:
        goes_on = refused.match is not None or self._is_practice
        if goes_on and self._session.state is State.OPEN:
            seat = self._seats.get(refused.match or "")
            answer = None if seat is None else seat.instead(refused, self._random)
            told = "" if answer is None else f"; answered {shorten(answer.value)}"
            self._on_event(f"refused: {refused.text}{told}")
            return answer
        if refused.code != "session":
            raise NotAdmitted(refused.code, refused.text, self._name)
        self._on_event("the arena has forgotten the session")
        self._keeper.forget()
        self._seats, self._session = {}, Session()
        return None

    def _disconnected(self) -> None:
        """Strategies that may have missed something are made anew after the next `welcome`."""
        self._session.disconnected()
        self._seats = {match: seat for match, seat in self._seats.items() if seat.is_whole}


def _brought_back(seat: StrategySeat) -> str:
    """One line for a strategy that was rebuilt and is asked something new."""
    strayed = f", {seat.strayed} answered otherwise this time" if seat.strayed else ""
    match = seat.match
    return f"{match.game} match {match.match} goes on after {seat.recalled} questions{strayed}"


def _keep_memory_mapped() -> None:
    """Raise malloc's threshold for mapping memory: asyncio else maps and unmaps 256 KiB at every receive (design §4)."""
    block = bytearray(1 << 20)
    del block
