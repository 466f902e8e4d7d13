"""The link between an arena and a host: a WebSocket at the arena's port, opened by the host.

A text frame is a message in JSON (`messages.py`). A binary frame is a piece of a bot's bytes, with
a header: to the host the seat's number alone, to the arena a `BotReading` of the bot at the moment
at which the bytes came. All bots of one arena on one host share the link.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

from arena.hosts.messages import FromArena, FromHost

__all__ = ["MOST_PIECE", "BotLink", "BotReading", "input_piece", "read_input", "read_output"]

MOST_PIECE = 256 << 10
"""Bytes of a bot in one frame, at most."""

_INPUT = struct.Struct("<I?")
_OUTPUT = struct.Struct("<IQddddd")


class BotLink(Protocol):
    """One end of a link; what is sent when it is lost goes nowhere."""

    def tell(self, message: FromArena | FromHost) -> None:
        """Send a message."""

    def carry(self, piece: bytes) -> None:
        """Send a piece with its header."""

    def cut(self) -> None:
        """End it at once."""


class BotReading(NamedTuple):
    """What a host reads of a bot at one moment; times are in seconds of the host's own clock.

    A host that stood still charges nobody for that: `lag_s` is for how long its event loop has done
    so in all, as far as it was a tenth of a second or more at once.
    """

    seat: int
    handed: int  # bytes of input that the bot's pipe has taken
    at: float
    handed_at: float  # when it took the latest of them
    cpu_ms: float
    waited_ms: float  # ready to run, and without a core; negative where the system does not say
    lag_s: float

    def piece(self, data: bytes = b"") -> bytes:
        """The reading before some bytes that the bot has just written."""
        return _OUTPUT.pack(*self) + data


def input_piece(seat: int, data: bytes, *, asks: bool) -> bytes:
    """Bytes for a bot; `asks` says that it has to answer, and so waits for a core."""
    return _INPUT.pack(seat, asks) + data


def read_input(piece: bytes) -> tuple[int, bool, bytes]:
    """The seat, whether it is asked, and the bytes; raises `struct.error` if it is no piece."""
    seat, asks = _INPUT.unpack_from(piece)
    return seat, asks, piece[_INPUT.size :]


def read_output(piece: bytes) -> tuple[BotReading, bytes]:
    """The reading and the bytes; raises `struct.error` if it is no piece."""
    return BotReading(*_OUTPUT.unpack_from(piece)), piece[_OUTPUT.size :]
