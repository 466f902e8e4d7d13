"""Goes through a database and has everything in it checked: every match (`arena/verify.py`), every competition (`arena/audit.py`).

Records are streamed, a few at a time, so that a database may be larger than memory; when there are many, the matches are played again on
all cores. Of a competition only the outlines of its matches are kept. Nothing is written. What cannot even be read is a
`StoreFailed`, in one line; what can be read and does not fit is a `Flaw`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec
import sqlalchemy as sa

from arena.audit import Flaw, audit
from arena.database import COMPETITIONS, MATCHES, SEATS, VERDICTS
from arena.plan import Form
from arena.sheet import sheet_of
from arena.store import Competition, Played, Store
from arena.verify import Checked, Expected, check
from protocol.errors import ArenaError, StoreFailed, in_words
from protocol.messages import Ending, Verdict

__all__ = ["Examined", "count", "examine", "loose_ends"]

_CHUNK_BYTES = 256 * 1024  # of records that are checked in one go
_CHUNK_MATCHES = 100
_ALONE_BYTES = (
    1024 * 1024
)  # what is checked before other processes are worth their start
_MOST_WORKERS = 8

Stored: TypeAlias = tuple[Played, bytes]


class Examined(msgspec.Struct, frozen=True):
    """What became of a competition.

    Attributes:
        competition: its id.
        matches: how many there are, void ones too.
        flaws: what does not fit, the same match once.
        notes: what cannot be checked, and why.
    """

    competition: str
    matches: int
    flaws: tuple[Flaw, ...]
    notes: tuple[str, ...]


def count(store: Store, competition: str | None = None) -> int:
    """How many matches there are."""
    query = sa.select(sa.func.count()).select_from(MATCHES)
    if competition is not None:
        query = query.where(MATCHES.c.competition == competition)
    [[number]] = _rows(store, query)
    return int(number)


def examine(
    store: Store,
    competition: str | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Iterator[Examined]:
    """Check a competition, or all, one after another.

    Args:
        store: the database.
        competition: the id of one; None for all.
        tick: called after every match.

    Raises:
        UsageError: there is no such competition.
        StoreFailed: the database is so damaged that it cannot be read.
    """
    with _reading():
        found = (
            store.competitions()
            if competition is None
            else (store.competition(competition),)
        )
    with _Checkers() as checkers:
        for one in found:
            yield _examined(store, one, checkers, tick)


def loose_ends(store: Store) -> tuple[Flaw, ...]:
    """What belongs to nothing, or says the same thing in two ways: rows that no reader of the store would see.

    Raises:
        StoreFailed: the database is so damaged that it cannot be read.
    """
    return (*_seats(store), *_orphans(store), *_columns(store))


def _examined(
    store: Store,
    competition: Competition,
    checkers: _Checkers,
    tick: Callable[[], None],
) -> Examined:
    plan = competition.plan
    expected = Expected(plan.game, plan.settings)
    outlines: list[Played] = []
    made: list[Played] = []  # the same, with what their answers make
    reasons: dict[str, list[str]] = {}
    uncommitted: list[str] = []
    is_committed = False
    stored = _stream(store.sealed_matches(competition.id))
    for played, checked in checkers.check(stored, expected):
        outlines.append(played)
        made.append(_corrected(played, checked))
        if checked.reasons:
            reasons[played.id] = list(checked.reasons)
        is_committed |= checked.is_committed
        if checked.is_dealt and not checked.is_committed:
            uncommitted.append(played.id)
        tick()

    notes = []
    if uncommitted and is_committed:  # so this arena could
        for match in uncommitted:
            reasons.setdefault(match, []).append("it was dealt without a commitment")
    elif uncommitted:
        notes.append(
            f"{len(uncommitted):,} matches without a commitment, of before it was kept; "
            "its pairings were not numbered then, and are not checked"
        )
    elif plan.form is Form.ELIMINATION and not plan.seed:
        notes.append("its tables cannot be drawn again, as no seed is kept")
    is_old = bool(notes)
    with _reading():
        verdicts, acts = (
            store.verdicts(competition.id),
            store.actions(competition.id),
        )
    found = list(audit(competition, outlines, verdicts, acts, is_old=is_old))
    if reasons and found:
        # What is wrong with one match is not to be said of those that came after it.
        other = list(audit(competition, made, verdicts, acts, is_old=is_old))
        found = min(found, other, key=len)
    flaws = []
    for flaw in found:
        if flaw.match is None:
            flaws.append(flaw)
        else:
            reasons.setdefault(flaw.match, []).append(flaw.text)
    numbers = {played.id: played.number for played in outlines}
    of_matches = (
        Flaw(competition.id, match, "; ".join(reasons[match]))
        for match in sorted(reasons, key=numbers.__getitem__)
    )
    return Examined(competition.id, len(outlines), (*of_matches, *flaws), tuple(notes))


def _corrected(played: Played, checked: Checked) -> Played:
    """A match with the result that its answers make, where the rows say another."""
    if checked.made is None or len(checked.made.scores) != len(played.players):
        return played
    counts = checked.made.termination.kind is not Ending.VOID and played.counts
    return msgspec.structs.replace(played, result=checked.made, counts=counts)


# --- on all cores ---


class _Checkers:
    """Checks matches in the order in which they come; once there are many, in processes of its own."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._workers = min(os.cpu_count() or 1, _MOST_WORKERS)
        self._alone = 0

    def __enter__(self) -> _Checkers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def check(
        self, stored: Iterable[Stored], expected: Expected
    ) -> Iterator[tuple[Played, Checked]]:
        """Each match with what became of it."""
        running: deque[tuple[list[Stored], Future[list[Checked]]]] = deque()
        for chunk in _chunks(stored):
            if self._works_alone(chunk):
                yield from _together(chunk, _check_chunk(chunk, expected))
                continue
            assert self._pool is not None, "it was started when there were many"
            future = self._pool.submit(_check_chunk, chunk, expected)
            running.append((chunk, future))
            if len(running) > 2 * self._workers:
                yield from _waited_for(running)
        while running:
            yield from _waited_for(running)

    def _works_alone(self, chunk: Sequence[Stored]) -> bool:
        if self._pool is not None:
            return False
        self._alone += sum(len(record) for _, record in chunk)
        if self._alone <= _ALONE_BYTES or self._workers == 1:
            return True
        # Not by fork: the store has threads.
        self._pool = ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), _leave_interrupts
        )
        return False


def _leave_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; who has started us sees to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check_chunk(chunk: Sequence[Stored], expected: Expected) -> list[Checked]:
    return [check(sheet_of(played, record), expected) for played, record in chunk]


def _waited_for(
    running: deque[tuple[list[Stored], Future[list[Checked]]]],
) -> Iterator[tuple[Played, Checked]]:
    chunk, future = running.popleft()
    try:
        done = future.result()
    except BrokenProcessPool:
        raise ArenaError(
            "a process that checked matches was ended from outside; is there enough memory"
        ) from None
    yield from _together(chunk, done)


def _together(
    chunk: Sequence[Stored], done: Sequence[Checked]
) -> Iterator[tuple[Played, Checked]]:
    for (played, _), checked in zip(chunk, done, strict=True):
        yield played, checked


def _chunks(stored: Iterable[Stored]) -> Iterator[list[Stored]]:
    chunk: list[Stored] = []
    size = 0
    for one in stored:
        chunk.append(one)
        size += len(one[1])
        if size >= _CHUNK_BYTES or len(chunk) >= _CHUNK_MATCHES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


# --- the database ---


def _stream(stored: Iterator[Stored]) -> Iterator[Stored]:
    """What the store reads; a record that is no blob any more is what it is as bytes."""
    while True:
        with _reading():
            try:
                played, record = next(stored)
            except StopIteration:
                return
        yield played, record if isinstance(record, bytes) else str(record).encode()


def _seats(store: Store) -> Iterator[Flaw]:
    """Matches whose seats are not numbered from 0 on."""
    seat = SEATS.c.seat
    gaps = sa.or_(sa.func.min(seat) != 0, sa.func.max(seat) != sa.func.count(seat) - 1)
    query = (
        sa.select(SEATS.c.match, MATCHES.c.competition)
        .join(MATCHES, isouter=True)
        .group_by(SEATS.c.match, MATCHES.c.competition)
        .having(gaps)
    )
    for row in _rows(store, query):
        text = "its seats are not numbered one by one"
        yield Flaw(row.competition or "", row.match, text)


def _orphans(store: Store) -> Iterator[Flaw]:
    """Matches without a competition, and seats without a match."""
    known = sa.select(COMPETITIONS.c.id)
    lost = sa.select(MATCHES.c.id).where(MATCHES.c.competition.not_in(known))
    for row in _rows(store, lost):
        yield Flaw("", row.id, "its competition is not there")
    matches = sa.select(MATCHES.c.id)
    lost = sa.select(SEATS.c.match).distinct().where(SEATS.c.match.not_in(matches))
    for row in _rows(store, lost):
        yield Flaw("", row.match, "its seats are there, the match itself is not")


def _columns(store: Store) -> Iterator[Flaw]:
    """Columns that say otherwise than the document beside them."""
    table = COMPETITIONS.c
    with _reading():
        plans = {one.id: one.plan for one in store.competitions()}
    for row in _rows(store, sa.select(table.id, table.game, table.form)):
        plan = plans.get(row.id)
        if plan is not None and (row.game, row.form) != (plan.game, plan.form.value):
            text = f"its row says {row.form} of {row.game}, its plan {plan.form.value} of {plan.game}"
            yield Flaw(row.id, None, text)
    for row in _rows(store, sa.select(VERDICTS)):
        with _reading():
            verdict = msgspec.json.decode(row.evidence, type=Verdict)
        said = verdict.match, verdict.bot, verdict.kind.value, verdict.text
        if (row.match, row.bot, row.kind, row.text) != said:
            text = "the row of its verdict says otherwise than the evidence"
            yield Flaw(row.competition, verdict.match, text)


def _rows(store: Store, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
    with _reading(), store.engine.connect() as connection:
        return connection.execute(query).all()


@contextmanager
def _reading() -> Iterator[None]:
    """Whatever a damaged database makes go wrong is one error of ours."""
    try:
        yield
    except (ArenaError, GeneratorExit):
        raise
    except Exception as error:
        raise StoreFailed(f"cannot read the database: {in_words(error)}") from error
