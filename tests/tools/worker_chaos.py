"""Workers, bus and arena that are killed: `python -m tests.tools.worker_chaos [--times 10]`.

An `arena serve` with a real `nats-server` and two `arena worker` play a round robin and a ladder of
launched and submitted bots. Meanwhile, in random order and at random moments, each so many times: a
worker is killed with SIGKILL, the bus is (every other time its store is wiped), the arena is, a
network is cut for some seconds by a proxy that stops forwarding, and a worker is suspended and goes
on. A worker that ends by itself is started again, as systemd would. At the end the database is judged:
every pairing of the round robin counts once, nobody is out, `arena verify` passes, and no process
outlives its parent. The exit status is 1 if anything is wrong. Linux only.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from arena.games import GAMES
from tests.support import arena_process
from tests.support.arena_process import RunningProcess
from tests.support.stalling_proxy import StallingProxy

__all__ = ["ChaosOutcome", "WorkerChaos", "main", "nats_program"]

_GAME = next(name for name, rules in GAMES.items() if rules.seats == 2 and rules.meets_itself)
_WORKERS = ("w1", "w2")
_STARTS_S = 60.0
_ENDS_S = 20.0
_EVERY_S = (1.0, 6.0)  # between two of what is done
_AWAY_S = (0.0, 8.0)  # shorter and longer than it takes until a worker counts as gone
_SUSPENDED = 2.5  # times as long
_PATIENCE_S = 900.0

_CONFIG = """
[serve]
port = {port}
db = "class.db"

[bus]
url = "{bus}"

[submissions]
a_day = 100

{bots}
[[run]]
name = "final"
game = "{game}"
form = "round_robin"
take = "either"
matches = {matches}
with_itself = false
at = 2099-01-01T00:00:00
settings = {settings}

[[run]]
name = "week"
game = "{game}"
form = "ladder"
take = "either"
at = 2099-01-01T00:00:00
pause_s = 0
settings = {settings}
"""
_BOT = """
[[bot]]
name = "{name}"
command = "{command}"
game = "{game}"

"""


def nats_program() -> str | None:
    """Where `nats-server` is, if it is installed: Debian's is not on every path."""
    return shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


class ChaosOutcome(NamedTuple):
    """What was played, what was done to it, and what is wrong."""

    bots: int
    seconds: float
    final_matches: int
    ladder_matches: int
    by_worker: dict[str, int]
    attempts: int
    lost: int
    done: dict[str, int]
    faults: list[str]


class WorkerChaos:
    """One class with its bus, workers and arena, in a folder of its own."""

    def __init__(
        self, folder: Path, *, submitted: int, launched: int, matches: int, rounds: int
    ) -> None:
        self._folder = folder
        self._owners = [f"student-{n}" for n in range(1, submitted + 1)]
        self._launched = [f"ours-{n}" for n in range(1, launched + 1)]
        self._matches, self._rounds = matches, rounds
        self._port, self._bus_port = arena_process.free_port(), arena_process.free_port()
        self._url = f"ws://127.0.0.1:{self._port}"
        self._nats: subprocess.Popen[bytes] | None = None
        self._arena: subprocess.Popen[bytes] | None = None
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._proxies = {name: StallingProxy(self._bus_port) for name in ("arena", *_WORKERS)}
        self._tokens: dict[str, str] = {}
        self._instructor = ""
        self._wipes = False
        self._away_s = _AWAY_S
        self._random = random.SystemRandom()
        self.faults: list[str] = []
        self.done: Counter[str] = Counter()

    # --- the class ---

    def run(
        self,
        times: int,
        every_s: tuple[float, float] = _EVERY_S,
        away_s: tuple[float, float] = _AWAY_S,
    ) -> ChaosOutcome:
        """Play all of it; what is killed or cut is `away_s`, and the next follows in `every_s`."""
        began = time.monotonic()
        self._enrol()
        self._write_config()
        self._away_s = away_s
        try:
            self._start_nats()
            for worker in _WORKERS:
                self._start_worker(worker)
            self._start_arena()
            self._submit_all()
            self._instruct("start", "week")
            self._instruct("start", "final")
            self._disturb(times, every_s)
            self._instruct("stop", "week")  # else the final gets a third of the matches
            self._wait_until_finished("week", "stopped")
            self._wait_until_finished("final")
        finally:
            self._end()
        self.faults += self._judge()
        return self._outcome(time.monotonic() - began)

    def _enrol(self) -> None:
        people, tokens = self._folder / "class.csv", self._folder / "tokens.csv"
        people.write_text("\n".join(["name", *self._owners]))
        where = ("--db", str(self._folder / "class.db"))
        arena_process.printed("roster", "import", str(people), *where, "--tokens", str(tokens))
        with tokens.open(encoding="utf-8-sig", newline="") as file:
            self._tokens = {row["name"]: row["token"] for row in csv.DictReader(file)}
        self._instructor = arena_process.printed("roster", "instructor", *where)["token"]

    def _write_config(self) -> None:
        starter = self._folder / "starter"
        done = arena_process.run("new", _GAME, str(starter), "--lang", "python")
        assert done.returncode == 0, done.stderr
        bots = "".join(
            _BOT.format(name=name, command="starter/bot.py", game=_GAME) for name in self._launched
        )
        settings = arena_process.toml_of(GAMES[_GAME].rounds(self._rounds))
        config = _CONFIG.format(
            port=self._port,
            bus=self._bus_of("arena"),
            bots=bots,
            game=_GAME,
            matches=self._matches,
            settings=settings,
        )
        (self._folder / "class.toml").write_text(config)

    def _submit_all(self) -> None:
        words = ("submit", str(self._folder / "starter"), "--url", self._url)

        def submit(owner: str) -> str:
            done = arena_process.run(*words, "--token", self._tokens[owner], "--json")
            return f"{owner}: {done.stdout}{done.stderr}" if done.returncode else ""

        with ThreadPoolExecutor() as uploads:
            self.faults += filter(None, uploads.map(submit, self._owners))

    # --- what runs ---

    def _bus_of(self, who: str) -> str:
        return f"nats://127.0.0.1:{self._proxies[who].port}"

    def _start_nats(self) -> None:
        program = nats_program()
        assert program is not None, "nats-server is installed"
        store = self._folder / "nats"
        if self._wipes:
            shutil.rmtree(store, ignore_errors=True)
        words = (program, "-a", "127.0.0.1", "-p", str(self._bus_port), "-js", "-sd", str(store))
        with (self._folder / "nats.err").open("ab") as err:
            self._nats = subprocess.Popen(words, stdout=err, stderr=err)
        _until(lambda: _listens(self._bus_port), "nats-server listens")

    def _start_worker(self, name: str) -> None:
        words = ("worker", "--bus", self._bus_of(name), "--name", name, "--cores", "1")
        cache = ("--cache", str(self._folder / f"cache-{name}"))
        self._workers[name] = arena_process.start(
            self._folder, f"{name}.err", "-m", "arena", *words, *cache
        )

    def _start_arena(self) -> None:
        words = ("-m", "arena", "serve", "--config", "class.toml")
        self._arena = arena_process.start(self._folder, "arena.err", *words)
        said = (self._folder / "arena.err").stat().st_size

        def is_open() -> bool:
            assert self._arena is not None, "it was started"
            assert self._arena.poll() is None, self._said()
            with (self._folder / "arena.err").open() as file:
                file.seek(max(0, said - 1))
                return "arena at " in file.read()

        _until(is_open, "the arena is open")

    def _said(self) -> str:
        return (self._folder / "arena.err").read_text()[-2000:]

    # --- what is done to it ---

    def _disturb(self, times: int, every_s: tuple[float, float]) -> None:
        """Do all of it so many times, in random order, or until the final is over."""
        acts = (
            self._kill_worker,
            self._kill_nats,
            self._kill_arena,
            self._cut_network,
            self._suspend_worker,
        )
        plan = [act for act in acts for _ in range(times)]
        self._random.shuffle(plan)
        for act in plan:
            time.sleep(self._random.uniform(*every_s))
            self._start_ended()
            act()
        self._start_ended()
        if self._is_over("final"):
            self.faults.append("the final was over before all was done: play more matches")

    def _kill_worker(self) -> None:
        name = self._random.choice(_WORKERS)
        self._kill(self._workers[name])
        self.done["worker"] += 1
        self._stay_away()
        self._start_worker(name)

    def _kill_nats(self) -> None:
        assert self._nats is not None, "it runs"
        self._kill(self._nats)
        self._wipes = self.done["bus"] % 2 == 1
        self.done["bus"] += 1
        self._stay_away()
        self._start_nats()

    def _kill_arena(self) -> None:
        assert self._arena is not None, "it runs"
        self._kill(self._arena)
        self.done["arena"] += 1
        self._stay_away()
        self._start_arena()

    def _cut_network(self) -> None:
        proxy = self._random.choice(list(self._proxies.values()))
        proxy.cut()
        self.done["network"] += 1
        self._stay_away()
        proxy.go_on()

    def _suspend_worker(self) -> None:
        """The worker alone: its bots go on, and wait for it."""
        worker = self._workers[self._random.choice(_WORKERS)]
        if worker.poll() is None:
            worker.send_signal(signal.SIGSTOP)
            self.done["suspended"] += 1
            self._stay_away(_SUSPENDED)
            worker.send_signal(signal.SIGCONT)

    def _start_ended(self) -> None:
        """A worker that has not found the bus when it was started has ended."""
        for name, worker in list(self._workers.items()):
            if worker.poll() is not None:
                self._start_worker(name)

    def _stay_away(self, times: float = 1.0) -> None:
        time.sleep(times * self._random.uniform(*self._away_s))

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        below = arena_process.below(process.pid)
        process.kill()
        process.wait()
        self._none_left(below)

    def _none_left(self, below: set[RunningProcess]) -> None:
        with suppress(AssertionError):
            _until(lambda: not arena_process.alive(below), "all have ended", _ENDS_S)
        if left := arena_process.alive(below):
            self.faults.append(f"outlived its parent: {left}")

    def _end(self) -> None:
        """End all that still runs: first those that may have something to hand in."""
        for process in (*self._workers.values(), self._arena, self._nats):
            if process is None:
                continue
            below = arena_process.below(process.pid)
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                self.faults.append(f"does not end: {process.args!r}")
                process.kill()
                process.wait()
            self._none_left(below)
        for proxy in self._proxies.values():
            proxy.close()

    # --- what it says ---

    def _instruct(self, *words: str) -> None:
        where = ("--url", self._url, "--token", self._instructor)
        for _ in range(20):  # an arena that has just started may not go on with its runs yet
            done = arena_process.run(*words, *where)
            if done.returncode == 0:
                return
            time.sleep(1.0)
        self.faults.append(f"arena {' '.join(words)}: {done.stderr}")

    def _is_over(self, run: str, state: str = "finished") -> bool:
        rows = self._rows("SELECT plan, state FROM competitions")
        return any(json.loads(row.plan)["run"] == run and row.state == state for row in rows)

    def _wait_until_finished(self, run: str, state: str = "finished") -> None:
        try:
            _until(lambda: self._is_over(run, state), f"{run} is {state}", _PATIENCE_S)
        except AssertionError as error:
            self.faults.append(str(error))

    def _rows(self, query: str) -> Sequence[Any]:
        engine = sa.create_engine(f"sqlite:///{self._folder / 'class.db'}")
        try:
            with engine.connect() as connection:
                return connection.execute(sa.text(query)).all()
        finally:
            engine.dispose()

    def _matches_of(self, run: str) -> list[Any]:
        ids = [
            row.id
            for row in self._rows("SELECT id, plan FROM competitions")
            if json.loads(row.plan)["run"] == run
        ]
        rows = self._rows("SELECT competition, pairing, record, counts FROM matches")
        return [row for row in rows if row.competition in ids and row.counts]

    def _judge(self) -> Iterator[str]:
        for row in self._rows("SELECT bot, kind, text FROM verdicts"):
            yield f"{row.bot} is out: {row.kind}, {row.text}"
        bots = len(self._owners) + len(self._launched)
        expected = bots * (bots - 1) // 2 * self._matches
        pairings = Counter(row.pairing for row in self._matches_of("final"))
        if len(pairings) != expected or set(pairings.values()) != {1}:
            yield f"expected {expected} pairings of the final, each once, got {pairings}"
        if not self._matches_of("week"):
            yield "the ladder played nothing"
        verified = arena_process.run("verify", str(self._folder / "class.db"))
        if verified.returncode:
            yield f"arena verify: {verified.stdout}{verified.stderr}"

    def _outcome(self, seconds: float) -> ChaosOutcome:
        final, week = self._matches_of("final"), self._matches_of("week")
        records = (json.loads(bytes(row.record)) for row in (*final, *week))
        attempts = self._rows("SELECT state FROM attempts")
        return ChaosOutcome(
            bots=len(self._owners) + len(self._launched),
            seconds=round(seconds, 1),
            final_matches=len(final),
            ladder_matches=len(week),
            by_worker=dict(Counter(record.get("worker", "the arena") for record in records)),
            attempts=len(attempts),
            lost=sum(row.state == "lost" for row in attempts),
            done=dict(self.done),
            faults=self.faults,
        )


def _listens(port: int) -> bool:
    with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), 1.0)):
        return True
    return False


def _until(is_so: Callable[[], bool], what: str, within_s: float = _STARTS_S) -> None:
    end = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < end, f"expected within {within_s:.0f} s: {what}"
        time.sleep(0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--submitted", type=int, default=3)
    parser.add_argument("--launched", type=int, default=3)
    parser.add_argument("--matches", type=int, default=60, help="of each pairing of the final")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="a folder that is kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        chaos = WorkerChaos(
            folder,
            submitted=options.submitted,
            launched=options.launched,
            matches=options.matches,
            rounds=options.rounds,
        )
        outcome = chaos.run(options.times)
    if options.json:
        print(json.dumps(outcome._asdict()))
    else:
        for name, value in outcome._asdict().items():
            print(f"{name:>16}  {value}")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
