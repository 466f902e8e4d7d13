"""Competitions of submitted programs, as real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from arena.storage.store import CompetitionState
from protocol.messages import Ending
from tests.support.bot_processes import living
from tests.support.pipe_bot import pipe_bot
from tests.support.submitted_arena import submitted_arena

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
SPINS = """
for _ in range(4):
    if os.fork() == 0:
        os.close(1)
        while True: pass
"""
CRASHES = "import sys; sys.exit('no such model')"


async def test_submitted_bots_play_a_round_robin_with_a_house_bot(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT_S), submitted_arena(tmp_path, ann=11, ben=21) as arena:
        await arena.host.supervisor.launch(("ace_king_queen", "nash"), "house")
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


@pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux")
async def test_who_computes_out_of_turn_has_only_the_cores_that_nobody_else_wants(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its owner and the log are told once; nobody is out, and all that it has started is behind."""
    async with asyncio.timeout(TIMEOUT_S), submitted_arena(tmp_path, ann=11, eve=21) as arena:
        arena.programs[21] = pipe_bot(first=SPINS)
        report = await arena.play(arena.plan("ace_king_queen", "ann", "eve"))
        while "without a question" not in caplog.text:
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)  # for a look of the sampler
        behind = {name: policies(name) for name in ("ann", "eve")}
        again = await arena.play(arena.plan("ace_king_queen", "ann", "eve"))

    assert not report.verdicts + again.verdicts
    assert set(behind["ann"]) == {os.SCHED_OTHER}
    assert behind["eve"][os.SCHED_OTHER] == 1, "its supervisor"
    assert behind["eve"][os.SCHED_IDLE] >= 5
    assert caplog.text.count("eve computed, or") == caplog.text.count(" without a question") == 1
    assert [number for number, _, text in arena.stderr if "without a question" in text] == [21]


def policies(name: str) -> Counter[int]:
    """How the processes of a bot are scheduled."""
    return Counter(map(os.sched_getscheduler, living(name)))
