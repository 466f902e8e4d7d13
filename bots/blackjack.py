"""Blackjack: the interface for strategies, and the house bots (rules B).

A strategy answers two questions, `bet` and `draw`, and is told of every `shuffled` deck, every card `exposed` and every
`hand_over`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bots.strategy import BaseStrategy
from protocol.blackjack import NEW_DECK, POINTS, Bet, Draw, Exposed, HandOver, Shuffled, Side
from protocol.cards import Card
from protocol.vocabulary import News, Question

__all__ = ["Competitor", "Counting", "PlayerStrategy", "Simple"]

_DECK = [sum(POINTS[card] == points for card in NEW_DECK) for points in range(11)]
"""How many cards of each number of points a deck has, an ace counting 1."""

_Chances = Sequence[float]
"""How likely the next card has each number of points; that drawing it changes them is neglected."""


class PlayerStrategy(BaseStrategy):
    """The player's seat at blackjack; override `bet` and `draw`, and what it hears to learn from it."""

    game = "blackjack"

    def bet(self, bankroll: int, minimum: int) -> int:
        """How many chips to bet, `minimum` to `bankroll` (B6)."""
        return minimum

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        """Whether to hit (B9); otherwise stand. Asked at a total of 21 too.

        Args:
            upcard: the dealer's card that is seen.
            hand: this seat's cards.
            total: what they count.
            soft: whether an ace counts 11 in it.
        """
        return total < 17

    def shuffled(self) -> None:
        """All 52 cards are in the deck again (B11)."""

    def exposed(self, card: Card, to: Side) -> None:
        """A card can be seen: the player's own, or one of the dealer's (B11)."""

    def hand_over(self, hand: HandOver) -> None:
        """A hand has ended; `hand` has the cards, the outcome, the payoff and the bankroll."""

    def decide(self, question: Question[Any]) -> object:
        """Answer by `bet` or `draw`."""
        if type(question) is Bet:
            return self.bet(question.bankroll, question.legal.min)
        assert type(question) is Draw, "rules B ask nothing else"
        hit = self.draw(question.upcard, question.hand, question.total, question.soft)
        return "hit" if hit else "stand"

    def hear(self, news: News) -> None:
        """Pass the news on to `exposed`, `hand_over` or `shuffled`."""
        if type(news) is Exposed:
            self.exposed(news.card, news.to)
        elif type(news) is HandOver:
            self.hand_over(news)
        else:
            assert type(news) is Shuffled, "rules B tell nothing else"
            self.shuffled()


class Simple(PlayerStrategy):
    """Bets the minimum and draws by a small table (B12)."""

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        """By the total, whether it is soft, and the up-card (B12)."""
        shown = POINTS[upcard]
        if soft:
            return total <= 17 or (total == 18 and shown not in (2, 7, 8))
        if total == 12:
            return not 4 <= shown <= 6
        if 13 <= total <= 16:
            return not 2 <= shown <= 6
        return total <= 11


class Counting(Simple):
    """Plays like `Simple`, but counts the cards and bets twice the minimum when the deck is rich (B12)."""

    RICH = 2  # from this count on

    def __init__(self) -> None:
        self.count = 0

    def reset(self) -> None:
        """Forget the last match."""
        super().reset()
        self.count = 0

    def shuffled(self) -> None:
        """Count from 0 again."""
        self.count = 0

    def exposed(self, card: Card, to: Side) -> None:
        """Down for ten, jack, queen, king and ace, up for two to six, whoever is dealt it."""
        if card[0] in "TJQKA":
            self.count -= 1
        elif card[0] in "23456":
            self.count += 1

    def bet(self, bankroll: int, minimum: int) -> int:
        """Twice the minimum at +2 or more, if there is as much."""
        doubled = 2 * minimum
        return doubled if self.count >= self.RICH and bankroll >= doubled else minimum


class Competitor(PlayerStrategy):
    """Knows which cards are unseen: bets by what they are worth to it, and draws by expectation.

    Two hands in three are to its disadvantage and cost the minimum all the same, so that from 100 chips two matches of 1000 hands
    in three end broke even at the minimum. What raises the mean is to bet boldly on the third: `BOLD` chips, and from a large
    bankroll the share that is twice its advantage, the most that does not make half of all runs shrink it.
    """

    FRESH_EDGE = -0.0143
    """What a chip on the first hand of a new deck wins on average, played as here and a natural paid in full."""

    REMOVAL = (0, -0.902, 0.33, 0.377, 0.428, 0.543, 0.407, 0.269, 0.101, -0.063, -0.35)
    """By how many per cent that changes when one card is gone, by its points: what small cards leave behind is better."""

    BOLD = 20
    """With 30 the mean is a little higher and 5 matches of 100 more end broke (1500 matches of 1000 hands from 100 chips)."""

    def __init__(self) -> None:
        self.shuffled()

    def reset(self) -> None:
        """Forget the last match."""
        super().reset()
        self.shuffled()

    def shuffled(self) -> None:
        """Every card is unseen again."""
        self._unseen = list(_DECK)
        self._seen_worth = 0.0

    def exposed(self, card: Card, to: Side) -> None:
        """One card fewer."""
        points = POINTS[card]
        self._unseen[points] -= 1
        self._seen_worth += self.REMOVAL[points] / 100

    @property
    def edge(self) -> float:
        """About what a chip on the next hand wins on average; a card gone matters more the fewer are left."""
        return self.FRESH_EDGE + self._seen_worth * 51 / sum(self._unseen)

    def bet(self, bankroll: int, minimum: int) -> int:
        """An even number where it can: a natural pays an odd bet half a chip too little."""
        edge = self.edge
        if edge > 0:
            wanted = max(self.BOLD, 2 * int(edge * bankroll))
        elif edge > -0.0235:  # the chip more loses less than that half chip, 1 in 21
            wanted = minimum + minimum % 2
        else:
            wanted = minimum
        return min(bankroll, wanted)

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        """Whichever of the two wins more chips on average."""
        if not 12 <= total <= 18:
            return total <= 11  # cannot bust; 19 and more are not improved on
        left = sum(self._unseen)
        chances = [count / left for count in self._unseen]
        dealer = _dealers_totals(POINTS[upcard], chances)
        points = total - 10 if soft else total
        return _when_hit(points, soft, chances, dealer) > _when_stood(total, dealer)


def _dealers_totals(shown: int, chances: _Chances) -> list[float]:
    """How likely the dealer comes to each total from an up-card of `shown` points; at 22 stands that it busts."""
    totals = [0.0] * 23
    # How likely the dealer has so many points on its way, aces counting 1, without an ace and with one.
    ways = [[0.0, 0.0] for _ in range(27)]
    ways[shown][shown == 1] = 1.0
    for points, without_and_with in enumerate(ways):
        for has_ace, likely in enumerate(without_and_with):
            total = _count(points, bool(has_ace))
            if total >= 17:
                totals[min(total, 22)] += likely
            elif likely:
                for card in range(1, 11):
                    ways[points + card][has_ace or card == 1] += likely * chances[card]
    return totals


def _when_stood(total: int, dealer: Sequence[float]) -> float:
    """What standing on a total wins on average, in bets."""
    return dealer[22] + sum(dealer[17:total]) - sum(dealer[max(17, total + 1) : 22])


def _when_hit(points: int, has_ace: bool, chances: _Chances, dealer: Sequence[float]) -> float:
    """What hitting wins on average, in bets, and going on as well as one can.

    `points` counts every ace 1.
    """
    # What each hand wins at best, by its points, without an ace and with one; from the highest down.
    best = [(-1.0, -1.0)] * 32
    for higher in range(21, points, -1):
        hits = _hit(higher, False, chances, best), _hit(higher, True, chances, best)
        best[higher] = (
            max(hits[0], _when_stood(_count(higher, False), dealer)),
            max(hits[1], _when_stood(_count(higher, True), dealer)),
        )
    return _hit(points, has_ace, chances, best)


def _hit(
    points: int, has_ace: bool, chances: _Chances, best: Sequence[tuple[float, float]]
) -> float:
    return sum(chances[card] * best[points + card][has_ace or card == 1] for card in range(1, 11))


def _count(points: int, has_ace: bool) -> int:
    """What a hand counts whose points count every ace 1 (B4)."""
    return points + 10 if has_ace and points <= 11 else points
