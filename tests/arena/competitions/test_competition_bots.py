"""The launched bots of competitions; `tests/e2e` has those that are processes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from arena.competitions import competition_bots
from arena.competitions.competition_bots import CompetitionBots
from arena.engine.verdict import Finding
from arena.formats.spec import RelaunchSpec
from protocol.errors import ArenaError
from protocol.messages import Ending, Mechanism


async def test_a_game_without_house_bots_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(competition_bots, "house_bots", lambda game: {})
    nobody: Any = None
    bots = CompetitionBots(nobody, nobody, (), nobody)

    with pytest.raises(ArenaError, match="a free chair needs a house bot for toy, none is install"):
        await bots.launch_house_bot("toy", "house-1")


class FakeSupervisor:
    """Bots that were launched, and those that were stopped."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.stopped: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def stop(self, name: str, finding: Finding) -> None:
        self.stopped.append(name)


@pytest.mark.parametrize(("is_out", "stopped"), [(False, []), (True, ["ann"])])
async def test_J3_who_offends_on_a_host_is_stopped_if_it_is_out(
    is_out: bool, stopped: list[str]
) -> None:
    """Its process here has done nothing: if it is forgiven it need not be started again."""
    player = SimpleNamespace(leaving=False, has_offended=False)
    gateway: Any = SimpleNamespace(players={"ann": player})
    competition: Any = SimpleNamespace(
        is_in=lambda name: not is_out,
        plan=SimpleNamespace(bots=(RelaunchSpec(name="ann", words=("sh",)),)),
    )
    supervisor: Any = FakeSupervisor("ann")
    bots = CompetitionBots(supervisor, gateway, [competition], gateway)
    verdict: Any = SimpleNamespace(
        bot="ann", kind=Ending.CRASH, text="crashed", mechanism=Mechanism.EXIT, forgiven=not is_out
    )
    bots.ruled(verdict)
    await asyncio.sleep(0)

    assert supervisor.stopped == stopped
    assert not player.leaving
