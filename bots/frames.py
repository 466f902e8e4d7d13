"""The client's frames: JSON by the protocol's codec, msgpack by the package `msgpack`.

The arena writes msgpack with msgspec, so that every such connection tests two implementations.
Messages are always converted by way of JSON, so that an answer is the same in both encodings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgpack  # type: ignore[import-untyped]
import msgspec

from protocol import codec
from protocol.codec import Encoding
from protocol.errors import Malformed, one_line
from protocol.messages import ArenaMessage, BotMessage

__all__ = ["read_frame", "write_frame"]


def read_frame(
    frame: bytes, encoding: Encoding, game_of: Callable[[str], str], likely: str | None = None
) -> list[ArenaMessage]:
    """Read the messages in a frame of the arena; `game_of` and `likely` are as for the codec.

    Raises:
        Malformed: the frame cannot be read, or it names an unknown match.
    """
    if encoding is Encoding.MSGPACK:
        try:
            frame = msgspec.json.encode(msgpack.unpackb(frame))
        except (ValueError, TypeError, RecursionError) as error:
            text = f"expected msgpack in a binary frame, got something else: {error}"
            raise Malformed(one_line(text)) from None
    return codec.decode_from_arena(frame, Encoding.JSON, game_of, likely)


def write_frame(messages: Sequence[BotMessage], encoding: Encoding) -> bytes:
    """Make a frame of these messages, at least one.

    Raises:
        ValueError: a text is not valid Unicode.
        OverflowError: a number has more than 64 bits, which msgpack cannot hold.
        RecursionError: a message is nested too deeply.
    """
    text = codec.encode_all(messages, Encoding.JSON)
    if encoding is Encoding.JSON:
        return text
    packed: bytes = msgpack.packb(msgspec.json.decode(text))
    return packed
