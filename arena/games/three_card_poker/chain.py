"""The probability of reaching a goal in three card poker, by exact Markov chains over the cash.

If the ante depends on the cash alone, a match is a Markov chain that ends at the goal or broke. It
has no limit of rounds here, except in `GoalChain.within`. This module needs numpy and scipy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array  # type: ignore[import-untyped]
from scipy.sparse.linalg import splu  # type: ignore[import-untyped]

from arena.games.three_card_poker.table import DEALERS_HANDS, HANDS, hand_classes
from protocol.three_card_poker import LEAST_CASH

__all__ = [
    "STEPS",
    "BestForGoal",
    "GoalChain",
    "HandPlay",
    "best_for_goal",
    "play_odds",
    "round_odds",
]

STEPS = (-2, -1, 0, 1, 2)
"""The payoffs of a round, in antes (T6), in the order of odds."""
_FOLD = STEPS.index(-1)

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def round_odds(shares: Sequence[float], pair_kicker: bool) -> Floats:
    """The probabilities of `STEPS`, given how often the hands of each class are played."""
    weights, paid = _classes(pair_kicker)
    plays = np.array(shares, dtype=float)
    odds: Floats = np.insert(plays @ paid, _FOLD, 1 - plays @ weights)
    return odds


def play_odds(pair_kicker: bool) -> Floats:
    """By class, how the odds of `STEPS` change if one of its hands is played instead of folded."""
    paid = np.array([one.counts for one in hand_classes(pair_kicker)]) / DEALERS_HANDS
    changes: Floats = np.insert(paid, _FOLD, -1, axis=1) / HANDS
    return changes


class GoalChain:
    """The Markov chain of a strategy.

    Args:
        goal: the cash that ends a match.
        antes: by cash, from 0 to `goal` - 1; those below `LEAST_CASH` do not matter.
        odds: the probabilities of `STEPS`, the same in every round or by cash.
    """

    def __init__(self, goal: int, antes: Sequence[int] | Integers, odds: Floats) -> None:
        size = goal - LEAST_CASH
        self._odds = np.broadcast_to(odds, (goal, len(STEPS)))[LEAST_CASH:]
        self._after = _after(np.arange(LEAST_CASH, goal), np.asarray(antes)[LEAST_CASH:], goal)
        rows, steps = np.nonzero((self._after >= LEAST_CASH) & (self._after < goal))
        columns = self._after[rows, steps] - LEAST_CASH
        self._moves = csr_array((self._odds[rows, steps], (rows, columns)), shape=(size, size))
        self._wins: Floats = np.where(self._after == goal, self._odds, 0).sum(axis=1)
        self._solver: Any = splu((eye_array(size) - self._moves).tocsc())

    def values(self) -> Floats:
        """The probability of reaching the goal, by cash from 0 to `goal`."""
        return _padded(self._solver.solve(self._wins))

    def within(self, rounds: int) -> Floats:
        """The same probabilities within a number of rounds."""
        values = np.zeros(len(self._wins))
        for _ in range(rounds):
            values = self._wins + self._moves @ values
        return _padded(values)

    def slopes(self, cash: int) -> Floats:
        """The derivative of the probability from `cash` by the odds of each of `STEPS`."""
        start = np.zeros(len(self._wins))
        start[cash - LEAST_CASH] = 1
        slopes: Floats = self._solver.solve(start, trans="T") @ self.values()[self._after]
        return slopes


class HandPlay:
    """Plays or folds each of several groups of hands, whichever makes the goal more likely."""

    def __init__(self, weights: Floats, paid: Floats) -> None:
        self._weights, self._paid = weights, paid  # `paid` is weighted, by `OUTCOMES`

    def values(self, reached: Floats) -> Floats:
        """The probabilities of the goal, given those after each of `STEPS`."""
        parts = self._parts(reached)
        return np.concatenate([part[:, _FOLD] + gains.clip(0).sum(axis=1) for part, gains in parts])

    def odds(self, reached: Floats) -> Floats:
        """The probabilities of `STEPS` with the better answers."""
        plays = [np.where(gains > 0, 1.0, 0.0) for _, gains in self._parts(reached)]
        return np.concatenate(
            [
                np.insert(some @ self._paid, _FOLD, 1 - some @ self._weights, axis=1)
                for some in plays
            ]
        )

    def _parts(self, reached: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield some rows at a time, with the gain of playing over folding for each group."""
        size = max(1, _AT_ONCE // len(self._weights))
        for first in range(0, len(reached), size):
            part = reached[first : first + size]
            yield part, (np.delete(part, _FOLD, axis=1) - part[:, [_FOLD]]) @ self._paid.T


# Numbers in a table of gains. OpenBLAS splits a larger product over threads, which wait for each
# other so busily that the whole takes twice the CPU.
_AT_ONCE = 65_536
# Antes this close to the best one at their cash are examined again. The two estimates are too low
# by up to 0.0011 of the probability if all hands are played as for chips (from a cash of 50 on),
# and by up to 0.0001 if hands are grouped by the hundred (measured for goals of 60 to 2,000).
_POOR, _NEAR_CHIPS, _NEAR_HUNDRED, _HUNDRED = 50, 2e-3, 2e-4, 100
_BETTER = 1e-12  # a smaller gain does not make an ante better


class BestForGoal:
    """The best antes and plays for a goal, by policy iteration.

    Which hands are worth playing depends on how a win and a loss change the chance of the goal.
    Antes higher than needed to reach the goal in one round only risk more, so they are left out.

    Attributes:
        values: the probability of reaching the goal, by cash from 0 to `goal`.
        antes: a best ante, by cash.
    """

    def __init__(self, goal: int, pair_kicker: bool) -> None:
        weights, paid = _classes(pair_kicker)
        gains = np.array([float(one.gain) for one in hand_classes(pair_kicker)])
        self.goal = goal
        self._chips = round_odds(np.where(gains > 0, 1, 0).tolist(), pair_kicker)
        self._hands, self._hundred = HandPlay(weights, paid), _by_hundred(gains, weights, paid)
        cash = np.arange(LEAST_CASH, goal)
        counts = np.minimum(cash // 2, goal - cash)
        starts = np.cumsum(counts) - counts
        self._cash: Integers = np.repeat(cash, counts)
        self._ante: Integers = np.arange(len(self._cash)) - np.repeat(starts, counts) + 1
        self._after = _after(self._cash, self._ante, goal)
        everywhere = np.arange(goal)
        self.antes: Integers = np.maximum(1, np.minimum(everywhere // 2, goal - everywhere))
        self._odds = np.tile(self._chips, (goal, 1))
        self.values = self._value()
        while self._improve():
            self.values = self._value()

    def cost_of(self, cash: int, ante: int) -> float:
        """How much an ante lowers the probability of the goal if all later play is the best."""
        after = self.values[_after(np.array([cash]), np.array([ante]), self.goal)]
        return max(0.0, float(self.values[cash] - self._hands.values(after)[0]))

    def rounds_needed(self, near: float) -> int:
        """The rounds within which the goal is reached as likely as without a limit, less `near`."""
        chain, rounds = GoalChain(self.goal, self.antes, self._odds), 1
        while np.max(self.values - chain.within(rounds)) > near:
            rounds *= 2
        return rounds

    def _value(self) -> Floats:
        return GoalChain(self.goal, self.antes, self._odds).values()

    def _improve(self) -> bool:
        """Switch to better antes and plays where there are any; returns whether there were."""
        pairs, reached = np.arange(len(self._cash)), self.values[self._after]
        pairs = self._near(pairs, np.einsum("ij,j", reached, self._chips), _NEAR_CHIPS)
        pairs = self._near(pairs, self._hundred.values(reached[pairs]), _NEAR_HUNDRED)
        values = self._hands.values(reached[pairs])
        best = pairs[values >= self._best(pairs, values)[self._cash[pairs]]]
        gains = self._best(pairs, values) - self.values[: self.goal]
        better = best[gains[self._cash[best]] > _BETTER]
        if not len(better):
            return False
        self.antes[self._cash[better]] = self._ante[better]
        self._odds[self._cash[better]] = self._hands.odds(reached[better])
        return True

    def _near(self, pairs: Integers, values: Floats, near: float) -> Integers:
        cash = self._cash[pairs]
        best = self._best(pairs, values)[cash]
        return pairs[(values >= best * (1 - near)) | (cash < _POOR)]

    def _best(self, pairs: Integers, values: Floats) -> Floats:
        best = np.zeros(self.goal)
        np.maximum.at(best, self._cash[pairs], values)
        return best


@lru_cache(maxsize=4)
def best_for_goal(goal: int, pair_kicker: bool) -> BestForGoal:
    """The best play for a goal; computing it takes about a second for a goal of 1,125."""
    return BestForGoal(goal, pair_kicker)


def _classes(pair_kicker: bool) -> tuple[Floats, Floats]:
    """The probability of each class, and of each class with each of `OUTCOMES` if it is played."""
    classes = hand_classes(pair_kicker)
    weights = np.array([one.size for one in classes]) / HANDS
    paid = np.array([one.counts for one in classes]) / DEALERS_HANDS
    return weights, weights[:, None] * paid


def _by_hundred(gains: Floats, weights: Floats, paid: Floats) -> HandPlay:
    """Group hands into hundredths by their gain in chips; a group is played or folded together."""
    order = np.argsort(gains)
    groups = np.minimum(np.cumsum(weights[order]) * _HUNDRED, _HUNDRED - 1).astype(int)
    member = np.eye(_HUNDRED)[groups]
    return HandPlay(weights[order] @ member, member.T @ paid[order])


def _after(cash: Integers, antes: Integers, goal: int) -> Integers:
    """The cash after each of `STEPS`, at most `goal`."""
    after: Integers = np.minimum(cash[:, None] + antes[:, None] * np.array(STEPS), goal)
    return after


def _padded(values: Floats) -> Floats:
    """Extend values to every cash from 0 to the goal."""
    return np.concatenate((np.zeros(LEAST_CASH), values, [1.0]))
