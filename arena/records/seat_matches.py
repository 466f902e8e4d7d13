"""A finished match as one seat saw it: what it was asked, answered and told, and nothing else.

What is made from a `SeatMatch` can tell that seat's bot and its owner no card that J8 keeps from
them. Pure.
"""

from __future__ import annotations

from arena.engine.analysis import SeatDecision, SeatMatch
from arena.engine.match import Record, questions_of
from arena.games.replay import reopened
from protocol.vocabulary import News

__all__ = ["numbered_seat_match", "seat_match"]


def seat_match(record: Record, seat: int) -> SeatMatch:
    """Replay a record for one seat; raises as `reopened` and `MatchState.step`."""
    return numbered_seat_match(record, seat)[0]


def numbered_seat_match(record: Record, seat: int) -> tuple[SeatMatch, tuple[int, ...]]:
    """`seat_match`, and for each decision the place of its answer in the record, from 0."""
    match = reopened(record)
    decisions: list[SeatDecision] = []
    places: list[int] = []
    rest: tuple[News, ...] = ()
    for number, question, news in questions_of(seat, match.steps(record.answers)):
        if question is not None and number < len(record.answers):
            # As the rules took it, which is not yet there when its question is yielded.
            answer = question.check(record.answers[number])
            decisions.append(SeatDecision(question, answer, news))
            places.append(number)
        else:
            rest += news
    return SeatMatch(match.settings, seat, decisions, rest), tuple(places)
