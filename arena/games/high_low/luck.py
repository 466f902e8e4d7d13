"""How much of a match of high-low is luck (rulebook, section H).

A deal is all that is chance. Each of the four cards might as well have been the next seat's, and so
on round the table. So what the cards would have brought each seat, if all played by a simple table
(`TABLES`), is taken minus its mean over these four rotations: with any tables and any bots the mean
of luck is 0.

How much a seat's gains follow a table depends on the bots. So each seat has a weight for each
table, by least squares over the rounds of this match that are over; they cannot know the next deal.
At first it is `_WEIGHT`, as if it had been found in rounds with squares of `_TRUST` in sum. What
the four gain is 0 in sum, and so their luck is levelled to be.

Luck also decides when a match ends (H11), and a bot that loses in most rounds loses more in a
longer match. So a point that luck puts between the second and the third seat counts as so many
rounds less, each with a seat's mean gain without luck, both as guessed before the round.

The constants were chosen by trial over 300 matches of each of eight tables of house bots. Nothing
may be measured on those (seeds 7,000,000 to 7,079,999).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from arena.games.rules import AskSeat, LuckRound, TellSeat
from protocol.cards import Card
from protocol.high_low import (
    SEATS,
    Bidding,
    Cards,
    Dealt,
    HighLowSettings,
    Points,
    RoundOver,
    legal_bids,
    strength,
)

__all__ = ["TABLES", "HighLowMeter", "Scoring", "deal_luck", "extremity"]

Scoring: TypeAlias = Callable[[Cards, int | None], Points]
"""`payoffs` of the rules: from the cards of those who stay and the last bid."""

_Bidder: TypeAlias = Callable[[int, int], Bidding]
"""Bids by the extremity of a card and the highest bid so far, 0 if there is none."""

_EXTREME = 37  # the least extremity of aces, kings, 2s and 3s

TABLES: tuple[_Bidder, ...] = (
    lambda extremity, last_bid: 10,
    lambda extremity, last_bid: _at_least(last_bid) if extremity >= _EXTREME else "quit",
)
"""How all four bid: nobody quits, or only aces, kings, 2s and 3s stay, as cheaply as they may."""

_WEIGHT = 0.2
_TRUST = 500.0  # a round of bold bots adds 100 for the first table
_ROUNDS = 10  # in a shuffle (H2)
_GUESSED_ROUNDS = 500  # as many rounds count what is guessed of rates before a match
_RATE = 0.6  # points a round by which the gap (H11) may be guessed to grow
_LEAST_RATE = 0.1


class HighLowMeter:
    """The luck of a match, a deal at a time, in points (see `LuckMeter`)."""

    def __init__(self, settings: HighLowSettings, scoring: Scoring) -> None:
        self.rounds: list[LuckRound] = []
        self._settings = settings
        self._scoring = scoring
        self._fits = [_Fit() for _ in range(SEATS)]
        self._scores: Sequence[int] = (0,) * SEATS
        self._without = [0.0] * SEATS  # the gains without luck so far
        self._cards: list[Card] = []
        self._tables: list[tuple[float, ...]] = []

    def dealt(self, deal: Any) -> None:
        """Nothing: the seats are told all cards that matter."""

    def told(self, told: TellSeat) -> None:
        match told.news:
            case Dealt() as news:
                if told.seat == 0:
                    self._cards.clear()
                self._cards.append(news.card)
                if told.seat == SEATS - 1:
                    self._tables = deal_luck(
                        self._cards, news.dealer_card, news.starter, self._scoring
                    )
            case RoundOver() as news:
                self._close(news)

    def asked(self, asked: AskSeat) -> None:
        """Nothing: the cards that a swap brings are known."""

    def answered(self, asked: AskSeat, answer: Any) -> None:
        """Nothing: an answer is no chance."""

    def _close(self, news: RoundOver) -> None:
        raw = [fit.value(table) for fit, table in zip(self._fits, self._tables, strict=True)]
        mean = sum(raw) / SEATS
        luck = [value - mean for value in raw]
        length = self._rounds_more(luck)
        whole = [
            luck[seat] + length * self._without[seat] / (len(self.rounds) + _GUESSED_ROUNDS)
            for seat in range(SEATS)
        ]
        self.rounds.append(LuckRound(tuple(map(float, news.payoffs)), tuple(whole)))
        for seat, fit in enumerate(self._fits):
            fit.learn(self._tables[seat], news.payoffs[seat])
            self._without[seat] += news.payoffs[seat] - luck[seat]
        self._scores = news.scores

    def _rounds_more(self, luck: Sequence[float]) -> float:
        """By how many rounds such luck makes the match longer."""
        over, scores = len(self.rounds), self._scores
        _, second, third, _ = sorted(range(SEATS), key=lambda seat: -scores[seat])
        grown = self._without[second] - self._without[third] + _RATE * _GUESSED_ROUNDS
        rate = max(grown / (over + _GUESSED_ROUNDS), _LEAST_RATE)
        left = self._settings.max_shuffles * _ROUNDS - over
        if rate * left <= self._settings.gap - scores[second] + scores[third]:
            return 0.0  # it is likely to last as long as it may
        return (luck[third] - luck[second]) / rate


class _Fit:
    """How much a seat's gains follow the two tables: least squares, with a guess before."""

    def __init__(self) -> None:
        self._squares = [_TRUST, _TRUST]
        self._product = 0.0
        self._with_gains = [_TRUST * _WEIGHT, _TRUST * _WEIGHT]

    def value(self, tables: Sequence[float]) -> float:
        """What the tables say, each with its weight."""
        (one, two), both, (first, second) = self._squares, self._product, self._with_gains
        weights = two * first - both * second, one * second - both * first
        return (weights[0] * tables[0] + weights[1] * tables[1]) / (one * two - both * both)

    def learn(self, tables: Sequence[float], gain: float) -> None:
        """Take a round into account that is over."""
        for place, table in enumerate(tables):
            self._squares[place] += table * table
            self._with_gains[place] += table * gain
        self._product += tables[0] * tables[1]


def deal_luck(
    cards: Sequence[Card], dealer_card: Card, starter: int, scoring: Scoring
) -> list[tuple[float, ...]]:
    """By seat, what each table gives for this deal beyond its mean over the four rotations."""
    rotations = [[*cards[by:], *cards[:by]] for by in range(SEATS)]
    columns = []
    for bidder in TABLES:
        paid = [_play(held, dealer_card, starter, bidder, scoring) for held in rotations]
        columns.append(
            [here - sum(all_here) / SEATS for here, *all_here in zip(paid[0], *paid, strict=True)]
        )
    return list(zip(*columns, strict=True))


def _play(
    cards: Sequence[Card], dealer_card: Card, starter: int, bidder: _Bidder, scoring: Scoring
) -> Points:
    """What a deal brings each seat if all swap for the more extreme card and bid by a table."""
    held = list(cards)
    order = [(starter + after) % SEATS for after in range(SEATS)]
    for seat in order:
        if extremity(dealer_card) > extremity(held[seat]):
            held[seat], dealer_card = dealer_card, held[seat]
    last_bid = 0
    shown: list[Card | None] = [None] * SEATS
    for seat in order:
        bid = bidder(extremity(held[seat]), last_bid)
        if bid != "quit":
            last_bid, shown[seat] = bid, held[seat]
    one, two, three, four = shown
    return scoring((one, two, three, four), last_bid or None)


def extremity(card: Card) -> int:
    """A card's distance from the middle of the order: odd, from 1 to 51 at the two ends."""
    return abs(2 * strength(card) - 51)


def _at_least(last_bid: int) -> Bidding:
    """The lowest number that may be bid (H6)."""
    return legal_bids(last_bid or None)[1]
