"""Shows an analysis as text: figures, the bot's mistakes, charts and refused figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10

from arena.cli import _output as output
from arena.cli._charts import lines_of_charts
from arena.games.analysis import Analysis, Certainty, Figure, Weakness

__all__ = ["lines_of"]

_MOST_MISTAKES = 12  # shown to people; --json has all
_DIGITS = 4  # decimals of an exact figure
_MOST_DIGITS = 12
_STEPS = 3  # an interval is at least this many steps of its last digit wide
_ROUNDING = 1e-12  # rounding error of a float sum that should be 0
_ADAPTS = "as probed"
_NONE = "–"


def lines_of(analysis: Analysis, name: str, title: str) -> output.Lines:
    """Yield the text and tables that show the analysis of the bot called `name`."""
    if analysis.figures:
        yield from _figures(analysis, title)
    else:
        yield title
    if analysis.adapts:
        yield f"It adapts: {analysis.adapts} Its figures are as probed."
    if analysis.weaknesses:
        yield ""
        unit = analysis.figures[0].unit if analysis.figures else ""
        yield from _mistakes(analysis.weaknesses, unit)
    if analysis.charts:
        yield ""
        yield from lines_of_charts((name,), (analysis.charts,))


def _figures(analysis: Analysis, title: str) -> output.Lines:
    fractions = ["fraction"] if any(figure.fraction for figure in analysis.figures) else []
    words = ("figure", "", "found")
    table = output.new_table("figure", "value", *fractions, "", "found", words=words)
    for figure in analysis.figures:
        exactly = [_minus(figure.fraction)] if fractions else []
        found = _found(figure, analysis)
        table.add_row(figure.name, _value(figure), *exactly, figure.unit, found)
    yield output.TitledTable(title, table)
    if any(figure.low is not None for figure in analysis.figures):
        yield "[low, high] is a 95 % interval: at most 1 in 20 of them is wrong."
    for (remark, is_refused), names in _remarks(analysis.figures).items():
        refused = "refused. " if is_refused else ""
        yield f"{', '.join(names)}: {refused}{remark}"


def _remarks(figures: Iterable[Figure]) -> dict[tuple[str, bool], list[str]]:
    """Group the figures' names by their remarks, and by whether they are refused."""
    said: dict[tuple[str, bool], list[str]] = {}
    for figure in figures:
        if figure.remark:
            said.setdefault((figure.remark, figure.value is None), []).append(figure.name)
    return said


def _found(figure: Figure, analysis: Analysis) -> str:
    if figure.value is None:
        return _NONE
    if analysis.adapts and figure.certainty is Certainty.EXACT:
        return _ADAPTS
    return _ADAPTS if figure.certainty is Certainty.PROBED else figure.certainty.value


def _value(figure: Figure) -> str:
    """Format a figure, such as `0.645 [0.61, 0.68]`; a refused one is a dash."""
    if figure.value is None:
        return _NONE
    if figure.low is None or figure.high is None:
        return _number(figure.value, _DIGITS)
    digits = _digits(figure.high - figure.low)
    low, high = _number(figure.low, digits), _number(figure.high, digits)
    return f"{_number(figure.value, digits + 1)} [{low}, {high}]"


def _digits(width: float) -> int:
    """Return the number of decimals to show for the ends of an interval of this width."""
    if width <= 0:
        return _DIGITS
    return min(_MOST_DIGITS, max(0, -floor(log10(width / _STEPS))))


def _number(value: float, digits: int) -> str:
    if abs(value) < _ROUNDING:
        return "0"
    text = f"{value:,.{digits}f}"
    if not any(digit in text for digit in "123456789"):
        text = f"{value:.2g}"
    return _minus(text)


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _mistakes(weaknesses: Sequence[Weakness], unit: str) -> output.Lines:
    has_exploited = any(weakness.exploited is not None for weakness in weaknesses)
    taken = ["a knower takes"] if has_exploited else []
    words = ("where", "it plays", "better")
    table = output.new_table(*words, "costs", *taken, words=words)
    for weakness in weaknesses[:_MOST_MISTAKES]:
        exploited = "" if weakness.exploited is None else _number(weakness.exploited, _DIGITS)
        cells = [weakness.spot, weakness.played, weakness.best, _number(weakness.cost, _DIGITS)]
        table.add_row(*cells, *([exploited] if has_exploited else []))
    table.add_section()
    sums = [sum(weakness.cost for weakness in weaknesses)]
    if has_exploited:
        sums.append(sum(weakness.exploited or 0.0 for weakness in weaknesses))
    table.add_row("all together", "", "", *(_number(total, _DIGITS) for total in sums))
    title = f"what it gives away, in {unit}" if unit else "what it gives away"
    yield output.TitledTable(title, table)
    if (more := len(weaknesses) - _MOST_MISTAKES) > 0:
        yield f"{more:,} smaller ones are not shown; --json has all."
