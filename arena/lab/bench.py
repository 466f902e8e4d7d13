"""How fast this arena is on this machine, as ratios that are measured in one run.

Over the network, rounds of matches alternate with rounds of a bare `websockets` echo of the same
message size, and the ratio of each pair counts. A machine that is slow for a while slows down both.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable

import msgspec
from websockets.asyncio.server import ServerConnection, serve

from arena.competitions.arena_host import Host
from arena.engine.match import MatchResult
from arena.games import GAMES, game_named
from arena.lab.idle_connections import IDLE, IdleCost, idle
from arena.lab.in_process import play
from arena.referee.live_match import LiveMatch
from arena.storage.store import Store
from protocol.codec import Encoding
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits, Verdict
from protocol.strategy import find

__all__ = ["Bench", "InProcessRate", "NetworkRate", "bench", "in_process"]

ROUNDS = 5  # enough for a median; each takes about two seconds
TABLES = 64
_GAME = "ace_king_queen"
_MESSAGE_BYTES = 190  # of an `ask` of this game with a hand's news, in JSON
_SECONDS = 1.0  # of one measurement in process
_CONNECT_S = 30.0  # for one interpreter to start on a busy machine

_SETTINGS: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 20_000},
    "gin_rummy": {"games": 20},
    "high_low": {"gap": 10**9, "max_shuffles": 50},
    "three_card_poker": {"rounds": 10_000, "stake": 10**9},
    "blackjack": {"hands": 10_000, "bankroll": 10**9},
}
"""Settings with which matches last long enough to be timed."""

# Elsewhere the random bot plays, which costs next to nothing beside the rules.
_BOTS = {"blackjack": "simple"}

_ECHO = """
import asyncio, sys
from websockets.asyncio.client import connect

async def main():
    async with connect(sys.argv[1], compression=None) as websocket:
        async for message in websocket:
            await websocket.send(message)

asyncio.run(main())
"""
"""The program of a bare client that sends back what it gets."""

_TWO_BOTS = """
import asyncio, sys
from bots.ace_king_queen import Bluffer
from bots.client import Client
from protocol.codec import Encoding

async def main(url, encoding, tables):
    options = {"encoding": Encoding(encoding), "tables": int(tables)}
    bots = [Client(url, name, {Bluffer.game: Bluffer}, **options) for name in ("one", "two")]
    await asyncio.gather(*(bot.run() for bot in bots))

asyncio.run(main(*sys.argv[1:]))
"""
"""The program of two bots with a connection each: like the echo, one process on either side.

They decide at once, as the arena is measured, not the bots."""


class InProcessRate(msgspec.Struct, frozen=True):
    """(a) One game without a network: deals per second of CPU."""

    game: str
    bot: str
    rounds_per_s: float
    decisions_per_s: float


class NetworkRate(msgspec.Struct, frozen=True, kw_only=True):
    """(b, c, d) Matches of Ace-King-Queen over two connections.

    `ratio` is decisions per second over the echo's round trips per second; `server_us` is CPU time
    of the arena per decision. All figures are medians of all rounds.
    """

    tables: int
    encoding: str
    decisions_per_s: float
    echo_per_s: float
    ratio: float
    server_us: float


class Bench(msgspec.Struct, frozen=True):
    """What `arena bench` prints; `idle` is None where other processes cannot be measured."""

    in_process: tuple[InProcessRate, ...]
    network: tuple[NetworkRate, ...]
    idle: IdleCost | None


def bench(store: Store, on_step: Callable[[str], None] = lambda step: None) -> Bench:
    """Measure everything; takes a minute or two.

    The matches are written to `store`; `on_step` is called with what is measured next. It raises
    `ArenaError` if a bot that is measured did not come or did not play.
    """
    local = []
    for game in GAMES:
        on_step(f"{game} in process")
        local.append(in_process(game))
    network = asyncio.run(_network(store, on_step))
    on_step(f"an arena with {IDLE} idle connections")
    return Bench(tuple(local), network, asyncio.run(idle()))


def in_process(game: str, seconds: float = _SECONDS) -> InProcessRate:
    """How many deals of a game the rules and quick strategies do in a second of CPU time."""
    bot = _BOTS.get(game, "random")
    cls = find(game, bot)
    seats = game_named(game).seats
    deals = decisions = matches = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        strategies = [cls() for _ in range(seats)]
        for seat, strategy in enumerate(strategies):
            strategy.seed(f"{matches}:{seat}")
        counter = strategies[0] = _CountingDeals(strategies[0])
        result = play(game, strategies, settings=_SETTINGS[game], seed=matches)
        if result.termination.kind is not Ending.COMPLETED:
            raise ArenaError(f"{game} was to be timed: {result.termination.text}")
        deals += counter.deals
        decisions += len(result.record.answers)
        matches += 1
    return InProcessRate(game, bot, deals / spent, decisions / spent)


class _CountingDeals:
    """Counts the deals of a match from the news that ends each."""

    _ENDS = frozenset({"HandOver", "RoundOver"})

    def __init__(self, strategy: object) -> None:
        self.deals = 0
        self._hear = strategy.hear  # type: ignore[attr-defined]
        self.decide = strategy.decide  # type: ignore[attr-defined]
        self.reset = strategy.reset  # type: ignore[attr-defined]

    def hear(self, news: object) -> None:
        if type(news).__name__ in self._ENDS:
            self.deals += 1
        self._hear(news)


async def _network(store: Store, on_step: Callable[[str], None]) -> tuple[NetworkRate, ...]:
    figures = []
    for encoding in Encoding:
        async with Host(store, limits=Limits()) as host:
            bots = await _program(_TWO_BOTS, host.url, encoding.value, str(TABLES))
            missing = {"one", "two"} - await host.wait_for_bots(("one", "two"), _CONNECT_S)
            if missing:
                raise ArenaError(f"expected two bots to connect within {_CONNECT_S:.0f} s")
            async with _Echo() as echo:
                for tables, hands in ((1, 3_000), (TABLES, 800)):
                    on_step(f"{tables} matches over WebSocket in {encoding.value}, and an echo")
                    figures.append(await _compare(host, echo, encoding, tables, hands))
        await bots.wait()  # they leave when the arena has closed
    return tuple(figures)


async def _program(source: str, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", source, *words)


async def _compare(
    host: Host, echo: _Echo, encoding: Encoding, tables: int, hands: int
) -> NetworkRate:
    await _matches(host, tables, max(1, hands // 10))
    rates, echoes, costs = [], [], []
    for _ in range(ROUNDS):
        echoes.append(await echo.rate())
        rate, cost = await _matches(host, tables, hands)
        rates.append(rate)
        costs.append(cost)
    ratios = [rate / beside for rate, beside in zip(rates, echoes, strict=True)]
    return NetworkRate(
        tables=tables,
        encoding=encoding.value,
        decisions_per_s=statistics.median(rates),
        echo_per_s=statistics.median(echoes),
        ratio=statistics.median(ratios),
        server_us=statistics.median(costs),
    )


async def _matches(host: Host, tables: int, hands: int) -> tuple[float, float]:
    """Play matches side by side: decisions per second, and our CPU time for each in µs."""
    game = game_named(_GAME)
    settings = game.vocabulary.read_settings({"hands": hands})
    players = [host.gateway.players[name] for name in host.presence.names(_GAME)]
    done = asyncio.get_running_loop().create_future()
    left = tables

    def on_over(table: LiveMatch, result: MatchResult, verdict: Verdict | None) -> None:
        nonlocal left
        left -= 1
        if verdict is not None and not done.done():
            done.set_exception(ArenaError(f"{verdict.bot} was to be timed: {verdict.text}"))
        elif left == 0 and not done.done():
            done.set_result(None)

    before = host.referee.decisions
    started, cpu = time.perf_counter(), time.process_time()
    for _ in range(tables):
        host.referee.open(game, settings, players, host.limits, on_over)
    await done
    elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
    decisions = host.referee.decisions - before
    return decisions / elapsed, cpu / decisions * 1e6


class _Echo:
    """A bare `websockets` server in this process, and a bare client in another that echoes."""

    TRIPS = 3_000

    async def __aenter__(self) -> _Echo:
        peer: asyncio.Future[ServerConnection] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()

        async def serve_one(websocket: ServerConnection) -> None:
            peer.set_result(websocket)
            await self._over.wait()

        self._server = await serve(serve_one, "127.0.0.1", 0, compression=None)
        port = next(iter(self._server.sockets)).getsockname()[1]
        self._client = await _program(_ECHO, f"ws://127.0.0.1:{port}")
        self._websocket = await asyncio.wait_for(peer, _CONNECT_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        self._server.close()
        await self._client.wait()

    async def rate(self) -> float:
        """Round trips per second."""
        message = "x" * _MESSAGE_BYTES
        started = time.perf_counter()
        for _ in range(self.TRIPS):
            await self._websocket.send(message)
            await self._websocket.recv()
        return self.TRIPS / (time.perf_counter() - started)
