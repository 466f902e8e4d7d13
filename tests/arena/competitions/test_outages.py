"""A class whose network is away (J9): our clients and a host, in virtual time.

A row says how many bots play, how they lose their network, and for how many seconds: `close` breaks
their connections, `drop` loses every packet, and so does `proxy`, where a proxy's kernel acknowledges
all the same. It is lost by `all`, where the run may `forgive` one event or more, by one bot `alone`, or by
two of one `team`. Then come the number of void matches, and by what all these bots are out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from arena.competitions.listener import Listener
from arena.storage.models import ARENA, Act
from bots.client import Client
from protocol.messages import Limits
from protocol.strategy import find
from tests.support.arena_in_memory import HostArena, in_host, plan_for
from tests.support.memory_network import MACHINE
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time(limit_s=1_500, tick_s=0.1)

HIGH_LOW = ("high_low", "counter", {"max_shuffles": 1})
GAMES = {"akq": ("ace_king_queen", "nash", {"hands": 30}), "high_low": HIGH_LOW}
BEGUN_S = 4.0  # all first matches are being played
OVER_S = 900.0
QUICK_S = 0.002
WAITS_S = 200.0  # longer than anything is waited for, but the instructor
TWO = ("b0", "b1")

ROWS = """
akq 2|6 close 6 all > 0
akq 2 close 60 all|forgive > 1
akq 6 drop 60 forgive > 0
akq 6 close 60 forgive > 12
high_low 4 drop 60 all > 0
high_low 16 close 60 all > 4
akq 5 close 300 all > some absent
akq 6 drop 300 all > some absent
akq 4 close 300 forgive > some absent
akq 4 close 500 forgive2 > some absent
akq 5 drop 500 forgive2 > some absent
high_low 8 close 300 all > 2 absent
akq 2 proxy 17|60 all > 1
akq 6 proxy 60 all > some
high_low 4 proxy 60 all > 1
akq 2 drop 130 alone|team > 0 disconnect
high_low 4 close|drop 130 alone > 0 disconnect
high_low 4 close|drop|proxy 130 team > 0 disconnect
"""


def rows(line: str) -> list[str]:
    """A row for each alternative of its words."""
    return [" ".join(words) for words in product(*(word.split("|") for word in line.split()))]


class Class(Listener):
    """Bots `b0`, `b1` … that come back by themselves, and what the instructor is told."""

    def __init__(self, game: tuple[str, str, Mapping[str, int]], bots: int) -> None:
        self.names = tuple(f"b{number}" for number in range(bots))
        self.lines: list[str] = []
        self._game, self._bot, self.settings = game
        self._arena: HostArena

    def told(self, text: str) -> None:
        self.lines.append(text)

    @asynccontextmanager
    async def comes(
        self,
        folder: Path | None = None,
        *,
        goes_on: bool = False,
        away_s: float = 0.0,
        **options: Any,
    ) -> AsyncIterator[HostArena]:
        """All are connected to an arena, until it closes; first it may go on without them."""
        virtual_loop().network.latency_s = 0.2
        limits = Limits()
        async with in_host(
            folder, limits=limits, is_attended=True, listener=self, **options
        ) as self._arena:
            if goes_on:
                [row] = self._arena.host.unfinished()
                self.playing = self._arena.begin(self._arena.host.resume(row))
            await asyncio.sleep(away_s)
            for name in self.names:
                copy_context().run(self._connect, name)
                await self._arena.until(lambda name=name: self._arena.plays(name))  # type: ignore[misc]
            yield self._arena

    def _connect(self, name: str) -> None:
        MACHINE.set(self._machine(name))
        strategy = {self._game: find(self._game, self._bot)}
        self._arena.beside(Client(self._arena.url, name, strategy, tables=4).run())

    def plan(self, **more: Any) -> Any:
        """What they play, at the usual limits."""
        own = {"seed": "5" * 64} if self._game == "high_low" else {}
        settings = dict(self.settings)
        return plan_for(
            self._game, self.names, settings=settings, limits=Limits(), **{**own, **more}
        )

    async def loses(self, how: str, seconds: float, names: Sequence[str]) -> None:
        """Their network is away for so long."""
        network = virtual_loop().network
        network.acknowledges = how == "proxy"
        machines = set(map(self._machine, names))
        network.dead |= machines
        for line in tuple(network.lines):
            if how == "close" and line.host in machines:
                line.breaks()
        await asyncio.sleep(seconds)
        network.dead -= machines

    def speed_up(self) -> None:
        """Make the network quick for what is left: each wait costs the arena many ticks."""
        network = virtual_loop().network
        network.latency_s = QUICK_S
        for line in network.lines:
            line.latency_s = QUICK_S

    def _machine(self, name: str) -> str:
        return f"10.0.0.{self.names.index(name)}"


@pytest.mark.parametrize("row", [row for line in ROWS.split("\n")[1:-1] for row in rows(line)])
async def test_J9_who_is_out_after_an_outage(row: str) -> None:
    game, bots, how, seconds, whose, _, voids, *kind = row.split()
    members = Class(GAMES[game], int(bots))
    who = {"alone": TWO[:1], "team": TWO}.get(whose, members.names)
    teams = dict.fromkeys(TWO, "red") if whose == "team" else {}
    forgive = int(whose[7:] or 1) if whose.startswith("forgive") else 0
    async with members.comes(proxies=["0.0.0.0/0"] if how == "proxy" else []) as arena:
        playing = arena.begin(members.plan(teams=teams, forgive=forgive))
        await asyncio.sleep(BEGUN_S)
        await members.loses(how, float(seconds), who)
        members.speed_up()
        report = await asyncio.wait_for(playing, OVER_S)
        await arena.store.flushed()
        matches = arena.store.matches(report.competition)

    void = sum(match.result.termination.kind == "void" for match in matches)
    assert voids == str(void) or (voids == "some" and void)
    ruled = {name: word for word in kind for name in who}
    for forgiven in (False, True)[: 1 + min(1, forgive)]:
        given = [verdict for verdict in report.verdicts if verdict.forgiven == forgiven]
        assert {verdict.bot: verdict.kind.value for verdict in given} == ruled
        absent = [verdict.text for verdict in given if verdict.kind.value == "absent"]
        cause = re.compile(r": its connection was lost at [\d:]{8} UTC in match ")
        assert all(map(cause.search, absent))


@pytest.mark.parametrize("order", ["01", "10"])
async def test_J9_the_order_in_which_connections_are_lost_decides_nothing(order: str) -> None:
    members = Class(GAMES["akq"], 2)
    async with members.comes() as arena:
        playing = arena.begin(members.plan())
        await asyncio.sleep(BEGUN_S)
        first, second = tuple(order)
        losing = arena.beside(members.loses("close", 60, (f"b{first}",)))
        await asyncio.sleep(3)
        await members.loses("close", 57, (f"b{second}",))
        await losing
        report = await playing

    assert report.verdicts == ()


@pytest.mark.parametrize(("away_s", "ruled"), [(170, 0), (190, 2)])
async def test_J9_a_restart_shortens_nobodys_time(
    tmp_path: Path, away_s: float, ruled: int
) -> None:
    members = Class(GAMES["akq"], 2)
    async with members.comes(tmp_path) as arena:
        arena.begin(members.plan())
        await asyncio.sleep(BEGUN_S)

    async with members.comes(tmp_path, goes_on=True, away_s=away_s):
        report = await members.playing

    assert len(report.verdicts) == ruled
    cause = "did not come within 60,000 ms: it has not played since the arena was started again at "
    assert all(verdict.text.startswith(cause) for verdict in report.verdicts)


async def test_J9_who_is_away_again_is_asked_again() -> None:
    members = Class(HIGH_LOW, 4)
    async with members.comes(proxies=["0.0.0.0/0"]) as arena:
        playing = arena.begin(members.plan(teams=dict.fromkeys(TWO, "red")))
        await asyncio.sleep(BEGUN_S)
        losing = arena.beside(members.loses("proxy", 200, TWO[1:]))
        for here_s, away_s in ((8, 50), (20, 120)):
            await asyncio.sleep(here_s)
            await members.loses("proxy", away_s, TWO[:1])
        await losing
        report = await playing

    assert sorted(verdict.bot for verdict in report.verdicts) == ["b0", "b1"]


@pytest.mark.parametrize(("how", "seconds"), [("close", 45), ("drop", 140)])
async def test_J9_who_leaves_with_a_friend_again_gains_nothing(
    tmp_path: Path, how: str, seconds: float
) -> None:
    """Also if the arena was killed since, until the instructor wants it played again."""
    members = Class(HIGH_LOW, 4)
    async with members.comes(tmp_path) as arena:
        arena.begin(members.plan())
        for _ in range(2):
            while not arena.host.referee.tables:
                await asyncio.sleep(1)
            await asyncio.sleep(BEGUN_S)
            await members.loses(how, seconds, TWO)
        await asyncio.sleep(WAITS_S)  # nothing is played
        [row] = arena.host.unfinished()
        void = arena.store.matches(row.id)
        [line] = members.lines

    assert [match.result.termination.kind for match in void] == ["void", "void"]
    latest = dict(zip(void[-1].players, void[-1].result.scores, strict=True))
    ahead = max(latest, key=lambda name: latest[name])
    assert f"match {void[-1].id} was void as " in line
    assert f" not for the first time; ahead was {ahead} {latest[ahead]}, before " in line
    assert line.endswith(f"to have it played again, `arena resume {row.id}`")

    async with members.comes(tmp_path) as arena:
        competition = arena.host.resume(row)
        playing = arena.begin(competition)
        await asyncio.sleep(WAITS_S)

        assert members.lines == [line, line]
        assert not playing.done()

        at = arena.store.matches(row.id)[-1].finished_at + 1
        competition.resume(Act(competition=row.id, at=at, who="prof", what="resume"))
        report = await playing
        flags = [act for act in arena.store.actions(row.id) if act.who == ARENA]

    assert report.ranking
    assert len(flags) == 1
