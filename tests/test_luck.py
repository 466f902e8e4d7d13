"""The program that measures luck (tests/tools/luck.py), and in short what it is to show."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from arena.games import GAMES
from tests.tools.luck import GainSamples, TableLuck, measured, needed, tables

FAIR = 3.5  # standard errors that the mean of the luck may be away from 0
HANDS = {"hands": 100}
ROUNDS = {"rounds": 100}
UNIFORM = {"hands": 200, "shuffle": "uniform"}


@pytest.mark.parametrize(
    ("game", "settings", "bots", "matches", "left"),
    [
        ("ace_king_queen", HANDS, ["bluffer", "random"], 40, 0.34),
        ("ace_king_queen", HANDS, ["honest", "learner"], 40, 0.32),
        ("ace_king_queen", HANDS, ["nash", "bluffer"], 40, 0.32),
        ("three_card_poker", ROUNDS, ["q64"], 20, 1e-12),
        ("three_card_poker", ROUNDS, ["doubler"], 20, 1e-12),
        ("three_card_poker", ROUNDS, ["always"], 20, 0.002),
        ("three_card_poker", ROUNDS, ["random"], 60, 0.38),
        ("blackjack", UNIFORM, ["simple"], 30, 0.02),
        ("blackjack", UNIFORM, ["counting"], 30, 0.02),
        ("blackjack", UNIFORM, ["competitor"], 20, 0.04),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else None,
)
def test_luck_is_0_on_average_and_without_it_little_variance_is_left(
    game: str, settings: dict[str, object], bots: list[str], matches: int, left: float
) -> None:
    table = measured(game, settings, bots, range(matches))

    assert table.rounds.gains.count >= 1500
    assert table.matches.luck.count == matches
    assert abs(table.rounds.spreads_from_0) < FAIR
    assert 0 <= table.rounds.variance_left <= left


def test_the_same_seeds_measure_the_same() -> None:
    first, again, other = (
        measured("three_card_poker", ROUNDS, ["random"], range(start, start + 3))
        for start in (1, 1, 2)
    )

    assert first == again
    assert first != other


def test_a_table_measured_in_parts_is_the_same() -> None:
    whole = measured("three_card_poker", ROUNDS, ["always"], range(4))
    parts = TableLuck()
    for part in range(2), range(2, 4):
        of_part = measured("three_card_poker", ROUNDS, ["always"], part)
        parts.rounds.merge(of_part.rounds)
        parts.matches.merge(of_part.matches)

    assert parts.rounds.gains.total == whole.rounds.gains.total
    assert parts.rounds.variance_left == pytest.approx(whole.rounds.variance_left)
    assert parts.matches.spreads_from_0 == pytest.approx(whole.matches.spreads_from_0)


def samples(*values: tuple[float, float]) -> GainSamples:
    found = GainSamples()
    for gain, luck in values:
        found.add(gain, luck)
    return found


def test_as_many_values_are_needed_as_the_power_takes() -> None:
    # Gains of 3 and -1 without luck 1.1 and 0.9: a mean of 1, variances of 8 and 0.02.
    before, after = needed(samples((3, 1.9), (-1, -1.9)))

    assert before == pytest.approx(8 * (1.959964 + 0.841621) ** 2, rel=1e-5)
    assert after == 1


def test_bots_that_decide_alike_are_told_apart_by_no_number() -> None:
    alike = samples((3, 2), (-1, -2))

    assert needed(alike, alike) == (math.inf, math.inf)


def test_a_bot_plays_alone_or_meets_each_other_once() -> None:
    assert ("q64",) in list(tables(GAMES["three_card_poker"]))
    pairs = [frozenset(pair) for pair in tables(GAMES["ace_king_queen"])]
    assert len(pairs) == len(set(pairs)) == 10
    assert all(len(table) == 4 for table in tables(GAMES["high_low"]))


def test_the_program_prints_a_line_per_table_and_pair() -> None:
    command = "-m tests.tools.luck --game three_card_poker --bots q64,always --matches 4 --jobs 1"

    shown = subprocess.run(
        [sys.executable, *command.split()], check=True, capture_output=True, text=True
    ).stdout.splitlines()

    assert [line.split()[0] for line in shown] == ["three_card_poker", "always", "q64", "always"]
    assert "left 0.0000 a round" in shown[2]
    assert "to tell apart" in shown[3]
