"""Measures how fast matches are written while another process reads: `-m tests.tools.write_rate`.

Matches of 1000 hands of Ace-King-Queen are handed to a store as fast as it makes them durable, a
few hundred ahead, as by an arena with many tables. Meanwhile another process reads the new results
of the competition over and over, as a page of standings does; with `--programs`, programs of 16 MiB
are put as well, one after another. Prints matches a minute, reads a second, the times of reads, and
how long matches waited for the disk. No part of CI.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

import arena
from arena.engine.match import MatchResult
from arena.formats.spec import Form, Plan
from arena.storage.programs import Programs
from arena.storage.store import Store, new_id
from bots.strategy import RandomMixin
from protocol.errors import UsageError
from tests.support.databases import Server, postgres_server
from tests.support.needs import missing

__all__ = ["WriteRate", "main", "measure", "played"]

_AHEAD = 300  # matches that may wait for the disk; an arena has as many tables
_PROGRAM_BYTES = 16 << 20  # the most that can be handed in
_SAMPLES = 20  # different records


class Read(msgspec.Struct, frozen=True):
    """The outcome of the reader."""

    reads: int
    matches: int
    took_ms: tuple[float, ...]


class WriteRate(msgspec.Struct, frozen=True):
    """The outcome of a measurement.

    Attributes:
        seconds: from the first match until the last was durable.
        record_bytes: of one record, on average.
        longest_ms: the longest that one match has blocked the event loop.
        durable_ms: for each hundred matches, how long until they were durable.
        programs: how many were put meanwhile.
    """

    matches: int
    seconds: float
    record_bytes: float
    longest_ms: float
    durable_ms: tuple[float, ...]
    programs: int
    read: Read

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"{self.matches / self.seconds * 60:,.0f} matches a minute written "
            f"({self.matches:,} in {self.seconds:.1f} s, "
            f"records of {self.record_bytes / 1024:.0f} KiB; "
            f"handing one in took {self.longest_ms:.1f} ms at most)",
            f"a hundred matches were durable after {_spread(self.durable_ms)}, "
            f"while {self.programs} programs were put",
            f"{self.read.reads / self.seconds:,.0f} reads a second meanwhile, "
            f"{_spread(self.read.took_ms)}",
        ]


def _spread(took_ms: tuple[float, ...]) -> str:
    took = sorted(took_ms)
    p50, p99 = (took[int(len(took) * part)] for part in (0.5, 0.99))
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {took[-1]:.1f} ms"


@contextmanager
def _putting(store: Store, is_wanted: bool) -> Iterator[list[str]]:
    """Put programs in a thread until the block is over; yields those that were put."""
    put: list[str] = []
    is_over = threading.Event()

    def puts() -> None:
        while is_wanted and not is_over.is_set():
            data = os.urandom(_PROGRAM_BYTES)
            sha256 = hashlib.sha256(data).hexdigest()
            Programs(store.engine).put(sha256, io.BytesIO(data))
            put.append(sha256)

    thread = threading.Thread(target=puts)
    thread.start()
    try:
        yield put
    finally:
        is_over.set()
        thread.join()


def played(number: int) -> MatchResult:
    """A match as it comes from a table: 1000 hands."""
    bots = [RandomMixin(), RandomMixin()]
    for seat, bot in enumerate(bots):
        bot.seed(f"{number}:{seat}")
    result = arena.play("ace_king_queen", bots, settings={"hands": 1000}, seed=number)
    times_ms = tuple(place * 7 % 11 for place in range(len(result.record.answers)))
    record = msgspec.structs.replace(result.record, times_ms=times_ms)
    return msgspec.structs.replace(result, record=record)


def measure(
    where: str,
    seconds: float,
    *,
    programs: bool = False,
    results: Sequence[MatchResult] | None = None,
) -> WriteRate:
    """Write for so long, with a reader at work; UsageError if the database cannot be opened.

    `results` of one game are written over and over, by default those of `played`.
    """
    results = results or [played(number) for number in range(_SAMPLES)]
    record = results[0].record
    names = tuple(f"bot-{number}" for number in range(60))
    plan = Plan(
        game=record.game, form=Form.ROUND_ROBIN, settings=dict(record.settings), players=names
    )
    competition = new_id(record.game)
    with Store(where, exclusive=True) as store:
        store.competition_started(competition, plan, time.time())
        store.flush()
        with _reader(where, competition) as reader, _putting(store, programs) as put:
            assert reader.stdout is not None, "it was made with one"
            reader.stdout.readline()
            matches, took_s, longest_ms, durable_ms = asyncio.run(
                _write(store, competition, names, results, seconds)
            )
            said, _ = reader.communicate(b"\n")
    sizes = [len(result.record.to_json()) for result in results]
    return WriteRate(
        matches=matches,
        seconds=took_s,
        record_bytes=sum(sizes) / len(sizes),
        longest_ms=longest_ms,
        durable_ms=tuple(durable_ms),
        programs=len(put),
        read=msgspec.json.decode(said, type=Read),
    )


async def _write(
    store: Store,
    competition: str,
    names: tuple[str, ...],
    results: Sequence[MatchResult],
    seconds: float,
) -> tuple[int, float, float, list[float]]:
    """How many matches in how many seconds, the longest call, and the times until durable, in ms."""
    began = time.perf_counter()
    number = 0
    longest_s = 0.0
    durable_ms: list[float] = []
    waiting: list[asyncio.Future[None]] = []

    async def flushed() -> None:
        put_at = time.perf_counter()
        await store.flushed()
        durable_ms.append((time.perf_counter() - put_at) * 1000)

    while time.perf_counter() - began < seconds:
        for _ in range(_AHEAD // 3):
            now = time.perf_counter()
            match, result = f"{competition}-{number}", results[number % len(results)]
            players = [names[number // 60**seat % 60] for seat in range(len(result.scores))]
            store.match_finished(competition, number, match, players, result, now, now + 1)
            longest_s = max(longest_s, time.perf_counter() - now)
            number += 1
            await asyncio.sleep(0)
        waiting.append(asyncio.ensure_future(flushed()))
        if len(waiting) == 3:
            await waiting.pop(0)
    await asyncio.gather(*waiting)
    return number, time.perf_counter() - began, longest_s * 1000, durable_ms


def _reader(where: str, competition: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "tests.tools.write_rate", "--read", competition, "--db", where]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _read(where: str, competition: str) -> Read:
    """Read the new results over and over, until there is a line on stdin."""
    took_ms: list[float] = []
    wins = Counter[str]()
    after = matches = 0
    os.set_blocking(sys.stdin.fileno(), False)
    with Store(where, create=False) as store:
        print("reading", flush=True)
        while _is_silent(sys.stdin.fileno()):
            began = time.perf_counter()
            new = store.results(competition, after)
            took_ms.append((time.perf_counter() - began) * 1000)
            for played in new:
                winner = played.result.winner
                wins[played.players[winner or 0]] += winner is not None
                after = played.number
            matches += len(new)
            time.sleep(0.001)  # as often as any page asks, without a load of its own
    return Read(len(took_ms), matches, tuple(took_ms))


def _is_silent(fd: int) -> bool:
    """Whether nothing has come, and the other side is still there."""
    try:
        os.read(fd, 1)
    except BlockingIOError:
        return True
    return False


def _server() -> Server:
    if what := missing("psycopg", "initdb"):
        raise UsageError(what)
    return postgres_server(fsync=True)


@click.command()
@click.option("--db", help="A file, a URL, or `postgresql` for a server of its own, with fsync.")
@click.option("--seconds", default=60.0, show_default=True, help="How long to write.")
@click.option("--programs", is_flag=True, help="Put programs of 16 MiB meanwhile.")
@click.option("--read", hidden=True, help="Be the reader of that competition.")
def main(db: str | None, seconds: float, programs: bool, read: str | None) -> None:
    """Measure how fast finished matches are written while another process reads."""
    with tempfile.TemporaryDirectory(prefix="writing-") as folder:
        where = db or str(Path(folder) / "arena.db")
        if where == "postgresql":
            where = _server().url()
        if read is not None:
            found: Any = _read(where, read)
            click.echo(msgspec.json.encode(found))
            return
        click.echo("\n".join(measure(where, seconds, programs=programs).lines()))
        if db is None:
            sizes = {p.name: p.stat().st_size >> 20 for p in Path(folder).iterdir()}
            click.echo(f"files in MiB: {sizes}")


if __name__ == "__main__":
    main()
