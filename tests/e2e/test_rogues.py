"""Every way to misbehave in every game, by processes (tests/support/rogues/rogue.py).

All rogues of a game are connected at once to one arena, each in a competition of its own with bots
that behave. Such a season is played once per game, by the first test that asks for it; every test
then checks one cell of the matrix.
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

from arena.competitions.arena_host import Host
from arena.competitions.ledger import CompetitionReport
from arena.engine.match import MatchResult, Record
from arena.formats.spec import Form, plan_of
from arena.games import GAMES
from arena.games.replay import replay
from arena.sandbox.launcher import read_program
from arena.storage.store import MatchRow, Store
from protocol.messages import Ending, Limits, Verdict
from protocol.strategy import house_bots
from tests.support.rogues import rogue
from tests.support.rogues.rogue import KINDS, Misbehaviour

pytestmark = pytest.mark.e2e

ROGUE = str(Path(rogue.__file__).resolve())
TIMEOUT_S = 60.0  # a season takes a few seconds, most of them to start the processes

LIMITS = Limits(
    decision_ms=500,
    bank_ms=500,
    hard_ms=1_000,
    wall_ms=3_000,
    start_ms=2_000,
    grace_ms=500,
    hello_ms=1_500,
    frame_bytes=16 * 1024,
    buffer_bytes=64 * 1024,
    unanswered=5_000,
    memory_mib=128,
    processes=16,
)

SHORT: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 20},
    "gin_rummy": {"max_rounds": 2, "max_turns": 30},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 10},
    "blackjack": {"hands": 10},
}

CONNECTED = [name for name, kind in KINDS.items() if not kind.launched]
LAUNCHED = [name for name, kind in KINDS.items() if kind.launched]
HONEST = ("honest 1", "honest 2", "honest 3", "honest 4")


class RogueResult(NamedTuple):
    """How one rogue fared in one game; some never come to a match."""

    name: str
    kind: Misbehaviour
    said: tuple[dict[str, Any], ...]  # the messages that it printed
    status: int
    report: CompetitionReport | None
    played: MatchRow | None
    record: Record | None


class RoguesOutcome(NamedTuple):
    """A season: each rogue's cell, the reports of honest bots, and the processes that are left."""

    cells: dict[str, RogueResult]
    honest: tuple[CompetitionReport, ...]
    left: tuple[str, ...] = ()


# ---- Playing a season


async def _rogue(kind: str, game: str, url: str) -> asyncio.subprocess.Process:
    """Start a rogue, which connects by itself."""
    words = [ROGUE, kind, "--url", url, "--game", game, "--name", kind]
    return await _python(*words, stdout=asyncio.subprocess.PIPE)


async def _end(rogue: asyncio.subprocess.Process) -> tuple[tuple[dict[str, Any], ...], int]:
    """What a rogue has printed, and its exit status, once it has ended by itself."""
    out, _ = await rogue.communicate()
    assert rogue.returncode is not None, "it has ended"
    return tuple(map(json.loads, out.splitlines())), rogue.returncode


async def _python(*words: str, **options: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, *words, **options)


async def _honest(host: Host, game: str) -> list[asyncio.subprocess.Process]:
    """Bots that behave, as processes, each with room for a table with every rogue."""
    bot = next(iter(house_bots(game)))
    return [
        await _python(
            *("-P", "-m", "bots", game, bot, "--url", host.url, "--quiet"),
            *("--name", name, "--tables", "64", "--patience", "5"),
        )
        for name in HONEST
    ]


async def _present(host: Host, names: Iterable[str]) -> None:
    """Wait until all have said hello."""
    missing = {*names} - await host.wait_for_bots(names, TIMEOUT_S * 2 / 3)
    assert not missing, f"{sorted(missing)} did not connect"


async def _compete(host: Host, game: str, *names: str) -> CompetitionReport:
    """Play one competition; honest bots take the seats that are left."""
    players = (*names, *HONEST)[: max(len(names), GAMES[game].seats)]
    settings = GAMES[game].vocabulary.read_settings(SHORT[game])
    wait_s = (LIMITS.start_ms + LIMITS.grace_ms) / 1000
    plan = plan_of(GAMES[game], settings, players, limits=LIMITS, wait_s=wait_s)
    return await host.play(host.compete(plan))


async def _play(host: Host, game: str, rogues: list[str]) -> dict[str, CompetitionReport]:
    """All rogues at once, and the bots that behave with each other: the reports by name."""
    names = [*rogues, "meanwhile"]
    reports = await asyncio.gather(
        *(_compete(host, game, name) for name in rogues),
        _compete(host, game, *HONEST[: GAMES[game].seats]),
    )
    return dict(zip(names, reports, strict=True))


async def _connected(game: str, store: Store) -> RoguesOutcome:
    """The season of the rogues that connect by themselves."""
    matched = [name for name in CONNECTED if KINDS[name].ending is not None]
    async with asyncio.timeout(TIMEOUT_S), Host(store, limits=LIMITS) as host:
        honest = await _honest(host, game)
        rogues = {name: await _rogue(name, game, host.url) for name in CONNECTED}
        try:
            await _present(host, [*HONEST, *matched])
            reports = await _play(host, game, matched)
            ends = {name: await _end(rogue) for name, rogue in rogues.items()}
            after = await _compete(host, game, *HONEST[: GAMES[game].seats])
        finally:
            _kill([*honest, *rogues.values()])
        await store.flushed()
    cells = {name: _cell(store, name, reports.get(name), *ends[name]) for name in CONNECTED}
    return RoguesOutcome(cells, (reports["meanwhile"], after))


async def _launched(game: str, store: Store) -> RoguesOutcome:
    """The season of the rogues that the arena starts, some of them only when they are awaited."""
    late = [name for name in LAUNCHED if KINDS[name].before is not None]
    early = [name for name in LAUNCHED if name not in late]
    async with asyncio.timeout(TIMEOUT_S), Host(store, limits=LIMITS) as host:
        honest = await _honest(host, game)
        try:
            await _launch(host, game, early)
            await _present(host, [*HONEST, *early])
            assert len(_left(host.url)) >= len(early), "else it would find nothing"
            playing = asyncio.create_task(_play(host, game, LAUNCHED))
            await _launch(host, game, late)
            reports = await playing
            after = await _compete(host, game, *HONEST[: GAMES[game].seats])
        finally:
            _kill(honest)
        await store.flushed()
    cells = {name: _cell(store, name, reports[name]) for name in LAUNCHED}
    return RoguesOutcome(cells, (reports["meanwhile"], after), _left(host.url))


def _left(url: str) -> tuple[str, ...]:
    """The command lines of processes that this arena has started, by their environment."""
    left = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is none of ours
            if f"ARENA_URL={url}".encode() in environment.read_bytes().split(b"\0"):
                left.append(environment.with_name("cmdline").read_text())
    return tuple(left)


async def _launch(host: Host, game: str, names: list[str]) -> None:
    for name in names:
        words = (sys.executable, ROGUE, name, "--game", game, "--after", "2")
        await host.launch_program(read_program(shlex.join(words)), name)


def _kill(processes: Iterable[asyncio.subprocess.Process]) -> None:
    for process in processes:
        if process.returncode is None:
            process.kill()


def _cell(
    store: Store,
    name: str,
    report: CompetitionReport | None,
    said: tuple[dict[str, Any], ...] = (),
    status: int = 0,
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


_SEASONS: dict[tuple[str, bool], RoguesOutcome | Exception] = {}


def _season_of(game: str, launched: bool, folder: Path) -> RoguesOutcome:
    """A season, played once, even if it fails."""
    key = game, launched
    if key not in _SEASONS:
        play = _launched if launched else _connected
        with Store(folder / "arena.db") as store:
            try:
                _SEASONS[key] = asyncio.run(play(game, store))
            except Exception as error:
                _SEASONS[key] = error
    season = _SEASONS[key]
    if isinstance(season, Exception):
        raise AssertionError(f"the season of {game} failed") from season
    return season


@pytest.fixture
def season(game: str, tmp_path: Path) -> RoguesOutcome:
    """The season of the rogues that connect by themselves."""
    return _season_of(game, False, tmp_path)


@pytest.fixture
def launched(game: str, tmp_path: Path) -> RoguesOutcome:
    """The season of the rogues that the arena has launched."""
    return _season_of(game, True, tmp_path)


# ---- Looking at it

EACH_GAME = pytest.mark.parametrize("game", GAMES)
EACH_CONNECTED = pytest.mark.parametrize(
    "name", [name for name in CONNECTED if KINDS[name].ending is not None]
)
EACH_STRANGER = pytest.mark.parametrize(
    "name", [name for name in CONNECTED if KINDS[name].ending is None]
)
EACH_LAUNCHED = pytest.mark.parametrize("name", LAUNCHED)
needs_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only on Linux are all processes of a bot seen"
)


@EACH_CONNECTED
@EACH_GAME
def test_J2_a_rogue_is_out_for_exactly_what_it_did(
    game: str, name: str, season: RoguesOutcome
) -> None:
    check(season.cells[name])


def check(cell: RogueResult) -> Verdict | None:
    """Check the word, the offender, the evidence and the others' results; return the verdict."""
    assert cell.status == (3 if cell.name == "vanish" else 0), "its own fault"
    assert cell.report is not None
    assert cell.played is not None
    assert cell.record is not None
    seat = cell.played.players.index(cell.name)
    ended = cell.played.result.termination
    assert (ended.kind, ended.text) == (cell.kind.ending, ended.text)
    assert replay(cell.record).record.to_json() == cell.record.to_json()
    if cell.kind.ending == Ending.COMPLETED:
        assert ended.seat is None
        assert cell.report.verdicts == ()
        assert told(cell)["termination"]["kind"] == "completed"
        return None
    assert ended.seat == seat
    [verdict] = cell.report.verdicts
    check_evidence(cell, verdict, seat)
    check_the_others(cell, seat)
    if cell.kind.told:
        assert told(cell)["verdict"] == msgspec.to_builtins(verdict)
    return verdict


def check_evidence(cell: RogueResult, verdict: Verdict, seat: int) -> None:
    """Rules J4: what was asked, what was legal, what came back, the times, the limits."""
    assert cell.played is not None
    assert (verdict.kind, verdict.bot, verdict.seat) == (cell.kind.ending, cell.name, seat)
    assert verdict.match == cell.played.id
    assert verdict.text
    assert verdict.advice
    assert verdict.mechanism
    assert verdict.limits == LIMITS
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


@EACH_STRANGER
@EACH_GAME
def test_who_drips_its_hello_is_cut(game: str, name: str, season: RoguesOutcome) -> None:
    cell = season.cells[name]

    assert [message["type"] for message in cell.said] == ["gone"]
    assert cell.status == 0


@EACH_GAME
def test_the_others_play_on_meanwhile_and_afterwards(game: str, season: RoguesOutcome) -> None:
    for report in season.honest:
        assert report.verdicts == ()
        assert report.played >= 1


# ---- Rogues that the arena has launched

WORDS = {
    "crash": r"crashed: exit status 3",
    "exit": r"crashed: exit status 1",
    "never-starts": r"did not come within 2,?500 ms",
    "hog": r"memory [\d,]+ MiB > 128 MiB \((sampled|cgroup)\)",
    "hog-child": r"memory [\d,]+ MiB > 128 MiB \((sampled|cgroup)\)",
    "hog-file": r"memory [\d,]+ MiB > 128 MiB \((sampled|cgroup)\)",
    "fork-bomb": r"processes \d+ > 16 \((sampled|cgroup)\)",
    "spin": r"[\d,]+ ms of CPU for a decision",
}
"""What the verdict says: the figure, the limit, and what found out."""


@needs_linux
@EACH_LAUNCHED
@EACH_GAME
def test_J2_what_the_arena_launches_is_out_for_exactly_what_it_did(
    game: str, name: str, launched: RoguesOutcome
) -> None:
    verdict = check(launched.cells[name])

    assert verdict is not None
    assert re.search(WORDS[name], verdict.text)


@needs_linux
@EACH_GAME
@pytest.mark.parametrize(
    ("name", "status", "last_words"),
    [("crash", 3, "it was the butler\n"), ("exit", 1, "no such deck\n")],
)
def test_J4_a_crash_is_explained_by_its_status_and_last_words(
    game: str, name: str, status: int, last_words: str, launched: RoguesOutcome
) -> None:
    report = launched.cells[name].report

    assert report is not None
    [verdict] = report.verdicts
    assert (verdict.exit_status, verdict.stderr) == (status, last_words)


@needs_linux
@EACH_GAME
def test_the_others_play_on_beside_what_is_launched(game: str, launched: RoguesOutcome) -> None:
    for report in launched.honest:
        assert report.verdicts == ()
        assert report.played >= 1


@needs_linux
@EACH_GAME
def test_nothing_that_was_launched_is_left_running(game: str, launched: RoguesOutcome) -> None:
    assert launched.left == ()
