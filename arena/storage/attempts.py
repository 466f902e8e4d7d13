"""The attempts of workers at matches, which the arena writes down before one may begin.

Only the result of an attempt that is here counts. An attempt has its own row, and is never deleted:
with the matches of the same ids it tells what became of each. Attempts are written by the store's
thread, so that those that are announced at the same time share one commit.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.records.document import stored_text
from arena.storage.schema import ATTEMPTS, MATCHES, META, has_attempts, shown
from arena.storage.writer import Writer, failed, reading, writing
from protocol.errors import UsageError
from protocol.vocabulary import shorten

__all__ = ["ATTEMPT_ID", "ATTEMPT_STATEMENTS", "AttemptRow", "AttemptState", "Attempts"]

ATTEMPT_ID = re.compile(r"[A-Za-z0-9_-]{8,80}")
"""What a worker may call an attempt, as it names a match: in addresses, files and subjects."""

_ARENA = "arena"  # of the table `meta`

_NEW = [column for column in ATTEMPTS.c if column.name != "number"]
_PREFIX = "new "  # of the insert's values; SQLAlchemy keeps the names of columns for itself
_ID = sa.bindparam(_PREFIX + "id", type_=sa.Text)
# A worker chooses the id: one that is taken inserts nothing, as a failed insert ends the arena.
_IS_TAKEN = sa.or_(
    sa.exists().where(ATTEMPTS.c.id == _ID).correlate(None),
    sa.exists().where(MATCHES.c.id == _ID).correlate(None),
)

ATTEMPT_STATEMENTS: dict[str, sa.Insert | sa.Update] = {
    "attempt": ATTEMPTS.insert().from_select(
        [column.name for column in _NEW],
        sa.select(
            *(sa.bindparam(_PREFIX + column.name, type_=column.type) for column in _NEW)
        ).where(~_IS_TAKEN),
    ),
    # Void is for good: a result that comes then is refused.
    "attempt ended": ATTEMPTS.update()
    .where(ATTEMPTS.c.id == sa.bindparam("which"), ATTEMPTS.c.state != "void")
    .values(state=sa.bindparam("ended"), why=sa.bindparam("reason")),
}
"""What the store's writer executes for attempts."""


class AttemptState(StrEnum):
    """What the arena knows of an attempt, beside whether it has a match of its id."""

    OPEN = "open"  # it was announced; it may have a result
    LOST = "lost"  # nobody has heard of it for a while; a result still counts if it is the first
    VOID = "void"  # a result is refused


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a worker at a match; `message` is the `MatchJob`, in msgpack."""

    id: str  # of its match
    job: str
    competition: str  # empty if of none
    pairing: int
    players: tuple[str, ...]  # by seat
    worker: str
    commitment: str  # to the seed that the worker has drawn
    announced_at: float  # in Unix seconds
    message: bytes
    state: AttemptState = AttemptState.OPEN
    why: str = ""  # it is lost or void


class Attempts:
    """Reads and writes the attempts in an arena's database; `Store.attempts` is one.

    Methods that read block, and are called from a thread (`asyncio.to_thread`). All raise
    StoreFailed if the database cannot be read or written.
    """

    def __init__(self, engine: sa.Engine, writer: Writer) -> None:
        self._engine = engine
        self._writer = writer
        self._where = shown(engine.url)
        self._has_table = False

    async def announce(self, row: AttemptRow) -> None:
        """Write an attempt, which survives a power cut when this returns; again, it does nothing.

        A coroutine: attempts that are announced while another commit runs share the next one.
        Raises UsageError if its id is none, or that of another attempt or of a match.
        """
        if ATTEMPT_ID.fullmatch(row.id) is None or "\0" in row.worker + row.commitment:
            raise UsageError(
                f"expected an id of 8 to 80 letters, digits, - and _, got {shorten(row.id)}"
            )
        self._writer.put((("attempt", _values(row)),))
        await asyncio.wrap_future(self._writer.barrier())
        written = await asyncio.to_thread(self.get, row.id)
        if written is None:
            raise UsageError(f"expected a fresh id for an attempt, {row.id} is a match")
        if _announced(written) != _announced(row):
            raise UsageError(f"expected a fresh id for an attempt, {row.id} is another one")

    def ended(self, attempt: str, state: AttemptState, why: str) -> None:
        """Write that an attempt is lost or void; one that is void stays as it is.

        It returns at once, and is written before every match that is written later.
        """
        row = {"which": attempt, "ended": state.value, "reason": stored_text(why)}
        self._writer.put((("attempt ended", row),))

    async def flushed(self) -> None:
        """Wait until all that was written so far is durable, matches too."""
        await asyncio.wrap_future(self._writer.barrier())

    def get(self, attempt: str) -> AttemptRow | None:
        for row in self._read(_SELECT.where(ATTEMPTS.c.id == attempt)):
            return row
        return None

    def of(self, competition: str) -> tuple[AttemptRow, ...]:
        """All attempts at matches of a competition, in the order of announcing."""
        query = _SELECT.where(ATTEMPTS.c.competition == competition)
        return self._read(query.order_by(ATTEMPTS.c.number))

    def workers(self, competition: str) -> dict[str, str]:
        """By the ids of attempts at matches of a competition, whose they are."""
        table = ATTEMPTS.c
        query = sa.select(table.id, table.worker).where(table.competition == competition)
        with reading(self._engine) as connection:
            if not self._is_there(connection):
                return {}
            return {row.id: row.worker for row in connection.execute(query)}

    def open_of(self, competition: str) -> tuple[AttemptRow, ...]:
        """The attempts that may still have the result of their pairing, in their order.

        Open or lost, without a match of that id, and their pairing has none that counts.
        """
        of_pairing = sa.exists().where(
            MATCHES.c.competition == ATTEMPTS.c.competition,
            MATCHES.c.pairing == ATTEMPTS.c.pairing,
            MATCHES.c.counts,
        )
        query = _SELECT.where(
            ATTEMPTS.c.competition == competition,
            ATTEMPTS.c.state != AttemptState.VOID.value,
            ~sa.exists().where(MATCHES.c.id == ATTEMPTS.c.id),
            ~of_pairing,
        )
        return self._read(query.order_by(ATTEMPTS.c.number))

    def without_result(
        self, competition: str | None = None, most: int = 100
    ) -> tuple[AttemptRow, ...]:
        """The attempts, lost or void, that no match that counts has come of, the latest first."""
        query = _SELECT.where(
            ATTEMPTS.c.state != AttemptState.OPEN.value,
            ~sa.exists().where(MATCHES.c.id == ATTEMPTS.c.id, MATCHES.c.counts),
        )
        if competition is not None:
            query = query.where(ATTEMPTS.c.competition == competition)
        return self._read(query.order_by(ATTEMPTS.c.number.desc()).limit(most))

    def is_recorded(self, attempt: str) -> bool:
        """Whether a match of that id is written, void or not."""
        with reading(self._engine) as connection:
            query = sa.select(MATCHES.c.number).where(MATCHES.c.id == attempt)
            return connection.execute(query).first() is not None

    def arena_id(self) -> str:
        """The arena's name on a bus, which is this database's for good; the first call makes it."""
        query = sa.select(META.c.value).where(META.c.key == _ARENA)
        with writing(self._engine) as connection:
            name: str | None = connection.execute(query).scalar()
            if name is None:
                name = secrets.token_hex(8)
                connection.execute(META.insert(), {"key": _ARENA, "value": name})
            return name

    def _read(self, query: sa.Select[Any]) -> tuple[AttemptRow, ...]:
        with reading(self._engine) as connection:
            if not self._is_there(connection):
                return ()
            rows: Sequence[sa.RowMapping] = connection.execute(query).mappings().all()
        return tuple(self._row(row) for row in rows)

    def _is_there(self, connection: sa.Connection) -> bool:
        """Whether the database has the table; to look takes as long as to read an attempt."""
        self._has_table = self._has_table or has_attempts(connection)
        return self._has_table

    def _row(self, row: sa.RowMapping) -> AttemptRow:
        fields = {name: row[name] for name in AttemptRow.__struct_fields__}
        try:
            fields["players"] = msgspec.json.decode(row["players"])
            return msgspec.convert(fields, AttemptRow)
        except msgspec.MsgspecError as error:
            raise failed(f"read attempt {row['id']} in", self._where, error) from error


_SELECT = sa.select(*(ATTEMPTS.c[name] for name in AttemptRow.__struct_fields__))


def _values(row: AttemptRow) -> dict[str, Any]:
    values = msgspec.structs.asdict(row) | {
        "players": msgspec.json.encode(row.players).decode(),
        "announced_at": float(row.announced_at),
        "state": row.state.value,
        "why": stored_text(row.why),
    }
    return {_PREFIX + name: value for name, value in values.items()}


def _announced(row: AttemptRow) -> tuple[str, str, str]:
    return row.job, row.worker, row.commitment
