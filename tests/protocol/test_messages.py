"""The messages of a session, and what their types keep out."""

from __future__ import annotations

import msgspec
import pytest

from protocol.errors import UsageError
from protocol.messages import (
    Answer,
    ArenaMessage,
    BotMessage,
    Ending,
    Hello,
    Limits,
    Termination,
    Verdict,
)

OFFENCES = (
    "illegal malformed timeout oversize overflow memory processes cpu crash absent disconnect"
).split()


def test_J2_endings_are_the_words_of_the_rulebook() -> None:
    words = {"completed", "void", "removed", *OFFENCES}  # `removed` is the instructor's

    assert {ending.value for ending in Ending} == words


@pytest.mark.parametrize("word", OFFENCES)
def test_J2_an_offence_has_somebody_to_blame(word: str) -> None:
    assert Termination(Ending(word), 0).is_offence


@pytest.mark.parametrize("ending", [Ending.COMPLETED, Ending.VOID])
def test_J2_completed_and_void_are_no_offences(ending: Ending) -> None:
    assert not Termination(ending).is_offence


@pytest.mark.parametrize(
    ("kind", "headline"),
    [
        (Ending.CRASH, "crashed: exit status 1"),  # which is a headline as it stands
        (Ending.TIMEOUT, "eliminated: crashed: exit status 1"),
    ],
)
def test_J4_a_verdict_has_a_headline(kind: Ending, headline: str) -> None:
    verdict = Verdict(
        kind=kind,
        match="m",
        game="blackjack",
        bot="ann",
        seat=0,
        text="crashed: exit status 1",
        bank_ms=0,
        limits=Limits(),
    )

    assert verdict.headline == headline

    forgiven = msgspec.structs.replace(verdict, forgiven=True)

    assert forgiven.headline == ("lost this match and plays on: crashed: exit status 1")


@pytest.mark.parametrize("name", ["nash", "Ängström 2", "牌手", "a b", "x" * 64])
def test_a_name_is_any_printable_text(name: str) -> None:
    assert Hello(1, name, ("akq",)).name == name


@pytest.mark.parametrize(
    "name", [" ", " a", "a ", "a\n", "a\tb", "\x1b[2J", "a\x9b", "a\u202eb", "a\u200bb", "a\u2028"]
)
def test_a_name_with_hidden_letters_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="printable"):
        Hello(1, name, ("akq",))


def test_limits_may_be_set_one_by_one() -> None:
    limits = msgspec.convert({"decision_ms": 50}, Limits)

    assert limits == Limits(decision_ms=50)
    assert limits.bank_ms == Limits().bank_ms


@pytest.mark.parametrize(
    "values", [{"decision_ms": 0}, {"bank_ms": -1}, {"tables": 5000}, {"hard_ms": 1.0}]
)
def test_limits_out_of_their_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(values, Limits)


@pytest.mark.parametrize(
    "value",
    [
        "bet",
        4,
        4.0,
        True,
        None,
        {"discard": "9h", "knock": True, "melds": [["9h", "9c", "9s"]]},
        [["9h", "9c", "9s"], ["Ah", "2h", "3h"]],
        [[["one level deeper than any legal answer"]]],
    ],
)
def test_an_answers_value_may_be_what_json_has(value: object) -> None:
    raw = {"type": "answer", "match": "m", "ask": "m:1", "value": value}

    answer = msgspec.convert(raw, Answer)

    assert answer.value == value
    assert type(answer.value) is type(value)


@pytest.mark.parametrize(
    "value", [{1: 2}, {(1, 2): 3}, b"bet", [[[[["too deep"]]]]], {"a": {None: 1}}]
)
def test_an_answers_value_may_not_be_what_json_has_not(value: object) -> None:
    raw = {"type": "answer", "match": "m", "ask": "m:1", "value": value}

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, Answer)


@pytest.mark.parametrize("union", [BotMessage, ArenaMessage])
def test_messages_are_frozen(union: type) -> None:
    for cls in union.__args__:  # type: ignore[attr-defined]
        assert cls.__struct_config__.frozen
