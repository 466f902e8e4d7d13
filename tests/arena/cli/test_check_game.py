"""`arena check-game`: what it prints; what it finds is in tests/arena/authoring."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.games import GAMES
from tests.support.game_packages import install_game

Run = Callable[..., Any]
NAME = next(iter(GAMES))


def test_a_game_that_keeps_to_the_conventions(run: Run) -> None:
    out = run("check-game", NAME, "--matches", "3", "--seed", "7").text

    assert out.startswith(f"3 matches of {NAME}, ")
    assert out.endswith(" decisions each: every convention holds (seed 7)\n")


def test_as_json(run: Run) -> None:
    document = run("check-game", NAME, "--matches", "1", "--seed", "7", "--json").document

    assert document.pop("decisions") > 0
    assert document == {"game": NAME, "package": None, "matches": 1, "seed": 7, "broken": []}


def test_the_same_seed_gives_the_same_output(run: Run) -> None:
    first = run("check-game", NAME, "--matches", "2", "--seed", "7").text

    assert run("check-game", NAME, "--matches", "2", "--seed", "7").text == first


def test_what_is_broken_is_a_line_and_sets_the_exit_status(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = msgspec.structs.replace(GAMES[NAME], decisions=lambda settings: 1e6)
    monkeypatch.setitem(GAMES, NAME, game)
    ran = run("check-game", NAME, "--matches", "2", "--seed", "7")

    line, end = ran.out.splitlines()
    assert line.startswith("decisions: matches with ")
    assert end.endswith(" decisions each (seed 7)")
    assert ran.failure() == "expected none, found 1 broken convention; --seed 7 repeats the check"


def test_an_unknown_game_is_refused(run: Run) -> None:
    assert "unknown game 'whist'" in run("check-game", "whist").refusal()


@pytest.mark.parametrize("matches", ["0", "-1", "many"])
def test_another_number_of_matches_is_refused(run: Run, matches: str) -> None:
    assert "--matches" in run("check-game", NAME, "--matches", matches).refusal()


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (
            ("    card: Card\n    actions", "    card: Kard\n    actions"),
            "types of Act cannot be sent",
        ),
        (
            ("    card: Card\n    actions", "    match: Card\n    actions"),
            "the field 'match' of Act",
        ),
        (
            ("    starter: int\n", "    starter: int | bool | set[int] | list[int]\n"),
            "types of Dealt",
        ),
    ],
)
def test_types_that_cannot_be_sent_leave_a_game_out_and_nothing_else(
    run_process: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    edit: tuple[str, str],
    why: str,
) -> None:
    install_game(tmp_path, "badly_typed", 2, {"vocabulary.py": (edit,)})
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    ran = run_process("check-game", "badly_typed")
    left_out, *_, refusal = ran.err.splitlines()

    assert (ran.status, ran.out) == (2, "")
    assert "badly_typed 0.1.0 is left out (protocol.games): " in left_out
    assert why in left_out
    assert refusal.startswith("arena: unknown game 'badly_typed'")
    assert run_process("check-game", NAME, "--matches", "1").status == 0
