"""Cards as they travel."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.cards import PACK, RANKS, SUITS, check_cards, name
from protocol.errors import BadDeck


def test_the_pack_is_52_different_cards() -> None:
    assert len(PACK) == len(set(PACK)) == 52
    assert set(PACK) == {rank + suit for rank in RANKS for suit in SUITS}


def test_the_pack_is_sorted_by_suit_then_rank() -> None:
    assert PACK[:13] == tuple("2s 3s 4s 5s 6s 7s 8s 9s Ts Js Qs Ks As".split())
    assert [card[1] for card in PACK[::13]] == ["s", "h", "d", "c"]


@pytest.mark.parametrize(
    ("card", "spoken"),
    [
        ("As", "Ace of Spades"),
        ("Th", "Ten of Hearts"),
        ("9d", "Nine of Diamonds"),
        ("2c", "Two of Clubs"),
    ],
)
def test_people_call_a_card_by_its_name(card: str, spoken: str) -> None:
    assert name(card) == spoken
    assert len({name(card) for card in PACK}) == 52


def test_cards_of_a_pack_are_a_deck() -> None:
    check_cards(PACK, at_least=52)
    check_cards(["As", "2c"])
    check_cards("KQ", "AKQ")


@pytest.mark.parametrize(
    ("deck", "pack", "why"),
    [
        *[
            (["2s", card], PACK, "is no card of this game")
            for card in ("", "A", "as", "AS", "10s", "Asx", "sA", None, 4, True, ["As"], b"As")
        ],
        (["As"], "AKQ", "'As' is no card of this game"),
        (["As", "2s", "As"], PACK, "'As' comes twice"),
        (["As", "2s"], PACK, "at least 3 cards, got 2"),
        *[(deck, PACK, "expected a list of cards") for deck in (5, None, {"As"}, iter(["As"]))],
    ],
)
def test_what_is_no_deck_is_refused(deck: Any, pack: Any, why: str) -> None:
    with pytest.raises(BadDeck, match=why):
        check_cards(deck, pack, at_least=3 if deck == ["As", "2s"] else 0)
