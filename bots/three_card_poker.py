"""Three card poker: the interface for strategies, and the house bots.

A strategy names an `ante` and decides whether to `play` its hand. It may learn from `round_over`
(rules T).
"""

from __future__ import annotations

from typing import Any

from bots.strategy import BaseStrategy, yes_or_no
from protocol.errors import UsageError
from protocol.three_card_poker import Ante, Hand, Play, RoundOver, strength
from protocol.vocabulary import News, Question

__all__ = ["Q64", "Always", "Doubler", "PlayerStrategy", "Random"]

_QUEEN_SIX_FOUR = strength(("Qs", "6h", "4d"))


class PlayerStrategy(BaseStrategy):
    """The player's seat; override `ante` and `play`, and `round_over` to learn."""

    game = "three_card_poker"

    def ante(self, cash: int, most: int) -> int:
        """How much to ante, 1 to `most`, before any card is seen (T5)."""
        return 1

    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        """Whether to play for one more ante (T5); otherwise fold.

        Args:
            hand: the three cards.
            ante: the ante of this round.
            cash: the cash before the ante.
        """
        return True

    def round_over(self, hand: Hand, dealer: Hand, ante: int, outcome: int, cash: int) -> None:
        """Called after every round, with what happened in it (T7).

        Args:
            hand: this seat's cards.
            dealer: the dealer's cards, after a fold too.
            ante: the ante of the round.
            outcome: the result in antes: -2, -1, 0, 1 or 2 (T6).
            cash: the cash now.
        """

    def decide(self, question: Question[Any]) -> object:
        """Answer with `ante` or `play`."""
        if type(question) is Ante:
            return self.ante(question.cash, question.legal.max)
        assert type(question) is Play, "rules T ask nothing else"
        plays = self.play(question.hand, question.ante, question.cash)
        return "play" if yes_or_no("play", plays, self) else "fold"

    def hear(self, news: News) -> None:
        """Pass the news on to `round_over`."""
        assert type(news) is RoundOver, "rules T tell nothing else"
        self.round_over(news.hand, news.dealer, news.ante, news.outcome, news.cash)


class _FixedAnte(PlayerStrategy):
    """Antes the same in every round, or as much as the cash allows."""

    def __init__(self, ante: int = 10) -> None:
        if ante < 1:
            raise UsageError(f"expected an ante of at least 1, got {ante}")
        self.base_ante = ante

    def ante(self, cash: int, most: int) -> int:
        """Ante the same every time, as far as the cash allows."""
        return min(self.base_ante, most)


class Random(_FixedAnte):
    """Plays or folds without looking at its hand.

    It loses 56 % of an ante in a round, so that only a few large antes ever reach a league's goal.
    """

    def __init__(self, ante: int = 50) -> None:
        super().__init__(ante)

    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        """Play one time in two."""
        return self.random.random() < 1 / 2


class Always(_FixedAnte):
    """Plays every hand."""


class Q64(_FixedAnte):
    """Plays queen-six-four or better, since worse hands lose more than the ante on average."""

    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        """Play every hand from Q-6-4 upwards."""
        return strength(hand) >= _QUEEN_SIX_FOUR


class Doubler(Q64):
    """Plays like `Q64`, and doubles its ante after every loss until it wins (the martingale)."""

    def __init__(self, ante: int = 10) -> None:
        super().__init__(ante)
        self._next_ante = ante

    def ante(self, cash: int, most: int) -> int:
        """Ante the base after a win, and twice the last ante after a loss, if the cash allows."""
        return min(self._next_ante, most)

    def round_over(self, hand: Hand, dealer: Hand, ante: int, outcome: int, cash: int) -> None:
        """Double after a loss, start again after a win; a tie changes nothing."""
        if outcome < 0:
            self._next_ante = 2 * ante
        elif outcome > 0:
            self._next_ante = self.base_ante

    def reset(self) -> None:
        """Start a new match with the base ante."""
        super().reset()
        self._next_ante = self.base_ante
