"""Three card poker (rulebook, section T)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from arena.engine.rules import Game, Rules, Scoreboard, TellSeat, ask, next_deal
from arena.engine.shuffle import Stream
from protocol.cards import PACK, Card, check_cards
from protocol.three_card_poker import (
    FOLDED,
    LEAST_CASH,
    VOCABULARY,
    Ante,
    Hand,
    Play,
    RoundOver,
    ThreeCardPokerSettings,
    outcome_of_play,
)
from protocol.vocabulary import Range

__all__ = ["GAME", "match", "play_round"]

PLAYER = 0
DEALT = 6

Deck = Sequence[Card]
"""The first three cards go to the player, the next three to the dealer (T1)."""


def match(settings: ThreeCardPokerSettings, decks: Iterator[Deck], board: Scoreboard) -> Rules:
    """A match: rounds until they are used up, the player is broke or at its goal (T8)."""
    goal = settings.goal
    for round_number in range(1, settings.rounds + 1):
        cash = settings.stake + board.scores[PLAYER]
        if cash < LEAST_CASH or (goal is not None and cash >= goal):
            return
        yield from play_round(round_number, cash, next_deal(decks), settings, board)


def play_round(
    round_number: int, cash: int, deck: Deck, settings: ThreeCardPokerSettings, board: Scoreboard
) -> Rules:
    """One round: the ante, the decision, the dealer's hand (T5–T7)."""
    hand: Hand = (deck[0], deck[1], deck[2])
    dealer: Hand = (deck[3], deck[4], deck[5])

    ante = yield from ask(PLAYER, Ante(round_number, cash, Range(1, cash // 2)))
    decision = yield from ask(PLAYER, Play(hand, ante, cash))

    outcome = FOLDED if decision == "fold" else outcome_of_play(hand, dealer, settings.pair_kicker)
    board.scores[PLAYER] += outcome * ante
    cash += outcome * ante
    yield TellSeat(PLAYER, RoundOver(hand, dealer, ante, outcome, cash))


def deals(settings: ThreeCardPokerSettings, stream: Stream) -> Iterator[Deck]:
    """The six cards of every round, from a whole pack each time."""
    while True:
        yield stream.dealt(PACK, DEALT)


def stacked(settings: ThreeCardPokerSettings, decks: Iterable[Sequence[str]]) -> Iterator[Deck]:
    """Given decks of six cards or more; raises `BadDeck` if one is invalid."""
    for deck in decks:
        check_cards(deck, at_least=DEALT)
        yield tuple(deck)


GAME = Game(
    vocabulary=VOCABULARY,
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: 1.5 * settings.rounds,
    stake=lambda settings: int(settings.stake),
)
