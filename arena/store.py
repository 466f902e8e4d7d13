"""The database, which is the only truth: competitions, matches with their records, eliminations (design §6).

Writing returns at once and is done by one thread (`arena/writer.py`), all rows of a match in one transaction: nobody waits for
a disk, the event loop neither, and what was put in before a `flush` returned survives a power cut. Readers, in this process
or in another, see whole transactions and hold nobody up (SQLite's WAL). The store reads no clock: times are Unix seconds and
come in as arguments.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from arena.database import COMPETITIONS, MATCHES, SEATS, VERDICTS, open_database, shown
from arena.match import MatchResult, Record
from arena.schedule import Placed
from arena.writer import Row, Writer, failed
from protocol.errors import UsageError
from protocol.messages import Ending, Termination, Verdict

__all__ = ["Competition", "Played", "Store"]

_STATEMENTS: dict[str, sa.Insert | sa.Update] = {
    "competition": COMPETITIONS.insert(),
    "match": MATCHES.insert(),
    "seat": SEATS.insert(),
    "verdict": VERDICTS.insert(),
    "finish": COMPETITIONS.update().where(COMPETITIONS.c.id == sa.bindparam("which")),
}
"""What the store writes; rows before those that refer to them."""


class Competition(msgspec.Struct, frozen=True, kw_only=True):
    """A competition as it was set up and, once it has ended, its `finished_at` and the `ranking` of an elimination."""

    id: str
    game: str
    form: str
    settings: dict[str, Any]
    players: tuple[str, ...]
    started_at: float
    finished_at: float | None
    ranking: tuple[Placed, ...]


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is over, without its record; tuples are by seat."""

    id: str
    competition: str
    game: str
    players: tuple[str, ...]
    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination
    started_at: float
    finished_at: float


class Store:
    """The database of an arena.

    Args:
        where: a file for SQLite, or a URL that SQLAlchemy knows.
        create: make what is not there yet; False to look at what an arena has written.

    Raises:
        UsageError: it cannot be opened, or holds something else than an arena of this version; nothing has changed.
    """

    def __init__(self, where: str | Path, *, create: bool = True) -> None:
        self._engine = open_database(where, create=create)
        self._where = shown(self._engine.url)
        self._writer = Writer(self._engine, _STATEMENTS, self._where)

    @property
    def file(self) -> Path | None:
        """Where it is, if it is a file of ours."""
        url = self._engine.url
        if url.get_backend_name() != "sqlite" or not url.database:
            return None
        return Path(url.database)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing: returns at once, raises StoreFailed if anything before could not be written ---

    def competition_started(
        self,
        game: str,
        form: str,
        settings: Mapping[str, object],
        players: Sequence[str],
        started_at: float,
    ) -> str:
        """Note a new competition; returns its id."""
        competition = secrets.token_hex(6)
        row = {
            "id": competition,
            "game": game,
            "form": form,
            "settings": _json(settings),
            "players": _json(players),
            "started_at": started_at,
        }
        self._writer.put((("competition", row),))
        return competition

    def match_finished(
        self,
        competition: str,
        match: str,
        players: Sequence[str],
        result: MatchResult,
        started_at: float,
        finished_at: float,
        verdict: Verdict | None = None,
    ) -> None:
        """Note a match that is over or void, in one transaction with the evidence if it ended by an offence.

        Args:
            competition: its id.
            match: an id that no other match in this database has.
            players: the bots' names by seat.
            result: the result and the record.
            started_at: when the seats were invited.
            finished_at: when the result was known.
            verdict: the evidence, if there is any (J4).
        """
        ended = result.termination
        row = {
            "id": match,
            "competition": competition,
            "game": result.record.game,
            "kind": ended.kind.value,
            "seat": ended.seat,
            "text": ended.text,
            "started_at": started_at,
            "finished_at": finished_at,
            "record": result.record.to_json(),
        }
        by_seat = zip(players, result.scores, result.points, strict=True)
        rows: list[Row] = [("match", row)]
        for seat, (bot, score, points) in enumerate(by_seat):
            chair = {"seat": seat, "bot": bot, "score": score, "points": points}
            rows.append(("seat", {"match": match, **chair}))
        if verdict is not None:
            rows.append(_ruling(competition, verdict, finished_at))
        self._writer.put(tuple(rows))

    def verdict(self, competition: str, verdict: Verdict, at: float) -> None:
        """Note an elimination apart from the end of a match (J4)."""
        self._writer.put((_ruling(competition, verdict, at),))

    def competition_finished(
        self, competition: str, finished_at: float, ranking: Sequence[Placed] = ()
    ) -> None:
        """Note the end of a competition, of an elimination with its ranking."""
        row = {
            "which": competition,
            "finished_at": finished_at,
            "ranking": _json(ranking),
        }
        self._writer.put((("finish", row),))

    def flush(self) -> None:
        """Wait until all that was put in so far is durable; from a coroutine use `flushed`.

        Raises:
            StoreFailed: it could not be written.
        """
        self._writer.barrier().result()

    async def flushed(self) -> None:
        """Like `flush`, without holding up the event loop."""
        await asyncio.wrap_future(self._writer.barrier())

    def close(self) -> None:
        """Write what is left and close; once more does nothing. It waits: from a coroutine call it after `flushed`.

        Raises:
            StoreFailed: something could not be written.
        """
        try:
            self._writer.close()
        finally:
            self._engine.dispose()

    # --- reading: in the calling thread; from a coroutine use asyncio.to_thread ---

    def competitions(self) -> tuple[Competition, ...]:
        """All competitions, in the order in which they started."""
        table = COMPETITIONS.c
        rows = self._read(sa.select(COMPETITIONS).order_by(table.started_at, table.id))
        return tuple(
            Competition(
                id=row.id,
                game=row.game,
                form=row.form,
                settings=msgspec.json.decode(row.settings),
                players=msgspec.json.decode(row.players, type=tuple[str, ...]),
                started_at=row.started_at,
                finished_at=row.finished_at,
                ranking=msgspec.json.decode(
                    row.ranking or "[]", type=tuple[Placed, ...]
                ),
            )
            for row in rows
        )

    def matches(self, competition: str) -> tuple[Played, ...]:
        """The matches of a competition, void ones too, in the order in which they were put in."""
        columns = [column for column in MATCHES.c if column is not MATCHES.c.record]
        rows = self._read(
            sa.select(*columns)
            .where(MATCHES.c.competition == competition)
            .order_by(MATCHES.c.number)
        )
        seats = self._read(
            sa.select(SEATS)
            .join(MATCHES)
            .where(MATCHES.c.competition == competition)
            .order_by(SEATS.c.seat)
        )
        by_match: dict[str, list[sa.Row[Any]]] = {}
        for seat in seats:
            by_match.setdefault(seat.match, []).append(seat)
        return tuple(
            Played(
                id=row.id,
                competition=row.competition,
                game=row.game,
                players=tuple(seat.bot for seat in by_match[row.id]),
                scores=tuple(seat.score for seat in by_match[row.id]),
                points=tuple(seat.points for seat in by_match[row.id]),
                termination=Termination(Ending(row.kind), row.seat, row.text),
                started_at=row.started_at,
                finished_at=row.finished_at,
            )
            for row in rows
        )

    def record(self, match: str) -> Record:
        """The record of a match, to be replayed.

        Raises:
            UsageError: there is no such match.
        """
        rows = self._read(sa.select(MATCHES.c.record).where(MATCHES.c.id == match))
        if not rows:
            raise UsageError(
                f"expected the id of a match in {self._where}, got {match!r}"
            )
        return Record.from_json(rows[0].record)

    def verdicts(self, competition: str | None = None) -> tuple[Verdict, ...]:
        """The eliminations of a competition, or of all, in the order in which they were put in."""
        query = sa.select(VERDICTS.c.evidence).order_by(VERDICTS.c.number)
        if competition is not None:
            query = query.where(VERDICTS.c.competition == competition)
        return tuple(
            msgspec.json.decode(row.evidence, type=Verdict) for row in self._read(query)
        )

    def _read(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        try:
            with self._engine.connect() as connection:
                return connection.execute(query).all()
        except SQLAlchemyError as error:
            raise failed("read", self._where, error) from error


def _ruling(competition: str, verdict: Verdict, at: float) -> Row:
    row = {
        "competition": competition,
        "match": verdict.match,
        "bot": verdict.bot,
        "kind": verdict.kind.value,
        "text": verdict.text,
        "at": at,
        "evidence": _json(verdict),
    }
    return "verdict", row


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
