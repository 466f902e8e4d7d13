"""The WebSockets at `/submit`: accepts requests, and shows owners their own submissions only (J8).

The first message carries a token of the roster or of an instructor; without one, nothing is shown.
To an owner, a submission of somebody else does not exist. An instructor sees all submissions.
Requests are answered in order, one at a time; the pieces of an upload are taken at once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

import msgspec
from websockets.http11 import Request

from arena.games.catalogue import game_named
from arena.records.visibility import ViewerKind
from arena.referee.transport import Caller, Wire
from arena.sandbox.archive import MOST_BYTES, as_zip
from arena.server.admission import Unwelcome
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from arena.server.peer_sockets import PeerSocket, PeerSockets
from arena.storage.submissions import Submission
from arena.submissions.service import SubmissionService
from arena.submissions.uploads import Upload
from protocol.errors import TOKEN_NEEDED, ArenaError, OutOfTurn, ProtocolError, UsageError
from protocol.messages import CLOSE_REFUSED
from protocol.submitting import (
    FRAME_BYTES,
    PIECE_BYTES,
    Abort,
    Disable,
    Download,
    Enter,
    EntryOf,
    Follow,
    FromSubmitter,
    GetLog,
    GetStarter,
    InPlayEntry,
    InstalledLanguage,
    ListSubmissions,
    LogText,
    Piece,
    Progressing,
    Rebuild,
    Rules,
    StderrOf,
    SubmissionList,
    Submit,
    ToSubmitter,
    Use,
    decode_from_submitter,
    encode_to_submitter,
)

__all__ = ["Submitter", "SubmitterSockets"]

log = logging.getLogger(__name__)

_MOST_OF_ONE = 16  # connections with one token: the pages and terminals of its holder
_ENTER_S = 10.0
_SMALL_PIECE_BYTES = 4 * 1024  # smaller pieces count as messages, except the last one
_MOST_WAITING = 16  # requests of one connection
# The longest log as JSON: stderr of 20 matches with 64 KiB each, and a build log of 256 KiB.
_BUFFER_BYTES = 4 * 1024 * 1024
# JSON writes these six times as long, and nobody can read them.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_MOST_LISTED = 500  # for an instructor: what a frame and a page can hold


class Submitter(PeerSocket):
    """A connection at `/submit`.

    Attributes:
        receiving: the task that receives its latest upload.
        stray_bytes: bytes of a refused upload that may still come, sent before the refusal.
        requests: requests that wait for an answer.
    """

    def __init__(self, connection: Caller, now: float) -> None:
        super().__init__(connection, now)
        self.entered_by = now + _ENTER_S
        self.upload: Upload | None = None
        self.receiving: asyncio.Task[None] | None = None
        self.stray_bytes = 0
        self.requests = deque[FromSubmitter]()
        self.is_working = False
        self._read = asyncio.Event()

    @property
    def owner(self) -> str | None:
        """The name on the roster; None for an instructor."""
        return self.viewer.name if self.viewer.kind is ViewerKind.OWNER else None

    @property
    def has_entered(self) -> bool:
        return self.viewer.kind is not ViewerKind.PUBLIC

    def tell(self, message: ToSubmitter) -> None:
        """Send a message; ignored if the connection is closing."""
        self.send(encode_to_submitter(message))

    def drained(self) -> None:
        super().drained()
        self._read.set()

    async def has_read(self) -> bool:
        """Wait until more can be sent; return False if the connection is closed."""
        while self.connection.is_open and self.connection.is_behind:
            self._read.clear()
            await self._read.wait()
        return self.connection.is_open


class SubmitterSockets(PeerSockets[Submitter]):
    """All connections at `/submit`; `now` is on the loop's clock."""

    named, most = ("submitter", "connections"), 2048
    messages, messages_per_s = 30, 10  # nobody types or clicks faster
    frame_bytes, buffer_bytes = FRAME_BYTES, _BUFFER_BYTES

    def __init__(self, gateway: Gateway, service: SubmissionService, now: float) -> None:
        super().__init__(gateway, now)
        self._service = service
        self._tasks = BackgroundTasks()
        # Making a zip takes a core, which matches need, so one is made at a time. Of each
        # submitter at most one request waits for that.
        self._zipping = asyncio.Lock()
        self._asking = defaultdict[str, asyncio.Lock](asyncio.Lock)

    def roster_changed(self) -> None:
        self._service.roster_changed()
        super().roster_changed()

    async def close(self) -> None:
        """End the work for submitters; unfinished uploads are dropped."""
        self._tasks.cancel()
        await self._tasks.ended()

    def on_trivial_frame(self, connection: Wire) -> None:
        """Count a ping or fragment as a message, but not in uploads: browsers fragment pieces."""
        peer = self._peers.get(connection)
        if peer is None or peer.upload is None or not peer.upload.is_on:
            super().on_trivial_frame(connection)

    # --- a connection ---

    def _peer(self, caller: Caller, request: Request) -> Submitter:
        return Submitter(caller, self._now)

    def _left(self, peer: Submitter) -> None:
        if peer.upload is not None:
            self._give_up(peer, peer.upload)
        peer.requests.clear()
        peer.drained()
        self._service.pipeline.forget(peer.tell)

    def _look(self, peer: Submitter, now: float) -> None:
        if not peer.has_entered and now >= peer.entered_by:
            self._gateway.throttle.blame(peer.connection.address)
            peer.connection.close(CLOSE_REFUSED, TOKEN_NEEDED)
        else:
            super()._look(peer, now)

    def _take(self, peer: Submitter, frame: bytes, arrived: float) -> None:
        try:
            message = decode_from_submitter(frame)
            if isinstance(message, Piece) and self._takes(peer, message):
                return
            if self._is_within_limits(peer, arrived):
                self._handle(peer, message)
        except ProtocolError:
            raise
        except ArenaError as error:
            peer.refuse("submit", str(error))

    # --- requests ---

    def _takes(self, submitter: Submitter, piece: Piece) -> bool:
        """Give a piece to its upload; return False if it counts as a message.

        Pieces that still come after a refusal are dropped: their sender did not know of it yet.
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
        """Do what a message asks, now or in its turn; raises `Unwelcome` for a wrong token."""
        if isinstance(message, Enter) is submitter.has_entered:
            entered = "once" if submitter.has_entered else "as the first message"
            raise OutOfTurn(f"expected enter, {entered}")
        match message:
            case Enter():
                viewer = self._gateway.admission.viewer(message.token)
                if sum(one.viewer == viewer for one in self._peers.values()) >= _MOST_OF_ONE:
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
        """Receive a program, and tell its sender the progress."""
        try:
            with self._answering(submitter, "an upload"):
                submission = await self._service.receive(upload)
                await self._follow(submitter, submission.number)  # it may be decided already
        finally:
            if submitter.upload is upload:
                self._end(submitter, upload)

    def _give_up(self, submitter: Submitter, upload: Upload) -> None:
        """End an upload whose sender aborts, has left or sends too much.

        If all bytes are here already, the program is submitted all the same.
        """
        self._end(submitter, upload)
        if upload.got != upload.submit.size and submitter.receiving is not None:
            submitter.receiving.cancel()

    def _end(self, submitter: Submitter, upload: Upload) -> None:
        """Mark an upload as over for its sender, who may then begin another."""
        upload.is_on = False
        submitter.upload = None
        # Bytes on their way and in buffers; an honest client sends no more.
        submitter.stray_bytes = max(0, upload.submit.size - upload.got) + PIECE_BYTES

    async def _work(self, submitter: Submitter) -> None:
        """Answer the requests of one connection until none waits."""
        while submitter.requests:
            with self._answering(submitter, "a request"):
                await self._answer(submitter, submitter.requests.popleft())
        submitter.is_working = False

    @contextmanager
    def _answering(self, submitter: Submitter, asked: str) -> Iterator[None]:
        """Tell a submitter the error that its request ends with."""
        try:
            yield
        except ArenaError as error:
            submitter.refuse("submit", str(error))
        except Exception:
            log.exception("the arena failed at %s of %s", asked, submitter.viewer.name)
            submitter.refuse("submit", "the arena failed at this; its log says why")

    async def _answer(self, submitter: Submitter, message: FromSubmitter) -> None:
        """Carry out and answer a message; raises `ArenaError` if that is impossible."""
        service, owner = self._service, submitter.owner
        match message:
            case Enter():
                submitter.tell(await self._rules(owner))
            case Follow():
                await self._follow(submitter, message.submission)
            case ListSubmissions():
                if owner is not None and message.owner not in (None, owner):
                    self._instructor(submitter)
                await self._list(submitter, owner or message.owner)
            case GetLog():
                await self._log(submitter, message.submission)
            case Use():
                if owner is None:
                    raise UsageError("expected a student's token: each has versions of its own")
                game = None if message.game is None else game_named(message.game).name
                await service.use(owner, message.version, game)
                where = "" if game is None else f" in {game}"
                await self._list(submitter, owner, f"v{message.version} is in play{where}")
            case Download():
                await self._download(submitter, message.submission)
            case Disable():
                who = self._instructor(submitter)
                one = await self._visible(submitter, message.submission)
                await service.disable(one.number, who, again=message.again)
                done = "can be in play again" if message.again else "is out of play"
                text = f"submission {one.number} of {one.owner} {done}"
                await self._list(submitter, None, text)
            case Rebuild():
                self._instructor(submitter)
                one = await self._visible(submitter, message.submission)
                await service.rebuild(one.number)
                text = f"submission {one.number} of {one.owner} is built again"
                await self._list(submitter, None, text)
            case GetStarter():
                submitter.tell(
                    await asyncio.to_thread(service.starter, message.game, message.language)
                )

    async def _rules(self, owner: str | None) -> Rules:
        service, settings = self._service, self._service.settings
        languages = [
            InstalledLanguage(tool.name, tool.title, tool.version, tool.missing)
            for tool in await service.languages()
        ]
        return Rules(
            owner=owner,
            most_bytes=MOST_BYTES,
            games=service.games,
            languages=tuple(languages),
            opens_at=settings.opens,
            closes_at=settings.closes,
            left_today=None if owner is None else await service.left_today(owner),
            unsafe=service.unsafe,
        )

    async def _visible(self, submitter: Submitter, number: int) -> Submission:
        """Return a submission that the submitter may see; `UsageError` for any other."""
        with suppress(UsageError):
            found = await self._service.get(number)
            if submitter.owner in (None, found.owner):
                return found
        raise UsageError(f"there is no submission {number}")

    def _instructor(self, submitter: Submitter) -> str:
        if submitter.owner is not None:
            raise UsageError("expected an instructor's token")
        return submitter.viewer.name

    async def _follow(self, submitter: Submitter, number: int) -> None:
        await self._visible(submitter, number)
        if not self._service.pipeline.follow(number, submitter.tell):
            one = await self._visible(submitter, number)  # it may have been decided meanwhile
            said = Progressing(number, one.state, text=one.text, version=one.version)
            submitter.tell(said)

    async def _list(self, submitter: Submitter, owner: str | None, text: str = "") -> None:
        service = self._service
        found = await asyncio.to_thread(service.submissions.of, owner)
        in_play = [row for row in service.all_in_play() if owner in (None, row.owner)]
        playing: dict[int, list[str]] = {}
        for row in in_play:
            playing.setdefault(row.submission, []).append(row.game)
        entries = [self._entry(one, playing.get(one.number, ())) for one in found[:_MOST_LISTED]]
        shown = msgspec.convert(in_play, tuple[InPlayEntry, ...], from_attributes=True)
        submitter.tell(SubmissionList(tuple(entries), shown, text))

    def _entry(self, one: Submission, in_play: Sequence[str]) -> EntryOf:
        pipeline = self._service.pipeline
        return EntryOf(
            submission=one.number,
            owner=one.owner,
            version=one.version,
            name=one.name,
            message=one.message,
            program=one.program,
            bytes=one.size,
            language="" if one.manifest is None else one.manifest.language,
            state=one.state,
            arrived_at=one.arrived_at,
            decided_at=one.decided_at,
            games=one.games,
            in_play=tuple(in_play),
            text=one.text,
            is_disabled=one.disabled_at is not None,
            position=pipeline.position(one.number),
            expected_s=pipeline.expected_s(one.number),
        )

    async def _log(self, submitter: Submitter, number: int) -> None:
        one = await self._visible(submitter, number)
        logs = await asyncio.to_thread(self._service.submissions.logs, number)
        stderr = await asyncio.to_thread(self._service.submissions.stderr, one.owner)
        build, check = (_readable(logs.get(kind, "")) for kind in ("build", "check"))
        lines = (
            StderrOf(line.match, line.at, line.version or 0, _readable(line.text))
            for line in stderr
        )
        submitter.tell(LogText(number, build, check, tuple(lines)))

    async def _download(self, submitter: Submitter, number: int) -> None:
        one = await self._visible(submitter, number)
        with tempfile.TemporaryFile() as file:
            async with self._asking[submitter.viewer.name], self._zipping:
                if not submitter.connection.is_open:
                    return
                await asyncio.to_thread(self._zip, one.program, file)
            while data := await asyncio.to_thread(file.read, PIECE_BYTES):
                if not await submitter.has_read():
                    return
                submitter.tell(Piece(data))
            submitter.tell(Piece(b""))

    def _zip(self, sha256: str, zipped: BinaryIO) -> None:
        with tempfile.TemporaryFile() as tar:
            self._service.open_program(sha256, tar)
            tar.seek(0)
            as_zip(tar, zipped)
        zipped.seek(0)


def _readable(text: str) -> str:
    return _UNREADABLE.sub("?", text)
