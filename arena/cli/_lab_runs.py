"""Plays the matches of `arena play`, `cross`, `ruin` and `replay --bot`, and reports offences.

Normally, bots are objects, in this process or in workers like it. If at least one bot is given as a
command line, all bots run as processes. The code that launches them is imported only in that case.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import linecache
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import limits_options
from arena.cli._signals import ending_at_ctrl_c, stops_at_sigterm
from arena.games.catalogue import competition_settings
from arena.games.rules import Game
from arena.games.statistics import FEWEST, Interval
from arena.lab.crosstable import CrossTable
from arena.lab.in_process import Entrant, entrant, play_parts
from arena.lab.intervals import sampled_unit
from arena.lab.matches import Experiment, Offence, Summed, unit, units_per_match
from arena.lab.sittings import Sitting, TableMatches
from arena.sandbox.bot_spec import BotSpec, named
from arena.sandbox.command import Program
from arena.sandbox.worker_pool import usable_cores
from arena.storage.recent_matches import LabMatches
from protocol.errors import UsageError
from protocol.messages import Ending, Limits
from protocol.vocabulary import Settings
from protocol.watchdog import Watchdog

if TYPE_CHECKING:
    from arena.lab.launched import PoolBot

__all__ = [
    "Bar",
    "OffenceFound",
    "SeriesFound",
    "SeriesOptions",
    "SeriesPlan",
    "check",
    "crossed",
    "guests",
    "out",
    "plan",
    "play",
    "run",
    "seed_shown",
    "series_options",
]

Part = TypeVar("Part")
Sums = TypeVar("Sums", bound=Summed)
Result = TypeVar("Result")
Found = TypeVar("Found")


_RAISED_AT = re.compile(r" at (\S+\.py):(\d+)$")  # the end of an error of a bot in this process


class OffenceFound(msgspec.Struct, frozen=True):
    """The offence for which a bot is out, and the match of its table in which it happened."""

    bot: int
    name: str
    kind: Ending
    text: str
    match: int

    @classmethod
    def of(cls, offence: Offence | None, names: Sequence[str]) -> OffenceFound | None:
        if offence is None:
            return None
        name = names[offence.bot]
        return cls(offence.bot, name, offence.kind, offence.text, offence.match)


class SeriesFound(msgspec.Struct, frozen=True, kw_only=True):
    """What was played by `arena play` or `arena cross`.

    Attributes:
        seed: null with --bot.
    """

    game: str
    settings: Any
    matches: int
    seed: int | None
    unit: str


class SeriesOptions(msgspec.Struct, frozen=True):
    """The options of `arena play` and `arena cross`; `commands` are the bots of `--bot`.

    `jobs` is None if `--jobs` is not given. `duplicate` deals the same cards once for every seat.
    """

    game: Game
    bots: tuple[str, ...]
    commands: tuple[BotSpec, ...]
    games: int | None
    hands: int | None
    settings: dict[str, object]
    seed: int | None
    limits: Limits
    jobs: int | None = 1
    duplicate: bool = False


def series_options(command: Callable[[SeriesOptions], Found]) -> Callable[..., Found]:
    """Add the options of `SeriesOptions`; the command gets them as one argument."""

    @functools.wraps(command)
    def gathered(**given: Any) -> Found:
        return command(SeriesOptions(**given))

    decorated = options.seed_option(limits_options(gathered))
    decorated = options.matches_option(options.set_option(decorated))
    decorated = options.bots_argument(options.bot_option(decorated))
    return options.game_argument(decorated)


class Bar(NamedTuple):
    """A progress bar: title, total, noun for what is counted, and options that shorten the run."""

    what: str
    total: int
    noun: str
    less: str


class SeriesPlan(msgspec.Struct, frozen=True):
    """The game, the number of matches and the settings; `duplicate` as in `SeriesOptions`."""

    game: Game
    matches: int
    settings: Settings
    duplicate: bool = False

    @property
    def units(self) -> int:
        """The largest number of units (or matches) that one table plays."""
        return self.matches * units_per_match(self.game, self.settings)

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
        is_together = self.duplicate and not self.game.is_count  # games won are counted one by one
        seats = " with the same cards in all seats" if is_together else ""
        least = 2 if self.game.purse is None else FEWEST
        return output.interval_note(intervals, what + seats, least)

    def about(self, seed: int | None, matches: int | None = None) -> dict[str, Any]:
        """Return the fields of `SeriesFound`; `matches` replaces the planned number."""
        return {
            "game": self.game.name,
            "settings": self.settings,
            "matches": self.matches if matches is None else matches,
            "seed": seed,
            "unit": unit(self.game),
        }

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
    """Return the bots that play as processes: `bots`, then the commands, each with its own name.

    Raises `UnknownBot` if one of `bots` cannot be loaded, and `UsageError` if a name is taken.
    """
    from arena.lab.launched import PoolBot

    with output.stdout_for_results():
        for bot in bots:
            entrant(game, bot)
    taken = [BotSpec(Program(()), stem) for stem in dict.fromkeys(Path(bot).stem for bot in bots)]
    commands = named([*taken, *entries])[len(taken) :]
    return (
        *(PoolBot(bot) for bot in bots),
        *(PoolBot(entry.name or "", entry.program) for entry in commands),
    )


def crossed(
    planned: SeriesPlan,
    series: SeriesOptions,
    bots: Sequence[str],
    seeds: Mapping[tuple[int, ...], int],
    seed: int | None,
    recent: LabMatches | None = None,
) -> CrossTable:
    """Let `bots` and those of `--bot` play at all tables; Ctrl-C raises `Interrupted`.

    Args:
        seeds: the seed of each table's cards, by the numbers of the bots at it.
        seed: the value of `--seed` that repeats the run; None lets processes play.
        recent: where played matches are kept; needs a single job.
    """
    game = planned.game
    keeps = recent is not None
    experiment = TableMatches(
        game, planned.settings, duplicate=planned.duplicate, keeps_records=keeps
    )
    parts = experiment.parts(seeds, planned.matches)
    bar = Bar(game.vocabulary.title, planned.units * len(seeds), unit(game), "--games or --hands")
    processes = guests(game, bots, series.commands) if seed is None else ()
    table = CrossTable(game, [bot.name for bot in processes] or bots)

    def on_sums(sitting: Sitting) -> None:
        for each in sitting.records:
            if recent is not None:
                recent.add(each.seats, each.record)
        table.add(sitting)

    watched = contextlib.ExitStack()
    if seed is not None:
        watchdog = Watchdog((), lambda line: click.echo(f"arena: {line}", err=True))
        watched.enter_context(watchdog)
        watched.enter_context(ending_at_ctrl_c(watchdog))
    with watched:
        play(
            *(experiment, parts, on_sums, bar),
            seed=seed,
            makers=functools.partial(map, functools.partial(entrant, game), bots),
            bots=processes,
            limits=series.limits,
            copies=max(at_table.count(bot) for at_table in seeds for bot in at_table),
            jobs=series.jobs,
        )
    return table


def play(
    experiment: Experiment[Part, Sums],
    parts: Sequence[Part],
    on_sums: Callable[[Sums], bool | None],
    bar: Bar,
    *,
    seed: int | None,
    makers: Callable[[], Iterable[Entrant]],
    bots: Sequence[PoolBot],
    limits: Limits,
    copies: int,
    jobs: int | None,
) -> None:
    """Play parts with a progress bar; Ctrl-C raises `Interrupted`.

    Args:
        seed: the value of `--seed` that repeats the run; None lets processes play.
        makers: makes the bots that play as objects; what they print goes to stderr.
        bots: the bots that play as processes; each takes `copies` seats at once.
        jobs: for objects, the number of worker processes, by default one per core. For processes,
            the number of parts played at once, by default as many as they can take.
    """
    if seed is None:
        from arena.lab import launched

        about: dict[str, Any] = {"limits": limits, "copies": copies, "at_once": jobs}
        run(
            lambda count: launched.play_parts(
                experiment, bots, parts, on_sums, tick=count.tick, **about
            ),
            bar,
        )
        return
    with (
        output.stdout_for_results(),
        output.progress(bar.what, bar.total, bar.noun, seed=seed, less=bar.less) as progress,
    ):
        play_parts(
            experiment,
            tuple(makers()),
            parts,
            on_sums,
            units=bar.total,
            report=progress.tick,
            jobs=jobs or usable_cores(),
        )


def run(playing: Callable[[output.ProgressCount], Coroutine[Any, Any, Result]], bar: Bar) -> Result:
    """Run a coroutine in which processes play, with a progress bar.

    Ctrl-C or SIGTERM stops all bots and raises `Interrupted`.
    """

    async def play(count: output.ProgressCount) -> Result:
        stops_at_sigterm()
        return await playing(count)

    # The seed is never shown: Ctrl-C is caught here first.
    with output.progress(bar.what, bar.total, bar.noun, seed=0, less=bar.less) as progress:
        try:
            return asyncio.run(play(progress))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Interrupted(
                f"interrupted after {progress.done:,} of {output.plural(bar.total, bar.noun)}, "
                f"all bots are stopped; a smaller {bar.less} shortens the run"
            ) from None


def out(name: str, offence: Offence) -> str:
    """Print the end of a bot's stderr; return why the bot is eliminated and how to fix it."""
    output.print_stderr(name, offence.stderr)
    text = f"{name} is eliminated in match {offence.match}: {offence.kind}: {offence.text}"
    place = _RAISED_AT.search(text)
    if place and (line := linecache.getline(place[1], int(place[2])).strip()):
        text += f": {line}"
    return f"{text}; {offence.advice}" if offence.advice else text


def seed_shown(seed: int | None) -> str:
    """Return the end of a title, which names the seed; empty if `seed` is None."""
    return "" if seed is None else f", seed {seed}"
