"""Workers as an operator sees and drains them on the bus itself, whichever arenas they play for."""

from __future__ import annotations

import asyncio

from arena.workers.bus import Bus
from arena.workers.known_worker import KnownWorker, read_report, views_of
from arena.workers.messages import Drain, encode
from protocol.errors import ArenaError, UsageError
from protocol.instructions import WorkerView

__all__ = ["BusOperator"]

_LOOK_S = 1.5  # three reports of each worker
_AGAIN_S = 1.0  # between two orders, as one may be lost
_TRIES = 5


class BusOperator:
    """Hears the reports of all workers from `open` on; methods raise `BusDown`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._clock = asyncio.get_running_loop().time
        self._known: dict[str, KnownWorker] = {}
        self._heard = asyncio.Event()

    async def open(self) -> None:
        await self._bus.on_reports(self._take)

    async def workers(self) -> tuple[WorkerView, ...]:
        """All that report now, by name; it takes a moment to hear them."""
        await asyncio.sleep(_LOOK_S)
        return views_of(self._known.values(), self._clock())

    async def drain(self, worker: str, is_draining: bool) -> WorkerView:
        """Have a worker begin no more matches, or begin them again; returns once it says so.

        Raises UsageError if no worker of that name reports, `ArenaError` if it does not obey.
        """
        if not await self._until(worker, None, _LOOK_S):
            names = ", ".join(sorted(self._known)) or "none"
            raise UsageError(f"expected a worker that reports ({names}), got {worker!r}")
        for _ in range(_TRIES):
            await self._bus.command(worker, encode(Drain(is_draining)))
            if await self._until(worker, is_draining, _AGAIN_S):
                return self._known[worker].view(self._clock())
        raise ArenaError(f"worker {worker} has not obeyed; it was told {_TRIES} times")

    # --- within ---

    def _take(self, worker: str, data: bytes) -> None:
        report = read_report(worker, data)
        if report is None:  # of another version
            return
        self._known[worker] = KnownWorker(report=report, seen_at=self._clock())
        self._heard.set()

    async def _until(self, worker: str, is_draining: bool | None, most_s: float) -> bool:
        """Wait until a worker has reported, as draining or not if that is given."""
        try:
            async with asyncio.timeout(most_s):
                while not self._says(worker, is_draining):
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            return False
        return True

    def _says(self, worker: str, is_draining: bool | None) -> bool:
        known = self._known.get(worker)
        if known is None:
            return False
        return is_draining is None or known.report.is_draining is is_draining
