"""`arena check-game`: what it prints; what it finds is in tests/arena/authoring."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.games import GAMES
from tests.support.game_packages import install_game
from tests.support.in_process import CommandProcess

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
    tmp_path: Path, edit: tuple[str, str], why: str
) -> None:
    install_game(tmp_path, "badly_typed", 2, {"vocabulary.py": (edit,)})
    with CommandProcess.beside(tmp_path) as commands:
        ran = commands.arena(tmp_path, "check-game", "badly_typed")
        good = commands.arena(tmp_path, "check-game", NAME, "--matches", "1")
    left_out, *_, refusal = ran.err.splitlines()

    assert (ran.status, ran.out) == (2, "")
    assert "badly_typed 0.1.0 is left out (protocol.games): " in left_out
    assert why in left_out
    assert refusal.startswith("arena: unknown game 'badly_typed'")
    assert good.status == 0
