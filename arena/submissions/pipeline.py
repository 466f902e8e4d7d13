"""What has arrived is built and checked, one submission at a time, and then is a version or not.

Owners take turns, so that one who hands in much delays nobody else. What an arena that was stopped
has not decided the next one begins again: nothing of a build or a check is kept before it is over.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from arena.sandbox.build_cache import BuildCache, BuildFailed, BuiltProgram
from arena.sandbox.scarcity import is_scarce
from arena.server.fair_queue import FairQueue
from arena.storage.submissions import InPlay, Submission, Submissions, SubmissionState
from arena.storage.writer import can_pass
from arena.submissions.check_process import CheckJob, CheckVerdict, StepBegun, StepDone, check
from arena.submissions.progress import ProgressFeed
from arena.submissions.settings import SubmissionSettings
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits
from protocol.submitting import Progressing

__all__ = ["Pipeline", "stays_in_play"]

log = logging.getLogger(__name__)

_ROUNDS = 20  # of each game, against house bots or the dealer
_LATEST = 20  # submissions, of which the mean is expected for the next
_SEED_BITS = 32
_AGAIN_S = 5.0  # until one is decided again that the database or the machine kept from it


class _Waiting(Struct, frozen=True):
    number: int
    owner: str


class Pipeline:
    """The queue of what is to be decided, and the one worker that takes from it.

    Args:
        check: the command line of the process that checks a program.
        hidden: what no program that is checked may see.
        on_decided: awaited when a submission has been decided, before anybody is told.
    """

    def __init__(
        self,
        submissions: Submissions,
        builds: BuildCache,
        check: Sequence[str],
        settings: SubmissionSettings,
        limits: Limits,
        hidden: Sequence[Path],
        on_decided: Callable[[], Awaitable[None]],
    ) -> None:
        self.feed = ProgressFeed()
        self._submissions = submissions
        self._builds = builds
        self._check = check
        self._settings = settings
        self._limits = limits
        self._hidden = tuple(map(str, hidden))
        self._on_decided = on_decided
        self._undecided: dict[int, Submission] = {}
        self._queue = FairQueue[_Waiting]()
        self._news = asyncio.Event()
        self._took_s = deque[float](maxlen=_LATEST)
        self._began_at = 0.0  # of the one that is being decided

    @property
    def undecided(self) -> Iterable[Submission]:
        """In no special order."""
        return self._undecided.values()

    def add(self, submission: Submission) -> None:
        """Have a submission decided in its turn; one that is in the queue stays where it is."""
        if submission.number not in self._undecided:
            self._undecided[submission.number] = submission
            self._queue.put(submission.owner, _Waiting(submission.number, submission.owner))
            self._say_positions()
            self._news.set()

    def expected_s(self, number: int) -> float | None:
        """Roughly how long until a submission is decided; None before any was."""
        if not self._took_s or number not in self._undecided:
            return None
        each = sum(self._took_s) / len(self._took_s)
        position = self.position(number) or 0
        left = max(0.0, each - (time.monotonic() - self._began_at)) if self._is_busy else 0.0
        return left + position * each

    def position(self, number: int) -> int | None:
        """The place of a submission in the queue, from 1; None if it does not wait."""
        return next((n for n, item in enumerate(self._queue, 1) if item.number == number), None)

    async def run(self) -> None:
        """Decide what is in the queue, for ever."""
        while True:
            while not self._queue:
                self._news.clear()
                await self._news.wait()
            number = self._queue.take().number
            self._began_at = time.monotonic()
            submission = self._undecided[number]
            try:
                await self._decide(submission)
            except Exception as error:
                if _can_pass(error):
                    log.warning("submission %d is decided later: %s", number, error)
                    self._queue.put(submission.owner, _Waiting(number, submission.owner))
                    await asyncio.sleep(_AGAIN_S)
                    continue
                log.exception("submission %d cannot be decided", number)
                self._undecided.pop(number, None)
            self._took_s.append(time.monotonic() - self._began_at)
            self._say_positions()

    # --- within ---

    @property
    def _is_busy(self) -> bool:
        return len(self._undecided) > len(self._queue)

    async def _decide(self, submission: Submission) -> None:
        """Build and check a submission, and write down what came of it."""
        number = submission.number
        try:
            built = await self._built(submission)
            verdict = await self._checked(submission, built)
            if not verdict.games:
                raise UsageError(verdict.why)
        except Exception as error:
            if _can_pass(error):
                raise
            if isinstance(error, ArenaError):
                await self._refuse(submission, str(error))
                return
            log.exception("the arena failed at submission %d", number)
            await self._refuse(submission, "the arena failed at this; its instructor can say why")
            return
        decided = await asyncio.to_thread(
            self._submissions.accepted,
            number,
            built.manifest,
            verdict.games,
            f"passed the check in {', '.join(verdict.games)}",
            time.time(),
        )
        in_play = [
            row.game for row in await self._in_play(submission.owner) if row.submission == number
        ]
        where = f"in play in {', '.join(in_play)}" if in_play else "not in play: a later one is"
        await self._decided(decided, f"v{decided.version} is {where}")

    async def _built(self, submission: Submission) -> BuiltProgram:
        await self._begin(submission, SubmissionState.BUILDING)
        try:
            built = await self._builds.built(submission.program)
        except BuildFailed as error:
            await self._log(submission, "build", error.log)
            raise
        await self._log(submission, "build", built.log)
        languages = self._settings.languages
        if languages and built.manifest.language not in languages:
            taken = ", ".join(languages)
            raise UsageError(f"expected a bot in {taken}, got one in {built.manifest.language}")
        return built

    async def _checked(self, submission: Submission, built: BuiltProgram) -> CheckVerdict:
        await self._begin(submission, SubmissionState.CHECKING)
        lines: list[str] = []

        def tell(said: StepBegun | StepDone) -> None:
            if isinstance(said, StepDone):
                lines.extend(said.lines)
                self._say(submission, "checking", said.step, said.status, said.text)
            else:
                self._say(submission, "checking", said.step, "begun")

        job = CheckJob(
            folder=str(built.folder),
            manifest=built.manifest,
            hidden=self._hidden,
            name=submission.owner,
            rounds=_ROUNDS,
            limits=self._limits,
            seed=secrets.randbits(_SEED_BITS),
        )
        try:
            verdict = await check(self._check, job, self._settings.check_s, tell)
            lines += verdict.lines
        finally:
            await self._log(submission, "check", "\n".join(lines))
        return verdict

    async def _refuse(self, submission: Submission, why: str) -> None:
        number = submission.number
        others = [row for row in await self._in_play(submission.owner) if row.submission != number]
        text = f"{why.rstrip('.')}; {stays_in_play(row.version for row in others)}"
        await asyncio.to_thread(self._submissions.refused, number, text, time.time())
        await self._builds.folders.drop(submission.program)
        await self._decided(await asyncio.to_thread(self._submissions.get, number), text)

    async def _in_play(self, owner: str) -> list[InPlay]:
        return [
            row for row in await asyncio.to_thread(self._submissions.in_play) if row.owner == owner
        ]

    async def _decided(self, submission: Submission, text: str) -> None:
        self._undecided.pop(submission.number, None)
        await self._on_decided()
        self.feed.say(
            Progressing(submission.number, submission.state, text=text, version=submission.version)
        )

    async def _begin(self, submission: Submission, state: SubmissionState) -> None:
        await asyncio.to_thread(self._submissions.began, submission.number, state)
        self._say(submission, state)

    async def _log(self, submission: Submission, kind: str, text: str) -> None:
        await asyncio.to_thread(self._submissions.log, submission.number, kind, text)

    def _say(
        self, submission: Submission, state: str, step: str = "", status: str = "", text: str = ""
    ) -> None:
        number = submission.number
        expected_s = self.expected_s(number)
        self.feed.say(Progressing(number, state, step, status, text, expected_s=expected_s))

    def _say_positions(self) -> None:
        for position, item in enumerate(self._queue, 1):
            last = self.feed.last(item.number)
            if last is None or last.position != position:
                self.feed.say(
                    Progressing(
                        item.number,
                        "waiting",
                        position=position,
                        expected_s=self.expected_s(item.number),
                    )
                )


def stays_in_play(versions: Iterable[int]) -> str:
    """What an owner has in play after a submission was refused, for people."""
    known = [f"v{version}" for version in sorted(set(versions))]
    if not known:
        return "nothing of yours is in play yet"
    return f"{' and '.join(known)} {'stay' if len(known) > 1 else 'stays'} in play"


def _can_pass(error: BaseException) -> bool:
    """Whether the database is locked or away, or the machine has no room for a process now."""
    return can_pass(error) or is_scarce(error)
