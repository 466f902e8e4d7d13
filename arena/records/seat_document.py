"""What one seat saw of a finished match: as a JSON document, and as its decisions (J8).

A record has all cards. A `SeatDocument` has only what that seat was asked, was told and answered.
Its owner may have it at once, so that a match can be read, and replayed to a new bot, while its
competition goes on. Results computed from a `SeatMatch`, such as mistakes, cannot reveal a card
that J8 hides from the owner either. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union

import msgspec

from arena.games.analysis import SeatDecision, SeatMatch
from arena.games.catalogue import game_named
from arena.games.match import Record
from arena.games.replay import Event, SeatAnswered, events_of
from arena.games.rules import EVERYONE, AskSeat, Game, TellSeat
from protocol.errors import IllegalAnswer, UsageError, in_words
from protocol.messages import Termination
from protocol.vocabulary import News, Question

__all__ = ["SeatDocument", "seat_document", "seat_events", "seat_match"]


class HeardNews(msgspec.Struct, frozen=True):
    """One piece of news that the seat heard, as JSON, and whether all seats heard it."""

    news: dict[str, Any]
    all: bool = False


class PutQuestion(msgspec.Struct, frozen=True):
    """A question put to the seat, as JSON, and the news that it heard since the one before."""

    question: dict[str, Any]
    news: tuple[HeardNews, ...] = ()


class SeatDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A match as one seat saw it.

    Attributes:
        match: its id.
        players: by seat.
        seat: whose view it is, from 1.
        asked: the seat's questions, in order; the last may be unanswered.
        heard: the news after the last question.
        record: the record without cards and nonces, with only this seat's answers, times and notes.
    """

    match: str
    players: tuple[str, ...]
    seat: int
    asked: tuple[PutQuestion, ...]
    heard: tuple[HeardNews, ...]
    record: Record

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def game(self) -> Game:
        """Its game; raises as `game_named`."""
        return game_named(self.record.game, self.record.package)

    def events(self) -> Iterator[Event]:
        """The events that this seat saw, like `events_of`.

        Raises `UsageError` for a question or news that the game does not know, and `IllegalAnswer`.
        """
        words, seat, record = self.game.vocabulary, self.seat - 1, self.record
        notes, times_ms = dict(record.notes), iter(record.times_ms)

        def told(heard: tuple[HeardNews, ...]) -> Iterator[TellSeat]:
            for each in heard:
                yield TellSeat(EVERYONE if each.all else seat, _read(each.news, words.news))

        for index, put in enumerate(self.asked):
            yield from told(put.news)
            question: Question[Any] = _read(put.question, words.questions)
            yield AskSeat(seat, question)
            if index == len(record.answers):
                return
            answer = question.check(record.answers[index])
            took_ms = next(times_ms, None)
            yield SeatAnswered(seat, index, question, answer, took_ms, notes.get(index))
        yield from told(self.heard)


def seat_document(record: Record, seat: int, match: str, players: tuple[str, ...]) -> SeatDocument:
    """Make the document of a seat, from 0; raises as `events_of`."""
    asked: list[PutQuestion] = []
    heard: list[HeardNews] = []
    answered: list[SeatAnswered] = []
    for event in events_of(record, seat):
        if type(event) is TellSeat:
            heard.append(HeardNews(msgspec.to_builtins(event.news), event.seat == EVERYONE))
        elif type(event) is AskSeat:
            asked.append(PutQuestion(msgspec.to_builtins(event.question), tuple(heard)))
            heard.clear()
        elif type(event) is SeatAnswered:
            answered.append(event)
    ended = record.termination
    if ended.seat != seat:  # the text may reveal cards
        ended = Termination(ended.kind, ended.seat)
    own = msgspec.structs.replace(
        record,
        seed=None,
        nonces=(),
        enforced=(),
        decks=None,
        answers=tuple(record.answers[each.index] for each in answered),
        times_ms=tuple(each.took_ms for each in answered if each.took_ms is not None),
        notes=tuple((at, each.note) for at, each in enumerate(answered) if each.note is not None),
        termination=ended,
    )
    return SeatDocument(
        match=match,
        players=players,
        seat=seat + 1,
        asked=tuple(asked),
        heard=tuple(heard),
        record=own,
    )


def seat_events(record: Record | SeatDocument, seat: int | None) -> Iterator[Event]:
    """The events of a record that a seat may know, or all for None; or those of a seat's document.

    Raises as `events_of`, or as `SeatDocument.events`.
    """
    return record.events() if isinstance(record, SeatDocument) else events_of(record, seat)


def seat_match(record: Record | SeatDocument, seat: int) -> SeatMatch:
    """The match as one seat, from 0, saw it; raises as `seat_events`."""
    played = record.record if isinstance(record, SeatDocument) else record
    words = game_named(played.game, played.package).vocabulary
    settings = words.read_settings(played.settings)
    decisions: list[SeatDecision] = []
    heard: list[News] = []
    waiting, number = None, 1
    for event in seat_events(record, seat):
        if type(event) is TellSeat:
            heard.append(event.news)
            number += type(event.news) is words.closes
        elif type(event) is AskSeat:
            waiting = event.question
        elif type(event) is SeatAnswered:
            news, count = tuple(heard), len(decisions) + 1
            decisions.append(
                SeatDecision(event.question, event.value, news, count, event.index, number)
            )
            heard.clear()
            waiting = None
    return SeatMatch(settings, seat, decisions, tuple(heard), waiting)


def _read(fields: dict[str, Any], kinds: Any) -> Any:
    """Read a question or news as one of these kinds."""
    try:
        return msgspec.convert(fields, Union[tuple(kinds.values())])  # noqa: UP007
    except (msgspec.ValidationError, IllegalAnswer) as error:
        raise UsageError(f"expected what a seat is asked or told, got {in_words(error)}") from None
