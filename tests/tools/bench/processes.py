"""Servers and clients that are measured: processes that stand still while others have their turn.

A server is asked for its decisions and matches over HTTP, as `/metrics` of every arena has them. So an arena of another commit and a server that is no arena are measured in the same way.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import psutil  # type: ignore[import-untyped]

from arena.sandbox.process_table import reader
from arena.sandbox.supervisor import ends_with_this
from tests.tools.trees import ROOT, scratch

__all__ = [
    "HERE",
    "START_S",
    "MeasuredProgram",
    "MeasuredSide",
    "Running",
    "Tree",
    "Window",
    "figure",
    "in_turn",
    "running",
    "until",
]

START_S = 120.0
"""For a process to start, or a first round of questions, on a busy machine."""

_LOOK_S = 0.05  # between two looks whether it has
_RAMP_S = 0.1  # before a turn is measured: a server catches up with what it has missed
_LEAST_DECISIONS = 100  # of a turn: else some process may not have worked at all
_END_S = 10.0  # for a process to stop
_MOST = 0.9  # of the matches: where some end all the time, others begin


class Tree(NamedTuple):
    """Whose programs are run: a Python, and the path of its modules if they are not installed."""

    name: str
    python: str = sys.executable
    path: str = str(ROOT)

    def env(self, url: str = "") -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": self.path, "ARENA_URL": url}


HERE = Tree("this")


@contextmanager
def installed(commit: str, folder: Path | None = None) -> Iterator[Tree]:
    """A commit in a virtual environment of its own, which uses the libraries of this one.

    Args:
        commit: as git names it.
        folder: where the environment is made and kept; one that is there is used as it is. Without
            a folder it goes afterwards.

    Raises:
        SystemExit: git does not know the commit, or it cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        home = Path(folder or made).resolve()
        python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        if not python.exists():
            venv.create(home)
            # Of a folder that stands in a `.pth` file Python reads no `.pth` files. So what is an
            # editable checkout here, as this tree, is not found there.
            paths = {"base": str(home), "platbase": str(home)}
            own = Path(sysconfig.get_path("purelib", "venv", vars=paths), "libraries.pth")
            own.write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
            with scratch(commit) as files:
                words = ("--quiet", "--no-deps", "--no-build-isolation", str(files))
                pip = (sys.executable, "-m", "pip", "--python", str(python), "install", *words)
                if subprocess.run(pip).returncode:
                    raise SystemExit(f"{commit} cannot be installed")
        yield Tree(commit, str(python), "")


class MeasuredProgram(NamedTuple):
    """A program: the words after `python`, and the tree whose modules it imports."""

    words: tuple[object, ...]
    tree: Tree = HERE


class Running:
    """A process in a folder of its own; what it prints goes to a file there."""

    def __init__(self, program: MeasuredProgram, folder: str, url: str) -> None:
        self._log = Path(folder, "log")
        with self._log.open("wb") as log:
            # -P: the tree alone says where modules come from.
            self.process: Any = psutil.Popen(
                [program.tree.python, "-P", *map(str, program.words)],
                cwd=folder,
                env=program.tree.env(url),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=ends_with_this(),
            )

    def said(self) -> str:
        """What it has printed.

        Raises:
            SystemExit: it has ended.
        """
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        if self.process.poll() is not None:
            last = text.splitlines()[-1:] or ["no message"]
            raise SystemExit(f"a process that was to be measured has ended: {last[0]}")
        return text

    def url(self) -> str:
        """The address that it prints when it listens."""
        found: re.Match[str] = until(
            lambda: re.search(r"ws://[^\s:]+:\d+", self.said()), "a server to listen"
        )
        return found[0]

    def cpu_s(self) -> float:
        cpu = reader().cpu(self.process.pid)  # in finer steps than psutil has
        assert cpu is not None, "it is running"
        return cpu.own_ms / 1000

    def end(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self.process.terminate()
            self.process.resume()
            with suppress(psutil.TimeoutExpired):
                self.process.wait(_END_S)
            self.process.kill()
        self.process.wait()


@contextmanager
def running(program: MeasuredProgram, url: str = "") -> Iterator[Running]:
    """A process of a program, which gets the address as `ARENA_URL`; stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        process = Running(program, folder, url)
        try:
            yield process
        finally:
            process.end()


def until(found: Callable[[], Any], what: str, within_s: float = START_S) -> Any:
    """What a function gives as soon as that is something.

    Raises:
        SystemExit: it took too long.
    """
    give_up = time.monotonic() + within_s
    while not (value := found()):
        if time.monotonic() > give_up:
            raise SystemExit(f"expected {what} within {within_s:.0f} s")
        time.sleep(_LOOK_S)
    return value


def figure(url: str, name: str) -> float:
    """One of the figures that a server says of itself."""
    with urlopen(url.replace("ws://", "http://") + "/metrics", timeout=START_S) as answer:
        [value] = re.findall(rf"^{re.escape(name)} (\S+)", answer.read().decode(), re.MULTILINE)
    return float(value)


class MeasuredSide(NamedTuple):
    """A server with its clients, which play so many matches at once, before they are started."""

    server: MeasuredProgram
    clients: Sequence[MeasuredProgram]
    tables: int


class Window(NamedTuple):
    """What one server and its clients needed for a decision while they had their turn, in µs."""

    clock_us: float
    server_us: float
    client_us: float


class _Load:
    """A server and clients that keep it busy in its turns; all stand still between these."""

    def __init__(self, stack: ExitStack, side: MeasuredSide) -> None:
        self._server = stack.enter_context(running(side.server))
        self._url = self._server.url()
        self._clients = [stack.enter_context(running(client, self._url)) for client in side.clients]
        until(lambda: self._figure("arena_matches") >= _MOST * side.tables, "matches to begin")
        until(lambda: self._figure("arena_decisions_total"), "bots to decide")
        self._pause()
        self._server.process.suspend()

    def turn(self, seconds: float) -> Window:
        """Measure all of them for at least `seconds`."""
        self._server.process.resume()
        time.sleep(_RAMP_S)
        # What the server needs for its figures comes before or after what is measured.
        decided, before = self._figure("arena_decisions_total"), self._cpu_s()
        elapsed, give_up = 0.0, time.monotonic() + START_S
        while True:
            started = time.perf_counter()
            for client in self._clients:
                client.process.resume()
            time.sleep(seconds)
            self._pause()
            elapsed += time.perf_counter() - started
            after = self._cpu_s()
            decisions = self._figure("arena_decisions_total") - decided
            if decisions >= _LEAST_DECISIONS:
                break
            if time.monotonic() > give_up:
                raise SystemExit(f"expected bots to decide within {START_S:.0f} s")
        # Else it would miss its bots, while other sides have long turns.
        self._server.process.suspend()
        server_s, clients_s = (b - a for a, b in zip(before, after, strict=True))
        return Window(*(1e6 * each / decisions for each in (elapsed, server_s, clients_s)))

    def _pause(self) -> None:
        for client in self._clients:
            client.process.suspend()

    def _cpu_s(self) -> tuple[float, float]:
        """The CPU time of the server and of its clients."""
        return self._server.cpu_s(), sum(client.cpu_s() for client in self._clients)

    def _figure(self, name: str) -> float:
        for each in (self._server, *self._clients):
            each.said()
        return figure(self._url, name)


def in_turn(sides: Sequence[MeasuredSide], rounds: int, seconds: float) -> list[list[Window]]:
    """The windows of each side, round by round; rounds go forth and back through the sides."""
    with ExitStack() as stack:
        loads = [_Load(stack, side) for side in sides]
        windows: list[list[Window]] = [[] for _ in sides]
        for number in range(rounds):
            pairs = list(zip(loads, windows, strict=True))
            for load, own in reversed(pairs) if number % 2 else pairs:
                own.append(load.turn(seconds))
    return windows
