"""The arena's side of the reader process (`arena/web/reader_process.py`): queue, cache, restarts.

The process gets one question at a time, so that it is known which one it died of. Addresses take
turns, as one may ask for hundreds of long matches. A document that a whole class asks for in the
same second is read once, and a question that nobody waits for any more is dropped. Nothing here
waits for a disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from arena.records.visibility import Viewer
from arena.server.fair_queue import FairQueue
from arena.storage.store import Store
from arena.web.documents import error
from arena.web.play.recent import PersonalMatch
from arena.web.reader_client_process import ReaderDied, ReaderProcess
from arena.web.reader_questions import ReaderQuestion
from arena.web.sized_cache import SizedCache
from protocol.errors import one_line

__all__ = ["ReaderAnswer", "ReaderClient", "address_of"]

log = logging.getLogger(__name__)

_FRESH_S = 1.0  # how long a document is cached
_CACHED_BYTES = 32 << 20
_LEAST_BYTES = _CACHED_BYTES // 200  # as which small documents count: at most 200 are cached
_MOST_S = 60.0  # for one document, as it delays all others
_RESTART_S = 2.0  # after a process that died before its first answer
_MOST_WAITING = 1_000

_DIED = (
    "reading this has ended the process that reads for the page; "
    "it starts again with the next question"
)
_NOT_THERE = (
    "the process that reads for the page does not start, the arena's log says why; "
    "try again in some seconds"
)
_SLOW = "this took too long to read; try again when less is played"
_BUSY = "too much is asked at once; try again in some seconds"
_CLOSED = "the arena is closing"
_FAILED = "the arena failed at this question; its log says why"

_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...], Viewer, bool]


class ReaderAnswer(msgspec.Struct, frozen=True):
    """A status of HTTP, and a document or `{"error": …}`, compressed with gzip if `is_packed`.

    `etag` is the same for the same document, compressed or not; None where there is no document.
    """

    status: int
    body: bytes
    etag: str | None = None
    is_packed: bool = False


class _PendingQuestion(msgspec.Struct, eq=False):
    """A question, and the number of requests that wait for its answer."""

    key: _Key
    question: ReaderQuestion
    answer: asyncio.Future[ReaderAnswer]
    waiters: int = 0


def address_of(store: Store) -> str:
    """The file of a database, or its URL with the password: what `ReaderProcess` takes."""
    url = store.engine.url
    is_file = url.get_backend_name() == "sqlite" and url.database
    return (url.database if is_file else url.render_as_string(hide_password=False)) or ""


class ReaderClient:
    """Asks the reader process for documents from the database, and caches each for `fresh_s`.

    Of `store` only the address is used. `asked` counts questions that the cache could not answer.
    """

    def __init__(self, store: Store, *, fresh_s: float = _FRESH_S) -> None:
        self.process = ReaderProcess(address_of(store))
        self._fresh_s = fresh_s
        self._loop = asyncio.get_running_loop()
        self._start_at = 0.0
        self.asked = 0
        self._queue = FairQueue[_PendingQuestion]()
        self._pending: dict[_Key, _PendingQuestion] = {}
        # Until when an answer is fresh, and the answer.
        self._cache = SizedCache[_Key, tuple[float, ReaderAnswer]](
            _CACHED_BYTES, lambda cached: max(len(cached[1].body), _LEAST_BYTES)
        )
        self._worker: asyncio.Task[None] | None = None
        self._is_closed = False

    async def ask(
        self,
        path: str,
        query: Mapping[str, str],
        viewer: Viewer,
        personal_match: PersonalMatch | None = None,
        address: str = "",
        packs: bool = False,
    ) -> ReaderAnswer:
        """A document, or an error as `{"error": …}`; nothing is raised.

        `personal_match` is the match that it is about, if that is not in the database. Addresses
        take turns. With `packs` it is compressed where that is worth it.
        """
        key = (path, tuple(sorted(query.items())), viewer, packs)
        cached = self._cache.get(key)
        if cached is not None and self._loop.time() < cached[0]:
            return cached[1]
        pending = self._pending.get(key)
        if pending is None:
            if self._is_closed or len(self._queue) >= _MOST_WAITING:
                return _failure(_CLOSED if self._is_closed else _BUSY)
            self.asked += 1
            question = ReaderQuestion(
                id=self.asked,
                path=path,
                query=dict(query),
                viewer=viewer,
                personal_match=personal_match,
                packs=packs,
            )
            pending = _PendingQuestion(key, question, self._loop.create_future())
            pending.answer.add_done_callback(lambda done: self._answered(key, done))
            self._pending[key] = pending
            self._queue.put(address, pending)
            if self._worker is None:
                self._worker = asyncio.create_task(self._work())
        pending.waiters += 1
        try:
            return await asyncio.shield(pending.answer)  # others may wait for it, too
        finally:
            pending.waiters -= 1

    async def close(self) -> None:
        """Answer all pending questions with an error, end the process, and wait for its end."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])
        for pending in tuple(self._pending.values()):
            if not pending.answer.done():
                pending.answer.set_result(_failure(_CLOSED))
        await self.process.close()

    # --- within ---

    async def _work(self) -> None:
        """Have the queued questions answered one after another, until there are no more."""
        try:
            while self._queue:
                pending = self._queue.take()
                if not pending.waiters:
                    del self._pending[pending.key]
                    continue
                answer = await self._answer(pending.question)
                if not pending.answer.done():
                    pending.answer.set_result(answer)
        finally:
            self._worker = None

    async def _answer(self, question: ReaderQuestion) -> ReaderAnswer:
        process = self.process
        try:
            async with asyncio.timeout(_MOST_S):
                if process.pid is None:
                    if self._loop.time() < self._start_at:
                        return _failure(_NOT_THERE)
                    await process.start()
                header, body = await process.ask(question)
        except TimeoutError:
            log.warning("the page's reader took too long for %s", question.path)
            await process.end(at_once=True)
            return _failure(_SLOW)
        except ReaderDied:
            await process.end(at_once=True)
            if not process.has_answered:
                self._start_at = self._loop.time() + _RESTART_S
                return _failure(_NOT_THERE)
            log.warning("the page's reader has died of %s", one_line(question.path))
            return _failure(_DIED, 500)
        except OSError as error:
            log.warning("the page's reader cannot be started: %s", error)
            self._start_at = self._loop.time() + _RESTART_S
            return _failure(_NOT_THERE)
        except Exception:  # the worker has to live on for the other questions
            log.exception("the arena failed at a question for the page's reader")
            await process.end(at_once=True)
            return _failure(_FAILED, 500)
        etag = header.etag if header.status == 200 else None
        return ReaderAnswer(header.status, body, etag, header.is_packed)

    def _answered(self, key: _Key, done: asyncio.Future[ReaderAnswer]) -> None:
        """Cache an answer for a moment, unless it is a failure or too large."""
        del self._pending[key]
        if done.cancelled():
            return
        answer = done.result()
        if answer.status < 500 and len(answer.body) <= _CACHED_BYTES:
            self._cache.put(key, (self._loop.time() + self._fresh_s, answer))


def _failure(text: str, status: int = 503) -> ReaderAnswer:
    return ReaderAnswer(status, error(text))
