"""`arena compare` with bots that it launches, and stopped by Ctrl-C."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_launched_play import interrupted
from tests.e2e.test_pipe import PYTHON
from tests.support.in_process import run_here

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

Start = Callable[..., "StartedProgram"]

BETS = PYTHON.replace("sys.argv[1]", '"me"')  # and calls
FOLDS = BETS.replace('it["legal"][0]', 'it["legal"][-1]')


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def command(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / f"{name}.py").write_text(text)
    return f"{name}=stdio: {shlex.quote(sys.executable)} {name}.py"


def test_two_programs_are_told_apart(here: None, tmp_path: Path) -> None:
    bets, folds = (command(tmp_path, *bot) for bot in (("bets", BETS), ("folds", FOLDS)))
    words = ("compare", "akq", "--bot", folds, "--bot", bets, "--set", "hands=250", "--json")
    document = run_here(*words, "--jobs", "2").document

    assert document["bots"] == ["folds", "bets"]
    assert (document["verdict"], document["better"], document["seed"]) == ("better", 1, None)
    assert document["units"] % 500 == 0  # whole parts: both seatings


def test_a_program_against_a_file_and_the_dealer(here: None, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from bots.blackjack import Simple\nclass Mine(Simple): pass")
    stand = BETS.replace("ace_king_queen", "blackjack").replace(
        'it["legal"][0]', 'min(5, it["legal"]["max"]) if "max" in it["legal"] else "stand"'
    )
    bot = command(tmp_path, "stands", stand)
    words = ("compare", "mine.py", "--bot", bot, "--set", "hands=5", "--most", "21", "--json")
    document = run_here(*words).document

    assert document["bots"] == ["mine.py", "stands"]
    assert document["units"] >= 20
    assert len(document["measures"]) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_stops_all_and_says_what_is_known(start: Start, tmp_path: Path) -> None:
    bot = command(tmp_path, "bets", BETS)
    words = ("compare", "akq", "nash", "--bot", bot, "--set", "hands=50", "--level", "0.01")
    status, out, err = interrupted(start("arena", *words, cwd=tmp_path), "bets.py")

    assert status == 130
    [line] = err.splitlines()
    assert line.startswith("arena: interrupted after ")
    assert line.endswith("all bots are stopped")
    assert out.startswith("Ace-King-Queen\n")
