"""Makes sample messages of a game for starters, and its golden transcripts. Pure.

The samples for the test of a starter have every kind of question and news. They come from a random
match, so that they follow the rules: the first match in which a seat is asked and told everything,
or else the one with the most kinds.

The vectors are for bots in any language and for the game's own tests: the game's schema, and for
each house bot the transcript of a short match with that bot in the first seat. The same rules, bots
and wire give the same bytes every time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from arena.authoring.playout import random_record, seeded
from arena.games.match import MatchState, drive
from arena.games.rules import Game
from arena.games.shuffle import seed_from_int
from arena.records.transcript import Side, conversation
from protocol.codec import Encoding, decode_from_arena
from protocol.errors import UnknownBot
from protocol.messages import ArenaMessage, Ask, Limits, Over, Welcome
from protocol.schema.documents import game_document
from protocol.strategy import house_bots

__all__ = ["is_vector", "samples", "vectors"]

_OF_EACH = 2  # questions of each kind
_MATCHES = 100  # to try; in most games one match in a few has all kinds
_NAMES = ("ann", "ben", "cem", "dan", "eva", "fee", "gil", "hal", "ida", "jan")


def samples(game: Game) -> list[ArenaMessage]:
    """Return a `match`, `ask`s with every kind of question and news, and the `over`."""
    all_kinds = len(game.vocabulary.questions) + len(game.vocabulary.news)
    best: list[ArenaMessage] = []
    for seat in range(game.seats):  # in most games the first seat gets all kinds
        for number in range(1, _MATCHES + 1):
            chosen = list(_chosen(_conversation(game, number, seat)))
            if _kinds(chosen) > _kinds(best):
                best = chosen
            if _kinds(best) == all_kinds:
                return best
    return best


def _kinds(messages: Sequence[ArenaMessage]) -> int:
    """Count the kinds of questions and of news in messages."""
    asked = {ask.question.kind for ask in messages if isinstance(ask, Ask)}
    told = {news.kind for told in messages if isinstance(told, Ask | Over) for news in told.news}
    return len(asked) + len(told)


def _chosen(messages: Iterable[ArenaMessage]) -> Iterator[ArenaMessage]:
    """Yield the messages of a match, leaving out repeated kinds of questions without new news."""
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
    record = random_record(game, game.vocabulary.read_settings(None), number)
    match_id, names = f"sample-{number}.{seat}", _NAMES[: game.seats]
    for line in conversation(record, names, seat, match_id, limits=Limits()).lines:
        if line.side is Side.ARENA:
            yield from decode_from_arena(line.text, Encoding.JSON, lambda _: game.name)


def vectors(game: Game) -> Mapping[str, str]:
    """Return the files by name; raises `UnknownBot` if the game has no house bots."""
    bots = house_bots(game.name)
    if not bots:
        raise UnknownBot(f"expected a house bot of {game.name} to play with, got none")
    schema = json.dumps(game_document(game.name), indent=2, ensure_ascii=False) + "\n"
    return {f"{game.name}.json": schema} | {
        f"{game.name}-{name}.jsonl": _transcript(game, [*bots][at:] + [*bots][:at], bots)
        for at, name in enumerate(bots)
    }


def is_vector(game: Game, file: str) -> bool:
    """Whether a file is named like one of `vectors`, even for a bot that no longer exists."""
    return file == f"{game.name}.json" or fnmatchcase(file, f"{game.name}-*.jsonl")


def _transcript(game: Game, order: list[str], bots: Mapping[str, type[Any]]) -> str:
    """Return the first seat's transcript of a match with the bots of `order`, repeated, in turn."""
    names = [order[seat % len(order)] for seat in range(game.seats)]
    players = [f"{name}-{seat + 1}" for seat, name in enumerate(names)]
    strategies = [seeded(bots[n](), player) for n, player in zip(names, players, strict=True)]
    match = MatchState(
        game,
        game.vocabulary.read_settings(game.short),
        seed=seed_from_int(sorted(bots).index(names[0]) + 1),
        nonces=tuple(f"{player} was here" for player in players),
    )
    drive(match, strategies)
    made = conversation(
        match.result().record,
        players,
        0,
        "m.0",
        limits=Limits(),
        about=f"A short match of {game.vocabulary.title} in which {names[0]} has the first seat.",
    )
    return made.to_bytes().decode()
