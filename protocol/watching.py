"""The messages of the page's WebSocket at `/watch`: JSON in text frames, one message per frame.

A viewer is no bot: it watches the lobby or a match, may sit down at a table, and with the
instructor's token may instruct. A person who has sat down plays over another WebSocket, as any bot.
The arena refuses fields that it does not know. What happens at a table travels as events
(`arena/games/replay.py`); rule J8 says which a viewer may see
(`arena/records/visibility.py`).
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
    "Captions",
    "Describe",
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
_Opponent = Annotated[str, Meta(min_length=1, max_length=96)]  # a name, perhaps after `house:`


class Watch(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="watch"):
    """Show me this, in the place of what this socket showed before.

    Attributes:
        topic: `lobby` or `match`.
        match: with the topic `match`: the id of the match, not of a seat.
        token: of a viewer who may see more than everybody: the owner of a seat, the instructor.
    """

    topic: Literal["lobby", "match"]
    match: Id | None = None
    token: Token | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` if the topic lacks its match or has none; reported as `Malformed`."""
        if (self.topic == "match") != (self.match is not None):
            raise UsageError("expected a match with the topic match, and with no other topic")


class Unwatch(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="unwatch"):
    """Show me nothing more."""


class Sit(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="sit"):
    """A person wants to play.

    Attributes:
        game: the name of the game.
        name: the person's name.
        against: the opponents, one for each of the other seats: `house:expert` for a house bot, or
            the name of a connected bot.
        settings: of the game; those left out are the arena's defaults for people.
        token: of the roster, where the arena has one.
    """

    game: Id
    name: Name
    against: Annotated[tuple[_Opponent, ...], Meta(max_length=16)] = ()
    settings: dict[str, Value] | None = None
    token: Token | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` for names as `Hello` refuses them; reported as `Malformed`."""
        for text in (self.name, *self.against):
            if not text.isprintable() or text != text.strip():
                raise UsageError(
                    f"expected a name of printable letters, not framed by spaces, got {text!r}"
                )


class Stand(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="stand"):
    """The person gives up its match."""


class Describe(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="describe"):
    """Put these events into the words of their game: what the seat of a person has heard.

    Attributes:
        game: the name of the game.
        seat: the person's.
        players: names, by seat.
        events: as spectators get them; an answer has its `question` too.
    """

    game: Id
    seat: int
    players: Annotated[tuple[_Opponent, ...], Meta(max_length=16)]
    events: Annotated[tuple[dict[str, Any], ...], Meta(max_length=200)]


class View(Struct, frozen=True):
    """How much of a match is shown (J8).

    Attributes:
        kind: `public`: what all seats have been told; `seat`: also what some seats have been told;
            `all`: everything.
        seats: with `seat`: those seats.
    """

    kind: Literal["public", "seat", "all"]
    seats: tuple[int, ...] = ()

    def sees(self, seat: int, seats: int) -> bool:
        """Whether private news of this seat are shown; a lone seat has no secrets (J8)."""
        return self.kind == "all" or seats == 1 or seat in self.seats


class Turn(Struct, frozen=True):
    """The pending question.

    Attributes:
        seat: the seat that is asked.
        kind: the kind of question.
        waited_ms: for how long it had been waiting when this was sent.
        bank_ms: what was left in the seat's bank when it was asked.
        decision_ms: how long the decision may take at no cost.
    """

    seat: int
    kind: str
    waited_ms: int
    bank_ms: int
    decision_ms: int


class Scene(Struct, frozen=True, tag_field="type", tag="scene"):
    """The match that is to be watched; its events follow.

    Attributes:
        match: its id.
        settings: all of them.
        players: names, by seat.
        view: how much is shown.
        limits: those of the match, or `null` if there are none.
        competition: its id, or `null`.
        round: which one is played, from 1.
        scores: by seat.
        versions: by seat, where submissions are taken: `v3`, `connected`, or empty for others.
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
    versions: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class Events(Struct, frozen=True, tag_field="type", tag="events"):
    """What has happened at the table.

    Attributes:
        match: its id.
        reset: whether the events begin at the start of their round: drop what you have of it; all
            earlier rounds are over.
        round: the round of the first event, from 1; the event after the end of a round begins the
            next.
        events: in order.
        turn: the question that is pending after them, if any.
        scores: by seat, after them.
        decisions: how many there have been in the match so far.
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
    """The match is over or does not exist; look for its record.

    Attributes:
        match: its id.
    """

    match: str


class Seat(Struct, frozen=True, tag_field="type", tag="seat"):
    """A seat is free for the person: say `hello` over a WebSocket at `/`, with this name and token.

    Attributes:
        token: valid once.
        name: the person's name here.
    """

    token: str
    name: str


class Captions(Struct, frozen=True, tag_field="type", tag="captions"):
    """What `describe` asked for.

    Attributes:
        captions: by event, what it gets: its `text`, and at the end of a round its `gains`; nothing
            for an event that the game does not know.
    """

    captions: tuple[dict[str, Any], ...]


ViewerMessage: TypeAlias = Watch | Unwatch | Sit | Stand | Describe | Instruct
ToViewer: TypeAlias = Scene | Events | Gone | Seat | Captions | Refused | Done

_TYPES = "watch, unwatch, sit, stand, describe or instruct"
_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)
"""All that the decoder raises, as in protocol/codec.py."""

_decode = msgspec.json.Decoder(ViewerMessage).decode
_encode = msgspec.json.Encoder().encode


def decode_from_viewer(frame: bytes) -> ViewerMessage:
    """Decode the message in a frame that a viewer sent.

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
    """Make the frame `lobby`: the document, a non-empty JSON object, with a `type`."""
    return b'{"type":"lobby",' + document[1:]


def _malformed(error: Exception) -> Malformed:
    """Make an error that says in one line what was wrong."""
    if isinstance(error, RecursionError):
        return Malformed("expected a message, got one that is nested too deeply")
    text = one_line(str(error))
    if text.startswith("Invalid value") and text.endswith(".type`"):
        text = f"{text}; expected {_TYPES}"
    return Malformed(text[:1].lower() + text[1:] if text[1:2].islower() else text)
