"""Plays a match with answers from a function, and keeps everything that its rules did.

`MatchState` trusts the rules of a game. Here they are watched: whatever they raise or yield is in
the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from arena.engine.drive import place_of
from arena.engine.match import MatchState
from arena.engine.rules import AskSeat, Game, Rules, Scoreboard, TellSeat
from arena.games.replay import Event, Playback
from protocol.errors import ArenaError, IllegalAnswer, in_words, one_line
from protocol.vocabulary import Question, Settings

__all__ = ["NoAnswer", "Playout", "are_numbers", "play_out", "raised", "same_answers", "strings_in"]

_MOST_TOLD = 10_000  # news in a row; a match that only tells would never end

Answers = Callable[[Question[Any]], Any]
"""Answers the questions of all seats; raises `NoAnswer` to break the match off."""


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
