"""Background tasks that are held until they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["BackgroundTasks", "ignore_error"]


def ignore_error(future: asyncio.Future[Any]) -> None:
    """Retrieve the error of a future that nobody awaits, as asyncio would log it otherwise."""
    if not future.cancelled():
        future.exception()


class BackgroundTasks:
    """Holds a reference to each task until it ends, as the event loop holds only a weak one.

    `on_end` is called with each task that has ended, also after an error or cancellation.
    """

    def __init__(self, on_end: Callable[[asyncio.Task[None]], None] | None = None) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_end = on_end

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._on_end is not None:
            task.add_done_callback(self._on_end)
        return task

    def cancel(self) -> None:
        """Cancel all running tasks; tasks that are started later are not affected."""
        for task in tuple(self._tasks):
            task.cancel()

    async def ended(self) -> None:
        """Wait until all tasks have ended; their exceptions are ignored."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
