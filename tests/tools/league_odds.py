"""How likely do three card poker's house bots reach the goal of a league? `python -m
tests.tools.league_odds` computes it, in a few seconds; the manual's table has what it prints.

Nothing is simulated. The outcomes of a round are counted over all hands of the player and of the
dealer. A match is then a Markov chain: its state is the cash and what the bot remembers, such as
the next ante of a martingale. The distribution after each round follows from the one before.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import TypeAlias

import msgspec

from arena.games.catalogue import competition_settings
from arena.games.three_card_poker.rules import GAME
from bots.three_card_poker import PlayerStrategy, Random
from protocol.cards import PACK, Card
from protocol.strategy import house_bots
from protocol.three_card_poker import (
    FOLDED,
    LEAST_CASH,
    Ante,
    Hand,
    RoundOver,
    Strength,
    ThreeCardPokerSettings,
    strength,
)
from protocol.vocabulary import Range

__all__ = ["GoalChance", "chance", "dealers", "house_chances", "outcomes"]

Outcomes: TypeAlias = Mapping[int, Fraction]
"""The probability of every outcome of a round, in antes (T6)."""

DEALERS = 18_424
"""The dealer's hands among the 49 cards that a player does not hold."""
NEGLIGIBLE = 1e-12
"""A state of less probability is dropped; all that is dropped is added up in `GoalChance.dropped`."""
_ANY_HAND: Hand = ("2c", "7d", "Ks")
"""What a bot is told was held: none of the house bots remembers hands."""


class GoalChance(msgspec.Struct, frozen=True):
    """How likely a bot reaches the goal.

    Attributes:
        ante: its first ante.
        reached: the probability; too small by at most `dropped`.
    """

    ante: int
    reached: float
    dropped: float


def house_chances(settings: ThreeCardPokerSettings) -> dict[str, GoalChance]:
    """The chance of every house bot in a match with these settings, by name, the least first."""
    bots = house_bots(GAME.name)
    chances = {name: chance(make(), settings) for name, make in bots.items()}
    return dict(sorted(chances.items(), key=lambda item: item[1].reached))


def chance(bot: PlayerStrategy, settings: ThreeCardPokerSettings) -> GoalChance:
    """How likely a bot reaches the goal of `settings`, which need one, within their rounds (T8)."""
    chain = _MatchChain(bot, settings)
    now = {chain.start: 1.0}
    reached = dropped = 0.0
    for _ in range(settings.rounds):
        then: defaultdict[int, float] = defaultdict(float)
        for state, likely in now.items():
            if likely < NEGLIGIBLE:
                dropped += likely
                continue
            at_the_goal, after = chain[state]
            reached += likely * at_the_goal
            for share, number in after:
                then[number] += likely * share
        now = then
    return GoalChance(chain.first_ante, reached, dropped)


class _MatchChain:
    """The states of a match, numbered as they are met: the cash, and a bot that remembers."""

    def __init__(self, bot: PlayerStrategy, settings: ThreeCardPokerSettings) -> None:
        assert settings.goal is not None, "a chance is that of reaching a goal"
        self._goal = settings.goal
        self._odds = [(outcome, float(share)) for outcome, share in outcomes(bot).items()]
        self._states: list[tuple[int, PlayerStrategy]] = []
        self._numbers: dict[object, int] = {}
        self._steps: dict[int, tuple[float, Sequence[tuple[float, int]]]] = {}
        self.start = self._number(settings.stake, bot)
        self.first_ante = _ante(bot, settings.stake)

    def __getitem__(self, state: int) -> tuple[float, Sequence[tuple[float, int]]]:
        """The probability that the next round ends at the goal, and those of other states."""
        if state not in self._steps:
            self._steps[state] = self._step(*self._states[state])
        return self._steps[state]

    def _step(self, cash: int, bot: PlayerStrategy) -> tuple[float, Sequence[tuple[float, int]]]:
        ante, at_the_goal, then = _ante(bot, cash), 0.0, []
        for outcome, share in self._odds:
            after = cash + outcome * ante
            if after >= self._goal:
                at_the_goal += share
            elif after >= LEAST_CASH:
                wiser = copy(bot)  # what it remembers cannot be changed, or it had no number
                wiser.hear(RoundOver(_ANY_HAND, _ANY_HAND, ante, outcome, after))
                then.append((share, self._number(after, wiser)))
        return at_the_goal, then

    def _number(self, cash: int, bot: PlayerStrategy) -> int:
        memory = tuple(sorted(item for item in vars(bot).items() if item[0] != "random"))
        number = self._numbers.setdefault((cash, memory), len(self._states))
        if number == len(self._states):
            self._states.append((cash, bot))
        return number


def _ante(bot: PlayerStrategy, cash: int) -> int:
    answer = bot.decide(Ante(1, cash, Range(1, cash // 2)))
    assert type(answer) is int, "an ante is a number"
    return answer


def outcomes(bot: PlayerStrategy) -> Outcomes:
    """The outcomes of a round of a bot that decides by its hand alone, or plays one in two."""
    plays_half = isinstance(bot, Random)
    chances: Counter[int] = Counter()
    for hand, counts in dealers().items():
        if plays_half or bot.play(hand, 1, LEAST_CASH):
            chances.update(counts)
        if plays_half or not bot.play(hand, 1, LEAST_CASH):
            chances[FOLDED] += DEALERS
    return {outcome: Fraction(n, chances.total()) for outcome, n in chances.items() if n}


@cache
def dealers() -> Mapping[Hand, Mapping[int, int]]:
    """How many of the dealer's hands bring which outcome to a hand that is played (T6).

    They are counted among all 22,100 hands, less those that share a card with the player's.
    """
    strengths = {hand: strength(hand) for hand in combinations(PACK, 3)}
    sharing: defaultdict[tuple[Card, ...], list[Strength]] = defaultdict(list)
    for hand in sorted(strengths, key=strengths.__getitem__):
        for size in range(4):
            for part in combinations(hand, size):
                sharing[part].append(strengths[hand])
    least = strength(("Qs", "3h", "2d"))
    return {hand: _dealers(hand, own, least, sharing) for hand, own in strengths.items()}


def _dealers(
    hand: Hand,
    own: Strength,
    least: Strength,
    sharing: Mapping[tuple[Card, ...], Sequence[Strength]],
) -> Mapping[int, int]:
    def count(bisect: Callable[[Sequence[Strength], Strength], int], limit: Strength) -> int:
        """Dealer's hands below a limit: inclusion and exclusion of the cards in `hand`."""
        return sum(
            (-1) ** size * sum(bisect(sharing[part], limit) for part in combinations(hand, size))
            for size in range(4)
        )

    weak = count(bisect_left, least)
    beaten = max(weak, count(bisect_left, own))
    level = max(weak, count(bisect_right, own))
    return {1: weak, 2: beaten - weak, 0: level - beaten, -2: DEALERS - level}


def main() -> None:
    """Print the exact chances for the settings of a league, or those that options give."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.league_odds")
    for name in "stake", "goal", "rounds":
        parser.add_argument(f"--{name}", type=int, default=argparse.SUPPRESS)
    settings = competition_settings(GAME, vars(parser.parse_args()))
    assert isinstance(settings, ThreeCardPokerSettings), "they are this game's"

    print(f"From {settings.stake:,} to {settings.goal:,} within {settings.rounds:,} rounds:\n")
    print("| bot | first ante | reaches the goal |\n|---|---|---|")
    for name, one in house_chances(settings).items():
        print(f"| `{name}` | {one.ante} | {one.reached:.4f} |")


if __name__ == "__main__":
    main()
