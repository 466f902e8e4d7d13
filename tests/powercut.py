"""Kill an arena again and again in the middle of its competitions: `python -m tests.powercut --kills 30 [--seed N] [--json]`.

`arena serve` plays a round robin in Ace-King-Queen and an elimination in high-low at the same time, between bots that it launches
(house bots, a program with a connection, one on pipes) and bots that connect by themselves and come back by themselves. It is killed
with SIGKILL at random moments of all phases, and started again by the same command; the last life plays to the end.

While it is dead the database is read, from a copy: what was written down must be there ever after, to the last byte. At the end
`tests/second_look.py` counts every pairing and adds up the standings once more, `arena verify` has to pass, nobody may be out, and no
process that an arena has launched may have outlived it. The exit status is 1 if anything is wrong. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests import second_look
from tests.second_look import Book
from tests.students import student

__all__ = ["KINDS", "Kill", "Outcome", "main", "powercut"]

KINDS = ("start", "connect", "play", "commit", "stage")
"""When a kill comes: before the arena listens, while its bots connect, in play, at a write to the database, at the end of a table of the
elimination. The last ones come at the very end of the competition, whatever was drawn for them."""

_AT_THE_END = 3
_STUDENTS = 22
_HANDS = {
    True: 1000,
    False: 200,
}  # of a match in the round robin; the fewer if there are few kills
_MANY = 10
_MATCHES_PER_KILL = (
    5  # in the round robin, so that there is enough of it to be interrupted
)
_LIFE_S = 60.0  # for what a life is waited for; none needs half of it
_LAST_LIFE_S = 180.0
_COMING_S = 1.5  # in which an arena starts and its bots connect
_LATER_S = {"play": 0.5, "commit": 0.004, "stage": 0.02}
_ORPHANS_S = 3.0  # what the arena has launched is gone by then
_LOOK_S = 0.002
_ONE_TABLE = {"stan", "rita"}
_NOBODY_THERE = 1  # how a bot ends that finds no arena at its first attempt

# All that a bot on pipes needs.
_STDIO = """
import json, sys
def say(**message): print(json.dumps(message), flush=True)
say(type="hello", protocol=1, name="x", games=["ace_king_queen", "high_low"])
for line in sys.stdin:
    it = json.loads(line)
    if it["type"] == "match":
        say(type="ready", match=it["match"], nonce="n")
    elif it["type"] == "ask":
        say(type="answer", match=it["match"], ask=it["ask"], value=it["legal"][0])
"""

# What stands first has the first call on those who play in both.
_CONFIG = """
[serve]
port = {port}
db = "powercut.db"
log = "matches.log"
once = true

[[bot]]
name = "stan"
command = "stdio: {python} stan.py"

[[bot]]
name = "wilma"
command = "{python} -m bots ace_king_queen honest --tables 2 --quiet --no-session"

[[run]]
name = "cup"
game = "high_low"
players = ["stan", "rosa", {all}]
house = ["bold", "timid", "counter"]
settings = {{ gap = 20, max_shuffles = 8 }}

[[run]]
name = "robin"
game = "ace_king_queen"
players = ["stan", "wilma", "rita", {some}]
matches = {matches}
house = ["nash", "bluffer"]
settings = {{ hands = {hands} }}
"""


class Kill(NamedTuple):
    """One kill, as it was drawn and as it came.

    Attributes:
        kind: when it was to come.
        after_s: how long after that moment, drawn.
        uptime_s: how long the arena had lived.
        matches: how many counted in the database then.
        orphans_s: when the last process that it had launched was gone.
    """

    kind: str
    after_s: float
    uptime_s: float
    matches: int
    orphans_s: float


class Outcome(NamedTuple):
    """What came of it all: the kills, how much was played, and what is wrong."""

    kills: list[Kill]
    matches: int
    unfinished: int
    seconds: float
    faults: list[str]


class _Powercut:
    """One competition of many lives, in a folder of its own."""

    def __init__(self, folder: Path, kills: int, seed: int) -> None:
        self._folder = folder
        self._database = folder / "powercut.db"
        self._log = folder / "matches.log"
        self._random = random.Random(seed)
        self._count = kills
        self._port = _free_port()
        self._url = f"ws://127.0.0.1:{self._port}"
        self._robin = 4 + (_MATCHES_PER_KILL * kills) // 28  # of each two of eight
        self._actors: dict[str, subprocess.Popen[bytes]] = {}
        self._arena: subprocess.Popen[bytes] | None = None
        self._began = time.monotonic()
        self.kills: list[Kill] = []
        self.faults: list[str] = []

    # --- the plan ---

    def set_up(self) -> None:
        """Write what the arena and the bots read."""
        names = [f"student-{number}" for number in range(1, _STUDENTS + 1)]
        (self._folder / "stan.py").write_text(_STDIO)
        config = _CONFIG.format(
            port=self._port,
            python=sys.executable,
            some=", ".join(f'"{name}"' for name in names[:3]),
            all=", ".join(f'"{name}"' for name in names),
            matches=self._robin,
            hands=_HANDS[self._count >= _MANY],
        )
        (self._folder / "arena.toml").write_text(config)
        students = [
            student(name, {"ace_king_queen": "random", "high_low": "random"})
            for name in names
        ]
        (self._folder / "students.json").write_text(json.dumps(students))

    def _moments(self) -> Iterator[tuple[str, float, int]]:
        """When to kill: the kind, so many seconds later, and after how many matches of the round robin have been written down."""
        last = min(_AT_THE_END, max(1, self._count // 3))
        first = self._count - last
        kinds = [KINDS[number % len(KINDS)] for number in range(first)]
        self._random.shuffle(kinds)
        playing = sum(kind in _LATER_S for kind in kinds)
        due = sorted(self._random.sample(range(1, self.expected - 3), playing))
        for kind in kinds:
            later_s = _LATER_S.get(kind, _COMING_S)
            matches = due.pop(0) if kind in _LATER_S else 0
            yield kind, self._random.uniform(0, later_s), matches
        for number in range(_AT_THE_END - last, _AT_THE_END):
            kind, left = (("end", 2), ("end", 0), ("over", 0))[number]
            yield kind, self._random.uniform(0, 0.01), self.expected - left

    @property
    def expected(self) -> int:
        """How many matches the round robin has: eight bots, of which six have two tables and more and meet themselves."""
        return self._robin * (8 * 7 // 2 + 6)

    # --- lives ---

    def run(self) -> None:
        """All lives of the arena, and then the last look."""
        before = Book("ok", (), {}, ())
        try:
            for kind, after_s, due in self._moments():
                self._start()
                self._await(kind, due)
                time.sleep(after_s)
                before = self._kill(kind, after_s, before)
            self._start()
            self._finish(before)
        finally:
            self.stop()

    def _start(self) -> None:
        with (self._folder / "arena.err").open("ab") as err:
            self._arena = subprocess.Popen(
                [*_PYTHON, "arena", "serve", "--config", "arena.toml"],
                cwd=self._folder,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
        self._born = time.monotonic()
        self._inherited = self._counted()

    def _await(self, kind: str, due: int) -> None:
        """Wait for the moment, or for the end of the arena, which is a fault then."""
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
        """Start those that come by themselves, and those again that the arena was killed for before they had ever reached it."""
        url = ("--url", self._url)
        rest = (*url, "--quiet", "--no-session", "--name")
        words = {
            "students": ("tests.students", "students.json", *url),
            "rita": ("arena", "connect", "ace_king_queen", "learner", *rest, "rita"),
            "rosa": ("arena", "connect", "high_low", "counter", *rest, "rosa"),
        }
        for name, one in words.items():
            actor = self._actors.get(name)
            if actor is not None and actor.poll() not in (None, _NOBODY_THERE):
                self.faults.append(f"{name} ended with exit status {actor.returncode}")
            if actor is None or actor.poll() is not None:
                with (self._folder / "bots.err").open("ab") as err:
                    self._actors[name] = subprocess.Popen(
                        [*_PYTHON, *one],
                        cwd=self._folder,
                        stderr=err,
                        env={**os.environ, "PYTHONPATH": str(_ROOT)},
                    )

    def _kill(self, kind: str, after_s: float, before: Book) -> Book:
        """End it as a power cut would; what it has left, once it has been compared with what there was."""
        assert self._arena is not None, "it was started"
        if self._arena.poll() is None:
            os.kill(self._arena.pid, signal.SIGKILL)
        elif kind == "over" and self._arena.returncode == 0:
            kind = "late"  # it was quicker
        else:
            self.faults.append(
                f"the arena ended by itself before kill {len(self.kills) + 1}, exit status {self._arena.returncode}"
            )
        killed = time.monotonic()
        self._arena.wait()
        orphans_s = self._orphans(killed)
        book = second_look.read(self._database) if self._database.exists() else before
        self.faults += second_look.lost(before, book)
        self.faults += second_look.whole(book)
        counted = sum(match.counts for match in book.matches.values())
        uptime_s = killed - self._born
        self.kills.append(Kill(kind, after_s, uptime_s, counted, orphans_s))
        return book

    def _finish(self, before: Book) -> None:
        """The last life, which ends by itself."""
        assert self._arena is not None, "it was started"
        self._until(self._is_listening)
        try:
            status = self._arena.wait(_LAST_LIFE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the last life does not end:\n{self._tail()}"
            ) from None
        if status != 0:
            self.faults.append(f"the last life ended with exit status {status}")
        self._orphans(time.monotonic())
        book = second_look.read(self._database)
        self.faults += second_look.lost(before, book)
        self.faults += second_look.whole(book)
        self.faults += self._judge(book)
        self.matches = sum(match.counts for match in book.matches.values())
        self.unfinished = len(book.matches) - self.matches

    def stop(self) -> None:
        """End all that was started here."""
        for process in (*self._actors.values(), self._arena):
            if process is not None and process.poll() is None:
                process.kill()
            if process is not None:
                process.wait()

    # --- judging ---

    def _judge(self, book: Book) -> Iterator[str]:
        """What is wrong at the end, but for what has been compared already."""
        for competition, bot, word, text in book.verdicts:
            yield f"{bot} is out of {competition}: {word}, {text}"
        runs = [one.plan["run"] for one in book.competitions]
        if sorted(runs) != ["cup", "robin"]:
            yield f"expected a robin and a cup, each once, got {runs}"
        for match in book.matches.values():
            if match.kind not in ("completed", "void"):
                yield f"match {match.id} ended by {match.kind}"
        for one in book.competitions:
            played = book.of(one.id)
            document = json.loads(
                _arena("standings", "--db", str(self._database), one.id, "--json")
            )
            if one.state != "finished" or document["state"] != "finished":
                yield f"{one.id} is {one.state}, its standings {document['state']}"
            if document["played"] != len(played):
                yield f"the standings of {one.id} are of {document['played']} matches, {len(played)} count"
            if one.plan["run"] == "robin":
                if len(played) != self.expected:
                    yield f"{len(played)} matches of the robin count, expected {self.expected}"
                yield from second_look.pairings(one, played, set(), _ONE_TABLE)
                yield from second_look.standings(document, played, set())
            else:
                yield from second_look.bracket(one, played)
        verified = _run("verify", str(self._database))
        if verified.returncode != 0:
            yield f"arena verify: {verified.stdout}{verified.stderr}"

    # --- looking ---

    def _until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that the arena brings about; nothing happens any more once it has ended."""
        assert self._arena is not None, "it was started"
        end = time.monotonic() + _LIFE_S
        while not holds():
            if self._arena.poll() is not None:
                return  # whoever kills or waits for it sees that
            if time.monotonic() > end:
                raise AssertionError(f"the arena does not go on:\n{self._tail()}")
            time.sleep(_LOOK_S)

    def _is_listening(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def _counted(self) -> int:
        """How many matches of the round robin are written down and count."""
        return self._look_up(
            "SELECT count(*) FROM matches WHERE counts AND game = 'ace_king_queen'"
        )

    def _finished(self) -> int:
        """How many competitions are over, and written down so."""
        return self._look_up(
            "SELECT count(*) FROM competitions WHERE state = 'finished'"
        )

    def _look_up(self, query: str) -> int:
        """A number from the database, which the arena is writing to."""
        file = f"file:{self._database}?mode=ro"
        with (
            suppress(sqlite3.Error),  # there is none yet
            closing(sqlite3.connect(file, uri=True)) as database,
        ):
            [(number,)] = database.execute(query)
            return int(number)
        return 0

    def _tables_over(self) -> int:
        """How many tables of the elimination have ended, written down or not."""
        return self._log.read_text().count(" high_low-") if self._log.exists() else 0

    def _orphans(self, killed: float) -> float:
        """Wait until nothing is left of what the arena has launched; when that was, in seconds."""
        while left := self._launched():
            if time.monotonic() - killed > _ORPHANS_S:
                self.faults.append(f"processes that have outlived the arena: {left}")
                break
            time.sleep(_LOOK_S)
        return time.monotonic() - killed

    def _launched(self) -> dict[int, str]:
        """Processes that have this arena's address, and that we have not started."""
        ours = {os.getpid(), *(actor.pid for actor in self._actors.values())}
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) not in ours:
                with suppress(OSError):
                    words = (entry / "cmdline").read_bytes()
                    about = words + (entry / "environ").read_bytes()
                    if f"127.0.0.1:{self._port}".encode() in about:
                        found[int(entry.name)] = words.decode(errors="replace")[:200]
        return found

    def _tail(self) -> str:
        return (self._folder / "arena.err").read_text()[-2000:]


_ROOT = Path(__file__).resolve().parent.parent
_PYTHON = (sys.executable, "-m")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_PYTHON, "arena", *words], capture_output=True, text=True, check=False
    )


def _arena(*words: str) -> str:
    done = _run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def powercut(folder: Path, kills: int, seed: int) -> Outcome:
    """Kill an arena so many times, and look at what is left."""
    began = time.monotonic()
    cut = _Powercut(folder, kills, seed)
    cut.set_up()
    cut.run()
    return Outcome(
        cut.kills, cut.matches, cut.unfinished, time.monotonic() - began, cut.faults
    )


def main() -> int:
    """Do it, and print what was found; the exit status is 1 if something is wrong."""
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
        document: dict[str, Any] = outcome._asdict()
        document["kills"] = [kill._asdict() for kill in outcome.kills]
        print(json.dumps({"seed": seed, **document}))
    else:
        _show(seed, outcome)
    return int(bool(outcome.faults))


def _show(seed: int, outcome: Outcome) -> None:
    print(f"seed {seed}")
    for number, kill in enumerate(outcome.kills, start=1):
        print(
            f"kill {number:2}: {kill.kind:7} +{kill.after_s:5.3f} s · alive {kill.uptime_s:5.2f} s · "
            f"{kill.matches:4} matches count · what it had launched was gone after {kill.orphans_s * 1000:.0f} ms"
        )
    print(
        f"{outcome.matches} matches count, {outcome.unfinished} are void; {outcome.seconds:.0f} s"
    )
    print("\n".join(outcome.faults) or "nothing is lost, nothing is counted twice")


if __name__ == "__main__":
    sys.exit(main())
