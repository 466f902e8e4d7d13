"""Records of random matches, and their events."""

from __future__ import annotations

from typing import Any

from arena.engine.match import Record
from arena.records.replay_events import Event, rounds_of
from tests.support import sample_database

__all__ = ["SETTINGS", "events_of", "played"]

SETTINGS: dict[str, dict[str, Any]] = {
    "ace_king_queen": {"hands": 6},
    "gin_rummy": {"games": 2, "max_rounds": 2, "target": 5},
    "high_low": {"max_shuffles": 2, "gap": 1_000},
    "three_card_poker": {"rounds": 5},
    "blackjack": {"hands": 8, "bankroll": 1_000},
}


def played(game: str, number: int = 1, **more: Any) -> Record:
    return sample_database.play(game, number, settings=SETTINGS[game], **more).record


def events_of(record: Record) -> list[Event]:
    return [event for each in rounds_of(record) for event in each.events]
