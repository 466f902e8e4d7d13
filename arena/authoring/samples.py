"""Sample messages for the test of a starter: every kind of question and news of a game.

They come from a match that is played here at random, so that they follow the rules. The same game
has the same samples every time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from arena.authoring.conformance.table import AnyLegal
from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.engine.rules import Game
from arena.engine.shuffle import seed_from_int
from arena.records.seat_transcript import conversation
from arena.records.transcript import Side
from protocol.codec import Encoding, decode_from_arena
from protocol.messages import ArenaMessage, Ask, Limits, Over, Welcome

__all__ = ["samples"]

_SEAT = 0  # every game asks it every kind of question
_OF_EACH = 2  # questions of each kind
_MATCHES = 100  # tried at most; one in a few has all kinds


def samples(game: Game) -> list[ArenaMessage]:
    """A `match`, `ask`s with every kind of question and news, and the `over` of that match."""
    for number in range(1, _MATCHES + 1):
        chosen = list(_chosen(game, number))
        asked = {ask.question.kind for ask in chosen if isinstance(ask, Ask)}
        told = {news.kind for told in chosen if isinstance(told, Ask | Over) for news in told.news}
        if asked == {*game.vocabulary.questions} and told == {*game.vocabulary.news}:
            return chosen
    raise AssertionError(f"{_MATCHES} matches of {game.name} ask and tell everything")


def _chosen(game: Game, number: int) -> Iterator[ArenaMessage]:
    """The messages of one match, without further questions of a kind that tell nothing new."""
    kinds: Counter[str] = Counter()
    told: set[str] = set()
    for message in _conversation(game, number):
        if isinstance(message, Ask):
            new = {news.kind for news in message.news} - told
            if not new and kinds[message.question.kind] >= _OF_EACH:
                continue
            told |= new
            kinds[message.question.kind] += 1
        if not isinstance(message, Welcome):
            yield message


def _conversation(game: Game, number: int) -> Iterator[ArenaMessage]:
    chance = random.Random(number)
    match = MatchState(game, game.vocabulary.read_settings(None), seed=seed_from_int(number))
    drive(match, [AnyLegal(chance)] * game.seats)
    names = ("ann", "ben", "cem", "dan")[: game.seats]
    match_id = f"sample-{number}.{_SEAT}"
    record = match.result().record
    for line in conversation(record, names, _SEAT, match_id, limits=Limits()).lines:
        if line.side is Side.ARENA:
            yield from decode_from_arena(line.text, Encoding.JSON, lambda _: game.name)
