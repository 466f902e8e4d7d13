"""The developers' bench: what rounds add up to, and that its groups measure, in small sizes."""

from __future__ import annotations

import json
from itertools import product

import pytest

from arena.games.catalogue import GAMES
from tests.tools.bench.__main__ import main
from tests.tools.bench.rows import median_interval, row_of

ONE = ["--rounds", "1", "--seconds", "0.05", "--json"]


@pytest.mark.parametrize(
    ("costs_there", "verdict"),
    [
        ([0.7, 0.9, 0.8, 0.75, 0.85, 0.95], "slower"),
        ([1.1, 1.3, 1.2, 1.4, 1.5, 1.6], "faster"),
        ([0.9, 1.1, 0.95, 1.05, 0.9, 1.2], "no difference seen"),
        ([0.9, 0.8, 0.7, 0.6, 0.5], "too few rounds to say"),
    ],
)
def test_this_is_faster_if_the_whole_interval_says_so(
    costs_there: list[float], verdict: str
) -> None:
    row = row_of("a server", "µs", [1.0] * len(costs_there), "that", costs_there)

    assert (row.this, row.beside, row.verdict) == (1.0, "that", verdict)
    assert row.low <= row.speed <= row.high


def test_with_few_rounds_the_interval_is_all_of_them_and_less_sure() -> None:
    assert median_interval([0.9, 0.8, 0.7, 0.6, 0.5]) == (0.5, 0.9, 0.9375)


def test_with_many_rounds_single_ratios_that_lie_far_off_do_not_count() -> None:
    low, high, level = median_interval([0.01, 0.8, 0.81, 0.82, 0.83, 0.84, 0.85, 0.86, 99.0])

    assert (low, high) == (0.8, 0.86)
    assert level == pytest.approx(0.9609, abs=1e-4)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 12])
def test_the_level_is_the_share_of_all_coin_throws(count: int) -> None:
    """A ratio is above 1 or below it by a coin; the interval contains 1 so often."""
    throws = list(product((0.5, 2.0), repeat=count))
    intervals = [median_interval(throw) for throw in throws]

    contains = sum(low <= 1 <= high for low, high, _ in intervals)
    assert contains / len(throws) == pytest.approx(intervals[0][2])


def test_games_are_measured_in_process(capsys: pytest.CaptureFixture[str]) -> None:
    main(["games", *ONE])

    rows = json.loads(capsys.readouterr().out)
    assert {row["what"] for row in rows} == {f"{game} in process" for game in GAMES}
    assert min(row["this"] for row in rows) > 0


@pytest.mark.e2e
def test_an_arena_is_measured_beside_a_prototype_and_clients_beside_a_thin_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["tables", "clients", "--tables", "4", *ONE])

    rows = json.loads(capsys.readouterr().out)
    assert [row["beside"] for row in rows] == ["prototype"] * 4 + ["thin client"] * 2
    assert min(min(row["this"], row["that"], row["speed"]) for row in rows) > 0


@pytest.mark.e2e
def test_idle_bots_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["idle", "--idle", "120", *ONE])

    rows = json.loads(capsys.readouterr().out)
    assert [row["unit"] for row in rows] == [
        "KiB a bot",
        "µs of CPU a bot and second",
        "µs of CPU a bot",
    ]
    assert 1 < rows[0]["this"] < 100  # a session and a socket are not for nothing
