"""What bots cost an arena that are connected and wait for a match.

That is seen from outside, at an `arena serve` in a process of its own: what it holds has then nothing to do with what was measured before.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from arena.games import GAMES
from arena.sandbox.process_table import Processes, probe, reader
from protocol.errors import ArenaError

__all__ = ["IDLE", "IdleCost", "idle"]

_CONNECT_S = 30.0
IDLE = 500  # connections: a large class
_FIRST = 20  # of them, for what the first ones bring about once and for all
_SECONDS = 20.0  # what is between the pings to an idle bot in the end
_SETTLE_S = 2.0  # for the pings that measure the links
_CONNECTS_PER_S = 50  # at least, on a machine that has other work, too
_JOIN = 4
"""One bot more for so many that are there is timed: then what a join brings about now and then, as a collection of garbage, is in it once."""

_CROWD = """
import asyncio, json, sys
from contextlib import suppress
from websockets.asyncio.client import connect

async def idle(door, url, number, games):
    hello = {"type": "hello", "protocol": 1, "name": f"idle {number}", "games": games}
    async with door:
        websocket = await connect(url, compression=None)
        await websocket.send(json.dumps(hello))
        assert json.loads(await websocket.recv())["type"] == "welcome"
        print("welcome", flush=True)
    async for message in websocket:
        pass

async def main(url, first, count, *games):
    with suppress(ImportError, OSError, ValueError):
        import resource
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    door = asyncio.Semaphore(20)
    numbers = range(int(first), int(first) + int(count))
    await asyncio.gather(*(idle(door, url, number, games) for number in numbers))

asyncio.run(main(*sys.argv[1:]))
"""
"""Bots that are connected and do nothing, but answer pings as `websockets` does; it prints a line for every one that is welcome."""


class IdleCost(msgspec.Struct, frozen=True, kw_only=True):
    """(e) Bots that are connected over WebSocket and wait for a match.

    Attributes:
        connections: how many.
        kib_each: how much more memory the server holds for one more of them, in KiB.
        cpu_percent: what the server needs to have them all there, per cent of a core.
        join_ms: what it needs for one more to come in, from the opened connection to `welcome`, in ms of CPU.
    """

    connections: int
    kib_each: float
    cpu_percent: float
    join_ms: float


async def idle(connections: int = IDLE, seconds: float = _SECONDS) -> IdleCost | None:
    """What bots cost that are connected and have nothing to do; None where other processes cannot be looked at.

    Args:
        connections: how many; more than 20.
        seconds: for how long the server's CPU time is measured.

    Raises:
        ArenaError: the arena or the bots did not start.
    """
    if probe() is not None:
        return None
    look = reader()
    more = connections - _FIRST
    async with _arena() as (server, url), _crowd(url, 0, _FIRST):
        before = _rss_bytes(look, server)
        async with _crowd(url, _FIRST, more):
            held = _rss_bytes(look, server) - before
            started, cpu_ms = time.perf_counter(), _cpu_ms(look, server)
            await asyncio.sleep(seconds)
            share = (_cpu_ms(look, server) - cpu_ms) / (time.perf_counter() - started)
            started, cpu_ms = time.perf_counter(), _cpu_ms(look, server)
            async with _crowd(url, connections, connections // _JOIN, settle_s=0.0):
                joins_ms = _cpu_ms(look, server) - cpu_ms
                joins_ms -= share * (time.perf_counter() - started)
    return IdleCost(
        connections=connections,
        kib_each=held / more / 1024,
        cpu_percent=share / 10,  # of ms per s
        join_ms=max(0.0, joins_ms / (connections // _JOIN)),
    )


@asynccontextmanager
async def _arena() -> AsyncIterator[tuple[int, str]]:
    """An `arena serve` that never has enough bots to begin: its process id and address."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--port", "0", "--players", "1000000", "--per-address", "1000000"]
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arena", "serve", *words),
            *("--db", str(Path(folder) / "idle.db")),
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert server.stderr is not None, "it is a pipe"
            line = await asyncio.wait_for(server.stderr.readline(), _CONNECT_S)
            [url] = [word for word in line.decode().split() if "://" in word] or [""]
            if not url:
                raise ArenaError(f"expected an arena's address, got {line!r}")
            yield server.pid, url
        finally:
            with suppress(ProcessLookupError):
                server.terminate()
            await server.wait()


@asynccontextmanager
async def _crowd(
    url: str, first: int, count: int, settle_s: float = _SETTLE_S
) -> AsyncIterator[None]:
    """So many idle bots, from the moment when all of them are welcome and have been left alone for a while."""
    crowd = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _CROWD, url, str(first), str(count), *GAMES),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert crowd.stdout is not None, "it is a pipe"
        async with asyncio.timeout(_CONNECT_S + count / _CONNECTS_PER_S):
            for number in range(count):
                if not await crowd.stdout.readline():
                    raise ArenaError(f"expected {count} connections, got {number}")
        await asyncio.sleep(settle_s)
        yield
    finally:
        with suppress(ProcessLookupError):
            crowd.kill()
        await crowd.wait()


def _rss_bytes(look: Processes, pid: int) -> int:
    memory = look.memory(pid)
    if memory is None:
        raise ArenaError("the arena that was to be measured has ended")
    return memory.rss_bytes


def _cpu_ms(look: Processes, pid: int) -> float:
    cpu = look.cpu(pid)
    if cpu is None:
        raise ArenaError("the arena that was to be measured has ended")
    return cpu.own_ms
