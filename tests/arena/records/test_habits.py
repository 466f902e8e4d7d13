"""What bots did, counted from matches as their seats saw them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import arena
from arena.records.habits import habits_of
from arena.records.seat_document import seat_match
from protocol.errors import NoAnalysis
from tests.support.judged_toys import ToyBids, install_judged_toy


def test_all_matches_of_a_bot_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    game = install_judged_toy(monkeypatch)
    settings = {"rounds": 3}
    first = arena.play(game.name, [ToyBids(0, 3, 3), ToyBids(1, 1, 1)], settings=settings, seed=1)
    second = arena.play(game.name, [ToyBids(2, 2, 2), ToyBids(0, 0, 0)], settings=settings, seed=2)

    found = habits_of(game, [seat_match(first.record, 0), seat_match(second.record, 1)])

    assert (found.matches, found.decisions) == (2, 6)
    [chart] = found.charts
    assert [cell.count for [cell] in chart.cells if cell is not None] == [4, 0, 0, 2]
    assert habits_of(game, []).decisions == 0


def test_a_game_that_counts_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    game = replace(install_judged_toy(monkeypatch), habits=None)

    with pytest.raises(NoAnalysis, match=f"^{game.name} does not say what is counted"):
        habits_of(game, [])
