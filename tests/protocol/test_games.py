"""The table of vocabularies, and the conventions that each of them keeps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, cast

import msgspec
import pytest

from protocol import entry_points, games
from protocol.ace_king_queen import VOCABULARY, HandOver, Open, Respond
from protocol.entry_points import LeftOut, Package
from protocol.errors import BadGame, UnknownGame
from protocol.games import MOST_SEATS, VOCABULARIES, conventions, vocabulary_named
from protocol.high_low import Dealt
from protocol.vocabulary import News, Question, Range, Settings, Shape, Vocabulary
from protocol.words import Asked, Told

replace = msgspec.structs.replace
asked, told = VOCABULARY.words[Open], VOCABULARY.words[HandOver]


class Unasked(Question[int], frozen=True, tag="unasked"):
    """A question without `legal`."""


class Again(Question[int], frozen=True, tag="open"):
    """A question with the tag of another."""

    legal: Range = Range(0, 1)


class Counted(Question[int], frozen=True, tag="counted"):
    """A question that opens no round."""

    legal: Range = Range(0, 1)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_vocabulary_keeps_the_conventions(name: str) -> None:
    conventions(VOCABULARIES[name])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": "Leduc"}, "name: expected lower case letters, digits and _, got 'Leduc'"),
        ({"name": "a" * 41}, "name: expected lower case letters"),
        ({"alias": "a k q"}, "alias: expected lower case letters, digits and _, got 'a k q'"),
        ({"title": ""}, "title: expected a name for people, got none"),
        ({"title": ("Ace",)}, "title: expected a text, got ("),
        ({"title": "Ace\x1b[2J"}, "title: expected a text in one line, got"),
        ({"round": "a\nhand"}, "round: expected a text in one line, got"),
        ({"shapes": (Shape("a\nraise", "open"),)}, "shapes: expected a text in one line, got"),
        ({"seats": 0}, f"seats: expected 1 to {MOST_SEATS}, got 0"),
        ({"seats": MOST_SEATS + 1}, f"seats: expected 1 to {MOST_SEATS}, got {MOST_SEATS + 1}"),
        ({"words": {5: asked}}, "words: expected kinds of Question and News, got 5"),
        ({"words": {Open: asked, Again: asked}}, "words: expected another tag than 'open' for"),
        ({"words": {HandOver: told}}, "questions: expected at least one, got none"),
        ({"words": {Unasked: asked}}, "legal: expected a field of that name in Unasked"),
        ({"closes": None}, "closes: expected a class, got null"),
        ({"closes": Dealt}, "closes: expected news of ace_king_queen that ends a round, got"),
        ({"opens": ()}, "opens: expected a question or news that opens a round, got none"),
        ({"opens": (Dealt,)}, "opens: expected questions or news of ace_king_queen, got"),
        (
            {"words": {**VOCABULARY.words, Counted: asked}, "opens": (Counted,)},
            "opens: expected a field `round` in Counted, which opens a round",
        ),
        ({"follows": (Dealt,)}, "follows: expected news of ace_king_queen, got"),
        ({"private": (Dealt,)}, "private: expected news of ace_king_queen, got"),
        ({"private": (HandOver,)}, "private: expected news for one seat, got those that end"),
        ({"payoffs": (1, -1)}, "payoffs: expected a function, got (1, -1)"),
        ({"words": {**VOCABULARY.words, Open: told}}, "words: expected Asked for Open, got Told"),
        (
            {"words": {Open: asked, Respond: asked, HandOver: asked}},
            "words: expected Told for HandOver, got Asked",
        ),
        (
            {"words": {**VOCABULARY.words, Open: Asked("{who} has {suit}")}},
            "words of Open: expected its fields, got 'suit'",
        ),
        (
            {"words": {**VOCABULARY.words, Open: Asked("{who}", "{reply}s")}},
            "words of Open: expected its fields, got 'reply'",
        ),
        (
            {"words": {**VOCABULARY.words, Open: Asked("{who")}},
            "words of Open: expected '}' before end of string in '{who'",
        ),
        (
            {"words": {**VOCABULARY.words, HandOver: Told("{who}", opening="{upcard}")}},
            "words of HandOver: expected its fields, got 'upcard'",
        ),
        (
            {"words": {**VOCABULARY.words, HandOver: Told("{who}", opening=cast("Any", max))}},
            "words of HandOver: expected a text as opening, got <built-in function max>",
        ),
        (
            {"words": {**VOCABULARY.words, Open: Asked(cast("Any", 5))}},
            "words of Open: expected a text or a function, got 5",
        ),
        (
            {"shapes": (Shape("a raise", "raise"),)},
            "shapes: expected a kind of question, got 'raise' for a raise",
        ),
    ],
)
def test_the_convention_that_is_broken_is_named_in_one_line(
    changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(BadGame) as caught:
        conventions(replace(VOCABULARY, **changes))

    text = str(caught.value)
    assert text.startswith(f"a game's convention is broken: {why}")
    assert len(text.splitlines()) == 1


def test_seats_are_named_by_the_fields_of_news() -> None:
    words = {**VOCABULARY.words, HandOver: Told("{bettor_name} wins", opening="{bettor_name}")}

    conventions(replace(VOCABULARY, words=words))


# ---- Games of other packages


class ApeSettings(Settings, frozen=True):
    """None."""


class Peel(Question[int], frozen=True, tag="peel"):
    """A question of a game that is not ours."""

    round: int
    legal: Range = Range(0, 1)


class Peeled(News, frozen=True, tag="peeled"):
    """Its end of a round."""

    gains: tuple[int, ...]


APE = Vocabulary(
    name="ape",
    title="Ape",
    alias="apes",
    seats=2,
    settings=ApeSettings,
    opens=(Peel,),
    closes=Peeled,
    payoffs=lambda news: news.gains,
    words={Peel: Asked("{who}"), Peeled: Told("{gains}")},
)

Load = Callable[..., list[LeftOut]]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load vocabularies as of other packages, each by the name of its package and entry point."""
    left_out: list[LeftOut] = []
    for module in entry_points, games:
        monkeypatch.setattr(module, "LEFT_OUT", left_out)
    for table in "VOCABULARIES", "PACKAGES", "_NAMES":
        monkeypatch.setattr(games, table, dict(getattr(games, table)))

    def load(*modules: tuple[str, str, object]) -> list[LeftOut]:
        given = []
        for package, name, vocabulary in modules:
            module: Any = ModuleType(package)
            if vocabulary is not None:
                module.VOCABULARY = vocabulary
            monkeypatch.setitem(sys.modules, package, module)
            given.append(EntryPoint(name, package, games.ENTRY_POINTS))
        monkeypatch.setattr(entry_points, "points", lambda *_: given)
        games._load()
        return left_out

    return load


def test_a_game_from_outside_is_found_by_name_and_alias(load: Load) -> None:
    assert load(("zoo", "ape", APE)) == []
    assert vocabulary_named("ape") is vocabulary_named("apes") is APE
    assert list(games.VOCABULARIES)[-1] == "ape"
    assert {**games.PACKAGES, "ape": Package("zoo", "?")} == games.PACKAGES


@pytest.mark.parametrize(
    ("vocabulary", "why"),
    [
        (None, "a game's convention is broken: expected a `VOCABULARY` in zoo, got NoneType"),
        (5, "a game's convention is broken: expected a `VOCABULARY` in zoo, got int"),
        (replace(APE, title=""), "a game's convention is broken: title: expected a name"),
        (
            replace(APE, name="gorilla"),
            "a game's convention is broken: name: expected that of its entry point, 'ape', "
            "got 'gorilla'",
        ),
        (replace(APE, alias="akq"), "the name 'akq' is taken by ace_king_queen"),
        (replace(APE, alias="high_low"), "the name 'high_low' is taken by high_low"),
    ],
)
def test_one_that_may_not_be_there_is_left_out(load: Load, vocabulary: object, why: str) -> None:
    [left] = load(("zoo", "ape", vocabulary))

    assert left.why.startswith(why)
    with pytest.raises(UnknownGame, match=r"unknown game 'ape'; .* of zoo \? is left out"):
        vocabulary_named("ape")


def test_a_name_of_ours_is_not_given_away(load: Load) -> None:
    [left] = load(("zoo", "high_low", replace(APE, name="high_low")))

    assert left.why == "the name 'high_low' is taken by high_low"
    assert vocabulary_named("high_low") is VOCABULARIES["high_low"]


def test_of_two_packages_with_one_name_the_first_wins(load: Load) -> None:
    [left] = load(("ark", "ape", APE), ("zoo", "ape", replace(APE, title="Second")))

    assert str(left) == "ape of zoo ? is left out (protocol.games): the name 'ape' is taken by ape"
    assert vocabulary_named("ape") is APE
