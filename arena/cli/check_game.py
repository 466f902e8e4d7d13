"""`arena check-game`: plays random matches to see whether a game keeps to the conventions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from arena.authoring.game_check import GameReport, check_game
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._results import Found, result_command
from arena.games.rules import Game
from protocol.entry_points import OUR_PACKAGES
from protocol.errors import ArenaError
from protocol.strategy import house_modules
from protocol.watchdog import Watchdog

__all__ = ["command"]


@result_command("check-game", prints=GameReport)
@options.game_argument
@click.option(
    "--matches",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="How many random matches it plays.",
)
@options.seed_option
def command(game: Game, matches: int, seed: int | None) -> Iterator[Found]:
    """Play random matches of GAME, and name every convention that it breaks.

    Each is one line: the name of the convention, which the manual explains under "Writing a game",
    and what is wrong. What breaks the description itself is told when the game is loaded. Code of
    its package that does not return is named with its line. The exit status is 0 only if nothing
    was found.
    """
    seed = options.fresh_seed(seed)
    what = f"Checking {game.vocabulary.title}"
    with (
        output.progress(what, matches, "match", seed=seed, less="--matches") as count,
        output.stdout_for_results(),
        Watchdog(_files(game), lambda line: click.echo(f"arena: {line}", err=True)),
    ):
        report = check_game(game, matches=matches, seed=seed, tick=count.tick)
    yield report, _lines(report)
    if report.broken:
        found = output.plural(len(report.broken), "broken convention")
        raise ArenaError(f"expected none, found {found}; --seed {seed} repeats the check")


def _files(game: Game) -> set[str]:
    """Return the files of a game's rules, words and bots; for a foreign package, all its files."""
    names = game.rules.__module__, game.vocabulary.settings.__module__
    modules = [*(sys.modules[name] for name in names), *house_modules(game.name)]
    files = {str(module.__file__) for module in modules}
    for package in {module.__name__.partition(".")[0] for module in modules} - OUR_PACKAGES:
        for folder in getattr(sys.modules[package], "__path__", ()):  # a module has none
            files.update(map(str, Path(folder).rglob("*.py")))
    return files


def _lines(report: GameReport) -> Iterator[str]:
    yield from map(str, report.broken)
    package = "" if report.package is None else f" ({report.package})"
    played = output.plural(report.matches, "match")
    end = f"{played} of {report.game}{package}, {report.decisions:,.1f} decisions each"
    ok = "" if report.broken else ": every convention holds"
    yield f"{end}{ok} (seed {report.seed})"
