"""Measures what a bot with four spinning children costs the two others of a ladder.

    python -m tests.tools.restless [rounds] [seconds]

In each round the attacker and the same bot without children play by turns, in arenas of their own.
The last line has the median of what is left of the others' matches a second.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import tempfile
from pathlib import Path

import msgspec

from arena.formats.spec import Form
from arena.sandbox.worker_pool import usable_cores
from tests.support.fake_bots import ANY_GAME
from tests.support.pipe_bot import pipe_bot
from tests.support.submitted_arena import submitted_arena

HANDS = 40  # of a match: a ladder has pauses, which must not be all that counts

SPINS = """
for _ in range(4):
    if os.fork() == 0:
        os.close(1)
        while True: pass
"""
"""What a bot does at its start that computes out of turn."""


async def _matches_a_second(first: str, seconds: float) -> tuple[float, float]:
    """Of the two others among themselves, and of the bot that begins with `first`."""
    cores = max(1, usable_cores() - 1)
    with tempfile.TemporaryDirectory() as folder:
        arenas = submitted_arena(Path(folder), cores=cores, most=16, ann=1, ben=2, eve=3)
        async with arenas as arena:
            arena.programs[3] = pipe_bot(first=first)
            plan = arena.plan(ANY_GAME, "ann", "ben", "eve", form=Form.LADDER)
            plan = msgspec.structs.replace(plan, settings={**plan.settings, "hands": HANDS})
            ladder = arena.host.compete(plan)
            playing = asyncio.ensure_future(arena.host.play(ladder))
            await asyncio.sleep(seconds)
            ladder.close()
            await playing
            await arena.store.flushed()
            results = arena.store.results(ladder.id)
    with_eve = sum("eve" in result.players for result in results)
    return (len(results) - with_eve) / seconds, with_eve / seconds


async def _main(rounds: int = 5, seconds: float = 20.0) -> None:
    kept = []
    for number in range(1, rounds + 1):
        calm, calm_eve = await _matches_a_second("pass", seconds)
        attacked, eve = await _matches_a_second(SPINS, seconds)
        kept.append(attacked / calm)
        print(
            f"{number}: {calm:.1f} and {calm_eve:.1f} with the third; attacked {attacked:.1f} "
            f"and {eve:.1f}: {kept[-1]:.2f}",
            flush=True,
        )
    print(f"median {statistics.median(kept):.2f}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(_main(*map(int, sys.argv[1:])))
