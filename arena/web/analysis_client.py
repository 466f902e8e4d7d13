"""The arena's side of the process that analyses: who waits, what is known, when it may compute.

One task is done at a time. People take turns, and each may have a few waiting; who asks for what
another has asked for shares it. Results are cached in memory: none has to survive the arena. The
process is paused while bots that the arena has launched compute, but for one second in ten: on a
ladder that never rests there would be no analysis at all, and the system gives that second only to
cores that nobody else wants (SCHED_IDLE). It starts with the first task, and ends when it is idle.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import math
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from arena.records.visibility import Viewer, ViewerKind
from arena.server.fair_queue import FairQueue
from arena.storage.store import Store
from arena.web.analysis_documents import AnalysisState, AnalysisStatus
from arena.web.analysis_process import PAUSE, RESUME
from arena.web.analysis_tasks import AnalysisQuestion, AnalysisTask
from arena.web.answering_process import Header
from arena.web.play.recent import PersonalMatch
from arena.web.reader_client import ReaderAnswer, ReaderClient, address_of
from arena.web.reader_client_process import ReaderDied, ReaderProcess
from arena.web.sized_cache import SizedCache

__all__ = ["AnalysisClient"]

log = logging.getLogger(__name__)

_MOST_WAITING = 200
_MOST_PUBLIC = 100  # then people without a login wait outside: many addresses are one person
_MOST_OF_ONE = 3  # that wait, of one person, or of all without a login at one address
_UNASKED_S = 120.0  # then nobody waits any more; browsers let hidden pages ask once a minute
_IDLE_S = 60.0  # then the process is not needed for now
_CACHED_BYTES = 16 << 20  # most are a few kilobytes, compressed
_LEAST_BYTES = _CACHED_BYTES // 2_000  # as which small ones count
_FRESH_S = 60.0  # how long the strength of a bot stands at least, whatever it plays
_REST = 9.0  # times what it took: how long it stands
_AGAIN_S = 10.0  # how long a failure is told that asking again may mend
_DEATHS = 1_000  # of so many tasks it is known that the process has died of them
_QUIET_S = 0.3  # without a launched bot that computes: longer than between two questions
_SLICE_S, _SLICES_S = 1.0, 10.0  # it computes for one second in ten in any case

_DIED = "the process that analyses has ended at this; ask again to have it tried once more"
_DIED_AGAIN = "the process that analyses has ended at this twice, and does not try it again"
_NOT_THERE = "the process that analyses does not start, the arena's log says why"
_FAILED = "the arena failed at this; its log says why"
_YOURS = f"{_MOST_OF_ONE} of your analyses wait already; ask again when one of them is done"
_BUSY = "too many analyses wait; ask again in some minutes"
_PAUSED = "waits while bots play that the arena has launched"

_Subject: TypeAlias = AnalysisTask  # one whose `last` and `matches` are 0


class _PendingTask(msgspec.Struct, eq=False):
    """A task that waits or is done now; `user` has asked for it first, somebody at `asked_at`."""

    task: AnalysisTask
    user: str
    asked_at: float
    personal_match: PersonalMatch | None
    done: int = 0
    of: int = 0


class _Outcome(msgspec.Struct, frozen=True):
    """What came of a task; it stands for that task if `is_final`, and for its subject `until`."""

    task: AnalysisTask
    answer: ReaderAnswer
    until: float
    is_final: bool


class AnalysisClient:
    """Has what people ask for analysed, and says how far it is.

    `reader` says what a viewer may ask for; of `store` only the address is used.
    """

    def __init__(self, store: Store, reader: ReaderClient, *, idle_s: float = _IDLE_S) -> None:
        where = address_of(store)
        self.process = ReaderProcess(where, "arena.web.analysis_process", "analyses")
        self._reader = reader
        self._idle_s = idle_s
        self._clock = asyncio.get_running_loop().time
        self._asked = 0
        self._queue = FairQueue[_PendingTask]()
        self._pending: dict[_Subject, _PendingTask] = {}  # the one that is done now, too
        self._running: _PendingTask | None = None
        self._outcomes = SizedCache[_Subject, _Outcome](
            _CACHED_BYTES, lambda outcome: max(len(outcome.answer.body), _LEAST_BYTES)
        )
        self._deaths = SizedCache[_Subject, int](_DEATHS)
        self._may_compute = asyncio.Event()
        self._may_compute.set()
        self._computed_at = -_QUIET_S  # when a launched bot was last seen to compute
        self._work = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to do, and so it matters what the bots do."""
        return bool(self._pending)

    async def ask(
        self,
        path: str,
        query: Mapping[str, str],
        viewer: Viewer,
        personal_match: PersonalMatch | None = None,
        address: str = "",
        packs: bool = False,
    ) -> ReaderAnswer:
        """The state of an analysis, which is queued if it is new; the arguments are the reader's.

        Nothing is raised.
        """
        answer = await self._reader.ask(path, query, viewer, personal_match, address)
        if answer.status != 200:
            return answer
        task = msgspec.json.decode(answer.body, type=AnalysisTask)
        if task.refused:
            return _answer(task.status(AnalysisState.REFUSED, task.refused))
        outcome = self._outcomes.get(task.subject)
        if outcome is not None and self._stands(outcome, task):
            return outcome.answer if packs else _unpacked(outcome.answer)
        is_public = viewer.kind is ViewerKind.PUBLIC
        user = address if is_public else f"{viewer.kind.value} {viewer.name}"
        room = _MOST_PUBLIC if is_public else _MOST_WAITING
        return _answer(self._status(task, user, room, personal_match))

    def tick(self, computing: bool) -> None:
        """Note whether a bot that the arena has launched computes; several times a second."""
        now = self._clock()
        if computing:
            self._computed_at = now
        may = now - self._computed_at >= _QUIET_S or now % _SLICES_S < _SLICE_S
        if may == self._may_compute.is_set():
            return
        if may:
            self._may_compute.set()
        else:
            self._may_compute.clear()
        self.process.order(RESUME if may else PAUSE)

    async def close(self) -> None:
        """End the process, and wait for its end; what waits is not done any more."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])
        await self.process.close()

    # --- within ---

    def _stands(self, outcome: _Outcome, task: AnalysisTask) -> bool:
        return (outcome.is_final and outcome.task == task) or self._clock() < outcome.until

    def _status(
        self, task: AnalysisTask, user: str, room: int, personal_match: PersonalMatch | None
    ) -> AnalysisStatus:
        """How far a task is, which is queued if it is new and fewer than `room` wait."""
        pending = self._pending.get(task.subject)
        if pending is None:
            waiting = list(self._queue)
            if len(waiting) >= room:
                return task.status(AnalysisState.REFUSED, _BUSY)
            if sum(other.user == user for other in waiting) >= _MOST_OF_ONE:
                return task.status(AnalysisState.REFUSED, _YOURS)
            pending = _PendingTask(task, user, 0.0, personal_match)
            self._pending[task.subject] = pending
            self._queue.put(user, pending)
            self._work.set()
            if self._worker is None:
                self._worker = asyncio.create_task(self._run())
        pending.asked_at = self._clock()
        text = "" if self._may_compute.is_set() else _PAUSED
        if pending is not self._running:
            place = list(self._queue).index(pending) + 1
            return task.status(AnalysisState.QUEUED, text, place=place)
        running = task.status(AnalysisState.RUNNING, text)
        return msgspec.structs.replace(running, done=pending.done, of=pending.of)

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._work.wait(), self._idle_s)
            except TimeoutError:
                await self.process.end()
                await self._work.wait()
            self._work.clear()
            while self._queue:
                await self._may_compute.wait()
                pending = self._queue.take()
                if self._clock() - pending.asked_at < _UNASKED_S:
                    self._running = pending
                    began = self._clock()
                    outcome = await self._outcome(pending, began)
                    self._outcomes.put(pending.task.subject, outcome)
                    self._running = None
                del self._pending[pending.task.subject]

    async def _outcome(self, pending: _PendingTask, began: float) -> _Outcome:
        """Have a task done; nothing is raised."""
        task, process = pending.task, self.process
        try:
            if process.pid is None:
                await process.start()
                if not self._may_compute.is_set():
                    process.order(PAUSE)
            self._asked += 1
            question = AnalysisQuestion(
                id=self._asked, task=task, personal_match=pending.personal_match
            )
            header, body = await process.ask(question, lambda news: _note(pending, news))
        except (ReaderDied, OSError) as error:
            await process.end(at_once=True)
            return self._failed(task, error)
        except Exception:  # the worker has to live on for the other tasks
            log.exception("the arena failed at %s of %s", task.kind.value, task.id)
            await process.end(at_once=True)
            failed = task.status(AnalysisState.FAILED, _FAILED)
            return _Outcome(task, _answer(failed), math.inf, True)
        now = self._clock()
        until = now + max(_FRESH_S, _REST * (now - began))
        return _Outcome(task, _documented(header, body), until, True)

    def _failed(self, task: AnalysisTask, error: Exception) -> _Outcome:
        """What is told of a task at which the process has died, or did not start."""
        deaths = self._deaths.get(task.subject) or 0
        if self.process.has_answered:
            deaths += 1
            self._deaths.put(task.subject, deaths)
            text = _DIED if deaths == 1 else _DIED_AGAIN
            log.warning("the process that analyses has died of %s of %s", task.kind.value, task.id)
        else:
            text = _NOT_THERE
            log.warning("the process that analyses does not start: %s", error)
        is_final = deaths > 1
        until = math.inf if is_final else self._clock() + _AGAIN_S
        return _Outcome(task, _answer(task.status(AnalysisState.FAILED, text)), until, is_final)


def _note(pending: _PendingTask, news: bytes) -> None:
    pending.done, pending.of = msgspec.json.decode(news, type=tuple[int, int])


def _answer(status: AnalysisStatus) -> ReaderAnswer:
    return ReaderAnswer(200, msgspec.json.encode(status))


def _documented(header: Header, body: bytes) -> ReaderAnswer:
    return ReaderAnswer(200, body, header.etag, header.is_packed)


def _unpacked(answer: ReaderAnswer) -> ReaderAnswer:
    if not answer.is_packed:
        return answer
    return msgspec.structs.replace(answer, body=gzip.decompress(answer.body), is_packed=False)
