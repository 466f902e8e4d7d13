"""Replays a match as a list of events: cards dealt, what each seat was told, asked and answered.

The events have everything; `arena/records/visibility.py` decides who may see which of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from arena.engine.match import MatchState, Record
from arena.engine.rules import EVERYONE, NOBODY, TellSeat
from arena.games.replay import reopened
from protocol.messages import Termination
from protocol.vocabulary import News, Question

__all__ = [
    "CardsDealt",
    "Event",
    "EventReplay",
    "MatchOver",
    "Round",
    "SeatAnswered",
    "SeatAsked",
    "SeatTold",
    "rounds_of",
]


class CardsDealt(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="dealt"):
    """A deck was shuffled or cut: it or its cut, as in the record of a match with stacked decks."""

    deal: Any


class SeatTold(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="told"):
    """A seat was told something; None stands for all seats."""

    seat: int | None
    news: News


class SeatAsked(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="asked"):
    """A seat was asked."""

    seat: int
    question: Question[Any]


class SeatAnswered(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="answered"):
    """A seat answered; `question` is the one before."""

    seat: int
    value: Any
    took_ms: int | None = None
    note: str | None = None
    question: Question[Any] | None = None


class MatchOver(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="over"):
    """The match is over."""

    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination


Event: TypeAlias = CardsDealt | SeatTold | SeatAsked | SeatAnswered | MatchOver


class Round(msgspec.Struct, frozen=True):
    """A complete round; `number` counts from 1; `scores` and `points` are by seat, at its end."""

    number: int
    scores: tuple[int, ...]
    points: tuple[int, ...]
    events: tuple[Event, ...]


class EventReplay:
    """Replays a match that nobody else answers and that `tells_deals`, an answer at a time."""

    def __init__(self, match: MatchState) -> None:
        self.events: list[Event] = []  # of the present round; none if its beginning is missing
        self.round = 1  # the number of the present one
        self.is_partial = False  # whether a part of the present round was passed over
        self.is_over = False  # whether the end has been added
        self._rounds: list[Round] = []
        self._is_complete = False
        self._match = match
        self._closes = match.game.vocabulary.closes
        self._follows = frozenset(match.game.vocabulary.follows)
        self._set_down(match.take_news())

    @classmethod
    def of(cls, record: Record) -> EventReplay:
        """The match of a record, at its beginning; raises UsageError if it cannot be played."""
        return cls(reopened(record, tells_deals=True))

    @property
    def decisions(self) -> int:
        return len(self._match.answers)

    @property
    def scores(self) -> tuple[int, ...]:
        return self._match.scores

    @property
    def pending(self) -> tuple[int, str] | None:
        """The seat that is asked, and the kind of the question."""
        asked = self._match.pending
        return None if asked is None else (asked.seat, asked.question.kind)

    def feed(self, value: object, took_ms: int | None = None, note: str | None = None) -> None:
        """Add the events of the next answer.

        Raises IllegalAnswer if it is illegal or comes after the end, with nothing changed, and
        BadDeck if the next stacked deck is invalid or missing.
        """
        step = self._match.step(value)
        asked = step.answered
        assert asked is not None, "it has just been answered"
        self._add(SeatAnswered(asked.seat, step.answer, took_ms, note, asked.question))
        self._set_down(step.news)

    def pass_over(self, value: object) -> None:
        """Like `feed`, and twice as fast, as no events of the round are added."""
        match = self._match
        match.answer(value)
        self.is_partial = True
        self.events.clear()
        news = match.take_news()
        if match.termination is not None:
            self._set_down(news)
            return
        for tell in news:
            if type(tell.news) is self._closes:
                self.round += 1

    def end(self, termination: Termination) -> None:
        """Add the end, unless the rules have done so."""
        if not self.is_over:
            self._match.end(termination.kind, termination.seat, termination.text)
            self._set_down(())

    def take(self) -> list[Round]:
        """The rounds that have become complete since the last call, in order."""
        rounds, self._rounds = self._rounds, []
        return rounds

    # --- within ---

    def _set_down(self, news: Iterable[TellSeat]) -> None:
        """Add news, and the question or the end that follows them."""
        match = self._match
        for tell in news:
            if tell.seat == NOBODY:
                self._add(CardsDealt(tell.news))
            else:
                seat = None if tell.seat == EVERYONE else tell.seat
                self._add(SeatTold(seat, tell.news))
        if match.pending is not None:
            self._add(SeatAsked(match.pending.seat, match.pending.question))
        elif match.termination is not None and not self.is_over:
            self.is_over = True
            self._add(MatchOver(match.scores, match.points, match.termination))
            self._turn_over()

    def _add(self, event: Event) -> None:
        kind = type(event.news) if type(event) is SeatTold else None
        if self._is_complete and kind not in self._follows and type(event) is not MatchOver:
            self._turn_over()
            self.round += 1
        if not self.is_partial or type(event) is MatchOver:
            self.events.append(event)
        if kind is self._closes:
            self._is_complete = True

    def _turn_over(self) -> None:
        """Complete the round; of a partial one only the end of the match is left."""
        if self.events:
            scores, points = self.scores, self._match.points
            self._rounds.append(Round(self.round, scores, points, tuple(self.events)))
        self.events = []
        self._is_complete = self.is_partial = False


def rounds_of(record: Record) -> Iterator[Round]:
    """Replay a whole record, with one round in memory; raises as `EventReplay.of` and `feed`."""
    events = EventReplay.of(record)
    notes = dict(record.notes)
    times = iter(record.times_ms)
    for number, value in enumerate(record.answers):
        events.feed(value, next(times, None), notes.get(number))
        yield from events.take()
    events.end(record.termination)
    yield from events.take()
