"""How likely a bot of three card poker reaches its goal, exactly, where that can be said at all.

Two figures are given: without a limit of rounds, which is the chain's own, and within the rounds of
the settings, which is what a league counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import NormalDist

from arena.engine.analysis import Certainty, Figure
from arena.games.three_card_poker_asking import MOST_CASHES, Asking
from arena.games.three_card_poker_chain import GoalChain, best_for_goal, play_odds, round_odds
from arena.games.three_card_poker_habits import HandTally
from arena.games.three_card_poker_judge import MOST_FOR_BEST
from protocol.three_card_poker import LEAST_CASH, ThreeCardPokerSettings

__all__ = ["goal_figures"]

_UNIT = "% of matches"
_Z = NormalDist().inv_cdf(0.975)


def goal_figures(
    settings: ThreeCardPokerSettings,
    askings: Sequence[Asking],
    tally: HandTally,
    unsure: Sequence[int],
    adapts: str,
) -> Iterator[Figure]:
    """The bot's probability of reaching the goal of the settings, and that of the best play.

    Args:
        settings: with a goal.
        askings: with their answers.
        tally: of the same answers.
        unsure: the classes of the hands that were answered differently.
        adapts: how it was found that the bot adapts.
    """
    goal, stake = settings.goal, settings.stake
    assert goal is not None, "it was filled in"
    way = f"from {stake:,} to {goal:,}"
    refused = _refused(settings, goal, askings, adapts)
    if refused:
        yield Figure(name="reaches the goal", value=None, unit=_UNIT, remark=refused)
    else:
        yield from _chances(settings, goal, askings, tally, unsure)
    if stake < goal <= MOST_FOR_BEST:
        yield Figure(
            name="best possible for the goal",
            value=100 * float(best_for_goal(goal, settings.pair_kicker).values[stake]),
            unit=_UNIT,
            remark=f"{way}, by the best antes and plays for it, without a limit of rounds",
        )


def _chances(
    settings: ThreeCardPokerSettings,
    goal: int,
    askings: Sequence[Asking],
    tally: HandTally,
    unsure: Sequence[int],
) -> Iterator[Figure]:
    """Without a limit of rounds and, if no lots are drawn, with that of the settings."""
    stake = settings.stake
    antes = [0] * LEAST_CASH + [min(askings[0].antes[cash]) for cash in range(LEAST_CASH, goal)]
    shares = [played / asked for played, asked in zip(tally.played, tally.asked, strict=True)]
    chain = GoalChain(goal, antes, round_odds(shares, settings.pair_kicker))
    value = 100 * float(chain.values()[stake])
    way = f"from {stake:,} to {goal:,}"
    low = high = None
    if unsure:
        changes = play_odds(settings.pair_kicker)[unsure] @ chain.slopes(stake)
        half = 100 * _Z * sqrt(float(changes @ changes)) / 2
        low, high = max(0.0, value - half), min(100.0, value + half)
    yield Figure(
        name="reaches the goal",
        value=value,
        unit=_UNIT,
        certainty=Certainty.PROBED if unsure else Certainty.EXACT,
        low=low,
        high=high,
        remark=f"{way}, without a limit of rounds",
    )
    if not unsure:
        yield Figure(
            name="reaches the goal in time",
            value=100 * float(chain.within(settings.rounds)[stake]),
            unit=_UNIT,
            remark=f"{way} in at most {settings.rounds:,} rounds",
        )


def _refused(
    settings: ThreeCardPokerSettings, goal: int, askings: Sequence[Asking], adapts: str
) -> str:
    """Why there is no chain; empty if there is one."""
    stake = settings.stake
    if goal <= stake:
        return f"a stake of {stake:,} has reached the goal of {goal:,} already"
    if goal - LEAST_CASH > MOST_CASHES:
        return f"there are more than {MOST_CASHES:,} cashes below the goal of {goal:,}"
    if adapts:
        return "its plays depend on more than its hand"
    first, second = (asking.antes for asking in askings)
    several = [cash for cash in first if len(first[cash] | second[cash]) > 1]
    if several:
        cash = min(several, key=lambda cash: abs(cash - stake))
        one, other = sorted(first[cash] | second[cash])[:2]
        return (
            f"its ante depends on more than its cash: with {cash:,} it antes {one:,} as well as "
            f"{other:,}; `arena ruin` estimates how likely it reaches a goal"
        )
    return ""
