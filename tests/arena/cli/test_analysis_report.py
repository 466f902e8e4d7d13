"""How an analysis is printed, and its charts."""

from __future__ import annotations

import pytest

from arena.cli._analysis_report import show
from arena.cli._charts import show_charts
from arena.engine.analysis import Analysis, Certainty, Chart, ChartCell, Figure, Weakness


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(capsys)


class Shown:
    """Prints an analysis, and gives the lines with single spaces."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *figures: Figure, **more: object) -> str:
        analysis = Analysis(figures=figures, **more)  # type: ignore[arg-type]
        show(analysis, "ann", "ann in a game")
        return "\n".join(
            " ".join(line.split()) for line in self._capsys.readouterr().out.split("\n")
        )


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(name="f", value=-8.65799), "−8.6580"),
        (Figure(name="f", value=0.0000123), "1.2e−05"),
        (Figure(name="f", value=1234.5), "1,234.5000"),
        (Figure(name="f", value=-3e-17), "│ 0 │"),
        (Figure(name="f", value=0.6449, low=0.61, high=0.68), "0.645 [0.61, 0.68]"),
        (Figure(name="f", value=0.08337, low=0.0829, high=0.0851), "0.08337 [0.0829, 0.0851]"),
        (Figure(name="f", value=-120.4, low=-150.0, high=-90.2), "−120.4 [−150, −90]"),
        (Figure(name="f", value=0.5, low=0.5, high=0.5), "0.50000 [0.5000, 0.5000]"),
        (Figure(name="f", value=None, remark="It mixes."), "│ – │"),
    ],
)
def test_a_value_has_as_many_digits_as_its_interval_allows(
    shown: Shown, figure: Figure, text: str
) -> None:
    assert text in shown(figure)


def test_fractions_have_a_column_if_there_are_any(shown: Shown) -> None:
    value = Figure(name="value", value=-1 / 12, fraction="-1/12", unit="chips a hand")

    assert "│ value │ −0.0833 │ −1/12 │ chips a hand │ exact │" in shown(value)
    assert "fraction" not in shown(Figure(name="value", value=1.0))


def test_how_a_figure_was_found_stands_beside_it(shown: Shown) -> None:
    text = shown(
        Figure(name="a", value=1.0),
        Figure(name="b", value=1.0, low=0.5, high=1.5, certainty=Certainty.PROBED),
        Figure(name="c", value=1.0, low=0.5, high=1.5, certainty=Certainty.ESTIMATE),
    )

    assert "│ a │ 1.0000 │ │ exact │" in text
    assert "│ b │ 1.00 [0.5, 1.5] │ │ as probed │" in text
    assert "│ c │ 1.00 [0.5, 1.5] │ │ estimate │" in text
    assert text.count("[low, high] is a 95 % interval") == 1


def test_what_a_bot_that_adapts_is_said_to_be_worth_is_as_probed(shown: Shown) -> None:
    text = shown(Figure(name="a", value=1.0), adapts="It bets more later.")

    assert "│ a │ 1.0000 │ │ as probed │" in text
    assert "It adapts: It bets more later. Its figures are as probed." in text


def test_reasons_stand_once_below_the_table(shown: Shown) -> None:
    text = shown(
        Figure(name="a", value=None, remark="It adapts."),
        Figure(name="b", value=None, remark="It adapts."),
        Figure(name="c", value=1.0, remark="Of the start."),
    )

    assert text.endswith("a, b: refused. It adapts.\nc: Of the start.\n")


def test_mistakes_are_summed_and_only_the_dearest_shown(shown: Shown) -> None:
    weaknesses = tuple(
        Weakness(
            spot=f"spot {n}", played="bets", best="checks", cost=0.01 * (20 - n), exploited=0.5
        )
        for n in range(15)
    )

    text = shown(Figure(name="value", value=1.0, unit="chips"), weaknesses=weaknesses)

    assert "what it gives away, in chips" in text
    assert "│ spot 0 │ bets │ checks │ 0.2000 │ 0.5000 │" in text
    assert "spot 12" not in text
    assert "│ all together │ │ │ 1.9500 │ 7.5000 │" in text
    assert "3 smaller ones are not shown; --json has all." in text


def test_what_a_knower_takes_is_left_out_where_that_is_no_question(shown: Shown) -> None:
    weakness = Weakness(spot="hard 12", played="hits", best="stands", cost=0.25)

    text = shown(weaknesses=(weakness,))

    assert "│ hard 12 │ hits │ stands │ 0.2500 │" in text
    assert "takes" not in text


def test_charts_follow(shown: Shown) -> None:
    cells = ((ChartCell(share=0.25, count=1, of=4),),)
    chart = Chart(title="Bets", what="bets", rows=("ace",), columns=("card",), cells=cells)

    text = shown(charts=(chart,))

    assert text.startswith("ann in a game\n\nBets: bets\n")
    assert "25 % of 4" in text


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
