"""Plays matches at random, or with given players while recording everything the rules do.

`MatchState` trusts the rules of a game. A `Playout` does not: its result includes whatever wrong
the rules raise or yield.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from arena.games.match import MatchState, Record, drive, place_of
from arena.games.replay import CardsDealt, Event, MatchOver, SeatAnswered
from arena.games.rules import AskSeat, Game, Rules, Scoreboard, TellSeat
from arena.games.shuffle import seed_from_int
from protocol.errors import in_words, one_line
from protocol.messages import Ending, Termination
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question, Range, Settings

__all__ = [
    "AnyLegal",
    "Playout",
    "SameAnswers",
    "are_numbers",
    "play_out",
    "raised",
    "random_record",
    "seeded",
    "strings_in",
]

_LISTED = 1_000_000  # answers of a range to choose from; a larger bet would end most matches
_MOST_TOLD = 10_000  # news in a row; rules that only tell would never end


class AnyLegal:
    """Answers any game at random, for games without house bots and to reach rare questions.

    `prefer` takes the legal answers and returns those to choose from; none stands for all.
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
        """Ignore news."""

    def reset(self) -> None:
        """Do nothing: there is no state."""


def random_record(game: Game, settings: Settings, seed: int) -> Record:
    """Play a match with random answers, and return its record; it depends on the seed alone."""
    match = MatchState(game, settings, seed=seed_from_int(seed))
    drive(match, [AnyLegal(random.Random(seed))] * game.seats)
    return match.result().record


class SameAnswers(AnyLegal):
    """Gives the answers of another match in order; raises `StopIteration` when they run out."""

    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers = iter(answers)

    def decide(self, question: Question[Any]) -> object:
        return next(self._answers)


class _Misbehaved(Exception):
    """The rules did something that rules must not do."""


class _Endless(Exception):
    """A match had more decisions than allowed."""


class Playout:
    """A match under observation: its events, and the scores and points after each of them.

    Attributes:
        error: what its rules did wrong, and where, in words; None if nothing.
        is_endless: whether it was stopped for too many decisions.
    """

    def __init__(self, game: Game, settings: Settings, deals: Iterator[Any], most: int) -> None:
        self.events: list[Event] = []
        self.boards: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.error: str | None = None
        self.is_endless = False
        self._game, self._most = game, most
        watched = msgspec.structs.replace(
            game, rules=self._rules, deals=lambda settings, stream: deals, unit=None
        )
        self.match = MatchState(watched, settings, seed=b"", start=False)

    def _rules(self, settings: Settings, deals: Iterator[Any], board: Scoreboard) -> Rules:
        """Run the rules of the game, and record everything they do."""

        def note(event: Event) -> None:
            self.events.append(event)
            self.boards.append((tuple(board.scores), tuple(board.points)))

        def dealt() -> Iterator[Any]:
            for deal in deals:
                note(CardsDealt(deal))
                yield deal

        send, reply, told = self._game.rules(settings, dealt(), board).send, None, 0
        while True:
            try:
                step: Any = send(reply)
            except StopIteration:
                break
            told = told + 1 if type(step) is TellSeat else 0
            if told > _MOST_TOLD:
                raise _Misbehaved(f"told {told:,} news without a question, expected it to end")
            if not told and type(step) is not AskSeat:
                got = one_line(repr(step))
                raise _Misbehaved(f"yielded {got}, expected an AskSeat or a TellSeat")
            note(step)
            decided = len(self.match.answers)
            if not told and decided == self._most:
                raise _Endless
            reply = yield step
            if not told:
                note(SeatAnswered(step.seat, decided, step.question, reply))
        ended = Termination(Ending.COMPLETED)
        note(MatchOver(tuple(board.scores), tuple(board.points), ended))


def play_out(
    game: Game, settings: Settings, deals: Iterator[Any], players: Sequence[Strategy], most: int
) -> Playout:
    """Play a match of at most `most` decisions; a player's offence or missing answer ends it."""
    played = Playout(game, settings, deals, most)
    try:
        played.match.start()
        drive(played.match, players)
    except _Endless:
        played.is_endless, played.error = True, f"is not over after {most:,} decisions"
    except _Misbehaved as error:
        played.error = str(error)
    except Exception as error:  # a player's exception is a crash
        played.error = f"raised {raised(error)}, after {len(played.match.answers)} answers"
    return played


def seeded(strategy: Strategy, seed: str) -> Strategy:
    """Seed a strategy if it has a method `seed`, and return it."""
    if callable(seeding := getattr(strategy, "seed", None)):
        seeding(seed)
    return strategy


def raised(error: Exception) -> str:
    """Describe an exception, and where in the called code it was raised, if that is not ours."""
    place = place_of(error.__traceback__)
    return f"{in_words(error)}{'' if __file__ in place else place}"


def are_numbers(values: Sequence[object], count: int) -> bool:
    """Whether these are `count` finite ints or floats, the only numbers that JSON can hold."""
    return len(values) == count and all(
        type(value) is int or (type(value) is float and isfinite(value)) for value in values
    )


def strings_in(value: Any) -> Iterator[str]:
    """Yield all strings in a deal, a question, news or an answer, at any depth."""
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
