"""The database, which is the only truth: competitions, matches with their records, eliminations, what instructors did (design §6).

Writing returns at once and is done by one thread (`arena/writer.py`), all rows of a match in one transaction: nobody waits for
a disk, the event loop neither, and what was put in before a `flush` returned survives a power cut. Readers, in this process
or in another, see whole transactions and hold nobody up (SQLite's WAL). The store reads no clock: times are Unix seconds and
come in as arguments.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from arena.database import (
    ACTIONS,
    COMPETITIONS,
    MATCHES,
    SEATS,
    VERDICTS,
    open_database,
    shown,
)
from arena.games import game_named
from arena.match import MatchResult, Record, Result
from arena.plan import Plan
from arena.schedule import Placed
from arena.seal import sealed
from arena.writer import Row, Rows, Writer, failed
from protocol.errors import UsageError
from protocol.messages import Ending, Termination, Verdict

__all__ = ["Act", "Competition", "Played", "State", "Store", "new_id"]

_STATEMENTS: dict[str, sa.Insert | sa.Update] = {
    "competition": COMPETITIONS.insert(),
    "match": MATCHES.insert(),
    "seat": SEATS.insert(),
    "verdict": VERDICTS.insert(),
    "act": ACTIONS.insert(),
    "state": COMPETITIONS.update().where(COMPETITIONS.c.id == sa.bindparam("which")),
    "revision": COMPETITIONS.update()
    .where(COMPETITIONS.c.id == sa.bindparam("which"))
    .values(revision=COMPETITIONS.c.revision + 1),
    "back": MATCHES.update()
    .where(MATCHES.c.id == sa.bindparam("which"))
    .values(counts=False),
}
"""What the store writes; rows before those that refer to them."""

_BATCH = 100  # records in memory at once, for whoever reads them all

_OUTLINE = [column for column in MATCHES.c if column.name != "record"]


class State(StrEnum):
    """How a competition stands; one that is `stopped` was ended by the instructor, or by an arena that could not go on."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"


class Competition(msgspec.Struct, frozen=True, kw_only=True):
    """A competition as it was set up, and how it stands.

    Attributes:
        id: its own in this database.
        plan: what is to be played.
        state: whether it goes on.
        revision: goes up when a match that counted does so no longer; whoever adds up results then begins anew.
        started_at: when it was begun.
        finished_at: when it ended, if it has.
        ranking: of an elimination that has ended.
    """

    id: str
    plan: Plan
    state: State
    revision: int
    started_at: float
    finished_at: float | None
    ranking: tuple[Placed, ...]


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is over, without its record.

    Attributes:
        number: goes up in the order of writing.
        id: its own in this database.
        competition: the id of that.
        pairing: its number in the competition's schedule.
        counts: whether it is neither void nor taken back.
        game: its name.
        players: the bots' names by seat.
        result: its scores, points and termination.
        started_at: when the seats were invited.
        finished_at: when the result was known.
        digest: what `arena/seal.py` made of all that when it was written.
    """

    number: int
    id: str
    competition: str
    pairing: int
    counts: bool
    game: str
    players: tuple[str, ...]
    result: Result
    started_at: float
    finished_at: float
    digest: str


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did to a competition, or to the arena.

    Attributes:
        competition: its id, if it was one.
        at: when.
        who: the instructor's name, or `arena`.
        what: in a word: start, pause, resume, stop, void, remove, flag.
        match: the match's id, if it was one.
        bot: the bot's name, if it was one.
        text: what came of it, for people.
    """

    competition: str | None = None
    at: float
    who: str
    what: str
    match: str | None = None
    bot: str | None = None
    text: str = ""


def new_id(game: str) -> str:
    """An id for a new competition: `akq-3f2a1c9e`."""
    return f"{game_named(game).vocabulary.alias}-{secrets.token_hex(4)}"


class Store:
    """The database of an arena.

    Args:
        where: a file for SQLite, or `postgresql+psycopg://…`.
        create: make what is not there yet, and see to it that it can be written; False to look at what an arena has written.
        exclusive: be the arena that runs on it, until it is closed: no other can be at the same time.

    Raises:
        UsageError: it cannot be opened, holds something else than an arena of this version or an older one, or
            another arena runs on it; nothing has changed.
    """

    def __init__(
        self, where: str | Path, *, create: bool = True, exclusive: bool = False
    ) -> None:
        self._engine, self._lock = open_database(
            where, create=create, exclusive=exclusive
        )
        self._where = shown(self._engine.url)
        self._writer = Writer(self._engine, _STATEMENTS, self._where, self._lock)

    @property
    def engine(self) -> sa.Engine:
        """The database itself, for the tables that are not about competitions; to write there use `database.changing`."""
        return self._engine

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
        self, competition: str, plan: Plan, started_at: float
    ) -> None:
        """Note a new competition, which is running from now on.

        Args:
            competition: an id that no other in this database has, as `new_id` makes one.
            plan: what is to be played.
            started_at: when it was begun.
        """
        row = {
            "id": competition,
            "plan": _json(plan),
            "game": plan.game,
            "form": plan.form.value,
            "state": State.RUNNING.value,
            "revision": 0,
            "started_at": float(started_at),
        }
        self._writer.put((("competition", row),))

    def match_finished(
        self,
        competition: str,
        pairing: int,
        match: str,
        players: Sequence[str],
        result: MatchResult,
        started_at: float,
        finished_at: float,
        verdict: Verdict | None = None,
    ) -> None:
        """Note a match that is over or void, in one transaction with the evidence if it ended by an offence.

        It counts unless it is void. Two that count for one pairing are a failure.

        Args:
            competition: its id.
            pairing: its number in the competition's schedule.
            match: an id that no other match in this database has.
            players: the bots' names by seat.
            result: the result and the record.
            started_at: when the seats were invited.
            finished_at: when the result was known.
            verdict: the evidence, if there is any (J4).
        """
        ended = result.termination
        played = Played(
            number=0,
            id=match,
            competition=competition,
            pairing=pairing,
            counts=ended.kind is not Ending.VOID,
            game=result.record.game,
            players=tuple(players),
            result=Result(
                result.scores,
                result.points,
                Termination(ended.kind, ended.seat, _text(ended.text)),
            ),
            started_at=float(started_at),
            finished_at=float(finished_at),
            digest="",
        )

        # A long record takes a while: in the writer's thread, so that the event loop goes on.
        def rows() -> Rows:
            return (*_match(played, result.record.to_json()), *evidence)

        evidence: Rows = ()
        if verdict is not None:
            evidence = (_ruling(competition, verdict, finished_at),)
        self._writer.put(rows)

    def acted(self, act: Act) -> None:
        """Note what somebody did."""
        self._writer.put((_act(act),))

    def state_changed(self, competition: str, state: State, act: Act) -> None:
        """Note that a competition is paused or goes on, by whom; one that had ended has not any more."""
        assert state in (State.RUNNING, State.PAUSED), (
            "others end: competition_finished"
        )
        row = {
            "which": competition,
            "state": state.value,
            "finished_at": None,
            "ranking": None,
        }
        self._writer.put((("state", row), _act(act)))

    def taken_back(self, competition: str, match: str, act: Act) -> None:
        """Note that a match does not count any more, and by whom."""
        which = {"which": competition}
        self._writer.put((("back", {"which": match}), ("revision", which), _act(act)))

    def competition_finished(
        self,
        competition: str,
        finished_at: float,
        ranking: Sequence[Placed] = (),
        state: State = State.FINISHED,
        act: Act | None = None,
    ) -> None:
        """Note the end of a competition, of an elimination with its ranking, and who stopped it if somebody did."""
        row = {
            "which": competition,
            "state": state.value,
            "finished_at": float(finished_at),
            "ranking": _json(ranking),
        }
        self._writer.put((("state", row), *(() if act is None else (_act(act),))))

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
            if self._lock is not None:
                self._lock.release()
            self._engine.dispose()

    # --- reading: in the calling thread; from a coroutine use asyncio.to_thread ---

    def competitions(self) -> tuple[Competition, ...]:
        """All competitions, in the order in which they started."""
        table = COMPETITIONS.c
        query = sa.select(COMPETITIONS).order_by(table.started_at, table.id)
        return tuple(self._competition(row) for row in self._read(query))

    def competition(self, competition: str) -> Competition:
        """A competition as it stands.

        Raises:
            UsageError: there is none with that id.
        """
        query = sa.select(COMPETITIONS).where(COMPETITIONS.c.id == competition)
        for row in self._read(query):
            return self._competition(row)
        raise UsageError(
            f"expected the id of a competition in {self._where}, got {competition!r}"
        )

    def find(self, text: str) -> Competition:
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

    def results(self, competition: str, after: int = 0) -> tuple[Played, ...]:
        """The matches of a competition that count, in the order of writing.

        Args:
            competition: its id.
            after: only those with a greater `number`, for whoever has read up to there.
        """
        return self._played(
            MATCHES.c.competition == competition,
            MATCHES.c.counts,
            MATCHES.c.number > after,
        )

    def matches(self, competition: str) -> tuple[Played, ...]:
        """The matches of a competition, void ones and those that were taken back too, in the order of writing."""
        return self._played(MATCHES.c.competition == competition)

    def played(self, match: str) -> Played:
        """What came of a match.

        Raises:
            UsageError: there is no such match.
        """
        for played in self._played(MATCHES.c.id == match):
            return played
        raise self._no_match(match)

    def record(self, match: str) -> Record:
        """The record of a match, to be replayed.

        Raises:
            UsageError: there is no such match.
        """
        for row in self._read(sa.select(MATCHES.c.record).where(MATCHES.c.id == match)):
            try:
                return Record.from_json(row.record)
            except (msgspec.DecodeError, TypeError) as error:
                raise failed(f"read match {match} in", self._where, error) from error
        raise self._no_match(match)

    def sealed_matches(
        self, competition: str | None = None
    ) -> Iterator[tuple[Played, bytes]]:
        """All matches of a competition, or of all, each with its record as it is stored, in the order of writing.

        A few at a time are in memory, and what is written meanwhile comes, too.
        """
        number = 0
        while True:
            where = [MATCHES.c.number > number]
            if competition is not None:
                where.append(MATCHES.c.competition == competition)
            query = (
                sa.select(MATCHES)
                .where(*where)
                .order_by(MATCHES.c.number)
                .limit(_BATCH)
            )
            rows = self._read(query)
            if not rows:
                return
            number = rows[-1].number
            for row, played in zip(rows, self._with_seats(rows), strict=True):
                yield played, row.record

    def verdicts(self, competition: str | None = None) -> tuple[Verdict, ...]:
        """The eliminations of a competition, or of all, in the order in which they were put in."""
        query = sa.select(VERDICTS.c.evidence).order_by(VERDICTS.c.number)
        if competition is not None:
            query = query.where(VERDICTS.c.competition == competition)
        return tuple(
            self._decoded(row.evidence, Verdict, "a verdict")
            for row in self._read(query)
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
        try:
            with self._engine.connect() as connection:
                return connection.execute(query).all()
        except SQLAlchemyError as error:
            raise failed("read", self._where, error) from error

    def _played(self, *where: sa.ColumnElement[bool]) -> tuple[Played, ...]:
        query = sa.select(*_OUTLINE).where(*where).order_by(MATCHES.c.number)
        return self._with_seats(self._read(query))

    def _with_seats(self, rows: Sequence[sa.Row[Any]]) -> tuple[Played, ...]:
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
        chairs: dict[str, list[sa.Row[Any]]] = {}
        for chair in self._read(query):
            chairs.setdefault(chair.match, []).append(chair)
        return tuple(self._outline(row, chairs.get(row.id, ())) for row in rows)

    def _outline(self, row: sa.Row[Any], chairs: Sequence[sa.Row[Any]]) -> Played:
        try:
            kind = Ending(row.kind)
        except ValueError as error:
            raise failed(f"read match {row.id} in", self._where, error) from error
        return Played(
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
            ),
            started_at=row.started_at,
            finished_at=row.finished_at,
            digest=row.digest,
        )

    def _competition(self, row: sa.Row[Any]) -> Competition:
        what = f"competition {row.id}"
        try:
            state = State(row.state)
        except ValueError as error:
            raise failed(f"read {what} in", self._where, error) from error
        return Competition(
            id=row.id,
            plan=self._decoded(row.plan, Plan, what),
            state=state,
            revision=row.revision,
            started_at=row.started_at,
            finished_at=row.finished_at,
            ranking=self._decoded(row.ranking or "[]", tuple[Placed, ...], what),
        )

    def _decoded(self, text: str, type_: Any, what: str) -> Any:
        try:
            return msgspec.json.decode(text, type=type_)
        except msgspec.DecodeError as error:
            raise failed(f"read {what} in", self._where, error) from error

    def _no_match(self, match: str) -> UsageError:
        return UsageError(f"expected the id of a match in {self._where}, got {match!r}")


def _match(played: Played, record: bytes) -> list[Row]:
    """The rows of a match, sealed."""
    result = played.result
    ended = result.termination
    row = {
        "id": played.id,
        "competition": played.competition,
        "pairing": played.pairing,
        "counts": played.counts,
        "game": played.game,
        "kind": ended.kind.value,
        "seat": ended.seat,
        "text": ended.text,
        "started_at": played.started_at,
        "finished_at": played.finished_at,
        "record": record,
        "digest": sealed(
            match=played.id,
            competition=played.competition,
            pairing=played.pairing,
            players=played.players,
            result=result,
            started_at=played.started_at,
            finished_at=played.finished_at,
            record=record,
        ),
    }
    rows: list[Row] = [("match", row)]
    by_seat = zip(played.players, result.scores, result.points, strict=True)
    for seat, (bot, score, points) in enumerate(by_seat):
        chair = {"seat": seat, "bot": bot, "score": score, "points": points}
        rows.append(("seat", {"match": played.id, **chair}))
    return rows


def _ruling(competition: str, verdict: Verdict, at: float) -> Row:
    row = {
        "competition": competition,
        "match": verdict.match,
        "bot": verdict.bot,
        "kind": verdict.kind.value,
        "text": _text(verdict.text),
        "at": float(at),
        "evidence": _json(verdict),
    }
    return "verdict", row


def _act(act: Act) -> Row:
    row = msgspec.structs.asdict(act)
    return "act", row | {"at": float(act.at), "text": _text(act.text)}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _text(text: str) -> str:
    """What any database takes: PostgreSQL's texts hold no NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
