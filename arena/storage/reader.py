"""Reading the database: competitions, matches with their records, eliminations, what instructors did.

Readers, in this process or in another, see whole transactions and hold nobody up (SQLite's WAL). They read in the calling thread;
from a coroutine use `asyncio.to_thread`. Damage that is met is one line that names the match or competition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.engine.match import Record, Result
from arena.formats.schedule import RankingPlace
from arena.formats.spec import Plan
from arena.records.document import MatchDocument
from arena.storage.models import Act, CompetitionRow, CompetitionState, MatchRow
from arena.storage.schema import ACTIONS, COMPETITIONS, MATCHES, SEATS, VERDICTS
from arena.storage.writer import failed, reading
from protocol.errors import UsageError
from protocol.messages import Ending, Termination, Verdict

__all__ = ["StoreReader", "document_of"]

_BATCH = 100  # records in memory at once, for whoever reads them all

_OUTLINE = [column for column in MATCHES.c if column.name != "record"]


class StoreReader:
    """What an arena's database holds.

    Args:
        engine: the database; its owner disposes of it.
        where: the database's name for messages.

    Raises:
        StoreFailed: every method, if the database cannot be read.
    """

    def __init__(self, engine: sa.Engine, where: str) -> None:
        self._engine = engine
        self._where = where

    def competitions(self) -> tuple[CompetitionRow, ...]:
        """All competitions, in the order in which they started."""
        table = COMPETITIONS.c
        query = sa.select(COMPETITIONS).order_by(table.started_at, table.id)
        return tuple(self._competition(row) for row in self._read(query))

    def competition(self, competition: str) -> CompetitionRow:
        """A competition as it stands.

        Raises:
            UsageError: there is none with that id.
        """
        query = sa.select(COMPETITIONS).where(COMPETITIONS.c.id == competition)
        for row in self._read(query):
            return self._competition(row)
        raise UsageError(f"expected the id of a competition in {self._where}, got {competition!r}")

    def find(self, text: str) -> CompetitionRow:
        """A competition as people name it: by its id, by the name of its run (the latest), or by how its id begins.

        Raises:
            UsageError: there is none, or more than one.
        """
        found = [
            competition
            for competition in self.competitions()
            if competition.id.startswith(text) or competition.plan.run == text
        ]
        for competition in found:
            if competition.id == text:
                return competition
        for competition in reversed(found):
            if text and competition.plan.run == text:
                return competition
        if len(found) == 1:
            return found[0]
        got = f"got {text!r}"
        if found:
            got += f", which may be {' or '.join(one.id for one in found[:3])}"
        raise UsageError(
            f"expected the id of a competition in {self._where}, or the name of its run, {got}"
        )

    def results(self, competition: str, after: int = 0) -> tuple[MatchRow, ...]:
        """The matches of a competition that count, in the order of writing.

        Args:
            competition: its id.
            after: only those with a greater `number`, for whoever has read up to there.
        """
        return self._played(
            MATCHES.c.competition == competition, MATCHES.c.counts, MATCHES.c.number > after
        )

    def matches(self, competition: str) -> tuple[MatchRow, ...]:
        """The matches of a competition, void ones and those that were taken back too, in the order of writing."""
        return self._played(MATCHES.c.competition == competition)

    def played(self, match: str) -> MatchRow:
        """What came of a match.

        Raises:
            UsageError: there is no such match.
        """
        for played in self._played(MATCHES.c.id == match):
            return played
        raise self._no_match(match)

    def latest(
        self, competition: str, most: int, *, bots: Sequence[str] = (), before: int | None = None
    ) -> tuple[MatchRow, ...]:
        """The latest matches of a competition, void ones and those that were taken back too, the newest first.

        Args:
            competition: its id.
            most: how many at most.
            bots: only those in which one bot sat, or two did; the same one twice for those against itself.
            before: only those with a smaller `number`.
        """
        query = sa.select(*_OUTLINE).where(MATCHES.c.competition == competition)
        if bots:
            query = query.where(MATCHES.c.id.in_(_meetings(bots)))
        if before is not None:
            query = query.where(MATCHES.c.number < before)
        rows = self._read(query.order_by(MATCHES.c.number.desc()).limit(most))
        seats = sa.select(SEATS).where(SEATS.c.match.in_([row.id for row in rows]))
        return self._seated(rows, seats.order_by(SEATS.c.match, SEATS.c.seat))

    def scores(
        self, competition: str, bot: str, after: int = 0
    ) -> tuple[tuple[int, float, int], ...]:
        """What a bot has scored: (`number`, when it was over, score) of its matches that count, in the order of writing.

        Those against itself are left out.
        """
        number = MATCHES.c.number
        query = (
            sa.select(
                number,
                sa.func.max(MATCHES.c.finished_at).label("at"),
                sa.func.max(SEATS.c.score).label("score"),
            )
            .join(SEATS, SEATS.c.match == MATCHES.c.id)
            .where(SEATS.c.bot == bot, MATCHES.c.competition == competition)
            .where(MATCHES.c.counts, number > after)
            .group_by(number)
            .having(sa.func.count() == 1)
            .order_by(number)
        )
        return tuple((row.number, row.at, row.score) for row in self._read(query))

    def counts(self) -> dict[str, int]:
        """How many matches count, by competition."""
        query = (
            sa.select(MATCHES.c.competition, sa.func.count().label("matches"))
            .where(MATCHES.c.counts)
            .group_by(MATCHES.c.competition)
        )
        return {row.competition: row.matches for row in self._read(query)}

    def entered(self, competition: str) -> int:
        """How many bots have sat at any of its tables."""
        query = (
            sa.select(sa.func.count(SEATS.c.bot.distinct()))
            .join(MATCHES, SEATS.c.match == MATCHES.c.id)
            .where(MATCHES.c.competition == competition)
        )
        [[number]] = self._read(query)
        return int(number)

    def record(self, match: str) -> Record:
        """The record of a match, to be replayed.

        Raises:
            UsageError: there is no such match.
        """
        try:
            return Record.from_json(self.stored(match))
        except (msgspec.DecodeError, TypeError) as error:
            raise failed(f"read match {match} in", self._where, error) from error

    def stored(self, match: str) -> bytes:
        """The record of a match as it is stored.

        Raises:
            UsageError: there is no such match.
        """
        for row in self._read(sa.select(MATCHES.c.record).where(MATCHES.c.id == match)):
            data: bytes = row.record
            return data
        raise self._no_match(match)

    def sealed_matches(self, competition: str | None = None) -> Iterator[tuple[MatchRow, bytes]]:
        """All matches of a competition, or of all, each with its record as it is stored, in the order of writing.

        A few at a time are in memory, and what is written meanwhile comes, too.
        """
        number = 0
        while True:
            where = [MATCHES.c.number > number]
            if competition is not None:
                where.append(MATCHES.c.competition == competition)
            query = sa.select(MATCHES).where(*where).order_by(MATCHES.c.number).limit(_BATCH)
            rows = self._read(query)
            if not rows:
                return
            number = rows[-1].number
            for row, played in zip(rows, self._with_seats(rows), strict=True):
                yield played, row.record

    def verdicts(self, competition: str | None = None) -> tuple[Verdict, ...]:
        """The eliminations of a competition, or of all, in the order in which they were put in."""
        return tuple(verdict for _, verdict in self.rulings(competition))

    def rulings(self, competition: str | None = None) -> tuple[tuple[float, Verdict], ...]:
        """The same, each with when it was put in."""
        query = sa.select(VERDICTS.c.at, VERDICTS.c.evidence).order_by(VERDICTS.c.number)
        if competition is not None:
            query = query.where(VERDICTS.c.competition == competition)
        return tuple(
            (row.at, self._decoded(row.evidence, Verdict, "a verdict")) for row in self._read(query)
        )

    def actions(self, competition: str | None = None) -> tuple[Act, ...]:
        """What was done to a competition, or to any and to the arena, in the order in which it was put in."""
        query = sa.select(ACTIONS).order_by(ACTIONS.c.number)
        if competition is not None:
            query = query.where(ACTIONS.c.competition == competition)
        return tuple(
            Act(**{name: getattr(row, name) for name in Act.__struct_fields__})
            for row in self._read(query)
        )

    def _read(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with reading(self._engine) as connection:
            return connection.execute(query).all()

    def _played(self, *where: sa.ColumnElement[bool]) -> tuple[MatchRow, ...]:
        query = sa.select(*_OUTLINE).where(*where).order_by(MATCHES.c.number)
        return self._with_seats(self._read(query))

    def _with_seats(self, rows: Sequence[sa.Row[Any]]) -> tuple[MatchRow, ...]:
        """Matches, by number; they never change their seats, so that these may be read later."""
        if not rows:
            return ()
        query = (
            sa.select(SEATS)
            .join(MATCHES)
            .where(MATCHES.c.number.between(rows[0].number, rows[-1].number))
            .order_by(MATCHES.c.number, SEATS.c.seat)
        )
        if len({row.competition for row in rows}) == 1:
            query = query.where(MATCHES.c.competition == rows[0].competition)
        return self._seated(rows, query)

    def _seated(self, rows: Sequence[sa.Row[Any]], query: sa.Select[Any]) -> tuple[MatchRow, ...]:
        """Matches, with a query for all that sat there."""
        if not rows:
            return ()
        chairs: dict[str, list[sa.Row[Any]]] = {}
        for chair in self._read(query):
            chairs.setdefault(chair.match, []).append(chair)
        return tuple(self._outline(row, chairs.get(row.id, ())) for row in rows)

    def _outline(self, row: sa.Row[Any], chairs: Sequence[sa.Row[Any]]) -> MatchRow:
        try:
            kind = Ending(row.kind)
        except ValueError as error:
            raise failed(f"read match {row.id} in", self._where, error) from error
        return MatchRow(
            number=row.number,
            id=row.id,
            competition=row.competition,
            pairing=row.pairing,
            counts=row.counts,
            game=row.game,
            players=tuple(chair.bot for chair in chairs),
            result=Result(
                tuple(chair.score for chair in chairs),
                tuple(chair.points for chair in chairs),
                Termination(kind, row.seat, row.text),
                tuple(chair.seat for chair in chairs if chair.also_out),
            ),
            started_at=row.started_at,
            finished_at=row.finished_at,
            digest=row.digest,
        )

    def _competition(self, row: sa.Row[Any]) -> CompetitionRow:
        what = f"competition {row.id}"
        try:
            state = CompetitionState(row.state)
        except ValueError as error:
            raise failed(f"read {what} in", self._where, error) from error
        return CompetitionRow(
            id=row.id,
            plan=self._decoded(row.plan, Plan, what),
            state=state,
            revision=row.revision,
            started_at=row.started_at,
            finished_at=row.finished_at,
            ranking=self._decoded(row.ranking or "[]", tuple[RankingPlace, ...], what),
        )

    def _decoded(self, text: str, type_: Any, what: str) -> Any:
        try:
            return msgspec.json.decode(text, type=type_)
        except msgspec.DecodeError as error:
            raise failed(f"read {what} in", self._where, error) from error

    def _no_match(self, match: str) -> UsageError:
        return UsageError(f"expected the id of a match in {self._where}, got {match!r}")


def _meetings(bots: Sequence[str]) -> sa.Select[Any]:
    """The ids of the matches in which a bot sat, or two did."""
    chair, other = SEATS.alias(), SEATS.alias()
    query = sa.select(chair.c.match).where(chair.c.bot == bots[0])
    if len(bots) == 1:
        return query
    meets = sa.and_(other.c.match == chair.c.match, other.c.seat != chair.c.seat)
    return query.join(other, meets).where(other.c.bot == bots[1])


def document_of(played: MatchRow, record: bytes) -> MatchDocument:
    """The sheet of a match from the database and the bytes of its record."""
    return MatchDocument(
        match=played.id,
        competition=played.competition,
        pairing=played.pairing,
        players=played.players,
        game=played.game,
        scores=played.result.scores,
        points=played.result.points,
        termination=played.result.termination,
        started_at=played.started_at,
        finished_at=played.finished_at,
        also_out=played.result.also_out,
        digest=played.digest,
        record=msgspec.Raw(record),
    )
