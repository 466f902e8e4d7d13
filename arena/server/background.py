"""Tasks that run beside what has started them, kept in one place until they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["BackgroundTasks"]


class BackgroundTasks:
    """Keeps tasks until they end: the event loop alone would let them be collected while they run.

    Args:
        on_end: told of each that has ended, however it did, when it is kept no longer.
    """

    def __init__(self, on_end: Callable[[asyncio.Task[None]], None] | None = None) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_end = on_end

    def __len__(self) -> int:
        """How many have not ended."""
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done from the loop's next turn on."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._on_end is not None:
            task.add_done_callback(self._on_end)
        return task

    def cancel(self) -> None:
        """Ask all to end; those that are started later go on."""
        for task in tuple(self._tasks):
            task.cancel()

    async def ended(self) -> None:
        """Wait until none is left, whatever becomes of them."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
