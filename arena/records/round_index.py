"""The index of a long match: what every round brought, so that a reader finds the one to look at.

It is made of what ended each round, as far as it was told to whoever reads it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from arena.engine.match import MatchStep
from arena.engine.rules import EVERYONE, Game
from protocol.words import gains

__all__ = ["LONG", "RoundGains", "index", "rounds"]

LONG = 100
"""Decisions that a match with an index has at least: more lines than anybody wants to page."""

_LINES = 40  # of an index, about


class RoundGains(msgspec.Struct, frozen=True, gc=False):
    """What a round brought, by seat; `number` counts from 1."""

    number: int
    gains: tuple[int, ...]


def rounds(game: Game, steps: Iterable[MatchStep], seat: int | None) -> Iterator[RoundGains]:
    """The rounds of a match that are over, as all seats were told of them, or a single one."""
    words, number = game.vocabulary, 0
    for step in steps:
        for told in step.news:
            if type(told.news) is words.closes and told.seat in (EVERYONE, seat or 0):
                number += 1
                yield RoundGains(number, tuple(words.payoffs(told.news)))


def index(played: Sequence[RoundGains], names: Sequence[str]) -> Iterator[str]:
    """The lines of an index: a round in each, or several with the one that moved most."""
    size = -(-len(played) // _LINES)
    for first in range(0, len(played), size):
        some = played[first : first + size]
        if size == 1:
            yield f"  round {some[0].number:,}: {gains(names, some[0].gains)}"
            continue
        sums = [sum(of_seat) for of_seat in zip(*(each.gains for each in some), strict=True)]
        most = max(some, key=lambda each: max(map(abs, each.gains)))
        yield (
            f"  rounds {some[0].number:,} to {some[-1].number:,}: {gains(names, sums)}; "
            f"most in round {most.number:,}: {gains(names, most.gains)}"
        )
