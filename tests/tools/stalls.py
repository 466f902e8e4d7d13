"""An arena that stands still again and again while a class plays: `python -m tests.tools.stalls`.

`arena serve` plays with its default limits: a round robin in Ace-King-Queen, an elimination in
high-low and a league in three card poker, at the same time, and each again as soon as it is over.
The bots connect by themselves, a quarter each: our client (`arena connect`), the example in Python,
the example in JavaScript, and plain `websockets` with its keepalive left on
(`tests/support/plain_bot.py`). The arena's process is stopped (SIGSTOP) and continued at random.

In the end no bot may be out, every match must count once, `tests/support/independent_audit.py` and
`arena verify` must agree with the standings, and every bot must have ended with status 0. The exit
status is 1 if anything is wrong. Linux and macOS; it needs Node. It takes a quarter of an
hour; `--stalls 3 --longest 10` takes a minute or two.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from arena.sandbox.languages import LIBRARIES
from tests.support import arena_process, independent_audit
from tests.support.independent_audit import AuditedDatabase

__all__ = ["Stalls", "main"]

KINDS = ("connect", "python", "javascript", "plain")
"""Of bots, as the first part of their names."""
GAMES = {
    "ace_king_queen": ("nash", "matches = 1", "{ hands = 100 }"),
    "high_low": ("counter", "matches = 1", "{ gap = 50, max_shuffles = 6 }"),
    "three_card_poker": ("q64", "matches = 4", "{ rounds = 100 }"),
}
"""What `arena connect` plays there, and what the run says."""

_EXAMPLES = arena_process.ROOT / "bots" / "examples"
_VENDOR = arena_process.ROOT / "bots" / "vendor"
_BUILT = shutil.ignore_patterns("node_modules", "__pycache__")
_BETWEEN_S = 3.0, 12.0  # stalls
_LOOK_S = 0.5
_READY_S = 120.0  # forty processes share two cores
# In a row: a competition that has just begun or ended may not be in the database yet.
_MOST_REFUSALS = 5
_REST_S = 600.0  # after the last stall, for what has begun
_SAYS_LOST = {"python": "waiting for the arena", "plain": "lost: "}
"""The beginning of the line with which a bot reports a lost connection; the others report none."""

_CONFIG = """
[serve]
port = 0
db = "stalls.db"
"""
_RUN = """
[[run]]
name = "{game}"
game = "{game}"
at = 2099-01-01T00:00:00
players = [{players}]
{matches}
settings = {settings}
"""


class Stalls:
    """One soak.

    Args:
        folder: where everything is.
        bots: how many.
        seed: of the stalls.
    """

    def __init__(self, folder: Path, bots: int, seed: int) -> None:
        self.stalls_s: list[float] = []
        self._folder = folder
        self._database = folder / "stalls.db"
        self._random = random.Random(seed)
        self._names = {
            kind: [f"{kind}-{n + 1}" for n in range(number, bots, len(KINDS))]
            for number, kind in enumerate(KINDS)
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._refusals: Counter[str] = Counter()
        self._url, self._token = "", ""
        self._faults: list[str] = []

    def run(self, stalls: int, shortest_s: float, longest_s: float) -> list[str]:
        """Play while the arena is stopped at random; return what is wrong in the end."""
        began = time.monotonic()
        try:
            self._open()
            self._come()
            for number in range(1, stalls + 1):
                self._play_for(self._random.uniform(*_BETWEEN_S))
                self._stall(self._random.uniform(shortest_s, longest_s))
                ended_s = time.monotonic() - began
                counts = self._count("matches WHERE counts")
                print(
                    f"stall {number:2}: {self.stalls_s[-1]:4.1f} s, ended after {ended_s:4.0f} s · "
                    f"{counts:5} matches count · {self._count('verdicts')} verdicts",
                    flush=True,
                )
            self._play_for(_BETWEEN_S[1])
            self._until(lambda: not self._running(), "the end of what is played")
            self._close()
        finally:
            for process in self._processes.values():
                if process.poll() is None:
                    process.kill()
                process.wait()
        book = independent_audit.read(self._database)
        self._faults += self._judge(book)
        self._show(book)
        return self._faults

    # ---- Before and after

    def _open(self) -> None:
        runs = [
            _RUN.format(
                game=game,
                players=", ".join(f'"{name}"' for name in self._players(game)),
                matches=matches,
                settings=settings,
            )
            for game, (_, matches, settings) in GAMES.items()
        ]
        (self._folder / "stalls.toml").write_text("".join([_CONFIG, *runs]))
        database = ("--db", str(self._database))
        self._token = arena_process.printed("roster", "instructor", *database)["token"]
        words = ("-m", "arena", "serve", "--config", "stalls.toml")
        self._processes["arena"] = arena_process.start(self._folder, "arena.err", *words)
        self._until(lambda: "arena at " in self._said("arena"), "the arena")
        self._url = self._said("arena").partition("arena at ")[2].split()[0]

    def _come(self) -> None:
        """Start all bots, and wait until each is there."""
        shutil.copytree(_EXAMPLES / "javascript", self._folder / "js", ignore=_BUILT)
        shutil.copytree(_VENDOR, self._folder / "js" / LIBRARIES)
        for number, name in enumerate(self._names["connect"]):
            game = self._game_of(number)
            self._start(
                *(name, sys.executable, "-m", "arena", "connect", game, GAMES[game][0]),
                *("--url", self._url, "--name", name, "--tables", "8"),
                *("--quiet", "--no-session"),
            )
        for name in self._names["python"]:
            self._start(name, sys.executable, str(_EXAMPLES / "python" / "bot.py"))
        for name in self._names["javascript"]:
            self._start(name, "node", str(self._folder / "js" / "bot.js"))
        self._start(
            *("plain", sys.executable, "-m", "tests.support.plain_bot", *self._names["plain"]),
            *("--url", self._url, "--tables", "8"),
            *(word for game in GAMES for word in ("--game", game)),
        )
        self._until(self._are_there, "everybody")

    def _start(self, name: str, *words: str) -> None:
        """Start a bot, with less priority than the arena."""
        with (self._folder / f"{name}.err").open("ab") as errors:
            self._processes[name] = subprocess.Popen(
                ["nice", "-n", "5", *words],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=arena_process.ROOT,
                env={**os.environ, "ARENA_URL": self._url, "ARENA_NAME": name},
            )

    def _close(self) -> None:
        """Interrupt the arena; every bot must end by itself then."""
        self._processes["arena"].send_signal(signal.SIGINT)
        for name, process in self._processes.items():
            try:
                status = process.wait(60)
            except subprocess.TimeoutExpired:
                self._faults.append(f"{name} does not end")
                continue
            if name != "arena" and status != 0:
                said = self._said(name)[-500:].strip()
                self._faults.append(f"{name} ended with status {status}: {said}")

    # ---- Stalls

    def _play_for(self, for_s: float) -> None:
        """For so long, start each competition again once it is over."""
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            self._still_there()
            for game in GAMES.keys() - self._running():
                done = arena_process.run(
                    *("start", game, "--url", self._url, "--token", self._token)
                )
                self._refusals[game] += 1
                if done.returncode == 0:
                    self._refusals[game] = 0
                elif self._refusals[game] > _MOST_REFUSALS:
                    raise AssertionError(f"{game} cannot be started: {done.stderr}")
            time.sleep(_LOOK_S)

    def _stall(self, for_s: float) -> None:
        arena = self._processes["arena"]
        arena.send_signal(signal.SIGSTOP)
        time.sleep(for_s)
        arena.send_signal(signal.SIGCONT)
        self.stalls_s.append(for_s)

    def _still_there(self) -> None:
        """Check that no process has ended yet."""
        for name, process in self._processes.items():
            fault = f"{name} has gone before the end, with status {process.poll()}"
            gone = process.poll() is not None
            if gone and not any(known.startswith(fault) for known in self._faults):
                self._faults.append(f"{fault}: {self._said(name)[-500:].strip()}")
        if self._processes["arena"].poll() is not None:
            raise AssertionError(self._said("arena")[-2000:])

    # ---- The arena's state

    def _game_of(self, number: int) -> str:
        """The game of a bot that knows only one."""
        return list(GAMES)[number % len(GAMES)]

    def _players(self, game: str) -> list[str]:
        alone = self._names["connect"]
        elsewhere = {n for i, n in enumerate(alone) if self._game_of(i) != game}
        everybody = [name for names in self._names.values() for name in names]
        return [name for name in everybody if name not in elsewhere]

    def _are_there(self) -> bool:
        """Whether the lobby lists all bots."""
        self._still_there()
        page = self._url.replace("ws", "http", 1).rstrip("/")
        with urlopen(f"{page}/api/lobby.json", timeout=20) as document:
            there = len(json.load(document)["bots"])
        return there >= sum(map(len, self._names.values()))

    def _running(self) -> set[str]:
        """Games with a competition that is not over in the database."""
        rows = self._look_up(
            "SELECT json_extract(plan, '$.run') FROM competitions WHERE state != 'finished'"
        )
        return {game for (game,) in rows}

    def _count(self, what: str) -> int:
        rows = self._look_up(f"SELECT count(*) FROM {what}")
        return int(rows[0][0]) if rows else 0

    def _look_up(self, query: str) -> list[Any]:
        """From the database, which the arena is writing to."""
        file = f"file:{self._database}?mode=ro"
        with (
            suppress(sqlite3.Error),  # it does not exist yet
            closing(sqlite3.connect(file, uri=True)) as database,
        ):
            return database.execute(query).fetchall()
        return []

    def _said(self, name: str) -> str:
        file = self._folder / f"{name}.err"
        return file.read_text(errors="replace") if file.exists() else ""

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + (_REST_S if self.stalls_s else _READY_S)
        while not holds():
            self._still_there()
            if time.monotonic() > end:
                raise AssertionError(f"{what} never came:\n{self._said('arena')[-2000:]}")
            time.sleep(_LOOK_S)

    # ---- Judgement

    def _judge(self, book: AuditedDatabase) -> Iterator[str]:
        yield from independent_audit.whole(book)
        for competition_id, bot, word, text in book.verdicts:
            yield f"{bot} is out of {competition_id}: {word}, {text}"
        for match in book.matches.values():
            if match.kind not in ("completed", "void"):
                yield f"match {match.id} ended by {match.kind}"
        for game in GAMES.keys() - {competition.plan["run"] for competition in book.competitions}:
            yield f"{game} was never played"
        out = {bot for _, bot, *_ in book.verdicts}
        for competition in book.competitions:
            played = book.of(competition.id)
            if competition.state != "finished":
                yield f"{competition.id} is {competition.state}"
            if competition.plan["form"] == "elimination":
                yield from independent_audit.bracket(competition, played)
                continue
            yield from independent_audit.pairings(competition, played, out, set())
            if not out:  # else the verdicts above are faults already
                words = ("standings", "--db", str(self._database), competition.id)
                standings = arena_process.printed(*words)
                yield from independent_audit.standings(standings, played, out)
        verified = arena_process.run("verify", str(self._database))
        if verified.returncode != 0:
            yield f"arena verify: {verified.stdout}{verified.stderr}"
        if "Traceback" in self._said("arena"):
            yield f"the arena has raised:\n{self._said('arena')[-3000:]}"

    def _show(self, book: AuditedDatabase) -> None:
        voids = sum(match.kind == "void" for match in book.matches.values())
        counted = sum(match.counts for match in book.matches.values())
        print(
            f"{len(self.stalls_s)} stalls, {sum(self.stalls_s):.0f} s in all · "
            f"{len(book.competitions)} competitions · {counted} matches count, {voids} are void"
        )
        print(f"{'bots':12}{'how many':>10}{'matches':>10}{'lost':>10}  verdicts")
        for kind, names in self._names.items():
            matches = sum(
                match.counts and player in names
                for match in book.matches.values()
                for player in set(match.players)
            )
            said = "".join(map(self._said, (kind, *names)))
            mark = _SAYS_LOST.get(kind)
            lost = "-" if mark is None else sum(mark in line for line in said.splitlines())
            words = Counter(word for _, bot, word, _ in book.verdicts if bot in names)
            told = ", ".join(f"{count} {word}" for word, count in words.items())
            print(f"{kind:12}{len(names):10}{matches:10}{lost:>10}  {told or 'none'}")


def main() -> int:
    """Run it, and print what was found; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stalls", type=int, default=20, help="how many")
    parser.add_argument("--bots", type=int, default=40)
    parser.add_argument("--shortest", type=float, default=5.0, help="s a stall")
    parser.add_argument("--longest", type=float, default=60.0, help="s a stall")
    parser.add_argument("--seed", type=int, help="of the stalls")
    parser.add_argument("--folder", type=Path, help="keep everything there")
    options = parser.parse_args()
    if sys.platform == "win32" or not shutil.which("node"):
        parser.error("expected a system with SIGSTOP, and node on the path")
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        soak = Stalls(folder, options.bots, seed)
        faults = soak.run(options.stalls, options.shortest, options.longest)
    print("\n".join(faults) or "nobody is out, every match counts once")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
