"""A process beside the arena (`arena/web/side_program.py`): its queue, its restarts and its end.

An arena starts the program twice: for documents, which are wanted at once, and for idle work:
analyses and the luck of matches. A process gets one question at a time, so that it is known which
question killed it. Users take turns, as one may ask for hundreds of long matches, and a question
that nobody waits for any more is dropped. Nothing here waits for a disk.

The input of a process is a pipe that only the arena holds, so the process ends with the arena. A
`ProcessPoolExecutor(1)` was tried instead. It can end with the arena too, if it watches its parent.
But its five semaphores stayed in `/dev/shm` when all of the arena's processes were killed at once,
as systemd does, and it needs a second process to clean up after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Hashable, Sequence
from enum import StrEnum

import msgspec

from arena.server.background import BackgroundTasks
from arena.server.fair_queue import FairQueue
from arena.storage.store import Store
from arena.web.questions import PageAnswer, SideQuestion
from arena.web.side_program import IDLE, PAUSE, PROCESSING, RESUME, Header
from protocol.errors import one_line

__all__ = ["Failure", "SideJob", "SideProcess"]

log = logging.getLogger(__name__)

_MOST_S = 60.0  # for one document, as it delays all others
_IDLE_S = 60.0  # without work, after which a process for idle work is ended
_UNASKED_S = 120.0  # after which idle work is not wanted any more; hidden pages ask once a minute
_RESTART_S = 2.0  # pause after a process that died before its first answer
_END_S = 1.0  # for the process to end after its input has ended
_QUIET_S = 0.3  # since a launched bot computed; longer than the gap between two questions
_SLICE_S, _SLICES_S = 1.0, 10.0  # idle work always gets one second in ten
_LONGEST = 500  # characters of a log line


class Failure(StrEnum):
    """Why there is no answer."""

    DIED = "its process has died"
    NOT_THERE = "its process does not start"
    TOO_SLOW = "it took too long"
    FAULT = "the arena failed"
    CLOSED = "the arena is closing"


class SideJob(msgspec.Struct, eq=False):
    """A question of a user, from the queue to its answer; times are on the loop's clock.

    Attributes:
        key: questions with the same key share one job.
        answer: the answer, or why there is none; cancelled if nobody wants it at its turn.
        asked_at: when it was last requested.
        waiters: how many callers await it.
        began_at: None while it waits in the queue.
        done: how many of `of` decisions or matches are done, as last reported by the process.
    """

    user: str
    key: Hashable
    question: SideQuestion
    answer: asyncio.Future[PageAnswer | Failure]
    asked_at: float
    waiters: int = 0
    began_at: float | None = None
    done: int = 0
    of: int = 0


class SideProcess:
    """Sends questions to a process, which is started by the first question.

    Only the address of `store` is used. With `is_idle` the process has the lowest priority, gives
    way to bots, ends when it has nothing to do, and has no time limit for an answer.

    Attributes:
        started: how often a process was started.
        asked: how many questions there were.
        has_answered: whether the latest process has sent anything.
    """

    def __init__(self, store: Store, *, is_idle: bool = False) -> None:
        self.started = self.asked = 0
        self._title = "analyses" if is_idle else "reader"
        self._arguments = [IDLE] if is_idle else []
        self._most_s = None if is_idle else _MOST_S
        self._idle_s = _IDLE_S if is_idle else None
        self._unasked_s = _UNASKED_S if is_idle else 0.0
        self._where = _address_of(store)
        self._clock = asyncio.get_running_loop().time
        self._process: Process | None = None
        self.has_answered = False
        self._start_at = 0.0
        self._listeners = BackgroundTasks()
        self._queue = FairQueue[SideJob]()
        self._jobs: dict[Hashable, SideJob] = {}  # queued jobs, and the running one
        self._has_work = asyncio.Event()
        self._may_work = asyncio.Event()
        self._may_work.set()
        self._computed_at = -_QUIET_S  # when a launched bot last computed
        self._worker: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    @property
    def waiting(self) -> Sequence[SideJob]:
        """The jobs in the queue, the next one first."""
        return tuple(self._queue)

    @property
    def is_busy(self) -> bool:
        """Whether there is any job; only then `give_way` needs to be called."""
        return bool(self._jobs)

    @property
    def is_paused(self) -> bool:
        return not self._may_work.is_set()

    def pending(self, key: Hashable) -> SideJob | None:
        """Return the queued or running job of a key, or None."""
        return self._jobs.get(key)

    def ask(self, user: str, key: Hashable, question: SideQuestion) -> SideJob:
        """Queue a question whose key is not `pending`, and set its `id`."""
        self.asked += 1
        question = msgspec.structs.replace(question, id=self.asked)
        future = asyncio.get_running_loop().create_future()
        job = SideJob(user, key, question, future, self._clock())
        if self._is_closed:
            job.answer.set_result(Failure.CLOSED)
            return job
        self._jobs[key] = job
        self._queue.put(user, job)
        self._has_work.set()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return job

    async def answer_of(self, job: SideJob) -> PageAnswer | Failure:
        """Wait for the answer of a job; several callers may wait for one job."""
        job.waiters += 1
        try:
            return await asyncio.shield(job.answer)
        finally:
            job.waiters -= 1

    def give_way(self, *, computing: bool) -> None:
        """Pause the process while launched bots compute; to be called several times a second.

        One second in ten it runs anyway, or it would never run on a ladder that never rests. The
        system gives it only cores that nothing else needs (SCHED_IDLE).
        """
        now = self._clock()
        if computing:
            self._computed_at = now
        may = now - self._computed_at >= _QUIET_S or now % _SLICES_S < _SLICE_S
        if may and self.is_paused:
            self._may_work.set()
            self._send(RESUME)
        elif not may and not self.is_paused:
            self._may_work.clear()
            self._send(PAUSE)

    async def close(self) -> None:
        """Fail all open questions, end the process, and wait until its last line is logged."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])
        for job in self._jobs.values():
            if not job.answer.done():
                job.answer.set_result(Failure.CLOSED)
        await self._end()
        await self._listeners.ended()

    # --- internal ---

    async def _work(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._has_work.wait(), self._idle_s)
            except TimeoutError:
                await self._end()
                await self._has_work.wait()
            self._has_work.clear()
            while self._queue:
                await self._may_work.wait()
                job = self._queue.take()
                if job.waiters or self._clock() - job.asked_at < self._unasked_s:
                    job.began_at = self._clock()
                    answer = await self._answer(job)
                    if isinstance(answer, Failure):
                        await self._end(at_once=True)
                    job.answer.set_result(answer)
                    await asyncio.sleep(0)  # let callbacks cache the answer before the key is free
                else:
                    job.answer.cancel()
                del self._jobs[job.key]

    async def _answer(self, job: SideJob) -> PageAnswer | Failure:
        path = one_line(job.question.path)
        try:
            async with asyncio.timeout(self._most_s):
                if self.pid is None:
                    if self._clock() < self._start_at:
                        return Failure.NOT_THERE
                    await self._start()
                return await self._asked(job)
        except TimeoutError:
            log.warning("the page's %s took too long for %s", self._title, path)
            return Failure.TOO_SLOW
        except (OSError, EOFError, msgspec.DecodeError) as error:
            if self.has_answered:
                log.warning("the page's %s has died of %s", self._title, path)
                return Failure.DIED
            why = error if isinstance(error, OSError) else "it ends at once"
            log.warning("the page's %s cannot be started: %s", self._title, why)
            self._start_at = self._clock() + _RESTART_S
            return Failure.NOT_THERE
        except Exception:  # the worker must go on for the other questions
            log.exception("the arena failed at a question for the page's %s", self._title)
            return Failure.FAULT

    async def _start(self) -> None:
        """End the previous process and start a new one; raises `OSError`, as without memory."""
        await self._end()
        self.has_answered = False
        self.started += 1
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arena.web.side_program", *self._arguments),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,  # only the arena handles Ctrl-C and a closed terminal
        )
        self._listeners.start(_log_errors(process, self._title))
        self._send(msgspec.json.encode(self._where) + b"\n")
        if self.is_paused:
            self._send(PAUSE)

    def _send(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(line)

    async def _asked(self, job: SideJob) -> PageAnswer:
        """Ask the process for an answer; `OSError`, `EOFError` or `DecodeError` if it died."""
        process, question = self._process, job.question
        assert process is not None, "it was started"
        assert process.stdin is not None, "it was started with one"
        assert process.stdout is not None, "it was started with one"
        self._send(msgspec.json.encode(question) + b"\n")
        await process.stdin.drain()
        while True:
            header = msgspec.json.decode(await process.stdout.readline(), type=Header)
            body = await process.stdout.readexactly(header.bytes)
            if header.id != question.id:
                raise EOFError(f"expected an answer to {question.id}, got one to {header.id}")
            self.has_answered = True
            if header.status != PROCESSING:
                etag = header.etag if header.status == 200 else None
                return PageAnswer(header.status, body, etag, header.is_packed)
            job.done, job.of = msgspec.json.decode(body, type=tuple[int, int])

    async def _end(self, *, at_once: bool = False) -> None:
        """Close the process's input, kill it if it runs on or `at_once`, and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None, "it was started with one"
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 0.0 if at_once else _END_S)
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _address_of(store: Store) -> str:
    """Return the file of a database, or its URL with the password."""
    url = store.engine.url
    is_file = url.get_backend_name() == "sqlite" and url.database
    return (url.database if is_file else url.render_as_string(hide_password=False)) or ""


async def _log_errors(process: Process, title: str) -> None:
    assert process.stderr is not None, "it was started with one"
    while True:
        try:
            line = await process.stderr.readline()
        except ValueError:  # a line longer than the stream's buffer
            continue
        if not line:
            return
        text = line.decode(errors="replace").rstrip()
        log.warning("the page's %s: %s", title, one_line(text, _LONGEST))
