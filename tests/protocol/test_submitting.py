"""What those who hand programs in say and hear: what is read, what is refused and how."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Malformed, Oversize, ProtocolError
from protocol.messages import Refused
from protocol.submitting import (
    FRAME_BYTES,
    PIECE_BYTES,
    Abort,
    Disable,
    Download,
    Enter,
    EntryOf,
    Follow,
    FromSubmitter,
    GetLog,
    GetStarter,
    Got,
    InPlayEntry,
    InstalledLanguage,
    ListSubmissions,
    LogText,
    Piece,
    Progressing,
    Rebuild,
    Rules,
    Send,
    StarterFiles,
    StderrOf,
    SubmissionList,
    Submit,
    ToSubmitter,
    UploadTurn,
    Use,
    decode_from_submitter,
    decode_to_submitter,
    encode_from_submitter,
    encode_to_submitter,
)

SAID: list[FromSubmitter] = [
    Enter("a token"),
    Submit("bot.py", 12, "bluffs more"),
    Piece(b"\x00\xff"),
    Abort(),
    Follow(3),
    ListSubmissions(),
    ListSubmissions("ann"),
    GetLog(3),
    Use(2),
    Use(2, "blackjack"),
    Download(3),
    Disable(3),
    Disable(3, again=True),
    Rebuild(3),
    GetStarter("blackjack", "go"),
]
ENTRY = EntryOf(
    submission=7,
    owner="ann",
    version=None,
    name="bot.zip",
    message="",
    program="0" * 64,
    bytes=100,
    language="",
    state="waiting",
    arrived_at=1.5,
    decided_at=None,
    games=(),
    in_play=(),
    text="",
    position=2,
)
HEARD: list[ToSubmitter] = [
    Rules("ann", 100, ("blackjack",), (InstalledLanguage("go", "Go", "1.19"),), None, 2.5, 3),
    UploadTurn(2),
    Send(PIECE_BYTES),
    Got(100),
    Progressing(7, "checking", "play blackjack", "begun"),
    SubmissionList((ENTRY,), (InPlayEntry("ann", "blackjack", 3, 1.5, "ann"),)),
    LogText(7, "built", "checked", (StderrOf("bj-1", 1.5, 3, "oops"),)),
    StarterFiles({"bot.py": "pass"}, "bot.py"),
    Piece(b""),
    Refused("submit", "closed"),
]


def frame(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize("message", SAID, ids=lambda message: type(message).__name__)
def test_what_is_said_is_read_as_it_was_written(message: FromSubmitter) -> None:
    assert decode_from_submitter(encode_from_submitter(message)) == message


@pytest.mark.parametrize("message", HEARD, ids=lambda message: type(message).__name__)
def test_what_is_heard_is_read_as_it_was_written(message: ToSubmitter) -> None:
    assert decode_to_submitter(encode_to_submitter(message)) == message


def test_the_bytes_of_a_program_are_base64_in_json() -> None:
    data = base64.b64encode(b"\x00\xff").decode()

    assert decode_from_submitter(frame(type="piece", data=data)) == Piece(b"\x00\xff")


def test_the_largest_piece_fits_into_a_frame() -> None:
    sent = encode_from_submitter(Piece(b"x" * PIECE_BYTES))

    assert len(sent) <= FRAME_BYTES
    assert decode_from_submitter(sent) == Piece(b"x" * PIECE_BYTES)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"no JSON",
        b"\xff",
        b"[" * 5_000,
        frame(),
        frame(type="hello"),
        frame(type="enter"),
        frame(type="enter", token="x" * 257),
        frame(type="enter", token="x", name="ann"),  # a field that the arena does not know
        frame(type="submit", name="", size=1),
        frame(type="submit", name="x" * 256, size=1),
        frame(type="submit", name="a/b.py", size=1),
        frame(type="submit", name="..\\b.py", size=1),
        frame(type="submit", name="a\nb.py", size=1),
        frame(type="submit", name="a.py", size=-1),
        frame(type="submit", name="a.py", size=1.5),
        frame(type="submit", name="a.py", size=1, message="x" * 201),
        frame(type="submit", name="a.py", size=1, message="a\x1b[2J"),
        frame(type="piece", data="no base64!"),
        frame(type="piece", data=base64.b64encode(b"x" * (PIECE_BYTES + 1)).decode()),
        frame(type="follow", submission=0),
        frame(type="follow", submission=True),
        frame(type="use", version=0),
        frame(type="compare", game="x" * 100, first=1, second=2),
        frame(type="got", bytes=3),  # the arena's
    ],
)
def test_what_is_no_message_is_malformed(sent: bytes) -> None:
    with pytest.raises(Malformed):
        decode_from_submitter(sent)


def test_a_frame_that_is_too_long_is_not_read() -> None:
    with pytest.raises(Oversize, match="at most 98304 bytes"):
        decode_from_submitter(b" " * (FRAME_BYTES + 1))


@given(st.binary() | st.recursive(st.text(), st.lists).map(msgspec.json.encode))
def test_any_bytes_are_a_message_or_a_protocol_error(sent: bytes) -> None:
    for decode in (decode_from_submitter, decode_to_submitter):
        with contextlib.suppress(ProtocolError):
            decode(sent)


@given(
    st.dictionaries(
        st.sampled_from(["type", "token", "name", "size", "data", "submission", "version"]),
        st.sampled_from([*{type(one).__struct_config__.tag for one in SAID}])
        | st.integers()
        | st.text()
        | st.none(),
    )
)
def test_any_fields_are_a_message_or_malformed(fields: dict[str, Any]) -> None:
    try:
        message = decode_from_submitter(msgspec.json.encode(fields))
    except Malformed:
        return
    assert decode_from_submitter(encode_from_submitter(message)) == message
