"""What bots cost an arena while they are connected and wait for a match, and those that join."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from arena.server.listener import most_files
from tests.tools.bench.processes import START_S, Program, Running, figure, running, until
from tests.tools.bench.rows import BenchRow, row_of

__all__ = ["idle_rows"]

_FIRST = 20  # not counted, as the first connections cost more, once and for all
_SETTLE_S = 2.0  # for the pings that measure the links
_PARTS = 5  # of the time, as pings are not spread evenly
_JOIN = (
    4  # a quarter of the bots joins once more: rare costs, as a garbage collection, are included
)
_CONNECTS_PER_S = 50  # at least, on a machine that has other work, too
_OTHER_FILES = 100  # that a server or a crowd has open besides


def idle_rows(bots: int, seconds: float) -> Iterator[BenchRow]:
    """Measure what so many idle bots cost, more than 20, for some seconds.

    Raises:
        SystemExit: this system does not let a process have so many connections.
    """
    needed, most = bots + bots // _JOIN + _OTHER_FILES, most_files()
    if most is not None and most < needed:
        raise SystemExit(f"{bots:,} bots need {needed:,} open files, this system allows {most:,}")
    # It never has enough bots. A process of its own has nothing to do with earlier measurements.
    words = "-m arena serve --port 0 --db idle.db --players 1000000 --per-address 1000000"
    with running(Program(tuple(words.split()))) as arena, _crowd(arena, _FIRST, _FIRST):
        before = arena.process.memory_info().rss
        with _crowd(arena, bots - _FIRST, bots):
            time.sleep(_SETTLE_S)
            kib = (arena.process.memory_info().rss - before) / 1024 / (bots - _FIRST)
            yield row_of(f"{bots:,} idle bots", "KiB a bot", [kib])
            shares = [_share(arena, seconds / _PARTS) for _ in range(_PARTS)]
            each_us = [1e6 * share / bots for share in shares]
            yield row_of(f"{bots:,} idle bots", "µs of CPU a bot and second", each_us)
            started, cpu_s = time.perf_counter(), arena.cpu_s()
            with _crowd(arena, bots // _JOIN, bots + bots // _JOIN):
                idle_s = sum(shares) / _PARTS * (time.perf_counter() - started)
                join_us = 1e6 * (arena.cpu_s() - cpu_s - idle_s) / (bots // _JOIN)
                yield row_of(f"joining {bots:,} idle bots", "µs of CPU a bot", [join_us])


def _share(arena: Running, seconds: float) -> float:
    """The server's CPU time per second."""
    started, cpu_s = time.perf_counter(), arena.cpu_s()
    time.sleep(seconds)
    return (arena.cpu_s() - cpu_s) / (time.perf_counter() - started)


@contextmanager
def _crowd(arena: Running, bots: int, all_bots: int) -> Iterator[None]:
    """Connect idle bots; the block begins once so many are there in all."""
    crowd = Program(("-m", "tests.tools.bench.thin", "json", 1, bots, 1))
    with running(crowd, arena.url()) as process:
        within_s = START_S + bots / _CONNECTS_PER_S

        def are_here() -> bool:
            process.said()
            return figure(arena.url(), 'arena_bots{state="here"}') >= all_bots

        until(are_here, f"{all_bots} connections", within_s)
        yield
