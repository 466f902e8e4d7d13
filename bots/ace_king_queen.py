"""Ace-King-Queen: the interface for strategies, and the house bots.

A strategy answers two questions, `bet` and `call`. It may learn from `feedback` after every hand
(rules A).
"""

from __future__ import annotations

from typing import Any

from bots.strategy import BaseStrategy, RandomMixin, yes_or_no
from protocol.ace_king_queen import Card, HandOver, Open, Opening, Respond, Response
from protocol.vocabulary import News, Question

__all__ = ["Bluffer", "Honest", "Learner", "Nash", "PlayerStrategy", "Random"]


class PlayerStrategy(BaseStrategy):
    """One seat of Ace-King-Queen; override `bet` and `call`, and `feedback` to learn."""

    game = "ace_king_queen"

    _opened = 0  # the last round in which this seat was asked to open

    def bet(self, card: Card) -> bool:
        """Whether to bet 1 with this card (A3); otherwise check."""
        return card == "A"

    def call(self, card: Card) -> bool:
        """Whether to call the other seat's bet with this card (A4); otherwise fold."""
        return card == "A"

    def feedback(
        self, mine: Card, other: Card, opened: Opening, response: Response | None, bettor: bool
    ) -> None:
        """Called after every hand, with what happened in it (A6).

        Args:
            mine: this seat's card.
            other: the other seat's card.
            opened: what the betting player did.
            response: what the calling player did; None after a check.
            bettor: whether this seat was the betting player.
        """

    def decide(self, question: Question[Any]) -> object:
        """Answer with `bet` or `call`."""
        if type(question) is Open:
            self._opened = question.round
            return "bet" if yes_or_no("bet", self.bet(question.card), self) else "check"
        assert type(question) is Respond, "rules A ask nothing else"
        return "call" if yes_or_no("call", self.call(question.card), self) else "fold"

    def hear(self, news: News) -> None:
        """Pass the news on to `feedback`, from this seat's point of view."""
        assert type(news) is HandOver, "rules A tell nothing else"
        bettor = self._opened == news.round
        seat = news.bettor if bettor else 1 - news.bettor
        self.feedback(news.cards[seat], news.cards[1 - seat], news.open, news.response, bettor)

    def reset(self) -> None:
        """Forget the last opponent; call this from your own `reset`."""
        self._opened = 0


class Random(RandomMixin, PlayerStrategy):
    """Gives random legal answers."""


class Honest(PlayerStrategy):
    """Bets and calls only with the ace."""


class Bluffer(PlayerStrategy):
    """Bets every queen as if it were an ace, and calls with every king."""

    def bet(self, card: Card) -> bool:
        """Bet all but the king, which wins often enough without a bet."""
        return card != "K"

    def call(self, card: Card) -> bool:
        """Call with every card that can win."""
        return card != "Q"


class Nash(PlayerStrategy):
    """Plays the equilibrium: bets a queen, and calls with a king, one time in three."""

    def bet(self, card: Card) -> bool:
        """Bet the ace always, and the queen one time in three."""
        return card == "A" or (card == "Q" and self.random.random() < 1 / 3)

    def call(self, card: Card) -> bool:
        """Call with the ace always, and with the king one time in three."""
        return card == "A" or (card == "K" and self.random.random() < 1 / 3)


class Learner(PlayerStrategy):
    """Counts what the other seat does with each card, and plays what pays best against that.

    With a queen, every king that calls makes a bet worth 3/2 chips less: a bet pays while kings
    call less than one time in three. With a king, a call wins 4 chips more against a queen than
    against an ace, and costs 1 chip more than folding: it pays when queens bet more than a third as
    often as aces. It starts with the equilibrium's thirds.
    """

    PRIOR = 6  # imagined hands at the start; few, so that real hands soon outweigh them

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the last opponent."""
        super().reset()
        self._queen = _Habit(seen=self.PRIOR, done=self.PRIOR / 3)
        self._ace = _Habit(seen=self.PRIOR, done=self.PRIOR)
        self._king_called = _Habit(seen=self.PRIOR, done=self.PRIOR / 3)

    def bet(self, card: Card) -> bool:
        """Bet the ace always, and the queen while the other seat's kings fold often enough."""
        return card == "A" or (card == "Q" and self._king_called.share < self._third())

    def call(self, card: Card) -> bool:
        """Call with the ace always, and with the king if enough of the bets are queens."""
        bluffs = self._queen.share / self._ace.share
        return card == "A" or (card == "K" and bluffs > self._third())

    def feedback(
        self, mine: Card, other: Card, opened: Opening, response: Response | None, bettor: bool
    ) -> None:
        """Count what the other seat did with its card."""
        if not bettor and other == "Q":
            self._queen.note(opened == "bet")
        elif not bettor and other == "A":
            self._ace.note(opened == "bet")
        elif bettor and response is not None and other == "K":
            self._king_called.note(response == "call")

    def _third(self) -> float:
        # Blurred, so that against the equilibrium it mixes its answers as the equilibrium does.
        return 1 / 3 + self.random.uniform(-0.05, 0.05)


class _Habit:
    """How often a player does something when it can."""

    def __init__(self, seen: float, done: float) -> None:
        self._seen, self._done = seen, done

    def note(self, done: bool) -> None:
        self._seen += 1
        self._done += done

    @property
    def share(self) -> float:
        return self._done / self._seen
