"""What viewers say and hear: what is read, what is refused and how."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Malformed, Oversize, ProtocolError
from protocol.messages import Action, Done, Instruct, Limits, Refused
from protocol.watching import (
    FRAME_BYTES,
    Captions,
    Describe,
    Events,
    Gone,
    Scene,
    Seat,
    Sit,
    Stand,
    ToViewer,
    Turn,
    Unwatch,
    View,
    ViewerMessage,
    Watch,
    decode_from_viewer,
    encode_lobby,
    encode_to_viewer,
)


def frame(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "watch", "topic": "lobby"}, Watch("lobby")),
        (
            {"type": "watch", "topic": "match", "match": "a-1", "token": "t"},
            Watch("match", "a-1", "t"),
        ),
        ({"type": "unwatch"}, Unwatch()),
        ({"type": "sit", "game": "blackjack", "name": "Eva"}, Sit("blackjack", "Eva")),
        (
            {
                "type": "sit",
                "game": "akq",
                "name": "Eva",
                "against": ["house:nash"],
                "settings": {"hands": 4},
            },
            Sit("akq", "Eva", ("house:nash",), {"hands": 4}),
        ),
        ({"type": "stand"}, Stand()),
        (
            {"type": "describe", "game": "x", "seat": 0, "players": ["Eva"], "events": [{"a": 1}]},
            Describe("x", 0, ("Eva",), ({"a": 1},)),
        ),
        (
            {"type": "instruct", "protocol": 1, "token": "t", "action": "pause"},
            Instruct(1, "t", Action.PAUSE),
        ),
    ],
    ids=str,
)
def test_what_a_viewer_may_say_is_read(fields: dict[str, Any], message: ViewerMessage) -> None:
    assert decode_from_viewer(frame(**fields)) == message


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"", "truncated"),
        (b"[]", "expected `object`"),
        (b"\xff", "invalid"),
        (b'{"type":"unwatch"}{}', "JSON is malformed"),
        (frame(type="hello"), "expected watch, unwatch, sit, stand, describe or instruct"),
        (frame(type="watch"), "missing required field `topic`"),
        (frame(type="watch", topic="everything"), "invalid enum value 'everything'"),
        (frame(type="watch", topic="match"), "expected a match with the topic match"),
        (frame(type="watch", topic="lobby", match="a-1"), "expected a match with the topic match"),
        (frame(type="watch", topic="match", match="x" * 65), "length <= 64"),
        (frame(type="watch", topic="lobby", token="x" * 257), "length <= 256"),
        (frame(type="watch", topic="lobby", seat=1), "unknown field `seat`"),
        (frame(type="stand", why="bored"), "unknown field `why`"),
        (frame(type="sit", game="akq"), "missing required field `name`"),
        (frame(type="sit", game="akq", name="a\nb"), "name of printable letters"),
        (frame(type="sit", game="akq", name=" a"), "not framed by spaces"),
        (
            frame(type="sit", game="akq", name="a", against=["b\x1b[2J"]),
            "name of printable letters",
        ),
        (frame(type="sit", game="akq", name="a", against=["b"] * 17), "length <= 16"),
        (frame(type="sit", game="akq", name=""), "length >= 1"),
        (frame(type="describe", game="x", seat=0, players=[], events=[{}] * 201), "length <= 200"),
        (b'{"x":' * 5_000, "nested too deeply"),
        (b"9" * 5_000, "out of range"),
    ],
)
def test_what_a_viewer_may_not_say_is_refused_in_one_line(sent: bytes, says: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode_from_viewer(sent)

    text = str(refused.value)
    assert says.lower() in text.lower()
    assert not text[0].isupper() or text.startswith("JSON")
    assert "\n" not in text


def test_a_frame_that_is_too_large_is_refused_unread() -> None:
    sent = b"[" * (FRAME_BYTES + 1)

    with pytest.raises(Oversize, match="at most 65536 bytes, got 65537"):
        decode_from_viewer(sent)


@given(st.binary() | st.text().map(str.encode))
def test_whatever_comes_is_read_or_refused(sent: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_from_viewer(sent)


VIEW = View("seat", (1,))


@pytest.mark.parametrize(
    "message",
    [
        Captions(({"text": "ann bets"}, {})),
        Scene("a-1", "akq", {"hands": 4}, ("ann", "ben"), VIEW, Limits(), "3", 7, (1, -1)),
        Events("a-1", True, 7, ({"event": "x"},), Turn(0, "open", 5, 9, 10), (1, -1), 12),
        Gone("a-1"),
        Seat("token", "Eva"),
        Refused("token", "expected one of the roster's"),
        Done("paused"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_a_viewer_hears_says_its_type_and_all_its_fields(message: ToViewer) -> None:
    said = json.loads(encode_to_viewer(message))

    assert said.pop("type") == type(message).__name__.lower()
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    told = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    assert said == msgspec.json.decode(msgspec.json.encode(told))


def test_the_lobby_is_its_document_with_a_type() -> None:
    assert json.loads(encode_lobby(b'{"bots":[]}')) == {"type": "lobby", "bots": []}


def test_a_seat_is_seen_by_its_view_and_a_lone_one_by_all() -> None:
    assert VIEW.sees(1, 2)
    assert not VIEW.sees(0, 2)
    assert View("all").sees(0, 2)
    assert not View("public").sees(0, 2)
    assert View("public").sees(0, 1)
