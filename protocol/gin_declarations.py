"""Whether the melds that a bot declares are accepted, and why not (rules G2, G9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocol.cards import Card
from protocol.errors import one_line
from protocol.gin_melds import Meld, is_meld

__all__ = ["declared_melds", "fault_in"]

_SHOWN = 40  # characters of an untrusted meld: ten cards take 29


def declared_melds(value: Any, cards: Sequence[Card]) -> tuple[Meld, ...] | None:
    """Return declared melds if they are legal, disjoint and of these cards (G2, G9); else None."""
    if type(value) not in (list, tuple):
        return None
    free = set(cards)
    for meld in value:
        if type(meld) not in (list, tuple) or len(meld) > len(free):
            return None
        if not all(type(card) is str and card in free for card in meld):
            return None
        if not is_meld(meld):
            return None
        free.difference_update(meld)
    return tuple([tuple(meld) for meld in value])


def fault_in(value: Any, cards: Sequence[Card]) -> str | None:
    """Say in words what is wrong with declared melds; None if nothing is."""
    if type(value) not in (list, tuple):
        return "melds are a list of lists of cards"
    used: set[Card] = set()
    for meld in value:
        if type(meld) not in (list, tuple) or not all(type(card) is str for card in meld):
            return "every meld is a list of cards"
        if len(meld) > len(cards):
            return f"a meld of {len(meld):,} cards is more than you hold (G9)"
        shown = one_line(" ".join(meld), _SHOWN)
        for card in meld:
            if card not in cards:
                card = one_line(card, _SHOWN)
                return f"{shown}: {card} is not among the ten cards that you keep (G9)"
            if card in used:
                return f"{shown}: {card} is declared twice (G9)"
            used.add(card)
        if not is_meld(meld):
            return f"{shown or 'no card'}: {_why_no_meld(meld)}"
    return None


def _why_no_meld(cards: Sequence[Card]) -> str:
    """Name the rule by which these different cards are not a meld."""
    if len(cards) < 3:
        return "a meld has three cards or more (G2)"
    if len({card[1] for card in cards}) == 1:
        return (
            "a run is cards of one suit that follow one another, the ace only below the 2 (G1, G2)"
        )
    return "a meld is three or four cards of one rank, or a run of one suit (G2)"
