"""Goes through a database and has everything in it checked: every match (`arena/records/verify.py`), every competition (`arena/results/audit.py`).

Records are streamed, a few at a time, so that a database may be larger than memory; when there are many, the matches are played again on
all cores. Of a competition only the outlines of its matches are kept. Nothing is written. What cannot even be read is a
`StoreFailed`, in one line; what can be read and does not fit is a `Flaw`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.records.verify import OpenQuestion, PlannedMatch, RecordCheck, stored_text
from arena.results.audit import Flaw, audit, remarks
from arena.results.workers import CheckWorkers, Stored
from arena.storage.schema import ACTIONS, COMPETITIONS, MATCHES, SEATS, VERDICTS
from arena.storage.store import Act, CompetitionRow, MatchRow, Store
from protocol.errors import ArenaError, StoreFailed, in_words
from protocol.messages import Action, Ending, Verdict

__all__ = ["AuditedRun", "count", "examine", "loose_ends", "named", "opened"]


class AuditedRun(msgspec.Struct, frozen=True):
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


def opened(where: str) -> Store:
    """The database, to be read.

    Raises:
        UsageError: it is not there, or no arena's.
        StoreFailed: it is so damaged that it cannot be opened.
    """
    with _reading():
        return Store(where, create=False)


def named(store: Store, text: str) -> str:
    """The id of a competition as people name it.

    Raises:
        UsageError: there is none, or more than one.
        StoreFailed: the database is so damaged that it cannot be read.
    """
    with _reading():
        return store.find(text).id


def count(store: Store, competition: str | None = None) -> int:
    """How many matches there are."""
    query = sa.select(sa.func.count()).select_from(MATCHES)
    if competition is not None:
        query = query.where(MATCHES.c.competition == competition)
    [[number]] = _rows(store, query)
    return int(number)


def examine(
    store: Store, competition: str | None = None, tick: Callable[[], None] = lambda: None
) -> Iterator[AuditedRun]:
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
        found = store.competitions() if competition is None else (store.competition(competition),)
    with CheckWorkers() as checkers:
        for one in found:
            yield _examined(store, one, checkers, tick)


def loose_ends(store: Store) -> tuple[Flaw, ...]:
    """What belongs to nothing, or says the same thing in two ways: rows that no reader of the store would see.

    Raises:
        StoreFailed: the database is so damaged that it cannot be read.
    """
    return (*_seats(store), *_orphans(store), *_columns(store))


class _Gathered:
    """What the matches of a competition have come to, one by one.

    Attributes:
        rows: the matches, as the rows say.
        made: the same with what their answers make.
        reasons: what does not fit, by match.
        undealt: those without cards.
        asked: what was asked when an offence ended a match, or None, where there is nothing wrong with that match.
        events: which events the offences were, by match.
    """

    def __init__(self) -> None:
        self.rows: list[MatchRow] = []
        self.made: list[MatchRow] = []
        self.reasons: dict[str, list[str]] = {}
        self.undealt: set[str] = set()
        self.asked: dict[str, OpenQuestion | None] = {}
        self.events: dict[str, tuple[str, ...]] = {}

    def add(self, played: MatchRow, checked: RecordCheck) -> None:
        """One more."""
        self.rows.append(played)
        self.made.append(_corrected(played, checked))
        if checked.reasons:
            self.reasons[played.id] = list(checked.reasons)
        elif played.result.termination.is_offence:
            self.asked[played.id] = checked.asked
            self.events[played.id] = checked.events
        if not checked.is_dealt:
            self.undealt.add(played.id)
        elif not checked.is_committed:
            self.blame(played.id, "it was dealt without a commitment")

    def taken_back(self, matches: Collection[str]) -> None:
        """These do not count any more."""
        for kept in (self.rows, self.made):
            kept[:] = [
                msgspec.structs.replace(played, counts=False) if played.id in matches else played
                for played in kept
            ]

    def blame(self, match: str, text: str) -> None:
        """Something more does not fit."""
        self.reasons.setdefault(match, []).append(text)

    def flaws(self, competition: str) -> list[Flaw]:
        """A line for every match that does not fit."""
        return [
            Flaw(competition, played.id, "; ".join(self.reasons[played.id]))
            for played in self.rows
            if played.id in self.reasons
        ]


def _examined(
    store: Store, competition: CompetitionRow, checkers: CheckWorkers, tick: Callable[[], None]
) -> AuditedRun:
    plan, gathered = competition.plan, _Gathered()
    stored = _stream(store.sealed_matches(competition.id))
    for played, checked in checkers.check(stored, PlannedMatch(plan.game, plan.settings)):
        gathered.add(played, checked)
        tick()
    with _reading():
        verdicts, acts = _now(store, gathered, competition.id)
    notes = tuple(remarks(competition, gathered.rows, acts))
    _dated(store, gathered, competition.id)
    # What is wrong with one match is not to be said of those that came after it: the
    # results are those of the rows, or what the answers make, whichever fits better.
    found = min(
        (
            list(
                audit(
                    competition,
                    matches,
                    verdicts,
                    acts,
                    undealt=gathered.undealt,
                    asked=gathered.asked,
                    events=gathered.events,
                )
            )
            for matches in (gathered.rows, gathered.made)
        ),
        key=len,
    )
    others = []
    for flaw in found:
        if flaw.match is None:
            others.append(flaw)
        else:
            gathered.blame(flaw.match, flaw.text)
    flaws = (*gathered.flaws(competition.id), *others)
    return AuditedRun(competition.id, len(gathered.rows), flaws, notes)


def _now(
    store: Store, gathered: _Gathered, competition: str
) -> tuple[list[Verdict], tuple[Act, ...]]:
    """Its verdicts and what was done to it; an arena may have gone on since the matches were read."""
    known = {played.id: played for played in gathered.rows}
    verdicts = [
        verdict
        for verdict in store.verdicts(competition)
        if verdict.match in known or not _is_there(store, verdict.match, competition)
    ]
    acts = store.actions(competition)
    void = {act.match for act in acts if act.what == Action.VOID}
    counted = [one for one in gathered.rows if one.counts and one.id in void]
    gathered.taken_back({one.id for one in counted if not store.played(one.id).counts})
    return verdicts, acts


def _is_there(store: Store, match: str, competition: str) -> bool:
    table = MATCHES.c
    query = sa.select(table.id).where(table.id == match, table.competition == competition)
    return bool(_rows(store, query))


def _dated(store: Store, gathered: _Gathered, competition: str) -> None:
    """A verdict is of the moment at which its match ended."""
    ends = {played.id: played.finished_at for played in gathered.rows}
    query = sa.select(VERDICTS.c.match, VERDICTS.c.at).where(VERDICTS.c.competition == competition)
    for row in _rows(store, query):
        if row.match in ends and row.at != ends[row.match]:
            gathered.blame(row.match, "its verdict is of another time than its end")


def _corrected(played: MatchRow, checked: RecordCheck) -> MatchRow:
    """A match with the result that its answers make, where the rows say another."""
    if checked.made is None or len(checked.made.scores) != len(played.players):
        return played
    counts = checked.made.termination.kind is not Ending.VOID and played.counts
    return msgspec.structs.replace(played, result=checked.made, counts=counts)


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
    """What belongs to a competition or a match that is not there."""
    known = sa.select(COMPETITIONS.c.id)
    gone = sa.select(VERDICTS).where(VERDICTS.c.competition.not_in(known))
    for row in _rows(store, gone):
        text = f"a verdict on {row.bot} is of this competition, which is not there"
        yield Flaw(row.competition, None, text)
    gone = sa.select(ACTIONS).where(ACTIONS.c.competition.not_in(known))
    for row in _rows(store, gone):
        text = f"{row.what} by {row.who} was done to it, and it is not there"
        yield Flaw(row.competition, None, text)
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
            text = (
                f"its row says {row.form} of {row.game}, its plan {plan.form.value} of {plan.game}"
            )
            yield Flaw(row.id, None, text)
    for row in _rows(store, sa.select(VERDICTS)):
        with _reading():
            verdict = msgspec.json.decode(row.evidence, type=Verdict)
        text = stored_text(verdict.text)
        said = verdict.match, verdict.bot, verdict.kind.value, text
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
