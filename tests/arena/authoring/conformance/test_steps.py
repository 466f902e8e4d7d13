"""What the steps of `arena check` do to messages and frames, and what they are called."""

from __future__ import annotations

import asyncio
import json
import random
import re
from itertools import accumulate
from typing import Any

import msgspec
import pytest

from arena.authoring.conformance import Hint, Step
from arena.authoring.conformance.matches import CheckMatch
from arena.authoring.conformance.steps import many, reordered, reversed_keys, with_more_fields
from arena.authoring.conformance.wire import Delivery, fragments, pieces
from arena.games.catalogue import game_named
from arena.games.rules import Variation
from arena.referee.bot_session import _FRAME_BYTES as FRAME_BYTES
from protocol.ace_king_queen import Open
from protocol.codec import Encoding, decode_from_arena, encode, join
from protocol.gin_rummy import Dealt, GinRummySettings, Melds, Turn, TurnAnswer
from protocol.high_low import Bid
from protocol.messages import Ask, Limits, Match, Over, Welcome
from protocol.three_card_poker import Ante
from protocol.vocabulary import Range
from tests.support.documents import DOCUMENTS
from tests.support.in_memory_bot import opened_socket

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
    game, any_settings = game_named("blackjack"), Variation(lambda seat: {})
    match = CheckMatch(1, game, any_settings, 0, "ann", Limits(), random.Random(1))
    messages = [*many(match), match.invitation]
    size = len(join([encode(message, Encoding.JSON) for message in messages], Encoding.JSON))

    assert FRAME_BYTES - 2_048 < size <= FRAME_BYTES
    ids = [message.match for message in messages if isinstance(message, Match | Over)]
    assert len({*ids}) == len(ids) // 2 + 1


BID = Bid("As", "2s", (None,) * 4, ("quit", 8, 10))


@pytest.mark.parametrize(
    ("question", "given", "first", "legal"),
    [
        (BID, 8, False, ("quit", 10, 8)),
        (BID, 8, True, (8, "quit", 10)),
        # Else the list stays as it is.
        (Ante(1, 10, Range(1, 5)), 3, True, Range(1, 5)),
        (Open(1, "K"), "raise", True, ("bet", "check")),
        (Melds(HAND[:10]), None, True, (None,)),
        (Melds(HAND[:10]), [["As", "2s", "3s"]], True, (None,)),
    ],
)
def test_an_answer_that_is_refused_is_the_last_or_the_first_one_of_the_list(
    question: Any, given: object, first: bool, legal: object
) -> None:
    assert reordered(question, given, first=first) == legal


@pytest.mark.parametrize("frame", [b"{}", b'{"type":"over"}', b"x" * 5000, "Čapek — ♠".encode()])
def test_pieces_and_fragments_add_up(frame: bytes) -> None:
    parts = [*pieces(frame)]

    assert b"".join(parts) == b"".join(fragments(frame)) == frame
    assert [len(part) for part in parts[:2]] == [1, 1]
    assert len(parts) <= 43


@pytest.mark.parametrize("size", range(1, 60))
def test_some_piece_and_a_fragment_end_within_a_letter(size: int) -> None:
    frame = b"{" + b"x" * size + "李".encode() + b"}"
    starts = [*accumulate(len(part) for part in pieces(frame))]

    assert any(frame[at : at + 1] and frame[at] & 0xC0 == 0x80 for at in starts[:-1])
    with pytest.raises(UnicodeDecodeError):
        fragments(frame)[0].decode()


async def test_nothing_comes_between_the_pieces_of_a_frame() -> None:
    socket, transport = opened_socket()
    writing = asyncio.create_task(socket.deliver(b"{}" * 50, Encoding.JSON, Delivery.SLOWLY))
    await transport.has_two.wait()
    socket.ping(b"now")
    await writing
    *frame, ping = transport.written

    assert ping.endswith(b"now")
    assert b"".join(frame).endswith(b"{}" * 50)


def test_the_manual_describes_every_step_in_order() -> None:
    rows = re.findall(r"^\| `(.+?)` \| .+ \|$", DOCUMENTS["arena/authoring/checking.md"], re.M)

    assert rows == [*Step]


@pytest.mark.parametrize("hint", Hint)
def test_a_hint_is_made_of_sentences(hint: Hint) -> None:
    text = hint.advice

    assert text[0].isupper()
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 300


@pytest.mark.parametrize("word", [*Step, *Hint])
def test_ids_are_words_for_a_shell(word: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", word)
