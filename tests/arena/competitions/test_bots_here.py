"""Who is here to compete and whose names are taken, the launched bots, and who is offered whom."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from arena.competitions import bots_here
from arena.competitions.bots_here import BotsHere
from arena.competitions.listener import Listener
from arena.formats.spec import Form, RelaunchSpec
from arena.games.verdict import Finding
from protocol.errors import ArenaError
from protocol.messages import Ending, Mechanism


class StoppingSupervisor:
    """Bots that were launched, and those that were stopped."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.stopped: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __iter__(self) -> Any:
        return iter(self.names)

    def stop(self, name: str, finding: Finding) -> None:
        self.stopped.append(name)


def here(players: dict[str, Any], supervisor: StoppingSupervisor, *competitions: Any) -> BotsHere:
    gateway: Any = SimpleNamespace(players=players)
    seating: Any = SimpleNamespace(look=lambda: None)
    launched: Any = supervisor
    bots = BotsHere(gateway, launched, seating, Listener())
    bots.competitions += competitions
    return bots


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("ANN", "ann/gin is connected"),
        ("ben", "ben has lost its connection and may come back"),
        ("cem", "cem/akq takes part in cup-1, which is not over"),
        ("dan", None),  # the instructor has taken it out
        ("flo", "flo takes part in cup-1, which is not over"),
        ("ours", "ours is here"),
        ("pat", "pat is here"),
        ("zed", None),
    ],
)
def test_what_somebodys_bots_do_here(name: str, use: str | None) -> None:
    connections = {"ann/gin": object(), "ben": None}
    players = {
        one: SimpleNamespace(name=one, connection=connection)
        for one, connection in connections.items()
    }
    cup = SimpleNamespace(
        id="cup-1",
        plan=SimpleNamespace(players=("cem/akq", "dan")),
        submitted=("flo",),
        ledger=SimpleNamespace(book=SimpleNamespace(removed={"dan": "removed by Eva"})),
    )
    bots = here(players, StoppingSupervisor("ours"), cup)
    page: Any = SimpleNamespace(people=SimpleNamespace(non_competing={"pat"}))
    bots.page = page

    assert bots.use_of(name) == use


async def test_bots_that_are_freed_together_are_offered_once() -> None:
    offers: list[Sequence[str]] = []
    plan = SimpleNamespace(form=Form.ROUND_ROBIN)
    arbiter = SimpleNamespace(playing=0)
    stage = SimpleNamespace(seat=offers.append)
    competition = SimpleNamespace(stage=stage, arbiter=arbiter, rest=0.0, plan=plan)
    bots = here({}, StoppingSupervisor(), competition)
    bots.freed(("ann", "ben"))
    bots.freed(("cem", "ann"))
    await asyncio.sleep(0)

    assert offers == [("ann", "ben", "cem")]

    bots.freed(("ben",))
    await asyncio.sleep(0)

    assert offers[1:] == [("ben",)]


async def test_a_game_without_house_bots_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bots_here, "house_bots", lambda game: {})

    with pytest.raises(ArenaError, match="a free chair needs a house bot for toy, none is install"):
        await here({}, StoppingSupervisor()).launch_house_bot("toy", "house-1")


@pytest.mark.parametrize(("is_out", "stopped"), [(False, []), (True, ["ann"])])
async def test_J3_who_offends_on_a_host_is_stopped_if_it_is_out(
    is_out: bool, stopped: list[str]
) -> None:
    """Its process here has done nothing: if it is forgiven it need not be started again."""
    player = SimpleNamespace(leaving=False, has_offended=False)
    competition = SimpleNamespace(
        is_in=lambda name: not is_out,
        plan=SimpleNamespace(bots=(RelaunchSpec(name="ann", words=("sh",)),)),
    )
    supervisor = StoppingSupervisor("ann")
    verdict: Any = SimpleNamespace(
        bot="ann", kind=Ending.CRASH, text="crashed", mechanism=Mechanism.EXIT, forgiven=not is_out
    )
    here({"ann": player}, supervisor, competition).verdict_given(verdict)
    await asyncio.sleep(0)

    assert supervisor.stopped == stopped
    assert not player.leaving
