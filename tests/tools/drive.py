"""A class under load and faults: `python -m tests.tools.drive --bots 60 --minutes 10 --kill 5`.

`arena serve` plays a competition in every game, each again as soon as it is over, until the time is
up and each was played once. The bots of the class are of several kinds, in turns (`--kinds`). With
`--hosts` what is launched or handed in runs on hosts, too, over a `nats-server`. Meanwhile the arena,
hosts and the bus are killed and started again, stopped (SIGSTOP) and continued, or cut off, each as
often as is asked, in random order. What was void three times is resumed. Rogues misbehave, each in
its own way; others guess tokens and watch matches.

Afterwards `tests/support/independent_audit.py` reads the database: every pairing must count once,
nothing written before a kill may be lost, the standings must fit, exactly the rogues may be out,
each by its word, `arena verify` must pass. No process may outlive the arena, no bot may have failed,
and once the students have left their connections must be gone. Printed are decisions a second, how
long decisions took on the arena's clock, and the arena's memory. The exit status is 1 if anything is
wrong. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.request import urlopen

import msgspec
from websockets.asyncio.client import connect

from arena.games.catalogue import GAMES
from protocol.strategy import house_bots
from tests.support import arena_process, independent_audit
from tests.support.arena_process import RunningProcess
from tests.support.in_process import run_here
from tests.support.independent_audit import AuditedCompetition, AuditedDatabase
from tests.support.needs import found
from tests.support.pipe_bot import pipe_bot
from tests.support.rogues.rogue import KINDS as ROGUES
from tests.support.stalling_proxy import StallingProxy
from tests.support.student_bots import student
from tests.support.token_guesses import guess

__all__ = ["FAULTS", "KINDS", "Drive", "DriveOptions", "Report", "main"]

KINDS = ("house", "python", "javascript", "launched", "pipes", "submitted")
"""House bots under students' names, the examples in two languages, programs that the arena launches
with a connection and on pipes, and what students hand in."""
FAULTS = (
    *("kill", "stop", "cut"),
    *("host-kill", "host-stop", "host-cut"),
    *("bus-kill", "bus-stop", "bus-cut"),
)
"""The first three are done to the arena; `cut` cuts the way of those that connect by themselves."""

_ROGUES = ("illegal", "garbage-json", "huge-frame", "goodbye", "vanish", "stall", "flood")
_PROGRAMS = ("launched", "pipes", "submitted")
_LATER = ("absent", "disconnect")  # words that are right for a rogue that offends between matches
_STUDENTS = 20  # of the kind `house` in one process
_STARTS_S, _ENDS_S, _PLAYS_S = 300.0, 30.0, 900.0
_LOOK_S, _LOOK_AFTER_S = 0.1, 5.0
_SPARE_SOCKETS = 6  # spectators, the bus and the page, which come and go
_EXAMPLES = arena_process.ROOT / "bots" / "examples"
_VENDOR = arena_process.ROOT / "bots" / "vendor"

# Nobody is to be out because sixty bots share two cores.
_CONFIG = """
[serve]
host = "{host}"
port = {port}
db = "class.db"

[limits]
decision_ms = 2000
bank_ms = 60000
hard_ms = 30000
grace_ms = 30000
start_ms = 30000
"""
_SUBMISSIONS = """
[submissions]
a_day = 100
"""
_BUS = """
[bus]
url = "nats://127.0.0.1:{port}"
"""
_BOT = """
[[bot]]
name = "{name}"
command = {command}
{game}
"""
_RUN = """
[[run]]
name = "{game}"
game = "{game}"
at = 2099-01-01T00:00:00
players = {players}
take = "{take}"
matches = {matches}
wait_s = 60
settings = {settings}
"""


class DriveOptions(msgspec.Struct, kw_only=True):
    """What is driven; `faults` says how often each of `FAULTS` comes."""

    bots: int = 60
    kinds: tuple[str, ...] = ("house",)
    games: tuple[str, ...] = tuple(GAMES)
    rogues: int = 0
    seconds: float = 0.0
    matches: int = 1
    rounds: int = 10
    faults: dict[str, int] = {}
    every_s: float = 5.0
    away_s: float = 5.0
    guesses: int = 0
    spectators: int = 0
    hosts: int = 0
    seed: int = 1


class Report(msgspec.Struct, kw_only=True):
    """What was played, how fast, what was done to it, and what is wrong.

    Attributes:
        took_ms: the median of what decisions took on the arena's clock, 99 % of them, and the most.
        memory_mib: of the arena's process, when the bots were there and at the end.
        hosted: how many bots were on hosts at once, at most.
        out: words of the offences, by bot.
    """

    competitions: int
    matches: int
    void: int
    decisions_per_s: float
    took_ms: tuple[float, float, float]
    memory_mib: tuple[float, float]
    guesses: dict[str, int]
    watched: int
    hosted: int
    done: dict[str, int]
    out: dict[str, list[str]]
    faults: list[str]


class Drive:
    """One class with its arena, in a folder of its own."""

    def __init__(self, folder: Path, options: DriveOptions) -> None:
        assert not options.hosts or found("nats-server"), "nats-server is not installed"
        self.database = folder / "class.db"
        self.faults: list[str] = []
        self.done: Counter[str] = Counter()
        self._folder, self._options = folder, options
        self._random = random.Random(options.seed)
        kinds = options.kinds
        self._bots = {
            f"{kinds[n % len(kinds)]}-{n + 1}": kinds[n % len(kinds)] for n in range(options.bots)
        }
        self._rogues = {
            f"rogue-{n + 1}": (_ROGUES[n % len(_ROGUES)], options.games[n % len(options.games)])
            for n in range(options.rogues)
        }
        self._port, self._bus_port = arena_process.free_port(), arena_process.free_port()
        self._proxy = StallingProxy(self._port)
        self._url = f"ws://127.0.0.1:{self._proxy.port}"
        self._bus_way = StallingProxy(self._bus_port)  # of the arena
        self._host_ways: dict[str, tuple[StallingProxy, StallingProxy]] = {}  # to bus and arena
        self._tokens: dict[str, str] = {}
        self._instructor = ""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._started: set[RunningProcess] = set()
        self._book = AuditedDatabase("ok", (), {}, ())
        self._guessed: Counter[str] = Counter()
        self._watched = self._most_hosted = 0
        self._look_at = 0.0
        self._is_over = threading.Event()

    def run(self) -> Report:
        """Play, disturb, end, and judge."""
        self._enrol()
        self._write_files()
        try:
            if self._options.hosts:
                self._start_bus()
            for number in range(self._options.hosts):
                name = f"host-{number + 1}"
                self._host_ways[name] = (
                    StallingProxy(self._bus_port),
                    StallingProxy(self._port, connects=True),
                )
                self._start_host(name)
            self._start_arena()
            sockets = self._open_sockets()
            self._come()
            at_first_mib = self._memory_mib()
            beside = [threading.Thread(target=self._guess), threading.Thread(target=self._watch)]
            for thread in beside:
                thread.start()
            self._play()
            self._is_over.set()
            for thread in beside:
                thread.join()
            self._students_leave(sockets)
            memory_mib = at_first_mib, self._memory_mib()
            self._close()
        finally:
            self._is_over.set()
            for proxy in (self._proxy, self._bus_way, *itertools.chain(*self._host_ways.values())):
                proxy.close()
            for process in self._processes.values():
                if process.poll() is None:
                    process.kill()
                process.wait()
        self._audit()
        self.faults += self._judge()
        return self._report(memory_mib)

    # --- before ---

    def _enrol(self) -> None:
        people, tokens = self._folder / "people.csv", self._folder / "tokens.csv"
        outside = [name for name in self._bots if self._bots[name] not in ("launched", "pipes")]
        people.write_text("\n".join(["name", "instructor", *outside, *self._rogues]))
        where = ("--db", str(self.database))
        arena_process.printed("roster", "import", str(people), *where, "--tokens", str(tokens))
        with tokens.open(encoding="utf-8-sig", newline="") as file:
            self._tokens = {row["name"]: row["token"] for row in csv.DictReader(file)}
        self._instructor = arena_process.printed("roster", "instructor", *where)["token"]

    def _write_files(self) -> None:
        options = self._options
        pipes = self._folder / "pipes"
        pipes.mkdir()
        (pipes / "pipes.py").write_text(pipe_bot(options.games))
        # Programs know no proxy to this machine; so hosts connect to it by its name.
        address = "0.0.0.0" if options.hosts else "127.0.0.1"
        config = _CONFIG.format(host=address, port=self._port)
        config += _SUBMISSIONS if "submitted" in options.kinds else ""
        config += _BUS.format(port=self._bus_way.port) if options.hosts else ""
        for name, kind in self._bots.items():
            game = self._game_of(name)
            if kind == "launched":
                house = next(iter(house_bots(game)))
                command = f"{sys.executable} -m bots {game} {house} --quiet --no-session"
                config += _BOT.format(name=name, command=json.dumps(command), game="")
            elif kind == "pipes":
                command = f"stdio: {sys.executable} pipes/pipes.py"
                config += _BOT.format(name=name, command=json.dumps(command), game="")
        for game in options.games:
            config += _RUN.format(
                game=game,
                players=json.dumps(self._players(game)),
                take="either" if "submitted" in options.kinds else "connected",
                matches=options.matches if GAMES[game].seats < 3 else 1,
                settings=arena_process.toml_of(GAMES[game].rounds(options.rounds)),
            )
        (self._folder / "class.toml").write_text(config)

    def _game_of(self, name: str) -> str:
        """The only game of a bot that has just one, as what is launched and handed in."""
        games = self._options.games
        return games[int(name.rpartition("-")[2]) % len(games)]

    def _players(self, game: str) -> list[str]:
        honest = [
            name
            for name, kind in self._bots.items()
            if kind not in ("launched", "submitted") or self._game_of(name) == game
        ]
        return honest + [name for name, (_, where) in self._rogues.items() if where == game]

    # --- what runs ---

    def _start(self, name: str, *words: str) -> None:
        self._processes[name] = arena_process.start(self._folder, f"{name}.err", *words)

    def _start_bus(self) -> None:
        ready = "Server is ready"
        before = self._said("bus").count(ready)
        words = [found("nats-server") or "", "-a", "127.0.0.1", "-p", str(self._bus_port)]
        with (self._folder / "bus.err").open("ab") as errors:
            self._processes["bus"] = subprocess.Popen(words, stdout=errors, stderr=errors)
        self._until(lambda: self._said("bus").count(ready) > before, "the bus", _STARTS_S)

    def _start_host(self, name: str) -> None:
        bus, arena = self._host_ways[name]
        words = ("-m", "arena", "host", "--bus", f"nats://127.0.0.1:{bus.port}", "--name", name)
        where = ("--cores", "1", "--cache", str(self._folder / f"cache-{name}"))
        within = ("env", f"http_proxy=http://127.0.0.1:{arena.port}")
        self._processes[name] = arena_process.start(
            self._folder, f"{name}.err", *words, *where, within=within
        )

    def _start_arena(self) -> None:
        before = self._said("arena").count("arena at ")
        self._start("arena", "-m", "arena", "serve", "--config", "class.toml")
        self._until(lambda: self._said("arena").count("arena at ") > before, "the arena", _STARTS_S)

    def _come(self) -> None:
        """Start all bots, hand in what is handed in, and wait until all are there."""
        tables = 4
        described = [
            student(
                *(name, {game: [*house_bots(game)][number % 2] for game in self._options.games}),
                tables=tables,
                token=self._tokens[name],
            )
            for number, (name, kind) in enumerate(self._bots.items())
            if kind == "house"
        ]
        for first in range(0, len(described), _STUDENTS):
            part = first // _STUDENTS
            file = self._folder / f"students-{part}.json"
            file.write_text(json.dumps(described[first : first + _STUDENTS]))
            words = ("-m", "tests.support.student_bots", str(file), "--url", self._url)
            self._start(f"students-{part}", *words)
        shutil.copytree(_EXAMPLES / "javascript", self._folder / "js")
        shutil.copytree(_VENDOR, self._folder / "js" / "vendor")
        for name, kind in self._bots.items():
            if kind == "python":
                self._start_example(name, sys.executable, str(_EXAMPLES / "python" / "bot.py"))
            elif kind == "javascript":
                self._start_example(name, "node", str(self._folder / "js" / "bot.js"))
            elif kind == "submitted":
                self._hand_in(name)
        for name, (kind, game) in self._rogues.items():
            rogue = str(arena_process.ROOT / "tests/support/rogues/rogue.py")
            where = ("--url", self._url, "--game", game, "--token", self._tokens[name])
            self._start(name, rogue, kind, *where, "--name", name, "--again", "1", "--eager")
        self._until(self._are_there, "everybody", _STARTS_S)

    def _start_example(self, name: str, *words: str) -> None:
        settings = {"ARENA_URL": self._url, "ARENA_NAME": name, "ARENA_TOKEN": self._tokens[name]}
        with (self._folder / f"{name}.err").open("ab") as errors:
            self._processes[name] = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=errors, env=os.environ | settings
            )

    def _hand_in(self, name: str) -> None:
        folder = self._folder / f"starter-{self._game_of(name)}"
        if not folder.exists():
            arena_process.printed("new", self._game_of(name), str(folder))
        done = run_here(
            *("submit", str(folder), "--url", f"ws://127.0.0.1:{self._port}"),
            *("--token", self._tokens[name], "--json"),
        )
        if done.status:
            self.faults.append(f"{name} is not accepted: {done.out}{done.err}")

    def _are_there(self) -> bool:
        expected = sum(kind != "submitted" for kind in self._bots.values())
        return len(self._page("lobby.json")["bots"]) >= expected

    # --- play, and what is done to it ---

    def _play(self) -> None:
        """Play until the time is up, all faults are done, and each game was played once."""
        due = [fault for fault in FAULTS for _ in range(self._options.faults.get(fault, 0))]
        self._random.shuffle(due)
        end = time.monotonic() + self._options.seconds
        begun: Counter[str] = Counter()
        while due or time.monotonic() < end or not all(begun[game] for game in self._options.games):
            is_early = due or time.monotonic() < end
            idle = {*self._options.games} - self._running()
            for game in [game for game in idle if is_early or not begun[game]]:
                done = run_here("start", game, *self._as_instructor())
                begun[game] += done.status == 0
            if due:
                time.sleep(self._random.uniform(0, self._options.every_s))
                self._disturb(due.pop())
            else:
                time.sleep(1.0)
            self._look_after()
        self._until(self._is_played, "the end of what is played", _PLAYS_S)

    def _is_played(self) -> bool:
        if (now := time.monotonic()) >= self._look_at:
            self._look_at = now + _LOOK_AFTER_S
            self._look_after()
        return not self._running()

    def _as_instructor(self) -> tuple[str, ...]:
        return ("--url", f"ws://127.0.0.1:{self._port}", "--token", self._instructor)

    def _disturb(self, fault: str) -> None:
        away_s = self._random.uniform(0, self._options.away_s)
        host = f"host-{self._random.randint(1, max(1, self._options.hosts))}"
        match fault:
            case "kill":
                self._kill("arena")
                self._audit()
                self._start_arena()
            case "cut":
                self._cut(away_s, self._proxy)
            case "host-kill":
                self._kill(host)
                time.sleep(away_s)
                self._start_host(host)
            case "host-cut":
                self._cut(away_s, *self._host_ways[host])
            case "bus-kill":
                self._kill("bus")
                time.sleep(away_s)
                self._start_bus()
            case "bus-cut":
                self._cut(away_s, self._bus_way)
            case _:
                who = {"stop": "arena", "host-stop": host, "bus-stop": "bus"}[fault]
                self._processes[who].send_signal(signal.SIGSTOP)
                time.sleep(away_s)
                self._processes[who].send_signal(signal.SIGCONT)
        self.done[fault] += 1

    def _cut(self, away_s: float, *ways: StallingProxy) -> None:
        for way in ways:
            way.cut()
        time.sleep(away_s)
        for way in ways:
            way.go_on()

    def _look_after(self) -> None:
        """Start hosts that have ended, resume what waits, and note how many bots hosts have."""
        self._start_ended_hosts()
        if not self._options.hosts:
            return
        self.done["resume"] += run_here("resume", *self._as_instructor()).status == 0
        seen = run_here("hosts", *self._as_instructor(), "--json")
        if seen.status == 0:
            now = sum(host["own_bots"] for host in json.loads(seen.out)["hosts"])
            self._most_hosted = max(self._most_hosted, now)

    def _start_ended_hosts(self) -> None:
        """A host that has not found the bus has ended; systemd would start it again."""
        for name, process in [*self._processes.items()]:
            if name.startswith("host-") and process.poll() is not None:
                self._start_host(name)

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        below = arena_process.below(process.pid)
        process.kill()
        process.wait()
        self._none_left(below, name)

    def _none_left(self, processes: set[RunningProcess], parent: str) -> None:
        end = time.monotonic() + _ENDS_S
        while (left := arena_process.alive(processes)) and time.monotonic() < end:
            time.sleep(_LOOK_S)
        if left:
            self.faults.append(f"outlived {parent}: {left}")

    def _guess(self) -> None:
        """Say `hello` with wrong tokens, a hundred at a time, while all play."""
        while self._guessed.total() < self._options.guesses and not self._is_over.is_set():
            self._guessed += asyncio.run(guess(self._port, 100))

    def _watch(self) -> None:
        async def watch() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._options.spectators):
                    group.create_task(self._spectate())

        asyncio.run(watch())

    async def _spectate(self) -> None:
        """Watch one match after another."""
        while not self._is_over.is_set():
            with suppress(Exception):  # the arena may be away, the match over
                matches = (await asyncio.to_thread(self._page, "lobby.json"))["matches"]
                shown = {"topic": "match", "match": matches[0]["id"]} if matches else {}
                async with connect(f"ws://127.0.0.1:{self._port}/watch") as websocket:
                    await websocket.send(json.dumps({"type": "watch", "topic": "lobby"} | shown))
                    while not self._is_over.is_set():
                        await asyncio.wait_for(websocket.recv(), 1.0)
                        self._watched += 1
            await asyncio.sleep(_LOOK_S)

    # --- after ---

    def _students_leave(self, sockets: int) -> None:
        """Let the students say goodbye; the arena must not keep their connections."""
        for name, process in self._processes.items():
            if name.startswith("students-"):
                process.terminate()
                self._ended(name)
        stay = sum(kind != "house" for kind in self._bots.values()) + len(self._rogues)
        most = sockets + stay + _SPARE_SOCKETS
        with suppress(AssertionError):
            self._until(lambda: self._open_sockets() <= most, "their end", _ENDS_S)
        if (now := self._open_sockets()) > most:
            self.faults.append(f"{now} sockets when the students had left, expected {most}")

    def _close(self) -> None:
        """Interrupt the arena; all honest bots must end by themselves then."""
        below = arena_process.below(self._processes["arena"].pid)
        self._processes["arena"].send_signal(signal.SIGINT)
        for name in ("arena", *(name for name in self._processes if name in self._bots)):
            self._ended(name)
        self._none_left(below, "the arena")
        for name in [name for name in self._processes if name.startswith("host-")]:
            below = arena_process.below(self._processes[name].pid)
            self._processes[name].terminate()
            self._ended(name)
            self._none_left(below, name)

    def _ended(self, name: str) -> None:
        try:
            status = self._processes[name].wait(_STARTS_S)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{name} does not end")
        else:
            # A host that has just begun does not know yet what SIGTERM means.
            if name != "arena" and status not in (0, -signal.SIGTERM):
                self.faults.append(f"{name} ended with {status}: {self._said(name)[-500:]}")

    def _audit(self) -> None:
        """Compare the database with what it had before."""
        before, self._book = self._book, independent_audit.read(self.database)
        self.faults += independent_audit.lost(before, self._book)
        self.faults += independent_audit.whole(self._book)

    def _judge(self) -> Iterator[str]:
        book = self._book
        for competition, bot, word, text in book.verdicts:
            kind, _ = self._rogues.get(bot, ("", ""))
            if not kind or word not in (ROGUES[kind].ending, *_LATER):
                yield f"{bot} is out of {competition}: {word}, {text}"
        out = {bot for _, bot, *_ in book.verdicts}
        for name in self._rogues.keys() - out:
            yield f"{name} ({self._rogues[name][0]}) is nowhere out"
        for game in {*self._options.games} - {each.plan["run"] for each in book.competitions}:
            yield f"{game} was never played"
        for each in book.competitions:
            yield from self._judge_one(each, out)
        verified = run_here("verify", str(self.database))
        if verified.status:
            yield f"arena verify: {verified.out}{verified.err}"
        for name in ("arena", *self._host_ways):
            if "Traceback" in self._said(name):
                yield f"{name} has raised:\n{self._said(name)[-3000:]}"

    def _judge_one(self, competition: AuditedCompetition, out: set[str]) -> Iterator[str]:
        played = self._book.of(competition.id)
        if competition.state != "finished":
            yield f"{competition.id} is {competition.state}"
        if competition.plan["form"] == "elimination":
            yield from independent_audit.bracket(competition, played)
            return
        yield from independent_audit.pairings(competition, played, out, self._with_one_table())
        where = ("--db", str(self.database))
        document = arena_process.printed("standings", *where, competition.id)
        struck = {bot for where, bot, *_ in self._book.verdicts if where == competition.id}
        yield from independent_audit.standings(document, played, struck)

    def _with_one_table(self) -> set[str]:
        """Bots that cannot meet themselves."""
        return {*self._bots, *self._rogues} - {
            name for name, kind in self._bots.items() if kind not in ("launched", "pipes")
        }

    def _report(self, memory_mib: tuple[float, float]) -> Report:
        counting = [match for match in self._book.matches.values() if match.counts]
        records = [json.loads(match.record) for match in counting]
        took_ms = [took for record in records for took in record["times_ms"]]
        cuts = quantiles(took_ms, n=100)
        competitions = self._book.competitions
        first = min(each.began for each in competitions)
        last = max(each.began + each.seconds for each in competitions)
        return Report(
            competitions=len(competitions),
            matches=len(counting),
            void=sum(match.kind == "void" for match in self._book.matches.values()),
            decisions_per_s=round(len(took_ms) / (last - first), 1),
            took_ms=(cuts[49], cuts[98], max(took_ms)),
            memory_mib=memory_mib,
            guesses=dict(self._guessed),
            watched=self._watched,
            hosted=self._most_hosted,
            done=dict(self.done),
            out={
                name: sorted({word for _, bot, word, _ in self._book.verdicts if bot == name})
                for name in {bot for _, bot, *_ in self._book.verdicts}
            },
            faults=self.faults,
        )

    # --- looking ---

    def _running(self) -> set[str]:
        """Runs that have begun and are not over, in the database that the arena is writing to."""
        query = "SELECT json_extract(plan, '$.run') FROM competitions WHERE state != 'finished'"
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
            return {run for (run,) in database.execute(query)}

    def _page(self, name: str) -> Any:
        with urlopen(f"http://127.0.0.1:{self._port}/api/{name}", timeout=20) as document:
            return json.load(document)

    def _open_sockets(self) -> int:
        """How many connections the arena has. Other files come and go with its threads."""
        folder = Path(f"/proc/{self._processes['arena'].pid}/fd")
        links = []
        for file in folder.iterdir():
            with suppress(FileNotFoundError):  # closed since
                links.append(os.readlink(file))
        return sum(link.startswith("socket:") for link in links)

    def _memory_mib(self) -> float:
        status = Path(f"/proc/{self._processes['arena'].pid}/status").read_text()
        [kib] = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
        return round(int(kib) / 1024, 1)

    def _said(self, name: str) -> str:
        file = self._folder / f"{name}.err"
        return file.read_text(errors="replace") if file.exists() else ""

    def _until(self, is_so: Callable[[], bool], what: str, within_s: float) -> None:
        end = time.monotonic() + within_s
        while not is_so():
            arena = self._processes.get("arena")
            assert arena is None or arena.poll() is None, self._said("arena")[-2000:]
            assert time.monotonic() < end, f"{what} never came: {self._said('arena')[-2000:]}"
            time.sleep(_LOOK_S)


def main() -> int:
    """Drive, and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bots", type=int, default=60)
    parser.add_argument("--kinds", default="house", help=f"with commas between: {', '.join(KINDS)}")
    parser.add_argument("--games", default=",".join(GAMES), help="with commas between")
    parser.add_argument("--minutes", type=float, default=1.0, help="each is played once at least")
    parser.add_argument("--matches", type=int, default=1, help="of each two bots")
    parser.add_argument("--rounds", type=int, default=10, help="of a match")
    parser.add_argument("--rogues", type=int, default=0, help="beside the others")
    for fault in FAULTS:
        parser.add_argument(f"--{fault}", type=int, default=0, metavar="TIMES")
    parser.add_argument("--every", type=float, default=5.0, help="s between faults, at most")
    parser.add_argument("--away", type=float, default=5.0, help="s that a fault lasts, at most")
    parser.add_argument("--guesses", type=int, default=0, help="wrong tokens")
    parser.add_argument("--spectators", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=0, help="over a nats-server")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--folder", type=Path, help="keep everything there")
    asked = vars(parser.parse_args())
    kept = asked.pop("folder")
    options = DriveOptions(
        kinds=tuple(asked.pop("kinds").split(",")),
        games=tuple(asked.pop("games").split(",")),
        seconds=60 * asked.pop("minutes"),
        faults={fault: asked.pop(fault.replace("-", "_")) for fault in FAULTS},
        every_s=asked.pop("every"),
        away_s=asked.pop("away"),
        **asked,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = (kept or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        report = Drive(folder, options).run()
    for name, value in msgspec.to_builtins(report).items():
        if name != "faults":
            print(f"{name:>16}  {value}")
    print("\n".join(report.faults) or "all is as it should be")
    return int(bool(report.faults))


if __name__ == "__main__":
    sys.exit(main())
