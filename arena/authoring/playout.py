"""Plays a match at random, or with answers from a function, and keeps everything its rules did.

`MatchState` trusts the rules of a game. Those that are played out are watched: whatever they raise
or yield is in the result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from arena.engine.drive import drive, place_of
from arena.engine.match import MatchState, Record
from arena.engine.rules import AskSeat, Game, Rules, Scoreboard, TellSeat
from arena.engine.shuffle import seed_from_int
from arena.games.replay import Event, Playback
from protocol.errors import ArenaError, IllegalAnswer, in_words, one_line
from protocol.vocabulary import News, Question, Range, Settings

__all__ = [
    "AnyLegal",
    "NoAnswer",
    "Playout",
    "are_numbers",
    "play_out",
    "raised",
    "random_record",
    "same_answers",
    "strings_in",
]

_LISTED = 1_000_000  # a bet beyond that ends most matches
_MOST_TOLD = 10_000  # news in a row; a match that only tells would never end

Answers = Callable[[Question[Any]], Any]
"""Answers the questions of all seats; raises `NoAnswer` to break the match off."""


class AnyLegal:
    """Answers any game at random: where there are no house bots, and to reach rare questions.

    `prefer` takes the legal answers and returns those to choose from; if it returns none, all.
    """

    def __init__(
        self,
        rng: random.Random,
        prefer: Callable[[Sequence[Any]], Sequence[Any]] = lambda legal: legal,
    ) -> None:
        self._rng = rng
        self._prefer = prefer

    def decide(self, question: Question[Any]) -> object:
        legal = question.choices
        if isinstance(legal, Range):
            return self._rng.randint(legal.min, min(legal.max, legal.min + _LISTED))
        return self._rng.choice(self._prefer(legal) or legal)

    def hear(self, news: News) -> None:
        """News changes nothing."""

    def reset(self) -> None:
        """There is nothing to forget."""


def random_record(game: Game, settings: Settings, seed: int) -> Record:
    """The record of a match with random answers; the same seed gives the same one."""
    match = MatchState(game, settings, seed=seed_from_int(seed))
    drive(match, [AnyLegal(random.Random(seed))] * game.seats)
    return match.result().record


class NoAnswer(ArenaError):
    """There is no answer to a question, and the match breaks off."""


class _Misbehaved(Exception):
    """What rules did that are no rules."""


class Playout(msgspec.Struct):
    """A match that was played: its events, and the scores and points behind each of them.

    Attributes:
        error: what its rules did that they may not, and where, in words.
    """

    match: MatchState
    events: list[Event] = []
    boards: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    error: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether its rules returned; not if there were too many decisions."""
        return self.match.termination is not None

    def note(self, events: Iterable[Event]) -> None:
        for event in events:
            self.events.append(event)
            self.boards.append((self.match.scores, self.match.points))


def play_out(
    game: Game, settings: Settings, deals: Iterator[Any], answer: Answers, most: int
) -> Playout:
    """Play a match of at most so many decisions, up to an answer that is missing or illegal."""
    watched = msgspec.structs.replace(
        game, rules=_watched(game), deals=lambda settings, stream: deals, unit=None
    )
    match = MatchState(watched, settings, seed=b"", start=False, tells_deals=True)
    played, playback = Playout(match), Playback(match)
    try:
        match.start()
        played.note(playback.take_events())
        while match.pending is not None and len(match.answers) < most:
            played.note(playback.feed(answer(match.pending.question)))
    except (NoAnswer, IllegalAnswer):
        pass
    except _Misbehaved as error:
        played.error = str(error)
    except Exception as error:
        played.error = f"raised {raised(error)}, after {len(match.answers)} answers"
    return played


def same_answers(answers: Iterable[Any]) -> Answers:
    """The answers of another match, in order."""
    left = iter(answers)

    def answer(question: Question[Any]) -> Any:
        for value in left:
            return value
        raise NoAnswer

    return answer


def _watched(game: Game) -> Callable[[Any, Iterator[Any], Scoreboard], Rules]:
    """The rules of a game, which raise `_Misbehaved` where they break the form of rules."""

    def rules(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Rules:
        send, reply, told = game.rules(settings, deals, board).send, None, 0
        while True:
            try:
                step: Any = send(reply)
            except StopIteration:
                return
            told = told + 1 if type(step) is TellSeat else 0
            if told > _MOST_TOLD:
                raise _Misbehaved(f"told {told:,} news without a question, expected it to end")
            if not told and type(step) is not AskSeat:
                got = one_line(repr(step))
                raise _Misbehaved(f"yielded {got}, expected an AskSeat or a TellSeat")
            reply = yield step

    return rules


def raised(error: Exception) -> str:
    """What was raised, and where in the code that was called."""
    return f"{in_words(error)}{place_of(error.__traceback__)}"


def are_numbers(values: Sequence[object], count: int) -> bool:
    """Whether these are so many finite numbers of Python's own types, as JSON knows no others."""
    return len(values) == count and all(
        type(value) is int or (type(value) is float and isfinite(value)) for value in values
    )


def strings_in(value: Any) -> Iterator[str]:
    """All texts in a deal, a question, news or an answer, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings_in(key)
            yield from strings_in(item)
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from strings_in(getattr(value, field))
