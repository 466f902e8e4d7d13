"""What another answer would have brought in a finished match, if cards and rules alone decide it.

That is so if the round ends with the answer: nobody is asked anything more in it, so that nobody
could have done something else. Otherwise nothing is said. Pure.
"""

from __future__ import annotations

from arena.engine.match import MatchState, MatchStep, Record
from arena.engine.rules import EVERYONE
from arena.games.replay import reopened

__all__ = ["NO_ANSWER", "brought"]

NO_ANSWER = "no legal answer"
"""In the place of an answer of a record that has none."""


def brought(record: Record, seat: int, index: int, answer: object) -> tuple[int, int] | None:
    """What the round brought a seat, and what it would have with another answer.

    `index` is the place of the recorded answer in the record. None if the round does not end with
    the other answer, or did not end in the record. Raises as `reopened` and `MatchState.step`.
    """
    match = reopened(record)
    for value in record.answers[:index]:
        match.step(value)
    would = _payoff(match, match.step(answer), seat)
    if would is None:
        return None
    match = reopened(record)
    for number, value in enumerate(record.answers):
        step = match.step(value)
        if number >= index and (did := _payoff(match, step, seat)) is not None:
            return did, would
    return None


def _payoff(match: MatchState, step: MatchStep, seat: int) -> int | None:
    """What a round brought that is over."""
    words = match.game.vocabulary
    for told in step.news:
        if type(told.news) is words.closes and told.seat in (seat, EVERYONE):
            return words.payoffs(told.news)[seat]
    return None
