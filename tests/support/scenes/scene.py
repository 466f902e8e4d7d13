"""A scene: a short match that is worth a transcript.

It names the bots, what has to happen by the rules, and what a seat does besides answering.
`tests/tools/transcripts.py` searches for the match and records it. The deals of a game that are
worth a vector stand beside its scenes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from arena.games.analysis import SeatMatch
from protocol.messages import Limits
from protocol.vocabulary import News

__all__ = [
    "ALONE",
    "FOUR",
    "PAIR",
    "DealtVector",
    "RecordedScene",
    "Says",
    "Twist",
    "asked",
    "news",
    "questions",
]


class Says(NamedTuple):
    """An illegal answer of a seat; where it is refused, the seat's own answer follows.

    A function makes the answer of the question.
    """

    value: object


class Twist(Enum):
    """What a seat does instead of answering."""

    LOSES = auto()
    """It loses its connection, and comes back."""
    FORGETS = auto()
    """It is killed, and started again with its session alone."""
    LEAVES = auto()
    """It says goodbye."""
    SLEEPS = auto()
    """It says nothing."""


class RecordedScene(NamedTuple):
    """A conversation to be recorded.

    Attributes:
        name: of its file.
        about: a sentence for the heading.
        players: the bots' names, by seat.
        bots: their strategies, by seat.
        wanted: whether a match without twists, as the seat is told it, is the one to record.
        seat: whose conversation it is.
        twists: by seat and number of its question, from 1.
        notes: by seat and number of its question; they come with the answer.
        practice: whether illegal answers are refused.
        chance: what the cards and all ids come from; the name if it is empty.
        first: the number of the first seed that is tried, as a search for a rare match is slow.
    """

    name: str
    about: str
    game: str
    settings: dict[str, Any]
    players: tuple[str, ...]
    bots: tuple[type[Any], ...]
    wanted: Callable[[SeatMatch], bool]
    seat: int = 0
    twists: Mapping[int, Mapping[int, Says | Twist]] = {}
    notes: Mapping[tuple[int, int], str] = {}
    practice: bool = False
    limits: Limits = Limits()
    chance: str = ""
    first: int = 0


class DealtVector(NamedTuple):
    """The first deals of a game in `protocol/vectors/cards.json`.

    Attributes:
        key: what they are called there.
        deals: how many.
        settings: of the match.
        per: how many stand together in a list; 0 if they do not.
    """

    key: str
    deals: int
    settings: Mapping[str, object] = {}
    per: int = 0


def news(told: SeatMatch, kind: str) -> list[Any]:
    """The news of one kind, in order."""
    heard: list[News] = [news for asked in told.decisions for news in asked.news]
    return [news for news in [*heard, *told.news] if news.kind == kind]


def questions(told: SeatMatch, kind: str) -> list[Any]:
    """The questions of one kind, in order."""
    return [asked.question for asked in told.decisions if asked.question.kind == kind]


def asked(told: SeatMatch) -> list[str]:
    """The kinds of the questions, in order."""
    return [asked.question.kind for asked in told.decisions]


ALONE = ("ann",)
PAIR = ("ann", "ben")
FOUR = ("ann", "ben", "cem", "Zoë")
