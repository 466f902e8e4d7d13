"""What the page and the arena say to each other over the WebSocket at `/watch`: JSON in text frames, one message a frame.

A viewer is no bot: it watches the lobby or a match, may sit down at a table, and with the instructor's token may instruct. The person
who has sat down plays over a WebSocket of its own, as any bot. The arena refuses fields that it does not know. What happens at a
table travels as events (`arena/records/replay_events.py`); what a viewer may see of them is rule J8 (`arena/records/visibility.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from protocol.errors import Malformed, Oversize, UsageError, one_line
from protocol.field_types import Id, Name, Value
from protocol.messages import Done, Instruct, Limits, Refused

__all__ = [
    "FRAME_BYTES",
    "Events",
    "Gone",
    "Scene",
    "Seat",
    "Sit",
    "Stand",
    "ToViewer",
    "Turn",
    "Unwatch",
    "View",
    "ViewerMessage",
    "Watch",
    "decode_from_viewer",
    "encode_lobby",
    "encode_to_viewer",
]

FRAME_BYTES = 64 * 1024
"""The largest frame that a viewer may send: a roster of a few hundred names fits."""

Token = Annotated[str, Meta(max_length=256)]
_Opponent = Annotated[str, Meta(min_length=1, max_length=96)]  # a name may stand behind `house:`


class Watch(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="watch"):
    """Show me this, in the place of what this socket showed before.

    Attributes:
        topic: `lobby` or `match`.
        match: which one, if it is a match: its id, not that of a chair.
        token: of whoever may see more than everybody: the owner of a seat, the instructor.
    """

    topic: Literal["lobby", "match"]
    match: Id | None = None
    token: Token | None = None

    def __post_init__(self) -> None:
        """Refuse a topic that lacks its match, or has one too many.

        Raises:
            UsageError: so it is; the codec reports it as `Malformed`.
        """
        if (self.topic == "match") != (self.match is not None):
            raise UsageError("expected a match with the topic match, and with no other topic")


class Unwatch(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="unwatch"):
    """Show me nothing more."""


class Sit(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="sit"):
    """A person wants to play.

    Attributes:
        game: what.
        name: what the person is called.
        against: whom, one for each of the other seats: `house:expert` for a house bot, or the name of a bot that is connected.
        settings: of the game; those that are left out are as the arena has them for people.
        token: of the roster, where the arena has one.
    """

    game: Id
    name: Name
    against: Annotated[tuple[_Opponent, ...], Meta(max_length=16)] = ()
    settings: dict[str, Value] | None = None
    token: Token | None = None

    def __post_init__(self) -> None:
        """Refuse names that would disturb a terminal, or pass for another's.

        Raises:
            UsageError: one does; the codec reports it as `Malformed`.
        """
        for text in (self.name, *self.against):
            if not text.isprintable() or text != text.strip():
                raise UsageError(
                    f"expected a name of printable letters, not framed by spaces, got {text!r}"
                )


class Stand(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="stand"):
    """The person gives up the match that it has sat down to."""


class View(Struct, frozen=True):
    """How much of a match is shown (J8).

    Attributes:
        kind: `public`: what every seat has been told; `seat`: also what its seats have been told; `all`: everything.
        seats: with `seat`: whose.
    """

    kind: Literal["public", "seat", "all"]
    seats: tuple[int, ...] = ()

    def sees(self, seat: int, seats: int) -> bool:
        """Whether what a seat alone was told is shown; a lone seat has no secrets from anybody (J8)."""
        return self.kind == "all" or seats == 1 or seat in self.seats


class Turn(Struct, frozen=True):
    """Who is to decide.

    Attributes:
        seat: whose turn it is.
        kind: what it is asked, in the game's word.
        waited_ms: for how long it has been waited for when this was sent.
        bank_ms: what was left in its bank when it was asked.
        decision_ms: what the decision may take at no cost.
    """

    seat: int
    kind: str
    waited_ms: int
    bank_ms: int
    decision_ms: int


class Scene(Struct, frozen=True, tag_field="type", tag="scene"):
    """The table of the match that is to be watched; its events follow.

    Attributes:
        match: its id.
        game: what is played.
        settings: all of them.
        players: names, by seat.
        view: how much is shown.
        limits: those of the match, `null` if nobody is held to any.
        competition: its id, or `null`.
        round: which one is played, from 1.
        scores: by seat.
    """

    match: str
    game: str
    settings: dict[str, Any]
    players: tuple[str, ...]
    view: View
    limits: Limits | None
    competition: str | None
    round: int
    scores: tuple[int, ...]


class Events(Struct, frozen=True, tag_field="type", tag="events"):
    """What has happened at the table.

    Attributes:
        match: its id.
        reset: whether the events begin with their round: drop what you have of it, and what was before is over.
        round: the round of the first of them, from 1; the event after the end of a round begins the next.
        events: in order.
        turn: who is to decide after them, if somebody is.
        scores: by seat, after them.
        decisions: how many there have been in the match, up to here.
        skipped: how many rounds were left out just before these events.
    """

    match: str
    reset: bool
    round: int
    events: tuple[dict[str, Any], ...]
    turn: Turn | None
    scores: tuple[int, ...]
    decisions: int
    skipped: int = 0


class Gone(Struct, frozen=True, tag_field="type", tag="gone"):
    """The match is not played, any more or at all; look for its record.

    Attributes:
        match: its id.
    """

    match: str


class Seat(Struct, frozen=True, tag_field="type", tag="seat"):
    """There is a chair: say `hello` over a WebSocket at `/`, with this name and token.

    Attributes:
        token: good once.
        name: what the person is called here.
    """

    token: str
    name: str


ViewerMessage: TypeAlias = Watch | Unwatch | Sit | Stand | Instruct
ToViewer: TypeAlias = Scene | Events | Gone | Seat | Refused | Done

_TYPES = "watch, unwatch, sit, stand or instruct"
_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)
"""All that the decoder raises, as in protocol/codec.py."""

_decode = msgspec.json.Decoder(ViewerMessage).decode
_encode = msgspec.json.Encoder().encode


def decode_from_viewer(frame: bytes) -> ViewerMessage:
    """The message in a frame that a viewer sent.

    Raises:
        Oversize: the frame is longer than `FRAME_BYTES`.
        Malformed: it is not one message that a viewer may send.
    """
    if len(frame) > FRAME_BYTES:
        raise Oversize(f"expected frames of at most {FRAME_BYTES} bytes, got {len(frame)}")
    try:
        message: ViewerMessage = _decode(frame)
    except _UNREADABLE as error:
        raise _malformed(error) from None
    return message


def encode_to_viewer(message: ToViewer) -> bytes:
    """One message as a frame."""
    return _encode(message)


def encode_lobby(document: bytes) -> bytes:
    """The frame `lobby`: the lobby's document, a JSON object with something in it, and its type."""
    return b'{"type":"lobby",' + document[1:]


def _malformed(error: Exception) -> Malformed:
    """What was wrong, in one line."""
    if isinstance(error, RecursionError):
        return Malformed("expected a message, got one that is nested too deeply")
    text = one_line(str(error))
    if text.startswith("Invalid value") and text.endswith(".type`"):
        text = f"{text}; expected {_TYPES}"
    return Malformed(text[:1].lower() + text[1:] if text[1:2].islower() else text)
