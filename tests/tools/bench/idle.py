"""What bots cost an arena while they are connected and wait for a match, and one that joins them.

It is measured from outside, at an `arena serve` in a process of its own, whose memory has nothing
to do with earlier measurements.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from arena.server.listener import most_files
from tests.tools.bench.processes import START_S, Program, Running, running, until
from tests.tools.bench.prototype import GAME
from tests.tools.bench.rows import BenchRow, row_of

__all__ = ["idle_rows"]

_FIRST = 20  # not counted, as the first connections cost more, once and for all
_SETTLE_S = 2.0  # for the pings that measure the links
# In all rounds together a quarter of the bots joins once more and is timed: enough that rare costs,
# as a garbage collection, are among them.
_JOIN = 4
_CONNECTS_PER_S = 50  # at least, on a machine that has other work, too
_OTHER_FILES = 100  # that a server or a crowd has open besides

_CROWD = """
import asyncio, json, os, sys
from contextlib import suppress
from websockets.asyncio.client import connect

async def idle(door, number, game):
    hello = {"type": "hello", "protocol": 1, "name": f"idle {number}", "games": [game]}
    async with door:
        websocket = await connect(os.environ["ARENA_URL"], proxy=None, compression=None)
        await websocket.send(json.dumps(hello))
        assert json.loads(await websocket.recv())["type"] == "welcome"
        print("welcome", flush=True)
    async for message in websocket:
        pass

async def main(first, count, game):
    with suppress(ImportError, OSError, ValueError):
        import resource
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    door = asyncio.Semaphore(20)
    numbers = range(int(first), int(first) + int(count))
    await asyncio.gather(*(idle(door, number, game) for number in numbers))

asyncio.run(main(*sys.argv[1:]))
"""
"""The program of bots that only answer pings; it prints a line for each `welcome`."""


def idle_rows(bots: int, rounds: int, seconds: float) -> Iterator[BenchRow]:
    """Measure what so many idle bots cost, more than 20; each round looks for `seconds`.

    Raises:
        SystemExit: this system does not let a process have so many connections.
    """
    joining = max(1, bots // _JOIN // rounds)
    needed, most = bots + joining + _OTHER_FILES, most_files()
    if most is not None and most < needed:
        raise SystemExit(
            f"{bots:,} bots need a limit of {needed:,} open files, this system has {most:,}"
        )
    # It never has enough bots.
    words = "-m arena serve --port 0 --db idle.db --players 1000000 --per-address 1000000"
    with running(Program(tuple(words.split()))) as arena:
        url = arena.url()
        with _crowd(url, 0, _FIRST):
            before = arena.process.memory_info().rss
            with _crowd(url, _FIRST, bots - _FIRST):
                time.sleep(_SETTLE_S)
                held = arena.process.memory_info().rss - before
                shares = [_share(arena, seconds) for _ in range(rounds)]
                share = statistics.mean(shares)
                joins = [_join_s(arena, url, bots, joining, share) for _ in range(rounds)]
    yield row_of(f"{bots:,} idle bots", "KiB a bot", [held / (bots - _FIRST) / 1024])
    a_bot = [each * 1e6 / bots for each in shares]
    yield row_of(f"{bots:,} idle bots", "µs of CPU a bot and second", a_bot)
    yield row_of(f"a bot that joins {bots:,}", "µs of CPU a join", [each * 1e6 for each in joins])


def _share(arena: Running, seconds: float) -> float:
    """The server's CPU time per second."""
    started, cpu_s = time.perf_counter(), arena.cpu_s()
    time.sleep(seconds)
    return (arena.cpu_s() - cpu_s) / (time.perf_counter() - started)


def _join_s(arena: Running, url: str, first: int, count: int, share: float) -> float:
    """The server's CPU time for each of `count` bots that join, without that for the idle ones."""
    started, cpu_s = time.perf_counter(), arena.cpu_s()
    with _crowd(url, first, count):
        joins_s = arena.cpu_s() - cpu_s - share * (time.perf_counter() - started)
    return max(0.0, joins_s / count)


@contextmanager
def _crowd(url: str, first: int, count: int) -> Iterator[None]:
    """Connect idle bots; the block begins once all have their `welcome`."""
    with running(Program(("-c", _CROWD, first, count, GAME)), url) as crowd:
        within_s = START_S + count / _CONNECTS_PER_S
        until(lambda: crowd.said().count("welcome") >= count, f"{count} connections", within_s)
        yield
