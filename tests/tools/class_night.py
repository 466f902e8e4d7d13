"""How do standings move on a class night? `python -m tests.tools.class_night` measures it; a
command of its own and no part of CI.

Forty quick bots play two round robins at the same time, Ace-King-Queen and gin rummy, over
WebSockets, at 0 and at 20 ms each way: a proxy in this process holds every byte back for so long,
and limits nothing else. With `--before FOLDER` each round is played by the arena in that folder,
too, turn and turn about, as this machine may have other work.

For each competition it prints how long it took, when its first match was over and when every bot
had one, the share of matches that were over after a tenth, a quarter and half of the time, the most
tables at once, and how wrong the time left was that the page showed after the first tenth of the
matches; for each round how long it took in all and the CPU time, and at the end the medians of the
rounds' ratios. Linux only."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from bots.ace_king_queen import Bluffer
from bots.client import Client
from bots.gin_rummy import Simple
from tests.support.arena_process import ROOT, printed

__all__ = ["main"]

_LOOK_S = 0.25
_BEGINS_S = 120.0
_ENDS_S = 30.0
_PROCESSES = 4
_TENTH = 0.1
_RIGHT = 0.3
_PAGE_S = 1.0
_BYTES = 2**18
_CONFIG = """
[serve]
port = 0
db = "night.db"
"""
_RUN = """
[[run]]
name = "{game}"
game = "{game}"
at = 2099-01-01T00:00:00
players = [{players}]
matches = {matches}
settings = {settings}
"""


class Seen(NamedTuple):
    """A competition on the page: when, how many matches were over of how many, and the time left
    that was shown.
    """

    at: float
    settled: int
    scheduled: int
    left_s: float | None


class Night(NamedTuple):
    """What one round came to, in seconds."""

    took_s: float
    cpu_s: float
    bots_cpu_s: float
    lines: tuple[str, ...]

    @property
    def all_cpu_s(self) -> float:
        """The arena's and the bots'."""
        return self.cpu_s + self.bots_cpu_s


async def play(url: str, names: Sequence[str], tables: int, games: Sequence[str]) -> None:
    """Be so many bots, until the arena closes."""
    strategies = {bot.game: bot for bot in (Bluffer, Simple) if bot.game in games}
    bots = [Client(url, name, strategies, tables=tables) for name in names]
    await asyncio.gather(*(bot.run() for bot in bots))


# --- the network ---


@asynccontextmanager
async def _delayed(port: int, delay_s: float) -> AsyncIterator[int]:
    """A port that leads to another one of this machine; all takes so long each way."""
    if not delay_s:
        yield port
        return
    loop = asyncio.get_running_loop()
    pumps: set[asyncio.Task[None]] = set()

    async def pump(source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(_BYTES):
                loop.call_later(delay_s, drain.write, data)
        loop.call_later(delay_s, drain.close)

    async def met(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, there = await asyncio.open_connection("127.0.0.1", port)
        for task in (pump(near, there), pump(far, back)):
            pumps.add(asyncio.create_task(task))

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for pump_ in pumps:
            pump_.cancel()


# --- one night ---


async def _night(options: argparse.Namespace, arena: Path, delay_s: float) -> Night:
    """One round of both competitions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        token = _prepare(folder, options)
        async with _process(
            folder, arena, "-m", "arena", "serve", "--config", "night.toml"
        ) as serve:
            port = await _port(folder)
            async with _delayed(port, delay_s) as near, _bots(options, folder, near) as bots:
                page = f"http://127.0.0.1:{port}/api/lobby.json"
                await _until_there(page, options.bots)
                for game in options.games:
                    await asyncio.to_thread(_start, game, port, token)
                began = time.monotonic()
                before = _cpu_s(serve), _cpu_s(*bots)
                seen = await _watch(page, len(options.games))
                took_s = time.monotonic() - began
                cpu_s = _cpu_s(serve) - before[0], _cpu_s(*bots) - before[1]
        lines = tuple(
            f"{game:15} {_said(folder / 'night.db', game, seen.get(game, []))}"
            for game in options.games
        )
        return Night(took_s, *cpu_s, lines)


def _prepare(folder: Path, options: argparse.Namespace) -> str:
    players = ", ".join(f'"bot {n}"' for n in range(options.bots))
    settings = {
        "ace_king_queen": f"{{ hands = {options.hands} }}",
        "gin_rummy": f"{{ games = {options.gin_games} }}",
    }
    runs = [
        _RUN.format(game=game, players=players, matches=options.matches, settings=settings[game])
        for game in options.games
    ]
    (folder / "night.toml").write_text("".join([_CONFIG, *runs]))
    database = ("--db", str(folder / "night.db"))
    return str(printed("roster", "instructor", *database)["token"])


@asynccontextmanager
async def _process(folder: Path, code: Path, *words: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """`python WORDS` with the packages of that folder; ends with the context."""
    with (folder / "errors").open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": str(code)},
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # the arena writes down what has ended
        try:
            await asyncio.to_thread(process.wait, _ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@asynccontextmanager
async def _bots(
    options: argparse.Namespace, folder: Path, port: int
) -> AsyncIterator[Sequence[subprocess.Popen[bytes]]]:
    """All bots, in a few processes."""
    words = ["-m", "tests.tools.class_night", "--play", f"ws://127.0.0.1:{port}"]
    words += ["--bots", str(options.bots), "--tables", str(options.tables)]
    words += ["--games", *options.games]
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(_process(folder, ROOT, *words, "--part", str(part)))
            for part in range(_PROCESSES)
        ]


async def _port(folder: Path) -> int:
    for _ in range(int(_BEGINS_S / _LOOK_S)):
        said = (folder / "errors").read_text()
        if "arena at " in said:
            return int(said.partition("arena at ")[2].split()[0].rpartition(":")[2])
        await asyncio.sleep(_LOOK_S)
    raise AssertionError(said)


def _start(game: str, port: int, token: str) -> None:
    printed("start", game, "--url", f"ws://127.0.0.1:{port}", "--token", token)


async def _lobby(page: str) -> Any:
    def read() -> Any:
        with urlopen(page, timeout=30) as document:
            return json.load(document)

    return await asyncio.to_thread(read)


async def _until_there(page: str, bots: int) -> None:
    end = time.monotonic() + _BEGINS_S
    while len((await _lobby(page))["bots"]) < bots:
        assert time.monotonic() < end, "the bots never came"
        await asyncio.sleep(_LOOK_S)


async def _watch(page: str, games: int) -> dict[str, list[Seen]]:
    """What the page shows of each competition, until all have been on and none is any more."""
    seen: dict[str, list[Seen]] = {}
    while (going := (await _lobby(page))["competitions"]) or len(seen) < games:
        for one in going:
            row = Seen(time.time(), one["settled"], one["scheduled"], one["left_s"])
            seen.setdefault(one["run"], []).append(row)
        await asyncio.sleep(_LOOK_S)
    return seen


def _cpu_s(*processes: subprocess.Popen[bytes]) -> float:
    """The CPU time of some processes so far."""
    ticks = 0
    for process in processes:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


# --- what came of it ---


def _said(database: Path, game: str, seen: Sequence[Seen]) -> str:
    with closing(sqlite3.connect(database)) as book:
        ((began, ended),) = book.execute(
            "SELECT started_at, finished_at FROM competitions WHERE game = ?", (game,)
        )
        rows = book.execute(
            "SELECT m.started_at, m.finished_at, group_concat(s.bot, '|') FROM matches m"
            ' JOIN seats s ON s."match" = m.id WHERE m.game = ? AND m.counts'
            " GROUP BY m.number ORDER BY m.finished_at",
            (game,),
        ).fetchall()
    took_s = ended - began
    first: dict[str, float] = {}
    for _, at, names in rows:
        for name in names.split("|"):
            first.setdefault(name, at)
    shares = [
        sum(at <= began + part * took_s for _, at, _ in rows) / len(rows)
        for part in (0.1, 0.25, 0.5)
    ]
    moves = sorted([(opened, 1) for opened, _, _ in rows] + [(at, -1) for _, at, _ in rows])
    now = most = 0
    for _, by in moves:
        now += by
        most = max(most, now)
    return (
        f"{took_s:6.1f} s, {len(rows):,} matches · first {rows[0][1] - began:5.1f} s, every bot {max(first.values()) - began:5.1f} s · "
        f"over at 10/25/50 % of the time {'/'.join(f'{share:.0%}' for share in shares)} · at most {most:,} tables · {_eta(seen, ended)}"
    )


def _eta(seen: Sequence[Seen], ended: float) -> str:
    """How wrong the time left was: at the first look after a tenth of the matches, and from then
    until nine tenths. Looks in the last second are left out, as the page is up to a second old.
    """
    wrong = [
        row.left_s / (ended - row.at) - 1
        for row in seen
        if row.left_s is not None
        and ended - row.at >= _PAGE_S
        and _TENTH * row.scheduled <= row.settled <= (1 - _TENTH) * row.scheduled
    ]
    if not wrong:
        return "no time left was seen"
    worst = max(wrong, key=abs)
    right = sum(abs(by) <= _RIGHT for by in wrong) / len(wrong)
    return f"time left after a tenth wrong by {wrong[0]:+.0%}, at worst {worst:+.0%}, right within {_RIGHT:.0%} in {right:.0%} of the looks"


async def measure(options: argparse.Namespace) -> None:
    """Measure, and say what came of it."""
    arenas = {"now": ROOT} | ({"before": options.before} if options.before else {})
    for delay_ms in options.delays:
        took: dict[str, list[Night]] = {word: [] for word in arenas}
        for number in range(1, options.rounds + 1):
            # Turn about, as a machine grows warm.
            order = list(arenas.items())[:: 1 if number % 2 else -1]
            for word, folder in order:
                night = await _night(options, folder, delay_ms / 1000)
                took[word].append(night)
                print(
                    f"{delay_ms} ms, {word:6} {number}: {night.took_s:6.1f} s, {night.cpu_s:6.1f} s of the arena's CPU, {night.bots_cpu_s:.1f} s of the bots'",
                    *night.lines,
                    sep="\n    ",
                    flush=True,
                )
        if options.before:
            pairs = list(zip(took["now"], took["before"], strict=True))
            wall = statistics.median(one.took_s / two.took_s for one, two in pairs)
            cpu = statistics.median(one.all_cpu_s / two.all_cpu_s for one, two in pairs)
            print(f"{delay_ms} ms, now/before: {wall:.2f}, of CPU time {cpu:.2f}")


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bots", type=int, default=40)
    parser.add_argument("--tables", type=int, default=64, help="a bot's own")
    parser.add_argument("--matches", type=int, default=2, help="each two meet")
    parser.add_argument("--hands", type=int, default=100, help="of a match of AKQ")
    parser.add_argument("--gin-games", type=int, default=1, help="of a match of gin rummy")
    parser.add_argument(
        "--games", nargs="+", default=["ace_king_queen", "gin_rummy"], help="played"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delays", type=int, nargs="+", default=[0, 20], help="ms each way")
    parser.add_argument("--before", type=Path, help="another arena's folder")
    parser.add_argument("--play", metavar="URL", help="be some of the bots")
    parser.add_argument("--part", type=int, default=0, help="with --play: which")
    options = parser.parse_args()
    if options.play:
        names = [f"bot {n}" for n in range(options.part, options.bots, _PROCESSES)]
        asyncio.run(play(options.play, names, options.tables, options.games))
    else:
        asyncio.run(measure(options))


if __name__ == "__main__":
    main()
