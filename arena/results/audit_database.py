"""Audits a database: every match (`arena/records/verify.py`), every competition (`audit.py`).

Records are streamed, a few at a time, so a database may be larger than memory. Large amounts are
replayed on all cores. Only the rows of one competition's matches are in memory. Nothing is written.
Every function raises StoreFailed, in one line, if the database is too damaged to be read; readable
data that does not fit is a `Flaw`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.formats.spec import Form, Plan
from arena.games.catalogue import other_rules
from arena.records.document import stored_text
from arena.records.verify import PlannedMatch, RecordCheck, check
from arena.results.audit import Flaw, audit, remarks
from arena.results.workers import RecordChunk, chunked, on_all_cores
from arena.storage.models import RESTORED, VERSION, seated_versions, taken_back
from arena.storage.reader import document_of
from arena.storage.schema import ACTIONS, COMPETITIONS, MATCHES, SEATS, VERDICTS
from arena.storage.store import Act, CompetitionRow, MatchRow, Store
from protocol.errors import ArenaError, StoreFailed, in_words, one_line
from protocol.messages import Action, Ending, Verdict

__all__ = ["AuditedRun", "count", "examine", "loose_ends", "named", "opened"]


class AuditedRun(msgspec.Struct, frozen=True):
    """The outcome of the audit of a competition.

    Of its `matches`, `uncounted` are void or taken back, and `unverified` could not be checked
    because the rules that they were played by are missing. There is at most one flaw per match;
    `notes` say what cannot be checked, and why.
    """

    competition: str
    matches: int
    uncounted: int
    unverified: int
    flaws: tuple[Flaw, ...]
    notes: tuple[str, ...]


def opened(where: str) -> Store:
    """Open a database for reading; UsageError if it is missing or not an arena's."""
    with _reading():
        return Store(where, create=False)


def named(store: Store, text: str) -> str:
    """Return the id of the competition that `Store.find` finds; raises what `find` raises."""
    with _reading():
        return store.find(text).id


def count(store: Store, competition: str | None = None) -> int:
    """Count the matches of one competition, or of the whole database."""
    query = sa.select(sa.func.count()).select_from(MATCHES)
    if competition is not None:
        query = query.where(MATCHES.c.competition == competition)
    [[number]] = _rows(store, query)
    return int(number)


def examine(
    store: Store, competition: str | None = None, tick: Callable[[], None] = lambda: None
) -> Iterator[AuditedRun]:
    """Audit one competition or all, with a `tick` per match; UsageError if it is unknown."""
    with _reading():
        found = store.competitions() if competition is None else (store.competition(competition),)
    chunks = chain.from_iterable(
        chunked(row, _stream(store.sealed_matches(row.id))) for row in found
    )
    checked = on_all_cores(_checked, chunks, "checked matches")
    for _, done in groupby(checked, key=lambda done: done[0].about.id):
        gathered = _Gathered()
        for chunk, checks in done:
            for (played, _), outcome in zip(chunk.stored, checks, strict=True):
                gathered.add(played, outcome)
                tick()
        yield _examined(store, chunk.about, gathered)


def _checked(
    chunk: RecordChunk[CompetitionRow, MatchRow], tick: Callable[[], None]
) -> list[RecordCheck]:
    plan = chunk.about.plan
    planned = PlannedMatch(plan.game, plan.settings, plan.package)
    return [check(document_of(played, record), planned) for played, record in chunk.stored]


def loose_ends(store: Store) -> tuple[Flaw, ...]:
    """Find rows that belong to nothing or contradict others; no reader of the store sees them."""
    return (*_seats(store), *_orphans(store), *_columns(store), *_versions(store))


class _Gathered:
    """The checked matches of a competition.

    `rows` are the stored matches, `made` the same with the results that the answers lead to.
    `reasons` lists, by match, what does not fit.
    """

    def __init__(self) -> None:
        self.rows: list[MatchRow] = []
        self.made: list[MatchRow] = []
        self.reasons: dict[str, list[str]] = {}
        self.checks: dict[str, RecordCheck] = {}
        self.unverified: Counter[str] = Counter()  # matches by reason

    def add(self, played: MatchRow, checked: RecordCheck) -> None:
        self.rows.append(played)
        self.checks[played.id] = checked
        self.made.append(_corrected(played, checked))
        if checked.reasons:
            self.reasons[played.id] = list(checked.reasons)
        elif checked.unverified is not None:
            self.unverified[checked.unverified] += 1
        if checked.versions is not None and seated_versions(checked.versions) != played.versions:
            self.blame(played.id, "its seats have other versions than its record")
        if checked.is_dealt and not checked.is_committed:
            self.blame(played.id, "it was dealt without a commitment")

    def count(self, now: Mapping[str, bool]) -> None:
        """Update by match id whether matches count that were taken back or restored meanwhile."""
        for rows in (self.rows, self.made):
            rows[:] = [
                msgspec.structs.replace(played, counts=now.get(played.id, played.counts))
                for played in rows
            ]

    def blame(self, match: str, text: str) -> None:
        self.reasons.setdefault(match, []).append(text)

    def flaws(self, competition: str) -> list[Flaw]:
        return [
            Flaw(competition, played.id, "; ".join(self.reasons[played.id]))
            for played in self.rows
            if played.id in self.reasons
        ]


def _examined(store: Store, competition: CompetitionRow, gathered: _Gathered) -> AuditedRun:
    plan = competition.plan
    with _reading():
        verdicts, acts = _now(store, gathered, competition.id)
    notes = (*_unverified(plan, gathered), *remarks(competition, gathered.rows, acts))
    _check_times(store, gathered, competition.id)
    # One wrong match must not be blamed on those after it: take the results of the rows or of the
    # answers, whichever fits better.
    either = (gathered.rows, gathered.made)
    found = min(
        (list(audit(competition, rows, verdicts, acts, gathered.checks)) for rows in either),
        key=len,
    )
    for flaw in found:
        if flaw.match is not None:
            gathered.blame(flaw.match, flaw.text)
    others = (flaw for flaw in found if flaw.match is None)
    flaws = (*gathered.flaws(competition.id), *others)
    uncounted = sum(not played.counts for played in gathered.rows)
    unverified = gathered.unverified.total()
    return AuditedRun(competition.id, len(gathered.rows), uncounted, unverified, flaws, notes)


def _unverified(plan: Plan, gathered: _Gathered) -> Iterator[str]:
    """Yield, for each reason, a line on what cannot be verified: matches, schedule or both."""
    unplanned = other_rules(plan.game, plan.package)
    for why in dict.fromkeys((*gathered.unverified, *([] if unplanned is None else [unplanned]))):
        what = "its matches" if gathered.unverified[why] else "its schedule"
        if gathered.unverified[why] and why == unplanned:
            what = "its matches and its schedule"
        yield f"{what} cannot be verified: {why}"


def _now(
    store: Store, gathered: _Gathered, competition: str
) -> tuple[list[Verdict], tuple[Act, ...]]:
    """Return a competition's verdicts and acts, without verdicts of matches that ended since."""
    known = {played.id for played in gathered.rows}
    verdicts = [
        verdict
        for verdict in store.verdicts(competition)
        if verdict.match in known or not _is_there(store, verdict.match, competition)
    ]
    acts = store.actions(competition)
    void = taken_back(acts)
    changed = {act.match for act in acts if act.what in (Action.VOID, RESTORED)}
    odd = [each.id for each in gathered.rows if each.counts == (each.id in void)]
    gathered.count({match: store.played(match).counts for match in odd if match in changed})
    return verdicts, acts


def _is_there(store: Store, match: str, competition: str) -> bool:
    table = MATCHES.c
    query = sa.select(table.id).where(table.id == match, table.competition == competition)
    return bool(_rows(store, query))


def _check_times(store: Store, gathered: _Gathered, competition: str) -> None:
    """Check that each verdict has the time at which its match ended."""
    ends = {played.id: played.finished_at for played in gathered.rows}
    query = sa.select(VERDICTS.c.match, VERDICTS.c.at).where(VERDICTS.c.competition == competition)
    for row in _rows(store, query):
        if row.match in ends and row.at != ends[row.match]:
            gathered.blame(row.match, "its verdict is of another time than its end")


def _corrected(played: MatchRow, checked: RecordCheck) -> MatchRow:
    """Return a match with the result that its answers lead to, if its check has one."""
    if checked.made is None or len(checked.made.scores) != len(played.players):
        return played
    counts = checked.made.termination.kind is not Ending.VOID and played.counts
    return msgspec.structs.replace(played, result=checked.made, counts=counts)


# --- the database ---


def _stream(stored: Iterator[tuple[MatchRow, bytes]]) -> Iterator[tuple[MatchRow, bytes]]:
    """Yield the matches that the store reads."""
    while True:
        with _reading():
            try:
                found = next(stored)
            except StopIteration:
                return
        yield found


def _seats(store: Store) -> Iterator[Flaw]:
    seat = SEATS.c.seat
    gaps = sa.or_(sa.func.min(seat) != 0, sa.func.max(seat) != sa.func.count(seat) - 1)
    query = (
        sa.select(SEATS.c.match, MATCHES.c.competition)
        .join(MATCHES, isouter=True)
        .group_by(SEATS.c.match, MATCHES.c.competition)
        .having(gaps)
    )
    for row in _rows(store, query):
        yield Flaw(row.competition or "", row.match, "its seats are not numbered one by one")


def _orphans(store: Store) -> Iterator[Flaw]:
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
    """Find columns that contradict the JSON beside them."""
    table = COMPETITIONS.c
    with _reading():
        plans = {competition.id: competition.plan for competition in store.competitions()}
    for row in _rows(store, sa.select(table.id, table.game, table.form)):
        plan = plans.get(row.id)
        if plan is not None and (row.game, row.form) != (plan.game, plan.form.value):
            planned = f"{plan.form.value} of {plan.game}"
            text = f"its row says {row.form} of {row.game}, its plan {planned}"
            yield Flaw(row.id, None, text)
    for row in _rows(store, sa.select(VERDICTS)):
        with _reading():
            verdict = msgspec.json.decode(row.evidence, type=Verdict)
        expected = verdict.match, verdict.bot, verdict.kind.value, stored_text(verdict.text)
        if (row.match, row.bot, row.kind, row.text) != expected:
            text = "the row of its verdict says otherwise than the evidence"
            yield Flaw(row.competition, verdict.match, text)


def _versions(store: Store) -> Iterator[Flaw]:
    """Check that versions come into play on ladders only, after a match of the same one (K4)."""
    acts, match = ACTIONS.c, MATCHES.c
    query = (
        sa.select(acts.competition, acts.bot, acts.match, match.competition.label("played_in"))
        .join(COMPETITIONS, COMPETITIONS.c.id == acts.competition)
        .join(MATCHES, match.id == acts.match, isouter=True)
        .where(acts.what == VERSION)
        .where(
            sa.or_(
                COMPETITIONS.c.form != Form.LADDER.value,
                acts.bot.is_(None),
                sa.and_(acts.match.is_not(None), match.competition.is_(None)),
                match.competition != acts.competition,
            )
        )
        .order_by(acts.number)
    )
    for row in _rows(store, query):
        bot = "nobody" if row.bot is None else one_line(row.bot)
        where = "nothing" if row.match is None else f"match {one_line(row.match)}"
        text = f"a version of {bot} came into play after {where}"
        yield Flaw(row.competition, None, f"{text}, which cannot be on a ladder")


def _rows(store: Store, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
    with _reading(), store.engine.connect() as connection:
        return connection.execute(query).all()


@contextmanager
def _reading() -> Iterator[None]:
    """Turn any error of a damaged database into StoreFailed."""
    try:
        yield
    except (ArenaError, GeneratorExit):
        raise
    except Exception as error:
        raise StoreFailed(f"cannot read the database: {in_words(error)}") from error
