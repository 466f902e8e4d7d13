"""The client's frames: JSON by the protocol's codec, msgpack by the package `msgpack`.

The arena writes msgpack with msgspec, so that every such connection tests two implementations.
Every message goes through JSON, so that an answer is the same in both encodings.
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
    """The messages in a frame of the arena.

    Raises:
        Malformed: the frame cannot be read, or it names an unknown match.
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
        TypeError: an answer holds something that JSON does not have.
        ValueError: it holds text that is not valid Unicode.
        OverflowError: it holds a number beyond 64 bits, which msgpack does not have.
        RecursionError: it is nested too deeply.
    """
    text = codec.encode(message, Encoding.JSON)
    if encoding is Encoding.JSON:
        return text
    packed: bytes = msgpack.packb(msgspec.json.decode(text))
    return packed


def join(parts: Sequence[bytes], encoding: Encoding) -> bytes:
    """Several messages as one frame with an array."""
    if encoding is Encoding.JSON:
        return codec.join([*parts], encoding)
    header: bytes = msgpack.Packer().pack_array_header(len(parts))
    return header + b"".join(parts)
