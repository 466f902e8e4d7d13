"""How much faster are two workers than one? `python -m tests.tools.worker_speed [--matches 40]`.

Two bots that think 5 ms of CPU a decision play each other over a real `nats-server`, as with
`arena cross --bus`: with one worker pinned to one core, and with a second one pinned to another. By
turns, the second is drained, so that what else this machine does meets both. At first it measures
what the bus itself costs a match: queueing a job, delivering it, announcing it, granting it, and
handing in and taking its result, without playing and checking. Linux only, no part of CI.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec

from arena.cli._lab_bus import carrier
from arena.engine.match import Record
from arena.engine.rules import Game
from arena.games import GAMES
from arena.lab.bot_pool import PoolBot
from arena.lab.launched import sittings
from arena.workers.bus import ARENA_USER, Bus, BusAddress, ResultDelivery
from arena.workers.messages import Taken, encode
from arena.workers.nats_bus import connect
from protocol.messages import Limits
from protocol.strategy import house_bots
from tests.support.nats_server import NatsServer

__all__ = ["BusCost", "bus_cost", "main"]

_GAME = next(game for game in GAMES.values() if game.seats == 2 and game.meets_itself)
_UNITS = 100  # of a match: some 150 decisions
_WORKERS = ("w1", "w2")
_BUS_MATCHES = 300
_RESULT = b"x" * 14_000  # as long as a record of a long match
_START_S = 60.0

_BOT = """
import time

from {module} import {bot}

class Slow({bot}):
    def decide(self, question):
        end = time.process_time() + {think_ms} / 1000
        while time.process_time() < end:
            pass
        return super().decide(question)
"""


class BusCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the bus costs a match: the time of one alone, and the CPU time of both its clients."""

    alone_ms: float
    cpu_ms: float


async def bus_cost(server: NatsServer) -> BusCost:
    """Measure it with an arena and a worker in this process."""
    arena = await connect(server.address(ARENA_USER), "arena", ARENA_USER)
    worker = await connect(server.address(_WORKERS[0]), "worker", _WORKERS[0])
    taken: dict[str, asyncio.Future[None]] = {}

    async def on_result(result: ResultDelivery) -> None:
        await result.read()
        await result.ack()
        await arena.command(result.worker, encode(Taken(result.attempt)))
        taken[result.attempt].set_result(None)

    async def grant(name: str, data: bytes) -> bytes:
        return b"granted"

    await arena.open_arena("a", lambda *_: None, grant, grant, lambda *_: None, on_result)
    await arena.open_class("c")
    await arena.open_worker(_WORKERS[0])
    took_ms: list[float] = []
    cpu_s = 0.0
    for number in range(_BUS_MATCHES):
        if number == _BUS_MATCHES // 10:  # streams are made, and connections are warm
            cpu_s = time.process_time()
            took_ms.clear()
        began = time.perf_counter()
        taken[f"t{number}"] = asyncio.get_running_loop().create_future()
        await _match(arena, worker, number, taken[f"t{number}"])
        took_ms.append((time.perf_counter() - began) * 1000)
    cpu_s = time.process_time() - cpu_s
    await arena.close_arena(forever=True)
    await worker.close()
    await arena.close()
    return BusCost(alone_ms=statistics.median(took_ms), cpu_ms=cpu_s * 1000 / len(took_ms))


async def _match(arena: Bus, worker: Bus, number: int, taken: asyncio.Future[None]) -> None:
    """Carry a match from its job to its result."""
    await arena.put("c", f"j{number}", b"x" * 500)
    job = await worker.fetch("c", 10)
    assert job is not None, "it was put"
    await worker.announce("a", _WORKERS[0], b"x" * 200)
    await worker.hand_in("a", _WORKERS[0], f"t{number}", _RESULT)
    await taken
    await job.ack()


@contextmanager
def _worker(server: NatsServer, name: str, core: int, folder: Path) -> Iterator[None]:
    """An `arena worker` on one core, from when it takes matches."""
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "arena", "worker", *server.options(name)),
            *("--name", name, "--cores", "1", "--cache", str(folder / name)),
        ],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    ) as process:
        try:
            assert process.stdout is not None, "it is a pipe"
            until = time.monotonic() + _START_S
            while "at once" not in (line := process.stdout.readline()):
                assert line, f"{name} has ended"
                assert time.monotonic() < until, f"{name} has not begun"
            yield
        finally:
            process.terminate()
            process.communicate()


def _steer(server: NatsServer, word: str) -> None:
    """Drain the second worker, or resume it, and wait until it has reported that."""
    words = [sys.executable, "-m", "arena", "workers", word, _WORKERS[1]]
    subprocess.run([*words, *server.options(ARENA_USER)], check=True, stdout=subprocess.DEVNULL)


def _bots(folder: Path, game: Game, think_ms: float) -> tuple[PoolBot, ...]:
    """Two files of a house bot that thinks; this process has to be in their folder."""
    bot = next(iter(house_bots(game.name).values()))
    text = _BOT.format(module=bot.__module__, bot=bot.__name__, think_ms=think_ms)
    for name in ("slow_a.py", "slow_b.py"):
        (folder / name).write_text(text, encoding="utf-8")
    return PoolBot("slow_a.py"), PoolBot("slow_b.py")


async def _rate(where: BusAddress, game: Game, bots: Sequence[PoolBot], matches: int) -> float:
    """Matches a second, once processes are warm; all have to be played by workers."""
    assert game.unit is not None, "the game has hands"
    over: list[float] = []
    workers: set[object] = set()

    def on_match(seats: tuple[int, ...], record: Record) -> None:
        over.append(time.perf_counter())
        workers.add(record.worker)

    await sittings(
        game,
        bots,
        [(0, 1)],
        matches=matches,
        settings=game.vocabulary.read_settings({game.unit.setting: _UNITS}),
        limits=Limits(),
        tick=lambda: None,
        on_match=on_match,
        carrier=carrier(where),
    )
    assert workers <= {*_WORKERS}, f"played by {workers}"
    warm = over[len(over) // 3 :]
    return (len(warm) - 1) / (warm[-1] - warm[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--matches", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--think-ms", type=float, default=5.0)
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("two workers need two cores")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = NatsServer(Path(folder) / "bus", _WORKERS)
        stack.callback(lambda: server.kill())
        cost = asyncio.run(bus_cost(server))
        print(
            f"the bus: {cost.alone_ms:.1f} ms for a match alone, "
            f"{cost.cpu_ms:.1f} ms of CPU at both ends"
        )
        for name, core in zip(_WORKERS, cores, strict=False):
            stack.enter_context(_worker(server, name, core, Path(folder)))
        own = Path(folder) / "bots"  # a bot is shown its whole folder
        own.mkdir()
        os.chdir(own)
        bots = _bots(own, _GAME, asked.think_ms)
        asyncio.run(_rate(server.address(ARENA_USER), _GAME, bots, asked.matches))  # all is warm
        ratios = []
        for _ in range(asked.rounds):
            rates = []
            for word in ("drain", "resume"):
                _steer(server, word)
                where = server.address(ARENA_USER)
                rates.append(asyncio.run(_rate(where, _GAME, bots, asked.matches)))
            for one, two in pairwise(rates):
                ratios.append(two / one)
                print(f"one worker {one:.2f}, two {two:.2f} matches/s: {two / one:.2f}", flush=True)
        print(f"two workers play {statistics.median(ratios):.2f} times as many")


if __name__ == "__main__":
    main()
