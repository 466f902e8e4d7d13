"""The scenes of the transcripts in `protocol/vectors/transcripts/`: all that a bot can meet.

Each of our games has a module of its name here, with its `SCENES` and with the `DEALT` of
`protocol/vectors/cards.json`. That nothing is missing among them is tested in
`tests/arena/test_vectors.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from protocol.schema.definitions import our_games
from tests.support.scenes.scene import DealtVector, RecordedScene, Says, Twist

__all__ = ["DEALT", "SCENES", "RecordedScene", "Says", "Twist"]

_MODULES: dict[str, Any] = {
    words.name: import_module(f"tests.support.scenes.{words.name}") for words in our_games()
}

SCENES: tuple[RecordedScene, ...] = tuple(
    scene for module in _MODULES.values() for scene in module.SCENES
)
"""All of them, in the order of the games."""

DEALT: dict[str, tuple[DealtVector, ...]] = {
    game: module.DEALT for game, module in _MODULES.items()
}
"""By game."""
