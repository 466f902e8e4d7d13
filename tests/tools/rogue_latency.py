"""Do rogues make others wait? `python -m tests.tools.rogue_latency` measures it in two minutes.

It is no part of CI. Pairs of honest bots play, with some milliseconds of thought per decision, and
measure the time from the sending of an answer to the next question, whichever of the two is asked.
That is the arena's time, and that of the client's own loop. Three conditions alternate within one
run, as a machine is slower at times:

- `quiet`: there are no rogues;
- `elsewhere`: the rogues are busy with another arena on the same machine, which shows what the
  machine itself costs;
- `here`: the rogues are connected, all kinds of them, or one with `--only KIND`; each comes back a
  moment after its end, for ever.

The rogues, and the other arena, run only on an otherwise idle processor (nice 19, SCHED_IDLE), as
the processor time that they take is not the arena's fault. Issue 3 requires that p99 `here` is at
most three times p99 `quiet`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from arena.competitions.arena_host import Host
from arena.engine.match import MatchResult
from arena.games import GAMES
from arena.referee.bot_session import BotSession
from arena.referee.live_match import LiveMatch
from arena.storage.store import Store
from protocol.messages import Limits, Verdict
from tests.support.rogues import rogue
from tests.support.rogues.rogue import KINDS, step_back

__all__ = ["main"]

Times = dict[str, list[float]]

CONDITIONS = ("quiet", "elsewhere", "here")
LIKE_OTHERS = {"as-true", "as-float", "as-text", "as-list"}  # as `illegal`, on the wire
ALL = [name for name, kind in KINDS.items() if not kind.launched and name not in LIKE_OTHERS]
MOST_RATIO = 3.0  # what the issue allows

_ROGUE = str(Path(rogue.__file__).resolve())
_THOUGHT_S = 0.005  # the arena is then busy for some percent of the time, as with bots that think
_WARM_UP_S = 1.0  # not counted at the start of a condition
_PAUSE_S = 1.0  # from a rogue's end to its return, as a client that comes back by itself
_LIMITS = Limits(
    decision_ms=1_000,
    bank_ms=1_000,
    hard_ms=2_000,
    start_ms=3_000,
    grace_ms=500,
    buffer_bytes=256 * 1024,  # else who never reads is a flood first
)
_PATIENT = Limits(decision_ms=30_000, hard_ms=30_000)  # with pairs: they are measured


# ---- An arena that deals to whoever is free, as a process of its own


async def serve() -> None:
    """Print the address and deal until SIGTERM; then print the endings of the rogues' matches."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/db") as store:
        async with Host(store, limits=_LIMITS) as host:
            dealer = Dealer(host)
            print(host.url, flush=True)
            while not stop.is_set():
                dealer.deal()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(host.wait_for_change(), 0.05)
            print(json.dumps(dealer.endings))


class Dealer:
    """Opens matches for all free bots: endless ones for pairs, blackjack for the others."""

    def __init__(self, host: Host) -> None:
        self.endings: Counter[str] = Counter()
        self._host = host

    def deal(self) -> None:
        players = self._host.gateway.players
        for name, player in tuple(players.items()):
            other = players.get(name.replace("left", "right"))
            if not player.is_free or other is None or not other.is_free:
                continue
            if name.startswith("left"):
                endless: dict[str, object] = {"hands": 10_000_000}
                self._open("ace_king_queen", endless, _PATIENT, player, other)
            elif not name.startswith("right"):
                self._open("blackjack", {"hands": 100}, _LIMITS, player)

    def _open(
        self, game: str, given: dict[str, object], limits: Limits, *players: BotSession
    ) -> None:
        settings = GAMES[game].vocabulary.read_settings(given)
        self._host.gateway.referee.open(GAMES[game], settings, players, limits, self._on_over)

    def _on_over(self, table: LiveMatch, result: MatchResult, verdict: Verdict | None) -> None:
        if table.game.name == "blackjack":
            kind = table.chairs[0].player.name.rpartition(" ")[0]
            self.endings[f"{kind}: {result.termination.kind}"] += 1


@asynccontextmanager
async def _arena(endings: Counter[str], *options: str) -> AsyncIterator[str]:
    """An arena's address while it runs; it adds the endings of the rogues' matches."""
    words = (sys.executable, "-m", "tests.tools.rogue_latency", "--serve", *options)
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None, "it is a pipe"
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        endings.update(json.loads((await process.communicate())[0] or b"{}"))


# ---- Who plays there


class Pair:
    """Two bots that play each other, and measure the time from an answer to the next question."""

    def __init__(self, url: str, number: int) -> None:
        self.waits_ms: list[float] | None = None  # None: they do not count now
        self._url, self._number = url, number
        self._answered_at: float | None = None

    async def play(self) -> None:
        """Play until cancelled."""
        async with asyncio.TaskGroup() as sides:
            for side in ("left", "right"):
                sides.create_task(self._play(f"{side} {self._number}"))

    async def _play(self, name: str) -> None:
        hello = {"type": "hello", "protocol": 1, "name": name}
        async with connect(self._url, compression=None, max_size=None) as websocket:
            await websocket.send(json.dumps({**hello, "games": ["ace_king_queen"]}))
            async for text in websocket:
                heard_at = time.perf_counter()
                message: dict[str, Any] = json.loads(text)
                match message["type"]:
                    case "match":
                        ids = {"match": message["match"], "nonce": name}
                        await websocket.send(json.dumps({"type": "ready", **ids}))
                    case "ask":
                        await self._answer(websocket, message, heard_at)
                    case "over":
                        raise AssertionError(f"{name} is out: {message}")

    async def _answer(
        self, websocket: ClientConnection, ask: dict[str, Any], heard_at: float
    ) -> None:
        if self.waits_ms is not None and self._answered_at is not None:
            self.waits_ms.append((heard_at - self._answered_at) * 1000)
        ids = {"match": ask["match"], "ask": ask["ask"]}
        answer = json.dumps({"type": "answer", **ids, "value": ask["legal"][0]})
        await asyncio.sleep(_THOUGHT_S)
        self._answered_at = time.perf_counter()
        await websocket.send(answer)


@contextmanager
def _rogues(url: str, count: int, kinds: Sequence[str], *, eager: bool) -> Iterator[None]:
    """Rogues of these kinds that come back for ever."""
    started: list[Popen[bytes]] = []
    try:
        for number in range(count):
            kind = kinds[number % len(kinds)]
            name = f"{kind} {number}"
            words = [sys.executable, _ROGUE, kind, "--url", url, "--name", name]
            words += ["--game", "blackjack", "--again", str(_PAUSE_S)]
            words += ["--eager"] if eager else []
            # No session of their own, as the kernel may give each session the same share of CPU.
            started.append(Popen(words, stdout=DEVNULL, process_group=0))
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)  # with the rogue that it runs just now
            process.wait()


# ---- Measuring


async def measure(
    pairs: int,
    rogues: Callable[[str], AbstractContextManager[None]],
    rounds: int,
    seconds: float,
    endings: Counter[str],
) -> list[Times]:
    """Per round and condition, the waits of the honest bots in ms; `endings` are those `here`."""
    other: Counter[str] = Counter()
    async with _arena(endings) as here, _arena(other, "--gently") as elsewhere:
        bots = [Pair(here, number) for number in range(pairs)]
        playing = [asyncio.create_task(bot.play()) for bot in bots]
        try:
            return [
                {
                    "quiet": await _listen(bots, seconds),
                    "elsewhere": await _beside(elsewhere, rogues, bots, seconds),
                    "here": await _beside(here, rogues, bots, seconds),
                }
                for _ in range(rounds)
            ]
        finally:
            for task in playing:
                task.cancel()
            for error in await asyncio.gather(*playing, return_exceptions=True):
                if isinstance(error, Exception):
                    raise error


async def _beside(
    url: str,
    rogues: Callable[[str], AbstractContextManager[None]],
    bots: list[Pair],
    seconds: float,
) -> list[float]:
    with rogues(url):
        await asyncio.sleep(_WARM_UP_S)  # for the rogues to start
        return await _listen(bots, seconds)


async def _listen(bots: list[Pair], seconds: float) -> list[float]:
    await asyncio.sleep(_WARM_UP_S)
    waits_ms: list[float] = []
    for bot in bots:
        bot.waits_ms = waits_ms
    await asyncio.sleep(seconds)
    for bot in bots:
        bot.waits_ms = None
    return waits_ms


def report(rounds: list[Times], seconds: float) -> dict[str, Any]:
    """The figures over all rounds; ratios are medians, as other programs may disturb a round."""
    figures: dict[str, Any] = {}
    for condition in CONDITIONS:
        waits_ms = [wait for times in rounds for wait in times[condition]]
        figures[condition] = {
            "decisions": len(waits_ms),
            "per_s": round(len(waits_ms) / (len(rounds) * seconds)),
            "p50_ms": round(percentile(waits_ms, 50), 3),
            "p99_ms": round(percentile(waits_ms, 99), 3),
        }
    for other in CONDITIONS[:-1]:
        by_round = [
            percentile(times["here"], 99) / percentile(times[other], 99) for times in rounds
        ]
        figures[f"here_to_{other}"] = {
            "p99_ratio": round(statistics.median(by_round), 2),
            "by_round": [round(each, 2) for each in by_round],
        }
    return figures


def percentile(values: list[float], per_cent: int) -> float:
    return statistics.quantiles(values, n=100)[per_cent - 1]


def main() -> int:
    """Measure and print; the exit status is 1 if rogues make others wait too long."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rogues", type=int, default=20)
    parser.add_argument("--only", choices=KINDS, help="one kind of them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="per condition")
    eager = "the rogues run as if they had a machine of their own"
    parser.add_argument("--eager", action="store_true", help=eager)
    parser.add_argument("--json", action="store_true")
    for ours in ("--serve", "--gently"):
        parser.add_argument(ours, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gently:
        step_back()
    if options.serve:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve())
        return 0
    endings: Counter[str] = Counter()
    kinds = [options.only] if options.only else ALL
    rogues = partial(_rogues, count=options.rogues, kinds=kinds, eager=options.eager)
    sizes = options.rounds, options.seconds
    times = asyncio.run(measure(options.pairs, rogues, *sizes, endings))
    figures = report(times, options.seconds)
    figures["endings"] = dict(sorted(endings.items()))
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            values = "  ".join(f"{key} {value}" for key, value in figure.items())
            print(f"{name:18} {values}")
    return int(figures["here_to_quiet"]["p99_ratio"] > MOST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
