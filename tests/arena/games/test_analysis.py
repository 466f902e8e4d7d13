"""Cells of charts, and the one line that says what an analysis takes."""

from __future__ import annotations

import sys

import pytest

from arena.games.analysis import ChartCell, counted_cell, need_analysis
from arena.games.statistics import wilson
from protocol.errors import UsageError


def test_a_share_has_its_count_and_its_interval() -> None:
    low, high = wilson(0.25, 8).bounds

    assert counted_cell(2, 8, mark=0.5, cost=1.5) == ChartCell(
        share=0.25, count=2, of=8, low=low, high=high, mark=0.5, cost=1.5
    )
    assert counted_cell(0, 0, mark=0.5, cost=1.5) == ChartCell(mark=0.5)


@pytest.mark.parametrize("package", ["numpy", "scipy"])
def test_one_line_says_what_to_install_where_one_is_missing(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(UsageError) as refused:
        need_analysis()

    expected = "numpy and scipy are not installed: pip install 'card-arena[analysis]'"
    assert str(refused.value) == expected
