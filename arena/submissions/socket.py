"""The WebSockets at `/submit`: who may open one, what may be sent there, and when one is closed.

The first message shows a token of the roster, or an instructor's; without one nothing is said of
anybody. What is asked for is answered in its order, one request at a time (`requests.py`); the
pieces of an upload are taken at once. A peer that does not read, sends too much or sends nonsense
is disconnected, and no match notices.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from websockets.http11 import Request

from arena.referee.transport import Caller, Wire
from arena.server.admission import TOKEN_NEEDED, Admission, Unwelcome
from arena.server.background import BackgroundTasks
from arena.server.entrance import send
from arena.server.reply import text
from arena.server.throttle import Allowance, Throttle
from arena.submissions.requests import SubmissionRequests, Submitter
from arena.submissions.uploads import Upload
from protocol.codec import Encoding
from protocol.errors import ArenaError, Malformed, OutOfTurn, ProtocolError, UsageError
from protocol.messages import CLOSE_CRASHED, CLOSE_PROTOCOL, CLOSE_REFUSED, Refused
from protocol.submitting import (
    FRAME_BYTES,
    PIECE_BYTES,
    Abort,
    Enter,
    FromSubmitter,
    Piece,
    Submit,
    decode_from_submitter,
)

__all__ = ["SubmitterSockets"]

log = logging.getLogger(__name__)

_MOST = 2048  # connections
_MOST_NEAR = 1024  # from one address: a school behind one of them
_MOST_OF_ONE = 16  # with the token of one owner or instructor: its pages and terminals
_ENTER_S = 10.0
_MESSAGES, _MESSAGES_PER_S = 30, 10  # nobody types or clicks more
_SMALL_PIECE_BYTES = 4 * 1024  # smaller ones count as messages, unless they are the last
_MOST_WAITING = 16  # requests of one connection
# What the longest log takes, as JSON writes it: stderr of 20 matches with 64 KiB each, and a build
# with 256 KiB.
_BUFFER_BYTES = 4 * 1024 * 1024
_BEHIND_S = 20.0
_PING_S = 20.0  # proxies and routers close connections that are idle for a minute or so
_LOOK_S = 1.0


class SubmitterSockets:
    """All connections at `/submit`, and their owner; `now` is on the loop's clock."""

    def __init__(
        self, admission: Admission, throttle: Throttle, requests: SubmissionRequests, now: float
    ) -> None:
        self._admission = admission
        self._throttle = throttle
        self._requests = requests
        self._submitters: dict[Wire, Submitter] = {}
        self._near = Counter[str]()
        self._now = now
        self._look_at = now
        self._messages = Allowance(_MESSAGES, _MESSAGES_PER_S, lambda: self._now)
        self._tasks = BackgroundTasks()

    def enter(self, caller: Caller, request: Request) -> None:
        """Accept a submitter, or respond why not."""
        near = self._near[caller.address]
        if len(self._submitters) >= _MOST or near >= _MOST_NEAR:
            most = f"{_MOST:,} connections, {_MOST_NEAR:,} of them from one address"
            send(caller, text(503, f"expected at most {most}; come back later"))
            return
        caller.accept(request)
        if caller.is_open:
            entered_by, ping_at = self._now + _ENTER_S, self._now + _PING_S
            self._submitters[caller] = Submitter(caller, entered_by=entered_by, ping_at=ping_at)
            self._near[caller.address] += 1
            caller.hand_to(self, frame_bytes=FRAME_BYTES, buffer_bytes=_BUFFER_BYTES)

    def tick(self, now: float) -> None:
        """Ping those that are due; disconnect those that do not enter, read or answer pings."""
        self._now = now
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_S
        for submitter in tuple(self._submitters.values()):
            self._look(submitter, now)

    def roster_changed(self) -> None:
        """Disconnect those whose token is now another's, or nobody's."""
        self._requests.service.roster_changed()
        for submitter in tuple(self._submitters.values()):
            if submitter.has_entered and not self._is_same(submitter):
                submitter.connection.close(CLOSE_REFUSED, "the token was replaced")

    async def close(self) -> None:
        """End what is being done for submitters; what has not arrived whole is dropped."""
        self._tasks.cancel()
        await self._tasks.ended()

    # --- what connections tell (as their `ConnectionOwner`) ---

    def connected(self, connection: Wire) -> None:
        """Never called: the gateway has owned the connection before."""

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        """Decode a frame and do what it asks for; close the connection if that is not possible."""
        submitter = self._submitters.get(connection)
        if submitter is None:
            return
        try:
            if encoding is not Encoding.JSON:
                raise Malformed("expected JSON in text frames, got a binary frame")
            message = decode_from_submitter(frame)
            if isinstance(message, Piece) and self._takes(submitter, message):
                return
            if self._is_within_limits(submitter, arrived):
                self._handle(submitter, message)
        except ProtocolError as error:
            self.misbehaved(connection, error)
        except Unwelcome as why:
            submitter.tell(Refused(why.code, str(why)))
            self._throttle.blame(connection.address)
            connection.close(CLOSE_REFUSED, str(why))
        except ArenaError as error:
            submitter.tell(Refused("submit", str(error)))
        except Exception:
            log.exception("the arena failed at a submitter's frame")
            connection.close(CLOSE_CRASHED, "the arena failed; come back")

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        """Say what was wrong, and close."""
        if (submitter := self._submitters.get(connection)) is not None:
            submitter.tell(Refused(error.code, str(error)))
        self._throttle.blame(connection.address)
        connection.close(CLOSE_PROTOCOL, str(error))

    def overflowed(self, connection: Wire, waiting: int) -> None:
        """Nothing is left to do: the connection has been cut."""

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """Note that the peer is there; a pong that nobody asked for counts as a message."""
        if (submitter := self._submitters.get(connection)) is not None:
            if not submitter.awaits_pong:
                self._is_within_limits(submitter, arrived)
            submitter.awaits_pong = False

    def was_read(self, connection: Wire, took_s: float) -> None:
        """Nothing is left to do: the connection is closing."""

    def on_trivial_frame(self, connection: Wire) -> None:
        """Count a ping, or a fragment, as a message; browsers send large pieces in fragments."""
        submitter = self._submitters.get(connection)
        if submitter is not None and (submitter.upload is None or not submitter.upload.is_on):
            self._is_within_limits(submitter, self._now)

    def drained(self, connection: Wire) -> None:
        if (submitter := self._submitters.get(connection)) is not None:
            submitter.drained()

    def lost(self, connection: Wire) -> None:
        submitter = self._submitters.pop(connection, None)
        if submitter is None:
            return
        self._near[connection.address] -= 1
        if not self._near[connection.address]:
            del self._near[connection.address]
        if submitter.upload is not None:
            self._give_up(submitter, submitter.upload)
        submitter.requests.clear()
        submitter.drained()
        self._requests.disconnected(submitter)

    # --- within ---

    def _takes(self, submitter: Submitter, piece: Piece) -> bool:
        """Give a piece to its upload; False for one that counts as a message.

        What still comes of an upload that was refused is dropped: its sender did not know yet.
        """
        upload, size = submitter.upload, len(piece.data)
        if upload is not None and upload.is_on:
            is_large = size >= _SMALL_PIECE_BYTES or upload.got + size == upload.submit.size
            if is_large or self._is_within_limits(submitter, self._now):
                try:
                    upload.feed(piece.data)
                except UsageError:
                    self._give_up(submitter, upload)
                    raise
            return True
        if 0 < size <= submitter.stray_bytes:
            submitter.stray_bytes -= size
            return True
        return False

    def _handle(self, submitter: Submitter, message: FromSubmitter) -> None:
        """Do what a message asks for, now or in its turn; raises `Unwelcome` for a wrong token."""
        if isinstance(message, Enter) is submitter.has_entered:
            entered = "once" if submitter.has_entered else "as the first message"
            raise OutOfTurn(f"expected enter, {entered}")
        match message:
            case Enter():
                viewer = self._admission.viewer(message.token)
                if sum(one.viewer == viewer for one in self._submitters.values()) >= _MOST_OF_ONE:
                    most = f"expected at most {_MOST_OF_ONE} connections with one token"
                    raise Unwelcome("token", most)
                submitter.viewer, submitter.token = viewer, message.token
            case Piece():
                raise UsageError("expected pieces only after `send`")
            case Abort():
                if submitter.upload is not None:
                    self._give_up(submitter, submitter.upload)
                return
            case Submit():
                self._begin(submitter, message)
                return
        if len(submitter.requests) >= _MOST_WAITING:
            raise UsageError(f"expected at most {_MOST_WAITING} requests that wait for an answer")
        submitter.requests.append(message)
        if not submitter.is_working:
            submitter.is_working = True
            self._tasks.start(self._work(submitter))

    def _begin(self, submitter: Submitter, message: Submit) -> None:
        if submitter.owner is None:
            raise UsageError("expected a student's token: an instructor hands nothing in")
        if submitter.upload is not None:
            raise UsageError("another upload is on over this connection")
        submitter.stray_bytes = 0
        submitter.upload = Upload(submitter.owner, message, submitter.tell)
        work = self._receive(submitter, submitter.upload)
        submitter.receiving = self._tasks.start(work)

    async def _receive(self, submitter: Submitter, upload: Upload) -> None:
        try:
            await self._answered(submitter, "an upload", self._requests.receive(upload, submitter))
        finally:
            if submitter.upload is upload:
                self._end(submitter, upload)

    def _give_up(self, submitter: Submitter, upload: Upload) -> None:
        """The sender gives its upload up, or is gone, or has sent too much.

        Once all bytes are here that changes nothing: the program arrives.
        """
        self._end(submitter, upload)
        if upload.got != upload.submit.size and submitter.receiving is not None:
            submitter.receiving.cancel()

    def _end(self, submitter: Submitter, upload: Upload) -> None:
        """An upload is over for its sender, who may begin another one."""
        upload.is_on = False
        submitter.upload = None
        # What is on its way and in buffers; an honest client sends no more than that.
        submitter.stray_bytes = max(0, upload.submit.size - upload.got) + PIECE_BYTES

    async def _work(self, submitter: Submitter) -> None:
        """Answer the requests of one connection until none waits."""
        while submitter.requests:
            message = submitter.requests.popleft()
            answer = self._requests.answer(submitter, message)
            await self._answered(submitter, "a request", answer)
        submitter.is_working = False

    async def _answered(
        self, submitter: Submitter, asked: str, work: Coroutine[Any, Any, None]
    ) -> None:
        """Do what a submitter has asked for, and say what has kept the arena from it."""
        try:
            await work
        except ArenaError as error:
            submitter.tell(Refused("submit", str(error)))
        except Exception:
            log.exception("the arena failed at %s of %s", asked, submitter.viewer.name)
            submitter.tell(Refused("submit", "the arena failed at this; its log says why"))

    def _is_same(self, submitter: Submitter) -> bool:
        try:
            return self._admission.viewer(submitter.token) == submitter.viewer
        except Unwelcome:
            return False

    def _is_within_limits(self, submitter: Submitter, now: float) -> bool:
        """Whether a peer may send one more message now; if not, its connection is closed."""
        self._now = max(self._now, now)
        connection = submitter.connection
        if self._messages.spend(connection.peer):
            return True
        self._throttle.blame(connection.address)
        connection.useless += _MESSAGES  # what it still sends is not read
        connection.close(CLOSE_PROTOCOL, f"expected at most {_MESSAGES_PER_S} messages a second")
        return False

    def _look(self, submitter: Submitter, now: float) -> None:
        connection = submitter.connection
        if not submitter.has_entered and now >= submitter.entered_by:
            self._throttle.blame(connection.address)
            connection.close(CLOSE_REFUSED, TOKEN_NEEDED)
        elif connection.is_behind:
            since = submitter.behind_since
            submitter.behind_since = now if since is None else since
            if now - submitter.behind_since >= _BEHIND_S:
                connection.cut()
        elif now >= submitter.ping_at:
            if submitter.awaits_pong:  # gone, or so far behind that it has not seen the ping
                connection.cut()
                return
            submitter.ping_at, submitter.awaits_pong = now + _PING_S, True
            connection.ping(b"")
