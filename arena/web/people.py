"""What is different for people: a match is short, and there is time to think. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from arena.rules import Game
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = ["limits_for", "settings_for"]

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS

_SHORT: Mapping[str, Mapping[str, object]] = {
    "ace_king_queen": {"hands": 20},
    "gin_rummy": {"games": 1, "target": 50},
    "high_low": {"max_shuffles": 2},
    "three_card_poker": {"rounds": 20, "stake": 1000},
    "blackjack": {"hands": 20, "shuffle": "uniform"},
}
"""Some minutes each."""

_MOST = {
    "hands": 1_000,
    "rounds": 1_000,
    "games": 10,
    "max_rounds": 100,
    "max_turns": 200,
    "max_shuffles": 50,
}
"""Nobody plays for longer, but a program that passes for a person might, and the records are kept in memory."""


def settings_for(game: Game, chosen: Mapping[str, object]) -> Settings:
    """The settings of a match that a person plays.

    Raises:
        BadSettings: an unknown name, a wrong type or a value out of its range.
        UsageError: it would never end.
    """
    settings = game.vocabulary.read_settings({**_SHORT[game.name], **chosen})
    for name, value in msgspec.structs.asdict(settings).items():
        most = _MOST.get(name)
        if most is not None and value > most:
            raise UsageError(
                f"expected {name} of at most {most:,} with a person at the table, got {value:,}"
            )
    return settings


def limits_for(limits: Limits) -> Limits:
    """The limits of a person's seat."""
    return msgspec.structs.replace(
        limits,
        decision_ms=10 * _MINUTE_MS,
        bank_ms=_HOUR_MS,
        hard_ms=_HOUR_MS,
        start_ms=_MINUTE_MS,
    )
