from __future__ import annotations

import asyncio
import time
from types import ModuleType

import pytest

from arena import event_loop
from arena.event_loop import ASYNCIO, CHOICE, UVLOOP, chosen, new_event_loop


@pytest.fixture
def uvloop(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delenv(CHOICE, raising=False)
    module: ModuleType = pytest.importorskip("uvloop")
    return module


def test_uvloop_is_taken_where_it_is_installed(uvloop: ModuleType) -> None:
    loop = new_event_loop()
    loop.close()

    assert chosen() == UVLOOP
    assert isinstance(loop, uvloop.Loop)


def test_asyncio_is_taken_where_uvloop_is_not_wanted(
    uvloop: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, ASYNCIO)
    loop = new_event_loop()
    loop.close()

    assert not isinstance(loop, uvloop.Loop)


def test_asyncio_is_taken_where_uvloop_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_loop, "find_spec", lambda name: None)

    assert chosen() == ASYNCIO


def test_the_clock_goes_on_within_an_iteration_and_is_that_of_timers(
    uvloop: ModuleType,
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        times = {loop.time() for _ in range(1000)}
        before = time.monotonic()

        assert len(times) > 100
        assert before <= loop.time() <= time.monotonic()
        rung: asyncio.Future[float] = loop.create_future()
        due = loop.time() + 0.02
        loop.call_at(due, lambda: rung.set_result(loop.time()))
        assert await rung >= due - 0.001

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(scenario())
