"""A game's schema and golden transcripts, for bots in any language and for the game's own tests.

Each house bot has a transcript: a short match, played here without a network, in which it has the
first seat. The same rules, bots and wire give the same bytes every time. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from arena.games.match import MatchState, drive
from arena.games.rules import Game
from arena.games.shuffle import seed_from_int
from arena.records.transcript import conversation
from protocol.errors import UnknownBot
from protocol.messages import Limits
from protocol.schema.documents import game_document
from protocol.strategy import house_bots

__all__ = ["is_vector", "vectors"]


def vectors(game: Game) -> Mapping[str, str]:
    """The files by their names; raises `UnknownBot` if the game has no house bots."""
    bots = house_bots(game.name)
    if not bots:
        raise UnknownBot(f"expected a house bot of {game.name} to play with, got none")
    schema = json.dumps(game_document(game.name), indent=2, ensure_ascii=False) + "\n"
    return {f"{game.name}.json": schema} | {
        f"{game.name}-{name}.jsonl": _transcript(game, [*bots][at:] + [*bots][:at], bots)
        for at, name in enumerate(bots)
    }


def is_vector(game: Game, file: str) -> bool:
    """Whether a file is named like one of `vectors`, also of a bot that there is no longer."""
    return file == f"{game.name}.json" or fnmatchcase(file, f"{game.name}-*.jsonl")


def _transcript(game: Game, order: list[str], bots: Mapping[str, type[Any]]) -> str:
    """What the first seat says and hears when bots sit down in this order, again and again."""
    names = [order[seat % len(order)] for seat in range(game.seats)]
    players = [f"{name}-{seat + 1}" for seat, name in enumerate(names)]
    strategies = [bots[name]() for name in names]
    for player, strategy in zip(players, strategies, strict=True):
        if hasattr(strategy, "seed"):
            strategy.seed(player)
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
