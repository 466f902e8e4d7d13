"""A class whose network is away (J9): our clients and a host, in virtual time.

A row says which bots lose what, and for how long: `close` breaks their connections, `drop` loses
every packet, and so does `proxy`, where a proxy's kernel acknowledges all the same. Then it says how
their matches ended, or a part of that, and who is out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
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

pytestmark = pytest.mark.virtual_time(limit_s=1_500)

AKQ = ("ace_king_queen", "nash", {"hands": 60})
SHORT_AKQ = ("ace_king_queen", "nash", {"hands": 6})
HIGH_LOW = ("high_low", "counter", {"max_shuffles": 1})
BEGUN_S = 4.0  # all first matches are being played
OVER_S = 900.0
WAITS_S = 200.0  # longer than anything is waited for, but the instructor
ONE, TWO = ("b0",), ("b0", "b1")
TEAM = {"b0": "red", "b1": "red"}


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
    async def comes(self, folder: Path | None = None, **options: Any) -> AsyncIterator[HostArena]:
        """All are connected to an arena, until it closes."""
        virtual_loop().network.latency_s = 0.2
        limits = Limits()
        async with in_host(
            folder, limits=limits, is_attended=True, listener=self, **options
        ) as self._arena:
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

    def _machine(self, name: str) -> str:
        return f"10.0.0.{self.names.index(name)}"


ALL: tuple[str, ...] = ()
ROWS: list[tuple[Any, ...]] = [
    # game, bots, how, seconds, forgive or teams, who, kinds of matches, who is out and by what
    *(
        (
            game,
            bots,
            how,
            seconds,
            forgive,
            ALL,
            voids if how == "close" and seconds == 60 else 0,
            "",
        )
        for game, bots, voids in ((AKQ, 2, 1), (AKQ, 4, 6), (AKQ, 6, 12), (HIGH_LOW, 4, 1))
        for how in ("close", "drop")
        for seconds in (6, 60)
        for forgive in ((0, 1) if game is AKQ else (0,))
    ),
    *(
        (SHORT_AKQ, 40, how, 60, 0, ALL, None if how == "close" else 0, "")
        for how in ("close", "drop")
    ),
    *((HIGH_LOW, 40, how, 60, 0, ALL, 10 * (how == "close"), "") for how in ("close", "drop")),
    *((AKQ, 6, how, 300, 0, ALL, 12, "absent absent") for how in ("close", "drop")),
    *((HIGH_LOW, 8, how, 300, 0, ALL, 2, "absent") for how in ("close", "drop")),
    (AKQ, 2, "proxy", 17, 0, ALL, 1, ""),
    *((AKQ, bots, "proxy", 60, 0, ALL, voids, "") for bots, voids in ((2, 1), (6, None))),
    (HIGH_LOW, 4, "proxy", 60, 0, ALL, 1, ""),
    # the cheats
    *((AKQ, 2, how, 130, 0, ONE, 0, "disconnect") for how in ("close", "drop")),
    *((HIGH_LOW, 4, how, 130, 0, ONE, 0, "disconnect") for how in ("close", "drop")),
    *((AKQ, 2, how, 130, TEAM, TWO, 0, "disconnect") for how in ("close", "drop")),
    *((HIGH_LOW, 4, how, 130, TEAM, TWO, 0, "disconnect") for how in ("close", "drop")),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(map(str, (row[0][0], *row[1:5]))))
async def test_J9_who_is_out_after_an_outage(row: Any) -> None:
    game, bots, how, seconds, forgive, who, voids, kind = row
    members = Class(game, bots)
    own = {"teams": forgive} if isinstance(forgive, dict) else {"forgive": forgive}
    async with members.comes(proxies=["0.0.0.0/0"] if how == "proxy" else []) as arena:
        playing = arena.begin(members.plan(**own))
        await asyncio.sleep(BEGUN_S)
        await members.loses(how, seconds, who or members.names)
        report = await asyncio.wait_for(playing, OVER_S)
        await arena.store.flushed()
        kinds = Counter(
            m.result.termination.kind.value for m in arena.store.matches(report.competition)
        )

    out = {verdict.bot: verdict.kind for verdict in report.verdicts}
    assert kinds["void"] == voids if voids is not None else kinds["void"] > 0
    assert set(out.values()) <= {kind.split()[0]} if kind else not out
    if kind:
        assert set(out) == set(who or members.names)


@pytest.mark.parametrize("order", ["01", "10"])
async def test_J9_the_order_in_which_connections_are_lost_decides_nothing(order: str) -> None:
    members = Class(AKQ, 2)
    async with members.comes() as arena:
        playing = arena.begin(members.plan())
        await asyncio.sleep(BEGUN_S)
        first, second = order
        losing = arena.beside(members.loses("close", 60, (f"b{first}",)))
        await asyncio.sleep(3)
        await members.loses("close", 57, (f"b{second}",))
        await losing
        report = await playing

    assert report.verdicts == ()


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
