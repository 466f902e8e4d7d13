"""`arena compare`: lets two bots play until it is known which is better."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._bus_options import no_bus_options
from arena.cli._lab_runs import OffenceFound
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.cli._results import Found, result_command
from arena.games.catalogue import GAMES, competition_settings, game_named
from arena.games.rules import Game
from arena.lab.compare import Matchup
from arena.lab.comparison import LEVEL_WITHIN, MOST_BLOCKS, Comparison, Standpoint
from arena.lab.file_versions import bot_path, entrants_of, game_of, is_file
from arena.lab.matches import unit
from arena.sandbox.bot_spec import BotSpec
from arena.sandbox.worker_pool import usable_cores
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.strategy import house_bots

__all__ = ["command"]


class _Compared(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of two bots.

    Attributes:
        seed: null with --bot.
        verdict: better, level, alike or open; null if a bot is eliminated.
        better: the number of the better bot, 0 or 1; null if none is.
        value: what the first won of a game, or how much more than the other it gained.
        counted_in: what `value` is counted in.
        interval: [low, high] of `value`.
        more: about how many more units would settle it; null for too many.
        measures: against the dealer, what a league ranks the two by beside their gain.
    """

    game: str
    settings: Any
    seed: int | None
    bots: Sequence[str]
    verdict: str | None
    better: int | None
    unit: str
    units: int
    value: float | None
    counted_in: str
    interval: tuple[float, float] | None
    level: float | None
    method: str | None
    level_within: float
    more: int | None
    measures: Sequence[float] | None
    eliminated: OffenceFound | None


@result_command("compare", cls=LimitsCommand, prints=_Compared)
@click.argument("bots", nargs=-1, metavar="[GAME] [V1] [V2]")
@options.bot_option
@click.option(
    "--level",
    type=click.FloatRange(min=0, min_open=True, max=50),
    default=LEVEL_WITHIN,
    show_default=True,
    metavar="X",
    help="Call them level if they differ by less: in games of 100, "
    "or in per cent of an ante or a chip.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Play at most about N units (hands, games or matches), by default {MOST_BLOCKS:,} "
    "or as many blocks of them.",
)
@options.jobs_option("play up to N matches side by side, by default one per core")
@no_bus_options
@options.set_option
@options.seed_option
@limits_options
def command(
    bots: tuple[str, ...],
    commands: tuple[BotSpec, ...],
    level: float,
    most: int | None,
    jobs: int | None,
    settings: dict[str, object],
    seed: int | None,
    limits: Limits,
) -> Iterator[Found]:
    """Play two bots against each other until it is known which is better.

    V1 and V2 are each the name of a house bot, a FILE.py, or a FILE.py@COMMIT: the file as it was
    at a commit in git, with the others in its folder. --bot takes the place of one of them, or of
    both. GAME may be left out where a FILE.py says which it is.

    It ends when one is better for sure, when they are level within --level, or after --most. It may
    look after every match, and is still wrong at most once in 20 times. Seats and cards are the
    same for both, as far as that is possible. Against the dealer each plays alone, on the same
    cards. At a table of more than two each has half of the seats, in all ways.

    With --bot all run as processes, under the limits below and a referee, as in a competition. The
    same cards cannot be dealt again then. The first offence ends it, and the exit status is 1.

    `arena replay last` shows the last match.
    """
    lab_runs.check(commands, seed, limits)
    game_name, bots = _read_bots(tuple(map(options.bot_file, bots)), commands)
    with contextlib.ExitStack() as stack:
        paths = tuple(stack.enter_context(bot_path(bot)) for bot in bots)
        with output.stdout_for_results():
            game = _game(game_name, bots, paths)
        seed = None if commands else options.fresh_seed(seed)
        matchup = Matchup(game, competition_settings(game, settings), seed or 0)
        run = Comparison(matchup, bots, seed, level=level, most=most)
        try:
            _play(run, paths, commands, jobs, limits)
        except Interrupted:
            yield _document(run), _lines(run)
            raise Interrupted(_how_to_go_on(run)) from None
    yield _document(run), _lines(run)
    if run.offence is not None:
        raise output.Eliminated(lab_runs.out(run.names[run.offence.bot], run.offence))


def _read_bots(
    words: tuple[str, ...], commands: Sequence[BotSpec]
) -> tuple[str | None, tuple[str, ...]]:
    """Split the words into the game, or None, and the bots that are not commands."""
    if (count := len(words) + len(commands)) not in (2, 3) or len(commands) > 2:
        raise UsageError(f"expected two bots, and perhaps a game before them, got {count} words")
    return (words[0], words[1:]) if count == 3 else (None, words)


def _game(name: str | None, bots: Sequence[str], paths: Sequence[str]) -> Game:
    if name is not None:
        return game_named(name)
    for bot, path in zip(bots, paths, strict=True):
        if is_file(bot):
            return game_of(path)
    fits = [game for game in GAMES.values() if {*bots} <= {*house_bots(game.name, slow=True)}]
    if len(fits) != 1 or not bots:
        raise UsageError("expected a game before the bots: more than one or none fits them")
    return fits[0]


def _play(
    run: Comparison,
    paths: Sequence[str],
    commands: Sequence[BotSpec],
    jobs: int | None,
    limits: Limits,
) -> None:
    """Play until the comparison is decided or has reached --most; Ctrl-C raises `Interrupted`."""
    matchup, parts = run.matchup, range(run.most)
    game = matchup.game
    alone = 2 if game.seats == 1 else 1  # two matches on the same cards count once
    bar = lab_runs.Bar(game.vocabulary.title, run.most * alone, unit(game), "--most")
    bots = lab_runs.guests(game, paths, commands) if run.seed is None else ()
    run.names += tuple(bot.name for bot in bots[len(run.names) :])
    names, at_once = run.names, jobs or usable_cores()
    try:
        lab_runs.play(
            *(matchup, parts, run.add_part, bar),
            seed=run.seed,
            makers=lambda: entrants_of(game, names, paths),
            bots=bots,
            limits=limits,
            copies=matchup.copies * at_once,
            jobs=at_once,
        )
    finally:
        run.recent.keep(run.names)


def _how_to_go_on(run: Comparison) -> str:
    done = output.plural(run.units, unit(run.matchup.game))
    if run.seed is None:
        return f"interrupted after {done}, all bots are stopped"
    return (
        f"interrupted after {done}; the same command with --seed {run.seed} plays these again "
        "and goes on, and a smaller --most or a larger --level shortens it"
    )


def _lines(run: Comparison) -> Iterator[str]:
    """Yield the lines that report the comparison so far."""
    yield f"{run.matchup.game.vocabulary.title}{lab_runs.seed_shown(run.seed)}"
    if run.offence is None:
        yield run.sentence()
        yield from run.notes()


def _document(run: Comparison) -> _Compared:
    matchup, standpoint = run.matchup, run.standpoint
    is_better = standpoint in (Standpoint.FIRST, Standpoint.SECOND)
    verdict = "better" if is_better else str(standpoint)
    return _Compared(
        game=matchup.game.name,
        settings=matchup.settings,
        seed=run.seed,
        bots=run.names,
        verdict=verdict if run.offence is None else None,
        better=int(standpoint is Standpoint.SECOND) if is_better else None,
        unit=unit(matchup.game),
        units=run.units,
        value=run.values.mean,
        counted_in=matchup.counted_in,
        **output.interval_fields(run.interval),
        level_within=run.level,
        more=run.more() if standpoint is Standpoint.OPEN else 0,
        measures=run.measured,
        eliminated=OffenceFound.of(run.offence, run.names),
    )
