"""Transcripts as files: reading gives what was written, and an error names the wrong line."""

from __future__ import annotations

import json

import pytest

from arena.records.transcript import Event, Line, Side, Transcript, canonical, is_transcript, read
from protocol.errors import UsageError
from protocol.messages import Answer, Goodbye, Hello, Ready

HEADING = (
    b'{"transcript":1,"about":"A hand.","game":"ace_king_queen","settings":{"hands":1},'
    b'"players":["ann","ben"],"seat":0,"seed":null,"nonces":[],"decks":[["A","K"]],'
    b'"answers":["check"],"scores":[1,-1],'
    b'"termination":{"kind":"completed","seat":null,"text":""}}'
)
SAID = b'{"bot":{"type":"goodbye"}}'


def refusal(*lines: bytes) -> str:
    with pytest.raises(UsageError) as refused:
        read(lines)
    return str(refused.value)


def test_what_is_read_is_written_the_same() -> None:
    text = b"\n".join([HEADING, SAID, b'{"event":"connection lost"}']) + b"\n"

    transcript = read(text.splitlines(keepends=True))

    assert transcript.heading.players == ("ann", "ben")
    assert transcript.lines == (
        Line(Side.BOT, b'{"type":"goodbye"}'),
        Line(Side.EVENT, b'"connection lost"'),
    )
    assert json.loads(transcript.lines[1].text) == Event.LOST
    assert transcript.to_bytes() == text


def test_white_space_and_empty_lines_mean_nothing() -> None:
    spaced = b'  { "bot" : { "type" : "goodbye" } }  '

    assert read([HEADING, b"\n", spaced, b""]) == read([HEADING, SAID])


def test_what_says_nothing_is_left_out_of_a_bots_message() -> None:
    assert canonical(Goodbye()) == b'{"type":"goodbye"}'
    assert canonical(Ready("1.0", "n")) == b'{"type":"ready","match":"1.0","nonce":"n"}'
    assert canonical(Answer("1.0", "1.0:1", None)) == (
        b'{"type":"answer","match":"1.0","ask":"1.0:1","value":null}'
    )
    assert canonical(Hello(1, "ann", ("akq",), tables=2, from_=0)) == (
        b'{"type":"hello","protocol":1,"name":"ann","games":["akq"],"tables":2,"from":0}'
    )


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        (HEADING, True),
        (b'{"transcript":null}', True),
        (b'{"game":"blackjack"}', False),
        (b"[1]", False),
        (b"SQLite format 3\0", False),
        (b"\xff\xfe", False),
        (b"[" * 10_000, False),
    ],
)
def test_a_transcript_is_known_by_its_first_line(line: bytes, is_one: bool) -> None:
    assert is_transcript(line) == is_one


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "line 2: input data was truncated"),
        (b"[]", "line 2: expected `object`, got `array`"),
        (b"{}", "line 2: expected one of arena, bot and event, got 0"),
        (b'{"bot":1,"arena":2}', "line 2: expected one of arena, bot and event, got 2"),
        (b'{"ann":{}}', "line 2: invalid enum value 'ann'"),
        (b'{"b\xff":1}', "line 2: "),
    ],
)
def test_a_line_that_is_none(line: bytes, why: str) -> None:
    assert refusal(HEADING, line).startswith(why)


def test_a_heading_that_is_none() -> None:
    assert refusal(b"", b"  ") == "expected a transcript, got an empty file"
    assert "line 1: object missing required field `about`" in refusal(b'{"transcript":1}')
    assert refusal(HEADING.replace(b":1,", b":2,", 1)) == (
        "expected a transcript of version 1, got 2"
    )


def test_an_empty_conversation_is_only_a_heading() -> None:
    heading = read([HEADING]).heading

    assert Transcript(heading, ()).to_bytes() == HEADING + b"\n"
