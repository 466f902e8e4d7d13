"""How good bots are and what their decisions cost, on the page, in all games: from documents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing
from arena.games.catalogue import GAMES
from arena.lab.in_process import play as played
from arena.lab.in_process import seeded
from arena.storage.store import Store
from protocol.strategy import find
from tests.support.browser import PHONE, PROJECTOR
from tests.support.page_of_documents import route
from tests.support.page_reader import AnalysisReader, owner
from tests.support.sample_database import SampleWriter, plan, play

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.e2e.page.conftest import Windows
    from tests.support.browser import BrowserWindow

pytestmark = pytest.mark.e2e

GAME = "ace_king_queen"
GIN_SEED = 19  # of a whole game, as its judge wants it, that is soon over
LOG_IN = "token => localStorage.setItem('arena.token', token)"
HIDE = "is => Object.defineProperty(document, 'hidden', { get: () => is, configurable: true })"


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> AnalysisReader:
    """A match of every game, by ann and others, and one in a competition that goes on."""
    file = tmp_path_factory.mktemp("analysed") / "arena.db"
    with Store(file) as store:
        for game in GAMES:
            _write(store, game, f"over-{game}")
            store.competition_finished(f"over-{game}", 2_000.0)
        _write(store, GAME, "on")
    return AnalysisReader(file)


def _write(store: Store, game: str, competition: str) -> None:
    settings = {} if game == "gin_rummy" else dict(GAMES[game].rounds(12))
    writer = SampleWriter(store, plan(game, settings=settings), competition)
    result = play(game, settings=settings) if game != "gin_rummy" else _gin()
    first = next(schedule_of(writer.plan))[0]
    writer.finished(Pairing(1, first.players), result, f"{competition}-1")


def _gin() -> Any:
    bots = [seeded(find("gin_rummy", name)(), "7") for name in ("random", "simple")]
    return played("gin_rummy", bots, seed=GIN_SEED)


def players(reader: AnalysisReader, match: str) -> list[str]:
    found: list[str] = reader.get(f"matches/{match}.json")["players"]
    return found


@pytest.mark.parametrize("game", GAMES)
def test_every_game_has_its_charts_and_its_marks(
    windows: Windows, analysed: AnalysisReader, game: str
) -> None:
    first, *others = players(analysed, f"over-{game}-1")
    look = windows.of(analysed)
    page = look.to(route("c", f"over-{game}", "bot", first, "strength", *(others[:1] or [first])))
    page.locator(".habit").first.wait_for()
    is_sound(look, "two bots side by side", axe=game == GAME)
    assert page.locator(".habit table").count() >= 1
    assert page.locator(".habit tbody th").first.inner_text()

    page = look.to(route("m", f"over-{game}-1"))
    page.get_by_role("group", name="Whose mistakes").get_by_role("button").first.click()
    page.get_by_role("button", name="Next mistake").wait_for()
    page.get_by_text("given away in").wait_for()
    page.keyboard.press("m")
    marked = page.locator(".steps [aria-current=step]").filter(has_text="best was: ")
    marked.wait_for()
    assert marked.locator(".sign").inner_text().split()[0] in ("?!", "?", "??")
    is_sound(look, "a mistake", axe=game == GAME)


def is_sound(look: BrowserWindow, what: str, *, axe: bool) -> None:
    for size in (PHONE, PROJECTOR):
        look.resize(size)
        look.sound(what, axe=axe, colours=size == PHONE)


def test_M_leads_from_mistake_to_mistake_and_the_dearest_are_a_click_away(
    windows: Windows, analysed: AnalysisReader
) -> None:
    look = windows.of(analysed)
    page = look.to(route("m", f"over-{GAME}-1"))
    page.locator(".whose").first.click()
    page.get_by_role("button", name="Next mistake").wait_for()
    document = analysed.analysis(f"matches/over-{GAME}-1/mistakes.json", seat="1")
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


def test_J8_meanwhile_only_the_owner_sees_marks_and_analysis(
    windows: Windows, analysed: AnalysisReader
) -> None:
    ann, ben = players(analysed, "on-1")
    look = windows.of(analysed)
    for viewer in ("", ben, ann):
        if viewer:
            look.page.evaluate(LOG_IN, viewer)
            look.page.reload()
        with look.expecting("" if viewer == ann else "403"):
            page = look.to(route("c", "on", "bot", ann, "strength"))
            if viewer == ann:
                page.locator(".habit").first.wait_for()
            else:
                page.get_by_text("is for the bot's owner and the instructor until").wait_for()
                assert page.locator(".habit").count() == 0
        page = look.to(route("m", "on-1"))
        own = page.locator(".whose")
        if viewer:
            page.get_by_text("given away in").wait_for()
            assert own.all_inner_texts() == [viewer]
            assert own.first.get_attribute("aria-pressed") == "true"
            page.keyboard.press("m")
            marked = page.locator(".steps button", has=page.locator(".sign"))
            marked.first.wait_for()
            assert all(text.startswith(viewer) for text in marked.all_inner_texts())
            _saves_its_seat(page, viewer, [ann, ben].index(viewer) + 1, analysed)
        else:
            page.get_by_text("for the owners of these bots").wait_for()
            assert own.count() == page.get_by_role("button", name="Save ").count() == 0
        look.sound(f"what {viewer or 'everybody'} sees", axe=viewer == ann)


def _saves_its_seat(page: Page, viewer: str, seat: int, reader: AnalysisReader) -> None:
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save what my seat saw").click()
    assert saved.value.suggested_filename == f"on-1-seat-{seat}.json"
    record = reader.reply("matches/on-1/record.json", owner(viewer)).body
    assert saved.value.path().read_bytes() == record


def test_how_far_an_analysis_is_is_asked_for_until_it_is_done(
    windows: Windows, analysed: AnalysisReader
) -> None:
    status: dict[str, Any] = {"place": None, "done": 0, "of": 0, "text": "", "strength": None}
    queued = {**status, "state": "queued", "place": 2, "text": "waits while bots play"}
    running = {**status, "state": "running", "done": 3, "of": 7}
    refused = {**status, "state": "refused", "text": "three wait already"}
    answers: list[dict[str, Any]] = []

    def answered(state: dict[str, Any], route: Route) -> None:
        answers.append(state)
        route.fulfill(json=state)

    look = windows.of(analysed, is_new=True)
    look.page.clock.install()
    look.page.route("**/strength.json?*", partial(answered, queued))
    page = look.to(route("c", f"over-{GAME}", "bot", players(analysed, "on-1")[0], "strength"))
    said = page.locator(".analysed [role=status]")
    said.filter(has_text="number 2 in the queue. Waits while bots play.").wait_for()
    look.sound("the queue")
    page.route("**/strength.json?*", partial(answered, running))
    page.clock.run_for(2_000)
    page.get_by_text("3 of 7 matches").wait_for()
    assert page.get_by_role("progressbar").get_attribute("value") == "3"
    look.sound("the progress")

    page.evaluate(HIDE, True)
    page.clock.run_for(2_000)
    before = len(answers)
    page.clock.run_for(60_000)
    page.route("**/strength.json?*", partial(answered, refused))
    page.evaluate(HIDE, False)
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
    said.filter(has_text="Three wait already.").wait_for()
    assert answers[before:] == [refused], "nobody looked"
    page.clock.run_for(60_000)
    with page.expect_response("**/strength.json?*"):
        page.get_by_role("button", name="Ask again").click()
    said.filter(has_text="Three wait already.").wait_for()
    assert answers[before + 1 :] == [refused], "it was asked for by the click alone"
