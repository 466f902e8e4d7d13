"""Charts as text: bars of several bots, tables with costs, what nobody has seen."""

from __future__ import annotations

import pytest

from arena.cli._charts import show_charts
from arena.engine.analysis import Chart, ChartCell


def bars(share: float | None, cost: float | None) -> Chart:
    cell = ChartCell(share=share, count=3, of=9, low=0.1, high=0.6, mark=1 / 3, cost=cost)
    return Chart(
        title="Bets",
        what="how often it bets",
        rows=("with an ace", "with a queen", "with a king"),
        columns=("card",),
        cells=((cell,), (ChartCell(),), (None,)),
        line=1,
        cost_unit="chips a hand",
        note="Nothing else is known.",
    )


def test_bars_of_two_bots_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    show_charts(["ann", "ben"], [[bars(0.3, 0.25)], [bars(1.0, 0.001)]])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Bets: how often it bets"
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert cells[0] == [
        "with an ace",
        "███         30 % [10, 60] of 9",
        "0.25",
        "██████████ 100 % [10, 60] of 9",
        "0.001",
        "33 %",
    ]
    assert cells[1] == ["with a queen", "not seen", "", "not seen", "", ""]
    assert cells[2] == ["with a king", "", "", "", "", ""]
    assert lines[-3:] == [
        "What it costs stands beside it, in chips a hand.",
        "[low, high] is a 95 % interval: at most 1 in 20 of them is wrong.",
        "Nothing else is known.",
    ]


def test_a_table_has_costs_below_its_shares(capsys: pytest.CaptureFixture[str]) -> None:
    chart = Chart(
        title="Hard hands",
        what="how often it hits",
        rows=("16", "17"),
        columns=("9", "T"),
        cells=(
            (ChartCell(share=1.0, of=4, cost=0.2), ChartCell(share=0.25, of=4, cost=0.001)),
            (ChartCell(), ChartCell(text="7.5")),
        ),
        line=1,
        cost_unit="chips",
    )
    show_charts(["ann", "ben"], [[chart, chart], [chart, chart]])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Hard hands: how often it hits, in %"
    rows = [line.replace("┃", "│").split("│") for line in lines if "│" in line]
    texts = [[cell.strip() for cell in row[1:4]] for row in rows[: len(rows) // 2]]
    assert texts == [["16", "100", "25"], ["", "0.20", ""], ["17", "·", "7.5"]]
    assert lines.count("Hard hands: how often it hits, in %") == 2
    assert "" in lines, "charts stand apart"
    assert any(line.count("ann") == line.count("ben") == 1 for line in lines)
    assert lines.count("What it costs stands below it, in chips.") == 2


def test_a_table_without_costs_has_the_best_in_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    chart = Chart(
        title="Bets and calls",
        what="how often",
        rows=("queen",),
        columns=("bets", "calls"),
        cells=((ChartCell(share=0.5, of=4, mark=1 / 3, low=0.1, high=0.9), None),),
    )
    show_charts(["ann"], [[chart]])

    text = capsys.readouterr().out
    assert "│ 50 (33) │" in text
    assert text.endswith("\nWhat is best stands beside it (in brackets).\n")


def test_a_narrow_table_has_the_best_and_the_costs(capsys: pytest.CaptureFixture[str]) -> None:
    chart = Chart(
        title="Bets and calls",
        what="how often",
        rows=("king",),
        columns=("bets", "calls"),
        cells=((ChartCell(share=1.0, of=4, mark=0.0, cost=0.5), None),),
        cost_unit="chips",
    )
    show_charts(["ann"], [[chart]])

    lines = capsys.readouterr().out.splitlines()
    assert any("│ 100 (0) │" in line for line in lines)
    assert any("│    0.50 │" in line for line in lines)
    assert lines[-2:] == [
        "What it costs stands below it, in chips.",
        "What is best stands beside it (in brackets).",
    ]
