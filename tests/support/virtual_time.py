"""An event loop whose clock jumps to whatever is due next: hours pass in a moment.

What runs in a thread (`asyncio.to_thread`) is done at once, as no time passes. If nothing is due
and nothing can happen any more, that fails instead of waiting for ever.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["in_virtual_time", "run_in_virtual_time"]

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Passes no time by waiting; `skipped_s` is what should have passed."""

    skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing is due: all wait for each other"
        ready = super().select(0)
        if not ready and timeout > 0:
            self.skipped_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.skipped_s

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Have a test run in virtual time."""

    @functools.wraps(test)
    def run(*args: Any, **more: Any) -> None:
        run_in_virtual_time(test(*args, **more))

    return run
