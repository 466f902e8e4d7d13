"""What another answer would have brought in a finished match, if cards and rules alone decide it.

That is so if the round ends with the answer: nobody is asked anything more in it, so that nobody
could have done something else. Otherwise nothing is said. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from arena.engine.match import Record
from arena.engine.rules import TellSeat
from arena.games.replay import Event, Playback

__all__ = ["NO_ANSWER", "brought"]

NO_ANSWER = "no legal answer"
"""In the place of an answer of a record that has none."""


def brought(record: Record, seat: int, index: int, answer: object) -> tuple[int, int] | None:
    """What the round brought a seat, and what it would have with another answer.

    `index` is the place of the recorded answer in the record. None if the round does not end with
    the other answer, or did not end in the record. Raises as `events_of`.
    """
    playback = Playback.of(record, seat)
    playback.take_events()
    for value in record.answers[:index]:
        playback.feed(value)
    would = _payoff(playback, playback.feed(answer))
    if would is None:
        return None
    playback = Playback.of(record, seat)
    for number, events in enumerate(playback.feed_all(record)):
        if number >= index and (did := _payoff(playback, events)) is not None:
            return did, would
    return None


def _payoff(playback: Playback, events: Iterable[Event]) -> int | None:
    """What a round brought that is over."""
    words, seat = playback.match.game.vocabulary, playback.seat
    for event in events:
        if type(event) is TellSeat and type(event.news) is words.closes:
            return words.payoffs(event.news)[seat or 0]
    return None
