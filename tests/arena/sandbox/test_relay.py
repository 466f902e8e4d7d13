"""The relay's WebSocket, against the frames of the library that the arena itself uses."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from arena.sandbox.relay import FrameReader, NotWebSocket, handshake, header

Messages = list[tuple[Opcode, list[bytes]]]

payloads = st.binary(max_size=200)
messages = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from([Opcode.TEXT, Opcode.BINARY]),
            st.lists(payloads, min_size=1, max_size=3),
        ),
        st.tuples(
            st.sampled_from([Opcode.PING, Opcode.PONG]),
            st.lists(st.binary(max_size=125), min_size=1, max_size=1),
        ),
    ),
    max_size=5,
)


def sent(messages: Messages) -> bytes:
    """As a client sends them: masked, each message in as many frames as it has payloads."""
    data = b""
    for opcode, parts in messages:
        for number, part in enumerate(parts):
            kind = Opcode.CONT if number else opcode
            data += Frame(kind, part, fin=number == len(parts) - 1).serialize(mask=True)
    return data


def received(data: bytes, step: int) -> list[tuple[int, bytes]]:
    """The messages in bytes that come in pieces of this size."""
    reader = FrameReader()
    got: list[tuple[int, bytes]] = []
    parts: list[bytes] = []
    for start in range(0, len(data), step):
        for opcode, part, is_last in reader.receive(data[start : start + step]):
            parts.append(part)
            if is_last:
                got.append((opcode, b"".join(parts)))
                parts.clear()
    return got


@given(messages, st.integers(min_value=1, max_value=1_000))
def test_messages_come_out_however_their_bytes_are_cut(messages: Messages, step: int) -> None:
    got = received(sent(messages), step)

    assert got == [(opcode, b"".join(parts)) for opcode, parts in messages]


@pytest.mark.parametrize("size", [65_535, 65_536, 200_001])
def test_long_messages_come_out(size: int) -> None:
    payload = bytes(number % 251 for number in range(size))

    assert received(sent([(Opcode.TEXT, [payload])]), 4_099) == [(Opcode.TEXT, payload)]


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_are_refused(data: bytes) -> None:
    with contextlib.suppress(NotWebSocket):
        list(FrameReader().receive(data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(Frame(Opcode.TEXT, b"x").serialize(mask=False), id="not masked"),
        pytest.param(b"\xc1\x81abcdx", id="compressed"),
        pytest.param(Frame(Opcode.CONT, b"x").serialize(mask=True), id="nothing to go on with"),
        pytest.param(
            Frame(Opcode.TEXT, b"x", fin=False).serialize(mask=True)
            + Frame(Opcode.TEXT, b"x").serialize(mask=True),
            id="another message within one",
        ),
        pytest.param(b"\x83\x80abcd", id="an opcode that nobody has"),
        pytest.param(b"\x09\x80abcd", id="a ping in parts"),
        pytest.param(b"\x89\xfe\x01\x00abcd" + bytes(256), id="a long ping"),
    ],
)
def test_what_no_client_may_send_is_refused(data: bytes) -> None:
    with pytest.raises(NotWebSocket, match=r"^expected "):
        list(FrameReader().receive(data))


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_client_reads_our_frames(size: int) -> None:
    client = ClientProtocol(parse_uri("ws://x"), state=State.OPEN, max_size=None)
    client.receive_data(header(Opcode.TEXT, size) + bytes(size))

    [frame] = client.events_received()
    assert frame == Frame(Opcode.TEXT, bytes(size))


def test_a_client_takes_our_handshake() -> None:
    client = ClientProtocol(parse_uri("ws://127.0.0.1:1"))
    client.send_request(client.connect())
    [request] = client.data_to_send()
    client.receive_data(handshake(request))

    assert client.state is State.OPEN
    assert client.handshake_exc is None


@pytest.mark.parametrize(
    "request_", [b"GET / HTTP/1.1\r\nHost: x", b"POST / HTTP/1.1\r\nSec-WebSocket-Key: x", b"hello"]
)
def test_another_request_gets_none(request_: bytes) -> None:
    with pytest.raises(NotWebSocket, match=r"^expected a WebSocket handshake, got "):
        handshake(request_)
