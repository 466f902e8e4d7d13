"""What do analyses cost the page, and the matches? `python -m tests.tools.analysis_load` measures it.

It is a command of its own and no part of CI. An arena is served with a database of matches whose
judgement is slow. One browser asks for one document after another, while ten analyses and more are
queued, and while there are none, in turns, as machines differ from one minute to the next. It
prints how long the answers took, p50 and p99. With `--bots` launched bots play meanwhile, and it
prints how many decisions a second they made, too. Linux only.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import arena
from arena.formats.formats import schedule_of
from arena.games import GAMES
from arena.storage.store import Store
from protocol.strategy import house_bots
from tests.support import arena_process
from tests.support.sample_database import SampleWriter, plan

__all__ = ["LoadedPart", "main"]

COMPETITION = "c"
_MATCHES = 20
_ASKERS = 5  # addresses, each of which has three waiting
_PAUSE_S = 0.02  # between two requests
_READY_S = 60.0
_READY_BOTS_S = 10.0
_LOOKED_AT = 15  # the next analyses, of those that are wanted
_KEEPS_S = 5.0  # between two looks of those who wait for an analysis
_RUN = """
[[run]]
name = "bots"
game = "{game}"
house = {house}
least = 2
matches = 10000
"""


class LoadedPart(NamedTuple):
    """Some seconds with analyses or without.

    Attributes:
        took_ms: how long each answer took.
        queued: how many analyses were queued or running at its end.
        done: how many have been done.
        per_s: decisions of bots a second.
    """

    took_ms: list[float]
    queued: int
    done: int
    per_s: float


class ServedDatabase:
    """An arena as a process, whose requests come from several addresses of this machine."""

    def __init__(self, url: str) -> None:
        self._at = urlsplit(url)
        self._connections: dict[str, HTTPConnection] = {}

    def get(self, path: str, address: str = "127.0.0.1") -> bytes:
        """A body, over the connection of an address."""
        host, port = self._at.hostname or "", self._at.port
        if address not in self._connections:
            self._connections[address] = HTTPConnection(
                host, port, timeout=60, source_address=(address, 0)
            )
        connection = self._connections[address]
        try:
            connection.request("GET", path)
            body = connection.getresponse().read()
        except (ConnectionError, OSError):
            connection.close()
            del self._connections[address]
            raise
        return body

    def decisions(self) -> float:
        for line in self.get("/metrics").decode().splitlines():
            if line.startswith("arena_decisions_total "):
                return float(line.split()[1])
        raise AssertionError("expected arena_decisions_total in /metrics")


def _bot(game: str) -> str:
    """A quick house bot."""
    return list(house_bots(game))[-1]


def write(file: Path, game: str) -> list[str]:
    """Matches between house bots that are over, in a competition that is; their ids."""
    bots = [house_bots(game)[_bot(game)]() for _ in range(GAMES[game].seats)]
    with Store(file) as store:
        writing = SampleWriter(store, plan(game, settings={}, matches=_MATCHES), COMPETITION)
        pairings = [pairing for stage in schedule_of(writing.plan) for pairing in stage]
        matches = [
            writing.finished(pairing, arena.play(game, bots, seed=pairing.number))
            for pairing in pairings[:_MATCHES]
        ]
        store.competition_finished(COMPETITION, 9_000.0)
    return matches


@contextmanager
def served(folder: Path, game: str, bots: bool) -> Iterator[ServedDatabase]:
    """An arena with that database; with `bots` house bots play there, which it launches."""
    config = _RUN.format(game=game, house=json.dumps([_bot(game)] * 2)) if bots else ""
    (folder / "class.toml").write_text(config, encoding="utf-8")
    words = ("--config", "class.toml", "--db", "arena.db", "--port", "0")
    process = arena_process.start(folder, "arena.err", "-m", "arena", "serve", *words)
    try:
        end = time.monotonic() + _READY_S
        while "arena at " not in (said := (folder / "arena.err").read_text(encoding="utf-8")):
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(said)
            time.sleep(0.05)
        url = said.partition("arena at ")[2].split()[0]
        yield ServedDatabase(url)
    finally:
        process.terminate()
        process.wait()


class WaitingForAnalyses:
    """Browsers at several addresses, each of which waits for three analyses all the time."""

    def __init__(self, page: ServedDatabase, matches: Sequence[str], seats: int) -> None:
        self._page = page
        self._wanted = [
            f"/api/matches/{match}/mistakes.json?seat={seat + 1}"
            for seat in range(seats)
            for match in matches
        ]
        self.done = 0

    def look(self) -> int:
        """Ask once more for what is not done; how many are queued or running."""
        waiting = 0
        for number, path in enumerate(self._wanted[:_LOOKED_AT]):
            address = f"127.0.0.{2 + number % _ASKERS}"
            state = json.loads(self._page.get(path, address))["state"]
            waiting += state in ("queued", "running")
            if state in ("done", "failed"):
                self._wanted.remove(path)
                self.done += 1
        return waiting


def measure(
    page: ServedDatabase, paths: Sequence[str], seconds: float, waiting: WaitingForAnalyses | None
) -> LoadedPart:
    """Ask for documents, one after another, and between them for the analyses."""
    took_ms: list[float] = []
    queued = 0 if waiting is None else waiting.look()
    done = 0 if waiting is None else waiting.done
    began, decisions = time.monotonic(), page.decisions()
    look_at = began + _KEEPS_S
    for path in cycle(paths):
        now = time.monotonic()
        if now - began >= seconds:
            break
        if waiting is not None and now >= look_at:
            queued = waiting.look()
            look_at = time.monotonic() + _KEEPS_S
        asked_at = time.perf_counter()
        page.get(path)
        took_ms.append((time.perf_counter() - asked_at) * 1000)
        time.sleep(_PAUSE_S)
    per_s = (page.decisions() - decisions) / (time.monotonic() - began)
    return LoadedPart(took_ms, queued, 0 if waiting is None else waiting.done - done, per_s)


def _line(name: str, parts: Sequence[LoadedPart]) -> str:
    took = sorted(took for part in parts for took in part.took_ms)
    p50, p99 = (took[int(len(took) * share)] for share in (0.5, 0.99))
    queued = "/".join(str(part.queued) for part in parts)
    decisions = "/".join(f"{part.per_s:,.0f}" for part in parts)
    return (
        f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {took[-1]:.0f} ms of {len(took):,}; "
        f"{queued} queued, {sum(part.done for part in parts)} done; {decisions} decisions/s"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; exit status 0."""
    slow = [name for name, game in GAMES.items() if game.judging and game.judging.is_slow]
    parser = argparse.ArgumentParser(description="What analyses cost the page, and the matches.")
    parser.add_argument("--game", default=slow[-1], help="whose matches are analysed")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each part")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--bots", action="store_true", help="launched bots play meanwhile")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        matches = write(Path(name) / "arena.db", options.game)
        with served(Path(name), options.game, options.bots) as page:
            paths = [
                "/api/lobby.json",
                "/api/competitions.json",
                f"/api/competitions/{COMPETITION}.json",
                f"/api/competitions/{COMPETITION}/bot.json?name=ann",
                *(f"/api/matches/{match}.json" for match in matches),
                *(f"/api/matches/{match}/rounds.json?from=1&to=5" for match in matches),
            ]
            for path in paths:  # both find the same in the caches
                page.get(path)
            time.sleep(_READY_BOTS_S if options.bots else 0.0)
            waiting = WaitingForAnalyses(page, matches, GAMES[options.game].seats)
            without, beside = [], []
            for _ in range(options.turns):
                without.append(measure(page, paths, options.seconds, None))
                beside.append(measure(page, paths, options.seconds, waiting))
    print(_line("without analyses", without))
    print(_line("with analyses", beside))
    return 0


if __name__ == "__main__":
    sys.exit(main())
