"""Has the luck of matches measured after they are over, in a process of its own.

That takes about as long as the rules took in the match, so it is done beside the matches, at a
lower priority, a few matches at a time. The process reads the database; this one writes what it
answers. Matches that were over when an arena stopped have their turn when one has ended after the
next start. Nothing else depends on it: if the process dies twice at the same matches, luck is seen
when `arena luck` has measured it.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from arena.results.match_sums import SumsBatch
from arena.storage.store import Store
from arena.web.reader_client import address_of
from arena.web.reader_client_process import ReaderDied, ReaderProcess
from arena.web.reader_questions import SUMS, ReaderQuestion
from protocol.errors import StoreFailed, UsageError

__all__ = ["LuckFiller"]

log = logging.getLogger(__name__)

_PAUSE_S = 5.0  # for more matches to end: one question for all of them
_AGAIN_S = 60.0  # after a failure
_IDLE_S = 60.0  # without a match, after which the process is not needed for now
_MOST_S = 600.0  # for a few matches


class LuckFiller:
    """Fills in the luck of the matches in `store`, while its loop runs, until `close`."""

    def __init__(
        self, store: Store, *, pause_s: float = _PAUSE_S, again_s: float = _AGAIN_S
    ) -> None:
        self._store = store
        self._pause_s, self._again_s = pause_s, again_s
        self._process = ReaderProcess(address_of(store))
        self._asked = self._after = 0
        self._work = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def match_finished(self) -> None:
        """Note that there is something to do; before the first match no process is started."""
        self._work.set()

    async def close(self) -> None:
        """End the process, and wait for its end."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._process.close()

    # --- within ---

    async def _run(self) -> None:
        failed_at: int | None = None  # a record that ends the process would end it again
        while True:
            await self._wait()
            await asyncio.sleep(self._pause_s)
            try:
                await self._fill()
            except (StoreFailed, UsageError):
                return  # nothing is written any more, and the arena says so
            except (ReaderDied, OSError, TimeoutError, msgspec.DecodeError) as error:
                await self._process.end(at_once=True)
                if self._after == failed_at:
                    log.warning("luck is measured no more; `arena luck` says why not: %s", error)
                    return
                failed_at = self._after
                log.warning("luck is measured later: %s", str(error) or "its process has died")
                await asyncio.sleep(self._again_s)
                self._work.set()

    async def _wait(self) -> None:
        """Wait for a match; the process is ended if none is over for a while."""
        try:
            await asyncio.wait_for(self._work.wait(), _IDLE_S)
        except TimeoutError:
            await self._process.end()
            await self._work.wait()

    async def _fill(self) -> None:
        """Fill in all that is there; what comes meanwhile has its turn in the next pause."""
        self._work.clear()
        if self._process.pid is None:
            await self._process.start()
        while True:
            await self._store.flushed()  # the process reads what is on the disk
            self._asked += 1
            query = {"after": str(self._after)} if self._after else {}
            question = ReaderQuestion(id=self._asked, path=SUMS, query=query)
            async with asyncio.timeout(_MOST_S):
                header, body = await self._process.ask(question)
            if header.status != 200:
                raise ReaderDied(body.decode(errors="replace"))
            batch = msgspec.json.decode(body, type=SumsBatch)
            if batch.rows:
                self._store.sums_made(batch.rows)
            if batch.last is None:
                return
            self._after = batch.last
