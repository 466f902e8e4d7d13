"""Puts a game's questions, answers and news into words, such as `ann has the King: bets`.

A game's vocabulary has an `Asked` for every question and a `Told` for every news. Each is a text
with the fields of the question or news in braces, or if that is not enough, a function. Pure: what
a spectator may not see is never passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, TypeAlias

import msgspec

__all__ = ["Asked", "Told", "each", "fields_in", "filled", "gains"]

Names: TypeAlias = Sequence[str]
"""The names of the players, by seat."""


class Asked(msgspec.Struct, frozen=True):
    """A kind of question in words, and the answers to it.

    Attributes:
        text: what the seat has before it: `{who} has the {card}`, with any field of the question,
            or a function of `who` and the question.
        answer: what it does, to stand behind that: `bets {answer}`; with any field of the question,
            or a function of the question and the answer.
        legal: the legal answers in brief; None for a list of them.
    """

    text: str | Callable[[str, Any], str]
    answer: str | Callable[[Any, Any], str] = "{answer}s"
    legal: Callable[[Any], str] | None = None

    def asked(self, who: str, question: Any) -> str:
        if isinstance(self.text, str):
            return filled(self.text, question, {"who": who})
        return self.text(who, question)

    def answered(self, question: Any, answer: Any) -> str:
        if isinstance(self.answer, str):
            return filled(self.answer, question, {"answer": _shown(answer)})
        return self.answer(question, answer)

    def choices(self, question: Any) -> str:
        legal: str = question.legal_text() if self.legal is None else self.legal(question)
        return legal


class Told(msgspec.Struct, frozen=True):
    """A kind of news in words.

    Attributes:
        text: what has happened: `{who} bids {bid}`, with any field of the news; or a function of
            the news, all names, and `who`, that returns lines. `who` is the seat in the field
            `seat`, and without such a field the seat that was told.
        repeats: whether the news repeats the answer of the seat in its field `seat`, so that a text
            with that answer can leave it out.
        opening: what to add to the line that opens a round: `: the upcard is {upcard}`, a text
            only. Seats are named in it as `{starter_name}` for a field `starter`.
    """

    text: str | Callable[[Any, Names, str], Iterable[str]]
    repeats: bool = False
    opening: str = ""

    def lines(self, news: Any, names: Names, who: str) -> Iterable[str]:
        """Return the lines for news; `who` is the name of the seat that was told."""
        seat = getattr(news, "seat", None)
        if isinstance(seat, int):
            who = names[seat]
        if isinstance(self.text, str):
            return (filled(self.text, news, {"who": who}, names),)
        return self.text(news, names, who)

    def opened(self, news: Any, names: Names) -> str:
        return filled(self.opening, news, {}, names)


def filled(text: str, what: Any, more: Mapping[str, str], names: Names = ()) -> str:
    """Fill the fields of a question or news into a text.

    Cards are joined by spaces, and integers by seat follow the names. `{starter_name}` is the name
    of the seat in the field `starter`.
    """
    values = dict(more)
    for field in fields_in(text) - values.keys():
        if field.endswith("_name") and not hasattr(what, field):
            values[field] = names[getattr(what, field.removesuffix("_name"))]
        else:
            values[field] = _shown(getattr(what, field), names)
    return text.format_map(values)


def fields_in(text: str) -> set[str]:
    """Return the fields in braces; raises `ValueError` if the braces do not match."""
    return {field for _, field, _, _ in Formatter().parse(text) if field is not None}


def gains(names: Names, values: Sequence[int]) -> str:
    """Show gains by name, such as `ann +3, ben -3`."""
    return ", ".join(f"{name} {value:+,}" for name, value in zip(names, values, strict=True))


def each(names: Names, values: Sequence[int]) -> str:
    """Show numbers by name, such as `ann 48, ben 0`."""
    return ", ".join(f"{name} {value:,}" for name, value in zip(names, values, strict=True))


def _shown(value: Any, names: Names = ()) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        if len(value) == len(names) and all(type(item) is int for item in value):
            return gains(names, value)
        return " ".join(map(_shown, value)) or "nothing"
    return str(value)
