"""Plays two bots against each other until it is known which is better.

The matches come in *parts*: in a part each bot has every seat once, and, where a match is not a
game among many, on the same cards. A comparison looks at the parts in their order, whichever
process played them, so that its answer follows from the seed alone.

- Of two bots in a game that counts units won, a value is the share of a unit, a game. Cards are
  fresh in every match: the same ones soon lie elsewhere, and help little there.
- Else it is a gain: what the first bot's seats get more than the second's, per block of units or
  per match. Against the dealer each plays alone on the same cards. More than two seats are shared
  out in all ways, and what counts is the mean of a bot's seats. If the game measures luck
  (`Game.luck`) and has one seat or more than two, the gain is per round and without luck.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations, count
from time import monotonic

import msgspec

from arena.engine.drive import drive
from arena.engine.match import MatchResult, MatchState, Record
from arena.engine.rules import Game
from arena.engine.shuffle import seed_from_int
from arena.games import game_named
from arena.lab.in_process import Entrant, derived_seed
from arena.lab.series import Offence, reporting_units
from arena.records.luck import luck_of
from arena.sandbox.worker_pool import WorkerPool, startable
from protocol.vocabulary import Settings

__all__ = ["ComparedMatch", "Matchup", "MatchupGame", "MatchupPart", "compare"]

_ALONE_S = 0.5  # in this process, before it is worth starting others


class ComparedMatch(msgspec.Struct, frozen=True):
    """A match that was played: which bot, 0 or 1, sat in each seat, and its record."""

    seats: tuple[int, ...]
    record: Record


class MatchupPart(msgspec.Struct, frozen=True):
    """The result of a part.

    Attributes:
        values: how far the first bot was ahead, in the unit of `Matchup`.
        units: how many units were played, or matches in a game without units; in a game for one
            seat those of one bot.
        measures: by bot, what a league ranks by (`Game.measure`), the mean of its matches.
        matches: in the order in which they were played.
        offence: what ended it; nothing counts then.
    """

    values: tuple[float, ...]
    units: int
    measures: tuple[float, float]
    matches: tuple[ComparedMatch, ...]
    offence: Offence | None = None


class MatchupGame(msgspec.Struct, frozen=True):
    """A match of a part: who sat where, and what every unit brought by seat."""

    seats: tuple[int, ...]
    result: MatchResult
    payoffs: list[Sequence[float]]


class Matchup(msgspec.Struct, frozen=True):
    """What two bots play, and what is compared."""

    game: Game
    settings: Settings

    @property
    def is_share(self) -> bool:
        return self.game.seats == 2 and self.game.is_count and self.game.unit is not None

    @property
    def no_luck(self) -> str | None:
        """Why luck is not taken out of the gain; None if it is."""
        if self.game.seats == 2:
            return "the same cards are dealt in both seatings"
        if self.game.luck is None:
            return "the game does not say what luck is"
        return self.game.luck.refuses(self.settings)

    @property
    def gain_of(self) -> tuple[str, str]:
        """The unit of a gain, and what it is a gain per: `chip`, `hand`."""
        if self.no_luck is None and self.game.luck is not None:
            return self.game.luck.unit, "round"
        return "chip", "match" if self.game.unit is None else self.game.unit.name

    @property
    def seatings(self) -> tuple[tuple[int, ...], ...]:
        """Who sits where in the matches of a part: the number of the bot, 0 or 1, by seat."""
        seats = self.game.seats
        if seats == 1:
            return (0,), (1,)
        sizes = sorted({seats // 2, seats - seats // 2})
        chosen = [set(firsts) for size in sizes for firsts in combinations(range(seats), size)]
        return tuple(tuple(int(seat not in firsts) for seat in range(seats)) for firsts in chosen)

    @property
    def copies(self) -> int:
        """How many seats a bot has at a table at most."""
        return (self.game.seats + 1) // 2

    def part(self, played: Sequence[MatchupGame], offence: Offence | None) -> MatchupPart:
        """Add up the matches of a part."""
        matches = tuple(ComparedMatch(each.seats, each.result.record) for each in played)
        if offence is not None:
            return MatchupPart((), 0, (0, 0), matches, offence)
        if self.is_share:
            shares = [share for each in played for share in _shares(each)]
            return MatchupPart(tuple(shares), len(shares), (0, 0), matches)
        measures = [
            [
                self.game.measure.value(self.settings, score)
                for each in played
                for sitter, score in zip(each.seats, each.result.scores, strict=True)
                if sitter == bot
            ]
            for bot in (0, 1)
        ]
        values = tuple(self._gains(played))
        units = sum(len(each.payoffs) for each in played) or len(played)
        if self.game.seats == 1:
            units //= 2
        means = [sum(of) / len(of) for of in measures]
        return MatchupPart(values, units, (means[0], means[1]), matches)

    def _gains(self, played: Sequence[MatchupGame]) -> Iterable[float]:
        rounds: list[Sequence[Sequence[float]]]
        if self.no_luck is None:
            rounds = [self._without_luck(each) for each in played]
        else:
            rounds = [each.payoffs or [each.result.scores] for each in played]
        if self.game.seats == 2 and self.game.unit is not None:
            # Blocks of both seatings have had the same cards.
            size = min(self.game.unit.block, min(map(len, rounds)))
            for at in range(0, min(map(len, rounds)) - size + 1, size) if size else ():
                yield self._ahead(played, [each[at : at + size] for each in rounds])
        elif all(rounds):
            yield self._ahead(played, rounds)

    def _ahead(
        self, played: Sequence[MatchupGame], rounds: Sequence[Sequence[Sequence[float]]]
    ) -> float:
        """How far the first bot is ahead per round: the mean of its seats minus the other's.

        With two seats it is half of that: what the first bot gains.
        """
        means = []
        for bot in (0, 1):
            of_seats = [
                sum(gains[seat] for gains in of_match) / len(of_match)
                for each, of_match in zip(played, rounds, strict=True)
                for seat, sitter in enumerate(each.seats)
                if sitter == bot
            ]
            means.append(sum(of_seats) / len(of_seats))
        return (means[0] - means[1]) / (2 if self.game.seats == 2 else 1)

    def _without_luck(self, played: MatchupGame) -> list[tuple[float, ...]]:
        """What each round of a match brought each seat without luck."""
        return [
            tuple(gain - luck for gain, luck in zip(each.gains, each.luck, strict=True))
            for each in luck_of(played.result.record).rounds
        ]


def compare(
    matchup: Matchup,
    entrants: Sequence[Entrant],
    on_part: Callable[[MatchupPart], bool],
    *,
    seed: int,
    jobs: int,
) -> None:
    """Play parts until `on_part` says that it was the last one; it gets them in their order.

    The two `entrants` play as objects, in up to `jobs` processes. The parts depend on the seed
    alone.
    """
    task = partial(_play_part, matchup.game.name, matchup.settings, tuple(entrants), seed)
    numbers = count()
    end_s = monotonic() + _ALONE_S
    while startable(jobs) == 1 or monotonic() < end_s:
        if on_part(task(next(numbers), lambda: None)):
            return
    with WorkerPool(task, jobs, "played") as pool:
        for _, part in pool.run(numbers):
            if on_part(part):
                return


def _play_part(
    game: str,
    settings: Settings,
    entrants: Sequence[Entrant],
    seed: int,
    number: int,
    tick: Callable[[], None],
) -> MatchupPart:
    matchup = Matchup(game_named(game), settings)
    played: list[MatchupGame] = []
    for turn, seats in enumerate(matchup.seatings):
        cards = derived_seed(seed, "part", number, *([turn] if matchup.is_share else []))
        own = derived_seed(seed, "bots", number, turn if matchup.game.seats > 1 else 0)
        random.seed(own)  # for bots that draw from the module instead of a generator of their own
        payoffs: list[Sequence[float]] = []
        reported = reporting_units(matchup.game, payoffs)
        match = MatchState(reported, settings, seed=seed_from_int(cards))
        drive(match, [entrants[bot].make(f"{own}:{seat}") for seat, bot in enumerate(seats)])
        tick()
        result = match.result()
        played.append(MatchupGame(seats, result, payoffs))
        if result.offender is not None:
            bot = seats[result.offender]
            return matchup.part(played, Offence.of(result.termination, None, bot, bot))
    return matchup.part(played, None)


def _shares(played: MatchupGame) -> Iterable[float]:
    """The first bot's share of each unit; a draw is a half."""
    first = played.seats.index(0)
    for payoffs in played.payoffs:
        yield (1 + payoffs[first] - payoffs[1 - first]) / 2
