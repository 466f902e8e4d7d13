"""Kill an arena many times during its competitions: `python -m tests.tools.powercut --kills 30`.

`arena serve` plays a round robin in Ace-King-Queen and an elimination in high-low at the same time.
Its bots are launched (house bots, a program with a connection, one on pipes) or connect and come
back by themselves. It is killed with SIGKILL at random moments of all phases, and started again by
the same command; the last life plays to the end.

After each kill a copy of the database is read: what was written must stay, to the last byte. At the
end `tests/support/independent_audit.py` counts every pairing and adds up the standings, `arena
verify` has to pass, no bot may be out, and no process that an arena has launched may outlive it.
The exit status is 1 if anything is wrong. Linux only.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support import arena_process, independent_audit
from tests.support.arena_process import RunningProcess
from tests.support.independent_audit import AuditedCompetition, AuditedDatabase
from tests.tools.powercut_plan import ONE_TABLE, Moment, PowercutPlan

__all__ = ["Kill", "PowercutOutcome", "main", "powercut"]

_LIFE_S = 60.0  # longest wait in a life; none needs half of it
_LAST_LIFE_S = 180.0
_ORPHANS_S = 3.0  # the processes that the arena has launched end within that
_LOOK_S = 0.002
_NOBODY_THERE = 1  # exit status of a bot that finds no arena at its first attempt


class Kill(NamedTuple):
    """One kill, as it was drawn and as it came.

    Attributes:
        kind: one of `KINDS`, or of the end.
        after_s: how long after that moment, drawn.
        uptime_s: how long the arena had run.
        matches: how many counted in the database then.
        launched: how many processes the arena had started.
        orphans_s: how long the last of these outlived it.
    """

    kind: str
    after_s: float
    uptime_s: float
    matches: int
    launched: int
    orphans_s: float


class PowercutOutcome(NamedTuple):
    """The kills, how much was played, and what is wrong."""

    kills: list[Kill]
    matches: int
    unfinished: int
    seconds: float
    faults: list[str]


class _Powercut:
    """One arena of many lives, in a folder of its own."""

    def __init__(self, folder: Path, plan: PowercutPlan) -> None:
        self._folder = folder
        self._plan = plan
        self._database = folder / "powercut.db"
        self._log = folder / "matches.log"
        self._port = arena_process.free_port()
        self._actors: dict[str, subprocess.Popen[bytes]] = {}
        self._arena: subprocess.Popen[bytes] | None = None
        self._born, self._inherited = 0.0, 0
        self._book = AuditedDatabase("ok", (), {}, ())
        self.kills: list[Kill] = []
        self.faults: list[str] = []

    # --- lives ---

    def run(self) -> AuditedDatabase:
        """Run all lives of the arena, and return what the last one has left."""
        self._plan.write(self._folder, self._port)
        try:
            for moment in self._plan.moments():
                self._start()
                self._await(moment.kind, moment.matches)
                time.sleep(moment.after_s)
                self._kill(moment)
            self._start()
            self._finish()
        finally:
            self._stop()
        return self._book

    def _start(self) -> None:
        words = ("-m", "arena", "serve", "--config", "arena.toml")
        self._arena = arena_process.start(self._folder, "arena.err", *words)
        self._born = time.monotonic()
        self._inherited = self._counted()

    def _await(self, kind: str, due: int) -> None:
        """Wait for the moment of a kill, or for the end of the arena, which is a fault then."""
        if kind == "start":
            return
        self._until(self._is_listening)
        self._let_bots_come()
        if kind == "connect":
            return
        if kind == "over":
            self._until(lambda: self._finished() == 2)
            return
        if kind == "stage" and not self._finished():
            tables = self._tables_over()
            self._until(lambda: self._tables_over() > tables or self._finished() > 0)
            return
        due = max(due, self._inherited + (kind != "end"))
        self._until(lambda: self._counted() >= due)
        if kind == "commit":
            wal = self._database.with_name("powercut.db-wal")
            written = wal.stat().st_mtime_ns
            self._until(lambda: wal.stat().st_mtime_ns != written)

    def _let_bots_come(self) -> None:
        """Start the bots that connect by themselves, and again those that found no arena."""
        for name, words in self._plan.actors(f"ws://127.0.0.1:{self._port}").items():
            actor = self._actors.get(name)
            if actor is not None and actor.poll() not in (None, _NOBODY_THERE):
                self.faults.append(f"{name} ended with exit status {actor.returncode}")
            if actor is None or actor.poll() is not None:
                self._actors[name] = arena_process.start(self._folder, "bots.err", *words)

    def _kill(self, moment: Moment) -> None:
        """Kill the arena, and compare what it has left."""
        assert self._arena is not None, "it was started"
        kind = moment.kind
        launched = arena_process.below(self._arena.pid)
        if self._arena.poll() is None:
            self._arena.kill()
        elif kind == "over" and self._arena.returncode == 0:
            kind = "late"  # the arena was quicker
        else:
            status, number = self._arena.returncode, len(self.kills) + 1
            self.faults.append(
                f"the arena ended by itself before kill {number}, exit status {status}"
            )
        killed = time.monotonic()
        self._arena.wait()
        orphans_s = self._orphans(launched)
        self._look()
        counted = sum(match.counts for match in self._book.matches.values())
        uptime_s = killed - self._born
        self.kills.append(Kill(kind, moment.after_s, uptime_s, counted, len(launched), orphans_s))

    def _finish(self) -> None:
        """Wait for the end of the last life."""
        assert self._arena is not None, "it was started"
        self._until(self._is_listening)
        launched = arena_process.below(self._arena.pid)
        try:
            status = self._arena.wait(_LAST_LIFE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the last life does not end:\n{self._said()}") from None
        if status != 0:
            self.faults.append(f"the last life ended with exit status {status}")
        self._orphans(launched)
        self._look()
        self.faults += self._judge()

    def _stop(self) -> None:
        """End all processes that were started here."""
        for process in (*self._actors.values(), self._arena):
            if process is not None and process.poll() is None:
                process.kill()
            if process is not None:
                process.wait()

    # --- judging ---

    def _look(self) -> None:
        """Compare the database with what it had before."""
        before, now = self._book, independent_audit.read(self._database)
        self.faults += independent_audit.lost(before, now)
        self.faults += independent_audit.whole(now)
        self._book = now

    def _judge(self) -> Iterator[str]:
        """What is wrong at the end, beyond what has been compared already."""
        book = self._book
        for competition, bot, word, text in book.verdicts:
            yield f"{bot} is out of {competition}: {word}, {text}"
        for match in book.matches.values():
            if match.kind not in ("completed", "void"):
                yield f"match {match.id} ended by {match.kind}"
        runs = [competition.plan["run"] for competition in book.competitions]
        if sorted(runs) != ["cup", "robin"]:
            yield f"expected a robin and a cup, each once, got {runs}"
        for played in book.competitions:
            yield from self._judge_competition(played)
        verified = arena_process.run("verify", str(self._database))
        if verified.returncode != 0:
            yield f"arena verify: {verified.stdout}{verified.stderr}"
        if "Traceback" in self._said(all_of_it=True):
            yield f"the arena has raised: {self._folder / 'arena.err'}"

    def _judge_competition(self, competition: AuditedCompetition) -> Iterator[str]:
        id_, state, played = competition.id, competition.state, self._book.of(competition.id)
        document = arena_process.printed("standings", "--db", str(self._database), id_)
        if state != "finished" or document["state"] != "finished":
            yield f"{id_} is {state}, its standings {document['state']}"
        if document["played"] != len(played):
            yield f"the standings of {id_} are of {document['played']} matches, {len(played)} count"
        if competition.plan["run"] == "cup":
            yield from independent_audit.bracket(competition, played)
            return
        if len(played) != self._plan.matches:
            yield f"{len(played)} matches of the robin count, expected {self._plan.matches}"
        yield from independent_audit.pairings(competition, played, set(), ONE_TABLE)
        yield from independent_audit.standings(document, played, set())

    # --- looking ---

    def _until(self, holds: Callable[[], bool]) -> None:
        """Wait for an effect of the arena, or for its end."""
        assert self._arena is not None, "it was started"
        end = time.monotonic() + _LIFE_S
        while not holds():
            if self._arena.poll() is not None:
                return  # `_kill` and `_finish` report it
            if time.monotonic() > end:
                raise AssertionError(f"the arena does not go on:\n{self._said()}")
            time.sleep(_LOOK_S)

    def _is_listening(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def _counted(self) -> int:
        """How many matches of the round robin are written and count."""
        return self._look_up(
            "SELECT count(*) FROM matches WHERE counts AND game = 'ace_king_queen'"
        )

    def _finished(self) -> int:
        """How many competitions are over in the database."""
        return self._look_up("SELECT count(*) FROM competitions WHERE state = 'finished'")

    def _look_up(self, query: str) -> int:
        """A number from the database, which the arena is writing to."""
        file = f"file:{self._database}?mode=ro"
        with (
            suppress(sqlite3.Error),  # there is no database yet
            closing(sqlite3.connect(file, uri=True)) as database,
        ):
            [(number,)] = database.execute(query)
            return int(number)
        return 0

    def _tables_over(self) -> int:
        """How many tables of the elimination have ended, written or not."""
        return self._log.read_text().count(" high_low-") if self._log.exists() else 0

    def _orphans(self, launched: set[RunningProcess]) -> float:
        """Wait for the end of all that the arena has launched, and return the seconds it took."""
        began = time.monotonic()
        while left := {**arena_process.alive(launched), **self._with_our_address()}:
            if time.monotonic() - began > _ORPHANS_S:
                self.faults.append(f"processes that have outlived the arena: {left}")
                break
            time.sleep(_LOOK_S)
        return time.monotonic() - began

    def _with_our_address(self) -> dict[int, str]:
        """Processes with the arena's address that are not ours: those it launched at the last."""
        ours = {actor.pid for actor in self._actors.values()}
        address = f"ARENA_URL=ws://127.0.0.1:{self._port}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) not in ours:
                with suppress(OSError):
                    if address in (entry / "environ").read_bytes():
                        found[int(entry.name)] = "has our address"
        return found

    def _said(self, *, all_of_it: bool = False) -> str:
        text = (self._folder / "arena.err").read_text()
        return text if all_of_it else text[-2000:]


def powercut(folder: Path, kills: int, seed: int) -> PowercutOutcome:
    """Kill an arena so many times, and check what it has left."""
    began = time.monotonic()
    cut = _Powercut(folder, PowercutPlan(kills, seed))
    book = cut.run()
    counted = sum(match.counts for match in book.matches.values())
    return PowercutOutcome(
        cut.kills, counted, len(book.matches) - counted, time.monotonic() - began, cut.faults
    )


def main() -> int:
    """Run the test and print the outcome; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, help="of the moments")
    parser.add_argument("--folder", type=Path, help="keep everything there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        outcome = powercut(folder, options.kills, seed)
    if options.json:
        kills = [kill._asdict() for kill in outcome.kills]
        print(json.dumps({"seed": seed, **outcome._asdict(), "kills": kills}))
    else:
        _show(seed, outcome)
    return int(bool(outcome.faults))


def _show(seed: int, outcome: PowercutOutcome) -> None:
    print(f"seed {seed}")
    for number, kill in enumerate(outcome.kills, start=1):
        print(
            f"kill {number:2}: {kill.kind:7} +{kill.after_s:5.3f} s · "
            f"alive {kill.uptime_s:5.2f} s · {kill.matches:4} matches count · "
            f"{kill.launched:2} processes launched, gone after {kill.orphans_s * 1000:3.0f} ms"
        )
    print(
        f"{outcome.matches} matches count, {outcome.unfinished} are void; {outcome.seconds:.0f} s"
    )
    print("\n".join(outcome.faults) or "nothing is lost, nothing is counted twice")


if __name__ == "__main__":
    sys.exit(main())
