"""Experiments with bots in Python: `arena.cross` and `arena.compare`.

They work as the commands of these names, but only with bots as objects: the same seed gives the
same result. A bot is a house bot's name, a FILE.py, or a class or function that makes strategies.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

import msgspec

from arena.games.catalogue import competition_settings, game_named
from arena.games.rules import Game
from arena.games.statistics import Interval, plural, with_interval
from arena.lab.compare import Matchup
from arena.lab.comparison import LEVEL_WITHIN, Comparison, Standpoint
from arena.lab.crosstable import BotScore, CrossTable, check_entrants, table_seeds
from arena.lab.file_versions import bot_path, entrants_of
from arena.lab.in_process import Entrant, play_parts, seeded
from arena.lab.matches import Offence, unit, units_per_match
from arena.lab.sittings import TableMatches
from protocol.errors import UnknownBot, UsageError
from protocol.strategy import Strategy, blaming, house_bots
from protocol.vocabulary import Settings

__all__ = ["Bot", "BotScore", "ComparedBots", "CrossScores", "compare", "cross"]

Bot: TypeAlias = str | Callable[[], Strategy]
"""A house bot's name, a FILE.py, a FILE.py@COMMIT, or a class or function that makes a strategy."""


class CrossScores(msgspec.Struct, frozen=True):
    """The result of a cross table: `bots` with the best first, and the `table` itself."""

    game: str
    settings: Settings
    matches: int
    seed: int
    bots: tuple[BotScore, ...]
    table: CrossTable

    def __repr__(self) -> str:
        played = plural(self.matches, "match")
        return f"CrossScores({self.game}, {played} a table, seed {self.seed}: {[*self.bots]})"

    def __str__(self) -> str:
        return "\n".join(map(repr, self.bots))


class ComparedBots(msgspec.Struct, frozen=True):
    """Which of two bots is better, and how sure that is.

    Attributes:
        verdict: `first` or `second` is better, they are `level` or `alike`, or it is `open`.
        units: how many were played, `unit` being what one is called.
        value: what the first won of a unit, or how much more than the other it gained.
        counted_in: `share`, or what a gain is counted in, such as `chip per hand`.
        interval: of the value, however often one looks; None while there are too few.
        more: about how many more units would settle it; None for too many.
        offence: why a bot is out; then nothing else counts.
        text: all that in words.
    """

    game: str
    settings: Settings
    seed: int
    bots: tuple[str, str]
    verdict: Standpoint
    unit: str
    units: int
    value: float | None
    counted_in: str
    interval: Interval | None
    more: int | None
    offence: Offence | None
    text: str

    @property
    def better(self) -> str | None:
        """The name of the better bot; None if it is not known, or neither is."""
        known = {Standpoint.FIRST: self.bots[0], Standpoint.SECOND: self.bots[1]}
        return known.get(self.verdict)

    def __repr__(self) -> str:
        value = "–"
        if self.value is not None:
            value = with_interval(f"{self.value:.3f}", self.interval, "{:.3f}".format)
        after = plural(self.units, self.unit)
        return f"ComparedBots({', '.join(self.bots)}: {self.verdict}, {value} in {after})"

    def __str__(self) -> str:
        return self.text


def cross(
    game: str,
    bots: Iterable[Bot] = (),
    *,
    matches: int | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    duplicate: bool = False,
    jobs: int = 1,
) -> CrossScores:
    """Let every bot play against every bot, as `arena cross` does; without bots, all house bots.

    Args:
        matches: how many a table plays; by default enough for an interval.
        settings: replace those of a competition.
        seed: what cards and bots are drawn from; None draws one.
        duplicate: whether the same cards are dealt in all seats.
        jobs: how many processes play. With more than one the main module is imported again in each,
            and bots that are no names must be found there.
    """
    rules = game_named(game)
    seed = _fresh(seed)
    read = competition_settings(rules, {**rules.cross.settings, **(settings or {})})
    count = _matches(rules, matches, duplicate)
    chosen = tuple(bots) or tuple(house_bots(rules.name))
    named = [bot for bot in chosen if isinstance(bot, str)]
    check_entrants(rules, named, len(chosen) - len(named))
    with ExitStack() as stack:
        entrants = _entrants(rules, chosen, stack)
        seeds = table_seeds(rules, len(entrants), seed, duplicate=duplicate)
        table = CrossTable(rules, [each.name for each in entrants])
        experiment = TableMatches(rules, read, duplicate=duplicate)
        with _random_kept():
            play_parts(
                experiment,
                entrants,
                experiment.parts(seeds, count),
                table.add,
                units=len(seeds) * count * units_per_match(rules, read),
                jobs=jobs,
            )
    return CrossScores(rules.name, read, count, seed, table.scores(), table)


def compare(
    game: str,
    first: Bot,
    second: Bot,
    *,
    level: float = LEVEL_WITHIN,
    most: int | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    jobs: int = 1,
) -> ComparedBots:
    """Play two bots until it is known which is better, as `arena compare` does.

    Args:
        level: call them level if they differ by less: in games of 100, or in per cent of an ante or
            a chip.
        most: how many units are played at most.
        settings: replace those of a competition.
        seed: what cards and bots are drawn from; None draws one.
        jobs: as for `cross`.
    """
    rules = game_named(game)
    seed = _fresh(seed)
    matchup = Matchup(rules, competition_settings(rules, settings or {}), seed)
    with ExitStack() as stack:
        entrants = _entrants(rules, (first, second), stack)
        names = entrants[0].name, entrants[1].name
        run = Comparison(matchup, names, seed, level=level, most=most)
        with _random_kept():
            play_parts(matchup, entrants, range(run.most), run.add_part, units=run.most, jobs=jobs)
    text = "\n".join((run.sentence(), *run.notes()))
    if run.offence is not None:
        text = f"{names[run.offence.bot]} is out: {run.offence.text}"
    return ComparedBots(
        game=rules.name,
        settings=matchup.settings,
        seed=seed,
        bots=names,
        verdict=run.standpoint,
        unit=unit(rules),
        units=run.units,
        value=run.values.mean,
        counted_in=matchup.counted_in,
        interval=run.interval,
        more=run.more() if run.standpoint is Standpoint.OPEN else 0,
        offence=run.offence,
        text=text,
    )


class _Factory:
    """Makes strategies from a class or function; if that fails, the bot is blamed."""

    def __init__(self, name: str, make: Callable[[], Strategy]) -> None:
        self._name, self._make = name, make

    def __call__(self, seed: str) -> Strategy:
        with blaming(f"{self._name} cannot be started"):
            strategy = self._make()
            if not callable(getattr(strategy, "decide", None)):
                raise TypeError(f"expected a strategy from {self._name}, got {strategy!r:.80}")
            return seeded(strategy, seed)


def _entrants(game: Game, bots: Sequence[Bot], stack: ExitStack) -> tuple[Entrant, ...]:
    named = [bot for bot in bots if isinstance(bot, str)]
    paths = [stack.enter_context(bot_path(bot)) for bot in named]
    makers = iter(entrants_of(game, named, paths))
    entrants: list[Entrant] = []
    for bot in bots:
        name = bot if isinstance(bot, str) else _name(game, bot)
        same = sum(each.name.partition(" (")[0] == name for each in entrants)
        shown = f"{name} ({same + 1})" if same else name
        make = next(makers).make if isinstance(bot, str) else _Factory(name, bot)
        entrants.append(Entrant(shown, make))
    return tuple(entrants)


def _name(game: Game, bot: object) -> str:
    """Return the name of a class or function; raises if it cannot be a bot of this game."""
    if not callable(bot):
        raise UsageError(
            f"expected a bot's name, a FILE.py, or a class or function that makes one, "
            f"got {bot!r:.80}"
        )
    name = str(getattr(bot, "__name__", type(bot).__name__))
    plays = getattr(bot, "game", game.name)
    if plays != game.name:
        raise UnknownBot(f"{name} plays {plays}, expected a bot for {game.name}")
    return name


def _matches(game: Game, matches: int | None, duplicate: bool) -> int:
    if matches is None:
        matches = game.cross.matches
        return -(-matches // game.seats) * game.seats if duplicate else matches
    if matches < 1 or (duplicate and matches % game.seats):
        needed = f"a multiple of {game.seats} matches" if duplicate else "at least 1 match"
        raise UsageError(f"expected {needed}, got {matches}")
    return matches


def _fresh(seed: int | None) -> int:
    return secrets.randbelow(10**9) if seed is None else seed  # short enough to type


@contextmanager
def _random_kept() -> Iterator[None]:
    """Restore the state of the module `random` afterwards: matches seed it for bots."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
