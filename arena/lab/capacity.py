"""Measures the capacity of this machine: matches per hour of each game, and bots at once.

An arena in this process plays the usual matches of each game between house bots that connect to it,
one match at a time. Only the arena's own CPU time per decision counts: it depends least on other
load, and the bots of a class compute elsewhere or on the other cores.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from arena.games.catalogue import GAMES, competition_settings
from arena.games.match import MatchResult
from arena.games.rules import Game
from arena.referee.bot_session import LiveMatch
from arena.sandbox.doctor import RESERVED_FILES, fitting_bots
from arena.sandbox.supervisor import ends_with_this
from arena.sandbox.worker_pool import usable_cores
from arena.server.listener import most_files
from protocol.errors import ArenaError
from protocol.messages import Limits, Verdict
from protocol.strategy import house_bots

if TYPE_CHECKING:
    from arena.competitions.live_arena import LiveArena

__all__ = ["Capacity", "GameCapacity", "capacity_of", "measurable", "measure"]

_CONNECT_S = 60.0  # for interpreters to start on a busy machine
_WARM_S = 0.2  # warm-up before measuring
_IDLE_S = 0.5
_LEAST_SHARE = 0.1  # of the CPU time, after subtracting the idle load; less would be noise
_LEAST_DECISIONS = 200  # measured in each game, even on a busy machine
_WAIT_S = 30.0  # for that many decisions
_LOOK_S = 0.05
# On a busier core turns wait for one another: see `arena/hosts/many_machines.md`.
_SHARE = 0.6
_TURN_S = 0.09  # for a decision by each of two bots: 20 ms each way and 5 ms of thought
_QUICK = ("random", "simple")  # house bots that use hardly any CPU time


class GameCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """What the arena needs for a game.

    Attributes:
        decisions: of a match with the settings of a competition, about.
        server_us: CPU time of the arena for each, in µs.
        matches_per_hour: with one core, between bots that answer at once.
    """

    game: str
    decisions: float
    server_us: float
    matches_per_hour: float


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What `arena bench` prints.

    Attributes:
        games: those that were measured.
        cores: that this process may use.
        connected: how many bots that connect from elsewhere can play a match each at once; None if
            nothing was measured.
        launched: how many bots that the arena launches fit into memory at once.
    """

    games: tuple[GameCapacity, ...]
    cores: int
    connected: int | None
    launched: int


def capacity_of(games: Sequence[GameCapacity]) -> Capacity:
    """Compute the capacity for a class from the measured games."""
    connected = None
    if games:
        dearest_us = max(game.server_us for game in games)
        connected = int(_SHARE * 1e6 / dearest_us * _TURN_S)
        if (most := most_files()) is not None:
            connected = min(connected, most - RESERVED_FILES)
    return Capacity(
        games=tuple(games),
        cores=usable_cores(),
        connected=connected,
        launched=fitting_bots(Limits()),
    )


def measurable() -> tuple[Game, ...]:
    """Return the games that have house bots."""
    return tuple(game for game in GAMES.values() if house_bots(game.name))


async def measure(on_game: Callable[[GameCapacity], None], seconds: float = 1.0) -> None:
    """Measure each game for `seconds`, and call `on_game` with each result.

    Raises:
        ArenaError: bots do not connect, or cannot play.
    """
    from arena.competitions.live_arena import LiveArena  # not needed by --help
    from arena.storage.store import Store

    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = stack.enter_context(Store(Path(folder) / "bench.db"))
        arena = await stack.enter_async_context(LiveArena(store))
        games = measurable()
        names = [[f"{game.name}-{seat}" for seat in range(game.seats)] for game in games]
        for game, seats in zip(games, names, strict=True):
            for name in seats:
                await stack.enter_async_context(_bot(arena.url, game, name))
        every = [name for seats in names for name in seats]
        if missing := {*every} - await arena.wait_for_bots(every, _CONNECT_S):
            raise ArenaError(f"{min(missing)} did not connect within {_CONNECT_S:.0f} s")
        await asyncio.sleep(_WARM_S)
        started, cpu_s = time.perf_counter(), time.process_time()
        await asyncio.sleep(_IDLE_S)
        idle = (time.process_time() - cpu_s) / (time.perf_counter() - started)
        for game, seats in zip(games, names, strict=True):
            on_game(await _measured(arena, game, seats, seconds, idle))


@asynccontextmanager
async def _bot(url: str, game: Game, name: str) -> AsyncIterator[None]:
    """Run a house bot as a process that connects like a bot from elsewhere."""
    known = house_bots(game.name)
    bot = next((quick for quick in _QUICK if quick in known), next(iter(known)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bots", game.name, bot, "--url", url, "--name", name),
        *("--no-session", "--quiet"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=ends_with_this(),
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _measured(
    arena: LiveArena, game: Game, names: Sequence[str], seconds: float, idle: float
) -> GameCapacity:
    """Let these bots play one match after another for `seconds`, and measure the arena's CPU time.

    `idle`, the arena's CPU time per second without matches, is subtracted: on a busy machine it
    would be spread over few decisions.
    """
    playing = _Matches(arena, game, names)
    await asyncio.sleep(_WARM_S)
    decided, cpu_s, started = arena.referee.decisions, time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    with suppress(TimeoutError):
        async with asyncio.timeout(_WAIT_S):
            while arena.referee.decisions < decided + _LEAST_DECISIONS:
                await asyncio.sleep(_LOOK_S)
    decided, cpu_s = arena.referee.decisions - decided, time.process_time() - cpu_s
    elapsed_s = time.perf_counter() - started
    playing.stop()
    if not decided:
        raise ArenaError(f"the bots of {game.name} do not play")
    decision_s = max(cpu_s - idle * elapsed_s, _LEAST_SHARE * cpu_s) / decided
    decisions = game.decisions(competition_settings(game, {}))
    return GameCapacity(
        game=game.name,
        decisions=decisions,
        server_us=decision_s * 1e6,
        matches_per_hour=3600 / (decisions * decision_s),
    )


class _Matches:
    """Plays one match after another between the same bots until it is stopped."""

    def __init__(self, arena: LiveArena, game: Game, names: Sequence[str]) -> None:
        self._arena, self._game = arena, game
        self._players = [arena.gateway.players[name] for name in names]
        self._settings = competition_settings(game, {})
        self._match: LiveMatch | None = None
        self._open()

    def stop(self) -> None:
        match, self._match = self._match, None
        if match is not None:
            self._arena.referee.void(match, "it has been measured")

    def _open(self) -> None:
        limits = self._arena.limits
        self._match = self._arena.referee.open(
            self._game, self._settings, self._players, limits, self._over
        )

    def _over(self, match: LiveMatch, result: MatchResult, verdict: Verdict | None) -> None:
        if match is self._match and verdict is None:
            asyncio.get_running_loop().call_soon(self._open)
