"""Adds up the units and the luck of matches from their records, and writes the sums beside them.

An arena writes the units with each match, and the luck soon after. Matches of older arenas have
neither; `arena luck` adds them, and `--all` computes all sums again. The sums are under no digest
and change no result: they tell how certain a mean is, and how much of it was luck. Records are
replayed on all cores. Sums are written a few at a time, so an interrupted run can be continued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.games.catalogue import other_rules
from arena.games.match import Record
from arena.games.replay import replay
from arena.records.document import UNREADABLE
from arena.records.luck import LuckSums, luck_of
from arena.results.workers import RecordChunk, chunked, on_all_cores
from arena.storage.models import MatchSums
from arena.storage.reader import StoreReader
from arena.storage.schema import MATCHES
from arena.storage.store import Store
from arena.storage.writer import reading, writing
from protocol.errors import ArenaError, NoLuck, in_words, one_line

__all__ = ["Recomputed", "SumsBatch", "count", "next_sums", "recompute"]

_BATCH = 100  # records that are read at once
_FEW = 10  # matches at once beside a running arena: they take some seconds at most


class Recomputed(msgspec.Struct, frozen=True):
    """The number of matches `written`, and of those that could not be (`left`), by reason."""

    written: int
    left: dict[str, int]


class SumsBatch(msgspec.Struct, frozen=True):
    """The sums of some matches by id, and the `last` number that was read; None at the end."""

    last: int | None
    rows: tuple[tuple[str, MatchSums], ...]


def count(store: Store, *, again: bool = False) -> int:
    """Count the matches for `recompute`; raises StoreFailed if that cannot be read."""
    with reading(store.engine) as connection:
        query = sa.select(sa.func.count()).select_from(MATCHES).where(_wanted(again))
        return int(connection.execute(query).scalar_one())


def recompute(
    store: Store, *, again: bool = False, tick: Callable[[], None] = lambda: None
) -> Recomputed:
    """Write the sums of matches that lack them, or of all with `again`; `tick` after each.

    The store must be open for writing, with no other writer. A match whose record cannot be
    replayed stays as it is. Raises StoreFailed if the database cannot be read or written.
    """
    written = 0
    left: Counter[str] = Counter()
    chunks = chunked(None, _unmeasured(store, again))
    for chunk, found in on_all_cores(_added_up, chunks, "replayed matches"):
        made = [(match, sums) for (match, _), sums in zip(chunk.stored, found, strict=True)]
        rows = [
            {"which": match, "made": msgspec.json.encode(sums).decode()}
            for match, sums in made
            if isinstance(sums, MatchSums)
        ]
        left.update(sums for _, sums in made if isinstance(sums, str))
        _write(store, rows)
        written += len(rows)
        for _ in made:
            tick()
    return Recomputed(written, dict(left))


def next_sums(store: StoreReader, after: int) -> SumsBatch:
    """Compute the sums of a few counting matches that lack them, with numbers above `after`.

    A match whose record cannot be replayed is left out. Raises StoreFailed if the database cannot
    be read.
    """
    rows = _read(store, after, _FEW, _wanted(False), MATCHES.c.counts)
    made = (
        (match, _sums_of(record))
        for chunk in chunked(None, ((row.id, row.record) for row in rows))
        for match, record in chunk.stored
    )
    return SumsBatch(
        rows[-1].number if rows else None,
        tuple((match, sums) for match, sums in made if isinstance(sums, MatchSums)),
    )


def _added_up(
    chunk: RecordChunk[None, str], tick: Callable[[], None] = lambda: None
) -> list[MatchSums | str]:
    return [_sums_of(record) for _, record in chunk.stored]


def _sums_of(data: bytes) -> MatchSums | str:
    """Compute the sums of a match from its stored record, or return why there are none."""
    try:
        record = Record.from_json(data)
    except UNREADABLE as error:
        return f"its record cannot be read: {in_words(error)}"
    if (why := other_rules(record.game, record.package)) is not None:
        return one_line(why)
    try:
        return MatchSums(replay(record).units, _luck_of(record))
    except ArenaError as error:
        return f"it cannot be played again: {one_line(str(error))}"
    except Exception as error:  # a damaged record may be broken in any way
        return f"it cannot be played again: {in_words(error)}"


def _luck_of(record: Record) -> LuckSums | str:
    try:
        return luck_of(record).sums
    except NoLuck as why:
        return str(why)


def _wanted(again: bool) -> sa.ColumnElement[bool]:
    if again:
        return sa.true()
    return sa.or_(MATCHES.c.sums.is_(None), MATCHES.c.sums.not_like('%"luck":%'))


def _unmeasured(store: Store, again: bool) -> Iterator[tuple[str, object]]:
    number = 0
    while rows := _read(store, number, _BATCH, _wanted(again)):
        yield from ((row.id, row.record) for row in rows)
        number = rows[-1].number


def _read(
    store: StoreReader, after: int, most: int, *where: sa.ColumnElement[bool]
) -> Sequence[Any]:
    columns = MATCHES.c.number, MATCHES.c.id, MATCHES.c.record
    query = sa.select(*columns).where(MATCHES.c.number > after, *where)
    with reading(store.engine) as connection:
        return connection.execute(query.order_by(MATCHES.c.number).limit(most)).all()


def _write(store: Store, rows: Sequence[dict[str, str]]) -> None:
    if rows:
        query = MATCHES.update().where(MATCHES.c.id == sa.bindparam("which"))
        with writing(store.engine) as connection:
            connection.execute(query.values(sums=sa.bindparam("made")), rows)
