"""Processes without a supervisor: what Windows has to do with, tried where there are signals."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from arena.sandbox.windows import PlainProcess
from arena.sandbox.workdir import PreparedBot
from protocol.errors import ArenaError, UsageError

pytestmark = pytest.mark.e2e

TIMEOUT_S = 20.0


def prepared(scratch: Path, *command: str) -> PreparedBot:
    return PreparedBot(scratch, command, isolated=False, group=None)


async def runs(source: str, scratch: Path) -> PlainProcess:
    return await PlainProcess.start(prepared(scratch, sys.executable, "-c", source), os.environ)


async def ended(process: PlainProcess) -> int | None:
    async with asyncio.timeout(TIMEOUT_S):
        return await process.ended


async def test_its_status_and_its_last_words_are_known(tmp_path: Path) -> None:
    source = "import sys\nprint('x' * 9_000 + 'end', end='', file=sys.stderr)\nsys.exit(3)"

    process = await runs(source, tmp_path)

    assert await ended(process) == 3
    assert process.stderr.tail == "x" * 1_997 + "end"
    await process.stop()  # it has ended: nothing happens


async def test_it_runs_in_its_directory(tmp_path: Path) -> None:
    process = await runs("open('mine', 'w')", tmp_path)

    assert await ended(process) == 0
    assert (tmp_path / "mine").exists()


POLITE = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
pathlib.Path("up").touch()
time.sleep(1000)
"""
DEAF = POLITE.replace("lambda *_: sys.exit(9)", "signal.SIG_IGN").replace(
    "pathlib.Path",
    "import subprocess\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
    "pathlib.Path",
)
"""Its child holds its stderr."""


@pytest.mark.parametrize(
    "is_polite",
    [
        pytest.param(
            True, marks=pytest.mark.skipif(sys.platform == "win32", reason="nothing is polite")
        ),
        False,
    ],
)
async def test_it_is_asked_before_it_is_killed(tmp_path: Path, is_polite: bool) -> None:
    process = await runs(POLITE if is_polite else DEAF, tmp_path)
    async with asyncio.timeout(TIMEOUT_S):
        while not (tmp_path / "up").exists():
            await asyncio.sleep(0.01)
        await process.stop()

    assert (await ended(process) == 9) is is_polite


async def test_what_cannot_be_started_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match="cannot start no-such-program: No such"):
        await PlainProcess.start(prepared(tmp_path, "no-such-program"), {})
    with pytest.raises(UsageError, match="stdio needs Linux or macOS"):
        await PlainProcess.start(prepared(tmp_path, sys.executable), {}, stdio=True)
