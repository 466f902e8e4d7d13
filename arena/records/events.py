"""What happens at a table as those who look on are told of it: events, and the rounds that they make.

They are made by `arena/records/replay_events.py`; which of them somebody may see is `arena/records/visibility.py`'s to say.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from protocol.messages import Termination
from protocol.vocabulary import News, Question

__all__ = ["Answered", "Asked", "Dealt", "Event", "Over", "Round", "Told"]


class Dealt(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="dealt"):
    """Cards were shuffled or cut: a deck or a cut point, as in the record of a match with stacked decks."""

    deal: Any


class Told(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="told"):
    """A seat was told something; with None for the seat, all were."""

    seat: int | None
    news: News


class Asked(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="asked"):
    """A seat was asked."""

    seat: int
    question: Question[Any]


class Answered(
    msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="answered"
):
    """A seat answered: what, after how long, and with which note."""

    seat: int
    value: Any
    took_ms: int | None = None
    note: str | None = None


class Over(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="over"):
    """The match is over."""

    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination


Event: TypeAlias = Dealt | Told | Asked | Answered | Over


class Round(msgspec.Struct, frozen=True):
    """A round that has been told.

    Attributes:
        number: from 1.
        scores: by seat, at its end.
        events: what happened, in order.
    """

    number: int
    scores: tuple[int, ...]
    events: tuple[Event, ...]
