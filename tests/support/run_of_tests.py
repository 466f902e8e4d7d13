"""No test takes others with it: what one has started ends with it, and at the end of the run all does.

A test that leaves a process behind fails, and is told which. Processes are known by a variable of
their environment, which says whether a test has started them or a fixture of a wider scope. Those
that drop it are ended with the run: pytest runs below a process that waits for its end, by a signal
or by itself, and then ends all that is left below itself. That takes Linux.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.arena_process import RunningProcess, alive, below, running

__all__ = [
    "begin",
    "lasting",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_runtest_makereport",
    "pytest_runtest_teardown",
]

_MARK = "ARENA_TESTS"
_PATIENCE_S = float(os.environ.get("ARENA_TESTS_PATIENCE_S", "10"))  # with what is just ending
_PYTHONS_OWN = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_SI_KERNEL = 0x80  # of a signal from the terminal, which all of its processes get
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD}


# ---- The run


def pytest_configure(config: pytest.Config) -> None:
    """Let the run go on below its guard; in each of its processes set right what Ctrl-C does."""
    # Many containers set it. Each `arena` that a test starts would then compile all its modules again,
    # and each process of pytest all the tests.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # A shell has what it starts in its background ignore it, and so would all that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform != "linux":
        return
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup: the run goes on ignoring it
        signal.signal(signal.SIGHUP, lambda *_: None)  # what it starts does not
    if not hasattr(config, "workerinput"):
        _go_on_below_a_guard(config.pluginmanager.getplugin("capturemanager"))
    _mark("test")
    sys.addaudithook(_started.on_event)


def _go_on_below_a_guard(capture: Any) -> None:
    """Fork: the child returns and is the run, and this process guards it to its end."""
    prctl = ctypes.CDLL(None).prctl
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    run = os.fork()
    if run == 0:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    while (status := _reap(run)) is None:
        info = signal.sigwaitinfo(_SIGNALS)
        if info.si_signo != signal.SIGCHLD and info.si_code != _SI_KERNEL:
            os.kill(run, info.si_signo)
    ended = _end_all(lambda: (_reap(run), below(os.getpid()))[1])
    if ended:
        capture.suspend_global_capture(in_=True)
        print("Tests have left running:", *ended, sep="\n  ", file=sys.stderr, flush=True)
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) or bool(ended))


def _reap(run: int) -> int | None:
    """Take leave of all children that have ended; the status of the run if it is among them."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == run:
                return ended[1]
    return None


# ---- A test


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """No garbage is collected while a failure is written down, and one always is.

    A finalizer that fails then is reported with a traceback, for which Python parses source while
    pytest does so. Before 3.12 the outer parser takes that for a fault of its own, and pytest ends.
    It also ends at a traceback with a frame of no line, which a signal may leave.
    """
    gc.disable()
    try:
        return (yield)
    except Exception:
        if call.excinfo is None or call.when == "collect":
            raise
        frames = traceback.walk_tb(call.excinfo.tb)
        ways = [f"{at.f_code.co_filename}:{line}: in {at.f_code.co_name}" for at, line in frames]
        shown = "\n".join([*ways, *traceback.format_exception_only(call.excinfo.value)])
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", shown, call.when)
    finally:
        gc.enable()


class _Started:
    """Whether this process has started another since this was last asked."""

    def __init__(self) -> None:
        self._is_any = False

    def on_event(self, event: str, _: object) -> None:
        """Hear of all that Python does."""
        if event == "subprocess.Popen":
            self._is_any = True

    def take(self) -> bool:
        is_any, self._is_any = self._is_any, False
        return is_any


_started = _Started()


def _mark(scope: str) -> None:
    """Have what is started from now on say that it ends with this: a test, its file, or the run."""
    os.environ[_MARK] = f"{os.getpid()} {scope}"


@contextmanager
def lasting(scope: str) -> Iterator[None]:
    """What is started within this may outlast the test: to the end of its `file`, or of the `run`."""
    before = os.environ.get(_MARK)
    _mark(scope)
    try:
        yield
    finally:
        if before is not None:
            os.environ[_MARK] = before


def begin(item: pytest.Item) -> None:
    """Hear that a test begins; in some files the tests share what they start."""
    _mark("file" if item.get_closest_marker("shares_processes") else "test")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """What a fixture has started may last as long as the fixture."""
    if fixturedef.scope == "function":
        return (yield)
    with lasting("run" if fixturedef.scope in ("session", "package") else "file"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A test has failed that leaves a process behind; it is ended."""
    try:
        return (yield)
    finally:
        scopes = ["test"]
        if nextitem is None or nextitem.path != item.path:
            scopes.append("file")
        if _started.take() or "file" in scopes:
            ended = _end_all(lambda: _marked(scopes))
            if ended:
                pytest.fail("\n  ".join(["left running:", *ended]), pytrace=False)


def _marked(scopes: list[str]) -> set[RunningProcess]:
    """All processes that end with one of these, and that a test of this process has started.

    Not those with which Python itself keeps what its processes share; they end with it.
    """
    marks = {f"{_MARK}={os.getpid()} {scope}".encode() for scope in scopes}
    found = set()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if marks & set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if not any(name in command for name in _PYTHONS_OWN):
                    found |= running(int(pid))
    return found


def _end_all(find: Callable[[], set[RunningProcess]]) -> list[str]:
    """Wait for the end of what is found; the command lines of those that had to be killed."""
    give_up_at = time.monotonic() + _PATIENCE_S
    while (left := find()) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    ended = [*alive(left).values()]
    while left := find():
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        time.sleep(0.02)
    return ended
