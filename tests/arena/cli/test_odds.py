from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


def test_T9_dealt_beside_exact(run: Run) -> None:
    out = run("odds", "three_card_poker", "--trials", "1000", "--seed", "1").text

    for count in ("16,440", "3,744", "1,096", "720", "52", "48"):
        assert count in out
    assert "74.389" in out


def test_any_number_of_jobs_gives_the_same(run: Run) -> None:
    argv = ["odds", "tcp", "--trials", "500", "--seed", "1", "--json", "--jobs"]

    assert run(*argv, "1").document == run(*argv, "2").document


def test_as_json(run: Run) -> None:
    argv = ["odds", "tcp", "--trials", "500", "--seed", "1", "--json"]
    document = run(*argv).document

    assert document == run(*argv).document
    assert list(document) == ["game", "trials", "seed", "dealt", "exact", "counts", "intervals"]
    assert sum(document["dealt"].values()) == pytest.approx(100)
    assert sum(document["counts"].values()) == 22_100
    assert document["exact"]["Pair"] == pytest.approx(100 * 3744 / 22_100)
    for label, share in document["dealt"].items():
        low, high = document["intervals"][label]["interval"]
        assert low <= share <= high
        assert low < high


def test_what_was_dealt_has_an_interval(run: Run) -> None:
    out = run("odds", "tcp", "--trials", "500", "--seed", "1").text

    assert "is a 95 % interval" in out
    assert "The exact share is known" in out
