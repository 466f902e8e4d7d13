"""How good a bot of three card poker is: what its play is worth, and how likely it reaches a goal.

A bot that decides by its hand alone is worth an exact share of the ante. If its ante depends on the
cash alone, the probability of reaching the goal is exact, too. Where a bot draws lots, how often it
plays a hand is estimated from two answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

import msgspec

from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Figure,
    ProbeMatch,
    SeatMatch,
    heard_by,
)
from arena.games.interval import FEWEST
from arena.games.three_card_poker.habits import UNIT, HandTally, ThreeCardPokerHabitMeter
from arena.games.three_card_poker.luck import DEALERS_HANDS, HANDS
from arena.games.three_card_poker.rules import league_goal, reached_goal
from arena.games.three_card_poker.table import HandClass, class_of, hand_classes
from protocol.errors import NoAnalysis
from protocol.three_card_poker import ThreeCardPokerSettings

__all__ = ["BEST", "probe", "watch"]

BEST = Fraction(-100 * 35_253_012, HANDS * DEALERS_HANDS)
"""What a round brings who plays best, in % of the ante."""

_MATCHES = 100  # played where no chain can be solved; at most 1 s of CPU in this process
_MOST_ASKED = 1_000_000  # then no further match is played: where rounds and goal are huge
_Z = NormalDist().inv_cdf(0.975)


def probe(settings: ThreeCardPokerSettings, seed: int, against: Sequence[str]) -> Analyser:
    """Ask a bot all hands twice; raises `NoAnalysis` if it is to be analysed against others."""
    if against:
        raise NoAnalysis("it is played against the dealer: no other bot changes what one is worth")
    from arena.games.three_card_poker.asking import Asking, dependence, differing
    from arena.games.three_card_poker.goal import (
        best_figures,
        chain_figures,
        no_chain,
        tried_figures,
    )

    goal = league_goal(settings.stake) if settings.goal is None else settings.goal
    settings = msgspec.structs.replace(settings, goal=goal)
    askings = Asking(settings, 1, seed), Asking(settings, 2, seed)
    tally, classes = HandTally(), hand_classes(settings.pair_kicker)
    for asking in askings:
        asking.note((yield asking.match()))
        for hand, plays in asking.plays.items():
            tally.add(classes, hand, "play" if plays else "fold")
    unsure = [class_of(hand) for hand in differing(*askings)]
    figures = [*_worth(tally, [classes[number] for number in unsure])]
    adapts, asked = dependence(*askings), 4 * HANDS
    if why := no_chain(settings, askings, adapts):
        won = []
        for number in range(_MATCHES if goal > settings.stake else 0):
            if asked > _MOST_ASKED:
                break
            probed = yield ProbeMatch(settings=settings, seed=seed + number)
            won.append(reached_goal(settings, probed.scores[0]))
            asked += len(probed.decisions)
        figures += tried_figures(settings, why, won)
    else:
        figures += chain_figures(settings, askings[0], tally, unsure)
    return Analysis(
        figures=(*figures, *best_figures(settings)),
        weaknesses=tally.weaknesses(),
        charts=(tally.chart(is_sample=False),),
        adapts=adapts,
        asked=asked,
    )


def _worth(tally: HandTally, unsure: Sequence[HandClass]) -> Iterator[Figure]:
    """What the play is worth, and what is lost against the best play.

    The variance of the mean of two answers is the square of half their difference, on average.
    """
    lost = tally.given_away
    half = _Z * 50 * sqrt(sum(one.gain**2 for one in unsure)) / (HANDS * DEALERS_HANDS)
    least, most = max(0.0, float(lost) - half), float(lost) + half  # nobody is better than the best
    best = float(BEST)
    bands = (best - most, best - least), (least, most)
    values = ("value", BEST - lost), ("given away", lost)
    for (name, value), band in zip(values, bands, strict=True):
        yield Figure(
            name=name,
            value=float(value),
            unit=UNIT,
            certainty=Certainty.PROBED if unsure else Certainty.EXACT,
            low=band[0] if unsure else None,
            high=band[1] if unsure else None,
            fraction="" if unsure else str(value / 100),
            remark=_REMARKS[name],
        )


_REMARKS = {
    "value": f"on average in a round; the best play is worth −{-float(BEST):.4f} %",
    "given away": "the distance from the best play",
}


def watch(matches: Iterable[SeatMatch]) -> Analysis:
    """What can be said from matches that were played; raises `NoAnalysis` if there is no hand."""
    meter, asked = ThreeCardPokerHabitMeter(), 0
    for match in matches:
        heard_by(match, meter)
        asked += len(match.decisions)
    if not meter.tally.hands:
        raise NoAnalysis("it was dealt no hand in these matches")
    return Analysis(
        figures=(_seen(meter), _estimated(meter.tally)),
        weaknesses=meter.tally.weaknesses(),
        charts=meter.charts(),
        asked=asked,
    )


def _seen(meter: ThreeCardPokerHabitMeter) -> Figure:
    """The value by what was done with each class, weighted by how often it is dealt."""
    tally = meter.tally
    if unseen := tally.asked.count(0):
        remark = f"{unseen:,} of {len(tally.asked):,} kinds of hands were not seen"
        return Figure(name="value", value=None, unit=UNIT, remark=remark)
    value, variance = -1.0, 0.0
    for one, played, asked in zip(meter.classes, tally.played, tally.asked, strict=True):
        weight = one.size * one.gain / (HANDS * DEALERS_HANDS)
        likely = (played + 1) / (asked + 2)  # 0 of 1 does not prove that it never does
        value += weight * played / asked
        variance += weight * weight * likely * (1 - likely) / asked
    half = 100 * _Z * sqrt(variance)
    return Figure(
        name="value",
        value=100 * value,
        unit=UNIT,
        certainty=Certainty.PROBED,
        low=100 * value - half,
        high=100 * value + half,
        remark=_REMARKS["value"],
    )


def _estimated(tally: HandTally) -> Figure:
    """What was lost on average; without a mistake nothing tells how sure that is."""
    name, certainty = "given away", Certainty.ESTIMATE
    if tally.hands < FEWEST:
        remark = f"too few hands to say, {tally.hands}; it takes {FEWEST}"
        return Figure(name=name, value=None, unit=UNIT, certainty=certainty, remark=remark)
    lost, half = float(tally.given_away), _Z * tally.error
    return Figure(
        name=name,
        value=lost,
        unit=UNIT,
        certainty=certainty,
        low=max(0.0, lost - half) if half else None,
        high=lost + half if half else None,
        remark="the mean over the hands that were dealt; the rest of what was lost is the dealer's",
    )
