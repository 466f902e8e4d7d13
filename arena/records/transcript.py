"""A transcript: one conversation of one seat in a file, whole, with all that its cards came from.

The first line is the heading: the match as a record has it, with the decks that were dealt. Every line behind it is a map with one
key: `arena` or `bot` with the message that this end sent, or `event`. With it an implementation in any language can be checked without an
arena: what the bot is told is there, and what it has to say to it.

Reading and writing is all that is done here. What a seat is told in a match, and whether a transcript is true, is in
`arena/records/seat_transcript.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec

from protocol.errors import UsageError, one_line
from protocol.messages import BotMessage, Termination

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
_WORDS = 160  # of what is wrong with a line


class Side(StrEnum):
    """Who said a line; an event is nobody's word."""

    ARENA = "arena"
    BOT = "bot"
    EVENT = "event"


class Event(StrEnum):
    """What happens to a bot between two messages."""

    LOST = "connection lost"
    """It knows all that it knew, and comes back with `resume`."""
    KILLED = "program killed"
    """It is started again, and knows its last session alone."""
    UNKNOWN = "answered what was not legal"
    """With what is not known, where a transcript is made of a record; a recorded one has the answer."""


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a transcript.

    Attributes:
        transcript: the version of the format.
        about: what happens, in a sentence for people.
        game: its name.
        settings: all of them, defaults included.
        players: the bots' names, by seat.
        seat: whose conversation this is, from 0.
        seed: in hex, or None if decks were given.
        nonces: by seat; empty in process.
        decks: all that was dealt, in order: gin rummy's are maps of `starter` and `deck`, blackjack's riffle its cuts, else a deck is a
            list of cards.
        answers: those of all seats that were legal, in order; whose they are follows from the rules.
        scores: by seat.
        termination: why the match stopped.
    """

    transcript: int
    about: str
    game: str
    settings: dict[str, Any]
    players: tuple[str, ...]
    seat: int
    seed: str | None
    nonces: tuple[str, ...]
    decks: tuple[Any, ...]
    answers: tuple[Any, ...]
    scores: tuple[int, ...]
    termination: Termination


class Line(msgspec.Struct, frozen=True):
    """A message or an event, as JSON."""

    side: Side
    text: bytes


class Transcript(msgspec.Struct, frozen=True):
    """A heading and the lines that follow it."""

    heading: Heading
    lines: tuple[Line, ...]

    def to_bytes(self) -> bytes:
        """The file: a JSON map in every line."""
        written = [msgspec.json.encode(self.heading)]
        written += [b'{"%b":%b}' % (line.side.encode(), line.text) for line in self.lines]
        return b"\n".join(written) + b"\n"


def canonical(message: BotMessage) -> bytes:
    """A bot's message in JSON, without the fields that it may leave out and that say nothing."""
    kind = type(message)
    said: dict[str, Any] = {"type": kind.__struct_config__.tag}
    for field in _fields(kind):
        value = getattr(message, field.name)
        if field.required or value != field.default:
            said[field.encode_name] = value
    return msgspec.json.encode(said)


@cache  # to look them up takes as long as to write twenty messages
def _fields(kind: type[BotMessage]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def is_transcript(line: bytes) -> bool:
    """Whether a file that begins with this line is a transcript, a good one or not."""
    try:
        return "transcript" in msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def read(lines: Iterable[bytes]) -> Transcript:
    """Read a transcript; empty lines are passed over.

    Raises:
        UsageError: a line that is none; it says which.
    """
    heading: Heading | None = None
    said: list[Line] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            if heading is None:
                heading = msgspec.json.decode(line, type=Heading)
            else:
                one = msgspec.json.decode(line, type=dict[Side, msgspec.Raw])
                said.append(_line(one))
        except (ValueError, RecursionError) as error:  # msgspec's are ValueErrors
            text = one_line(str(error), _WORDS)
            raise UsageError(f"line {number}: {text[:1].lower()}{text[1:]}") from None
    if heading is None:
        raise UsageError("expected a transcript, got an empty file")
    if heading.transcript != VERSION:
        raise UsageError(f"expected a transcript of version {VERSION}, got {heading.transcript}")
    return Transcript(heading, tuple(said))


def _line(one: Mapping[Side, msgspec.Raw]) -> Line:
    if len(one) != 1:
        raise ValueError(f"expected one of arena, bot and event, got {len(one)}")
    [(side, raw)] = one.items()
    return Line(side, msgspec.json.format(bytes(raw), indent=-1))
