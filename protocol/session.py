"""Who may say what when: one table for the session and one for each of its chairs, used by both ends.

Each end keeps a `Session` and shows it every message that it sends or receives, before it acts on it. A message that
the table has no entry for raises `OutOfTurn` and changes nothing. A session outlives its connection: after a reconnect `hello` comes
again and the chairs stand as they stood (design §5).

Messages cross on the wire: an answer may be on its way while the arena says `over`. So a chair that is over still takes
them, in silence; and an answer to a question that has been answered counts once.
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

__all__ = ["CHAIR_TABLE", "SESSION_TABLE", "Chair", "Session", "State", "ask_id"]

_REMEMBERED = 8192
"""Chairs that are over: twice the most tables that a bot can have, as an answer may cross the `over` of its match on the wire."""

_DIGITS = 18  # no chair is asked more often, and `int` refuses thousands of digits


class State(IntEnum):
    """Where a connection stands. An `IntEnum`, as its hash is a C function and the tables are looked up per message."""

    NEW = auto()
    GREETED = auto()
    OPEN = auto()
    LEAVING = auto()
    CLOSED = auto()


class Chair(IntEnum):
    """Where one chair of the session stands."""

    FREE = auto()
    INVITED = auto()
    SEATED = auto()
    ASKED = auto()
    OVER = auto()


_Type = type[BotMessage | ArenaMessage]

SESSION_TABLE: dict[tuple[State, _Type], State] = {
    (State.NEW, Hello): State.GREETED,
    (State.NEW, Instruct): State.NEW,  # an instructor's word needs no session
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
    # What the arena sent before it heard the goodbye may still arrive after it.
    (State.LEAVING, Match): State.LEAVING,
    (State.LEAVING, Ask): State.LEAVING,
    (State.LEAVING, Past): State.LEAVING,
    (State.LEAVING, Over): State.LEAVING,
    (State.LEAVING, Refused): State.LEAVING,
}

CHAIR_TABLE: dict[tuple[Chair, _Type], Chair] = {
    (Chair.FREE, Match): Chair.INVITED,
    (Chair.FREE, Over): Chair.OVER,  # its invitation was lost with a connection
    (Chair.INVITED, Match): Chair.INVITED,  # again after a reconnect
    (Chair.INVITED, Past): Chair.INVITED,  # to a program that has lost its memory
    (Chair.INVITED, Ready): Chair.SEATED,
    (Chair.INVITED, Over): Chair.OVER,
    (Chair.SEATED, Ready): Chair.SEATED,  # an invitation that was repeated
    (Chair.SEATED, Match): Chair.SEATED,
    (Chair.SEATED, Past): Chair.SEATED,
    (Chair.SEATED, Ask): Chair.ASKED,
    (Chair.SEATED, Refused): Chair.ASKED,  # in practice: the answer was not legal
    (Chair.SEATED, Answer): Chair.SEATED,  # the same answer again counts once
    (Chair.SEATED, Over): Chair.OVER,
    (Chair.ASKED, Past): Chair.ASKED,
    (Chair.ASKED, Match): Chair.ASKED,  # again after a reconnect, and so are
    (Chair.ASKED, Ready): Chair.ASKED,
    (Chair.ASKED, Ask): Chair.ASKED,
    (Chair.ASKED, Answer): Chair.SEATED,
    (Chair.ASKED, Over): Chair.OVER,
    (Chair.OVER, Ready): Chair.OVER,
    (Chair.OVER, Answer): Chair.OVER,
    (Chair.OVER, Over): Chair.OVER,
}


_STATES = {
    state: {kind: after for (before, kind), after in SESSION_TABLE.items() if before is state}
    for state in State
}
_CHAIRS = {
    chair: {kind: after for (before, kind), after in CHAIR_TABLE.items() if before is chair}
    for chair in Chair
}
"""The tables by row: a look-up per message then makes no tuple. It is the hot path of both ends."""

_WHEN = {
    State.NEW: "before hello",
    State.GREETED: "before welcome",
    State.OPEN: "after welcome",
    State.LEAVING: "after goodbye",
    State.CLOSED: "after hello was refused",
}
_STANDS = {
    Chair.FREE: "there is no such match here",
    Chair.INVITED: "ready has not been said for it",
    Chair.SEATED: "nothing has been asked in it",
    Chair.ASKED: "its question has not been answered",
    Chair.OVER: "it is over",
}
"""Where it stands, in words for whoever sends what the tables have no entry for."""

_AboutAChair: TypeAlias = Answer | Ask | Match | Over | Past | Ready | Refused


def _is_about_a_chair(message: BotMessage | ArenaMessage) -> TypeGuard[_AboutAChair]:
    if isinstance(message, Refused):
        return message.ask is not None
    return isinstance(message, Answer | Ask | Match | Over | Past | Ready)


@dataclass(slots=True)
class _Standing:
    """Where a chair stands, and what it was asked last."""

    chair: Chair = Chair.FREE
    asked: str = ""


class Session:
    """One bot's session, as one end of the wire sees it."""

    def __init__(self) -> None:
        self.state = State.NEW
        self._standings: dict[str, _Standing] = {}
        self._over: OrderedDict[str, None] = OrderedDict()

    def note(self, message: BotMessage | ArenaMessage) -> bool:
        """Take note of a message sent or received; False if it has no effect any more and is to be ignored.

        Raises:
            OutOfTurn: the message may not be sent now; nothing has changed.
        """
        if self.state is State.OPEN and self._note_turn(message):
            return True
        kind = type(message)
        state = _STATES[self.state].get(kind)
        if state is None:
            name = kind.__name__.lower()
            raise OutOfTurn(f"{name} may not be sent {_when(kind, self.state)}")
        counts = not _is_about_a_chair(message) or self._note_chair(message)
        self.state = state
        return counts

    def _note_turn(self, message: BotMessage | ArenaMessage) -> bool:
        """The two steps that nearly all messages are: a seated chair is asked, and answers just that; else False."""
        if type(message) is Answer:
            standing = self._standings.get(message.match)
            if (
                standing is not None
                and standing.chair is Chair.ASKED
                and standing.asked == message.ask
            ):
                standing.chair = Chair.SEATED
                return True
        elif type(message) is Ask:
            standing = self._standings.get(message.match)
            if standing is not None and standing.chair is Chair.SEATED:
                standing.chair, standing.asked = Chair.ASKED, message.ask
                return True
        return False

    def disconnected(self) -> None:
        """The connection is gone: the next message is a `hello`, and the chairs stand as they stood."""
        self.state = State.NEW

    def chair(self, match: str) -> Chair:
        """Where the chair of that id stands."""
        if match in self._standings:
            return self._standings[match].chair
        return Chair.OVER if match in self._over else Chair.FREE

    def _note_chair(self, message: _AboutAChair) -> bool:
        kind, match = type(message), message.match
        assert match is not None, "what is refused about an ask names its match"
        standing = self._standings.get(match)
        before = self.chair(match) if standing is None else standing.chair
        after = _CHAIRS[before].get(kind)
        if after is None:
            raise OutOfTurn(
                f"{kind.__name__.lower()} may not be sent for match {match!r}: {_STANDS[before]}"
            )
        if after is Chair.OVER:
            if kind is Over:
                self._forget(match)
            return kind is Over and before is not Chair.OVER
        if standing is None:
            standing = self._standings[match] = _Standing()
        if type(message) is Answer:
            if message.ask != standing.asked:
                return self._stale(message, standing.asked)
        elif type(message) is Ask:
            standing.asked = message.ask
        standing.chair = after
        return before is not after or kind in (Ask, Match, Past)

    def _stale(self, message: Answer, asked: str) -> bool:
        """An earlier ask of this chair was answered before and counts no more; any other was never asked."""
        number, latest = _number(message.ask, message.match), asked or "none"
        if 0 < number < _number(asked, message.match):
            return False
        raise OutOfTurn(
            f"{message.ask!r} was never asked in match {message.match!r}; the latest ask is {latest!r}"
        )

    def _forget(self, match: str) -> None:
        self._standings.pop(match, None)
        self._over[match] = None
        if len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)


def _when(kind: _Type, state: State) -> str:
    """When a message was sent that may not be, in the words of protocol/session.md."""
    if kind is Hello and state in (State.GREETED, State.OPEN):
        return "twice: it is said once per connection"
    return _WHEN[state]


def ask_id(match: str, number: int) -> str:
    """The id of a chair's ask: the chair's own and the number of the ask, from 1."""
    return f"{match}:{number}"


def _number(ask: str, match: str) -> int:
    """The number in an ask's id; 0 if it is none of this match."""
    prefix, _, number = ask.rpartition(":")
    is_number = prefix == match and number.isascii() and number.isdigit() and len(number) <= _DIGITS
    return int(number) if is_number else 0
