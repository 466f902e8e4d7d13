"""The few words that all games are written in."""

from __future__ import annotations

import pytest

from arena.engine.rules import EVERYONE, AskSeat, Game, Scoreboard, TellSeat, ask, next_deal
from arena.games import GAMES, game_named
from protocol.ace_king_queen import Open
from protocol.errors import OutOfDecks, UnknownGame
from protocol.games import VOCABULARIES


def test_ask_yields_its_question_and_returns_the_answer() -> None:
    question = Open(1, "A")
    asking = ask(1, question)

    assert next(asking) == AskSeat(1, question)
    with pytest.raises(StopIteration) as stopped:
        asking.send("bet")
    assert stopped.value.value == "bet"


def test_next_deal_takes_one_at_a_time() -> None:
    decks = iter(["AK", "KQ"])

    assert [next_deal(decks), next_deal(decks)] == ["AK", "KQ"]


def test_next_deal_says_when_there_are_too_few() -> None:
    with pytest.raises(OutOfDecks, match="all that were given are used up"):
        next_deal(iter(()))


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
    assert [game.seats for game in GAMES.values()] == [2, 2, 4, 1, 1]


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_only_who_plays_against_the_dealer_has_a_stake_to_lose(game: Game) -> None:
    assert (game.stake is not None) == (game.seats == 1)


@pytest.mark.parametrize("name", ["", "AKQ", "poker", None, 1, ["akq"]])
def test_an_unknown_game_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UnknownGame, match=r"expected one of: ace_king_queen, .*blackjack"):
        game_named(name)
