"""No module names a game but in that game's own files: all else reads the games' descriptions.

The names, aliases and titles of our games are searched for as whole words, in code and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.schema.definitions import our_games

ROOT = Path(__file__).parent.parent
SEARCHED = ("arena", "bots", "protocol", "tests/support", "tests/tools")
KINDS = {".py", ".js", ".css", ".html", ".jinja", ".toml"}
NOT_OURS_TO_SEARCH = (
    "bots/examples/",  # programs of their own, each with a game that it plays well
    "arena/web/page/lib/",
)

ALLOWED = {
    "pyproject.toml": "the entry points of our games",
    "arena/cli/__init__.py": "the lines of the two commands of one game",
    "arena/cli/driver.py": "a command of one game: what a session prints is in its rulebook",
    "arena/cli/odds.py": "a command of one game: its exact odds are in its rulebook",
    "arena/lab/odds.py": "what that command computes",
    "tests/tools/bench/bare.py": "a peer: how fast one game is without an arena",
    "arena/competitions/class.example.toml": "an example for people, who change it",
    "bots/cards.py": "cards as objects for courses, with exercises on one game",
    "tests/support/analysed.py": "the game that tests play who do not care",
    "tests/support/cram.py": "the same",
    "tests/support/fake_bots.py": "the same",
    "tests/support/fake_host.py": "the same",
    "tests/support/gateway_bots.py": "the same",
    "tests/support/in_memory_bot.py": "the same",
    "tests/support/scripted_connection.py": "the same",
    "tests/support/submitting.py": "programs in the place of a check and of a comparison",
    "tests/support/written_competition.py": "a game for each form of competition",
    "tests/support/pipe_bot.py": "programs with a fixed `hello`",
    "tests/support/rogues/": "the same, and the games where `true` could be taken for a number",
    "tests/support/student_bots.py": "why a number is what it is",
}
"""Files and folders that may name games, with the reason."""

MEASURES = {"league_odds", "luck_tables"}
"""Programs in tests/tools that measure something by a fixed game, so that runs can be compared."""


def words_of_games() -> re.Pattern[str]:
    """The pattern of all names; `tcp` in quotes only, as elsewhere it is the network's."""
    names = {name for words in our_games() for name in (words.name, words.alias, words.title)}
    plain = sorted(re.split(r"[-_ ]", name.lower()) for name in names if name != "tcp")
    listed = "|".join(r"(?:[-_]|[\s#*/]+)".join(parts) for parts in plain)
    return re.compile(rf"""\b(?:{listed})\b|["'`]tcp["'`]""", re.IGNORECASE)


def is_of_a_game(path: Path) -> bool:
    """Whether a file is a game's own: it, or its folder, has the game's name or begins with it."""
    names = {name for words in our_games() for name in (words.name, words.alias)}
    mine = path.stem, path.parent.name
    return any(one == name or one.startswith(f"{name}_") for name in names for one in mine)


def searched() -> Iterator[Path]:
    yield ROOT / "pyproject.toml"
    for place in SEARCHED:
        for path in sorted((ROOT / place).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in KINDS and not name.startswith(NOT_OURS_TO_SEARCH):
                yield path


def found() -> dict[str, list[str]]:
    """The lines that name a game, by file."""
    pattern = words_of_games()
    lines: dict[str, list[str]] = {}
    for path in searched():
        text = path.read_text(encoding="utf-8")
        if not is_of_a_game(path) and (hits := [*pattern.finditer(text)]):
            lines[path.relative_to(ROOT).as_posix()] = [
                f"{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}" for hit in hits
            ]
    return lines


FOUND = found()


def is_allowed(name: str, allowed: str) -> bool:
    return name.startswith(allowed) if allowed.endswith("/") else name == allowed


def test_no_module_names_a_game() -> None:
    tools = {f"tests/tools/{name}.py" for name in MEASURES}
    stray = {
        name: lines
        for name, lines in FOUND.items()
        if name not in tools and not any(is_allowed(name, one) for one in ALLOWED)
    }

    assert stray == {}


@pytest.mark.parametrize(
    "allowed", [*ALLOWED, *(f"tests/tools/{name}.py" for name in sorted(MEASURES))]
)
def test_no_file_is_allowed_without_need(allowed: str) -> None:
    assert [name for name in FOUND if is_allowed(name, allowed)]


@pytest.mark.parametrize(
    "text", ["akq", "Gin", "three card\n    # poker", "'tcp'", "three_card_poker-1", "High-low"]
)
def test_a_name_is_found_as_a_whole_word(text: str) -> None:
    assert words_of_games().search(f"play {text}.")


@pytest.mark.parametrize("text", ["begin", "gin_words_in", "over tcp", "TCP", "high", "HighLow"])
def test_other_words_are_not(text: str) -> None:
    assert not words_of_games().search(f"play {text}.")


def test_a_games_own_files_or_their_folder_begin_with_its_name() -> None:
    assert is_of_a_game(Path("protocol/gin_melds.py"))
    assert is_of_a_game(Path("arena/games/blackjack/script.py"))
    assert not is_of_a_game(Path("arena/games/replay.py"))
