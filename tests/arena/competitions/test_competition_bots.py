"""The launched bots of competitions; `tests/e2e` has those that are processes."""

from __future__ import annotations

from typing import Any

import pytest

from arena.competitions import competition_bots
from arena.competitions.competition_bots import CompetitionBots
from protocol.errors import ArenaError


async def test_a_free_chair_in_a_game_without_house_bots_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(competition_bots, "house_bots", lambda game: {})
    nobody: Any = None
    bots = CompetitionBots(nobody, nobody, (), nobody)

    with pytest.raises(ArenaError, match="a free chair needs a house bot for toy, none is install"):
        await bots.launch_house_bot("toy", "house-1")
