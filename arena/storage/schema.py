"""Defines the tables of the database, and opens it if it is empty or an arena's own.

Columns in JSON hold the structs named beside them, as msgspec encodes them. Times are Unix seconds.
Tables of an unknown version are refused. Nullable columns and the tables of submissions were added
later. Opening an older database for writing adds them; until then readers take the column as null
(`has_column`) and the table as empty (`has_submissions`). It also raises the schema's number, as
older arenas cannot read compressed records. Tables that are no longer used, such as `attempts`,
stay.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from arena.storage.lock import Lock, hold
from protocol.errors import UsageError

__all__ = [
    "ACTIONS",
    "COMPETITIONS",
    "INSTRUCTORS",
    "IN_PLAY",
    "MATCHES",
    "META",
    "PROGRAMS",
    "PROGRAM_PARTS",
    "ROSTER",
    "SEATS",
    "STDERR",
    "SUBMISSIONS",
    "SUBMISSION_LOGS",
    "VERDICTS",
    "changing",
    "compressed",
    "has_column",
    "has_submissions",
    "open_database",
    "shown",
]

_APPLICATION = "card-arena"
_SCHEMA = 3  # raised with every change of a table that an older arena could not read
_PLAIN = 2  # the earlier schema, in which all records are plain
_BUSY_S = 30  # another process may be writing to the same file; no commit takes as long
_LOOK_S = 0.05  # between two tries to switch to a write-ahead log
_PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 10_000}  # s, ms: for an unreachable server
_MOST_BYTES = 10**9  # of a record: SQLite cannot store a larger plain one
_MAKING = 0x6D616B65  # "make": the key of PostgreSQL's lock for the making of tables

_TABLES = sa.MetaData()


def compressed(record: bytes) -> bytes:
    """Return a record's bytes as they are stored; queries of the column decompress them."""
    return zlib.compress(record)


class _Compressed(sa.TypeDecorator[bytes]):
    """A column of bytes that are decompressed when they are read.

    Other bytes are returned unchanged: older arenas wrote plain records, and only the reader of a
    damaged record can name its match in the error.
    """

    impl = sa.LargeBinary
    cache_ok = True

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        stream = zlib.decompressobj()
        try:
            plain = stream.decompress(value, _MOST_BYTES)
        except (TypeError, zlib.error):
            return value
        return plain if stream.eof and not stream.unused_data else value


META = sa.Table(
    # The keys: `application`, `schema`; the revisions of the `roster`, of the matches' `sums` and
    # of what is `in play`; the mark of the last `commit`; `contact`; and `arena`, its name on a
    # bus, once it has one.
    "meta",
    _TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

COMPETITIONS = sa.Table(
    "competitions",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("plan", sa.Text, nullable=False),  # JSON: Plan
    sa.Column("game", sa.Text, nullable=False),  # of the plan, like `form`
    sa.Column("form", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # a CompetitionState
    # Grows when a match that counted is taken back: readers then add up all results again.
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("finished_at", sa.Double),
    sa.Column("ranking", sa.Text),  # JSON: list of RankingPlace, empty if there is none
)

MATCHES = sa.Table(
    "matches",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True),  # in the order of writing
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("competition", sa.ForeignKey(COMPETITIONS.c.id), nullable=False),
    sa.Column("pairing", sa.Integer, nullable=False),  # its number in the schedule
    sa.Column("counts", sa.Boolean, nullable=False),  # neither void nor taken back
    sa.Column("game", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # of the termination, like `seat` and `text`
    sa.Column("seat", sa.Integer),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("finished_at", sa.Double, nullable=False),
    sa.Column("record", _Compressed, nullable=False),  # JSON: Record, `compressed`
    sa.Column("digest", sa.Text, nullable=False),  # see arena/records/document.py
    # JSON: MatchSums, which follow from the record and are not under the digest. Null if an older
    # arena wrote the match; `arena luck` adds them.
    sa.Column("sums", sa.Text),
    sa.Index("ix_matches_competition", "competition", "number"),
)

# A pairing never counts twice, whatever goes wrong elsewhere.
_COUNTING = sa.Index(
    "ix_matches_counting",
    MATCHES.c.competition,
    MATCHES.c.pairing,
    unique=True,
    sqlite_where=MATCHES.c.counts,
)

SEATS = sa.Table(
    "seats",
    _TABLES,
    sa.Column("match", sa.ForeignKey(MATCHES.c.id), primary_key=True),
    sa.Column("seat", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("bot", sa.Text, nullable=False, index=True),
    sa.Column("score", sa.BigInteger, nullable=False),
    sa.Column("points", sa.BigInteger, nullable=False),
    # This seat is out together with the offender, as its bot did not come either.
    sa.Column("also_out", sa.Boolean, nullable=False, server_default=sa.false()),
    # As in the record; null for a house bot, and if the arena takes no submissions.
    sa.Column("version", sa.Text),
)

_LATER = (MATCHES.c.sums, SEATS.c.version)  # columns that the oldest databases lack

VERDICTS = sa.Table(
    "verdicts",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("competition", sa.ForeignKey(COMPETITIONS.c.id), nullable=False, index=True),
    sa.Column("match", sa.Text, nullable=False),
    sa.Column("bot", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("evidence", sa.Text, nullable=False),  # JSON: Verdict
)

ACTIONS = sa.Table(
    "actions",  # of instructors, and of the arena itself
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("competition", sa.ForeignKey(COMPETITIONS.c.id), index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("match", sa.Text),
    sa.Column("bot", sa.Text),
    sa.Column("text", sa.Text, nullable=False),
)

ROSTER = sa.Table(
    "roster",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("email", sa.Text),
    sa.Column("team", sa.Text),
    sa.Column("token_hash", sa.Text, nullable=False, unique=True),
    sa.Column("made_at", sa.Double, nullable=False),
    sa.Column("revoked_at", sa.Double),
)

INSTRUCTORS = sa.Table(
    "instructors",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("token_hash", sa.Text, nullable=False, unique=True),
    sa.Column("made_at", sa.Double, nullable=False),
)

PROGRAMS = sa.Table(
    "programs",  # only complete ones
    _TABLES,
    sa.Column("sha256", sa.Text, primary_key=True),  # of the tar, like `size`
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("stored", sa.BigInteger, nullable=False),  # bytes of all its compressed parts
    sa.Column("upload", sa.Text, nullable=False),  # the upload that wrote its parts
    sa.Column("parts", sa.Integer, nullable=False),
)

PROGRAM_PARTS = sa.Table(
    "program_parts",  # without a program during an upload, or if the upload was cut short
    _TABLES,
    sa.Column("upload", sa.Text, primary_key=True),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),  # a part of the tar's zlib stream
)

SUBMISSIONS = sa.Table(
    "submissions",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True),  # in the order of arrival
    # A name on the roster, or one that a roster cannot have (`arena/storage/submissions.py`).
    sa.Column("owner", sa.Text, nullable=False, index=True),
    sa.Column("version", sa.Integer),  # its number among the owner's, once it is accepted
    sa.Column("name", sa.Text, nullable=False),  # of the file that was handed in
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("arrived_at", sa.Double, nullable=False),
    sa.Column("program", sa.ForeignKey(PROGRAMS.c.sha256), nullable=False, index=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # a SubmissionState
    sa.Column("games", sa.Text, nullable=False),  # JSON: list of names
    sa.Column("manifest", sa.Text),  # JSON: ProgramManifest, once it is accepted
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("decided_at", sa.Double),
    sa.Column("disabled_at", sa.Double),
)

IN_PLAY = sa.Table(
    "in_play",
    _TABLES,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("game", sa.Text, primary_key=True),
    sa.Column("submission", sa.ForeignKey(SUBMISSIONS.c.number), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
)

SUBMISSION_LOGS = sa.Table(
    "submission_logs",
    _TABLES,
    sa.Column("submission", sa.ForeignKey(SUBMISSIONS.c.number), primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)

STDERR = sa.Table(
    "stderr",  # of the latest matches of each owner
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True),  # in the order of writing
    sa.Column("owner", sa.Text, nullable=False, index=True),
    sa.Column("submission", sa.ForeignKey(SUBMISSIONS.c.number), nullable=False, index=True),
    sa.Column("match", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)


def open_database(
    where: str | Path, *, create: bool, exclusive: bool = False
) -> tuple[sa.Engine, Lock | None]:
    """Open an arena's database; return its engine and, if `exclusive`, its lock.

    `where` is a file for SQLite, or `postgresql+psycopg://…`. `create` makes a missing file and
    missing tables, and checks that the database can be written. Raises UsageError if the database
    cannot be opened, holds something other than an arena of this version, or another arena runs on
    it; nothing is changed then.
    """
    name = "at that address"
    engine = lock = None
    try:
        url = _url(where)
        name = shown(url)
        if url.get_backend_name() == "sqlite":
            _check_file(name, create=create)
        engine = _engine(url, create=create)
        with engine.connect() as connection:
            is_empty = _is_empty(connection, name)
        if is_empty and not create:
            raise UsageError(f"expected an arena's database, {name} is empty")
        if exclusive:
            lock = hold(engine, name)
        if create:
            _prepare(engine, name, is_empty=is_empty)
    except (SQLAlchemyError, ImportError, OSError, UsageError) as error:
        if lock is not None:
            lock.release()
        if engine is not None:
            engine.dispose()
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"cannot open the database {name}: {_why(error, Path(name))}") from error
    return engine, lock


def changing(
    engine: sa.Engine, busy_s: float | None = None
) -> AbstractContextManager[sa.Connection]:
    """Return a transaction that takes SQLite's write lock at once: after a read it could not wait.

    It waits for the lock at most `busy_s` seconds, 30 if None.
    """
    return engine.execution_options(writes=True, busy_s=busy_s).begin()


def has_column(connection: sa.Connection, column: sa.Column[Any]) -> bool:
    """Return whether the database has a column that the first databases of this schema lack."""
    columns = sa.inspect(connection).get_columns(column.table.name)
    return any(other["name"] == column.name for other in columns)


def has_submissions(connection: sa.Connection) -> bool:
    """Return whether the submission tables exist; older databases of this schema lack them."""
    return sa.inspect(connection).has_table(SUBMISSIONS.name)


def shown(url: sa.URL) -> str:
    """Return a database's name for messages: its file, or its address without the password."""
    if url.get_backend_name() == "sqlite":
        return url.database or ""
    secrets = [key for key in url.query if "password" in key]
    return url.difference_update_query(secrets).render_as_string(hide_password=True)


def _url(where: str | Path) -> sa.URL:
    if not isinstance(where, str) or "://" not in where:
        return sa.URL.create("sqlite", database=str(where))
    url = sa.make_url(where)
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise UsageError(
            f"expected a file or postgresql+psycopg://… for the database, got {shown(url)}"
        )
    return url


def _check_file(file: str, *, create: bool) -> None:
    if file in ("", ":memory:"):
        raise UsageError("expected a file for the database, got memory alone")
    if not create and not Path(file).is_file():
        raise UsageError(f"expected an arena's database, found no file {file}")


def _engine(url: sa.URL, *, create: bool) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        # Set here and not at the index: this imports the dialect, a tenth of an arena's start-up.
        _COUNTING.dialect_options["postgresql"]["where"] = MATCHES.c.counts
        # A server may have been restarted since the last query.
        limits = {name: limit for name, limit in _PATIENCE.items() if name not in url.query}
        return sa.create_engine(url, pool_pre_ping=True, connect_args=limits)
    file = Path(url.database or "")
    if create or _can_write(file.parent) or file.with_name(file.name + "-wal").exists():
        engine = sa.create_engine(url)
    else:
        # On a read-only disk SQLite cannot put its own files beside the database, and opens it
        # only when told that nobody changes it.
        fixed = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
        engine = sa.create_engine(
            url, creator=lambda: sqlite3.connect(fixed, uri=True, check_same_thread=False)
        )
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _can_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _set_up_sqlite(connection: Any, _: object) -> None:
    # The driver begins no transaction for reading or for making tables; `_begin_sqlite` does.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_S * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")
    # A commit is on the disk when it returns, and survives a power cut.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("writes"):
        connection.exec_driver_sql("BEGIN")
        return
    given = options.get("busy_s")
    busy_s = _BUSY_S if given is None else given
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(busy_s * 1000)}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _is_empty(connection: sa.Connection, name: str) -> bool:
    """Return whether there are no tables; UsageError if they are not an arena's of this version."""
    if connection.dialect.name == "postgresql":
        coding = connection.exec_driver_sql("SHOW server_encoding").scalar()
        if coding != "UTF8":
            raise UsageError(f"expected a database in UTF8, {name} has {coding}")
    names = sa.inspect(connection).get_table_names()
    if not names:
        return True
    foreign = UsageError(
        f"expected an arena's database, {name} has other tables: {', '.join(sorted(names)[:3])}"
    )
    if META.name not in names:
        raise foreign
    try:
        rows = connection.execute(sa.select(META.c.key, META.c.value))
        meta = {str(row.key): str(row.value) for row in rows}
    except SQLAlchemyError:
        raise foreign from None
    schema = meta.get("schema", "")
    if meta.get("application") != _APPLICATION or not schema.isdecimal():
        raise foreign
    if int(schema) not in (_PLAIN, _SCHEMA):
        age = "a newer" if int(schema) > _SCHEMA else "an older"
        raise UsageError(
            f"expected a database of schema {_SCHEMA}, {name} has {schema}: "
            f"open it with {age} Card Arena, or begin another"
        )
    return False


def _prepare(engine: sa.Engine, name: str, *, is_empty: bool) -> None:
    """Make the tables if there are none, and check that the database can be written."""
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    if is_empty:
        _make(engine, name)
        return
    with changing(engine) as connection:
        # If the database cannot be written, fail now and not after the first match.
        now = str(_SCHEMA)
        is_before = META.c.key == "schema", META.c.value != now
        connection.execute(META.update().where(*is_before).values(value=now))
    with engine.connect() as connection:
        is_complete = has_submissions(connection) and not _missing(connection)
    if not is_complete:
        _add_later(engine)


def _write_ahead(engine: sa.Engine) -> None:
    """Switch SQLite to a write-ahead log, which two processes cannot do at the same time."""
    until = time.monotonic() + _BUSY_S
    while True:
        driver = engine.raw_connection()
        try:
            driver.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait here for the other process, unlike for other locks.
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        finally:
            driver.close()
        time.sleep(_LOOK_S)


def _missing(connection: sa.Connection) -> list[sa.Column[Any]]:
    return [column for column in _LATER if not has_column(connection, column)]


def _add_later(engine: sa.Engine) -> None:
    """Add the later columns and tables, unless another process has added them meanwhile."""
    with changing(engine) as connection:
        _lock_making(connection)
        for column in _missing(connection):
            connection.exec_driver_sql(
                f"ALTER TABLE {column.table.name} ADD COLUMN {column.name} TEXT"
            )
            if column is MATCHES.c.sums:
                connection.execute(META.delete().where(META.c.key == "sums"))
                connection.execute(META.insert(), {"key": "sums", "value": ""})
        had_submissions = has_submissions(connection)
        _TABLES.create_all(connection)  # only the missing ones
        if not had_submissions:
            connection.execute(META.insert(), {"key": "in play", "value": "0"})


def _lock_making(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))


def _make(engine: sa.Engine, name: str) -> None:
    with changing(engine) as connection:
        _lock_making(connection)
        if not _is_empty(connection, name):
            return  # another process has made the tables meanwhile
        _TABLES.create_all(connection)
        meta = {"application": _APPLICATION, "schema": str(_SCHEMA), "roster": "0", "sums": ""}
        meta |= {"in play": "0", "commit": ""}
        rows = [{"key": key, "value": value} for key, value in meta.items()]
        connection.execute(META.insert(), rows)


def _why(error: Exception, file: Path) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: pip install 'card-arena[postgres]'"
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    if reason != "unable to open database file" or file.is_dir():
        return reason  # SQLite gives no reason otherwise
    folder = file.absolute().parent
    if not folder.is_dir():
        return f"there is no directory {folder}"
    return reason if _can_write(folder) else f"the directory {folder} cannot be written"
