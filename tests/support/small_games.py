"""Small games that a test writes as one unit: a generator of questions and news over a deck."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from arena.games.rules import EVERYONE, AskSeat, Game, Rules, Scoreboard, TellSeat, Unit
from arena.games.shuffle import Stream
from protocol.vocabulary import News, Question, Range, Settings, Vocabulary
from protocol.words import Asked, Told

__all__ = ["LEDUC", "Payoffs", "Shown", "UnitSettings", "ask", "tell", "unit_game"]

Payoffs: TypeAlias = Sequence[float]
PlayUnit: TypeAlias = Callable[
    [int, Callable[[], Any]], Generator[AskSeat | TellSeat, Any, Payoffs | None]
]
"""Plays the unit of this number, from 1, with a function that deals; None closes no unit."""


class UnitSettings(Settings, frozen=True):
    """The settings.

    Attributes:
        rounds: how many units a match has.
    """

    rounds: Annotated[int, Meta(ge=1, le=1000)] = 4


class SmallQuestion(Question[Any], frozen=True, gc=False, tag="choose"):
    """A question.

    Attributes:
        round: which round of the match it is, from 1.
        sees: what the seat knows.
    """

    round: int
    sees: str
    legal: tuple[str, ...] | Range


class Shown(News, frozen=True, gc=False, tag="shown"):
    """Something that is told.

    Attributes:
        text: what.
    """

    text: str


class UnitOver(News, frozen=True, gc=False, tag="over"):
    """The end of a round.

    Attributes:
        round: which round of the match it was, from 1.
        payoffs: what it brought, by seat.
    """

    round: int
    payoffs: tuple[float, ...]


def ask(seat: int, sees: str, legal: str | Range, number: int = 1) -> AskSeat:
    """A question to a seat; several legal answers are words."""
    return AskSeat(
        seat, SmallQuestion(number, sees, tuple(legal.split()) if isinstance(legal, str) else legal)
    )


def tell(text: str, seat: int = EVERYONE) -> TellSeat:
    """News for a seat or for all."""
    return TellSeat(seat, Shown(text))


def unit_game(play: PlayUnit, cards: Sequence[str] = ("a", "b"), seats: int = 2) -> Game:
    """A game whose units are played like that, each time with a new deck of these cards."""

    def rules(settings: UnitSettings, decks: Iterator[Any], board: Scoreboard) -> Rules:
        for number in range(1, settings.rounds + 1):
            payoffs = yield from play(number, lambda: next(decks))
            if payoffs is None:
                return
            for seat in range(seats):
                board.scores[seat] += int(payoffs[seat])
            yield TellSeat(EVERYONE, UnitOver(number, tuple(payoffs)))

    def deals(settings: UnitSettings, stream: Stream) -> Iterator[Any]:
        while True:
            yield stream.shuffled(cards)

    def stacked(settings: UnitSettings, decks: Iterable[Any]) -> Iterator[Any]:
        yield from decks

    vocabulary = Vocabulary(
        name="small",
        title="Small",
        alias="small",
        seats=seats,
        settings=UnitSettings,
        opens=(SmallQuestion,),
        closes=UnitOver,
        private=(Shown,),
        payoffs=lambda news: news.payoffs,
        words={
            SmallQuestion: Asked("{who} sees {sees}", "{answer}"),
            Shown: Told("{text}"),
            UnitOver: Told("{payoffs}"),
        },
    )
    return Game(
        vocabulary=vocabulary,
        about="Small",
        summary="Small.",
        rules=rules,
        deals=deals,
        stacked=stacked,
        decisions=lambda settings: settings.rounds,
        rounds=lambda most: {"rounds": most},
        unit=Unit("round", "rounds", UnitOver, lambda news: news.payoffs),
    )


def _leduc(number: int, deal: Callable[[], Any]) -> Generator[AskSeat | TellSeat, Any, Payoffs]:
    """Leduc hold'em: two bet at most two raises of 2, then of 4 with a common card."""
    deck, first = deal(), (number - 1) % 2
    paid, common = [1, 1], ""
    for size in (2, 4):
        if size == 4:
            common = deck[2]
            yield tell(common)
        seat, raises, answers = first, 0, 0
        while True:
            legal = "call raise" if raises < 2 else "call"
            owes = paid[1 - seat] - paid[seat]
            answer = yield ask(
                seat, f"{deck[seat]} {first}", f"fold {legal}" if owes else legal, number
            )
            yield tell(f"{seat} {answer}")
            if answer == "fold":
                return [paid[seat], -paid[seat]][:: 1 if seat else -1]
            answers += 1
            raises += answer == "raise"
            paid[seat] += owes + (size if answer == "raise" else 0)
            if answer == "call" and answers > 1:
                break
            seat = 1 - seat
    ranks = [(deck[seat] == common, "JQK".index(deck[seat])) for seat in (0, 1)]
    won = (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])
    return won * paid[0], -won * paid[0]


LEDUC = unit_game(_leduc, cards=["J", "J", "Q", "Q", "K", "K"])
"""Leduc hold'em; who speaks first alternates, and is told in the questions."""
