"""How an analysis is printed."""

from __future__ import annotations

import pytest

from arena.cli._analysis_report import show
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
    assert "It adapts: It bets more later. What is said of it is as probed." in text


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
