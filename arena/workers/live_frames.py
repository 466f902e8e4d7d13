"""What a worker sends of a match that somebody watches at the arena: the public view of it (J8).

The match is replayed here, beside itself, as an arena does for its own. Seeds, cuts and cards that
not all seats know stay here until the match is over.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from arena.competitions.remote_match import PublicFrame
from arena.competitions.watched_match import EventCut, WatchedMatch
from arena.records.replay_events import Event
from arena.referee.live_match import LiveMatch
from protocol.watching import View

__all__ = ["LiveFrames"]

_PUBLIC = View("public")

_PAUSE_S = 0.25  # between two frames: with the arena's own 0.1 s far below the second of a viewer
_SILENCE_S = 1.0  # then a frame says that nothing has happened
# Of the time of the event loop, all watched matches together: who is asked there has its clock on.
_SHARE = 0.2
_SLICE_S = 0.025  # the most at a call
_MOST_BYTES = 900_000  # a message of NATS has at most 1 MiB


class LiveFrames:
    """The frames of one match, from the moment that somebody watches it; `clock` in seconds.

    A worker makes one when a `Watch` says that the attempt is watched, and drops it when nobody
    watches. If such a `Watch` comes again, the arena has missed a frame: `again`.
    """

    def __init__(self, table: LiveMatch, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._called_at = clock()
        self._watched = WatchedMatch(table, self._called_at)
        self._number = 0
        self._is_fresh = True  # the next frame begins with the whole present round
        self._due_at = 0.0
        self._sent_at = 0.0
        self._is_over = False

    def again(self) -> None:
        """Have the next frame begin with the whole present round."""
        self._is_fresh = True

    @property
    def is_over(self) -> bool:
        """Whether the match is over, and all of it was in frames: nothing comes any more."""
        return self._is_over

    def due(self, now: float, matches: int = 1) -> bytes | None:
        """A `PublicFrame` to be sent (`arena/competitions/remote_match.py`); None if none is due.

        Call it about every 50 ms while the match is watched, also after its end until `is_over`:
        a long match is replayed a slice at a call, and a frame is due every 0.25 s. `matches` that
        are watched at this worker share the time that a slice takes.
        """
        slice_s = min(_SLICE_S, _SHARE * (now - self._called_at)) / matches
        self._called_at = now
        until = self._clock() + slice_s
        is_due = now >= self._due_at
        self._watched.replay(now, lambda: self._clock() < until, is_due)
        if not is_due or not self._watched.is_ready:
            return None
        cut = self._cut()
        if cut is None and now - self._sent_at < _SILENCE_S:
            return None
        self._due_at = now + _PAUSE_S
        self._sent_at = now
        self._is_over = self._watched.is_over
        return self._frame(cut, now)

    # --- within ---

    def _cut(self) -> EventCut[Event] | None:
        news = self._watched.cut()
        if not self._is_fresh:
            return news
        whole = news if news is not None and news.reset else self._watched.present_round()
        self._is_fresh = whole is None
        return whole

    def _frame(self, cut: EventCut[Event] | None, now: float) -> bytes:
        watched = self._watched
        if cut is None:
            cut = EventCut(False, 1, (), 0, True, 0, 1)
        # What ends a round and what begins the next are told apart, as newcomers get the latter.
        split = len(cut.events) - cut.present
        earlier = watched.shown(cut.events[:split], _PUBLIC)
        present = watched.shown(cut.events[split:], _PUBLIC)
        frame = PublicFrame(
            number=self._number,
            reset=cut.reset,
            round=cut.round,
            events=(*earlier, *present),
            present=len(present),
            present_round=cut.present_round,
            turn=watched.turn(now) if cut.is_latest else None,
            scores=watched.scores,
            decisions=watched.decisions,
        )
        self._number += 1
        data = msgspec.json.encode(frame)
        if len(data) <= _MOST_BYTES:
            return data
        # The arena waits then for the start of a round.
        bare = msgspec.structs.replace(frame, reset=False, events=(), present=0)
        self._number += 1  # it is missing there
        return msgspec.json.encode(bare)
