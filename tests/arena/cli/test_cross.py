from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.stats
def test_G16_a_thousand_games_unless_told(run: Run) -> None:
    argv = ["cross", "gin", "simple", "random", "--set", "target=1"]
    document = run(*argv, "--seed", "1", "--json").document

    assert document["settings"]["games"] == 1000
    assert document["tables"][0]["units"] == 1000


def test_every_mean_has_an_interval_by_blocks_of_the_game(run: Run) -> None:
    argv = ["cross", "akq", "honest", "bluffer", "--hands", "500", "--seed", "1"]
    document = run(*argv, "--json").document
    best = document["bots"][0]

    low, high = best["interval"]
    assert low < best["mean"] < high
    assert (best["level"], best["method"]) == (0.95, "Student")
    # Of 10 blocks, with Student's quantile: wider than two errors of single hands.
    assert high - low > 4 * best["mean_error"] * 0.7
    shares = [table["intervals"] for table in document["tables"]]
    assert all(each["interval"] is not None for table in shares for each in table)
    assert "Its unit is the block of 50 hands." in run(*argv).out


# ---- The same cards in all seats
