"""Sample messages for the test of a starter: every kind of question and news of a game.

They come from a match that is played here at random, so that they follow the rules: the first in
which a seat is asked and told everything, or else the one with the most kinds. The same game has
the same samples every time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from arena.authoring.conformance.table import AnyLegal
from arena.games.match import MatchState, drive
from arena.games.rules import Game
from arena.games.shuffle import seed_from_int
from arena.records.transcript import Side, conversation
from protocol.codec import Encoding, decode_from_arena
from protocol.messages import ArenaMessage, Ask, Limits, Over, Welcome

__all__ = ["samples"]

_OF_EACH = 2  # questions of each kind
_MATCHES = 100  # tried at most; of most games one in a few has all kinds
_NAMES = ("ann", "ben", "cem", "dan", "eva", "fee", "gil", "hal", "ida", "jan")


def samples(game: Game) -> list[ArenaMessage]:
    """A `match`, `ask`s with every kind of question and news, and the `over` of that match."""
    all_kinds = len(game.vocabulary.questions) + len(game.vocabulary.news)
    best: list[ArenaMessage] = []
    for seat in range(game.seats):  # most games ask and tell the first one everything
        for number in range(1, _MATCHES + 1):
            chosen = list(_chosen(_conversation(game, number, seat)))
            if _kinds(chosen) > _kinds(best):
                best = chosen
            if _kinds(best) == all_kinds:
                return best
    return best


def _kinds(messages: Sequence[ArenaMessage]) -> int:
    """How many kinds of questions and of news there are in messages."""
    asked = {ask.question.kind for ask in messages if isinstance(ask, Ask)}
    told = {news.kind for told in messages if isinstance(told, Ask | Over) for news in told.news}
    return len(asked) + len(told)


def _chosen(messages: Iterable[ArenaMessage]) -> Iterator[ArenaMessage]:
    """The messages of one match, without further questions of a kind that tell nothing new."""
    kinds: Counter[str] = Counter()
    told: set[str] = set()
    for message in messages:
        if isinstance(message, Ask):
            new = {news.kind for news in message.news} - told
            if not new and kinds[message.question.kind] >= _OF_EACH:
                continue
            told |= new
            kinds[message.question.kind] += 1
        if not isinstance(message, Welcome):
            yield message


def _conversation(game: Game, number: int, seat: int) -> Iterator[ArenaMessage]:
    chance = random.Random(number)
    match = MatchState(game, game.vocabulary.read_settings(None), seed=seed_from_int(number))
    drive(match, [AnyLegal(chance)] * game.seats)
    match_id, names = f"sample-{number}.{seat}", _NAMES[: game.seats]
    record = match.result().record
    for line in conversation(record, names, seat, match_id, limits=Limits()).lines:
        if line.side is Side.ARENA:
            yield from decode_from_arena(line.text, Encoding.JSON, lambda _: game.name)
