"""The document of a bot in a competition: what it has done, against whom, how its score went, how long it thought.

How long a decision took is in the records of its matches, and whose it was only the rules can tell: these matches are played again,
each once, and as many as have so many answers as a histogram needs.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from statistics import quantiles
from typing import TypeVar

from arena.engine.match import Record
from arena.formats.spec import Form
from arena.games.replay import reopened
from arena.records.visibility import Viewer
from arena.storage.models import MatchRow
from arena.storage.reader import StoreReader
from arena.web import competition_pages, documents
from arena.web.competition_cache import CachedCompetition
from arena.web.documents import Refusal
from protocol.errors import ArenaError

__all__ = ["MOST_ANSWERS", "Stopwatch", "bot", "thinned"]

MOST_ANSWERS = 30_000
"""As many answers are looked at for a histogram."""
_POINTS = 500  # of a curve: more than a screen shows
_EDGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000)
_REMEMBERED = 2_000_000  # answers whose times are kept in memory

Point = TypeVar("Point")


class Stopwatch:
    """How long answers took, by seat, of matches that were looked at lately.

    Args:
        reader: where the records are.
    """

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._known: OrderedDict[str, tuple[array[int], ...]] = OrderedDict()
        self._size = 0

    def of(self, match: str) -> tuple[array[int], ...]:
        """In ms, by seat and in order; none where there was no clock, or where the record is damaged."""
        known = self._known.get(match)
        if known is None:
            try:
                known = _times(self._reader.record(match))
            except (ArenaError, ValueError):  # `arena verify` says what is wrong
                known = ()
            self._known[match] = known
            self._size += sum(map(len, known))
            while self._size > _REMEMBERED and len(self._known) > 1:
                _, gone = self._known.popitem(last=False)
                self._size -= sum(map(len, gone))
        self._known.move_to_end(match)
        return known


def bot(
    cached: CachedCompetition, stopwatch: Stopwatch, name: str, viewer: Viewer
) -> documents.BotPage:
    """What a bot has done.

    Raises:
        Refusal: it has nothing to do with this competition.
    """
    results, reader = cached.results, cached.reader
    most = competition_pages.MOST_MATCHES
    found = reader.latest(cached.id, most + 1, bots=(name,))
    plan = results.plan
    if not found and name not in (*plan.players, *plan.not_there):
        raise Refusal(404, f"expected a bot that is in {cached.id}, got {name!r}")
    rows = {row.name: row for row in cached.standings}
    row = rows.get(name)
    return documents.BotPage(
        name=name,
        team=plan.teams.get(name),
        row=None if row is None else competition_pages.row_for(cached, row, viewer),
        opponents=_opponents(cached, name),
        curve=thinned(cached.curve(name), _POINTS),
        times=_histogram(stopwatch, name, found),
        verdicts=competition_pages.rulings(cached, viewer, name),
        matches=tuple(map(competition_pages.outline, found[:most])),
        matches_more=len(found) > most,
    )


def thinned(points: Sequence[Point], most: int) -> tuple[Point, ...]:
    """At most so many of them, evenly; the first and the last are among them."""
    last = len(points) - 1
    if last < most:
        return tuple(points)
    return tuple(points[round(i * last / (most - 1))] for i in range(most))


# --- within ---


def _opponents(cached: CachedCompetition, name: str) -> tuple[documents.Opponent, ...]:
    if cached.results.plan.form is not Form.ROUND_ROBIN:
        return ()
    cells = cached.cross_table.get(name, {})
    return tuple(
        competition_pages.opponent(row.name, cells[row.name])
        for row in cached.standings
        if row.name in cells
    )


def _histogram(
    stopwatch: Stopwatch, name: str, found: Sequence[MatchRow]
) -> documents.DecisionTimes:
    taken: list[int] = []
    of_matches = 0
    for played in found:
        seats = stopwatch.of(played.id)
        own = [
            took_ms
            for seat, times in enumerate(seats)
            if played.players[seat] == name
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
    """How many are from each edge up to the next; what is beyond the last is in the last bar."""
    ordered = sorted(taken)
    at = 0
    for upper in _EDGES[1:-1]:
        before = at
        while at < len(ordered) and ordered[at] < upper:
            at += 1
        yield at - before
    yield len(ordered) - at


def _times(record: Record) -> tuple[array[int], ...]:
    """The times of a record, by seat."""
    match = reopened(record)
    seats = tuple(array("q") for _ in range(match.game.seats))
    if len(seats) == 1:
        seats[0].extend(record.times_ms)
        return seats
    steps = match.steps(record.answers)
    for step, took_ms in zip(steps, record.times_ms, strict=False):
        if step.asked is None:
            break
        seats[step.asked.seat].append(took_ms)
    return seats
