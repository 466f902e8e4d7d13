"""Measures what a second host brings, and what a decision costs all that is no bot.

    python -m tests.tools.host_rate [rounds] [seconds] [ms ...]

An arena here plays bots that compute for so many ms at each decision on one host, then on two, by
turns. Each host is bound to a core of its own. The arena plays none of them itself.
"""

from __future__ import annotations

import asyncio
import io
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from arena.competitions.live_arena import LiveArena
from arena.competitions.process_pool import Launch, ProcessPool, SeatBot
from arena.formats.spec import Take, plan_of
from arena.games.catalogue import GAMES
from arena.hosts.bus import ARENA_USER
from arena.hosts.directory import HostDirectory
from arena.hosts.host_links import HostLinks
from arena.hosts.host_pools import HostPools
from arena.hosts.messages import Bundle
from arena.hosts.nats_connection import NatsConnection
from arena.referee.compute_gate import ComputeGate
from arena.sandbox.bundle import pack_bundle
from arena.sandbox.command import Program
from arena.storage.store import Store
from tests.support.fake_bots import ANY_GAME
from tests.support.fake_submissions import FakeVersionService
from tests.support.nats_server import NatsServer
from tests.support.pipe_bot import pipe_bot

BOTS = {f"bot-{number}": number for number in range(1, 9)}
THINKS = "end = time.process_time() + {ms} / 1000\nwhile time.process_time() < end: pass"


class _OneProgram:
    """The program of all bots, as hosts get it."""

    def __init__(self, folder: Path, ms: int) -> None:
        (folder / "bot.py").write_text(pipe_bot(asked=THINKS.format(ms=ms)))
        tar = io.BytesIO()
        program = Program((sys.executable, "bot.py"), stdio=True, folder=folder)
        self._bundle = pack_bundle(program, ANY_GAME, (), tar)
        self._tar = tar.getvalue()

    async def seat_program(self, name: str, submission: int | None, game: str) -> Bundle:
        return self._bundle

    def is_portable(self, name: str, game: str) -> bool:
        return False

    async def part(self, key: str, offset: int) -> bytes:
        return self._tar[offset:]


async def _nothing_here(bot: SeatBot) -> Launch:
    raise AssertionError("all is played on hosts")


async def _played(
    folder: Path, nats: NatsServer, hosts: Sequence[str], ms: int, seconds: float
) -> tuple[float, float]:
    """Decisions a second on these hosts, and ms of CPU for each outside of bots."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(Store(folder / "arena.db"))
        arena = await stack.enter_async_context(LiveArena(store))
        service: Any = FakeVersionService(**BOTS)
        programs: Any = _OneProgram(folder, ms)
        here = ProcessPool(
            *(arena.supervisor, ComputeGate(1), _nothing_here, 0, lambda *told: None)
        )
        arena.take_submissions(service, here, 1)
        here.at_once = 0
        pools = HostPools(arena.supervisor, programs, lambda *told: None)
        links = HostLinks(pools.opened, pools.closed)
        connection = NatsConnection(nats.address(ARENA_USER), "arena", ARENA_USER)
        await connection.open()
        stack.push_async_callback(connection.close)
        pools.directory = HostDirectory(connection, "arena", arena.limits, arena.url, links.ticket)
        await pools.directory.open()
        arena.take_hosts(pools, links)
        stack.callback(pools.close)
        stack.callback(links.close)
        running = [_host(stack, folder, nats, name, core) for core, name in enumerate(hosts)]
        while len(pools.directory.alive()) < len(hosts):
            await asyncio.sleep(0.1)
        game = GAMES[ANY_GAME]
        settings = game.vocabulary.read_settings(dict(game.rounds(20)))
        plan = plan_of(
            *(game, settings, tuple(BOTS)), matches=100, take=Take.SUBMITTED, versions=BOTS
        )
        playing = asyncio.ensure_future(arena.play(arena.compete(plan)))
        await asyncio.sleep(10)  # until processes are warm
        before, used_s = arena.referee.decisions, _used_s(running, nats)
        await asyncio.sleep(seconds)
        decisions = arena.referee.decisions - before
        cost_ms = 1000 * (_used_s(running, nats) - used_s) / decisions
        playing.cancel()
        await asyncio.wait((playing,))
        return decisions / seconds, cost_ms


def _host(stack: AsyncExitStack, folder: Path, nats: NatsServer, name: str, core: int) -> int:
    """Start a host on one core; the id of its process."""
    process = subprocess.Popen(
        [
            *("taskset", "-c", str(core), sys.executable, "-m", "arena", "host", "--cores", "1"),
            *(*nats.options(name), "--cache", str(folder / name)),
        ],
        stdout=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process.pid


def _used_s(hosts: Sequence[int], nats: NatsServer) -> float:
    """The CPU time of the arena, the bus and the hosts so far, without that of bots."""
    times = (psutil.Process(pid).cpu_times() for pid in (os.getpid(), nats.pid, *hosts))
    return float(sum(each.user + each.system for each in times))


async def _main(rounds: int = 5, seconds: int = 20, *thinks: int) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nats = NatsServer(folder / "bus")
        stack.callback(nats.kill)
        for ms in thinks or (20, 5):
            gains, costs = list[float](), list[float]()
            for number in range(rounds):
                rates = []
                for hosts in (["h1"], ["h1", "h2"]):
                    run = folder / f"{ms}-{number}-{len(hosts)}"
                    run.mkdir()
                    rate, cost_ms = await _played(run, nats, hosts, ms, seconds)
                    rates.append(rate)
                    costs.append(cost_ms)
                gains.append(rates[1] / rates[0])
                print(f"{ms} ms: {rates[0]:.1f} and {rates[1]:.1f} decisions a second", flush=True)
            print(
                f"{ms} ms: median {statistics.median(gains):.2f} times with two hosts, "
                f"{statistics.median(costs):.3f} ms of CPU for a decision outside of bots"
            )


if __name__ == "__main__":
    asyncio.run(_main(*map(int, sys.argv[1:])))
