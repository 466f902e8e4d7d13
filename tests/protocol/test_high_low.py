"""High-low on the wire: the order of the cards, the legal bids, settings and messages (rules H)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.cards import PACK
from protocol.errors import BadDeck
from protocol.high_low import legal_bids, strength, value

# ---- H1: the order of the cards


def test_H1_values_are_1_to_13() -> None:
    assert [value(f"{rank}h") for rank in "A23456789TJQK"] == list(range(1, 14))


def test_H1_no_two_cards_are_equal() -> None:
    assert sorted(map(strength, PACK)) == list(range(52))
    assert (strength("2c"), strength("As")) == (0, 51)


def test_H1_the_order_is_by_value_the_ace_highest_and_then_by_suit() -> None:
    order = [rank + suit for rank in "AKQJT98765432" for suit in "shdc"]

    assert sorted(PACK, key=strength, reverse=True) == order


@pytest.mark.parametrize("card", ["", "1s", "10s", "sA", "AS", "A", None, ["As"]])
@pytest.mark.parametrize("function", [strength, value])
def test_H1_an_unknown_card_is_refused(function: Any, card: object) -> None:
    with pytest.raises(BadDeck, match="expected a card such as '2s', got"):
        function(card)


# ---- H6: what may be bid


@pytest.mark.parametrize(
    ("highest", "legal"),
    [
        (None, ("quit", 2, 4, 6, 8, 10)),
        (2, ("quit", 2, 4, 6, 8, 10)),
        (4, ("quit", 4, 6, 8, 10)),
        (8, ("quit", 8, 10)),
        (10, ("quit", 10)),
    ],
)
def test_H6_a_number_is_at_least_every_number_before(
    highest: int | None, legal: tuple[object, ...]
) -> None:
    assert legal_bids(highest) == legal
