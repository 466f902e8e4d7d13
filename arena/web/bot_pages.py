"""The document of a bot in a competition: its results, opponents, scores and thinking times.

The records of matches say how long each decision took, but only the rules know whose it was. So
matches are replayed for a histogram, each once, until there are enough answers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from statistics import quantiles

from arena.engine.match import Record
from arena.formats.spec import Form
from arena.games import game_named
from arena.games.replay import SeatAnswered, events_of
from arena.records.visibility import Viewer
from arena.storage.models import MatchRow
from arena.storage.reader import StoreReader
from arena.web import competition_pages, documents
from arena.web.competition_cache import CachedCompetition
from arena.web.documents import Refusal
from arena.web.sized_cache import SizedCache
from protocol.errors import ArenaError

__all__ = ["MOST_ANSWERS", "Stopwatch", "bot"]

MOST_ANSWERS = 30_000  # of a histogram
_POINTS = 500  # of a curve: more than a screen shows
_EDGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000)
_CACHED = 2_000_000  # answers whose times are cached


class Stopwatch:
    """Says how long the answers of a match took; caches the matches used last."""

    def __init__(self) -> None:
        self._cache: SizedCache[str, tuple[array[int], ...]]
        self._cache = SizedCache(_CACHED, lambda times: sum(map(len, times)))

    def times_of(self, reader: StoreReader, match: str) -> tuple[array[int], ...]:
        """In ms, by seat and in order; empty without a clock, or if the record is damaged."""
        times = self._cache.get(match)
        if times is None:
            try:
                times = _times(reader.record(match))
            except (ArenaError, ValueError):  # `arena verify` says what is wrong
                times = ()
            self._cache.put(match, times)
        return times


def bot(
    cached: CachedCompetition, stopwatch: Stopwatch, name: str, viewer: Viewer
) -> documents.BotPage:
    """What a bot has done in a competition; raises `Refusal` if it is not in it."""
    most = competition_pages.MOST_MATCHES
    played = cached.reader.latest(cached.id, most + 1, bots=(name,))
    plan = cached.results.plan
    if not played and name not in (*plan.players, *plan.not_there):
        raise Refusal(404, f"expected a bot that is in {cached.id}, got {name!r}")
    history = cached.results.history
    row = next((row for row in cached.standings if row.name == name), None)
    return documents.BotPage(
        name=name,
        team=plan.teams.get(name),
        row=None if row is None else competition_pages.row_for(cached, row, viewer),
        opponents=_opponents(cached, name),
        curve=documents.thinned(cached.curve(name), _POINTS),
        ratings=documents.thinned(history.ratings.get(name, ()), _POINTS),
        versions=tuple(history.versions.get(name, ())),
        times=_histogram(cached.reader, stopwatch, name, played),
        verdicts=competition_pages.rulings(cached, viewer, name),
        matches=tuple(map(competition_pages.outline, played[:most])),
        matches_more=len(played) > most,
    )


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
    """The number of times from each edge up to the next; the last bar has all longer ones too."""
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
