"""The client's frames: JSON by the protocol's codec, the binary form by the package `msgpack`.

The arena writes the binary form with msgspec, so that two implementations of it meet on every such connection. Both forms have the
same structure: a message is built from JSON in either case, and what a strategy answers is the same answer in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgpack  # type: ignore[import-untyped]
import msgspec

from protocol import codec
from protocol.codec import Encoding
from protocol.errors import Malformed, one_line
from protocol.messages import ArenaMessage, BotMessage

__all__ = ["join", "read_frame", "write_message"]


def read_frame(
    frame: bytes, encoding: Encoding, game_of: Callable[[str], str]
) -> list[ArenaMessage]:
    """The messages in a frame that the arena sent, as `decode_from_arena` gives them.

    Raises:
        Malformed: it cannot be read, or is about a match that is not known.
    """
    if encoding is Encoding.MSGPACK:
        try:
            frame = msgspec.json.encode(msgpack.unpackb(frame))
        except (ValueError, TypeError, RecursionError) as error:
            text = f"expected msgpack in a binary frame, got something else: {error}"
            raise Malformed(one_line(text)) from None
    return codec.decode_from_arena(frame, Encoding.JSON, game_of)


def write_message(message: BotMessage, encoding: Encoding) -> bytes:
    """One message as a frame, or as a part for `join`.

    Raises:
        TypeError: an answer holds something that JSON has not.
        ValueError: it holds text that is none.
        OverflowError: it holds a number that has no place in 64 bits, which the binary form ends at.
        RecursionError: it is nested too deeply.
    """
    text = codec.encode(message, Encoding.JSON)
    if encoding is Encoding.JSON:
        return text
    packed: bytes = msgpack.packb(msgspec.json.decode(text))
    return packed


def join(parts: Sequence[bytes], encoding: Encoding) -> bytes:
    """Several messages as one frame that holds an array."""
    if encoding is Encoding.JSON:
        return codec.join([*parts], encoding)
    header: bytes = msgpack.Packer().pack_array_header(len(parts))
    return header + b"".join(parts)
