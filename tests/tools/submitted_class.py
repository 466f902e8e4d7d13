"""A class that hands in: `python -m tests.tools.submitted_class [--bots 60] [--minutes 10] [--json]`.

Starters in three languages, as `arena new` writes them, are submitted with `arena submit` by sixty
owners of a roster to an `arena serve --config` with `[submissions]`. When all are accepted, a
ladder of the submitted bots is open for ten minutes, and then they play a round robin. Meanwhile
processes and memory of all that the arena has started are sampled. At the end the database is
judged: nobody is out, every pairing of the round robin counts once, `arena verify` passes, and no
process outlives the arena. The exit status is 1 if anything is wrong. Linux only.

With `--kills N` the arena is killed with SIGKILL at random moments while submissions are checked
and matches are played, and started again; what was acknowledged has to be there in the end.
`--db URL` is another database than a file of SQLite.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from arena.games import GAMES
from tests.support import arena_process
from tests.support.arena_process import RunningProcess

__all__ = ["SubmittedClass", "SubmittedOutcome", "main"]

_LANGUAGES = ("python", "javascript", "java")
_GAME = next(name for name, rules in GAMES.items() if rules.seats == 2 and rules.meets_itself)
_AT_ONCE = 4  # uploads
_SAMPLE_S = 2.0
_ALL_CHECKED_S = 3600.0
_PATIENCE_S = 900.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_CONFIG = """
[serve]
port = {port}
db = "{db}"

[submissions]
a_day = 100

[[run]]
name = "week"
game = "{game}"
form = "ladder"
take = "submitted"
players = "roster"
least = 2
at = 2099-01-01T00:00:00
pause_s = 0
settings = {settings}

[[run]]
name = "final"
game = "{game}"
form = "round_robin"
take = "submitted"
players = "roster"
least = 2
with_itself = false
at = 2099-01-01T00:00:00
settings = {settings}
"""


class SubmittedOutcome(NamedTuple):
    """What was played, how fast, with how much, and what is wrong."""

    bots: int
    submitted_s: float
    checked_s: float
    ladder_matches: int
    ladder_per_s: float
    final_matches: int
    final_per_s: float
    final_s: float
    processes: int
    memory_mib: int
    kills: int
    faults: list[str]


class _Sampler:
    """The most processes, and the most memory (PSS of all), below a process that may be another."""

    def __init__(self) -> None:
        self.pid = 0
        self.processes = self.memory_mib = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(_SAMPLE_S):
            if self.pid:
                found = arena_process.below(self.pid)
                self.processes = max(self.processes, len(found))
                memory = sum(map(_pss_kib, found)) // 1024
                self.memory_mib = max(self.memory_mib, memory)


def _pss_kib(process: RunningProcess) -> int:
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.split("\n") if line.startswith("Pss:")), 0)


class SubmittedClass:
    """One class with its arena, in a folder of its own."""

    def __init__(self, folder: Path, bots: int, rounds: int, db: str, kills: int) -> None:
        self._folder, self._rounds, self._kills = folder, rounds, kills
        self._owners = [f"student-{n}" for n in range(1, bots + 1)]
        self._db = db or "class.db"
        self._where = db or str(folder / "class.db")
        self._port = arena_process.free_port()
        self._url = f"ws://127.0.0.1:{self._port}"
        self._tokens: dict[str, str] = {}
        self._instructor = ""
        self._arena: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()  # while the arena is between two lives
        self._seen: set[RunningProcess] = set()
        self._sampler = _Sampler()
        self.killed = 0
        self.faults: list[str] = []

    def run(self, minutes: float) -> SubmittedOutcome:
        self._enrol()
        starters = [self._starter(language) for language in _LANGUAGES]
        config = _CONFIG.format(
            port=self._port,
            db=self._db,
            game=_GAME,
            settings=arena_process.toml_of(GAMES[_GAME].rounds(self._rounds)),
        )
        (self._folder / "class.toml").write_text(config)
        try:
            self._start()
            began = time.monotonic()
            with ThreadPoolExecutor(_AT_ONCE) as uploads:
                turns = enumerate(self._owners)
                done = [
                    uploads.submit(self._submit, owner, starters[n % len(starters)])
                    for n, owner in turns
                ]
                killing = self._kill_now_and_then(self._kills // 2, 8.0)
                self.faults += [fault for each in done if (fault := each.result())]
                killing.join()
            submitted_s = time.monotonic() - began
            self._wait_until_decided()
            checked_s = time.monotonic() - began
            self._instruct("start", "week")
            ladder_began = time.monotonic()
            killing = self._kill_now_and_then(self._kills - self._kills // 2, minutes * 30)
            time.sleep(minutes * 60)
            killing.join()
            ladder_s = time.monotonic() - ladder_began
            self._instruct("stop", "week")
            final_began = time.monotonic()
            self._instruct("start", "final")
            self._wait_until_finished()
            final_s = time.monotonic() - final_began
        finally:
            self._sampler.close()
            self._end()
        ladder, final = self._played("week"), self._played("final")
        self.faults += self._judge()
        return SubmittedOutcome(
            bots=len(self._owners),
            submitted_s=round(submitted_s, 1),
            checked_s=round(checked_s, 1),
            ladder_matches=ladder[0],
            ladder_per_s=round(ladder[1] / ladder_s, 1),
            final_matches=final[0],
            final_per_s=round(final[1] / final_s, 1),
            final_s=round(final_s, 1),
            processes=self._sampler.processes,
            memory_mib=self._sampler.memory_mib,
            kills=self.killed,
            faults=self.faults,
        )

    # --- the class ---

    def _enrol(self) -> None:
        people, tokens = self._folder / "class.csv", self._folder / "tokens.csv"
        people.write_text("\n".join(["name", *self._owners]))
        where = ("--db", self._where)
        arena_process.printed("roster", "import", str(people), *where, "--tokens", str(tokens))
        with tokens.open(encoding="utf-8-sig", newline="") as file:
            self._tokens = {row["name"]: row["token"] for row in csv.DictReader(file)}
        self._instructor = arena_process.printed("roster", "instructor", *where)["token"]

    def _starter(self, language: str) -> Path:
        folder = self._folder / language
        done = arena_process.run("new", _GAME, str(folder), "--lang", language)
        assert done.returncode == 0, done.stderr
        return folder

    def _submit(self, owner: str, starter: Path) -> str | None:
        """Hand a starter in, again while the arena is away; why it was not accepted, if so."""
        words = ("submit", str(starter), "--url", self._url, "--token", self._tokens[owner])
        end = time.monotonic() + _ALL_CHECKED_S
        while time.monotonic() < end:
            done = arena_process.run(*words, "--json")
            if done.returncode == 0:
                return None
            if self._kills == 0:
                return f"{owner}: {done.stdout}{done.stderr}"
            time.sleep(2.0)
        return f"{owner} was not accepted"

    def _wait_until_decided(self) -> None:
        end = time.monotonic() + _ALL_CHECKED_S
        while True:
            states = Counter(row.state for row in self._rows("SELECT state FROM submissions"))
            if states.keys() <= {"accepted", "refused"}:
                break
            if time.monotonic() > end:
                self.faults.append(f"not all are decided: {dict(states)}")
                break
            time.sleep(1.0)
        owners = {row.owner for row in self._rows("SELECT owner FROM in_play")}
        if missing := set(self._owners) - owners:
            self.faults.append(f"without a version in play: {sorted(missing)}")

    # --- the arena ---

    def _start(self) -> None:
        words = ("-m", "arena", "serve", "--config", "class.toml")
        self._arena = arena_process.start(self._folder, "arena.err", *words)
        self._sampler.pid = self._arena.pid
        said = (self._folder / "arena.err").stat().st_size
        end = time.monotonic() + 60
        while time.monotonic() < end and self._arena.poll() is None:
            with (self._folder / "arena.err").open() as file:
                file.seek(max(0, said - 1))
                if "arena at " in file.read():
                    return
            time.sleep(0.05)
        raise AssertionError(self._said())

    def _said(self) -> str:
        return (self._folder / "arena.err").read_text()[-2000:]

    def _kill_now_and_then(self, kills: int, within_s: float) -> threading.Thread:
        """Kill the arena so often within some time, in a thread, and start it again."""

        def run() -> None:
            for _ in range(kills):
                time.sleep(random.uniform(1.0, within_s))
                assert self._arena is not None, "it runs"
                launched = arena_process.below(self._arena.pid)
                self._arena.kill()
                self._arena.wait()
                self.killed += 1
                self._none_left(launched)
                self._start()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def _none_left(self, launched: set[RunningProcess]) -> None:
        end = time.monotonic() + 10
        while (left := arena_process.alive(launched)) and time.monotonic() < end:
            time.sleep(0.1)
        if left:
            self.faults.append(f"outlived the arena: {left}")

    def _end(self) -> None:
        if self._arena is None:
            return
        launched = arena_process.below(self._arena.pid)
        self._arena.terminate()
        try:
            self._arena.wait(60)
        except subprocess.TimeoutExpired:
            self.faults.append("the arena does not end")
            self._arena.kill()
            self._arena.wait()
        self._none_left(launched)

    def _instruct(self, *words: str) -> None:
        where = ("--url", self._url, "--token", self._instructor)
        for _ in range(20):  # it may be between two lives
            done = arena_process.run(*words, *where)
            if done.returncode == 0:
                return
            time.sleep(1.0)
        self.faults.append(f"arena {' '.join(words)}: {done.stderr}")

    def _wait_until_finished(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            if any(run == "final" and state == "finished" for run, state in self._competitions()):
                return
            time.sleep(0.5)
        self.faults.append("the final does not end")

    # --- the database ---

    def _rows(self, query: str) -> Sequence[Any]:
        url = self._where if "://" in self._where else f"sqlite:///{self._where}"
        engine = sa.create_engine(url)
        try:
            with engine.connect() as connection:
                return connection.execute(sa.text(query)).all()
        finally:
            engine.dispose()

    def _competitions(self) -> Iterator[tuple[str, str]]:
        for row in self._rows("SELECT plan, state FROM competitions"):
            yield json.loads(row.plan)["run"], row.state

    def _played(self, run: str) -> tuple[int, int]:
        """How many matches of a run count, and how many decisions they had."""
        ids = [
            row.id
            for row in self._rows("SELECT id, plan FROM competitions")
            if json.loads(row.plan)["run"] == run
        ]
        records = [
            row.record
            for row in self._rows("SELECT competition, record, counts FROM matches")
            if row.competition in ids and row.counts
        ]
        return len(records), sum(len(json.loads(bytes(record))["answers"]) for record in records)

    def _judge(self) -> Iterator[str]:
        for row in self._rows("SELECT bot, kind, text FROM verdicts"):
            yield f"{row.bot} is out: {row.kind}, {row.text}"
        bots = len(self._owners)
        matches, _ = self._played("final")
        if matches != bots * (bots - 1) // 2:
            yield f"expected {bots * (bots - 1) // 2} matches in the final, got {matches}"
        verified = arena_process.run("verify", self._where)
        if verified.returncode:
            yield f"arena verify: {verified.stdout}{verified.stderr}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bots", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--db", default="")
    parser.add_argument("--keep", type=Path, help="a folder that is kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        school = SubmittedClass(folder, options.bots, options.rounds, options.db, options.kills)
        outcome = school.run(options.minutes)
    if options.json:
        print(json.dumps(outcome._asdict()))
    else:
        for name, value in outcome._asdict().items():
            print(f"{name:>16}  {value}")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
