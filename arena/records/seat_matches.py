"""A finished match as one seat saw it: what it was asked, answered and told, and nothing else.

What is made from a `SeatMatch` can tell that seat's bot and its owner no card that J8 keeps from
them. Pure.
"""

from __future__ import annotations

from arena.engine.analysis import SeatDecision, SeatMatch
from arena.engine.match import Record, questions_of
from arena.games.replay import reopened
from arena.records.seat_document import SeatDocument
from protocol.vocabulary import News

__all__ = ["numbered_seat_match", "seat_match"]


def seat_match(record: Record | SeatDocument, seat: int) -> SeatMatch:
    """Replay a record for one seat, or the document of that seat.

    Raises as `reopened` and `MatchState.step`, or as `SeatDocument.steps`.
    """
    return numbered_seat_match(record, seat)[0]


def numbered_seat_match(
    record: Record | SeatDocument, seat: int
) -> tuple[SeatMatch, tuple[int, ...]]:
    """`seat_match`, and for each decision the place of its answer in the record, from 0."""
    if isinstance(record, SeatDocument):
        settings = record.game.vocabulary.read_settings(record.record.settings)
        steps, record = record.steps(), record.record
    else:
        match = reopened(record)
        settings, steps = match.settings, match.steps(record.answers)
    decisions: list[SeatDecision] = []
    places: list[int] = []
    rest: tuple[News, ...] = ()
    for number, question, news in questions_of(seat, steps):
        if question is not None and number < len(record.answers):
            # As the rules took it, which is not yet there when its question is yielded.
            answer = question.check(record.answers[number])
            decisions.append(SeatDecision(question, answer, news))
            places.append(number)
        else:
            rest += news
    return SeatMatch(settings, seat, decisions, rest), tuple(places)
