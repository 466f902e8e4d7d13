"""A transcript as a block of frames: what the README's markers ask for."""

from __future__ import annotations

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


def test_all_frames_that_the_wire_shows_are_generated() -> None:
    generated = PROTOCOL.count("<!-- generated: transcript ")
    assert generated >= len(VOCABULARIES)
    assert PROTOCOL.count("```frames") == generated
