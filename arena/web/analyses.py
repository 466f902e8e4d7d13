"""Queues the analyses that people request on the page, and caches the results.

One task is done at a time, as idle work. People take turns, and each may have a few tasks waiting;
equal requests share one task. Results are cached in memory only: none needs to survive the arena.
"""

from __future__ import annotations

import asyncio
import gzip
import math
from collections import Counter
from functools import partial
from typing import TypeAlias

import msgspec

from arena.records.visibility import ViewerKind
from arena.web.document_reader import DocumentReader
from arena.web.documents import AnalysisState, AnalysisStatus
from arena.web.questions import AnalysisTask, PageAnswer, SideQuestion
from arena.web.side_process import Failure, SideJob, SideProcess
from arena.web.sized_cache import SizedCache

__all__ = ["Analyses"]

_MOST_WAITING = 200
_MOST_PUBLIC = 100  # for people without a login, as one person may have many addresses
_MOST_OF_ONE = 3  # waiting tasks of one person, or of all without a login at one address
_CACHED_BYTES = 16 << 20  # most are a few kilobytes, compressed
_LEAST_BYTES = _CACHED_BYTES // 2_000  # smaller results count as this many
_FRESH_S = 60.0  # a bot's strength stays valid at least this long, even after new matches
_REST = 9.0  # or this many times as long as the analysis took
_AGAIN_S = 10.0  # a failure that may be temporary is repeated this long without a retry

_DIED = "the process that analyses has ended at this; ask again, and it is tried once more"
_DIED_AGAIN = "the process that analyses has ended at this twice, and does not try it again"
_NOT_THERE = "the process that analyses does not start, the arena's log says why"
_FAILED = "the arena failed at this; its log says why"
_YOURS = f"{_MOST_OF_ONE} of your analyses wait already; ask again when one of them is done"
_BUSY = "too many analyses wait; ask again in some minutes"
_PAUSED = "waits while bots play that the arena has launched"

_Subject: TypeAlias = AnalysisTask  # with `last` and `matches` set to 0


class _Outcome(msgspec.Struct, frozen=True):
    """The result of a task; valid for that task if `is_final`, and for its subject until `until`.

    `deaths` is how often the process died during the task.
    """

    task: AnalysisTask
    answer: PageAnswer
    until: float
    is_final: bool = True
    deaths: int = 0


class Analyses:
    """Lets `process` do the analyses that people request, and reports their progress.

    `reader` decides what a viewer may request.
    """

    def __init__(self, process: SideProcess, reader: DocumentReader) -> None:
        self._process = process
        self._reader = reader
        self._clock = asyncio.get_running_loop().time
        self._outcomes = SizedCache[_Subject, _Outcome](
            _CACHED_BYTES, lambda outcome: max(len(outcome.answer.body), _LEAST_BYTES)
        )

    async def ask(self, address: str, question: SideQuestion) -> PageAnswer:
        """Return the state of an analysis, after queueing it if it is new. Never raises."""
        packs, question = question.packs, msgspec.structs.replace(question, packs=False)
        answer = await self._reader.ask(address, question)
        if answer.status != 200:
            return answer
        task = msgspec.json.decode(answer.body, type=AnalysisTask)
        if task.refused:
            return _answer(task.status(AnalysisState.REFUSED, task.refused))
        outcome = self._outcomes.get(task.subject)
        if outcome is not None and (
            (outcome.is_final and outcome.task == task) or self._clock() < outcome.until
        ):
            answer = outcome.answer
            if packs or not answer.is_packed:
                return answer
            body = gzip.decompress(answer.body)
            return msgspec.structs.replace(answer, body=body, is_packed=False)
        viewer = question.viewer
        is_public = viewer.kind is ViewerKind.PUBLIC
        user = address if is_public else f"{viewer.kind.value} {viewer.name}"
        job = self._process.pending(task.subject)
        if job is None:
            waiting = self._waiting()
            if len(waiting) >= (_MOST_PUBLIC if is_public else _MOST_WAITING):
                return _answer(task.status(AnalysisState.REFUSED, _BUSY))
            if sum(job.user == user for job in waiting) >= _MOST_OF_ONE:
                return _answer(task.status(AnalysisState.REFUSED, _YOURS))
            question = msgspec.structs.replace(question, task=task, packs=True)
            job = self._process.ask(user, task.subject, question)
            job.answer.add_done_callback(partial(self._ended, task, job))
        job.asked_at = self._clock()
        return _answer(self._status(task, job, user))

    # --- internal ---

    def _waiting(self) -> list[SideJob]:
        """Return the analyses in the queue, the next one first."""
        return [job for job in self._process.waiting if job.question.task is not None]

    def _status(self, task: AnalysisTask, job: SideJob, user: str) -> AnalysisStatus:
        """Return the progress of a task, in the form that `user` may see."""
        text = _PAUSED if self._process.is_paused else ""
        waiting = self._waiting()
        if job in waiting:
            before = Counter(_shown(each.user, user) for each in waiting[: waiting.index(job)])
            who = ", ".join(f"{many} of {name}" for name, many in before.items())
            text = "; ".join(filter(None, (text, f"before it: {who}" if who else "")))
            return task.status(AnalysisState.QUEUED, text, place=waiting.index(job) + 1)
        running = task.status(AnalysisState.RUNNING, text)
        return msgspec.structs.replace(running, done=job.done, of=job.of)

    def _ended(
        self, task: AnalysisTask, job: SideJob, answer: asyncio.Future[PageAnswer | Failure]
    ) -> None:
        """Cache the result of a task, unless the job was dropped."""
        if answer.cancelled():
            return
        now, found = self._clock(), answer.result()
        if isinstance(found, Failure):
            outcome = self._failed(task, found)
        else:
            took_s = now - (job.began_at or now)
            outcome = _Outcome(task, found, now + max(_FRESH_S, _REST * took_s))
        self._outcomes.put(task.subject, outcome)

    def _failed(self, task: AnalysisTask, failure: Failure) -> _Outcome:
        """Make the outcome of a task that failed, such as by the death of the process."""
        before = self._outcomes.get(task.subject)
        deaths = (before.deaths if before else 0) + (failure is Failure.DIED)
        texts = {Failure.DIED: _DIED if deaths == 1 else _DIED_AGAIN, Failure.NOT_THERE: _NOT_THERE}
        is_final = deaths > 1 or failure not in texts
        until = math.inf if is_final else self._clock() + _AGAIN_S
        status = task.status(AnalysisState.FAILED, texts.get(failure, _FAILED))
        return _Outcome(task, _answer(status), until, is_final, deaths)


def _shown(user: str, to: str) -> str:
    """Name the user of an analysis for another user; only instructors see names."""
    kind, _, name = user.partition(" ")
    if user == to:
        return "yours"
    is_told = to.partition(" ")[0] == ViewerKind.INSTRUCTOR.value
    return name if is_told and kind == ViewerKind.OWNER.value else "others"


def _answer(status: AnalysisStatus) -> PageAnswer:
    return PageAnswer(200, msgspec.json.encode(status))
