"""Bots that the arena launches, as authors write them: whole programs in two languages.

Per language, all deeds of `tests/support/hogs/bot.*` are played at once in one arena, a season,
each in a competition of its own; every test then checks one of them. Bots that are launched and
connect are in `test_rogues`. All names are new in every run, as the processes of a bot are known by
the name in their environment.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec
import pytest

from arena.competitions.live_arena import LiveArena
from arena.formats.spec import plan_of
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.games.replay import replay
from arena.sandbox.launcher import read_program
from arena.storage.models import CompetitionReport
from arena.storage.store import MatchRow, Store
from protocol.messages import Ending, Limits, Verdict
from tests.support.bot_processes import living
from tests.support.hogs import bot
from tests.support.needs import tool

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

HOGS = Path(bot.__file__).parent
TIMEOUT_S = 600.0  # of a season, which takes some seconds, on a loaded machine twenty
GONE_S = 100.0  # for processes to be gone: a grace of one second, and a loaded machine

# A virtual machine takes a second of CPU time to be warm, and a loaded machine longer to give it.
LIMITS = Limits(
    decision_ms=2_000,
    bank_ms=4_000,
    hard_ms=4_000,
    wall_ms=20_000,
    start_ms=20_000,
    hello_ms=20_000,
    memory_mib=256,
)
HURRIED = msgspec.structs.replace(LIMITS, decision_ms=200, bank_ms=200)
# On a loaded machine a bot gets a tenth of a core while its opponent thinks: still too much.
TIRELESS = msgspec.structs.replace(LIMITS, decision_ms=20, bank_ms=300)
WALLED = msgspec.structs.replace(LIMITS, wall_ms=1_500)

FEW = 50
PLENTY = 1_000_000  # hands: that match is not over before the offender is found

LIMITS_OF = {
    "hello": LIMITS,
    "hog": LIMITS,
    "crash": LIMITS,
    "spin": HURRIED,
    "stall": WALLED,
    "ponder": TIRELESS,
}
LANGUAGES = ("python", "java")


# ---- Programs


def built(language: str, folder: Path) -> list[str]:
    """The command of the bot in a language, compiled if need be, without its deed."""
    match language:
        case "python":
            shutil.copy(HOGS / "bot.py", folder)
            return [sys.executable, "bot.py"]
        case _:
            run(tool("javac"), "-d", str(folder), str(HOGS / "Bot.java"))
            return [tool("java"), "-cp", ".", "Bot"]  # without options, as students do


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def are_gone(*names: str) -> bool:
    """Whether nothing of these bots is left, soon."""
    deadline_s = time.monotonic() + GONE_S
    while any(map(living, names)):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


# ---- A season


class BotResult(NamedTuple):
    """How the match of one bot ended."""

    name: str
    seat: int
    report: CompetitionReport
    played: MatchRow
    record: Record
    was_gone: bool | None  # when its match was over and the arena went on

    @property
    def verdict(self) -> Verdict:
        [verdict] = self.report.verdicts
        return verdict


class LaunchedOutcome(NamedTuple):
    language: str
    cells: Mapping[str, BotResult]
    stored: tuple[Verdict, ...]
    were_gone: bool  # when the arena had closed


class BotMatch(NamedTuple):
    """One bot's match, while it is played and afterwards."""

    deed: str
    name: str
    rival: str
    report: CompetitionReport
    was_gone: bool | None


async def compete(host: LiveArena, limits: Limits, hands: int, *names: str) -> CompetitionReport:
    game = GAMES["ace_king_queen"]
    settings = game.vocabulary.read_settings({"hands": hands})
    wait_s = (limits.start_ms + limits.grace_ms) / 1000
    plan = plan_of(game, settings, names, limits=limits, wait_s=wait_s)
    return await host.play(host.compete(plan))


async def play_season(
    store: Store, language: str, words: list[str], folder: Path
) -> list[BotMatch]:
    """All deeds at once, against bots in Python that behave."""
    mark = uuid4().hex[:8]
    rivals = {"hello": f"steady-{mark}", "slow": f"slow-{mark}"}

    async def contest(deed: str) -> BotMatch:
        name = f"{language}-{deed}-{mark}"
        # `ponder` needs a slow opponent; all others play against the same quick one.
        rival = rivals["slow" if deed == "ponder" else "hello"]
        line = f"stdio: {shlex.join([*words, deed])}"
        await host.supervisor.launch_program(read_program(line, folder), name)
        hands = FEW if deed == "hello" else PLENTY
        report = await compete(host, LIMITS_OF[deed], hands, name, rival)
        gone = await asyncio.to_thread(are_gone, name) if deed != "hello" else None
        return BotMatch(deed, name, rival, report, gone)

    async with asyncio.timeout(TIMEOUT_S), LiveArena(store, limits=LIMITS) as host:
        python = built("python", folder)
        for deed, name in rivals.items():
            line = f"stdio: {shlex.join([*python, deed])}"
            await host.supervisor.launch_program(read_program(line, folder), name)
        contests = await asyncio.gather(*map(contest, LIMITS_OF))
    await store.flushed()
    return contests


@pytest.fixture(scope="module", params=LANGUAGES)
def season(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> LaunchedOutcome:
    """A season of the bots in one language."""
    language: str = request.param
    folder = tmp_path_factory.mktemp("bots")
    words = built(language, folder)
    with Store(tmp_path_factory.mktemp("arena") / "arena.db") as store:
        contests = asyncio.run(play_season(store, language, words, folder))
        cells = {contest.deed: cell_of(store, contest) for contest in contests}
        names = {name for each in contests for name in (each.name, each.rival)}
        return LaunchedOutcome(language, cells, store.verdicts(), are_gone(*names))


def cell_of(store: Store, contest: BotMatch) -> BotResult:
    """What the store has of a bot's only match."""
    [competition] = [
        competition.id
        for competition in store.competitions()
        if contest.name in competition.plan.players
    ]
    [played] = store.matches(competition)
    seat = played.players.index(contest.name)
    record = store.record(played.id)
    name, report = contest.name, contest.report
    return BotResult(name, seat, report, played, record, contest.was_gone)


# ---- What becomes of them


def test_a_hello_world_plays_a_whole_match(season: LaunchedOutcome) -> None:
    cell = season.cells["hello"]

    assert cell.played.result.termination.kind is Ending.COMPLETED
    assert cell.report.verdicts == ()
    assert len(cell.record.answers) >= FEW
    assert_both_are_limited(cell)


def test_a_hog_is_out_for_memory(season: LaunchedOutcome) -> None:
    cell = season.cells["hog"]
    verdict = cell.verdict

    found = re.fullmatch(r"memory (\d+) MiB > 256 MiB \(sampled\)", verdict.text)
    if "(cgroup)" in verdict.enforced and verdict.mechanism == "cgroup":
        assert verdict.text.startswith("memory over 256 MiB")  # it was quicker
    else:
        assert found, verdict.text
        assert 256 < int(found[1]) < 2 * bot.HOARD_MIB
        assert verdict.mechanism == "sampled"
    assert verdict.headline.startswith("eliminated: memory")
    assert_is_out(season, cell, Ending.MEMORY)


def test_a_crash_is_out_with_its_status_and_its_last_words(season: LaunchedOutcome) -> None:
    cell = season.cells["crash"]
    verdict = cell.verdict

    assert verdict.headline == verdict.text == "crashed: exit status 1"
    assert (verdict.exit_status, verdict.mechanism) == (1, "exit")
    assert bot.LAST_WORDS in (verdict.stderr or "")
    assert_is_out(season, cell, Ending.CRASH)


@pytest.mark.parametrize("deed", ["spin", "ponder"])
def test_who_computes_too_long_is_out_for_cpu(season: LaunchedOutcome, deed: str) -> None:
    cell = season.cells[deed]
    verdict = cell.verdict

    most = r"\(limit (\d+) ms, credit 0 ms\), bank empty"
    found = re.fullmatch(rf"out of time: ([\d,]+) ms of CPU for a decision {most}", verdict.text)
    assert found, verdict.text
    assert int(found[1].replace(",", "")) >= int(found[2])
    limits = LIMITS_OF[deed]
    assert int(found[2]) <= limits.decision_ms + limits.bank_ms
    assert verdict.headline == f"eliminated: {verdict.text}"
    assert verdict.mechanism == "CPU clock"
    assert_is_out(season, cell, Ending.CPU)


def test_who_sleeps_is_out_of_time_by_the_wall(season: LaunchedOutcome) -> None:
    cell = season.cells["stall"]
    verdict = cell.verdict

    # Its bank is of CPU time, which it has not used.
    found = re.fullmatch(
        r"out of time: ([\d,]+) ms for a decision "
        r"\(limit ([\d,]+) ms, credit [\d,]+ ms\)",
        verdict.text,
    )
    assert found, verdict.text
    # More by what it waited for a core, on a machine that has much to do.
    assert int(found[2].replace(",", "")) >= WALLED.wall_ms
    assert verdict.waited_ms is not None
    assert verdict.waited_ms >= WALLED.wall_ms
    assert verdict.mechanism == "wall cap"
    assert verdict.asked
    assert_is_out(season, cell, Ending.TIMEOUT)


def test_nothing_of_an_offender_is_left_running(season: LaunchedOutcome) -> None:
    left = {deed for deed, cell in season.cells.items() if cell.was_gone is False}

    assert left == set()


def test_nothing_at_all_is_left_when_the_arena_has_closed(season: LaunchedOutcome) -> None:
    assert season.were_gone


def assert_is_out(season: LaunchedOutcome, cell: BotResult, kind: Ending) -> None:
    """It is out for that word, the other seat has won, and all of it is in the database."""
    verdict, ended = cell.verdict, cell.played.result.termination
    assert (ended.kind, ended.seat, ended.text) == (kind, cell.seat, verdict.text)
    assert (verdict.kind, verdict.bot, verdict.seat) == (kind, cell.name, cell.seat)
    assert verdict in season.stored
    assert verdict.match == cell.played.id
    assert verdict.limits.memory_mib == 256
    assert verdict.advice
    again = replay(cell.record)
    assert again.record.to_json() == cell.record.to_json()
    assert again.winner == 1 - cell.seat
    assert len(cell.record.answers) >= 4  # it has played two hands before
    assert_both_are_limited(cell)
    assert verdict.enforced == cell.record.enforced[cell.seat]


def assert_both_are_limited(cell: BotResult) -> None:
    assert len(cell.record.enforced) == 2
    for words in cell.record.enforced:
        assert words.startswith("time, memory and processes (")
