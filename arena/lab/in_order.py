"""Work that is done several pieces at once, and whose results are taken in the order of the pieces.

So the parts of a comparison add up as if they had been played one after another: what counts does
not depend on which of them was over first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Generic, TypeVar

__all__ = ["InOrder"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class InOrder(Generic[Piece, Result]):
    """Use it as an asynchronous context, which ends what is not over, and iterate over the results.

    Args:
        work: does a piece. What it raises is raised where its result would be taken.
        pieces: are begun in this order.
        at_once: how many may be in work.
    """

    def __init__(
        self, work: Callable[[Piece], Awaitable[Result]], pieces: Iterable[Piece], at_once: int
    ) -> None:
        self._work = work
        self._pieces = iter(pieces)
        self._at_once = at_once
        self._tasks: dict[int, asyncio.Task[Result]] = {}  # begun and not taken, by number
        self._begun = self._taken = self._busy = 0
        self._is_closed = False

    async def __aenter__(self) -> InOrder[Piece, Result]:
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_closed = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def __aiter__(self) -> InOrder[Piece, Result]:
        return self

    async def __anext__(self) -> Result:
        if self._taken not in self._tasks:
            raise StopAsyncIteration
        result = await self._tasks[self._taken]
        del self._tasks[self._taken]
        self._taken += 1
        return result

    def _begin(self) -> None:
        while not self._is_closed and self._busy < self._at_once:
            try:
                piece = next(self._pieces)
            except StopIteration:
                return
            task = self._tasks[self._begun] = asyncio.ensure_future(self._work(piece))
            self._begun += 1
            self._busy += 1
            task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Result]) -> None:
        self._busy -= 1
        if not task.cancelled() and task.exception() is None:
            self._begin()
