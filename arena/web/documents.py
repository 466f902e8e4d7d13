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
    """A document cannot be returned; `status` is the HTTP status."""

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
    """A competition in a list; `played` are matches that count, a ladder's `scheduled` is null."""

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
    """What a league ranks by; `is_share` says that it is a share of its matches."""

    title: str
    is_share: bool


class RankedBots(msgspec.Struct, frozen=True):
    """A place in the ranking of an elimination that is over; several bots may share it."""

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
    """An offence without its evidence, for most viewers while the competition goes on (J8)."""

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

    `not_there` are bots of the roster that were not connected when it started. `missing` says that
    the game's package is not installed; then there may be no standings. `unit` says of what their
    intervals are made, if there are any. `luck` has what bots won without luck, of those whose luck
    the viewer may see (J8), and `luck_unit` in what. `versions` has the latest version that has
    played, by bot, of bots that have one.
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
    settle: Settling | msgspec.UnsetType = msgspec.UNSET  # until what it is played (K6)


class CrossTablePage(msgspec.Struct, frozen=True):
    """`…/cross.json`: the cells of a round robin.

    They are (row, column, played, wins, draws, losses, score, mean, error, low, high); row and
    column are indices of `names`, `low` and `high` the ends of the interval of the mean. Where a
    run settles, `marks` has `>`, `<`, `=` or `?` for each cell.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[int | float | None, ...], ...]
    unit: IntervalUnit | None
    marks: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """A match in a list of those that are over; `number` goes up in the order of writing."""

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
    """How sure a mean was after so many matches; without an interval where they were too few."""

    matches: int
    mean: float
    low: float | None
    high: float | None


class PairingPage(msgspec.Struct, frozen=True, kw_only=True):
    """`…/pairing.json`: two bots; `cell` is the cross table's entry for `a`, null without one.

    `band` has the mean score of `a` per match as it was after its matches that count, at most 100
    points. `luck` is what `a` won without luck; null if that is not known, or not to be seen yet
    (J8).
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
    """`…/bot.json`; `curve` is (when, score so far) after matches that count, at most 500.

    On a ladder `ratings` is (when, rating), at most 500, and `versions` (when, version) from when
    each version played.
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
    """What the cards of a match were dealt from, and how the limits of each seat were enforced."""

    seed: str | None
    commitment: str | None
    nonces: tuple[str, ...]
    enforced: tuple[str, ...]


class LuckCurve(msgspec.Struct, frozen=True, kw_only=True):
    """What each seat had won up to the end of some rounds, in `unit`s, with luck and `without`.

    A round is what luck is measured by, which may be several of the game. `after` has how many were
    over.
    """

    unit: str
    after: tuple[int, ...]
    gains: tuple[tuple[float, ...], ...]
    without: tuple[tuple[float, ...], ...]


class MatchPage(msgspec.Struct, frozen=True, kw_only=True):
    """`/api/matches/ID.json`; `rounds` are the scores after each round, `points` the points.

    `luck` is null if that is not known, or not to be seen yet (J8). `versions`, by seat, and
    `worker` are as in the record.
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
    """How far an analysis is; the first two go on by themselves, the others are the end."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"  # it cannot be done, for a reason that asking again does not change
    FAILED = "failed"


class DecisionMark(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake: which decision of its seat it is, what would have been better, and by how much.

    `number` is which of the seat's questions, `turn` which of those in its `round`, and `index`
    which answer of the match, in the order of play and from 1, but `index` from 0. `error` is the
    standard error of an estimated cost. `grade` is 1 to 3, for `?!`, `?` and `??`.
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
    """What the decisions of a seat cost it; `marks` are those that are shown, in order of play.

    `seat` counts from 1. `totals` are by unit what all mistakes cost, those that are not shown
    included. `judged` is how many of the `decisions` were judged.
    """

    seat: int
    version: int
    totals: tuple[UnitTotal, ...]
    decisions: int
    judged: int
    marks: tuple[DecisionMark, ...]


class StrengthPage(msgspec.Struct, frozen=True, kw_only=True):
    """How a bot has played in its latest `matches`, of `of_matches` that the viewer may see so.

    `analysis` is null where it is refused, for the reason in `refused`. `charts` are what the bot
    did, the same for every bot; those of `analysis` are others.
    """

    bot: str
    version: int
    matches: int
    of_matches: int
    analysis: Analysis | None
    refused: str
    charts: tuple[Chart, ...]


class AnalysisStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far an analysis is, and what came of it.

    `place` is its place in the queue, from 1, while it is queued. `done` of `of` decisions or
    matches are looked at; `of` is 0 while that is not known. `text` is why it is refused, has
    failed, or waits. It has one of `mistakes` and `strength`, which is null until it is done.
    """

    state: AnalysisState
    place: int | None = None
    done: int = 0
    of: int = 0
    text: str = ""
    mistakes: MistakesPage | msgspec.UnsetType | None = msgspec.UNSET
    strength: StrengthPage | msgspec.UnsetType | None = msgspec.UNSET
