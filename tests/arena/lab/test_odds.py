"""How often each category is dealt (T9)."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest

from arena.lab.odds import exact_counts, odds
from arena.sandbox import worker_pool
from protocol.errors import UsageError
from protocol.three_card_poker import CATEGORIES
from tests.support.long import sized

HANDS = 22_100


def test_T9_the_exact_counts_of_all_hands() -> None:
    assert exact_counts() == {
        "Nothing": 16440,
        "Pair": 3744,
        "Flush": 1096,
        "Straight": 720,
        "Three of a Kind": 52,
        "Straight Flush": 48,
    }
    assert sum(exact_counts().values()) == HANDS
    assert tuple(exact_counts()) == CATEGORIES


def test_T9_percentages_of_all_six_categories_in_a_fixed_order() -> None:
    shares = odds(1000, seed=1)

    assert tuple(shares) == CATEGORIES
    assert sum(shares.values()) == pytest.approx(100)


def test_T9_a_label_never_dealt_is_zero() -> None:
    shares = odds(1, seed=1)

    assert sorted(shares.values()) == [0.0] * 5 + [100.0]
    assert all(type(share) is float for share in shares.values())


def test_T9_the_same_seed_deals_the_same_hands() -> None:
    assert odds(500, seed=3) == odds(500, seed=3) != odds(500, seed=4)


def test_T9_without_a_seed_the_hands_differ() -> None:
    assert odds(2000) != odds(2000)


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, "10", None], ids=repr)
def test_T9_anything_but_a_whole_number_of_hands_is_refused(bad: Any) -> None:
    with pytest.raises(UsageError, match="whole number of hands"):
        odds(bad)


@pytest.mark.stats
def test_T9_random_hands_approach_the_exact_shares() -> None:
    n = sized(500_000, 20_000)
    shares = odds(n, seed=2)

    for label, count in exact_counts().items():
        exact = count / HANDS
        error = 100 * sqrt(exact * (1 - exact) / n)
        assert shares[label] == pytest.approx(100 * exact, abs=4 * error), label


@pytest.mark.parametrize("bad", [1.0, True, "1"], ids=repr)
def test_T9_anything_but_a_whole_number_for_a_seed_is_refused(bad: Any) -> None:
    with pytest.raises(UsageError, match="whole number for a seed"):
        odds(1, bad)


def test_T9_every_hand_is_reported() -> None:
    hands: list[int] = []
    odds(5, report=hands.append)

    assert sum(hands) == 5


def test_T9_any_number_of_processes_deals_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_WORTH_S", -1.0)
    monkeypatch.setattr(worker_pool, "_ALONE_S", -1.0)

    assert odds(25_000, seed=1, jobs=2) == odds(25_000, seed=1)


def test_T9_hands_that_are_dealt_together_differ_from_the_next() -> None:
    assert odds(10_000, seed=1) != odds(20_000, seed=1)
