"""Captions for the events that a view of a match shows, in the words of the game's vocabulary.

The page uses them for a game without a view of its own. A caption is made only from what is passed
in, so it reveals no more than the event itself (J8). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from arena.games.rules import Game
from protocol.vocabulary import News, Question, Vocabulary
from protocol.words import Told, fields_in

__all__ = ["Captioner", "captions_for", "seat_names"]

_EVERYBODY = "everybody"


def seat_names(players: Sequence[str], seats: int) -> tuple[str, ...]:
    """The names of the seats: those of their bots, with the seat number where two are the same."""
    if len(players) != seats:
        return tuple(f"seat {seat}" for seat in range(1, seats + 1))
    return tuple(
        f"{name} (seat {seat})" if players.count(name) > 1 else name
        for seat, name in enumerate(players, start=1)
    )


def captions_for(game: Game, players: Sequence[str]) -> Captioner | None:
    """The captions of a match; None if the game has its own view, which has its own words."""
    return Captioner(game.vocabulary, players) if game.view is None else None


class Captioner:
    """The captions of one match; `players` are the names by seat."""

    def __init__(self, vocabulary: Vocabulary, players: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._names = seat_names(players, vocabulary.seats)

    def of(self, event: Mapping[str, Any], own: int) -> dict[str, Any]:
        """The caption of an event of the seat `own`; empty for anything that is not a valid event.

        The event is as in JSON, and an answer comes with its question.
        """
        try:
            return self._of(event, own)
        except Exception:  # an event from outside may be wrong in any way
            return {}

    def _of(self, event: Mapping[str, Any], own: int) -> dict[str, Any]:
        words, kind, seat = self._vocabulary, event["event"], event["seat"]
        if kind == "told":
            news = msgspec.convert(event["news"], words.news[event["news"]["kind"]])
            gains = self.gains(news)
            caption: dict[str, Any] = {} if gains is None else {"gains": gains}
            seen_before = words.told_words(news).repeats and getattr(news, "seat", None) == own
            text = "" if seen_before else self.told(seat, news)
            return {**caption, "text": text} if text else caption
        asked = event["question"]
        question = msgspec.convert(asked, words.questions[asked["kind"]])
        if kind == "asked":
            return {"text": self.asked(seat, question)}
        return {"text": self.answered(seat, question, question.check(event["value"]))}

    def asked(self, seat: int, question: Question[Any]) -> str:
        return self._vocabulary.asked_words(question).asked(self._names[seat], question)

    def answered(self, seat: int, question: Question[Any], value: object) -> str:
        words = self._vocabulary.asked_words(question)
        return f"{self._names[seat]} {words.answered(question, value)}"

    def told(self, seat: int | None, news: News) -> str:
        """The news that a seat was told, in words; None is all seats."""
        words = self._vocabulary.told_words(news)
        names = self._names
        who = _EVERYBODY if seat is None and len(names) > 1 else names[seat or 0]
        return _joined(self._opening(words, news), *words.lines(news, names, who))

    def told_each(self, run: Sequence[News]) -> str:
        """The news of one kind that each seat was told, in words: only what is the same in all."""
        first, words = run[0], self._vocabulary.told_words(run[0])
        opening = self._opening(words, first) if _is_alike(words.opening, run) else ""
        text = words.text
        if isinstance(text, str) and "who" not in fields_in(text) and _is_alike(text, run):
            return _joined(opening, *words.lines(first, self._names, _EVERYBODY))
        return opening

    def gains(self, news: News) -> tuple[int, ...] | None:
        """By seat, the payoffs of a round, if the news end it."""
        words = self._vocabulary
        return tuple(words.payoffs(news)) if type(news) is words.closes else None

    def repeats(self, news: News) -> bool:
        """Whether the news repeat the answer of the seat in their field `seat`."""
        return self._vocabulary.told_words(news).repeats

    def _opening(self, words: Told, news: Any) -> str:
        if not words.opening:
            return ""
        return f"{self._vocabulary.round} {news.round}{words.opened(news, self._names)}"


def _joined(*lines: str) -> str:
    return "; ".join(filter(None, lines))


def _is_alike(text: str, run: Sequence[News]) -> bool:
    """Whether a text is the same for all of the news."""
    fields = {field.removesuffix("_name") for field in fields_in(text)} | fields_in(text)
    known = fields & set(run[0].__struct_fields__)
    return all(getattr(news, field) == getattr(run[0], field) for news in run for field in known)
