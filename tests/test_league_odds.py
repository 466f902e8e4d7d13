"""The exact chances of the house bots in a league of three card poker are those of the manual."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from arena.games.catalogue import competition_settings
from arena.games.three_card_poker.rules import GAME
from bots.three_card_poker import Q64, Always, Random
from protocol.cards import PACK
from protocol.three_card_poker import FOLDED, Hand, ThreeCardPokerSettings, outcome_of_play
from tests.tools.league_odds import GoalChance, chance, dealers, house_chances, outcomes

MANUAL = Path(__file__).parents[1] / "protocol" / "three_card_poker.md"


@pytest.fixture(scope="module")
def league() -> Mapping[str, GoalChance]:
    """The chances of the house bots with the settings of a league that says nothing."""
    return house_chances(settings_of())


def settings_of(**chosen: Any) -> ThreeCardPokerSettings:
    settings = competition_settings(GAME, chosen)
    assert isinstance(settings, ThreeCardPokerSettings)
    return settings


@pytest.mark.long
def test_K3_the_house_bots_are_told_apart_by_their_chances(
    league: Mapping[str, GoalChance],
) -> None:
    chances = [one.reached for one in league.values()]

    assert all(0.05 <= each <= 0.95 for each in chances)
    assert all(better - worse >= 0.05 for worse, better in pairwise(chances))
    assert all(one.dropped < 1e-6 for one in league.values())


@pytest.mark.long
def test_the_manual_has_the_chances_of_all_house_bots(league: Mapping[str, GoalChance]) -> None:
    text = MANUAL.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .*antes (\d+),.* \| (0\.\d{4}) \|$", text, re.MULTILINE)

    assert {row[0]: row[1:] for row in rows} == {
        name: (str(one.ante), f"{one.reached:.4f}") for name, one in league.items()
    }


ALL_ANTES = [pytest.param(goal, 1, marks=pytest.mark.long) for goal in (1125, 2000)]


@pytest.mark.parametrize(("goal", "step"), [(1125, 4), *ALL_ANTES])
def test_the_manual_has_the_chances_with_other_antes(goal: int, step: int) -> None:
    text = MANUAL.read_text(encoding="utf-8")
    [antes] = re.findall(r"^\| goal \| (.*) \|$", text, re.MULTILINE)
    [row] = re.findall(rf"^\| {goal:,} \| (.*) \|$", text, re.MULTILINE)
    bots = [Q64(ante=int(ante.removeprefix("ante "))) for ante in antes.split(" | ")]

    chances = [f"{chance(bot, settings_of(goal=goal)).reached:.4f}" for bot in bots[::step]]
    assert row.split(" | ")[::step] == chances


@pytest.mark.parametrize("hand", [("2c", "5d", "Ah"), ("3d", "Qh", "Qs"), ("4c", "5c", "6c")])
def test_T6_the_outcomes_of_a_hand_are_counted_over_all_of_the_dealers(hand: Hand) -> None:
    others = [card for card in PACK if card not in hand]
    counted = Counter(outcome_of_play(hand, dealer) for dealer in combinations(others, 3))

    [counts] = (counts for held, counts in dealers().items() if {*held} == {*hand})
    assert Counter(counts) == counted


def test_T6_what_a_round_costs_on_average_is_known() -> None:
    means = {
        bot: float(sum(outcome * share for outcome, share in outcomes(bot()).items()))
        for bot in (Q64, Always, Random)
    }

    assert means[Q64] == pytest.approx(-0.086580, abs=1e-6)
    assert means[Always] == pytest.approx(-0.129389, abs=1e-6)
    assert means[Random] == pytest.approx((FOLDED + means[Always]) / 2)


def test_T8_the_chance_within_a_few_rounds_is_counted_by_hand() -> None:
    shares = outcomes(Q64())
    win = float(shares[1] + shares[2])
    # From 30 with an ante of 10, 40 is reached by a win, in the second round after a tie too. After
    # a fold there are 20, so that two antes are needed; after two lost antes 10 chips and an ante
    # of 5, which can become 20 at most.
    two = win + float(shares[0]) * win + float(shares[-1] * shares[2])

    for rounds, reached in enumerate((0.0, win, two)):
        settings = settings_of(stake=30, goal=40, rounds=rounds)
        assert chance(Q64(), settings).reached == pytest.approx(reached)
