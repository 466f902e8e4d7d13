"""Who may say what when: one state table for the session and one for its seats, used by both ends.

Each end has a `Session` and passes it every message that it sends or receives, before it acts on
it. A message that the tables do not allow raises `OutOfTurn` and changes nothing. A session
outlives its connection: after a reconnect `hello` comes again and the seats are in the same state.

Messages cross on the wire: an answer may be on its way while the arena says `over`. So a seat whose
match is over still accepts them, without effect; and a repeated answer counts once.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import TypeAlias, TypeGuard

from protocol.errors import OutOfTurn
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Done,
    Goodbye,
    Hello,
    Instruct,
    Match,
    Over,
    Past,
    Ready,
    Refused,
    Welcome,
)

__all__ = ["SEAT_TABLE", "SESSION_TABLE", "SeatStanding", "SeatState", "Session", "State", "ask_id"]

# How many finished seats are remembered, as an answer may cross the `over` of its match on the
# wire: twice the most tables that a bot can have.
_REMEMBERED = 8192

_DIGITS = 18  # of an ask's number; enough for any seat, and `int` refuses thousands


class State(IntEnum):
    """The state of a connection; an `IntEnum`, as its hash is fast and needed for each message."""

    NEW = auto()
    GREETED = auto()
    OPEN = auto()
    LEAVING = auto()
    CLOSED = auto()


class SeatState(IntEnum):
    """The state of one seat of the session."""

    FREE = auto()
    INVITED = auto()
    SEATED = auto()
    ASKED = auto()
    OVER = auto()


_Type = type[BotMessage | ArenaMessage]

SESSION_TABLE: dict[tuple[State, _Type], State] = {
    (State.NEW, Hello): State.GREETED,
    (State.NEW, Instruct): State.NEW,  # an instruction needs no session
    (State.NEW, Done): State.NEW,
    (State.NEW, Refused): State.CLOSED,
    (State.GREETED, Welcome): State.OPEN,
    (State.GREETED, Refused): State.CLOSED,
    (State.OPEN, Match): State.OPEN,
    (State.OPEN, Ready): State.OPEN,
    (State.OPEN, Ask): State.OPEN,
    (State.OPEN, Answer): State.OPEN,
    (State.OPEN, Past): State.OPEN,
    (State.OPEN, Over): State.OPEN,
    (State.OPEN, Refused): State.OPEN,
    (State.OPEN, Goodbye): State.LEAVING,
    # Messages that the arena sent before the goodbye reached it may still arrive.
    (State.LEAVING, Match): State.LEAVING,
    (State.LEAVING, Ask): State.LEAVING,
    (State.LEAVING, Past): State.LEAVING,
    (State.LEAVING, Over): State.LEAVING,
    (State.LEAVING, Refused): State.LEAVING,
}

SEAT_TABLE: dict[tuple[SeatState, _Type], SeatState] = {
    (SeatState.FREE, Match): SeatState.INVITED,
    (SeatState.FREE, Over): SeatState.OVER,  # the invitation was lost with a connection
    (SeatState.INVITED, Match): SeatState.INVITED,  # again after a reconnect
    (SeatState.INVITED, Past): SeatState.INVITED,  # to a program that has lost its memory
    (SeatState.INVITED, Ready): SeatState.SEATED,
    (SeatState.INVITED, Over): SeatState.OVER,
    (SeatState.SEATED, Ready): SeatState.SEATED,  # to a repeated invitation
    (SeatState.SEATED, Match): SeatState.SEATED,
    (SeatState.SEATED, Past): SeatState.SEATED,
    (SeatState.SEATED, Ask): SeatState.ASKED,
    (SeatState.SEATED, Refused): SeatState.ASKED,  # in practice: the answer was not legal
    (SeatState.SEATED, Answer): SeatState.SEATED,  # a repeated answer counts once
    (SeatState.SEATED, Over): SeatState.OVER,
    (SeatState.ASKED, Past): SeatState.ASKED,
    (SeatState.ASKED, Match): SeatState.ASKED,  # again after a reconnect, and so are
    (SeatState.ASKED, Ready): SeatState.ASKED,
    (SeatState.ASKED, Ask): SeatState.ASKED,
    (SeatState.ASKED, Answer): SeatState.SEATED,
    (SeatState.ASKED, Over): SeatState.OVER,
    (SeatState.OVER, Ready): SeatState.OVER,
    (SeatState.OVER, Answer): SeatState.OVER,
    (SeatState.OVER, Over): SeatState.OVER,
}


_STATES = {
    state: {kind: after for (before, kind), after in SESSION_TABLE.items() if before is state}
    for state in State
}
_SEATS = {
    state: {kind: after for (before, kind), after in SEAT_TABLE.items() if before is state}
    for state in SeatState
}
"""The seat table by row: without a tuple per look-up, which is on the hot path."""

_WHEN = {
    State.NEW: "before hello",
    State.GREETED: "before welcome",
    State.OPEN: "after welcome",
    State.LEAVING: "after goodbye",
    State.CLOSED: "after hello was refused",
}
_STANDS = {
    SeatState.FREE: "there is no such match here",
    SeatState.INVITED: "ready has not been said for it",
    SeatState.SEATED: "nothing has been asked in it",
    SeatState.ASKED: "its question has not been answered",
    SeatState.OVER: "it is over",
}

# Before Python 3.12, looking up a member of an enum is too slow for every message.
_OPEN, _SEATED, _ASKED = State.OPEN, SeatState.SEATED, SeatState.ASKED

_AboutASeat: TypeAlias = Answer | Ask | Match | Over | Past | Ready | Refused


def _is_about_a_seat(message: BotMessage | ArenaMessage) -> TypeGuard[_AboutASeat]:
    if isinstance(message, Refused):
        return message.ask is not None
    return isinstance(message, Answer | Ask | Match | Over | Past | Ready)


@dataclass(slots=True)
class SeatStanding:
    """The state of one seat of a session.

    Nearly all messages are asks and their answers. Code that keeps this object with the seat passes
    them to it directly, without a look-up; all other messages go to `Session.note`.
    """

    state: SeatState = SeatState.FREE
    asked: str = ""  # the id of the latest ask

    def note_ask(self, ask: str) -> bool:
        """Note that an idle seat is asked; False (and no change) if it is in another state."""
        if self.state is not _SEATED:
            return False
        self.state, self.asked = _ASKED, ask
        return True

    def note_answer(self, ask: str) -> bool:
        """Note the answer to the latest ask; False (and no change) for any other answer."""
        if self.state is not _ASKED or self.asked != ask:
            return False
        self.state = _SEATED
        return True


class Session:
    """One bot's session, as one end of the wire sees it."""

    def __init__(self) -> None:
        self.state = State.NEW
        self.finishing = False  # after a goodbye with `finish`, no new matches
        self._seats: dict[str, SeatStanding] = {}
        self._over: OrderedDict[str, None] = OrderedDict()

    def note(self, message: BotMessage | ArenaMessage) -> bool:
        """Note a message that was sent or received; False if it has no effect and must be ignored.

        Raises `OutOfTurn`, without a change, if the message may not be sent now.
        """
        if self.state is _OPEN and self._note_turn(message):
            return True
        kind = type(message)
        state = _STATES[self.state].get(kind)
        if state is None:
            name = kind.__name__.lower()
            raise OutOfTurn(f"{name} may not be sent {_when(kind, self.state)}")
        if type(message) is Goodbye and message.finish:
            was_finishing, self.finishing = self.finishing, True
            return not was_finishing
        counts = not _is_about_a_seat(message) or self._note_seat(message)
        self.state = state
        return counts

    def _note_turn(self, message: BotMessage | ArenaMessage) -> bool:
        """Note the usual messages, an ask or its answer; False for others."""
        if type(message) is Answer:
            seat = self._seats.get(message.match)
            return seat is not None and seat.note_answer(message.ask)
        if type(message) is Ask:
            seat = self._seats.get(message.match)
            return seat is not None and seat.note_ask(message.ask)
        return False

    def disconnected(self) -> None:
        """Note that the connection is lost: `hello` must come next; seats stay as they are."""
        self.state, self.finishing = State.NEW, False

    def seat(self, match: str) -> SeatState:
        if match in self._seats:
            return self._seats[match].state
        return SeatState.OVER if match in self._over else SeatState.FREE

    def standing(self, match: str) -> SeatStanding:
        """Return the state of a seat whose match is not over; a new one before its invitation."""
        return self._seats.setdefault(match, SeatStanding())

    def _note_seat(self, message: _AboutASeat) -> bool:
        kind, match = type(message), message.match
        assert match is not None, "what is refused about an ask names its match"
        seat = self._seats.get(match)
        before = self.seat(match) if seat is None else seat.state
        after = _SEATS[before].get(kind)
        if after is None:
            raise OutOfTurn(
                f"{kind.__name__.lower()} may not be sent for match {match!r}: {_STANDS[before]}"
            )
        if after is SeatState.OVER:
            if kind is Over:
                self._forget(match)
            return kind is Over and before is not SeatState.OVER
        if seat is None:
            seat = self.standing(match)
        if type(message) is Answer:
            if message.ask != seat.asked:
                return self._stale(message, seat.asked)
        elif type(message) is Ask:
            seat.asked = message.ask
        seat.state = after
        return before is not after or kind in (Ask, Match, Past)

    def _stale(self, message: Answer, asked: str) -> bool:
        """Return False if an earlier ask of this seat is answered again, else raise `OutOfTurn`."""
        number, latest = _number(message.ask, message.match), asked or "none"
        if 0 < number < _number(asked, message.match):
            return False
        raise OutOfTurn(
            f"{message.ask!r} was never asked in match {message.match!r}; "
            f"the latest ask is {latest!r}"
        )

    def _forget(self, match: str) -> None:
        self._seats.pop(match, None)
        self._over[match] = None
        if len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)


def _when(kind: _Type, state: State) -> str:
    """Say when a message was sent out of turn, in the words of protocol/session.md."""
    if kind is Hello and state in (State.GREETED, State.OPEN):
        return "twice: it is said once per connection"
    return _WHEN[state]


def ask_id(match: str, number: int) -> str:
    """Return the id of a seat's ask, made of the seat's id and the ask's number, from 1."""
    return f"{match}:{number}"


def _number(ask: str, match: str) -> int:
    """Return the number in an ask's id; 0 if it belongs to another match."""
    prefix, _, number = ask.rpartition(":")
    is_number = prefix == match and number.isascii() and number.isdigit() and len(number) <= _DIGITS
    return int(number) if is_number else 0
