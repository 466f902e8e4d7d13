"""`arena analyse --bot`: programs are asked what objects are, and what they do wrong is said."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

import arena
from tests.support.bot_processes import living
from tests.support.in_process import Ran, run_here
from tests.support.pipe_bot import pipe_bot

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parent.parent.parent
GAME = "ace_king_queen"

HONEST = "legal[it['card'] != 'A']"  # bets and calls with the ace alone


def analyse(*words: str) -> Ran:
    return run_here("analyse", GAME, *words)


def piped(
    folder: Path, games: Sequence[str] = (GAME,), value: str = HONEST, asked: str = ""
) -> str:
    """The command of a bot without a library."""
    file = folder / "bot.py"
    first = "asked = 0"
    file.write_text(pipe_bot(games, first=first, asked=f"asked += 1\n{asked}", value=value))
    return f"ann=stdio: {sys.executable} {file}"


@patch("arena.games.ace_king_queen.analysis.HANDS", 480)
def test_programs_are_worth_what_the_same_bots_are_in_process(tmp_path: Path) -> None:
    strategy = tmp_path / "mine.py"
    strategy.write_text(
        "class Mine:\n"
        f"    game = '{GAME}'\n"
        "    def decide(self, question): return question.legal[question.card != 'A']\n"
        "    def hear(self, news): pass\n"
        "    def reset(self): pass\n"
    )
    here = arena.analyse(GAME, "honest", against=["honest"], seed=3)

    there = analyse(
        "--bot", piped(tmp_path), "--against", f"bob={strategy}", "--seed", "3", "--json"
    )

    document = there.document
    assert (document["bot"], document["against"]) == ("ann", ["bob"])
    found, expected = document["analysis"], msgspec.to_builtins(here)
    assert found["figures"][-1].pop("name") == "value against bob"
    assert expected["figures"][-1].pop("name") == "value against honest"
    assert found == json.loads(json.dumps(expected))
    assert found["asked"] > 1000


@pytest.mark.parametrize(
    ("options", "more", "text"),
    [
        ({"value": "'raise'"}, [], 'answered "raise" to open; legal: bet, check'),
        (
            {"asked": "if asked > 99: time.sleep(9)"},
            ["--wall-ms", "300"],
            "did not answer within 300 ms",
        ),
        ({"games": ["gin_rummy"]}, [], f"said hello for gin_rummy, expected {GAME}"),
    ],
)
def test_what_a_program_does_wrong_ends_it(
    tmp_path: Path, options: dict[str, Any], more: list[str], text: str
) -> None:
    done = analyse("--bot", piped(tmp_path, **options), *more)

    assert re.match(f"ann failed: {text}", done.refusal(1))


def test_the_end_of_its_stderr_stands_before_the_line(tmp_path: Path) -> None:
    wrong = "asked > 9 and (print('which card?', file=sys.stderr, flush=True) or 1 / 0)"

    done = analyse("--bot", piped(tmp_path, asked=wrong))

    *said, line = done.err.splitlines()
    assert said[0] == "ann: which card?"
    assert "ann: ZeroDivisionError: division by zero" in said
    assert line.startswith("arena: ann failed: crashed: exit status 1")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="its processes are not found there")
def test_ctrl_c_stops_the_program_too(tmp_path: Path) -> None:
    words = ["--bot", piped(tmp_path, asked="time.sleep(9)").replace("ann=", "sleeper=")]
    command = [sys.executable, "-m", "arena", "analyse", GAME, *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not living("sleeper"):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)

    assert (process.returncode, said) == (130, "arena: interrupted after 0 answers\n")
    assert not living("sleeper")
