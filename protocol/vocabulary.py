"""What a game's questions, answers and news are made of.

Each `protocol/<game>.py` defines its settings, questions and news as frozen structs and lists them
in a `Vocabulary`; `protocol/games.py` finds those of all games. A question has its `legal`
answers and alone decides whether an answer is legal (J1).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from protocol.errors import BadSettings, IllegalAnswer, class_name, one_line
from protocol.words import Asked, Told

__all__ = ["Legal", "News", "Question", "Range", "Settings", "Shape", "Vocabulary", "shorten"]

Answer = TypeVar("Answer")


class Range(msgspec.Struct, frozen=True, gc=False):
    """Legal answers that are too many to list: every integer from `min` to `max`.

    Attributes:
        min: the least.
        max: the greatest.
    """

    min: int
    max: int

    def __str__(self) -> str:
        return f"{self.min} to {self.max}"


Legal: TypeAlias = tuple[Any, ...] | Range
"""What `legal` may be: all answers one by one, or a range of integers."""


class _Kinded(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag=str.lower):
    """A struct that is sent with its `kind`."""

    @property
    def kind(self) -> str:
        """The word that names this question or news on the wire."""
        return str(self.__struct_config__.tag)


class Question(_Kinded, Generic[Answer], frozen=True, gc=False):
    """Something a seat must decide; every subclass has a field `legal`."""

    answered_by: ClassVar[str] = ""
    """The Python strategy's method that answers it; empty if its name is the kind."""

    @property
    def choices(self) -> Legal:
        """The legal answers, whatever their type."""
        legal: Legal = self.legal  # type: ignore[attr-defined]
        return legal

    def check(self, value: object) -> Answer:
        """Return `value` as this question's exact answer type.

        Raises:
            IllegalAnswer: it is not among the legal answers; `True`, `4.0` and `"4"` are not 4
                (J1).
        """
        legal: Any = self.legal  # type: ignore[attr-defined]
        given: Any = value
        exact = type(given)
        if type(legal) is tuple:
            for choice in legal:
                if type(choice) is exact and choice == given:
                    return choice  # type: ignore[no-any-return]
        elif exact is int and legal.min <= given <= legal.max:
            return given  # type: ignore[no-any-return]
        raise self.refusal(value)

    def refusal(self, value: object) -> IllegalAnswer:
        """Make the error that says what was answered and what would have been legal."""
        return IllegalAnswer(
            f"answered {shorten(value)} to {self.kind}; legal: {self.legal_text()}"
        )

    def mistypes(self, value: object) -> bool:
        """Whether an illegal answer would be legal in another type: 4.0 or "4" for 4."""
        meant = value
        if isinstance(value, Mapping):
            meant = {
                # Leave other values alone: the text of a deeply nested list cannot be made.
                key: _TRUTH.get(field, field) if isinstance(field, str | int) else field
                for key, field in value.items()
            }
        elif type(value) is str:
            try:
                meant = msgspec.json.decode(value)
            except (ValueError, RecursionError):
                return False
        elif isinstance(value, bool):
            meant = int(value)
        if isinstance(meant, float) and meant.is_integer():
            meant = int(meant)
        try:
            self.check(meant)
        except (IllegalAnswer, RecursionError):
            return False
        return True

    def fault(self, value: object) -> str | None:
        """Say what is wrong with an answer if `legal` does not list all answers; else None."""
        return None

    def advice(self, value: object) -> str:
        """Say in one line what the bot's author can do about an illegal answer."""
        if value is None:
            return (
                "answer with an element of `legal`, not null (None in Python): "
                f"does every way through `{self.answered_by or self.kind}` end with `return`?"
            )
        if self.mistypes(value):
            if isinstance(value, float):
                return f"answer with a whole number, without a fraction: {value:.0f}, not {value}"
            return "answer with an element of `legal`, type and all: 4 is not '4' and true is not 1"
        if isinstance(self.choices, Range):
            return "answer with a whole number from `min` to `max` of `legal`, both included"
        return "answer with an element of `legal` as it stands in this very question"

    def legal_text(self) -> str:
        """Describe the legal answers in a few words, for people."""
        legal = self.choices
        if isinstance(legal, Range):
            return str(legal)
        return ", ".join(map(_plain, legal[:20])) + (", …" if len(legal) > 20 else "")


class News(_Kinded, frozen=True, gc=False):
    """Something that a seat may know from now on."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of one game, with the rulebook's names, defaults and ranges."""


class Shape(NamedTuple):
    """A kind of question with one shape of `legal`, which `arena check` shows to a bot.

    Attributes:
        name: what it is called: `a bet from 5 to 5`.
        kind: the kind of the question.
        fits: whether `legal` is of this shape.
    """

    name: str
    kind: str
    fits: Callable[[Any], bool] = lambda legal: True

    def is_of(self, question: Question[Any]) -> bool:
        return question.kind == self.kind and self.fits(question.choices)


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What one game says on the wire, and in which words people are told of it.

    `conventions` says what must hold; `arena/games/rules.py` has the other half of a game.

    Attributes:
        name: in lower case, with underscores.
        title: the name for people.
        alias: a short name that commands and `decks=` accept too, or the name again.
        seats: how many seats a match has.
        settings: the class of its settings, with a default for each.
        opens: the questions and news that may open a round for some seat, which is the first that
            this seat learns of it; each has its number, from 1, in a field `round`.
        closes: the news that ends a round, told once in every round.
        follows: the news that may come after that, and still belong to the round.
        private: the news that tell one seat what it alone may know, such as its cards; they stand
            at that seat on the page. In a game for one all news are that seat's.
        payoffs: what a round brought, by seat, from the news that ends it.
        round: what a round is called: `round` or `hand`.
        words: every question and news of the game, in words; the questions come first.
        shapes: what `legal` can look like; empty for one shape per kind of question.
    """

    name: str
    title: str
    alias: str
    seats: int
    settings: type[Settings]
    opens: tuple[type[Question[Any]] | type[News], ...]
    closes: type[News]
    follows: tuple[type[News], ...] = ()
    private: tuple[type[News], ...] = ()
    payoffs: Callable[[Any], tuple[int, ...]]
    round: str = "round"
    words: Mapping[type[Question[Any]] | type[News], Asked | Told]
    shapes: tuple[Shape, ...] = ()

    @cached_property
    def questions(self) -> Mapping[str, type[Question[Any]]]:
        """The questions by kind; each has a field `legal`."""
        return {_tag(cls): cls for cls in self.words if issubclass(cls, Question)}

    @cached_property
    def news(self) -> Mapping[str, type[News]]:
        """The news by kind."""
        return {_tag(cls): cls for cls in self.words if issubclass(cls, News)}

    @property
    def legal_shapes(self) -> tuple[Shape, ...]:
        """The shapes of `legal`, with one for each kind of question that has none listed."""
        listed = {shape.kind for shape in self.shapes}
        return (*self.shapes, *(Shape(kind, kind) for kind in self.questions if kind not in listed))

    def asked_words(self, question: Question[Any]) -> Asked:
        words = self.words[type(question)]
        assert isinstance(words, Asked), "`conventions` has been asked"
        return words

    def told_words(self, news: News) -> Told:
        words = self.words[type(news)]
        assert isinstance(words, Told), "`conventions` has been asked"
        return words

    def read_settings(self, values: Mapping[str, object] | Settings | None) -> Settings:
        """Read settings from a mapping with the rulebook's names; None means the defaults.

        Raises:
            BadSettings: an unknown name, a wrong type or a value out of its range.
        """
        given: Any = values or {}
        if isinstance(given, self.settings):
            return given
        try:
            return msgspec.convert(dict(given), self.settings)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            text = _lower(str(error))
            if "unknown field" in text:
                text += f"; expected {', '.join(self.settings.__struct_fields__)}"
            raise BadSettings(f"settings of {self.name}: {text}") from None


def _tag(cls: type[Question[Any]] | type[News]) -> str:
    return str(cls.__struct_config__.tag)


# Texts and numbers that some languages send for truth values and null.
_TRUTH: Mapping[str | int, bool | None] = {
    1: True,
    0: False,
    "true": True,
    "True": True,
    "1": True,
    "false": False,
    "False": False,
    "0": False,
    "null": None,
    "None": None,
}


def _plain(choice: object) -> str:
    return choice if isinstance(choice, str) else shorten(choice)


def _is_json(value: object) -> bool:
    """Whether a value consists only of the exact types that JSON decodes to, not subclasses."""
    if type(value) is dict:
        return all(type(key) is str and _is_json(value[key]) for key in value)
    if type(value) is list:
        return all(map(_is_json, value))
    return value is None or type(value) in (str, int, float, bool)


def shorten(value: object, limit: int = 120) -> str:
    """Show an untrusted value in one line, as JSON if possible, else by `repr`."""
    try:
        given = value[: limit * 2] if type(value) is str else value
        is_json = _is_json(given)
        text = json.dumps(given, ensure_ascii=False) if is_json else repr(given)
        text = str.__str__(text)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a strategy's own object may raise anything
        text = f"<{class_name(value)}>"
    return one_line(text, limit)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
