"""What a decision in gin rummy costs, as the house bot `master` appraises it (rulebook, section G).

Nothing is exact here: what an answer is worth is the mean of many rounds that are played on, with
cards of the other seat that fit all that the seat has seen. All answers are tried with the same
cards, and a cost is the mean of the differences, in percent of the game.

The best of several estimates is too good on average. So the best answer is chosen by some samples,
and what it would have brought more is measured by others. Most decisions end after the first step:
the answer was the best, or not far from it.
"""

from __future__ import annotations

from math import sqrt
from statistics import fmean, stdev
from typing import Any

from arena.games.analysis import Judgement
from protocol.gin_rummy import GinRummySettings, Melds
from protocol.strategy import Appraisal, Appraiser, find, house_bots
from protocol.vocabulary import News, Question

__all__ = ["CHOOSE", "MEASURE", "UNIT", "GinRummyJudge", "difference", "refuses"]

UNIT = "% of the game"

CHOOSE, MEASURE = 60, 240
"""How many samples choose the best answer, and how many measure what it brings."""

_APPRAISER = "master"
_SUSPECT = 0.5  # standard errors: an answer so little behind the best is not measured
_ERRORS = 2.5  # standard errors from which a cost is told from 0
_LEAST = 1.0  # percent of the game; a smaller cost is level
_GRADES = (1.0, 3.0, 8.0)  # from so many percent on it is a `?!`, a `?`, a `??`

_TARGET = 50  # the points of a game that `master` plays for
_ROUNDS = 10  # a game that ends after fewer may end undecided
_TURNS = 31  # in fewer a stock may be left over


def refuses(settings: GinRummySettings) -> str | None:
    """Why decisions are not judged with these settings; None if they are."""
    if _APPRAISER not in house_bots("gin_rummy", slow=True):
        return f"the house bot {_APPRAISER} is not installed, which judges"
    if settings.target != _TARGET:
        return f"what a score is worth is known in games to {_TARGET} points, not {settings.target}"
    if settings.max_rounds < _ROUNDS or settings.max_turns < _TURNS:
        return (
            f"what a score is worth is known in games of {_ROUNDS} rounds and more, "
            f"of {_TURNS} turns and more"
        )
    return None


class GinRummyJudge:
    """Judges a seat by what `master` thinks in its place."""

    def __init__(self, settings: GinRummySettings, seat: int) -> None:
        appraiser = find("gin_rummy", _APPRAISER)()
        appraiser.seed("judge")  # so that the same match is judged the same
        appraiser.reset()
        self._appraiser: Appraiser = appraiser

    def heard(self, news: News) -> None:
        """Note what the seat was told."""
        self._appraiser.hear(news)

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Note what the seat has answered."""
        self._appraiser.recall(question, answer)

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        """Judge an answer; None for melds that are declared after the other seat's knock."""
        if type(question) is Melds:
            return None
        first = self._appraiser.appraise(question, answer, samples=CHOOSE)
        best = max(zip(first.worths, first.answers, strict=True), key=lambda one: fmean(one[0]))[1]
        if best == answer:
            return Judgement(cost=0.0, best=answer, unit=UNIT)
        cost, error = difference(first, best, answer)
        if cost > _SUSPECT * error:
            more = self._appraiser.appraise(question, answer, samples=MEASURE)
            cost, error = difference(more, best, answer)
        return _judgement(best, max(cost, 0.0), error)


def difference(appraisal: Appraisal, best: Any, answer: Any) -> tuple[float, float]:
    """How much better `best` is, in percent of the game, and the standard error of that."""
    one, other = (appraisal.worths[appraisal.answers.index(each)] for each in (best, answer))
    gaps = [100 * (mine - theirs) for mine, theirs in zip(one, other, strict=True)]
    return fmean(gaps), stdev(gaps) / sqrt(len(gaps))


def _judgement(best: Any, cost: float, error: float) -> Judgement:
    is_level = cost < _LEAST or cost <= _ERRORS * error
    grade = 0 if is_level else sum(cost >= least for least in _GRADES)
    return Judgement(cost=cost, best=best, unit=UNIT, error=error, is_level=is_level, grade=grade)
