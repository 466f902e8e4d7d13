"""The page in a real Chromium: windows of many sizes, paper, an arena or match that is gone.

There is one arena, with a class that has played, and a running match of every game. A window of
half the size stands for 200 % zoom. With `CARD_ARENA_BEHIND_PROXY=1` the windows are open behind
nginx, below a path, with TLS."""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_tls import make
from tests.support.arena_process import free_port
from tests.support.browser import PHONE, PROJECTOR, BrowserWindow, browser
from tests.support.class_with_page import GAMES, ClassWithPage
from tests.support.page_player import sit_down
from tests.support.proxy import nginx

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route, WebSocketRoute

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="the class needs signals"),
]

BEHIND_PROXY = "CARD_ARENA_BEHIND_PROXY" in os.environ
PATH = "/arena/"
SERVE = """
open = true
trusted_proxy = ["127.0.0.1"]
origin = ["https://127.0.0.1:{port}"]
base_path = "{path}"
"""
SMALL_PHONE, LAPTOP = (360, 640), (1366, 768)
PLAYED_AT = {
    "a small phone": SMALL_PHONE,
    "a phone": PHONE,
    "a phone on its side": (844, 390),
    "a laptop": LAPTOP,
    "a projector": PROJECTOR,
    "a laptop at 200 %": (683, 384),
    "a projector at 200 %": (960, 540),
}
SHEET = 718  # CSS pixels between the margins of a sheet of A4
MANY = 40
AWAY_MS = 2_000  # until the page is loaded again
AGAIN_MS = 5_000  # until the page asks for a document again

HIDDEN = """() => {
  const wanted = [...document.querySelectorAll(".turn .moves, .turn button, .turn input, .felt .plate")];
  const own = wanted.filter((one) => !one.matches(".plate") || one.innerText.includes("Pia"));
  const out = own.filter((one) => {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    return left < 0 || top < 0 || right > innerWidth + 1 || bottom > innerHeight + 1;
  });
  const covered = own.filter((one) => !out.includes(one)).filter((one) => {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    const on = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return !one.contains(on) && !on?.contains(one);
  });
  return [...out, ...covered].map((one) => `${one.className}: ${one.innerText.slice(0, 30)}`).concat(scrollY ? [`scrolled by ${scrollY}`] : []);
}"""
CUT_NAMES = """() => [...document.querySelectorAll(".plate .who")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
  .map((one) => one.innerText)
  .filter((name) => !name.startsWith("Pia"))"""
OVERLAPPING = """() => {
  const all = [...document.querySelectorAll(".controls :is(button, input, select)")].map((one) => [one, one.getBoundingClientRect()]);
  const shown = all.filter(([, { width }]) => width);
  const name = (one) => one.getAttribute("aria-label") ?? one.innerText ?? one.localName;
  const on = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const pairs = shown.flatMap(([one, a], at) => shown.slice(at + 1).filter(([, b]) => on(a, b)).map(([other]) => `${name(one)} on ${name(other)}`));
  return pairs.concat(shown.filter(([, { left, right }]) => left < 0 || right > innerWidth).map(([one]) => `${name(one)} is outside`));
}"""
BROKEN = """() => [...document.querySelectorAll(".bar nav a")].filter((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  const { left, right } = one.getBoundingClientRect();
  const nav = one.parentElement.getBoundingClientRect();
  return range.getClientRects().length !== 1 || left < Math.max(0, nav.left - 1) || right > Math.min(innerWidth, nav.right + 1);
}).map((one) => one.innerText)"""
WIDER = """() => [...document.querySelectorAll("main *")]
  .filter((one) => { const { right, width } = one.getBoundingClientRect(); return width && right > innerWidth + 1; })
  .map((one) => `${one.localName}.${one.getAttribute("class")}`)"""
CUT = """() => [...document.querySelectorAll("main :is(.name, td, th, .wide, .box)")]
  .filter((one) => getComputedStyle(one).overflow !== "visible" && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
  .map((one) => `${one.localName}.${one.getAttribute("class")}: ${one.innerText.slice(0, 30)}`)"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def proxy_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def school(
    chromium: Browser, proxy_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClassWithPage]:
    serve = SERVE.format(port=proxy_port, path=PATH) if BEHIND_PROXY else ""
    with ClassWithPage(tmp_path_factory.mktemp("school"), tuple(GAMES), serve) as it:
        it.played()
        yield it


@pytest.fixture(scope="module")
def url(
    school: ClassWithPage, proxy_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The page's address in the windows: the arena's own, or that of nginx."""
    if not BEHIND_PROXY:
        yield school.url
        return
    folder, arena = tmp_path_factory.mktemp("nginx"), urlsplit(school.url).port
    assert arena
    with nginx(folder, arena, PATH, make(folder, "nginx"), proxy_port):
        yield f"https://127.0.0.1:{proxy_port}{PATH.rstrip('/')}"


Open = Callable[..., BrowserWindow]


@pytest.fixture
def window(chromium: Browser, url: str) -> Iterator[Open]:
    """Opens windows that are closed at the end of the test."""
    with windows(chromium, url) as open_one:
        yield open_one


@pytest.fixture(scope="module")
def shared(chromium: Browser, url: str) -> Iterator[Open]:
    """Returns windows, opened once for each size, to tests that leave them unchanged."""
    with windows(chromium, url) as open_one:
        yield cache(open_one)


@contextmanager
def windows(chromium: Browser, url: str) -> Iterator[Open]:
    """Opens windows that are closed at the end."""
    opened: list[BrowserWindow] = []

    def open_one(size: tuple[int, int] = LAPTOP, **taste: Any) -> BrowserWindow:
        opened.append(BrowserWindow(chromium, url, size, ignore_https_errors=True, **taste))
        return opened[-1]

    yield open_one
    for look in opened:
        look.close()


# ---- Windows


@pytest.mark.parametrize("size", [SMALL_PHONE, PHONE, (683, 384)])
def test_no_word_of_the_navigation_is_broken_or_cut_off(
    shared: Open, size: tuple[int, int]
) -> None:
    page = shared(size).to("#/")
    page.locator(".line .live").wait_for(state="attached")

    assert page.evaluate(BROKEN) == []


@pytest.mark.parametrize("game", GAMES)
def test_a_live_match_fits_a_laptop(shared: Open, school: ClassWithPage, game: str) -> None:
    page = shared(LAPTOP).to(school.route("m", school.at_table()[game]))
    page.get_by_role("button", name="Watch live").wait_for()
    page.locator(".felt").wait_for()

    assert page.evaluate("() => document.scrollingElement.scrollHeight") <= LAPTOP[1]


@pytest.mark.parametrize("size", PLAYED_AT.values(), ids=PLAYED_AT)
def test_no_control_of_a_live_match_lies_on_another(
    shared: Open, school: ClassWithPage, size: tuple[int, int]
) -> None:
    page = shared(size).to(school.route("m", school.at_table()["gin_rummy"]))
    page.get_by_role("button", name="Watch live").wait_for()
    page.locator(".felt").wait_for()

    assert page.evaluate(OVERLAPPING) == []


@pytest.mark.parametrize("size", PLAYED_AT.values(), ids=PLAYED_AT)
@pytest.mark.parametrize("game", GAMES)
def test_who_plays_sees_seat_and_moves_without_scrolling(
    shared: Open, game: str, size: tuple[int, int]
) -> None:
    person = sit_down(shared(size), game, f"Pia {size[0]} {game}")
    person.page.get_by_label("Pace").select_option("at once")
    seen = 0
    while seen < 4 and person.may_move():
        assert person.page.evaluate(HIDDEN) == []
        assert person.page.evaluate(CUT_NAMES) == []
        person.move()
        seen += 1
    person.to_the_end_of_the_round()

    assert seen
    assert not [hidden for hidden in person.page.evaluate(HIDDEN) if "move main" in hidden]
    person.stand_up()


# ---- Paper


def names(count: int) -> list[str]:
    return [f"student number {n} of the class" for n in range(count)]


def many_cells(count: int) -> dict[str, Any]:
    """A cross table in which the later bot wins."""
    cells = [
        [row, column, 2, 1, 0, 1, row - column, (row - column) / 2, 0.1]
        for row in range(count)
        for column in range(count)
        if row != column
    ]
    return {"names": names(count), "cells": cells}


def large_bracket(document: dict[str, Any], count: int) -> dict[str, Any]:
    """An elimination of so many bots, in which the first two of every table advance."""
    left, pairing = names(count), 0
    stages: list[dict[str, Any]] = []
    while len(left) > 4:
        tables, through = [], []
        for at in range(0, len(left) // 4 * 4, 4):
            players, pairing = left[at : at + 4], pairing + 1
            tables.append(_table(pairing, players, players[:2], players[2:]))
            through += players[:2]
        byes = left[len(left) // 4 * 4 :]
        stages.append({"stage": len(stages) + 1, "final": False, "tables": tables, "byes": byes})
        left = through + byes
    last = _table(pairing + 1, left, None, None)
    stages.append({"stage": len(stages) + 1, "final": True, "tables": [last], "byes": []})
    return {**document, "bracket": stages}


def _table(pairing: int, players: list[str], advanced: Any, out: Any) -> dict[str, Any]:
    scores = [30, 10, -15, -25][: len(players)]
    return {
        "pairing": pairing,
        "match": None,
        "players": players,
        "house": [],
        "state": "over",
        "scores": scores,
        "advanced": advanced,
        "out": out,
        "offender": None,
    }


def large(page: Page, school: ClassWithPage, game: str) -> str:
    """Show the game's cup as if so many bots had played in it; returns its id."""
    id_ = str(school.competitions()[f"{game}-cup"]["id"])
    path = f"/api/competitions/{id_}.json"
    document = school.document(path)
    if document["form"] == "elimination":
        document = large_bracket(document, MANY)
    else:
        rows = [row for row in document["standings"] if row["rank"] is not None]
        many = [{**rows[n % len(rows)], "name": name} for n, name in enumerate(names(MANY))]
        document = {**document, "standings": many}
    page.route(f"**{path}", lambda route: route.fulfill(json=document))
    cross = many_cells(MANY)
    page.route("**/cross.json", lambda route: route.fulfill(json=cross))
    return id_


def sheets(pdf: bytes) -> tuple[int, set[tuple[int, int]], set[str]]:
    """The number of sheets of a PDF, their size in points, and the colours of filled areas."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    colours: set[str] = set()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            drawn = zlib.decompress(stream)
        except zlib.error:
            continue
        colours |= {colour.decode() for colour in re.findall(rb"([\d. ]+) rg", drawn)}
    return len(boxes), {(round(float(w)), round(float(h))) for w, h in boxes}, colours


def _filled(colours: set[str], red: int, green: int, blue: int) -> bool:
    wanted = (red / 255, green / 255, blue / 255)
    return any(
        all(abs(float(a) - b) < 0.005 for a, b in zip(colour.split(), wanted, strict=True))
        for colour in colours
        if len(colour.split()) == 3
    )


@pytest.mark.parametrize(
    ("game", "tab"),
    [("ace_king_queen", "cross"), ("ace_king_queen", "standings"), ("high_low", None)],
    ids=["cross table", "standings", "bracket"],
)
def test_nothing_is_cut_off_on_paper(
    window: Open, school: ClassWithPage, game: str, tab: str | None
) -> None:
    look = window(LAPTOP)
    look.to("#/")
    id_ = large(look.page, school, game)
    page = look.to(school.route("c", id_, *([tab] if tab else [])))
    page.get_by_text("student number 39 of the class").first.wait_for(state="attached")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": SHEET, "height": 1000})

    assert page.evaluate(WIDER) == []
    assert page.evaluate(CUT) == []
    printed = page.locator("main").inner_text()
    assert all(name in printed for name in names(MANY))


def test_a_cross_table_is_printed_in_its_colours_on_sheets_that_are_wide(
    window: Open, school: ClassWithPage
) -> None:
    look = window(LAPTOP, color_scheme="dark")
    look.to("#/")
    id_ = large(look.page, school, "ace_king_queen")
    page = look.to(school.route("c", id_, "cross"))
    page.locator("tbody tr").nth(MANY - 1).wait_for()
    count, sizes, colours = sheets(page.pdf(prefer_css_page_size=True))

    assert count == 2
    assert all(width > height for width, height in sizes)
    assert _filled(colours, 10, 86, 173), "who is ahead"
    assert _filled(colours, 196, 84, 14), "who is behind"


def test_every_sheet_of_a_table_has_the_heads_of_its_columns(
    window: Open, school: ClassWithPage
) -> None:
    look = window(LAPTOP)
    look.to("#/")
    id_ = large(look.page, school, "ace_king_queen")
    page = look.to(school.route("c", id_, "standings"))
    page.locator("tbody tr").nth(MANY - 1).wait_for()
    page.emulate_media(media="print")
    head = page.get_by_role("table", name="Standings").locator("thead")
    heads = head.locator("th").all_inner_texts()

    assert {"Bot", "Won", "Lost", "Score"} <= {each.strip(" ▲▼") for each in heads}
    assert page.locator("thead button:visible").count() == 0, "which are not repeated"
    assert head.evaluate("it => getComputedStyle(it).display") == "table-header-group"


def test_a_bracket_of_forty_is_printed(window: Open, school: ClassWithPage) -> None:
    look = window(LAPTOP)
    look.to("#/")
    id_ = large(look.page, school, "high_low")
    page = look.to(school.route("c", id_))
    page.locator(".stage").nth(4).wait_for()
    count, sizes, _ = sheets(page.pdf(prefer_css_page_size=True))

    assert count >= 2
    assert all(width > height for width, height in sizes)


# ---- What is shown


def test_G15_a_defeat_in_gin_is_not_painted_as_a_draw(window: Open, school: ClassWithPage) -> None:
    id_ = school.competitions()["gin_rummy-cup"]["id"]
    won, lost = [2, 2, 0, 0, 2, 1.0, 0.0], [2, 0, 0, 2, 0, 0.0, 0.0]
    drawn = [2, 0, 2, 0, 0, 0.0, 0.0]
    cells = [[0, 1, *won], [1, 0, *lost], [0, 2, *drawn], [2, 0, *drawn]]
    cross = {"names": ["ann", "ben", "cem"], "cells": cells}
    look = window()
    look.page.route("**/cross.json", lambda route: route.fulfill(json=cross))
    page = look.to(school.route("c", id_, "cross"))

    def painted(at: str) -> str | None:
        return page.locator(f"td:has(a[data-at='{at}'])").get_attribute("class")

    assert (painted("0 1"), painted("1 0")) == ("w5", "l5")
    assert (painted("0 2"), painted("2 0")) == ("level", "level")


@pytest.mark.parametrize(("worst", "shown"), [(-1, 0), (-2, 1)])
def test_the_largest_loss_is_named_where_losses_differ(
    window: Open, school: ClassWithPage, worst: int, shown: int
) -> None:
    id_ = school.competitions()["ace_king_queen-cup"]["id"]
    listed = school.document(f"/api/competitions/{id_}/matches.json")["matches"]
    path = f"/api/matches/{school.fair(listed)['id']}.json"
    document = school.document(path)
    scores, rounds = 0, []
    for number in range(len(document["rounds"])):
        scores += worst if number == 5 else -1
        rounds.append([scores, -scores])
    look = window()
    changed = {**document, "rounds": rounds}
    look.page.route(f"**{path}", lambda route: route.fulfill(json=changed))
    page = look.to(school.route("m", document["id"]))
    page.locator(".felt").wait_for()

    assert page.get_by_text("largest loss").count() == shown


# ---- What is gone


def test_a_view_that_was_opened_while_the_arena_was_away_comes_back(
    window: Open, school: ClassWithPage
) -> None:
    look = window()
    page = look.to("#/")
    with look.expecting("."):
        look.offline(True)
        page.evaluate("location.hash = '#/competitions'")
        page.get_by_text("could not be fetched").wait_for()
        look.offline(False)
        page.get_by_role("heading", name="Competitions", exact=True).wait_for()


@pytest.mark.parametrize("part", ["app.js", "grid.js", "views/lobby.js"])
def test_a_part_of_the_page_that_a_changing_network_cut_off_is_fetched_again(
    window: Open, part: str
) -> None:
    look = window()
    with look.expecting("ERR_FAILED"):
        look.page.route(f"**/{part}", lambda route: route.abort(), times=1)
        page = look.to("#/")
        page.get_by_role("heading", name="Lobby", exact=True).wait_for()
    look.sound("the lobby")


def test_a_part_that_is_never_fetched_does_not_have_the_page_loaded_without_end(
    window: Open,
) -> None:
    look = window()
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    with look.expecting("ERR_FAILED"):
        look.page.route("**/views/lobby.js", refuse)
        page = look.to("#/")
        with page.expect_navigation():
            page.get_by_text("could not be fetched").wait_for()
        page.get_by_text("could not be fetched").wait_for()
        page.wait_for_timeout(1.5 * AWAY_MS)
    assert len(asked) == 2


def test_a_document_that_is_read_once_comes_back(window: Open, school: ClassWithPage) -> None:
    look = window()
    look.page.clock.install()
    id_ = school.competitions()["gin_rummy-cup"]["id"]
    page = look.to(school.route("c", id_))
    with look.expecting("."):
        look.offline(True)
        page.get_by_role("link", name="Cross table").click()
        page.get_by_text("does not answer").wait_for()
        look.offline(False)
        page.clock.fast_forward(AGAIN_MS)
        page.get_by_role("grid", name="Cross table").wait_for()


def test_a_match_that_is_gone_has_no_clock(window: Open, school: ClassWithPage) -> None:
    look = window()
    opened: list[WebSocketRoute] = []

    def watch(route: WebSocketRoute) -> None:
        route.connect_to_server()
        opened.append(route)

    look.page.route_web_socket("**/watch", watch)
    page = look.to(school.route("m", school.at_table()["ace_king_queen"]))
    page.get_by_role("timer").first.wait_for()
    with look.expecting("404"):
        for route in opened:
            route.send('{"type": "gone"}')
        page.get_by_text("the match is over").wait_for()

        assert page.get_by_role("timer").count() == 0


# ---- To start a competition


def desk(window: Open, school: ClassWithPage) -> Page:
    look = window(PHONE)
    page = look.to("#/instructor")
    page.get_by_label("Token").fill(school.instructor)
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("heading", name="Competitions that are on").wait_for()
    return page


@pytest.mark.parametrize(
    ("game", "forms"),
    [
        ("gin_rummy", ["round robin", "ladder"]),
        ("high_low", ["elimination", "ladder"]),
        ("blackjack", ["league"]),
    ],
)
def test_only_forms_that_a_game_has_are_offered(
    window: Open, school: ClassWithPage, game: str, forms: list[str]
) -> None:
    page = desk(window, school)
    page.get_by_label("What").select_option(game)

    assert page.get_by_label("Form").locator("option").all_inner_texts() == forms


def test_every_setting_has_its_field_and_a_bad_value_its_line(
    window: Open, school: ClassWithPage
) -> None:
    page = desk(window, school)
    page.get_by_label("What").select_option("blackjack")
    before = school.started()

    assert page.get_by_label("Bankroll").input_value() == "100"
    assert page.get_by_label("Hands").input_value() == "1000"
    assert page.get_by_label("Shuffle").input_value() == "uniform"
    page.get_by_label("Hands").fill("-5")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text("Expected a whole number from 0 to 10,000,000, got -5").wait_for()
    assert page.get_by_label("Hands").get_attribute("aria-invalid") == "true"
    assert school.started() == before

    page.get_by_label("Hands").fill("7")
    page.get_by_label("Matches of each bot").fill("2")
    page.get_by_role("button", name="Start", exact=True).click()
    school.until(lambda: school.started() == before + 1, "one competition more")
    id_ = school.competitions()[""]["id"]
    started = school.document(f"/api/competitions/{id_}.json")
    assert started["settings"] == {"bankroll": 100, "hands": 7, "shuffle": "uniform"}
    assert started["matches"] == 2
