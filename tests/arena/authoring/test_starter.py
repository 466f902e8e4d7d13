"""What `arena new` and `arena new-game` write: in every language, for every game and every number of seats."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from functools import cache

import pytest
from jinja2 import UndefinedError

from arena.authoring import starter as starters
from arena.authoring.game_package import MOST_SEATS, game_package
from arena.authoring.other_language import other_language
from arena.authoring.starter import Starter, plain_name, starter
from arena.cli import COMMANDS
from arena.games.catalogue import GAMES
from arena.sandbox.languages import LANGUAGES, LIBRARIES, Language
from arena.web.manual.documents import documents, protocol_section
from protocol.strategy import house_bots

EACH = [
    pytest.param(game, language, id=f"{language}-{game}") for language in Language for game in GAMES
]


@cache
def made_for(game: str, language: Language) -> Starter:
    return starter(GAMES[game], language, "mine")


def lines(made: Starter) -> dict[str, str]:
    return {command.purpose: command.line for command in made.commands}


@pytest.mark.parametrize(("game", "language"), EACH)
def test_every_kind_of_question_and_news_has_its_place(game: str, language: Language) -> None:
    words = GAMES[game].vocabulary
    made = made_for(game, language)
    assert words.questions
    assert words.news
    if language is Language.PYTHON:  # its base class knows them
        assert f"from bots.{game} import PlayerStrategy" in made.files["bot.py"]
        return
    [bot] = [
        text
        for name, text in made.files.items()
        if name in ("bot.js", "Bot.java", "bot.cpp", "bot.go", "bot.sh")
    ]

    for kind in (*words.questions, *words.news):
        assert re.search(rf"\b{kind}\b", bot), kind
    assert any(game in text for name, text in made.files.items() if "README" not in name)


@pytest.mark.parametrize(("game", "language"), EACH)
def test_nothing_is_left_of_a_template(game: str, language: Language) -> None:
    files = made_for(game, language).files
    written = {name: text for name, text in files.items() if not name.startswith(f"{LIBRARIES}/")}
    assert len(written) > 2
    for name, text in written.items():
        assert not re.search(r"\{\{ |\{%", text), name
        assert not name.endswith(".jinja")
        assert text.endswith("\n")
        assert not re.search(r"[ \t]$", text, re.MULTILINE), name
        assert "\n\n\n\n" not in text, name
        if name.endswith(".py"):
            assert ast.get_docstring(ast.parse(text, name))


@pytest.mark.parametrize("language", Language)
def test_the_libraries_that_come_with_it_are_whole_and_have_their_licence(
    language: Language,
) -> None:
    files = made_for("high_low", language).files
    there = {name.split("/")[1] for name in files if name.startswith(f"{LIBRARIES}/")}

    assert there == {*LANGUAGES[language].libraries}
    for library in there:
        folder = f"{LIBRARIES}/{library}"
        package = json.loads(files[f"{folder}/package.json"])
        assert files[f"{folder}/{package['main']}"]
        assert files[f"{folder}/LICENSE"]


def test_a_name_that_a_template_misspells_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'titel' is undefined"):
        starters._TEMPLATES.from_string("{{ titel }}").render(title="Gin")


@pytest.mark.parametrize(("game", "language"), EACH)
def test_the_readme_has_the_commands(game: str, language: Language) -> None:
    made = made_for(game, language)

    for command in made.commands:
        assert f"\n{command.line}\n" in made.files["README.md"]
    assert {"test", "try", "check", "connect", "submit"} <= {*lines(made)}


@pytest.mark.parametrize(("game", "language"), EACH)
def test_the_commands_are_ours_and_name_bots_that_there_are(game: str, language: Language) -> None:
    made, seats = made_for(game, language), GAMES[game].seats
    said = lines(made)
    arena, play, what, *bots = shlex.split(said["try"])
    told = re.findall(
        r"begins when (\d) bots .*`arena connect (\w+) (\w+)", made.files["README.md"]
    )

    assert (arena, play, what) == ("arena", "play", game)
    assert len([bot for bot in bots if bot in house_bots(game)]) == seats - 1
    assert said["check"].startswith("arena check -- ")
    assert "check" in COMMANDS
    # What a competition at home waits for.
    assert len(told) == (seats > 1)
    for number, connected, house in told:
        assert (int(number), connected) == (seats, game)
        assert house in house_bots(game)


def test_the_samples_are_a_line_each() -> None:
    made = made_for("gin_rummy", Language.GO)
    told = [json.loads(line) for line in made.files["samples.jsonl"].splitlines()]

    assert [message["type"] for message in told][:2] == ["match", "ask"]
    assert told[-1]["type"] == "over"


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("mine", "mine"),
        ("my bot", "my-bot"),
        ("ann's", "ann-s"),
        ("…", "bot"),
        ("", "bot"),
        ("x" * 100, "x" * 24),
    ],
)
def test_a_name_is_made_fit_for_a_command(said: str, plain: str) -> None:
    assert plain_name(said) == plain


@pytest.mark.parametrize("game", GAMES)
def test_there_is_the_page_of_the_game_and_the_session(game: str) -> None:
    made = other_language(GAMES[game], "mine", protocol_section)

    assert {*made.files} == {f"{game}.md", "lines.md", "session.md"}
    for kind in (*GAMES[game].vocabulary.questions, *GAMES[game].vocabulary.news):
        assert f"`{kind}`" in made.files[f"{game}.md"]
    for word in ("hello", "ready", "answer"):
        assert word in made.files["session.md"]


@pytest.mark.parametrize("game", GAMES)
def test_it_is_what_the_manual_says(game: str) -> None:
    said = "\n".join(document.text for document in documents().values())
    for text in other_language(GAMES[game], "mine", protocol_section).files.values():
        lines = [line for line in text.splitlines() if "](" not in line]

        assert sum(line in said for line in lines) > 0.8 * len(lines)
        assert "<!--" not in text


@pytest.mark.parametrize("game", GAMES)
def test_the_commands_can_be_used(game: str) -> None:
    made = other_language(GAMES[game], "mine", protocol_section)
    lines = {command.purpose: command.line for command in made.commands}

    assert [*lines] == ["try", "check", "connect", "in lines"]
    for purpose in ("try", "check"):
        words = shlex.split(lines[purpose])
        assert words[0] == "arena"
        assert words[1] in COMMANDS
    rivals = shlex.split(lines["try"])[3:-2]
    assert len(rivals) == GAMES[game].seats - 1
    assert {*rivals} <= {*house_bots(game)}
    assert "ARENA_NAME=mine" in lines["connect"]


EACH_NUMBER = pytest.mark.parametrize("seats", range(1, MOST_SEATS + 1))
NAMES = ("ab", "tiny_poker", "a_name_of_thirty_letters_in_all")


@EACH_NUMBER
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("more", [False, True], ids=["plain", "view and luck"])
def test_every_file_is_filled(name: str, seats: int, more: bool) -> None:
    for file, text in game_package(name, seats, view=more, luck=more).files.items():
        assert not re.search(r"\{\{ |\{%|NAME", text), file
        assert text.endswith("\n"), file
        assert "\n\n\n\n" not in text, file
        assert not re.search(r"[ \t]$", text, re.MULTILINE), file
        if file.endswith(".py"):
            assert ast.get_docstring(ast.parse(text)), file
            assert max(map(len, text.splitlines())) <= 100, file


@EACH_NUMBER
def test_its_entry_points_are_the_three_parts(seats: int) -> None:
    project = tomllib.loads(game_package("tiny_poker", seats).files["pyproject.toml"])["project"]

    assert project["entry-points"] == {
        "protocol.games": {"tiny_poker": "tiny_poker.vocabulary"},
        "arena.games": {"tiny_poker": "tiny_poker.rules"},
        "arena.bots": {"tiny_poker": "tiny_poker.bots"},
    }
    assert project["dependencies"] == ["card-arena"]


@EACH_NUMBER
def test_the_readme_names_every_file_and_command(seats: int) -> None:
    made = game_package("tiny_poker", seats, view=seats > 1)
    readme = made.files["README.md"]

    for file in made.files.keys() - {"README.md", "tiny_poker/__init__.py"}:
        assert f"| `{file}` |" in readme
    for command in made.commands:
        assert f"\n{command.line}\n" in readme
