"""How frames are taken apart for a slow link and for fragments."""

from __future__ import annotations

import asyncio
from itertools import accumulate

import pytest

from arena.authoring.conformance.fake_transport import CheckEndpoint, Delivery, fragments, pieces
from protocol.codec import Encoding
from protocol.messages import Limits

FRAMES = [b"{}", b'{"type":"over"}', b"x" * 5000, "Čapek — ♠".encode()]
EACH_FRAME = pytest.mark.parametrize("frame", FRAMES)


@EACH_FRAME
def test_pieces_add_up_and_are_small(frame: bytes) -> None:
    parts = [*pieces(frame)]

    assert b"".join(parts) == frame
    assert [len(part) for part in parts[:2]] == [1, 1]
    assert len(parts) <= 43


@EACH_FRAME
def test_fragments_add_up(frame: bytes) -> None:
    parts = fragments(frame)

    assert b"".join(parts) == frame


@pytest.mark.parametrize("size", range(1, 60))
def test_some_piece_ends_within_a_letter(size: int) -> None:
    frame = b"{" + b"x" * size + "李".encode() + b"}"
    starts = [*accumulate(len(part) for part in pieces(frame))]

    assert any(frame[at : at + 1] and frame[at] & 0xC0 == 0x80 for at in starts[:-1])


class RecordingTransport(asyncio.Transport):
    """Takes down what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.has_two = asyncio.Event()

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if len(self.written) == 2:
            self.has_two.set()

    def get_write_buffer_size(self) -> int:
        return 0


async def test_nothing_comes_between_the_pieces_of_a_frame() -> None:
    socket = CheckEndpoint(Limits())._make()
    transport = RecordingTransport()
    socket._transport = transport
    writing = asyncio.create_task(socket.deliver(b"{}" * 50, Encoding.JSON, Delivery.SLOWLY))
    await transport.has_two.wait()
    socket._write(b"a pong")
    await writing
    written = transport.written

    assert written[-1] == b"a pong"
    assert b"".join(written[:-1]).endswith(b"{}" * 50)


def test_a_letter_of_several_bytes_is_taken_apart() -> None:
    first, *_ = fragments("a♠b".encode())

    with pytest.raises(UnicodeDecodeError):
        first.decode()
