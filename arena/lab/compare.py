"""The matches that two bots play until it is known which is better.

The matches come in *parts*: in a part each bot plays every seat once, with the same cards if the
value is a gain (see below). A comparison takes the parts in their order, no matter which process
played them, so that its answer follows from the seed alone. A *value* is:

- In a two-seat game that counts units won, the share of a unit that the first bot won. Every match
  has fresh cards: dealing the same ones again helps little, as play soon changes who gets them.
- Otherwise a gain: how much more the first bot's seats get than the second's, per block of units or
  per match. Against the dealer each plays alone with the same cards. More than two seats are shared
  out in all ways, and the mean of a bot's seats counts. If the game measures luck (`Game.luck`) and
  has one seat or more than two, the gain is per round and without luck.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import msgspec

from arena.games.rules import Game
from arena.games.shuffle import seed_from_int
from arena.lab.in_process import derived_seed
from arena.lab.matches import Experiment, MatchSpec, Offence, PlayedMatch, SeatedRecord
from arena.records.luck import luck_of
from protocol.vocabulary import Settings

__all__ = ["Matchup", "MatchupPart"]


class MatchupPart(msgspec.Struct, frozen=True):
    """The result of a part.

    Attributes:
        values: how far the first bot was ahead, in the unit of `Matchup`.
        units: the number of units played, or of matches in a game without units; in a game for
            one seat, only those of one bot.
        measures: by bot, the mean over its matches of what a league ranks by (`Game.measure`).
        matches: in the order in which they were played.
        offence: the offence that ended the part; then nothing in it counts.
    """

    values: tuple[float, ...]
    units: int
    measures: tuple[float, float]
    matches: tuple[SeatedRecord, ...]
    offence: Offence | None = None


class Matchup(Experiment[int, MatchupPart]):
    """What two bots play in each part, and which values are compared.

    Parts are numbered, and depend on the seed alone. A bot given as a command runs as `copies`
    processes, one for each of its seats.
    """

    def __init__(self, game: Game, settings: Settings, seed: int = 0) -> None:
        super().__init__(game, settings)
        self._seed = seed

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
        """The unit of a gain, and what the gain is per, such as `chip` and `hand`."""
        if self.no_luck is None and self.game.luck is not None:
            return self.game.luck.unit, "round"
        return "chip", "match" if self.game.unit is None else self.game.unit.name

    @property
    def counted_in(self) -> str:
        """The unit of a value: `share`, or such as `chip per hand`."""
        return "share" if self.is_share else " per ".join(self.gain_of)

    @property
    def seatings(self) -> tuple[tuple[int, ...], ...]:
        """The seatings of a part's matches, each with the bot's number, 0 or 1, by seat."""
        seats = self.game.seats
        if seats == 1:
            return (0,), (1,)
        sizes = sorted({seats // 2, seats - seats // 2})
        chosen = [set(firsts) for size in sizes for firsts in combinations(range(seats), size)]
        return tuple(tuple(int(seat not in firsts) for seat in range(seats)) for firsts in chosen)

    @property
    def copies(self) -> int:
        """The largest number of seats that a bot has at one table."""
        return (self.game.seats + 1) // 2

    def bots(self, part: int) -> tuple[int, ...]:
        return (0,) * self.copies + (1,) * self.copies

    def specs(self, part: int) -> Iterator[MatchSpec]:
        for turn, seats in enumerate(self.seatings):
            cards = derived_seed(self._seed, "part", part, *([turn] if self.is_share else []))
            own = derived_seed(self._seed, "bots", part, turn if self.game.seats > 1 else 0)
            yield MatchSpec(
                bots=seats,
                numbers=tuple(range(len(seats))),
                cards=seed_from_int(cards),
                instances=own,
                module=own,
            )

    def summed(self, part: int, played: Sequence[PlayedMatch]) -> MatchupPart:
        matches = tuple(each.seated for each in played)
        offence = played[-1].offence()
        if offence is not None:
            offence = msgspec.structs.replace(offence, place=offence.bot)
            return MatchupPart((), 0, (0, 0), matches, offence)
        if self.is_share:
            shares: list[float] = []  # of the first bot; a draw counts half
            for each in played:
                first = each.spec.bots.index(0)
                gaps = (payoffs[first] - payoffs[1 - first] for payoffs in each.payoffs)
                shares += ((1 + gap) / 2 for gap in gaps)
            return MatchupPart(tuple(shares), len(shares), (0, 0), matches)
        measures = [
            [
                self.game.measure.value(self.settings, score)
                for each in played
                for sitter, score in zip(each.spec.bots, each.result.scores, strict=True)
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

    def _gains(self, played: Sequence[PlayedMatch]) -> Iterable[float]:
        rounds: list[Sequence[Sequence[float]]]
        if self.no_luck is None:
            rounds = [self._without_luck(each) for each in played]
        else:
            rounds = [each.payoffs or [each.result.scores] for each in played]
        if self.game.seats == 2 and self.game.unit is not None:
            # The blocks of both seatings had the same cards.
            size = min(self.game.unit.block, min(map(len, rounds)))
            for at in range(0, min(map(len, rounds)) - size + 1, size) if size else ():
                yield self._ahead(played, [each[at : at + size] for each in rounds])
        elif all(rounds):
            yield self._ahead(played, rounds)

    def _ahead(
        self, played: Sequence[PlayedMatch], rounds: Sequence[Sequence[Sequence[float]]]
    ) -> float:
        """Return the first bot's lead per round: the mean of its seats minus that of the other's.

        With two seats, half of that is returned, which is the first bot's gain.
        """
        means = []
        for bot in (0, 1):
            of_seats = [
                sum(gains[seat] for gains in of_match) / len(of_match)
                for each, of_match in zip(played, rounds, strict=True)
                for seat, sitter in enumerate(each.spec.bots)
                if sitter == bot
            ]
            means.append(sum(of_seats) / len(of_seats))
        return (means[0] - means[1]) / (2 if self.game.seats == 2 else 1)

    def _without_luck(self, played: PlayedMatch) -> list[tuple[float, ...]]:
        """Return each seat's gain in each round of a match, without luck."""
        return [
            tuple(gain - luck for gain, luck in zip(each.gains, each.luck, strict=True))
            for each in luck_of(played.result.record).rounds
        ]
