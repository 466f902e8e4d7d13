from __future__ import annotations

from typing import Any

import pytest

from arena.authoring.field_docs import Kind, answers, fields, go_type, is_range, kind_docs
from protocol.ace_king_queen import HandOver, Open
from protocol.blackjack import Bet, Draw
from protocol.games import VOCABULARIES
from protocol.gin_rummy import RoundOver, Turn, TurnTaken
from protocol.high_low import Bid
from protocol.three_card_poker import Ante
from protocol.vocabulary import Question


class Pass(Question[Any], frozen=True, tag="pass"):
    odds: float
    seen: dict[str, int] | list[int]
    legal: tuple[int, ...]


def types_of(kind: Kind) -> dict[str, str]:
    return {field.name: go_type(field.type) for field in fields(kind)}


def notes(kind: Kind) -> str:
    return "\n".join(kind_docs("x", kind).notes)


@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=lambda words: str(words.name))
def test_every_field_is_explained(words: Any) -> None:
    for kind in (*words.questions.values(), *words.news.values()):
        told = fields(kind)

        assert {field.name for field in told} == {*kind.__struct_fields__} - {"legal"}
        for field in told:
            assert field.what, kind
            assert go_type(field.type)
            assert f"  {field.name}" in notes(kind)


def test_a_closed_set_is_listed() -> None:
    told = {field.name: field.what for field in fields(HandOver)}

    assert told["open"].endswith(': "bet" or "check"')
    assert told["cards"].endswith(': "A", "K" or "Q"')


@pytest.mark.parametrize(
    ("kind", "is_of_a_range", "says"),
    [
        (Open, False, '"bet" or "check"'),
        (Bid, False, '2, 4, 6, 8, 10 and "quit"'),
        (Ante, True, "a whole number from `legal.min`"),
        (Turn, False, "melds of its own"),
        (Bet, True, "a whole number from `legal.min`"),
        (Draw, False, ""),
        (Pass, False, "one of `legal`"),
    ],
)
def test_what_can_be_answered(kind: Any, is_of_a_range: bool, says: str) -> None:
    assert is_range(kind) is is_of_a_range
    assert says in answers(kind)


GIN_ROUND = {"hands": "[][]string", "melds": "[][][]string", "layoffs": "[][]any"}


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        (RoundOver, {"knocker": "*int", "gin": "bool", "points": "[]int", **GIN_ROUND}),
        (Bid, {"bids": "[]any"}),
        (TurnTaken, {"card": "string"}),
        (Pass, {"odds": "any", "seen": "any"}),  # of a game from outside
    ],
)
def test_the_types_in_go(kind: Kind, types: dict[str, str]) -> None:
    assert types.items() <= types_of(kind).items()


def test_the_columns_are_those_of_gofmt() -> None:
    assert kind_docs("x", Bid).columns == (
        'Card       string `json:"card"`',
        'DealerCard string `json:"dealer_card"`',
        'Bids       []any  `json:"bids"`',
    )


def test_a_comment_is_wrapped_with_its_fields_in_a_column() -> None:
    lines = notes(RoundOver).splitlines()
    hands = "  hands    by seat, the ten cards each held, in the order of `hand`"

    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith("  hands")] == [hands]
    # A game from outside may say nothing.
    assert notes(Pass) == "Pass\n\n  odds\n  seen\n\nAnswer: one of `legal`."


@pytest.mark.parametrize(("kind", "name"), [("pass", "pass"), ("switch", "switch_"), ("go", "go_")])
def test_a_kind_may_have_the_name_of_a_reserved_word(kind: str, name: str) -> None:
    assert kind_docs(kind, Pass).camel == name
