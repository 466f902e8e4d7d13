"""What submitters ask for over their sockets, and who is answered: owners of their own alone (J8).

To an owner a submission of somebody else is one that does not exist. An instructor sees all.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import BinaryIO

from arena.games import game_named
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.transport import Caller
from arena.sandbox.archive import MOST_BYTES, as_zip
from arena.storage.submissions import Submission
from arena.submissions.service import SubmissionService
from arena.submissions.uploads import Upload
from protocol.codec import Encoding
from protocol.errors import UsageError
from protocol.submitting import (
    PIECE_BYTES,
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
    StarterFiles,
    StderrOf,
    SubmissionList,
    ToSubmitter,
    Use,
    encode_to_submitter,
)

__all__ = ["SubmissionRequests", "Submitter"]

# As JSON writes them they take six times as long, and nobody can read them.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_MOST_LISTED = 500  # of all owners', for an instructor: what a frame and a page can hold


class Submitter:
    """One peer.

    Attributes:
        viewer: the public until it has entered with its token.
        receiving: takes its latest upload in.
        stray_bytes: of an upload that was refused: they were sent before it was known.
        requests: what waits for an answer.
    """

    def __init__(self, connection: Caller, *, entered_by: float, ping_at: float) -> None:
        self.connection = connection
        self.viewer = Viewer()
        self.token = ""
        self.upload: Upload | None = None
        self.receiving: asyncio.Task[None] | None = None
        self.stray_bytes = 0
        self.requests = deque[FromSubmitter]()
        self.is_working = False
        self.entered_by = entered_by
        self.ping_at = ping_at
        self.awaits_pong = False
        self.behind_since: float | None = None
        self._read = asyncio.Event()

    @property
    def owner(self) -> str | None:
        """The name on the roster; None for an instructor."""
        return self.viewer.name if self.viewer.kind is ViewerKind.OWNER else None

    @property
    def has_entered(self) -> bool:
        return self.viewer.kind is not ViewerKind.PUBLIC

    def tell(self, message: ToSubmitter) -> None:
        """Send a message; does nothing if the connection is closing."""
        self.connection.send(encode_to_submitter(message), Encoding.JSON)

    def drained(self) -> None:
        """It has read what was sent, or is gone."""
        self.behind_since = None
        self._read.set()

    async def has_read(self) -> bool:
        """Wait until more can be sent; False if the connection is closed."""
        while self.connection.is_open and self.connection.is_behind:
            self._read.clear()
            await self._read.wait()
        return self.connection.is_open


class SubmissionRequests:
    """Answers what comes over the sockets.

    Args:
        games: names of the games that submissions can play here.
        starter: makes the files of a starter, for a game and a language.
    """

    def __init__(
        self,
        service: SubmissionService,
        games: Sequence[str],
        starter: Callable[[str, str], StarterFiles],
    ) -> None:
        self.service = service
        self._games = tuple(games)
        self._starter = starter
        # A zip takes a core, which matches need: one at a time, and of each who asks at most one
        # waits with those of others.
        self._zipping = asyncio.Lock()
        self._asking = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def receive(self, upload: Upload, submitter: Submitter) -> None:
        """Take a program in, and have its sender told what becomes of it."""
        submission = await self.service.receive(upload)
        await self._follow(submitter, submission.number)  # it may be decided by now

    def disconnected(self, submitter: Submitter) -> None:
        self.service.pipeline.forget(submitter.tell)

    async def answer(self, submitter: Submitter, message: FromSubmitter) -> None:
        """Do what a message asks for, and say so; raises `ArenaError` if that cannot be."""
        match message:
            case Enter():
                submitter.tell(await self._rules(submitter))
            case Follow():
                await self._follow(submitter, message.submission)
            case ListSubmissions():
                if submitter.owner is not None and message.owner not in (None, submitter.owner):
                    self._instructor(submitter)
                await self._list(submitter, submitter.owner or message.owner)
            case GetLog():
                await self._log(submitter, message.submission)
            case Use():
                await self._use(submitter, message)
            case Download():
                await self._download(submitter, message.submission)
            case Disable():
                await self._disable(submitter, message)
            case Rebuild():
                await self._rebuild(submitter, message.submission)
            case GetStarter():
                submitter.tell(
                    await asyncio.to_thread(self._starter, message.game, message.language)
                )

    # --- within ---

    async def _rules(self, submitter: Submitter) -> Rules:
        service, owner = self.service, submitter.owner
        settings = service.settings
        languages = [
            InstalledLanguage(tool.name, tool.title, tool.version, tool.missing)
            for tool in await service.languages()
        ]
        return Rules(
            owner=owner,
            most_bytes=MOST_BYTES,
            games=self._games,
            languages=tuple(languages),
            opens_at=settings.opens,
            closes_at=settings.closes,
            left_today=None if owner is None else await service.left_today(owner),
            unsafe=service.unsafe,
        )

    async def _visible(self, submitter: Submitter, number: int) -> Submission:
        """A submission that a submitter may know of; else it is as if there were none."""
        try:
            found = await self.service.get(number)
        except UsageError:
            found = None
        if found is None or submitter.owner not in (None, found.owner):
            raise UsageError(f"there is no submission {number}")
        return found

    def _instructor(self, submitter: Submitter) -> str:
        if submitter.owner is not None:
            raise UsageError("expected an instructor's token")
        return submitter.viewer.name

    async def _follow(self, submitter: Submitter, number: int) -> None:
        await self._visible(submitter, number)
        if not self.service.pipeline.follow(number, submitter.tell):
            one = await self._visible(submitter, number)  # it may have been decided meanwhile
            said = Progressing(number, one.state, text=one.text, version=one.version)
            submitter.tell(said)

    async def _list(self, submitter: Submitter, owner: str | None, text: str = "") -> None:
        service = self.service
        found = await asyncio.to_thread(service.submissions.of, owner)
        in_play = [row for row in service.all_in_play() if owner in (None, row.owner)]
        playing: dict[int, list[str]] = {}
        for row in in_play:
            playing.setdefault(row.submission, []).append(row.game)
        submitter.tell(
            SubmissionList(
                tuple(
                    self._entry(one, playing.get(one.number, ())) for one in found[:_MOST_LISTED]
                ),
                tuple(
                    InPlayEntry(row.owner, row.game, row.version, row.at, row.who)
                    for row in in_play
                ),
                text,
            )
        )

    def _entry(self, one: Submission, in_play: Sequence[str]) -> EntryOf:
        pipeline = self.service.pipeline
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
        logs = await asyncio.to_thread(self.service.submissions.logs, number)
        stderr = await asyncio.to_thread(self.service.submissions.stderr, one.owner)
        submitter.tell(
            LogText(
                number,
                _readable(logs.get("build", "")),
                _readable(logs.get("check", "")),
                tuple(
                    StderrOf(line.match, line.at, line.version or 0, _readable(line.text))
                    for line in stderr
                ),
            )
        )

    async def _use(self, submitter: Submitter, message: Use) -> None:
        if submitter.owner is None:
            raise UsageError("expected a student's token: each has versions of its own")
        game = None if message.game is None else game_named(message.game).name
        await self.service.use(submitter.owner, message.version, game)
        where = "" if game is None else f" in {game}"
        await self._list(submitter, submitter.owner, f"v{message.version} is in play{where}")

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
            self.service.open_program(sha256, tar)
            tar.seek(0)
            as_zip(tar, zipped)
        zipped.seek(0)

    async def _disable(self, submitter: Submitter, message: Disable) -> None:
        who = self._instructor(submitter)
        one = await self._visible(submitter, message.submission)
        await self.service.disable(one.number, who, again=message.again)
        done = "can be in play again" if message.again else "is out of play"
        await self._list(submitter, None, f"submission {one.number} of {one.owner} {done}")

    async def _rebuild(self, submitter: Submitter, number: int) -> None:
        self._instructor(submitter)
        one = await self._visible(submitter, number)
        await self.service.rebuild(number)
        await self._list(submitter, None, f"submission {number} of {one.owner} is built again")


def _readable(text: str) -> str:
    return _UNREADABLE.sub("?", text)
