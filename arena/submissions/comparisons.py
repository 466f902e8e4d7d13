"""Two versions of one owner play each other, in a process of the lowest priority, one at a time."""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from arena.sandbox.manifest import ProgramManifest
from arena.submissions.check_process import last_words, worker
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits
from protocol.submitting import Comparing

__all__ = ["ComparedVersion", "ComparisonJob", "Comparisons"]

_MOST_S = 900.0  # then the sentence so far is the last
_A_DAY_S = 86_400.0


class ComparedVersion(Struct, frozen=True):
    """A built program, and how it is called in the sentence."""

    name: str
    folder: str
    manifest: ProgramManifest


class ComparisonJob(Struct, frozen=True, kw_only=True):
    """What the process is told; the programs do not see what is `hidden`."""

    game: str
    hidden: tuple[str, ...]
    versions: tuple[ComparedVersion, ComparedVersion]
    limits: Limits


class _Waiting:
    """A comparison in the queue; `before` counts those ahead of it of the same owner."""

    def __init__(self, owner: str, before: int) -> None:
        self.owner = owner
        self.before = before
        self.news = asyncio.Event()


class Comparisons:
    """Plays the comparisons of an arena in turn, up to a daily limit for each owner.

    Args:
        command: the command line of the process, which writes a `Comparing` a line.
    """

    def __init__(self, command: Sequence[str], a_day: int) -> None:
        self._command = command
        self._a_day = a_day
        self._began: dict[str, list[float]] = {}
        self._queue: list[_Waiting] = []  # the first one is being played

    def spend(self, owner: str) -> None:
        """Count a comparison; raises `UsageError` if it is one too many within a day."""
        now = time.monotonic()
        latest = [at for at in self._began.get(owner, ()) if at > now - _A_DAY_S]
        if len(latest) >= self._a_day:
            raise UsageError(f"expected at most {self._a_day} comparisons a day; try tomorrow")
        self._began[owner] = [*latest, now]

    async def run(self, owner: str, job: ComparisonJob, tell: Callable[[Comparing], None]) -> None:
        """Play when it is the owner's turn, and say what is known whenever more is.

        Raises `ArenaError` if it fails.
        """
        mine = _Waiting(owner, sum(other.owner == owner for other in self._queue))
        first = min(1, len(self._queue))
        self._tell_places()
        insort(self._queue, mine, lo=first, key=lambda other: other.before)
        try:
            while (ahead := self._queue.index(mine)) > 0:
                tell(Comparing("other comparisons are played first", position=ahead))
                await mine.news.wait()
                mine.news.clear()
            await self._play(job, tell)
        finally:
            self._queue.remove(mine)
            self._tell_places()

    def _tell_places(self) -> None:
        """Have those that wait look at their places once this turn of the event loop is over."""
        for waiting in self._queue:
            waiting.news.set()

    async def _play(self, job: ComparisonJob, tell: Callable[[Comparing], None]) -> None:
        last = Comparing("nothing is known yet")
        tell(last)
        async with worker(self._command, job) as (lines, errors):
            try:
                async with asyncio.timeout(_MOST_S):
                    while not last.is_over:
                        if not (line := await lines.readline()):
                            raise ArenaError(f"the comparison has failed: {last_words(errors)}")
                        last = msgspec.json.decode(line, type=Comparing)
                        tell(last)
            except TimeoutError:
                tell(Comparing(last.text, is_over=True))
