"""What chance gave each seat of a finished match, computed from its record.

The match is replayed with its deals, and the game's own meter hears all of it. The results are not
part of a record, and no rule uses them. J8 says who may see them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import sub

import msgspec

from arena.games.catalogue import game_named
from arena.games.match import Record
from arena.games.replay import CardsDealt, Event, SeatAnswered, events_of
from arena.games.rules import AskSeat, LuckMeter, LuckRound, TellSeat
from arena.games.statistics import UnitCounter, UnitSums
from protocol.errors import NoLuck

__all__ = ["LuckSums", "MatchLuck", "luck_of", "measure"]


class LuckSums(msgspec.Struct, frozen=True, gc=False):
    """The luck of one match as it is stored: a `MatchLuck` with the number of its rounds only.

    `units` are blocks of `block` rounds.
    """

    rounds: int
    gains: tuple[float, ...]
    luck: tuple[float, ...]
    units: UnitSums | None
    block: int = 1


class MatchLuck(msgspec.Struct, frozen=True):
    """The luck of one match.

    Attributes:
        unit: the unit of gains and luck: `chip`, or `ante`.
        rounds: the complete rounds, in order.
        gains, luck: their sums by seat; the score without luck is the difference.
        units: the sums of the gains without luck, by seat, over the game's units in blocks of
            `block`, or over rounds against the dealer. None without a whole block, and if the match
            itself is the unit.
    """

    unit: str
    rounds: tuple[LuckRound, ...]
    gains: tuple[float, ...]
    luck: tuple[float, ...]
    units: UnitSums | None
    block: int

    @property
    def sums(self) -> LuckSums:
        return LuckSums(len(self.rounds), self.gains, self.luck, self.units, self.block)


def luck_of(record: Record) -> MatchLuck:
    """Replay a record and measure its luck; in a match that was stopped, only that of whole rounds.

    Raises `NoLuck` if decks were given, if the game has no meter, or if it refuses the settings.
    Other errors are those of `events_of`.
    """
    if record.decks is not None:
        raise NoLuck("expected cards dealt by chance, got decks or cuts that somebody gave")
    events = events_of(record)
    game = game_named(record.game, record.package)
    settings = game.vocabulary.read_settings(record.settings)
    if game.luck is None:
        raise NoLuck(f"{game.name} does not say how its luck is measured")
    if (reason := game.luck.refuses(settings)) is not None:
        raise NoLuck(reason)
    meter = game.luck.meter(settings)
    for event in events:
        measure(meter, event)
    block = 1 if game.unit is None else game.unit.block
    has_units = game.unit is not None or game.seats == 1
    units = UnitCounter(game.seats, block)
    for played in meter.rounds:
        units.add(tuple(map(sub, played.gains, played.luck)))
    return MatchLuck(
        unit=game.luck.unit,
        rounds=tuple(meter.rounds),
        gains=_sums(game.seats, (played.gains for played in meter.rounds)),
        luck=_sums(game.seats, (played.luck for played in meter.rounds)),
        units=units.sums() if has_units else None,
        block=block,
    )


def measure(meter: LuckMeter, event: Event) -> None:
    """Pass an event of a match to a meter."""
    if type(event) is TellSeat:
        meter.told(event)
    elif type(event) is AskSeat:
        meter.asked(event)
    elif type(event) is SeatAnswered:
        meter.answered(AskSeat(event.seat, event.question), event.value)
    elif type(event) is CardsDealt:
        meter.dealt(event.deal)


def _sums(seats: int, rounds: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    sums = [0.0] * seats
    for values in rounds:
        for seat, value in enumerate(values):
            sums[seat] += value
    return tuple(sums)
