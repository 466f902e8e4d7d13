"""Plays a match with answers from a function, and keeps everything that its rules did.

Unlike `MatchState` it trusts no rule: whatever they raise or yield is in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

import msgspec

from arena.games.match import place_of
from arena.games.rules import NOBODY, AskSeat, Game, Scoreboard, TellSeat
from protocol.errors import ArenaError, IllegalAnswer, in_words, one_line
from protocol.vocabulary import Question, Settings

__all__ = [
    "NoAnswer",
    "Playout",
    "PlayoutEvent",
    "SeatDecided",
    "are_numbers",
    "play_out",
    "raised",
    "strings_in",
    "with_swapped",
]

_MOST_TOLD = 10_000  # news in a row; a match that only tells would never end


class NoAnswer(ArenaError):
    """There is no answer to a question, and the match breaks off."""


class SeatDecided(msgspec.Struct, frozen=True):
    """A seat gave its answer."""

    seat: int
    value: Any


PlayoutEvent: TypeAlias = AskSeat | TellSeat | SeatDecided
"""A deal is told to `NOBODY`."""


class Playout(msgspec.Struct):
    """A match that was played: its events, and the scores and points behind each of them.

    Attributes:
        is_over: whether its rules returned; not if there were too many decisions.
        error: what its rules raised, and where, in words.
    """

    events: list[PlayoutEvent] = []
    scores: list[tuple[int, ...]] = []
    points: list[tuple[int, ...]] = []
    is_over: bool = False
    error: str | None = None

    @property
    def answers(self) -> list[Any]:
        return [
            event.value
            for event in self.events
            if type(event) is SeatDecided and event.seat != NOBODY
        ]


def play_out(
    game: Game,
    settings: Settings,
    deals: Iterator[Any],
    answer: Callable[[Question[Any]], Any],
    most: int,
) -> Playout:
    """Play a match of at most so many decisions.

    It breaks off where `answer` raises `NoAnswer` or `IllegalAnswer`.
    """
    played, board = Playout(), Scoreboard(game.seats)

    def note(event: PlayoutEvent) -> None:
        played.events.append(event)
        played.scores.append(tuple(board.scores))
        played.points.append(tuple(board.points))

    def noting() -> Iterator[Any]:
        for deal in deals:
            note(TellSeat(NOBODY, deal))
            yield deal

    rules = game.rules(settings, noting(), board)
    reply: Any = None
    decided = told = 0
    while True:
        try:
            step: Any = rules.send(reply)
        except StopIteration:
            played.is_over = True
            note(SeatDecided(NOBODY, None))  # the scores at the end
            return played
        except Exception as error:
            played.error = f"{raised(error)}, after {decided} answers"
            return played
        reply = None
        if type(step) is TellSeat:
            note(step)
            told += 1
        elif type(step) is AskSeat:
            note(step)
            if decided == most:
                return played
            try:
                reply = answer(step.question)
            except (NoAnswer, IllegalAnswer):
                return played
            decided, told = decided + 1, 0
            note(SeatDecided(step.seat, reply))
        else:
            got = one_line(repr(step))
            played.error = f"yielded {got}, expected an AskSeat or a TellSeat"
            return played
        if told > _MOST_TOLD:
            played.error = f"told {told:,} news without a question, expected it to end"
            return played


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


def with_swapped(deal: Any, one: str, other: str) -> Any:
    """A deal in which two cards have changed places; one that is not in it is put in."""
    if isinstance(deal, str):
        return {one: other, other: one}.get(deal, deal)
    if isinstance(deal, list):
        return [with_swapped(item, one, other) for item in deal]
    if type(deal) is tuple:
        return tuple(with_swapped(item, one, other) for item in deal)
    if isinstance(deal, msgspec.Struct):
        fields = {
            field: with_swapped(getattr(deal, field), one, other)
            for field in deal.__struct_fields__
        }
        return msgspec.structs.replace(deal, **fields)
    return deal
