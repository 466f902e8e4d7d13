"""Which version of a bot has played, on the page in a real Chromium."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing
from arena.storage.live_results import LiveResults
from arena.storage.store import Store
from tests.support import arena_process
from tests.support.browser import PROJECTOR, BrowserWindow, axe_source, browser
from tests.support.sample_database import SampleWriter, plan, play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="the arena is ended by a signal"),
]

READY_S = 60.0


def test_standings_rankings_bots_and_matches_are_shown_with_their_versions(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        robin = SampleWriter(store, plan("ace_king_queen"), "robin")
        result = play("ace_king_queen", versions=("v3", "connected"))
        players = next(schedule_of(robin.plan))[0].players
        robin.finished(Pairing(1, players), result, "m-1")
        store.competition_finished("robin", 2_000.0)
        final = SampleWriter(store, plan("high_low"), "final")
        for table in next(schedule_of(final.plan)):
            versions = "v1", "v2", "v4", ""
            final.finished(table, play("high_low", table.number, versions=versions))
        store.flush()
        labels = LiveResults(store, "final").versions
    words = "-m", "arena", "serve", "--port", "0", "--db", "arena.db"
    arena = arena_process.start(tmp_path, "arena.err", *words)
    said = tmp_path / "arena.err"
    try:
        end = time.monotonic() + READY_S
        while "the page is at " not in said.read_text() and arena.poll() is None:
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.05)
        url = said.read_text().partition("the page is at ")[2].split()[0].rstrip("/")
        with browser() as chromium:
            look = BrowserWindow(chromium, url, PROJECTOR, axe_source())
            for route in ("#/c/robin/standings", "#/m/m-1"):
                page = look.to(route)
                page.get_by_role("link", name=f"{players[0]} v3", exact=True).wait_for()
                page.get_by_role("link", name=f"{players[1]} (connected)", exact=True).wait_for()
                look.sound(route)
            page = look.to(f"#/c/robin/bot/{players[0]}")
            page.get_by_role("heading", name=f"{players[0]} v3", exact=True).wait_for()
            page = look.to("#/c/final/standings")
            for name, label in labels.items():
                page.get_by_role("link", name=f"{name} {label}", exact=True).wait_for()
            look.close()
    finally:
        arena.terminate()
        arena.wait(20)
