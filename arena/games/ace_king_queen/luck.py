"""How lucky a deal of Ace-King-Queen is: what it is worth when both play the equilibrium.

Only the deal is chance. Its luck is the value of the two cards to the betting player, less that of
the game. What a bot does with its cards is not looked at, so bots may adapt as they like.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import permutations

from arena.games.rules import LuckMeter, LuckRound, TellSeat
from protocol.ace_king_queen import CARDS, AceKingQueenSettings, Card, HandOver

__all__ = ["BETS", "CALLS", "GAME_VALUE", "AceKingQueenLuckMeter", "deal_luck", "deal_value"]

BETS: Mapping[Card, Fraction] = {"A": Fraction(1), "K": Fraction(0), "Q": Fraction(1, 3)}
"""The chance to bet with each card in equilibrium."""
CALLS: Mapping[Card, Fraction] = {"A": Fraction(1), "K": Fraction(1, 3), "Q": Fraction(0)}
"""The chance to call with each card in equilibrium."""


def deal_value(bettor: Card, caller: Card) -> Fraction:
    """What these cards bring the betting player in equilibrium, in chips (A5)."""
    shown = 1 if CARDS.index(bettor) < CARDS.index(caller) else -1
    called = CALLS[caller]
    after_bet = called * 2 * shown + (1 - called)
    return BETS[bettor] * after_bet + (1 - BETS[bettor]) * shown


_DEALS: tuple[tuple[Card, Card], ...] = tuple(permutations(CARDS, 2))

GAME_VALUE = sum((deal_value(*cards) for cards in _DEALS), Fraction()) / len(_DEALS)
"""What a hand brings the betting player in equilibrium, in chips: 1/18."""


def deal_luck(cards: tuple[Card, Card], bettor: int) -> tuple[Fraction, Fraction]:
    """By seat, how much better than the average deal these cards are, in chips."""
    luck = deal_value(cards[bettor], cards[1 - bettor]) - GAME_VALUE
    return (luck, -luck) if bettor == 0 else (-luck, luck)


_LUCK = {
    (cards, bettor): tuple(float(luck) for luck in deal_luck(cards, bettor))
    for cards in _DEALS
    for bettor in (0, 1)
}


class AceKingQueenLuckMeter(LuckMeter):
    """Adds up a match, a hand at a time."""

    def __init__(self, settings: AceKingQueenSettings) -> None:
        self.rounds: list[LuckRound] = []

    def told(self, told: TellSeat) -> None:
        news = told.news
        assert type(news) is HandOver, "rules A tell nothing else"
        self.rounds.append(LuckRound(news.payoffs, _LUCK[news.cards, news.bettor]))
