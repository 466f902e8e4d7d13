"""Records of random matches, and their events; settings that make matches last."""

from __future__ import annotations

from typing import Any

from arena.games import replay
from arena.games.catalogue import GAMES
from arena.games.match import Record
from tests.support import sample_database

__all__ = ["SETTINGS", "endless", "events_of", "played"]

_ROUNDS = 12  # more than a shuffle has
_ENDLESS = 1_000_000

SETTINGS: dict[str, dict[str, Any]] = {
    # Two are enough of what is split, if that is not a round.
    name: {**({} if game.splits_by is None else {game.splits_by: 2}), **game.rounds(_ROUNDS)}
    for name, game in GAMES.items()
}


def endless(game: str) -> dict[str, Any]:
    """Settings for a match that lasts longer than anybody looks."""
    rules = GAMES[game]
    split = {} if rules.splits_by is None else {rules.splits_by: _ENDLESS}
    return {**rules.bench.settings, **rules.rounds(_ENDLESS), **split}


def played(game: str, number: int = 1, **more: Any) -> Record:
    return sample_database.play(game, number, settings=SETTINGS[game], **more).record


def events_of(record: Record) -> list[replay.Event]:
    return [*replay.events_of(record)]
