"""Every shape that `legal` can have in each game, and matches in which they come up.

Only questions that the real rules bring about are asked: a strategy may know the rules and need not
read `legal`. Rare shapes come up by settings, such as a stake that leaves one ante, and by
opponents who play at random. Gin rummy needs a hand that may knock at once. The commitment is to
the seed alone, so the other seat's nonce can be drawn until such a hand is dealt.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from arena.authoring.conformance.table import AnyLegal
from protocol.gin_melds import deadwood
from protocol.gin_rummy import KNOCK_LIMIT, TurnAnswer
from protocol.high_low import legal_bids
from protocol.strategy import Strategy
from protocol.vocabulary import Question, Range

__all__ = ["SHAPES", "SHORT", "VARIATIONS", "Shape", "Variation"]

_INT32 = (1 << 31) - 1
_HAND = 10  # cards of a gin hand; seat 0 is dealt the first ten


class Shape(NamedTuple):
    """A kind of question with one shape of `legal`; `name` is for people."""

    name: str
    kind: str
    fits: Callable[[Any], bool] = lambda legal: True

    def is_of(self, question: Question[Any]) -> bool:
        return question.kind == self.kind and self.fits(question.choices)


def _one_number(legal: Range) -> bool:
    return legal.min == legal.max


def _usual(legal: Range) -> bool:
    return legal.min < legal.max <= 10_000


def _knock(legal: tuple[Any, ...]) -> bool:
    return any(answer.knock for answer in legal)


def _bids(lowest: int) -> Shape:
    bids = legal_bids(lowest)
    return Shape(f"bids from {lowest}", "bid", lambda legal: legal == bids)


SHAPES: Mapping[str, tuple[Shape, ...]] = {
    "ace_king_queen": (Shape("open", "open"), Shape("respond", "respond")),
    "gin_rummy": (
        Shape("offer", "offer"),
        Shape("draw", "draw"),
        Shape("a turn without a knock", "turn", lambda legal: not _knock(legal)),
        Shape("a turn with a knock", "turn", _knock),
        Shape("melds, which lists null alone", "melds"),
    ),
    "high_low": (Shape("swap", "swap"), *(_bids(lowest) for lowest in (2, 4, 6, 8, 10))),
    "three_card_poker": (
        Shape("an ante", "ante", _usual),
        Shape("an ante from 1 to 1", "ante", _one_number),
        Shape("an ante beyond 32 bits", "ante", lambda legal: legal.max > _INT32),
        Shape("play", "play"),
    ),
    "blackjack": (
        Shape("a bet", "bet", _usual),
        Shape("a bet from 5 to 5", "bet", _one_number),
        Shape("a bet up to a billion", "bet", lambda legal: legal.max >= 1_000_000_000),
        Shape("draw", "draw"),
    ),
}


class Variation(NamedTuple):
    """A match in which something rare comes up.

    Attributes:
        others: makes the opponents from an rng; None for house bots.
        wanted: whether a first deal will do, given the bot's seat. The other seats' nonces are
            drawn until one does; None takes any deal.
    """

    settings: Mapping[str, object]
    others: Callable[[random.Random], Strategy] | None = AnyLegal
    wanted: Callable[[Any, int], bool] | None = None

    def settings_for(self, seat: int) -> Mapping[str, object]:
        """The settings for the bot in `seat`; with `wanted`, the seat that can knock starts."""
        if self.wanted is None:
            return self.settings
        return {**self.settings, "starter": seat if self.wanted is _bot_may_knock else 1 - seat}


def _knocks(rng: random.Random) -> Strategy:
    """A strategy that plays at random, and knocks as soon as it may."""

    def knocking(legal: Sequence[Any]) -> list[Any]:
        return [answer for answer in legal if isinstance(answer, TurnAnswer) and answer.knock]

    return AnyLegal(rng, knocking)


def _bot_may_knock(deal: Any, seat: int) -> bool:
    hand: tuple[str, ...] = deal.deck[seat * _HAND :][:_HAND]
    return deadwood(hand) <= KNOCK_LIMIT


def _other_may_knock(deal: Any, seat: int) -> bool:
    return _bot_may_knock(deal, 1 - seat)


SHORT: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 6},
    "gin_rummy": {"target": 1, "max_rounds": 1},
    "high_low": {"max_shuffles": 1, "gap": 1_000_000_000},
    "three_card_poker": {"rounds": 4, "stake": 100},
    "blackjack": {"hands": 4, "shuffle": "uniform"},
}
"""Settings of a match that even a slow bot ends within seconds."""

_ROUND: Mapping[str, object] = {"target": 1, "max_rounds": 1}

VARIATIONS: Mapping[str, tuple[Variation, ...]] = {
    "ace_king_queen": (Variation({"hands": 10}),),
    "gin_rummy": (
        Variation(_ROUND, others=None),
        Variation(_ROUND, _knocks, _bot_may_knock),
        Variation(_ROUND, _knocks, _other_may_knock),
    ),
    "high_low": (Variation({"max_shuffles": 1, "gap": 1_000_000_000}),),
    "three_card_poker": (
        Variation({"stake": 2, "rounds": 1}),
        Variation({"stake": 3, "rounds": 2}),
        Variation({"stake": 1_000_000_000_000, "rounds": 3}),
        Variation({"stake": 1000, "rounds": 10, "pair_kicker": True}),
    ),
    "blackjack": (
        Variation({"bankroll": 5, "hands": 1, "shuffle": "uniform"}),
        Variation({"bankroll": 1_000_000_000, "hands": 3, "shuffle": "uniform"}),
        Variation({"bankroll": 100, "hands": 10, "shuffle": "riffle"}),
    ),
}
"""Matches to play in turn until all shapes have come up."""
