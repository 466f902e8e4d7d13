"""What bots cost an arena while they are connected and wait for a match.

It is measured from outside, at an `arena serve` in a process of its own, whose memory has nothing
to do with earlier measurements.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from arena.games import GAMES
from arena.sandbox.process_table import Processes, probe, reader
from arena.sandbox.supervisor import ends_with_this
from arena.server.listener import most_files
from protocol.errors import ArenaError

__all__ = ["IdleCost", "idle", "too_few_files"]

_CONNECT_S = 30.0  # for the arena to start
_FIRST = 20  # not counted, as the first connections cost more, once and for all
_SECONDS = 20.0  # the longest interval between two pings to an idle bot
_SETTLE_S = 2.0  # for the pings that measure the links
_CONNECTS_PER_S = 50  # at least, on a machine that has other work, too
_ROUNDS = 5
# In all rounds together a quarter of the bots joins once more and is timed: enough that rare costs,
# as a garbage collection, are among them.
_JOIN = 4
_OTHER_FILES = 100  # that a server or a crowd has open besides

_CROWD = """
import asyncio, json, sys
from contextlib import suppress
from websockets.asyncio.client import connect

async def idle(door, url, number, games):
    hello = {"type": "hello", "protocol": 1, "name": f"idle {number}", "games": games}
    async with door:
        websocket = await connect(url, proxy=None, compression=None)
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
"""The program of bots that only answer pings; it prints a line for each `welcome`."""


class IdleCost(msgspec.Struct, frozen=True, kw_only=True):
    """Bots that are connected over WebSocket and wait for a match.

    Attributes:
        kib_each: memory of the server per connection.
        cpu_percent: CPU time of the server for all of them, per cent of a core; its range is that
            of five parts of the time, as pings are not spread evenly.
        join_ms: CPU time of the server for one more, from the opened connection to `welcome`; the
            median of five crowds, and their range.
    """

    connections: int
    kib_each: float
    cpu_percent: float
    join_ms: float
    cpu_percent_range: tuple[float, float] = (0, 0)
    join_ms_range: tuple[float, float] = (0, 0)


async def idle(connections: int, seconds: float = _SECONDS) -> IdleCost | None:
    """Measure what idle connections cost; None where other processes cannot be measured.

    `connections` must be more than 20; for `seconds` the server's CPU time is measured. It raises
    `ArenaError` if the arena or the bots did not start.
    """
    if probe() is not None:
        return None
    look = reader()
    more = connections - _FIRST
    async with _arena() as (server, url), _crowd(url, 0, _FIRST):
        before = _rss_bytes(look, server)
        async with _crowd(url, _FIRST, more):
            held = _rss_bytes(look, server) - before
            shares = [await _share(look, server, seconds / _ROUNDS) for _ in range(_ROUNDS)]
            share = statistics.mean(shares)
            joins = []
            for _ in range(_ROUNDS):
                count = connections // _JOIN // _ROUNDS
                joins.append(await _join_ms(look, server, url, connections, count, share))
    return IdleCost(
        connections=connections,
        kib_each=held / more / 1024,
        cpu_percent=share / 10,  # of ms per s
        cpu_percent_range=(min(shares) / 10, max(shares) / 10),
        join_ms=statistics.median(joins),
        join_ms_range=(min(joins), max(joins)),
    )


def too_few_files(connections: int) -> str | None:
    """Why this system does not let a process have this many connections; None if it does.

    The server needs most: one for each bot, and for each that joins in a round.
    """
    needed = connections + connections // _JOIN // _ROUNDS + _OTHER_FILES
    most = most_files()
    if most is None or most >= needed:
        return None
    return f"{connections:,} bots need a limit of {needed:,} open files, this system has {most:,}"


async def _share(look: Processes, server: int, seconds: float) -> float:
    """The server's CPU time in ms per second."""
    started, cpu_ms = time.perf_counter(), _cpu_ms(look, server)
    await asyncio.sleep(seconds)
    return (_cpu_ms(look, server) - cpu_ms) / (time.perf_counter() - started)


async def _join_ms(
    look: Processes, server: int, url: str, first: int, count: int, share: float
) -> float:
    """The server's CPU time for each of `count` bots that join, without that for the idle ones."""
    started, cpu_ms = time.perf_counter(), _cpu_ms(look, server)
    async with _crowd(url, first, count, settle_s=0.0):
        joins_ms = _cpu_ms(look, server) - cpu_ms
        joins_ms -= share * (time.perf_counter() - started)
    return max(0.0, joins_ms / count)


@asynccontextmanager
async def _arena() -> AsyncIterator[tuple[int, str]]:
    """Start an `arena serve` that never has enough bots; yields its process id and address."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--port", "0", "--players", "1000000", "--per-address", "1000000"]
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arena", "serve", *words),
            *("--db", str(Path(folder) / "idle.db")),
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=ends_with_this(),
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
    """Connect idle bots; the block begins `settle_s` after all have their `welcome`."""
    crowd = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _CROWD, url, str(first), str(count), *GAMES),
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=ends_with_this(),
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
