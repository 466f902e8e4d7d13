"""Servers and clients that are measured: processes that stand still while others have their turn.

A server is asked for its decisions and its CPU time over HTTP, as `/metrics` of every arena has
them. So an arena of another commit and a server that is no arena are measured in the same way.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import arena
from arena.sandbox.process_table import probe, reader
from arena.sandbox.supervisor import ends_with_this
from protocol.errors import ArenaError

__all__ = [
    "TREE",
    "LoadedServer",
    "PythonProgram",
    "Window",
    "environment",
    "loaded",
    "module",
    "source",
]

TREE = Path(arena.__file__).parents[1]
"""The tree that this arena is of."""

_START_S = 60.0  # for a process to start, or a first round of questions, on a busy machine
_LOOK_S = 0.05  # between two looks whether it has
_RAMP_S = 0.1  # of a turn before it is measured: caches are cold
_END_S = 10.0  # for a server to stop
_FIGURE = re.compile(
    rb"^(arena_decisions_total|arena_matches|process_cpu_seconds_total) (\S+)", re.MULTILINE
)


def environment(tree: Path) -> dict[str, str]:
    """The variables with which Python takes modules from this tree, whatever is installed."""
    paths = (str(tree), os.environ.get("PYTHONPATH", ""))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class PythonProgram(NamedTuple):
    """A program: the words after `python`, the tree whose modules it imports, and variables."""

    words: tuple[str, ...]
    tree: Path = TREE
    env: Mapping[str, str] = {}

    def with_env(self, **variables: str) -> PythonProgram:
        return self._replace(env={**self.env, **variables})


def module(name: str, *words: object) -> PythonProgram:
    """A module of this tree that is a program."""
    return PythonProgram(("-m", name, *map(str, words)))


def source(text: str, *words: object) -> PythonProgram:
    """A program given by its text."""
    return PythonProgram(("-c", text, *map(str, words)))


class Window(NamedTuple):
    """What one server and its clients did while they had their turn."""

    decisions: float
    elapsed_s: float
    server_s: float
    client_s: float

    @property
    def per_s(self) -> float:
        return self.decisions / self.elapsed_s

    @property
    def server_us(self) -> float:
        return self.server_s / self.decisions * 1e6

    @property
    def client_us(self) -> float:
        return self.client_s / self.decisions * 1e6


class _Figures(NamedTuple):
    """What a server says of itself."""

    decisions: float
    matches: float
    cpu_s: float


class _Measured:
    """A running process; what it prints goes to a file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process, self._log = process, log

    def said(self) -> str:
        """What it has printed; raises `ArenaError` if it has ended."""
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        if self.process.returncode is not None:
            last = text.splitlines()[-1:] or ["no message"]
            raise ArenaError(f"a process that was to be measured has ended: {last[0]}")
        return text

    async def url(self) -> str:
        """The address that it prints when it listens."""
        async with _in_time("a server to listen"):
            while not (found := re.search(r"ws://(\S+?):(\d+)", self.said())):
                await asyncio.sleep(_LOOK_S)
        return found[0]

    def cpu_s(self) -> float:
        cpu = reader().cpu(self.process.pid)
        if cpu is None:
            self.said()
            raise ArenaError("a process that was to be measured has ended")
        return cpu.own_ms / 1000

    def pause(self) -> None:
        self._stand("SIGSTOP", "suspend")

    def resume(self) -> None:
        self._stand("SIGCONT", "resume")

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)
        self.resume()

    def _stand(self, name: str, of_psutil: str) -> None:
        if hasattr(signal, name):
            self._signal(getattr(signal, name))
        else:  # Windows
            process = importlib.import_module("psutil").Process(self.process.pid)
            getattr(process, of_psutil)()

    def _signal(self, number: int) -> None:
        # Not by `send_signal`, which takes the exit status that asyncio waits for.
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)


@asynccontextmanager
async def _running(program: PythonProgram, folder: Path) -> AsyncIterator[_Measured]:
    """A process of a program, in a folder of its own; stopped at the end."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        log = Path(own) / "log"
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                # -P: the tree alone says where modules come from
                *(sys.executable, "-P", *program.words),
                cwd=own,
                env={**environment(program.tree), **program.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=ends_with_this(),
            )
        running = _Measured(process, log)
        try:
            yield running
        finally:
            running.terminate()
            await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def _in_time(what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_START_S):
            yield
    except TimeoutError:
        raise ArenaError(f"expected {what} within {_START_S:.0f} s") from None


class LoadedServer:
    """A server with clients that keep it busy in its turns, and stand still between these."""

    def __init__(self, server: _Measured, clients: Sequence[_Measured], url: str) -> None:
        self._server, self._clients = server, clients
        self._host, port = url.removeprefix("ws://").split(":")
        self._port = int(port)

    async def settle(self, tables: int) -> None:
        """Wait until `tables` matches are played at once, then stop the clients."""
        async with _in_time("bots to play"):
            while (figures := await self._figures()).matches < tables or not figures.decisions:
                await self._look_again()
        self._pause()

    async def turn(self, seconds: float, decisions: int = 1) -> Window:
        """Measure the clients for at least `seconds` and at least `decisions` decisions."""
        for client in self._clients:
            client.resume()
        await asyncio.sleep(_RAMP_S)
        clients_s = self._clients_s()
        before = await self._figures()
        started = time.perf_counter()
        await asyncio.sleep(seconds)
        async with _in_time("bots to decide"):
            while (after := await self._figures()).decisions < before.decisions + decisions:
                await self._look_again()
        elapsed = time.perf_counter() - started
        clients_s = self._clients_s() - clients_s
        self._pause()
        decided = after.decisions - before.decisions
        return Window(decided, elapsed, after.cpu_s - before.cpu_s, clients_s)

    async def _look_again(self) -> None:
        for process in (self._server, *self._clients):
            process.said()
        await asyncio.sleep(_LOOK_S)

    def _pause(self) -> None:
        for client in self._clients:
            client.pause()

    def _clients_s(self) -> float:
        return sum(client.cpu_s() for client in self._clients) if probe() is None else 0.0

    async def _figures(self) -> _Figures:
        try:
            body = await _fetch(self._host, self._port, "/metrics")
        except OSError as error:
            self._server.said()
            raise ArenaError(f"a server that was to be measured does not answer: {error}") from None
        figures = {name: float(value) for name, value in _FIGURE.findall(body)}
        if len(figures) < len(_Figures._fields):
            raise ArenaError("expected /metrics with decisions, matches and CPU time")
        return _Figures(
            figures[b"arena_decisions_total"],
            figures[b"arena_matches"],
            figures[b"process_cpu_seconds_total"],
        )


async def _fetch(host: str, port: int, path: str) -> bytes:
    stream, to = await asyncio.open_connection(host, port)
    try:
        to.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        async with _in_time("/metrics"):
            return await stream.read()
    finally:
        to.close()


@asynccontextmanager
async def loaded(
    folder: Path,
    server: PythonProgram,
    clients: Sequence[PythonProgram],
    *,
    tables: int,
    delay_ms: float = 0,
) -> AsyncIterator[LoadedServer]:
    """A server and its clients, once `tables` matches are played at once; all end with the block.

    The clients get the address as `ARENA_URL`. With a delay a slow network is in between.
    """
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(_running(server, folder))
        url = near = await running.url()
        if delay_ms:
            host, port = url.removeprefix("ws://").split(":")
            slow = module("tests.tools.bench.relay", host, port, delay_ms)
            near = await (await stack.enter_async_context(_running(slow, folder))).url()
        playing = [
            await stack.enter_async_context(_running(client.with_env(ARENA_URL=near), folder))
            for client in clients
        ]
        side = LoadedServer(running, playing, url)
        await side.settle(tables)
        yield side
