from __future__ import annotations

import shlex

import pytest

from arena.authoring.other_language import other_language
from arena.cli import COMMANDS
from arena.games import GAMES
from arena.manual.documents import documents
from protocol.strategy import house_bots


@pytest.mark.parametrize("game", GAMES)
def test_there_is_the_page_of_the_game_and_the_session(game: str) -> None:
    made = other_language(GAMES[game], "mine")

    assert {*made.files} == {f"{game}.md", "session.md"}
    for kind in (*GAMES[game].vocabulary.questions, *GAMES[game].vocabulary.news):
        assert f"`{kind}`" in made.files[f"{game}.md"]
    for word in ("hello", "ready", "answer"):
        assert word in made.files["session.md"]


@pytest.mark.parametrize("game", GAMES)
def test_it_is_what_the_manual_says(game: str) -> None:
    said = "\n".join(document.text for document in documents().values())
    for text in other_language(GAMES[game], "mine").files.values():
        lines = [line for line in text.splitlines() if "](" not in line]

        assert sum(line in said for line in lines) > 0.8 * len(lines)
        assert "<!--" not in text


@pytest.mark.parametrize("game", GAMES)
def test_the_commands_can_be_used(game: str) -> None:
    made = other_language(GAMES[game], "mine")
    lines = {command.purpose: command.line for command in made.commands}

    assert [*lines] == ["try", "check", "connect"]
    for purpose in ("try", "check"):
        words = shlex.split(lines[purpose])
        assert words[0] == "arena"
        assert words[1] in COMMANDS
    rivals = shlex.split(lines["try"])[3:-2]
    assert len(rivals) == GAMES[game].seats - 1
    assert {*rivals} <= {*house_bots(game)}
    assert "ARENA_NAME=mine" in lines["connect"]
