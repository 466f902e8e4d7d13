"""How lucky a round of three card poker is, exactly: the player's hand, then the dealer's.

The player's hand is worth what the better of playing and folding brings on average over all hands
that the dealer may have. The dealer's hand is then worth what it pays for the answer that was
given. All is counted in antes, as a bot may make its ante depend on its cash and a match may end
broke. Without luck a round brings the value of the game less what the answer gave away.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cache
from itertools import combinations

from arena.games.rules import LuckMeter, LuckRound, TellSeat
from protocol.cards import PACK, Card
from protocol.three_card_poker import (
    FOLDED,
    Hand,
    RoundOver,
    Strength,
    ThreeCardPokerSettings,
    dealer_qualifies,
    strength,
)

__all__ = [
    "BEST_PLAY",
    "DEALERS_HANDS",
    "HANDS",
    "PlayValues",
    "ThreeCardPokerLuckMeter",
    "play_values",
]

DEALERS_HANDS = 18_424
"""How many hands the dealer may have, given the player's: 49 cards, 3 of them."""
HANDS = 22_100
"""How many hands the player may have."""

BEST_PLAY = -35_253_012 / (HANDS * DEALERS_HANDS)
"""What a round brings on average who plays best, in antes; `pair_kicker` does not change it, as
all pairs are played."""


class PlayValues:
    """What playing a hand brings on average, by inclusion and exclusion over its three cards.

    It has the strengths of all hands in order, and of those with each card and each two cards: what
    the dealer can have are all hands, without those that have a card of the player's.
    """

    def __init__(self, pair_kicker: bool) -> None:
        self._pair_kicker = pair_kicker
        ranked = sorted((strength(hand, pair_kicker), hand) for hand in combinations(PACK, 3))
        self._all: list[Strength] = []
        self._with_card: dict[Card, list[Strength]] = defaultdict(list)
        self._with_two: dict[tuple[Card, Card], list[Strength]] = defaultdict(list)
        for worth, (a, b, c) in ranked:  # cards in the order of the pack
            self._all.append(worth)
            for card in a, b, c:
                self._with_card[card].append(worth)
            for two in (a, b), (a, c), (b, c):
                self._with_two[two].append(worth)
        self._least = next(worth for worth, hand in ranked if dealer_qualifies(hand))

    def total(self, hand: Hand) -> int:
        """What playing it brings, in antes, added up over the 18,424 hands of the dealer (T6)."""
        worth = strength(hand, self._pair_kicker)
        a, b, c = sorted(hand, key=_PLACE.__getitem__)
        own = 0 if worth >= self._least else 1
        return (
            self._paid(self._all, worth)
            - sum(self._paid(self._with_card[card], worth) for card in hand)
            + sum(self._paid(self._with_two[two], worth) for two in ((a, b), (a, c), (b, c)))
            - own
        )

    def mean(self, hand: Hand) -> float:
        """What playing it brings on average, in antes."""
        return self.total(hand) / DEALERS_HANDS

    def _paid(self, dealers: list[Strength], worth: Strength) -> int:
        """What a hand of this strength is paid in sum against these, which are in order."""
        below = bisect_left(dealers, self._least)
        beaten = max(below, bisect_left(dealers, worth))
        better = len(dealers) - max(below, bisect_right(dealers, worth))
        return below + 2 * (beaten - below) - 2 * better


_PLACE = {card: place for place, card in enumerate(PACK)}

play_values = cache(PlayValues)
"""The values by `pair_kicker`, made at the first use."""


class ThreeCardPokerLuckMeter(LuckMeter):
    """Adds up a match, a round at a time, in antes."""

    def __init__(self, settings: ThreeCardPokerSettings) -> None:
        self.rounds: list[LuckRound] = []
        self._values = play_values(settings.pair_kicker)

    def told(self, told: TellSeat) -> None:
        news = told.news
        assert type(news) is RoundOver, "rules T tell nothing else"
        played = self._values.mean(news.hand)
        # Only a fold costs one ante (T6).
        answer = FOLDED if news.outcome == FOLDED else played
        of_hand = max(played, FOLDED) - BEST_PLAY
        self.rounds.append(LuckRound((news.outcome,), (of_hand + news.outcome - answer,)))
