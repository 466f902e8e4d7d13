"""Gin rummy: the interface for strategies, and the house bots.

A strategy answers by the calls of the classic interface: `receive_initial_hand`, `will_take_top_discard`, `take_turn`, `knock`,
`get_melds`, `opponent_end_turn_feedback`, `opponent_end_round_feedback` and `reset`; and it may hear who wanted an up-card
(`offer_feedback`) and how a game ended (`end_game_feedback`). Every call has a sensible default: plain play.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bots.gin_worth import (
    GIN_SCORES,
    TARGET,
    TOO_MUCH,
    Prospect,
    chances_held,
    keep_worth,
    knock_worth,
    prospect,
)
from bots.strategy import BaseStrategy, RandomMixin
from protocol.cards import PACK, Card, coded
from protocol.gin_melds import Meld, arrange, deadwood, deadwood_value, discard_deadwoods
from protocol.gin_rummy import (
    KNOCK_LIMIT,
    Dealt,
    Draw,
    GameOver,
    Melds,
    Offer,
    Offered,
    RoundOver,
    Turn,
    TurnAnswer,
    TurnTaken,
)
from protocol.vocabulary import News, Question

__all__ = ["Expert", "Patient", "PlayerStrategy", "Random", "Simple"]


class PlayerStrategy(BaseStrategy):
    """One seat of gin rummy; override what you want to play better.

    The base keeps the facts up to date, so that every call may rely on them:

    Attributes:
        hand: the cards held: ten, and in `take_turn` eleven.
        seat: this seat, from 0; known from the first up-card on, which comes before any other call but
            `receive_initial_hand`.
        starter: the seat that started the round.
        top: the top of the discard pile.
        scores: by seat, the points of the game so far.
    """

    game = "gin_rummy"

    def __init__(self) -> None:
        self.reset()

    # ---- The eight calls, and two more

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        """A round begins with these ten cards (G3)."""

    def will_take_top_discard(self, card: Card) -> bool:
        """Whether to take the up-card or the top discard (G5, G6); otherwise pass, or draw from the stock.

        By default only if it goes into a meld.
        """
        return any(card in meld for meld in arrange([*self.hand, card])[0])

    def take_turn(self, drawn: Card) -> Card:
        """Which of the eleven cards of `hand` to discard, after drawing one (G6).

        By default what leaves the least deadwood, and of equals the dearest.
        """
        left = zip(discard_deadwoods(self.hand), self.hand, strict=True)
        return min(left, key=lambda at: (at[0], -deadwood_value(at[1])))[1]

    def knock(self) -> bool:
        """Whether to knock with the ten cards of `hand`; only asked when they leave at most 10 (G7).

        By default always.
        """
        return True

    def get_melds(self) -> tuple[Meld, ...] | None:
        """The melds to declare when somebody has knocked (G9); None, the default, leaves them to the referee."""
        return None

    def opponent_end_turn_feedback(
        self, drew_discard: bool, previous_discard_top: Card, opponent_discarded: Card
    ) -> None:
        """What the other seat did in its turn (G8).

        Args:
            drew_discard: whether it took the top discard rather than from the stock.
            previous_discard_top: the card that it took, or left.
            opponent_discarded: its discard, which is the top now.
        """

    def opponent_end_round_feedback(
        self, opponent_hand: tuple[Card, ...], opponent_melds: tuple[Meld, ...]
    ) -> None:
        """What the other seat held at the end of the round, and what of it was melded (G14)."""

    def reset(self) -> None:
        """Forget the last opponent; call this from your own `reset`."""
        self.hand: list[Card] = []
        self.seat = 0
        self.starter = 0
        self.top: Card = ""
        self.scores = (0, 0)
        self._up_card_heard = False

    def offer_feedback(self, card: Card, took: bool) -> None:
        """Whether the other seat took the up-card that it was offered (G5)."""

    def end_game_feedback(self, won: bool | None) -> None:
        """A game of the match is over; None if it was drawn (G15)."""

    # ---- The wire's questions and news

    def decide(self, question: Question[Any]) -> object:
        """Answer by the calls above."""
        if type(question) is Turn:
            return self._answer_turn(question)
        if type(question) is Draw:
            take = self.will_take_top_discard(question.discard)
            return "discard" if take else "stock"
        if type(question) is Offer:
            if not self._up_card_heard:
                self.seat = self.starter
            return "take" if self.will_take_top_discard(question.upcard) else "pass"
        assert type(question) is Melds, "rules G ask nothing else"
        return self.get_melds()

    def _answer_turn(self, question: Turn) -> TurnAnswer:
        self.hand = list(question.hand)
        discard = coded(self.take_turn(question.drawn))
        if discard in self.hand:  # else it is for the referee to say that it is illegal
            self.hand.remove(discard)
        may_knock = TurnAnswer(discard, True) in question.legal
        knock = may_knock and self.knock()
        return TurnAnswer(discard, knock, self.get_melds() if knock else None)

    def hear(self, news: News) -> None:
        """Keep the facts, and pass the news on to the calls above."""
        if type(news) is TurnTaken:
            left, self.top = self.top, news.discarded
            if news.seat != self.seat:
                drew_discard = news.drew == "discard"
                self.opponent_end_turn_feedback(drew_discard, left, news.discarded)
        elif type(news) is Dealt:
            self.hand = list(news.hand)
            self.starter, self.top = news.starter, news.upcard
            self.seat = 1 - news.starter  # until it turns out to be asked first
            self._up_card_heard = False
            self.receive_initial_hand(news.hand)
        elif type(news) is Offered:
            self._up_card_heard = True
            if news.seat != self.seat:
                self.offer_feedback(self.top, news.took)
        elif type(news) is RoundOver:
            self.scores = news.scores
            other = 1 - self.seat
            self.opponent_end_round_feedback(news.hands[other], news.melds[other])
        else:
            assert type(news) is GameOver, "rules G tell nothing else"
            self.scores = (0, 0)
            won = None if news.winner is None else news.winner == self.seat
            self.end_game_feedback(won)


class Random(RandomMixin, PlayerStrategy):
    """Any legal answer."""


class Simple(PlayerStrategy):
    """Thinks of its deadwood only: takes what lowers it, discards what leaves the least, knocks as soon as it may."""

    def will_take_top_discard(self, card: Card) -> bool:
        """Whether some discard then leaves less deadwood than now."""
        return min(discard_deadwoods([*self.hand, card])) < deadwood(self.hand)


class Patient(PlayerStrategy):
    """Plays for gin: takes only what goes into a meld, and never knocks with any deadwood."""

    def knock(self) -> bool:
        """Only with gin."""
        return deadwood(self.hand) == 0


class Expert(PlayerStrategy):
    """Weighs discards by what melds they could still make and what the other seat showed it wants.

    It takes only what goes into a meld; the prices are in `bots/gin_worth.py`.
    """

    def reset(self) -> None:
        """Forget the last opponent, and what it took."""
        super().reset()
        self._begin([])

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        """A round begins: only the up-card is out."""
        self._begin([self.top])

    def opponent_end_turn_feedback(
        self, drew_discard: bool, previous_discard_top: Card, opponent_discarded: Card
    ) -> None:
        """Remember what it took, as long as it keeps it, and what it threw."""
        if drew_discard:
            self._taken.add(previous_discard_top)
            self._out.discard(previous_discard_top)
            self._takes += 1
        self._taken.discard(opponent_discarded)
        self._out.add(opponent_discarded)

    def take_turn(self, drawn: Card) -> Card:
        """The discard with the best price, whether it plays on or knocks with what is left."""
        gone = {*self.hand, *self._out, *self._taken}
        unseen = [card for card in PACK if card not in gone]
        held = chances_held(unseen, len(self._taken), self._turn)
        deadwoods = discard_deadwoods(self.hand)
        bound = min(deadwoods) + TOO_MUCH
        worths = [
            (*self._worth(prospect(self.hand, card, held, self._taken)), card)
            for card, left in zip(self.hand, deadwoods, strict=True)
            if left <= bound
        ]
        _, self._knocks, discard = max(worths, key=lambda priced: priced[0])
        self._out.add(discard)
        self._turn += 1
        return discard

    def knock(self) -> bool:
        """Whether that was worth more than playing on."""
        return self._knocks

    def _worth(self, left: Prospect) -> tuple[float, bool]:
        """The price of a discard, and whether that is for knocking."""
        mine, theirs = self.scores[self.seat], self.scores[1 - self.seat]
        gin_wins = mine + GIN_SCORES >= TARGET
        worth = keep_worth(left, self._turn, len(self._taken), gin_wins)
        if left.deadwood * 10 > KNOCK_LIMIT:
            return worth, False
        knocked = knock_worth(
            left.deadwood, self._turn, len(self._taken), self._takes, (mine, theirs)
        )
        return max(worth, knocked), knocked > worth or left.deadwood == 0

    def _begin(self, out: Iterable[Card]) -> None:
        self._out = set(out)
        self._taken: set[Card] = set()
        self._takes = self._turn = 0
        self._knocks = False
