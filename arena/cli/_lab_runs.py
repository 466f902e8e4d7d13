"""Plays the matches of `arena play`, `cross`, `ruin` and `replay --bot`, and reports offences.

Normally, bots are objects, in this process or in workers like it. If at least one bot is given as a
command line, all bots run as processes. The code that launches them is imported only in that case.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import limits_options
from arena.cli._signals import ending_at_ctrl_c, stops_at_sigterm
from arena.engine.rules import Game
from arena.games import competition_settings
from arena.lab.in_process import entrant, sittings
from arena.lab.intervals import sampled_unit
from arena.lab.recent_matches import LabMatches
from arena.lab.series import Offence, Sitting, unit, units_per_match
from arena.sandbox.bot_spec import BotSpec, named
from arena.sandbox.command import Program
from arena.sandbox.worker_pool import usable_cores
from arena.strength.interval import Interval
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.vocabulary import Settings
from protocol.watchdog import Watchdog

if TYPE_CHECKING:
    from arena.lab.bot_pool import PoolBot

__all__ = [
    "FEWER",
    "SeriesOptions",
    "SeriesPlan",
    "check",
    "guests",
    "in_process",
    "launched",
    "offence_document",
    "out",
    "plan",
    "run",
    "seed_shown",
    "series_options",
]

Result = TypeVar("Result")

FEWER = "--games or --hands"


class SeriesOptions(msgspec.Struct, frozen=True):
    """What `arena play` and `arena cross` are called with; `commands` are the bots of `--bot`.

    `jobs` is None if `--jobs` is not given. `duplicate` deals the same cards in all seats.
    """

    game: Game
    bots: tuple[str, ...]
    commands: tuple[BotSpec, ...]
    games: int | None
    hands: int | None
    settings: dict[str, object]
    seed: int | None
    as_json: bool
    limits: Limits
    jobs: int | None = 1
    duplicate: bool = False


def series_options(command: Callable[[SeriesOptions], None]) -> Callable[..., None]:
    """Add the options of `SeriesOptions`; the command gets them as one argument."""

    @functools.wraps(command)
    def gathered(**given: Any) -> None:
        command(SeriesOptions(**given))

    decorated = options.seed_option(options.json_option(limits_options(gathered)))
    decorated = options.matches_option(options.set_option(decorated))
    decorated = click.argument("bots", nargs=-1, metavar="[BOT]...")(options.bot_option(decorated))
    return options.game_argument(decorated)


class SeriesPlan(msgspec.Struct, frozen=True):
    """Which game is played, how many matches, by which settings; `duplicate` as in the options."""

    game: Game
    matches: int
    settings: Settings
    duplicate: bool = False

    @property
    def units(self) -> int:
        """How many units or matches one table plays at most."""
        return self.matches * units_per_match(self.game, self.settings)

    def bar(self, tables: int) -> tuple[str, int, str]:
        """The title, total and unit of a progress bar for this many tables."""
        return self.game.vocabulary.title, self.units * tables, unit(self.game)

    def score(self, value: float | None, digits: int = 0) -> str:
        if not self.game.is_count or value is None:
            return output.signed(value, digits)
        return f"{value:,.{digits}f}"

    def with_interval(self, value: float | None, interval: Interval | None, digits: int = 0) -> str:
        return output.with_interval(
            self.score(value, digits), interval, lambda end: self.score(end, digits)
        )

    def interval_note(self, intervals: Iterable[Interval | None]) -> str:
        per_match = units_per_match(self.game, self.settings)
        what = sampled_unit(self.game, per_match)
        is_together = self.duplicate and not self.game.is_count  # games won are shares, one by one
        seats = " with the same cards in all seats" if is_together else ""
        return output.interval_note(intervals, what + seats)

    @property
    def title(self) -> str:
        what = unit(self.game)
        text = f"{self.game.vocabulary.title}, {output.plural(self.matches, 'match')}"
        return text if what == "match" else f"{text}, {output.plural(self.units, what)}"


def plan(
    series: SeriesOptions,
    *,
    matches: int = 1,
    defaults: Mapping[str, object] | None = None,
    competition: bool = False,
) -> SeriesPlan:
    """Combine what the options `--games`, `--hands` and `--set` ask for.

    Args:
        matches: how many matches are played if `--games` does not say.
        defaults: settings that replace the rulebook's if no option gives them.
        competition: whether the rulebook's settings for a competition apply (B14, K3).

    Raises:
        UsageError: the options contradict each other or do not suit the game.
        BadSettings: a setting is unknown or out of its range.
    """
    game, settings = series.game, series.settings
    known = game.vocabulary.settings.__struct_fields__
    chosen: dict[str, object] = {}
    if series.hands is not None:
        if "hands" not in known:
            rest = ", ".join(f"--set {name}=…" for name in known)
            raise UsageError(f"a match of {game.name} has no --hands; expected --games or {rest}")
        chosen["hands"] = series.hands
    if series.games is not None and "games" in known:
        chosen["games"] = series.games
    elif series.games is not None:
        matches = series.games
    for name in chosen.keys() & settings.keys():
        raise UsageError(f"expected --{name} or --set {name}=…, got both")
    asked = {**(defaults or {}), **settings, **chosen}
    if competition:
        return SeriesPlan(game, matches, competition_settings(game, asked))
    return SeriesPlan(game, matches, game.vocabulary.read_settings(asked))


def check(entries: Sequence[BotSpec], seed: int | None, limits: Limits) -> None:
    """Raise `UsageError` if `--seed` was given with `--bot`, or limits without it."""
    if entries and seed is not None:
        raise UsageError(
            "expected no --seed with --bot: "
            "the cards come from fresh seeds and nonces, and cannot be dealt again"
        )
    if not entries and limits != Limits():
        raise UsageError(
            "expected limits with --bot only: bots in this process are not held to any"
        )


def guests(game: Game, bots: Sequence[str], entries: Sequence[BotSpec]) -> tuple[PoolBot, ...]:
    """The bots that play as processes: `bots`, then the commands, each under a name of its own.

    Raises `UnknownBot` if one of `bots` cannot be loaded, and `UsageError` if a name is taken.
    """
    from arena.lab.bot_pool import PoolBot

    with output.stdout_for_results():
        for bot in bots:
            entrant(game, bot)
    taken = [BotSpec(Program(()), stem) for stem in dict.fromkeys(Path(bot).stem for bot in bots)]
    commands = named([*taken, *entries])[len(taken) :]
    return (
        *(PoolBot(bot) for bot in bots),
        *(PoolBot(entry.name or "", entry.program) for entry in commands),
    )


def in_process(
    planned: SeriesPlan,
    bots: Sequence[str],
    seeds: Mapping[tuple[int, ...], int],
    seed: int,
    jobs: int | None = 1,
    recent: LabMatches | None = None,
) -> tuple[Sitting, ...]:
    """Let objects play at tables, here and in up to `jobs` processes; None means one per core.

    Ctrl-C raises `Interrupted`.

    Args:
        seeds: the seed of each table's cards, by the bots at it, which are indices of `bots`.
        seed: the value of `--seed` that plays all of it again.
        recent: what remembers the matches; with one job only.
    """
    with (
        output.stdout_for_results(),
        output.progress(*planned.bar(len(seeds)), seed=seed, less=FEWER) as progress,
        Watchdog((), lambda line: click.echo(f"arena: {line}", err=True)) as watchdog,
        ending_at_ctrl_c(watchdog),
    ):
        return sittings(
            planned.game,
            [entrant(planned.game, bot) for bot in bots],
            list(seeds),
            seeds=seeds.values(),
            matches=planned.matches,
            settings=planned.settings,
            duplicate=planned.duplicate,
            report=progress.tick,
            jobs=jobs or usable_cores(),
            on_match=None if recent is None else recent.add,
        )


def launched(
    planned: SeriesPlan,
    series: SeriesOptions,
    bots: Sequence[str],
    tables: Sequence[tuple[int, ...]],
    recent: LabMatches | None = None,
) -> tuple[tuple[str, ...], tuple[Sitting, ...]]:
    """Let `bots` and those of `--bot` play as processes, by `run`; returns names and results."""
    from arena.lab.launched import sittings

    processes = guests(planned.game, bots, series.commands)
    played = run(
        lambda progress: sittings(
            planned.game,
            processes,
            tables,
            matches=planned.matches,
            settings=planned.settings,
            limits=series.limits,
            tick=progress.tick,
            jobs=series.jobs,
            on_match=None if recent is None else recent.add,
        ),
        *planned.bar(len(tables)),
        FEWER,
    )
    return tuple(bot.name for bot in processes), played


def run(
    playing: Callable[[output.ProgressCount], Coroutine[Any, Any, Result]],
    what: str,
    total: int,
    noun: str,
    less: str,
) -> Result:
    """Let processes play, with a progress bar; the arguments are those of `output.progress`.

    Ctrl-C or SIGTERM stops all bots, and raises `Interrupted`.
    """

    async def play(count: output.ProgressCount) -> Result:
        stops_at_sigterm()
        return await playing(count)

    # The seed is never shown: Ctrl-C is caught here first.
    with output.progress(what, total, noun, seed=0, less=less) as progress:
        try:
            return asyncio.run(play(progress))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Interrupted(
                f"interrupted after {progress.done:,} of {output.plural(total, noun)}, "
                f"all bots are stopped; a smaller {less} shortens the run"
            ) from None


def out(name: str, offence: Offence) -> str:
    """Print the end of a bot's stderr; return why the bot is eliminated and what can be done."""
    output.print_stderr(name, offence.stderr)
    text = f"{name} is eliminated in match {offence.match}: {offence.kind}: {offence.text}"
    return f"{text}; {offence.advice}" if offence.advice else text


def offence_document(offence: Offence | None, names: Sequence[str]) -> dict[str, object] | None:
    """An offence as `--json` prints it."""
    if offence is None:
        return None
    return {
        "bot": offence.bot,
        "name": names[offence.bot],
        "kind": offence.kind,
        "text": offence.text,
        "match": offence.match,
    }


def seed_shown(seed: int | None) -> str:
    """The end of a title that names the seed; empty without one."""
    return "" if seed is None else f", seed {seed}"
