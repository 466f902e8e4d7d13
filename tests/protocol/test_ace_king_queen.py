"""The cards of Ace-King-Queen; its messages are in `test_game_messages.py`."""

from __future__ import annotations

from protocol.ace_king_queen import CARDS


def test_A1_the_cards_are_listed_highest_first() -> None:
    assert CARDS == ("A", "K", "Q")
