"""What a worker sends of a match that somebody watches at the arena: the public view of it (J8).

The match is replayed here, beside itself, as an arena does for its own. Seeds, cuts and cards that
not all seats know stay here until the match is over.
"""

from __future__ import annotations

from collections.abc import Callable

from arena.referee.live_match import LiveMatch

__all__ = ["LiveFrames"]


class LiveFrames:
    """The frames of one match, from the moment that somebody watches it; `clock` in seconds.

    A worker makes one when a `Watch` says that the attempt is watched, and drops it when nobody
    watches. If such a `Watch` comes again, the arena has missed a frame: `again`.
    """

    def __init__(self, table: LiveMatch, clock: Callable[[], float]) -> None:
        self._table = table
        self._clock = clock

    def again(self) -> None:
        """Have the next frame begin with the whole present round."""

    @property
    def is_over(self) -> bool:
        """Whether the match is over, and all of it was in frames: nothing comes any more."""
        return False

    def due(self, now: float, matches: int = 1) -> bytes | None:
        """A `PublicFrame` to be sent (`arena/competitions/remote_match.py`); None if none is due.

        Call it about every 50 ms while the match is watched, also after its end until `is_over`:
        a long match is replayed a slice at a call, and a frame is due every 0.25 s. `matches` that
        are watched at this worker share the time that a slice takes.
        """
        return None
