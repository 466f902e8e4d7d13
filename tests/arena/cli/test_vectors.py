"""`arena vectors`: for a game of ours here, for games from outside in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.games import GAMES
from protocol.strategy import house_bots
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
@pytest.mark.parametrize("seats", [1, 2, 3, 6])
def test_a_game_from_outside_has_them_and_ours_stay_as_they_are(tmp_path: Path, seats: int) -> None:
    game = write_toy(tmp_path / "toys", seats)
    folder = str(tmp_path / "vectors")

    def runs(*words: str) -> str:
        paths = (str(tmp_path / "toys"), os.environ["PYTHONPATH"])
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert runs("arena", "vectors", game, folder).count("wrote ") == 4  # a schema and three bots
    assert runs("arena", "vectors", game, folder, "--check") == ""
    assert "2 matches: all fit" in runs(
        *("arena", "verify", f"{folder}/{game}-bold.jsonl", f"{folder}/{game}-timid.jsonl")
    )
    assert runs("protocol.schema", "--check") == ""
