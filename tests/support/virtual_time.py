"""An event loop whose clock jumps to whatever is due next: hours pass in a moment.

Its network is in memory (`tests/support/memory_network.py`), so that servers and clients that meet
on it need no change. A test, and its fixtures, run on it by a marker, for a file as `pytestmark`:

    @pytest.mark.virtual_time(limit_s=300)

`tick_s` is how often an arena looks for what is due. In such a file `virtual_time(is_off=True)`
gives one test a usual loop: virtual time would stop while that test holds a thread.

- No time passes while a thread works for the loop, `asyncio.to_thread` or the writer of a database.
- A test that passes more virtual time than it names fails at once, as does one in which nothing is
  due and nobody works: all would wait for each other.
- `virtual_loop().stands_still(40)` moves the clock without running the loop, as if the process had
  been stopped meanwhile.

The writer can be slowed, and nothing that a test sees may change by that:

    CARD_ARENA_SLOW_WRITER_MS=50 python -m pytest -m virtual_time
"""

from __future__ import annotations

import asyncio
import functools
import os
import selectors
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from concurrent.futures import Future as WorkFuture
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from arena.referee.clock import TICK_S
from arena.storage.schema import changing
from arena.storage.writer import Writer
from protocol.errors import ArenaError
from tests.support.memory import memory
from tests.support.memory_network import MACHINE, MemoryServer, MemoryTransport, Network

__all__ = [
    "LIMIT_S",
    "SLOW_WRITER",
    "VirtualTimeLoop",
    "all_done",
    "memory_folder",
    "pytest_asyncio_loop_factories",
    "run_in_virtual_time",
    "virtual_loop",
]

T = TypeVar("T")

LIMIT_S = 60.0
"""The virtual time that a test may pass if it does not name any."""
SLOW_WRITER = "CARD_ARENA_SLOW_WRITER_MS"
"""The environment's variable with the real milliseconds that each commit takes longer."""

_START_S = 1_000.0  # no clock is at 0 when a program begins
_LOOK_S = 1.0  # in real time: a thread that ends wakes the loop anyway


class _JumpingSelector(selectors.DefaultSelector):
    """Passes virtual time when everybody waits, and none otherwise."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop
        self.now = _START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        has_news = self._loop.network.turn(self.now)
        while not (ready or has_news) and (timeout is None or timeout > 0):
            if not self._loop.waits_for_threads():
                return self._jump(timeout)
            ready = super().select(_LOOK_S if self._loop.has_work else 0)
        return ready

    def _jump(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        due = [] if timeout is None else [self.now + timeout]
        arrival = self._loop.network.next_due()
        due += [] if arrival is None else [arrival]
        if not due:
            self._loop.fails("nothing is due: all wait for each other")
        self._loop.passes(max(0.0, min(due) - self.now))
        self._loop.network.turn(self.now)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Passes at most `limit_s` of virtual time. Its `network` is where servers and clients meet."""

    def __init__(self, limit_s: float = LIMIT_S, tick_s: float = TICK_S) -> None:
        self.network = Network(self)
        self.has_work = False  # a thread of `run_in_executor` is at work
        self._failed = list[BaseException]()
        self._limit_s = limit_s
        self._work = set[WorkFuture[Any]]()
        self._threads = ThreadPoolExecutor()
        self._unwritten = set[Writer]()
        self._patch = pytest.MonkeyPatch()
        for module in "referee.clock", "referee.timers", "hosts.hosted_bots":
            self._patch.setattr(f"arena.{module}.TICK_S", tick_s)
        self._watch_writers()
        self._selector_ = _JumpingSelector(self)
        self._end_s = self._selector_.now + limit_s
        super().__init__(self._selector_)

    def time(self) -> float:
        return self._selector_.now

    def stands_still(self, for_s: float) -> None:
        """Pass time in which nothing runs, as if the process had been stopped."""
        self.passes(for_s)

    def passes(self, seconds: float) -> None:
        """Move the clock, or fail if it has passed more time than it may."""
        self._selector_.now += seconds
        if self._selector_.now > self._end_s:
            self._end_s = self._selector_.now + self._limit_s  # for what cleans up
            self.fails(f"it passes more than {self._limit_s:g} s of virtual time")

    def fails(self, why: str) -> None:
        """Fail, and tell who waits."""
        waiting = sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks(self))  # type: ignore[union-attr]
        raise AssertionError(f"{why} ({', '.join(waiting)})")

    # --- threads ---

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        work = (executor or self._threads).submit(func, *args)
        self._work.add(work)
        future = asyncio.wrap_future(work, loop=self)
        # After the call that sets the result, so that no time passes between the two.
        work.add_done_callback(lambda work: self.call_soon_threadsafe(self._work.discard, work))
        return future

    def waits_for_threads(self) -> bool:
        """Whether anything may have come from a thread since the last look."""
        self.has_work = bool(self._work)
        writers, self._unwritten = self._unwritten, set()
        for writer in writers:
            with suppress(ArenaError):  # whom it concerns is told
                written = self._barrier(writer)
                while not (written.done() or writer.backlog.why):
                    wait([written], timeout=0.01)
                if not written.done():  # another program holds the database: time goes by meanwhile
                    self._unwritten.add(writer)
        return self.has_work or bool(writers - self._unwritten)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        self._threads.shutdown()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what fails in a callback, which asyncio only logs: `close` raises it."""
        super().call_exception_handler(context)
        if "handle" in context:
            self._failed.append(context["exception"])

    def close(self) -> None:
        self._threads.shutdown()
        self._patch.undo()
        super().close()
        if self._failed:
            raise BaseExceptionGroup("callbacks failed", self._failed)

    def _watch_writers(self) -> None:
        """Learn which writers have work, and slow them if the environment says so."""
        put, self._barrier = Writer.put, Writer.barrier

        def noted(writer: Writer, change: Any, results: int = 0) -> None:
            put(writer, change, results)
            self._unwritten.add(writer)

        def awaited(writer: Writer) -> WorkFuture[None]:
            self._unwritten.add(writer)
            return self._barrier(writer)

        self._patch.setattr(Writer, "put", noted)
        self._patch.setattr(Writer, "barrier", awaited)
        slow_s = float(os.environ.get(SLOW_WRITER, "0")) / 1000

        @contextmanager
        def slowly(engine: sa.Engine, busy_s: float | None = None) -> Iterator[sa.Connection]:
            with changing(engine, busy_s) as connection:
                yield connection
                time.sleep(slow_s)

        if slow_s:
            self._patch.setattr("arena.storage.writer.changing", slowly)

    # --- the network ---

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: None = None,
        sock: None = None,
        **options: Any,
    ) -> MemoryServer:
        assert (ssl, sock) == (None, None), "TLS and sockets are for kernels"
        return self.network.listen(protocol_factory, host, port)

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: None = None,
        sock: None = None,
        local_addr: tuple[str, int] | None = None,
        **options: Any,
    ) -> tuple[MemoryTransport, Any]:
        assert (ssl, sock) == (None, None), "TLS and sockets are for kernels"
        assert host is not None
        assert port is not None
        local_host = MACHINE.get() if local_addr is None else local_addr[0]
        return await self.network.connect(protocol_factory, host, port, local_host)


async def all_done() -> None:
    """Wait until nothing is left to do: only then does virtual time pass."""
    await asyncio.sleep(1e-6)


def virtual_loop() -> VirtualTimeLoop:
    """The loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop), "the test has no marker `virtual_time`"
    return loop


def run_in_virtual_time(main: Coroutine[Any, Any, T], limit_s: float = 7 * 86_400.0) -> T:
    """Run a coroutine to its end on a loop of its own."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(limit_s)) as runner:
        return runner.run(main)


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give a test with the marker `virtual_time`, and its fixtures, such a loop."""
    marker = item.get_closest_marker("virtual_time")
    options = {"is_off": True} if marker is None else dict(marker.kwargs)
    if options.pop("is_off", False):
        return {"real": asyncio.new_event_loop}
    return {"virtual": functools.partial(VirtualTimeLoop, **options)}


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory where there is such storage, for a database and its real writer."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        yield Path(folder)
