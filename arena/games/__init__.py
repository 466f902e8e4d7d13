"""The five games, by name."""

from __future__ import annotations

from arena.games import (
    ace_king_queen,
    blackjack,
    gin_rummy,
    high_low,
    three_card_poker,
)
from arena.rules import Game
from protocol.errors import UnknownGame

__all__ = ["GAMES", "game_named"]

GAMES: dict[str, Game] = {
    module.GAME.name: module.GAME
    for module in (
        ace_king_queen,
        gin_rummy,
        high_low,
        three_card_poker,
        blackjack,
    )
}

_NAMES = GAMES | {game.vocabulary.alias: game for game in GAMES.values()}


def game_named(name: str) -> Game:
    """The game of that name or alias.

    Raises:
        UnknownGame: there is none.
    """
    if not isinstance(name, str) or name not in _NAMES:
        raise UnknownGame(f"unknown game {name!r}; expected one of: {', '.join(GAMES)}")
    return _NAMES[name]
