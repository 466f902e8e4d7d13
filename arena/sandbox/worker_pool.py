"""Our own worker processes: one task for many items, on several cores, with results in order.

They belong to a `ProcessPoolExecutor`, whose workers would go on when this process is killed: so
each has a thread that waits for its parent's end. Workers are spawned, not forked, as this process
may have threads; so the main module must do nothing when it is imported.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import operator
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeAlias, TypeVar

from protocol.errors import ArenaError

__all__ = ["Task", "UnitCount", "WorkerPool", "startable", "usable_cores", "work_through"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Task: TypeAlias = Callable[[Item, Callable[[], None]], Result]
"""Works on one item, and calls its second argument after every unit of work. It is pickled."""

_REPORT_S = 0.05  # between two reports of progress, which looks steady to a person
_ALONE_S = 0.3  # until it can be estimated how long the work will take
_WORTH_S = 1.0  # of work left: less is done here before other processes have started
_CLOSE_S = 0.3  # for workers to end by themselves, with what their bots do at the end
_MOST_PER_CORE = 4
_MOST_ON_WINDOWS = 61  # workers of an executor
_AHEAD = 4  # the most items per worker that are handed out before their turn


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def startable(workers: int) -> int:
    """The number of workers, or 1 in a removed directory, where `multiprocessing` cannot start."""
    with contextlib.suppress(FileNotFoundError):
        os.getcwd()
        return workers
    return 1


class UnitCount:
    """Counts units of work, and reports the number of new ones now and then.

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
    """Do the task for all items, in up to `jobs` processes, and pass on the results in order.

    It ends early when `on_result` returns True. It begins in this process, and starts others only
    if the remaining work is worth it; this process then finishes its current item. What `on_result`
    gets does not depend on `jobs`, provided that the result of the task depends on its item alone.

    Args:
        jobs: the most processes; never more than four per core are started.
        units: how many units the task will report for all items together.
        report: gets the number of units since its last call.
        wanted: whether an item still counts when its turn comes; if not, it is left out.

    Raises:
        ArenaError: a process was ended from outside. An exception of the task is raised when it is
            its item's turn.
    """
    left = iter(items)
    jobs = startable(min(jobs, _MOST_PER_CORE * usable_cores()))
    start_s, done, open_items = time.monotonic(), 0, len(items)
    pool: WorkerPool[Item, Result] | None = None
    others: Iterator[tuple[Item, Result]] = iter(())

    def on_units(count: int) -> None:
        """Start others for the rest, even in the middle of an item: the first may take minutes."""
        nonlocal done, pool, others
        done += count
        report(count)
        if pool is not None:
            pool.pass_reports(report)
            return
        passed_s = time.monotonic() - start_s
        is_long = passed_s > _ALONE_S and passed_s * (units - done) > _WORTH_S * done
        if jobs > 1 and open_items and is_long:
            pool = stack.enter_context(WorkerPool(task, min(jobs, open_items), "played"))
            others = pool.run(left, report, wanted)

    with contextlib.ExitStack() as stack:
        for item in left:
            open_items -= 1
            if not wanted(item):
                continue
            count = UnitCount(on_units)
            result = task(item, count.tick)
            count.flush()
            if on_result(item, result):
                return
            if pool is not None:
                break
        for again in others:
            if on_result(*again):
                return


class WorkerPool(Generic[Item, Result]):
    """Worker processes for one task; they end with its `with` block.

    They are started when they are needed. `work` is the word for their work in an error.
    """

    def __init__(self, task: Task[Item, Result], workers: int, work: str) -> None:
        self._task, self._work = task, work
        self._workers = min(workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else workers
        self._executor: futures.ProcessPoolExecutor | None = None

    def __enter__(self) -> WorkerPool[Item, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; those that do not soon notice that nobody reads reports are killed."""
        executor, self._executor = self._executor, None
        if executor is None:
            return
        self._reports.close()
        processes = [*executor._processes.values()]  # `kill_workers` from Python 3.14 on
        manager: Any = executor._executor_manager_thread
        executor.shutdown(wait=False, cancel_futures=True)
        # Before Python 3.13 its thread fails if workers are killed while it has cancelled work,
        # which it drops only while the executor exists.
        while manager is not None and manager.is_alive() and _has_cancelled(manager):
            time.sleep(0.01)
        end_s = time.monotonic() + _CLOSE_S
        try:
            for process in processes:
                process.join(max(0.0, end_s - time.monotonic()))
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.join()

    def run(
        self,
        items: Iterable[Item],
        report: Callable[[int], None] = lambda units: None,
        wanted: Callable[[Item], bool] = lambda item: True,
    ) -> Iterator[tuple[Item, Result]]:
        """Begin at once; return an iterator over each item with its result, in order.

        Arguments and errors are those of `work_through`. Only a few items are taken before their
        turn.
        """
        if self._executor is None:
            self._start()
        left = filter(wanted, items)
        queue: deque[tuple[Item, futures.Future[Result]]] = deque()

        def submit() -> None:
            with self._death_in_words():
                while len(queue) < _AHEAD * self._workers and (some := [*islice(left, 1)]):
                    queue.append((some[0], self._submit(some[0])))

        def results() -> Iterator[tuple[Item, Result]]:
            try:
                while queue:
                    item, future = queue.popleft()
                    is_done = False
                    # What is no longer wanted holds nobody up, even if a worker is still busy.
                    while wanted(item) and not is_done:
                        is_done = bool(futures.wait([future], _REPORT_S).done)
                        self.pass_reports(report)
                    if wanted(item):
                        with self._death_in_words():
                            result = future.result()
                        yield item, result
                    future.cancel()
                    submit()
            finally:
                for _, future in queue:
                    future.cancel()

        submit()
        return results()

    def pass_reports(self, report: Callable[[int], None]) -> None:
        """Hand on what workers have reported; they stop if it is not read for minutes."""
        while self._reports.poll():
            report(self._reports.recv())

    @contextlib.contextmanager
    def _death_in_words(self) -> Iterator[None]:
        """Raise `ArenaError` with a line for people if a worker was killed."""
        try:
            yield
        except BrokenProcessPool:
            raise ArenaError(
                f"a process that {self._work} was ended from outside; is there enough memory"
            ) from None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        # `multiprocessing` starts this helper with its first process, and then lets Ctrl-C through.
        resource_tracker.ensure_running()
        self._reports, theirs = context.Pipe(duplex=False)
        self._executor = futures.ProcessPoolExecutor(
            self._workers, context, _begin, (pickle.dumps(self._task), theirs)
        )

    def _submit(self, item: Item) -> futures.Future[Result]:
        assert self._executor is not None, "it was started"
        with _interrupts_blocked():  # it may start a process
            return self._executor.submit(_work_on, item)


def _has_cancelled(manager: Any) -> bool:
    """Whether an executor's thread has yet to drop cancelled work."""
    return any(work.future.cancelled() for work in [*manager.pending_work_items.values()])


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in this block, and in processes started in it until `_begin`.

    Ctrl-C is for this process, which ends the others.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- In a worker

_reports: Connection
_pickled_task: bytes


def _begin(pickled_task: bytes, reports: Connection) -> None:
    global _reports, _pickled_task
    _reports, _pickled_task = reports, pickled_task
    # Ctrl-C ends what a bot has started: unlike this handler, SIG_IGN and the mask are inherited.
    signal.signal(signal.SIGINT, operator.is_)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout = sys.stderr  # the parent prints the result


def _work_on(item: Any) -> Any:
    """Do the task, and report units as they are done; after the pool is closed that fails."""
    count = UnitCount(_reports.send)  # so short that no other worker's report mixes in
    try:
        result = _task()(item, count.tick)
        count.flush()
    except BaseException as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            raise RuntimeError(f"{type(error).__name__} in a worker process") from error
        raise
    return result


@functools.cache
def _task() -> Task[Any, Any]:
    """The task; it raises for every item if it cannot be read, as when a bot's file is gone."""
    task: Task[Any, Any] = pickle.loads(_pickled_task)
    return task


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has one"
    parent.join()
    os._exit(1)
