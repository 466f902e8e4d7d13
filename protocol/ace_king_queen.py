"""What Ace-King-Queen says on the wire (rules A)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from protocol.vocabulary import News, Question, Settings, Vocabulary
from protocol.words import Asked, Told, gains

__all__ = [
    "CARDS",
    "OPENINGS",
    "RESPONSES",
    "VOCABULARY",
    "AceKingQueenSettings",
    "Card",
    "HandOver",
    "Open",
    "Opening",
    "Respond",
    "Response",
]

Card = Literal["A", "K", "Q"]
Opening = Literal["bet", "check"]
Response = Literal["call", "fold"]

CARDS: tuple[Card, ...] = ("A", "K", "Q")
"""Highest first (A1)."""
OPENINGS: tuple[Opening, ...] = ("bet", "check")
RESPONSES: tuple[Response, ...] = ("call", "fold")


class AceKingQueenSettings(Settings, frozen=True):
    """The settings of Ace-King-Queen.

    Attributes:
        hands: how many hands a match has; even, so that each seat bets equally often (A8).
    """

    hands: Annotated[int, Meta(ge=0, le=10_000_000)] = 1000


class Open(Question[Opening], frozen=True, gc=False, tag="open"):
    """The betting player's question: bet 1 or check (A3).

    Attributes:
        round: which hand of the match it is, from 1.
        card: your card.
    """

    answered_by: ClassVar[str] = "bet"
    round: int
    card: Card
    legal: tuple[Opening, ...] = OPENINGS


class Respond(Question[Response], frozen=True, gc=False, tag="respond"):
    """The calling player's question, asked only after a bet (A4).

    Attributes:
        round: which hand of the match it is, from 1.
        card: your card.
    """

    answered_by: ClassVar[str] = "call"
    round: int
    card: Card
    legal: tuple[Response, ...] = RESPONSES


class HandOver(News, frozen=True, gc=False, tag="hand_over"):
    """What both seats learn after every hand, a fold included (A6).

    Attributes:
        round: which hand of the match it was, from 1.
        bettor: the seat that was the betting player.
        cards: by seat.
        open: what the betting player did.
        response: what the calling player did; `null` after a check.
        payoffs: what the hand brought, by seat, in chips.
        scores: the chips of the match so far, by seat.
    """

    round: int
    bettor: int
    cards: tuple[Card, Card]
    open: Opening
    response: Response | None
    payoffs: tuple[int, int]
    scores: tuple[int, int]


_COURT: Mapping[Card, str] = {"A": "Ace", "K": "King", "Q": "Queen"}
_HAS = Asked(lambda who, question: f"{who} has the {_COURT[question.card]}", "{answer}s")


def _hand_over(news: HandOver, names: Sequence[str], who: str) -> Iterator[str]:
    had = " and ".join(
        f"{name} the {_COURT[card]}" for name, card in zip(names, news.cards, strict=True)
    )
    bettor, caller = names[news.bettor], names[1 - news.bettor]
    did = f"{bettor} {news.open}s"
    if news.response is not None:
        did += f", {caller} {news.response}s"
    yield f"{did}; shown are {had}"
    yield f"paid: {gains(names, news.payoffs)}; scores: {gains(names, news.scores)}"


VOCABULARY = Vocabulary(
    name="ace_king_queen",
    title="Ace-King-Queen",
    alias="akq",
    seats=2,
    settings=AceKingQueenSettings,
    opens=(Open, Respond, HandOver),
    closes=HandOver,
    payoffs=lambda news: news.payoffs,
    round="hand",
    words={Open: _HAS, Respond: _HAS, HandOver: Told(_hand_over)},
)
