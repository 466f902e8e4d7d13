"""The vocabularies of the five games, by name."""

from __future__ import annotations

from protocol import ace_king_queen, blackjack, gin_rummy, high_low, three_card_poker
from protocol.errors import UnknownGame
from protocol.vocabulary import Vocabulary

__all__ = ["VOCABULARIES", "vocabulary_named"]

VOCABULARIES: dict[str, Vocabulary] = {
    module.VOCABULARY.name: module.VOCABULARY
    for module in (ace_king_queen, gin_rummy, high_low, three_card_poker, blackjack)
}

_NAMES = VOCABULARIES | {words.alias: words for words in VOCABULARIES.values()}


def vocabulary_named(name: object) -> Vocabulary:
    """The vocabulary of the game of that name or alias; raises `UnknownGame` if there is none."""
    if not isinstance(name, str) or name not in _NAMES:
        raise UnknownGame(f"unknown game {name!r}; expected one of: {', '.join(VOCABULARIES)}")
    return _NAMES[name]
