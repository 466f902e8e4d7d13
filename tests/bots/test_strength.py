"""How strong the house bots are: what they gain on average, beside what is known or each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot
from statistics import fmean, stdev
from typing import Any, NamedTuple

import pytest

import arena
from bots import ace_king_queen as akq
from bots import blackjack, gin_rummy, high_low, three_card_poker
from protocol.messages import Ending
from tests.support.answering import Answering
from tests.support.long import LONG, sized


class Gain(NamedTuple):
    """What a bot has gained a unit on average, with its standard error."""

    mean: float
    error: float


class AlwaysTheFirst(Answering):
    """Gives the first legal answer: it bets and calls."""

    def seed(self, seed: str) -> None:
        """It leaves nothing to chance."""


Make = Callable[[], Any]
LENGTHS: dict[str, tuple[int, dict[str, object]]] = {
    "ace_king_queen": (1000, {"hands": 1000}),
    "blackjack": (3000, {"hands": 3000, "bankroll": 100_000_000}),
    "gin_rummy": (10, {"games": 10}),
    "high_low": (10, {"max_shuffles": 10, "gap": 1_000_000_000}),
    "three_card_poker": (10_000, {"rounds": 1000, "stake": 1_000_000_000}),  # in antes of 10
}
"""By game: the units of a match, and its settings."""


def gains(game: str, bots: Sequence[Make], matches: int, **more: object) -> list[Gain]:
    """What each bot of a table gains; the chairs rotate."""
    units, settings = LENGTHS[game]
    found: list[list[float]] = [[] for _ in bots]
    for number in range(matches):
        turn = number % len(bots)
        table = [make() for make in bots]
        for index, bot in enumerate(table):
            bot.seed(f"{number}/{index}")
        seated = table[turn:] + table[:turn]
        result = arena.play(game, seated, settings={**settings, **more}, seed=number)
        assert result.termination.kind is Ending.COMPLETED
        for index, own in enumerate(found):
            own.append(result.scores[(index - turn) % len(bots)] / units)
    return [Gain(fmean(own), stdev(own) / len(own) ** 0.5) for own in found]


@pytest.mark.stats
@pytest.mark.parametrize(
    ("game", "bots", "settings", "matches", "known"),
    [
        ("ace_king_queen", [akq.Nash, AlwaysTheFirst], {}, sized(200, 8), 1 / 6),
        ("ace_king_queen", [akq.Nash, akq.Nash], {}, sized(200, 8), 0.0),
        ("ace_king_queen", [akq.Learner, akq.Nash], {}, sized(60, 6), 0.0),
        ("three_card_poker", [three_card_poker.Q64], {}, sized(300, 10), -0.0866),
        ("three_card_poker", [three_card_poker.Q64], {"pair_kicker": True}, 10, -0.0866),
        ("three_card_poker", [three_card_poker.Always], {}, sized(300, 10), -0.1294),
        ("blackjack", [blackjack.Simple], {}, sized(300, 10), -0.0967),
    ],
)
def test_B12_a_bot_gains_what_is_known_of_it(
    game: str, bots: list[Make], settings: dict[str, object], matches: int, known: float
) -> None:
    gain = gains(game, bots, matches, **settings)[0]

    assert abs(gain.mean - known) < 5 * gain.error
    assert gain.error < 0.035


@pytest.mark.stats
@pytest.mark.parametrize(
    ("game", "bots", "matches", "least"),
    [
        ("gin_rummy", [gin_rummy.Expert, gin_rummy.Simple], sized(100, 10), 0.4 if LONG else 0.2),
        ("gin_rummy", [gin_rummy.Simple, gin_rummy.Random], sized(40, 4), 0.9),
        ("gin_rummy", [gin_rummy.Patient, gin_rummy.Simple], sized(100, 10), 0.0),
        ("gin_rummy", [gin_rummy.Expert, gin_rummy.Patient], sized(40, 10), 0.0),
        *(
            ("high_low", [high_low.Counter, *others], sized(80, 8), 0.0)
            for others in (
                [high_low.Bold, high_low.Timid, high_low.Random],
                [high_low.Bold, high_low.Bold, high_low.Timid],
                [high_low.Bold, high_low.Timid, high_low.Timid],
            )
        ),
    ],
)
def test_G16_a_strong_bot_gains_more_than_each_other(
    game: str, bots: list[Make], matches: int, least: float
) -> None:
    own, *others = gains(game, bots, matches)

    for other in others:
        slack = sized(4, 1) * hypot(own.error, other.error) if not least else 0.0
        assert own.mean - other.mean > least + slack


@pytest.mark.stats
@pytest.mark.parametrize("victim", [akq.Honest, akq.Bluffer])
def test_the_learner_takes_more_than_nash_does(victim: Make) -> None:
    [learner, nash] = (
        gains("ace_king_queen", [bot, victim], sized(60, 6))[0] for bot in (akq.Learner, akq.Nash)
    )

    assert learner.mean - nash.mean > 4 * hypot(learner.error, nash.error)
