"""What three card poker says on the wire, and what its hands are worth (rules T)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from protocol.cards import PACK, RANKS, Card
from protocol.errors import BadDeck
from protocol.vocabulary import News, Question, Range, Settings, Shape, Vocabulary
from protocol.words import Asked, Told

__all__ = [
    "CATEGORIES",
    "DECISIONS",
    "FOLDED",
    "LEAST_CASH",
    "VOCABULARY",
    "Ante",
    "Category",
    "Decision",
    "Hand",
    "Play",
    "RoundOver",
    "Strength",
    "ThreeCardPokerSettings",
    "category",
    "compare",
    "dealer_qualifies",
    "outcome_of_play",
    "strength",
]

Hand: TypeAlias = tuple[Card, Card, Card]
Decision = Literal["play", "fold"]
Category = Literal["Nothing", "Pair", "Flush", "Straight", "Three of a Kind", "Straight Flush"]

DECISIONS: tuple[Decision, ...] = ("play", "fold")
CATEGORIES: tuple[Category, ...] = (
    "Nothing",
    "Pair",
    "Flush",
    "Straight",
    "Three of a Kind",
    "Straight Flush",
)
"""Lowest first (T2)."""
LEAST_CASH = 2
"""The smallest ante and its play bet; with less no round can be played (T5, T8)."""
FOLDED = -1
"""What a fold costs, in antes (T6)."""

Strength: TypeAlias = tuple[int, ...]
"""The number of a hand's category, then what decides within it; the greater is better."""

NOTHING, PAIR, FLUSH, STRAIGHT, THREE_OF_A_KIND, STRAIGHT_FLUSH = range(6)
ACE = 14

Chips = Annotated[int, Meta(ge=0, le=1_000_000_000_000)]
"""Limited, so that a long run of doubled antes still fits the wire's 64 bits."""


class ThreeCardPokerSettings(Settings, frozen=True):
    """The settings of three card poker (T8).

    Attributes:
        stake: the cash to start with.
        rounds: how many there are at most.
        goal: the cash that ends the match early, `null` for none; one that the stake has reached
            already ends it before the first round.
        pair_kicker: whether the odd card decides between equal pairs, which is the casinos' reading
            of T4.
    """

    stake: Chips = 1000
    rounds: Annotated[int, Meta(ge=0, le=10_000_000)] = 1000
    goal: Chips | None = None
    pair_kicker: bool = False


class Ante(Question[int], frozen=True, gc=False, tag="ante"):
    """Name the ante, before any card is seen (T5).

    Attributes:
        round: which round of the match it is, from 1.
        cash: your cash.
        legal: 1 to half the cash.
    """

    round: int
    cash: int
    legal: Range


class Play(Question[Decision], frozen=True, gc=False, tag="play"):
    """Play for one more ante, or fold (T5).

    Attributes:
        hand: your three cards.
        ante: the ante that you named.
        cash: your cash before the ante, which is on the table but not lost yet.
    """

    hand: Hand
    ante: int
    cash: int
    legal: tuple[Decision, ...] = DECISIONS


class RoundOver(News, frozen=True, gc=False, tag="round_over"):
    """What the player learns after every round, a fold included (T7).

    Attributes:
        hand: the player's cards.
        dealer: the dealer's cards.
        ante: the ante.
        outcome: what the round brought, in antes: -2, -1, 0, 1 or 2 (T6).
        cash: the player's cash now.
    """

    hand: Hand
    dealer: Hand
    ante: int
    outcome: int
    cash: int


_OUTCOMES = {
    -1: "{who} loses the ante",
    1: "the dealer does not qualify, {who} wins the ante",
    2: "{who} wins two antes",
    -2: "{who} loses two antes",
    0: "a tie",
}


def _round_over(news: RoundOver, names: Sequence[str], who: str) -> Iterator[str]:
    yield f"the dealer has {' '.join(news.dealer)}, {category(news.dealer)}"
    what = _OUTCOMES[news.outcome].format(who=who)
    yield f"{what}: {who} has {news.cash:,} in cash"


VOCABULARY = Vocabulary(
    name="three_card_poker",
    title="Three card poker",
    alias="tcp",
    seats=1,
    settings=ThreeCardPokerSettings,
    opens=(Ante,),
    closes=RoundOver,
    payoffs=lambda news: (news.outcome * news.ante,),
    words={
        Ante: Asked("{who} has {cash} in cash", "antes {answer}"),
        Play: Asked(
            lambda who, question: f"{who} has {' '.join(question.hand)}, {category(question.hand)}"
        ),
        RoundOver: Told(_round_over),
    },
    shapes=(
        Shape("an ante", "ante", lambda legal: legal.min < legal.max <= 10_000),
        Shape("an ante from 1 to 1", "ante", lambda legal: legal.min == legal.max),
        Shape("an ante beyond 32 bits", "ante", lambda legal: legal.max >= 1 << 31),
    ),
)


def category(cards: Iterable[Card]) -> Category:
    """Return the category of three cards (T2).

    Raises:
        BadDeck: they are not three different cards.
    """
    return CATEGORIES[strength(cards)[0]]


def compare(a: Iterable[Card], b: Iterable[Card], pair_kicker: bool = False) -> Literal[-1, 0, 1]:
    """Compare two hands: 1 if `a` is better than `b`, -1 if worse, 0 if as good (T2–T4).

    With `pair_kicker` the odd card decides between equal pairs, as in casinos; otherwise the
    highest card of each hand, which may be one of the pair.

    Raises:
        BadDeck: one of the hands is not three different cards.
    """
    mine, theirs = strength(a, pair_kicker), strength(b, pair_kicker)
    if mine == theirs:
        return 0
    return 1 if mine > theirs else -1


def strength(cards: Iterable[Card], pair_kicker: bool = False) -> Strength:
    """Rank three cards: of two hands, the one with the greater strength is better (T2–T4).

    Raises:
        BadDeck: they are not three different cards.
    """
    try:
        a, b, c = cards
        ranks = _RANK_BITS[a] + _RANK_BITS[b] + _RANK_BITS[c]
    except (KeyError, TypeError, ValueError):
        raise _no_hand(cards) from None
    if a in (b, c) or b == c:
        raise _no_hand(cards)
    if a[1] == b[1] == c[1]:
        return _SUITED[ranks]
    return _WITH_KICKER[ranks] if pair_kicker else _UNSUITED[ranks]


def dealer_qualifies(cards: Iterable[Card]) -> bool:
    """Whether the dealer's hand is queen-high or better (T6).

    Raises:
        BadDeck: they are not three different cards.
    """
    return strength(cards) >= _LEAST_QUALIFYING


def outcome_of_play(hand: Iterable[Card], dealer: Iterable[Card], pair_kicker: bool = False) -> int:
    """Return the net result, in antes, of a player who did not fold: 1, -2, 0 or 2 (T6).

    Raises:
        BadDeck: one of the hands is not three different cards.
    """
    if not dealer_qualifies(dealer):
        return 1
    return 2 * compare(hand, dealer, pair_kicker)


def _no_hand(cards: object) -> BadDeck:
    return BadDeck(f"expected three different cards, got {cards!r:.120}")


def _value(low: int, middle: int, high: int, suited: bool, kicker: bool) -> Strength:
    """Return the strength of three ranks, given in ascending order."""
    if low == high:
        return THREE_OF_A_KIND, high
    if low == middle or middle == high:
        odd = low if middle == high else high
        return PAIR, middle, odd if kicker else high
    if (low, middle, high) == (2, 3, ACE):
        return (STRAIGHT_FLUSH if suited else STRAIGHT), 3
    if low + 2 == middle + 1 == high:
        return (STRAIGHT_FLUSH if suited else STRAIGHT), high
    return (FLUSH if suited else NOTHING), high, middle, low


def _table(suited: bool, kicker: bool = False) -> dict[int, Strength]:
    """Return the strengths of all combinations of ranks, by the sum of their `_RANK_BITS`."""
    return {
        sum(1 << 2 * rank for rank in ranks): _value(*ranks, suited, kicker)
        for ranks in combinations_with_replacement(range(2, ACE + 1), 3)
    }


# Two bits count how often a rank occurs, so that the sum identifies the three ranks:
# a hand is ranked by one look-up in a table of 455 entries.
_RANK_BITS = {card: 1 << 2 * (RANKS.index(card[0]) + 2) for card in PACK}
_UNSUITED = _table(suited=False)
_WITH_KICKER = _table(suited=False, kicker=True)
_SUITED = _table(suited=True)

_LEAST_QUALIFYING = strength(("Qs", "3h", "2d"))
