"""Ace-King-Queen (rulebook, section A)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from arena.games.evaluator import Evaluated
from arena.games.rules import (
    EVERYONE,
    AskSeat,
    Choice,
    Game,
    Rules,
    Scoreboard,
    TellSeat,
    Trial,
    Unit,
)
from arena.games.shuffle import Stream
from protocol.ace_king_queen import (
    CARDS,
    VOCABULARY,
    AceKingQueenSettings,
    Card,
    HandOver,
    Open,
    Opening,
    Respond,
    Response,
)
from protocol.cards import check_cards

__all__ = ["GAME", "match"]

ANTE = BET = 1
RANK = {card: rank for rank, card in enumerate(CARDS)}  # 0 is the highest (A1)

Deck = Sequence[Card]
"""The first card goes to seat 0, the second to seat 1 (A1)."""


def match(settings: AceKingQueenSettings, decks: Iterator[Deck], board: Scoreboard) -> Rules:
    """Play `hands` hands (A3–A7); the players swap roles after every hand (A2, A8)."""
    scores = board.scores
    for round_number in range(1, settings.hands + 1):
        bettor = (round_number - 1) % 2
        caller = 1 - bettor
        deck = next(decks)

        opening: Opening = yield AskSeat(bettor, Open(round_number, deck[bettor]))
        response: Response | None = None
        if opening == "bet":
            response = yield AskSeat(caller, Respond(round_number, deck[caller]))

        winner = 0 if RANK[deck[0]] < RANK[deck[1]] else 1
        stake = ANTE
        if response == "fold":
            winner = bettor
        elif response == "call":
            stake += BET
        payoffs = (stake, -stake) if winner == 0 else (-stake, stake)
        scores[winner] += stake
        scores[1 - winner] -= stake
        over = HandOver(
            round_number,
            bettor,
            (deck[0], deck[1]),
            opening,
            response,
            payoffs,
            (scores[0], scores[1]),
        )
        yield TellSeat(EVERYONE, over)


def deals(settings: AceKingQueenSettings, stream: Stream) -> Iterator[Deck]:
    """One shuffle of the three cards per hand."""
    while True:
        yield stream.shuffled(CARDS)


def stacked(settings: AceKingQueenSettings, decks: Iterable[Sequence[str]]) -> Iterator[Deck]:
    """Given decks, two or three of A K Q each; raises `BadDeck` if one is invalid."""
    for deck in decks:
        check_cards(deck, CARDS, at_least=2)
        yield cast(Deck, tuple(deck))


_EVALUATOR = Evaluated(f"{__package__}.evaluator:AceKingQueenEvaluator", f"{__package__}.analysis")

GAME = Game(
    vocabulary=VOCABULARY,
    about="Three cards, one bet: when to bluff?",
    summary="Both ante 1 and get one of three cards: ace beats king, king beats queen. One seat "
    "bets 1 more or checks; after a bet the other calls 1 or folds. The higher card takes the pot.",
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: 1.5 * settings.hands,
    rounds=lambda most: {"hands": most},
    choices=(Choice("hands", "Hands", 1, 1000),),
    demo=Trial({"hands": 1000}),
    bench=Trial({"hands": 20_000}),
    unit=Unit("hand", "hands", HandOver, lambda news: news.payoffs, block=50),
    splits_by="hands",
    meets_itself=True,
    luck=_EVALUATOR.luck("chip"),
    analysing=_EVALUATOR.analysing(version=1),
    judging=_EVALUATOR.judging(version=1),
    habits=_EVALUATOR.habits,
    view="view.js",
)
