"""How an analysis and its charts are printed; the outputs are in analysis_report.cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from arena.cli import _output as output
from arena.cli._analysis_report import lines_of
from arena.cli._charts import lines_of_charts
from arena.games.analysis import Analysis, Chart, Figure, Weakness
from tests.support.cases import CaseFile

CASES = CaseFile(Path(__file__).with_name("analysis_report.cases"))


@pytest.mark.parametrize("title", CASES.titles)
def test_what_is_printed(title: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []

    def printed(line: str) -> Iterator[str]:
        lines.append(line)
        text = "".join(lines)
        if text.count("{") > text.count("}"):
            return  # the document goes on in the next line
        lines.clear()
        if "figures" in msgspec.json.decode(text):
            analysis = msgspec.json.decode(text, type=Analysis)
            output.print_lines(lines_of(analysis, "ann", "ann in a game"))
        else:
            charts = msgspec.json.decode(text, type=dict[str, list[Chart]])
            output.print_lines(lines_of_charts([*charts], [*charts.values()]))
        for said in capsys.readouterr().out.splitlines():
            if not said or said[0] not in "┏┡└├":
                yield " ".join(said.split()) or "(nothing)"

    CASES.check(title, printed)


def test_mistakes_are_summed_and_only_the_dearest_shown(capsys: pytest.CaptureFixture[str]) -> None:
    weaknesses = tuple(
        Weakness(
            spot=f"spot {n}", played="bets", best="checks", cost=0.01 * (20 - n), exploited=0.5
        )
        for n in range(15)
    )
    figure = Figure(name="value", value=1.0, unit="chips")
    analysis = Analysis(figures=(figure,), weaknesses=weaknesses)
    output.print_lines(lines_of(analysis, "ann", "ann in a game"))
    text = " ".join(capsys.readouterr().out.split())

    assert "what it gives away, in chips" in text
    assert "│ spot 0 │ bets │ checks │ 0.2000 │ 0.5000 │" in text
    assert "spot 12" not in text
    assert "│ all together │ │ │ 1.9500 │ 7.5000 │" in text
    assert "3 smaller ones are not shown; --json has all." in text
