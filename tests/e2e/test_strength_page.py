"""How good bots are and what their decisions cost, on the page in a real Chromium, in all games."""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing
from arena.games import GAMES
from arena.lab.in_process import play as played
from arena.lab.in_process import seeded
from arena.storage.store import Store
from protocol.strategy import find
from tests.support import arena_process
from tests.support.browser import PHONE, PROJECTOR, BrowserWindow, axe_source, browser
from tests.support.sample_database import SampleWriter, plan, play

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page, Route

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="the arena is ended by a signal"),
]

GAME = "ace_king_queen"
GIN_SEED = 19  # of a whole game, as its judge wants it, that is soon over
READY_S = 60.0
ANALYSED_S = 200.0  # the process that analyses has the lowest priority
LOG_IN = "token => localStorage.setItem('arena.token', token)"
HIDE = "is => Object.defineProperty(document, 'hidden', { get: () => is, configurable: true })"


class AnalysedArena:
    """An arena with a match of every game, by ann and others, and one that still goes on."""

    def __init__(self, folder: Path) -> None:
        self.tokens: dict[str, str] = {}
        self.players: dict[str, tuple[str, ...]] = {}
        self._folder = folder
        with Store(folder / "arena.db") as store:
            for game in GAMES:
                self._write(store, game, f"over-{game}")
                store.competition_finished(f"over-{game}", 2_000.0)
            self._write(store, GAME, "on")
            store.flush()
        self._enrol()
        words = "-m", "arena", "serve", "--port", "0", "--db", "arena.db"
        self._process = arena_process.start(folder, "arena.err", *words)
        said, end = folder / "arena.err", time.monotonic() + READY_S
        while "the page is at " not in said.read_text() and self._process.poll() is None:
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.05)
        self.url = said.read_text().partition("the page is at ")[2].split()[0].rstrip("/")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def analysed(self, shown: Locator) -> None:
        """Wait for what an analysis shows."""
        end = time.monotonic() + ANALYSED_S
        while not shown.is_visible():
            assert time.monotonic() < end, shown.page.locator("main").inner_text()
            self._hurry()
            shown.page.wait_for_timeout(50)

    def _hurry(self) -> None:
        """Let the process that analyses run like any other, if the system allows that: beside busy
        tests it would get no time.
        """
        pid = self._process.pid
        with suppress(OSError, AttributeError):  # only Linux has it all
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                if b"analysis_process" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.sched_setscheduler(int(child), os.SCHED_OTHER, os.sched_param(0))
                    os.setpriority(os.PRIO_PROCESS, int(child), 0)

    def _write(self, store: Store, game: str, competition: str) -> None:
        writer = SampleWriter(store, plan(game, settings=settings_of(game)), competition)
        players = next(schedule_of(writer.plan))[0].players
        self.players[competition] = players
        if game == "gin_rummy":
            bots = [seeded(find(game, name)(), "7") for name in ("random", "simple")]
            result = played(game, bots, seed=GIN_SEED)
        else:
            result = play(game, settings=settings_of(game))
        writer.finished(Pairing(1, players), result, f"{competition}-1")

    def _enrol(self) -> None:
        people, tokens = self._folder / "class.csv", self._folder / "tokens.csv"
        people.write_text("name\n" + "\n".join(self.players["on"]), encoding="utf-8")
        database = ("--db", str(self._folder / "arena.db"))
        arena_process.printed("roster", "import", str(people), *database, "--tokens", str(tokens))
        with tokens.open(encoding="utf-8-sig", newline="") as file:
            self.tokens = {row["name"]: row["token"] for row in csv.DictReader(file)}


def settings_of(game: str) -> dict[str, Any]:
    return {} if game == "gin_rummy" else dict(GAMES[game].rounds(12))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def arena(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnalysedArena]:
    it = AnalysedArena(tmp_path_factory.mktemp("arena"))
    yield it
    it.close()


@pytest.fixture(scope="module")
def axe() -> str | None:
    return axe_source()


@pytest.fixture
def look(chromium: Browser, arena: AnalysedArena, axe: str | None) -> Iterator[BrowserWindow]:
    it = BrowserWindow(chromium, arena.url, PROJECTOR, axe)
    yield it
    it.close()


@pytest.mark.parametrize("game", GAMES)
def test_every_game_has_its_charts_and_its_marks(
    chromium: Browser, arena: AnalysedArena, axe: str | None, game: str
) -> None:
    first, *others = arena.players[f"over-{game}"]
    other = others[0] if others else first
    wide, phone = (BrowserWindow(chromium, arena.url, size, axe) for size in (PROJECTOR, PHONE))
    for look in (wide, phone):
        page = look.to(f"#/c/over-{game}/bot/{first}/strength/{other}")
        arena.analysed(page.locator(".habit").first)
        look.sound("two bots side by side")
        assert page.locator(".habit table").count() >= 1
        assert page.locator(".habit tbody th").first.inner_text()

        page = look.to(f"#/m/over-{game}-1")
        page.get_by_role("group", name="Whose mistakes").get_by_role("button").first.click()
        arena.analysed(page.get_by_role("button", name="Next mistake"))
        page.get_by_text("given away in").wait_for()
        page.keyboard.press("m")
        marked = page.locator(".steps [aria-current=step]").filter(has_text="best was: ")
        marked.wait_for()
        assert marked.locator(".sign").inner_text().split()[0] in ("?!", "?", "??")
        look.sound("a mistake")
        look.close()


def test_M_leads_from_mistake_to_mistake_and_the_dearest_are_a_click_away(
    look: BrowserWindow, arena: AnalysedArena
) -> None:
    page = look.to(f"#/m/over-{GAME}-1")
    page.locator(".whose").first.click()
    arena.analysed(page.get_by_role("button", name="Next mistake"))
    document = json.load(_get(arena, f"/api/matches/over-{GAME}-1/mistakes.json?seat=1"))
    marks = document["mistakes"]["marks"]
    field, best = page.get_by_label("Go to hand"), page.locator("[aria-current=step] .best")
    seen = []
    for mark in [*marks, marks[0]]:
        page.keyboard.press("m")
        page.wait_for_function(
            "hand => document.querySelector('.jump input').value === hand", arg=str(mark["round"])
        )
        best.wait_for()
        seen.append((int(field.input_value()), best.inner_text().split(" (")[0]))

    assert len(marks) > 1
    assert seen == [
        (mark["round"], f"best was: {mark['best_text']}") for mark in [*marks, marks[0]]
    ]
    assert page.locator(".overview .specks").count() >= 1
    page.get_by_text("Keys").click()
    assert page.get_by_text("next mistake").is_visible()
    page.locator(".dearest button").first.click()
    best.wait_for()
    assert max(marks, key=lambda mark: float(mark["cost"]))["round"] == int(field.input_value())
    look.sound("the keys")


def test_J8_while_a_competition_goes_on_only_the_owner_sees_marks_and_analysis(
    look: BrowserWindow, arena: AnalysedArena
) -> None:
    ann, ben = arena.players["on"]
    for viewer in (None, ben, ann):
        if viewer is not None:
            look.page.evaluate(LOG_IN, arena.tokens[viewer])
            look.page.reload()
        with look.expecting("" if viewer == ann else "403"):
            page = look.to(f"#/c/on/bot/{ann}/strength")
            if viewer == ann:
                arena.analysed(page.locator(".habit").first)
            else:
                page.get_by_text("is for the bot's owner and the instructor until").wait_for()
                assert page.locator(".habit").count() == 0
        page = look.to("#/m/on-1")
        own = page.locator(".whose")
        if viewer is None:
            page.get_by_text("for the owners of these bots").wait_for()
            assert own.count() == page.get_by_role("button", name="Save ").count() == 0
        else:
            arena.analysed(page.get_by_text("given away in"))
            assert own.all_inner_texts() == [viewer]
            assert own.first.get_attribute("aria-pressed") == "true"
            page.keyboard.press("m")
            marked = page.locator(".steps button", has=page.locator(".sign"))
            assert all(text.startswith(viewer) for text in marked.all_inner_texts())
            _saves_its_seat(page, viewer, arena)
        look.sound(f"what {viewer} sees")


def _saves_its_seat(page: Page, viewer: str, arena: AnalysedArena) -> None:
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save what my seat saw").click()
    seat = arena.players["on"].index(viewer)
    path = "/api/matches/on-1/record.json"
    assert saved.value.suggested_filename == f"on-1-seat-{seat + 1}.json"
    assert saved.value.path().read_bytes() == _get(arena, path, arena.tokens[viewer]).read()


def _get(arena: AnalysedArena, path: str, token: str = "") -> Any:
    from urllib.request import Request, urlopen

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return urlopen(Request(arena.url + path, headers=headers), timeout=20)


def test_how_far_an_analysis_is_is_said_and_asked_for_until_it_is_done(
    look: BrowserWindow, arena: AnalysedArena
) -> None:
    status: dict[str, Any] = {"place": None, "done": 0, "of": 0, "text": "", "strength": None}
    queued = {**status, "state": "queued", "place": 2, "text": "waits while bots play"}
    running = {**status, "state": "running", "done": 3, "of": 7}
    refused = {**status, "state": "refused", "text": "three wait already"}
    answer, asked = queued, 0

    def answered(route: Route) -> None:
        nonlocal asked
        asked += 1
        route.fulfill(json=answer)

    look.page.route("**/strength.json?*", answered)
    page = look.to(f"#/c/over-{GAME}/bot/{arena.players['on'][0]}/strength")
    said = page.locator(".analysed [role=status]")
    said.filter(has_text="number 2 in the queue. Waits while bots play.").wait_for()
    look.sound("the queue")
    answer = running
    page.get_by_text("3 of 7 matches").wait_for()
    assert page.get_by_role("progressbar").get_attribute("value") == "3"
    look.sound("the progress")

    page.evaluate(HIDE, True)
    page.wait_for_timeout(1_500)
    before = asked
    page.wait_for_timeout(1_500)
    assert asked == before, "nobody looks"
    answer = refused
    page.evaluate(HIDE, False)
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
    said.filter(has_text="Three wait already.").wait_for()
    before = asked
    page.wait_for_timeout(1_500)
    assert asked == before, "it goes on no more"
    page.get_by_role("button", name="Ask again").click()
    page.wait_for_timeout(200)
    assert asked > before
