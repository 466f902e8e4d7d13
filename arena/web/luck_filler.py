"""Lets another process measure the luck of finished matches, as idle work beside the arena.

Measuring takes about as long as the rules took in the match, so it is done beside the matches, a
few at a time. The process reads the database; the arena writes the results. Matches left from
before a restart are measured once a new match has ended. Nothing else depends on this: if it fails
twice at the same matches, it gives up, and `arena luck` can still measure them.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from arena.results.match_sums import SumsBatch
from arena.storage.store import Store
from arena.web.questions import SUMS, SideQuestion
from arena.web.side_process import Failure, SideProcess
from protocol.errors import ArenaError, StoreFailed, UsageError

__all__ = ["LuckFiller"]

log = logging.getLogger(__name__)

_PAUSE_S = 5.0  # to collect more ended matches for one question
_AGAIN_S = 60.0  # after a failure


class LuckFiller:
    """Fills in the luck of the matches in `store`, in the running event loop, until `close`."""

    def __init__(
        self,
        store: Store,
        process: SideProcess,
        *,
        pause_s: float = _PAUSE_S,
        again_s: float = _AGAIN_S,
    ) -> None:
        self._store = store
        self._process = process
        self._pause_s, self._again_s = pause_s, again_s
        self._after = 0
        self._work = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def match_finished(self) -> None:
        """Wake the filler after a match; no process is started before the first match."""
        self._work.set()

    def close(self) -> None:
        self._task.cancel()

    # --- internal ---

    async def _run(self) -> None:
        failed_at: int | None = None  # a record that killed the process would kill it again
        while True:
            await self._work.wait()
            await asyncio.sleep(self._pause_s)
            self._work.clear()
            try:
                while await self._has_filled_some():
                    pass
            except (StoreFailed, UsageError):
                return  # the arena can no longer write, and reports that itself
            except (ArenaError, msgspec.DecodeError) as error:
                if self._after == failed_at:
                    log.warning("luck is measured no more; `arena luck` says why not: %s", error)
                    return
                failed_at = self._after
                log.warning("luck is measured later: %s", error)
                await asyncio.sleep(self._again_s)
                self._work.set()

    async def _has_filled_some(self) -> bool:
        """Fill in the luck of a few matches; False if none were left."""
        await self._store.flushed()  # the process reads from the disk
        query = {"after": str(self._after)} if self._after else {}
        job = self._process.ask(SUMS, SUMS, SideQuestion(path=SUMS, query=query))
        answer = await self._process.answer_of(job)
        if isinstance(answer, Failure):
            raise ArenaError(answer.value)
        batch = msgspec.json.decode(answer.body, type=SumsBatch)  # raises at an error document
        if batch.rows:
            self._store.sums_made(batch.rows)
        if batch.last is not None:
            self._after = batch.last
        return batch.last is not None
