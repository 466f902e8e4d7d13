"""What blackjack says on the wire, and what a hand is worth (rules B)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from protocol.cards import RANKS, Card
from protocol.errors import BadDeck
from protocol.vocabulary import News, Question, Range, Settings, Shape, Vocabulary
from protocol.words import Asked, Told

__all__ = [
    "ACTIONS",
    "MINIMUM",
    "NEW_DECK",
    "POINTS",
    "VOCABULARY",
    "Action",
    "Bet",
    "BlackjackSettings",
    "Draw",
    "Exposed",
    "HandOver",
    "Outcome",
    "Shuffled",
    "Side",
    "hand_value",
]

Action = Literal["hit", "stand"]
Side = Literal["player", "dealer"]
Outcome = Literal["natural", "bust", "dealer_busts", "win", "lose", "push"]
"""How a hand ended for the player: `natural`, `dealer_busts` and `win` are paid (B8–B10)."""

ACTIONS: tuple[Action, ...] = ("hit", "stand")

MINIMUM = 5
"""The smallest bet, and the smallest bankroll that may play (B5)."""

NEW_DECK: tuple[Card, ...] = tuple(rank + suit for suit in "shcd" for rank in RANKS)
"""A new deck in dealing order, the two of spades first (B1)."""

POINTS: dict[Card, int] = {
    card: 1 if card[0] == "A" else min(RANKS.index(card[0]) + 2, 10) for card in NEW_DECK
}
"""What each card counts, an ace counting 1 (B4)."""


def hand_value(cards: Iterable[Card]) -> tuple[int, bool]:
    """The count of a hand, and whether it is soft: whether an ace counts 11 in it (B4).

    Raises:
        BadDeck: something in it is no card.
    """
    count = 0
    has_ace = False
    try:
        for card in cards:
            points = POINTS[card]
            count += points
            if points == 1:
                has_ace = True
    except (KeyError, TypeError):
        raise BadDeck(f"expected cards such as 'As', got {cards!r:.120}") from None
    if has_ace and count <= 11:
        return count + 10, True
    return count, False


class BlackjackSettings(Settings, frozen=True):
    """The settings of blackjack (B5, B14).

    Attributes:
        bankroll: the chips to start with; with fewer than 5 no hand is played.
        hands: the most hands that a match has.
        shuffle: `riffle` is the seven cuts, `uniform` a fair shuffle of a new deck each time;
            competitions use `uniform`.
    """

    bankroll: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 100
    hands: Annotated[int, Meta(ge=0, le=10_000_000)] = 1000
    shuffle: Literal["riffle", "uniform"] = "riffle"


class Bet(Question[int], frozen=True, gc=False, tag="bet"):
    """What to bet on the next hand, in whole chips (B6).

    Attributes:
        round: which hand of the match it is, from 1.
        bankroll: the chips that you have.
        legal: 5 to all of them.
    """

    round: int
    bankroll: int
    legal: Range


class Draw(Question[Action], frozen=True, gc=False, tag="draw"):
    """Hit or stand, asked at 21 too (B9).

    Attributes:
        upcard: the dealer's card that is face up.
        hand: your cards.
        total: what they count (B4).
        soft: whether an ace counts 11 in it.
    """

    upcard: Card
    hand: tuple[Card, ...]
    total: int
    soft: bool
    legal: tuple[Action, ...] = ACTIONS


class Shuffled(News, frozen=True, gc=False, tag="shuffled"):
    """The player is told that the deck has been shuffled, but not where it was cut (B11)."""


class Exposed(News, frozen=True, gc=False, tag="exposed"):
    """A card was dealt face up, or the hole card was turned over: the player is told every card
    that can be seen (B11).

    Attributes:
        card: the card.
        to: whose it is.
    """

    card: Card
    to: Side


class HandOver(News, frozen=True, gc=False, tag="hand_over"):
    """How a hand ended, told to the player.

    Attributes:
        bet: what was bet.
        player: the player's cards.
        dealer: the dealer's cards that were exposed: the up-card alone after a natural or a bust
            (B8, B9).
        outcome: how it ended for the player: `natural`, `dealer_busts` and `win` are paid, `bust`
            and `lose` cost the bet (B8–B10).
        payoff: what the bankroll gained, below zero if it lost.
        bankroll: the chips after it.
    """

    bet: int
    player: tuple[Card, ...]
    dealer: tuple[Card, ...]
    outcome: Outcome
    payoff: int
    bankroll: int


VOCABULARY = Vocabulary(
    name="blackjack",
    title="Blackjack",
    alias="blackjack",
    seats=1,
    settings=BlackjackSettings,
    opens=(Bet,),
    closes=HandOver,
    payoffs=lambda news: (news.payoff,),
    round="hand",
    words={
        Bet: Asked("{who} has {bankroll} chips", "bets {answer}"),
        Draw: Asked("{who} has {hand}, {total}, against {upcard}"),
        Shuffled: Told("the deck is shuffled"),
        Exposed: Told("the {to} gets {card}"),
        HandOver: Told(
            lambda news, _, who: [
                f"{news.outcome.replace('_', ' ')}: {who} {news.payoff:+,}, "
                f"{news.bankroll:,} chips; the dealer had {' '.join(news.dealer)}"
            ]
        ),
    },
    shapes=(
        Shape("a bet", "bet", lambda legal: legal.min < legal.max <= 10_000),
        Shape("a bet from 5 to 5", "bet", lambda legal: legal.min == legal.max),
        Shape("a bet up to a billion", "bet", lambda legal: legal.max >= 1_000_000_000),
    ),
)
