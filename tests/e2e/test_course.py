"""A small class, without faults; `python -m tests.tools.simulated_class` runs one of sixty."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tools.simulated_class import GAMES, Class

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="the actors need signals"),
]


def test_a_class_plays_all_five_games_with_nobody_there(tmp_path: Path) -> None:
    outcome = Class(tmp_path, 12, 2).run()

    assert outcome.faults == []
    assert [len(words) for words in outcome.out.values()] == [len(GAMES)] * 2
    assert {word for words in outcome.out.values() for word in words} <= {
        "illegal",
        "disconnect",
        "absent",
    }
    assert len(outcome.rates) == len(GAMES) + 1
    assert all(rate.decisions > rate.matches > 0 for rate in outcome.rates)
