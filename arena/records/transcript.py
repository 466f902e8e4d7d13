"""Reads and writes transcripts: the whole conversation of one seat, with what its cards came from.

The first line is the heading: the match as in its record, with the decks that were dealt. Each
further line is a map with one key: `arena` or `bot` with the message that this side sent, or
`event`. An implementation in any language can be checked with it without an arena: it has what
the bot is told, and what the bot has to say.

`arena/records/seat_transcript.py` makes transcripts of records, and
`arena/records/check_transcript.py` checks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec

from arena.records.document import UNREADABLE, decoding_failure
from protocol.errors import UsageError
from protocol.messages import BotMessage, Termination
from protocol.text_files import decode_text

__all__ = [
    "VERSION",
    "Event",
    "Heading",
    "Line",
    "Side",
    "Transcript",
    "canonical",
    "is_transcript",
    "read",
]

VERSION = 1


class Side(StrEnum):
    """Who sent a line; an event has no sender."""

    ARENA = "arena"
    BOT = "bot"
    EVENT = "event"


class Event(StrEnum):
    """What happens to a bot between two messages."""

    LOST = "connection lost"
    """The bot keeps its state, and comes back with `resume`."""
    KILLED = "program killed"
    """The bot is started again, and knows only its last session."""
    UNKNOWN = "answered what was not legal"
    """In a transcript made of a record, which has no illegal answers; a recorded one has it."""


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a transcript.

    `decks` has all that was dealt, in order, as the game's `deals` makes it: most deal lists of
    cards.
    """

    transcript: int  # the version of the format
    about: str  # what happens, in a sentence for people
    game: str
    settings: dict[str, Any]  # defaults included
    players: tuple[str, ...]  # the bots' names, by seat
    seat: int  # whose conversation this is, from 0
    seed: str | None  # in hex; None if decks were given
    nonces: tuple[str, ...]  # by seat; empty in process
    decks: tuple[Any, ...]
    answers: tuple[Any, ...]  # the legal ones of all seats, in order; the rules tell whose each is
    scores: tuple[int, ...]  # by seat
    termination: Termination
    # Of a game that is not ours, as in the record of the match.
    package: str | msgspec.UnsetType = msgspec.UNSET


class Line(msgspec.Struct, frozen=True):
    """A message or an event, as JSON."""

    side: Side
    text: bytes


class Transcript(msgspec.Struct, frozen=True):
    """A heading and the lines that follow it."""

    heading: Heading
    lines: tuple[Line, ...]

    def to_bytes(self) -> bytes:
        written = [msgspec.json.encode(self.heading)]
        written += [b'{"%b":%b}' % (line.side.encode(), line.text) for line in self.lines]
        return b"\n".join(written) + b"\n"


def canonical(message: BotMessage) -> bytes:
    """A bot's message in JSON, without optional fields that have their defaults."""
    kind = type(message)
    fields: dict[str, Any] = {"type": kind.__struct_config__.tag}
    for field in _fields(kind):
        value = getattr(message, field.name)
        if field.required or value != field.default:
            fields[field.encode_name] = value
    return msgspec.json.encode(fields)


@cache  # one look-up takes as long as the encoding of twenty messages
def _fields(kind: type[BotMessage]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def is_transcript(line: bytes) -> bool:
    """Whether a file that begins with this line is a transcript, valid or not."""
    try:
        return "transcript" in msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return False


def read(lines: Iterable[bytes]) -> Transcript:
    """Read a transcript but for empty lines; raises UsageError that names the first wrong line."""
    heading: Heading | None = None
    messages: list[Line] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            text = decode_text(line)
            if heading is None:
                heading = msgspec.json.decode(text, type=Heading)
            else:
                messages.append(_line(msgspec.json.decode(text, type=dict[Side, msgspec.Raw])))
        except (ValueError, RecursionError) as error:  # msgspec's are ValueErrors
            raise UsageError(f"line {number}: {decoding_failure(error)}") from None
    if heading is None:
        raise UsageError("expected a transcript, got an empty file")
    if heading.transcript != VERSION:
        raise UsageError(f"expected a transcript of version {VERSION}, got {heading.transcript}")
    return Transcript(heading, tuple(messages))


def _line(message: Mapping[Side, msgspec.Raw]) -> Line:
    if len(message) != 1:
        raise ValueError(f"expected one of arena, bot and event, got {len(message)}")
    [(side, raw)] = message.items()
    return Line(side, msgspec.json.format(bytes(raw), indent=-1))
