"""A class connects to its run: the page shows for whom it waits and who never came (K5)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from tests.support.arena_process import printed
from tests.support.browser import BrowserWindow, browser

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

CONFIG = """
[serve]
port = 0
db = "class.db"

[[run]]
name = "cup"
game = "ace_king_queen"
players = "roster"
with_itself = false
settings = { hands = 20 }
least = 3

[[run]]
name = "later"
game = "high_low"
players = "roster"
"""


def test_K5_the_page_shows_for_whom_a_run_waits_and_who_was_not_there(
    start: Callable[..., StartedProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("class.csv").write_text("name\nann\nben\ncem\ndan\n")
    Path("class.toml").write_text(CONFIG)
    printed("roster", "import", "class.csv", "--db", "class.db", "--tokens", "tokens.csv")
    with Path("tokens.csv").open(encoding="utf-8-sig", newline="") as file:
        tokens = {row["name"]: row["token"] for row in csv.DictReader(file)}
    arena = start("arena", "serve", "--config", "class.toml")
    url = arena.until("arena at ws://").split()[2]
    with browser() as chromium:
        look = BrowserWindow(chromium, url.replace("ws", "http", 1))
        waiting = look.to().get_by_role("region", name="Runs that wait for bots")
        cup = waiting.get_by_role("article").filter(has_text="cup")
        cup.get_by_text("Waits: 0 of 4 here, it starts with 3").wait_for()
        cup.get_by_text("waits for ann, ben, cem, dan").wait_for()
        for name in ("dan", "ann", "cem"):
            bot = start("bots", "akq", "nash", "--url", url, "--token", tokens[name])
            bot.until(f"connected as {name}")
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
