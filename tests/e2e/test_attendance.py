"""A class connects to its runs: each starts when it should, and who never came is listed (K5)."""

from __future__ import annotations

import csv
import json
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from tests.support import arena_process, independent_audit
from tests.support.browser import BrowserWindow, browser

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

TIMEOUT_S = 120.0  # of what takes a second
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
        bot = self._start("bots", *words)  # as `arena connect` does
        bot.until(f"connected as {name}")

    def says(self, *words: str) -> Any:
        """Send an instructor's command."""
        return arena_process.printed(*words, "--url", self.url, "--token", self._eva)

    def over(self, arena: StartedProgram) -> dict[str, Any]:
        """Wait until the arena has ended; the report of its only competition, audited."""
        status, out, err = arena.ends()
        assert status == 0, err
        report: dict[str, Any] = json.loads(out)
        assert arena_process.printed("verify", str(self._folder / "class.db"))["failed"] == []
        assert [*independent_audit.whole(independent_audit.read(self._folder / "class.db"))] == []
        return report


@pytest.fixture
def school(start: Callable[..., StartedProgram], tmp_path: Path) -> ServedClass:
    return ServedClass(start, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")
def test_K5_a_run_waits_for_its_class_also_in_another_arena(
    school: ServedClass, free_port: int
) -> None:
    arena = school.serve("least = 3", free_port)
    arena.until("cup waits: 0 of 4 here, it starts with 3; missing: ann, ben, cem, dan")
    school.comes("dan")
    arena.process.send_signal(signal.SIGINT)
    assert arena.ends()[0] == 130

    arena = school.serve("least = 3", free_port)
    school.comes("ann")
    expected = "cup waits: 2 of 4 here, it starts with 3; missing: ben, cem"
    end = time.monotonic() + TIMEOUT_S
    while (status := school.says("status")).get("lines") != [expected]:
        assert time.monotonic() < end, "dan never came back"
    assert status["competitions"] == []
    school.comes("ben")
    arena.until("cup starts without cem: not there")
    report = school.over(arena)

    assert (report["verdicts"], report["not_there"]) == ([], ["cem"])
    rows = {row["name"]: (row["rank"] is not None, row["not_there"]) for row in report["standings"]}
    here = dict.fromkeys(("ann", "ben", "dan"), (True, False))
    assert rows == {**here, "cem": (False, True)}


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
