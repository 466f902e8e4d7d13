"""A strategy that answers by a function and keeps what happens to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Answering", "first_legal"]


def first_legal(question: Any) -> object:
    """The first of the answers that are legal."""
    return question.choices[0]


class Answering:
    """Answers by a function; keeps all news, and counts its resets."""

    def __init__(self, answer: Callable[[Any], object] = first_legal) -> None:
        self.answer = answer
        self.heard: list[Any] = []
        self.resets = 0

    def decide(self, question: Any) -> object:
        return self.answer(question)

    def hear(self, news: Any) -> None:
        self.heard.append(news)

    def reset(self) -> None:
        self.resets += 1
