"""What do spectators cost a match? `python -m tests.tools.spectators` measures it; a command of its
own and no part of CI.

Two fast bots play one match over WebSockets, and 200 spectators in another process watch it, or do
not, in turns: both are measured in one run, as machines differ from one minute to the next. One
more spectator stops reading, and has to be dropped.

It prints decisions per second and the arena's CPU time for each decision, without spectators and
with them, and the ratio. Exit status 1 if the match loses more than `--most` of its speed, or if
who does not read stays. Linux only."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import selectors
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from arena.competitions.arena_host import Host
from arena.games import GAMES
from arena.referee.live_match import LiveMatch
from arena.storage.store import Store
from arena.web.web import Web
from protocol.messages import Limits
from tests.support.random_matches import endless

__all__ = ["Part", "main", "measure"]

LIMITS = Limits(decision_ms=10_000, hard_ms=20_000, start_ms=20_000)

_SETTLES_S = 0.7  # the first frames are another matter
_DROPPED_S = 90.0  # the kernel holds many frames
_FIN, _TEXT, _PONG, _MASK = 0x80, 0x1, 0xA, 0x80
_PONG_S = 5.0
_READ_BYTES = 1 << 18
_ROOM_BYTES = 1 << 16  # or the kernel would read for one that sleeps, for minutes


class Part(NamedTuple):
    """Some seconds of a match.

    Attributes:
        per_s: decisions per second.
        cpu_us: the arena's CPU time for each, in microseconds.
    """

    per_s: float
    cpu_us: float


# --- the spectators' process ---


class SpectatorSocket:
    """One spectator: a WebSocket by hand, which reads and throws away."""

    def __init__(self, host: str, port: int, room: int | None = None) -> None:
        self.received = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if room is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.connect((host, port))
        self.socket.sendall(
            f"GET /watch HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = self.socket.recv(4096)
            if not more:
                raise ConnectionError(f"expected a WebSocket, got {answer!r:.200}")
            answer += more
        if b" 101 " not in answer.partition(b"\r\n")[0]:
            raise ConnectionError(f"expected a WebSocket, got {answer!r:.200}")

    def say(self, **message: str) -> None:
        """A message, in a short text frame that is masked with zeros."""
        data = json.dumps(message).encode()
        assert len(data) < 126, "longer ones have another header"
        header = bytes([_FIN | _TEXT, _MASK | len(data)])
        self.socket.sendall(header + bytes(4) + data)

    def pong(self) -> None:
        """Say that we are here still; whether a ping has come is not looked at."""
        self.socket.sendall(bytes([_FIN | _PONG, _MASK]) + bytes(4))

    def read(self) -> None:
        """What is there."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("expected to be shown the match, was cut")
        self.received += len(data)


def look(host: str, port: int, count: int) -> None:
    """Do as stdin says: `watch ID`, `unwatch`, or `sleep ID` for one that stops reading; answer
    each with a line.
    """
    selector = selectors.DefaultSelector()
    lookers = [SpectatorSocket(host, port) for _ in range(count)]
    asleep: list[SpectatorSocket] = []
    for looker in lookers:
        selector.register(looker.socket, selectors.EVENT_READ, looker)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print("here", flush=True)
    pong_at = time.monotonic() + _PONG_S
    while True:
        if time.monotonic() > pong_at:
            pong_at += _PONG_S
            for looker in lookers:
                looker.pong()
        for key, _ in selector.select(_PONG_S):
            if key.data is not None:
                key.data.read()
                continue
            line = sys.stdin.readline()
            if not line:
                return
            word, _, match = line.strip().partition(" ")
            if word == "sleep":
                asleep.append(SpectatorSocket(host, port, _ROOM_BYTES))
                asleep[-1].say(type="watch", topic="match", match=match)
            for looker in lookers if word != "sleep" else ():
                if word == "watch":
                    looker.say(type="watch", topic="match", match=match)
                else:
                    looker.say(type="unwatch")
            received = sum(looker.received for looker in lookers)
            print(received, flush=True)


# --- the arena's ---


class SpectatorBench:
    """An arena, two bots or as many as a game needs, and spectators."""

    def __init__(self, host: Host, lookers: asyncio.subprocess.Process) -> None:
        self.host = host
        self._lookers = lookers
        self.received = 0

    async def tell(self, line: str) -> None:
        """Have the spectators do something."""
        assert self._lookers.stdin is not None
        assert self._lookers.stdout is not None
        self._lookers.stdin.write(f"{line}\n".encode())
        said = await self._lookers.stdout.readline()
        if not said:
            raise ConnectionError("expected spectators, they have ended")
        self.received = int(said)

    async def open(self, game: str) -> LiveMatch:
        """The match, once its bots are there."""
        rules = GAMES[game]
        while len(self.host.gateway.players) < rules.seats:
            await self.host.wait_for_change()
        return self.host.referee.open(
            rules,
            rules.vocabulary.read_settings(endless(game)),
            list(self.host.gateway.players.values()),
            LIMITS,
            lambda table, result, verdict: print(result.termination, file=sys.stderr),
        )

    async def part(self, seconds: float) -> Part:
        """Measure for so long."""
        await asyncio.sleep(_SETTLES_S)
        decisions = self.host.referee.decisions
        cpu_s, begun = time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds)
        played = self.host.referee.decisions - decisions
        cpu_s, lasted_s = time.process_time() - cpu_s, time.perf_counter() - begun
        return Part(played / lasted_s, cpu_s / max(1, played) * 1e6)

    @property
    def viewers(self) -> int:
        """How many watch."""
        assert isinstance(self.host.web, Web)
        return int(json.loads(self.host.web.lobby())["matches"][0]["viewers"])

    async def is_dropped(self, others: int) -> float | None:
        """After how many seconds who does not read is no viewer any more."""
        begun = time.perf_counter()
        while (lasted_s := time.perf_counter() - begun) < _DROPPED_S:
            if self.viewers == others:
                return lasted_s
            await asyncio.sleep(0.5)
        return None


async def measure(options: argparse.Namespace) -> int:
    """Measure, and say what came of it; the exit status."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "db") as store:
        async with Host(store, limits=LIMITS, page=Web) as host:
            url = urlsplit(host.url)
            words = ("--look", str(url.hostname), str(url.port))
            count = str(options.count)
            async with (
                _process("tests.tools.spectators", *words, "--count", count) as lookers,
                _process(*_bots(options.game, host.url)),
            ):
                assert lookers.stdout is not None
                await lookers.stdout.readline()
                return await _rounds(SpectatorBench(host, lookers), options)


async def _rounds(bench: SpectatorBench, options: argparse.Namespace) -> int:
    table = await bench.open(options.game)
    without: list[Part] = []
    watched: list[Part] = []
    for number in range(1, options.rounds + 1):
        await bench.tell("unwatch")
        without.append(await bench.part(options.seconds))
        await bench.tell(f"watch {table.id}")
        before = bench.received
        watched.append(await bench.part(options.seconds))
        await bench.tell("unwatch")
        mb_per_s = (bench.received - before) / 1e6 / (options.seconds + _SETTLES_S)
        print(
            f"{number}: without {_said(without[-1])}; with {options.count} "
            f"{_said(watched[-1])}, who read {mb_per_s:.1f} MB/s"
        )
    speed = statistics.median(with_.per_s for with_ in watched)
    speed /= statistics.median(part.per_s for part in without)
    cpu = statistics.median(with_.cpu_us for with_ in watched)
    cpu /= statistics.median(part.cpu_us for part in without)
    print(f"decisions/s with spectators: {speed:.1%}; CPU for each: {cpu:.1%}")
    await bench.tell(f"sleep {table.id}")
    await bench.tell(f"watch {table.id}")
    await asyncio.sleep(1)
    dropped_s = await bench.is_dropped(options.count)
    if dropped_s is None:
        print(f"one that does not read was not dropped within {_DROPPED_S:.0f} s")
    else:
        print(f"one that does not read was dropped after {dropped_s:.0f} s")
    return int(speed < 1 - options.most or dropped_s is None)


def _said(part: Part) -> str:
    return f"{part.per_s:,.0f}/s ({part.cpu_us:.0f} µs CPU)"


def _bots(game: str, url: str) -> tuple[str, ...]:
    count = str(GAMES[game].seats)
    return ("tests.support.crowd", "--url", url, "--count", count, "--game", game)


@contextlib.asynccontextmanager
async def _process(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program of ours beside us, as long as it is needed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def main() -> int:
    """Read the command line; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="spectators")
    parser.add_argument("--game", choices=GAMES, default=next(iter(GAMES)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each part")
    parser.add_argument("--most", type=float, default=0.1, help="of speed to be lost")
    parser.add_argument("--look", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look is not None:
        with contextlib.suppress(ConnectionError):  # the arena has closed
            look(options.look[0], int(options.look[1]), options.count)
        return 0
    return asyncio.run(measure(options))


if __name__ == "__main__":
    sys.exit(main())
