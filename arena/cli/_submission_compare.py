"""The process that compares two submitted versions as `arena compare` does, at the lowest priority.

`arena/submissions/comparisons.py` starts it, and reads the sentences that it writes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import msgspec

from arena.cli._signals import stops_at_sigterm
from arena.games import competition_settings, game_named
from arena.lab.bot_pool import PoolBot
from arena.lab.compare import Matchup, MatchupPart
from arena.lab.comparison_report import LEVEL, MOST_BLOCKS, ComparisonSoFar, sentence_of
from arena.lab.launched import compare
from arena.sandbox.command import sealed_program
from arena.submissions.check_process import nicer
from arena.submissions.comparisons import ComparisonJob
from protocol.submitting import Comparing, encode_to_submitter

__all__ = ["main"]

_LOWEST = 19
_SAY_S = 1.0  # between two sentences


async def main(job: ComparisonJob) -> None:
    """Play until it is known which is better, and write what is known to stdout meanwhile."""
    stops_at_sigterm()
    game = game_named(job.game)
    matchup = Matchup(game, competition_settings(game, {}))
    most = MOST_BLOCKS * (1 if game.unit is None else game.unit.block)
    names = tuple(version.name for version in job.versions)
    so_far = ComparisonSoFar(matchup, names, None, level=LEVEL / 100, most=most)
    said_at = time.monotonic()

    def on_part(part: MatchupPart) -> bool:
        nonlocal said_at
        is_over = so_far.add(part)
        if not is_over and time.monotonic() - said_at >= _SAY_S:
            said_at = time.monotonic()
            _say(Comparing(sentence_of(so_far)))
        return is_over

    bots = [
        PoolBot(version.name, sealed_program(Path(version.folder), version.manifest))
        for version in job.versions
    ]
    hidden = tuple(map(Path, job.hidden))
    await compare(matchup, bots, on_part, limits=job.limits, hidden=hidden)
    text = sentence_of(so_far)
    if (offence := so_far.offence) is not None:
        text = f"{names[offence.bot]} is eliminated: {offence.text}"
    _say(Comparing(text, is_over=True))


def _say(said: Comparing) -> None:
    sys.stdout.buffer.write(encode_to_submitter(said) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    nicer(_LOWEST)
    asyncio.run(main(msgspec.json.decode(sys.stdin.buffer.readline(), type=ComparisonJob)))
