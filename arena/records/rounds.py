"""The rounds of a match that is played back (`arena/games/replay.py`), each with its events.

The events show everything; `arena/records/visibility.py` decides who may see what. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from arena.games.match import Record
from arena.games.replay import Event, MatchOver, Playback
from arena.games.rules import TellSeat
from protocol.messages import Termination

__all__ = ["Round", "RoundPlayback", "rounds_of"]


class Round(msgspec.Struct, frozen=True):
    """A complete round; `number` counts from 1; `scores` and `points` are by seat, at its end."""

    number: int
    scores: tuple[int, ...]
    points: tuple[int, ...]
    events: tuple[Event, ...]


class RoundPlayback:
    """Cuts the events of a match that is played back into rounds.

    Attributes:
        events: of the current round; empty if its beginning is missing.
        round: the number of the current round.
        is_partial: whether a part of the current round was passed over.
        is_over: whether the end has been added.
    """

    def __init__(self, playback: Playback) -> None:
        self.events: list[Event] = []
        self.round = 1
        self.is_partial = False
        self.is_over = False
        self._rounds: list[Round] = []
        self._is_complete = False
        self._playback, self._match = playback, playback.match
        words = self._match.game.vocabulary
        self._closes, self._follows = words.closes, frozenset(words.follows)
        self.add(playback.take_events())

    @property
    def decisions(self) -> int:
        return len(self._match.answers)

    @property
    def scores(self) -> tuple[int, ...]:
        return self._match.scores

    def feed(self, value: object, took_ms: int | None = None, note: str | None = None) -> None:
        """Add the events of the next answer; raises as `Playback.feed`."""
        self.add(self._playback.feed(value, took_ms, note))

    def pass_over(self, value: object) -> None:
        """Like `feed`, but twice as fast, as it adds no events."""
        match = self._match
        match.answer(value)
        self.is_partial = True
        self.events.clear()
        if match.termination is not None:
            self.add(self._playback.take_events())
            return
        for told in match.take_news():
            self.round += type(told.news) is self._closes

    def end(self, termination: Termination) -> None:
        """Add the end, unless the rules have ended the match."""
        self.add(self._playback.end(termination))

    def take(self) -> list[Round]:
        """The rounds that have become complete since the last call, in order."""
        rounds, self._rounds = self._rounds, []
        return rounds

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            kind = type(event.news) if type(event) is TellSeat else None
            is_over = type(event) is MatchOver
            if self._is_complete and kind not in self._follows and not is_over:
                self._turn_over()
                self.round += 1
            if is_over or not self.is_partial:
                self.events.append(event)
            if is_over:
                self.is_over = True
                self._turn_over()
            elif kind is self._closes:
                self._is_complete = True

    def _turn_over(self) -> None:
        """Finish the round; of a partial round only the end of the match is kept."""
        if self.events:
            scores, points = self.scores, self._match.points
            self._rounds.append(Round(self.round, scores, points, tuple(self.events)))
        self.events = []
        self._is_complete = self.is_partial = False


def rounds_of(record: Record) -> Iterator[Round]:
    """Replay a record and yield its rounds, holding one at a time; raises as `events_of`."""
    playback = Playback.of(record)
    rounds = RoundPlayback(playback)
    for events in playback.feed_all(record):
        rounds.add(events)
        yield from rounds.take()
