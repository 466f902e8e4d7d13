"""The documents of competitions: the list, the overview, the cross table, pairings, bots, matches.

While a competition goes on, only a bot's owner and the instructor may read why it is out (J8), as
the text may reveal cards. All results are public.

The records of matches say how long each decision took, but only the rules know whose it was. So
matches are replayed for the histogram of a bot, each once, until there are enough answers.

A document is cached until there are new results, and for at least nine times as long as it took to
make. So remaking it takes at most a tenth of the reader's time, however many people watch and
however fast matches are played.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from statistics import quantiles
from typing import Any, NamedTuple, TypeVar

import msgspec

from arena.formats.bracket import BracketStage
from arena.formats.elimination import advanced
from arena.formats.formats import expected_matches
from arena.formats.intervals import MatchTally, interval_of, unit_kind
from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.games.catalogue import game_named, game_title
from arena.games.match import Record, Result
from arena.games.names import owner_of
from arena.games.replay import SeatAnswered, events_of
from arena.records.visibility import (
    LADDER_S,
    OWN_MATCHES,
    Viewer,
    ViewerKind,
    is_open_to,
    sees_luck,
)
from arena.results.luck_table import LuckLine, LuckTable
from arena.storage.live_results import LiveResults
from arena.storage.models import CompetitionRow, CompetitionState, MatchRow
from arena.storage.reader import StoreReader
from arena.web import documents
from arena.web.documents import Refusal, Ruling, RulingWithEvidence
from arena.web.sized_cache import SizedCache
from protocol.errors import ArenaError
from protocol.messages import Termination, Verdict

__all__ = [
    "LUCK_S",
    "CachedCompetition",
    "Stopwatch",
    "bot",
    "competitions",
    "cross_table",
    "matches",
    "overview",
    "pairing",
    "ruling",
]

MOST_MATCHES = 200  # in one answer
_BAND_MATCHES, _BAND_POINTS = 2_000, 100  # of a pairing's band; a screen shows no more
MOST_ANSWERS = 30_000  # in a histogram
_POINTS = 500  # of a curve; more than a screen shows
_EDGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000)
_TIMES = 2_000_000  # answers whose times are cached
_DIGITS = 6  # of a mean in a cross table, which may have 40,000 cells
_DOCUMENTS = 256  # cached per competition
_REST = 9.0  # a document is cached at least this many times as long as it took to make
_CURVES = 64  # bots whose curves are cached
LUCK_S = 600.0  # between two updates of whose luck may be seen
_LOOK_S = 0.2  # between two reads of the database, as a whole class may ask at once

Made = TypeVar("Made")


class CachedCompetition:
    """A competition, and a cache of its documents; `clock` is monotonic, in seconds.

    Raises UsageError if there is no such competition, and StoreFailed, as does `update`, if the
    database cannot be read.
    """

    def __init__(self, reader: StoreReader, competition: str, clock: Callable[[], float]) -> None:
        self.reader = reader
        self._clock = clock
        self.results = LiveResults(reader, competition)
        self._cache = SizedCache[Hashable, _Cached](_DOCUMENTS)
        self._curves = SizedCache[str, _Curve](_CURVES)
        self._due = clock() + _LOOK_S
        self._version = 0
        self._sums_revision = reader.sums_revision()

    @property
    def id(self) -> str:
        return self.results.competition.id

    @property
    def is_over(self) -> bool:
        """Whether the competition is over, so that everybody may see everything (J8)."""
        return self.results.is_over

    def update(self) -> None:
        """Read new results, unless they were read less than 0.2 s ago."""
        if self._clock() < self._due:
            return
        sums_revision = self.reader.sums_revision()
        if self.results.update() or sums_revision != self._sums_revision:
            self._version += 1
            self._sums_revision = sums_revision
        self._due = self._clock() + _LOOK_S

    def cached(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the cached value of a key; `make` makes a new one if it is outdated or missing."""
        began = self._clock()
        cached = self._cache.get(key)
        if cached is None or (cached.version != self._version and cached.until <= began):
            made = make()
            now = self._clock()
            cached = _Cached(made, self._version, now + _REST * (now - began))
            self._cache.put(key, cached)
        value: Made = cached.value
        return value

    @property
    def standings(self) -> tuple[Any, ...]:
        return self.cached("standings", lambda: self.results.standings)

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        return self.cached("cross table", lambda: self.results.book.cross_table)

    def luck(self, until: float | None = None) -> LuckTable:
        """Return what the bots won without luck, with `until` in matches that were over by then."""
        # With time more matches count, even without new results.
        key = "luck", until and until // LUCK_S
        return self.cached(key, lambda: LuckTable(self.results.luck(until), self.results.unranked))

    def own_luck(self, owner: str) -> dict[str, LuckLine]:
        """Return what an owner's bots won without luck in whole blocks of 20 of their matches.

        Comparing two answers never reveals the luck of a single match.
        """

        def lines() -> dict[str, LuckLine]:
            played, out = self.results.luck(), self.results.unranked
            names = {name for players, _ in played for name in players if owner_of(name) == owner}
            found = {}
            for name in names:
                own = [match for match in played if name in match[0]]
                table = LuckTable(own[: len(own) // OWN_MATCHES * OWN_MATCHES], out)
                if name in (by_bot := table.lines()):
                    found[name] = by_bot[name]
            return found

        return self.cached(("own luck", owner), lines)

    def curve(self, bot: str) -> tuple[tuple[float, int], ...]:
        """Return (time, total score) after each counting match of a bot; reads only new matches."""
        revision = self.results.competition.revision
        curve = self._curves.get(bot)
        if curve is None or curve.revision != revision:
            curve = _Curve(revision)
            self._curves.put(bot, curve)
        for number, at, score in self.reader.scores(self.id, bot, curve.last):
            curve.last = number
            curve.score += score
            curve.points.append((at, curve.score))
        return tuple(curve.points)


class _Cached(NamedTuple):
    """A value, the version of the results that it shows, and until when it is valid anyway."""

    value: Any
    version: int
    until: float


class _Curve(msgspec.Struct):
    """A bot's scores up to the match with the number `last`, at a revision of the competition."""

    revision: int
    last: int = 0
    score: int = 0
    points: list[tuple[float, int]] = []


class Stopwatch:
    """Reads how long the answers of a match took; caches the matches used last."""

    def __init__(self) -> None:
        self._cache: SizedCache[str, tuple[array[int], ...]]
        self._cache = SizedCache(_TIMES, lambda times: sum(map(len, times)))

    def times_of(self, reader: StoreReader, match: str) -> tuple[array[int], ...]:
        """Return times in ms, by seat and in order; empty without a clock or if damaged."""
        times = self._cache.get(match)
        if times is None:
            try:
                times = _times(reader.record(match))
            except (ArenaError, ValueError):  # damaged; `arena verify` reports it
                times = ()
            self._cache.put(match, times)
        return times


def competitions(reader: StoreReader) -> documents.Competitions:
    """List all competitions, the newest first."""
    played = reader.counts()
    lines = [_line(reader, row, played.get(row.id, 0)) for row in reader.competitions()]
    return documents.Competitions(tuple(reversed(lines)))


def overview(cached: CachedCompetition, viewer: Viewer, now: float) -> documents.Overview:
    """Describe a competition without its matches and cross table; `now` is in Unix seconds."""
    results = cached.results
    plan, progress = results.plan, results.progress
    instructs = viewer.kind is ViewerKind.INSTRUCTOR
    measure = None
    measured = None if results.missing is not None else plan.rules.luck
    if plan.form is Form.LEAGUE and results.missing is None:
        ranked_by = plan.rules.measure
        measure = documents.LeagueMeasure(ranked_by.title, ranked_by.is_share)
    return documents.Overview(
        id=cached.id,
        run=plan.run,
        game=plan.game,
        title=game_title(plan.game),
        form=plan.form.value,
        state=results.competition.state.value,
        missing=results.missing,
        settings=plan.settings,
        limits=plan.limits,
        matches=plan.matches,
        started_at=results.competition.started_at,
        finished_at=results.competition.finished_at,
        played=results.book.played,
        settled=progress.settled,
        scheduled=None if plan.form is Form.LADDER or plan.settle else progress.scheduled,
        left_s=progress.left_s,
        measure=measure,
        unit=results.book.unit,
        standings=tuple(_row_for(cached, row, viewer) for row in cached.standings),
        ranking=tuple(
            documents.RankedBots(place.rank, place.names, place.stage, place.score, place.offence)
            for place in results.ranking
        ),
        bracket=tuple(_bracket_stage(cached, stage) for stage in results.stages),
        verdicts=_rulings(cached, viewer),
        teams=plan.teams,
        actions=cached.reader.actions(cached.id) if instructs else None,
        not_there=plan.not_there,
        luck=_luck(cached, viewer, now),
        luck_unit=None if measured is None else measured.unit,
        versions=results.book.versions,
        settle=plan.settle,
    )


def cross_table(cached: CachedCompetition) -> documents.CrossTablePage:
    """Make a round robin's cross table, in the order of the standings; `Refusal` for others."""
    if cached.results.plan.form is not Form.ROUND_ROBIN:
        form = cached.results.plan.form.value.replace("_", " ")
        raise Refusal(404, f"expected a round robin, {cached.id} is a {form}")
    table = cached.cross_table
    names = tuple(row.name for row in cached.standings if row.name in table)
    cells, unit = tuple(_cells(names, table)), cached.results.book.unit
    if not cached.results.plan.settle:
        return documents.CrossTablePage(names, cells, unit)
    marks = (cell.mark.value for name in names for cell in table[name].values())
    return documents.CrossTablePage(names, cells, unit, tuple(marks))


def pairing(cached: CachedCompetition, a: str, b: str, viewer: Viewer) -> documents.PairingPage:
    """Describe how `a` played against `b` (or itself); raises `Refusal` if they never met."""
    played = cached.reader.latest(cached.id, MOST_MATCHES + 1, bots=(a, b))
    if not played:
        raise Refusal(404, f"expected two bots that have met in {cached.id}, got {a!r} and {b!r}")
    cell = cached.cross_table.get(a, {}).get(b)
    return documents.PairingPage(
        a=a,
        b=b,
        unit=cached.results.book.unit,
        cell=None if cell is None else _opponent(b, cell),
        matches=tuple(map(_outline, played[:MOST_MATCHES])),
        matches_more=len(played) > MOST_MATCHES,
        band=tuple(_band(cached, a, b)),
        luck=cached.luck().against(a, b) if sees_luck(cached.is_over, viewer) else None,
    )


def _band(cached: CachedCompetition, a: str, b: str) -> Iterator[documents.BandPoint]:
    """Yield how the interval of a pairing's mean has narrowed; nothing if `a` is `b`."""
    latest = cached.reader.latest(cached.id, _BAND_MATCHES, bots=(a, b))
    completed = [row for row in reversed(latest) if row.counts and not row.result.out]
    if a == b or cached.results.plan.form is not Form.ROUND_ROBIN:
        return
    shown = set(documents.thinned(range(1, len(completed) + 1), _BAND_POINTS))
    kind, tally = unit_kind(cached.results.plan), MatchTally()
    for number, row in enumerate(completed, start=1):
        tally.add(row.result, row.players.index(a), row.units)
        if number in shown:
            found = interval_of([tally], kind)
            low, high = (None, None) if found is None else found.bounds
            yield documents.BandPoint(number, tally.matches.mean or 0.0, low, high)


def bot(
    cached: CachedCompetition, stopwatch: Stopwatch, name: str, viewer: Viewer
) -> documents.BotPage:
    """Describe a bot's results in a competition; raises `Refusal` if it does not take part."""
    played = cached.reader.latest(cached.id, MOST_MATCHES + 1, bots=(name,))
    plan = cached.results.plan
    if not played and name not in (*plan.players, *plan.not_there):
        raise Refusal(404, f"expected a bot that is in {cached.id}, got {name!r}")
    history = cached.results.history
    row = next((row for row in cached.standings if row.name == name), None)
    return documents.BotPage(
        name=name,
        team=plan.teams.get(name),
        row=None if row is None else _row_for(cached, row, viewer),
        opponents=_opponents(cached, name),
        curve=documents.thinned(cached.curve(name), _POINTS),
        ratings=documents.thinned(history.ratings.get(name, ()), _POINTS),
        versions=tuple(history.versions.get(name, ())),
        times=_histogram(cached.reader, stopwatch, name, played),
        verdicts=_rulings(cached, viewer, name),
        matches=tuple(map(_outline, played[:MOST_MATCHES])),
        matches_more=len(played) > MOST_MATCHES,
    )


def matches(cached: CachedCompetition, before: int | None, limit: int) -> documents.Matches:
    """List matches of a competition, newest first, only those with a number below `before`."""
    played = cached.reader.latest(cached.id, limit + 1, before=before)
    return documents.Matches(tuple(map(_outline, played[:limit])), len(played) > limit)


def _outline(match: MatchRow) -> documents.Outline:
    """Describe a match for lists, the same for all viewers."""
    result = match.result
    return documents.Outline(
        id=match.id,
        number=match.number,
        pairing=match.pairing,
        players=match.players,
        scores=result.scores,
        points=result.points,
        kind=result.termination.kind.value,
        seat=result.termination.seat,
        started_at=match.started_at,
        finished_at=match.finished_at,
        counts=match.counts,
    )


def _opponent(name: str, cell: Any) -> documents.Opponent:
    """Describe the results in the cross table's column of the bot `name`."""
    counts = cell.played, cell.wins, cell.draws, cell.losses, cell.score
    how_sure = cell.error, cell.interval, cell.level, cell.method
    return documents.Opponent(name, *counts, cell.mean, *how_sure)


def _row_for(cached: CachedCompetition, row: Any, viewer: Viewer) -> Any:
    """Return a row of the standings without what the viewer may not see."""
    ended: Termination | None = getattr(row, "eliminated", None)
    if ended is None or is_open_to(viewer, row.name, cached.is_over):
        return row
    hidden = Termination(ended.kind, ended.seat)
    return msgspec.structs.replace(row, eliminated=hidden)


def ruling(
    at: float, verdict: Verdict, viewer: Viewer, is_over: bool
) -> Ruling | RulingWithEvidence:
    """Return as much of a verdict as a viewer may see."""
    if is_open_to(viewer, verdict.bot, is_over):
        return RulingWithEvidence(**msgspec.structs.asdict(verdict), at=at)
    kind, event = verdict.kind.value, verdict.event
    return Ruling(verdict.bot, verdict.match, kind, at, event, verdict.forgiven)


def _rulings(
    cached: CachedCompetition, viewer: Viewer, name: str | None = None
) -> tuple[Ruling | RulingWithEvidence, ...]:
    """Return the verdicts on all bots, or on `name`, with as much as the viewer may see."""
    all_rulings = cached.cached("rulings", lambda: cached.results.rulings)
    return tuple(
        ruling(at, verdict, viewer, cached.is_over)
        for at, verdict in all_rulings
        if name in (None, verdict.bot)
    )


def _luck(cached: CachedCompetition, viewer: Viewer, now: float) -> dict[str, LuckLine]:
    """Return what bots won without luck, for those whose luck the viewer may see (J8)."""
    if sees_luck(cached.is_over, viewer):
        return dict(cached.luck().lines())
    lines: dict[str, LuckLine] = {}
    if cached.results.plan.form is Form.LADDER:
        lines.update(cached.luck(now - LADDER_S).lines())
    if viewer.kind is ViewerKind.OWNER:
        lines.update(cached.own_luck(viewer.name))
    return lines


def _line(reader: StoreReader, row: CompetitionRow, played: int) -> documents.CompetitionLine:
    plan = row.plan
    bots = len(plan.players)
    if plan.form is Form.LADDER:  # bots may join at any time
        bots = max(bots, reader.entered(row.id))
    scheduled = expected_matches(plan)
    was_stopped = row.state is CompetitionState.STOPPED and plan.form is not Form.ELIMINATION
    if row.finished_at is not None and scheduled is not None and not was_stopped:
        scheduled = played  # the remaining matches of eliminated bots are not played
    return documents.CompetitionLine(
        id=row.id,
        run=plan.run,
        game=plan.game,
        title=game_title(plan.game),  # works even if the game is not installed
        form=plan.form.value,
        state=row.state.value,
        started_at=row.started_at,
        finished_at=row.finished_at,
        bots=bots,
        played=played,
        scheduled=scheduled,
    )


def _bracket_stage(cached: CachedCompetition, stage: BracketStage) -> documents.StageDocument:
    """Describe a drawn stage: who advanced and who did not (K2)."""
    return documents.StageDocument(
        stage=stage.number,
        final=stage.is_final,
        tables=tuple(
            _bracket_table(cached, stage, pairing, result) for pairing, result in stage.tables
        ),
        byes=stage.byes,
    )


def _bracket_table(
    cached: CachedCompetition, stage: BracketStage, pairing: Pairing, result: Result | None
) -> documents.TableDocument:
    players, entered = pairing.players, cached.results.plan.players
    through = out = frozenset[int]()
    state = "playing"
    if result is not None:
        through, state = advanced(cached.results.plan.rules, result), "over"
        is_out = frozenset(range(len(players))) - through
        out = frozenset(result.out) if stage.is_final else is_out
    elif cached.is_over or cached.results.competition.state is CompetitionState.PAUSED:
        state = "waits"
    has_advanced = result is not None and not stage.is_final
    return documents.TableDocument(
        pairing=pairing.number,
        match=cached.results.match_of(pairing.number),
        players=players,
        house=tuple(name for name in players if name not in entered),
        scores=None if result is None else result.scores,
        advanced=_names_at(players, through) if has_advanced else None,
        out=_names_at(players, out),
        state=state,
        offender=None if result is None else result.offender,
    )


def _names_at(players: Sequence[str], seats: frozenset[int]) -> tuple[str, ...]:
    return tuple(name for seat, name in enumerate(players) if seat in seats)


def _cells(
    names: Sequence[str], table: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[int | float | None, ...]]:
    places = {name: place for place, name in enumerate(names)}
    for row, name in enumerate(names):
        for other, cell in table[name].items():
            counts = (cell.played, cell.wins, cell.draws, cell.losses, cell.score)
            means = cell.mean, cell.error, *(cell.interval or (None, None))
            rounded = (None if number is None else round(number, _DIGITS) for number in means)
            yield (row, places[other], *counts, *rounded)


def _opponents(cached: CachedCompetition, name: str) -> tuple[documents.Opponent, ...]:
    if cached.results.plan.form is not Form.ROUND_ROBIN:
        return ()
    cells = cached.cross_table.get(name, {})
    return tuple(
        _opponent(row.name, cells[row.name]) for row in cached.standings if row.name in cells
    )


def _histogram(
    reader: StoreReader, stopwatch: Stopwatch, name: str, matches: Sequence[MatchRow]
) -> documents.DecisionTimes:
    taken: list[int] = []
    of_matches = 0
    for match in matches:
        own = [
            took_ms
            for seat, times in enumerate(stopwatch.times_of(reader, match.id))
            if match.players[seat] == name
            for took_ms in times
        ]
        if own:
            of_matches += 1
            taken += own[: MOST_ANSWERS - len(taken)]
        if len(taken) >= MOST_ANSWERS:
            break
    cuts = quantiles(taken, n=100, method="inclusive") if len(taken) > 1 else []
    only = float(taken[0]) if taken else None
    return documents.DecisionTimes(
        unit="ms",
        edges=_EDGES,
        counts=tuple(_bars(taken)),
        of_matches=of_matches,
        decisions=len(taken),
        median=cuts[49] if cuts else only,
        p95=cuts[94] if cuts else only,
        max=max(taken, default=None),
    )


def _bars(taken: Sequence[int]) -> Iterator[int]:
    """Count the times from each edge up to the next; the last bar has all longer ones as well."""
    ordered = sorted(taken)
    at = 0
    for upper in _EDGES[1:-1]:
        before, at = at, bisect_left(ordered, upper)
        yield at - before
    yield len(ordered) - at


def _times(record: Record) -> tuple[array[int], ...]:
    game = game_named(record.game, record.package)
    seats = tuple(array("q") for _ in range(game.seats))
    if len(seats) == 1:
        seats[0].extend(record.times_ms)
        return seats
    for event in events_of(record):
        if type(event) is SeatAnswered and event.took_ms is not None:
            seats[event.seat].append(event.took_ms)
    return seats
