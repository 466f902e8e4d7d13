"""The client's frames in both encodings, against the arena's own codec."""

from __future__ import annotations

from typing import Any

import msgpack  # type: ignore[import-untyped]
import msgspec
import pytest

from arena.authoring.samples import samples
from arena.games.catalogue import GAMES
from bots.frames import read_frame, write_frame
from protocol import codec
from protocol.codec import Encoding, decode_from_bot, encode
from protocol.errors import Malformed
from protocol.messages import Answer, Goodbye, Hello, Ready

EACH_ENCODING = pytest.mark.parametrize("encoding", Encoding)
VALUES: list[Any] = [
    *("bet", "", None, True, False, 0, -1, 2**63 - 1, -(2**63), 0.5),
    *(["As", ["2d"]], {"discard": "Ks", "knock": True, "melds": None}),
]
MESSAGES = [
    Hello(1, "ann", ("gin_rummy",), tables=512, batch=True, resume="x", from_=0),
    Ready("m", "nönce ♠"),
    *(Answer("m", "m:1", value) for value in VALUES),
    Goodbye(),
]


@EACH_ENCODING
@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_the_arena_reads_what_the_client_writes(message: Any, encoding: Encoding) -> None:
    assert decode_from_bot(write_frame([message], encoding), encoding) == [message]


@EACH_ENCODING
@pytest.mark.parametrize("count", [1, 2, 15, 16, 70_000])
def test_the_arena_reads_as_many_messages_as_a_frame_has(count: int, encoding: Encoding) -> None:
    frame = write_frame([Goodbye()] * count, encoding)

    assert len(decode_from_bot(frame, encoding)) == count


@EACH_ENCODING
@pytest.mark.parametrize("game", GAMES)
def test_the_client_reads_what_the_arena_writes(game: str, encoding: Encoding) -> None:
    said = samples(GAMES[game])
    frame = codec.join([encode(message, encoding) for message in said], encoding)

    assert read_frame(frame, encoding, lambda _: game) == said


def test_a_number_that_has_no_place_in_the_binary_form_is_an_error() -> None:
    with pytest.raises(OverflowError):
        write_frame([Answer("m", "m:1", 2**64)], Encoding.MSGPACK)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x93\x01",
        b"\x81\x01\x02",
        b"\x81\x90\x02",
        b"\xc1",
        b"\x91" * 2000,
        b'{"type":"welcome"}',
        msgpack.packb({b"type": "welcome"}),
        msgpack.packb(msgpack.Timestamp(1)),
        msgpack.packb({"type": "\ud800"}, unicode_errors="surrogatepass"),
        msgspec.msgpack.encode({"type": "welcome", "protocol": 1.0}),
    ],
)
def test_what_is_no_message_is_malformed(frame: bytes) -> None:
    with pytest.raises(Malformed):
        read_frame(frame, Encoding.MSGPACK, lambda _: "gin_rummy")
