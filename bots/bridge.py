"""Connects a program that speaks in lines to an arena: `arena connect 'stdio: ./mybot'`.

The bridge passes messages on unchanged, each as a line to the program and as a frame to the arena.
It does not judge them. It completes the program's `hello`, waits for the arena, reconnects with
`resume`, and then repeats the program's messages. The program notices none of this: it does not see
the arena's repetitions, and an answer given meanwhile is sent when the arena repeats the question.

No data accumulates. Each direction is a task that waits until its output is read. Only the last
`ready` and `answer` of every match are stored; other messages are dropped while there is no
connection.
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
from bots.reach import (
    FrameConnection,
    Link,
    NotAdmitted,
    begins,
    check_address,
    close_reason,
    stands,
)
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.errors import Malformed, ProtocolError, UsageError, one_line
from protocol.messages import (
    CLOSE_CRASHED,
    ArenaMessage,
    FinalStanding,
    Goodbye,
    Hello,
    Match,
    Over,
    Refused,
    Welcome,
)
from protocol.version import __version__

__all__ = ["Bridge"]

_LEAVE_S = 5.0  # for the arena to answer a goodbye or a close
_QUIET_S = 5.0  # a slow JVM has sent it by then
_QUIET = (
    f"nothing has come from the program for {_QUIET_S:.0f} s; expected `hello` as its first line: "
    "does it flush its output?"
)
_REMEMBERED = 8192  # matches; twice the most tables of a bot
_TURN = 64  # lines after which the event loop runs, even if the program floods


class _MessageHead(msgspec.Struct, frozen=True, gc=False):
    """The fields that identify a message."""

    type: str = ""
    match: str | None = None
    ask: str | None = None
    finish: bool = False


@dataclass(slots=True)
class _BridgedMatch:
    """A match that the program is playing.

    Attributes:
        match: the invitation; None if it cannot be read here.
        ready: the program's reply to the invitation.
        ask: the id of the latest question.
        answer: the program's answer to it, unless it was refused.
        is_invited: whether the invitation has come over the current connection.
        is_asked: whether the latest question has come over it.
    """

    match: Match | None
    ready: bytes | None = None
    ask: str = ""
    answer: bytes | None = None
    is_invited: bool = True
    is_asked: bool = False


class Bridge:
    """Connects one program; the arguments that are not named here are those of `Client`.

    Args:
        words: the program's command line.
        name: its name in the arena, instead of that in its `hello`; the program gets it as
            ARENA_NAME.
        token: the token, instead of that in its `hello`.
        tables: how many matches it plays at once, instead of the number in its `hello`.
        batch: whether frames of the arena may hold several messages. The program gets each in its
            own line.
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
        self._websocket: FrameConnection | None = None  # set after `welcome`
        self._welcomed = asyncio.Event()
        self._is_practice = self._is_leaving = self._owes_goodbye = self._is_in_frame = False
        self._matches: dict[str, _BridgedMatch] = {}
        self._ended: set[str] = set()  # competitions whose end the program was told
        self._session = 0  # how many sessions the arena has forgotten
        self._sessions: OrderedDict[str, int] = OrderedDict()  # by match
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run until the arena closes. If the task is cancelled, say goodbye first.

        The program has ended when this returns or raises.

        Raises:
            Unreachable: nothing answers within `wait_s` or `patience_s`, or it is not an arena.
            UsageError: the address is not valid, the program cannot be started, or the arena
                refuses it (NotAdmitted).
            ProgramFailed: the program has ended by itself, or its output is not valid.
        """
        self._running = asyncio.current_task()
        check_address(self._url)
        named = {} if self._name is None else {"ARENA_NAME": self._name}
        await self._program.start(named)
        try:
            await self._carry()
        finally:
            status = await self._program.end()
        if status:
            self._on_event(str(self._program.failure(status)))

    def finish(self) -> None:
        """Finish the running matches, take no others, and let `run` return (J10).

        `run` is cancelled instead if the arena cannot be reached.
        """
        assert self._running is not None, "only called while it runs"
        self._link.leave(self._websocket, len(self._matches), self._running)
        self._say_goodbye()

    @property
    def is_finishing(self) -> bool:
        """Whether `finish` has been called."""
        return self._link.is_leaving

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
                    task.exception()  # marks it as seen; the first was raised above

    # --- from the program to the arena ---

    async def _greeting(self) -> Hello:
        """Read the program's first line, a `hello`, and add the options of the command line.

        Raises:
            ProgramFailed: the line is not a `hello`.
        """
        quiet = asyncio.get_running_loop().call_later(_QUIET_S, self._on_event, _QUIET)
        try:
            line = await self._program.read()
        finally:
            quiet.cancel()
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
        lines = 0
        while (line := await self._program.read()) is not None:
            await self._welcomed.wait()  # only `hello` may be sent before it
            for part in _parts(line):
                if self._is_to_be_said(part):
                    await self._send(part)
            lines += 1
            if lines % _TURN == 0:
                await asyncio.sleep(0)

    def _is_to_be_said(self, part: bytes) -> bool:
        """Note a message of the program; return whether to send it now.

        False if it is not for the arena, or must wait until the arena asks again.
        """
        peek = _peek(part)
        match = peek.match or ""
        bridged = self._matches.get(match)
        if peek.type == "goodbye" and peek.finish:
            self._link.is_leaving = True
            self._say_goodbye()
            return False
        if peek.type == "goodbye":
            self._is_leaving = True
            self._owes_goodbye = self._websocket is None  # without a connection it is sent later
        elif peek.type not in ("ready", "answer"):
            return True  # the arena judges it
        elif bridged is None:  # drop it if the match belongs to a forgotten session
            return self._sessions.get(match, self._session) == self._session
        elif peek.type == "ready":
            bridged.ready = bridged.ready or part
            return bridged.is_invited
        elif peek.ask == bridged.ask:
            bridged.answer = part
            return bridged.is_asked
        return True

    def _say_goodbye(self) -> None:
        """Send the goodbye that is due, if any; not in the middle of a received frame."""
        if self._websocket is None or self._is_in_frame:
            return
        if goodbye := self._link.goodbye(len(self._matches)):
            self._websocket.say(encode(goodbye, Encoding.JSON), text=True)

    async def _send(self, message: bytes) -> None:
        if self._websocket is not None:
            with contextlib.suppress(ConnectionClosed):  # the reader notices it as well
                await self._websocket.send(message, text=True)

    # --- from the arena to the program ---

    async def _talk(self, websocket: FrameConnection) -> bool:
        """Serve one connection, from `hello` on; return whether the session is over."""
        assert self._hello is not None, "the program has said it"
        hello = msgspec.structs.replace(self._hello, resume=self._secret)
        try:
            await websocket.send(encode(hello, Encoding.JSON), text=True)
            while True:
                parts = _parts(await websocket.recv(decode=False))
                self._is_in_frame = True
                for part in parts:
                    await self._hear(websocket, part)
                self._is_in_frame = False
                self._say_goodbye()
                if self._owes_goodbye and self._websocket is not None:
                    await websocket.send(encode(Goodbye(), Encoding.JSON), text=True)
                    return True
        except ConnectionClosed:
            pass  # `is_over` reads the close code
        finally:
            self._websocket = None
        is_leaving = self._is_leaving and not self._owes_goodbye
        is_done = self._link.is_leaving and not self._matches
        return is_leaving or self._link.is_over(websocket) or is_done

    async def _hear(self, websocket: FrameConnection, part: bytes) -> None:
        """Pass a message on, or answer a repeated one with the program's earlier reply."""
        peek = _peek(part)
        bridged = self._matches.get(peek.match or "")
        again: bytes | None = None
        is_new = True
        match peek.type:
            case "welcome":
                is_new = not self._welcomed.is_set()
                self._enter(websocket, self._read(part))
            case "match":
                is_new = bridged is None
                again = self._invited(peek.match or "", part)
            case "ask" if bridged is not None:
                is_new = bridged.ask != peek.ask
                again = None if is_new else bridged.answer
                if is_new:
                    bridged.ask, bridged.answer = peek.ask or "", None
                bridged.is_asked = True
            case "over":
                is_new = self._over(peek.match or "", part)
            case "refused":
                if bridged is not None and bridged.ask == peek.ask:
                    bridged.answer = None  # the program must answer again
                is_new = self._refused(self._read(part))
        if is_new:
            await self._program.write(part)
        if again is not None:
            await self._send(again)

    def _enter(self, websocket: FrameConnection, welcome: ArenaMessage | None) -> None:
        if not isinstance(welcome, Welcome):
            raise Malformed("expected welcome with a session")
        is_back = self._secret is not None
        self._secret, self._is_practice = welcome.session, welcome.practice
        self._websocket = websocket
        self._welcomed.set()
        self._link.welcomed(welcome, is_back=is_back)

    def _invited(self, match: str, part: bytes) -> bytes | None:
        """Note an invitation; if it is repeated, return the program's `ready`."""
        bridged = self._matches.get(match)
        if bridged is not None:
            bridged.is_invited = True
            return bridged.ready
        invitation = self._read(part)
        readable = invitation if isinstance(invitation, Match) else None
        self._matches[match] = _BridgedMatch(readable)
        self._sessions[match] = self._session
        if len(self._sessions) > _REMEMBERED:
            self._sessions.popitem(last=False)
        if readable is not None and readable.page is not None:
            self._on_event(begins(self._url, readable))
        return None

    def _over(self, match: str, part: bytes) -> bool:
        """Whether to pass an `over` on to the program: not for a match it has never seen."""
        over = self._read(part)
        if isinstance(over, Over) and isinstance(over.standing, FinalStanding):
            is_new = match not in self._ended  # the arena repeats it after every `resume`
            self._ended.add(match)
            if is_new:
                self._on_event(stands(self._url, over.standing))
            return is_new
        bridged = self._matches.pop(match, None)
        if bridged is not None and bridged.match is not None and isinstance(over, Over):
            self._on_over(bridged.match, over)
        return bridged is not None

    def _refused(self, refused: ArenaMessage | None) -> bool:
        """Whether to pass a `refused` on to the program.

        Raises:
            NotAdmitted: the arena refuses the bot.
        """
        if not isinstance(refused, Refused):
            raise Malformed("expected refused with code and text")
        goes_on = refused.match is not None or self._is_practice
        if goes_on and self._websocket is not None:
            self._on_event(f"refused: {one_line(refused.text)}")
            return True
        if refused.code != "session":
            assert self._hello is not None, "it was said"
            raise NotAdmitted(refused.code, refused.text, self._hello.name)
        # The program goes on with new matches; messages about the old ones are dropped.
        self._on_event("the arena has forgotten the session")
        self._secret = None
        self._owes_goodbye = False  # there is no session left to leave
        self._session += 1
        self._matches = {}
        return False

    def _read(self, part: bytes) -> ArenaMessage | None:
        """Decode a message; None if it is unknown here, such as one of a later release."""

        def game_of(match: str) -> str:
            invitation = self._matches[match].match
            return "" if invitation is None else invitation.game

        try:
            [message] = decode_from_arena(part, Encoding.JSON, game_of)
        except Malformed:
            return None
        return message

    # --- the end ---

    def _lost(self) -> None:
        for bridged in self._matches.values():
            bridged.is_invited = bridged.is_asked = False

    async def _crashed(self, outward: asyncio.Task[None]) -> None:
        """Tell the arena that the program has failed, and raise the error."""
        self._is_leaving = True
        error = outward.exception()
        if error is None:
            error = self._program.failure(await self._program.end())
        if self._websocket is not None:
            await self._close(self._websocket, CLOSE_CRASHED, close_reason(error))
        raise error

    async def _leave(self) -> None:
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
    """Split a frame or line into unparsed messages; an unreadable one counts as one message."""
    if frame.lstrip()[:1] == b"[":
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            return [bytes(part) for part in _decode_parts(frame)]
    return [frame]


def _peek(part: bytes) -> _MessageHead:
    try:
        return _decode_peek(part)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _MessageHead()
