"""Bytes to messages and back, with `json` and `msgpack` as the oracles; and any bytes at all."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgpack  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.games.catalogue import GAMES
from arena.games.match import MatchState
from bots.strategy import choose
from protocol import codec
from protocol.ace_king_queen import Open
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode, join
from protocol.errors import BadGame, Malformed, Oversize, ProtocolError
from protocol.games import VOCABULARIES, conventions
from protocol.gin_rummy import Melds
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Ending,
    Goodbye,
    Hello,
    Limits,
    Match,
    Mechanism,
    Over,
    Past,
    Ready,
    Refused,
    Reveal,
    Termination,
    Verdict,
    Welcome,
)
from protocol.vocabulary import News, Question
from protocol.words import Asked

JSON, MSGPACK = Encoding.JSON, Encoding.MSGPACK
BOTH = pytest.mark.parametrize("encoding", Encoding)

TURN_ANSWER: Any = {"discard": "9h", "knock": True, "melds": [["As", "2s", "3s"]]}
FROM_BOT: list[BotMessage] = [
    Hello(1, "nash", ("ace_king_queen",)),
    Hello(1, "näsh ✓", ("a", "b"), "token", 8, True, "session", 0, "client 1.0"),
    Ready("m.0", "nonce"),
    Answer("m.0", "m.0:1", "bet"),
    Answer("m.0", "m.0:1", 4, "a note"),
    Answer("m.0", "m.0:1", TURN_ANSWER),
    Answer("m.0", "m.0:1", None),
    Goodbye(),
]
VERDICT = Verdict(
    kind=Ending.TIMEOUT,
    match="m",
    game="ace_king_queen",
    bot="näsh ✓",
    seat=0,
    text="out of time",
    advice="be quick",
    mechanism=Mechanism.WALL_CLOCK,
    asked='{"kind":"open"}',
    legal="bet, check",
    got=None,
    taken_ms=2140.5,
    waited_ms=2152.25,
    credit_ms=12.0,
    min_rtt_ms=0.5,
    bank_ms=0,
    exit_status=-9,
    stderr="Traceback\n",
    limits=Limits(),
)
FOUR = ("a", "b", "c", "d")
HIGH_LOW, GIN_RUMMY = (
    msgspec.to_builtins(VOCABULARIES[game].settings()) for game in ("high_low", "gin_rummy")
)
FROM_ARENA: list[ArenaMessage] = [
    Welcome(1, "nash", "secret", Limits()),
    Welcome(1, "nash", "secret", Limits(), True),
    Match("m.0", "high_low", 3, FOUR, HIGH_LOW, Limits(), "hash"),
    Over("m.0", (), (2, -2), Termination(Ending.COMPLETED), None),
    Over("m.0", (), (-9, 9), Termination(Ending.CPU, 0, "why"), Reveal("00ff", ("a", ""))),
    Over("m.0", (), (-2, 2), Termination(Ending.TIMEOUT, 0), None, VERDICT),
    Refused("name", "taken", "m.0"),
    Refused("illegal", "no", "m.0", "m.0:1", ["bet", "check"]),
    Refused("illegal", "no", "m.0", "m.0:1", {"min": 1, "max": 4}),
    Refused("illegal", "no", "m.0", "m.0:1", [TURN_ANSWER, None]),
]

SETTINGS: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 20},
    "gin_rummy": {"games": 1},
    "high_low": {"max_shuffles": 2},
    "three_card_poker": {"rounds": 20},
    "blackjack": {"hands": 20},
}


@cache
def played(game: str) -> tuple[list[Question[Any]], list[News]]:
    """All that was asked and told in matches of random play."""
    asked: dict[str, list[Question[Any]]] = {}
    told: dict[str, list[News]] = {}
    rng = random.Random(1)
    words = VOCABULARIES[game]
    seed = 0
    while set(asked) != set(words.questions) or set(told) != set(words.news):
        seed += 1
        match = MatchState(
            GAMES[game], words.read_settings(SETTINGS[game]), seed=bytes([seed] * 32)
        )
        while match.pending is not None:
            question = match.pending.question
            asked.setdefault(question.kind, []).append(question)
            match.answer(choose(question.choices, rng))
        for tell in match.take_news():
            told.setdefault(tell.news.kind, []).append(tell.news)
    return [q for some in asked.values() for q in some[:8]], [
        n for some in told.values() for n in some[:8]
    ]


def plays(game: str) -> Callable[[str], str]:
    """Every match is one of this game."""
    return lambda match: game


def knows_nothing(match: str) -> str:
    raise KeyError(match)


def plain(frame: bytes, encoding: Encoding) -> Any:
    """What another language's library reads in a frame."""
    if encoding is JSON:
        return json.loads(frame)
    return msgpack.unpackb(frame, strict_map_key=True)


def written(value: Any, encoding: Encoding) -> bytes:
    """What another language's library writes."""
    if encoding is JSON:
        return json.dumps(value).encode()
    packed: bytes = msgpack.packb(value)
    return packed


# ---- Round trips


@BOTH
@pytest.mark.parametrize("message", FROM_BOT, ids=lambda m: type(m).__name__)
def test_what_a_bot_says_arrives(message: BotMessage, encoding: Encoding) -> None:
    assert decode_from_bot(encode(message, encoding), encoding) == [message]


@BOTH
@pytest.mark.parametrize("message", FROM_ARENA, ids=lambda m: type(m).__name__)
def test_what_the_arena_says_arrives(message: ArenaMessage, encoding: Encoding) -> None:
    frame = encode(message, encoding)

    assert decode_from_arena(frame, encoding, plays("ace_king_queen")) == [message]


@BOTH
@pytest.mark.parametrize("game", VOCABULARIES)
def test_every_question_and_all_news_arrive_as_one_flat_map(game: str, encoding: Encoding) -> None:
    questions, news = played(game)
    asks = [(question, heard) for question in questions for heard in ((), tuple(news[:3]))]
    for question, heard in [*asks, (questions[0], tuple(news))]:
        ask = Ask("m.0", "m.0:1", question, heard, 10_000, 1_000)
        frame = encode(ask, encoding)

        assert decode_from_arena(frame, encoding, plays(game)) == [ask]
        assert plain(frame, encoding) == {
            "type": "ask",
            "match": "m.0",
            "ask": "m.0:1",
            "news": json.loads(msgspec.json.encode(heard)),
            "bank_ms": 10_000,
            "decision_ms": 1_000,
            **json.loads(msgspec.json.encode(question)),
        }
    over = Over("m.0", tuple(news), (1,), Termination(Ending.VOID, None, "why"), None)
    assert decode_from_arena(encode(over, encoding), encoding, plays(game)) == [over]


@BOTH
@pytest.mark.parametrize("game", VOCABULARIES)
@pytest.mark.parametrize("guess", ["right", "wrong", "chess", None])
def test_a_frame_of_questions_arrives_whatever_game_is_likely(
    game: str, guess: str | None, encoding: Encoding
) -> None:
    another = "high_low" if game == "gin_rummy" else "gin_rummy"
    likely = {"right": game, "wrong": another}.get(guess or "", guess)
    questions, news = played(game)
    asks = [Ask("m.0", "m.0:1", question, tuple(news), 10, 1) for question in questions]
    for said in (asks, asks[:1], [FROM_ARENA[0], *asks], []):
        frame = join([encode(message, encoding) for message in said], encoding)

        assert decode_from_arena(frame, encoding, plays(game), likely) == said
    assert decode_from_arena(encode(asks[0], encoding), encoding, plays(game), likely) == asks[:1]


def test_most_frames_are_decoded_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Open(1, "A")
    said = [Ask(match, f"{match}:1", question, (), 10, 1) for match in "mn"]
    frame = join([encode(message, JSON) for message in said], JSON)
    monkeypatch.setattr(codec._READERS[JSON], "message", None)

    assert decode_from_arena(frame, JSON, plays("ace_king_queen"), "ace_king_queen") == said
    with pytest.raises(Malformed):
        decode_from_arena(frame, JSON, plays("gin_rummy"), "gin_rummy")


def answered(game: str) -> list[tuple[Question[Any], Any]]:
    """Every question of that game's play with an answer that it may have got."""
    rng = random.Random(2)
    return [(question, choose(question.choices, rng)) for question in played(game)[0]]


@BOTH
@pytest.mark.parametrize("game", VOCABULARIES)
def test_a_question_of_before_arrives_with_its_answer(game: str, encoding: Encoding) -> None:
    news = tuple(played(game)[1])
    for question, answer in answered(game):
        past = Past("m.0", "m.0:1", question, news, answer)
        [arrived] = decode_from_arena(encode(past, encoding), encoding, plays(game))

        assert isinstance(arrived, Past)
        assert question.check(arrived.answer) == answer
        assert msgspec.structs.replace(arrived, answer=answer) == past
        # An ask with the answer in the place of the times.
        flat = plain(encode(Ask("m.0", "m.0:1", question, news, 1, 1), encoding), encoding)
        del flat["bank_ms"], flat["decision_ms"]
        flat |= {"type": "past", "answer": json.loads(msgspec.json.encode(answer))}
        assert plain(encode(past, encoding), encoding) == flat


@BOTH
def test_melds_declared_before_arrive(encoding: Encoding) -> None:
    hand = tuple("As 2s 3s 4h 4d 4c 9h Th Jh Kd".split())
    answer = (("As", "2s", "3s"), ("4h", "4d", "4c"))
    past = Past("m.0", "m.0:1", Melds(hand), (), answer)
    [arrived] = decode_from_arena(encode(past, encoding), encoding, plays("gin_rummy"))

    assert isinstance(arrived, Past)
    assert Melds(hand).check(arrived.answer) == answer


@BOTH
def test_a_match_its_past_and_its_end_may_be_in_one_frame(encoding: Encoding) -> None:
    question = played("high_low")[0][0]
    said: list[ArenaMessage] = [
        Match("m.0", "high_low", 0, FOUR, HIGH_LOW, Limits(), "hash"),
        Past("m.0", "m.0:1", question, (), "swap"),
        Past("m.0", "m.0:2", question, (), "keep"),
        Ask("m.0", "m.0:3", question, (), 1, 1),
        Over("m.0", (), (0, 0, 0, 0), Termination(Ending.VOID), None),
    ]
    frame = join([encode(message, encoding) for message in said], encoding)

    assert decode_from_arena(frame, encoding, knows_nothing) == said


@pytest.mark.made_up
@BOTH
def test_an_over_and_a_welcome_of_an_earlier_arena_are_read(encoding: Encoding) -> None:
    over = plain(encode(FROM_ARENA[3], encoding), encoding)
    welcome = plain(encode(FROM_ARENA[0], encoding), encoding)
    del over["verdict"], welcome["practice"]
    frame = written([over, welcome], encoding)

    assert decode_from_arena(frame, encoding, plays("ace_king_queen")) == [
        FROM_ARENA[3],
        FROM_ARENA[0],
    ]


@pytest.mark.parametrize("game", VOCABULARIES)
def test_both_encodings_carry_the_same_values(game: str) -> None:
    questions, news = played(game)
    messages: list[BotMessage | ArenaMessage] = [*FROM_BOT, *FROM_ARENA]
    messages += [Ask("m.0", "m.0:1", q, tuple(news[:5]), 1, 2) for q in questions]
    for message in messages:
        assert plain(encode(message, JSON), JSON) == plain(encode(message, MSGPACK), MSGPACK)


# ---- Arrays


@pytest.mark.parametrize(
    ("count", "header"),
    [
        (0, b"\x90"),
        (1, b"\x91"),
        (15, b"\x9f"),
        (16, b"\xdd\0\0\0\x10"),
        (70_000, b"\xdd\0\x01\x11\x70"),
    ],
)
def test_a_msgpack_frame_says_how_many_parts_it_joins(count: int, header: bytes) -> None:
    frame = join([b"\xc0"] * count, MSGPACK)

    assert frame == header + b"\xc0" * count
    assert msgpack.unpackb(frame) == [None] * count


@pytest.mark.parametrize("count", [0, 1, 2, 70_000])
def test_a_json_frame_joins_its_parts_by_commas(count: int) -> None:
    assert json.loads(join([b"null"] * count, JSON)) == [None] * count


@BOTH
def test_an_empty_array_says_nothing(encoding: Encoding) -> None:
    assert decode_from_bot(join([], encoding), encoding) == []
    assert decode_from_arena(join([], encoding), encoding, knows_nothing) == []


# ---- What is refused


@BOTH
def test_a_frame_at_the_limit_is_read_and_a_larger_one_refused(encoding: Encoding) -> None:
    frame = encode(FROM_BOT[0], encoding)

    assert decode_from_bot(frame, encoding, limit=len(frame)) == [FROM_BOT[0]]
    with pytest.raises(Oversize, match=f"at most {len(frame) - 1} bytes, got {len(frame)}"):
        decode_from_bot(frame, encoding, limit=len(frame) - 1)


HELLO = {"type": "hello", "protocol": 1, "name": "nash", "games": ["akq"]}
READY = {"type": "ready", "match": "m", "nonce": "n"}
ANSWER = {"type": "answer", "match": "m", "ask": "m:1", "value": "bet"}


REFUSED: list[tuple[Any, str]] = [
    ({**HELLO, "nmae": "x"}, "unknown field `nmae`"),
    ({**ANSWER, "seat": 1}, "unknown field `seat`"),
    ({"type": "goodbye", "why": ""}, "unknown field `why`"),
    ({"type": "goodbye", "\x1b[2J\n": ""}, "unknown field `\N{REPLACEMENT CHARACTER}[2J"),
    (
        {"type": "bet"},
        "invalid value 'bet' - at `$.type`; expected hello, ready, answer or goodbye",
    ),
    ({"type": "welcome"}, "invalid value 'welcome'"),
    ({"type": 1}, "expected `str`"),
    ({"type": None}, "expected `str`"),
    ({}, "missing required field `type`"),
    ({"type": "ready", "match": "m"}, "missing required field `nonce`"),
    ({**HELLO, "protocol": 1.0}, "expected `int`, got `float`"),
    ({**HELLO, "protocol": True}, "expected `int`, got `bool`"),
    ({**HELLO, "protocol": "1"}, "expected `int`, got `str`"),
    ({**HELLO, "name": ""}, "length >= 1"),
    ({**HELLO, "name": "x" * 65}, "length <= 64"),
    ({**HELLO, "name": None}, "expected `str`"),
    ({**HELLO, "name": "a\x1b[2J"}, "printable"),
    ({**HELLO, "name": "a\u202eb"}, "printable"),
    ({**HELLO, "name": "a\n"}, "printable"),
    ({**HELLO, "client": "\x9b"}, "printable"),
    ({**HELLO, "games": []}, "length >= 1"),
    ({**HELLO, "games": "akq"}, "expected `array`"),
    ({**HELLO, "games": ["akq"] * 65}, "length <= 64"),
    ({**HELLO, "tables": 0}, "`int` >= 1"),
    ({**HELLO, "tables": 1.0}, "got `float`"),
    ({**HELLO, "batch": 1}, "expected `bool`, got `int`"),
    ({**HELLO, "from": -1}, "`int` >= 0"),
    ({**READY, "nonce": ""}, "length >= 1"),
    ({**READY, "match": 1}, "expected `str`, got `int`"),
    ({**ANSWER, "note": "x" * 1025}, "length <= 1024"),
    ({**ANSWER, "value": [[[[["x"]]]]]}, "got `array`"),
    ([[]], "expected `object`"),
    ([[HELLO]], "expected `object`"),
    ([HELLO, None], "expected `object`"),
    ([HELLO, {"type": "bet"}], "invalid value 'bet'"),
    (None, "expected `object | array`"),
    (4, "expected `object | array`"),
    ("goodbye", "expected `object | array`"),
]
"""What no bot may say, and what the arena tells it."""


@BOTH
@pytest.mark.parametrize(("message", "text"), REFUSED, ids=str)
def test_what_no_bot_may_say_is_refused_with_the_reason(
    message: Any, text: str, encoding: Encoding
) -> None:
    with pytest.raises(Malformed) as refused:
        decode_from_bot(written(message, encoding), encoding)

    assert text in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= 200


VALUE = b'{"type":"answer","match":"m","ask":"a","value":%b}'


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b" ",
        b"{",
        b"nul",
        b"\xff\xfe",
        b'\xef\xbb\xbf{"type":"goodbye"}',
        b'{"type":"goodbye"}{"type":"goodbye"}',
        b'{"type":"goodbye"} x',
        b'{"type":"goodbye",}',
        b"{'type':'goodbye'}",
        b'{type:"goodbye"}',
        b'{"type":"goodbye"\x00}',
        b'{1:2,"type":"goodbye"}',
        b'[{"type":"goodbye"}',
        '{"type":"goodbye"}'.encode("utf-16"),
        VALUE % b"NaN",
        VALUE % b"-Infinity",
        VALUE % b"1e999",
        VALUE % (b"1" * 5000),
        VALUE % b"01",
        VALUE % b"+1",
        VALUE % b'"\\ud800"',
        VALUE % b'"\xff"',
        VALUE % b'"\n"',
        VALUE % (b"[" * 500 + b"]" * 500),
        VALUE % (b"[" * 100_000),
        b"[" * 100_000,
        b'{"type":' * 100_000,
        b'{"x":' + b"[" * 100_000,
    ],
    ids=lambda frame: repr(frame[:60]),
)
def test_json_that_cannot_be_read_is_refused(frame: bytes) -> None:
    with pytest.raises(Malformed):
        decode_from_bot(frame, JSON)
    with pytest.raises(Malformed):
        decode_from_arena(frame, JSON, plays("gin_rummy"))


PACKED = b"\x84\xa4type\xa6answer\xa5match\xa1m\xa3ask\xa1a\xa5value"


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\x81",
        b"\x81\xa4type\xa7goodbye\x00",
        b"\x81\xa4type\xa7goodby",
        b"\x82\x01\x02\xa4type\xa7goodbye",
        b"\x81\xa4type\xd9\x07\xff\xff\xff\xff\xff\xff\xff",
        b"\x81\xc4\x04type\xa7goodbye",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        PACKED + b"\xd4\x05\x00",
        PACKED + b"\xd6\xff\x00\x00\x00\x00",
        PACKED + b"\xc7\x0c\xff" + b"\xff" * 12,
        PACKED + b"\xc4\x01a",
        PACKED + b"\xa1\xff",
        PACKED + b"\x81\x01\x02",
        PACKED + b"\x81\x80\x01",
        PACKED + b"\x81\x92\x01\x02\x03",
        PACKED + b"\x81\xcb\x7f\xf8\0\0\0\0\0\0\x01",
        PACKED + b"\x81\xd6\xff\0\0\0\0\x01",
        PACKED + b"\x91" * 500 + b"\x01",
        PACKED + b"\x91" * 100_000 + b"\x01",
        PACKED + b"\x81" * 100_000,
        PACKED + b"\xdd\xff\xff\xff\xff",
        PACKED + b"\xdf\xff\xff\xff\xff",
        PACKED + b"\xc6\xff\xff\xff\xff",
    ],
    ids=lambda frame: repr(frame[-40:]),
)
def test_msgpack_that_cannot_be_read_is_refused(frame: bytes) -> None:
    with pytest.raises(Malformed):
        decode_from_bot(frame, MSGPACK)


def test_map_keys_with_equal_hashes_cannot_hold_up_the_arena() -> None:
    # All tuples (x, y) with this y have one hash; 75,000 of them as keys took msgspec a minute.
    state, prime2 = 0, 14029467366897019727
    keys = []
    for x in range(1, 200):
        lane = (2870177450012600261 + x * prime2) % 2**64
        lane = (lane << 31 | lane >> 33) * 11400714785074694791 % 2**64
        state = state or lane
        y = (state - lane) * pow(prime2, -1, 2**64) % 2**64
        y -= 2**64 if y >= 2**63 else 0
        if abs(y) < 2**61 - 1:
            keys.append((x, y))
    body = b"".join(msgpack.packb(list(key)) + b"\0" for key in keys)
    frame = PACKED + b"\xde" + len(keys).to_bytes(2, "big") + body

    assert len(keys) > 40
    assert len({hash(key) for key in keys}) == 1, "the attack is a real one"
    with pytest.raises(Malformed, match="expected `str`, got `array` - at `key`"):
        decode_from_bot(frame, MSGPACK)


@pytest.mark.parametrize(
    ("frame", "encoding"),
    [
        (VALUE % b'"bet","value":"check"', JSON),
        (b"\x85" + PACKED[1:] + b"\xa3bet\xa5value\xa5check", MSGPACK),
    ],
)
def test_of_a_key_said_twice_the_last_value_counts(frame: bytes, encoding: Encoding) -> None:
    assert decode_from_bot(frame, encoding) == [Answer("m", "a", "check")]


@pytest.mark.made_up
@pytest.mark.parametrize(
    ("value", "read"),
    [
        (b"\xcb\x7f\xf0\0\0\0\0\0\0", float("inf")),
        (b"\xcf" + b"\xff" * 8, 2**64 - 1),
        (b"\xcd\x00\x04", 4),
        (b"\xc3", True),
    ],
)
def test_what_json_could_not_say_but_is_a_number_is_the_questions_business(
    value: bytes, read: object
) -> None:
    (answer,) = decode_from_bot(PACKED + value, MSGPACK)

    assert isinstance(answer, Answer)
    assert answer.value == read


# ---- What a bot makes of the arena's frames


@BOTH
def test_bots_ignore_fields_that_they_do_not_know(encoding: Encoding) -> None:
    question = played("ace_king_queen")[0][0]
    news = played("ace_king_queen")[1][:1]
    said: list[ArenaMessage] = [*FROM_ARENA, Ask("m.0", "m.0:1", question, tuple(news), 1, 1)]
    for message in said:
        raw = plain(encode(message, encoding), encoding) | {"weather": ["fine"]}
        for told in raw.get("news", ()):
            told["weather"] = "fine"
        frame = written(raw, encoding)

        assert decode_from_arena(frame, encoding, plays("ace_king_queen")) == [message]


@BOTH
def test_an_over_for_a_match_that_a_bot_never_heard_of_has_no_news_for_it(
    encoding: Encoding,
) -> None:
    news = tuple(played("ace_king_queen")[1])
    over = Over("m.0", news, (2, -2), Termination(Ending.COMPLETED), None)
    frame = encode(over, encoding)

    assert decode_from_arena(frame, encoding, knows_nothing) == [
        msgspec.structs.replace(over, news=())
    ]


def past_with(**changes: object) -> dict[str, object]:
    """A question of before as it travels, with some fields changed, or left out if `...`."""
    changes = {"answer": "bet", "bank_ms": ..., "decision_ms": ..., **changes}
    return ask_with(type="past", **changes)


def ask_with(**changes: object) -> dict[str, object]:
    """An ask as it travels, with some fields changed, or left out if `...`."""
    fields: dict[str, object] = {
        "type": "ask",
        "match": "m",
        "ask": "m:1",
        "news": [],
        "bank_ms": 1,
        "decision_ms": 1,
        "kind": "open",
        "round": 1,
        "card": "A",
        "legal": ["bet"],
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not ...}


def over_with(**changes: object) -> dict[str, object]:
    """An over as it travels, with some fields changed."""
    message: dict[str, object] = plain(encode(FROM_ARENA[3], JSON), JSON)
    return message | {"match": "m"} | changes


@BOTH
@pytest.mark.parametrize(
    "message",
    [
        None,
        4,
        "ask",
        [[]],
        {},
        {"type": "hello"},
        {"type": ["ask"]},
        {"type": "ask"},
        {"type": "over"},
        {"type": "over", "match": "m"},
        {"type": "welcome", "protocol": "1"},
        ask_with(match="x"),
        ask_with(match=["m"]),
        ask_with(match=...),
        ask_with(kind="bluff"),
        ask_with(kind=["open"]),
        ask_with(kind=...),
        ask_with(card="2s"),
        ask_with(card=...),
        ask_with(legal="bet"),
        ask_with(legal=[4]),
        ask_with(round="1"),
        ask_with(bank_ms=None),
        ask_with(news=...),
        ask_with(news=None),
        ask_with(news=0),
        ask_with(news={}),
        ask_with(news=[{}]),
        ask_with(news=[{"kind": "weather"}]),
        ask_with(news=[{"kind": "hand_over"}]),
        past_with(match="x"),
        past_with(match=...),
        past_with(ask=4),
        past_with(kind="bluff"),
        past_with(kind=...),
        past_with(card=...),
        past_with(legal="bet"),
        past_with(news=...),
        past_with(news=[{"kind": "weather"}]),
        past_with(answer=...),
        {"type": "past"},
        {"type": "refused", "code": "illegal"},
        {"type": "refused", "code": "illegal", "text": "no", "match": 4},
        {"type": "refused", "code": "illegal", "text": "no", "ask": 4},
        over_with(verdict="guilty"),
        over_with(verdict={}),
        over_with(verdict={"kind": "fine"}),
        over_with(scores=None),
        over_with(termination={"kind": "fine"}),
        {"type": "welcome", "protocol": 1, "bot": "a", "session": "s", "limits": {}, "practice": 1},
    ],
    ids=str,
)
def test_what_no_arena_says_is_refused(message: object, encoding: Encoding) -> None:
    def game_of(match: str) -> str:
        return {"m": "ace_king_queen"}[match]

    for fine in (ask_with(), past_with(), over_with()):
        assert decode_from_arena(written(fine, encoding), encoding, game_of)
    with pytest.raises(Malformed) as refused:
        decode_from_arena(written(message, encoding), encoding, game_of)
    with pytest.raises(Malformed) as refused_too:
        decode_from_arena(written(message, encoding), encoding, game_of, "ace_king_queen")

    assert str(refused_too.value) == str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= 200


def test_a_game_that_a_bot_does_not_know_is_refused() -> None:
    with pytest.raises(Malformed, match="no match, game, kind or field 'chess' is known"):
        decode_from_arena(written(ask_with(), JSON), JSON, plays("chess"))


# ---- Any bytes at all

FIELDS = (
    "type match ask value note nonce protocol name games token tables batch resume from client "
    "news kind legal round card bank_ms decision_ms scores termination reveal code text seat seats "
    "settings limits commitment answer verdict practice bot"
).split()
WORDS = (
    "hello ready answer goodbye welcome match ask past over refused open respond bet "
    "ace_king_queen gin_rummy m"
).split()

TEXT = st.text(max_size=8) | st.sampled_from([*FIELDS, *WORDS])
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | TEXT
JSON_VALUES = st.recursive(
    SCALARS | st.integers(-(10**40), 10**40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
MSGPACK_SCALARS = (
    SCALARS
    | st.binary(max_size=8)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=16))
    | st.builds(msgpack.Timestamp, st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**9 - 1))
)
MSGPACK_VALUES = st.recursive(
    MSGPACK_SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            MSGPACK_SCALARS | st.tuples(MSGPACK_SCALARS, MSGPACK_SCALARS), inner, max_size=4
        )
    ),
    max_leaves=12,
)


VALID = [plain(encode(message, JSON), JSON) for message in (*FROM_BOT, *FROM_ARENA)]
VALID += [
    ask_with(),
    past_with(),
    ask_with(news=[plain(msgspec.json.encode(n), JSON) for n in played("ace_king_queen")[1][:1]]),
]


@st.composite
def damaged(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """A message, or an array of some, with fields that are missing, odd, renamed or too many."""
    messages = []
    for raw in draw(st.lists(st.sampled_from(VALID), min_size=1, max_size=3)):
        message = dict(raw)
        for _ in range(draw(st.integers(0, 3))):
            name = draw(st.sampled_from([*message, *FIELDS]))
            match draw(st.sampled_from(["drop", "change", "rename", "retype", "nest"])):
                case "drop":
                    message.pop(name, None)
                case "change":
                    message[name] = draw(values)
                case "rename":
                    message[draw(TEXT)] = message.pop(name, None)
                case "retype":
                    message["type"] = draw(st.sampled_from(WORDS))
                case _:
                    message[name] = [message.get(name)]
        messages.append(message)
    return messages[0] if draw(st.booleans()) else messages


@st.composite
def cut_and_glued(draw: st.DrawFn, frames: st.SearchStrategy[bytes]) -> bytes:
    """A frame with a piece cut out, doubled or overwritten."""
    frame = draw(frames)
    start = draw(st.integers(0, len(frame)))
    end = draw(st.integers(start, min(len(frame), start + 20)))
    match draw(st.sampled_from(["whole", "cut", "double", "overwrite", "more"])):
        case "cut":
            return frame[:start] + frame[end:]
        case "double":
            return frame[:end] + frame[start:]
        case "overwrite":
            return frame[:start] + draw(st.binary(max_size=8)) + frame[end:]
        case "more":
            return frame + draw(frames)
        case _:
            return frame


JSON_FRAMES = (damaged(JSON_VALUES) | JSON_VALUES).map(lambda value: json.dumps(value).encode())
MSGPACK_FRAMES = (damaged(MSGPACK_VALUES) | MSGPACK_VALUES).map(
    lambda value: written(value, MSGPACK)
)


def heard_or_refused(decode: Callable[[], list[Any]]) -> list[Any]:
    """The messages, or none if they are refused, by an error that fits a line."""
    try:
        return decode()
    except ProtocolError as error:
        text = str(error)
    assert text.isprintable()
    assert len(text) <= 200
    return []


def parses_or_is_refused(frame: bytes, encoding: Encoding) -> None:
    for limit in (None, 100):
        read = partial(decode_from_bot, frame, encoding, limit)
        for message in heard_or_refused(read):
            assert isinstance(message, BotMessage)
            assert plain(encode(message, JSON), JSON), "it can be passed on"
    for game_of in (plays("ace_king_queen"), plays("gin_rummy"), knows_nothing):
        take = partial(decode_from_arena, frame, encoding, game_of)
        told = heard_or_refused(take)
        assert all(isinstance(message, ArenaMessage) for message in told)
        for likely in ("ace_king_queen", "gin_rummy"):
            guessed = heard_or_refused(partial(take, likely=likely))
            assert repr(guessed) == repr(told), "a wrong guess changes nothing"


@pytest.mark.made_up
@BOTH
@given(frame=st.binary(max_size=64))
def test_any_bytes_parse_or_are_refused(frame: bytes, encoding: Encoding) -> None:
    parses_or_is_refused(frame, encoding)


@pytest.mark.stats
@pytest.mark.made_up
@given(cut_and_glued(JSON_FRAMES))
def test_any_json_parses_or_is_refused(frame: bytes) -> None:
    parses_or_is_refused(frame, JSON)


@pytest.mark.stats
@pytest.mark.made_up
@given(cut_and_glued(MSGPACK_FRAMES))
def test_any_msgpack_parses_or_is_refused(frame: bytes) -> None:
    parses_or_is_refused(frame, MSGPACK)


@pytest.mark.made_up
@BOTH
@pytest.mark.parametrize("depth", [1, 4, 5, 6, 500, 1_000, 100_000])
@pytest.mark.parametrize("where", ["frame", "value", "news", "answer", "unknown"])
def test_any_depth_parses_or_is_refused(where: str, depth: int, encoding: Encoding) -> None:
    opening, closing = (b"[", b"]") if encoding is JSON else (b"\x91", b"")
    for inner in (b"1", b""):
        nested = opening * depth + inner + closing * depth
        if where == "frame":
            frame = nested
        else:
            told = {"news": ask_with, "answer": past_with}.get(where)
            message: dict[str, object] = told() if told else dict(ANSWER)
            message[where] = 0
            frame = encode_with_hole(message, where, nested, encoding)
        parses_or_is_refused(frame, encoding)


def encode_with_hole(
    message: dict[str, object], field: str, raw: bytes, encoding: Encoding
) -> bytes:
    """A message in which one field has these bytes as its value."""
    rest = {name: value for name, value in message.items() if name != field}
    if encoding is JSON:
        return b'%b,"%b":%b}' % (written(rest, JSON)[:-1], field.encode(), raw)
    packed = written(rest, MSGPACK)
    return bytes([packed[0] + 1]) + packed[1:] + written(field, MSGPACK) + raw


@pytest.mark.parametrize(
    ("frame", "encoding", "said"),
    [
        (
            b'{"type": "hello"}',
            Encoding.MSGPACK,
            "expected msgpack in a binary frame, got JSON; send it in a text frame",
        ),
        (b' [{"type": "ready"}]', Encoding.MSGPACK, "got JSON"),
        (
            b"\x81\xa4type\xa5hello",
            Encoding.JSON,
            "expected JSON in a text frame, got msgpack; send it in a binary frame",
        ),
        (b"\xdc\x00\x01\x80", Encoding.JSON, "got msgpack"),
        ('{"type":'.encode("utf-16"), Encoding.JSON, "expected JSON in UTF-8, .* like UTF-16"),
        (b"\xc1", Encoding.MSGPACK, "^MessagePack data is malformed"),  # with its capitals
    ],
)
def test_a_message_in_a_frame_of_the_other_kind_is_told_as_that(
    frame: bytes, encoding: Encoding, said: str
) -> None:
    with pytest.raises(Malformed, match=said):
        decode_from_bot(frame, encoding)


# ---- Games that the codec could not read or write


class _Taken(Question[int], frozen=True, gc=False, tag="swap"):
    news: int
    legal: tuple[int, ...] = (1,)


class _Unreadable(Question[int], frozen=True, gc=False, tag="swap"):
    cards: list[int] | tuple[int, ...]
    legal: tuple[int, ...] = (1,)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (_Taken, "wire: expected another name for the field 'news' of _Taken"),
        (
            _Unreadable,
            "wire: the types of _Unreadable cannot be sent: TypeError: Type unions may not",
        ),
    ],
)
def test_fields_that_cannot_travel_break_a_convention(
    question: type[Question[Any]], said: str
) -> None:
    words = VOCABULARIES["high_low"]
    others = {cls: told for cls, told in words.words.items() if cls is not words.questions["swap"]}
    changed = {question: Asked(""), **others}

    with pytest.raises(BadGame, match=re.escape(said)):
        conventions(msgspec.structs.replace(words, words=changed))
