"""Every bot against every bot, in this process: who sits with whom, what they score, and how sure that is (A10, G16).

A *sitting* is all that the same bots play at one table: one match or several, the seats rotating so that after
`seats!` matches everyone has sat everywhere and behind everyone equally often (K1). What it adds up to is counted by
`arena/lab/series.py`; the spread of the samples there gives the standard errors.

A bot that offends is out: its sittings stay in the table and count for nobody (J3).

`arena/lab/launched.py` plays the same sittings with bots that are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, islice, permutations
from math import factorial
from random import Random

import msgspec

from arena.engine.drive import drive
from arena.engine.match import Match
from arena.engine.rules import Game
from arena.engine.shuffle import seed_from_int
from arena.engine.statistics import error_of_sum
from arena.lab.series import Offence, Sitting, Tally, unit
from protocol.strategy import Strategy
from protocol.vocabulary import Settings

__all__ = [
    "CrossTable",
    "Entrant",
    "Offence",
    "Sitting",
    "Standing",
    "cross",
    "derived_seed",
    "play_sitting",
    "seatings",
    "tables",
    "unit",
]

AGAINST_ITSELF = frozenset({"ace_king_queen"})
"""The games in which a bot also meets another instance of itself (A10)."""


class Entrant(msgspec.Struct, frozen=True):
    """A bot that takes part: what people call it, and what makes an instance from a seed."""

    name: str
    make: Callable[[str], Strategy]


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
        standings = [
            _standing(bot, counted, offences.get(bot)) for bot in range(len(self.names))
        ]
        return sorted(standings, key=lambda s: (s.offence is not None, -s.total))


def cross(
    game: Game,
    entrants: Sequence[Entrant],
    *,
    matches: int,
    settings: Settings,
    seed: int,
    tick: Callable[[], None],
) -> CrossTable:
    """Play the whole table, without those that have offended from then on.

    Args:
        game: what is played.
        entrants: the bots, all of different names.
        matches: per sitting.
        settings: of every match.
        seed: what all cards and all instances' seeds are derived from.
        tick: called after every unit.
    """
    sittings: list[Sitting] = []
    out: set[int] = set()
    itself = game.name in AGAINST_ITSELF
    for table in tables(game.seats, len(entrants), itself=itself):
        if out & set(table):
            continue
        sitting = play_sitting(
            game,
            entrants,
            table,
            matches=matches,
            settings=settings,
            seed=derived_seed(seed, "table", *table),
            tick=tick,
        )
        sittings.append(sitting)
        if sitting.offence is not None:
            out.add(sitting.offence.bot)
    return CrossTable(tuple(entrant.name for entrant in entrants), tuple(sittings))


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


def play_sitting(
    game: Game,
    entrants: Sequence[Entrant],
    bots: tuple[int, ...],
    *,
    matches: int,
    settings: Settings,
    seed: int,
    tick: Callable[[], None],
) -> Sitting:
    """Play what the same bots play at one table; the first offence ends it.

    One instance per chair plays all the matches. `bots` are numbers in `entrants`, the other arguments as in `cross`.
    """
    strategies = [
        entrants[bot].make(f"{seed}:{place}") for place, bot in enumerate(bots)
    ]
    tally = Tally(game, bots, tick)
    for number, chairs in enumerate(islice(seatings(len(bots)), matches)):
        match = Match(
            tally.sit_down(chairs),
            settings,
            seed=seed_from_int(derived_seed(seed, "match", number) if number else seed),
        )
        drive(match, [strategies[place] for place in chairs])
        tally.match_over(match.result())
        if tally.offence is not None:
            break
    return tally.sitting()


def seatings(seats: int) -> Iterator[tuple[int, ...]]:
    """Who sits where in match after match, as places by seat: `seats` rotations of one order, then of the next."""
    orders = [(0, *rest) for rest in permutations(range(1, seats))]
    assert len(orders) == factorial(seats - 1), "the rotations of these are all orders"
    while True:
        for order in orders:
            for turn in range(seats):
                yield order[turn:] + order[:turn]


def derived_seed(seed: int, *parts: object) -> int:
    """A seed of its own for a part of what one seed stands for."""
    return Random(":".join(map(str, (seed, *parts)))).getrandbits(63)


def _standing(
    bot: int, sittings: Sequence[Sitting], offence: Offence | None
) -> Standing:
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
