"""A program that speaks lines, carried to an arena over a WebSocket: `arena connect 'stdio: ./mybot' --url wss://…`.

Messages go through as they are, each a line to the program and a frame to the arena; whether they are right is for the other end
to judge. A connection is all that the bridge adds: it completes the program's `hello`, waits for the arena, comes back with `resume` when the
connection is lost, and then says what the program has said before. The program notices nothing of that: what the arena repeats it has
heard already, and what it says meanwhile is sent when the arena repeats the question.

Nothing piles up here. Each direction is a task of its own that waits for whoever reads, and of what was said only the last
`ready` and `answer` of every chair are kept. While there is no connection nothing else can be said, so the rest is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from bots.line_program import LineProgram, ProgramFailed
from bots.reach import Link, NotAdmitted, begins, check_address
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.errors import Malformed, ProtocolError, UsageError, one_line
from protocol.messages import (
    CLOSE_CRASHED,
    ArenaMessage,
    Goodbye,
    Hello,
    Match,
    Over,
    Refused,
    Welcome,
)
from protocol.version import __version__

__all__ = ["Bridge"]

_REASON_BYTES = 120  # RFC 6455 has room for 123
_LEAVE_S = 5.0  # for the arena to answer a goodbye, or a close
_REMEMBERED = 8192  # matches: twice the most tables that a bot can have
_TURN = 64  # lines: so often somebody else has a turn while the program floods


class _MessageHead(msgspec.Struct, frozen=True, gc=False):
    """As much of a message as it takes to know what it is about."""

    type: str = ""
    match: str | None = None
    ask: str | None = None


@dataclass(slots=True)
class _Chair:
    """A match that the program plays.

    Attributes:
        match: its invitation; None if it cannot be read here.
        ready: what the program has said to the invitation.
        ask: the id of the latest question.
        answer: what the program has said to that, if it has and was not refused.
        is_invited: whether the invitation has come over this connection.
        is_asked: whether that question has.
    """

    match: Match | None
    ready: bytes | None = None
    ask: str = ""
    answer: bytes | None = None
    is_invited: bool = True
    is_asked: bool = False


class Bridge:
    """Plays for one program.

    Args:
        url: the arena's address, `ws://host:port`.
        words: the program's command line.
        name: what it is called there, if not as its `hello` says; the program finds it as ARENA_NAME.
        token: what the instructor gave out, if the program does not say it.
        tables: how many matches it plays at once, if not as its `hello` says.
        batch: whether frames of the arena may hold several messages; the program gets each in a line of its own.
        wait_s: how long to wait for an arena that is not up yet.
        patience_s: how long to try to get a lost connection back.
        on_event: told of what happens, a line for people each time.
        on_over: told of every match that is over.
    """

    def __init__(
        self,
        url: str,
        words: tuple[str, ...],
        *,
        name: str | None = None,
        token: str | None = None,
        tables: int | None = None,
        batch: bool = True,
        wait_s: float = 60.0,
        patience_s: float = 3600.0,
        on_event: Callable[[str], None] = lambda line: None,
        on_over: Callable[[Match, Over], None] = lambda match, over: None,
    ) -> None:
        self._url = url
        self._program = LineProgram(words)
        self._name = name
        self._token = token
        self._tables = tables
        self._batch = batch
        self._on_event = on_event
        self._on_over = on_over
        self._link = Link(url, wait_s=wait_s, patience_s=patience_s, on_event=on_event)
        self._hello: Hello | None = None
        self._secret: str | None = None
        self._websocket: ClientConnection | None = None  # once it is welcome there
        self._welcomed = asyncio.Event()
        self._is_practice = self._is_leaving = self._owes_goodbye = False
        self._chairs: dict[str, _Chair] = {}
        self._session = 0  # counts those that were forgotten
        self._sessions: OrderedDict[str, int] = OrderedDict()  # by match

    async def run(self) -> None:
        """Carry until the arena closes; cancelling says goodbye first. The program has ended in any case.

        Raises:
            Unreachable: nothing answers at the address for as long as it waits or patience lasts, or what answers is no arena.
            UsageError: the address is none, the program cannot be started, or the arena does not take it (NotAdmitted).
            ProgramFailed: it has ended by itself, or wrote what cannot be carried.
        """
        check_address(self._url)
        named = {} if self._name is None else {"ARENA_NAME": self._name}
        await self._program.start(named)
        try:
            await self._carry()
        finally:
            status = await self._program.end()
        if status:
            self._on_event(str(self._program.failure(status)))

    async def _carry(self) -> None:
        self._hello = await self._greeting()
        outward = asyncio.create_task(self._outward())
        inward = asyncio.create_task(self._link.keep(self._talk, self._lost))
        try:
            await asyncio.wait((outward, inward), return_when="FIRST_COMPLETED")
            if not inward.done() and self._is_leaving:
                timeout = None if self._owes_goodbye else _LEAVE_S
                await asyncio.wait((inward,), timeout=timeout)
            elif not inward.done():
                await self._crashed(outward)
            if inward.done():
                await inward
        except asyncio.CancelledError:
            await self._leave()
            raise
        finally:
            for task in (outward, inward):
                task.cancel()
            await asyncio.wait((outward, inward))
            for task in (outward, inward):
                if not task.cancelled():
                    task.exception()  # was raised above, or the other one's was

    # --- from the program to the arena ---

    async def _greeting(self) -> Hello:
        """The program's first line, completed by what the command line says.

        Raises:
            ProgramFailed: it is no `hello`.
        """
        line = await self._program.read()
        if line is None:
            raise self._program.failure(await self._program.end())
        try:
            [hello] = decode_from_bot(line, Encoding.JSON)
            if not isinstance(hello, Hello):
                raise Malformed(f"got {type(hello).__name__.lower()}")
            return msgspec.structs.replace(
                hello,
                name=self._name or hello.name,
                token=self._token or hello.token,
                tables=self._tables or hello.tables,
                batch=self._batch,
                from_=None,
                client=hello.client or f"card-arena {__version__}, stdio",
            )
        except (ProtocolError, UsageError, ValueError) as error:
            shown = one_line(line.decode(errors="replace"), 80)
            raise ProgramFailed(
                f"expected hello as the program's first line, got {shown!r}: {error}"
            ) from None

    async def _outward(self) -> None:
        """All that the program says, to its last line."""
        lines = 0
        while (line := await self._program.read()) is not None:
            await self._welcomed.wait()  # it has nothing to say before that
            for part in _parts(line):
                if self._is_to_be_said(part):
                    await self._send(part)
            lines += 1
            if lines % _TURN == 0:
                await asyncio.sleep(0)

    def _is_to_be_said(self, part: bytes) -> bool:
        """Take note of what the program says; False if the arena is not to hear it, or not before it has asked again."""
        peek = _peek(part)
        match = peek.match or ""
        chair = self._chairs.get(match)
        if peek.type == "goodbye":
            self._is_leaving = True
            self._owes_goodbye = self._websocket is None  # then it is said later
        elif peek.type not in ("ready", "answer"):
            return True  # the arena says what is wrong with it
        elif chair is None:
            return self._sessions.get(match, self._session) == self._session
        elif peek.type == "ready":
            chair.ready = chair.ready or part
            return chair.is_invited
        elif peek.ask == chair.ask:
            chair.answer = part
            return chair.is_asked
        return True

    async def _send(self, message: bytes) -> None:
        if self._websocket is not None:
            with contextlib.suppress(ConnectionClosed):  # whoever reads sees that, too
                await self._websocket.send(message, text=True)

    # --- from the arena to the program ---

    async def _talk(self, websocket: ClientConnection) -> bool:
        """One connection from `hello` on; True if there is no reason to connect again."""
        assert self._hello is not None, "the program has said it"
        hello = msgspec.structs.replace(self._hello, resume=self._secret)
        try:
            await websocket.send(encode(hello, Encoding.JSON), text=True)
            while True:
                for part in _parts(await websocket.recv(decode=False)):
                    await self._hear(websocket, part)
                if self._owes_goodbye and self._websocket is not None:
                    await websocket.send(encode(Goodbye(), Encoding.JSON), text=True)
                    return True
        except ConnectionClosed:
            pass  # `is_over` says what there is to say
        finally:
            self._websocket = None
        is_leaving = self._is_leaving and not self._owes_goodbye
        return is_leaving or self._link.is_over(websocket)

    async def _hear(self, websocket: ClientConnection, part: bytes) -> None:
        """Pass one message on, unless the program has heard it; then say what the program has said to it."""
        peek = _peek(part)
        chair = self._chairs.get(peek.match or "")
        again: bytes | None = None
        is_new = True
        match peek.type:
            case "welcome":
                is_new = not self._welcomed.is_set()
                self._enter(websocket, self._read(part))
            case "match":
                is_new = chair is None
                again = self._invited(peek.match or "", part)
            case "ask" if chair is not None:
                is_new = chair.ask != peek.ask
                again = None if is_new else chair.answer
                if is_new:
                    chair.ask, chair.answer = peek.ask or "", None
                chair.is_asked = True
            case "over":
                is_new = chair is not None  # else its invitation was lost on the way
                self._over(peek.match or "", part)
            case "refused":
                if chair is not None and chair.ask == peek.ask:
                    chair.answer = None  # it was heard, and is to be another one
                is_new = self._refused(self._read(part))
        if is_new:
            await self._program.write(part)
        if again is not None:
            await self._send(again)

    def _enter(self, websocket: ClientConnection, welcome: ArenaMessage | None) -> None:
        if not isinstance(welcome, Welcome):
            raise Malformed("expected welcome with a session")
        back = "connected" if self._secret is None else "back"
        self._secret, self._is_practice = welcome.session, welcome.practice
        self._link.welcomed()
        self._websocket = websocket
        self._welcomed.set()
        rehearsal = ", for practice" if welcome.practice else ""
        self._on_event(f"{back} as {one_line(welcome.bot)} at {self._url}{rehearsal}")

    def _invited(self, match: str, part: bytes) -> bytes | None:
        """A chair, or the same one again: then what the program has said to it."""
        chair = self._chairs.get(match)
        if chair is not None:
            chair.is_invited = True
            return chair.ready
        invitation = self._read(part)
        readable = invitation if isinstance(invitation, Match) else None
        self._chairs[match] = _Chair(readable)
        self._sessions[match] = self._session
        if len(self._sessions) > _REMEMBERED:
            self._sessions.popitem(last=False)
        if readable is not None and readable.page is not None:
            self._on_event(begins(self._url, readable))
        return None

    def _over(self, match: str, part: bytes) -> None:
        over = self._read(part)
        chair = self._chairs.pop(match, None)
        if chair is not None and chair.match is not None and isinstance(over, Over):
            self._on_over(chair.match, over)

    def _refused(self, refused: ArenaMessage | None) -> bool:
        """Whether it is the program's business; raises NotAdmitted if the arena does not take it."""
        if not isinstance(refused, Refused):
            raise Malformed("expected refused with code and text")
        goes_on = refused.match is not None or self._is_practice
        if goes_on and self._websocket is not None:
            self._on_event(f"refused: {one_line(refused.text)}")
            return True
        if refused.code != "session":
            assert self._hello is not None, "it was said"
            raise NotAdmitted(refused.code, refused.text, self._hello.name)
        # The program goes on with new matches; what it still says of these is for nobody.
        self._on_event("the arena has forgotten the session")
        self._secret = None
        self._owes_goodbye = False  # there is nothing left to leave
        self._session += 1
        self._chairs = {}
        return False

    def _read(self, part: bytes) -> ArenaMessage | None:
        """A message with all its fields; None if it is one of a later release, which the program may know."""

        def game_of(match: str) -> str:
            invitation = self._chairs[match].match
            return "" if invitation is None else invitation.game

        try:
            [message] = decode_from_arena(part, Encoding.JSON, game_of)
        except Malformed:
            return None
        return message

    # --- the end ---

    def _lost(self) -> None:
        for chair in self._chairs.values():
            chair.is_invited = chair.is_asked = False

    async def _crashed(self, outward: asyncio.Task[None]) -> None:
        """Tell the arena that the program has ended, and raise it."""
        self._is_leaving = True
        error = outward.exception()
        if error is None:
            error = self._program.failure(await self._program.end())
        if self._websocket is not None:
            reason = str(error).encode()[:_REASON_BYTES].decode(errors="ignore")
            await self._close(self._websocket, CLOSE_CRASHED, reason)
        raise error

    async def _leave(self) -> None:
        """Say goodbye, if there is anybody to hear it."""
        self._is_leaving = True
        if (websocket := self._websocket) is not None:
            await self._send(encode(Goodbye(), Encoding.JSON))
            await self._close(websocket)

    async def _close(self, websocket: ClientConnection, code: int = 1000, reason: str = "") -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await websocket.close(code, reason)


_decode_peek = msgspec.json.Decoder(_MessageHead).decode
_decode_parts = msgspec.json.Decoder(list[msgspec.Raw]).decode


def _parts(frame: bytes) -> list[bytes]:
    """The messages in a frame or line; what cannot be read is one."""
    if frame.lstrip()[:1] == b"[":
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            return [bytes(part) for part in _decode_parts(frame)]
    return [frame]


def _peek(part: bytes) -> _MessageHead:
    try:
        return _decode_peek(part)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _MessageHead()
