"""The pages of the protocol: their rules and topics, and that the codec does what they say.

Their code and frames are tested in `tests/test_documents.py`, as for all documents; their tables in
`tests/protocol/test_schema.py`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from websockets.frames import Frame, Opcode

from arena.referee import bot_session
from arena.referee.sessions import BotSessions
from arena.server.admission import Admission, Unwelcome
from protocol.codec import Encoding, decode_from_arena, decode_from_bot
from protocol.errors import Malformed
from protocol.messages import (
    CLOSE_OVERSIZE,
    CLOSE_PROTOCOL,
    CLOSE_REFUSED,
    CLOSE_REPLACED,
    Answer,
    Hello,
    Limits,
)
from protocol.schema.definitions import our_games
from protocol.strategy import house_bots
from tests.support.documents import DOCUMENTS, PROTOCOL, blocks, headings, section, without_blocks

OUR_GAMES = [words.name for words in our_games()]


def rules_of(page: str) -> list[str]:
    """The numbers of the rules of a page, in order: a rule of the rulebook is one there."""
    text = DOCUMENTS[f"protocol/{page}.md"]
    return re.findall(r"^- \*\*(\w+)\.\*\* \S", text, re.MULTILINE)


RULES = {page: rules_of(page) for page in ("referee", *OUR_GAMES)}

TOPICS = {
    "framing": "Framing",
    "encodings": "JSON, msgpack",
    "session": "Sessions",
    "legal answers": "What is legal",
    "clocks": "Time",
    "batching": "Batching",
    "tables": "Many tables",
    "resume": "A lost connection, Lost memory",
    "errors and close codes": "What goes wrong, Verdicts",
    "versioning policy": "Versions",
    "the check": "How a bot behaves",
    "schemas and vectors": "Schemas and transcripts",
    "rules": "Rules, Rulings, The referee",
    "at once": "Ten minutes to a bot, The session in pseudocode, The games",
}
"""What the pages must explain, and the sections that do."""


@pytest.mark.parametrize("page", RULES)
def test_the_rules_of_a_page_have_one_letter_and_are_numbered_from_1(page: str) -> None:
    letters = {rule[0] for rule in RULES[page]}
    others = {rule[0] for other, rules in RULES.items() for rule in rules if other != page}

    assert len(letters) == 1
    assert letters.isdisjoint(others)
    [letter] = letters
    assert RULES[page] == [f"{letter}{number}" for number in range(1, len(RULES[page]) + 1)]


def test_no_rule_is_cited_that_there_is_not() -> None:
    there = {rule for rules in RULES.values() for rule in rules}
    letters = "".join({rule[0] for rule in there})
    cited = re.findall(rf"\b[{letters}]\d+\b", without_blocks(PROTOCOL))

    assert {*cited} == there


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_has_its_sections(topic: str) -> None:
    assert {*TOPICS[topic].split(", ")} <= {*headings(PROTOCOL)}


def test_every_page_is_linked_from_the_first() -> None:
    linked = re.findall(r"\]\((\w+\.md)\)", DOCUMENTS["protocol/README.md"])
    pages = {name for name in DOCUMENTS if name.startswith("protocol/")}

    assert pages == {f"protocol/{link}" for link in linked} | {"protocol/README.md"}
    assert {f"{game}.md" for game in OUR_GAMES} <= {*linked}


def test_every_house_bot_that_a_command_connects_is_there() -> None:
    commands = re.findall(r"\barena connect (\w+) (\w+)\b", PROTOCOL)

    assert ("gin_rummy", "expert") in commands
    for game, bot in commands:
        if game in OUR_GAMES:  # not those that a document makes up
            assert bot in house_bots(game)


@pytest.mark.parametrize(
    "place", ["What goes wrong", "How a bot behaves", "The session in pseudocode"]
)
def test_all_agree_on_the_close_codes_after_which_a_bot_ends(place: str) -> None:
    """All others, those to come among them, mean: come back."""
    says = {
        "What goes wrong": r"^After 1000 a bot ends; after ([\d, or]+) it says so and ends",
        "How a bot behaves": r"^  Closed with ([\d, or]+) it prints a line on standard error",
        "The session in pseudocode": (
            r"^        if the session has not just been refused, and the code was ([\d, or]+):$"
        ),
    }
    [codes] = re.findall(says[place], section(place), re.MULTILINE)
    final = {CLOSE_PROTOCOL, CLOSE_OVERSIZE, CLOSE_REPLACED, CLOSE_REFUSED}

    assert {*map(int, re.findall(r"\d+", codes))} == final


@pytest.mark.parametrize("place", ["Framing", "Batching"])
def test_arrays_are_as_long_as_the_arena_makes_them(place: str) -> None:
    [kib] = re.findall(r"at most (\d+) KiB,? unless one message", section(place))

    assert int(kib) * 1024 == bot_session._FRAME_BYTES


# ---- What it says of JSON, of bytes and of versions

ANSWER = '{"type":"answer","match":"m.0","ask":"m.0:1","value":4}'
HELLO = '{"type":"hello","protocol":2,"name":"ann","games":["blackjack"]}'


@pytest.mark.parametrize(
    "frame",
    [
        ' {"value" : 4,\n"ask":"m.0:1", "match":"m.0","type":"answer"}\t',
        ANSWER.replace('"value"', '"value":5,"value"'),
        ANSWER.replace('"match"', '"type":"answer","match"'),
        ANSWER.replace("m.0:1", "m.0:\\u0031"),
        f"[{ANSWER}]",
    ],
)
def test_what_means_the_same_in_json(frame: str) -> None:
    assert decode_from_bot(frame.encode(), Encoding.JSON) == [Answer("m.0", "m.0:1", 4)]


def arena_frames() -> list[tuple[str, str]]:
    """All frames of the arena that are shown, each with its game."""
    return [
        (block.language.split()[1], line.removeprefix("arena> "))
        for block in blocks(PROTOCOL)
        for line in block.text.splitlines()
        if line.startswith("arena> ")
    ]


def with_more_fields(value: Any) -> Any:
    """The same with one field more in every map, as a later release may send it."""
    if isinstance(value, list):
        return [with_more_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    # Whatever settings a game has, they are plain data: nothing is ignored there.
    more = {
        name: item if name == "settings" else with_more_fields(item) for name, item in value.items()
    }
    return more | {"a later release's": {"kind": 1, "type": 2}}


def test_a_later_release_may_add_fields_at_any_depth() -> None:
    for game, frame in arena_frames():
        more = json.dumps(with_more_fields(json.loads(frame))).encode()

        read = [
            decode_from_arena(text, Encoding.JSON, lambda match, game=game: game)  # type: ignore[misc]
            for text in (frame.encode(), more)
        ]
        assert read[0] == read[1]


@pytest.mark.parametrize(
    ("word", "another"),
    [
        ('"type":"ask"', '"type":"order"'),
        ('"kind":"open"', '"kind":"raise"'),
        ('"kind":"hand_over"', '"kind":"hand_in"'),
        ('"termination":{"kind":"completed"', '"termination":{"kind":"bored"'),
        ('"mechanism":"rules"', '"mechanism":"oracle"'),
    ],
)
def test_a_later_release_may_not_add_such_a_word(word: str, another: str) -> None:
    shown = [(game, frame) for game, frame in arena_frames() if word in frame]

    assert shown
    for game, frame in shown:
        with pytest.raises(Malformed):
            decode_from_arena(
                frame.replace(word, another).encode(),
                Encoding.JSON,
                lambda match, game=game: game,  # type: ignore[misc]
            )


def test_a_hello_of_another_version_is_told_so_if_it_has_no_other_fields() -> None:
    [hello] = decode_from_bot(HELLO.encode(), Encoding.JSON)
    assert isinstance(hello, Hello)

    with pytest.raises(Unwelcome) as refused:
        Admission(BotSessions(), Limits()).admitted(hello)
    assert refused.value.code == "version"
    assert f"`{refused.value}`" in PROTOCOL
    with pytest.raises(Malformed, match="later"):
        decode_from_bot(HELLO.replace("protocol", 'later":1,"protocol').encode(), Encoding.JSON)


def test_both_encodings_of_an_answer_are_those_of_the_codec() -> None:
    [block] = [block for block in blocks(PROTOCOL) if block.text.startswith('{"type":"an')]
    text, *lines = block.text.splitlines()
    shown: dict[str, str] = {}
    name = ""
    for line in lines:
        name = line[:8].strip() or name  # a line without one goes on
        shown[name] = shown.get(name, "") + line[8:]
    binary = bytes.fromhex(shown["binary"])

    for opcode, payload in ((Opcode.TEXT, text.encode()), (Opcode.BINARY, binary[2:])):
        masked = Frame(opcode, payload).serialize(mask=True)
        assert len(masked) == 2 + 4 + len(payload)
        assert bytes.fromhex(shown[opcode.name.lower()]) == masked[:2] + payload
    assert decode_from_bot(binary[2:], Encoding.MSGPACK) == decode_from_bot(
        text.encode(), Encoding.JSON
    )
