"""Cards as they travel."""

from __future__ import annotations

import pytest

from protocol.cards import PACK, RANKS, SUITS, Coded, check_cards, coded, name
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


def test_every_card_has_a_name_of_its_own() -> None:
    assert len({name(card) for card in PACK}) == 52


def test_an_object_that_stands_for_a_card_travels_as_its_code() -> None:
    class Ace(Coded):
        code = "As"

    assert coded(Ace()) == "As"


@pytest.mark.parametrize("value", ["As", 3, None, ["As"], {"code": "As"}])
def test_everything_else_travels_as_it_is(value: object) -> None:
    assert coded(value) is value


def test_a_whole_pack_is_a_deck() -> None:
    check_cards(PACK, at_least=52)


def test_a_few_cards_are_a_deck() -> None:
    check_cards(["As", "2c"])


def test_a_game_may_have_a_pack_of_its_own() -> None:
    check_cards("KQ", "AKQ")

    with pytest.raises(BadDeck, match="'As' is no card of this game"):
        check_cards(["As"], "AKQ")


@pytest.mark.parametrize(
    "card", ["", "A", "as", "AS", "10s", "Asx", "sA", None, 4, True, ["As"], b"As"]
)
def test_what_is_no_card_is_refused(card: object) -> None:
    with pytest.raises(BadDeck, match="is no card of this game"):
        check_cards(["2s", card])


def test_a_card_twice_is_refused() -> None:
    with pytest.raises(BadDeck, match="'As' comes twice"):
        check_cards(["As", "2s", "As"])


def test_too_few_cards_are_refused() -> None:
    with pytest.raises(BadDeck, match="at least 3 cards, got 2"):
        check_cards(["As", "2s"], at_least=3)


@pytest.mark.parametrize("deck", [5, None, {"As"}, iter(["As"])])
def test_what_is_no_list_is_refused(deck: object) -> None:
    with pytest.raises(BadDeck, match="expected a list of cards"):
        check_cards(deck)  # type: ignore[arg-type]
