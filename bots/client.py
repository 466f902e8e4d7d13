"""The client: connects strategies to an arena, plays their matches, and reconnects when necessary.

The client answers all questions as soon as they are read from the socket, in one synchronous pass,
and sends the answers in one frame. Slow work is left to a task, which lets the event loop run in
between: the questions to a slow strategy, and replaying past ones. Every match has its own strategy
instance (bots/seat.py). When the connection is lost, the client reconnects, with longer and longer
pauses. Its strategies keep their memory meanwhile.

With a session file (bots/session_file.py) the session survives the process. The next process
resumes it, asks for all past questions and answers, and replays them to new strategies. A
reconnect does the same if the strategy of some match does not know the match from its start.

No ping is answered while a strategy thinks. The arena therefore measures the link at other times.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.frames import DATA_OPCODES, Opcode

from bots.frames import read_frame, write_frame
from bots.keeper import Keeper
from bots.reach import (
    FrameConnection,
    Link,
    NotAdmitted,
    begins,
    check_address,
    close_reason,
    has_closed,
    stands,
    unread,
)
from bots.seat import StrategyFailed, StrategySeat
from protocol.codec import Encoding
from protocol.errors import ArenaError
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_DONE,
    CLOSE_OVERSIZE,
    CLOSE_PROTOCOL,
    CLOSE_REFUSED,
    CLOSE_REPLACED,
    VERSION,
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    FinalStanding,
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

# How long an answer waits for later ones, to share a frame, while the event loop does not run. Not
# longer, because a decision is timed until its answer arrives.
_HOLD_S = 0.02
# How often the event loop runs while past questions are replayed: there may be thousands of them,
# and pings to answer meanwhile.
_BREATH_S = 0.005

_GRACE_S = 30.0  # how long an arena waits for a lost connection by default
_ENDS = (CLOSE_DONE, CLOSE_PROTOCOL, CLOSE_OVERSIZE, CLOSE_REPLACED, CLOSE_REFUSED)

# Before Python 3.12, looking up a member of an enum is too slow for every message.
_OPEN, _LEAVING = State.OPEN, State.LEAVING


class Client:
    """Plays for one bot.

    Args:
        url: the arena's address, `ws://host:port`.
        name: the bot's name there.
        strategies: by game, a function or class that makes a strategy for one match.
        token: the bot's token, if the arena asks for one.
        tables: how many matches to play at once.
        wait_s: how long to wait for an arena that is not up yet.
        patience_s: how long to try to reconnect.
        encoding: JSON in text frames or msgpack in binary ones.
        batch: whether frames may hold several messages.
        seed: makes random strategies repeatable: the n-th strategy of a session that has a method
            `seed` gets "<seed>:n".
        session_file: where to save the session, to go on with it after a crash. Every strategy that
            has a method `seed` then gets a seed, so that it decides again as it did before.
        on_event: called with a line for people whenever something happens.
        on_over: called with every match that is over.
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
        # The game of the last invitation. Frames of other games can be read as well, but not in one
        # step.
        self._likely: str | None = None
        self._seats: dict[str, StrategySeat] = {}
        self._random = random.Random()
        self._websocket: FrameConnection
        self._lost_at: float | None = None  # when another thread first saw the connection closed
        self._outbox: list[BotMessage] = []
        self._left: list[ArenaMessage] | None = None  # the rest of a frame of `_on_read`
        self._is_in_frame = False
        self._flushed_at = 0.0
        self._failure: Exception | None = None  # raised in `_on_read`
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Play until the arena closes. If the task is cancelled, say goodbye first.

        Raises:
            Unreachable: nothing answers within `wait_s` or `patience_s`, or it is not an arena.
            UsageError: the address is not valid, or the arena refuses this bot (NotAdmitted).
            StrategyFailed: a strategy raised an exception.
        """
        self._running = asyncio.current_task()
        check_address(self._url)  # before a session file is made
        _keep_memory_mapped()
        self._keeper.open()
        try:
            await self._link.keep(self._talk, self._disconnected)
        finally:
            self._keeper.close()

    def finish(self) -> None:
        """Finish the running matches, take no others, and let `run` return (J10).

        `run` is cancelled instead if the arena cannot be reached.
        """
        assert self._running is not None, "only called while it runs"
        is_open = self._session.state is _OPEN
        self._link.leave(self._websocket if is_open else None, len(self._seats), self._running)
        if is_open:
            self._flush()

    @property
    def is_finishing(self) -> bool:
        """Whether `finish` has been called."""
        return self._link.is_leaving

    def has_lost_arena(self) -> bool:
        """Whether the arena has ended the session; called by another thread while a strategy runs.

        A lost connection may still be resumed, but not after the grace. Calls `on_over` for the
        matches that the arena has ended meanwhile.
        """
        if not has_closed(self._websocket):
            self._lost_at = None
            return False
        now = time.monotonic()
        self._lost_at = self._lost_at or now
        frames = [*unread(self._websocket)]
        codes = (int.from_bytes(data[:2]) for kind, data in frames if kind == Opcode.CLOSE)
        if not any(code in _ENDS for code in codes) and now - self._lost_at < _GRACE_S:
            return False
        with suppress(ArenaError):
            for kind, data in frames:
                if kind in DATA_OPCODES:
                    self._tell_ends(read_frame(data, self._encoding, self._game_of, self._likely))
        return True

    def _tell_ends(self, messages: Sequence[ArenaMessage]) -> None:
        for message in messages:
            if type(message) is Over and message.match in self._seats:
                self._on_over(self._seats[message.match].match, message)

    async def _talk(self, websocket: FrameConnection) -> bool:
        """Serve one connection, from `hello` on; return whether the session is over."""
        self._websocket, self._failure, self._left = websocket, None, None
        self._is_in_frame = False
        self._is_retold = self._keeper.misses(self._seats)
        hello = self._hello()
        self._session.note(hello)
        self._outbox = [hello]
        try:
            self._flush()
            await self._read(websocket)
        except ConnectionClosed:
            pass  # the close code is read below
        except asyncio.CancelledError:
            await self._leave(websocket)
            raise
        except StrategyFailed as error:
            await websocket.close(CLOSE_CRASHED, close_reason(error))
            self._keeper.drop()
            raise
        is_over = self._link.is_over(websocket) or (self._link.is_leaving and not self._seats)
        if websocket.close_code == CLOSE_DONE:
            self._keeper.drop()
        return is_over

    async def _read(self, websocket: FrameConnection) -> None:
        """Handle all frames that `_on_read` has left, until the connection is closed."""
        websocket.on_read = self._on_read
        try:
            while True:
                frame = await websocket.recv(decode=False)
                if self._failure is not None:
                    raise self._failure
                await self._catch_up(frame)
                websocket.backlog -= 1
        finally:
            websocket.on_read = None

    async def _leave(self, websocket: FrameConnection) -> None:
        try:
            goodbye = write_frame((Goodbye(),), self._encoding)
            await websocket.send(goodbye, text=self._encoding is Encoding.JSON)
            self._keeper.drop()
            await websocket.close()
        except ConnectionClosed:
            pass  # already closed

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

    def _on_read(self, frames: Sequence[bytes]) -> int:
        """Handle frames at once, and return how many; the rest is left to the task `_read`.

        That task takes over if strategies are slow or are replayed past questions, as the event
        loop must run meanwhile. It also raises errors of this method.
        """
        handled = 0
        self._is_in_frame = True
        self._flushed_at = time.monotonic()
        try:
            for frame in frames:
                messages = read_frame(frame, self._encoding, self._game_of, self._likely)
                if self._is_retold and any(type(message) is Past for message in messages):
                    break
                left = iter(messages)
                for message in left:
                    self._hear(message)
                    if time.monotonic() - self._flushed_at > _HOLD_S:
                        self._left = list(left)
                        break
                if self._left is not None:
                    break
                handled += 1
            self._is_in_frame = self._left is not None
            self._flush()
        except Exception as error:
            self._failure = error
            return 0  # so that the task has something to read
        return handled

    async def _catch_up(self, frame: bytes) -> None:
        """Handle a frame, or the rest of it, and let the event loop run now and then."""
        messages, self._left = self._left, None
        self._is_in_frame = True
        if messages is None:
            messages = read_frame(frame, self._encoding, self._game_of, self._likely)
        for message in messages:
            self._hear(message)
            most_s = _BREATH_S if type(message) is Past else _HOLD_S
            if time.monotonic() - self._flushed_at > most_s:
                self._flush()
                await asyncio.sleep(0)
        self._is_in_frame = False
        self._flush()

    def _hear(self, message: ArenaMessage) -> None:
        """Handle a message, and put the reply, if there is one, into the outbox."""
        if self._session.state is _LEAVING:
            return  # the arena sent it before the goodbye arrived
        if type(message) is Ask:
            self._outbox.append(self._decide(message))
        elif self._session.note(message):
            self._reply(self._take(message))

    def _reply(self, reply: BotMessage | None) -> None:
        if reply is not None:
            self._session.note(reply)
            self._outbox.append(reply)

    def _flush(self) -> None:
        """Send the messages in the outbox, in one frame if the arena allows that.

        A goodbye may be added: which matches are on is known only at the end of a received frame.
        """
        if self._session.state is _OPEN and not self._is_in_frame:
            self._reply(self._link.goodbye(len(self._seats)))
        self._keeper.save()  # before the arena relies on these messages
        self._flushed_at = time.monotonic()
        messages, self._outbox = self._outbox, []
        frames = [messages] if self._batch and messages else [[message] for message in messages]
        for frame in frames:
            try:
                data = write_frame(frame, self._encoding)
            except (ValueError, OverflowError, RecursionError) as error:
                raise StrategyFailed(f"the strategy's answer cannot be sent: {error}") from error
            self._websocket.say(data, text=self._encoding is Encoding.JSON)

    def _decide(self, ask: Ask) -> Answer:
        """Answer a question; only repeated or out-of-turn ones need the session's full check."""
        seat = self._seats.get(ask.match)
        is_open = self._session.state is _OPEN
        if seat is None or not is_open or not seat.standing.note_ask(ask.ask):
            self._session.note(ask)
            seat = self._seats[ask.match]
        if seat.recalled and not seat.is_whole:
            self._on_event(_brought_back(seat))
        answer = seat.decide(ask)
        seat.standing.note_answer(answer.ask)
        return answer

    def _game_of(self, match: str) -> str:
        return self._seats[match].match.game

    def _take(self, message: ArenaMessage) -> BotMessage | None:
        match message:
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
        is_back = self._keeper.secret is not None
        self._keeper.welcome(welcome.session)
        self._is_practice = welcome.practice
        self._link.welcomed(welcome, is_back=is_back)

    def _sit(self, invitation: Match) -> BotMessage | None:
        """Take a seat; an invitation repeated after a reconnect keeps its seat."""
        self._likely = invitation.game
        seat = self._seats.get(invitation.match)
        if seat is None:
            seat = self._seats[invitation.match] = StrategySeat(
                invitation,
                self._strategies[invitation.game],
                self._session.standing(invitation.match),
                seed=self._keeper.seed_of(invitation.match),
                is_whole=not self._is_retold,
            )
            if invitation.page is not None:
                self._on_event(begins(self._url, invitation))
        return Ready(invitation.match, seat.nonce)

    def _over(self, over: Over) -> None:
        """Handle the end of a match, whose seat may have been lost with an earlier process, or the
        bot's final standing in a competition.
        """
        if isinstance(over.standing, FinalStanding):
            self._on_event(stands(self._url, over.standing))
            return
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
        if goes_on and self._session.state is _OPEN:
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
        self._session.disconnected()
        # The others may have missed something; they are rebuilt after the next `welcome`.
        self._seats = {match: seat for match, seat in self._seats.items() if seat.is_whole}


def _brought_back(seat: StrategySeat) -> str:
    """Describe a strategy that was rebuilt and now goes on, in one line."""
    strayed = f", {seat.strayed} answered otherwise this time" if seat.strayed else ""
    match = seat.match
    return f"{match.game} match {match.match} goes on after {seat.recalled} questions{strayed}"


def _keep_memory_mapped() -> None:
    """Raise malloc's mmap threshold: otherwise asyncio maps and unmaps 256 KiB at every receive."""
    block = bytearray(1 << 20)
    del block
