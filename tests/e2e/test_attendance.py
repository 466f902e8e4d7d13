"""A class connects to its runs: each starts when it should, and who never came is listed (K5)."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import json
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from arena.competitions import gathering, scheduler
from arena.competitions.arena_host import Host
from arena.competitions.config import Config, read_config
from arena.competitions.scheduler import Scheduler
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from bots.client import Client
from protocol.strategy import find
from tests.support import arena_process, independent_audit
from tests.support.browser import BrowserWindow, browser

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
CLASS = ("ann", "ben", "cem", "dan")
CONFIG = """
[serve]
port = 0
db = "class.db"
once = true

[[run]]
name = "cup"
game = "ace_king_queen"
players = "roster"
with_itself = false
settings = { hands = 20 }
"""


class ServedClass:
    """A class with its tokens, and `arena serve --config` as a process."""

    def __init__(self, start: Callable[..., StartedProgram], folder: Path) -> None:
        self._start = start
        self._folder = folder
        self._db = ("--db", str(folder / "class.db"))
        self.url = ""
        people, tokens = folder / "class.csv", folder / "tokens.csv"
        people.write_text("\n".join(["name", *CLASS]))
        where = (*self._db, "--tokens", str(tokens))
        arena_process.printed("roster", "import", str(people), *where)
        with tokens.open(encoding="utf-8-sig", newline="") as file:
            self._tokens = {row["name"]: row["token"] for row in csv.DictReader(file)}
        self._eva = arena_process.printed("roster", "instructor", *self._db)["token"]

    def serve(self, more: str, port: int = 0) -> StartedProgram:
        """Start the arena, and wait until it can be reached."""
        (self._folder / "class.toml").write_text(CONFIG + more)
        words = ("--config", "class.toml", "--port", str(port), "--json")
        arena = self._start("arena", "serve", *words, cwd=self._folder)
        self.url = arena.until("arena at ws://").split()[2]
        return arena

    def comes(self, name: str) -> None:
        """A student connects a bot."""
        words = ("akq", "nash", "--url", self.url, "--token", self._tokens[name])
        bot = self._start("arena", "connect", *words)
        bot.until(f"connected as {name}")

    def says(self, *words: str) -> Any:
        """Send an instructor's command."""
        return arena_process.printed(*words, "--url", self.url, "--token", self._eva)

    def over(self, arena: StartedProgram) -> dict[str, Any]:
        """Wait until the arena has ended; the report of its only competition, audited."""
        status, out, err = arena.ends()
        assert status == 0, err
        report: dict[str, Any] = json.loads(out)
        checked = arena_process.run("verify", str(self._folder / "class.db"))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert [*independent_audit.whole(independent_audit.read(self._folder / "class.db"))] == []
        return report


@pytest.fixture
def school(start: Callable[..., StartedProgram], tmp_path: Path) -> ServedClass:
    return ServedClass(start, tmp_path)


def shown(report: dict[str, Any]) -> list[tuple[str, bool, bool]]:
    """The name in each row, whether it has a rank, and whether it was not there."""
    return sorted(
        (row["name"], row["rank"] is not None, row["not_there"]) for row in report["standings"]
    )


def test_K5_a_run_of_the_roster_waits_for_its_class(school: ServedClass) -> None:
    arena = school.serve("least = 3")
    arena.until("cup waits: 0 of 4 here, it starts with 3; missing: ann, ben, cem, dan")
    school.comes("dan")
    school.comes("ann")
    status = school.says("status")
    assert status["competitions"] == []
    assert status["lines"] == ["cup waits: 2 of 4 here, it starts with 3; missing: ben, cem"]
    school.comes("ben")
    arena.until("cup starts without cem: not there")
    report = school.over(arena)

    assert report["verdicts"] == []
    assert report["not_there"] == ["cem"]
    assert shown(report) == [
        *(("ann", True, False), ("ben", True, False)),
        *(("cem", False, True), ("dan", True, False)),
    ]


def test_K5_a_run_at_a_time_waits_from_then_on(school: ServedClass) -> None:
    at = datetime.now(UTC) + timedelta(seconds=6)
    arena = school.serve(f"at = {at.isoformat(timespec='seconds')}")
    arena.until("cup starts ")
    school.comes("cem")
    arena.until("cup waits until ")
    school.comes("ann")
    arena.until("cup starts without ben, dan: not there")
    report = school.over(arena)

    assert report["verdicts"] == []
    assert [name for name, is_ranked, _ in shown(report) if is_ranked] == ["ann", "cem"]


def test_K5_the_instructor_starts_it_with_whoever_is_there(school: ServedClass) -> None:
    arena = school.serve("")
    arena.until("cup waits: 0 of 4")
    school.comes("cem")
    words = ("start", "cup", "--url", school.url, "--token", school._eva)
    refused = arena_process.run(*words)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "arena: expected at least 2 connected bots of the roster that play ace_king_queen for cup, "
        "got 1\n"
    )
    school.comes("ann")
    assert school.says("start", "cup")["text"].endswith("; not there: ben, dan")
    assert school.over(arena)["verdicts"] == []


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")
def test_K5_its_bots_come_back_to_an_arena_that_is_started_again_while_it_waits(
    school: ServedClass, free_port: int
) -> None:
    arena = school.serve("least = 2", free_port)
    school.comes("ann")
    arena.process.send_signal(signal.SIGINT)
    assert arena.ends()[0] == 130

    arena = school.serve("least = 2", free_port)
    expected = "cup waits: 1 of 4 here, it starts with 2; missing: ben, cem, dan"
    end = time.monotonic() + TIMEOUT_S
    while school.says("status").get("lines") != [expected]:
        assert time.monotonic() < end, "ann never came back"
    school.comes("ben")
    report = school.over(arena)
    assert (report["verdicts"], report["not_there"]) == ([], ["cem", "dan"])


LATER = """least = 3

[[run]]
name = "later"
game = "high_low"
players = "roster"
"""


def test_K5_the_page_shows_for_whom_a_run_waits_and_who_was_not_there(school: ServedClass) -> None:
    with browser() as chromium:
        arena = school.serve(LATER)
        look = BrowserWindow(chromium, school.url.replace("ws", "http", 1))
        waiting = look.to().get_by_role("region", name="Runs that wait for bots")
        cup = waiting.get_by_role("article").filter(has_text="cup")
        cup.get_by_text("Waits: 0 of 4 here, it starts with 3").wait_for()
        cup.get_by_text("waits for ann, ben, cem, dan").wait_for()
        for name in ("dan", "ann", "cem"):
            school.comes(name)
        cup.get_by_text(re.compile("it starts by .*, sooner if nobody else")).wait_for()
        arena.until("cup starts without ben: not there")
        look.sound("the lobby")

        [shown] = json.load(urlopen(f"{look.url}/api/competitions.json"))["competitions"]
        rows = look.to(f"#/c/{shown['id']}").get_by_role("table").get_by_role("row")
        row = rows.filter(has_text="ben")
        row.get_by_text("not there").first.wait_for()
        assert row.get_by_role("cell").first.inner_text() == "–"
        look.sound("the standings")
        look.to(f"#/c/{shown['id']}/bot/ben").get_by_text("takes no part").wait_for()
        look.sound("the page of a bot that was not there")
        look.close()


# ---- A course, as an instructor has it

MONDAY = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
COURSE = """
[[run]]
name = "warm-up"
game = "blackjack"
players = "roster"
settings = { hands = 5 }

[[run]]
name = "monday-akq"
game = "ace_king_queen"
at = 2026-11-23T18:00:00+00:00
players = "roster"
least = 10
with_itself = false
settings = { hands = 10 }

[[run]]
name = "cup"
game = "high_low"
at = 2026-11-23T18:00:00+00:00
players = "roster"
least = 8
settings = { max_shuffles = 2 }
"""
GAMES = {"ace_king_queen": "nash", "high_low": "counter", "blackjack": "simple"}


class Monday:
    """An arena in this process, on a clock that the test sets, and a class of twelve bots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.now = MONDAY
        self.lines: list[str] = []
        self.reports: dict[str, Any] = {}
        self.names = tuple(f"student-{n:02}" for n in range(12))
        self._folder = folder
        self._bots: list[asyncio.Task[None]] = []
        for module in (gathering, scheduler):
            monkeypatch.setattr(module, "local_now", lambda: self.now)
            monkeypatch.setattr(module, "LOOK_S", 0.02)
            monkeypatch.setattr(module, "GATHER_S", 0.2)

    @property
    def config(self) -> Config:
        file = self._folder / "course.toml"
        file.write_text(COURSE)
        return read_config(file)

    async def plays(self, scenario: Callable[[], Any]) -> None:
        """Run the arena beside a scenario, until everything has been played."""
        with Store(self._folder / "class.db") as store:
            roster = Roster(store.engine)
            new = roster.take([Student(name=name) for name in self.names]).new
            self._tokens = {issued.name: issued.token for issued in new}
            async with asyncio.timeout(TIMEOUT_S), Host(store) as host:
                self._host = host
                scheduler = Scheduler(
                    host,
                    store,
                    self.config,
                    on_start=lambda competition: None,
                    on_report=lambda report: self.reports.update({report.run: report}),
                    tell=self.lines.append,
                    names=lambda: [member.name for member in roster.members()],
                    once=True,
                )
                played = asyncio.create_task(scheduler.run(self.config.runs, ()))
                await scenario()
                await played
                for bot in self._bots:
                    bot.cancel()
                for bot in self._bots:
                    with contextlib.suppress(asyncio.CancelledError):
                        await bot

    async def come(self, names: Sequence[str]) -> None:
        """Some students come, one after another."""
        strategies = {game: find(game, bot) for game, bot in GAMES.items()}
        for name in names:
            bot = Client(self._host.url, name, strategies, token=self._tokens[name], tables=4)
            self._bots.append(asyncio.create_task(bot.run()))
            while name not in self._host.gateway.players:
                await asyncio.sleep(0.01)

    async def hears(self, text: str) -> None:
        """Wait until the arena tells that."""
        while not any(text in line for line in self.lines):
            await asyncio.sleep(0.01)


async def test_K5_started_on_monday_the_class_comes_in_the_evening_and_nobody_is_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monday = Monday(monkeypatch, tmp_path)
    names = monday.names

    async def evening() -> None:
        await monday.hears("warm-up waits: 0 of 12 here, it starts with 12")
        for hour in range(11, 18):  # nobody is there the whole day
            monday.now = MONDAY.replace(hour=hour)
            await asyncio.sleep(0.03)
        monday.now = MONDAY.replace(hour=17, minute=50)
        await monday.come(names[:5])
        monday.now = MONDAY.replace(hour=18)
        await monday.hears("monday-akq waits until 19:00: 5 of 12 here, it starts with 10")
        assert monday.reports == {}
        await monday.come(names[5:8])
        await monday.hears("cup starts without student-08, student-09, student-10, student-11")
        monday.now = MONDAY.replace(hour=18, minute=1)
        await monday.hears("monday-akq waits until 19:00: 8 of 12 here")
        monday.now = MONDAY.replace(hour=18, minute=40)
        await monday.hears("8 of 12 here, it starts with 10")
        await monday.come(names[8:10])
        await monday.hears("monday-akq starts without student-10, student-11: not there")
        await monday.come(names[10:])  # who are late for that, but not for the warm-up

    await monday.plays(evening)
    assert {*monday.reports} == {"cup", "monday-akq", "warm-up"}
    assert [report.verdicts for report in monday.reports.values()] == [()] * 3
    akq, cup, warm = (monday.reports[run] for run in ("monday-akq", "cup", "warm-up"))
    assert [row.name for row in akq.standings if row.rank is None] == [*names[10:]]
    assert (akq.not_there, akq.played) == (names[10:], 45)
    assert cup.not_there == names[8:]
    assert {name for place in cup.ranking for name in place.names} == {*names[:8]}
    assert [row.name for row in warm.standings if row.rank is None] == []
