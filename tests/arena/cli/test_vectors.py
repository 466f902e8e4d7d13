"""`arena vectors`: for a game of ours here, for games from outside in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.games import GAMES
from protocol.strategy import house_bots
from tests.support.in_process import CommandProcess
from tests.support.toy_games import write_toy

Run = Callable[..., Any]


@pytest.mark.parametrize("game", GAMES)
def test_a_game_has_a_schema_and_a_transcript_of_each_house_bot(
    run: Run, tmp_path: Path, game: str
) -> None:
    run("vectors", game, str(tmp_path))
    files = sorted(file.name for file in tmp_path.iterdir())

    assert files == sorted([f"{game}.json", *(f"{game}-{bot}.jsonl" for bot in house_bots(game))])
    assert run("vectors", game, str(tmp_path), "--check").status == 0
    transcripts = [str(file) for file in tmp_path.glob("*.jsonl")]
    assert "all fit" in run("verify", *transcripts).text


@pytest.mark.e2e
def test_games_from_outside_have_them_and_ours_stay_as_they_are(tmp_path: Path) -> None:
    games = [write_toy(tmp_path / "toys", seats) for seats in (1, 2, 3, 6)]
    schemas = "import sys; from protocol.schema.__main__ import main; sys.exit(main(['--check']))"
    with CommandProcess.beside(tmp_path / "toys") as commands:
        for game in games:
            written = commands.arena(tmp_path, "vectors", game, game).text
            assert written.count("wrote ") == 4  # a schema and three bots
            assert commands.arena(tmp_path, "vectors", game, game, "--check").text == ""
            transcripts = [f"{game}/{game}-{bot}.jsonl" for bot in ("bold", "timid")]
            verified = commands.arena(tmp_path, "verify", *transcripts).text
            assert "2 matches: all fit" in verified
        assert commands.python(tmp_path, schemas).text == ""
