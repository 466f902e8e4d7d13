"""The part of `arena check-game` that checks a game's luck meter and its unit.

A wrong meter makes no match fail: only the scores without luck would be wrong. What can be checked
is that it has a round for each closed round, that its gains are the payoffs, and that luck is 0 on
average, no matter who plays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import hypot, isclose

from arena.authoring.playout import Playout, are_numbers, raised
from arena.games.rules import EVERYONE, Game, LuckRound, TellSeat
from arena.records.luck import measure
from protocol.vocabulary import Settings

__all__ = ["LuckCheck"]

Found = Iterator[tuple[str, str]]

# In standard errors. Four would give one false alarm in 16,000 samples; a check has a sample for
# each seat and bot, and sums of few rounds have longer tails.
_MOST_ERRORS = 5.0


class LuckCheck:
    """Checks whether a game's meter and unit fit the rounds of its matches with some settings."""

    def __init__(self, game: Game, settings: Settings) -> None:
        self._game, self._settings = game, settings
        self._gains: defaultdict[str, list[float]] = defaultdict(list)
        self._luck: defaultdict[str, list[float]] = defaultdict(list)

    def check(self, played: Playout, names: Sequence[str]) -> Found:
        """Yield what does not fit in one match; `names` are the players by seat, for `means`."""
        try:
            paid = [*self._paid(played)]
        except Exception as error:
            if self._game.unit is not None:  # else `payoffs` reports it
                yield "unit", f"`payoffs` raised {raised(error)}"
            return
        if self._game.unit is not None:
            yield from self._unit(played, paid)
        if not all(are_numbers(payoffs, self._game.seats) for payoffs in paid):
            return
        luck = self._game.luck
        try:
            if luck is None or luck.refuses(self._settings) is not None:
                return
            rounds = self._measured(played)
        except Exception as error:
            yield "luck", f"raised {raised(error)}"
            return
        if len(rounds) != len(paid):
            yield (
                "luck",
                f"it has {len(rounds)} rounds, expected {len(paid)}, one for each `{self._kind}`",
            )
            return
        for measured, payoffs in zip(rounds, paid, strict=True):
            if wrong := self._wrong(measured, payoffs):
                yield "luck", wrong
                continue
            for name, gain, value in zip(names, measured.gains, measured.luck, strict=True):
                self._gains[name].append(gain)
                self._luck[name].append(value)

    def means(self) -> Found:
        """Yield the players whose luck was not 0 on average in all checked matches."""
        for name, luck in self._luck.items():
            # The error must not be too small just because a rare great gain has not come yet.
            error = hypot(*luck, max(map(abs, self._gains[name])))
            errors = abs(sum(luck)) / error if error else 0.0
            if errors > _MOST_ERRORS:
                yield (
                    "luck",
                    f"of {name} it is {sum(luck) / len(luck):+.3f} on average over {len(luck):,} "
                    f"rounds, expected 0, which is {errors:.1f} standard errors away",
                )

    @property
    def _kind(self) -> str:
        """The kind of the news that ends a round of the meter."""
        unit = self._game.unit
        closes = self._game.vocabulary.closes if unit is None else unit.closes
        return str(closes.__struct_config__.tag)

    def _paid(self, played: Playout) -> Iterator[tuple[float, ...]]:
        unit, words = self._game.unit, self._game.vocabulary
        payoffs = words.payoffs if unit is None else unit.payoffs
        for event in played.events:
            if (
                isinstance(event, TellSeat)
                and event.seat in (EVERYONE, 0)
                and event.news.kind == self._kind
            ):
                yield tuple(payoffs(event.news))

    def _unit(self, played: Playout, paid: Sequence[tuple[float, ...]]) -> Found:
        unit = self._game.unit
        assert unit is not None, "the caller has asked"
        for payoffs in paid:
            if not are_numbers(payoffs, self._game.seats):
                yield "unit", f"`payoffs`: expected {self._game.seats} numbers, got {payoffs}"
                return
        most = getattr(self._settings, unit.setting)
        if len(paid) > most:
            yield (
                "unit",
                f"`{self._kind}` is told {len(paid)} times, expected at most {unit.setting}={most}",
            )
        sums = tuple(map(sum, zip(*paid, strict=True))) or (0,) * self._game.seats
        if sums not in played.boards[-1]:
            yield "unit", f"`payoffs` add up to {sums}, the scores are {played.match.scores}"

    def _measured(self, played: Playout) -> Sequence[LuckRound]:
        """Measure a match with the game's meter."""
        assert self._game.luck is not None, "the caller has asked"
        meter = self._game.luck.meter(self._settings)
        for event in played.events:
            measure(meter, event)
        return [LuckRound(tuple(each.gains), tuple(each.luck)) for each in meter.rounds]

    def _wrong(self, measured: LuckRound, payoffs: Sequence[float]) -> str:
        gains, luck = measured.gains, measured.luck
        if not (are_numbers(gains, self._game.seats) and are_numbers(luck, self._game.seats)):
            return f"expected gains and luck of {self._game.seats}, got {gains} and {luck}"
        if not self._is_paid(gains, payoffs):
            return f"the gains of a round are {gains}, expected its payoffs, {payoffs}"
        return ""

    def _is_paid(self, gains: Sequence[float], payoffs: Sequence[float]) -> bool:
        ante = 1.0
        if self._game.luck is not None and self._game.luck.unit == "ante":
            # Gains are in antes of unknown size: a whole number of chips, the same for all seats.
            ante = next(
                (paid / gain for gain, paid in zip(gains, payoffs, strict=True) if gain), 1.0
            )
        is_whole = ante > 0 and isclose(ante, round(ante), rel_tol=1e-9)
        return is_whole and all(
            isclose(gain * ante, paid, rel_tol=1e-9, abs_tol=1e-9)
            for gain, paid in zip(gains, payoffs, strict=True)
        )
