"""Gin rummy: the interface for strategies, and the house bots.

A strategy has the methods of the classic interface: `receive_initial_hand`,
`will_take_top_discard`, `take_turn`, `knock`, `get_melds`, `opponent_end_turn_feedback`,
`opponent_end_round_feedback` and `reset`. Two more tell who wanted an up-card (`offer_feedback`)
and how a game ended (`end_game_feedback`). Every method has a default, which plays plainly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from bots.gin_master import Mind
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
from bots.strategy import BaseStrategy, RandomMixin, yes_or_no
from protocol.cards import PACK, Card
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
from protocol.strategy import Appraisal, as_sent
from protocol.vocabulary import News, Question

__all__ = ["Expert", "Master", "Patient", "PlayerStrategy", "Random", "Simple"]


class PlayerStrategy(BaseStrategy):
    """One seat of gin rummy; override what you want to play better.

    The base class keeps these attributes up to date, so that every method can use them:

    Attributes:
        hand: your cards: ten, and eleven in `take_turn`.
        seat: your seat, from 0. It is known in every method but `receive_initial_hand`.
        starter: the seat that starts the round.
        top: the top card of the discard pile.
        scores: by seat, the points in the game so far.
    """

    game = "gin_rummy"

    def __init__(self) -> None:
        self.reset()

    # ---- The eight methods of the classic interface, and two more

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        """Called when a round begins, with your ten cards (G3)."""

    def will_take_top_discard(self, card: Card) -> bool:
        """Whether to take the up-card or the top discard (G5, G6).

        Otherwise pass, or draw from the stock. By default only if it goes into a meld.
        """
        return any(card in meld for meld in arrange([*self.hand, card])[0])

    def take_turn(self, drawn: Card) -> Card:
        """Which of the eleven cards in `hand` to discard (G6).

        By default the card that leaves the least deadwood, and of those the one with most points.
        """
        left = zip(discard_deadwoods(self.hand), self.hand, strict=True)
        return min(left, key=lambda at: (at[0], -deadwood_value(at[1])))[1]

    def knock(self) -> bool:
        """Whether to knock with the ten cards in `hand` (G7). By default always.

        Only called when their deadwood is at most 10.
        """
        return True

    def get_melds(self) -> tuple[Meld, ...] | None:
        """The melds to declare after a knock (G9).

        None, the default, lets the referee find the best ones.
        """
        return None

    def opponent_end_turn_feedback(
        self, drew_discard: bool, previous_discard_top: Card, opponent_discarded: Card
    ) -> None:
        """Called after every turn of the other seat (G8).

        Args:
            drew_discard: whether it took the top discard, and not a card from the stock.
            previous_discard_top: the discard that it took or left.
            opponent_discarded: its own discard, which is the top now.
        """

    def opponent_end_round_feedback(
        self, opponent_hand: tuple[Card, ...], opponent_melds: tuple[Meld, ...]
    ) -> None:
        """Called at the end of a round, with the other seat's cards and melds (G14)."""

    def reset(self) -> None:
        """Forget the last opponent; call this from your own `reset`."""
        self.hand: list[Card] = []
        self.seat = 0
        self.starter = 0
        self.top: Card = ""
        self.scores = (0, 0)
        self._up_card_heard = False

    def offer_feedback(self, card: Card, took: bool) -> None:
        """Called when the other seat has taken or passed the up-card (G5)."""

    def end_game_feedback(self, won: bool | None) -> None:
        """Called when a game of the match is over; `won` is None if it was drawn (G15)."""

    # ---- The wire's questions and news

    def decide(self, question: Question[Any]) -> object:
        """Answer with the methods above."""
        if type(question) is Turn:
            return self._answer_turn(question)
        if type(question) is Draw:
            return "discard" if self._wants(question.discard) else "stock"
        if type(question) is Offer:
            self._find_seat()
            return "take" if self._wants(question.upcard) else "pass"
        assert type(question) is Melds, "rules G ask nothing else"
        return self.get_melds()

    def _find_seat(self) -> None:
        """The seat that is offered the up-card first is the starter (G5)."""
        if not self._up_card_heard:
            self.seat = self.starter

    def _wants(self, card: Card) -> bool:
        return yes_or_no("will_take_top_discard", self.will_take_top_discard(card), self)

    def _answer_turn(self, question: Turn) -> TurnAnswer:
        self.hand = list(question.hand)
        discard = as_sent(self.take_turn(question.drawn))
        if discard in self.hand:  # otherwise the referee says that it is illegal
            self.hand.remove(discard)
        may_knock = TurnAnswer(discard, True) in question.legal
        knock = may_knock and yes_or_no("knock", self.knock(), self)
        return TurnAnswer(discard, knock, self.get_melds() if knock else None)

    def hear(self, news: News) -> None:
        """Update the attributes, and pass the news on to the methods above."""
        if type(news) is TurnTaken:
            left, self.top = self.top, news.discarded
            if news.seat != self.seat:
                drew_discard = news.drew == "discard"
                self.opponent_end_turn_feedback(drew_discard, left, news.discarded)
        elif type(news) is Dealt:
            self.hand = list(news.hand)
            self.starter, self.top = news.starter, news.upcard
            self.seat = 1 - news.starter  # corrected in `decide` if this seat is asked first
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
    """Gives random legal answers."""


class Simple(PlayerStrategy):
    """Lowers its deadwood with every card, and knocks as soon as it may."""

    def will_take_top_discard(self, card: Card) -> bool:
        """Take it if that lowers the deadwood."""
        return min(discard_deadwoods([*self.hand, card])) < deadwood(self.hand)


class Patient(PlayerStrategy):
    """Plays for gin: takes only cards that go into a meld, and never knocks with deadwood."""

    def knock(self) -> bool:
        """Knock only with gin."""
        return deadwood(self.hand) == 0


class Expert(PlayerStrategy):
    """Weighs discards by the melds that are still possible, and by what the other seat wants.

    It takes only cards that go into a meld. The weights are in `bots/gin_worth.py`.
    """

    def reset(self) -> None:
        """Forget the last opponent, and the cards that it took."""
        super().reset()
        self._begin([])

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        """Start a round, in which only the up-card is out."""
        self._begin([self.top])

    def opponent_end_turn_feedback(
        self, drew_discard: bool, previous_discard_top: Card, opponent_discarded: Card
    ) -> None:
        """Remember the discards, and the taken cards as long as they stay in the other hand."""
        if drew_discard:
            self._taken.add(previous_discard_top)
            self._out.discard(previous_discard_top)
            self._takes += 1
        self._taken.discard(opponent_discarded)
        self._out.add(opponent_discarded)

    def take_turn(self, drawn: Card) -> Card:
        """Discard the card that is worth most to discard, for playing on or for knocking."""
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
        """Knock if that is worth more than playing on."""
        return self._knocks

    def _worth(self, left: Prospect) -> tuple[float, bool]:
        """The value of a discard, and whether to knock with it."""
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


class Master(PlayerStrategy):
    """Plays its choices out against what the other seat may have, and learns who that is.

    It thinks long. Its inference and its playouts are in `bots/gin_master.py`.
    """

    is_slow: ClassVar[bool] = True

    def reset(self) -> None:
        """Forget the last opponent."""
        super().reset()
        self._mind = Mind(self.random)

    def decide(self, question: Question[Any]) -> object:
        """Answer with what wins most."""
        if type(question) is Melds:
            return None
        if type(question) is Offer:
            self._find_seat()
        return self._mind.choose(question, self._own_scores())

    def hear(self, news: News) -> None:
        """Update the attributes, and what is known of the other seat."""
        super().hear(news)
        self._mind.hear(news, self.seat)

    def appraise(self, question: Question[Any], answer: Any = None, *, samples: int) -> Appraisal:
        """What the answers are worth by more playouts; a declaration counts as the best one."""
        if type(question) is Melds:
            return Appraisal((answer,), ((0.0,) * samples,))
        if type(question) is Offer:
            self._find_seat()
        return self._mind.appraise(question, answer, self._own_scores(), samples)

    def recall(self, question: Question[Any], answer: Any) -> None:
        """Note that a question was answered: what the answer was, the news tell."""
        if type(question) is Offer:
            self._find_seat()
        if type(question) is not Melds:
            self._mind.recall(question)

    def _own_scores(self) -> tuple[int, int]:
        return self.scores[self.seat], self.scores[1 - self.seat]
