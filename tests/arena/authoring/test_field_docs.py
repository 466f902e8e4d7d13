from __future__ import annotations

from typing import Any

import pytest

from arena.authoring.field_docs import Kind, answers, fields, go_type, is_range, kind_docs
from protocol import ace_king_queen, blackjack, gin_rummy, high_low, three_card_poker
from protocol.games import VOCABULARIES
from protocol.vocabulary import Question

ALL = [
    kind
    for words in VOCABULARIES.values()
    for kind in (*words.questions.values(), *words.news.values())
]


def types_of(kind: Kind) -> dict[str, str]:
    return {field.name: go_type(field.type) for field in fields(kind)}


def notes(kind: Kind) -> str:
    return "\n".join(kind_docs("x", kind).notes)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_field_is_explained(kind: Kind) -> None:
    told = fields(kind)

    assert {field.name for field in told} == {*kind.__struct_fields__} - {"legal"}
    for field in told:
        assert field.what
        assert go_type(field.type)
        assert f"  {field.name}" in notes(kind)


def test_a_closed_set_is_listed() -> None:
    told = {field.name: field.what for field in fields(ace_king_queen.HandOver)}

    assert told["open"].endswith(': "bet" or "check"')
    assert told["cards"].endswith(': "A", "K" or "Q"')


def test_what_can_be_answered() -> None:
    assert answers(ace_king_queen.Open) == '"bet" or "check"'
    assert answers(high_low.Bid).endswith('2, 4, 6, 8, 10 and "quit"')
    assert answers(three_card_poker.Ante).startswith("a whole number from `legal.min`")
    assert "melds of its own" in answers(gin_rummy.Turn)


def test_a_range_is_told_from_a_list() -> None:
    assert is_range(blackjack.Bet)
    assert not is_range(blackjack.Draw)
    assert not is_range(gin_rummy.Turn)


def test_the_types_in_go() -> None:
    assert types_of(gin_rummy.RoundOver) == {
        "knocker": "*int",
        "gin": "bool",
        "hands": "[][]string",
        "melds": "[][][]string",
        "layoffs": "[][]any",
        "points": "[]int",
        "scores": "[]int",
        "reason": "string",
    }
    assert types_of(high_low.Bid)["bids"] == "[]any"
    assert types_of(gin_rummy.TurnTaken)["card"] == "string"


def test_the_columns_are_those_of_gofmt() -> None:
    assert kind_docs("x", high_low.Bid).columns == (
        'Card       string `json:"card"`',
        'DealerCard string `json:"dealer_card"`',
        'Bids       []any  `json:"bids"`',
    )


def test_a_comment_is_wrapped_with_its_fields_in_a_column() -> None:
    lines = notes(gin_rummy.RoundOver).splitlines()

    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith("  hands")] == [
        "  hands    by seat, the ten cards each held, in the order of `hand`"
    ]


class Pass(Question[Any], frozen=True, tag="pass"):
    odds: float
    seen: dict[str, int] | list[int]
    legal: tuple[int, ...]


def test_a_class_of_a_game_from_outside_may_say_nothing_and_have_any_types() -> None:
    docs = kind_docs("pass", Pass)

    assert docs.notes == ("Pass", "", "  odds", "  seen", "", "Answer: one of `legal`.")
    assert types_of(Pass) == {"odds": "any", "seen": "any"}


@pytest.mark.parametrize(("kind", "name"), [("pass", "pass"), ("switch", "switch_"), ("go", "go_")])
def test_a_kind_may_have_the_name_of_a_reserved_word(kind: str, name: str) -> None:
    assert kind_docs(kind, Pass).camel == name
