"""Worker processes of our own: one task for many items, on several cores, with results in order.

It is not a `ProcessPoolExecutor`. The workers of that one go on when this process is killed, and
its semaphores stay in `/dev/shm` when all processes are killed at once. Here a worker has a pipe
and a thread that waits for its parent's end. Workers are spawned, not forked, as this process may
have threads; so the main module must do nothing when it is imported.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import operator
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeAlias, TypeVar, cast

from protocol.errors import ArenaError

__all__ = ["Task", "UnitCount", "WorkerPool", "startable", "usable_cores", "work_through"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Task: TypeAlias = Callable[[Item, Callable[[], None]], Result]
"""Works on one item, and calls its second argument after every unit of work. It is pickled."""

_REPORT_S = 0.05  # between two reports of progress, which a person sees as steady
_ALONE_S = 0.3  # until it is known how long the work will take
_WORTH_S = 1.0  # of work left: less is done here before other processes have started
_CLOSE_S = 0.3  # for workers to end by themselves, with what their bots do at the end
_MOST_PER_CORE = 4
_AHEAD = 4  # items per worker that have been begun before their turn, at most


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def startable(workers: int) -> int:
    """As many, or 1 in a directory that was removed, where `multiprocessing` cannot start any."""
    with contextlib.suppress(FileNotFoundError):
        os.getcwd()
        return workers
    return 1


class UnitCount:
    """Counts units of work, and reports how many there were now and then.

    A unit may take microseconds, and a report costs as much.
    """

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._count = 0
        self._next_s = time.monotonic() + _REPORT_S

    def tick(self) -> None:
        self._count += 1
        if time.monotonic() >= self._next_s:
            self.flush()

    def flush(self) -> None:
        """Report what has not been reported yet."""
        count, self._count = self._count, 0
        self._next_s = time.monotonic() + _REPORT_S
        self._report(count)


def work_through(
    task: Task[Item, Result],
    items: Sequence[Item],
    on_result: Callable[[Item, Result], bool | None],
    *,
    jobs: int,
    units: int,
    report: Callable[[int], None],
    wanted: Callable[[Item], bool] = lambda item: True,
) -> None:
    """Do the task for all items, in up to `jobs` processes, and hand on the results in their order.

    It ends early when `on_result` returns True. It begins in this process, and starts others only
    if the rest is worth it. What `on_result` gets does not depend on `jobs`, provided that the
    result of the task depends on its item alone.

    Args:
        jobs: it never starts more than four processes per core.
        units: how many times the task will report a unit, for all items together.
        report: gets the number of units since its last call; it is negative for an item that is
            begun again in another process.
        wanted: whether an item still counts when its turn comes; if not, it is left out.

    Raises:
        ArenaError: a process was ended from outside. An exception of the task is raised when it is
            its item's turn.
    """
    left = iter(items)
    jobs = startable(min(jobs, _MOST_PER_CORE * usable_cores()))
    alone = _AloneCount(report, units, len(items), jobs)
    for number, item in enumerate(left):
        if not wanted(item):
            continue
        try:
            result = alone.run(task, item, others=len(items) - number - 1)
        except _WorthSharing:
            workers = min(jobs, len(items) - number)
            with WorkerPool(task, workers, "played") as pool:
                for again in pool.run(chain([item], left), report, wanted):
                    if on_result(*again):
                        return
            return
        if on_result(item, result):
            return


class _WorthSharing(BaseException):
    """The rest of the work is worth the start of other processes."""


class _AloneCount:
    """Works on items in this process until it takes too long; then it raises `_WorthSharing`.

    It does so before an item, or in the middle of one of which less than half is done and lost.
    """

    def __init__(self, report: Callable[[int], None], units: int, items: int, jobs: int) -> None:
        self._report, self._units, self._items, self._jobs = report, units, items, jobs
        self._start_s = time.monotonic()
        self._done = 0
        self._of_item = 0
        self._others = 0

    def run(self, task: Task[Item, Result], item: Item, others: int) -> Result:
        """Do one item, after which so many `others` are left."""
        self._of_item, self._others = 0, others
        self._share_if_worth()
        count = UnitCount(self._on_units)
        result = task(item, count.tick)
        self._others = 0  # no unit that is still to be reported gives this result away
        count.flush()
        return result

    def _on_units(self, count: int) -> None:
        self._done += count
        self._of_item += count
        self._report(count)
        if 2 * self._of_item * self._items < self._units:
            self._share_if_worth()

    def _share_if_worth(self) -> None:
        if self._jobs > 1 and self._others and self._done and self._is_long():
            self._report(-self._of_item)
            raise _WorthSharing

    def _is_long(self) -> bool:
        passed_s = time.monotonic() - self._start_s
        left = self._units - self._done
        return passed_s > _ALONE_S and passed_s * left > _WORTH_S * self._done


class _Entry(Generic[Item, Result]):
    """An item that a worker has got, and what came of it: a result and None, or None and an error.

    Before that, `outcome` is None.
    """

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: tuple[Result, BaseException | None] | None = None


class WorkerPool(Generic[Item, Result]):
    """Worker processes for one task, which end with its `with` block.

    They are started at the first `run`. `work` says in an error what they did.
    """

    def __init__(self, task: Task[Item, Result], workers: int, work: str) -> None:
        self._task, self._workers, self._work = task, workers, work
        self._processes: list[BaseProcess] = []
        self._idle: list[Connection] = []
        self._working: dict[Connection, _Entry[Item, Result]] = {}

    def __enter__(self) -> WorkerPool[Item, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers: those that do not notice soon that their pipe is closed are killed."""
        for connection in (*self._idle, *self._working):
            connection.close()
        end_s = time.monotonic() + _CLOSE_S
        try:
            for process in self._processes:
                process.join(max(0.0, end_s - time.monotonic()))
        finally:
            for process in self._processes:
                process.kill()
            for process in self._processes:
                process.join()

    def run(
        self,
        items: Iterable[Item],
        report: Callable[[int], None] = lambda units: None,
        wanted: Callable[[Item], bool] = lambda item: True,
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in order; arguments and errors are those of `work_through`.

        Items are taken as workers become free, but only a few before their turn.
        """
        if not self._processes:
            self._start()
        idle, working = self._idle, self._working
        entries: Iterator[_Entry[Item, Result]] = map(_Entry, filter(wanted, items))
        queue: deque[_Entry[Item, Result]] = deque()
        while True:
            while idle and len(queue) < _AHEAD * self._workers and (entry := next(entries, None)):
                queue.append(entry)
                working[idle[-1]] = entry
                self._send(idle.pop(), entry.item)
            if idle and not queue:
                return
            for ready in wait(list(working)):
                connection = cast(Connection, ready)  # another class on Windows
                message = self._receive(connection)
                if type(message) is int:
                    report(message)
                else:
                    working.pop(connection).outcome = message
                    idle.append(connection)
            # What is no longer wanted is in nobody's way, even if a worker is still at it.
            while queue and (queue[0].outcome or not wanted(queue[0].item)):
                entry = queue.popleft()
                if wanted(entry.item):
                    yield entry.item, _result_of(entry)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        # Workers ignore Ctrl-C, also while they start: it is for this process, which ends them.
        with _interrupts_blocked():
            for _ in range(self._workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,))
                process.start()
                theirs.close()
                self._processes.append(process)
                self._idle.append(ours)
        for connection in self._idle:
            self._send(connection, self._task)

    def _send(self, connection: Connection, message: object) -> None:
        try:
            connection.send(message)
        except ConnectionError:
            raise self._was_ended from None

    def _receive(self, connection: Connection) -> Any:
        try:
            return connection.recv()
        except (EOFError, OSError):
            raise self._was_ended from None

    @property
    def _was_ended(self) -> ArenaError:
        return ArenaError(
            f"a process that {self._work} was ended from outside; is there enough memory"
        )


def _result_of(entry: _Entry[Item, Result]) -> Result:
    assert entry.outcome is not None, "its worker has finished it"
    result, error = entry.outcome
    if error is not None:
        raise error
    return result


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hold Ctrl-C back in this block, and in processes that are started in it until `_serve`."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # `multiprocessing` starts this helper with its first process, and then lets Ctrl-C through.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- In a worker


def _serve(connection: Connection) -> None:
    """Receive the task, then items; send counts of units, and for each item its outcome."""
    # Ctrl-C ends what a bot has started: unlike this, SIG_IGN and the mask would be inherited.
    signal.signal(signal.SIGINT, operator.is_)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout = sys.stderr  # the result is printed by the parent
    with contextlib.suppress(EOFError, OSError):  # the parent has ended, or closed the pool
        task = _received_task(connection)
        while True:
            item = connection.recv()
            count = UnitCount(connection.send)
            try:
                result = task(item, count.tick)
                count.flush()
                connection.send((result, None))
            except BaseException as error:
                connection.send((None, _portable(error)))


def _received_task(connection: Connection) -> Task[Any, Any]:
    """The task; one that raises for every item if it cannot be read, as a bot's file is gone."""
    pickled = connection.recv_bytes()
    try:
        task: Task[Any, Any] = pickle.loads(pickled)
    except BaseException as error:
        failure = error

        def fail(item: object, tick: object) -> None:
            raise failure

        return fail
    return task


def _portable(error: BaseException) -> BaseException:
    """The exception with its traceback as a note; one that says as much if it cannot be pickled."""
    trace = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__} in a worker process")
    error.add_note(trace)
    return error


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has one"
    parent.join()
    os._exit(1)
