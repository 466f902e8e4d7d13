"""A match told again, event by event.

`EventReplay` plays a match again from its cards and its answers, beside the match itself, and sets down what happens: cards dealt, what each
seat was told, asked and answered. All of it is there; who may see which of it is `arena/records/visibility.py`'s to say. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from arena.engine.match import MatchState, Record
from arena.engine.rules import EVERYONE, NOBODY, TellSeat
from arena.games.replay import reopened
from protocol.games import VOCABULARIES
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

_ENDS = frozenset(
    news
    for words in VOCABULARIES.values()
    for kind, news in words.news.items()
    if kind in ("round_over", "hand_over")
)
"""The news with which a round ends."""
_AFTER = frozenset(
    words.news["game_over"] for words in VOCABULARIES.values() if "game_over" in words.news
)
"""The news that belong to the round that they come after."""


class CardsDealt(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="dealt"):
    """Cards were shuffled or cut: a deck or a cut point, as in the record of a match with stacked decks."""

    deal: Any


class SeatTold(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="told"):
    """A seat was told something; with None for the seat, all were."""

    seat: int | None
    news: News


class SeatAsked(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="asked"):
    """A seat was asked."""

    seat: int
    question: Question[Any]


class SeatAnswered(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="answered"):
    """A seat answered: what, after how long, and with which note."""

    seat: int
    value: Any
    took_ms: int | None = None
    note: str | None = None


class MatchOver(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="over"):
    """The match is over."""

    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination


Event: TypeAlias = CardsDealt | SeatTold | SeatAsked | SeatAnswered | MatchOver


class Round(msgspec.Struct, frozen=True):
    """A round that has been told.

    Attributes:
        number: from 1.
        scores: by seat, at its end.
        events: what happened, in order.
    """

    number: int
    scores: tuple[int, ...]
    events: tuple[Event, ...]


class EventReplay:
    """A match told again, an answer at a time.

    The events of the round that is being told are in `events`; rounds that are complete gather until `take` is called.

    Attributes:
        events: of the present round, in order; none if its beginning was passed over.
        round: its number, from 1.
        is_partial: whether a part of the present round was passed over.
        is_over: whether the end has been told.
    """

    def __init__(self, match: MatchState) -> None:
        """Begin to tell `match`, which nobody else answers and which `tells_deals`."""
        self.events: list[Event] = []
        self.round = 1
        self.is_partial = False
        self.is_over = False
        self._rounds: list[Round] = []
        self._is_complete = False
        self._match = match
        self._set_down(match.take_news())

    @classmethod
    def of(cls, record: Record) -> EventReplay:
        """The match of a record, at its beginning.

        Raises:
            UsageError: it is no record of a match: unknown game, bad settings, no seed or decks, decks that do not suffice.
        """
        return cls(reopened(record, tells_deals=True))

    @property
    def decisions(self) -> int:
        """How many answers have been given."""
        return len(self._match.answers)

    @property
    def scores(self) -> tuple[int, ...]:
        """By seat, as they stand."""
        return self._match.scores

    @property
    def pending(self) -> tuple[int, str] | None:
        """Who is to decide, and the kind of the question."""
        asked = self._match.pending
        return None if asked is None else (asked.seat, asked.question.kind)

    def feed(self, value: object, took_ms: int | None = None, note: str | None = None) -> None:
        """Tell the next answer, and what came of it.

        Raises:
            IllegalAnswer: it is not legal where it stands, or comes after the end; nothing has changed.
            BadDeck: the next stacked deck is none or missing.
        """
        step = self._match.step(value)
        assert step.answered is not None, "it has just been answered"
        self._add(SeatAnswered(step.answered.seat, step.answer, took_ms, note))
        self._set_down(step.news)

    def pass_over(self, value: object) -> None:
        """Take the next answer, and tell nothing of it or of its round: twice as fast as `feed`.

        Raises:
            IllegalAnswer: it is not legal where it stands.
        """
        match = self._match
        match.answer(value)
        self.is_partial = True
        self.events.clear()
        news = match.take_news()
        if match.termination is not None:
            self._set_down(news)
            return
        for tell in news:
            if type(tell.news) in _ENDS:
                self.round += 1

    def end(self, termination: Termination) -> None:
        """Tell the end, unless the rules have come to one."""
        if not self.is_over:
            self._match.end(termination.kind, termination.seat, termination.text)
            self._set_down(())

    def take(self) -> list[Round]:
        """The rounds that have become complete since the last call, in order; after the end, the last one, too."""
        rounds, self._rounds = self._rounds, []
        return rounds

    # --- within ---

    def _set_down(self, news: Iterable[TellSeat]) -> None:
        """All that the rules have done up to the question that they wait with now."""
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
            points = match.result().points
            self._add(MatchOver(match.scores, points, match.termination))
            self._turn_over()

    def _add(self, event: Event) -> None:
        """One more event, in the round that it belongs to."""
        kind = type(event.news) if type(event) is SeatTold else None
        if self._is_complete and kind not in _AFTER and type(event) is not MatchOver:
            self._turn_over()
            self.round += 1
        if not self.is_partial or type(event) is MatchOver:
            self.events.append(event)
        if kind in _ENDS:
            self._is_complete = True

    def _turn_over(self) -> None:
        """The round is complete; one that was passed over in part is not told, but for the end of the match."""
        if self.events:
            self._rounds.append(Round(self.round, self.scores, tuple(self.events)))
        self.events = []
        self._is_complete = self.is_partial = False


def rounds_of(record: Record) -> Iterator[Round]:
    """Tell a whole record, round by round; of the memory that it takes, only a round's.

    Raises:
        IllegalAnswer: an answer is not legal where it stands, or comes after the end.
        UsageError: it is no record of a match: unknown game, bad settings, no seed or decks, decks that do not suffice.
    """
    telling = EventReplay.of(record)
    notes = dict(record.notes)
    times = iter(record.times_ms)
    for number, value in enumerate(record.answers):
        telling.feed(value, next(times, None), notes.get(number))
        yield from telling.take()
    telling.end(record.termination)
    yield from telling.take()
