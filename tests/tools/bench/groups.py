"""How fast this arena is on this machine, as CPU time and as ratios that are measured in one run.

Whatever is compared is measured in rounds in which each side has its turn, and the ratio of each
round counts. A machine that is slow for a while slows down all of them.

`processes.py` starts servers and clients and measures their turns, `clients.py` says which there
are, `network.py` and `games.py` make the rows, and `against.py` compares two commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from pathlib import Path

import msgspec

from arena.games import GAMES
from arena.sandbox.process_table import probe
from protocol.codec import Encoding
from tests.tools.bench.games import DeadwoodCost, InProcessRate, deadwood_cost, game_rate
from tests.tools.bench.idle import IdleCost, idle, too_few_files
from tests.tools.bench.network import (
    ClientCost,
    MatchRate,
    NetworkRate,
    Turns,
    client_costs,
    match_rate,
    network_rate,
)

__all__ = ["IDLE", "Bench", "Group", "bench"]

IDLE = 5_000  # connections: ten large classes
_TABLES = (1, 64, 512, 2_048)
_DELAY_MS = 20.0  # each way, as between two continents' edges
_GAME_S = 0.4  # of CPU time, of one turn in process
_DEADWOOD_S = 0.2


class Group(StrEnum):
    """What can be measured on its own."""

    TABLES = "tables"
    DELAY = "delay"
    MATCHES = "matches"
    CLIENTS = "clients"
    GAMES = "games"
    DEADWOOD = "deadwood"
    IDLE = "idle"


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """What `arena bench` prints; what was not measured is empty or None, and `notes` say why."""

    in_process: tuple[InProcessRate, ...] = ()
    network: tuple[NetworkRate, ...] = ()
    idle: IdleCost | None = None
    matches: MatchRate | None = None
    clients: tuple[ClientCost, ...] = ()
    deadwood: tuple[DeadwoodCost, ...] = ()
    notes: tuple[str, ...] = ()


async def bench(
    groups: Collection[Group],
    folder: Path,
    turns: Turns,
    on_step: Callable[[str], None] = lambda step: None,
) -> Bench:
    """Measure these groups, with files in `folder`; all of them take five to ten minutes.

    `on_step` is called with what is measured next. It raises `ArenaError` if a process that is
    measured did not start or did not play.
    """
    network: list[NetworkRate] = []
    if Group.TABLES in groups:
        for encoding in Encoding:
            for tables in _TABLES:
                on_step(f"{tables} matches in {encoding.value}, a prototype and an echo")
                network.append(await network_rate(folder, encoding, tables, turns))
    if Group.DELAY in groups:
        tables = _TABLES[-1]
        on_step(f"{tables} matches over a slow network")
        network.append(await network_rate(folder, Encoding.JSON, tables, turns, _DELAY_MS))
    matches = None
    if Group.MATCHES in groups:
        on_step("a round robin of short matches")
        matches = await match_rate(folder, turns)
    notes: list[str] = []
    clients: list[ClientCost] = []
    if Group.CLIENTS in groups and (why := probe()) is not None:
        notes.append(f"clients: {why}")
    elif Group.CLIENTS in groups:
        for encoding in Encoding:
            on_step(f"clients in {encoding.value}")
            clients += await client_costs(folder, encoding, turns)
    local, deadwood = await _in_process(groups, turns.rounds, on_step)
    cost = None
    if Group.IDLE in groups:
        cost = await _idle(notes, on_step)
    return Bench(
        in_process=local,
        network=tuple(network),
        idle=cost,
        matches=matches,
        clients=tuple(clients),
        deadwood=deadwood,
        notes=tuple(notes),
    )


async def _in_process(
    groups: Collection[Group], rounds: int, on_step: Callable[[str], None]
) -> tuple[tuple[InProcessRate, ...], tuple[DeadwoodCost, ...]]:
    local, deadwood = [], []
    for game in GAMES if Group.GAMES in groups else ():
        on_step(f"{game} in process")
        local.append(await game_rate(game, rounds, _GAME_S))
    for hands in ("random", "rich") if Group.DEADWOOD in groups else ():
        on_step(f"the deadwood of {hands} hands")
        deadwood.append(await deadwood_cost(hands, rounds, _DEADWOOD_S))
    return tuple(local), tuple(deadwood)


async def _idle(notes: list[str], on_step: Callable[[str], None]) -> IdleCost | None:
    why = probe() or too_few_files(IDLE)
    if why is not None:
        notes.append(f"idle: {why}")
        return None
    on_step(f"an arena with {IDLE:,} idle connections")
    return await idle(IDLE)
