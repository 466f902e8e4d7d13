"""Draws charts of what bots did as text: bars, or a table with a cell for every spot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from arena.cli import _output as output
from arena.games.analysis import Chart, ChartCell

if TYPE_CHECKING:
    from rich.table import Table

_BAR = 10  # characters of a bar for a share of 1
_NOT_SEEN = "not seen"
_NOT_SEEN_SHORT = "·"
_NARROW = 4  # a table with at most this many columns has room for the best share and the cost
_NEGLIGIBLE = 100  # a table leaves out a cost this many times smaller than the largest


def lines_of_charts(names: Sequence[str], charts: Sequence[Sequence[Chart]]) -> output.Lines:
    """Show the charts of several bots side by side; every bot must have the same charts."""
    for number, same in enumerate(zip(*charts, strict=True)):
        if number:
            yield ""
        if len(same[0].columns) == 1:
            yield from _bars(names, same)
        else:
            yield from _tables(names, same)


def _bars(names: Sequence[str], charts: Sequence[Chart]) -> output.Lines:
    """Make a table with a row for every spot and a column for every bot."""
    first = charts[0]
    has_marks = any(cell.mark is not None for cell in _cells(first))
    columns: list[str] = []
    for name in names:
        columns += [name, "costs"] if first.cost_unit else [name]
    best = ["best"] if has_marks else []
    table = output.new_table(first.columns[0], *columns, *best, words=(first.columns[0], *names))
    for at, label in enumerate(first.rows):
        if at and at == first.line:
            table.add_section()
        cells = [chart.cells[at][0] for chart in charts]
        shown: list[str] = []
        for cell in cells:
            shown += [_bar(cell), _cost(cell)] if first.cost_unit else [_bar(cell)]
        if has_marks:
            mark = None if cells[0] is None else cells[0].mark
            shown.append("" if mark is None else f"{_of(mark)} %")
        table.add_row(label, *shown)
    yield output.TitledTable(f"{first.title}: {first.what}", table)
    yield from _notes(first)


def _tables(names: Sequence[str], charts: Sequence[Chart]) -> output.Lines:
    """Make a table for every bot; they stand side by side if the terminal is wide enough."""
    from rich.columns import Columns

    tables = [_table(name, chart) for name, chart in zip(names, charts, strict=True)]
    title = f"{charts[0].title}: {charts[0].what}, in %"
    yield output.TitledTable(title, Columns(tables) if len(tables) > 1 else tables[0])
    yield from _notes(charts[0])


def _table(name: str, chart: Chart) -> Table:
    table = output.new_table(name, *chart.columns, words=(name,))
    least = max((cell.cost or 0.0 for cell in _cells(chart)), default=0.0) / _NEGLIGIBLE
    for at, (label, cells) in enumerate(zip(chart.rows, chart.cells, strict=True)):
        if at and at == chart.line:
            table.add_section()
        table.add_row(label, *(_square(cell, chart, least) for cell in cells))
    return table


def _notes(chart: Chart) -> output.Lines:
    if chart.cost_unit:
        where = "beside" if len(chart.columns) == 1 else "below"
        yield f"What it costs stands {where} it, in {chart.cost_unit}."
    if _has_brackets(chart) and any(cell.mark is not None for cell in _cells(chart)):
        yield "What is best stands beside it (in brackets)."
    shares = (cell for cell in _cells(chart) if not cell.text and cell.share is not None)
    if len(chart.columns) == 1 and any(cell.low is not None for cell in shares):
        yield "[low, high] is a 95 % interval: at most 1 in 20 of them is wrong."
    if chart.note:
        yield chart.note


def _has_brackets(chart: Chart) -> bool:
    return len(chart.columns) > 1 and (not chart.cost_unit or len(chart.columns) <= _NARROW)


def _cells(chart: Chart) -> Iterable[ChartCell]:
    return (cell for row in chart.cells for cell in row if cell is not None)


def _bar(cell: ChartCell | None) -> str:
    """Format a cell as `███        33 % [25, 42] of 120`; its own text replaces the share."""
    if cell is None:
        return ""
    of = f" of {cell.of:,}" if cell.of else ""
    if cell.text:
        return f"{cell.text}{of}"
    if cell.share is None:
        return _NOT_SEEN
    bar = "█" * round(_BAR * cell.share)
    ends = "" if cell.low is None or cell.high is None else f" [{_of(cell.low)}, {_of(cell.high)}]"
    return f"{bar:{_BAR}} {_of(cell.share):>3} %{ends}{of}"


def _square(cell: ChartCell | None, chart: Chart, least: float) -> str:
    """Format a share in percent, the best share beside it, and below a cost of at least `least`."""
    if cell is None:
        return ""
    if cell.text:
        return cell.text
    if cell.share is None:
        return _NOT_SEEN_SHORT
    has_mark = cell.mark is not None and _has_brackets(chart)
    share = f"{_of(cell.share)} ({_of(cell.mark or 0.0)})" if has_mark else _of(cell.share)
    cost = _cost(cell) if chart.cost_unit and (cell.cost or 0.0) >= least else ""
    return f"{share}\n{cost}" if cost else share


def _of(share: float) -> str:
    return f"{100 * share:.0f}"


def _cost(cell: ChartCell | None) -> str:
    if cell is None or not cell.cost:
        return ""
    return output.amount(cell.cost)
