"""What Ace-King-Queen says on the wire, as another language sees it."""

from __future__ import annotations

import json

import msgpack  # type: ignore[import-untyped]
import msgspec
import pytest

from protocol.ace_king_queen import CARDS, OPENINGS, RESPONSES, VOCABULARY, HandOver, Open, Respond
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.errors import IllegalAnswer, Malformed
from protocol.messages import Ask
from protocol.vocabulary import Question

OVER = HandOver(1, 0, ("A", "K"), "bet", "fold", (1, -1), (1, -1))


def on_the_wire(thing: object) -> object:
    return json.loads(msgspec.json.encode(thing))


def test_A1_the_cards_are_listed_highest_first() -> None:
    assert CARDS == ("A", "K", "Q")


def test_A3_the_betting_players_question_as_it_travels() -> None:
    ask = Ask("m.0", "m.0:1", Open(1, "A"), (), 10_000, 1_000)
    expected = {
        "type": "ask",
        "match": "m.0",
        "ask": "m.0:1",
        "news": [],
        "bank_ms": 10_000,
        "decision_ms": 1_000,
        "kind": "open",
        "round": 1,
        "card": "A",
        "legal": ["bet", "check"],
    }

    assert json.loads(encode(ask, Encoding.JSON)) == expected
    assert msgpack.unpackb(encode(ask, Encoding.MSGPACK)) == expected


def test_A4_the_calling_players_question_as_it_travels() -> None:
    assert on_the_wire(Respond(2, "Q")) == {
        "kind": "respond",
        "round": 2,
        "card": "Q",
        "legal": ["call", "fold"],
    }


def test_A6_the_news_of_a_fold_as_they_travel() -> None:
    assert on_the_wire(OVER) == {
        "kind": "hand_over",
        "round": 1,
        "bettor": 0,
        "cards": ["A", "K"],
        "open": "bet",
        "response": "fold",
        "payoffs": [1, -1],
        "scores": [1, -1],
    }


def test_A6_after_a_check_the_response_is_null() -> None:
    checked = msgspec.structs.replace(OVER, open="check", response=None)

    assert json.loads(msgspec.json.encode(checked))["response"] is None


@pytest.mark.parametrize(
    ("question", "legal"), [(Open(1, "A"), OPENINGS), (Respond(1, "A"), RESPONSES)]
)
def test_J1_exactly_the_listed_answers_are_legal(
    question: Question[str], legal: tuple[str, ...]
) -> None:
    assert question.choices == legal
    for value in legal:
        assert question.check(value) == value
    for value in {"bet", "check", "call", "fold", "", "BET"} - set(legal):
        with pytest.raises(IllegalAnswer, match=f"to {question.kind}; legal: "):
            question.check(value)


@pytest.mark.parametrize("card", ["2s", "a", "", None, 1])
def test_a_bot_is_never_shown_a_card_that_does_not_exist(card: object) -> None:
    raw = {"type": "ask", "match": "m", "ask": "m:1", "news": [], "bank_ms": 1, "decision_ms": 1}
    raw |= {"kind": "open", "round": 1, "card": card, "legal": ["bet"]}

    with pytest.raises(Malformed):
        decode_from_arena(json.dumps(raw).encode(), Encoding.JSON, lambda match: VOCABULARY.name)
