"""Whether a bot that does not always do the same with a hand mixes or adapts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb
from typing import TypeAlias

import numpy as np

from arena.games.blackjack.layout import Cell
from arena.games.blackjack.probe import HandAnswer
from arena.games.blackjack.values import FreshDeck, Place

__all__ = ["ALARM", "differing", "found_adapting", "is_mixed"]

Answers: TypeAlias = Mapping[Place, Sequence[HandAnswer]]

ALARM = 0.01  # how often a bot that mixes may be said to adapt
_OF = {
    "is_rich": "its bankroll",
    "is_late": "how long the match has gone on",
    "after_loss": "whether it lost the hand before",
    "is_raised": "its bet",
}


def is_mixed(answers: Answers) -> bool:
    """Whether a bot did different things with one hand."""
    return any(len({answer.hits for answer in of}) > 1 for of in answers.values())


def differing(first: Answers, second: Answers) -> tuple[int, int]:
    """With how many hands a bot did something else when it was asked again, and of how many."""
    both = [(of, second[place]) for place, of in first.items() if place in second]
    return sum({a.hits for a in of} != {b.hits for b in others} for of, others in both), len(both)


def found_adapting(fresh: FreshDeck, answers: Answers) -> str:
    """What a bot's hits depend on beside the hand; empty for one that only mixes.

    In every cell of the chart hits are counted with and without some condition, hand by hand. If it
    does not matter, they fall on the two sides by chance; Bonferroni's correction is for all tests.
    """
    cells: dict[Cell, list[Sequence[HandAnswer]]] = {}
    for (upcard, hand), of in answers.items():
        cell = fresh.hands.soft[hand], fresh.hands.totals[hand], upcard
        cells.setdefault(cell, []).append(of)
    tests = len(cells) * len(_OF)
    for condition, words in _OF.items():
        if any(_chance(cell, condition) * tests < ALARM for cell in cells.values()):
            return f"How often it hits depends on {words}."
    return ""


def _chance(hands: Sequence[Sequence[HandAnswer]], condition: str) -> float:
    """How likely chance alone gives hits so unevenly; exactly, with as many of each hand."""
    hits, likely = 0, np.ones(1)
    for of in hands:
        under = [answer.hits for answer in of if getattr(answer, condition)]
        every = sum(answer.hits for answer in of)
        hits += sum(under)
        likely = np.convolve(likely, [*_hypergeometric(len(under), every, len(of))])
    return float(likely[likely <= likely[hits] * (1 + 1e-9)].sum())


def _hypergeometric(drawn: int, marked: int, of: int) -> Iterator[float]:
    for each in range(min(drawn, marked) + 1):
        yield comb(marked, each) * comb(of - marked, drawn - each) / comb(of, drawn)
