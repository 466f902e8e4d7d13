"""A transcript as a block of frames: what the README's markers ask for."""

from __future__ import annotations

import pytest

from protocol.errors import UsageError
from protocol.games import VOCABULARIES
from protocol.schema.frames import frames_block, transcript_block
from tests.support.documents import PROTOCOL

TRANSCRIPT = b"""{"transcript":1,"game":"blackjack"}
{"bot":{"type":"hello"}}
{"arena":{"type":"ask","legal":[1.50,2]}}

{"event":"connection lost"}
{"arena":{"type":"ask","legal":["\xc3\xa4"]}}
"""


def read(name: str) -> bytes:
    assert name == "blackjack-1"
    return TRANSCRIPT


def test_every_line_is_shown_as_it_is() -> None:
    assert frames_block(TRANSCRIPT).splitlines() == [
        "```frames blackjack",
        'bot>   {"type":"hello"}',
        'arena> {"type":"ask","legal":[1.50,2]}',
        "--     connection lost",
        'arena> {"type":"ask","legal":["ä"]}',
        "```",
    ]


def test_a_block_may_begin_later_and_have_a_word_of_its_own() -> None:
    block = transcript_block("blackjack-1 from ask as lost", read)

    assert block.splitlines()[:3] == [
        "```frames blackjack lost",
        'arena> {"type":"ask","legal":[1.50,2]}',
        "--     connection lost",
    ]
    assert transcript_block("blackjack-1", read) == frames_block(TRANSCRIPT)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("", "expected `NAME [from TYPE] [as WORD]` after `transcript`, got ''"),
        ("blackjack-1 from", "expected `NAME [from TYPE] [as WORD]` after `transcript`, got 'bl"),
        ("blackjack-1 to over", "expected `NAME [from TYPE] [as WORD]` after `transcript`, got"),
        ("blackjack-1 from past", "transcript blackjack-1: expected a message of type"),
    ],
)
def test_a_marker_that_asks_for_something_else(what: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        transcript_block(what, read)

    assert str(refused.value).startswith(why)


@pytest.mark.parametrize("text", [b"", b"no JSON", b"{}", b'{"game":"x"}\n{"bot":1'])
def test_what_is_no_transcript(text: bytes) -> None:
    with pytest.raises(UsageError, match="expected a transcript: "):
        frames_block(text)


def test_all_frames_that_the_wire_shows_are_generated() -> None:
    generated = PROTOCOL.count("<!-- generated: transcript ")
    assert generated >= len(VOCABULARIES)
    assert PROTOCOL.count("```frames") == generated
