"""What the steps of `arena check` do to messages."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from arena.authoring.conformance.steps import many, reordered, reversed_keys, with_more_fields
from arena.authoring.conformance.table import CheckMatch
from arena.games import game_named
from arena.referee.bot_session import _FRAME_BYTES as FRAME_BYTES
from protocol.ace_king_queen import Open
from protocol.codec import Encoding, decode_from_arena, encode, join
from protocol.gin_rummy import Dealt, GinRummySettings, Melds, Turn, TurnAnswer
from protocol.high_low import Bid
from protocol.messages import Ask, Limits, Match, Over, Welcome
from protocol.three_card_poker import Ante
from protocol.vocabulary import Range

HAND = tuple("As 2s 3s 4s 5s 6s 7s 8s 9s Ts Js".split())
NEWS = Dealt(1, 1, 0, HAND[:10], "Kd")
ASK = Ask("m", "m:1", Turn("Js", HAND, (TurnAnswer("As"),)), (NEWS,), 5, 5)
SETTINGS = msgspec.to_builtins(GinRummySettings())
MESSAGES = [
    Welcome(1, "ann", "secret", Limits()),
    Match("m", "gin_rummy", 0, ("ann", "ben"), SETTINGS, Limits(), "hash"),
    ASK,
]


def plain(message: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(encode(message, Encoding.JSON))
    return document


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("dress", [reversed_keys, with_more_fields])
def test_a_message_means_the_same_in_another_look(message: Any, dress: Any) -> None:
    frame = msgspec.json.encode(dress(plain(message)))

    assert frame != encode(message, Encoding.JSON)
    [decoded] = decode_from_arena(frame, Encoding.JSON, lambda _: "gin_rummy")
    if isinstance(decoded, Match):  # settings are a map of any names
        assert {*SETTINGS} <= {*decoded.settings}
        decoded = msgspec.structs.replace(decoded, settings=SETTINGS)

    assert decoded == message


def test_the_type_comes_last_when_keys_are_reversed() -> None:
    dressed = reversed_keys(plain(ASK))

    assert [*dressed][-1] == "type"
    assert [*dressed["news"][0]][-1] == "kind"
    assert [*dressed["legal"][0]][-1] == "discard"


def test_more_fields_are_everywhere_but_in_what_is_legal() -> None:
    dressed = with_more_fields(plain(ASK))

    assert "spare" in dressed
    assert "spare" in dressed["news"][0]
    assert dressed["legal"] == plain(ASK)["legal"]


def test_the_largest_array_is_as_large_as_those_of_an_arena() -> None:
    table = CheckMatch(1, game_named("blackjack"), {}, 0, "ann", Limits(), random.Random(1))
    messages = [*many(table), table.invitation]
    frames = [encode(message, Encoding.JSON) for message in messages]
    size = len(join(frames, Encoding.JSON))

    assert FRAME_BYTES - 2_048 < size <= FRAME_BYTES
    ids = [message.match for message in messages if isinstance(message, Match | Over)]
    assert len({*ids}) == len(ids) // 2 + 1


BID = Bid("As", "2s", (None,) * 4, ("quit", 8, 10))


def test_an_answer_that_is_refused_is_the_last_or_the_first_one_of_the_list() -> None:
    assert reordered(BID, 8, first=False) == ("quit", 10, 8)
    assert reordered(BID, 8, first=True) == (8, "quit", 10)


@pytest.mark.parametrize(
    ("question", "given"),
    [
        (Ante(1, 10, Range(1, 5)), 3),
        (Open(1, "K"), "raise"),
        (Melds(HAND[:10]), None),
        (Melds(HAND[:10]), [["As", "2s", "3s"]]),
    ],
)
def test_else_the_list_stays_as_it_is(question: Any, given: object) -> None:
    assert reordered(question, given, first=True) == question.choices
