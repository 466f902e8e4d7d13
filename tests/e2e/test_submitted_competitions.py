"""Competitions of submitted programs, as real processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from arena.storage.store import CompetitionState
from protocol.messages import Ending
from tests.support.submitted_arena import submitted_arena

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
CRASHES = "import sys; sys.exit('no such model')"


async def test_submitted_bots_play_a_round_robin_with_a_house_bot(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT_S), submitted_arena(tmp_path, ann=11, ben=21) as arena:
        await arena.host.launch(("ace_king_queen", "nash"), "house")
        await arena.host.wait_for_bots(["house"], TIMEOUT_S)
        plan = arena.plan("ace_king_queen", "ann", "ben", "house", matches=4)
        report = await arena.play(plan)
        await arena.store.flushed()
        rows = arena.store.results(report.competition)

    assert report.state is CompetitionState.FINISHED
    assert not report.verdicts
    assert report.played == 12
    assert {seat for row in rows for seat in zip(row.players, row.versions, strict=True)} == {
        ("ann", "v1"),
        ("ben", "v1"),
        ("house", None),
    }


async def test_a_program_that_does_not_start_is_out_with_what_it_said(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT_S),
        submitted_arena(tmp_path, ann=11, ben=21, cem=31) as arena,
    ):
        arena.programs[31] = CRASHES
        report = await arena.play(arena.plan("ace_king_queen", "ann", "ben", "cem"))

    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind) == ("cem", Ending.CRASH)
    assert "no such model" in (verdict.stderr or "")
    assert [text for *_, text in arena.stderr if "model" in text]
    assert {row.name for row in report.standings if not row.eliminated} == {"ann", "ben"}
