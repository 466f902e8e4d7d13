"""What servers and clients over WebSocket need, in rounds in which each has its turn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from protocol.codec import Encoding
from tests.tools.bench.clients import (
    arena_server,
    echo,
    example_bots,
    our_bots,
    prototype,
    round_robin_server,
    thin_bots,
)
from tests.tools.bench.processes import TREE, LoadedServer, PythonProgram, Window, loaded
from tests.tools.bench.spread import Range, Spread, spread

__all__ = [
    "CLIENT_TABLES",
    "DECISIONS_PER_MATCH",
    "MANY_BOTS",
    "ClientCost",
    "MatchRate",
    "MeasuredSide",
    "NetworkRate",
    "Turns",
    "client_costs",
    "in_turn",
    "match_rate",
    "network_rate",
    "round_robin",
    "steady_client",
    "steady_server",
]

CLIENT_TABLES = 64  # at which clients are measured
# Questions that are answered together. How many share a frame changes what each costs by half, and
# is else left to chance: two free processes stay for minutes with four or with eighteen.
TOGETHER = 32
MANY_BOTS = 200
_HANDS_OF_SHORT = 2
DECISIONS_PER_MATCH = 2 * _HANDS_OF_SHORT  # thin bots always bet and always call


class Turns(NamedTuple):
    """How often each side is measured, for how long, and for how many decisions at least."""

    rounds: int = 5
    seconds: float = 0.5
    decisions: int = 1


class MeasuredSide(NamedTuple):
    """A server with its clients, before they are started."""

    server: PythonProgram
    clients: Sequence[PythonProgram]
    tables: int


class NetworkRate(msgspec.Struct, frozen=True, kw_only=True):
    """Matches over two connections, beside an echo and the bare prototype.

    All figures are medians of all rounds; a range has the lowest and the highest. For all rates one
    match is played by thin clients, as the echo is, and more are played by ours.

    Attributes:
        ratio: decisions per second over the echo's round trips per second.
        server_us: CPU time of the arena per decision, with thin clients that answer 32 questions
            together.
        prototype_ratio: decisions per second over the prototype's.
        delay_ms: of the network, each way.
    """

    tables: int
    encoding: str
    decisions_per_s: float
    echo_per_s: float
    ratio: float
    server_us: float
    delay_ms: float = 0
    ratio_range: Range = (0, 0)
    server_us_range: Range = (0, 0)
    prototype_us: float = 0
    prototype_per_s: float = 0
    prototype_ratio: float = 0
    prototype_ratio_range: Range = (0, 0)


class ClientCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a client of Python needs for a decision, beside a thin one; 64 matches."""

    client: str
    encoding: str
    tables: int
    client_us: float
    client_us_range: Range
    thin_us: float
    ratio: float
    ratio_range: Range


class MatchRate(msgspec.Struct, frozen=True, kw_only=True):
    """A round robin of many bots with its database, two hands a match."""

    bots: int
    matches_per_s: float
    matches_per_s_range: Range
    server_us: float
    server_us_range: Range


async def in_turn(
    folder: Path, sides: Sequence[MeasuredSide], turns: Turns, delay_ms: float = 0
) -> list[list[Window]]:
    """The windows of each side, round by round; rounds go forth and back through the sides."""
    async with AsyncExitStack() as stack:
        servers: list[LoadedServer] = []
        for side in sides:
            program, clients, tables = side
            starting = loaded(folder, program, clients, tables=tables, delay_ms=delay_ms)
            servers.append(await stack.enter_async_context(starting))
        windows: list[list[Window]] = [[] for _ in sides]
        for number in range(turns.rounds):
            pairs = list(zip(servers, windows, strict=True))
            for server, own in reversed(pairs) if number % 2 else pairs:
                own.append(await server.turn(turns.seconds, turns.decisions))
    return windows


async def network_rate(
    folder: Path, encoding: Encoding, tables: int, turns: Turns, delay_ms: float = 0
) -> NetworkRate:
    """Measure one row; raises `ArenaError` if a process does not start or does not play."""
    clients = thin_bots(encoding, 1) if tables == 1 else our_bots(encoding, tables)
    steady, ours, bare, echoes = await in_turn(
        folder,
        (
            steady_server(tables, encoding),
            MeasuredSide(arena_server(tables), clients, tables),
            MeasuredSide(prototype(tables), clients, tables),
            MeasuredSide(echo(), thin_bots(encoding, 1, bots=1), 1),
        ),
        turns,
        delay_ms,
    )
    server_us, ratio, bare_ratio = _server_us(steady), _ratio(ours, echoes), _ratio(ours, bare)
    return NetworkRate(
        tables=tables,
        encoding=encoding.value,
        delay_ms=delay_ms,
        decisions_per_s=_per_s(ours).median,
        echo_per_s=_per_s(echoes).median,
        ratio=ratio.median,
        ratio_range=ratio.range,
        server_us=server_us.median,
        server_us_range=server_us.range,
        prototype_us=_server_us(bare).median,
        prototype_per_s=_per_s(bare).median,
        prototype_ratio=bare_ratio.median,
        prototype_ratio_range=bare_ratio.range,
    )


def steady_server(
    tables: int, encoding: Encoding = Encoding.JSON, tree: Path = TREE
) -> MeasuredSide:
    """A side for what a server needs: thin bots decide how many questions share a frame."""
    bots = thin_bots(encoding, tables, together=min(tables, TOGETHER))
    return MeasuredSide(arena_server(tables, tree), bots, tables)


def steady_client(clients: Sequence[PythonProgram]) -> MeasuredSide:
    """A side for what bots need: the prototype decides how many questions share a frame."""
    return MeasuredSide(prototype(CLIENT_TABLES, TOGETHER), clients, CLIENT_TABLES)


async def client_costs(folder: Path, encoding: Encoding, turns: Turns) -> tuple[ClientCost, ...]:
    """Measure our client and the plain example, each at a prototype of its own."""
    clients = {
        "ours": our_bots(encoding, CLIENT_TABLES),
        "example": example_bots(encoding, CLIENT_TABLES),
        "thin": thin_bots(encoding, CLIENT_TABLES),
    }
    windows = await in_turn(folder, [steady_client(bots) for bots in clients.values()], turns)
    costs = {
        client: [turn.client_us for turn in own]
        for client, own in zip(clients, windows, strict=True)
    }
    thin = costs.pop("thin")
    rows = []
    for client, own in costs.items():
        cost, ratio = spread(own), spread([a / b for a, b in zip(own, thin, strict=True)])
        rows.append(
            ClientCost(
                client=client,
                encoding=encoding.value,
                tables=CLIENT_TABLES,
                client_us=cost.median,
                client_us_range=cost.range,
                thin_us=spread(thin).median,
                ratio=ratio.median,
                ratio_range=ratio.range,
            )
        )
    return tuple(rows)


async def match_rate(folder: Path, turns: Turns, bots: int = MANY_BOTS) -> MatchRate:
    """Measure a round robin of short matches."""
    [windows] = await in_turn(folder, (round_robin(bots),), turns)
    rate = spread([turn.per_s / DECISIONS_PER_MATCH for turn in windows])
    cost = spread([turn.server_us * DECISIONS_PER_MATCH for turn in windows])
    return MatchRate(
        bots=bots,
        matches_per_s=rate.median,
        matches_per_s_range=rate.range,
        server_us=cost.median,
        server_us_range=cost.range,
    )


def round_robin(bots: int, tree: Path = TREE) -> MeasuredSide:
    """A side that plays short matches between many thin bots."""
    server = round_robin_server(bots, _HANDS_OF_SHORT, tree)
    return MeasuredSide(server, thin_bots(Encoding.JSON, 1, bots), bots // 4)


def _server_us(windows: Sequence[Window]) -> Spread:
    return spread([turn.server_us for turn in windows])


def _per_s(windows: Sequence[Window]) -> Spread:
    return spread([turn.per_s for turn in windows])


def _ratio(windows: Sequence[Window], others: Sequence[Window]) -> Spread:
    """The decisions per second over those of the other side in the same round."""
    return spread([a.per_s / b.per_s for a, b in zip(windows, others, strict=True)])
