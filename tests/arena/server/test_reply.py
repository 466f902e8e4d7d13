"""Answers: when a body is packed."""

from __future__ import annotations

import gzip
import random

from arena.server.reply import pack


def test_a_long_text_is_packed_always_to_the_same_bytes() -> None:
    body = b'{"kind":"asked","seat":0}' * 1_000
    packed = pack(body, 6)

    assert packed is not None
    assert len(packed) < len(body) / 10
    assert gzip.decompress(packed) == body
    assert pack(body, 6) == packed


def test_what_is_tiny_or_hardly_gets_shorter_is_not_packed() -> None:
    assert pack(b"x" * 999, 6) is None
    assert pack(random.Random(1).randbytes(10_000), 6) is None
