"""A match of another machine for its spectators here, made of the frames that come; no I/O.

A `WatchedRemote` stands in the place of a `WatchedMatch`. It keeps the present round for newcomers,
and asks the worker for it when frames are missing. Everybody sees the public view: nothing else
leaves the worker before the end.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import msgspec

from arena.competitions.remote_match import PublicFrame, RemoteMatch
from arena.competitions.watched_match import LONGEST, MOST_EVENTS, EventCut
from arena.records.visibility import Viewer
from protocol.watching import Events, Scene, Turn, View, encode_to_viewer

__all__ = ["WatchedRemote"]

_SILENCE_S = 2.0  # two of a worker's frames are missing: it may not know that somebody watches
_ASK_S = 1.0  # between two times that the worker is asked

_Event = dict[str, Any]


class WatchedRemote:
    """One match of another machine that is watched; `clock` is the loop's, in seconds."""

    def __init__(self, remote: RemoteMatch, clock: Callable[[], float]) -> None:
        self._remote = remote
        self._clock = clock
        self._news: list[PublicFrame] = []  # those that are in no cut yet; the first may be a reset
        self._latest: PublicFrame | None = None
        self._next = 0  # the number of the next frame, if none is missing
        self._is_whole = False  # whether no frame is missing since the last reset
        self._present: list[_Event] | None = None  # of the present round; None if that is too much
        self._present_round = 1
        self._at: int | None = None  # the round that the next cut should begin in
        self._heard_at = self._asked_at = clock()
        remote.on_frame = self._take
        remote.watch(True)

    @property
    def id(self) -> str:
        return self._remote.id

    @property
    def is_ready(self) -> bool:
        return self._latest is not None or self._remote.is_over

    @property
    def is_over(self) -> bool:
        return self._remote.is_over and not self._news

    def close(self) -> None:
        """Nobody watches it any more."""
        self._remote.on_frame = None
        self._remote.watch(False)

    def view(self, viewer: Viewer) -> View:
        return View("public")

    def replay(self, now: float, goes_on: Callable[[], bool], is_due: bool) -> None:
        """Ask for the present round if the worker has not been heard for too long."""
        if not self._remote.is_over and now - self._heard_at > _SILENCE_S:
            self._ask(now)

    def cut(self) -> EventCut[_Event] | None:
        """The events since the last cut; of too many, or after a loss, the present round."""
        news, self._news = self._news, []
        if not any(frame.events or frame.reset for frame in news):
            return None
        last = news[-1]
        events = tuple(chain.from_iterable(frame.events for frame in news))
        resets, number = news[0].reset, news[0].round
        is_much = len(events) > MOST_EVENTS and len(news) > 1
        if is_much and (present := self.present_round()) is not None:
            resets, number, events = True, present.round, present.events
        skipped = 0 if self._at is None else max(0, number - self._at)
        self._at = last.present_round
        return EventCut(resets, number, events, skipped, True, last.present, last.present_round)

    def present_round(self) -> EventCut[_Event] | None:
        """All of the present round that has come, for a newcomer; None if that is too much."""
        if self._present is None:
            return None
        events, number = tuple(self._present), self._present_round
        return EventCut(True, number, events, 0, True, len(events), number)

    def frame(self, cut: EventCut[_Event], view: View, now: float) -> bytes:
        return encode_to_viewer(
            Events(
                match=self.id,
                reset=cut.reset,
                round=cut.round,
                events=cut.events,
                turn=self._turn(now),
                scores=self._remote.scores,
                decisions=self._remote.decisions,
                skipped=cut.skipped,
            )
        )

    def scene(self, view: View, competition: str | None) -> bytes:
        """The frame that says who plays what."""
        remote = self._remote
        return encode_to_viewer(
            Scene(
                match=remote.id,
                game=remote.game.name,
                settings=msgspec.to_builtins(remote.settings),
                players=remote.names,
                view=view,
                limits=remote.limits,
                competition=competition,
                round=self._present_round,
                scores=remote.scores,
                versions=remote.versions or msgspec.UNSET,
                elsewhere=True,
            )
        )

    # --- within ---

    def _take(self, frame: PublicFrame) -> None:
        now = self._clock()
        self._heard_at = now
        if frame.reset:
            self._is_whole = True
            self._news.clear()
        elif frame.number != self._next:
            self._is_whole = False
        self._next = frame.number + 1
        self._latest = frame
        if not self._is_whole:
            self._ask(now)
            return
        self._news.append(frame)
        self._keep(frame)

    def _keep(self, frame: PublicFrame) -> None:
        """Keep the present round."""
        if not frame.events and not frame.reset:
            return
        present = frame.events[len(frame.events) - frame.present :]
        if frame.reset or frame.present_round != self._present_round:
            self._present = []
            self._present_round = frame.present_round
        if self._present is not None:
            self._present += present
            if len(self._present) > LONGEST:
                self._present = None

    def _ask(self, now: float) -> None:
        if now - self._asked_at >= _ASK_S:
            self._asked_at = now
            self._remote.watch(True)

    def _turn(self, now: float) -> Turn | None:
        frame = self._latest
        if frame is None or frame.turn is None or self._remote.is_over or not self._is_whole:
            return None
        waited_ms = frame.turn.waited_ms + max(0, int((now - self._heard_at) * 1000))
        return msgspec.structs.replace(frame.turn, waited_ms=waited_ms)
