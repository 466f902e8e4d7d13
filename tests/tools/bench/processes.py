"""Servers and clients that are measured: processes that stand still while others have their turn.

A server is asked for its decisions and its CPU time over HTTP, as `/metrics` of every arena has
them. So an arena of another commit and a server that is no arena are measured in the same way.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import psutil  # type: ignore[import-untyped]

from arena.sandbox.supervisor import ends_with_this
from tests.tools.trees import ROOT

__all__ = [
    "HERE",
    "START_S",
    "Program",
    "Running",
    "Side",
    "Tree",
    "Window",
    "in_turn",
    "running",
    "until",
]

START_S = 120.0
"""For a process to start, or a first round of questions, on a busy machine."""

_LOOK_S = 0.05  # between two looks whether it has
_RAMP_S = 0.1  # of a turn before it is measured: caches are cold
_END_S = 10.0  # for a process to stop
_MOST = 0.9  # of the matches: where some end all the time, others begin
_FIGURE = re.compile(
    rb"^(arena_decisions_total|arena_matches|process_cpu_seconds_total) (\S+)", re.MULTILINE
)


class Tree(NamedTuple):
    """Whose programs are run: a Python, and the path of its modules if they are not installed."""

    name: str
    python: str = sys.executable
    path: str = str(ROOT)


HERE = Tree("this")


class Program(NamedTuple):
    """A program: the words after `python`, the tree whose modules it imports, and variables."""

    words: tuple[object, ...]
    tree: Tree = HERE
    env: tuple[tuple[str, str], ...] = ()


class Running:
    """A process in a folder of its own; what it prints goes to a file there."""

    def __init__(self, program: Program, folder: str, url: str) -> None:
        tree = program.tree
        self._log = Path(folder, "log")
        with self._log.open("wb") as log:
            # -P: the tree alone says where modules come from.
            self.process: Any = psutil.Popen(
                [tree.python, "-P", *map(str, program.words)],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": tree.path, "ARENA_URL": url} | dict(program.env),
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
        pattern = re.compile(r"ws://[^\s:]+:\d+")
        return until(lambda: pattern.search(self.said()), "a server to listen")[0]

    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def end(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self.process.terminate()
            self.process.resume()
            try:
                self.process.wait(_END_S)
            except psutil.TimeoutExpired:
                self.process.kill()
        self.process.wait()


@contextmanager
def running(program: Program, url: str = "") -> Iterator[Running]:
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


class Side(NamedTuple):
    """A server with its clients, which play so many matches at once, before they are started."""

    server: Program
    clients: Sequence[Program]
    tables: int
    relay: Program | None = None  # a slow network in between


class Window(NamedTuple):
    """What one server and its clients needed for a decision while they had their turn, in µs."""

    clock_us: float
    server_us: float
    client_us: float


class _Figures(NamedTuple):
    """What a server says of itself."""

    decisions: float
    matches: float
    cpu_s: float


class _Load:
    """A server and clients that keep it busy in its turns; all stand still between these."""

    def __init__(self, server: Running, clients: Sequence[Running], url: str) -> None:
        self._server, self._clients = server, clients
        self._metrics = url.replace("ws://", "http://") + "/metrics"

    def settle(self, tables: int) -> None:
        """Wait until `tables` matches are played at once, then have all stand still."""
        until(lambda: self._figures().matches >= _MOST * tables, f"{tables} matches at once")
        until(lambda: self._figures().decisions, "bots to decide")
        self._pause()

    def turn(self, seconds: float) -> Window:
        """Measure the clients for at least `seconds` and at least 100 decisions."""
        for each in (self._server, *self._clients):
            each.process.resume()
        time.sleep(_RAMP_S)
        clients_s, before = self._clients_s(), self._figures()
        started = time.perf_counter()
        time.sleep(seconds)
        enough = before.decisions + 100  # else some process may not have worked at all
        until(lambda: self._figures().decisions >= enough, "bots to decide")
        after = self._figures()
        elapsed = time.perf_counter() - started
        clients_s = self._clients_s() - clients_s
        self._pause()
        each_us = 1e6 / (after.decisions - before.decisions)
        server_s = after.cpu_s - before.cpu_s
        return Window(elapsed * each_us, server_s * each_us, clients_s * each_us)

    def _pause(self) -> None:
        # The server too: else it would miss its bots, while other sides have long turns.
        for each in (*self._clients, self._server):
            each.process.suspend()

    def _clients_s(self) -> float:
        return sum(client.cpu_s() for client in self._clients)

    def _figures(self) -> _Figures:
        for process in (self._server, *self._clients):
            process.said()
        with urlopen(self._metrics, timeout=START_S) as answer:
            found = {name: float(value) for name, value in _FIGURE.findall(answer.read())}
        names = (b"arena_decisions_total", b"arena_matches", b"process_cpu_seconds_total")
        return _Figures(*(found[name] for name in names))


def in_turn(sides: Sequence[Side], rounds: int, seconds: float) -> list[list[Window]]:
    """The windows of each side, round by round; rounds go forth and back through the sides."""
    with ExitStack() as stack:
        loads = [_loaded(stack, side) for side in sides]
        windows: list[list[Window]] = [[] for _ in sides]
        for number in range(rounds):
            pairs = list(zip(loads, windows, strict=True))
            for load, own in reversed(pairs) if number % 2 else pairs:
                own.append(load.turn(seconds))
    return windows


def _loaded(stack: ExitStack, side: Side) -> _Load:
    """A server and its clients, once all matches are played at once; all end with the stack."""
    server = stack.enter_context(running(side.server))
    url = near = server.url()
    if side.relay is not None:
        near = stack.enter_context(running(side.relay, url)).url()
    clients = [stack.enter_context(running(client, near)) for client in side.clients]
    load = _Load(server, clients, url)
    load.settle(side.tables)
    return load
