"""The runs to come, as the lobby lists them: those that wait for their time, or for bots."""

from __future__ import annotations

from typing import Any

import pytest

from arena.competitions.attendance import Upcoming
from arena.competitions.planned_run import PlannedRun
from arena.formats.spec import Form, plan_of
from arena.formats.timetable import parse
from arena.games import GAMES
from arena.storage.store import CompetitionState
from protocol.ace_king_queen import AceKingQueenSettings
from tests.arena.competitions.test_scheduler import SIX, RunningScheduler, written


def run_of(name: str, game: str, **more: Any) -> PlannedRun:
    return PlannedRun(name=name, game=game, form=Form.ROUND_ROBIN, least=2, **more)


async def test_runs_wait_for_their_time_or_for_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    evening = RunningScheduler(monkeypatch)
    at_six = run_of("six", "gin_rummy", at=parse(SIX))
    whenever = run_of("whenever", "ace_king_queen")
    evening.begins(at_six, whenever)
    await evening.until(lambda: evening.scheduler.upcoming)

    assert evening.scheduler.upcoming == (
        Upcoming("six", "gin_rummy", "round_robin", SIX.timestamp()),
        Upcoming("whenever", "ace_king_queen", "round_robin", None),
    )

    evening.stand.comes("ann", "ben")
    await evening.starts(1)
    assert [run.run for run in evening.scheduler.upcoming] == ["six"]

    evening.now = SIX
    await evening.starts(2)
    assert not evening.scheduler.upcoming
    await evening.ends()


async def test_what_was_played_once_and_for_all_is_not_to_be_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evening = RunningScheduler(monkeypatch)
    plan = plan_of(GAMES["ace_king_queen"], AceKingQueenSettings(), ("a", "b"), run="once")
    evening.stand.written = [written("c", plan, CompetitionState.FINISHED)]
    once = run_of("once", "ace_king_queen")
    later = run_of("later", "gin_rummy")
    evening.begins(once, later)
    await evening.until(lambda: evening.lines)

    assert [run.run for run in evening.scheduler.upcoming] == ["later"]
    await evening.ends()
