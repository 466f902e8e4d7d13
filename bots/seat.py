"""A seat that the client plays: its strategy and last answer; rebuilds a lost strategy.

The client calls strategies only here, and blames them for every exception. There is no I/O.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bots.strategy import choose
from protocol.bot_folder import without_folder
from protocol.errors import ArenaError, IllegalAnswer, Malformed, in_words
from protocol.messages import Answer, Ask, Match, Past, Refused
from protocol.session import SeatStanding
from protocol.strategy import Strategy, as_sent
from protocol.vocabulary import News, Question

__all__ = ["StrategyFailed", "StrategySeat"]


class StrategyFailed(ArenaError):
    """A strategy raised an exception, which is the cause."""


@contextmanager
def _blaming(doing: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failure(doing, error) from error


def _failure(doing: str, error: BaseException) -> StrategyFailed:
    return StrategyFailed(f"the strategy raised at {doing}: {without_folder(in_words(error))}")


class StrategySeat:
    """One match, with a strategy of its own.

    Args:
        match: the invitation.
        make: makes the strategy.
        standing: the seat's state, shared with the session.
        seed: passed to the strategy's method `seed`, if it has one, unless it is None.
        is_whole: whether the strategy has missed nothing. Otherwise `past` messages may come.

    Attributes:
        nonce: this seat's contribution to the shuffle (J6).
        is_whole: whether the strategy knows the whole match; True from its first new question on.
        recalled: how many past questions were replayed to it.
        strayed: how many of those it answered differently this time.

    Raises:
        StrategyFailed: the strategy cannot be made.
    """

    __slots__ = (
        "_answer",
        "_question",
        "_strategy",
        "is_whole",
        "match",
        "nonce",
        "recalled",
        "standing",
        "strayed",
    )

    def __init__(
        self,
        match: Match,
        make: Callable[[], Strategy],
        standing: SeatStanding,
        *,
        seed: str | None = None,
        is_whole: bool = True,
    ) -> None:
        self.match = match
        self.standing = standing
        self.nonce = secrets.token_hex(16)
        self.is_whole = is_whole
        self.recalled = self.strayed = 0
        self._question: Question[Any] | None = None
        self._answer: Answer | None = None  # to repeat if the arena did not get it
        with _blaming("reset"):
            self._strategy = make()
            if seed is not None:
                plant = getattr(self._strategy, "seed", None)
                if callable(plant):
                    plant(seed)
            self._strategy.reset()

    def decide(self, ask: Ask) -> Answer:
        """Hear the news, then decide. A repeated question gets the same answer.

        Raises:
            StrategyFailed: the strategy raised.
        """
        if self._answer is not None and self._answer.ask == ask.ask:
            return self._answer
        strategy = self._strategy
        try:
            for news in ask.news:
                strategy.hear(news)
            value = as_sent(strategy.decide(ask.question))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _failure(ask.question.kind, error) from error
        self.is_whole = True  # all `past` comes before the first new question
        self._question = ask.question
        self._answer = answer = Answer(ask.match, ask.ask, value)
        return answer

    def recall(self, past: Past) -> None:
        """Replay a past question to a new strategy. Does nothing if it has missed nothing.

        The strategy hears the news. Then its method `recall` gets the answer. Without that method
        it decides again, and the decision is dropped: a strategy that depends only on questions,
        news and its seed then has the same state as before.

        Raises:
            StrategyFailed: the strategy raised.
            Malformed: the past answer is not legal.
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
            elif not _is_answer(as_sent(strategy.decide(question)), question, answer):
                self.strayed += 1

    def instead(self, refused: Refused, rng: random.Random) -> Answer | None:
        """In practice mode, return a random legal answer in place of the refused one.

        The strategy itself would only repeat its answer. Returns None if `refused` is about another
        question, or has no `legal`.
        """
        question, answer = self._question, self._answer
        if question is None or answer is None or refused.legal is None:
            return None
        if answer.ask != refused.ask:
            return None
        self._answer = Answer(answer.match, answer.ask, choose(question.choices, rng))
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
