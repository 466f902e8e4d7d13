"""High-low: the interface for strategies, and the house bots.

A strategy answers two questions a round, `swap` and `bid`, and may take note of what it sees (rules H).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import Any, TypeAlias

from bots.strategy import BaseStrategy, RandomMixin
from protocol.cards import PACK, Card
from protocol.high_low import (
    SEATS,
    Bid,
    Bidding,
    BidMade,
    Bids,
    Cards,
    Dealt,
    Points,
    RoundOver,
    Swap,
    Swapped,
    legal_bids,
    strength,
)
from protocol.vocabulary import News, Question

__all__ = ["Bold", "Counter", "PlayerStrategy", "Random", "Timid", "extremity", "halves", "worth"]

_Seats: TypeAlias = tuple[int, ...]


def extremity(card: Card) -> int:
    """How far a card is from the middle of the order: 1 to 51, odd; the two ends of the order have 51."""
    return abs(2 * strength(card) - 51)


class PlayerStrategy(BaseStrategy):
    """One seat of high-low; override `swap` and `bid`, and the other methods to learn.

    `self.seat` is this strategy's own seat, from its first question in a match on.
    """

    game = "high_low"

    seat: int | None = None
    _speaker = 0  # who is asked next; our own seat when it is us

    def swap(self, card: Card, dealer_card: Card) -> bool:
        """Whether to swap this card for the dealer-card (H5)."""
        return extremity(dealer_card) > extremity(card)

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """What to bid (H6).

        Args:
            card: this seat's card, after the swaps.
            dealer_card: the dealer-card that was left.
            bids: by seat, None for those who have not spoken.
            legal: "quit", then the numbers that may be bid, lowest first.
        """
        return legal[1]

    def dealt(
        self, shuffle: int, round_number: int, starter: int, card: Card, dealer_card: Card
    ) -> None:
        """A round begins: this seat's card and the dealer-card (H4). Ten rounds have the same `shuffle` (H2)."""

    def swapped(self, seat: int, swapped: bool, dealer_card: Card) -> None:
        """A seat swapped or kept, and this is the dealer-card now (H5)."""

    def bid_made(self, seat: int, bid: Bidding) -> None:
        """A seat said what it bids (H6)."""

    def round_over(
        self, cards: Cards, last_bid: int | None, payoffs: Points, scores: Points
    ) -> None:
        """A round is over; all four lists are by seat.

        Args:
            cards: of those who stayed; None for quitters (H10).
            last_bid: the highest number bid, None if all four quit.
            payoffs: of this round.
            scores: of the match so far.
        """

    def decide(self, question: Question[Any]) -> object:
        """Answer by `swap` or `bid`."""
        if type(question) is Swap:
            self.seat = self._speaker
            swap = self.swap(question.card, question.dealer_card)
            return "swap" if swap else "keep"
        assert type(question) is Bid, "rules H ask nothing else"
        return self.bid(question.card, question.dealer_card, question.bids, question.legal)

    def hear(self, news: News) -> None:
        """Pass the news on to the method that is named for it."""
        match news:
            case Dealt(shuffle, round_number, starter, card, dealer_card):
                self._speaker = starter
                self.dealt(shuffle, round_number, starter, card, dealer_card)
            case Swapped(seat, swapped, dealer_card):
                self._speaker = (seat + 1) % SEATS
                self.swapped(seat, swapped, dealer_card)
            case BidMade(seat, bid):
                self.bid_made(seat, bid)
            case RoundOver(cards, last_bid, payoffs, scores):
                self.round_over(cards, last_bid, payoffs, scores)

    def reset(self) -> None:
        """Forget the last opponents; call this from your own `reset`."""
        self.seat = None


class Random(RandomMixin, PlayerStrategy):
    """Any legal answer."""


class Timid(PlayerStrategy):
    """Quits unless it holds a card from either end of the order, and never bids more than it must."""

    EXTREME = 37  # the aces, kings, 2s and 3s have this much and more

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """The lowest number with an extreme card, else `quit`."""
        return legal[1] if extremity(card) >= self.EXTREME else "quit"


class Bold(PlayerStrategy):
    """Stays with nearly everything and bids high."""

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """Now 8, now 10; now and then it thinks better of a card from the very middle."""
        if extremity(card) < 8 and self.random.random() < 0.25:
            return "quit"
        return 8 if 8 in legal and self.random.random() < 0.5 else 10


class Counter(PlayerStrategy):
    """Remembers the cards of the shuffle and the habits of the others, and bids by expected value.

    An opponent who swapped holds a card that everybody saw. Any other holds a card that this seat has not seen in the
    shuffle, and rather one that was worth keeping. Those who still have to speak are expected to say what they have
    said before after the same bid.
    """

    KEEP_WORSE = (
        0.2  # how likely somebody keeps a card that is nearer to the middle than the dealer-card
    )

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the last opponents."""
        super().reset()
        self._shuffle = 0
        self._unseen: set[Card] = set()
        self._dealer_card: Card | None = None
        self._shown: list[Card | None] = [None] * SEATS
        self._kept_against: list[int] = [0] * SEATS
        self._highest: int | None = None
        self._habits = [_Habits() for _ in range(SEATS)]

    def dealt(
        self, shuffle: int, round_number: int, starter: int, card: Card, dealer_card: Card
    ) -> None:
        """Strike both cards off; a new shuffle brings all of them back."""
        if shuffle != self._shuffle:
            self._shuffle, self._unseen = shuffle, set(PACK)
        self._unseen -= {card, dealer_card}
        self._dealer_card = dealer_card
        self._shown = [None] * SEATS
        self._kept_against = [0] * SEATS
        self._highest = None

    def swapped(self, seat: int, swapped: bool, dealer_card: Card) -> None:
        """Whoever swaps takes a card that all have seen and shows the one it had."""
        if swapped:
            self._shown[seat] = self._dealer_card
            self._unseen.discard(dealer_card)
            self._dealer_card = dealer_card
        else:
            self._kept_against[seat] = extremity(dealer_card)

    def bid_made(self, seat: int, bid: Bidding) -> None:
        """Note what a seat says after such a bid."""
        self._habits[seat].note(self._highest, bid)
        if bid != "quit":
            self._highest = bid

    def round_over(
        self, cards: Cards, last_bid: int | None, payoffs: Points, scores: Points
    ) -> None:
        """Strike off what the stayers show."""
        self._unseen.difference_update(card for card in cards if card is not None)

    def swap(self, card: Card, dealer_card: Card) -> bool:
        """Whichever card can expect more of the pot if all four stay."""
        return halves(self._below(dealer_card)) > halves(self._below(card))

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """The answer with the best expected payoff, as the others' habits go."""
        below = dict(zip(self._others(), self._below(card), strict=True))

        @cache
        def staying(last_bid: int, stayers: _Seats, waiting: _Seats) -> float:
            """What staying is worth, with the stayers so far and those who still have to speak."""
            if not waiting:
                return worth([below[seat] for seat in stayers], last_bid)
            seat, *later = waiting
            total = 0.0
            for said, share in self._habits[seat].shares(last_bid):
                if said == "quit":
                    total += share * staying(last_bid, stayers, tuple(later))
                else:
                    total += share * staying(said, (*stayers, seat), tuple(later))
            return total

        stayers = tuple(s for s in below if bids[s] not in (None, "quit"))
        waiting = tuple(s for s in below if bids[s] is None)
        return max(legal, key=lambda say: -2.0 if say == "quit" else staying(say, stayers, waiting))

    def _others(self) -> _Seats:
        """The other seats, as they speak after this one."""
        assert self.seat is not None, "known from the first question on"
        return tuple((self.seat + after) % SEATS for after in range(1, SEATS))

    def _below(self, card: Card) -> list[float]:
        """For each of the others, the probability that its card is below this one."""
        unseen = [(strength(one), extremity(one)) for one in self._unseen]
        mine = strength(card)
        below = []
        for seat in self._others():
            shown = self._shown[seat]
            if shown is not None:
                below.append(float(strength(shown) < mine))
                continue
            lower = total = 0.0
            for place, extreme in unseen:
                worse = extreme < self._kept_against[seat]
                weight = self.KEEP_WORSE if worse else 1.0
                total += weight
                if place < mine:
                    lower += weight
            below.append(lower / total)
        return below


def halves(below: Sequence[float]) -> float:
    """How many halves of the pot a card can expect, given how likely each other stayer's card is below it (H8, H9)."""
    return prod(below) + prod(1 - chance for chance in below)


def worth(below: Sequence[float], last_bid: int) -> float:
    """The expected payoff of a stayer against the other stayers (H7, H8)."""
    stayers = 1 + len(below)
    half = (SEATS - stayers) + last_bid * stayers / 2
    return half * halves(below) - last_bid


class _Habits:
    """What one seat says after which bid, each as likely as it has been so far."""

    def __init__(self) -> None:
        # One imagined time each, few enough to be outweighed soon.
        self._counts = {
            highest: dict.fromkeys(legal_bids(highest), 1) for highest in (2, 4, 6, 8, 10)
        }

    def note(self, highest: int | None, bid: Bidding) -> None:
        """It said this after that number, or when there was none."""
        self._counts[highest or 2][bid] += 1

    def shares(self, highest: int) -> Iterator[tuple[Bidding, float]]:
        """Everything that it may say, and how likely that is."""
        counts = self._counts[highest]
        times = sum(counts.values())
        for bid, count in counts.items():
            yield bid, count / times
