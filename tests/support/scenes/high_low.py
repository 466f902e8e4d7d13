"""The scenes of high-low: all bids, and a match that goes on as two are level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arena.games.analysis import SeatMatch
from bots import high_low
from tests.support.scenes.scene import (
    FOUR,
    DealtVector,
    RecordedScene,
    Says,
    Twist,
    news,
    questions,
)

__all__ = ["DEALT", "SCENES"]


def _all_sorts(told: SeatMatch) -> bool:
    rounds = news(told, "round_over")
    quitters = {over.cards.count(None) for over in rounds}
    bids = {bid.bid for bid in news(told, "bid") if bid.seat == 0}
    return len(rounds) == 10 and {0, 3, 4} <= quitters and {"quit", 10} < bids


def _level_at_the_cut(told: SeatMatch) -> bool:
    return len(news(told, "round_over")) == 20


def _bids_after_a_number(told: SeatMatch) -> bool:
    return 2 not in questions(told, "bid")[1].legal


def _high_low(
    number: int, about: str, wanted: Callable[[SeatMatch], bool], **more: Any
) -> RecordedScene:
    bots = (high_low.Random,) * 4
    settings = {"gap": 1_000_000, "max_shuffles": 1}
    name = f"high_low-{number}"
    return RecordedScene(name, about, "high_low", settings, FOUR, bots, wanted, **more)


SCENES = (
    _high_low(
        1,
        "One shuffle, ten rounds: in one all four stay, in one a single seat does, "
        "and in one nobody.",
        _all_sorts,
        first=430,
    ),
    _high_low(
        2,
        "The second and the third are level after the only shuffle, so that there is another.",
        _level_at_the_cut,
    ),
    _high_low(
        3,
        "In the second round ann bids less than somebody before her, which is not legal, "
        "and is out.",
        _bids_after_a_number,
        twists={0: {4: Says(2)}},
    ),
    _high_low(
        4,
        "In practice: such a bid is refused; in the third round cem says goodbye, "
        "and that is the end.",
        _bids_after_a_number,
        twists={0: {4: Says(2)}, 2: {6: Twist.LEAVES}},
        practice=True,
    ),
)

DEALT = (DealtVector("high_low", 2),)
