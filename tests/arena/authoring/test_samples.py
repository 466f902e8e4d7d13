from __future__ import annotations

import msgspec
import pytest

from arena.authoring.samples import samples
from arena.games.catalogue import GAMES
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.messages import Ask, Match, Over
from protocol.vocabulary import News
from protocol.words import Told

EACH_GAME = pytest.mark.parametrize("game", GAMES)


@EACH_GAME
def test_there_is_every_kind_of_question_and_of_news(game: str) -> None:
    words = GAMES[game].vocabulary
    match, *told = samples(GAMES[game])
    asked = [message for message in told if isinstance(message, Ask)]

    assert isinstance(match, Match)
    assert isinstance(told[-1], Over)
    assert {ask.question.kind for ask in asked} == {*words.questions}
    assert {
        news.kind for message in told if isinstance(message, Ask | Over) for news in message.news
    } == {*words.news}


@EACH_GAME
def test_they_are_few_and_the_same_every_time(game: str) -> None:
    once = samples(GAMES[game])

    assert once == samples(GAMES[game])
    assert len(once) <= 12


@EACH_GAME
def test_they_can_be_read_as_what_an_arena_sends(game: str) -> None:
    match, *told = said = samples(GAMES[game])
    frames = [encode(message, Encoding.JSON) for message in said]

    assert [decode_from_arena(each, Encoding.JSON, lambda _: game) for each in frames] == [
        [message] for message in said
    ]
    assert isinstance(match, Match)
    assert (match.game, len(match.seats)) == (game, GAMES[game].seats)
    assert {message.match for message in told if isinstance(message, Ask | Over)} == {match.match}


def test_a_game_that_never_tells_all_has_the_match_with_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.authoring.samples._MATCHES", 2)
    game = GAMES["blackjack"]
    never = {**game.vocabulary.words, News: Told("it has happened")}
    words = msgspec.structs.replace(game.vocabulary, words=never)
    match, *_, over = samples(msgspec.structs.replace(game, vocabulary=words))

    assert isinstance(match, Match)
    assert isinstance(over, Over)
