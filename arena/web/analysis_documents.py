"""The documents of analyses: `…/mistakes.json` of a match, `…/strength.json` of a competition.

Both are made in the background. Until then there is one that says how far it is.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from arena.engine.analysis import Analysis, Chart
from arena.records.mistakes import UnitTotal

__all__ = ["AnalysisState", "AnalysisStatus", "DecisionMark", "MistakesPage", "StrengthPage"]


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
    included; so many of the `decisions` were `judged`.
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
