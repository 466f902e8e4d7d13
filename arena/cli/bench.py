"""`arena bench`: measures how large a class this machine can serve."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from arena.cli import Interrupted
from arena.cli import _output as output
from arena.cli._results import Found, result_command
from arena.cli._signals import stops_at_sigterm
from arena.games.catalogue import game_named
from arena.lab import capacity
from arena.lab.capacity import Capacity, GameCapacity

__all__ = ["command"]

_CLASS = 30


@result_command("bench", prints=Capacity)
def command() -> Iterator[Found]:
    """Measure what this machine carries: matches an hour of each game, and bots at once.

    It takes about ten seconds, more on a busy machine. An arena plays matches as a competition
    does, between house bots that connect, and what is counted is its own CPU time: what bots need
    comes on top where they run on this machine, too. Ctrl-C shows what has been found.
    """
    found: list[GameCapacity] = []
    is_interrupted = False
    try:
        asyncio.run(_measure(found))
    except (KeyboardInterrupt, asyncio.CancelledError):
        is_interrupted = True
    carries = capacity.capacity_of(found)
    yield carries, _lines(carries)
    if is_interrupted:
        games = output.plural(len(found), "game")
        raise Interrupted(f"interrupted after {games} of {len(capacity.measurable())}")


async def _measure(found: list[GameCapacity]) -> None:
    stops_at_sigterm()
    with output.ticking("playing", len(capacity.measurable())) as tick:

        def on_game(game: GameCapacity) -> None:
            found.append(game)
            tick()

        await capacity.measure(on_game)


def _lines(carries: Capacity) -> list[str]:
    cores = output.plural(carries.cores, "core")
    lines = [f"On one of its {cores} the arena plays, between bots that answer at once:"]
    lines += map(_line_of, carries.games)
    if not carries.games:
        lines = []
    if carries.connected is not None:
        lines.append(
            f"Bots at once: about {_about(carries.connected)} that connect, each in a match, with "
            "20 ms of network each way and 5 ms of thought."
        )
    lines.append(
        f"Of bots that the arena launches or that were handed in, {carries.launched:,} fit into "
        f"memory, and {cores} compute for them and for the arena."
    )
    return lines


def _line_of(capacity: GameCapacity) -> str:
    game = game_named(capacity.game)
    text = f"  about {_about(capacity.matches_per_hour)} matches of {game.vocabulary.title} an hour"
    matches = {1: _CLASS, 2: _CLASS * (_CLASS - 1) // 2}.get(game.seats)
    if matches is None:
        return text
    took = output.duration(matches / capacity.matches_per_hour * 3600)
    every = "once each" if game.seats == 1 else "each against each"
    return f"{text}; a class of {_CLASS}, {every}: {took}"


def _about(count: float) -> str:
    """Round to two significant digits, such as `4,300`."""
    return f"{float(f'{count:.2g}'):,.0f}"
