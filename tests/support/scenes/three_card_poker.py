"""The scenes of three card poker: every outcome, and every way to end a match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arena.games.analysis import SeatMatch
from bots import three_card_poker
from protocol.three_card_poker import compare
from tests.support.scenes.scene import ALONE, DealtVector, RecordedScene, Says, news

__all__ = ["DEALT", "SCENES"]


class Plays(three_card_poker.Random):
    """Antes what it likes, too."""

    def ante(self, cash: int, most: int) -> int:
        """Anything up to a tenth of its cash."""
        return self.random.randint(1, max(1, min(most, cash // 10)))


def _wins_folds_loses(told: SeatMatch) -> bool:
    return [over.outcome for over in news(told, "round_over")] == [2, -1, -2]


def _every_outcome(told: SeatMatch) -> bool:
    return {over.outcome for over in news(told, "round_over")} == {-2, -1, 0, 1, 2}


def _is_decided_by_the_kicker(told: SeatMatch) -> bool:
    rounds = news(told, "round_over")
    return rounds[-1].cash >= 120 and any(
        over.outcome in (-2, 2)
        and compare(over.hand, over.dealer) != compare(over.hand, over.dealer, True)
        for over in rounds
    )


def _goes_broke(told: SeatMatch) -> bool:
    rounds = news(told, "round_over")
    return 2 < len(rounds) < 6 and bool(rounds[-1].cash < 2)


def _wins_first(told: SeatMatch) -> bool:
    return bool(news(told, "round_over")[0].outcome == 2)


def _poker(
    number: int, about: str, wanted: Callable[[SeatMatch], bool], **more: Any
) -> RecordedScene:
    bot = more.pop("bot", three_card_poker.Q64)
    settings = more.pop("settings", {"rounds": 3})
    name = f"three_card_poker-{number}"
    game = "three_card_poker"
    return RecordedScene(name, about, game, settings, ALONE, (bot,), wanted, **more)


SCENES = (
    _poker(1, "Three rounds: ann wins two antes, folds, and loses two antes.", _wins_folds_loses),
    _poker(
        2,
        "With `pair_kicker`: both have the same pair, "
        "and the odd card decides; the goal ends the match.",
        _is_decided_by_the_kicker,
        bot=three_card_poker.Always,
        settings={"stake": 100, "rounds": 12, "goal": 120, "pair_kicker": True},
    ),
    _poker(
        3,
        "ann starts with four chips and plays every hand, until she cannot ante and play any more.",
        _goes_broke,
        bot=three_card_poker.Always,
        settings={"stake": 4, "rounds": 100},
    ),
    _poker(
        4,
        "In practice: an ante of nothing and one of more than half the cash are refused, "
        "with the range once more.",
        _wins_first,
        settings={"rounds": 2},
        twists={0: {1: Says(0), 3: Says(501)}},
        practice=True,
    ),
    _poker(
        5,
        "ann has won a round, and antes `10.0`, which is no whole number: the whole stake is lost.",
        _wins_first,
        twists={0: {3: Says(10.0)}},
    ),
    _poker(
        6,
        "Eight rounds with every outcome: two antes won and lost, a fold, "
        "a dealer below queen-high, a tie.",
        _every_outcome,
        bot=Plays,
        settings={"rounds": 8},
    ),
)

DEALT = (DealtVector("three_card_poker", 4),)
