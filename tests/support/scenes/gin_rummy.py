"""The scenes of gin rummy: every way to end a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arena.games.analysis import SeatMatch
from bots import gin_rummy
from protocol.cards import Card
from protocol.gin_melds import Meld, arrange
from protocol.gin_rummy import Turn
from tests.support.scenes.scene import (
    PAIR,
    DealtVector,
    RecordedScene,
    Says,
    asked,
    news,
    questions,
)

__all__ = ["DEALT", "SCENES"]


class Waits(gin_rummy.Patient):
    """Never takes a card that lies open."""

    def will_take_top_discard(self, card: Card) -> bool:
        """Never."""
        return False


class Declares(gin_rummy.Simple):
    """Declares its own melds, and leaves nothing to the referee."""

    def get_melds(self) -> tuple[Meld, ...]:
        """Those that the referee would find, too."""
        return tuple(arrange(self.hand)[0])


def _round(told: SeatMatch, reason: str, knocker: int | None, most: int) -> Any:
    """The first round, if it ended so and the seat was asked no more than so often."""
    over = news(told, "round_over")[0]
    is_short = len(told.decisions) <= most
    return over if is_short and (over.reason, over.knocker) == (reason, knocker) else None


def _knocks_at_once(told: SeatMatch) -> bool:
    over = _round(told, "knock", 0, 2)
    return over is not None and len(over.layoffs) > 1 and _is_second(told)


def _is_second(told: SeatMatch) -> bool:
    """Whether the up-card came to the seat because the other did not want it."""
    return [one.took for one in news(told, "offered")] == [False, True]


def _hears_gin(told: SeatMatch) -> bool:
    over = _round(told, "gin", 1, 12)
    took = {turn.drew for turn in news(told, "turn") if turn.seat == 0}
    return (
        over is not None and asked(told)[-1] == "melds" and len(over.melds[0]) > 0 and len(took) > 1
    )


def _is_undercut(told: SeatMatch) -> bool:
    over = _round(told, "undercut", 0, 8)
    if over is None or not over.layoffs or asked(told)[1] != "turn":
        return False
    return not any(answer.knock for answer in questions(told, "turn")[0].legal)


def _too_early(question: Turn) -> dict[str, Any]:
    return {"discard": question.drawn, "knock": True}


def _knocks_in_vain(told: SeatMatch) -> bool:
    return _round(told, "tie", 1, 9) is not None


def _empties_the_stock(told: SeatMatch) -> bool:
    return _round(told, "stock", None, 36) is not None


def _runs_out_of_turns(told: SeatMatch) -> bool:
    reasons = [over.reason for over in news(told, "round_over")]
    starters = [dealt.starter for dealt in news(told, "dealt")]
    offers = asked(told).count("offer")
    return reasons == ["turns"] * 4 and starters == [0, 1, 1, 0] and offers > 2


def _gin(
    number: int, about: str, wanted: Callable[[SeatMatch], bool], **more: Any
) -> RecordedScene:
    bots = more.pop("bots", (Declares, gin_rummy.Simple))
    settings = more.pop("settings", {"max_rounds": 1})
    name = f"gin_rummy-{number}"
    return RecordedScene(name, about, "gin_rummy", settings, PAIR, bots, wanted, **more)


SCENES = (
    _gin(
        1,
        "ann is offered the up-card second and takes it, knocks with melds of her own, "
        "and ben lays cards off on them.",
        _knocks_at_once,
        settings={"target": 10},
        first=2_240,
    ),
    _gin(
        2,
        "ben has gin; ann is asked for her melds without having seen his, and lays nothing off.",
        _hears_gin,
        bots=(Declares, gin_rummy.Patient),
        settings={"starter": 0, "max_rounds": 1},
    ),
    _gin(
        3,
        "In practice: ann knocks where she must not and is refused, knocks later, and is undercut, "
        "as ben lays cards off.",
        _is_undercut,
        bots=(gin_rummy.Simple, gin_rummy.Simple),
        twists={0: {1: Says("perhaps"), 2: Says(_too_early)}},
        practice=True,
    ),
    _gin(
        4,
        "ben knocks, ann has as little: nobody scores, and the game is drawn.",
        _knocks_in_vain,
        first=3_600,
        bots=(gin_rummy.Simple, gin_rummy.Simple),
    ),
    _gin(
        5,
        "Nobody takes a card that lies open and nobody knocks, until the stock is empty.",
        _empties_the_stock,
        bots=(Waits, Waits),
    ),
    _gin(
        6,
        "Two games of two rounds of two turns, which nobody wins: "
        "who starts is drawn for each game, and alternates in it.",
        _runs_out_of_turns,
        bots=(gin_rummy.Random, gin_rummy.Random),
        settings={"max_turns": 2, "max_rounds": 2, "games": 2},
    ),
    _gin(
        7,
        "ann discards a card that she does not hold, and is out.",
        lambda told: asked(told)[:2] == ["offer", "turn"],
        twists={0: {2: Says({"discard": "1s"})}},
    ),
)

DEALT = (DealtVector("gin_rummy", 2),)
