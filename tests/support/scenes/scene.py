"""What a scene is: a short match that is worth a transcript.

It says who sits there, what has to happen by the rules, and what a seat does beside answering. The match is looked for and recorded by
`tests/tools/transcripts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from arena.records.seat_transcript import SeatTranscript
from protocol.messages import Limits
from protocol.vocabulary import News

__all__ = ["ALONE", "FOUR", "PAIR", "RecordedScene", "Says", "Twist", "asked", "news", "questions"]


class Says(NamedTuple):
    """A seat answers with this, which is not legal; where that is refused, with what it meant to say.

    A function makes the answer of the question.
    """

    value: object


class Twist(Enum):
    """What a seat does instead of answering."""

    LOSES = auto()
    """It loses its connection, and comes back."""
    FORGETS = auto()
    """It is killed, and started again with nothing but its session."""
    LEAVES = auto()
    """It says goodbye."""
    SLEEPS = auto()
    """It says nothing."""


class RecordedScene(NamedTuple):
    """A conversation to be recorded.

    Attributes:
        name: what its file is called.
        about: a sentence for the heading.
        game: what is played.
        settings: of the game.
        players: the names, by seat.
        bots: their strategies, by seat.
        wanted: whether a match is the one that is looked for, as its seat would be told it without any twists.
        seat: whose conversation it is.
        twists: by seat and number of its question, from 1.
        notes: by seat and number of its question, what is said with the answer.
        practice: whether illegal answers are refused.
        limits: of the arena.
        chance: what the cards and all ids come from; the name if it is empty.
        first: the number of the first seed that is tried, so that nobody has to wait for what is rare.
    """

    name: str
    about: str
    game: str
    settings: dict[str, Any]
    players: tuple[str, ...]
    bots: tuple[type[Any], ...]
    wanted: Callable[[SeatTranscript], bool]
    seat: int = 0
    twists: Mapping[int, Mapping[int, Says | Twist]] = {}
    notes: Mapping[tuple[int, int], str] = {}
    practice: bool = False
    limits: Limits = Limits()
    chance: str = ""
    first: int = 0


def news(told: SeatTranscript, kind: str) -> list[Any]:
    """The news of one kind, in order."""
    heard: list[News] = [one for asked in told.asked for one in asked.news]
    return [one for one in [*heard, *told.news] if one.kind == kind]


def questions(told: SeatTranscript, kind: str) -> list[Any]:
    """The questions of one kind, in order."""
    return [one.question for one in told.asked if one.question.kind == kind]


def asked(told: SeatTranscript) -> list[str]:
    """The kinds of the questions, in order."""
    return [one.question.kind for one in told.asked]


ALONE = ("ann",)
PAIR = ("ann", "ben")
FOUR = ("ann", "ben", "cem", "Zoë")
