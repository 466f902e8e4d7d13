"""High-low: the interface for strategies, and the house bots.

A strategy answers two questions in every round, `swap` and `bid`. It may learn from what it sees
(rules H).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import Any, TypeAlias

from bots.strategy import BaseStrategy, RandomMixin, yes_or_no
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
    """Return a card's distance from the middle of the order: odd, up to 51 at the two ends."""
    return abs(2 * strength(card) - 51)


class PlayerStrategy(BaseStrategy):
    """One seat of high-low; override `swap` and `bid`, and the other methods to learn.

    `self.seat` is your own seat. It is known from your first question in a match on.
    """

    game = "high_low"

    seat: int | None = None
    _speaker = 0  # the seat that is asked next

    def swap(self, card: Card, dealer_card: Card) -> bool:
        """Whether to swap this card for the dealer-card (H5)."""
        return extremity(dealer_card) > extremity(card)

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """What to bid (H6).

        Args:
            card: this seat's card, after the swaps.
            dealer_card: the dealer-card that was left.
            bids: by seat; None for a seat that has not bid yet.
            legal: "quit", then the numbers that may be bid, lowest first.
        """
        return legal[1]

    def dealt(
        self, shuffle: int, round_number: int, starter: int, card: Card, dealer_card: Card
    ) -> None:
        """Called when a round begins, with your card and the dealer-card (H4).

        Ten rounds have the same `shuffle` (H2).
        """

    def swapped(self, seat: int, swapped: bool, dealer_card: Card) -> None:
        """Called when a seat has swapped or kept its card, with the dealer-card now (H5)."""

    def bid_made(self, seat: int, bid: Bidding) -> None:
        """Called when a seat has bid (H6)."""

    def round_over(
        self, cards: Cards, last_bid: int | None, payoffs: Points, scores: Points
    ) -> None:
        """Called after every round; the lists are by seat.

        Args:
            cards: the cards of those who stayed; None for those who quit (H10).
            last_bid: the highest number bid; None if all four quit.
            payoffs: the payoffs of this round.
            scores: the scores of the match so far.
        """

    def decide(self, question: Question[Any]) -> object:
        """Answer with `swap` or `bid`."""
        if type(question) is Swap:
            self.seat = self._speaker
            swap = self.swap(question.card, question.dealer_card)
            return "swap" if yes_or_no("swap", swap, self) else "keep"
        assert type(question) is Bid, "rules H ask nothing else"
        return self.bid(question.card, question.dealer_card, question.bids, question.legal)

    def hear(self, news: News) -> None:
        """Pass the news on to the method of its name."""
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
    """Gives random legal answers."""


class Timid(PlayerStrategy):
    """Quits unless it has a card from either end of the order, and never bids more than it must."""

    EXTREME = 37  # the least extremity of aces, kings, 2s and 3s

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """Bid the lowest number with an extreme card, else quit."""
        return legal[1] if extremity(card) >= self.EXTREME else "quit"


class Bold(PlayerStrategy):
    """Stays with nearly everything and bids high."""

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """Bid 8 or 10 at random, and sometimes quit with a card from the very middle."""
        if extremity(card) < 8 and self.random.random() < 0.25:
            return "quit"
        return 8 if 8 in legal and self.random.random() < 0.5 else 10


class Counter(PlayerStrategy):
    """Remembers the cards of the shuffle and the bids of the others, and bids by expected value.

    The card of an opponent who swapped is known. Any other opponent has a card that this seat has
    not seen in the shuffle, and more likely one that was worth keeping. Opponents who still have to
    bid are expected to bid as they have done before after the same bid.
    """

    # The weight of cards nearer to the middle than the dealer-card, if an opponent did not swap.
    KEEP_WORSE = 0.2

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
        """Mark both cards as seen; after a new shuffle all others are unseen."""
        if shuffle != self._shuffle:
            self._shuffle, self._unseen = shuffle, set(PACK)
        self._unseen -= {card, dealer_card}
        self._dealer_card = dealer_card
        self._shown = [None] * SEATS
        self._kept_against = [0] * SEATS
        self._highest = None

    def swapped(self, seat: int, swapped: bool, dealer_card: Card) -> None:
        """Note that a seat which swaps has the old dealer-card and shows its own."""
        if swapped:
            self._shown[seat] = self._dealer_card
            self._unseen.discard(dealer_card)
            self._dealer_card = dealer_card
        else:
            self._kept_against[seat] = extremity(dealer_card)

    def bid_made(self, seat: int, bid: Bidding) -> None:
        """Note what a seat bids after the highest bid so far."""
        self._habits[seat].note(self._highest, bid)
        if bid != "quit":
            self._highest = bid

    def round_over(
        self, cards: Cards, last_bid: int | None, payoffs: Points, scores: Points
    ) -> None:
        """Mark the shown cards as seen."""
        self._unseen.difference_update(card for card in cards if card is not None)

    def swap(self, card: Card, dealer_card: Card) -> bool:
        """Swap if the dealer-card can expect more of the pot when all four stay."""
        return halves(self._below(dealer_card)) > halves(self._below(card))

    def bid(self, card: Card, dealer_card: Card, bids: Bids, legal: tuple[Bidding, ...]) -> Bidding:
        """Choose the answer with the best expected payoff, as the others usually bid."""
        below = dict(zip(self._others(), self._below(card), strict=True))

        @cache
        def staying(last_bid: int, stayers: _Seats, waiting: _Seats) -> float:
            """Return the value of staying, given the stayers so far and the seats still to bid."""
            if not waiting:
                return worth([below[seat] for seat in stayers], last_bid)
            seat, *later = waiting
            total = 0.0
            for bid, share in self._habits[seat].shares(last_bid):
                if bid == "quit":
                    total += share * staying(last_bid, stayers, tuple(later))
                else:
                    total += share * staying(bid, (*stayers, seat), tuple(later))
            return total

        stayers = tuple(s for s in below if bids[s] not in (None, "quit"))
        waiting = tuple(s for s in below if bids[s] is None)
        return max(legal, key=lambda say: -2.0 if say == "quit" else staying(say, stayers, waiting))

    def _others(self) -> _Seats:
        """Return the other seats, in their order after this one."""
        assert self.seat is not None, "known from the first question on"
        return tuple((self.seat + after) % SEATS for after in range(1, SEATS))

    def _below(self, card: Card) -> list[float]:
        """Return for each of the others the probability that its card is below this one."""
        # In the pack's order: a set's order differs between processes, which would change the last
        # digit of the sums below, and sometimes a choice.
        unseen = [(strength(other), extremity(other)) for other in PACK if other in self._unseen]
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
    """Return the expected halves of the pot, from each other card's chance to be lower (H8, H9)."""
    return prod(below) + prod(1 - chance for chance in below)


def worth(below: Sequence[float], last_bid: int) -> float:
    """Return the expected payoff of a player who stays (H7, H8).

    Args:
        below: for each other player who stays, the probability that its card is lower.
        last_bid: the last number that was bid.
    """
    stayers = 1 + len(below)
    half = (SEATS - stayers) + last_bid * stayers / 2
    return half * halves(below) - last_bid


class _Habits:
    """Counts how often one seat has made each bid, by the highest bid before it."""

    def __init__(self) -> None:
        # Every bid counts as made once, so that none is impossible.
        self._counts = {
            highest: dict.fromkeys(legal_bids(highest), 1) for highest in (2, 4, 6, 8, 10)
        }

    def note(self, highest: int | None, bid: Bidding) -> None:
        """Count a bid after the highest one, or None for the first."""
        self._counts[highest or 2][bid] += 1

    def shares(self, highest: int) -> Iterator[tuple[Bidding, float]]:
        """Yield every possible bid and its probability."""
        counts = self._counts[highest]
        times = sum(counts.values())
        for bid, count in counts.items():
            yield bid, count / times
