"""Matches whose bots run on hosts, in virtual time: networks that are slow or cut, hosts that die."""

from __future__ import annotations

import asyncio
import os
from itertools import count
from random import Random

import pytest

from arena.hosts.host_links import open_link
from arena.hosts.hosted_bots import HostedBots
from arena.hosts.messages import BotLink, SeatProgram
from arena.storage.models import Act
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits
from tests.support.hosted_arena import hosted_arena
from tests.support.not_none import not_none
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time(limit_s=600)

LIMITS = Limits(decision_ms=100, bank_ms=0, hard_ms=100, wall_ms=400)
FOUR = {"ann": 1, "ben": 2, "cyd": 3, "dan": 4}


async def test_bots_on_two_hosts_play_a_round_robin() -> None:
    async with hosted_arena(LIMITS, **FOUR) as here:
        for name in ("h1", "h2"):
            here.machine(name).start()
        report = await here.arena.begin(here.plan(*FOUR, matches=4))

    assert (report.played, report.verdicts) == (24, ())
    assert all(machine.launched for machine in here.machines)


async def test_a_host_cannot_pose_as_another() -> None:
    async with hosted_arena(LIMITS, ann=1, ben=2) as here:
        with pytest.raises(ArenaError, match="403"):
            await open_link("h2", here.host.url, here.links.ticket("h1"), "", _never_opened)


def _never_opened(link: BotLink) -> HostedBots:
    raise AssertionError("it was refused")


@pytest.mark.parametrize("latency_s", [0.0, 1.0])
async def test_the_network_is_charged_to_nobody(latency_s: float) -> None:
    """Each decision takes 90 of 100 ms, and the way to the host ten times as long."""
    virtual_loop().network.latency_s = latency_s
    async with hosted_arena(LIMITS, ann=1, ben=2) as here:
        here.machine("h1", lambda name: 0.09).start()
        report = await here.arena.begin(here.plan("ann", "ben"))

    assert (report.played, report.verdicts) == (1, ())


@pytest.mark.parametrize("latency_s", [0.0, 1.0])
async def test_who_computes_too_long_is_out_by_the_clock_of_the_host(latency_s: float) -> None:
    virtual_loop().network.latency_s = latency_s
    async with hosted_arena(LIMITS, ann=1, ben=2) as here:
        here.machine("h1", lambda name: 60.0 if name.startswith("ann") else 0.01).start()
        report = await here.arena.begin(here.plan("ann", "ben"))

    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind, verdict.enforced) == ("ann", Ending.CPU, "time (script)")
    assert verdict.taken_ms is not None
    assert 100 < verdict.taken_ms <= 300


@pytest.mark.parametrize("fault", ["dies", "is cut off", "is cut off and back", "bus"])
async def test_what_a_lost_host_has_begun_is_played_again(fault: str) -> None:
    async with hosted_arena(LIMITS, **FOUR) as here:
        first, second = (here.machine(name, lambda name: 0.05) for name in ("h1", "h2"))
        first.start()
        playing = here.arena.begin(here.plan(*FOUR, matches=8))
        await asyncio.sleep(2)
        second.start()
        if fault == "dies":
            await first.die()
        elif fault == "bus":
            here.bus.is_down = True
        else:
            virtual_loop().network.dead.add("h1")
            await asyncio.sleep(10)
            assert first.running == 0, "a host that is cut off ends its bots"
            await asyncio.sleep(20)
            if fault == "is cut off and back":
                virtual_loop().network.dead.discard("h1")
        report = await playing

    assert (report.played, report.verdicts) == (48, ())


async def test_a_program_that_cannot_be_sent_any_more_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with hosted_arena(LIMITS, ann=1, ben=2) as here:
        sent, asked = here.seat_program, count(1)

        async def once_gone(name: str, submission: int | None, game: str) -> SeatProgram:
            if next(asked) == 3:  # the first two are asked for room
                raise UsageError(f"{name}: its folder is gone")
            return await sent(name, submission, game)

        monkeypatch.setattr(here, "seat_program", once_gone)
        here.machine("h1").start()
        report = await here.arena.begin(here.plan("ann", "ben"))

    assert (report.played, report.verdicts) == (1, ())
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [("WARNING", "a bot cannot be started: ann: its folder is gone")]


@pytest.mark.parametrize("order", ["bots", "bots host", "host bots"])
async def test_who_is_killed_with_its_host_is_not_to_blame(order: str) -> None:
    async with hosted_arena(LIMITS, ann=1, ben=2) as here:
        first, second = (here.machine(name, lambda name: 0.05) for name in ("h1", "h2"))
        first.start()
        playing = here.arena.begin(here.plan("ann", "ben", matches=80))
        await asyncio.sleep(2)
        second.start()
        for killed in order.split():
            if killed == "host":
                not_none(first.host).leave()
            else:
                first.launchers[0].kill()
            await asyncio.sleep(0.3)
        report = await playing

    is_lost = "host" in order
    assert (report.played == 80, not report.verdicts) == (is_lost, is_lost)


@pytest.mark.parametrize("is_leaving", [False, True])
async def test_no_match_begins_on_a_host_that_takes_no_more_bots(is_leaving: bool) -> None:
    """Also none of bots that are warm there."""
    asked: list[str] = []

    def think(name: str) -> float:
        asked.append(name)
        return 0.05

    async with hosted_arena(LIMITS, ann=1, ben=2) as here:
        first, second = here.machine("h1", think), here.machine("h2")
        first.start()
        playing = here.arena.begin(here.plan("ann", "ben", matches=80))
        await asyncio.sleep(2)
        if is_leaving:
            not_none(first.host).leave()
        else:
            await here.directory.drain("h1", is_draining=True)
        await asyncio.sleep(3)
        before = len(asked)
        await asyncio.sleep(10)
        assert len(asked) == before > 0
        if is_leaving:
            second.start()
        else:
            await here.directory.drain("h1", is_draining=False)
        report = await playing

    assert (report.played, report.verdicts) == (80, ())


@pytest.mark.parametrize("seed", range(int(os.environ.get("HOST_SCHEDULES", "4"))))
async def test_J5_every_pairing_counts_once_whatever_becomes_of_hosts_and_bus(seed: int) -> None:
    """Faults at random moments; at the end all is well again, and what waits is resumed."""
    random = Random(seed)
    network = virtual_loop().network
    async with hosted_arena(LIMITS, **FOUR) as here:
        names = ["h1", "h2"]
        machines = {name: here.machine(name, lambda name: random.random() / 20) for name in names}
        for machine in machines.values():
            machine.start()
        competition = here.host.compete(here.plan(*FOUR, matches=8))
        playing = here.arena.begin(competition)
        for _ in range(random.randint(1, 6)):
            await asyncio.sleep(random.expovariate(1))
            name = random.choice(names)
            fault = random.choice(["kill", "cut", "heal", "bus"])
            if fault == "kill":
                await machines[name].die()
                machines[name].start()
            elif fault == "cut":
                network.dead.add(name)
            elif fault == "heal":
                network.dead.clear()
            else:
                here.bus.is_down = not here.bus.is_down
        network.dead.clear()
        here.bus.is_down = False
        while not playing.done():
            await asyncio.sleep(10)
            if competition.stage.is_stuck:
                competition.resume(
                    Act(competition=competition.id, at=0.0, who="prof", what="resume")
                )
        report = await playing

    assert (report.played, report.verdicts) == (48, ())
