"""The exact value of hands, answers and luck in three card poker (rulebook, section T).

A play or fold is judged by the mean payoff of the hand. An ante is judged where a match has a goal,
by how much it lowers the probability of the goal if all that follows is played best. Near the end
of a match the number of rounds left would matter too, so antes are not judged there.

The value of the player's hand is the better of the mean payoffs of playing and folding, over all
hands that the dealer may have. The luck of the dealer's hand is what it pays for the given answer,
compared with that mean. All is counted in antes, as a bot's ante may depend on its cash and a match
may end broke. Without luck a round brings the value of the game minus what the answer gave away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from arena.games.analysis import Chart, ChartCell, Weakness, drawn, need_analysis
from arena.games.evaluator import Answered, Cell, Evaluator, Tally, Worths
from arena.games.rules import AskSeat, TellSeat
from arena.games.three_card_poker.table import (
    DEALERS_HANDS,
    GROUPS,
    HANDS,
    LINE,
    HandClass,
    class_of,
    hand_classes,
)
from protocol.three_card_poker import (
    DECISIONS,
    FOLDED,
    Ante,
    Decision,
    Hand,
    Play,
    RoundOver,
    ThreeCardPokerSettings,
)
from protocol.vocabulary import News, Question

__all__ = [
    "BEST",
    "MOST_FOR_BEST",
    "UNIT",
    "ThreeCardPokerEvaluator",
    "given_away",
    "hand_cells",
    "played_chart",
    "weaknesses",
]

BEST = Fraction(-35_253_012, HANDS * DEALERS_HANDS)
"""The mean payoff of a round with the best play, in antes; `pair_kicker` does not change it, as
all pairs are played."""

UNIT = "% of the ante"
_PERCENT = Fraction(100, DEALERS_HANDS)  # of the ante, per unit of the costs in a `HandClass`

MOST_FOR_BEST = 2500
"""The best play is not computed for higher goals: that would take more than some seconds."""

_NEAR = 1e-4  # of the probability: antes are judged where the limit of rounds changes no more
# Costs above which a mistake is `?!`, `?`, `??`. In antes: playing Q-6-3 costs 0.003, playing 5-3-2
# 0.26, and folding a pair 1.2 or more. In % of reaching the goal: with a cash of 1,000 and a goal
# of 1,125 an ante of 10 costs 0.11, one of 100 1.9, one of 200 8.3.
_PLAY_GRADES = 0.0, 0.1, 0.3
_GOAL_GRADES = 0.1, 1.0, 5.0


class ThreeCardPokerEvaluator(Evaluator):
    """Evaluates a match of three card poker; the questions say all that it needs."""

    def __init__(self, settings: ThreeCardPokerSettings, seat: int | None = None) -> None:
        super().__init__(settings, seat)
        self._classes = hand_classes(settings.pair_kicker)
        self._needed: int | None = None  # rounds that the goal needs

    def worths(self, question: Question[Any], answer: Any) -> Worths | None:
        if type(question) is Ante:
            return self._of_antes(question, answer)
        assert type(question) is Play, "rules T ask nothing else"
        play, fold = DECISIONS
        mean, ante = self._classes[class_of(question.hand)].mean, question.ante
        return Worths(
            values={play: (mean * ante,), fold: (float(FOLDED * ante),)},
            unit="chips",
            grades=_PLAY_GRADES,
            scale=ante,
        )

    def _of_antes(self, question: Ante, answer: int) -> Worths | None:
        goal = self.settings.goal
        if goal is None or goal > MOST_FOR_BEST:
            return None
        need_analysis()
        from arena.games.three_card_poker.chain import best_for_goal

        best = best_for_goal(goal, self.settings.pair_kicker)
        if self._needed is None:
            self._needed = best.rounds_needed(_NEAR)
        if self.settings.rounds - question.round + 1 < self._needed:
            return None
        value, cost = 100 * float(best.values[question.cash]), best.cost_of(question.cash, answer)
        return Worths(
            values={int(best.antes[question.cash]): (value,), answer: (value - 100 * cost,)},
            unit="% of reaching the goal",
            grades=_GOAL_GRADES,
            least=100 * _NEAR,
        )

    def luck(self, event: TellSeat | AskSeat) -> Sequence[float] | None:
        news = event.news if type(event) is TellSeat else None
        if type(news) is not RoundOver:
            return None
        played = self._classes[class_of(news.hand)].mean
        # Only a fold costs exactly one ante (T6).
        answer = FOLDED if news.outcome == FOLDED else played
        return (max(played, FOLDED) - float(BEST) + news.outcome - answer,)

    def gains(self, news: News) -> Sequence[float] | None:
        return (news.outcome,) if type(news) is RoundOver else None

    def cells(self, event: TellSeat | Answered) -> Iterable[tuple[Cell, int]]:
        if type(event) is Answered and type(event.question) is Play:
            return hand_cells(self._classes, event.question.hand, event.answer)
        return ()

    @staticmethod
    def charts(tally: Tally) -> tuple[Chart, ...]:
        return (played_chart(tally),)


def hand_cells(
    classes: Sequence[HandClass], hand: Hand, decision: Decision
) -> Iterator[tuple[Cell, int]]:
    """The cells in which a decision counts: its class, its group with the cost, and all hands."""
    number, plays = class_of(hand), decision == "play"
    one = classes[number]
    cost = one.cost_of[plays]
    yield number, plays
    yield GROUPS[one.group], plays
    yield (GROUPS[one.group], "cost"), cost
    yield "cost", cost
    yield "square", cost * cost


def given_away(tally: Tally) -> Fraction:
    """The mean cost of mistakes, in `UNIT`; there must be a hand."""
    return _PERCENT * tally.done["cost"] / tally.asked["cost"]


def _lost(tally: Tally, group: str) -> float:
    """The cost of mistakes with the hands of a group, as a mean over all hands."""
    return float(_PERCENT * tally.done[group, "cost"] / tally.asked["cost"])


def weaknesses(tally: Tally) -> tuple[Weakness, ...]:
    """The groups in which a bot makes mistakes; their costs sum to `given_away`."""
    found = [
        Weakness(
            spot=group,
            played=_shown("plays", tally.done[group] / tally.asked[group]),
            best="plays" if place < LINE else "folds",
            cost=_lost(tally, group),
        )
        for place, group in enumerate(GROUPS)
        if tally.done[group, "cost"]
    ]
    return tuple(sorted(found, key=lambda one: -one.cost))


def played_chart(tally: Tally, is_sample: bool = True) -> Chart:
    """How often a bot plays the hands of each group; the shares of a sample have intervals."""

    def cell(place: int, _: str) -> ChartCell:
        group = GROUPS[place]
        cost = _lost(tally, group) if tally.asked[group] else None
        cell = tally.cell(group, mark=float(place < LINE), cost=cost)
        return cell if is_sample else msgspec.structs.replace(cell, low=None, high=None)

    return drawn(
        "Hands played",
        "plays",
        {group: place for place, group in enumerate(GROUPS)},
        {"plays": "plays"},
        cell,
        line=LINE,
        cost_unit=f"{UNIT} a hand",
        note="The best play is to play Q-6-4 or better and to fold the rest.",
    )


def _shown(what: str, share: float) -> str:
    return what if share == 1 else "folds" if share == 0 else f"{what} {100 * share:.1f} %"
