"""Random play beside a game's rules told once more, from the rulebook alone.

An oracle is a function that asks and tells as the rulebook says, and returns the scores. Whatever
the rules ask and tell must be that and nothing else, in the same order: so nobody hears a card that
it may not know, and no chip comes from nowhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from arena.games.match import MatchResult, MatchState, Record
from arena.games.replay import replay
from arena.games.rules import AskSeat, Game, TellSeat
from protocol.errors import IllegalAnswer
from protocol.messages import Ending
from protocol.vocabulary import Question

__all__ = ["WRONG", "Ask", "Choose", "Oracle", "Tell", "play_beside"]

Ask = Callable[..., Any]
"""`ask(seat, kind, **fields)` is the answer."""
Tell = Callable[..., None]
"""`tell(seat, kind, **fields)`; the seat may be `EVERYONE`."""
Oracle = Callable[[Iterator[Any], Any, Ask, Tell], Sequence[int]]
"""From the decks and the settings, the scores."""
Choose = Callable[[random.Random, Any], object]
"""A legal answer to a question."""

WRONG: tuple[object, ...] = (
    *(True, False, 4.0, "4", 0, 3, -1, 10**15, None, "raise", "BET", b"bet", 17),
    *([], ["keep"], {}, ("play",)),
)
"""What is legal nowhere, or looks as if it were."""


class _Beside:
    def __init__(
        self, match: MatchState, rng: random.Random, choose: Choose, wrong: Sequence[object]
    ) -> None:
        self._match, self._rng, self._choose, self._wrong = match, rng, choose, wrong
        self._news: Iterator[TellSeat] = iter(())

    def tell(self, seat: int, kind: str, /, **fields: Any) -> None:
        told = self._next_news()
        assert told is not None, f"{kind} was not told"
        assert (told.seat, told.news.kind, _fields(told.news)) == (seat, kind, fields)

    def ask(self, seat: int, kind: str, /, **fields: Any) -> Any:
        self.heard_all()
        asked = self._match.pending
        assert asked is not None, f"{kind} was not asked"
        assert (asked.seat, asked.question.kind, _fields(asked.question)) == (seat, kind, fields)
        if self._rng.random() < 0.05:
            self._refuses(asked)
        self._match.answer(self._choose(self._rng, asked.question))
        return self._match.answers[-1]

    def heard_all(self) -> None:
        assert self._next_news() is None, "told more than the rules say"

    def _next_news(self) -> TellSeat | None:
        told = next(self._news, None)
        if told is None:
            self._news = iter(self._match.take_news())
            told = next(self._news, None)
        return told

    def _refuses(self, asked: AskSeat) -> None:
        """An answer that is not legal changes nothing (J1)."""
        match = self._match
        before = [*match.answers], match.scores, match.points
        for answer in self._wrong:
            with pytest.raises(IllegalAnswer, match=f"^seat {asked.seat + 1} answered"):
                match.answer(answer)
        assert (match.answers, match.scores, match.points) == before
        assert match.pending is asked
        assert match.news == []


def _fields(message: Any) -> dict[str, Any]:
    return msgspec.structs.asdict(message)


def _any_legal(rng: random.Random, question: Question[Any]) -> object:
    legal: Any = question.choices
    return rng.choice(legal)


def play_beside(
    game: Game,
    oracle: Oracle,
    rng: random.Random,
    decks: Sequence[Any],
    settings: dict[str, Any],
    choose: Choose = _any_legal,
    wrong: Sequence[object] = WRONG,
) -> MatchResult:
    """Play a match of random legal answers, and fail where the rules and the oracle differ."""
    read = game.vocabulary.read_settings(settings)
    match = MatchState(game, read, decks=decks)
    beside = _Beside(match, rng, choose, wrong)
    scores = oracle(iter(decks), read, beside.ask, beside.tell)
    beside.heard_all()
    result = match.result()
    assert (result.scores, result.termination.kind) == (tuple(scores), Ending.COMPLETED)
    written = result.record.to_json()
    again = replay(Record.from_json(written))
    assert (again, again.record.to_json()) == (result, written)
    return result
