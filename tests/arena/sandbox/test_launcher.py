"""What is left of a bot whose start is given up, or that cannot be started now."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from arena.sandbox import bubblewrap, launcher, workdir
from arena.sandbox.launcher import Launcher, Program
from arena.sandbox.workdir import PreparedBot
from protocol.errors import ArenaError
from protocol.messages import Limits
from tests.support.descriptors import no_descriptors
from tests.support.needs import skip_without


async def test_a_start_cancelled_while_made_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, begun, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    made: list[PreparedBot] = []

    def prepare(*args: Any, **options: Any) -> PreparedBot:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait(10)
        made.append(workdir.prepare(*args, **options))
        return made[0]

    monkeypatch.setattr(launcher, "prepare", prepare)
    ours = Launcher(Limits(), (), lambda name, finding: None, isolate=False)
    start = asyncio.create_task(ours.start("ann", Program(("true",))))
    await begun.wait()
    start.cancel()
    loop.call_soon(goes_on.set)
    with pytest.raises(asyncio.CancelledError):
        await start

    assert [bot.scratch.exists() for bot in made] == [False]
    await ours.close()


async def test_no_shortage_makes_bots_start_without_a_sandbox() -> None:
    skip_without("bwrap")
    bubblewrap.probe.cache_clear()
    ours = Launcher(Limits(), (), lambda name, finding: None)
    with no_descriptors(), pytest.raises(ArenaError, match="Too many open files"):
        await ours.start("ann", Program(("true",)))
    await ours.close()

    assert bubblewrap.probe() is None
