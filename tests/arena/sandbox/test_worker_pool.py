from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from arena.sandbox import worker_pool
from arena.sandbox.worker_pool import UnitCount, WorkerPool, usable_cores, work_through
from protocol.errors import ArenaError, UnknownBot

pytestmark = pytest.mark.shares_processes  # those of the fixture `pool`

Tick = Callable[[], None]
Task = Callable[[int, Tick], object]
Pool = WorkerPool[int, int]


def doubled(item: int, tick: Tick) -> int:
    """Twice the item, of which each unit is reported; an odd item above 100 cannot be done."""
    for _ in range(item):
        tick()
    if item > 100 and item % 2:
        raise UnknownBot(f"{item} is odd")
    return 2 * item


def process_of(item: int, tick: Tick) -> int:
    tick()
    return os.getpid()


def talkative(item: str, tick: Tick) -> None:
    print(item)


def dying(item: int, tick: Tick) -> None:
    assert multiprocessing.parent_process() is not None, "it would end the tests"
    os.kill(os.getpid(), signal.SIGTERM)


def lingering(item: int, tick: Tick) -> int:
    """Takes long after the first item."""
    time.sleep(60 if item else 0)
    return item


class PickyError(Exception):
    """Cannot be read in another process, as it is made from two arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one)


def faulty(item: int, tick: Tick) -> object:
    """Fails in another way for every item but 0."""
    if item == 1:
        raise ConnectionResetError("a fault of the task")
    if item == 2:
        raise PickyError(1, 2)
    return 0 if item == 0 else lambda: "cannot be pickled"


def with_a_bot_that_says_goodbye(path: str, tick: Tick) -> NoReturn:
    """Plays for ever, and notes the end of its process."""
    atexit.register(Path(path).write_text, "goodbye")
    while True:
        tick()


def deaf(item: int, tick: Tick) -> NoReturn:
    """Plays for ever, and reports once, when a report is due."""
    start_s = time.monotonic()
    while time.monotonic() < start_s + 2 * worker_pool._REPORT_S:
        pass
    tick()
    while True:
        pass


def interruptible(item: int, tick: Tick) -> tuple[bool, bool]:
    """Whether a program that a bot starts ends at Ctrl-C, and whether this process does not."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); os._exit(7)"
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode
    os.kill(os.getpid(), signal.SIGINT)
    return ended == -signal.SIGINT, True


def waiting_for_another(path: str, tick: Tick) -> bool:
    """The first item waits for what the second one leaves in the same folder."""
    done = Path(path).with_name("done")
    if path.endswith("second"):
        done.touch()
    end_s = time.monotonic() + 60
    while not done.exists() and time.monotonic() < end_s:
        tick()
    return done.exists()


def refused() -> NoReturn:
    raise UnknownBot("the file is gone")


class Unreadable:
    """A task that no other process can read."""

    def __reduce__(self) -> Any:
        return refused, ()

    def __call__(self, item: int, tick: Tick) -> int:
        return item


def interrupting(units: int) -> NoReturn:
    raise KeyboardInterrupt


def run(task: Any, items: Iterable[Any]) -> list[Any]:
    with WorkerPool[Any, Any](task, 2, "played") as pool:
        return list(pool.run(items))


def after_the_first_is_dead() -> Iterator[int]:
    """Items, of which the second comes when the worker of the first has ended."""
    before = set(multiprocessing.active_children())
    yield 1
    end_s = time.monotonic() + 60
    while set(multiprocessing.active_children()) - before and time.monotonic() < end_s:
        time.sleep(0.01)
    yield 2


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Two workers for the tests that leave them as they are."""
    with WorkerPool(doubled, 2, "played") as pool:
        yield pool


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first unit show that the rest is worth other processes."""
    monkeypatch.setattr(worker_pool, "_REPORT_S", -1.0)
    monkeypatch.setattr(worker_pool, "_ALONE_S", -1.0)
    monkeypatch.setattr(worker_pool, "_WORTH_S", -1.0)


def all_results(
    task: Any, items: list[Any], jobs: int, **more: Any
) -> tuple[list[tuple[Any, Any]], int]:
    """What `work_through` hands on, and how many units it reports."""
    results: list[tuple[Any, Any]] = []
    reported: list[int] = []
    options = {"wanted": lambda item: True, "units": len(items), **more}
    work_through(
        task,
        items,
        lambda *pair: results.append(pair),
        jobs=jobs,
        report=reported.append,
        **options,
    )
    return results, sum(reported)


def test_results_come_in_order_and_units_are_reported(pool: Pool) -> None:
    # Large items before small ones: those behind are done first.
    items = [50_000, 1, 2, 3, 40_000, 4, *range(30)]
    units: list[int] = []

    assert list(pool.run(items, units.append)) == [(item, 2 * item) for item in items]
    assert sum(units) == sum(items)


def test_workers_go_on_with_other_items(pool: Pool) -> None:
    next(pool.run([1, 2, 50_000]))  # nobody asks for the others

    assert list(pool.run([4, 5])) == [(4, 8), (5, 10)]


def test_an_error_comes_when_it_is_its_items_turn(pool: Pool) -> None:
    results = pool.run([90_000, 101, 103, 2])

    assert next(results) == (90_000, 180_000)
    with pytest.raises(UnknownBot, match="101 is odd"):
        next(results)


def test_what_is_not_wanted_any_more_is_left_out_with_its_error(pool: Pool) -> None:
    out: set[int] = set()
    handed = []
    for item, _ in pool.run([50_000, 101, 2], wanted=lambda item: item not in out):
        handed.append(item)
        out.add(101)

    assert handed == [50_000, 2]


@pytest.mark.parametrize("items", [[1, 2, 3], after_the_first_is_dead()], ids=["at once", "later"])
def test_a_worker_that_was_ended_is_one_line(items: Iterable[int]) -> None:
    with pytest.raises(ArenaError, match="a process that played was ended from outside"):
        run(dying, items)


@pytest.mark.parametrize(
    ("item", "error", "says"),
    [
        (1, ConnectionResetError, "a fault of the task"),
        (2, RuntimeError, "PickyError in a worker process"),
        (3, Exception, "pickle"),
    ],
)
def test_an_error_comes_with_its_traceback(item: int, error: type[Exception], says: str) -> None:
    with WorkerPool(faulty, 2, "played") as pool:
        results = pool.run([0, item])

        assert next(results) == (0, 0)
        with pytest.raises(error, match=says) as caught:
            next(results)

    assert "Traceback" in str(caught.value.__cause__)


def test_a_task_that_a_worker_cannot_read_fails_at_its_first_item() -> None:
    with pytest.raises(UnknownBot, match="the file is gone"):
        run(Unreadable(), [1, 2, 3])


def test_what_a_task_prints_is_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    run(talkative, ["hello"])

    assert capfd.readouterr() == ("", "hello\n")


def test_workers_end_with_the_block() -> None:
    before = multiprocessing.active_children()
    with WorkerPool(doubled, 2, "played") as pool:
        results = pool.run([1] * 50)
        next(results)
        workers = set(multiprocessing.active_children()) - set(before)

        assert workers  # a second one only if the first is busy
    assert not any(worker.is_alive() for worker in workers)


def test_a_worker_that_reports_ends_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_CLOSE_S", 60.0)
    path = tmp_path / "end"
    pool = WorkerPool[Any, Any](with_a_bot_that_says_goodbye, 1, "played")
    with pytest.raises(KeyboardInterrupt), pool:
        list(pool.run([str(path)], interrupting))

    assert path.read_text() == "goodbye"


def test_a_worker_that_does_not_report_is_killed() -> None:
    before = set(multiprocessing.active_children())
    with WorkerPool[Any, Any](deaf, 1, "played") as pool:
        results = pool.run([1], interrupting)
        with pytest.raises(KeyboardInterrupt):
            list(results)
        [worker] = set(multiprocessing.active_children()) - before

    assert worker.exitcode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGKILL")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import os\n"
        "from arena.sandbox.worker_pool import WorkerPool\n"
        "def work(item, tick):\n"
        "    os.write(2, b'x')\n"
        "    while True: pass\n"
        "if __name__ == '__main__':\n"
        "    with WorkerPool(work, 2, 'played') as pool: next(pool.run([1, 2]))\n"
    )
    with subprocess.Popen(
        [sys.executable, "work.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as parent:
        assert parent.stderr is not None
        assert parent.stderr.read(2) == b"xx"
        parent.kill()
    with contextlib.suppress(ProcessLookupError):  # nothing of it is left
        while True:
            os.killpg(parent.pid, 0)
            time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ, and it has no masks")
def test_ctrl_c_ends_the_programs_of_a_bot_but_no_worker() -> None:
    assert run(interruptible, [1]) == [(1, (True, True))]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, []), "it is let through"


def test_a_machine_without_masks_starts_workers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)

    assert run(process_of, [1]) != [(1, os.getpid())]


@pytest.mark.usefixtures("eager")
def test_long_work_goes_to_other_processes() -> None:
    results, units = all_results(process_of, [*range(20)], jobs=2)

    assert [item for item, _ in results] == [*range(20)]
    assert [item for item, pid in results if pid == os.getpid()] == [0]
    assert units == 20


@pytest.mark.usefixtures("eager")
def test_other_processes_begin_in_the_middle_of_an_item(tmp_path: Path) -> None:
    items = [str(tmp_path / name) for name in ("first", "second")]

    results, _ = all_results(waiting_for_another, items, jobs=2)

    assert results == [(items[0], True), (items[1], True)]


@pytest.mark.usefixtures("eager")
def test_there_are_at_most_four_processes_per_core(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Pool(WorkerPool[Any, Any]):
        def __init__(self, task: Any, workers: int, work: str) -> None:
            asked.append(workers)
            super().__init__(task, 1, work)

    monkeypatch.setattr(worker_pool, "usable_cores", lambda: 2)
    monkeypatch.setattr(worker_pool, "WorkerPool", Pool)
    all_results(process_of, list(range(1000)), jobs=1000)

    assert asked == [8]


@pytest.mark.parametrize(
    ("is_long", "items", "jobs", "is_gone"),
    [
        pytest.param(False, 20, 8, False, id="short work"),
        pytest.param(True, 20, 1, False, id="one job"),
        pytest.param(True, 1, 8, False, id="one item"),
        pytest.param(
            *(True, 5, 2, True),
            id="in a directory that was removed",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="it keeps the directory"),
        ),
    ],
)
def test_what_is_short_or_cannot_be_shared_is_done_here(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    is_long: bool,
    items: int,
    jobs: int,
    is_gone: bool,
) -> None:
    if is_long:
        request.getfixturevalue("eager")
    monkeypatch.chdir(tmp_path)
    if is_gone:
        tmp_path.rmdir()
    results, units = all_results(process_of, [*range(items)], jobs)

    assert results == [(item, os.getpid()) for item in range(items)]
    assert units == items


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("jobs", [1, 2])
def test_any_number_of_processes_gives_the_same(jobs: int) -> None:
    items = [30, 101, 3, 40, 5]
    results, units = all_results(doubled, items, jobs, wanted=lambda item: item != 101)

    assert results == [(30, 60), (3, 6), (40, 80), (5, 10)]
    assert units == 78


def test_units_that_take_no_time_are_reported_together() -> None:
    reports: list[int] = []
    count = UnitCount(reports.append)
    for _ in range(3):
        count.tick()
    count.flush()

    assert sum(reports) == 3


def test_the_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 5, 7}, raising=False)
    assert usable_cores() == 3

    monkeypatch.delattr(os, "sched_getaffinity")
    for counted, usable in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda counted=counted: counted)
        assert usable_cores() == usable


def test_a_pool_that_is_closed_at_once_drops_its_work_silently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed: list[object] = []
    monkeypatch.setattr("threading.excepthook", failed.append)
    monkeypatch.setattr(worker_pool, "_CLOSE_S", 0.0)
    for _ in range(3):
        with WorkerPool(lingering, 2, "played") as pool:
            results: Any = pool.run(range(20))
            assert next(results) == (0, 0)
            results.close()

    assert failed == []
