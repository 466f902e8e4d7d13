"""Three card poker (rulebook, section T)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from arena.games.evaluator import Evaluated
from arena.games.rules import (
    AskSeat,
    Choice,
    Game,
    Measure,
    Purse,
    Rules,
    Scoreboard,
    TellSeat,
    Trial,
    Variation,
)
from arena.games.shuffle import Stream
from protocol.cards import PACK, Card, check_cards
from protocol.three_card_poker import (
    FOLDED,
    LEAST_CASH,
    VOCABULARY,
    Ante,
    Decision,
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
    """Play rounds until they are used up, the player is broke or at its goal (T8)."""
    goal = settings.goal
    for round_number in range(1, settings.rounds + 1):
        cash = settings.stake + board.scores[PLAYER]
        if cash < LEAST_CASH or (goal is not None and cash >= goal):
            return
        yield from play_round(round_number, cash, next(decks), settings, board)


def play_round(
    round_number: int, cash: int, deck: Deck, settings: ThreeCardPokerSettings, board: Scoreboard
) -> Rules:
    """Play one round: the ante, the decision, the dealer's hand (T5–T7)."""
    hand: Hand = (deck[0], deck[1], deck[2])
    dealer: Hand = (deck[3], deck[4], deck[5])

    ante: int = yield AskSeat(PLAYER, Ante(round_number, cash, Range(1, cash // 2)))
    decision: Decision = yield AskSeat(PLAYER, Play(hand, ante, cash))

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


def reached_goal(settings: ThreeCardPokerSettings, score: int) -> float:
    """1 if a match reached its goal, else 0; if none is set, the goal is twice the stake (K3)."""
    goal, stake = settings.goal, settings.stake
    return float(stake + score >= (2 * stake if goal is None else goal))


def league_goal(stake: int) -> int:
    """The goal of a league that sets none: an eighth more than the stake (K3).

    With the house bots' antes this goal distinguishes how hands are played and how chips are bet.
    Twice the stake does not: its probability is 0.0003 with an ante of 10 and the best play. All
    figures are computed by `python -m tests.tools.league_odds`.
    """
    return stake + max(1, stake // 8)


_EVALUATOR = Evaluated(
    f"{__package__}.evaluator:ThreeCardPokerEvaluator", f"{__package__}.analysis"
)


def _unplayable(settings: ThreeCardPokerSettings) -> str | None:
    if settings.stake < LEAST_CASH:
        return f"with a stake of {settings.stake} no round can be played"
    return None


GAME = Game(
    vocabulary=VOCABULARY,
    about="Name an ante, then play on or fold.",
    summary="Name an ante before you see your cards, then play for as much again, or fold and lose "
    "it. A dealer below queen-high does not qualify: you win the ante alone. Else the better hand "
    "wins both: straight flush, three of a kind, straight, flush, pair.",
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: 1.5 * settings.rounds,
    rounds=lambda most: {"rounds": most},
    short={"rounds": 4, "stake": 100},
    choices=(
        Choice("rounds", "Rounds", 1, 1000),
        Choice("stake", "Cash to start with", 2, 1_000_000),
    ),
    variations=(
        Variation(lambda seat: {"stake": 2, "rounds": 1}),
        Variation(lambda seat: {"stake": 3, "rounds": 2}),
        Variation(lambda seat: {"stake": 1_000_000_000_000, "rounds": 3}),
        Variation(lambda seat: {"stake": 1000, "rounds": 10, "pair_kicker": True}),
    ),
    cross=Trial(matches=100),
    demo=Trial({"stake": 200}, matches=25),
    bench=Trial({"rounds": 10_000, "stake": 10**9}),
    in_competitions=lambda settings: {"goal": league_goal(settings.stake)},  # K3
    stake=lambda settings: int(settings.stake),
    purse=Purse("stake", "rounds", LEAST_CASH, "goal"),
    measure=Measure("reached the goal", reached_goal, is_share=True),
    luck=_EVALUATOR.luck("ante"),
    analysing=_EVALUATOR.analysing(version=1, refuses=_unplayable),
    judging=_EVALUATOR.judging(version=1),
    habits=_EVALUATOR.habits,
    view="view.js",
)
