"""How a game is written: as a generator that reads like its page of the rulebook.

It yields `AskSeat` when a seat must decide and `TellSeat` when a seat becomes entitled to know something, is sent legal answers
only, keeps the running result on the `Scoreboard` and returns it. `reply = yield from ask(seat, question)` reads:
"wait here for that seat's decision". Nothing in the rules touches a clock, a socket, a log or a random number:
decks come in as an iterator, offences are the match's business (`arena/engine/match.py`).
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
"""The seat of a `TellSeat` that no seat hears: a deal, in a match that is played again for those who may see the cards (J8)."""

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

    `scores` is what ranks (chips, games, points); `points` stands beside it where a game has both (G15), else it
    stays at zero.
    """

    __slots__ = ("points", "scores")

    def __init__(self, seats: int) -> None:
        self.scores = [0] * seats
        self.points = [0] * seats


Rules: TypeAlias = Generator[AskSeat | TellSeat, Any, None]
"""A match in progress; it ends by returning, with the result on its scoreboard."""


class Game(msgspec.Struct, frozen=True):
    """Everything the drivers need to know of one game.

    Attributes:
        vocabulary: its messages and settings.
        rules: (settings, deals, scoreboard) → the generator.
        deals: (settings, stream) → endless deals drawn from the portable stream (J6).
        stacked: (settings, decks) → the same from decks that somebody gave; checks every card.
        decisions: about how many a match takes, all seats together; a guess of what is usual.
        stake: what a bot loses by an offence against the dealer (J3); None in games between bots.
    """

    vocabulary: Vocabulary
    rules: Callable[[Any, Iterator[Any], Scoreboard], Rules]
    deals: Callable[[Any, Stream], Iterator[Any]]
    stacked: Callable[[Any, Iterable[Any]], Iterator[Any]]
    decisions: Callable[[Any], float]
    stake: Callable[[Any], int] | None = None

    @property
    def name(self) -> str:
        """The game's name, the same everywhere."""
        return self.vocabulary.name

    @property
    def seats(self) -> int:
        """How many bots sit at a table."""
        return self.vocabulary.seats


def ask(seat: int, question: Question[Answer]) -> Generator[AskSeat, Any, Answer]:
    """Put one decision to a seat; what comes back is legal and of the question's answer type."""
    answer: Answer = yield AskSeat(seat, question)
    return answer


def next_deal(deals: Iterator[Deal]) -> Deal:
    """The next deck or cut.

    Raises:
        OutOfDecks: the caller gave too few.
    """
    for deal in deals:
        return deal
    raise OutOfDecks("the match needs another deck or cut, and all that were given are used up")
