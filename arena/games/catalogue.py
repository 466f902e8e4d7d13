"""All games by name: our own, and those of the entry points `arena.games`.

A game has two halves: its vocabulary (`protocol/games.py`) and its rules. A game that lacks a half
or breaks a convention is left out, as `protocol/entry_points.py` says.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from importlib.resources import files
from math import inf
from types import ModuleType
from typing import Any

import msgspec

from arena.games.rules import Game
from arena.games.small_games import judging_of_small
from protocol.entry_points import LEFT_OUT, LeftOut, leave_out, load_all, package_of
from protocol.errors import ArenaError, BadGame, NotInstalled, UnknownGame
from protocol.games import PACKAGES, VOCABULARIES, check_fields, check_line, vocabulary_named
from protocol.vocabulary import Settings, Vocabulary, shorten

__all__ = [
    "GAMES",
    "competition_settings",
    "conventions",
    "game_named",
    "game_title",
    "mistaken_package",
    "other_rules",
    "style_path",
    "view_files",
    "view_path",
]

ENTRY_POINTS = "arena.games"
_VIEW = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.js"  # a file beside the rules, in no folder

GAMES: dict[str, Game] = {}
"""By name: our games in alphabetical order, then those of other packages."""

_MODULES: dict[str, str] = {}  # by game, the module of its rules


def game_named(name: str, played_by: str | msgspec.UnsetType = msgspec.UNSET) -> Game:
    """The game of that name or alias; raises `UnknownGame` if there is none.

    `played_by` is the package that a record or a plan names. If the game is not installed in any
    version, `NotInstalled` names that package.
    """
    if isinstance(played_by, str) and name not in GAMES:
        raise NotInstalled(
            f"{name} of package {played_by} is not installed, and its rules are needed for this"
            f"{_left_out(name)}"
        )
    words = vocabulary_named(name)
    if words.name not in GAMES:
        raise UnknownGame(f"{words.name} has words and no rules{_left_out(words.name)}")
    return GAMES[words.name]


def _left_out(game: str) -> str:
    return next((f"; {left}" for left in LEFT_OUT if left.name == game), "")


def game_title(game: str) -> str:
    """The title of a game; its name if it is not installed here."""
    return VOCABULARIES[game].title if game in VOCABULARIES else game


def other_rules(game: str, played_by: str | msgspec.UnsetType) -> str | None:
    """Why the rules here cannot check a match that a package played; None if they are the same.

    Also None in two cases: an unknown game without a package is not a game at all, and for one of
    our own games, whose names are never given away, `mistaken_package` reports what is wrong.
    """
    here = GAMES.get(game)
    if here is None:
        is_outside = isinstance(played_by, str)
        return f"{game} of package {played_by} is not installed" if is_outside else None
    said = played_by if isinstance(played_by, str) else None
    if here.package is None or said == str(here.package):
        return None
    by = f"package {said}" if said else "a game of ours"
    return f"{game} was played by {by}, and here it is of package {here.package}"


def mistaken_package(game: str, named: str | msgspec.UnsetType) -> str | None:
    """Why a record or plan may not name a package: the game is our own; None if it may."""
    if not isinstance(named, str) or game not in GAMES or GAMES[game].package is not None:
        return None
    return f"it names the package {shorten(named)}, expected none: {game} is a game of ours"


def view_path(game: Game) -> str | None:
    """The path on the page of the module that draws a game; None for the general view."""
    return None if game.view is None else f"{_folder(game)}/{game.view}"


def style_path(game: Game) -> str | None:
    """The path on the page of the style sheet beside a game's view; None if there is none."""
    path = view_path(game)
    style = None if path is None else f"{path.removesuffix('.js')}.css"
    return style if style in view_files() else None


@cache
def view_files() -> Mapping[str, bytes]:
    """The JavaScript and style sheets beside the rules of all games, by path as in `view_path`."""
    return {
        f"{folder}/{file.name}": file.read_bytes()
        for folder in sorted({_folder(game) for game in GAMES.values() if game.view is not None})
        for file in files(folder).iterdir()
        if file.name.endswith((".js", ".css")) and file.is_file()
    }


def _folder(game: Game) -> str:
    """The package that contains a game's rules."""
    return _MODULES[game.name].rpartition(".")[0]


def competition_settings(game: Game, chosen: Mapping[str, object]) -> Settings:
    """The settings of a competition's matches; some games have other defaults there (B14, K3).

    Raises `BadSettings` for an unknown name, a wrong type or a value out of its range.
    """
    read = game.vocabulary.read_settings
    return read({**game.in_competitions(read(chosen)), **chosen})


def conventions(game: Game) -> None:
    """Raise `BadGame` naming the first convention that a game's rules break."""
    check_fields(game)
    read = game.vocabulary.read_settings
    if VOCABULARIES.get(game.name) is not game.vocabulary:
        raise _bad(f"vocabulary: expected that of the entry point protocol.games, {game.name!r}")
    for field in ("about", "summary"):
        if not getattr(game, field):
            raise _bad(f"{field}: expected words for people, got none")
        check_line(field, getattr(game, field))
    if game.view is not None and not re.fullmatch(_VIEW, str(game.view)):
        raise _bad(f"view: expected a name such as view.js, got {shorten(game.view)}")
    for field, text in _names(game):
        check_line(field, text)
    if not inspect.isgeneratorfunction(game.rules):
        raise _bad("rules: expected a generator function")
    for field, function in _functions(game):
        if not callable(function):
            raise _bad(f"{field}: expected a function, got {shorten(function)}")
    tried: dict[str, Mapping[str, object]] = {
        "settings": {},
        "rounds": game.rounds(10),
        "short": game.short,
        "for_people": game.for_people,
        "cross": game.cross.settings,
        "demo": game.demo.settings,
        "bench": game.bench.settings,
        **{f"variations, {n}": v.settings(0) for n, v in enumerate(game.variations, start=1)},
    }
    for field, settings in tried.items():
        try:
            chosen = read(settings)
        except ArenaError as error:
            raise _bad(f"{field}: {error}") from None
        if not 0 < game.decisions(chosen) < inf:
            raise _bad(f"decisions: expected an estimate above 0 for a match with those of {field}")
    usual = read(None)
    named = [choice.setting for choice in game.choices]
    named += [] if game.unit is None else [game.unit.setting]
    named += [] if game.splits_by is None else [game.splits_by]
    if game.purse is not None:
        named += [game.purse.stake, game.purse.length]
    for name in named:
        if type(getattr(usual, name, None)) is not int:
            raise _bad(f"{name}: expected a setting of {game.name} with an integer by default")
    if game.unit is not None and game.unit.closes not in game.vocabulary.news.values():
        raise _bad(f"unit: expected news of {game.name}, got {game.unit.closes!r}")
    kinds = (*game.vocabulary.questions.values(), *game.vocabulary.news.values())
    if strange := [cls for cls in game.hidden.until if cls not in kinds]:
        raise _bad(f"hidden: expected questions or news of {game.name}, got {strange[0]!r}")
    if game.advancing is not None and not 1 <= game.advancing < game.seats:
        raise _bad(f"advancing: expected 1 to {game.seats - 1} of {game.seats} seats")
    if game.meets_itself and game.seats != 2:
        raise _bad(f"meets_itself: expected a game for 2, got one for {game.seats}")
    if game.purse is not None:
        if game.purse.goal not in (None, *usual.__struct_fields__):
            raise _bad(f"purse: expected a setting of {game.name}, got {shorten(game.purse.goal)}")
        if game.seats != 1:
            raise _bad(f"purse: expected a game for 1, got one for {game.seats}")


def _functions(game: Game) -> Iterator[tuple[str, object]]:
    """The fields of a game that must be functions, without optional fields that are None."""
    for field in "deals", "stacked", "decisions", "rounds", "in_competitions":
        yield field, getattr(game, field)
    for field in "stake", "survivors", "script":
        if getattr(game, field) is not None:
            yield field, getattr(game, field)
    if game.hidden.cards is not None:
        yield "hidden", game.hidden.cards
    if game.unit is not None:
        yield "unit", game.unit.payoffs
    yield "measure", game.measure.value


def _names(game: Game) -> Iterator[tuple[str, object]]:
    """The names that a game gives to its parts, by field."""
    if game.points is not None:
        yield "points", game.points
    for choice in game.choices:
        yield f"choices, {choice.setting}", choice.label
    if game.unit is not None:
        yield "unit", game.unit.name
    yield "measure", game.measure.title


def _bad(text: str) -> BadGame:
    return BadGame(f"a game's convention is broken: {text}")


def _read(point: EntryPoint, module: ModuleType) -> None:
    """Add a game to the catalogue; raises `BadGame` if it is not valid."""
    game: Any = getattr(module, "GAME", None)
    if not isinstance(game, Game):
        raise _bad(f"expected a `GAME` in {point.module}, got {type(game).__name__}")
    if not isinstance(game.vocabulary, Vocabulary):
        got = type(game.vocabulary).__name__
        raise _bad(f"vocabulary: expected the `VOCABULARY` of the game, got {got}")
    if game.name != point.name:
        raise _bad(f"name: expected that of its entry point, {point.name!r}, got {game.name!r}")
    if game.name not in VOCABULARIES:
        raise BadGame("its vocabulary is not here: expected an entry point protocol.games with it")
    if game.name in GAMES or PACKAGES.get(game.name) != package_of(point):
        raise BadGame(f"the name {game.name!r} is taken by another package")
    conventions(game)
    package_name = point.module.rpartition(".")[0]
    if not package_name:
        raise _bad(f"expected the rules in a package, got the module {point.module}")
    if game.view is not None and not files(package_name).joinpath(game.view).is_file():
        raise _bad(f"view: expected the file {game.view} beside the rules, found none")
    if game.judging is None and package_of(point) is not None:  # ours have an evaluator
        msgspec.structs.force_setattr(game, "judging", judging_of_small(game))
    msgspec.structs.force_setattr(game, "package", package_of(point))
    _MODULES[game.name] = point.module
    GAMES[game.name] = game


def _load() -> None:
    for _ in load_all(ENTRY_POINTS, _read):
        pass
    known = {left.name for left in LEFT_OUT}
    for name, of in PACKAGES.items():
        if name not in GAMES and name not in known:
            why = "it has a vocabulary and no rules"
            leave_out(LeftOut(ENTRY_POINTS, name, str(of), why))


_load()
