"""What all strategies of ours share: their own randomness, and a reset and a `hear` that do nothing."""

from __future__ import annotations

import random
from functools import cached_property
from typing import Any, ClassVar

from protocol.vocabulary import Legal, News, Question, Range

__all__ = ["BaseStrategy", "RandomMixin", "choose"]


def choose(legal: Legal, rng: random.Random) -> Any:
    """Any one of the legal answers, each equally likely."""
    if isinstance(legal, Range):
        return rng.randint(legal.min, legal.max)
    return legal[int(rng.random() * len(legal))]


class BaseStrategy:
    """The base of every game's `PlayerStrategy`.

    `self.random` is the strategy's own generator; `seed()` makes it repeatable. As long as all chance comes from there, a strategy
    whose process was killed is rebuilt by asking it everything once more. One that cannot be (it uses a clock or another
    generator, or is slow) can have a method `recall(question, answer)`, which is then called instead of `decide`.
    """

    game: ClassVar[str]

    @cached_property
    def random(self) -> random.Random:
        """The source of randomness of this strategy alone."""
        return random.Random()

    def seed(self, seed: int | str) -> None:
        """Make the strategy's randomness repeatable."""
        self.random = random.Random(seed)

    def decide(self, question: Question[Any]) -> object:
        """Answer a question with one of its `legal` answers."""
        raise TypeError(f"{type(self).__name__} does not answer {question.kind!r}")

    def hear(self, news: News) -> None:
        """Take note of something that the rules let this seat know."""

    def reset(self) -> None:
        """Forget the last opponent: a new match begins."""


class RandomMixin(BaseStrategy):
    """Plays any game by its `legal` answers alone, each equally likely."""

    def decide(self, question: Question[Any]) -> object:
        """Any legal answer."""
        return choose(question.choices, self.random)

    def hear(self, news: News) -> None:
        """Nothing that it hears would change its mind."""
