"""A few moments of a match as one seat saw them on the wire: every kind of question of a game, every kind of news.

A starter's test asks its bot these. The match is played here, by chance, so that they are what the rules really ask; the same game has
the same samples every time.
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

SEAT = 0  # whose side it is; every game asks it everything
OF_EACH = 2  # so often each kind of question is kept
MATCHES = 100  # tried at most; by chance one in a few has all kinds


def samples(game: Game) -> list[ArenaMessage]:
    """A `match`, an `ask` or more of every kind with its news, and the `over`.

    Between the asks that are kept others were asked, whose news are left out.
    """
    for number in range(1, MATCHES + 1):
        found = list(_chosen(game, number))
        asked = {ask.question.kind for ask in found if isinstance(ask, Ask)}
        if asked == {*game.vocabulary.questions} and _told(found) == {*game.vocabulary.news}:
            return found
    raise AssertionError(f"{MATCHES} matches of {game.name} ask and tell everything")


def _told(found: list[ArenaMessage]) -> set[str]:
    """The kinds of news that there are."""
    return {
        news.kind for message in found if isinstance(message, Ask | Over) for news in message.news
    }


def _chosen(game: Game, number: int) -> Iterator[ArenaMessage]:
    """Those of one match: of each kind of question the first ones, and what tells something new."""
    kinds: Counter[str] = Counter()
    told: set[str] = set()
    for message in _conversation(game, number):
        if isinstance(message, Ask):
            new = {news.kind for news in message.news} - told
            if not new and kinds[message.question.kind] >= OF_EACH:
                continue
            told |= new
            kinds[message.question.kind] += 1
        if not isinstance(message, Welcome):
            yield message


def _conversation(game: Game, number: int) -> Iterator[ArenaMessage]:
    """All that the seat is told in a match that everybody plays by chance."""
    chance = random.Random(number)
    settings = game.vocabulary.read_settings(None)
    match = MatchState(game, settings, seed=seed_from_int(number))
    drive(match, [AnyLegal(chance)] * game.seats)
    names = ("ann", "ben", "cem", "dan")[: game.seats]
    chair = f"sample-{number}.{SEAT}"
    record = match.result().record
    for line in conversation(record, names, SEAT, chair, limits=Limits()).lines:
        if line.side is Side.ARENA:
            yield from decode_from_arena(line.text, Encoding.JSON, lambda _: game.name)
