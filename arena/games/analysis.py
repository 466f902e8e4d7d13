"""Types for analysing a bot beyond its results: what is played against it, and what is found.

A game describes its own analysis with these types, in files beside its rules, as it does its luck:

- `Analysing` plays made-up matches against a bot, or reads its past answers, and says how good it
  is. Like rules, an analysis is a generator and does no I/O: it yields a `ProbeMatch` and is sent
  the match as it was played.
- `Judging` computes what single decisions of a match cost. A judge hears what its seat was told.
- a `HabitMeter` counts what a bot did, for charts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from arena.games.statistics import wilson
from protocol.errors import UsageError
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question, Settings

__all__ = [
    "Analyser",
    "Analysing",
    "Analysis",
    "Certainty",
    "Chart",
    "ChartCell",
    "Figure",
    "HabitMeter",
    "Judge",
    "Judgement",
    "Judging",
    "ProbeMatch",
    "ProbedMatch",
    "SeatDecision",
    "SeatMatch",
    "Weakness",
    "counted_cell",
    "drawn",
    "has_analysis",
    "heard_by",
    "need_analysis",
]

_Row = TypeVar("_Row")
_Column = TypeVar("_Column")


class Certainty(StrEnum):
    """How a figure was found."""

    EXACT = "exact"
    PROBED = "probed"  # exact for what the bot was seen to do, which is a sample: with a 95 % band
    ESTIMATE = "estimate"


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One number about a bot, or the reason why there is none.

    Attributes:
        name: what it is, such as `exploitability`.
        value: in `unit`; None if it is refused.
        unit: such as `chips a hand` or `% of the ante`.
        low, high: its 95 % interval; None if it is exact, or if none is known.
        fraction: the exact value, if there is one: `1/12`; as a share if the value is in per cent.
        remark: why it is refused, or what a reader must know; a sentence.
    """

    name: str
    value: float | None
    unit: str = ""
    certainty: Certainty = Certainty.EXACT
    low: float | None = None
    high: float | None = None
    fraction: str = ""
    remark: str = ""


class ChartCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of a chart.

    Attributes:
        share: how often the bot did it, 0 to 1; None if it was never asked ("not seen").
        count, of: how often it did it, and how often it was asked.
        low, high: the 95 % interval of the share.
        mark: the share of the best play, if there is one.
        cost: what the bot loses here, in the chart's `cost_unit`.
        text: shown instead of the share, such as a mean.
    """

    share: float | None = None
    count: int = 0
    of: int = 0
    low: float | None = None
    high: float | None = None
    mark: float | None = None
    cost: float | None = None
    text: str = ""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot did, as a table of shares: six frequencies, or a chart of hits and stands.

    Attributes:
        title: such as `Hard hands`.
        what: what a share counts, such as `hits`.
        rows, columns: their labels; a table of one column is drawn as bars.
        cells: by row and column; None for cells that are impossible.
        line: the row before which the best play changes; None if there is none.
        cost_unit: the unit of costs; empty without costs.
        note: a sentence that is shown below the chart.
    """

    title: str
    what: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[ChartCell | None, ...], ...]
    line: int | None = None
    cost_unit: str = ""
    note: str = ""


def counted_cell(
    count: int, of: int, *, mark: float | None = None, cost: float | None = None
) -> ChartCell:
    """The cell for `count` of `of` times; "not seen" if `of` is 0."""
    if not of:
        return ChartCell(mark=mark)
    low, high = wilson(count / of, of).bounds
    return ChartCell(share=count / of, count=count, of=of, low=low, high=high, mark=mark, cost=cost)


def drawn(
    title: str,
    what: str,
    rows: Mapping[str, _Row],
    columns: Mapping[str, _Column],
    cell: Callable[[_Row, _Column], ChartCell | None],
    **more: Any,
) -> Chart:
    """Draw a chart; `cell` gets the values behind the labels of a row and a column.

    `more` are further fields of the chart.
    """
    return Chart(
        title=title,
        what=what,
        rows=tuple(rows),
        columns=tuple(columns),
        cells=tuple(
            tuple(cell(row, column) for column in columns.values()) for row in rows.values()
        ),
        **more,
    )


class Weakness(msgspec.Struct, frozen=True, kw_only=True):
    """A weakness of a bot's strategy: what it does in one spot, and what that costs.

    Attributes:
        spot: such as `bet with the queen`.
        played, best: what the bot does there, and what would be better, in words.
        cost: what it loses against the best play, in the unit of the analysis' first figure; the
            costs of all weaknesses sum to the distance from the best play.
        exploited: its part of what an opponent that knows the bot can win; None if that does not
            apply.
    """

    spot: str
    played: str
    best: str
    cost: float
    exploited: float | None = None


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """The results of analysing one bot.

    Attributes:
        figures: the value, exploitability and so on; the most important one first.
        weaknesses: the dearest first.
        charts: what the bot did.
        adapts: how it was found that the bot adapts, a sentence; then figures are "as probed".
        asked: how many questions it answered.
    """

    figures: tuple[Figure, ...]
    weaknesses: tuple[Weakness, ...] = ()
    charts: tuple[Chart, ...] = ()
    adapts: str = ""
    asked: int = 0


class ProbeMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A made-up match for a bot to play.

    Attributes:
        settings: of the match.
        seat: the bot's.
        others: the players of the other seats, in order.
        decks: the cards, as the game's `stacked` takes them; None draws them from `seed`.
        seed: from which the cards are drawn without `decks`.
        rules: replace the game's rules; they ask the game's questions and tell its news.
        bot: the bot that plays it: 0 is the analysed one, higher numbers are those that it is
            analysed against.
    """

    settings: Settings
    seat: int = 0
    others: tuple[Strategy, ...] = ()
    decks: Iterable[Any] | None = None
    seed: int = 0
    rules: Callable[..., Any] | None = None
    bot: int = 0


class SeatDecision(msgspec.Struct, frozen=True, gc=False):
    """A question that a seat was asked, what it answered, and what it was told before.

    Attributes:
        question, answer: as the rules asked and took it.
        news: what the seat was told since its question before this one.
        number: the number of the question among the seat's, from 1; like the next two fields it is
            0 in a made-up match.
        index: the index of the answer in the record, from 0.
        round: the number of the round, from 1.
    """

    question: Question[Any]
    answer: Any
    news: tuple[News, ...] = ()
    number: int = 0
    index: int = 0
    round: int = 0


class SeatMatch(msgspec.Struct, frozen=True):
    """A match as one seat saw it.

    Attributes:
        decisions: what it was asked and answered.
        news: what it was told after its last answer.
        waiting: the last question, if it gave no legal answer to it.
    """

    settings: Settings
    seat: int
    decisions: Sequence[SeatDecision]
    news: tuple[News, ...] = ()
    waiting: Question[Any] | None = None


class ProbedMatch(msgspec.Struct, frozen=True):
    """A `ProbeMatch` as the bot played it to its end.

    Attributes:
        decisions: the bot's; their `news` are left out.
        answers: those of all seats, in order.
        scores: by seat.
    """

    decisions: Sequence[SeatDecision]
    answers: Sequence[Any]
    scores: tuple[int, ...]


Analyser: TypeAlias = Generator[ProbeMatch, ProbedMatch, Analysis]
"""An analysis that lets a bot play matches. It raises `NoAnalysis` if that is impossible."""


class Analysing(msgspec.Struct, frozen=True, kw_only=True):
    """How a game's bots are analysed, where numpy and scipy are installed.

    Attributes:
        version: of the method; a new version invalidates cached analyses.
        probe: starts an analysis with the match's settings, a seed and the names of the bots to
            analyse it against; without names the bot is analysed by itself.
        watch: analyses a bot from matches that it has played, without asking it anything; None if
            that is not possible.
        refuses: why bots cannot be analysed with these settings; None if they can.
    """

    version: int
    probe: Callable[[Settings, int, Sequence[str]], Analyser]
    watch: Callable[[Iterable[SeatMatch]], Analysis] | None = None
    refuses: Callable[[Any], str | None] = lambda settings: None


class Judgement(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What one decision cost its seat, judged from what the seat could know.

    Attributes:
        cost: how much more the best answer would have brought on average, in `unit`; 0 if nothing.
        best: the best answer.
        unit: such as `chips` or `% of the game`.
        error: the standard error of an estimated cost; None if it is exact.
        is_level: whether it is about as good as the best answer, and so no mistake.
        grade: 1 to 3 for `?!`, `?` and `??`; 0 for no mark.
    """

    cost: float
    best: Any
    unit: str
    error: float | None = None
    is_level: bool = False
    grade: int = 0


class Judge(Protocol):
    """Judges a seat's decisions in one match; it hears what the seat heard, and can be copied.

    Judgements do not depend on which decisions it is asked about, or on the order of copies.
    """

    def heard(self, news: News) -> None:
        """Note what the seat was told."""

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        """Judge an answer, before `decided` is called with it; None if it cannot be judged."""

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Note what the seat has answered."""


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """How decisions are judged in a game.

    Attributes:
        version: of the method; a new version invalidates cached judgements.
        judge: makes a judge for one seat of a match with these settings.
        most: how many mistakes are shown per unit of the game (or per round, if it has none), the
            most costly ones; None for all.
        is_slow: whether judging a match takes seconds or more.
        refuses: why decisions cannot be judged with these settings; None if they can.
    """

    version: int
    judge: Callable[[Any, int], Judge]
    most: int | None = None
    is_slow: bool = False
    refuses: Callable[[Any], str | None] = lambda settings: None


class HabitMeter(Protocol):
    """Counts what a bot did, over any number of matches; it hears what the bot's seat heard."""

    def begin(self, settings: Any, seat: int) -> None:
        """Begin a match in which the bot has this seat."""

    def heard(self, news: News) -> None:
        """Note what the seat was told."""

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Count an answer."""

    def charts(self) -> tuple[Chart, ...]:
        """The counts so far, as charts; every bot gets the same charts with the same labels."""


def heard_by(match: SeatMatch, meter: HabitMeter) -> None:
    """Pass all events of a match to a meter."""
    meter.begin(match.settings, match.seat)
    for decision in match.decisions:
        for news in decision.news:
            meter.heard(news)
        meter.decided(decision.question, decision.answer)
    for news in match.news:
        meter.heard(news)


_EXTRA = ("numpy", "scipy")
_NOT_INSTALLED = "numpy and scipy are not installed: pip install 'card-arena[analysis]'"


def has_analysis() -> bool:
    """Whether numpy and scipy are installed."""
    return all(find_spec(package) is not None for package in _EXTRA)


def need_analysis() -> None:
    """Raise `UsageError` unless numpy and scipy are installed; call it before importing them."""
    if not has_analysis():
        raise UsageError(_NOT_INSTALLED)
