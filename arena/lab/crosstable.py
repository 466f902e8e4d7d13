"""Every bot against every bot: who sits with whom, and what all their sittings say of each bot, and how surely (A10, G16).

A bot that offends is out: its sittings stay in the table and count for nobody (J3). The sittings are played by
`arena/lab/in_process.py` or `arena/lab/launched.py`; the spread of the samples in them gives the standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

import msgspec

from arena.engine.statistics import error_of_sum
from arena.lab.series import Offence, Sitting

__all__ = ["AGAINST_ITSELF", "CrossTable", "Standing", "tables"]

AGAINST_ITSELF = frozenset({"ace_king_queen"})
"""The games in which a bot also meets another instance of itself (A10)."""


class Standing(msgspec.Struct, frozen=True):
    """What one bot came to over all its sittings that count.

    Attributes:
        bot: its number among the entrants.
        units: how many hands, games or matches, of which `won` are counted as in `Sitting`.
        total: the score over all of them, with its standard error.
        mean: the score per unit, with its standard error.
        offence: why it is out; then nothing counts.
    """

    bot: int
    units: int
    won: int
    total: int
    total_error: float | None
    mean: float | None
    mean_error: float | None
    offence: Offence | None


class CrossTable(msgspec.Struct, frozen=True):
    """All sittings that were played, and what follows from them."""

    names: tuple[str, ...]
    sittings: tuple[Sitting, ...]

    @property
    def offences(self) -> dict[int, Offence]:
        """The offence of every bot that is out, by its number."""
        found = (sitting.offence for sitting in self.sittings)
        return {offence.bot: offence for offence in found if offence is not None}

    def counting(self) -> Iterator[Sitting]:
        """The sittings that no offender sat at (J3)."""
        out = self.offences.keys()
        return (sitting for sitting in self.sittings if not out & set(sitting.bots))

    def standings(self) -> list[Standing]:
        """Every bot, best total first, those that are out last.

        A sitting of instances of one bot alone says nothing about it: what one wins the other loses.
        """
        counted = [
            sitting
            for sitting in self.counting()
            if len(sitting.bots) == 1 or len(set(sitting.bots)) > 1
        ]
        offences = self.offences
        standings = [_standing(bot, counted, offences.get(bot)) for bot in range(len(self.names))]
        return sorted(standings, key=lambda s: (s.offence is not None, -s.total))


def tables(seats: int, bots: int, *, itself: bool) -> list[tuple[int, ...]]:
    """Who sits with whom: all different tables of as many different bots as there are seats or bots.

    With fewer bots than seats some sit twice, in every way there is. `itself` adds every bot with itself.
    """
    fewest = 1 if itself else min(seats, bots)
    return [
        table
        for table in combinations_with_replacement(range(bots), seats)
        if len(set(table)) >= fewest
    ]


def _standing(bot: int, sittings: Sequence[Sitting], offence: Offence | None) -> Standing:
    """What a bot came to at these tables."""
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
    return Standing(
        bot=bot,
        units=units,
        won=sum(sitting.won[place] for sitting, place in mine),
        total=total,
        total_error=error,
        mean=total / units if units else None,
        mean_error=None if error is None or not units else error / units,
        offence=offence,
    )
