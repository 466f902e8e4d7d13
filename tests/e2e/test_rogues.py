"""Every way to misbehave, by processes (tests/support/rogues/rogue.py), in the game that matters.

All rogues are connected at once to one arena, each in a competition of its own with bots that
behave. This season is played once; every test then checks one rogue of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from arena.competitions.live_arena import LiveArena
from arena.formats.spec import Form, plan_of
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, Record
from arena.games.replay import replay
from arena.sandbox.launcher import read_program
from arena.storage.models import CompetitionReport
from arena.storage.store import MatchRow, Store
from bots.client import Client
from protocol.messages import Ending, Limits, Verdict
from protocol.strategy import find, house_bots
from tests.support.gateway_bots import SHORT
from tests.support.rogues import rogue
from tests.support.rogues.rogue import KINDS, Misbehaviour

pytestmark = pytest.mark.e2e

ROGUE = str(Path(rogue.__file__).resolve())
TIMEOUT_S = 240.0  # for a machine that is slow; a season takes some twelve seconds

LIMITS = Limits(
    decision_ms=4_000,
    bank_ms=500,
    hard_ms=4_500,
    wall_ms=20_000,
    start_ms=6_000,
    grace_ms=2_000,
    hello_ms=8_000,
    frame_bytes=16 * 1024,
    buffer_bytes=64 * 1024,
    unanswered=5_000,
    memory_mib=128,
    processes=16,
)
"""Whoever behaves keeps them on a machine that is twenty times slower, beside all these."""

OF_ALONE = msgspec.structs.replace(LIMITS, decision_ms=500, bank_ms=2_000)
ALONE = {
    **dict.fromkeys(("stale", "spin"), OF_ALONE),
    "sleep": msgspec.structs.replace(LIMITS, wall_ms=1_500),
}
"""A bot that is not read for a second, or computes, must lose by that; nobody else plays there."""

ELSEWHERE = "close-1011"
"""Soon after the arena stood still that is no crash (J7); `test_gateway` has it, on its own."""

MATCHED = [
    name
    for name, kind in KINDS.items()
    if kind.ending is not None and not kind.launched and name != ELSEWHERE
]
STRANGERS = [name for name, kind in KINDS.items() if kind.ending is None]
LAUNCHED = [name for name, kind in KINDS.items() if kind.launched and sys.platform == "linux"]
"""Only on Linux are all processes of a bot seen."""
HONEST = ("honest 1", "honest 2", "honest 3", "honest 4")


class RogueResult(NamedTuple):
    """How one rogue fared; some never come to a match."""

    name: str
    kind: Misbehaviour
    said: tuple[dict[str, Any], ...]  # the messages that it printed
    status: int
    report: CompetitionReport | None
    played: MatchRow | None
    record: Record | None


class Season(NamedTuple):
    """Each rogue's cell, the reports of honest bots by game, and the processes that are left."""

    cells: dict[str, RogueResult]
    honest: dict[str, list[CompetitionReport]]
    left: tuple[str, ...]


# ---- Playing the season


async def _rogue(name: str, url: str) -> asyncio.subprocess.Process:
    """Start a rogue, which connects by itself."""
    words = [ROGUE, name, "--url", url, "--game", KINDS[name].game, "--name", name]
    return await _python(*words, stdout=asyncio.subprocess.PIPE)


async def _end(rogue: asyncio.subprocess.Process) -> tuple[tuple[dict[str, Any], ...], int]:
    """What a rogue has printed, and its exit status, once it has ended by itself."""
    out, _ = await rogue.communicate()
    assert rogue.returncode is not None, "it has ended"
    return tuple(map(json.loads, out.splitlines())), rogue.returncode


async def _python(*words: str, **options: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, *words, **options)


def _behave(host: LiveArena) -> list[asyncio.Task[object]]:
    """Bots that behave, each in all games, with room for a match with every rogue."""
    strategies = {game: find(game, next(iter(house_bots(game)))) for game in GAMES}
    bots = (Client(host.url, name, strategies, tables=64) for name in HONEST)
    return [asyncio.create_task(bot.run()) for bot in bots]


async def _compete(host: LiveArena, game: str, *names: str) -> CompetitionReport:
    """Play one competition; honest bots take the seats that are left."""
    players = (*names, *HONEST)[: GAMES[game].seats]
    limits = ALONE.get(" ".join(names), LIMITS)
    settings = GAMES[game].vocabulary.read_settings(SHORT[game])
    wait_s = (LIMITS.start_ms + LIMITS.grace_ms) / 1000
    plan = plan_of(GAMES[game], settings, players, limits=limits, wait_s=wait_s)
    return await host.play(host.compete(plan))


async def _launch(host: LiveArena, names: Iterable[str]) -> None:
    for name in names:
        words = (sys.executable, ROGUE, name, "--game", KINDS[name].game, "--after", "2")
        await host.supervisor.launch_program(read_program(shlex.join(words)), name)


async def _play(store: Store) -> Season:
    """All rogues at once, and bots that behave with each other, meanwhile and afterwards."""
    late = [name for name in LAUNCHED if KINDS[name].before is not None]
    early = [name for name in LAUNCHED if name not in late]
    async with (
        asyncio.timeout(TIMEOUT_S),
        LiveArena(store, limits=LIMITS) as host,
        contextlib.AsyncExitStack() as ends,
    ):
        beside = {name: await _rogue(name, host.url) for name in (*MATCHED, *STRANGERS)}
        ends.callback(_kill, beside.values())
        for bot in _behave(host):
            ends.callback(bot.cancel)
        await _launch(host, early)
        present = {*HONEST, *MATCHED, *early}
        missing = present - await host.wait_for_bots(present, TIMEOUT_S / 2)
        assert not missing, f"{sorted(missing)} did not connect"
        assert len(_left(host.url)) >= len(early), "else it would find nothing"
        playing = asyncio.gather(
            *(_compete(host, KINDS[name].game, name) for name in (*MATCHED, *LAUNCHED)),
            *(_compete(host, game) for game in GAMES),
        )
        await _launch(host, late)
        reports = await playing
        said = {name: await _end(rogue) for name, rogue in beside.items()}
        reports += [await _compete(host, game) for game in GAMES]
    await store.flushed()
    by_name = dict(zip((*MATCHED, *LAUNCHED), reports, strict=False))
    return Season(
        {name: _cell(store, name, by_name.get(name), *said.get(name, ((), 0))) for name in KINDS},
        {g: [each for each in reports[len(by_name) :] if each.game == g] for g in GAMES},
        _left(host.url),
    )


def _left(url: str) -> tuple[str, ...]:
    """The command lines of processes that this arena has started, by their environment."""
    left = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is none of ours
            if f"ARENA_URL={url}".encode() in environment.read_bytes().split(b"\0"):
                left.append(environment.with_name("cmdline").read_text())
    return tuple(left)


def _kill(processes: Iterable[asyncio.subprocess.Process]) -> None:
    for process in processes:
        if process.returncode is None:
            process.kill()


def _cell(
    store: Store,
    name: str,
    report: CompetitionReport | None,
    said: tuple[dict[str, Any], ...],
    status: int,
) -> RogueResult:
    """What the store has of a rogue's competition; it played there only once."""
    if report is None:
        return RogueResult(name, KINDS[name], said, status, None, None, None)
    [competition] = [
        competition.id for competition in store.competitions() if name in competition.plan.players
    ]
    [played] = store.matches(competition)
    record = store.record(played.id)
    return RogueResult(name, KINDS[name], said, status, report, played, record)


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Season:
    """What all rogues did, once."""
    with Store(tmp_path_factory.mktemp("rogues") / "arena.db") as store:
        return asyncio.run(_play(store))


# ---- Looking at it

WORDS = {
    "crash": r"crashed: exit status 3",
    "exit": r"crashed: exit status 1",
    "never-starts": r"did not come within 8,?000 ms",
    "hog": r"memory [\d,]+ MiB > 128 MiB \((sampled|cgroup)\)",
    "hog-child": r"memory [\d,]+ MiB > 128 MiB \((sampled|cgroup)\)",
    "hog-file": r"memory [\d,]+ MiB > 128 MiB \((sampled|cgroup)\)",
    "fork-bomb": r"processes \d+ > 16 \((sampled|cgroup)\)",
    "spin": r"out of time: [\d,]+ ms of CPU for a decision \(limit [\d,]+ ms, credit 0 ms\), bank",
    "sleep": r"out of time: [\d,]+ ms for a decision \(limit [\d,]+ ms, credit [\d,]+ ms\)",
}
"""What the verdict says of who was launched: the figure, the limit, and what found out."""


@pytest.mark.parametrize("name", [*MATCHED, *LAUNCHED])
def test_J2_a_rogue_is_out_for_exactly_what_it_did(name: str, season: Season) -> None:
    check(season.cells[name])


def check(cell: RogueResult) -> None:
    """Check the word, the offender, the evidence and the others' results."""
    assert cell.status == (3 if cell.name == "vanish" else 0), "its own fault"
    assert cell.report is not None
    assert cell.played is not None
    assert cell.record is not None
    seat = cell.played.players.index(cell.name)
    ended = cell.played.result.termination
    assert (ended.kind, ended.text) == (cell.kind.ending, ended.text)
    assert replay(cell.record).record.to_json() == cell.record.to_json()
    if cell.kind.launched and cell.kind.asked:
        assert cell.record.enforced[seat].startswith("time, memory and processes (")
    if cell.kind.ending == Ending.COMPLETED:
        assert ended.seat is None
        assert cell.report.verdicts == ()
        assert told(cell)["termination"]["kind"] == "completed"
        return
    assert ended.seat == seat
    [verdict] = cell.report.verdicts
    check_evidence(cell, verdict, seat)
    check_the_others(cell, seat)
    if cell.kind.told:
        assert told(cell)["verdict"] == msgspec.to_builtins(verdict)


def check_evidence(cell: RogueResult, verdict: Verdict, seat: int) -> None:
    """Rules J4: what was asked, what was legal, what came back, the times, the limits."""
    assert cell.played is not None
    assert (verdict.kind, verdict.bot, verdict.seat) == (cell.kind.ending, cell.name, seat)
    assert verdict.match == cell.played.id
    assert re.search(WORDS.get(cell.name, "."), verdict.text)
    assert verdict.advice
    assert verdict.mechanism
    if cell.name in ("sleep", "spin"):
        clock = "wall cap" if cell.name == "sleep" else "CPU clock"
        assert verdict.mechanism == clock
    assert verdict.limits == ALONE.get(cell.name, LIMITS)
    assert bool(verdict.asked) is bool(verdict.legal) is cell.kind.asked
    assert bool(verdict.got) is cell.kind.got
    if cell.kind.asked:
        assert verdict.waited_ms is not None


def check_the_others(cell: RogueResult, seat: int) -> None:
    """Rules J3: nobody else is harmed or helped."""
    assert cell.report is not None
    assert cell.played is not None
    result, players = result_of(cell), cell.report.players
    game = GAMES[result.record.game]
    match cell.report.form:
        case Form.ROUND_ROBIN:
            assert result.winner == 1 - seat
            assert {row.name: row.eliminated for row in cell.report.standings} == {
                cell.name: result.termination,
                **dict.fromkeys(set(players) - {cell.name}),
            }
        case Form.ELIMINATION:
            last = cell.report.ranking[-1]
            assert (last.names, last.offence) == ((cell.name,), True)
            scores = dict(zip(cell.played.players, result.scores, strict=True))
            others = [scores[name] for place in cell.report.ranking[:-1] for name in place.names]
            assert others == sorted(others, reverse=True)
            assert len(others) == len(players) - 1
        case Form.LEAGUE:
            assert game.stake is not None
            settings = game.vocabulary.read_settings(result.record.settings)
            assert result.scores == (-game.stake(settings),)
            [row] = cell.report.standings
            assert (row.rank, row.eliminated) == (None, result.termination)


def result_of(cell: RogueResult) -> MatchResult:
    """The result as it was stored."""
    assert cell.played is not None
    assert cell.record is not None
    played = cell.played
    result = played.result
    return MatchResult(result.scores, result.points, result.termination, record=cell.record)


def told(cell: RogueResult) -> dict[str, Any]:
    """The `over` that the rogue has heard."""
    return next(message for message in cell.said if message["type"] == "over")


@pytest.mark.parametrize("name", STRANGERS)
def test_who_drips_its_hello_is_cut(name: str, season: Season) -> None:
    cell = season.cells[name]

    assert ([message["type"] for message in cell.said], cell.status) == (["gone"], 0)


@pytest.mark.parametrize("game", GAMES)
def test_the_others_play_on_meanwhile_and_afterwards(game: str, season: Season) -> None:
    meanwhile, after = season.honest[game]

    assert meanwhile.verdicts == after.verdicts == ()
    assert meanwhile.played == after.played == 1
    assert any(kind.game == game for kind in KINDS.values()), "each game has rogues"


@pytest.mark.skipif(not LAUNCHED, reason="only on Linux are all processes of a bot seen")
@pytest.mark.parametrize(
    ("name", "status", "last_words"),
    [("crash", 3, "it was the butler\n"), ("exit", 1, "no such deck\n")],
)
def test_J4_a_crash_is_explained_by_its_status_and_last_words(
    name: str, status: int, last_words: str, season: Season
) -> None:
    report = season.cells[name].report

    assert report is not None
    [verdict] = report.verdicts
    assert (verdict.exit_status, verdict.stderr) == (status, last_words)


def test_nothing_that_was_launched_is_left_running(season: Season) -> None:
    assert season.left == ()
