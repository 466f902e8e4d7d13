"""The matrix: every way to misbehave, in every game, each a process of its own on a real socket (tests/rogues/rogue.py).

All rogues of a game are on the line at once, each in a competition of its own with bots that behave, in one arena; then every cell is
looked at by itself. A season is played once per game, by the first test that asks for it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from arena.director import Form, Plan, Report
from arena.games import GAMES
from arena.host import Host
from arena.match import MatchResult, Record, replay
from arena.store import Played, Store
from protocol.messages import Ending, Limits, Verdict
from protocol.strategy import house_bots
from tests.rogues import rogue
from tests.rogues.rogue import KINDS, Kind

pytestmark = pytest.mark.e2e

ROGUE = str(Path(rogue.__file__).resolve())
TIMEOUT_S = 60.0  # a season takes a few seconds, most of them to start the processes

LIMITS = Limits(
    decision_ms=300,
    bank_ms=300,
    hard_ms=600,
    wall_ms=2_000,
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


class Cell(NamedTuple):
    """What became of one rogue in one game; without a match there is no competition."""

    name: str
    kind: Kind
    said: tuple[dict[str, Any], ...]  # what it printed that it was told
    status: int
    report: Report | None
    played: Played | None
    record: Record | None


class Season(NamedTuple):
    """What became of all, and how the bots that behave did with each other meanwhile and afterwards."""

    cells: dict[str, Cell]
    honest: tuple[Report, ...]


# ---- Playing a season


class Rogue:
    """A rogue's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, kind: str, game: str, url: str) -> Rogue:
        """Start it; it connects by itself."""
        words = [ROGUE, kind, "--url", url, "--game", game, "--name", kind]
        return cls(await _python(*words, stdout=asyncio.subprocess.PIPE))

    async def end(self) -> tuple[tuple[dict[str, Any], ...], int]:
        """What it has said, and its exit status, once it has ended by itself."""
        out, _ = await self.process.communicate()
        assert self.process.returncode is not None, "it has ended"
        return tuple(map(json.loads, out.splitlines())), self.process.returncode


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
    """Until all of them have said hello."""
    while missing := {*names} - {*host.gateway.players}:
        try:
            async with asyncio.timeout(TIMEOUT_S / 3):
                await host.wait_for_change()
        except TimeoutError:
            raise AssertionError(f"{sorted(missing)} did not connect") from None


async def _compete(host: Host, game: str, *names: str) -> Report:
    """One competition; who is missing of the seats is filled up with bots that behave."""
    players = (*names, *HONEST)[: max(len(names), GAMES[game].seats)]
    settings = GAMES[game].vocabulary.read_settings(SHORT[game])
    plan = Plan(game=GAMES[game], settings=settings, players=players, limits=LIMITS)
    return await host.play(host.compete(plan))


async def _play(host: Host, game: str, rogues: list[str]) -> dict[str, Report]:
    """All rogues at once, and the bots that behave with each other: the reports by name."""
    names = [*rogues, "meanwhile"]
    reports = await asyncio.gather(
        *(_compete(host, game, name) for name in rogues),
        _compete(host, game, *HONEST[: GAMES[game].seats]),
    )
    return dict(zip(names, reports, strict=True))


async def _season(game: str, store: Store) -> Season:
    """The rogues that connect by themselves."""
    matched = [name for name in CONNECTED if KINDS[name].ending is not None]
    async with asyncio.timeout(TIMEOUT_S), Host(store, limits=LIMITS) as host:
        honest = await _honest(host, game)
        rogues = {name: await Rogue.start(name, game, host.url) for name in CONNECTED}
        try:
            await _present(host, [*HONEST, *matched])
            reports = await _play(host, game, matched)
            ends = {name: await rogue.end() for name, rogue in rogues.items()}
            after = await _compete(host, game, *HONEST[: GAMES[game].seats])
        finally:
            _kill([*honest, *(rogue.process for rogue in rogues.values())])
        await store.flushed()
    cells = {
        name: _cell(store, name, reports.get(name), *ends[name]) for name in CONNECTED
    }
    return Season(cells, (reports["meanwhile"], after))


def _kill(processes: Iterable[asyncio.subprocess.Process]) -> None:
    for process in processes:
        if process.returncode is None:
            process.kill()


def _cell(
    store: Store,
    name: str,
    report: Report | None,
    said: tuple[dict[str, Any], ...] = (),
    status: int = 0,
) -> Cell:
    """What the store has of a rogue's competition; it played there only once."""
    if report is None:
        return Cell(name, KINDS[name], said, status, None, None, None)
    [competition] = [
        competition.id
        for competition in store.competitions()
        if name in competition.players
    ]
    [played] = store.matches(competition)
    record = store.record(played.id)
    return Cell(name, KINDS[name], said, status, report, played, record)


_SEASONS: dict[str, Season | Exception] = {}


@pytest.fixture
def season(game: str, tmp_path: Path) -> Season:
    """The season of a game; one that failed is not played again for every cell."""
    if game not in _SEASONS:
        with Store(tmp_path / "arena.db") as store:
            try:
                _SEASONS[game] = asyncio.run(_season(game, store))
            except Exception as error:
                _SEASONS[game] = error
    season = _SEASONS[game]
    if isinstance(season, Exception):
        raise AssertionError(f"the season of {game} failed") from season
    return season


# ---- Looking at it

EACH_GAME = pytest.mark.parametrize("game", GAMES)
EACH_CONNECTED = pytest.mark.parametrize(
    "name", [name for name in CONNECTED if KINDS[name].ending is not None]
)
EACH_STRANGER = pytest.mark.parametrize(
    "name", [name for name in CONNECTED if KINDS[name].ending is None]
)


@EACH_CONNECTED
@EACH_GAME
def test_J2_a_rogue_is_out_for_exactly_what_it_did(
    game: str, name: str, season: Season
) -> None:
    check(season.cells[name])


def check(cell: Cell) -> Verdict | None:
    """The word, whose fault it was, the evidence, and what the others have of it; the verdict if there is one."""
    assert cell.report is not None
    assert cell.played is not None
    assert cell.record is not None
    seat = cell.played.players.index(cell.name)
    ended = cell.played.termination
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


def check_evidence(cell: Cell, verdict: Verdict, seat: int) -> None:
    """Rules J4: what was asked, what was legal, what came back, the times, the limits."""
    assert cell.played is not None
    assert (verdict.kind, verdict.bot, verdict.seat) == (
        cell.kind.ending,
        cell.name,
        seat,
    )
    assert verdict.match == cell.played.id
    assert verdict.text
    assert verdict.advice
    assert verdict.mechanism
    assert verdict.limits == LIMITS
    assert bool(verdict.asked) is bool(verdict.legal) is cell.kind.asked
    assert bool(verdict.got) is cell.kind.got
    if cell.kind.asked:
        assert verdict.waited_ms is not None


def check_the_others(cell: Cell, seat: int) -> None:
    """Rules J3: nobody else is harmed or helped."""
    assert cell.report is not None
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
            best = [place.names for place in cell.report.ranking]
            assert sum(map(len, best)) == len(players)
        case Form.LEAGUE:
            assert game.stake is not None
            settings = game.vocabulary.read_settings(result.record.settings)
            assert result.scores == (-game.stake(settings),)
            [row] = cell.report.standings
            assert (row.rank, row.eliminated) == (None, result.termination)


def result_of(cell: Cell) -> MatchResult:
    """The result as it was stored."""
    assert cell.played is not None
    assert cell.record is not None
    played = cell.played
    return MatchResult(played.scores, played.points, played.termination, cell.record)


def told(cell: Cell) -> dict[str, Any]:
    """The `over` that the rogue has heard."""
    return next(message for message in cell.said if message["type"] == "over")


@EACH_STRANGER
@EACH_GAME
def test_who_drips_its_hello_is_cut(game: str, name: str, season: Season) -> None:
    cell = season.cells[name]

    assert [message["type"] for message in cell.said] == ["gone"]
    assert cell.status == 0


@EACH_GAME
def test_the_others_play_on_meanwhile_and_afterwards(game: str, season: Season) -> None:
    for report in season.honest:
        assert report.verdicts == ()
        assert report.played >= 1
