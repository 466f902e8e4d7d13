"""How a game is written: as a generator that reads like its page of the rulebook.

It yields `AskSeat` when a seat must decide and `TellSeat` when a seat may know something. It is
sent legal answers only, and keeps the running result on the `Scoreboard`. `reply = yield from
ask(seat, question)` reads: "wait here for that seat's decision". Rules touch no clock, socket, log
or random number: decks come in as an iterator, offences are the match's business
(`arena/engine/match.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec

from arena.engine.shuffle import Stream
from protocol.errors import OutOfDecks
from protocol.vocabulary import News, Question, Vocabulary

__all__ = [
    "EVERYONE",
    "NOBODY",
    "AskSeat",
    "Game",
    "Rules",
    "Scoreboard",
    "TellSeat",
    "ask",
    "next_deal",
]

EVERYONE = -1
"""The seat of a `TellSeat` that all seats hear."""

NOBODY = -2
"""The seat of a `TellSeat` that no seat hears: a deal, in a replay that may show it (J8)."""

Answer = TypeVar("Answer")
Deal = TypeVar("Deal")


class AskSeat(msgspec.Struct, frozen=True, gc=False):
    """The rules wait until `seat` gives a legal answer to `question`."""

    seat: int
    question: Question[Any]


class TellSeat(msgspec.Struct, frozen=True, gc=False):
    """`seat`, or `EVERYONE`, may now know `news`."""

    seat: int
    news: News


class Scoreboard:
    """The result as it stands, by seat; the rules write it, the match reads it.

    `scores` is what ranks (chips, games, points); only gin has `points` beside it (G15).
    """

    __slots__ = ("points", "scores")

    def __init__(self, seats: int) -> None:
        self.scores = [0] * seats
        self.points = [0] * seats


Rules: TypeAlias = Generator[AskSeat | TellSeat, Any, None]
"""A match in progress; it ends by returning, with the result on its scoreboard."""


class Game(msgspec.Struct, frozen=True):
    """Everything the drivers need to know of one game; every function takes its settings first."""

    vocabulary: Vocabulary
    rules: Callable[[Any, Iterator[Any], Scoreboard], Rules]
    deals: Callable[[Any, Stream], Iterator[Any]]  # endless, from the portable stream (J6)
    stacked: Callable[[Any, Iterable[Any]], Iterator[Any]]  # from given decks; checks every card
    decisions: Callable[[Any], float]  # an estimate for a match, all seats together
    # What an offence against the dealer loses (J3); None in games between bots.
    stake: Callable[[Any], int] | None = None

    @property
    def name(self) -> str:
        return self.vocabulary.name

    @property
    def seats(self) -> int:
        return self.vocabulary.seats


def ask(seat: int, question: Question[Answer]) -> Generator[AskSeat, Any, Answer]:
    """Put a question to a seat; the answer is legal and of the question's answer type."""
    answer: Answer = yield AskSeat(seat, question)
    return answer


def next_deal(deals: Iterator[Deal]) -> Deal:
    """The next deck or cut; raises `OutOfDecks` if the caller gave too few."""
    for deal in deals:
        return deal
    raise OutOfDecks("the match needs another deck or cut, and all that were given are used up")
