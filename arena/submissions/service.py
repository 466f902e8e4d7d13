"""The interface of submissions for the rest of the arena.

The socket, competitions and instructors call one `SubmissionService`, in the event loop. It keeps
in memory which versions are in play and which submissions are undecided, so that nobody waits for
the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

import sqlalchemy as sa

from arena.games.names import version_label
from arena.sandbox.archive import MOST_BYTES, canonical
from arena.sandbox.build_cache import BuildCache
from arena.sandbox.command import Program, sealed_program
from arena.sandbox.folder_cache import FolderCache
from arena.sandbox.toolchains import Toolchain, installed
from arena.server.background import BackgroundTasks
from arena.storage.programs import Programs
from arena.storage.submissions import InPlay, Submission, Submissions
from arena.submissions.pipeline import Pipeline
from arena.submissions.settings import SubmissionSettings
from arena.submissions.uploads import Upload, Uploads
from protocol.errors import ArenaError, BadArchive, UsageError
from protocol.messages import Limits
from protocol.submitting import StarterFiles

__all__ = ["SubmissionService"]

log = logging.getLogger(__name__)


class SubmissionService:
    """The submissions of one arena.

    Args:
        folder: for spooled uploads and built programs; created if missing.
        hidden: paths that builds must not see, besides that folder.
        check: the command line of the process that checks a submission.
        games: names of the games that submissions can play here.
        starter: makes the files of a starter, for a game and a language.
        unsafe: if programs are not isolated, what every student could read; else empty.

    Attributes:
        on_change: callbacks for when a submission was decided or another version is in play. They
            are called in the event loop; if one fails, that is logged.
        on_rebuild: called with the number of a submission that is built again and so outdated.
        in_use: called in a thread; returns the numbers of submissions that competitions need.
        check_storage: raises UsageError while the arena's results cannot reach the disk.
    """

    def __init__(
        self,
        engine: sa.Engine,
        settings: SubmissionSettings,
        limits: Limits,
        folder: Path,
        *,
        hidden: Sequence[Path],
        check: Sequence[str],
        games: Sequence[str],
        starter: Callable[[str, str], StarterFiles],
        unsafe: str = "",
    ) -> None:
        self.settings = settings
        self.games = tuple(games)
        self.starter = starter
        self.unsafe = unsafe
        self.on_change: list[Callable[[], None]] = []
        self.on_rebuild: Callable[[int], None] = lambda number: None
        self.in_use: Callable[[], Collection[int]] = lambda: ()
        self.check_storage: Callable[[], None] = lambda: None
        self.submissions = Submissions(engine)
        self._programs = Programs(engine)
        hidden = (*hidden, folder)
        self._uploads = Uploads(folder / "uploads")
        self._builds = BuildCache(
            FolderCache(folder / "builds", self._needed_programs),
            self._programs.open,
            hidden,
            build_s=settings.build_s,
            build_mib=settings.build_mib,
        )
        self.pipeline = Pipeline(
            self.submissions, self._builds, check, settings, limits, hidden, self._changed
        )
        self._in_play: tuple[InPlay, ...] = ()
        self._by_game: dict[str, dict[str, int]] = {}
        self._labels: dict[int, str] = {}  # of versions that are or were in play
        latest = partial(deque[float], maxlen=settings.a_day)
        self._arrivals = defaultdict[str, deque[float]](latest)  # by owner
        # Requests that cost the arena work and leave no submission.
        self._refusals = defaultdict[str, deque[float]](latest)
        self._uses = defaultdict[str, deque[float]](latest)
        self._canonical = asyncio.Lock()  # one program at a time: it takes a core and memory
        self._tasks = BackgroundTasks()
        self._languages: asyncio.Task[tuple[Toolchain, ...]] | None = None
        self._worker: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Go on with undecided submissions; remains of unfinished builds are deleted."""
        # Each compiler is tried, which takes some seconds; the start does not wait for that.
        self._languages = asyncio.create_task(asyncio.to_thread(installed))
        await asyncio.to_thread(self._sweep)
        await self._refresh()
        for submission in await asyncio.to_thread(self.submissions.undecided):
            self.pipeline.add(submission)
        self._worker = asyncio.create_task(self.pipeline.run())

    async def close(self) -> None:
        """End the current build or check; the next arena begins it again."""
        for task in (self._worker, self._languages):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self._tasks.ended()

    # --- requests of competitions ---

    def in_play(self, game: str) -> Mapping[str, int]:
        """Return the submission in play in a game, by owner, without disabled ones."""
        return self._by_game.get(game, {})

    def all_in_play(self) -> tuple[InPlay, ...]:
        """Return the versions in play, without disabled ones, sorted by owner and game."""
        return self._in_play

    def label(self, number: int) -> str:
        """Return a version's label, such as `v3`; empty unless it was in play or `learn`ed."""
        return self._labels.get(number, "")

    async def learn(self, numbers: Iterable[int]) -> None:
        """Read the labels of these submissions, for a competition that goes on."""
        for number in set(numbers) - self._labels.keys():
            with contextlib.suppress(ArenaError):  # the pool reports why it cannot be played
                if (version := (await self.get(number)).version) is not None:
                    self._labels[number] = version_label(version)

    def undecided_before(self, at: float) -> tuple[str, ...]:
        """Return the owners of undecided submissions that arrived before a time, in Unix seconds.

        Which games a submission plays is known only when it is decided. Returns nobody while the
        queue stands still.
        """
        if self.pipeline.stands_still(self.settings.wait_s):
            return ()
        return tuple(sorted({one.owner for one in self.pipeline.undecided if one.arrived_at < at}))

    async def program(self, number: int) -> Program:
        """Return how to launch an accepted submission; it is built again if its build is lost.

        Raises `UsageError` if there is no such submission, or it cannot be built any more.
        """
        submission = await asyncio.to_thread(self.submissions.get, number)
        built = await self._builds.built(submission.program)
        return sealed_program(built.folder, submission.manifest or built.manifest)

    async def get(self, number: int) -> Submission:
        """Return a submission, with its version; raises `UsageError` if there is none."""
        return await asyncio.to_thread(self.submissions.get, number)

    def note_stderr(self, number: int, match: str, text: str) -> None:
        """Keep the end of a submission's stderr in a match, for its owner."""
        self._tasks.start(self._note_stderr(number, match, time.time(), text))

    # --- requests of owners and instructors ---

    async def receive(self, upload: Upload) -> Submission:
        """Receive a program; when this returns, it is stored and will be decided.

        Raises `UsageError` if the submission is refused.
        """
        if not 0 < upload.submit.size <= MOST_BYTES:
            most = MOST_BYTES >> 20
            raise UsageError(f"expected at most {most} MiB, got {upload.submit.size:,} bytes")
        await self._check_open(upload.owner)
        async with self._uploads.receive(upload) as sent:
            # Submissions may have closed meanwhile. From here on this one is completed.
            await self._check_open(upload.owner)
            async with self._canonical:
                try:
                    submission = await asyncio.to_thread(self._store, upload, sent, time.time())
                except BadArchive:
                    self._refusals[upload.owner].append(time.time())
                    raise
            self.pipeline.add(submission)
            self._arrivals[upload.owner].append(submission.arrived_at)
            await asyncio.to_thread(
                lambda: self.submissions.make_room(upload.owner, tuple(self.in_use()))
            )
            return submission

    async def languages(self) -> tuple[Toolchain, ...]:
        """Return the languages that may be submitted here, each with what is missing for it."""
        assert self._languages is not None, "it was entered"
        found = await asyncio.shield(self._languages)
        taken = self.settings.languages
        return tuple(one for one in found if not taken or one.name in taken)

    async def left_today(self, owner: str) -> int:
        """Return how many more submissions an owner has today, by this machine's clock."""
        mine = await asyncio.to_thread(self.submissions.of, owner)
        stored = _today(one.arrived_at for one in mine)
        # Large submissions may have displaced each other from the store already.
        return max(0, self.settings.a_day - max(stored, _today(self._arrivals[owner])))

    async def use(self, owner: str, version: int, game: str | None) -> None:
        """Put an earlier version in play again; raises `UsageError` if that is impossible."""
        self._check_limit(self._uses[owner], "changes of the version in play")
        self._uses[owner].append(time.time())
        await asyncio.to_thread(self.submissions.use, owner, version, game, owner, time.time())
        await self._changed()

    async def disable(self, number: int, who: str, *, again: bool) -> None:
        """Take a submission out of play for an instructor, or with `again` allow it again."""
        now = time.time()
        await asyncio.to_thread(self.submissions.disable, number, None if again else now, who)
        await self._changed()

    async def rebuild(self, number: int) -> None:
        """Build and check a decided submission again."""
        submission = await asyncio.to_thread(self.submissions.reopened, number)
        await self._builds.folders.forget(submission.program)
        self.on_rebuild(number)
        self.pipeline.add(submission)

    def open_program(self, sha256: str, into: BinaryIO) -> None:
        """Write a program's tar to `into`; called in a thread."""
        self._programs.open(sha256, into)

    def roster_changed(self) -> None:
        """Read again what is in play: an owner may be gone or renamed."""
        self._tasks.start(self._changed())

    # --- within ---

    def _sweep(self) -> None:
        """Clean up after a killed arena: remove partial uploads, unfinished builds and programs
        that no submission needs, and let undecided submissions wait again.
        """
        self._uploads.sweep()
        self._builds.folders.sweep()
        self.submissions.restarted()

    async def _check_open(self, owner: str) -> None:
        self.check_storage()
        settings = self.settings
        if why := settings.closed(time.time()):
            raise UsageError(why)
        if not await self.left_today(owner):
            raise UsageError(f"expected at most {settings.a_day} submissions a day; try tomorrow")
        self._check_limit(self._refusals[owner], "refused submissions")

    def _check_limit(self, latest: Iterable[float], what: str) -> None:
        if _today(latest) >= self.settings.a_day:
            raise UsageError(f"expected at most {self.settings.a_day} {what} a day; try tomorrow")

    def _store(self, upload: Upload, sent: BinaryIO, at: float) -> Submission:
        submit = upload.submit
        with tempfile.TemporaryFile(dir=self._uploads.folder) as tar:
            program = canonical(submit.name, sent, tar)
            tar.seek(0)
            self._programs.put(program.sha256, tar)
            return self.submissions.arrived(
                upload.owner, submit.name, submit.message, program.sha256, program.size, at
            )

    async def _changed(self) -> None:
        await self._refresh()
        for call in self.on_change:
            try:
                call()
            except Exception:
                log.exception("the arena failed at a change of what is in play")

    async def _refresh(self) -> None:
        self._in_play = await asyncio.to_thread(self.submissions.in_play)
        self._by_game = {}
        for row in self._in_play:
            self._by_game.setdefault(row.game, {})[row.owner] = row.submission
            self._labels[row.submission] = version_label(row.version)

    def _needed_programs(self) -> Collection[str]:
        """Return the programs that competitions play; called in a thread."""
        needed = {row.submission for row in self._in_play} | {*self.in_use()}
        return {one.program for one in self.submissions.of(None) if one.number in needed}

    async def _note_stderr(self, number: int, match: str, at: float, text: str) -> None:
        try:
            await asyncio.to_thread(self.submissions.note_stderr, number, match, at, text)
        except ArenaError as error:  # the database fails
            log.warning("stderr of submission %d is not kept: %s", number, error)


def _today(times: Iterable[float]) -> int:
    """Count the Unix times that are today, by this machine's clock."""
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    return sum(at >= midnight for at in times)
