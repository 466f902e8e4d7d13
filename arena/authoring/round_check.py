"""The parts of `arena check-game` that check one match: its rounds and its messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from arena.authoring.playout import Playout, are_numbers
from arena.games.replay import MatchOver, SeatAnswered
from arena.games.rules import EVERYONE, AskSeat, Game, TellSeat
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.errors import IllegalAnswer, in_words
from protocol.messages import Answer, ArenaMessage, Ask, Ending, Over, Termination
from protocol.vocabulary import News, Question, Range, shorten

__all__ = ["MessageCheck", "RoundCheck"]

Found = Iterator[tuple[str, str]]

_EXAMPLES = 3  # messages of each kind to encode; all are put into words
_MOST_LEGAL = 50  # legal answers to try per question


class RoundCheck:
    """Checks whether every round of a match is opened, closed and paid."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._closed = 0  # the number of the last closed round
        self._open: int | None = None  # the number of the open round
        self._opened: set[int] = set()  # the seats that were told of it
        self._paid = [0.0] * game.seats

    def check(self, played: Playout) -> Found:
        for event, board in zip(played.events, played.boards, strict=True):
            if isinstance(event, MatchOver):
                yield from self._ended(*board)
            elif isinstance(event, AskSeat):
                yield from self._seat(event.seat, event.question.kind, 0)
                yield from self._is_paid(*board)
                yield from self._opening(event.seat, event.question)
                if self._open is None or event.seat not in self._opened:
                    self._open = self._open or self._closed + 1
                    yield (
                        "opens",
                        f"seat {event.seat + 1} is asked `{event.question.kind}` before round "
                        f"{self._open} was opened for it by {self._openers()}",
                    )
                    self._opened.add(event.seat)
            elif isinstance(event, TellSeat):
                yield from self._seat(event.seat, event.news.kind, EVERYONE)
                yield from self._news(event)

    def _news(self, event: TellSeat) -> Found:
        yield from self._opening(event.seat, event.news)
        if not isinstance(event.news, self._game.vocabulary.closes):
            return
        if event.seat != EVERYONE and self._game.seats > 1:
            # Code that counts rounds would count one for each seat that is told.
            yield (
                "closes",
                f"`{event.news.kind}` is told to seat {event.seat + 1}, expected once to EVERYONE",
            )
        elif self._open is None:
            yield "closes", f"`{event.news.kind}` is told again after round {self._closed}"
        if self._open is not None:
            for seat in sorted({*range(self._game.seats)} - self._opened):
                yield ("opens", f"no {self._openers()} tells seat {seat + 1} of round {self._open}")
            self._opened.clear()
            self._closed, self._open = self._open, None
            yield from self._pay(event.news)

    def _opening(self, seat: int, message: Question[Any] | News) -> Found:
        if not isinstance(message, self._game.vocabulary.opens):
            return
        number: object = message.round  # type: ignore[union-attr]
        expected = self._closed + 1 if self._open is None else self._open
        repeats = isinstance(message, self._game.vocabulary.closes) and number == self._closed
        if self._open is not None and number == self._open + 1:
            yield (
                "closes",
                f"`{self._closes()}` is not told in round {self._open}, before `{message.kind}` "
                f"opens round {number}",
            )
            self._closed, expected = self._open, self._open + 1
        if type(number) is not int or number != expected:
            if repeats and self._open is None:
                return  # `closes` reports it
            yield "opens", f"`{message.kind}` has the round {number!r}, expected {expected}"
        self._open = expected
        self._opened |= {*range(self._game.seats)} if seat == EVERYONE else {seat}

    def _ended(self, scores: tuple[int, ...], shown: tuple[int, ...]) -> Found:
        if self._open is not None:
            yield (
                "closes",
                f"`{self._closes()}` is not told in round {self._open}, after which the match ends",
            )
        if any(type(score) is not int for score in (*scores, *shown)):
            yield "payoffs", f"the scores are {scores}, expected whole numbers of the type `int`"
        yield from self._is_paid(scores, shown)

    def _seat(self, seat: int, kind: str, least: int) -> Found:
        if seat not in range(self._game.seats) and seat != least:
            yield "seats", f"`{kind}` is for seat {seat}, expected 0 to {self._game.seats - 1}"

    def _pay(self, news: News) -> Found:
        try:
            payoffs = tuple(self._game.vocabulary.payoffs(news))
            if not are_numbers(payoffs, self._game.seats):
                raise ValueError(f"expected {self._game.seats} numbers, got {payoffs}")
            self._paid = [old + gain for old, gain in zip(self._paid, payoffs, strict=True)]
        except Exception as error:
            yield "payoffs", f"of `{news.kind}`: {in_words(error)}"

    def _is_paid(self, scores: tuple[int, ...], shown: tuple[int, ...]) -> Found:
        """Check that the rounds' payoffs add up to the scores, or to the points (G14)."""
        if self._open is None and tuple(self._paid) not in (scores, shown):
            paid = ", ".join(f"{gain:+g}" for gain in self._paid)
            had = ", ".join(f"{score:+g}" for score in scores)
            yield (
                "payoffs",
                f"up to round {self._closed} they add up to {paid}, the scores are {had}",
            )
            self._paid = [*map(float, scores)]

    def _closes(self) -> str:
        return str(self._game.vocabulary.closes.__struct_config__.tag)

    def _openers(self) -> str:
        kinds = {str(cls.__struct_config__.tag) for cls in self._game.vocabulary.opens}
        return " or ".join(f"`{kind}`" for kind in sorted(kinds))


class MessageCheck:
    """Checks whether all questions, answers and news can be sent, answered and put into words."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._names = tuple("ann ben cem dan eve fay gus hal ida jon".split()[: game.seats])
        self._sent: Counter[type[Any]] = Counter()

    def check(self, played: Playout) -> Found:
        for event in played.events:
            if isinstance(event, AskSeat):
                yield from self._question(event)
            elif isinstance(event, TellSeat):
                yield from self._news(event)
            elif isinstance(event, SeatAnswered):
                yield from self._answer(event.question, event.value)

    def _question(self, event: AskSeat) -> Found:
        question = event.question
        words = self._game.vocabulary
        if words.questions.get(question.kind) is not type(question):
            yield "words", f"`{question.kind}` is asked, which is not among the questions"
            return
        yield from _legal(question)
        try:
            told = words.asked_words(question)
            lines = (told.asked(self._name(event.seat), question), told.choices(question))
            _need_lines(lines)
        except Exception as error:
            yield "words", f"of `{question.kind}`: {in_words(error)}"
        yield from self._wire(Ask("m", "1", question, (), 0, 0))

    def _news(self, event: TellSeat) -> Found:
        news, words = event.news, self._game.vocabulary
        if words.news.get(news.kind) is not type(news):
            yield "words", f"`{news.kind}` is told, which is not among the news"
            return
        yield from self._private(event)
        try:
            told = words.told_words(news)
            _need_lines(tuple(told.lines(news, self._names, self._name(event.seat))))
            if told.opening:
                _need_lines((told.opened(news, self._names),))
        except Exception as error:
            yield "words", f"of `{news.kind}`: {in_words(error)}"
        yield from self._wire(news)

    def _private(self, event: TellSeat) -> Found:
        """Check that the page can say to whom news was told."""
        news, words = event.news, self._game.vocabulary
        if words.seats == 1:
            return
        if type(news) in words.private:
            if event.seat == EVERYONE:
                yield "private", f"`{news.kind}` is told to all, expected one seat"
        elif not (
            event.seat == EVERYONE
            or isinstance(news, words.closes)
            or "seat" in news.__struct_fields__
        ):
            why = "expected it in `private`, or a field `seat`"
            yield "private", f"`{news.kind}` is told to one seat, {why}"

    def _answer(self, question: Question[Any], value: Any) -> Found:
        try:
            words = self._game.vocabulary.asked_words(question)
            _need_lines((words.answered(question, value),))
        except Exception as error:
            yield "words", f"of the answer {shorten(value)} to `{question.kind}`: {in_words(error)}"
        if self._sent[type(question)] > _EXAMPLES:
            return
        for encoding in Encoding:
            try:
                [heard] = decode_from_bot(encode(Answer("m", "1", value), encoding), encoding)
                assert isinstance(heard, Answer), "it is what was sent"
                same = question.check(heard.value) == value
            except Exception as error:
                yield "wire", f"the answer {shorten(value)} to `{question.kind}`: {in_words(error)}"
                return
            if not same:
                yield "wire", f"the answer {shorten(value)} to `{question.kind}` arrives as another"

    def _wire(self, message: Ask | News) -> Found:
        """Check that a message arrives as it was sent, in both encodings."""
        what = message.question if isinstance(message, Ask) else message
        self._sent[type(what)] += 1
        if self._sent[type(what)] > _EXAMPLES:
            return
        sent: ArenaMessage = message if isinstance(message, Ask) else _over(message)
        for encoding in Encoding:
            try:
                frame = encode(sent, encoding)
                same = decode_from_arena(frame, encoding, lambda _: self._game.name) == [sent]
            except Exception as error:
                yield "wire", f"`{what.kind}`: {in_words(error)}"
                return
            if not same:
                yield "wire", f"`{what.kind}` arrives as another: {shorten(what)}"
                return

    def _name(self, seat: int) -> str:
        return self._names[max(seat, 0) % self._game.seats]


def _over(news: News) -> Over:
    return Over("m", (news,), (), Termination(Ending.COMPLETED), None)


def _legal(question: Question[Any]) -> Found:
    """Check that there is a legal answer, and that the question accepts those it lists."""
    legal: Any = question.choices
    if isinstance(legal, Range):
        if legal.min > legal.max:
            yield "legal", f"`{question.kind}` has no legal answer: {legal}"
            return
        answers: tuple[Any, ...] = (legal.min, legal.max)
    elif type(legal) is tuple:
        if not legal:
            yield "legal", f"`{question.kind}` has no legal answer: `legal` is empty"
        answers = legal[:_MOST_LEGAL]
    else:
        yield "legal", f"of `{question.kind}`: expected a tuple or a Range, got {shorten(legal)}"
        return
    for answer in answers:
        try:
            question.check(answer)
        except IllegalAnswer:
            yield "legal", f"`{question.kind}` refuses {shorten(answer)}, an element of its `legal`"
        except Exception as error:
            yield "legal", f"`{question.kind}` cannot check {shorten(answer)}: {in_words(error)}"


def _need_lines(lines: tuple[object, ...]) -> None:
    if wrong := [line for line in lines if not isinstance(line, str)]:
        raise TypeError(f"expected texts, got {shorten(wrong[0])}")
