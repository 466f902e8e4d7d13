"""What single decisions of three card poker cost: playing or folding in chips, antes by the goal.

A hand is judged by what it brings on average, exactly. An ante is judged where a match has a goal,
by how much less likely the goal is reached if all that follows is played best. Near the end of a
match the rounds that are left would decide too, so antes are not judged there.
"""

from __future__ import annotations

from typing import Any

from arena.games.analysis import Judgement
from arena.games.extra import need_analysis
from arena.games.three_card_poker.luck import DEALERS_HANDS
from arena.games.three_card_poker.table import class_of, hand_classes
from protocol.three_card_poker import DECISIONS, Ante, Play, ThreeCardPokerSettings
from protocol.vocabulary import News, Question

__all__ = ["MOST_FOR_BEST", "ThreeCardPokerJudge"]

MOST_FOR_BEST = 2500
"""Beyond this goal the best play for it is not computed: that would take more than some seconds."""

_NEAR = 1e-4  # of the probability: what the limit of rounds may change where antes are judged
# What `?!`, `?` and `??` cost more than. In antes: Q-6-3 costs 0.003 if it is played, 5-3-2 0.26,
# and a pair 1.2 or more if it is folded. In % of reaching the goal: an ante of 10 with a cash of
# 1,000 and a goal of 1,125 costs 0.11, one of 100 1.9, one of 200 8.3.
_PLAY_GRADES = 0.0, 0.1, 0.3
_GOAL_GRADES = 0.1, 1.0, 5.0


class ThreeCardPokerJudge:
    """Judges one match; a `Judge`. What it must know is in the questions."""

    def __init__(self, settings: ThreeCardPokerSettings) -> None:
        self._classes = hand_classes(settings.pair_kicker)
        self._settings = settings
        self._needed: int | None = None

    def heard(self, news: News) -> None:
        return

    def decided(self, question: Question[Any], answer: Any) -> None:
        return

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        if type(question) is Play:
            return self._judge_play(question, answer)
        assert type(question) is Ante, "rules T ask nothing else"
        return self._judge_ante(question, answer)

    def _judge_play(self, question: Play, answer: str) -> Judgement:
        one = self._classes[class_of(question.hand)]
        play, fold = DECISIONS
        cost = one.cost_of[answer == play] / DEALERS_HANDS
        best = play if one.gain > 0 else fold
        grade = _grade(cost, _PLAY_GRADES)
        return Judgement(cost=cost * question.ante, best=best, unit="chips", grade=grade)

    def _judge_ante(self, question: Ante, answer: int) -> Judgement | None:
        goal = self._settings.goal
        if goal is None or goal > MOST_FOR_BEST:
            return None
        need_analysis()
        from arena.games.three_card_poker.chain import best_for_goal

        best = best_for_goal(goal, self._settings.pair_kicker)
        if self._needed is None:
            self._needed = best.rounds_needed(_NEAR)
        if self._settings.rounds - question.round + 1 < self._needed:
            return None
        cost = best.cost_of(question.cash, answer)
        is_level = cost <= _NEAR
        return Judgement(
            cost=100 * cost,
            best=answer if is_level else int(best.antes[question.cash]),
            unit="% of reaching the goal",
            is_level=is_level,
            grade=_grade(100 * cost, _GOAL_GRADES),
        )


def _grade(cost: float, grades: tuple[float, ...]) -> int:
    return sum(cost > grade for grade in grades)
