"""Ace-King-Queen (rulebook, section A)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from arena.engine.rules import EVERYONE, Game, Rules, Scoreboard, TellSeat, ask, next_deal
from arena.engine.shuffle import Stream
from protocol.ace_king_queen import (
    CARDS,
    VOCABULARY,
    AceKingQueenSettings,
    Card,
    HandOver,
    Open,
    Respond,
    Response,
)
from protocol.cards import check_cards

__all__ = ["GAME", "higher", "match", "payoffs"]

ANTE = BET = 1

Deck = Sequence[Card]
"""The first card goes to seat 0, the second to seat 1 (A1)."""


def match(settings: AceKingQueenSettings, decks: Iterator[Deck], board: Scoreboard) -> Rules:
    """Play `hands` hands; the players swap roles after every hand (A2, A8)."""
    for round_number in range(1, settings.hands + 1):
        bettor = (round_number - 1) % 2
        yield from hand(round_number, bettor, next_deal(decks), board)


def hand(round_number: int, bettor: int, deck: Deck, board: Scoreboard) -> Rules:
    """One hand (A3–A7)."""
    caller = 1 - bettor
    response: Response | None = None

    opening = yield from ask(bettor, Open(round_number, deck[bettor]))
    if opening == "bet":
        response = yield from ask(caller, Respond(round_number, deck[caller]))

    if response == "fold":
        paid = payoffs(winner=bettor, stake=ANTE)
    else:
        paid = payoffs(higher(deck), stake=ANTE + BET if response else ANTE)
    board.scores[0] += paid[0]
    board.scores[1] += paid[1]
    cards, scores = (deck[0], deck[1]), (board.scores[0], board.scores[1])
    over = HandOver(round_number, bettor, cards, opening, response, paid, scores)
    yield TellSeat(EVERYONE, over)


def higher(deck: Deck) -> int:
    """The seat that holds the higher card (A1)."""
    return 0 if CARDS.index(deck[0]) < CARDS.index(deck[1]) else 1


def payoffs(winner: int, stake: int) -> tuple[int, int]:
    """What each seat nets when the winner takes the other's `stake` (A5)."""
    return (stake, -stake) if winner == 0 else (-stake, stake)


def deals(settings: AceKingQueenSettings, stream: Stream) -> Iterator[Deck]:
    """One shuffle of the three cards per hand."""
    while True:
        yield stream.shuffled(CARDS)


def stacked(settings: AceKingQueenSettings, decks: Iterable[Sequence[str]]) -> Iterator[Deck]:
    """Given decks, two or three of A K Q each; raises `BadDeck` if one is invalid."""
    for deck in decks:
        check_cards(deck, CARDS, at_least=2)
        yield cast(Deck, tuple(deck))


GAME = Game(
    vocabulary=VOCABULARY,
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: 1.5 * settings.hands,
)
