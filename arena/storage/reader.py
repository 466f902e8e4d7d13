"""Reads competitions, matches with their records, verdicts and acts from the database.

Readers, in this process or another, see whole transactions and block nobody (SQLite's WAL). They
read in the calling thread; from a coroutine use `asyncio.to_thread`. The error for a damaged row is
one line that names the match or competition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.formats.schedule import RankingPlace
from arena.formats.spec import Plan
from arena.games.match import Record, Result
from arena.games.verdict import OUTAGE
from arena.records.document import MatchDocument
from arena.records.luck import LuckSums
from arena.storage.models import (
    VERSION,
    Act,
    CompetitionRow,
    CompetitionState,
    MatchRow,
    MatchSums,
    Outage,
    VersionChange,
    seated_versions,
)
from arena.storage.schema import ACTIONS, COMPETITIONS, MATCHES, META, SEATS, VERDICTS, has_column
from arena.storage.writer import failed, reading
from protocol.errors import UsageError
from protocol.messages import Ending, Termination, Verdict

__all__ = ["StoreReader", "document_of"]

_BATCH = 100  # most records in memory at once

_LATER = ("record", "sums", "version")  # columns that are read only sometimes, or may be missing
_OUTLINE = [column for column in MATCHES.c if column.name not in _LATER]


class StoreReader:
    """Reads an arena's database. Error messages call the database `where`.

    Every method raises StoreFailed if the database cannot be read, and UsageError if the
    competition or match that it returns is not there.
    """

    def __init__(self, engine: sa.Engine, where: str) -> None:
        self.engine = engine
        self._where = where

    def competitions(self) -> tuple[CompetitionRow, ...]:
        """All competitions, in the order in which they started."""
        query = sa.select(COMPETITIONS).order_by(COMPETITIONS.c.started_at, COMPETITIONS.c.id)
        return tuple(self._competition(row) for row in self._read(query))

    def competition(self, competition: str) -> CompetitionRow:
        for row in self._read(sa.select(COMPETITIONS).where(COMPETITIONS.c.id == competition)):
            return self._competition(row)
        raise UsageError(f"expected the id of a competition in {self._where}, got {competition!r}")

    def find(self, text: str) -> CompetitionRow:
        """Return the competition with that id, else the latest one of the run of that name, else
        the only one whose id begins with the text.

        Raises UsageError if there is none, or if several ids begin with it.
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
            ids = (competition.id for competition in found[:3])
            got += f", which may be {' or '.join(ids)}"
        raise UsageError(
            f"expected the id of a competition in {self._where}, or the name of its run, {got}"
        )

    def results(self, competition: str, after: int = 0) -> tuple[MatchRow, ...]:
        """Return the matches that count and have a `number` above `after`, in writing order."""
        return self._played(
            MATCHES.c.competition == competition, MATCHES.c.counts, MATCHES.c.number > after
        )

    def matches(self, competition: str) -> tuple[MatchRow, ...]:
        """Return all matches in the order of writing, also void ones and those taken back."""
        return self._played(MATCHES.c.competition == competition)

    def played(self, match: str) -> MatchRow:
        for played in self._played(MATCHES.c.id == match):
            return played
        raise self._no_match(match)

    def latest(
        self, competition: str, most: int, *, bots: Sequence[str] = (), before: int | None = None
    ) -> tuple[MatchRow, ...]:
        """Return at most `most` matches, newest first, also void ones and those taken back.

        With `bots`, only matches of that bot, or of these two against each other; the same bot
        twice means against itself. With `before`, only matches with a smaller `number`.
        """
        query = sa.select(*self._outlined).where(MATCHES.c.competition == competition)
        if bots:
            query = query.where(MATCHES.c.id.in_(_meetings(bots)))
        if before is not None:
            query = query.where(MATCHES.c.number < before)
        rows = self._read(query.order_by(MATCHES.c.number.desc()).limit(most))
        seats = sa.select(*self._seat_columns).where(SEATS.c.match.in_([row.id for row in rows]))
        return self._seated(rows, seats.order_by(SEATS.c.match, SEATS.c.seat))

    def scores(
        self, competition: str, bot: str, after: int = 0
    ) -> tuple[tuple[int, float, int], ...]:
        """Return (`number`, end time, score) of a bot's counting matches, none against itself."""
        number = MATCHES.c.number
        at, score = sa.func.max(MATCHES.c.finished_at), sa.func.max(SEATS.c.score)
        query = (
            sa.select(number, at.label("at"), score.label("score"))
            .join(SEATS, SEATS.c.match == MATCHES.c.id)
            .where(SEATS.c.bot == bot, MATCHES.c.competition == competition)
            .where(MATCHES.c.counts, number > after)
            .group_by(number)
            .having(sa.func.count() == 1)
            .order_by(number)
        )
        return tuple((row.number, row.at, row.score) for row in self._read(query))

    def luck(
        self, competition: str, until: float | None = None
    ) -> tuple[tuple[tuple[str, ...], LuckSums], ...]:
        """Return the names by seat and the luck of each completed match whose luck is known.

        With `until`, in Unix seconds, only matches that were over by then are included.
        """
        where = [MATCHES.c.competition == competition, MATCHES.c.counts]
        where.append(MATCHES.c.kind == Ending.COMPLETED.value)
        if until is not None:
            where.append(MATCHES.c.finished_at <= until)
        return tuple(
            (played.players, played.sums.luck)
            for played in self._played(*where)
            if played.sums is not None and isinstance(played.sums.luck, LuckSums)
        )

    def sums_revision(self) -> str | None:
        """Return a text that changes whenever sums are written after matches; None if it is old."""
        for row in self._read(sa.select(META.c.value).where(META.c.key == "sums")):
            return str(row.value)
        return None

    def counts(self) -> dict[str, int]:
        """Return how many matches count, by competition id."""
        query = (
            sa.select(MATCHES.c.competition, sa.func.count().label("matches"))
            .where(MATCHES.c.counts)
            .group_by(MATCHES.c.competition)
        )
        return {row.competition: row.matches for row in self._read(query)}

    def entered(self, competition: str) -> int:
        query = sa.select(sa.func.count(SEATS.c.bot.distinct())).join(MATCHES)
        [[number]] = self._read(query.where(MATCHES.c.competition == competition))
        return int(number)

    def record(self, match: str) -> Record:
        try:
            return Record.from_json(self.stored(match))
        except (msgspec.DecodeError, TypeError) as error:
            raise failed(f"read match {match} in", self._where, error) from error

    def stored(self, match: str) -> bytes:
        """Return the record of a match as JSON, byte for byte as it is stored."""
        for row in self._read(sa.select(MATCHES.c.record).where(MATCHES.c.id == match)):
            data: bytes = row.record
            return data
        raise self._no_match(match)

    def outages(self, competition: str) -> tuple[Outage, ...]:
        """Return the matches that are void as bots were away at once (J9), in writing order."""
        is_void = MATCHES.c.kind == Ending.VOID.value, MATCHES.c.text.startswith(OUTAGE)
        void = self._played(MATCHES.c.competition == competition, *is_void)
        return tuple(Outage.of(played, self.record(played.id).away or ()) for played in void)

    def sealed_matches(
        self, competition: str | None = None, *, bot: str | None = None
    ) -> Iterator[tuple[MatchRow, bytes]]:
        """Yield the matches of one competition or of all, oldest first, with their stored records.

        With `bot`, only matches in which it sat. Only a few are in memory at a time. Matches that
        are written meanwhile are included.
        """
        number = 0
        while True:
            where = [MATCHES.c.number > number]
            if competition is not None:
                where.append(MATCHES.c.competition == competition)
            if bot is not None:
                where.append(MATCHES.c.id.in_(_meetings([bot])))
            query = sa.select(*self._outlined, MATCHES.c.record).where(*where)
            rows = self._read(query.order_by(MATCHES.c.number).limit(_BATCH))
            if not rows:
                return
            number = rows[-1].number
            for row, played in zip(rows, self._with_seats(rows), strict=True):
                yield played, row.record

    def verdicts(self, competition: str | None = None) -> tuple[Verdict, ...]:
        """Return the verdicts of one competition or of all, in the order of writing."""
        return tuple(verdict for _, verdict in self.rulings(competition))

    def rulings(self, competition: str | None = None) -> tuple[tuple[float, Verdict], ...]:
        """Return the verdicts, each with its time in Unix seconds."""
        query = sa.select(VERDICTS.c.at, VERDICTS.c.evidence).order_by(VERDICTS.c.number)
        if competition is not None:
            query = query.where(VERDICTS.c.competition == competition)
        return tuple(
            (row.at, self._decoded(row.evidence, Verdict, "a verdict")) for row in self._read(query)
        )

    def actions(self, competition: str | None = None) -> tuple[Act, ...]:
        """Return the acts on one competition, or all acts, in the order of writing."""
        columns = [ACTIONS.c[name] for name in Act.__struct_fields__]
        query = sa.select(*columns).order_by(ACTIONS.c.number)
        if competition is not None:
            query = query.where(ACTIONS.c.competition == competition)
        return tuple(Act(**row._mapping) for row in self._read(query))

    def version_changes(self, competition: str) -> tuple[VersionChange, ...]:
        """Return the version changes on a ladder, in the order of writing."""
        query = (
            sa.select(ACTIONS.c.bot, ACTIONS.c.match, MATCHES.c.number.label("after"))
            .join(MATCHES, MATCHES.c.id == ACTIONS.c.match, isouter=True)
            .where(ACTIONS.c.competition == competition, ACTIONS.c.what == VERSION)
            .order_by(ACTIONS.c.number)
        )
        return tuple(
            VersionChange(row.bot or "", row.match, row.after or 0) for row in self._read(query)
        )

    @cached_property
    def _outlined(self) -> list[sa.ColumnElement[Any]]:
        """The columns of a match except its record."""
        return [*_OUTLINE, self._if_there(MATCHES.c.sums)]

    @cached_property
    def _seat_columns(self) -> list[sa.ColumnElement[Any]]:
        others = (column for column in SEATS.c if column.name not in _LATER)
        return [*others, self._if_there(SEATS.c.version)]

    def _if_there(self, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
        with reading(self.engine) as connection:
            is_there = has_column(connection, column)
        return column if is_there else sa.null().label(column.name)

    def _read(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with reading(self.engine) as connection:
            return connection.execute(query).all()

    def _played(self, *where: sa.ColumnElement[bool]) -> tuple[MatchRow, ...]:
        query = sa.select(*self._outlined).where(*where).order_by(MATCHES.c.number)
        return self._with_seats(self._read(query))

    def _with_seats(self, rows: Sequence[sa.Row[Any]]) -> tuple[MatchRow, ...]:
        """Return the matches of some rows, which are sorted by number."""
        if not rows:
            return ()
        # Seats never change, so a second transaction may read them.
        query = (
            sa.select(*self._seat_columns)
            .join(MATCHES)
            .where(MATCHES.c.number.between(rows[0].number, rows[-1].number))
            .order_by(MATCHES.c.number, SEATS.c.seat)
        )
        if len({row.competition for row in rows}) == 1:
            query = query.where(MATCHES.c.competition == rows[0].competition)
        return self._seated(rows, query)

    def _seated(self, rows: Sequence[sa.Row[Any]], query: sa.Select[Any]) -> tuple[MatchRow, ...]:
        """Return the matches of some rows; `query` reads all their seats."""
        if not rows:
            return ()
        seats: dict[str, list[sa.Row[Any]]] = {}
        for seat in self._read(query):
            seats.setdefault(seat.match, []).append(seat)
        return tuple(self._outline(row, seats.get(row.id, ())) for row in rows)

    def _outline(self, row: sa.Row[Any], seats: Sequence[sa.Row[Any]]) -> MatchRow:
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
            players=tuple(seat.bot for seat in seats),
            result=Result(
                tuple(seat.score for seat in seats),
                tuple(seat.points for seat in seats),
                Termination(kind, row.seat, row.text),
                tuple(seat.seat for seat in seats if seat.also_out),
            ),
            started_at=row.started_at,
            finished_at=row.finished_at,
            digest=row.digest,
            sums=None if row.sums is None else self._sums(row, len(seats)),
            versions=seated_versions(seat.version for seat in seats),
        )

    def _sums(self, row: sa.Row[Any], seats: int) -> MatchSums:
        sums: MatchSums = self._decoded(row.sums, MatchSums, f"the sums of match {row.id}")
        if sums.units is not None:
            lengths = {len(sums.units.sums), len(sums.units.squares)}
            if lengths != {seats} or sums.units.count < 1:
                error = ValueError("they do not fit its seats; `arena luck --all` writes them")
                raise failed(f"read the sums of match {row.id} in", self._where, error)
        return sums

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
    """Build a query for the ids of the matches of one bot, or of two against each other."""
    seat, other = SEATS.alias(), SEATS.alias()
    query = sa.select(seat.c.match).where(seat.c.bot == bots[0])
    if len(bots) == 1:
        return query
    meets = sa.and_(other.c.match == seat.c.match, other.c.seat != seat.c.seat)
    return query.join(other, meets).where(other.c.bot == bots[1])


def document_of(played: MatchRow, record: bytes) -> MatchDocument:
    """Make the document of a match from its row and its stored record."""
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
