"""`arena play`: plays a match or a pairing here and now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._lab_runs import OffenceFound, SeriesFound, SeriesOptions, SeriesPlan
from arena.cli._limit_options import LimitsCommand
from arena.cli._results import Found, result_command
from arena.lab import intervals
from arena.lab.matches import unit
from arena.lab.sittings import Sitting
from arena.storage.recent_matches import LabMatches
from protocol.errors import UsageError

__all__ = ["command"]


class _PlayedBot(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot did.

    Attributes:
        won: how many matches; against the dealer, in how many it was ahead.
        mean: per unit.
        standard_error: one, from single units.
        interval: [low, high] of the mean; null for too few units.
    """

    name: str
    won: int
    score: int
    points: int
    mean: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    level: float | None
    method: str | None


class _PlayedPairing(SeriesFound, frozen=True, kw_only=True):
    """What was played.

    Attributes:
        bots: in the order in which they were given.
        winners: their numbers, from 0.
        sure: whether chance alone would hardly make them win; null if that does not say.
        eliminated: null if no bot is.
    """

    bots: Sequence[_PlayedBot]
    winners: Sequence[int]
    sure: bool | None
    eliminated: OffenceFound | None


@result_command("play", cls=LimitsCommand, prints=_PlayedPairing)
@lab_runs.series_options
def command(series: SeriesOptions) -> Iterator[Found]:
    """Play a match or a pairing here and now, and say who won, unless that may be chance.

    GAME is a game or its alias. Each BOT is the name of a house bot, a FILE.py with one class in
    it, or a folder with such a bot.py; a bot may play itself. Against the dealer there is one.
    Without options it is one match by the rulebook's settings.

    With --bot, which may stand for any BOT, the bots come in the order of the names and then of the
    commands, and all of them play as processes, under the limits below and a referee, as in a
    competition. The same cards cannot be dealt again then.

    The first offence ends it, and the exit status is 1. `arena replay last` shows the last match.
    """
    game, bots, commands = series.game, series.bots, series.commands
    if (got := len(bots) + len(commands)) != game.seats:
        expected = output.plural(game.seats, "bot")
        several = "; `arena cross` plays several against each other, or each alone"
        more = several if got > game.seats else ""
        raise UsageError(f"{game.name} is played by {expected}, got {got}{more}")
    lab_runs.check(commands, series.seed, series.limits)
    planned = lab_runs.plan(series)
    seed, recent = None if commands else options.fresh_seed(series.seed), LabMatches()
    seeds = {tuple(range(game.seats)): seed or 0}
    table = lab_runs.crossed(planned, series, bots, seeds, seed, recent)
    names, [sitting] = table.names, table.sittings
    recent.keep(names)
    yield _document(planned, names, sitting, seed), _lines(planned, names, sitting, seed)
    if sitting.offence is not None:
        raise output.Eliminated(lab_runs.out(names[sitting.offence.place], sitting.offence))


def _document(
    planned: SeriesPlan, bots: tuple[str, ...], sitting: Sitting, seed: int | None
) -> _PlayedPairing:
    return _PlayedPairing(
        **planned.about(seed, sitting.matches),
        bots=[
            _PlayedBot(
                name=name,
                won=sitting.won[place],
                score=sitting.scores[place],
                points=sitting.points[place],
                mean=sitting.samples[place].mean,
                standard_error=sitting.samples[place].standard_error,
                **output.interval_fields(intervals.of_mean(planned.game, [(sitting, place)])),
            )
            for place, name in enumerate(bots)
        ],
        winners=sitting.leaders if planned.game.seats > 1 else (),
        sure=_is_sure(planned, sitting),
        eliminated=OffenceFound.of(sitting.offence, bots),
    )


def _lines(
    planned: SeriesPlan, bots: tuple[str, ...], sitting: Sitting, seed: int | None
) -> output.Lines:
    won = "ahead" if planned.game.seats == 1 else "won"
    found = [intervals.of_mean(planned.game, [(sitting, place)]) for place in range(len(bots))]
    columns: list[output.Column] = [
        ("bot", bots.__getitem__),
        (won, sitting.won.__getitem__),
        ("score", lambda place: planned.score(sitting.scores[place])),
        (
            f"per {unit(planned.game)}",
            lambda place: planned.with_interval(sitting.samples[place].mean, found[place], 3),
        ),
    ]
    if any(sitting.points):
        columns.append(("points", sitting.points.__getitem__))
    title = f"{planned.title}{lab_runs.seed_shown(seed)}"
    yield output.table_of(title, range(len(bots)), *columns, words=("bot",))
    yield planned.interval_note(found)
    if planned.game.seats > 1:
        yield _verdict(planned, bots, sitting)


def _is_sure(planned: SeriesPlan, sitting: Sitting) -> bool | None:
    """Whether a single winner is surely better; None without one, or after an offence."""
    if planned.game.seats == 1 or sitting.offence is not None or len(sitting.leaders) > 1:
        return None
    return intervals.is_ahead_for_sure(planned.game, sitting, sitting.leaders[0])


def _verdict(planned: SeriesPlan, bots: tuple[str, ...], sitting: Sitting) -> str:
    """Say in a sentence who won; bots of the same name are numbered by their places."""
    names = [
        name if bots.count(name) == 1 else f"{name} ({place + 1})"
        for place, name in enumerate(bots)
    ]
    leaders = [names[place] for place in sitting.leaders]
    if len(leaders) == 1:
        if _is_sure(planned, sitting) is False:
            units = sitting.samples[0].count
            few = output.plural(units, unit(planned.game))
            few += " is" if units == 1 else " are"
            return f"{leaders[0]} is ahead, but {few} too few to say that it is better"
        return f"{leaders[0]} wins"
    *rest, last = leaders
    together = f"{', '.join(rest)} and {last}"
    return f"{together} {'go on' if sitting.offence else 'share first place'}"
