"""Every view of the page, on a projector and on a phone: what has been played, from documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from arena.formats.formats import schedule_of
from arena.games.catalogue import GAMES
from arena.storage.live_results import LiveResults
from arena.storage.store import Store
from tests.support.browser import PHONE, SIZES, BrowserWindow
from tests.support.class_with_page import LONG, ROGUE
from tests.support.page_of_documents import route, views_of
from tests.support.page_reader import AnalysisReader
from tests.support.sample_database import SampleWriter, plan, play

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.e2e.page.conftest import Windows
    from tests.support.class_with_page import ClassWithPage

pytestmark = pytest.mark.e2e

OF_THE_ARENA = {
    "lobby": "#/",
    "play": "#/play",
    "submit": "#/submit",
    "instructor": "#/instructor",
    "live": "",
}
PLAIN = {
    "competitions": "#/competitions",
    "nowhere": "#/nowhere/at/all",
    "no match": "#/m/nothing",
    "no competition": "#/c/nothing",
}
OF_ONE_GAME = {
    "ace_king_queen": ("cross", "pairing", "rogue"),
    "gin_rummy": ("bot", "rules"),
    "high_low": ("standings", "matches"),
    "three_card_poker": ("bot",),
    "blackjack": ("verdicts",),
}
OF_DOCUMENTS = [
    *PLAIN,
    *(f"{game} {view}" for game in GAMES for view in ("competition", "match")),
    *(f"{game} {view}" for game, views in OF_ONE_GAME.items() for view in views),
]
DARK = ("lobby", "play", "gin_rummy match", "ace_king_queen cross", "high_low competition")
STILL = ("lobby", "live", "gin_rummy match")
TO_MATCH = "a[href^='#/m/']"
MOST_BYTES = 322_000  # of these 3,000 name versions, and 17,000 show strength and mistakes

STEPS = """async ([button, most]) => {
  const seen = [];
  const look = () => seen.push(document.querySelector(".felt").innerHTML.replace(/ id="[^"]*"/g, ""));
  const where = () => document.querySelector(".where").textContent + document.querySelector(".jump").querySelector("input").value;
  look();
  while (seen.length <= most) {
    const act = document.querySelector(`button[aria-label="${button}"]`);
    if (act.disabled) break;
    const before = where();
    act.click();
    while (where() === before || !document.querySelector(".felt")) await new Promise((done) => setTimeout(done));
    look();
  }
  return seen;
}"""
AS_SOON_AS_DRAWN = """() => new MutationObserver((_, observer) => {
  if (document.querySelector("main h1")) {
    observer.disconnect();
    location.hash = "#/competitions";
  }
}).observe(document, { childList: true, subtree: true })"""
BLANK = """() => [...document.querySelectorAll("select")]
  .filter((one) => one.selectedIndex < 0 || [...one.options].some((each) => each.text && !each.hasAttribute("value")))
  .map((one) => one.parentElement.innerText)"""
INTERVAL = re.compile(r"[+−]?[\d.,]+ \[[+−]?[\d.,]+, [+−]?[\d.,]+\]")
NOTE = (
    "[…]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong; each is computed from"
)


@pytest.fixture(scope="module")
def views(reader: AnalysisReader) -> dict[str, str]:
    """The routes of all views that are made of documents."""
    of_games = {
        f"{game} {view}": where for game in GAMES for view, where in views_of(reader, game).items()
    }
    return {**PLAIN, **of_games}


@pytest.fixture(params=SIZES)
def look(request: pytest.FixtureRequest, windows: Windows, reader: AnalysisReader) -> BrowserWindow:
    """A window of either size."""
    return windows.of(reader, SIZES[request.param])


def of_the_arena(school: ClassWithPage, view: str) -> str:
    live = school.route("m", school.at_table()["ace_king_queen"]) if view == "live" else ""
    return live or OF_THE_ARENA[view]


def is_sound(look: BrowserWindow, where: str, view: str) -> None:
    with look.expecting("404" if view.startswith("no ") else ""):
        page = look.to(where)
        for size in SIZES.values():
            look.resize(size)
            look.sound(view, axe=size == PHONE)  # which looks at what is there, alike at both

    assert page.locator("h1").count() == 1
    assert page.title().endswith("arena")


@pytest.mark.needs("axe-core")
def test_that_people_with_a_disability_can_use_it_is_checked(axe: str | None) -> None:
    assert axe is not None


@pytest.mark.parametrize("view", OF_DOCUMENTS)
def test_a_view_of_documents_is_sound(
    windows: Windows, reader: AnalysisReader, views: dict[str, str], view: str
) -> None:
    is_sound(windows.of(reader), views[view], view)


@pytest.mark.parametrize("view", OF_THE_ARENA)
def test_a_view_of_the_arena_is_sound(windows: Windows, school: ClassWithPage, view: str) -> None:
    is_sound(windows.at(school.url), of_the_arena(school, view), view)


@pytest.mark.parametrize(
    ("taste", "seen"),
    [({"color_scheme": "dark"}, DARK), ({"reduced_motion": "reduce"}, STILL)],
    ids=["in the dark", "without motion"],
)
def test_a_view_can_be_read(
    windows: Windows,
    reader: AnalysisReader,
    school: ClassWithPage,
    views: dict[str, str],
    taste: dict[str, Any],
    seen: tuple[str, ...],
) -> None:
    for view in seen:
        if view in OF_THE_ARENA:
            look, where = windows.at(school.url, **taste), of_the_arena(school, view)
        else:
            look, where = windows.of(reader, **taste), views[view]
        page = look.to(where)
        if "reduced_motion" in taste:
            for _ in range(5):
                assert page.evaluate("() => document.getAnimations().length") == 0, view
        look.sound(view, axe="color_scheme" in taste)


def test_the_whole_page_is_small(windows: Windows, school: ClassWithPage) -> None:
    look = windows.at(school.url, is_new=True)
    for view in OF_THE_ARENA:
        look.to(of_the_arena(school, view))
    over = school.competitions()["ace_king_queen-cup"]["id"]
    for where in ("#/competitions", school.route("c", over), school.route("c", over, "cross")):
        look.to(where)
    for match in school.at_table().values():
        look.to(school.route("m", match))
    sizes = look.sizes(compressed=True)

    assert sum(sizes.values()) < MOST_BYTES, sizes
    assert any(path.endswith("blackjack/view.js") for path in sizes), "it saw all of it"


def test_an_address_that_changes_at_once_is_followed(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = windows.of(reader, is_new=True)
    look.page.add_init_script(f"({AS_SOON_AS_DRAWN})()")
    page = look.to("#/nowhere")
    page.get_by_role("heading", name="Competitions", exact=True).wait_for()

    assert page.url.endswith("#/competitions")


def test_the_documents_are_a_click_away(look: BrowserWindow) -> None:
    page = look.to("#/competitions")
    page.get_by_role("link", name="Docs").click()
    page.get_by_role("heading", name="Card Arena").first.wait_for()
    look.sound("the documents", axe=False)
    page.get_by_role("link", name="arena", exact=True).click()
    page.wait_for_function("() => document.querySelector('main h1')")

    assert page.url == f"{look.url}/"


# ---- Competitions


def test_standings_sort_and_say_so(look: BrowserWindow, views: dict[str, str]) -> None:
    page = look.to(views["ace_king_queen competition"])
    head = page.get_by_role("columnheader", name="Score")
    head.get_by_role("button").click()
    scores = _column(page, "Score")

    assert head.get_attribute("aria-sort") == "descending"
    assert scores == sorted(scores, reverse=True)
    assert len(scores) > 5
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert _column(page, "Score") == sorted(scores)
    assert page.locator("tbody .errorbar").count() == len(scores)
    # Each mean has its interval or says that there are too few, and a line below says what it is.
    cells = page.get_by_role("table", name="Standings").locator("tbody td")
    means = cells.filter(has=page.locator("[title='95 % interval']")).all_inner_texts()
    few = cells.filter(has_text="(too few)").count()
    assert len(means) + few == len(scores)
    assert [text for text in means if not INTERVAL.fullmatch(text.strip())] == []
    assert page.get_by_text(NOTE).count() == 1
    assert "±" not in page.locator("main").inner_text()


def _column(page: Page, title: str) -> list[int]:
    """The figures of a column, without those of bots that are out."""
    standings = page.get_by_role("table", name="Standings")
    titles = [text.strip(" ▲▼\n") for text in standings.locator("thead th").all_inner_texts()]
    cells = standings.locator(f"tbody tr > :nth-child({titles.index(title) + 1})")
    texts = [text.replace("−", "-").replace(",", "") for text in cells.all_inner_texts()]
    return [int(text) for text in texts if text.strip()]


def test_the_cross_table_leads_to_a_pairing_and_a_match(
    look: BrowserWindow, views: dict[str, str]
) -> None:
    page = look.to(views["ace_king_queen cross"])
    page.get_by_role("link", name=re.compile("^Ada against Ben: ")).click()
    page.get_by_role("heading", name="Ada against Ben").wait_for()
    page.get_by_text(NOTE).wait_for()
    _follow(page, page.locator(TO_MATCH).first)
    page.get_by_label("Step through the match").wait_for()

    assert {"Ada", "Ben"} <= set(page.locator(".versus-names bdi").all_inner_texts())


def _follow(page: Page, link: Locator) -> None:
    """Open a link that has a hidden part for screen readers: a click in its middle misses."""
    link.focus()
    page.keyboard.press("Enter")


def test_the_cross_table_is_gone_through_with_arrows(
    windows: Windows, reader: AnalysisReader, views: dict[str, str]
) -> None:
    page = windows.of(reader).to(views["ace_king_queen cross"])
    page.locator("a[data-at='0 1']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Home", "Enter"):
        page.keyboard.press(key)

    page.get_by_role("heading", name=" against ").wait_for()
    assert page.url.endswith("#/c/ace_king_queen-cup/pairing/Ben/Gus")


def test_G15_a_defeat_in_gin_is_not_painted_as_a_draw(
    windows: Windows, reader: AnalysisReader, views: dict[str, str]
) -> None:
    won, lost = [2, 2, 0, 0, 2, 1.0, 0.0], [2, 0, 0, 2, 0, 0.0, 0.0]
    drawn = [2, 0, 2, 0, 0, 0.0, 0.0]
    cells = [[0, 1, *won], [1, 0, *lost], [0, 2, *drawn], [2, 0, *drawn]]
    cross = {"names": ["ann", "ben", "cem"], "cells": cells}
    look = windows.of(reader)
    look.page.route("**/cross.json", lambda route: route.fulfill(json=cross))
    page = look.to(views["gin_rummy cross"])
    painted = {
        at: page.locator(f"td:has(a[data-at='{at}'])").get_attribute("class")
        for at in ("0 1", "1 0", "0 2", "2 0")
    }

    assert painted == {"0 1": "w5", "1 0": "l5", "0 2": "level", "2 0": "level"}


def test_the_bracket_leads_to_its_tables(look: BrowserWindow, views: dict[str, str]) -> None:
    page = look.to(views["high_low competition"])
    bracket = page.get_by_role("region", name="Bracket")

    assert bracket.get_by_role("region").count() >= 2
    bracket.locator(TO_MATCH).first.click()
    page.get_by_label("Step through the match").wait_for()
    assert page.locator(".versus-names bdi").count() == 4


def test_a_bots_page_shows_against_whom_when_and_how_fast(
    look: BrowserWindow, views: dict[str, str]
) -> None:
    page = look.to(views["gin_rummy bot"])

    assert page.get_by_role("heading", level=1).inner_text().strip() == LONG
    opponents = page.get_by_role("region", name="Results by opponent")
    assert opponents.locator("tbody tr").count() >= 5
    assert page.get_by_role("img", name="Score in all").is_visible()
    times = page.get_by_role("img", name="How long its decisions took")
    assert times.locator(".slot").count() >= 1


def test_a_student_sees_why_its_bot_is_out(look: BrowserWindow, views: dict[str, str]) -> None:
    page = look.to(views["ace_king_queen rogue"])
    verdict = page.locator(".verdict").first

    assert page.get_by_role("heading", level=1).inner_text().strip() == ROGUE
    assert "illegal" in verdict.inner_text()
    assert verdict.get_by_label("what came instead").inner_text() == '"no"'
    verdict.get_by_role("link", name="step through the match").click()
    page.get_by_label("Step through the match").wait_for()


def test_bots_are_shown_with_their_versions(windows: Windows, tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        robin = SampleWriter(store, plan("ace_king_queen"), "ace_king_queen")
        pairing = next(schedule_of(robin.plan))[0]
        players = pairing.players
        robin.finished(pairing, play("ace_king_queen", versions=("v3", "connected")))
        final = SampleWriter(store, plan("high_low"), "high_low")
        for table in next(schedule_of(final.plan)):
            versions = "v1", "v2", "v4", ""
            final.finished(table, play("high_low", table.number, versions=versions))
        store.flush()
        labels = LiveResults(store, "high_low").book.versions
    look = windows.of(AnalysisReader(tmp_path / "arena.db"), is_new=True)
    for where in (route("c", "ace_king_queen", "standings"), route("m", "ace_king_queen-1")):
        page = look.to(where)
        page.get_by_role("link", name=f"{players[0]} v3", exact=True).first.wait_for()
        page.get_by_role("link", name=f"{players[1]} (connected)", exact=True).first.wait_for()
        look.sound(where)
    page = look.to(route("c", "ace_king_queen", "bot", players[0]))
    page.get_by_role("heading", name=f"{players[0]} v3", exact=True).wait_for()
    page = look.to(route("c", "high_low", "standings"))
    assert labels
    for name, label in labels.items():
        page.get_by_role("link", name=f"{name} {label}", exact=True).wait_for()


# ---- Matches that are over


@pytest.mark.parametrize("game", GAMES)
def test_a_recorded_table_is_stepped_through_and_back(
    windows: Windows, reader: AnalysisReader, views: dict[str, str], game: str
) -> None:
    page = windows.of(reader).to(views[f"{game} match"])
    page.locator(".felt").wait_for()
    page.get_by_role("button", name="Last").click()
    page.get_by_role("button", name="Step").and_(page.locator(":disabled")).wait_for()
    most = 10_000 if game == "ace_king_queen" else 40
    back = page.evaluate(STEPS, ["Back", most])
    forth = page.evaluate(STEPS, ["Step", len(back) - 1])

    assert len(back) > 10
    assert forth == back[::-1]
    page.get_by_role("button", name="First").click()
    page.get_by_role("button", name="First").and_(page.locator(":disabled")).wait_for()


def test_a_table_is_stepped_with_keys_and_linked_to(
    look: BrowserWindow, views: dict[str, str], windows: Windows, reader: AnalysisReader
) -> None:
    page = look.to(views["high_low match"])
    page.locator(".felt").wait_for()
    for key in ("n", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Copy link to this moment").click()
    page.get_by_text("copied").wait_for()
    link = page.evaluate("() => navigator.clipboard.readText()")
    shown = page.locator(".felt").inner_text()
    other = windows.of(reader, look.size, is_new=True)
    other.page.goto(link)
    other.page.locator(".felt").wait_for()

    assert link.endswith("/2/2")
    assert other.page.locator(".felt").inner_text() == shown
    other.sound("the link", axe=False)


@pytest.mark.parametrize(("worst", "shown"), [(-1, 0), (-2, 1)])
def test_the_largest_loss_is_named_where_losses_differ(
    windows: Windows, reader: AnalysisReader, views: dict[str, str], worst: int, shown: int
) -> None:
    where = views["ace_king_queen match"]
    document = reader.get(f"matches/{where.removeprefix('#/m/')}.json")
    lost = [worst if number == 2 else -1 for number in range(len(document["rounds"]))]
    sums = [sum(lost[: at + 1]) for at in range(len(lost))]
    changed = {**document, "rounds": [[score, -score] for score in sums]}
    look = windows.of(reader)
    look.page.route(f"**/{document['id']}.json", lambda route: route.fulfill(json=changed))
    page = look.to(where)
    page.locator(".felt").wait_for()

    assert len(lost) > 3
    assert page.get_by_text("largest loss").count() == shown


def test_every_choice_on_the_page_has_the_value_that_it_shows(
    windows: Windows, reader: AnalysisReader, school: ClassWithPage, views: dict[str, str]
) -> None:
    arena, documents = windows.at(school.url), windows.of(reader)
    for look, where in (
        (documents, views["competitions"]),
        (documents, views["gin_rummy match"]),
        (arena, "#/play"),
        (arena, of_the_arena(school, "live")),
    ):
        page = look.to(where)
        page.locator("select").first.wait_for()
        assert page.evaluate(BLANK) == [], where
