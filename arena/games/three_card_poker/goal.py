"""How likely a bot of three card poker reaches its goal: exactly where it can be, else by trying.

Where the ante depends on the cash alone two figures are given: without a limit of rounds, which is
the chain's own, and within the rounds of the settings, which is what a league counts. Elsewhere the
second is estimated from matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import NormalDist

from arena.games.analysis import Certainty, Figure
from arena.games.interval import wilson
from arena.games.three_card_poker.asking import MOST_CASHES, Asking
from arena.games.three_card_poker.chain import GoalChain, best_for_goal, play_odds, round_odds
from arena.games.three_card_poker.habits import HandTally
from arena.games.three_card_poker.judge import MOST_FOR_BEST
from protocol.three_card_poker import LEAST_CASH, ThreeCardPokerSettings

__all__ = ["best_figures", "chain_figures", "no_chain", "tried_figures"]

_UNIT, _IN_TIME = "% of matches", "reaches the goal in time"
_Z = NormalDist().inv_cdf(0.975)


def no_chain(settings: ThreeCardPokerSettings, askings: Sequence[Asking], adapts: str) -> str:
    """Why there is no chain to the goal of the settings; empty if there is one."""
    stake, goal = settings.stake, goal_of(settings)
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
            f"{other:,}"
        )
    return ""


def goal_of(settings: ThreeCardPokerSettings) -> int:
    assert settings.goal is not None, "it was filled in"
    return settings.goal


def chain_figures(
    settings: ThreeCardPokerSettings, asking: Asking, tally: HandTally, unsure: Sequence[int]
) -> Iterator[Figure]:
    """The probability without a limit of rounds and, if no lots are drawn, with the settings'.

    Args:
        settings: with a goal.
        asking: one of them, with its answers.
        tally: of all answers.
        unsure: the classes of the hands that were answered differently.
    """
    goal = goal_of(settings)
    stake = settings.stake
    antes = [0] * LEAST_CASH + [min(asking.antes[cash]) for cash in range(LEAST_CASH, goal)]
    shares = [played / asked for played, asked in zip(tally.played, tally.asked, strict=True)]
    chain = GoalChain(goal, antes, round_odds(shares, settings.pair_kicker))
    value = 100 * float(chain.values()[stake])
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
        remark=f"{_way(settings)}, without a limit of rounds",
    )
    if not unsure:
        yield Figure(
            name=_IN_TIME,
            value=100 * float(chain.within(settings.rounds)[stake]),
            unit=_UNIT,
            remark=_in_time(settings),
        )


def tried_figures(settings: ThreeCardPokerSettings, why: str, won: Sequence[float]) -> list[Figure]:
    """Why there is no chain, and the share of the matches that were won if any were played."""
    figures = [Figure(name="reaches the goal", value=None, unit=_UNIT, remark=why)]
    if won:
        share = sum(won) / len(won)
        low, high = wilson(share, len(won)).scaled(100).bounds
        matches = "1 match" if len(won) == 1 else f"{len(won)} matches"
        figures.append(
            Figure(
                name=_IN_TIME,
                value=100 * share,
                unit=_UNIT,
                certainty=Certainty.ESTIMATE,
                low=low,
                high=high,
                remark=f"{_in_time(settings)}, in {matches}",
            )
        )
    return figures


def best_figures(settings: ThreeCardPokerSettings) -> Iterator[Figure]:
    """What the best play reaches, unless it takes too long to find out."""
    stake, goal = settings.stake, goal_of(settings)
    if stake < goal <= MOST_FOR_BEST:
        best = best_for_goal(goal, settings.pair_kicker)
        yield Figure(
            name="best possible for the goal",
            value=100 * float(best.values[stake]),
            unit=_UNIT,
            remark=f"{_way(settings)}, by the best antes and plays for it, without a limit of "
            f"rounds; a best first ante is {best.antes[stake]:,}",
        )


def _way(settings: ThreeCardPokerSettings) -> str:
    return f"from {settings.stake:,} to {settings.goal:,}"


def _in_time(settings: ThreeCardPokerSettings) -> str:
    return f"{_way(settings)} in at most {settings.rounds:,} rounds"
