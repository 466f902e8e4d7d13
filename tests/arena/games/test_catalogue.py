"""The table of games, the conventions that each keeps, and their settings in competitions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from math import nan
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec
import pytest

from arena.games import catalogue
from arena.games.catalogue import (
    GAMES,
    competition_settings,
    conventions,
    game_named,
    game_title,
    mistaken_package,
    other_rules,
    view_files,
    view_path,
)
from arena.games.rules import Choice, Game, HiddenCards, Measure, Purse, Trial, Unit, Variation
from protocol import entry_points
from protocol.entry_points import LeftOut, Package
from protocol.errors import BadGame, BadSettings, NotInstalled, UnknownGame
from protocol.games import PACKAGES, VOCABULARIES
from protocol.high_low import Dealt

replace = msgspec.structs.replace

POKER = GAMES["three_card_poker"]


def test_the_games_are_those_of_the_vocabularies() -> None:
    assert list(GAMES) == list(VOCABULARIES)
    assert [game.vocabulary for game in GAMES.values()] == list(VOCABULARIES.values())


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: str(game.name))
def test_a_game_has_a_name_and_an_alias(game: Game) -> None:
    assert game_named(game.name) is game
    assert game_named(game.vocabulary.alias) is game


@pytest.mark.parametrize("name", ["chess", "", "AKQ", None, 5, ["akq"]], ids=repr)
def test_an_unknown_game_is_refused(name: str) -> None:
    with pytest.raises(UnknownGame, match=r"unknown game .* expected one of: ace_king"):
        game_named(name)


IN_COMPETITIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("blackjack", {}, {"shuffle": "uniform"}),  # B14
    ("blackjack", {"shuffle": "riffle"}, {}),
    *(("gin_rummy", {"target": at}, {"max_rounds": 25}) for at in (10, 50)),  # G15
    ("gin_rummy", {"target": 100}, {"max_rounds": 50}),
    ("gin_rummy", {"target": 500}, {"max_rounds": 100}),
    ("gin_rummy", {"max_rounds": 100}, {}),
    ("three_card_poker", {}, {"stake": 1000, "goal": 1125, "rounds": 1000}),  # K3
    *(
        ("three_card_poker", {"stake": stake}, {"goal": goal})
        for stake, goal in ((1000, 1125), (200, 225), (30, 33), (7, 8), (2, 3))
    ),
    ("three_card_poker", {"stake": 200, "goal": 700}, {}),
    ("three_card_poker", {"goal": None}, {}),
    *((game, {}, {}) for game in ("ace_king_queen", "high_low")),
]


@pytest.mark.parametrize(("game", "chosen", "differs"), IN_COMPETITIONS)
def test_K3_a_competition_has_settings_of_its_own_unless_they_are_chosen(
    game: str, chosen: dict[str, object], differs: dict[str, object]
) -> None:
    read = GAMES[game].vocabulary.read_settings

    assert competition_settings(GAMES[game], chosen) == read({**chosen, **differs})


def test_K3_a_goal_beyond_all_goals_is_refused() -> None:
    with pytest.raises(BadSettings, match="goal"):
        competition_settings(POKER, {"stake": 10**12})


# ---- Conventions


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: str(game.name))
def test_a_game_keeps_the_conventions(game: Game) -> None:
    conventions(game)


def _no_generator(settings: Any, decks: Any, board: Any) -> Any:
    return iter(())


def _nothing(news: Any) -> tuple[float, ...]:
    return ()


BAD: dict[str, object] = {"hand": 3}  # no setting has that name
AKQ, UNKNOWN = GAMES["ace_king_queen"], "object contains unknown field `hand`"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"vocabulary": replace(AKQ.vocabulary)},
            "vocabulary: expected that of the entry point protocol.games, 'ace_king_queen'",
        ),
        ({"about": ""}, "about: expected words for people, got none"),
        ({"summary": ""}, "summary: expected words for people, got none"),
        ({"about": lambda: "x"}, "about: expected a text, got <function"),
        ({"summary": "one\ntwo"}, "summary: expected a text in one line, got"),
        ({"points": 5}, "points: expected a text or None, got 5"),
        (
            {"choices": (Choice("hands", "\x1b[2J", 1, 9),)},
            "choices, hands: expected a text in one line, got",
        ),
        (
            {"unit": Unit("a\nhand", "hands", AKQ.vocabulary.closes, _nothing)},
            "unit: expected a text in one line, got",
        ),
        ({"measure": Measure("", max)}, "measure: expected a text in one line, got"),
        ({"view": "../ape.js"}, 'view: expected a name such as view.js, got "../ape.js"'),
        ({"view": "sub/ape.js"}, 'view: expected a name such as view.js, got "sub/ape.js"'),
        ({"view": "/ape.js"}, 'view: expected a name such as view.js, got "/ape.js"'),
        ({"view": 5}, "view: expected a text or None, got 5"),
        ({"view": "ape.css"}, 'view: expected a name such as view.js, got "ape.css"'),
        ({"rules": _no_generator}, "rules: expected a generator function"),
        ({"deals": ()}, "deals: expected a function, got ()"),
        ({"stacked": None}, "stacked: expected a function, got null"),
        ({"hidden": 5}, "hidden: expected"),
        ({"hidden": HiddenCards(cast("Any", 5))}, "hidden: expected a function, got 5"),
        (
            {"hidden": HiddenCards(until=(Dealt,))},
            "hidden: expected questions or news of ace_king_",
        ),
        (
            {"unit": Unit("hand", "hands", AKQ.vocabulary.closes, cast("Any", 5))},
            "unit: expected a function",
        ),
        ({"rounds": lambda most: BAD}, f"rounds: settings of ace_king_queen: {UNKNOWN}"),
        ({"short": BAD}, f"short: settings of ace_king_queen: {UNKNOWN}"),
        ({"for_people": BAD}, f"for_people: settings of ace_king_queen: {UNKNOWN}"),
        ({"cross": Trial(BAD)}, f"cross: settings of ace_king_queen: {UNKNOWN}"),
        ({"demo": Trial(BAD)}, f"demo: settings of ace_king_queen: {UNKNOWN}"),
        ({"bench": Trial(BAD)}, f"bench: settings of ace_king_queen: {UNKNOWN}"),
        (
            {"variations": (Variation(lambda seat: {}), Variation(lambda seat: BAD))},
            f"variations, 2: settings of ace_king_queen: {UNKNOWN}",
        ),
        ({"decisions": lambda settings: 0.0}, "decisions: expected an estimate above 0"),
        (
            {"decisions": lambda settings: nan if settings.hands == 6 else 10.0},
            "decisions: expected an estimate above 0 for a match with those of short",
        ),
        ({"choices": (Choice("hand", "Hands", 1, 9),)}, "hand: expected a setting of"),
        (
            {"unit": Unit("hand", "hand", AKQ.vocabulary.closes, _nothing)},
            "hand: expected a setting of",
        ),
        ({"splits_by": "hand"}, "hand: expected a setting of ace_king_queen with an integer"),
        ({"purse": Purse("stake", "hands", 1)}, "stake: expected a setting of"),
        ({"purse": Purse("hands", "hands", 1)}, "purse: expected a game for 1, got one for 2"),
        ({"purse": Purse("hands", "hands", 1, "nosuch")}, "purse: expected a setting of ace_king"),
        ({"purse": Purse("hands", "rounds", 1)}, "rounds: expected a setting of"),
        (
            {"unit": Unit("deal", "hands", Dealt, _nothing)},
            "unit: expected news of ace_king_queen, got",
        ),
        ({"advancing": 2}, "advancing: expected 1 to 1 of 2 seats"),
        ({"advancing": 0}, "advancing: expected 1 to 1 of 2 seats"),
    ],
)
def test_the_convention_that_is_broken_is_named_in_one_line(
    changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(BadGame) as caught:
        conventions(replace(AKQ, **changes))

    text = str(caught.value)
    assert text.startswith(f"a game's convention is broken: {why}")
    assert len(text.splitlines()) == 1


def test_only_two_can_be_one_bot_twice() -> None:
    with pytest.raises(BadGame, match="meets_itself: expected a game for 2, got one for 4"):
        conventions(replace(GAMES["high_low"], meets_itself=True))


# ---- Games of other packages

Load = Callable[..., list[LeftOut]]
APE = replace(
    AKQ, vocabulary=replace(AKQ.vocabulary, name="ape", alias="ape", title="Ape"), view=None
)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load rules as of other packages, each by its module and the name of its entry point."""
    left_out: list[LeftOut] = []
    for module in entry_points, catalogue:
        monkeypatch.setattr(module, "LEFT_OUT", left_out)
    for table in "GAMES", "_MODULES":
        monkeypatch.setattr(catalogue, table, dict(getattr(catalogue, table)))
    monkeypatch.setitem(VOCABULARIES, "ape", APE.vocabulary)
    monkeypatch.setitem(PACKAGES, "ape", Package("zoo", "?"))
    monkeypatch.setattr("protocol.games._NAMES", {**VOCABULARIES})

    def load(*modules: tuple[str, str, object]) -> list[LeftOut]:
        given = []
        for path, name, game in modules:
            module: Any = ModuleType(path)
            if game is not None:
                module.GAME = game
            for part in path.split(".")[0], path:
                monkeypatch.setitem(sys.modules, part, module)
            given.append(EntryPoint(name, path, catalogue.ENTRY_POINTS))
        monkeypatch.setattr(entry_points, "points", lambda *_: given)
        catalogue._load()
        return left_out

    return load


def test_a_game_from_outside_knows_its_package(load: Load) -> None:
    game = replace(APE)

    assert load(("zoo.rules", "ape", game)) == []
    assert game_named("ape") is game
    assert game.package == Package("zoo", "?")
    assert game.judging is AKQ.judging
    assert list(catalogue.GAMES)[-1] == "ape"
    assert all(GAMES[name].package is None for name in list(GAMES)[:5])


def test_a_small_game_from_outside_is_judged_though_it_does_not_say_how(load: Load) -> None:
    game = replace(APE, judging=None)

    assert load(("zoo.rules", "ape", game)) == []
    assert game.judging is not None
    assert game.judging.refuses(game.vocabulary.read_settings(None)) is None


@pytest.mark.parametrize(
    ("path", "game", "why"),
    [
        ("zoo.rules", None, "expected a `GAME` in zoo.rules, got NoneType"),
        ("zoo.rules", replace(APE, about=""), "about: expected words for people, got none"),
        ("zoo.rules", AKQ, "name: expected that of its entry point, 'ape', got 'ace_king_queen'"),
        ("zoo", replace(APE), "expected the rules in a package, got the module zoo"),
    ],
)
def test_one_that_may_not_be_there_is_left_out(
    load: Load, path: str, game: object, why: str
) -> None:
    [left] = load((path, "ape", game))

    assert left.why == f"a game's convention is broken: {why}"
    with pytest.raises(UnknownGame, match=r"ape has words and no rules; ape of zoo \? is left out"):
        game_named("ape")
    with pytest.raises(NotInstalled, match=r"of package zoo 1\.0 is not installed, .* left out"):
        game_named("ape", "zoo 1.0")


def test_its_view_stands_beside_its_rules(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "files", lambda package: Path(__file__).parent)

    [left] = load(("zoo.rules", "ape", replace(APE, view="ape.js")))
    assert left.why.endswith("view: expected the file ape.js beside the rules, found none")


def test_only_files_beside_its_rules_are_served(
    load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ape.js").write_text("draw")
    (tmp_path / "old.css").mkdir()
    monkeypatch.setattr(catalogue, "files", lambda package: tmp_path)
    monkeypatch.setattr(catalogue, "GAMES", {})

    assert load(("zoo.rules", "ape", replace(APE, view="ape.js"))) == []
    assert view_files.__wrapped__() == {"zoo/ape.js": b"draw"}


def test_a_name_of_ours_is_not_given_away(load: Load) -> None:
    [left, _] = load(("zoo.rules", "ace_king_queen", AKQ))

    assert left.why == "the name 'ace_king_queen' is taken by another package"
    assert game_named("ace_king_queen") is AKQ


def test_of_two_packages_with_one_name_the_one_with_its_vocabulary_wins(load: Load) -> None:
    first, second = replace(APE), replace(APE)

    [left] = load(("ark.rules", "ape", first), ("zoo.rules", "ape", second))
    assert str(left) == (
        "ape of ark ? is left out (arena.games): the name 'ape' is taken by another package"
    )
    assert game_named("ape") is second


def test_one_package_names_a_game_once(load: Load) -> None:
    first = replace(APE)

    [left] = load(("zoo.rules", "ape", first), ("zoo.more", "ape", replace(APE)))
    assert "is taken" in left.why
    assert game_named("ape") is first


def test_rules_without_a_vocabulary_are_left_out(load: Load) -> None:
    game = replace(APE, vocabulary=replace(APE.vocabulary, name="bee"))

    left = load(("zoo.rules", "bee", game))[0]
    assert left.why == (
        "its vocabulary is not here: expected an entry point protocol.games with it"
    )


def test_a_vocabulary_without_rules_is_told(load: Load) -> None:
    [left] = load()

    assert str(left) == ("ape of zoo ? is left out (arena.games): it has a vocabulary and no rules")


# ---- Games that are gone


def test_what_a_package_played_names_it_when_it_is_gone() -> None:
    with pytest.raises(NotInstalled) as caught:
        game_named("leduc", "leduc 1.0")

    assert str(caught.value) == (
        "leduc of package leduc 1.0 is not installed, and its rules are needed for this"
    )
    assert game_title("leduc") == "leduc"
    assert game_title("high_low") == GAMES["high_low"].vocabulary.title
    with pytest.raises(UnknownGame):
        game_named("leduc")


def test_only_the_rules_it_was_played_by_prove_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    assert other_rules("high_low", msgspec.UNSET) is None
    assert other_rules("leduc", msgspec.UNSET) is None  # which is no game
    assert other_rules("leduc", "leduc 1.0") == "leduc of package leduc 1.0 is not installed"
    assert other_rules("high_low", "leduc 1.0") is None  # a lie about a game of ours
    assert mistaken_package("high_low", msgspec.UNSET) is None
    assert mistaken_package("leduc", "leduc 1.0") is None
    assert mistaken_package("high_low", "leduc 1.0") == (
        'it names the package "leduc 1.0", expected none: high_low is a game of ours'
    )
    outside = replace(GAMES["high_low"], package=Package("leduc", "2.0"))
    monkeypatch.setitem(GAMES, "high_low", outside)
    assert mistaken_package("high_low", "leduc 1.0") is None
    assert other_rules("high_low", "leduc 2.0") is None
    assert other_rules("high_low", "leduc 1.0") == (
        "high_low was played by package leduc 1.0, and here it is of package leduc 2.0"
    )
    assert other_rules("high_low", msgspec.UNSET) == (
        "high_low was played by a game of ours, and here it is of package leduc 2.0"
    )


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: str(game.name))
def test_the_view_of_a_game_is_among_the_files(game: Game) -> None:
    path = view_path(game)

    assert path is None or view_files()[path]
    assert view_path(replace(game, view=None)) is None


def test_a_game_of_gin_is_lost_by_its_points_and_counts_one_all_the_same() -> None:
    unit = game_named("gin_rummy").unit
    assert unit is not None
    assert unit.margins is not None
    over = VOCABULARIES["gin_rummy"].news["game_over"](1, (4, 106), (2, 3))

    assert (unit.payoffs(over), unit.margins(over)) == ((0, 1), (-102, 102))
