"""Every bot against every bot: who meets whom, and standings with intervals (A10, G16).

A bot that offends is out: its sittings stay in the table and count for nobody (J3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement

import msgspec

from arena.games.rules import Game
from arena.games.statistics import Interval, error_of_sum, plural, with_interval
from arena.lab import intervals
from arena.lab.in_process import derived_seed
from arena.lab.matches import Offence, unit
from arena.lab.sittings import Sitting
from protocol.errors import UsageError

__all__ = ["BotScore", "CrossTable", "check_entrants", "table_seeds", "tables"]


class BotScore(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a bot over all its tables that count.

    Attributes:
        bot: its number among the entrants.
        unit: what one unit is called.
        units: the number of units it played.
        won: as in `Sitting`.
        total: the score over all units; `total_error` is its standard error.
        mean: the score per unit; None if it met nobody. `mean_error` is its standard error.
        interval: of `mean`; None if there are too few units.
        offence: why it is out; then nothing counts.
    """

    bot: int
    name: str
    unit: str
    units: int
    won: int
    total: int
    total_error: float | None
    mean: float | None
    mean_error: float | None
    interval: Interval | None
    offence: Offence | None = None

    def __repr__(self) -> str:
        if self.offence is not None:
            return f"{self.name} is out: {self.offence.kind}"
        if self.mean is None:
            return f"{self.name} –"
        mean = with_interval(f"{self.mean:.3f}", self.interval, "{:.3f}".format)
        return f"{self.name} {mean} per {self.unit}"


class CrossTable:
    """Adds up the sittings of each table as they are played."""

    def __init__(self, game: Game, names: Sequence[str]) -> None:
        self.game, self.names = game, tuple(names)
        self._sittings: dict[tuple[int, ...], Sitting] = {}

    def add(self, sitting: Sitting) -> None:
        before = self._sittings.get(sitting.bots)
        added = sitting if before is None else before.followed_by(sitting)
        self._sittings[sitting.bots] = added

    @property
    def sittings(self) -> tuple[Sitting, ...]:
        return tuple(self._sittings.values())

    @property
    def offences(self) -> dict[int, Offence]:
        """Return the offence of every bot that is out, by its number."""
        return {s.offence.bot: s.offence for s in self.sittings if s.offence is not None}

    def counting(self) -> Iterator[Sitting]:
        """Yield the sittings without an offender (J3)."""
        out = self.offences.keys()
        return (sitting for sitting in self.sittings if not out & set(sitting.bots))

    def scores(self) -> tuple[BotScore, ...]:
        """Return the score of every bot, best total first, offenders last.

        A sitting of a bot against itself does not count: what one instance wins the other loses.
        """
        counted = [s for s in self.counting() if len(s.bots) == 1 or len(set(s.bots)) > 1]
        scores = [self._score(bot, name, counted) for bot, name in enumerate(self.names)]
        return tuple(sorted(scores, key=lambda score: (score.offence is not None, -score.total)))

    def _score(self, bot: int, name: str, sittings: Sequence[Sitting]) -> BotScore:
        mine = [
            (sitting, place)
            for sitting in sittings
            for place, sitter in enumerate(sitting.bots)
            if sitter == bot
        ]
        samples = [sitting.samples[place] for sitting, place in mine]
        units = sum(sample.count for sample in samples)
        total = sum(sitting.scores[place] for sitting, place in mine)
        error = error_of_sum(sample.error_of_total for sample in samples)
        return BotScore(
            bot=bot,
            name=name,
            unit=unit(self.game),
            units=units,
            won=sum(sitting.won[place] for sitting, place in mine),
            total=total,
            total_error=error,
            mean=total / units if units else None,
            mean_error=None if error is None or not units else error / units,
            interval=intervals.of_mean(self.game, mine),
            offence=self.offences.get(bot),
        )


def tables(seats: int, bots: int, *, itself: bool) -> list[tuple[int, ...]]:
    """List all tables of different bots; with `itself` also those where a bot meets itself.

    With fewer bots than seats, every bot sits at every table, and some sit twice, in all ways.
    """
    if bots >= seats and not itself:
        return [*combinations(range(bots), seats)]
    fewest = 1 if itself else bots
    every = combinations_with_replacement(range(bots), seats)
    return [table for table in every if len(set(table)) >= fewest]


def table_seeds(game: Game, bots: int, seed: int, *, duplicate: bool) -> dict[tuple[int, ...], int]:
    """Give every table of `bots` bots a seed; against the dealer, `duplicate` tables share one."""
    alone = duplicate and game.seats == 1
    return {
        table: derived_seed(seed, "table", *(() if alone else table))
        for table in tables(game.seats, bots, itself=game.meets_itself)
    }


def check_entrants(game: Game, names: Sequence[str], more: int = 0) -> None:
    """Raise `UsageError` if a name occurs twice, or `names` and `more` others are too few."""
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"expected each bot once, got {name!r} twice")
    fewest = 1 if game.seats == 1 or game.meets_itself else 2
    if (got := len(names) + more) < fewest:
        raise UsageError(
            f"a cross table of {game.name} needs at least {plural(fewest, 'bot')}, got {got}"
        )
