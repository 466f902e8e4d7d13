"""Cards as they are sent: two characters, rank and suit (`As Td 9h 2c`).

A card is a plain `str` everywhere, so that a bot in any language and a test can write one down.
What a rank or suit is worth is in the module of each game.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

from msgspec import Meta

from protocol.errors import BadDeck

__all__ = ["PACK", "RANKS", "SUITS", "Card", "Coded", "check_cards", "name"]

RANKS = "23456789TJQKA"
SUITS = "shdc"

Card = Annotated[str, Meta(extra_json_schema={"pattern": f"^[{RANKS}][{SUITS}]$"})]
"""A `str`; the pattern is for the schemas only and costs nothing in decoding."""

PACK: tuple[Card, ...] = tuple(rank + suit for suit in SUITS for rank in RANKS)
"""The 52 cards in the order before a shuffle of the portable stream."""

_NAMES = "Two Three Four Five Six Seven Eight Nine Ten Jack Queen King Ace".split()
_RANK_NAMES = dict(zip(RANKS, _NAMES, strict=True))
_SUIT_NAMES = {"s": "Spades", "h": "Hearts", "d": "Diamonds", "c": "Clubs"}


class Coded:
    """An object that may stand for a card, or for a list of cards, in a bot's answer.

    It exists only in a bot's own program, never on the wire. A subclass must not be a dataclass or
    a struct, which would be sent as a map. `code` is the card or the cards as they are sent.
    """

    code: Card | tuple[Card, ...]


def name(card: Card) -> str:
    """Return the name of a card for people, such as `Ace of Spades`."""
    return f"{_RANK_NAMES[card[0]]} of {_SUIT_NAMES[card[1]]}"


def check_cards(cards: Sequence[object], pack: Collection[Card] = PACK, at_least: int = 0) -> None:
    """Check that `cards` is a list of at least `at_least` different cards of the `pack`.

    Otherwise raises `BadDeck`, which names the first unknown or repeated card.
    """
    if not isinstance(cards, Sequence):
        raise BadDeck(f"expected a list of cards, got {cards!r}")
    if len(cards) < at_least:
        raise BadDeck(f"expected a deck of at least {at_least} cards, got {len(cards)}")
    unseen = set(pack)
    known = frozenset(unseen)
    for card in cards:
        if not isinstance(card, str) or card not in known:
            raise BadDeck(f"{card!r} is no card of this game; expected such as {min(known)!r}")
        if card not in unseen:
            raise BadDeck(f"the card {card!r} comes twice in one deck")
        unseen.remove(card)
