"""The scenes of blackjack: every outcome, both shuffles, and a bot that is too slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arena.games.analysis import SeatMatch
from bots import blackjack
from protocol.blackjack import hand_value
from protocol.messages import Limits
from tests.support.scenes.scene import (
    ALONE,
    DealtVector,
    RecordedScene,
    Says,
    Twist,
    asked,
    news,
    questions,
)

__all__ = ["DEALT", "SCENES"]


def outcomes(told: SeatMatch) -> list[str]:
    """How the hands of blackjack ended."""
    return [over.outcome for over in news(told, "hand_over")]


def _natural_and_two_more(told: SeatMatch) -> bool:
    return outcomes(told) == ["natural", "bust", "dealer_busts"]


def _one_of_each(told: SeatMatch) -> bool:
    return len(set(outcomes(told))) == 6


def _is_shuffled_twice(told: SeatMatch) -> bool:
    totals = [draw.total for draw in questions(told, "draw")]
    return len(news(told, "shuffled")) == 2 and 21 in totals


def _loses_all(told: SeatMatch) -> bool:
    return len(outcomes(told)) < 5


def _draws_twice(told: SeatMatch) -> bool:
    return asked(told)[:5] == ["bet", "draw", "draw", "bet", "draw"]


def _bets_at_8(told: SeatMatch) -> bool:
    """Whether the last bet is asked at a count of +8 or more, and won or lost."""
    counting, count = blackjack.Counting(), 0
    for one in told.decisions:
        for item in one.news:
            counting.hear(item)
        if one.question.kind == "bet":
            count = counting.count
    return count >= 8 and outcomes(told)[-1] in ("win", "lose")


def _dealer_has_22(told: SeatMatch) -> bool:
    over = news(told, "hand_over")[-1]
    return hand_value(over.dealer)[0] == 22 and hand_value(over.player)[0] == 20


def _blackjack(
    number: int, about: str, wanted: Callable[[SeatMatch], bool], **more: Any
) -> RecordedScene:
    settings = {"shuffle": "uniform", **more.pop("settings", {"hands": 2})}
    bots = (more.pop("bot", blackjack.Simple),)
    name = f"blackjack-{number}"
    return RecordedScene(name, about, "blackjack", settings, ALONE, bots, wanted, **more)


SCENES = (
    _blackjack(
        1,
        "Three hands: a natural, which is paid three for two at once, a bust, "
        "and one in which the dealer is bust.",
        _natural_and_two_more,
        settings={"hands": 3},
    ),
    _blackjack(
        2,
        "Riffled: the deck runs low and is shuffled a second time; at 21 ann is still asked.",
        _is_shuffled_twice,
        bot=blackjack.Counting,
        settings={"hands": 8, "shuffle": "riffle"},
    ),
    _blackjack(
        3,
        "ann starts with ten chips, and has too few for another bet before the hands are played.",
        _loses_all,
        settings={"bankroll": 10, "hands": 100},
    ),
    _blackjack(
        4,
        "ann does not answer in time: the match is over, and the whole bankroll is lost.",
        _draws_twice,
        twists={0: {3: Twist.SLEEPS}},
        limits=Limits(decision_ms=500, bank_ms=0, hard_ms=500),
    ),
    _blackjack(
        5,
        "In practice: there is no doubling, and `double` is refused; "
        "in the next hand the connection is lost.",
        _draws_twice,
        twists={0: {2: Says("double"), 5: Twist.LOSES}},
        practice=True,
    ),
    _blackjack(
        6,
        "Eight hands, with every way to end one: a natural, a bust, the dealer's bust, won, "
        "lost and a push.",
        _one_of_each,
        settings={"hands": 8},
    ),
    _blackjack(
        7,
        "ann counts: before the last hand the count is +8 or more, and it bets twice the minimum, "
        "not more.",
        _bets_at_8,
        bot=blackjack.Counting,
        settings={"hands": 4},
    ),
    _blackjack(
        8,
        "The dealer has exactly 22 against ann's 20: it is bust.",
        _dealer_has_22,
        settings={"hands": 1},
    ),
)

DEALT = (
    DealtVector("blackjack_riffle", 14, per=7),
    DealtVector("blackjack_uniform", 2, {"shuffle": "uniform"}),
)
