"""The scenes of the transcripts in `protocol/vectors/transcripts/`: all that a bot can meet.

That nothing is missing among them is tested in `tests/arena/test_vectors.py`.
"""

from __future__ import annotations

from tests.support.scenes import ace_king_queen, blackjack, gin_rummy, high_low, three_card_poker
from tests.support.scenes.scene import RecordedScene, Says, Twist

__all__ = ["SCENES", "RecordedScene", "Says", "Twist"]

SCENES: tuple[RecordedScene, ...] = (
    *ace_king_queen.SCENES,
    *gin_rummy.SCENES,
    *high_low.SCENES,
    *three_card_poker.SCENES,
    *blackjack.SCENES,
)
"""All of them, in the order of the games."""
