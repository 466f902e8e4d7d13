"""What high-low says on the wire, and the order of its cards (rules H).

Lists of four are by seat. Seat 0 is the rulebook's position 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from protocol.cards import PACK, Card
from protocol.errors import BadDeck
from protocol.vocabulary import News, Question, Settings, Shape, Vocabulary
from protocol.words import Asked, Told, gains

__all__ = [
    "BIDS",
    "SEATS",
    "SWAP_CHOICES",
    "VOCABULARY",
    "Bid",
    "BidMade",
    "Bidding",
    "Bids",
    "Cards",
    "Dealt",
    "HighLowSettings",
    "Points",
    "RoundOver",
    "Swap",
    "SwapChoice",
    "Swapped",
    "legal_bids",
    "strength",
    "value",
]

SEATS = 4

SwapChoice = Literal["swap", "keep"]
Bidding = Literal["quit", 2, 4, 6, 8, 10]
"""A bid; `quit` stands for "quit for 2", which is not a bid of 2 (H6)."""

Bids: TypeAlias = tuple[Bidding | None, Bidding | None, Bidding | None, Bidding | None]
"""By seat; None has not spoken yet."""
Cards: TypeAlias = tuple[Card | None, Card | None, Card | None, Card | None]
"""By seat; None is hidden."""
Points: TypeAlias = tuple[int, int, int, int]
"""Points by seat."""

SWAP_CHOICES: tuple[SwapChoice, ...] = ("swap", "keep")
BIDS: tuple[Bidding, ...] = ("quit", 2, 4, 6, 8, 10)

_VALUES = {rank: number for number, rank in enumerate("A23456789TJQK", start=1)}
_STRENGTHS: dict[Card, int] = {
    rank + suit: 4 * height + suit_height
    for height, rank in enumerate("23456789TJQKA")
    for suit_height, suit in enumerate("cdhs")
}
_LEGAL_FROM: dict[int, tuple[Bidding, ...]] = {
    lowest: ("quit", *(bid for bid in BIDS if bid != "quit" and bid >= lowest))
    for lowest in (2, 4, 6, 8, 10)
}


def value(card: Card) -> int:
    """Return a card's value by H1, 1 (ace) to 13 (king); 1 is the highest, then 13 down to 2."""
    strength(card)
    return _VALUES[card[0]]


def strength(card: Card) -> int:
    """Return a card's place in the order of H1: 0 (two of clubs) to 51 (ace of spades).

    Raises:
        BadDeck: `card` is not a card.
    """
    try:
        return _STRENGTHS[card]
    except (KeyError, TypeError):
        raise BadDeck(f"expected a card such as {PACK[0]!r}, got {card!r}") from None


def legal_bids(highest: int | None) -> tuple[Bidding, ...]:
    """Return the legal bids after the `highest` number bid so far, None before any (H6)."""
    return _LEGAL_FROM[highest or 2]


class HighLowSettings(Settings, frozen=True):
    """The settings of high-low: when a match ends (H11).

    Attributes:
        gap: how far apart the second and third scores must be; a number that no match can reach
            makes every match last `max_shuffles`.
        max_shuffles: how many shuffles are played at most, ties at the cut aside (H12).
    """

    gap: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 100
    max_shuffles: Annotated[int, Meta(ge=1, le=100_000)] = 50


class Swap(Question[SwapChoice], frozen=True, gc=False, tag="swap"):
    """A player's first question: swap its card with the dealer-card or keep it (H5).

    Attributes:
        card: your card.
        dealer_card: the dealer-card at this moment.
    """

    card: Card
    dealer_card: Card
    legal: tuple[SwapChoice, ...] = SWAP_CHOICES


class Bid(Question[Bidding], frozen=True, gc=False, tag="bid"):
    """A player's second question: a number, at least every number bid before, or `quit` (H6).

    Attributes:
        card: your card.
        dealer_card: the dealer-card after all have swapped or kept.
        bids: the bids so far, by seat; `null` for a seat that has not bid.
    """

    card: Card
    dealer_card: Card
    bids: Bids
    legal: tuple[Bidding, ...]


class Dealt(News, frozen=True, gc=False, tag="dealt"):
    """What each player learns of the deal (H4).

    Attributes:
        shuffle: which shuffle of the match it is, from 1.
        round: which deal of the match it is, from 1.
        starter: the seat that speaks first.
        card: your card.
        dealer_card: the dealer-card, which all see.
    """

    shuffle: int
    round: int
    starter: int
    card: Card
    dealer_card: Card


class Swapped(News, frozen=True, gc=False, tag="swapped"):
    """Whether a player swapped, told to all (H5).

    Attributes:
        seat: the player's seat.
        swapped: whether it swapped.
        dealer_card: the dealer-card after that.
    """

    seat: int
    swapped: bool
    dealer_card: Card


class BidMade(News, frozen=True, gc=False, tag="bid"):
    """A bid, told to all (H6).

    Attributes:
        seat: the bidder's seat.
        bid: the bid.
    """

    seat: int
    bid: Bidding


class RoundOver(News, frozen=True, gc=False, tag="round_over"):
    """How a round ended, told to all (H10).

    Attributes:
        cards: the cards of those who stayed, by seat; `null` for quitters.
        last_bid: the last number that was bid; `null` if all four quit.
        payoffs: what the round brought, by seat.
        scores: the points of the match so far, by seat.
    """

    cards: Cards
    last_bid: int | None
    payoffs: Points
    scores: Points


_HAS = "{who} has {card}, the dealer-card is {dealer_card}"


def _bids(bid: Bidding) -> str:
    return "quits" if bid == "quit" else f"bids {bid}"


def _swapped(news: Swapped, names: Sequence[str], who: str) -> Iterator[str]:
    does = "swaps" if news.swapped else "keeps its card"
    yield f"{who} {does}, the dealer-card is {news.dealer_card}"


def _round_over(news: RoundOver, names: Sequence[str], who: str) -> Iterator[str]:
    shown = ", ".join(
        f"{name} {card}" for name, card in zip(names, news.cards, strict=True) if card is not None
    )
    yield f"shown are {shown}; the last bid is {news.last_bid}" if shown else "all quit"
    yield f"paid: {gains(names, news.payoffs)}; scores: {gains(names, news.scores)}"


VOCABULARY = Vocabulary(
    name="high_low",
    title="High-low",
    alias="high_low",
    seats=SEATS,
    settings=HighLowSettings,
    opens=(Dealt,),
    closes=RoundOver,
    private=(Dealt,),
    payoffs=lambda news: news.payoffs,
    words={
        Swap: Asked(_HAS, "{answer}s"),
        Bid: Asked(_HAS, lambda _, answer: _bids(answer)),
        Dealt: Told(
            "{who} is dealt {card}",
            opening=": the dealer-card is {dealer_card}, {starter_name} starts",
        ),
        Swapped: Told(_swapped, repeats=True),
        BidMade: Told(lambda news, _, who: [f"{who} {_bids(news.bid)}"], repeats=True),
        RoundOver: Told(_round_over),
    },
    shapes=tuple(
        Shape(f"bids from {lowest}", "bid", bids.__eq__) for lowest, bids in _LEGAL_FROM.items()
    ),
)
