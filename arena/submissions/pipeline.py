"""Builds and checks submissions, one at a time, and accepts or refuses each.

The next owner is the one who has used the fewest seconds since the queue was last empty. If a
submission takes much longer than those of other owners, it is interrupted while they wait, and
begun again after them. Nothing of a build or check is kept before it is over, so a starting arena
begins the undecided submissions again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import TypeAlias

from arena.sandbox.build_cache import BuildCache, BuildFailed, BuiltProgram
from arena.sandbox.scarcity import is_scarce
from arena.server.fair_queue import FairQueue
from arena.storage.submissions import InPlay, Submission, Submissions, SubmissionState
from arena.storage.writer import can_pass
from arena.submissions.check_process import CheckJob, CheckStep, CheckVerdict, check
from arena.submissions.settings import SubmissionSettings
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits
from protocol.submitting import Progressing

__all__ = ["Follower", "Pipeline"]

log = logging.getLogger(__name__)

Follower: TypeAlias = Callable[[Progressing], None]
"""Called with the progress of a submission until it is decided."""

_ROUNDS = 20  # of each game, against house bots or the dealer
_LATEST = 20  # submissions; their mean time is the estimate for the next
_SEED_BITS = 32
_AGAIN_S = 5.0  # delay before a retry, after the database or the machine failed for a while
_MEDIANS = 2  # medians that a turn may last while others wait: half of them take more than one
_AFTER_OTHERS = "it takes longer than others, which are decided first; then it is begun again"
_UNKNOWN_S = 120.0  # the limit before any median is known: thirty of these fit into an hour


class _Undecided:
    """A submission that waits or is being decided.

    Attributes:
        spent_s: seconds spent in turns that were interrupted.
        said: the progress that followers were told since the submission last waited.
    """

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        self.number = submission.number
        self.owner = submission.owner
        self.spent_s = 0.0
        self.said: list[Progressing] = []
        self.followers = dict[Follower, None]()

    def say(self, progress: Progressing) -> None:
        """Tell the followers. A waiting submission starts anew: earlier progress is dropped."""
        for tell in tuple(self.followers):
            tell(progress)
        if progress.position is not None:
            self.said.clear()
        self.said.append(progress)


class Pipeline:
    """The queue of undecided submissions, and the one worker that takes from it.

    Args:
        check: the command line of the process that checks a program.
        hidden: paths that a program must not see while it is checked.
        on_decided: awaited after each decision, before its followers are told.
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
        self._submissions = submissions
        self._builds = builds
        self._check = check
        self._settings = settings
        self._limits = limits
        self._hidden = tuple(map(str, hidden))
        self._on_decided = on_decided
        self._undecided: dict[int, _Undecided] = {}
        self._used_s = defaultdict[str, float](float)  # by owner, reset when the queue is empty
        self._queue = FairQueue[_Undecided](self._used_s)
        self._news = asyncio.Event()
        self._took_s = deque[tuple[str, float]](maxlen=_LATEST)  # (owner, seconds)
        self._clock = asyncio.get_running_loop().time
        self._began_at = 0.0  # when the current submission was begun
        self._turn: tuple[_Undecided, asyncio.Timeout] | None = None  # while it can be interrupted

    @property
    def undecided(self) -> Iterable[Submission]:
        """The submissions that are not decided yet, in no special order."""
        return (one.submission for one in self._undecided.values())

    def add(self, submission: Submission) -> None:
        """Queue a submission; ignored if it is in the queue already."""
        if submission.number not in self._undecided:
            one = self._undecided[submission.number] = _Undecided(submission)
            self._queue.put(one.owner, one)
            self._limit_turn()
            self._say_positions()
            self._news.set()

    def follow(self, number: int, follower: Follower) -> bool:
        """Send a follower all progress so far and to come; False if decided or unknown."""
        one = self._undecided.get(number)
        if one is None:
            return False
        for progress in one.said:
            follower(progress)
        one.followers[follower] = None
        return True

    def forget(self, follower: Follower) -> None:
        """Send this follower no more progress."""
        for one in self._undecided.values():
            one.followers.pop(follower, None)

    def expected_s(self, number: int) -> float | None:
        """Estimate the seconds until a submission is decided; None if that is unknown."""
        each = self.mean_s
        if each is None or number not in self._undecided:
            return None
        position = self.position(number) or 0
        left = max(0.0, each - (self._clock() - self._began_at)) if self._is_busy else 0.0
        return left + position * each

    @property
    def mean_s(self) -> float | None:
        """The mean seconds of the latest decisions; None before the first one."""
        return fmean(seconds for _, seconds in self._took_s) if self._took_s else None

    def stands_still(self, for_s: float) -> bool:
        """Return whether the current submission was begun more than `for_s` seconds ago."""
        return self._is_busy and self._clock() - self._began_at > for_s

    def position(self, number: int) -> int | None:
        """Return a submission's place in the queue, from 1; None if it does not wait."""
        places = enumerate(self._in_order(), 1)
        return next((place for place, waiting in places if waiting.number == number), None)

    async def run(self) -> None:
        """Decide the queued submissions, for ever."""
        while True:
            while not self._queue:
                self._used_s.clear()  # nobody had to wait for the time that was used
                self._news.clear()
                await self._news.wait()
            one = self._queue.take()
            self._began_at = self._clock()
            try:
                is_decided = await self._decide(one)
            except Exception as error:
                if _can_pass(error):
                    log.warning("submission %d is decided later: %s", one.number, error)
                    self._used_s[one.owner] += self._clock() - self._began_at
                    self._queue.put(one.owner, one)
                    await asyncio.sleep(_AGAIN_S)
                    continue
                log.exception("submission %d cannot be decided", one.number)
                self._undecided.pop(one.number, None)
                is_decided = True
            took_s = self._clock() - self._began_at
            self._used_s[one.owner] += took_s
            if is_decided:
                self._took_s.append((one.owner, took_s))
            else:
                one.spent_s += took_s
                self._queue.put(one.owner, one)
            self._say_positions()

    # --- within ---

    @property
    def _is_busy(self) -> bool:
        return len(self._undecided) > len(self._queue)

    def _in_order(self) -> Iterable[_Undecided]:
        """Return the waiting submissions in the order in which they are expected to be taken."""
        return self._queue.in_order(self.mean_s or _UNKNOWN_S)

    def _limit_turn(self) -> None:
        """Set when the current submission is interrupted: only while other owners wait.

        Each new turn may take longer by the time of the earlier ones, so it is decided some day.
        """
        if self._turn is None:
            return
        one, turn = self._turn
        if turn.expired():
            return  # the check's process is being killed
        owner = one.owner
        waiting = [self._used_s[other] for other in self._queue.users if other != owner]
        if not waiting:
            turn.reschedule(None)
            return
        took = [seconds for other, seconds in self._took_s if other != owner]
        # On a slow machine all may take longer than is usual.
        took = took or [used for other, used in self._used_s.items() if used and other != owner]
        share_s = _MEDIANS * median(took) if took else _UNKNOWN_S
        share_s += one.spent_s
        # If it were interrupted earlier, the next turn would be this owner's again.
        least_s = min(waiting) - self._used_s[owner]
        turn.reschedule(self._began_at + max(share_s, least_s))

    async def _decide(self, one: _Undecided) -> bool:
        """Build and check a submission and write the outcome; False if it was interrupted."""
        try:
            async with asyncio.timeout(None) as turn:
                try:
                    self._turn = one, turn
                    self._limit_turn()
                    built = await self._built(one)
                    verdict = await self._checked(one, built)
                finally:
                    self._turn = None
            if not verdict.games:
                raise UsageError(verdict.why)
        except Exception as error:
            if turn.expired():
                waiting = SubmissionState.WAITING
                await asyncio.to_thread(self._submissions.began, one.number, waiting)
                return False
            if _can_pass(error):
                raise
            why = str(error)
            if not isinstance(error, ArenaError):
                log.exception("the arena failed at submission %d", one.number)
                why = "the arena failed at this; its instructor can say why"
            await self._refuse(one, why)
            return True
        decided = await asyncio.to_thread(
            self._submissions.accepted,
            one.number,
            built.manifest,
            verdict.games,
            f"passed the check in {', '.join(verdict.games)}",
            time.time(),
        )
        in_play = [row.game for row in await self._in_play(one) if row.submission == one.number]
        where = f"in play in {', '.join(in_play)}" if in_play else "not in play: a later one is"
        await self._decided(one, decided, f"v{decided.version} is {where}")
        return True

    async def _built(self, one: _Undecided) -> BuiltProgram:
        await self._begin(one, SubmissionState.BUILDING)
        try:
            built = await self._builds.built(one.submission.program)
        except BuildFailed as error:
            await asyncio.to_thread(self._submissions.log, one.number, "build", error.log)
            raise
        if built.log:  # empty if an earlier, interrupted turn made the build
            await asyncio.to_thread(self._submissions.log, one.number, "build", built.log)
        languages = self._settings.languages
        if languages and built.manifest.language not in languages:
            taken = ", ".join(languages)
            raise UsageError(f"expected a bot in {taken}, got one in {built.manifest.language}")
        return built

    async def _checked(self, one: _Undecided, built: BuiltProgram) -> CheckVerdict:
        await self._begin(one, SubmissionState.CHECKING)
        lines: list[str] = []

        def tell(said: CheckStep) -> None:
            lines.extend(said.lines)
            self._say(one, "checking", said.step, said.status, said.text)

        job = CheckJob(
            folder=str(built.folder),
            manifest=built.manifest,
            hidden=self._hidden,
            name=one.owner,
            rounds=_ROUNDS,
            limits=self._limits,
            seed=secrets.randbits(_SEED_BITS),
        )
        try:
            verdict = await check(self._check, job, self._settings.check_s, tell)
            lines += verdict.lines
        finally:
            log = "\n".join(lines)
            await asyncio.to_thread(self._submissions.log, one.number, "check", log)
        return verdict

    async def _refuse(self, one: _Undecided, why: str) -> None:
        others = {row.version for row in await self._in_play(one) if row.submission != one.number}
        stay = " and ".join(f"v{version}" for version in sorted(others))
        stay = f"{stay} {'stay' if len(others) > 1 else 'stays'} in play"
        text = f"{why.rstrip('.')}; {stay if others else 'nothing of yours is in play yet'}"
        await asyncio.to_thread(self._submissions.refused, one.number, text, time.time())
        await self._builds.folders.drop(one.submission.program)
        decided = await asyncio.to_thread(self._submissions.get, one.number)
        await self._decided(one, decided, text)

    async def _in_play(self, one: _Undecided) -> list[InPlay]:
        """Return the versions that the submission's owner has in play."""
        in_play = await asyncio.to_thread(self._submissions.in_play)
        return [row for row in in_play if row.owner == one.owner]

    async def _decided(self, one: _Undecided, decided: Submission, text: str) -> None:
        self._undecided.pop(one.number, None)
        await self._on_decided()
        one.say(Progressing(one.number, decided.state, text=text, version=decided.version))

    async def _begin(self, one: _Undecided, state: SubmissionState) -> None:
        await asyncio.to_thread(self._submissions.began, one.number, state)
        self._say(one, state)

    def _say(
        self, one: _Undecided, state: str, step: str = "", status: str = "", text: str = ""
    ) -> None:
        expected_s = self.expected_s(one.number)
        one.say(Progressing(one.number, state, step, status, text, expected_s=expected_s))

    def _say_positions(self) -> None:
        for position, one in enumerate(self._in_order(), 1):
            if not one.said or one.said[-1].position != position:
                one.say(
                    Progressing(
                        one.number,
                        "waiting",
                        text=_AFTER_OTHERS if one.spent_s else "",
                        position=position,
                        expected_s=self.expected_s(one.number),
                    )
                )


def _can_pass(error: BaseException) -> bool:
    """Return whether the error may pass: the database is locked or away, or resources are short."""
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return can_pass(error) or is_scarce(error) or is_full
