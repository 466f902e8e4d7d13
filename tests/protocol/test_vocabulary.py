"""The parts of questions, answers, news and settings; and the table of design §3, word by word."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from protocol.errors import BadSettings, IllegalAnswer, UnknownGame
from protocol.games import VOCABULARIES, vocabulary_named
from protocol.vocabulary import News, Question, Range, Settings, Vocabulary, shorten
from protocol.words import Told

TABLE = """
ace_king_queen   akq       2 open: round card; respond: round card
gin_rummy        gin       2 offer: upcard hand; draw: discard hand; turn: drawn hand; melds: hand
high_low         high_low  4 swap: card dealer_card; bid: card dealer_card bids
three_card_poker tcp       1 ante: round cash; play: hand ante cash
blackjack        blackjack 1 bet: round bankroll; draw: upcard hand total soft
"""
NEWS = """
ace_king_queen   hand_over: round bettor cards open response payoffs scores
gin_rummy        dealt: game round starter hand upcard; offered: seat took; turn: seat drew card discarded; \
round_over: knocker gin hands melds layoffs points scores reason; game_over: winner scores games
high_low         dealt: shuffle round starter card dealer_card; swapped: seat swapped dealer_card; bid: seat bid; \
round_over: cards last_bid payoffs scores
three_card_poker round_over: hand dealer ante outcome cash
blackjack        shuffled:; exposed: card to; hand_over: bet player dealer outcome payoff bankroll
"""


class Choose(Question[Any], frozen=True, tag="choose"):
    """A question with whatever legal answers a test wants."""

    legal: tuple[Any, ...] | Range


def kinds(text: str) -> dict[str, tuple[str, ...]]:
    """`open: round card; …` as fields by kind."""
    pairs = (part.split(":") for part in text.split(";"))
    return {kind.strip(): tuple(fields.split()) for kind, fields in pairs}


class Word(StrEnum):
    BET = "bet"


class Lookalike(str):
    """Equal to a legal answer, but not of its type."""


class NotQuiteAnInt(int):
    """An int that is none."""


class Everything:
    """Says that it equals whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Broken:
    """Cannot be compared, shown or hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class BrokenText(str):
    """A text that cannot be shown or cut."""

    def __repr__(self) -> str:
        return BrokenText("x" * 1000)

    def __getitem__(self, key: Any) -> str:
        raise RuntimeError("getitem")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __format__(self, spec: str) -> str:
        raise RuntimeError("format")


def type_name(value: object) -> str:
    """Names a test: some values cannot be shown."""
    return type(value).__name__


# ---- Design §3


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_questions_are_those_of_the_table(line: str) -> None:
    name, alias, seats, asked = line.split(maxsplit=3)
    words = VOCABULARIES[name]

    assert (words.name, words.alias, words.seats) == (name, alias, int(seats))
    fields = {kind: cls.__struct_fields__ for kind, cls in words.questions.items()}
    assert fields == {kind: (*given, "legal") for kind, given in kinds(asked).items()}


@pytest.mark.parametrize("line", NEWS.strip().splitlines())
def test_news_are_those_of_the_table(line: str) -> None:
    name, told = line.split(maxsplit=1)

    fields = {kind: cls.__struct_fields__ for kind, cls in VOCABULARIES[name].news.items()}
    assert fields == kinds(told)


@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=list(VOCABULARIES))
def test_every_struct_is_tagged_with_its_kind(words: Vocabulary) -> None:
    for table in (words.questions, words.news):
        for kind, cls in table.items():
            assert cls.__struct_config__.tag_field == "kind"
            assert cls.__struct_config__.tag == kind
            assert cls.__struct_config__.frozen


@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=list(VOCABULARIES))
def test_a_game_is_found_by_its_name_and_its_alias(words: Vocabulary) -> None:
    assert vocabulary_named(words.name) is words
    assert vocabulary_named(words.alias) is words


@pytest.mark.parametrize("name", ["", "poker", "AKQ", None, 4, ["akq"]])
def test_an_unknown_game_is_refused_with_those_there_are(name: object) -> None:
    with pytest.raises(UnknownGame, match="expected one of: ace_king_queen, blackjack"):
        vocabulary_named(name)


def test_people_call_the_games_by_their_titles() -> None:
    assert [words.title for words in VOCABULARIES.values()] == [
        "Ace-King-Queen",
        "Blackjack",
        "Gin rummy",
        "High-low",
        "Three card poker",
    ]


# ---- J1: answers


@pytest.mark.parametrize(
    "value",
    [
        1,
        11,
        -2,
        1 << 70,
        -(1 << 70),
        True,
        False,
        4.0,
        "4",
        None,
        float("nan"),
        NotQuiteAnInt(4),
        Everything(),
        Broken(),
        [4],
        {"min": 4},
        Range(2, 10),
        Range,
    ],
    ids=type_name,
)
def test_J1_anything_else_is_not_in_the_range(value: object) -> None:
    with pytest.raises(IllegalAnswer, match="legal: 2 to 10"):
        Choose(Range(2, 10)).check(value)


@pytest.mark.parametrize(
    "value",
    [
        "BET",
        "bet ",
        "",
        b"bet",
        Lookalike("bet"),
        BrokenText("bet"),
        True,
        1,
        0,
        4.0,
        "4",
        None,
        float("nan"),
        1 << 70,
        ("bet",),
        ["bet"],
        {"bet"},
        {"value": "bet"},
        Everything(),
        Broken(),
        object,
        len,
    ],
    ids=type_name,
)
def test_J1_anything_else_is_not_in_the_list(value: object) -> None:
    with pytest.raises(IllegalAnswer, match=r"legal: bet, check, 4$"):
        Choose(("bet", "check", 4)).check(value)


def test_J1_one_is_not_true() -> None:
    with pytest.raises(IllegalAnswer):
        Choose((1, 2)).check(True)
    with pytest.raises(IllegalAnswer):
        Choose((True,)).check(1)


def test_J1_what_is_handed_on_is_the_referees_own_copy() -> None:
    mine = {"discard": "9h"}
    question = Choose((mine,))

    assert question.check({"discard": "9h"}) is mine


def test_a_refusal_says_what_came_and_what_was_legal() -> None:
    with pytest.raises(IllegalAnswer) as refused:
        Choose(("bet", "check")).check("raise")

    assert str(refused.value) == 'answered "raise" to choose; legal: bet, check'


@pytest.mark.parametrize(
    ("legal", "value", "advice"),
    [
        (Range(1, 500), 501, "a whole number from `min` to `max` of `legal`, both included"),
        (Range(1, 500), 0, "a whole number from `min` to `max` of `legal`, both included"),
        (Range(1, 500), "all", "a whole number from `min` to `max` of `legal`, both included"),
        (Range(1, 500), 4.5, "a whole number from `min` to `max` of `legal`, both included"),
        (Range(1, 500), 1.0, "a whole number, without a fraction: 1, not 1.0"),
        (Range(1, 500), 501.0, "a whole number from `min` to `max` of `legal`, both included"),
        ((2, 4), 4.0, "a whole number, without a fraction: 4, not 4.0"),
        ((2, 4), "4", "an element of `legal`, type and all: 4 is not '4' and true is not 1"),
        (
            Range(1, 500),
            True,
            "an element of `legal`, type and all: 4 is not '4' and true is not 1",
        ),
        (
            (2, 4),
            None,
            "an element of `legal`, not null (None in Python): "
            "does every way through `choose` end with `return`?",
        ),
        ((2, 4), 3, "an element of `legal` as it stands in this very question"),
        (("bet", "check"), "raise", "an element of `legal` as it stands in this very question"),
        (
            ("bet", "check"),
            float("inf"),
            "an element of `legal` as it stands in this very question",
        ),
        (("bet", "check"), "[" * 5_000, "an element of `legal` as it stands in this very question"),
    ],
)
def test_advice_speaks_of_types_only_where_the_type_is_what_was_wrong(
    legal: tuple[Any, ...] | Range, value: object, advice: str
) -> None:
    assert Choose(legal).advice(value) == f"answer with {advice}"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *(("true", True), ("True", True), ("1", True), (1, True)),
        *(("false", False), ("False", False), ("0", False), (0, False)),
        *(("null", None), ("None", None)),
    ],
)
def test_texts_and_numbers_for_truth_and_null_are_another_type(said: object, meant: object) -> None:
    question = Choose(({"knock": meant},))

    assert question.mistypes({"knock": said})
    assert not question.mistypes({"knock": "nothing"})


def test_advice_is_found_however_deeply_an_answer_is_nested() -> None:
    nested: object = []
    for _ in range(100_000):
        nested = [nested]
    says = "an element of `legal` as it stands"

    assert says in Choose(({"knock": True},)).advice({"knock": nested})
    assert says in Choose(("bet", "check")).advice(nested)
    assert says in Choose(("bet", "check")).advice("[" * 900 + "]" * 900)


def test_a_refusal_lists_at_most_twenty_answers() -> None:
    legal = tuple(range(100))

    assert Choose(legal[:20]).legal_text().endswith("18, 19")
    assert Choose(legal).legal_text().endswith("18, 19, …")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("raise", '"raise"'),
        ("a\x1b[2J\u202e\n", '"a\\u001b[2J\N{REPLACEMENT CHARACTER}\\n"'),
        (None, "null"),
        ({"discard": "4s", "knock": True}, '{"discard": "4s", "knock": true}'),
        ([["3h", 1], 4.0], '[["3h", 1], 4.0]'),
        (("3h",), "('3h',)"),
        (Word.BET, "<Word.BET: 'bet'>"),
        ([Word.BET], "[<Word.BET: 'bet'>]"),
        (float("nan"), "NaN"),
        (Broken(), "<Broken>"),
        (10**5000, "<int>"),
        (BrokenText("bet"), "x" * 119 + "…"),
        ("x" * 10**6, '"' + "x" * 118 + "…"),
        (
            list(range(10**4)),
            "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, "
            "19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, …",
        ),
    ],
    ids=type_name,
)
def test_what_a_stranger_sent_is_shown_on_one_short_line(value: object, shown: str) -> None:
    assert shorten(value) == shown


def test_what_a_stranger_sent_is_shown_by_its_type_if_showing_it_leaves_python() -> None:
    class LeavesPythonMeta(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise SystemExit

    class LeavesPython(metaclass=LeavesPythonMeta):
        def __repr__(self) -> str:
            raise SystemExit

    assert shorten(LeavesPython()) == "<LeavesPython>"


def test_ctrl_c_while_something_is_shown_is_for_us() -> None:
    class InterruptedWhenShown:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shorten(InterruptedWhenShown())


def test_what_a_stranger_calls_itself_is_printable_and_encodes() -> None:
    class EvilName:
        def __repr__(self) -> str:
            return "a\x1b\n\ud800b"

    assert shorten(EvilName()) == "a���b"


def test_what_is_nested_too_deeply_is_shown_by_its_type() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]

    assert shorten(nested) == "<list>"


def test_kind_is_the_word_on_the_wire() -> None:
    class CardsCut(News, frozen=True):
        """News that take their kind from their name."""

    assert Choose(()).kind == "choose"
    assert CardsCut().kind == "cardscut"


# ---- Settings


class Some(Settings, frozen=True):
    """Settings for these tests."""

    hands: int = 1000


class Ended(News, frozen=True, tag="ended"):
    """The only news."""

    round: int


WORDS = Vocabulary(
    name="some",
    title="Some",
    alias="some",
    seats=2,
    settings=Some,
    opens=(Ended,),
    closes=Ended,
    payoffs=lambda news: (0, 0),
    words={Ended: Told("it has ended")},
)


def test_settings_are_read_by_name_and_those_that_were_read_stay() -> None:
    read = WORDS.read_settings({"hands": 4})

    assert WORDS.read_settings(None) == WORDS.read_settings({}) == Some()
    assert read == Some(hands=4)
    assert WORDS.read_settings(read) is read
    with pytest.raises(BadSettings, match="`cards`"):
        WORDS.read_settings({"cards": 1})


@pytest.mark.parametrize(
    "values",
    [
        {"hands": True},
        {"hands": 4.0},
        {"hands": "4"},
        {"hands": None},
        {"Hands": 4},
        {1: 2},
        "hands",
        5,
        [1],
    ],
)
def test_bad_settings_are_refused(values: Any) -> None:
    with pytest.raises(BadSettings, match=r"^settings of some: [a-z'0-9]"):
        WORDS.read_settings(values)
