"""How frames are taken apart for a slow link and for fragments."""

from __future__ import annotations

import pytest

from arena.check.wire import fragments, pieces

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


def test_a_letter_of_several_bytes_is_taken_apart() -> None:
    first, *_ = fragments("a♠b".encode())

    with pytest.raises(UnicodeDecodeError):
        first.decode()
