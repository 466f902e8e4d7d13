"""`arena check-game`: what it prints; what it finds is in tests/arena/authoring."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.games import GAMES
from tests.support.game_packages import install_game

Run = Callable[..., Any]
NAME = next(iter(GAMES))


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
