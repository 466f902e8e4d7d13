"""Brings the tables of an older arena up to date, in the transaction of whoever calls: what goes wrong undoes all of it.

Schema 1 (before competitions could be gone on with) knew a competition by its game, form, settings and players. What had not ended
then is stopped. Matches keep their records byte by byte, and get the seals of today. The old tables stand here as they were,
apart from those of today, which may change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.engine.match import Result
from arena.formats.spec import Form, Plan
from arena.records.digest import sealed
from protocol.messages import Ending, Termination

__all__ = ["migrate"]

_BATCH = 200  # matches in memory at once
_ASIDE = "_1"  # what old tables are called while they are read

_OLD = sa.MetaData()

_COMPETITIONS = sa.Table(
    "competitions",
    _OLD,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("game", sa.Text),
    sa.Column("form", sa.Text),
    sa.Column("settings", sa.Text),  # JSON: a map
    sa.Column("players", sa.Text),  # JSON: names in order of entry
    sa.Column("started_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("ranking", sa.Text),
)

_MATCHES = sa.Table(
    "matches",
    _OLD,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.Text),
    sa.Column("competition", sa.Text, index=True),
    sa.Column("game", sa.Text),
    sa.Column("kind", sa.Text),
    sa.Column("seat", sa.Integer),
    sa.Column("text", sa.Text),
    sa.Column("started_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("record", sa.LargeBinary),
)

_SEATS = sa.Table(
    "seats",
    _OLD,
    sa.Column("match", sa.Text),
    sa.Column("seat", sa.Integer),
    sa.Column("bot", sa.Text, index=True),
    sa.Column("score", sa.BigInteger),
    sa.Column("points", sa.BigInteger),
)

_VERDICTS = sa.Table(
    "verdicts",
    _OLD,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("competition", sa.Text, index=True),
    sa.Column("match", sa.Text),
    sa.Column("bot", sa.Text),
    sa.Column("kind", sa.Text),
    sa.Column("text", sa.Text),
    sa.Column("at", sa.Double),
    sa.Column("evidence", sa.Text),
)

_TABLES = (_SEATS, _VERDICTS, _MATCHES, _COMPETITIONS)  # who refers before whom


def migrate(connection: sa.Connection, tables: sa.MetaData) -> None:
    """From schema 1 to 2.

    Args:
        connection: in a transaction of its own.
        tables: those of schema 2.

    Raises:
        SQLAlchemyError: the old tables cannot be read, or the new ones not written.
        ValueError: what is in them is no arena's.
        msgspec.DecodeError: the same.
    """
    new = tables.tables
    aside = _put_aside(connection)
    tables.create_all(connection)
    _copy_competitions(connection, aside["competitions"], new["competitions"])
    _copy_matches(connection, aside, new)
    _copy(connection, aside["verdicts"], new["verdicts"])
    for table in _TABLES:
        aside[table.name].drop(connection)
    meta = new["meta"]
    connection.execute(
        meta.update().where(meta.c.key == "schema").values(value="2"),
    )
    connection.execute(meta.insert().values(key="roster", value="0"))


def _put_aside(connection: sa.Connection) -> dict[str, sa.Table]:
    """Rename the old tables; their indices would be in the way of the new ones'."""
    quote = connection.dialect.identifier_preparer.quote
    metadata = sa.MetaData()
    for table in _TABLES:
        for index in table.indexes:
            index.drop(connection)
        old, other = quote(table.name), quote(table.name + _ASIDE)
        connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {other}")
        table.to_metadata(metadata, name=table.name + _ASIDE)
    return {table.name: metadata.tables[table.name + _ASIDE] for table in _TABLES}


def _copy_competitions(connection: sa.Connection, old: sa.Table, new: sa.Table) -> None:
    rows = []
    for row in connection.execute(sa.select(old)):
        plan = Plan(
            game=row.game,
            form=Form(row.form),
            settings=msgspec.json.decode(row.settings, type=dict[str, Any]),
            players=msgspec.json.decode(row.players, type=tuple[str, ...]),
        )
        rows.append(
            {
                "id": row.id,
                "plan": msgspec.json.encode(plan).decode(),
                "game": row.game,
                "form": row.form,
                "state": "stopped" if row.finished_at is None else "finished",
                "revision": 0,
                "started_at": row.started_at,
                "finished_at": row.finished_at,
                "ranking": row.ranking,
            }
        )
    if rows:
        connection.execute(new.insert(), rows)


def _copy_matches(
    connection: sa.Connection,
    old: dict[str, sa.Table],
    new: Mapping[str, sa.Table],
) -> None:
    """A batch at a time, in the old order: the numbers follow from it."""
    matches, seats = old["matches"], old["seats"]
    pairings = Counter[str]()
    number = -1
    while True:
        rows = connection.execute(
            sa.select(matches)
            .where(matches.c.number > number)
            .order_by(matches.c.number)
            .limit(_BATCH)
        ).all()
        if not rows:
            return
        number = rows[-1].number
        chairs: dict[str, list[sa.Row[Any]]] = {row.id: [] for row in rows}
        for chair in connection.execute(
            sa.select(seats).where(seats.c.match.in_(chairs)).order_by(seats.c.seat)
        ):
            chairs[chair.match].append(chair)
        written = []
        for row in rows:
            written.append(_match(row, chairs[row.id], pairings[row.competition]))
            pairings[row.competition] += 1
        connection.execute(new["matches"].insert(), written)
        taken = [chair._asdict() for row in rows for chair in chairs[row.id]]
        if taken:
            connection.execute(new["seats"].insert(), taken)


def _match(
    row: sa.Row[Any], chairs: Sequence[sa.Row[Any]], pairing: int
) -> dict[str, Any]:
    result = Result(
        tuple(chair.score for chair in chairs),
        tuple(chair.points for chair in chairs),
        Termination(Ending(row.kind), row.seat, row.text),
    )
    fields = row._asdict()
    del fields["number"]
    return fields | {
        "pairing": pairing,
        "counts": result.termination.kind is not Ending.VOID,
        "digest": sealed(
            match=row.id,
            competition=row.competition,
            pairing=pairing,
            players=[chair.bot for chair in chairs],
            result=result,
            started_at=row.started_at,
            finished_at=row.finished_at,
            record=row.record,
        ),
    }


def _copy(connection: sa.Connection, old: sa.Table, new: sa.Table) -> None:
    """What has not changed, but for the numbers, which are given again in the same order."""
    columns = [column.name for column in old.c if column.name != "number"]
    query = sa.select(*(old.c[name] for name in columns)).order_by(old.c.number)
    connection.execute(new.insert().from_select(columns, query))
