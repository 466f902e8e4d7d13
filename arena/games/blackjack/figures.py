"""The figures of a player of blackjack.

From a fresh deck and in whole matches are two quantities. From a fresh deck every hand begins with
all 52 cards. In a match the deck is dealt down until fewer than 20 are left, and more hands are
dealt from it if its low cards come first, which are bad for the player: the cut-card effect. So one
is never to be taken for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

import msgspec
from scipy.special import stdtrit  # type: ignore[import-untyped]

from arena.games.analysis import Certainty, Figure
from arena.games.blackjack.rules import RESHUFFLE_BELOW, payoff
from arena.games.blackjack.values import FreshDeck

__all__ = ["at_bet", "best_and_given", "from_fresh", "in_matches", "mean_of", "not_seen"]

_VALUE = "value from a fresh deck"
_OF_BET = "% of the bet"
_CHIPS = "chips a hand"
_EVEN = "For even bets; at odd ones a natural is rounded down (B8)."
_BLOCK = 50  # hands that are one value of a sample
_FEWEST = 20  # such values
_TAIL = 0.025


def mean_of(values: Sequence[float]) -> tuple[float, float, float] | None:
    """The mean over hands and its 95 % interval, by blocks; None if they are too few."""
    blocks = [fmean(values[at : at + _BLOCK]) for at in range(0, len(values) - _BLOCK + 1, _BLOCK)]
    if len(blocks) < _FEWEST:
        return None
    mean = fmean(blocks)
    width = float(stdtrit(len(blocks) - 1, 1 - _TAIL)) * stdev(blocks) / sqrt(len(blocks))
    return mean, mean - width, mean + width


def from_fresh(
    value: float, certainty: Certainty = Certainty.EXACT, band: tuple[float, float] | None = None
) -> Figure:
    """What a bot wins, from what a chip brings."""
    low, high = (None, None) if band is None else (100 * band[0], 100 * band[1])
    return Figure(
        name=_VALUE,
        value=100 * value,
        unit=_OF_BET,
        certainty=certainty,
        low=low,
        high=high,
        remark=_EVEN,
    )


def not_seen(cells: int) -> Figure:
    """Why there is no value of a bot that was not asked everywhere."""
    return Figure(
        name=_VALUE,
        value=None,
        unit=_OF_BET,
        certainty=Certainty.PROBED,
        remark=f"It was never asked in {cells} places of the chart that it may come to (not seen).",
    )


def best_and_given(
    fresh: FreshDeck, lost: float, value: Figure, further: str = ""
) -> tuple[Figure, Figure]:
    """The best play, and how far a bot of this value is from it, which loses so much of a chip."""
    best = 100 * fresh.value(fresh.best)
    return (
        Figure(name="best play from a fresh deck", value=best, unit=_OF_BET, remark=_EVEN),
        Figure(
            name="given away from a fresh deck",
            value=100 * lost,
            unit=_OF_BET,
            certainty=value.certainty,
            low=None if value.high is None else max(0.0, best - value.high),
            high=None if value.low is None else best - value.low,
            remark=f"The distance from the best play; the costs of mistakes sum to it.{further}",
        ),
    )


def at_bet(fresh: FreshDeck, figure: Figure, bet: int) -> Figure:
    """A value in per cent of the bet, as chips with a real bet."""
    less = fresh.naturals * (payoff("natural", bet) - bet * payoff("natural", 2) / 2)
    chips = [
        None if percent is None else bet * percent / 100 + less
        for percent in (figure.value, figure.low, figure.high)
    ]
    return msgspec.structs.replace(
        figure,
        name=f"{_VALUE}, with a bet of {bet}",
        unit=_CHIPS,
        value=chips[0],
        low=chips[1],
        high=chips[2],
        remark=f"Its usual bet from a fresh deck; a natural pays {payoff('natural', bet)}.",
    )


def in_matches(won: Sequence[float], bets: Sequence[int], further: str) -> Figure:
    """What hands of whole matches brought without luck."""
    name = "won in whole matches, without luck"
    found = mean_of(won)
    if found is None:
        return Figure(
            name=name,
            value=None,
            unit=_CHIPS,
            remark=f"{len(won)} hands after fair shuffles are too few to say; it takes "
            f"{_BLOCK * _FEWEST}.",
        )
    mean, low, high = found
    return Figure(
        name=name,
        value=mean,
        unit=_CHIPS,
        certainty=Certainty.ESTIMATE,
        low=low,
        high=high,
        remark=f"Decks are dealt down to {RESHUFFLE_BELOW} cards, so this is not the value from a "
        f"fresh deck (cut-card effect). Bets were {min(bets)} to {max(bets)}, {fmean(bets):.1f} on "
        f"average.{further}",
    )
