"""The decisions of a match, one by one, with what each seat knew, and what they took and cost.

It is made for programs that look for patterns: `arena.decisions` in Python, and the table that
`arena export --decisions` writes. It names all that all seats were told, so J8 says who may see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import add
from typing import Any

import msgspec

from arena.engine.analysis import Judge, Judgement
from arena.engine.match import MatchState, MatchStep, Record
from arena.engine.rules import EVERYONE, NOBODY, LuckMeter, LuckRound, TellSeat
from arena.games.replay import reopened
from arena.records.mistakes import judging_of
from protocol.vocabulary import News, Question

__all__ = ["RecordedDecision", "decisions"]


class RecordedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A question of a match and its answer.

    Attributes:
        index: which answer of the record it is, from 0.
        number: which of the seat's questions it is, from 1.
        seat: whose decision it is, from 0.
        round: in which round it was asked, from 1.
        question, answer: as the rules asked and took it.
        news: what the seat was told since its question before this one.
        time_ms: from the question to the answer; None in a match without a clock.
        luck: what chance gave the seat in this round, and in those before it in which it was not
            asked, in the unit of the game's luck (`arena/records/luck.py`); a game may measure
            luck by something longer than a round. It stands at the seat's first decision there and
            is None at its later ones: the sum lacks what came after its last decision only. It is
            also None if luck cannot be measured, or the round was not played to its end.
        cost: what the decision cost; None if it was not asked for, or the game does not judge it.
    """

    index: int
    number: int
    seat: int
    round: int
    question: Question[Any]
    answer: Any
    news: tuple[News, ...]
    time_ms: int | None
    luck: float | None
    cost: Judgement | None


def decisions(record: Record, *, costs: bool = False) -> Iterator[RecordedDecision]:
    """Replay a record and yield its decisions in their order, a round at a time.

    With `costs` each is judged as `arena mistakes` does, from what its seat knew: that may take
    seconds a round. Then it raises `NoAnalysis` if the game cannot judge the match. It raises as
    `reopened` does, and while it goes on as `MatchState.step`.
    """
    match = reopened(record, tells_deals=True)
    judges: list[Judge] = []
    if costs:
        judging = judging_of(match.game, match.settings)
        judges = [judging.judge(match.settings, seat) for seat in range(match.game.seats)]
    return _Replay(match, record, judges).decisions()


class _Replay:
    """Hears a match for all its seats."""

    def __init__(self, match: MatchState, record: Record, judges: list[Judge]) -> None:
        self._match, self._record, self._judges = match, record, judges
        game = match.game
        self._heard: list[list[News]] = [[] for _ in range(game.seats)]
        self._asked = [0] * game.seats
        self._luck = [0.0] * game.seats  # that is told with the next decision
        self._rounds = 0  # that are over
        self._closes = game.vocabulary.closes
        self._meter: LuckMeter | None = None
        can_measure = game.luck is not None and game.luck.refuses(match.settings) is None
        if game.luck is not None and can_measure and record.decks is None:
            self._meter = game.luck.meter(match.settings)

    def decisions(self) -> Iterator[RecordedDecision]:
        waiting: list[RecordedDecision] = []  # for the luck of their round
        measured = 0
        for index, step in enumerate(self._match.steps(self._record.answers), -1):
            if step.answered is not None:
                waiting.append(self._decided(index, step))
            for told in step.news:
                self._tell(told)
            if self._meter is None:
                yield from waiting
                waiting = []
            elif step.asked is not None:
                self._meter.asked(step.asked)
            while self._meter is not None and len(self._meter.rounds) > measured:
                yield from self._with_luck(waiting, self._meter.rounds[measured])
                waiting, measured = [], measured + 1
        yield from waiting

    def _decided(self, index: int, step: MatchStep) -> RecordedDecision:
        asked, answer = step.answered, step.answer
        assert asked is not None, "it was answered"
        if self._meter is not None:
            self._meter.answered(asked, answer)
        seat, times = asked.seat, self._record.times_ms
        self._asked[seat] += 1
        heard, self._heard[seat] = tuple(self._heard[seat]), []
        cost = None
        if self._judges:
            judge = self._judges[seat]
            for news in heard:
                judge.heard(news)
            cost = judge.judged(asked.question, answer)
            judge.decided(asked.question, answer)
        return RecordedDecision(
            index=index,
            number=self._asked[seat],
            seat=seat,
            round=self._rounds + 1,
            question=asked.question,
            answer=answer,
            news=heard,
            time_ms=times[index] if index < len(times) else None,
            luck=None,
            cost=cost,
        )

    def _tell(self, told: TellSeat) -> None:
        if self._meter is not None:
            if told.seat == NOBODY:
                self._meter.dealt(told.news)
            else:
                self._meter.told(told)
        for seat, heard in enumerate(self._heard):
            if told.seat in (seat, EVERYONE):
                heard.append(told.news)
        if type(told.news) is self._closes and told.seat in (EVERYONE, 0):
            self._rounds += 1

    def _with_luck(
        self, played: list[RecordedDecision], over: LuckRound
    ) -> Iterator[RecordedDecision]:
        """The decisions of a round that is over; the first of each seat gets its luck."""
        self._luck = [*map(add, self._luck, over.luck)]
        asked = set()
        for decision in played:
            if (seat := decision.seat) in asked:
                yield decision
            else:
                asked.add(seat)
                yield msgspec.structs.replace(decision, luck=self._luck[seat])
                self._luck[seat] = 0.0
