"""How long records are by game, and how many matches a second a database takes: `python -m
tests.tools.write_rate [--db URL]`.

Matches of house bots are handed to a store as fast as it makes them durable, a few hundred ahead,
as by an arena with many tables. The page `arena/hosts/many_machines.md` quotes what is printed.
`--db postgresql` starts a server of its own, with fsync. No part of CI.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median

import msgspec

from arena.formats.spec import Form, Plan
from arena.games.catalogue import GAMES, competition_settings
from arena.games.match import MatchResult, MatchState, drive
from arena.storage.schema import compressed
from arena.storage.store import Store, new_id
from protocol.strategy import find, house_bots
from tests.support.databases import postgres_server

__all__ = ["main", "played", "written_per_s"]

_AHEAD = 300  # matches that may wait for the disk; an arena has as many tables
_RECORDS = 5  # different ones
_NAMES = tuple(f"bot-{number}" for number in range(60))


def played(name: str, number: int) -> MatchResult:
    """A match of house bots as a competition has them, with a time for each answer."""
    game = GAMES[name]
    match = MatchState(game, competition_settings(game, {}), seed=number.to_bytes(32, "big"))
    names = list(house_bots(name))
    drive(match, [find(name, names[seat % len(names)])() for seat in range(game.seats)])
    result = match.result()
    times_ms = tuple(Random(number).choices(range(11), k=len(result.record.answers)))
    return msgspec.structs.replace(
        result, record=msgspec.structs.replace(result.record, times_ms=times_ms)
    )


def written_per_s(where: str, results: Sequence[MatchResult], seconds: float) -> float:
    """Write these results of one game over and over, for so long."""
    record = results[0].record
    settings = dict(record.settings)
    plan = Plan(game=record.game, form=Form.ROUND_ROBIN, settings=settings, players=_NAMES)
    competition = new_id(record.game)
    with Store(where, exclusive=True) as store:
        store.competition_started(competition, plan, time.time())
        store.flush()
        return asyncio.run(_write(store, competition, results, seconds))


async def _write(
    store: Store, competition: str, results: Sequence[MatchResult], seconds: float
) -> float:
    began = time.perf_counter()
    number = 0
    waiting: list[asyncio.Future[None]] = []
    while time.perf_counter() - began < seconds:
        for _ in range(_AHEAD // 3):
            now, result = time.time(), results[number % len(results)]
            players = [_NAMES[number // 60**seat % 60] for seat in range(len(result.scores))]
            match = f"{competition}-{number}"
            store.match_finished(competition, number, match, players, result, now, now + 1)
            number += 1
            await asyncio.sleep(0)
        waiting.append(asyncio.ensure_future(store.flushed()))
        if len(waiting) == 3:
            await waiting.pop(0)
    await asyncio.gather(*waiting)
    return number / (time.perf_counter() - began)


def main() -> None:
    """Write matches of each game, and print a line of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--db", help="a file or URL; by default a file in a new folder")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each game")
    asked = parser.parse_args()
    if asked.db == "postgresql":
        server = postgres_server(fsync=True)
        if isinstance(server, str):
            parser.error(server)
        asked.db = server.url()
    print("game | decisions | record KiB, stored KiB | written a second, MiB a second")
    for name in GAMES:
        results = [played(name, number) for number in range(_RECORDS)]
        decisions = median(len(result.record.answers) for result in results)
        records = [result.record.to_json() for result in results]
        kib = median(map(len, records)) / 1024
        stored = median(len(compressed(record)) for record in records) / 1024
        with tempfile.TemporaryDirectory() as folder:
            where = asked.db or str(Path(folder) / "arena.db")
            per_s = written_per_s(where, results, asked.seconds)
        mib_per_s = per_s * stored / 1024
        sizes = f"{kib:.1f}, {stored:.1f}"
        print(f"{name} | {decisions:,.0f} | {sizes} | {per_s:,.0f}, {mib_per_s:.0f}", flush=True)


if __name__ == "__main__":
    main()
