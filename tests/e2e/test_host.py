"""A whole arena: bots that it launches, several competitions at once, and who has which name."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect

from arena.competitions.listener import Listener
from arena.competitions.live_arena import LiveArena
from arena.formats.spec import Form, Plan, RelaunchSpec, plan_of
from arena.games.catalogue import GAMES
from arena.sandbox.command import Program
from arena.storage.live_results import LiveResults
from arena.storage.models import CompetitionReport
from arena.storage.store import Store
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits
from tests.support.pipe_bot import pipe_bot

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
LIMITS = Limits(decision_ms=2_000, hard_ms=4_000, wall_ms=2_000, hello_ms=20_000)

# A bot over its pipes: it never answers in the games that its command line names, and with `late`
# it waits before hello.
BOT = pipe_bot(
    ("three_card_poker", "blackjack"),
    tables=2,
    first='games = {}\nif "late" in sys.argv: sys.stdin.readline()',
    invited='games[it["match"]] = it["game"]',
    asked='if games[it["match"]] in sys.argv: continue',
)


def program(*words: str) -> Program:
    return Program((sys.executable, "-c", BOT, *words), stdio=True)


@asynccontextmanager
async def arena(tmp_path: Path) -> AsyncIterator[LiveArena]:
    with Store(tmp_path / "arena.db") as store:
        async with asyncio.timeout(TIMEOUT_S), LiveArena(store, limits=LIMITS) as host:
            yield host


async def come(host: LiveArena, *names: str) -> None:
    while set(names) - set(host.gateway.players):
        await host.wait_for_change()


async def refusal(host: LiveArena, name: str) -> tuple[str, str]:
    """The type and the code of the answer to another bot's hello with this name."""
    async with connect(host.url) as websocket:
        answer = await hello(websocket, name)
        return answer["type"], answer.get("code", "")


async def hello(websocket: ClientConnection, name: str, game: str = "blackjack") -> dict[str, Any]:
    """Say hello; the answer."""
    fields = {"type": "hello", "protocol": 1, "name": name, "games": [game]}
    await websocket.send(json.dumps(fields))
    answer: dict[str, Any] = json.loads(await websocket.recv())
    return answer


def plan_for(
    game: str, settings: dict[str, object], players: tuple[str, ...], *form: Form, **more: Any
) -> Plan:
    rules = GAMES[game]
    fields = {"limits": LIMITS, **more}
    return plan_of(rules, rules.vocabulary.read_settings(settings), players, *form, **fields)


def league(host: LiveArena, game: str, *players: str, **settings: object) -> Any:
    return host.play(host.compete(plan_for(game, settings, players)))


async def test_J3_a_launched_bot_that_is_late_in_one_competition_goes_on_in_another(
    tmp_path: Path,
) -> None:
    async with arena(tmp_path) as host:
        await host.supervisor.launch_program(program("three_card_poker"), "ann")
        await come(host, "ann")
        late, fine = await asyncio.gather(
            league(host, "three_card_poker", "ann"), league(host, "blackjack", "ann", hands=200)
        )

        assert [verdict.kind for verdict in late.verdicts] == [Ending.TIMEOUT]
        assert fine.verdicts == ()


async def test_a_name_is_launched_once_and_the_first_goes_on(tmp_path: Path) -> None:
    async with arena(tmp_path) as host:
        await host.supervisor.launch_program(program(), "ann")
        with pytest.raises(ArenaError, match="expected a name that no bot has"):
            await host.supervisor.launch_program(program(), "ann")
        with pytest.raises(ArenaError, match="got 'ANN', and 'ann' is here"):
            await host.supervisor.launch_program(program(), "ANN")
        await come(host, "ann")
        report = await league(host, "blackjack", "ann", hands=2)
        enforced = host.gateway.players["ann"].enforced

        assert report.verdicts == ()
        assert enforced.startswith("time, memory and processes")


async def test_nobody_takes_the_name_of_a_launched_bot_before_it_says_hello(tmp_path: Path) -> None:
    async with arena(tmp_path) as host:
        await host.supervisor.launch_program(program("late"), "ann")

        assert await refusal(host, "ann") == ("refused", "name")
        assert "ann" not in host.gateway.players


async def test_a_bot_that_has_ended_may_be_launched_again(tmp_path: Path) -> None:
    async with arena(tmp_path) as host:
        gone = Program((sys.executable, "-c", "raise SystemExit(3)"))
        await host.supervisor.launch_program(gone, "ann")
        while "ann" not in host.supervisor.ended:
            await host.wait_for_change()

        assert host.supervisor.ended["ann"] == "crashed: exit status 3"

        while True:  # until what it had has been cleared away
            try:
                await host.supervisor.launch_program(program(), "ann")
                break
            except ArenaError:
                await asyncio.sleep(0.01)
        await come(host, "ann")

        assert "ann" not in host.supervisor.ended


def until_ruled(deed: str) -> Program:
    """A bot that does something at every question, unless its folder has a file `ruled`."""
    code = pipe_bot(("blackjack",), tables=2, asked=f"if not os.path.exists('ruled'):\n    {deed}")
    return Program((sys.executable, "-c", code), stdio=True)


async def forgiving(
    folder: Path, bot: Program, forgive: int, mark: str = "ruled", matches: int = 4
) -> tuple[CompetitionReport, LiveResults]:
    """Play a league of one launched bot with two tables; a verdict puts a file into its folder."""
    marks = folder / "marks"
    marks.mkdir()
    plan = plan_for(
        "blackjack",
        {"hands": 2},
        ("ann",),
        matches=matches,
        limits=msgspec.structs.replace(LIMITS, wall_ms=1_000),
        forgive=forgive,
        bots=(RelaunchSpec(name="ann", words=bot.words, stdio=True, folder=str(marks)),),
    )
    listener = Listener()
    listener.verdict_given = lambda verdict: (marks / mark).touch()  # type: ignore[method-assign]
    with Store(folder / "arena.db") as store:
        async with (
            asyncio.timeout(TIMEOUT_S),
            LiveArena(store, limits=LIMITS, listener=listener) as host,
        ):
            report = await host.play(host.compete(plan))
            await store.flushed()
            return report, LiveResults(store, report.competition)


@pytest.mark.parametrize(
    ("deed", "kind"),
    [
        ("os._exit(3)", Ending.CRASH),
        ("say(type='goodbye')", Ending.DISCONNECT),
        ("time.sleep(1000)", Ending.TIMEOUT),
    ],
)
async def test_J3_a_launched_bot_that_was_forgiven_is_started_again(
    tmp_path: Path, deed: str, kind: Ending
) -> None:
    report, results = await forgiving(tmp_path, until_ruled(deed), 1)

    [row] = report.standings
    lost = row.forgiven  # one match, or both that it was at
    first, *others = [verdict.kind for verdict in report.verdicts]
    assert (first, 1 + len(others)) == (kind, lost)
    assert {kind, Ending.ABSENT}.issuperset(others), "it may not have been ready there"
    assert len({verdict.event for verdict in report.verdicts}) == 1
    assert all(verdict.forgiven for verdict in report.verdicts)
    assert (row.rank, row.played) == (1, 4)
    assert 1 <= lost <= 2
    assert results.standings == report.standings
    assert results.verdicts == report.verdicts


@pytest.mark.parametrize(
    "program",
    [
        until_ruled("os._exit(3)"),
        Program((sys.executable, "-c", "raise SystemExit(3)"), stdio=True),
    ],
    ids=["at a table", "before hello"],
)
async def test_J3_a_launched_bot_that_always_crashes_is_not_started_for_ever(
    tmp_path: Path, program: Program
) -> None:
    report, results = await forgiving(tmp_path, program, 2, "other", 50)

    [row] = report.standings
    assert (row.rank, row.played, row.forgiven) == (None, 0, 0)
    assert len({verdict.event for verdict in report.verdicts}) == 3
    assert [verdict.forgiven for verdict in report.verdicts].count(False) == 1
    assert report.verdicts[-1].forgiven is False
    assert results.standings == report.standings
