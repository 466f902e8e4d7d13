"""What `tests/tools/gateways.py` must know of this machine: NATS, memory, records, the database."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from arena.engine.drive import drive
from arena.engine.match import MatchResult, MatchState
from arena.games import GAMES, competition_settings
from protocol.strategy import find, house_bots
from tests.support.arena_process import free_port
from tests.support.fake_bots import FakeArena
from tests.tools.write_rate import measure

__all__ = ["Costs", "NatsSpeed", "measured", "nats_speed", "record_lines"]

_FRAME = b"x" * 300  # as long as a question in JSON
_ASK_S = 3.0
_WRITE_S = 4.0
_MATCHES = 500
_RECORDS = 5  # of each game
_TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")

_ECHO = """
import asyncio, sys, nats

async def main():
    client = await nats.connect(sys.argv[1])
    async def back(message):
        await message.respond(message.data)
    await client.subscribe("turn", cb=back)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What things cost, measured.

    Attributes:
        decision_us: CPU time of a gateway for a decision where each bot has one match: `arena bench
            matches` and `tables`.
        idle_us_per_s: of an idle bot, for its pings: `arena bench --idle 3000`.
        idle_kib: memory of an idle bot.
        match_kib: memory of a match that is played.
        message_us: CPU time of a gateway to send or receive one message by nats-py.
        server_us: CPU time of nats-server for a message.
        crossing_ms: on its way between two gateways, one way.
    """

    decision_us: float = 65.0
    idle_us_per_s: float = 15.0
    idle_kib: float = 9.2
    match_kib: float = 6.0
    message_us: float = 9.0
    server_us: float = 3.5
    crossing_ms: float = 0.2


class NatsSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """A process asks another by way of `nats-server`, so many at once."""

    at_once: int
    requests_per_s: float
    turn_ms: float
    asker_us: float
    echo_us: float
    server_us: float


def measured(costs: Costs) -> Costs:
    """The costs with what can be measured here in seconds; needs `nats-server` and nats-py."""
    alone, many = (nats_speed(at_once) for at_once in (1, 64))
    print(alone, many, sep="\n")
    return msgspec.structs.replace(
        costs,
        match_kib=_match_kib(),
        # One who asks and one who echoes handle two messages each, and the server two.
        message_us=(many.asker_us + many.echo_us) / 4,
        server_us=many.server_us / 2,
        crossing_ms=alone.turn_ms / 2,
    )


def nats_speed(at_once: int) -> NatsSpeed:
    """Measure request and reply by a `nats-server` of its own."""
    port = free_port()
    url = f"nats://127.0.0.1:{port}"
    with (
        _ended(["nats-server", "-a", "127.0.0.1", "-p", str(port)]) as server,
        _ended([sys.executable, "-c", _ECHO, url]) as echo,
    ):
        assert echo.stdout is not None, "it is a pipe"
        echo.stdout.readline()
        before = _cpu_us(server.pid), _cpu_us(echo.pid), time.process_time()
        took_ms = asyncio.run(_ask(url, at_once))
        count = len(took_ms)
        return NatsSpeed(
            at_once=at_once,
            requests_per_s=count / _ASK_S,
            turn_ms=median(took_ms),
            asker_us=(time.process_time() - before[2]) * 1e6 / count,
            echo_us=(_cpu_us(echo.pid) - before[1]) / count,
            server_us=(_cpu_us(server.pid) - before[0]) / count,
        )


async def _ask(url: str, at_once: int) -> list[float]:
    import nats

    client = await nats.connect(url)
    took_ms: list[float] = []
    until = time.perf_counter() + _ASK_S

    async def ask() -> None:
        while (began := time.perf_counter()) < until:
            await client.request("turn", _FRAME, timeout=5)
            took_ms.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(ask() for _ in range(at_once)))
    await client.close()
    return took_ms


@contextmanager
def _ended(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended in the end; `nats-server` says that it is ready on stderr."""
    is_server = words[0] == "nats-server"
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE if is_server else None
    ) as process:
        try:
            while is_server:
                assert process.stderr is not None, "it is a pipe"
                line = process.stderr.readline()
                assert line, "nats-server has ended"
                is_server = b"Server is ready" not in line
            yield process
        finally:
            process.kill()


def _cpu_us(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_US


def _match_kib() -> float:
    """Memory of a match that is played, as Python counts it, without its bots."""
    house = FakeArena()
    pairs = [[house.bot(f"{side}{n}") for side in "ab"] for n in range(_MATCHES)]
    gc.collect()
    tracemalloc.start()
    for pair in pairs:
        house.open(*pair)
        house.sit(*pair)  # the cards are dealt
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / _MATCHES / 1024


def record_lines() -> Iterator[str]:
    """How long records are by game, and how many a second SQLite writes durably here."""
    yield "game | decisions | record KiB | KiB per 1000 decisions | written a second, MiB/s"
    for name in sorted(GAMES):
        results = [_played(name, number) for number in range(_RECORDS)]
        decisions = median(len(result.record.answers) for result in results)
        with tempfile.TemporaryDirectory() as folder:
            rate = measure(str(Path(folder) / "arena.db"), _WRITE_S, results=results)
        kib, per_s = rate.record_bytes / 1024, rate.matches / rate.seconds
        yield (
            f"  {name} | {decisions:,.0f} | {kib:.1f} | {kib / decisions * 1000:.0f} | "
            f"{per_s:,.0f}, {per_s * kib / 1024:.0f}"
        )


def _played(name: str, number: int) -> MatchResult:
    """A match of house bots as a competition has them, with a time for each answer."""
    game = GAMES[name]
    settings = competition_settings(game, {})
    match = MatchState(game, settings, seed=number.to_bytes(32, "big"))
    names = list(house_bots(name))
    drive(match, [find(name, names[seat % len(names)])() for seat in range(game.seats)])
    result = match.result()
    times_ms = tuple(place * 7 % 11 for place in range(len(result.record.answers)))
    record = msgspec.structs.replace(result.record, times_ms=times_ms)
    return msgspec.structs.replace(result, record=record)
