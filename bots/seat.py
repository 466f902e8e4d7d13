"""A seat that the client plays: the strategy that sits there, what it was asked last, and how it is brought back after a crash.

Here is all that is done with a strategy, and whatever it raises is its own fault. There is no wire here: questions come in, answers
go out.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bots.strategy import choose
from protocol.errors import ArenaError, IllegalAnswer, Malformed, in_words
from protocol.messages import Answer, Ask, Match, Past, Refused
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question

__all__ = ["StrategyFailed", "StrategySeat"]


class StrategyFailed(ArenaError):
    """A strategy raised; the cause has its traceback."""


@contextmanager
def _blaming(doing: str) -> Iterator[None]:
    """Whatever is raised in here is the strategy's fault."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failure(doing, error) from error


def _failure(doing: str, error: BaseException) -> StrategyFailed:
    return StrategyFailed(f"the strategy raised at {doing}: {in_words(error)}")


class StrategySeat:
    """One match from this side of the table, with a strategy of its own.

    Args:
        match: the invitation.
        make: makes the strategy.
        seed: makes its chance repeatable, if it has a method `seed`; None leaves it alone.
        is_whole: whether the strategy has missed nothing; else the questions of before may come, as `past`.

    Attributes:
        nonce: this seat's part in the cards (J6).
        is_whole: whether the strategy knows all that happened; it does as soon as it is asked something new.
        recalled: how many questions of before it has been brought through.
        strayed: how many of those it would have answered otherwise this time.

    Raises:
        StrategyFailed: it cannot be made.
    """

    __slots__ = (
        "_answer",
        "_ask",
        "_strategy",
        "is_whole",
        "match",
        "nonce",
        "recalled",
        "strayed",
    )

    def __init__(
        self,
        match: Match,
        make: Callable[[], Strategy],
        *,
        seed: str | None = None,
        is_whole: bool = True,
    ) -> None:
        self.match = match
        self.nonce = secrets.token_hex(16)
        self.is_whole = is_whole
        self.recalled = self.strayed = 0
        self._ask: Ask | None = None
        self._answer: Answer | None = None  # in case the arena did not get it
        with _blaming("reset"):
            self._strategy = make()
            if seed is not None:
                plant = getattr(self._strategy, "seed", None)
                if callable(plant):
                    plant(seed)
            self._strategy.reset()

    def decide(self, ask: Ask) -> Answer:
        """Hear the news, then decide; a question that comes again gets the same answer.

        Raises:
            StrategyFailed: the strategy raised.
        """
        if self._answer is not None and self._answer.ask == ask.ask:
            return self._answer
        strategy = self._strategy
        try:
            for news in ask.news:
                strategy.hear(news)
            value: Any = strategy.decide(ask.question)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _failure(ask.question.kind, error) from error
        self.is_whole = True  # all that was to be recalled has come before
        self._ask, self._answer = ask, Answer(ask.match, ask.ask, value)
        return self._answer

    def recall(self, past: Past) -> None:
        """Bring a strategy that was made anew through a question of before.

        It hears the news, and then what it answered, if it has a method `recall`. If not, it decides once more and its decision is
        dropped: one that decides by what it has seen, heard and drawn from its seed alone is then where it was.
        Nothing happens to a strategy that has missed nothing.

        Raises:
            StrategyFailed: the strategy raised.
            Malformed: what was answered, says the arena, was not legal.
        """
        if self.is_whole:
            return
        question = past.question
        try:
            answer = question.check(past.answer)
        except IllegalAnswer as error:
            raise Malformed(f"{past.ask} cannot be of the past: {error}") from None
        self.recalled += 1
        strategy = self._strategy
        with _blaming(f"{question.kind}, brought back from the past"):
            for news in past.news:
                strategy.hear(news)
            recall = getattr(strategy, "recall", None)
            if callable(recall):
                recall(question, answer)
            elif not _is_answer(strategy.decide(question), question, answer):
                self.strayed += 1

    def instead(self, refused: Refused, rng: random.Random) -> Answer | None:
        """In practice: any legal answer to the question whose answer was refused, as the strategy would give the same again.

        None if it is another question, or the arena does not say what is legal.
        """
        ask = self._ask
        if ask is None or ask.ask != refused.ask or refused.legal is None:
            return None
        self._answer = Answer(ask.match, ask.ask, choose(ask.question.choices, rng))
        return self._answer

    def end(self, news: tuple[News, ...]) -> None:
        """Hear the last news of the match.

        Raises:
            StrategyFailed: the strategy raised.
        """
        with _blaming("the last news"):
            for item in news:
                self._strategy.hear(item)


def _is_answer(value: object, question: Question[Any], answer: object) -> bool:
    try:
        return bool(question.check(value) == answer)
    except IllegalAnswer:
        return False
