from __future__ import annotations

import msgspec
import pytest

from arena.authoring.samples import samples
from arena.games.catalogue import GAMES
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.messages import Ask, Match, Over
from protocol.vocabulary import News
from protocol.words import Told


@pytest.mark.parametrize("game", GAMES)
def test_there_is_every_kind_of_question_and_of_news_of_one_match(game: str) -> None:
    words, said = GAMES[game].vocabulary, samples(GAMES[game])
    match, *told = said
    asked = [message for message in told if isinstance(message, Ask)]
    heard = [message for message in told if isinstance(message, Ask | Over)]

    assert isinstance(match, Match)
    assert (match.game, len(match.seats)) == (game, GAMES[game].seats)
    assert isinstance(told[-1], Over)
    assert {message.match for message in heard} == {match.match}
    assert {ask.question.kind for ask in asked} == {*words.questions}
    assert {news.kind for message in heard for news in message.news} == {*words.news}
    # They are few, the same every time, and what an arena sends.
    assert said == samples(GAMES[game])
    assert len(said) <= 12
    frames = [encode(message, Encoding.JSON) for message in said]
    assert said == [
        message
        for frame in frames
        for message in decode_from_arena(frame, Encoding.JSON, lambda _: game)
    ]


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
