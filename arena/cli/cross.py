"""`arena cross`: lets every bot play against every bot (A10, G16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import click
import msgspec

from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._bus_options import no_bus_options
from arena.cli._lab_runs import OffenceFound, SeriesFound, SeriesOptions, SeriesPlan
from arena.cli._limit_options import LimitsCommand
from arena.cli._results import Found, result_command
from arena.games.statistics import Interval
from arena.lab import intervals
from arena.lab.crosstable import BotScore, CrossTable, check_entrants, table_seeds
from arena.lab.matches import unit
from arena.lab.sittings import Sitting
from protocol.errors import UsageError
from protocol.strategy import house_bots

__all__ = ["command"]

_TABLES = {1: "bot", 2: "pairing"}  # the word for one table, by its number of seats


class _CrossedBot(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot did at all its tables.

    Attributes:
        total_error: one standard error, from single units; so is `mean_error`.
        mean: per unit.
        interval: [low, high] of the mean; null for too few units.
        eliminated: null unless it is out.
    """

    name: str
    units: int
    won: int
    total: int
    total_error: float | None
    mean: float | None
    mean_error: float | None
    interval: tuple[float, float] | None
    level: float | None
    method: str | None
    eliminated: OffenceFound | None


class _CrossedTable(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a table, by its bots.

    Attributes:
        score_errors: standard errors, from single units.
        intervals: of the means per unit.
    """

    bots: Sequence[str]
    matches: int
    units: int
    scores: Sequence[int]
    score_errors: Sequence[float | None]
    intervals: Sequence[output.ShownInterval]
    points: Sequence[int]
    won: Sequence[int]
    eliminated: OffenceFound | None


class _Crossed(SeriesFound, frozen=True, kw_only=True):
    """What was played.

    Attributes:
        bots: the best first.
    """

    bots: Sequence[_CrossedBot]
    tables: Sequence[_CrossedTable]


@result_command("cross", cls=LimitsCommand, prints=_Crossed)
@options.jobs_option(
    "play up to N pairings side by side, by default as many as the bots take tables"
)
@no_bus_options
@click.option(
    "--duplicate",
    is_flag=True,
    help="Deal the same cards in all seats, each time to new bots: fewer games tell two apart.",
)
@lab_runs.series_options
def command(series: SeriesOptions) -> Iterator[Found]:
    """Let every bot of a game play against every bot.

    Each BOT is the name of a house bot or a FILE.py; without any, all house bots of the game play.
    In some games every bot also meets itself, which counts for nobody. A game for more than two is
    played at all tables of different bots; with fewer bots than seats, each sits at every table,
    some repeatedly. Against the dealer each plays alone.

    Without options the game says how many matches a table plays, enough for an interval or for
    all seatings, by the settings of a competition.

    With --duplicate the same cards are dealt once for every seat, so that each bot has had them
    all; such matches are one value of an interval. Against the dealer all bots have the same cards.
    It helps where the cards decide much, and hardly where play is long.

    With --bot the named bots play, if any, and after them those of the commands. All of them run
    as processes, under the limits below and a referee, as in a competition, and as many pairings
    are played side by side as the bots take tables, or as --jobs says. The same cards cannot be
    dealt again then.

    Long work goes to several processes, in which a bot is reset before each match and made anew
    for every 24 matches of a table.

    A bot that offends is out: its pairings count for nobody, and the exit status is 1.
    """
    lab_runs.check(series.commands, series.seed, series.limits)
    game = series.game
    names = series.bots or (() if series.commands else tuple(house_bots(game.name)))
    check_entrants(game, names, len(series.commands))
    planned = lab_runs.plan(
        series, matches=game.cross.matches, defaults=game.cross.settings, competition=True
    )
    if series.duplicate:
        planned = _in_all_seats(planned, series)
    seed = None if series.commands else options.fresh_seed(series.seed)
    bots = len(names) + len(series.commands)
    seeds = table_seeds(game, bots, seed or 0, duplicate=planned.duplicate)
    table = lab_runs.crossed(planned, series, names, seeds, seed)
    yield _document(planned, table, seed), _lines(planned, table, seed)
    out = [lab_runs.out(table.names[bot], why) for bot, why in table.offences.items()]
    if out:
        raise output.Eliminated("; ".join(out))


def _in_all_seats(planned: SeriesPlan, series: SeriesOptions) -> SeriesPlan:
    """Return the plan with enough matches for all seatings, unless --games gives the number."""
    if series.commands:
        raise UsageError(
            "expected no --bot with --duplicate: a process could remember the cards it has seen"
        )
    seats, matches = planned.game.seats, planned.matches
    if (
        matches % seats
        and series.games is not None
        and "games" not in planned.settings.__struct_fields__
    ):
        raise UsageError(
            f"expected a multiple of {seats} matches with --duplicate, a match for every seat, "
            f"got {matches:,}"
        )
    matches = -(-matches // seats) * seats
    return msgspec.structs.replace(planned, matches=matches, duplicate=True)


def _document(planned: SeriesPlan, table: CrossTable, seed: int | None) -> _Crossed:
    names = table.names
    return _Crossed(
        **planned.about(seed),
        bots=[
            _CrossedBot(
                name=score.name,
                units=score.units,
                won=score.won,
                total=score.total,
                total_error=score.total_error,
                mean=score.mean,
                mean_error=score.mean_error,
                **output.interval_fields(score.interval),
                eliminated=OffenceFound.of(score.offence, names),
            )
            for score in table.scores()
        ],
        tables=[
            _CrossedTable(
                bots=[names[bot] for bot in sitting.bots],
                matches=sitting.matches,
                units=sitting.samples[0].count,
                scores=sitting.scores,
                score_errors=[sample.error_of_total for sample in sitting.samples],
                intervals=[
                    output.ShownInterval.of(intervals.of_mean(planned.game, [(sitting, place)]))
                    for place in range(len(sitting.bots))
                ],
                points=sitting.points,
                won=sitting.won,
                eliminated=OffenceFound.of(sitting.offence, names),
            )
            for sitting in table.sittings
        ],
    )


def _lines(planned: SeriesPlan, table: CrossTable, seed: int | None) -> output.Lines:
    scores = table.scores()
    what = unit(planned.game)
    won = "ahead" if planned.game.seats == 1 else "won"

    table_word = _TABLES.get(planned.game.seats, "table")
    title = f"{planned.title} per {table_word}{lab_runs.seed_shown(seed)}"
    met = {sitting.bots: sitting for sitting in table.counting()}

    def against(other: int, score: BotScore) -> str:
        sitting = met.get((min(score.bot, other), max(score.bot, other)))
        return _cell(planned, sitting, score.bot)

    def total(score: BotScore) -> str:
        if score.offence is not None:
            return "eliminated"
        if not score.units:
            return "–"  # the bot met only itself and eliminated bots
        return _total(planned, score.total, score.units, score.interval)

    def mean(score: BotScore) -> str:
        if score.offence is not None:
            return score.offence.kind
        return planned.with_interval(score.mean, score.interval, 3) if score.units else "–"

    columns: list[output.Column] = [(output.several(what), "units"), (won, "won")]
    if planned.game.seats == 2:
        columns = [(table.names[score.bot], partial(against, score.bot)) for score in scores]
    columns += [("total", total), (f"per {what}", mean)]
    yield output.table_of(title, scores, ("bot", "name"), *columns, words=("bot",))
    yield planned.interval_note(score.interval for score in scores if score.units)


def _cell(planned: SeriesPlan, sitting: Sitting | None, bot: int) -> str:
    """Return the score of `bot` at a table; against itself, that of its first instance."""
    if sitting is None:
        return "–"
    place = sitting.bots.index(bot)
    interval = intervals.of_mean(planned.game, [(sitting, place)])
    return _total(planned, sitting.scores[place], sitting.samples[place].count, interval)


def _total(planned: SeriesPlan, score: int, units: int, interval: Interval | None) -> str:
    """Format a score over `units`, with the interval of their mean scaled to the score."""
    return planned.with_interval(score, None if interval is None else interval.scaled(units))
