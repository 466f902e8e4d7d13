"""A simulated class: `python -m tests.tools.simulated_class [--bots 60] [--rogues 5] [--json]`.

House bots under students' names, with tokens of the roster, and some rogues among them connect over
WebSocket to `arena serve --config`, which plays a competition in every game from `[[run]]` tables,
all at once and unattended. When it has ended by itself, the database is judged: every competition
is finished, every pairing counts as often as it should, the standings have wins, scores and errors,
exactly the rogues are out, each by the right word, and `arena verify` passes. Time and decisions
per second are printed. The exit status is 1 if anything is wrong.

Several students share a process, so that a class fits on two cores; every student has a connection
of its own.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from arena.games import GAMES as RULES
from protocol.strategy import house_bots
from tests.support import arena_process, independent_audit
from tests.support.independent_audit import AuditedCompetition, AuditedDatabase, AuditedMatch
from tests.support.student_bots import student

__all__ = ["GAMES", "Class", "ClassOutcome", "Rate", "main"]

GAMES: Mapping[str, tuple[str, ...]] = {name: tuple(house_bots(name)) for name in RULES}
"""Which house bots the students have handed in."""

_TABLES = 4
_PROCESSES = 3  # that the honest share
_ENDS_S = 1200.0
_NAMES = "Ada Ben Cem Dia Eva Fay Gus Hal Ida Jon Kim Leo Mia Ned Ola Pia Rob Sue Tom Uma"

_CONFIG = """
[serve]
port = 0
db = "class.db"
once = true

[limits]  # sixty bots share two cores here, and nobody is to be out for that
decision_ms = 2000
bank_ms = 20000
hard_ms = 10000
grace_ms = 3000
start_ms = 10000
"""
_RUN = """
[[run]]
name = "{game}-cup"
game = "{game}"
least = {least}
matches = {matches}
wait_s = 5
settings = {settings}
"""
_ROUNDS = 10
_MATCHES_ALONE = 4  # against the dealer


class _Rogue(NamedTuple):
    """A bot that misbehaves.

    Attributes:
        kind: its name in `tests/support/student_bots.py` (`rogue-…`) or
            `tests/support/rogues/rogue.py`.
        word: of its offence (J2).
        later: other words that are right if it was at no table when it offended.
        games: what it plays.
    """

    kind: str
    word: str
    later: tuple[str, ...] = ()
    games: tuple[str, ...] = tuple(GAMES)


_ALONE = tuple(game for game in GAMES if RULES[game].seats == 1)
# The last two do not wait long: they play alone against the dealer, with no need of others' tables.
_ROGUES = (
    _Rogue("rogue-illegal", "illegal"),
    _Rogue("rogue-crash", "disconnect", ("absent",)),
    _Rogue("rogue-stall", "timeout", ("absent", "disconnect")),
    _Rogue("garbage-json", "malformed", games=_ALONE[-1:]),
    _Rogue("huge-frame", "oversize", games=_ALONE[:1]),
)


class Rate(NamedTuple):
    """How fast something was played."""

    run: str
    bots: int
    matches: int
    decisions: int
    seconds: float

    @property
    def per_s(self) -> float:
        """Decisions per second."""
        return self.decisions / self.seconds


class ClassOutcome(NamedTuple):
    """The rates, with one of all at the end, who was out by which words, and what is wrong."""

    rates: list[Rate]
    out: dict[str, list[str]]
    faults: list[str]


class Class:
    """A class with its arena, in a folder of its own.

    Args:
        folder: where everything is.
        bots: how many, rogues included.
        rogues: how many of them misbehave, each in another way.
        matches: how often each two meet in the round robins.
    """

    def __init__(self, folder: Path, bots: int, rogues: int, *, matches: int = 2) -> None:
        assert rogues <= len(_ROGUES), "there are no more kinds"
        names = [f"{_first(n)}-{n}" for n in range(1, bots + 1)]
        self._folder = folder
        self._database = folder / "class.db"
        self._matches = matches
        self._honest = names[rogues:]
        self.rogues = dict(zip(names, _ROGUES[:rogues], strict=False))
        self._tokens: dict[str, str] = {}
        self._actors: list[subprocess.Popen[bytes]] = []
        self.faults: list[str] = []

    def run(self) -> ClassOutcome:
        """Play all competitions, and judge the database."""
        self._enrol()
        self._write_config()
        words = ("-m", "arena", "serve", "--config", "class.toml")
        arena = arena_process.start(self._folder, "arena.err", *words)
        try:
            self._let_all_come(self._url(arena))
            status = arena.wait(_ENDS_S)
            self.faults += [f"exit status {status}"] if status else []
            self._all_leave()
        finally:
            for process in (*self._actors, arena):
                if process.poll() is None:
                    process.kill()
                process.wait()
        if self.faults:
            self.faults.append(self._said()[-1000:])
        book = independent_audit.read(self._database)
        self.faults += self._judge(book)
        return ClassOutcome(list(_rates(book)), _out(book), self.faults)

    # --- before ---

    def _enrol(self) -> None:
        """Put all on the roster, and hand out tokens."""
        people, tokens = self._folder / "class.csv", self._folder / "tokens.csv"
        names = [*self.rogues, *self._honest]
        people.write_text("\n".join(["name", *names]))
        where = ("--db", str(self._database), "--tokens", str(tokens))
        arena_process.printed("roster", "import", str(people), *where)
        with tokens.open(encoding="utf-8-sig", newline="") as file:
            self._tokens = {row["name"]: row["token"] for row in csv.DictReader(file)}

    def _write_config(self) -> None:
        config = _CONFIG
        for game in GAMES:
            rogues = sum(game in rogue.games for rogue in self.rogues.values())
            config += _RUN.format(
                game=game,
                least=len(self._honest) + rogues,
                matches={1: _MATCHES_ALONE, 2: self._matches}.get(RULES[game].seats, 1),
                settings=arena_process.toml_of(RULES[game].rounds(_ROUNDS)),
            )
        (self._folder / "class.toml").write_text(config)

    def _url(self, arena: subprocess.Popen[bytes]) -> str:
        """The arena's address, once it prints it."""
        while arena.poll() is None:
            if "arena at " in (said := self._said()):
                return said.partition("arena at ")[2].split()[0]
            time.sleep(0.05)
        raise AssertionError(self._said())

    def _said(self) -> str:
        return (self._folder / "arena.err").read_text()

    def _let_all_come(self, url: str) -> None:
        """The honest share some processes; every rogue has one, and may end it."""
        students = [self._student(name, number) for number, name in enumerate(self._honest)]
        for part in range(_PROCESSES):
            self._start_students(f"part-{part}", students[part::_PROCESSES], url)
        for name, rogue in self.rogues.items():
            if rogue.kind.startswith("rogue-"):
                bots = dict.fromkeys(rogue.games, rogue.kind)
                described = student(name, bots, token=self._tokens[name])
                self._start_students(name, [described], url)
            else:
                [game] = rogue.games
                words = (str(arena_process.ROOT / "tests/support/rogues/rogue.py"), rogue.kind)
                where = ("--url", url, "--game", game, "--name", name)
                self._start(*words, *where, "--token", self._tokens[name])

    def _student(self, name: str, number: int) -> dict[str, Any]:
        bots = {game: bots[number % len(bots)] for game, bots in GAMES.items()}
        return student(name, bots, tables=_TABLES, token=self._tokens[name])

    def _start_students(self, name: str, students: list[dict[str, Any]], url: str) -> None:
        file = self._folder / f"{name}.json"
        file.write_text(json.dumps(students))
        self._start("-m", "tests.support.student_bots", str(file), "--url", url)

    def _start(self, *words: str) -> None:
        self._actors.append(arena_process.start(self._folder, "bots.err", *words))

    def _all_leave(self) -> None:
        """Wait for the honest to end, as the arena has closed."""
        for actor in self._actors[:_PROCESSES]:
            if status := actor.wait(20):
                said = (self._folder / "bots.err").read_text()[-1000:]
                self.faults.append(f"honest students ended with {status}: {said}")

    # --- after ---

    def _judge(self, book: AuditedDatabase) -> Iterator[str]:
        """What is wrong with the database."""
        yield from independent_audit.whole(book)
        runs = sorted(one.plan["run"] for one in book.competitions)
        if runs != sorted(f"{game}-cup" for game in GAMES):
            yield f"expected a cup in every game, got {runs}"
        for competition in book.competitions:
            yield from self._judge_one(book, competition)
        for name, rogue in self.rogues.items():
            if rogue.word not in _out(book).get(name, ()):
                yield f"{name} ({rogue.kind}) is nowhere out by {rogue.word}"
        verified = arena_process.run("verify", str(self._database))
        if verified.returncode:
            yield f"arena verify: {verified.stdout}{verified.stderr}"

    def _judge_one(self, book: AuditedDatabase, competition: AuditedCompetition) -> Iterator[str]:
        game = competition.plan["game"]
        suspects = {n for n, rogue in self.rogues.items() if game in rogue.games}
        # A rogue that was eliminated from the arena before this competition is not in it.
        out = suspects.intersection(competition.plan["players"])
        played = book.of(competition.id)
        document = arena_process.printed("standings", "--db", str(self._database), competition.id)
        if competition.state != "finished":
            yield f"{competition.id} is {competition.state}"
        if sorted(competition.plan["players"]) != sorted({*self._honest, *out}):
            yield f"{competition.id} was played by others: {competition.plan['players']}"
        yield from self._verdicts(book, competition, out)
        if competition.plan["form"] == "elimination":
            yield from independent_audit.bracket(competition, played)
            return
        yield from independent_audit.pairings(competition, played, out, set())
        yield from independent_audit.standings(document, played, out)
        yield from _columns(document, out)

    def _verdicts(
        self, book: AuditedDatabase, competition: AuditedCompetition, out: set[str]
    ) -> Iterator[str]:
        """Exactly the rogues must be out, each by its word."""
        words: dict[str, str] = {}
        for competition_id, bot, word, text in book.verdicts:
            if competition_id == competition.id:
                words.setdefault(bot, word)
                if bot not in out:
                    yield f"{bot} is honest and out of {competition.id}: {word}, {text}"
        for name in sorted(out):
            rogue = self.rogues[name]
            if words.get(name) not in (rogue.word, *rogue.later):
                got = f"{competition.id} by {words.get(name)}, expected {rogue.word}"
                yield f"{name} ({rogue.kind}) is out of {got}"


def _columns(document: dict[str, Any], out: set[str]) -> Iterator[str]:
    """Whether the standings have what they must show of everybody."""
    is_league = document["form"] == "league"
    fields = ("played", "score", "error", "value" if is_league else "wins")
    for row in document["standings"]:
        missing = [field for field in fields if row.get(field) is None]
        if row["name"] in out:
            missing = [] if row["eliminated"] else ["eliminated"]
        if missing:
            yield f"{row['name']} has no {', '.join(missing)} in {document['competition']}"


def _rates(book: AuditedDatabase) -> Iterator[Rate]:
    decisions = 0
    for competition in book.competitions:
        mine = [match for match in book.matches.values() if match.competition == competition.id]
        here = sum(map(independent_audit.answers, mine))
        decisions += here
        bots = len(competition.plan["players"])
        yield Rate(competition.plan["run"], bots, len(_counting(mine)), here, competition.seconds)
    first = min(competition.began for competition in book.competitions)
    last = max(competition.began + competition.seconds for competition in book.competitions)
    matches = len(_counting(list(book.matches.values())))
    bots = max(len(competition.plan["players"]) for competition in book.competitions)
    yield Rate("all at once", bots, matches, decisions, last - first)


def _counting(matches: list[AuditedMatch]) -> list[AuditedMatch]:
    return [match for match in matches if match.counts]


def _out(book: AuditedDatabase) -> dict[str, list[str]]:
    """Who is out, and by which words."""
    words: dict[str, list[str]] = {}
    for _, bot, word, _ in book.verdicts:
        words.setdefault(bot, []).append(word)
    return words


def _first(number: int) -> str:
    names = _NAMES.split()
    return names[number % len(names)]


def main() -> int:
    """Run it, and print the results; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bots", type=int, default=60)
    parser.add_argument("--rogues", type=int, default=5)
    parser.add_argument("--matches", type=int, default=2, help="of each two bots")
    parser.add_argument("--folder", type=Path, help="keep everything there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        outcome = Class(folder, options.bots, options.rogues, matches=options.matches).run()
    if options.json:
        rates = [{**rate._asdict(), "per_s": rate.per_s} for rate in outcome.rates]
        print(json.dumps({**outcome._asdict(), "rates": rates}))
    else:
        _show(outcome)
    return int(bool(outcome.faults))


def _show(outcome: ClassOutcome) -> None:
    for rate in outcome.rates:
        print(
            f"{rate.run:20} {rate.bots:3} bots {rate.matches:6,} matches "
            f"{rate.decisions:9,} decisions {rate.seconds:7.1f} s {rate.per_s:8,.0f} decisions/s"
        )
    for bot, words in outcome.out.items():
        print(f"{bot} is out: {', '.join(words)}")
    print("\n".join(outcome.faults) or "all is as it should be")


if __name__ == "__main__":
    sys.exit(main())
