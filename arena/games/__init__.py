"""The five games, by name, and their settings in competitions."""

from __future__ import annotations

from collections.abc import Mapping

from arena.engine.rules import Game
from arena.games import ace_king_queen, blackjack, gin_rummy, high_low, three_card_poker
from protocol.blackjack import BlackjackSettings
from protocol.games import vocabulary_named
from protocol.three_card_poker import ThreeCardPokerSettings
from protocol.vocabulary import Settings

__all__ = ["GAMES", "competition_settings", "game_named"]

GAMES: dict[str, Game] = {
    module.GAME.name: module.GAME
    for module in (ace_king_queen, gin_rummy, high_low, three_card_poker, blackjack)
}


def game_named(name: str) -> Game:
    """The game of that name or alias; raises `UnknownGame` if there is none."""
    return GAMES[vocabulary_named(name).name]


def competition_settings(game: Game, chosen: Mapping[str, object]) -> Settings:
    """The settings of a competition's matches, where two games have other defaults (B14, K3).

    Raises `BadSettings` for an unknown name, a wrong type or a value out of its range.
    """
    read = game.vocabulary.read_settings
    settings = read(chosen)
    if isinstance(settings, BlackjackSettings):
        return read({"shuffle": "uniform", **chosen})
    if isinstance(settings, ThreeCardPokerSettings):
        return read({"goal": 2 * settings.stake, **chosen})
    return settings
