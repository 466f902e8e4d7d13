"""What one seat saw of a match as a JSON document, which its owner may have at once (J8).

A record has all cards. A `SeatDocument` has what that seat was asked, told and has answered, so
that a match can be read and replayed to a new bot while its competition goes on. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union

import msgspec

from arena.engine.match import MatchStep, Record
from arena.engine.rules import EVERYONE, AskSeat, Game, TellSeat
from arena.games import game_named
from arena.games.replay import reopened
from protocol.errors import IllegalAnswer, UsageError, in_words
from protocol.messages import Termination
from protocol.vocabulary import News, Question

__all__ = ["SeatDocument", "seat_document"]


class HeardNews(msgspec.Struct, frozen=True):
    """News, in their fields, and whether all seats heard them."""

    news: dict[str, Any]
    all: bool = False


class PutQuestion(msgspec.Struct, frozen=True):
    """A question, in its fields, and the news before it."""

    question: dict[str, Any]
    news: tuple[HeardNews, ...] = ()


class SeatDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A match as one seat saw it.

    Attributes:
        match: its id.
        players: by seat.
        seat: whose it is, from 1.
        asked: the seat's questions, in order; the last may be without an answer.
        heard: the news after them.
        record: the record without cards and nonces, with this seat's answers, times and notes only.
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

    def steps(self) -> Iterator[MatchStep]:
        """The match as this seat saw it, like `MatchState.steps`.

        Raises `UsageError` for a question or news that the game does not know, and `IllegalAnswer`.
        """
        words = self.game.vocabulary
        question_type = _union(words.questions.values())
        news_type = _union(words.news.values())
        before: AskSeat | None = None
        answer: Any = None
        answers = iter(self.record.answers)
        for put in self.asked:
            question: Question[Any] = _read(put.question, question_type)
            asked = AskSeat(self.seat - 1, question)
            yield MatchStep(self._told(put.news, news_type), asked, before, answer)
            try:
                answer = question.check(next(answers))
            except StopIteration:
                return
            before = asked
        yield MatchStep(self._told(self.heard, news_type), None, before, answer)

    def _told(self, heard: tuple[HeardNews, ...], news_type: Any) -> list[TellSeat]:
        return [
            TellSeat(EVERYONE if each.all else self.seat - 1, _read(each.news, news_type))
            for each in heard
        ]


def seat_document(record: Record, seat: int, match: str, players: tuple[str, ...]) -> SeatDocument:
    """What a seat, from 0, saw of a match; raises as `reopened` and `MatchState.step`."""
    asked: list[PutQuestion] = []
    heard: list[HeardNews] = []
    answers: list[Any] = []
    times_ms: list[int] = []
    notes: list[tuple[int, str]] = []
    noted = dict(record.notes)
    for number, step in enumerate(reopened(record).steps(record.answers), start=-1):
        if step.answered is not None and step.answered.seat == seat:
            if number in noted:
                notes.append((len(answers), noted[number]))
            answers.append(record.answers[number])
            times_ms += record.times_ms[number : number + 1]
        heard += (
            HeardNews(_plain(told.news), told.seat == EVERYONE)
            for told in step.news
            if told.seat in (seat, EVERYONE)
        )
        if step.asked is not None and step.asked.seat == seat:
            asked.append(PutQuestion(_plain(step.asked.question), tuple(heard)))
            heard.clear()
    ended = record.termination
    if ended.seat != seat:  # its text may tell cards
        ended = Termination(ended.kind, ended.seat)
    own = msgspec.structs.replace(
        record,
        seed=None,
        nonces=(),
        enforced=(),
        decks=None,
        answers=tuple(answers),
        times_ms=tuple(times_ms),
        notes=tuple(notes),
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


def _plain(what: News | Question[Any]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(what)
    return plain


def _union(types: Any) -> Any:
    return Union[tuple(types)]  # noqa: UP007 - of unknown length


def _read(fields: dict[str, Any], of: Any) -> Any:
    try:
        return msgspec.convert(fields, of)
    except (msgspec.ValidationError, IllegalAnswer) as error:
        raise UsageError(f"expected what a seat is asked or told, got {in_words(error)}") from None
