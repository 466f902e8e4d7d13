"""Cards, decks, hands and melds as objects, and three card poker, for programming courses.

`Card.of("3d").code` is "3d". A wrong argument raises `BadDeck`, a `ValueError`; nothing changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import total_ordering
from typing import Any, ClassVar, Self

from protocol import blackjack, gin_melds
from protocol import three_card_poker as poker
from protocol.cards import PACK, RANKS, SUITS, Coded
from protocol.errors import BadDeck

__all__ = ["BlackjackHand", "Card", "Deck", "Hand", "Meld", "ThreeCardPokerDeck"]
__all__ += ["ThreeCardPokerHand", "make_dist", "play", "play_round"]


class _Value(Coded):
    """Compares by class and code. Not a dataclass, because msgspec would encode that as a map."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.of({self.code!r})"


class Card(_Value):
    """A card, by the numbers of its rank and suit: `Card(1, 2)` is the `3 of Diamonds`."""

    ranks: ClassVar[list[str]] = [*"23456789", "10", "Jack", "Queen", "King", "Ace"]
    suits: ClassVar[list[str]] = ["Spades", "Hearts", "Diamonds", "Clubs"]

    def __init__(self, rank: int, suit: int) -> None:
        _check_number("a rank", rank, 0, len(RANKS) - 1)
        _check_number("a suit", suit, 0, len(SUITS) - 1)
        self.code: str = RANKS[rank] + SUITS[suit]

    @classmethod
    def of(cls, code: str) -> Self:
        """The card with these two characters, such as `3d`."""
        if code not in PACK:
            raise BadDeck(f"expected a card such as '3d', got {code!r}")
        return cls(RANKS.index(code[0]), SUITS.index(code[1]))

    def get_rank(self) -> int:
        """The rank, from 0 for the two to 12 for the ace."""
        return RANKS.index(self.code[0])

    def get_suit(self) -> int:
        """The suit, 0 to 3."""
        return SUITS.index(self.code[1])

    def __str__(self) -> str:
        return f"{self.ranks[self.get_rank()]} of {self.suits[self.get_suit()]}"


class Deck:
    """A pile of cards, in a list `cards` whose end is the top; a new deck has all 52, in order."""

    def __init__(self) -> None:
        self.cards = [Card.of(code) for code in PACK]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"

    @property
    def code(self) -> tuple[str, ...]:
        """The cards in two characters each."""
        return tuple([card.code for card in self.cards])

    def shuffle(self) -> None:
        """Shuffle the cards with the module `random`."""
        random.shuffle(self.cards)

    def pop_cards(self, n: int) -> list[Card]:
        """Remove the last `n` cards and return them, the very last one first."""
        return [self.cards.pop() for _ in self._last(n)]

    def add_cards(self, cards: Iterable[Card]) -> None:
        """Add a deep copy of these cards at the end."""
        self.cards += deepcopy(_checked(cards))

    def clear_cards(self) -> None:
        """Remove all cards."""
        self.cards.clear()

    def move_cards(self, hand: Deck, n: int) -> None:
        """Move the last `n` cards, one after another, to the end of a hand or another deck."""
        _expect(Deck, hand).add_cards(self._last(n))
        self.pop_cards(n)

    def _last(self, n: int) -> list[Card]:
        _check_number("a number of cards", n, 0, len(self.cards))
        return self.cards[len(self.cards) - n :][::-1]


class Hand(Deck):
    """The cards of a player; a new hand has none."""

    def __init__(self, name: str = "") -> None:
        self.cards = []
        self._name = name

    def get_name(self) -> str:
        return self._name


@total_ordering
class ThreeCardPokerHand(Hand):
    """Three cards, compared as in three card poker: `9s 9h 5d` equals `9d 9c 4s` (T2 to T4)."""

    all_labels: ClassVar[list[str]] = list(poker.CATEGORIES)

    def __init__(self, cards: Iterable[Card], name: str = "") -> None:
        super().__init__(name)
        self.add_cards(cards)
        self.get_label()  # raises if they are not three different cards

    @property
    def rank(self) -> int:
        """The index of the hand's label in `all_labels`, 0 to 5."""
        return self.all_labels.index(self.get_label())

    def get_label(self) -> str:
        """The category, from Nothing to Straight Flush."""
        return poker.category(self.code)

    def _compare(self, other: object) -> int:
        return poker.compare(self.code, _expect(ThreeCardPokerHand, other).code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThreeCardPokerHand) and self._compare(other) == 0

    def __lt__(self, other: object) -> bool:
        return self._compare(other) < 0

    def __hash__(self) -> int:
        return hash(poker.strength(self.code))


class ThreeCardPokerDeck(Deck):
    """A deck that deals hands of three card poker."""

    def deal_hand(self, name: str = "") -> ThreeCardPokerHand:
        """Remove the last three cards and return them as a hand."""
        hand = ThreeCardPokerHand(self._last(3), name)
        self.pop_cards(3)
        return hand


class BlackjackHand(Hand):
    """A hand of blackjack."""

    def add_card(self, card: Card) -> None:
        """Add a copy of a card."""
        self.add_cards([card])

    discard_all = Deck.clear_cards

    def hand_value(self) -> tuple[int, bool]:
        """The total, and whether it is soft: whether an ace counts 11 (B4)."""
        return blackjack.hand_value(self.code)


class Meld(_Value):
    """A set or a run of gin rummy, in a tuple `cards` (G2)."""

    def __init__(self, cards: Iterable[Card]) -> None:
        self.cards = tuple(_checked(cards))
        self.code: tuple[str, ...] = tuple([card.code for card in self.cards])
        if not gin_melds.is_meld(self.code):
            raise BadDeck(f"expected a set or a run (G2), got {' '.join(self.code)}")

    @classmethod
    def of(cls, codes: Iterable[str]) -> Self:
        """The meld of these cards, in two characters each."""
        return cls(map(Card.of, codes))


def make_dist(n: int) -> dict[str, float]:
    """Deal `n` random hands of three card poker; returns the percentage of each label (T9)."""
    _check_number("hands", n, 1)
    dealt = [poker.category(random.sample(PACK, 3)) for _ in range(n)]
    return {label: 100 * dealt.count(label) / n for label in poker.CATEGORIES}


def play_round(
    dealer_hand: ThreeCardPokerHand,
    player_hand: ThreeCardPokerHand,
    cash: int,
    get_ante: Callable[[int], int],
    is_playing: Callable[[ThreeCardPokerHand], bool],
) -> tuple[int, int]:
    """Play one round; returns the ante, 1 to half the cash, and the outcome in antes (T5, T6).
    The outcome is -1 folded, 1 dealer does not qualify, 2 won, -2 lost, 0 tied.
    """
    for hand in (dealer_hand, player_hand):
        _expect(ThreeCardPokerHand, hand)
    _check_number("cash", cash, poker.LEAST_CASH)
    _check_number("an ante", ante := get_ante(cash), 1, cash // 2)
    if not is_playing(player_hand):
        return ante, poker.FOLDED
    return ante, poker.outcome_of_play(player_hand.code, dealer_hand.code)


def play(
    stake: int,
    goal: int,
    get_ante: Callable[[int], int],
    is_playing: Callable[[ThreeCardPokerHand], bool],
    trials: int,
) -> float:
    """Return the share of trials that reach `goal` from `stake` before going broke (T8, T10)."""
    for what, number in (("a stake", stake), ("a goal", goal), ("trials", trials)):
        _check_number(what, number, 1)
    deck, reached = Deck(), 0
    for _ in range(trials):
        cash = stake
        while poker.LEAST_CASH <= cash < goal:
            six = random.sample(deck.cards, 6)
            player, dealer = ThreeCardPokerHand(six[:3]), ThreeCardPokerHand(six[3:])
            ante, outcome = play_round(dealer, player, cash, get_ante, is_playing)
            cash += ante * outcome
        reached += cash >= goal
    return reached / trials


def _checked(cards: Iterable[Card]) -> list[Card]:
    return [_expect(Card, card) for card in _expect(Iterable, cards)]


def _expect(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind):
        raise BadDeck(f"expected {kind.__name__}, got {value!r:.80}")
    return value


def _check_number(what: str, number: int, least: int, most: int = 10**12) -> None:
    if type(number) is not int or not least <= number <= most:
        raise BadDeck(f"expected {what} from {least} to {most}, got {number!r}")
