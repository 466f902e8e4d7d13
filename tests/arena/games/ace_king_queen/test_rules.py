"""Ace-King-Queen (section A): any match beside the rules told once more, and what chance deals.

`rules.cases` shows rule by rule.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arena
from arena.games.ace_king_queen.rules import GAME, deals
from arena.games.rules import EVERYONE
from arena.games.shuffle import Stream
from bots.ace_king_queen import Bluffer, Learner, Nash
from protocol.ace_king_queen import AceKingQueenSettings
from tests.support.rule_oracle import Ask, Tell, play_beside

DEALS = list(itertools.permutations("AKQ", 2))


def ace_king_queen(
    decks: Iterator[Any], agreed: AceKingQueenSettings, ask: Ask, tell: Tell
) -> list[int]:
    scores = [0, 0]
    for number in range(1, agreed.hands + 1):
        cards = next(decks)
        bettor, caller = ((0, 1), (1, 0))[(number - 1) % 2]
        response = None
        opening = ask(bettor, "open", round=number, card=cards[bettor], legal=("bet", "check"))
        if opening == "bet":
            response = ask(
                caller, "respond", round=number, card=cards[caller], legal=("call", "fold")
            )
        first_is_higher = "QKA".index(cards[0]) > "QKA".index(cards[1])
        winner = bettor if response == "fold" else 0 if first_is_higher else 1
        won = 2 if response == "call" else 1
        payoffs = (won, -won) if winner == 0 else (-won, won)
        scores = [scores[0] + payoffs[0], scores[1] + payoffs[1]]
        told = {"cards": cards, "open": opening, "response": response, "payoffs": payoffs}
        tell(EVERYONE, "hand_over", round=number, bettor=bettor, scores=tuple(scores), **told)
    return scores


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 30))
def test_A1_to_A8_whatever_is_played_is_as_the_rules_say(seed: int, hands: int) -> None:
    rng = random.Random(seed)
    decks = rng.choices(DEALS, k=hands)
    result = play_beside(GAME, ace_king_queen, rng, decks, {"hands": hands})
    assert sum(result.scores) == 0


def test_A1_all_six_deals_are_equally_likely() -> None:
    stream = deals(AceKingQueenSettings(), Stream(b"A1"))
    counts = Counter(tuple(next(stream)[:2]) for _ in range(6000))

    assert set(counts) == set(DEALS)
    assert all(abs(count - 1000) < 4 * 29 for count in counts.values())  # √(6000·5/36)


class CountsResets(Bluffer):
    """Counts its resets."""

    resets = 0

    def reset(self) -> None:
        self.resets += 1


def test_A9_a_strategy_is_reset_once_before_a_match() -> None:
    strategies = [CountsResets(), CountsResets()]
    arena.play("akq", strategies, settings={"hands": 50}, seed=1)

    assert [strategy.resets for strategy in strategies] == [1, 1]


def test_A9_one_instance_may_not_play_itself() -> None:
    both = CountsResets()

    with pytest.raises(ValueError, match="two instances"):
        arena.play("akq", [both, both])
    assert both.resets == 0


@pytest.mark.parametrize("pair", list(itertools.product([Nash, Learner, Bluffer], repeat=2)))
def test_A9_A10_every_strategy_can_meet_every_other_and_itself(pair: tuple[Any, Any]) -> None:
    result = arena.play("akq", [cls() for cls in pair], settings={"hands": 100}, seed=1)

    assert result.termination.kind == "completed"
    assert sum(result.scores) == 0
