"""People at the page of an arena: they watch, play and log in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import PHONE, PROJECTOR, SIZES, WAITS, BrowserWindow
from tests.support.class_with_page import GAMES, LONG
from tests.support.page_player import PagePlayer, sit_down

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocketRoute

    from tests.e2e.page.conftest import Windows
    from tests.support.class_with_page import ClassWithPage

pytestmark = pytest.mark.e2e

SETTLED_S = 20.0  # what moves on the page takes a tenth of a second
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
LONG_NAMES = """(name) => document.querySelectorAll(".plate .who").forEach((one) => { one.innerText = name; })"""
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
GO_ON_AT_ONCE = """() => {
  const goOn = () => document.querySelector('[aria-label="Go on"] button')?.click();
  new MutationObserver(goOn).observe(document.body, { childList: true, subtree: true });
}"""


@pytest.fixture
def look(windows: Windows, school: ClassWithPage) -> BrowserWindow:
    """A small window; how views fit all sizes is in test_views."""
    return windows.at(school.url, PHONE)


def left(page: Page, script: str, part: str = "") -> list[str]:
    """What a script finds, of it what has that part; once nothing moves any more."""
    give_up_at = time.monotonic() + SETTLED_S
    while found := [each for each in page.evaluate(script) if part in each]:
        if time.monotonic() > give_up_at:
            break
        page.wait_for_timeout(50)
    return found


def question_of(person: PagePlayer) -> str:
    """Go on to the next question; what it shows."""
    while not person.may_move():
        person.go_on.click()
    return person.turn.inner_text()


# ---- To watch


def test_the_lobby_tells_what_goes_on(look: BrowserWindow, school: ClassWithPage) -> None:
    page = look.to("#/")
    competition = page.get_by_role("article").filter(has_text="ace_king_queen-live")

    competition.get_by_text("running").wait_for()
    page.get_by_text(LONG).first.wait_for()
    assert page.get_by_role("alert").count() == 0
    tables = page.locator(".panel", has=page.get_by_role("heading", name="At the tables"))
    tables.get_by_role("link", name="Slow").first.click()
    page.get_by_role("button", name="Watch live").wait_for()


def test_a_live_table_goes_on_while_one_looks(look: BrowserWindow, school: ClassWithPage) -> None:
    page = look.to(school.route("m", school.at_table()["ace_king_queen"]))
    told = page.get_by_role("region", name="What happened")
    before = told.inner_text()
    page.wait_for_function(
        "before => document.querySelector('.steps').innerText !== before", arg=before
    )

    assert page.get_by_role("group", name="Ace-King-Queen table").is_visible()
    page.get_by_role("timer").first.wait_for()
    page.get_by_role("button", name="Watch live").click()
    assert page.get_by_role("button", name="Watch live").get_attribute("aria-pressed") == "false"


def test_controls_and_navigation_fit_windows_of_all_sizes(
    windows: Windows, school: ClassWithPage
) -> None:
    look = windows.at(school.url, LAPTOP)
    page = look.to("#/")
    page.locator(".line .live").wait_for(state="attached")
    for size in (SMALL_PHONE, PHONE, (683, 384)):
        look.resize(size)
        assert left(page, BROKEN) == [], f"words of the navigation at {size}"
    for game, match in school.at_table().items():
        look.resize(LAPTOP)
        look.to(school.route("m", match))
        page.get_by_role("button", name="Watch live").wait_for()
        page.locator(".felt").wait_for()
        height = page.evaluate("() => document.scrollingElement.scrollHeight")
        assert height <= LAPTOP[1], f"{game} fits a laptop"
        for name, size in PLAYED_AT.items():
            look.resize(size)
            assert left(page, OVERLAPPING) == [], f"{game} on {name}"


def test_a_match_that_is_gone_has_no_clock(windows: Windows, school: ClassWithPage) -> None:
    look = windows.at(school.url, is_new=True)
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


# ---- To play


@pytest.mark.parametrize("game", GAMES)
def test_a_round_is_played_by_clicking_at_all_sizes(
    windows: Windows, school: ClassWithPage, game: str
) -> None:
    look = windows.at(school.url)
    person = sit_down(look, game, f"Pia {game}")
    person.page.get_by_label("Pace").select_option("at once")
    asked = 0
    while person.may_move():
        for name, size in PLAYED_AT.items() if asked < 2 else ():
            look.resize(size)
            assert left(person.page, HIDDEN) == [], f"question {asked} on {name}"
            assert left(person.page, CUT_NAMES) == [], f"question {asked} on {name}"
            if asked == 0 and size in SIZES.values():
                look.sound(f"a question in {game} on {name}")
        person.move()
        asked += 1

    assert asked
    for name, size in PLAYED_AT.items():
        look.resize(size)
        assert left(person.page, HIDDEN, "move main") == [], f"the end on {name}"
        if size in SIZES.values():
            is_gin, is_small = game == "gin_rummy", size == PHONE
            look.sound(f"the end in {game} on {name}", axe=is_gin, colours=is_small)
    look.resize(SMALL_PHONE)
    person.page.evaluate(LONG_NAMES, LONG)  # each in two lines: the table is at its highest
    assert left(person.page, HIDDEN, "move main") == [], "the button below names that wrap"
    before = person.shown()
    person.go_on.click()
    person.changed(before)
    person.moves.or_(person.go_on).or_(person.result).first.wait_for()
    person.stand_up()


def test_a_match_is_played_by_keyboard_alone(windows: Windows, school: ClassWithPage) -> None:
    look = windows.at(school.url, reduced_motion="reduce")
    page = look.to("#/")
    _tab_to(page, "Play", "Enter")
    page.get_by_label("Your name").wait_for()
    _tab_to(page, "Ace-King-Queen", "Space")
    _tab_to(page, "Your name", "Control+A")
    page.keyboard.type("Kim of the keys")
    _tab_to(page, "Hands", "Control+A")
    page.keyboard.type("2")
    _tab_to(page, "Sit down", "Enter")
    person = PagePlayer(page)
    while person.may_move() or person.go_on.is_visible():
        before = person.shown()
        keys = person.turn.locator("[aria-keyshortcuts]")
        is_move = person.moves.count() > 0
        page.keyboard.press(
            keys.first.get_attribute("aria-keyshortcuts") or "" if is_move else "Enter"
        )
        person.changed(before)
    person.result.wait_for()

    look.sound("the result")
    _tab_to(page, "Step through the record", "Enter")
    page.get_by_label("Step through the match").wait_for()
    page.locator(".felt").wait_for()
    page.keyboard.press("End")
    page.get_by_role("button", name="Step").and_(page.locator(":disabled")).wait_for()


def test_who_goes_on_at_once_sees_the_next_round_and_the_result(
    windows: Windows, school: ClassWithPage
) -> None:
    look = windows.at(school.url)
    person = sit_down(look, "ace_king_queen", "Quick Kim", Hands=3)
    # A busy machine paints the button so late that it is pressed before its effects have run.
    person.page.evaluate(GO_ON_AT_ONCE)
    while person.may_move():
        person.move()
    person.result.wait_for()

    assert not person.go_on.is_visible()


def _tab_to(page: Page, name: str, key: str) -> None:
    """Press Tab until an element of this name has the focus, and then a key."""
    named = """() => {
      const on = document.activeElement;
      return (on.labels?.[0]?.innerText ?? on.innerText ?? "").trim();
    }"""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(named).startswith(name):
            return page.keyboard.press(key)
    raise AssertionError(f"{name} cannot be reached with Tab")


def test_what_the_arena_refuses_is_said_where_it_was_asked(look: BrowserWindow) -> None:
    page = look.to("#/play/blackjack")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Sit down").click()

    refusal = page.get_by_role("alert")
    refusal.wait_for()
    assert "Ada" in refusal.inner_text() or "token" in refusal.inner_text()


def test_a_lost_connection_comes_back_to_the_same_table(
    windows: Windows, school: ClassWithPage
) -> None:
    person = sit_down(windows.at(school.url), "ace_king_queen", "Lea")
    question = question_of(person)
    person.page.reload()
    person.moves.first.wait_for()

    assert person.turn.inner_text() == question
    person.stand_up()


def test_the_pace_is_shown_and_does_what_it_says(windows: Windows, school: ClassWithPage) -> None:
    page = sit_down(windows.at(school.url), "ace_king_queen", "Quinn").page
    pace = page.get_by_label("Pace")
    shown = "one => one.options[one.selectedIndex].text"
    assert (pace.evaluate(shown), pace.input_value()) == ("brisk", "brisk")

    for name in ("calm", "at once", "brisk", "calm"):
        pace.select_option(label=name)
        assert (pace.evaluate(shown), pace.input_value()) == (name, name)
    page.reload()
    pace.wait_for()
    assert pace.evaluate(shown) == "calm", "it is kept"
    # Shown one by one: events that are pending after a move are not shown at once.
    page.evaluate(WAITS)
    PagePlayer(page).move()
    page.get_by_role("group", name="Go on").or_(
        page.get_by_label("Your moves").locator("button:enabled").first
    ).first.wait_for()
    assert 900 in page.evaluate("() => window.waits")
    pace.select_option(label="brisk")
    PagePlayer(page).stand_up()


ASKED_ANEW = """async () => {
  document.querySelector("dialog button").click();
  await null;  // the page has drawn itself; the browser's own event of the closed dialog is yet to come
  await null;
  document.activeElement.click();
}"""
FOCUSED = "name => document.activeElement?.innerText.trim() === name"


def test_to_stand_up_is_asked_first_and_by_keyboard(look: BrowserWindow) -> None:
    person = sit_down(look, "ace_king_queen", "Stan")
    page = person.page
    question = question_of(person)
    ask = page.get_by_role("button", name="Stand up…")
    dialog = page.get_by_role("dialog", name="Stand up?")
    ask.focus()
    for leave in ("Escape", "Enter"):  # the first button is the one that changes nothing
        page.keyboard.press("Enter")
        dialog.wait_for()
        look.sound("the question", axe=leave == "Escape")
        for key in "bcfk":  # no move is made behind it
            page.keyboard.press(key)
        page.keyboard.press(leave)
        dialog.wait_for(state="detached")
        page.wait_for_function(FOCUSED, arg="Stand up…")
        assert person.turn.inner_text() == question

    page.keyboard.press("Enter")
    dialog.wait_for()
    page.evaluate(ASKED_ANEW)
    dialog.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Sit down").wait_for()


def test_ones_own_match_is_ones_own_in_a_new_tab(windows: Windows, school: ClassWithPage) -> None:
    look = windows.at(school.url, is_new=True)
    first = sit_down(look, "ace_king_queen")
    question = question_of(first)
    lobby = look.page.context.new_page()
    lobby.goto(f"{school.url}/#/")
    lobby.get_by_role("link", name="Guest").first.click()
    second = PagePlayer(lobby)
    second.moves.first.wait_for()
    assert second.turn.inner_text() == question, "with its cards"

    first.turn.get_by_text("in another tab now").wait_for()
    second.move()
    second.may_move()
    first.page.get_by_role("button", name="Play on here").click()
    first.moves.or_(first.go_on).first.wait_for()
    second.turn.get_by_text("in another tab now").wait_for()
    form = look.page.context.new_page()
    form.goto(f"{school.url}/#/play")
    form.get_by_text("You sit at a table already").wait_for()
    first.stand_up()


# ---- To log in


def test_a_student_logs_in_at_the_top_for_all_tabs_and_out_again(
    windows: Windows, school: ClassWithPage
) -> None:
    look = windows.at(school.url, SMALL_PHONE)
    page = look.to("#/")
    other = page.context.new_page()
    other.goto(f"{school.url}/{school.route('m', school.at_table()['ace_king_queen'])}")
    other.get_by_role("button", name="Watch live").wait_for()
    assert page.get_by_role("alert").count() == 0

    page.get_by_role("banner").get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog", name="Log in")
    look.sound("the way in")
    dialog.get_by_label("Your token").fill(school.tokens["Ada"])
    page.keyboard.press("Enter")
    dialog.wait_for(state="hidden")
    for tab in (page, other):
        tab.get_by_role("banner").get_by_role("button", name="Logged in as Ada").wait_for()
        assert tab.get_by_role("alert").count() == 0
    page.reload()
    look.to("#/instructor").get_by_text("You are logged in as Ada").wait_for()
    assert page.locator(".bad, .failure").count() == 0, "it is no error"
    page.get_by_role("button", name="Logged in as Ada").click()
    look.sound("the way out")
    page.get_by_role("button", name="Log out", exact=True).click()
    for tab in (page, other):
        tab.get_by_role("button", name="Log in", exact=True).wait_for()


def test_an_owner_sees_its_cards_in_every_tab(windows: Windows, school: ClassWithPage) -> None:
    look = windows.at(school.url)
    page = look.to("#/")
    page.get_by_role("button", name="Log in").click()
    school.at_table()
    match, owner = next(
        (one["match"], one["players"][0])
        for one in school.document("/api/lobby.json")["matches"]
        if one["game"] == "ace_king_queen" and one["players"][0] in school.tokens
    )
    page.get_by_label("Your token").fill(school.tokens[owner])
    page.keyboard.press("Enter")
    page.get_by_role("button", name=f"Logged in as {owner}").wait_for()
    tab = page.context.new_page()
    sockets: list[str] = []
    tab.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda data: sockets.append(str(data))),
    )
    tab.goto(f"{school.url}/{school.route('m', match)}")
    tab.get_by_role("button", name="Watch live").wait_for()

    scenes = [frame for frame in sockets if '"scene"' in frame]
    assert scenes
    assert all('"kind":"seat"' in scene for scene in scenes)


def test_a_wrong_token_is_one_clear_line(windows: Windows, school: ClassWithPage) -> None:
    look = windows.at(school.url)
    page = look.to("#/")
    page.get_by_role("button", name="Log in").click()
    for wrong in ("a word that is none", "gu\u00e9ssed"):
        with look.expecting("401"):
            page.get_by_label("Your token").fill(wrong)
            page.get_by_role("button", name="Log in").last.click()
            said = page.get_by_role("dialog").get_by_role("status")
            said.filter(has_text="does not know that token").wait_for()
        assert "\n" not in said.inner_text()
        assert page.evaluate("() => localStorage.getItem('arena.token')") is None
    page.keyboard.press("Escape")
    look.sound("a wrong token")
