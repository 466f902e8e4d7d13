"""`arena analyse`: what is not as a line of text; its words and results are in `analyse.cram`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support.analysed import GAME

if TYPE_CHECKING:
    from tests.arena.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("analysing")


def test_settings_are_refused_with_their_reason(run: Run, analysing: Callable[..., None]) -> None:
    analysing(refuses=lambda settings: f"{settings.hands} hands say nothing")

    refusal = run("analyse", GAME, "honest", "--set", "hands=2").refusal(1)

    assert refusal == "2 hands say nothing"


def test_one_line_says_what_is_not_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)

    refusal = run("analyse", GAME, "honest").refusal()

    assert refusal == "numpy and scipy are not installed: pip install 'card-arena[analysis]'"


def test_a_terminal_shows_that_it_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = run("analyse", GAME, "honest", "--seed", "5", "--json")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    shown = run("analyse", GAME, "honest", "--seed", "5", "--json")

    assert quiet.err == ""
    assert "asking honest" in shown.err
    assert "answers" in shown.err
    assert shown.out == quiet.out


def test_ctrl_c_says_how_far_it_came(run: Run, bot_file: Callable[..., str]) -> None:
    stopped = bot_file(answer="exec('raise KeyboardInterrupt')")

    failure = run("analyse", GAME, "honest", "--against", stopped).failure(130)

    assert re.fullmatch(r"interrupted after [1-9][\d,]+ answers", failure)
