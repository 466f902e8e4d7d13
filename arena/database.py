"""The tables of the database, and how one is opened: only an empty one or an arena's own is ever touched.

Texts in JSON are what msgspec makes of the structs named beside them. Times are Unix seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from protocol.errors import UsageError

__all__ = ["COMPETITIONS", "MATCHES", "SEATS", "VERDICTS", "open_database", "shown"]

_APPLICATION = "card-arena"
_SCHEMA = "1"  # raised with every change of a table
_BUSY_S = 30  # another arena may be writing to the same file; no commit takes as long

_TABLES = sa.MetaData()

_META = sa.Table(
    "meta",
    _TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

COMPETITIONS = sa.Table(
    "competitions",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("game", sa.Text, nullable=False),
    sa.Column("form", sa.Text, nullable=False),
    sa.Column("settings", sa.Text, nullable=False),  # JSON: a map
    sa.Column("players", sa.Text, nullable=False),  # JSON: names in order of entry
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("finished_at", sa.Double),
    sa.Column("ranking", sa.Text),  # JSON: list of schedule.Placed, empty if none
)

MATCHES = sa.Table(
    "matches",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True),  # in the order of writing
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column(
        "competition", sa.ForeignKey(COMPETITIONS.c.id), nullable=False, index=True
    ),
    sa.Column("game", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # of the termination, as are
    sa.Column("seat", sa.Integer),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("finished_at", sa.Double, nullable=False),
    sa.Column("record", sa.LargeBinary, nullable=False),  # JSON: match.Record
)

SEATS = sa.Table(
    "seats",
    _TABLES,
    sa.Column("match", sa.ForeignKey(MATCHES.c.id), primary_key=True),
    sa.Column("seat", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("bot", sa.Text, nullable=False, index=True),
    sa.Column("score", sa.BigInteger, nullable=False),
    sa.Column("points", sa.BigInteger, nullable=False),
)

VERDICTS = sa.Table(
    "verdicts",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column(
        "competition", sa.ForeignKey(COMPETITIONS.c.id), nullable=False, index=True
    ),
    sa.Column("match", sa.Text, nullable=False),
    sa.Column("bot", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("evidence", sa.Text, nullable=False),  # JSON: verdict.Verdict
)


def open_database(where: str | Path, *, create: bool) -> sa.Engine:
    """An engine on an arena's database; an empty or missing one is made an arena's if `create` says so.

    Raises:
        UsageError: it cannot be opened, or holds something else than an arena of this version; nothing has changed.
    """
    name = "at that address"
    engine = None
    try:
        url = _url(where)
        name = shown(url)
        if url.get_backend_name() == "sqlite":
            _check_file(name, create=create)
        engine = sa.create_engine(url)
        if engine.dialect.name == "sqlite":
            sa.event.listen(engine, "connect", _set_up_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
        _prepare(engine, name, create=create)
    except (SQLAlchemyError, ImportError, UsageError) as error:
        if engine is not None:
            engine.dispose()
        if isinstance(error, UsageError):
            raise
        reason = getattr(error, "orig", None) or error
        raise UsageError(f"cannot open the database {name}: {reason}") from error
    return engine


def shown(url: sa.URL) -> str:
    """A database's name for messages: its file, or its address without the password."""
    if url.get_backend_name() == "sqlite":
        return url.database or ""
    return url.render_as_string(hide_password=True)


def _url(where: str | Path) -> sa.URL:
    if isinstance(where, str) and "://" in where:
        return sa.make_url(where)
    return sa.URL.create("sqlite", database=str(where))


def _check_file(file: str, *, create: bool) -> None:
    if file in ("", ":memory:"):
        raise UsageError("expected a file for the database, got memory alone")
    if not create and not Path(file).is_file():
        raise UsageError(f"expected an arena's database, found no file {file}")


def _set_up_sqlite(connection: Any, _: object) -> None:
    """Transactions are begun by `_begin_sqlite`, as the driver begins none for reading or for making tables."""
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_S * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")
    # A commit is on the disk when it returns, even if the power fails then.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _prepare(engine: sa.Engine, name: str, *, create: bool) -> None:
    """Look before anything is written, then make what is missing."""
    with engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        if names:
            _check_meta(connection, names, name)
        elif not create:
            raise UsageError(f"expected an arena's database, {name} is empty")
    if engine.dialect.name == "sqlite":
        driver = engine.raw_connection()
        try:
            driver.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            driver.close()
    if not names:
        with engine.begin() as connection:
            _TABLES.create_all(connection)
            connection.execute(
                _META.insert(),
                [
                    {"key": "application", "value": _APPLICATION},
                    {"key": "schema", "value": _SCHEMA},
                ],
            )


def _check_meta(connection: sa.Connection, names: list[str], name: str) -> None:
    """Refuse what is not ours to touch."""
    foreign = UsageError(
        f"expected an arena's database, {name} has other tables: {', '.join(sorted(names)[:3])}"
    )
    if _META.name not in names:
        raise foreign
    try:
        rows = connection.execute(sa.select(_META.c.key, _META.c.value))
        meta = {str(row.key): row.value for row in rows}
    except SQLAlchemyError:
        raise foreign from None
    if meta.get("application") != _APPLICATION:
        raise foreign
    if meta.get("schema") != _SCHEMA:
        raise UsageError(
            f"expected a database of schema {_SCHEMA}, {name} has {meta.get('schema')}: it needs another version of Card Arena"
        )
