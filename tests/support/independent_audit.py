"""An audit of a database without the arena's code: schedules, brackets and standings.

SQLite's own module reads the tables. The schedules (K1, K2, K3), the stream of bytes and the
standings are written here once more, from the rulebook and `protocol/README.md`. A database is read
from a copy with its write-ahead log, so that what a killed arena has left stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "AuditedCompetition",
    "AuditedDatabase",
    "AuditedMatch",
    "answers",
    "bracket",
    "lost",
    "pairings",
    "read",
    "standings",
    "whole",
]

_COMPANIONS = ("", "-wal")  # the files of SQLite that are copied; -shm is made anew


class AuditedCompetition(NamedTuple):
    """A row of `competitions`."""

    id: str
    plan: dict[str, Any]
    state: str
    ranking: list[dict[str, Any]]
    began: float
    seconds: float


class AuditedMatch(NamedTuple):
    """A row of `matches` with those of its seats; `rest` has the other columns."""

    id: str
    competition: str
    pairing: int
    counts: bool
    kind: str
    seat: int | None
    players: tuple[str, ...]
    scores: tuple[int, ...]
    points: tuple[int, ...]
    digest: str
    record: bytes
    rest: tuple[object, ...]

    @property
    def offender(self) -> str | None:
        return None if self.seat is None else self.players[self.seat]


class AuditedDatabase(NamedTuple):
    """The whole content of a database."""

    integrity: str
    competitions: tuple[AuditedCompetition, ...]
    matches: dict[str, AuditedMatch]
    verdicts: tuple[tuple[str, str, str, str], ...]
    """Competition, bot, word, text."""

    def of(self, competition: str) -> list[AuditedMatch]:
        """The matches that count in a competition, by pairing."""
        matches = (match for match in self.matches.values() if match.competition == competition)
        counting = (match for match in matches if match.counts)
        return sorted(counting, key=lambda match: match.pairing)


def read(database: Path) -> AuditedDatabase:
    """Read a database to which nobody is writing."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in _COMPANIONS:
            source = database.with_name(database.name + suffix)
            if source.exists():
                shutil.copy(source, Path(folder) / f"copy.db{suffix}")
        with closing(sqlite3.connect(Path(folder) / "copy.db")) as copy:
            return _book(copy)


def _book(database: sqlite3.Connection) -> AuditedDatabase:
    [(integrity,)] = database.execute("PRAGMA integrity_check").fetchall()
    if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
        return AuditedDatabase(integrity, (), {}, ())  # killed before the first table was made
    competitions = tuple(
        AuditedCompetition(
            *(name, json.loads(plan), state, json.loads(ranking or "[]")),
            *(began, (end or began) - began),
        )
        for name, plan, state, ranking, began, end in database.execute(
            "SELECT id, plan, state, ranking, started_at, finished_at"
            " FROM competitions ORDER BY started_at"
        )
    )
    seats: dict[str, list[tuple[str, int, int]]] = {}
    for match, *row in database.execute(
        'SELECT "match", bot, score, points FROM seats ORDER BY "match", seat'
    ):
        seats.setdefault(match, []).append(tuple(row))
    matches = {}
    rows = database.execute(
        "SELECT id, competition, pairing, counts, kind, seat, digest, record,"
        " number, game, text, started_at, finished_at FROM matches"
    )
    for name, competition, pairing, counts, kind, seat, digest, record, *rest in rows:
        players, scores, points = zip(*seats.get(name, [("", 0, 0)]), strict=True)
        matches[name] = AuditedMatch(
            *(name, competition, pairing, bool(counts), kind, seat),
            *(players, scores, points, digest, zlib.decompress(record), tuple(rest)),
        )
    verdicts = database.execute("SELECT competition, bot, kind, text FROM verdicts")
    return AuditedDatabase(integrity, competitions, matches, tuple(map(tuple, verdicts)))


# ---- Nothing is lost, nothing is dealt twice


def lost(before: AuditedDatabase, after: AuditedDatabase) -> Iterator[str]:
    """What was written before and has changed: each match must be the same to the last byte."""
    for name, match in before.matches.items():
        if name not in after.matches:
            yield f"match {name} was there and is lost"
        elif after.matches[name] != match:
            yield f"match {name} is not what it was"
    for competition in before.competitions:
        plans = [now.plan for now in after.competitions if now.id == competition.id]
        if plans != [competition.plan]:
            yield f"competition {competition.id} is lost or has another plan"


def whole(book: AuditedDatabase) -> Iterator[str]:
    """What is wrong with any database, whatever was played in it."""
    if book.integrity != "ok":
        yield f"integrity_check: {book.integrity}"
    seeds = Counter(json.loads(match.record)["seed"] for match in book.matches.values())
    for seed, count in seeds.items():
        if count > 1 or not seed:
            yield f"the cards of seed {seed} were dealt {count} times"
    counting = (match for match in book.matches.values() if match.counts)
    counted = Counter((match.competition, match.pairing) for match in counting)
    for (competition, pairing), count in counted.items():
        if count > 1:
            yield f"pairing {pairing} of {competition} counts {count} times"


def answers(match: AuditedMatch) -> int:
    """How many decisions a match had."""
    return len(json.loads(match.record)["answers"])


# ---- Who plays whom


def pairings(
    competition: AuditedCompetition,
    played: Sequence[AuditedMatch],
    out: set[str],
    one_table: set[str],
) -> Iterator[str]:
    """Which pairings a round robin or a league has too often or too rarely (K1, K3).

    Args:
        competition: with its plan.
        played: the matches that count.
        out: the bots that were eliminated: not all of their matches are played.
        one_table: the bots that cannot meet themselves.
    """
    plan = competition.plan
    times, players = plan["matches"], plan["players"]
    if plan["form"] == "league":
        expected: dict[tuple[str, ...], int] = {(name,): times for name in players}
    else:
        expected = {tuple(sorted(pair)): times for pair in combinations(players, 2)}
        if plan["with_itself"]:
            itself = (name for name in players if name not in one_table)
            expected |= {(name, name): times for name in itself}
    counted = Counter(tuple(sorted(match.players)) for match in played)
    for names, wanted in expected.items():
        got = counted.pop(names, 0)
        if got > wanted or (got < wanted and not out.intersection(names)):
            yield f"{' v '.join(names)} counts {got} times, expected {wanted}"
    for names, got in counted.items():
        yield f"{' v '.join(names)} counts {got} times, expected never"
    yield from _seats(played, out)


def _seats(played: Sequence[AuditedMatch], out: set[str]) -> Iterator[str]:
    """Two bots sit equally often each way, or once more in one."""
    first = Counter(match.players for match in played if len(match.players) == 2)
    for (one, other), times in first.items():
        back = first[(other, one)]
        if one != other and abs(times - back) > 1 and not out & {one, other}:
            yield f"{one} sat first against {other} {times} times, and {back} times second"


class _Stream:
    """The bytes of a seed (`protocol/README.md`): SHA-256 of the key and a counter, in blocks."""

    def __init__(self, key: bytes) -> None:
        self._key, self._block, self._bytes = key, 0, b""

    def lot(self) -> bytes:
        """Sixteen bytes."""
        if not self._bytes:
            counter = self._block.to_bytes(8, "big")
            self._bytes = hashlib.sha256(self._key + counter).digest()
            self._block += 1
        lot, self._bytes = self._bytes[:16], self._bytes[16:]
        return lot

    def order(self, names: Sequence[str]) -> list[str]:
        """The names in the order of their lots."""
        lots = [(self.lot(), name) for name in names]
        return [name for _, name in sorted(lots)]


def bracket(competition: AuditedCompetition, played: Sequence[AuditedMatch]) -> Iterator[str]:
    """How an elimination without teams differs from its seed and its results (K2, H11–H13)."""
    plan = competition.plan
    assert not plan["teams"], "teams are not audited here"
    matches = {match.pairing: match for match in played}
    stream = _Stream(bytes.fromhex(plan["seed"]))
    left, byes = list(plan["players"]), Counter[str]()
    groups: list[list[str]] = []  # the bots that share a place, the worst first
    number = 0
    while True:
        if is_final := len(left) <= 4:
            tables = [stream.order([*left, *plan["house"][: 4 - len(left)]])]
            through: set[str] = set()
        else:
            resting, tables = _stage(left, stream, byes)
            through = set(resting)
        offenders: set[str] = set()
        final: list[tuple[int, str]] = []
        for table in tables:
            number += 1
            match = matches.pop(number, None)
            if match is None or list(match.players) != table:
                found = "nothing" if match is None else " v ".join(match.players)
                expected = " v ".join(table)
                yield f"table {number} of {competition.id}: expected {expected}, got {found}"
                return
            if match.offender is not None:
                offenders.add(match.offender)
            cut = sorted(match.scores)[-2]
            for name, score in zip(table, match.scores, strict=True):
                stays = score >= cut if match.offender is None else True
                if stays and name != match.offender:
                    through.add(name)
                if name in left and name != match.offender:
                    final.append((score, name))
        groups.append([name for name in left if name in offenders])
        if is_final:
            for score in sorted({score for score, _ in final}):
                groups.append([name for mine, name in final if mine == score])
            break
        if len(through) == len(left):
            groups.append(left)
            break
        groups.append([n for n in left if n not in through and n not in offenders])
        left = [name for name in left if name in through]
    for number in matches:
        yield f"table {number} of {competition.id} was not to be played"
    yield from _places(competition, groups)


def _stage(
    left: list[str], stream: _Stream, byes: Counter[str]
) -> tuple[list[str], list[list[str]]]:
    """The bots with a bye, and the tables of a stage before the final."""
    lots = stream.order(left)
    resting: list[str] = []
    while (len(left) - len(resting)) % 4:
        free = [name for name in lots if name not in resting]
        resting.append(min(free, key=lambda name: byes[name]))
    byes.update(resting)
    row = [name for name in lots if name not in resting]
    count = len(row) // 4
    seats = stream.order([name for name in left if name not in resting])
    tables = [[name for name in seats if name in row[index::count]] for index in range(count)]
    return resting, sorted(tables, key=lambda table: seats.index(table[0]))


def _places(competition: AuditedCompetition, groups: list[list[str]]) -> Iterator[str]:
    places, better = [], 0
    for group in reversed(groups):
        if group:
            places.append((better + 1, sorted(group)))
            better += len(group)
    said = [(place["rank"], sorted(place["names"])) for place in competition.ranking]
    if said != places:
        yield f"the ranking of {competition.id} is {said}, expected {places}"


# ---- What it adds up to


def standings(
    document: dict[str, Any], played: Sequence[AuditedMatch], out: set[str]
) -> Iterator[str]:
    """How the standings that `arena standings --json` prints differ from the matches.

    Args:
        document: the standings.
        played: the matches that count.
        out: the eliminated bots, which are struck from all standings (J3).
    """
    for row in document["standings"]:
        name = row["name"]
        mine = [
            match
            for match in played
            if name in match.players
            and not out.intersection(match.players)
            and match.players.count(name) == 1
        ]
        if (row["rank"] is None) is not (name in out or not mine):
            yield f"{name} has the rank {row['rank']}"
        if name in out:
            continue
        yield from _fits(name, row, name, mine)
        for other, cell in document["cross_table"].get(name, {}).items():
            theirs = [match for match in mine if other in match.players]
            if other != name:
                yield from _fits(f"{name} v {other}", cell, name, theirs)


def _fits(what: str, row: dict[str, Any], name: str, mine: list[AuditedMatch]) -> Iterator[str]:
    counted: Counter[str] = Counter()
    for match in mine:
        seat = match.players.index(name)
        own = match.scores[seat]
        counted["played"] += 1
        counted["score"] += own
        if len(match.scores) == 2:
            other = match.scores[1 - seat]
            counted["wins"] += own > other
            counted["losses"] += own < other
            counted["draws"] += own == other
    for field in ("played", "score", "wins", "losses", "draws"):
        if field in row and row[field] != counted[field]:
            yield f"{what}: {field} {row[field]}, the matches make {counted[field]}"
