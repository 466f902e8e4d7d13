"""A bot that appraises answers, in the place of a house bot that takes seconds."""

from __future__ import annotations

from random import Random
from typing import Any

from protocol.strategy import Appraisal
from protocol.vocabulary import News, Question

__all__ = ["FakeAppraiser"]


class FakeAppraiser:
    """Thinks that the first legal answer is worth `ahead` more than the others, with some noise."""

    ahead: float = 0.0
    noise: float = 0.1
    made: FakeAppraiser
    """The last one of a class."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []
        type(self).made = self

    def seed(self, text: str) -> None:
        self._rng = Random(text)

    def reset(self) -> None:
        """Nothing: it is new."""

    def decide(self, question: Question[Any]) -> object:
        raise AssertionError("it is only asked what answers are worth")

    def hear(self, news: News) -> None:
        self.calls.append(("hear", news))

    def recall(self, question: Question[Any], answer: Any) -> None:
        self.calls.append(("recall", answer))

    def appraise(self, question: Any, answer: Any = None, /, *, samples: int) -> Appraisal:
        self.calls.append(("appraise", samples))
        answers = question.legal if answer in question.legal else (*question.legal, answer)
        worths = [[0.5 + self._rng.gauss(0, self.noise) for _ in range(samples)] for _ in answers]
        worths[0] = [worth + self.ahead for worth in worths[0]]
        return Appraisal(answers, tuple(map(tuple, worths)))
