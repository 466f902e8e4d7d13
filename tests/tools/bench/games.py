"""How fast the games are in one process, beside OpenSpiel and RLCard where these are installed.

Every figure is of a process of its own, in rounds in which each library has its turn.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from arena.games import game_named
from arena.sandbox.supervisor import ends_with_this
from protocol.errors import ArenaError
from protocol.strategy import find, house_bots
from tests.tools.bench import game_rates
from tests.tools.bench.processes import TREE, environment
from tests.tools.bench.spread import Range, spread

__all__ = ["DeadwoodCost", "InProcessRate", "PeerRate", "deadwood_cost", "game_rate", "worked"]

_PEERS = {"OpenSpiel": "pyspiel", "RLCard": "rlcard"}  # by the module that has to be installed
_DEADWOOD = ("random", "rich")  # hands; of the peers only OpenSpiel counts it
# House bots that cost next to nothing beside the rules; other bots may think.
_QUICK = ("random", "simple")
_CHANCE = "chance"  # what plays where there is none of them


class PeerRate(msgspec.Struct, frozen=True, kw_only=True):
    """Another library's figure for the same game, and ours over it."""

    peer: str
    rounds_per_s: float
    ratio: float
    ratio_range: Range


class InProcessRate(msgspec.Struct, frozen=True):
    """One game without a network: deals and decisions per second of CPU."""

    game: str
    bot: str
    rounds_per_s: float
    decisions_per_s: float
    rounds_per_s_range: Range = (0, 0)
    peers: tuple[PeerRate, ...] = ()


class DeadwoodCost(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time for the deadwood of a hand of ten; `ratio` is ours over OpenSpiel's, or None."""

    hands: str
    us: float
    us_range: Range
    open_spiel_us: float | None = None
    ratio: float | None = None
    ratio_range: Range | None = None


class Worked(NamedTuple):
    """What one process did in its turn."""

    deals: float
    decisions: float
    cpu_s: float


def _bot_of(game: str) -> str | None:
    """The house bot that is timed; None stands for a bot that plays at random."""
    return next((bot for bot in _QUICK if bot in house_bots(game)), None)


def _work(what: str) -> str:
    """What a process of ours is to do: the game with all that this tree knows of it."""
    if what in _DEADWOOD:
        return what
    game, bot = game_named(what), _bot_of(what)
    cls = None if bot is None else find(what, bot)
    document = {
        "game": game.name,
        "bot": cls and f"{cls.__module__}:{cls.__qualname__}",
        "seats": game.seats,
        "settings": game.bench.settings,
        "closes": game.vocabulary.closes.__name__,
    }
    return json.dumps(document)


async def worked(what: str, seconds: float, whose: str = "ours", tree: Path = TREE) -> Worked:
    """Let a process play a game, or count deadwood, for `seconds` of its CPU time."""
    work = _work(what) if whose == "ours" else what
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(game_rates.__file__), whose, work, str(seconds)),
        env=environment(tree),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=ends_with_this(),
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = err.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise ArenaError(f"{what} of {whose} was to be timed: {last[0]}")
    return Worked(**json.loads(out))


async def game_rate(game: str, rounds: int, seconds: float) -> InProcessRate:
    """How many deals of a game the rules and quick strategies do in a second of CPU time."""
    ours, *others = await _rounds(game, rounds, seconds)
    rates = [turn.deals / turn.cpu_s for turn in ours]
    peers = []
    for name, own in zip(_installed(game), others, strict=True):
        theirs = [turn.deals / turn.cpu_s for turn in own]
        ratio = spread([a / b for a, b in zip(rates, theirs, strict=True)])
        rate = spread(theirs).median
        peer = PeerRate(peer=name, rounds_per_s=rate, ratio=ratio.median, ratio_range=ratio.range)
        peers.append(peer)
    return InProcessRate(
        game,
        _bot_of(game) or _CHANCE,
        spread(rates).median,
        spread([turn.decisions / turn.cpu_s for turn in ours]).median,
        spread(rates).range,
        tuple(peers),
    )


async def deadwood_cost(hands: str, rounds: int, seconds: float) -> DeadwoodCost:
    """Measure the deadwood of `random` or `rich` hands."""
    ours, *others = await _rounds(hands, rounds, seconds)
    costs = [turn.cpu_s / turn.deals * 1e6 for turn in ours]
    cost = DeadwoodCost(hands=hands, us=spread(costs).median, us_range=spread(costs).range)
    for own in others:
        theirs = [turn.cpu_s / turn.deals * 1e6 for turn in own]
        ratio = spread([a / b for a, b in zip(costs, theirs, strict=True)])
        cost = msgspec.structs.replace(
            cost, open_spiel_us=spread(theirs).median, ratio=ratio.median, ratio_range=ratio.range
        )
    return cost


async def _rounds(what: str, rounds: int, seconds: float) -> list[list[Worked]]:
    """Rounds of ours and of each library that has this."""
    names = ("ours", *_installed(what))
    turns: Iterable[Sequence[Worked]] = [
        [await worked(what, seconds, whose) for whose in names] for _ in range(rounds)
    ]
    return [list(own) for own in zip(*turns, strict=True)]


def _installed(what: str) -> list[str]:
    return [
        peer
        for peer, needed in _PEERS.items()
        if _has(peer, what) and importlib.util.find_spec(needed) is not None
    ]


def _has(peer: str, what: str) -> bool:
    return peer == "OpenSpiel" if what in _DEADWOOD else what in game_rates.PEERS[peer]
