"""Makes what `arena new-game` writes: a package with a small complete game, for authors to change.

Its files are the templates in `game_templates/`, filled in for a name and a number of seats.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder

from arena.authoring.starter import ShellCommand, Starter, templates
from arena.games.catalogue import GAMES
from protocol.entry_points import points
from protocol.errors import BadGame

__all__ = ["MOST_SEATS", "check_name", "game_package"]

MOST_SEATS = 6
"""The most seats for which the small game has enough cards."""

_SPADES = "AKQJT9"
_WIDTH = 100  # columns of a line
_VOCABULARY = "protocol.games"  # the group of entry points in which every game has a line
_TEMPLATES = templates("arena.authoring", "game_templates")
_VIEW = "view.js"
_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "NAME/__init__.py": "__init__.py",
    "NAME/vocabulary.py": "vocabulary.py",
    "NAME/rules.py": "rules.py",
    "NAME/bots.py": "bots.py",
    "NAME/view.js": _VIEW,
    "tests/test_NAME.py": "test_game.py",
}
"""The files of the package, and the template of each."""


def check_name(name: str) -> None:
    """Raise `BadGame` if a new game cannot have this name, for its package or on the wire."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,29}", name):
        raise BadGame(
            "expected a name of 2 to 30 lower case letters, digits and _, the first one a letter, "
            f"got {name!r}"
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name) or hasattr(builtins, name):
        raise BadGame(f"expected another name: {name!r} is a word of Python")
    aliases = {alias for game in GAMES.values() for alias in (game.name, game.vocabulary.alias)}
    if name in aliases or points(_VOCABULARY, name):
        raise BadGame(f"expected another name: there is a game {name!r}")
    found = PathFinder.find_spec(name)
    # A plain folder, perhaps the one being written, is found as well but has no loader.
    if name in sys.stdlib_module_names or (found is not None and found.loader is not None):
        raise BadGame(f"expected another name: there is a Python module {name!r}")


def game_package(name: str, seats: int, *, view: bool = False, luck: bool = False) -> Starter:
    """Make a package with a small game called `name` for 1 to `MOST_SEATS` seats.

    `view` adds a view for the page, and `luck` a luck meter.
    """
    assert 1 <= seats <= MOST_SEATS, "the command has asked"
    lines = [
        'pip install -e ".[test]"',
        f"arena check-game {name}",
        "python -m pytest",
        f"arena play {name} {' '.join(_lineup(seats))} --seed 1",
        f"arena cross {name}",
    ]
    purposes = ("install", "check", "test", "play", "cross")
    commands = tuple(map(ShellCommand, purposes, lines))
    used = "Act Acted Action Dealt GameSettings RoundOver".split()
    module = f"{name}.vocabulary"
    several = ["SEATS"] if seats > 1 else []
    acted = ["Action"] if seats > 1 else []
    values = {
        "name": name,
        "distribution": name.replace("_", "-"),
        "title": name.replace("_", " ").capitalize(),
        "seats": seats,
        "view": view,
        "luck": luck,
        "hands": max(seats, 2),  # cards that a round needs
        "lineup": list(
            zip(("ann", "ben", "cem", "dan", "eve", "fay"), _lineup(seats), strict=False)
        ),
        "commands": commands,
        "deck": ", ".join(f'"{rank}s"' for rank in _SPADES[:seats]),
        "fold_scores": _fold_scores(seats),
        "engine_import": _import(
            "arena.games.rules",
            "EVERYONE AskSeat Choice Game HiddenCards".split()
            + "Luck LuckMeter LuckRound".split() * luck
            + "Rules Scoreboard TellSeat Unit".split(),
        ),
        "rules_import": _import(
            module,
            ["CARDS", "SEATS", "VOCABULARY", *(cls for cls in used if seats > 1 or cls != "Acted")],
        ),
        "bots_import": _import(module, ["CARDS", *several, "Act", *acted, "RoundOver"]),
        "tests_import": "\n".join(
            [
                f"from {name}.bots import PlayerStrategy",
                f"from {name}.rules import GAME",
                _import(module, ["CARDS", "SEATS", "Action", "Dealt", "RoundOver"]),
            ]
        ),
    }
    return Starter(
        {
            file.replace("NAME", name): _TEMPLATES.get_template(f"{template}.jinja").render(values)
            for file, template in _FILES.items()
            if view or template != _VIEW
        },
        commands,
    )


def _lineup(seats: int) -> list[str]:
    """Return house bots for every seat of a match."""
    return [("careful", "bold", "random")[seat % 3] for seat in range(seats)]


def _fold_scores(seats: int) -> str:
    """Return the payoffs if the first seat, with the best card, folds and the others stay."""
    if seats == 2:
        return "(-1, 1)"  # the other seat is not asked
    return f"(-1, {1 + 2 * (seats - 2)}, *[-2] * (SEATS - 2))"


def _import(module: str, names: Sequence[str]) -> str:
    """Write an import as the formatter does: in one line, or else one name per line."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"
