"""The base classes of strategies, with a random generator and default methods."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import PurePath
from random import Random
from typing import Any, ClassVar

from protocol.vocabulary import Legal, News, Question, Range

__all__ = ["BaseStrategy", "RandomMixin", "choose", "yes_or_no"]


def choose(legal: Legal, rng: Random) -> Any:
    """Return a random legal answer, each equally likely."""
    if type(legal) is tuple:
        return legal[int(rng.random() * len(legal))]
    assert type(legal) is Range, "answers are listed or a range"
    return rng.randint(legal.min, legal.max)


def yes_or_no(method: str, returned: object, strategy: object = None) -> bool:
    """Convert the value returned by a yes-or-no method to True or False.

    Raises `TypeError` for a text, as every text but "" would count as True, even "fold". None
    counts as no, with a warning. If `strategy` is given, both name the line of the method, which
    has already returned and so is in no traceback.
    """
    if isinstance(returned, str):
        place = _place_of(method, strategy)
        where = "" if place is None else f" in {PurePath(place[0]).name}:{place[1]}"
        raise TypeError(f"expected True or False from `{method}`{where}, got {returned!r}")
    if returned is None and (place := _place_of(method, strategy)) is not None:
        text = f"`{method}` returned None, which is no: does every way through it end with return?"
        warnings.warn_explicit(text, UserWarning, *place)
    return bool(returned)


def _place_of(method: str, strategy: object) -> tuple[str, int] | None:
    """Return the file and the line in which a method begins."""
    code = getattr(getattr(strategy, method, None), "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)


class BaseStrategy:
    """The base of every game's `PlayerStrategy`.

    `self.random` is the strategy's own random generator, and `seed()` makes it repeatable. If all
    chance comes from there, a strategy whose process was killed can be rebuilt: it is asked all
    questions again. A strategy that uses a clock or another generator, or that is slow, can have a
    method `recall(question, answer)`. It is then called instead of `decide`.
    """

    game: ClassVar[str]

    @cached_property
    def random(self) -> Random:
        """The strategy's own random generator."""
        return Random()

    def seed(self, seed: int | str) -> None:
        """Make the strategy's randomness repeatable."""
        self.random = Random(seed)

    def decide(self, question: Question[Any]) -> object:
        """Answer a question with one of its `legal` answers."""
        raise TypeError(f"{type(self).__name__} does not answer {question.kind!r}")

    def hear(self, news: News) -> None:
        """Take note of news that the rules let this seat know."""

    def reset(self) -> None:
        """Forget the last opponent: a new match begins."""


class RandomMixin(BaseStrategy):
    """Plays any game by its `legal` answers alone, each equally likely."""

    def decide(self, question: Question[Any]) -> object:
        """Give a random legal answer."""
        legal: Legal = question.legal  # type: ignore[attr-defined]
        if type(legal) is tuple:  # as `choose`, without a call
            return legal[int(self.random.random() * len(legal))]
        return choose(legal, self.random)

    def hear(self, news: News) -> None:
        """Ignore all news."""
