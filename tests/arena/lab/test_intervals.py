"""The intervals of sittings, from values that can be added up by hand."""

from __future__ import annotations

import random

import pytest

from arena.engine.statistics import Sample
from arena.games import GAMES
from arena.lab.intervals import ahead, is_ahead_for_sure, of_mean, sampled_unit
from arena.lab.series import Sitting
from arena.strength.interval import student_quantile, wilson

AKQ, GIN, TCP = (GAMES[name] for name in ("ace_king_queen", "gin_rummy", "three_card_poker"))
FOUR = GAMES["high_low"]


def sample(values: list[float]) -> Sample:
    made = Sample()
    for value in values:
        made.add(value)
    return made


def sitting(*units: list[float], block: int = 1) -> Sitting:
    """What places got in unit after unit."""
    blocks = [
        [sum(scores[at : at + block]) for at in range(0, len(scores) - block + 1, block)]
        for scores in units
    ]
    gaps = [
        sample([a - b for a, b in zip(first, second, strict=True)])
        for at, first in enumerate(blocks)
        for second in blocks[at + 1 :]
    ]
    return Sitting(
        bots=tuple(range(len(units))),
        matches=1,
        scores=tuple(int(sum(scores)) for scores in units),
        points=(0,) * len(units),
        won=(0,) * len(units),
        samples=tuple(map(sample, units)),
        offence=None,
        blocks=tuple(map(sample, blocks)),
        gaps=tuple(gaps),
        blocked=block * len(blocks[0]),
    )


def test_a_share_of_games_has_wilsons() -> None:
    played = sitting([1.0] * 13 + [0.0] * 7, [0.0] * 13 + [1.0] * 7)

    found = of_mean(GIN, [(played, 0)])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((wilson(0.65, 20).low, wilson(0.65, 20).high))


def test_chips_are_sampled_in_blocks_for_bots_that_adapt() -> None:
    scores = [1.0, 1.0, -1.0, -1.0, 1.0, 2.0, 1.0, 2.0]
    found = of_mean(AKQ, [(sitting(scores, [-score for score in scores], block=2), 0)])

    assert found is not None
    # The means of the blocks are 1, −1, 1.5, 1.5.
    assert (found.low + found.high) / 2 == pytest.approx(0.75)
    half = student_quantile(3) * (1.416666667 / 4) ** 0.5
    assert (found.high - found.low) / 2 == pytest.approx(half)


def test_how_opponents_differ_is_not_chance() -> None:
    good, bad = [10.0, 11.0] * 10, [-10.0, -11.0] * 10
    parts = [(sitting(scores, [-score for score in scores]), 0) for scores in (good, bad)]
    found = of_mean(FOUR, parts)

    assert found is not None
    assert found.high - found.low < 0.4


def test_19_matches_of_a_bankroll_are_too_few() -> None:
    scores = [float(number) for number in range(20)]

    assert of_mean(TCP, [(sitting(scores[:19]), 0)]) is None
    assert of_mean(TCP, [(sitting(scores), 0)]) is not None


@pytest.mark.parametrize("scores", [[], [3.0], [3.0, 3.0]])
def test_values_that_do_not_spread_have_no_interval(scores: list[float]) -> None:
    assert of_mean(FOUR, [(sitting(scores, scores), 0)]) is None
    assert ahead(FOUR, sitting(scores, scores), 0, 1) is None


def test_who_won_15_of_20_games_is_better_and_who_won_14_may_not_be() -> None:
    for won, sure in (15, True), (14, False):
        first = [1.0] * won + [0.0] * (20 - won)
        played = sitting(first, [1 - score for score in first])

        assert is_ahead_for_sure(GIN, played, 0) is sure
        assert not is_ahead_for_sure(GIN, played, 1)


def test_behind_is_the_negative_of_ahead() -> None:
    one = sitting([1.0, 2.0, 4.0], [0.0, 0.0, 1.0])
    first, second = ahead(AKQ, one, 0, 1), ahead(AKQ, one, 1, 0)

    assert first is not None
    assert second is not None
    assert (first.low, first.high) == pytest.approx((-second.high, -second.low))


def test_among_four_equal_bots_a_leader_is_rarely_sure() -> None:
    draw = random.Random(1)
    wrong = 0
    for _ in range(400):
        units = [[draw.gauss(0, 1) for _ in range(24)] for _ in range(4)]
        played = sitting(*units)
        leader = max(range(4), key=played.scores.__getitem__)
        wrong += is_ahead_for_sure(FOUR, played, leader)

    assert wrong <= 20  # of 400, at most 1 in 20


@pytest.mark.parametrize(
    ("game", "per_match", "name"),
    [(AKQ, 1000, "block of 50 hands"), (AKQ, 49, "match"), (GIN, 1, "game"), (TCP, 1, "match")],
)
def test_what_one_value_is(game: object, per_match: int, name: str) -> None:
    assert sampled_unit(game, per_match) == name  # type: ignore[arg-type]
