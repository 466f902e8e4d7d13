"""High-low on the wire: the order of the cards, the legal bids, settings and messages (rules H)."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from protocol.cards import PACK
from protocol.errors import BadDeck, BadSettings, IllegalAnswer
from protocol.high_low import (
    VOCABULARY,
    Bid,
    BidMade,
    Dealt,
    HighLowSettings,
    RoundOver,
    Swap,
    Swapped,
    legal_bids,
    strength,
    value,
)

SWAP = Swap("As", "7d")
BID = Bid("As", "7d", (None, "quit", 4, None), legal_bids(4))


# ---- H1: the order of the cards


def test_H1_values_are_1_to_13() -> None:
    assert [value(f"{rank}h") for rank in "A23456789TJQK"] == list(range(1, 14))


def test_H1_the_ace_is_highest_then_the_king_down_to_the_two() -> None:
    shuffled = random.Random(1).sample("A23456789TJQK", 13)

    ranks = sorted(shuffled, key=lambda rank: -strength(f"{rank}c"))

    assert "".join(ranks) == "AKQJT98765432"


def test_H1_equal_values_go_by_suit() -> None:
    fours = sorted(["4c", "4h", "4s", "4d"], key=strength, reverse=True)

    assert fours == ["4s", "4h", "4d", "4c"]


def test_H1_the_value_goes_before_the_suit() -> None:
    assert strength("5c") > strength("4s")
    assert strength("Ac") > strength("Ks")


def test_H1_no_two_cards_are_equal() -> None:
    assert sorted(map(strength, PACK)) == list(range(52))
    assert (strength("2c"), strength("As")) == (0, 51)


@pytest.mark.parametrize("card", ["", "1s", "10s", "sA", "AS", "A", None, ["As"]])
@pytest.mark.parametrize("function", [strength, value])
def test_H1_an_unknown_card_is_refused(function: Any, card: object) -> None:
    with pytest.raises(BadDeck, match="expected a card such as '2s', got"):
        function(card)


# ---- H6: what may be bid


def test_H6_the_first_bid_is_any_number_or_quit() -> None:
    assert legal_bids(None) == ("quit", 2, 4, 6, 8, 10)


@pytest.mark.parametrize(
    ("highest", "legal"),
    [
        (2, ("quit", 2, 4, 6, 8, 10)),
        (4, ("quit", 4, 6, 8, 10)),
        (8, ("quit", 8, 10)),
        (10, ("quit", 10)),
    ],
)
def test_H6_a_number_is_at_least_every_number_before(
    highest: int, legal: tuple[object, ...]
) -> None:
    assert legal_bids(highest) == legal


@pytest.mark.parametrize("answer", ["quit", 4, 6, 8, 10])
def test_H6_a_bid_that_is_listed_is_accepted(answer: object) -> None:
    assert BID.check(answer) == answer


@pytest.mark.parametrize(
    "answer", [2, 5, 12, -4, True, 4.0, "4", "2", "Quit", None, [4], {"bid": 4}]
)
def test_J1_a_bid_that_is_not_listed_is_refused(answer: object) -> None:
    with pytest.raises(IllegalAnswer, match=r"to bid; legal: quit, 4, 6, 8, 10$"):
        BID.check(answer)


@pytest.mark.parametrize("answer", ["quit", 2, True, False, None, "SWAP", ["swap"]])
def test_J1_a_swap_is_one_of_two_words(answer: object) -> None:
    with pytest.raises(IllegalAnswer, match=r"to swap; legal: swap, keep$"):
        SWAP.check(answer)


# ---- settings


def test_H11_the_defaults() -> None:
    assert VOCABULARY.read_settings(None) == HighLowSettings(gap=100, max_shuffles=50)


def test_H11_a_fixed_number_of_shuffles_is_a_gap_out_of_reach() -> None:
    settings = {"gap": 1_000_000_000, "max_shuffles": 100}

    assert msgspec.to_builtins(VOCABULARY.read_settings(settings)) == settings


@pytest.mark.parametrize(
    "settings",
    [
        {"gap": 0},
        {"gap": -1},
        {"gap": 100.5},
        {"gap": True},
        {"max_shuffles": 0},
        {"max_shuffles": 100_001},
        {"max_shuffles": "50"},
        {"hands": 10},
    ],
)
def test_H11_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BadSettings, match="settings of high_low: "):
        VOCABULARY.read_settings(settings)


# ---- messages


MESSAGES: list[tuple[Any, dict[str, object]]] = [
    (SWAP, {"kind": "swap", "card": "As", "dealer_card": "7d", "legal": ["swap", "keep"]}),
    (
        BID,
        {
            "kind": "bid",
            "card": "As",
            "dealer_card": "7d",
            "bids": [None, "quit", 4, None],
            "legal": ["quit", 4, 6, 8, 10],
        },
    ),
    (
        Dealt(2, 11, 2, "As", "7d"),
        {
            "kind": "dealt",
            "shuffle": 2,
            "round": 11,
            "starter": 2,
            "card": "As",
            "dealer_card": "7d",
        },
    ),
    (Swapped(3, True, "4h"), {"kind": "swapped", "seat": 3, "swapped": True, "dealer_card": "4h"}),
    (BidMade(0, "quit"), {"kind": "bid", "seat": 0, "bid": "quit"}),
    (BidMade(0, 10), {"kind": "bid", "seat": 0, "bid": 10}),
    (
        RoundOver(("As", None, "7d", None), 4, (2, -2, 2, -2), (12, -2, 2, -12)),
        {
            "kind": "round_over",
            "cards": ["As", None, "7d", None],
            "last_bid": 4,
            "payoffs": [2, -2, 2, -2],
            "scores": [12, -2, 2, -12],
        },
    ),
]


@pytest.mark.parametrize(("message", "wire"), MESSAGES)
def test_the_wire_has_the_names_of_the_table(message: Any, wire: dict[str, object]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message)) == wire
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode(message), type=type(message)) == message


def test_the_vocabulary_lists_every_message_by_its_kind() -> None:
    for message, wire in MESSAGES:
        known: Any = VOCABULARY.questions if "legal" in wire else VOCABULARY.news
        assert known[message.kind] is type(message)
    assert (VOCABULARY.name, VOCABULARY.alias) == ("high_low", "high_low")
    assert VOCABULARY.seats == 4
