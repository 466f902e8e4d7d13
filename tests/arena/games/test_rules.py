"""The few words that all games are written in."""

from __future__ import annotations

import pytest

from arena.games.catalogue import GAMES, game_named
from arena.games.rules import EVERYONE, Game, Scoreboard, TellSeat
from protocol.errors import UnknownGame
from protocol.games import VOCABULARIES


def test_a_scoreboard_starts_at_zero() -> None:
    board = Scoreboard(4)

    assert board.scores == board.points == [0, 0, 0, 0]
    assert board.scores is not board.points


def test_everyone_is_no_seat() -> None:
    assert TellSeat(EVERYONE, None).seat not in range(4)  # type: ignore[arg-type]


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_a_game_is_found_by_its_name_and_alias(game: Game) -> None:
    assert game_named(game.name) is game
    assert game_named(game.vocabulary.alias) is game


def test_there_is_a_game_for_every_vocabulary() -> None:
    assert list(GAMES) == list(VOCABULARIES)
    assert [game.vocabulary for game in GAMES.values()] == list(VOCABULARIES.values())


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_only_who_plays_against_the_dealer_has_a_stake_to_lose(game: Game) -> None:
    assert (game.stake is not None) == (game.seats == 1)


@pytest.mark.parametrize("name", ["", "AKQ", "poker", None, 1, ["akq"]])
def test_an_unknown_game_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UnknownGame, match=r"expected one of: ace_king_queen, .*blackjack"):
        game_named(name)
