"""Sittings: all matches of the same bots at one table, and their sums.

Scores are also sampled per *unit*, the smallest thing repeated under the same conditions: the unit
of the game's description, such as a hand, or a match. Intervals are made from *blocks* of units
(`Unit.block`), as consecutive units may be correlated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, permutations

import msgspec

from arena.games.rules import Game
from arena.games.shuffle import seed_from_int
from arena.games.statistics import Sample
from arena.lab.in_process import derived_seed
from arena.lab.matches import Experiment, MatchSpec, Offence, PlayedMatch, SeatedRecord
from protocol.vocabulary import Settings

__all__ = ["MATCHES_AT_ONCE", "Sitting", "TableMatches", "TablePart", "seatings"]

MATCHES_AT_ONCE = 24  # all seatings of up to four bots, equally often (K1)


class Sitting(msgspec.Struct, frozen=True):
    """The results of the bots at one table, each tuple in the order of `bots`.

    Attributes:
        bots: their numbers among the entrants.
        matches: how many were played, including one with an offence.
        scores: the sums over the matches.
        points: the sums of points counted beside the scores; zeros if the game has none.
        won: matches won, or units if scores count units; for a single seat, matches ended ahead.
        samples: samples of the score per unit.
        blocks: samples of the score per block of units, or per match shorter than a block.
        gaps: samples of each bot's lead over each later one, per block, as in `combinations`.
        blocked: the number of units in all blocks together.
        records: the records of the matches, if they are kept.
    """

    bots: tuple[int, ...]
    matches: int
    scores: tuple[int, ...]
    points: tuple[int, ...]
    won: tuple[int, ...]
    samples: tuple[Sample, ...]
    offence: Offence | None
    blocks: tuple[Sample, ...] = ()
    gaps: tuple[Sample, ...] = ()
    blocked: int = 0
    records: tuple[SeatedRecord, ...] = ()

    def followed_by(self, later: Sitting) -> Sitting:
        """Add later matches of the same bots at the same table."""
        offence = later.offence
        if offence is not None:
            match = self.matches + offence.match
            offence = msgspec.structs.replace(offence, match=match)
        for mine, added in zip(self._sampled, later._sampled, strict=True):
            mine.merge(added)
        return msgspec.structs.replace(
            self,
            matches=self.matches + later.matches,
            scores=_added(self.scores, later.scores),
            points=_added(self.points, later.points),
            won=_added(self.won, later.won),
            offence=offence,
            blocked=self.blocked + later.blocked,
            records=later.records,
        )

    @property
    def _sampled(self) -> tuple[Sample, ...]:
        return self.samples + self.blocks + self.gaps

    @property
    def leaders(self) -> tuple[int, ...]:
        """The winners as indices in `bots`: by matches, then score (K1); never an offender."""
        if self.offence is not None:
            out = self.offence.place
            return tuple(i for i in range(len(self.bots)) if i != out)
        ranks = list(zip(self.won, self.scores, strict=True))
        return tuple(i for i, rank in enumerate(ranks) if rank == max(ranks))


class TablePart(msgspec.Struct, frozen=True):
    """Some of a table's matches: the bots, the seed, and the numbers of the matches, from 0."""

    table: tuple[int, ...]
    seed: int
    matches: range


class TableMatches(Experiment[TablePart, Sitting]):
    """The matches of tables, each with a seed for its cards and its instances.

    A part is up to `MATCHES_AT_ONCE` matches of one table, with its own instances of the bots.

    Args:
        duplicate: whether the same cards are dealt once for each seat, so that every bot has the
            cards of every seat, each time with new instances. The units of these matches are
            sampled together, as the luck of the cards then cancels out. The number of matches must
            be a multiple of the number of seats.
        keeps_records: whether sittings keep the records of their matches.
    """

    def __init__(
        self,
        game: Game,
        settings: Settings,
        *,
        duplicate: bool = False,
        keeps_records: bool = False,
    ) -> None:
        super().__init__(game, settings)
        self._duplicates = game.seats if duplicate else 1
        self._keeps_records = keeps_records

    def parts(self, seeds: Mapping[tuple[int, ...], int], matches: int) -> list[TablePart]:
        """Return all parts; `seeds` has every table with its seed, and each plays `matches`."""
        assert matches % self._duplicates == 0, "the caller has seen to that"
        at_once = MATCHES_AT_ONCE - MATCHES_AT_ONCE % self._duplicates
        return [
            TablePart(table, seed, range(first, min(first + at_once, matches)))
            for table, seed in seeds.items()
            for first in range(0, matches, at_once)
        ]

    def bots(self, part: TablePart) -> tuple[int, ...]:
        return part.table

    def specs(self, part: TablePart) -> Iterator[MatchSpec]:
        first = part.matches.start
        instances = seed = derived_seed(part.seed, "part", first) if first else part.seed
        turns = islice(seatings(len(part.table)), first, part.matches.stop)
        for number, numbers in zip(part.matches, turns, strict=True):
            deal = number - number % self._duplicates
            cards = derived_seed(part.seed, "match", deal) if deal else part.seed
            if number > deal:  # a bot must not remember the repeated cards
                instances = derived_seed(seed, "again", number)
            yield MatchSpec(
                bots=tuple(part.table[place] for place in numbers),
                numbers=numbers,
                cards=seed_from_int(cards),
                instances=instances,
                module=seed if number == first else None,
            )

    def summed(self, part: TablePart, played: Sequence[PlayedMatch]) -> Sitting:
        places = range(len(part.table))
        scores, points, won = ([0] * len(places) for _ in range(3))
        samples = tuple(Sample() for _ in places)
        for match in played:
            result = match.result
            for seat, place in enumerate(match.spec.numbers):
                scores[place] += result.scores[seat]
                points[place] += result.points[seat]
                won[place] += _won(self.game, match, seat)
                for payoffs in match.payoffs:
                    samples[place].add(payoffs[seat])
        blocks = tuple(Sample() for _ in places)
        gaps = tuple(Sample() for _ in combinations(places, 2))
        blocked = 0
        for size, values in self._blocks(played):
            blocked += size
            for value, sample in zip(values, blocks, strict=True):
                sample.add(value)
            for (first, second), gap in zip(combinations(values, 2), gaps, strict=True):
                gap.add(first - second)
        return Sitting(
            bots=part.table,
            matches=len(played),
            scores=tuple(scores),
            points=tuple(points),
            won=tuple(won),
            samples=samples,
            offence=played[-1].offence(len(played)),
            blocks=blocks,
            gaps=gaps,
            blocked=blocked,
            records=tuple(match.seated for match in played) if self._keeps_records else (),
        )

    def _blocks(self, played: Sequence[PlayedMatch]) -> Iterator[tuple[int, list[float]]]:
        """Yield each whole block of a match, or the match if shorter, as (units, sums by place).

        With duplicates, the matches with the same cards are added up first.
        """
        block = 1 if self.game.unit is None else self.game.unit.block
        counting = [
            match.by_number
            for match in played
            if len(match.payoffs) >= block or match.result.offender is None
        ]
        for at in range(0, len(counting) - self._duplicates + 1, self._duplicates):
            units = [
                [sum(of_place) for of_place in zip(*alike, strict=True)]
                for alike in zip(*counting[at : at + self._duplicates], strict=False)
            ]
            size = min(block, len(units)) or 1
            for end in range(size, len(units) + 1, size):
                values = [sum(of_place) for of_place in zip(*units[end - size : end], strict=True)]
                yield size * self._duplicates, values


def seatings(seats: int) -> Iterator[tuple[int, ...]]:
    """Yield the seating of match after match, as places by seat: all rotations of each order.

    After `seats!` matches every place has been in every seat, and next after every other place,
    equally often (K1).
    """
    while True:
        for rest in permutations(range(1, seats)):
            order = (0, *rest)
            for turn in range(seats):
                yield order[turn:] + order[:turn]


def _added(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(sum, zip(first, second, strict=True)))


def _won(game: Game, match: PlayedMatch, seat: int) -> int:
    """Return what a match adds to `Sitting.won` for a seat."""
    result, scores = match.result, match.result.scores
    if game.is_count:
        return scores[seat]
    if game.seats == 1:
        return int(scores[seat] > 0)
    if result.termination.is_offence:
        return int(result.winner == seat)
    return int(scores[seat] == max(scores) and scores.count(scores[seat]) == 1)
