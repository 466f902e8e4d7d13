"""The decisions of a match, one by one, with what each seat knew, and their time and cost.

They are for programs that look for patterns: `arena.decisions` in Python, and the table that
`arena export --decisions` writes. They contain everything that all seats were told, so J8 says who
may see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import add

import msgspec

from arena.games.analysis import Judge, Judgement, SeatDecision
from arena.games.catalogue import game_named
from arena.games.match import Record
from arena.games.replay import Event, SeatAnswered, events_of
from arena.games.rules import EVERYONE, LuckMeter, TellSeat
from arena.records.luck import measure
from arena.records.mistakes import judging_of
from protocol.vocabulary import News

__all__ = ["RecordedDecision", "decisions"]


class RecordedDecision(SeatDecision, frozen=True, kw_only=True):
    """A question of a match and its answer.

    Attributes:
        index, number, round, question, answer, news: as in `SeatDecision`.
        seat: whose decision it is, from 0.
        time_ms: from the question to the answer; None in a match without a clock.
        luck: what chance gave the seat in this round and in earlier rounds in which it was not
            asked, in the unit of the game's luck (`arena/records/luck.py`), which may be measured
            over longer than a round. It is set at the seat's first decision of the round and None
            at later ones; what comes after the seat's last decision is missing. Also None if luck
            cannot be measured, or the round was not played to its end.
        cost: what the decision cost; None if not requested, or if the game does not judge it.
    """

    seat: int
    time_ms: int | None = None
    luck: float | None = None
    cost: Judgement | None = None


def decisions(record: Record, *, costs: bool = False) -> Iterator[RecordedDecision]:
    """Replay a record and yield its decisions in order, one round at a time.

    With `costs` each decision is judged as by `arena mistakes`, from what its seat knew. That may
    take seconds per round, and raises `NoAnalysis` if the game cannot judge the match. Other errors
    are those of `events_of`.
    """
    events = events_of(record)
    game = game_named(record.game, record.package)
    settings = game.vocabulary.read_settings(record.settings)
    judges: list[Judge] = []
    if costs:
        judging = judging_of(game, settings)
        judges = [judging.judge(settings, seat) for seat in range(game.seats)]
    made = _made(events, game.seats, game.vocabulary.closes, judges)
    if game.luck is None or game.luck.refuses(settings) is not None or record.decks is not None:
        return (decision for _, decision in made if decision is not None)
    return _with_luck(made, game.luck.meter(settings), game.seats)


def _made(
    events: Iterable[Event], seats: int, closes: type[News], judges: list[Judge]
) -> Iterator[tuple[Event, RecordedDecision | None]]:
    """Yield each event, and the decision if it is one."""
    heard: list[list[News]] = [[] for _ in range(seats)]
    asked = [0] * seats
    number = 1
    for event in events:
        decision = None
        if type(event) is TellSeat:
            for hears in heard if event.seat == EVERYONE else [heard[event.seat]]:
                hears.append(event.news)
            number += type(event.news) is closes and event.seat in (EVERYONE, 0)
        elif type(event) is SeatAnswered:
            seat, question, answer = event.seat, event.question, event.value
            asked[seat] += 1
            news, heard[seat] = tuple(heard[seat]), []
            cost = None
            if judges:
                for each in news:
                    judges[seat].heard(each)
                cost = judges[seat].judged(question, answer)
                judges[seat].decided(question, answer)
            decision = RecordedDecision(
                *(question, answer, news, asked[seat], event.index, number),
                seat=seat,
                time_ms=event.took_ms,
                cost=cost,
            )
        yield event, decision


def _with_luck(
    made: Iterable[tuple[Event, RecordedDecision | None]], meter: LuckMeter, seats: int
) -> Iterator[RecordedDecision]:
    """Yield the decisions round by round; the first of each seat gets the luck of the round."""
    waiting: list[RecordedDecision] = []
    luck = [0.0] * seats  # not yet given to a decision
    measured = 0
    for event, made_now in made:
        measure(meter, event)
        waiting += [] if made_now is None else [made_now]
        for over in meter.rounds[measured:]:
            luck = [*map(add, luck, over.luck)]
            told = set()
            for decision in waiting:
                if (seat := decision.seat) not in told:
                    told.add(seat)
                    decision = msgspec.structs.replace(decision, luck=luck[seat])
                    luck[seat] = 0.0
                yield decision
            waiting.clear()
        measured = len(meter.rounds)
    yield from waiting
