"""The arena's side of the process that reads for the page (`arena/web/reader_process.py`): started when somebody asks, and again when it has died.

It gets one question at a time, so that it is known which one it died of: one of each address in turn, as somebody may ask for hundreds of
long matches. What a whole class asks for in the same second is asked once, and what nobody waits for any more is not asked.
Nothing here waits for a disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from arena.records.visibility import Viewer
from arena.storage.store import Store
from arena.web.documents import error
from arena.web.fair_queue import FairQueue
from arena.web.play.recent import PersonalMatch
from arena.web.reader_client_process import ReaderDied, ReaderProcess
from arena.web.reader_questions import ReaderQuestion
from protocol.errors import one_line

__all__ = ["ReaderAnswer", "ReaderClient"]

log = logging.getLogger(__name__)

_FRESH_S = 1.0  # so old a document may be
_KEPT = 200  # documents
_KEPT_BYTES = 32 << 20
_MOST_S = 60.0  # for one document: whatever takes longer holds up all the others
_AGAIN_S = 2.0  # before it is started again, if it has died before it could say anything
_MOST_WAITING = 1_000

_DIED = "reading this has ended the process that reads for the page; it starts again with the next question"
_NOT_THERE = "the process that reads for the page does not start, the arena's log says why; try again in some seconds"
_SLOW = "this took too long to read; try again when less is played"
_BUSY = "too much is asked at once; try again in some seconds"
_CLOSED = "the arena is closing"
_FAILED = "the arena failed at this question; its log says why"

_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...], Viewer, bool]


class ReaderAnswer(msgspec.Struct, frozen=True):
    """What came of a question.

    Attributes:
        status: of HTTP.
        body: a document, or `{"error": …}`.
        etag: the same for the same document, packed or not; None if it is none.
        is_packed: whether the body is packed with gzip.
    """

    status: int
    body: bytes
    etag: str | None = None
    is_packed: bool = False


class _PendingQuestion:
    """A question, and how many wait for its answer."""

    __slots__ = ("coming", "key", "question", "waiters")

    def __init__(
        self, key: _Key, question: ReaderQuestion, coming: asyncio.Future[ReaderAnswer]
    ) -> None:
        self.key = key
        self.question = question
        self.coming = coming
        self.waiters = 0


class ReaderClient:
    """Documents from the database, read by a process of their own.

    Args:
        store: the database, which stays its owner's.
        fresh_s: so old a document may be.

    Attributes:
        asked: how many questions the process was to answer.
        process: the process.
    """

    def __init__(self, store: Store, *, fresh_s: float = _FRESH_S) -> None:
        url = store.engine.url
        is_file = url.get_backend_name() == "sqlite" and url.database
        where = url.database if is_file else url.render_as_string(hide_password=False)
        self.process = ReaderProcess(where or "")
        self._fresh_s = fresh_s
        self._loop = asyncio.get_running_loop()
        self._start_at = 0.0
        self.asked = 0
        self._waiting = FairQueue[_PendingQuestion]()
        self._coming: dict[_Key, _PendingQuestion] = {}
        self._kept: OrderedDict[_Key, tuple[float, ReaderAnswer]] = OrderedDict()
        self._kept_bytes = 0
        self._worker: asyncio.Task[None] | None = None
        self._is_closed = False

    async def ask(
        self,
        path: str,
        query: Mapping[str, str],
        viewer: Viewer,
        parlour: PersonalMatch | None = None,
        address: str = "",
        packs: bool = False,
    ) -> ReaderAnswer:
        """A document, or why there is none; nothing is raised.

        Args:
            path: of the document, `/api/…json`.
            query: what stands behind its `?`.
            viewer: who asks.
            parlour: the match that it is about, if the database does not have it.
            address: where it is asked.
            packs: whether it is wanted packed, where that is worth it.
        """
        key = (path, tuple(sorted(query.items())), viewer, packs)
        kept = self._kept.get(key)
        if kept is not None and self._loop.time() < kept[0]:
            return kept[1]
        asked = self._coming.get(key)
        if asked is None:
            if self._is_closed or len(self._waiting) >= _MOST_WAITING:
                return _sorry(_CLOSED if self._is_closed else _BUSY, 503)
            asked = self._coming[key] = self._asks(key, query, parlour)
            asked.coming.add_done_callback(lambda done: self._keep(key, done))
            self._waiting.put(address, asked)
            if self._worker is None:
                self._worker = asyncio.create_task(self._work())
        asked.waiters += 1
        try:
            return await asyncio.shield(asked.coming)  # others may wait for it, too
        finally:
            asked.waiters -= 1

    async def close(self) -> None:
        """End the process, and wait until it is gone; who still waits is told that."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])
        for asked in tuple(self._coming.values()):
            if not asked.coming.done():
                asked.coming.set_result(_sorry(_CLOSED, 503))
        await self.process.close()

    # --- within ---

    def _asks(
        self, key: _Key, query: Mapping[str, str], parlour: PersonalMatch | None
    ) -> _PendingQuestion:
        self.asked += 1
        path, _, viewer, packs = key
        question = ReaderQuestion(
            id=self.asked, path=path, query=dict(query), viewer=viewer, parlour=parlour, packs=packs
        )
        return _PendingQuestion(key, question, self._loop.create_future())

    async def _work(self) -> None:
        """Have one question after another answered, while there are any."""
        try:
            while self._waiting:
                asked = self._waiting.take()
                if not asked.waiters:
                    del self._coming[asked.key]
                    continue
                answer = await self._answer(asked.question)
                if not asked.coming.done():
                    asked.coming.set_result(answer)
        finally:
            self._worker = None

    async def _answer(self, question: ReaderQuestion) -> ReaderAnswer:
        child = self.process
        try:
            async with asyncio.timeout(_MOST_S):
                if child.pid is None:
                    if self._loop.time() < self._start_at:
                        return _sorry(_NOT_THERE, 503)
                    await child.start()
                header, body = await child.ask(question)
        except TimeoutError:
            log.warning("the page's reader took too long for %s", question.path)
            await child.end(at_once=True)
            return _sorry(_SLOW, 503)
        except ReaderDied:
            await child.end(at_once=True)
            if not child.has_answered:
                self._start_at = self._loop.time() + _AGAIN_S
                return _sorry(_NOT_THERE, 503)
            log.warning("the page's reader has died of %s", one_line(question.path))
            return _sorry(_DIED, 500)
        except OSError as failed:
            log.warning("the page's reader cannot be started: %s", failed)
            self._start_at = self._loop.time() + _AGAIN_S
            return _sorry(_NOT_THERE, 503)
        except Exception:  # the others still wait
            log.exception("the arena failed at a question for the page's reader")
            await child.end(at_once=True)
            return _sorry(_FAILED, 500)
        etag = header.etag if header.status == 200 else None
        return ReaderAnswer(header.status, body, etag, header.is_packed)

    def _keep(self, key: _Key, done: asyncio.Future[ReaderAnswer]) -> None:
        """Give the same answer for a moment to whoever asks the same."""
        del self._coming[key]
        if done.cancelled() or done.result().status >= 500:
            return
        self._forget(key)
        answer = done.result()
        self._kept[key] = self._loop.time() + self._fresh_s, answer
        self._kept_bytes += len(answer.body)
        while len(self._kept) > _KEPT or self._kept_bytes > _KEPT_BYTES:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: _Key) -> None:
        if (known := self._kept.pop(key, None)) is not None:
            self._kept_bytes -= len(known[1].body)


def _sorry(text: str, status: int) -> ReaderAnswer:
    return ReaderAnswer(status, error(text))
