"""The scenes of Ace-King-Queen, and those of the session: a killed program, a lost connection."""

from __future__ import annotations

from arena.games.analysis import SeatMatch
from bots.ace_king_queen import Bluffer, Honest, Random
from tests.support.scenes.scene import PAIR, DealtVector, RecordedScene, Says, Twist, asked, news

__all__ = ["DEALT", "SCENES"]


def _two_hands(told: SeatMatch) -> bool:
    first, second = news(told, "hand_over")
    return (
        (first.cards[0], first.open, first.response) == ("A", "bet", "fold")
        and (second.cards[0], second.open, second.response) == ("K", "bet", "call")
        and second.payoffs[0] > 0
    )


def _checked_then_bet(told: SeatMatch) -> bool:
    hands = news(told, "hand_over")
    return (
        [hand.open for hand in hands] == ["check", "check", "bet"]
        and hands[2].response == "call"
        and asked(told) == ["open", "open"]
    )


def _called_and_lost(told: SeatMatch) -> bool:
    hands = news(told, "hand_over")
    return (
        asked(told) == ["open", "respond", "open"]
        and hands[1].payoffs == (-2, 2)
        and hands[2].response == "fold"
    )


def _checks_and_loses(told: SeatMatch) -> bool:
    [hand] = news(told, "hand_over")
    return bool(hand.open == "check" and hand.payoffs[0] < 0)


def _opens_with_an_ace(told: SeatMatch) -> bool:
    return bool(news(told, "hand_over")[0].cards[0] == "A")


SCENES = (
    RecordedScene(
        "ace_king_queen-1",
        "Two hands: ann bets her ace, and ben folds; then she calls his bluff with the king.",
        "ace_king_queen",
        {"hands": 2},
        PAIR,
        (Bluffer, Bluffer),
        _two_hands,
    ),
    RecordedScene(
        "ace_king_queen-2",
        "Three hands, two of them checked: ann is killed while a question waits, is started again, "
        "and has everything told once more.",
        "ace_king_queen",
        {"hands": 3},
        PAIR,
        (Random, Random),
        _checked_then_bet,
        twists={0: {2: Twist.FORGETS}},
    ),
    RecordedScene(
        "ace_king_queen-3",
        "Three hands: ann loses her connection while a question waits, comes back, "
        "and is asked the same again.",
        "ace_king_queen",
        {"hands": 3},
        PAIR,
        (Random, Random),
        _called_and_lost,
        twists={0: {2: Twist.LOSES}},
        notes={(0, 3): "nobody has believed me yet"},
    ),
    RecordedScene(
        "ace_king_queen-4",
        "One hand in practice: an answer that is not legal is refused, and the question stands.",
        "ace_king_queen",
        {"hands": 1},
        PAIR,
        (Honest, Honest),
        _checks_and_loses,
        twists={0: {1: Says("raise")}},
        practice=True,
    ),
    RecordedScene(
        "ace_king_queen-5",
        "An answer that is not legal ends the match; ann, who gave it, is told why.",
        "ace_king_queen",
        {"hands": 2},
        PAIR,
        (Honest, Honest),
        _opens_with_an_ace,
        twists={0: {1: Says("raise")}},
    ),
    RecordedScene(
        "ace_king_queen-6",
        "The same match from the other seat: ben, who was never asked, "
        "learns who it was and the one word.",
        "ace_king_queen",
        {"hands": 2},
        PAIR,
        (Honest, Honest),
        _opens_with_an_ace,
        seat=1,
        twists={0: {1: Says("raise")}},
        chance="ace_king_queen-5",
    ),
)

DEALT = (DealtVector("ace_king_queen", 4),)
