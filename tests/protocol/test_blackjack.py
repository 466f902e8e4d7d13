"""What a blackjack hand is worth, and what the game says on the wire (rules B)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.blackjack import NEW_DECK, hand_value
from protocol.errors import BadDeck


def test_B1_a_new_deck_is_spades_hearts_clubs_diamonds_each_two_to_ace() -> None:
    assert " ".join(NEW_DECK) == (
        "2s 3s 4s 5s 6s 7s 8s 9s Ts Js Qs Ks As "
        "2h 3h 4h 5h 6h 7h 8h 9h Th Jh Qh Kh Ah "
        "2c 3c 4c 5c 6c 7c 8c 9c Tc Jc Qc Kc Ac "
        "2d 3d 4d 5d 6d 7d 8d 9d Td Jd Qd Kd Ad"
    )


@pytest.mark.parametrize(
    ("hand", "value"),
    [
        ("", (0, False)),
        ("As", (11, True)),
        ("2s", (2, False)),
        ("Ts Jh", (20, False)),
        ("As Ah", (12, True)),
        ("As Kd", (21, True)),
        ("As 7d", (18, True)),
        ("As 7d 3c", (21, True)),
        ("As 7d 4c", (12, False)),
        ("As Ah Ac Ad", (14, True)),
        ("As Ah Ac Ad 7s", (21, True)),
        ("As Ah Ac Ad 8s", (12, False)),
        ("9s Th Ac Ad", (21, False)),
        ("Ts Qh 2c", (22, False)),
        ("Ts Qh Ac Ad", (22, False)),
        ("As Ah Ac Ad Ts 9h", (23, False)),
    ],
)
def test_B4_a_hand_counts_the_highest_total_not_above_21(
    hand: str, value: tuple[int, bool]
) -> None:
    assert hand_value(hand.split()) == value


@given(st.lists(st.sampled_from(NEW_DECK), unique=True, max_size=12))
def test_B4_agrees_with_trying_every_ace_as_1_and_as_11(hand: list[str]) -> None:
    worth = [(1, 11) if card[0] == "A" else (_face_value(card),) for card in hand]
    totals = {sum(counts) for counts in product(*worth)}
    playable = [total for total in totals if total <= 21]
    best = max(playable) if playable else min(totals)

    count, soft = hand_value(hand)

    assert count == best
    assert soft == (best != min(totals))


def _face_value(card: str) -> int:
    return int(card[0]) if card[0].isdigit() else 10


@pytest.mark.parametrize("hand", [["Xx"], ["As", "10h"], [["As"]], [None], None, 5])
def test_B4_what_is_no_card_is_refused(hand: Any) -> None:
    with pytest.raises(BadDeck, match="expected cards such as 'As', got"):
        hand_value(hand)
