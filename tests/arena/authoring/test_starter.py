"""What `arena new` and `arena new-game` write: in every language, for every game and every number of seats."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from functools import cache

import pytest
from jinja2 import UndefinedError

from arena.authoring import starter as starters
from arena.authoring.game_package import MOST_SEATS, game_package
from arena.authoring.starter import Starter, other_language, plain_name, starter
from arena.cli import COMMANDS
from arena.games.catalogue import GAMES
from arena.sandbox.languages import LANGUAGES, LIBRARIES, Language
from arena.web.manual.documents import documents, protocol_section
from protocol.strategy import house_bots

EACH = pytest.mark.parametrize(
    ("game", "language"), [(game, language) for language in Language for game in GAMES]
)
EACH_GAME = pytest.mark.parametrize("game", GAMES)
EACH_NUMBER = pytest.mark.parametrize("seats", range(1, MOST_SEATS + 1))


@cache
def made_for(game: str, language: Language) -> Starter:
    return starter(GAMES[game], language, "mine")


def lines(made: Starter) -> dict[str, str]:
    return {command.purpose: command.line for command in made.commands}


def assert_is_filled(files: Mapping[str, str]) -> None:
    """Nothing is left of a template, and programs can be read."""
    assert len(files) > 2
    for name, text in files.items():
        assert not re.search(r"\{\{ |\{%", text), name
        assert not name.endswith(".jinja")
        assert text.endswith("\n"), name
        assert not re.search(r"[ \t]$", text, re.MULTILINE), name
        assert "\n\n\n\n" not in text, name
        if name.endswith(".py"):
            assert ast.get_docstring(ast.parse(text, name)), name


# ---- A bot in a language


@EACH
def test_every_kind_of_question_and_news_has_its_place(game: str, language: Language) -> None:
    words, files = GAMES[game].vocabulary, made_for(game, language).files
    assert_is_filled({name: files[name] for name in files if not name.startswith(f"{LIBRARIES}/")})
    if language is Language.PYTHON:  # its base class knows them
        assert f"from bots.{game} import PlayerStrategy" in files["bot.py"]
        return
    [bot] = [files[name] for name in files if re.fullmatch(r"[bB]ot\.(js|java|cpp|go|sh)", name)]

    for kind in (*words.questions, *words.news):
        assert re.search(rf"\b{kind}\b", bot), kind
    assert any(game in text for name, text in files.items() if "README" not in name)


@EACH
def test_the_commands_are_ours_and_name_bots_that_there_are(game: str, language: Language) -> None:
    made, seats = made_for(game, language), GAMES[game].seats
    said, readme = lines(made), made.files["README.md"]
    arena, play, what, *bots = shlex.split(said["try"])
    told = re.findall(r"begins when (\d) bots .*`arena connect (\w+) (\w+)", readme)

    assert all(f"\n{line}\n" in readme for line in said.values())
    assert {"test", "try", "check", "connect", "submit"} <= {*said}
    assert (arena, play, what) == ("arena", "play", game)
    assert len([bot for bot in bots if bot in house_bots(game)]) == seats - 1
    assert said["check"].startswith("arena check -- ")
    # What a competition at home waits for.
    assert len(told) == (seats > 1)
    for number, connected, house in told:
        assert (int(number), connected) == (seats, game)
        assert house in house_bots(game)


@pytest.mark.parametrize("language", Language)
def test_the_libraries_that_come_with_it_are_whole_and_have_their_licence(
    language: Language,
) -> None:
    files = made_for("high_low", language).files
    there = {name.split("/")[1] for name in files if name.startswith(f"{LIBRARIES}/")}

    assert there == {*LANGUAGES[language].libraries}
    for folder in (f"{LIBRARIES}/{library}" for library in there):
        package = json.loads(files[f"{folder}/package.json"])
        assert files[f"{folder}/{package['main']}"]
        assert files[f"{folder}/LICENSE"]


def test_a_name_that_a_template_misspells_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'titel' is undefined"):
        starters._TEMPLATES.from_string("{{ titel }}").render(title="Gin")


def test_the_samples_are_a_line_each() -> None:
    made = made_for("gin_rummy", Language.GO)
    told = [json.loads(line)["type"] for line in made.files["samples.jsonl"].splitlines()]

    assert (told[:2], told[-1]) == (["match", "ask"], "over")


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        *[("mine", "mine"), ("my bot", "my-bot"), ("ann's", "ann-s")],
        *[("…", "bot"), ("", "bot"), ("x" * 100, "x" * 24)],
    ],
)
def test_a_name_is_made_fit_for_a_command(said: str, plain: str) -> None:
    assert plain_name(said) == plain


# ---- Another language


@EACH_GAME
def test_there_is_the_page_of_the_game_and_the_session(game: str) -> None:
    made, words = other_language(GAMES[game], "mine", protocol_section), GAMES[game].vocabulary
    manual = "\n".join(document.text for document in documents().values())

    assert {*made.files} == {f"{game}.md", "lines.md", "session.md"}
    assert all(f"`{kind}`" in made.files[f"{game}.md"] for kind in (*words.questions, *words.news))
    assert all(word in made.files["session.md"] for word in ("hello", "ready", "answer"))
    for text in made.files.values():  # it is what the manual says
        told = [line for line in text.splitlines() if "](" not in line]
        assert sum(line in manual for line in told) > 0.8 * len(told)
        assert "<!--" not in text


@EACH_GAME
def test_the_commands_for_another_language_can_be_used(game: str) -> None:
    said = lines(other_language(GAMES[game], "mine", protocol_section))
    rivals = shlex.split(said["try"])[3:-2]

    assert [*said] == ["try", "check", "connect", "in lines"]
    for arena, command, *_ in (shlex.split(said[purpose]) for purpose in ("try", "check")):
        assert arena == "arena"
        assert command in COMMANDS
    assert len(rivals) == GAMES[game].seats - 1
    assert {*rivals} <= {*house_bots(game)}
    assert "ARENA_NAME=mine" in said["connect"]


# ---- A package with a game


@EACH_NUMBER
@pytest.mark.parametrize("name", ["ab", "tiny_poker", "a_name_of_thirty_letters_in_all"])
@pytest.mark.parametrize("more", [False, True], ids=["plain", "view and luck"])
def test_every_file_is_filled_and_named_in_the_readme(name: str, seats: int, more: bool) -> None:
    made = game_package(name, seats, view=more, luck=more)
    readme = made.files["README.md"]

    assert_is_filled(made.files)
    for file, text in made.files.items():
        assert not file.endswith(".py") or max(map(len, text.splitlines())) <= 100, file
        assert file in ("README.md", f"{name}/__init__.py") or f"| `{file}` |" in readme
    assert all(f"\n{line}\n" in readme for line in lines(made).values())


@EACH_NUMBER
def test_its_entry_points_are_the_three_parts(seats: int) -> None:
    project = tomllib.loads(game_package("tiny_poker", seats).files["pyproject.toml"])["project"]

    assert project["entry-points"] == {
        "protocol.games": {"tiny_poker": "tiny_poker.vocabulary"},
        "arena.games": {"tiny_poker": "tiny_poker.rules"},
        "arena.bots": {"tiny_poker": "tiny_poker.bots"},
    }
    assert project["dependencies"] == ["card-arena"]
