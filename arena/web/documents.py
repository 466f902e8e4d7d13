"""The documents of the page at `/api/…json`: one struct each, whose fields are the interface.

Times are Unix seconds, names are unescaped, and `null` means unknown or not applicable. A
competition's settings and limits are those of its plan. What a viewer may see (J8) is decided where
a document is made, not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec

from arena.formats.intervals import IntervalUnit
from arena.formats.spec import Settling
from arena.games.analysis import Analysis, Chart
from arena.games.match import Result
from arena.games.statistics import Bounds
from arena.records.mistakes import UnitTotal
from arena.results.luck_table import LuckLine
from arena.storage.models import Act
from protocol.messages import Limits, Verdict
from protocol.watching import View

__all__ = [
    "AnalysisState",
    "AnalysisStatus",
    "BandPoint",
    "BotPage",
    "Cards",
    "CompetitionLine",
    "Competitions",
    "CrossTablePage",
    "DecisionMark",
    "DecisionTimes",
    "LeagueMeasure",
    "LuckCurve",
    "MatchPage",
    "Matches",
    "MistakesPage",
    "Opponent",
    "Outline",
    "Overview",
    "PairingPage",
    "RankedBots",
    "Refusal",
    "Ruling",
    "RulingWithEvidence",
    "StageDocument",
    "StrengthPage",
    "TableDocument",
    "error",
    "thinned",
]


Point = TypeVar("Point")


class Refusal(Exception):
    """A document cannot be returned; `status` is the HTTP status to answer with."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def thinned(points: Sequence[Point], most: int) -> tuple[Point, ...]:
    """Return at most `most` points, evenly chosen, including the first and the last."""
    last = len(points) - 1
    if last < most:
        return tuple(points)
    return tuple(points[round(i * last / (most - 1))] for i in range(most))


def error(text: str) -> bytes:
    """Make the document that reports an error."""
    return msgspec.json.encode({"error": text})


class CompetitionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A competition in a list; `played` is its counting matches, `scheduled` null on a ladder."""

    id: str
    run: str
    game: str
    title: str
    form: str
    state: str
    started_at: float
    finished_at: float | None
    bots: int
    played: int
    scheduled: int | None


class Competitions(msgspec.Struct, frozen=True):
    """`/api/competitions.json`: all competitions, the newest first."""

    competitions: tuple[CompetitionLine, ...]


class LeagueMeasure(msgspec.Struct, frozen=True):
    """What a league ranks by; `is_share` says whether it is a share of the matches."""

    title: str
    is_share: bool


class RankedBots(msgspec.Struct, frozen=True):
    """A place in the ranking of a finished elimination; several bots may share it."""

    rank: int
    names: tuple[str, ...]
    stage: int
    score: int | None
    offence: bool


class TableDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a bracket; `offender` is a seat, `advanced` null before the end and in a final."""

    pairing: int
    match: str | None
    players: tuple[str, ...]
    house: tuple[str, ...]
    scores: tuple[int, ...] | None
    advanced: tuple[str, ...] | None
    out: tuple[str, ...]
    state: str
    offender: int | None


class StageDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a bracket."""

    stage: int
    final: bool
    tables: tuple[TableDocument, ...]
    byes: tuple[str, ...]


class Ruling(msgspec.Struct, frozen=True):
    """An offence without its evidence, as most viewers see it during the competition (J8)."""

    bot: str
    match: str
    kind: str
    at: float
    event: str
    forgiven: bool


class RulingWithEvidence(Verdict, frozen=True, kw_only=True):
    """An offence with its evidence."""

    at: float


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """`/api/competitions/ID.json`; the rows of `standings` are those of the competition's form.

    `not_there` are bots of the roster that were not connected at the start. `missing` says whether
    the game's package is not installed; then there may be no standings. `unit` is the unit of the
    intervals, if there are any. `luck` is what bots won without luck, in `luck_unit`, for the bots
    whose luck the viewer may see (J8). `versions` is by bot the latest version that has played, for
    bots that have versions.
    """

    id: str
    run: str
    game: str
    title: str
    form: str
    state: str
    missing: str | None
    settings: Mapping[str, Any]
    limits: Limits
    matches: int
    started_at: float
    finished_at: float | None
    played: int
    settled: int
    scheduled: int | None
    left_s: float | None
    measure: LeagueMeasure | None
    unit: IntervalUnit | None
    standings: tuple[Any, ...]
    ranking: tuple[RankedBots, ...]
    bracket: tuple[StageDocument, ...]
    verdicts: tuple[Ruling | RulingWithEvidence, ...]
    teams: Mapping[str, str]
    actions: tuple[Act, ...] | None
    not_there: tuple[str, ...]
    luck: Mapping[str, LuckLine]
    luck_unit: str | None
    versions: Mapping[str, str]
    settle: Settling | msgspec.UnsetType = msgspec.UNSET  # when the run is settled (K6)


class CrossTablePage(msgspec.Struct, frozen=True):
    """`…/cross.json`: the cells of a round robin.

    A cell is (row, column, played, wins, draws, losses, score, mean, error, low, high); row and
    column are indices of `names`, `low` and `high` the ends of the interval of the mean. If the
    run is played until it is settled, `marks` has `>`, `<`, `=` or `?` for each cell.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[int | float | None, ...], ...]
    unit: IntervalUnit | None
    marks: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """A finished match in a list; `number` counts matches in the order of writing."""

    id: str
    number: int
    pairing: int
    players: tuple[str, ...]
    scores: tuple[int, ...]
    points: tuple[int, ...]
    kind: str
    seat: int | None
    started_at: float
    finished_at: float
    counts: bool


class Matches(msgspec.Struct, frozen=True):
    """`…/matches.json`: some matches, newest first; `more` says whether there are older ones."""

    matches: tuple[Outline, ...]
    more: bool


class Opponent(msgspec.Struct, frozen=True):
    """A bot's results against another bot."""

    name: str
    played: int
    wins: int
    draws: int
    losses: int
    score: int
    mean: float | None
    error: float | None
    interval: Bounds | None
    level: float | None
    method: str | None


class BandPoint(NamedTuple):
    """A mean after a number of matches, with its interval unless they were too few."""

    matches: int
    mean: float
    low: float | None
    high: float | None


class PairingPage(msgspec.Struct, frozen=True, kw_only=True):
    """`…/pairing.json`: two bots; `cell` is the cross table's entry for `a`, null without one.

    `band` is the mean score of `a` per match over its counting matches so far, in at most 100
    points. `luck` is what `a` won without luck; null if unknown, or not yet visible (J8).
    """

    a: str
    b: str
    unit: IntervalUnit | None
    cell: Opponent | None
    matches: tuple[Outline, ...]
    matches_more: bool
    band: tuple[BandPoint, ...]
    luck: LuckLine | None


class DecisionTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a bot's latest decisions took; `counts[i]` took `edges[i] <= ms < edges[i + 1]`."""

    unit: str
    edges: tuple[int, ...]
    counts: tuple[int, ...]
    of_matches: int
    decisions: int
    median: float | None
    p95: float | None
    max: int | None


class BotPage(msgspec.Struct, frozen=True, kw_only=True):
    """`…/bot.json`; `curve` has (time, score so far) after counting matches, at most 500 points.

    On a ladder `ratings` has (time, rating), at most 500 points, and `versions` has (time, version)
    for the first match of each version.
    """

    name: str
    team: str | None
    row: Any
    opponents: tuple[Opponent, ...]
    curve: tuple[tuple[float, int], ...]
    ratings: tuple[tuple[float, float], ...] = ()
    versions: tuple[tuple[float, str], ...] = ()
    times: DecisionTimes
    verdicts: tuple[Ruling | RulingWithEvidence, ...]
    matches: tuple[Outline, ...]
    matches_more: bool


class Cards(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a match's cards, and how the limits of each seat were enforced."""

    seed: str | None
    commitment: str | None
    nonces: tuple[str, ...]
    enforced: tuple[str, ...]


class LuckCurve(msgspec.Struct, frozen=True, kw_only=True):
    """What each seat had won by the end of some rounds, in `unit`s, with luck and `without`.

    A round is the unit by which luck is measured, which may be several rounds of the game. `after`
    has how many rounds were over at each point.
    """

    unit: str
    after: tuple[int, ...]
    gains: tuple[tuple[float, ...], ...]
    without: tuple[tuple[float, ...], ...]


class MatchPage(msgspec.Struct, frozen=True, kw_only=True):
    """`/api/matches/ID.json`; `rounds` are the scores after each round, `points` the points.

    `luck` is null if it is unknown, or not yet visible (J8). `versions`, by seat, and `worker` are
    as in the record.
    """

    id: str
    competition: str | None
    game: str
    title: str
    settings: Mapping[str, Any]
    players: tuple[str, ...]
    view: View
    result: Result
    started_at: float
    finished_at: float
    counts: bool
    verdict: Ruling | RulingWithEvidence | None
    record: Cards | None
    decisions: int
    rounds: tuple[tuple[int, ...], ...]
    points: tuple[tuple[int, ...], ...]
    luck: LuckCurve | None
    versions: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    worker: str | msgspec.UnsetType = msgspec.UNSET


class AnalysisState(StrEnum):
    """The state of an analysis; the first two are followed by others, the rest are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"  # it cannot be done, and asking again will not help
    FAILED = "failed"


class DecisionMark(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake: which decision of its seat it is, what would have been better, and by how much.

    `number` counts the seat's questions in the match, `turn` those in the `round`, both from 1;
    `index` counts all answers of the match, from 0. `error` is the standard error of an estimated
    cost. `grade` is 1 to 3, for `?!`, `?` and `??`.
    """

    round: int
    turn: int
    number: int
    index: int
    kind: str
    answer_text: str
    best_text: str
    cost: float
    error: float | None
    unit: str
    grade: int


class MistakesPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the decisions of a seat cost it; `marks` are the mistakes shown, in order of play.

    `seat` counts from 1. `totals` are the costs of all mistakes by unit, including mistakes not
    shown. `judged` is how many of the `decisions` were judged.
    """

    seat: int
    version: int
    totals: tuple[UnitTotal, ...]
    decisions: int
    judged: int
    marks: tuple[DecisionMark, ...]


class StrengthPage(msgspec.Struct, frozen=True, kw_only=True):
    """How a bot has played in its latest `matches` of the `of_matches` that the viewer may see.

    `analysis` is null if it is refused, for the reason in `refused`. `charts` show what the bot
    did, with the same charts for every bot; the charts in `analysis` are others.
    """

    bot: str
    version: int
    matches: int
    of_matches: int
    analysis: Analysis | None
    refused: str
    charts: tuple[Chart, ...]


class AnalysisStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The progress and the result of an analysis.

    `place` is its place in the queue, from 1, while it is queued. `done` of `of` decisions or
    matches are finished; `of` is 0 while the total is unknown. `text` is why it is refused, has
    failed, or waits. One of `mistakes` and `strength` is present, and null until it is done.
    """

    state: AnalysisState
    place: int | None = None
    done: int = 0
    of: int = 0
    text: str = ""
    mistakes: MistakesPage | msgspec.UnsetType | None = msgspec.UNSET
    strength: StrengthPage | msgspec.UnsetType | None = msgspec.UNSET
