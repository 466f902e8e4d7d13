"""Do guesses slow a match down? `python -m tests.tools.token_guessing` measures it, in about two
minutes; it is no part of CI.

Two house bots, each a process, play one match over WebSocket in an arena that requires tokens,
another process. A third says `hello` with ten thousand wrong tokens as fast as it can, over many
connections at once. Three conditions take turns within one run:

- `quiet`: nobody guesses;
- `elsewhere`: the same attacker guesses at another arena on the same machine, which plays nothing
  but lets strangers wait as if it did: what that costs the match is only the competition for two
  cores;
- `here`: it guesses at the arena that plays.

Printed are decisions per second, their ratios by round, how fast guesses were refused, and how long
one with a good token, from the same address, waited for its `welcome` meanwhile."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.client import connect

from arena.games import GAMES
from arena.referee.referee import Referee
from arena.server.gateway import Gateway
from arena.storage.tokens import Access, hashed
from protocol.messages import Limits

__all__ = ["attack", "main"]

CONDITIONS = ("quiet", "elsewhere", "here")
SIDES = ("left", "right")
VISITOR = "visitor"
MOST_LOSS = 0.25  # a fifth is what strangers may take, and what cannot be measured

_ENDLESS = 10_000_000
_WARM_UP_S = 1.0
_VISIT_S = 0.25  # between logins with a good token
_AT_ONCE = 64  # connections of the attacker
_SAID_BYTES = 4096


# ---- The arena, as a process of its own


async def serve(is_beside: bool) -> None:
    """Print the port; play between the two sides when they are there; answer every line on stdin
    with the decisions so far.
    """
    loop = asyncio.get_running_loop()
    referee = Referee(loop.time)
    names = (*SIDES, VISITOR)
    access = Access(names=frozenset(names), players={hashed(_token(name)): name for name in names})
    here = asyncio.Event()
    gateway = Gateway(referee, Limits(), here.set, access=access, requires_token=True)
    if is_beside:
        gateway.login.throttle._is_busy = lambda: True
    print(await gateway.open("127.0.0.1", 0), flush=True)
    asked = asyncio.Event()
    loop.add_reader(sys.stdin, asked.set)
    while True:
        if not referee.tables and all(side in gateway.players for side in SIDES):
            game = GAMES["ace_king_queen"]
            players = [gateway.players[side] for side in SIDES]
            settings = game.vocabulary.read_settings({"hands": _ENDLESS})
            referee.open(game, settings, players, gateway.limits, lambda *_: None)
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), 0.05)
        if asked.is_set():
            asked.clear()
            if not sys.stdin.readline():
                return
            print(json.dumps([loop.time(), referee.decisions]), flush=True)


def _token(name: str) -> str:
    return f"the token of {name}"


class GuessedArena:
    """One of these, from without."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.port = port
        self._process = process

    async def decisions(self) -> tuple[float, int]:
        """When, and how many there have been."""
        assert self._process.stdin is not None, "it is a pipe"
        assert self._process.stdout is not None, "it is a pipe"
        self._process.stdin.write(b"\n")
        at, count = json.loads(await self._process.stdout.readline())
        return at, count


@asynccontextmanager
async def _started(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def _arena(*options: str) -> AsyncIterator[GuessedArena]:
    async with _started("tests.tools.token_guessing", "--serve", *options) as process:
        assert process.stdout is not None, "it is a pipe"
        yield GuessedArena(process, int(await process.stdout.readline()))


# ---- Who guesses


async def attack(port: int, count: int, at_once: int = _AT_ONCE) -> Counter[str]:
    """Say `hello` with so many wrong tokens; what came back, and how often."""
    outcomes: Counter[str] = Counter()
    numbers = iter(range(count))

    async def guess() -> None:
        for number in numbers:
            outcomes[await _one(port, f"guess {number}")] += 1

    await asyncio.gather(*(guess() for _ in range(at_once)))
    return outcomes


async def _one(port: int, token: str) -> str:
    """One guess: everything in one write, and read to the end."""
    said = b""
    with suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(_HANDSHAKE + _frame(_hello(token)))
            while chunk := await reader.read(_SAID_BYTES):
                said += chunk
                if b'"refused"' in said:
                    break
        finally:
            writer.transport.abort()
    start = said.find(b'{"type":"refused"')
    return "cut" if start < 0 else said[start : said.find(b"}", start) + 1].decode()


_HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def _hello(token: str) -> bytes:
    games = ["ace_king_queen"]
    hello = {"type": "hello", "protocol": 1, "name": "x", "games": games}
    return json.dumps({**hello, "token": token}).encode()


def _frame(payload: bytes) -> bytes:
    """A masked text frame of less than 126 bytes; the mask is zero."""
    assert len(payload) < 126, "of one byte of length"
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload


# ---- Measuring


async def measure(
    count: int, rounds: int, seconds: float
) -> tuple[dict[str, list[float]], Counter[str], float, list[float]]:
    """Decisions/s by condition and round; what came of the guesses here, how many there were per
    second, and the waits of visitors in ms.
    """
    rates: dict[str, list[float]] = {condition: [] for condition in CONDITIONS}
    outcomes: Counter[str] = Counter()
    waits_ms: list[float] = []
    attacked_s = 0.0
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(_arena())
        elsewhere = await stack.enter_async_context(_arena("--beside"))
        for side in SIDES:
            await stack.enter_async_context(_bot(here.port, side))
        while (await here.decisions())[1] < 1000:
            await asyncio.sleep(0.1)
        for _ in range(rounds):
            before = await here.decisions()
            await asyncio.sleep(seconds)
            rates["quiet"].append(_rate(before, await here.decisions()))
            async with _attacker(elsewhere.port, 100 * count):
                await asyncio.sleep(_WARM_UP_S)
                before = await here.decisions()
                await asyncio.sleep(seconds)
                rates["elsewhere"].append(_rate(before, await here.decisions()))
            async with _attacker(here.port, count // rounds) as process:
                assert process.stdout is not None, "it is a pipe"
                await process.stdout.readline()  # it begins
                visits = asyncio.create_task(_visit(here.port, waits_ms))
                before = await here.decisions()
                line = await process.stdout.readline()
                after = await here.decisions()
                visits.cancel()
            rates["here"].append(_rate(before, after))
            attacked_s += after[0] - before[0]
            outcomes.update(json.loads(line))
    return rates, outcomes, outcomes.total() / attacked_s, waits_ms


def _rate(before: tuple[float, int], after: tuple[float, int]) -> float:
    return (after[1] - before[1]) / (after[0] - before[0])


def _bot(port: int, side: str) -> Any:
    words = ("bots", "ace_king_queen", "honest", "--url", f"ws://127.0.0.1:{port}")
    return _started(*words, "--name", side, "--token", _token(side), "--no-session", "--quiet")


def _attacker(port: int, count: int) -> Any:
    return _started("tests.tools.token_guessing", "--attack", str(port), "--count", str(count))


async def _visit(port: int, waits_ms: list[float]) -> None:
    """Come in with a good token again and again."""
    hello = json.loads(_hello(_token(VISITOR)))
    while True:
        began = time.perf_counter()
        async with connect(f"ws://127.0.0.1:{port}", compression=None) as websocket:
            await websocket.send(json.dumps(hello))
            welcome = json.loads(await websocket.recv())
            assert welcome["type"] == "welcome", welcome
            waits_ms.append((time.perf_counter() - began) * 1000)
            await websocket.send(json.dumps({"type": "goodbye"}))
            await websocket.wait_closed()
        await asyncio.sleep(_VISIT_S)


def report(
    rates: dict[str, list[float]],
    outcomes: Counter[str],
    guesses_per_s: float,
    waits_ms: list[float],
) -> dict[str, Any]:
    """The figures; ratios are medians of the rounds', as others who use the machine spoil some."""
    figures: dict[str, Any] = {
        f"{condition}_per_s": [round(rate) for rate in rates[condition]] for condition in CONDITIONS
    }
    for one, other in (("elsewhere", "quiet"), ("here", "quiet"), ("here", "elsewhere")):
        by_round = [a / b for a, b in zip(rates[one], rates[other], strict=True)]
        figures[f"{one}_to_{other}"] = round(statistics.median(by_round), 3)
    figures["guesses"] = dict(outcomes)
    figures["guesses_per_s"] = round(guesses_per_s)
    figures["welcome_ms"] = {
        "visits": len(waits_ms),
        "median": round(statistics.median(waits_ms), 1),
        "most": round(max(waits_ms), 1),
    }
    return figures


def main() -> int:
    """Measure and print; the exit status is 1 if guesses slow the match down by more than their
    share.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="wrong tokens")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="per condition")
    parser.add_argument("--json", action="store_true")
    for ours in ("--serve", "--beside"):
        parser.add_argument(ours, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--attack", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.beside))
        return 0
    if options.attack is not None:
        print("it begins", flush=True)
        print(json.dumps(asyncio.run(attack(options.attack, options.count))), flush=True)
        return 0
    figures = report(*asyncio.run(measure(options.count, options.rounds, options.seconds)))
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:20} {figure}")
    return int(figures["here_to_elsewhere"] < 1 - MOST_LOSS)


if __name__ == "__main__":
    sys.exit(main())
