"""The page in a real Chromium: every view on a projector and on a phone, and what people do there.

There is one arena, with a class that has played.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browser import PHONE, PROJECTOR, SIZES, BrowserWindow, axe_source, browser
from tests.support.class_with_page import GAMES, LONG, ROGUE, ClassWithPage
from tests.support.page_player import PagePlayer, sit_down

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="the class needs signals"),
]

EACH_GAME = pytest.mark.parametrize("game", GAMES)
PLAIN = {
    "lobby": "#/",
    "competitions": "#/competitions",
    "play": "#/play",
    "submit": "#/submit",
    "instructor": "#/instructor",
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
VIEWS = [
    *PLAIN,
    *(f"{game} {view}" for game in GAMES for view in ("competition", "match")),
    *(f"{game} {view}" for game, views in OF_ONE_GAME.items() for view in views),
    "live",
]
DARK = ("lobby", "play", "gin_rummy match", "ace_king_queen cross", "high_low competition")
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


WAITS = """() => {
  const { setTimeout } = window;
  window.waits = [];
  window.setTimeout = (call, wait) => {
    window.waits.push(wait);
    return setTimeout(call, wait);
  };
}"""
GO_ON_AT_ONCE = """() => {
  const goOn = () => document.querySelector('[aria-label="Go on"] button')?.click();
  new MutationObserver(goOn).observe(document.body, { childList: true, subtree: true });
}"""
BLANK = """() => [...document.querySelectorAll("select")]
  .filter((one) => one.selectedIndex < 0 || [...one.options].some((each) => each.text && !each.hasAttribute("value")))
  .map((one) => one.parentElement.innerText)"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def axe() -> str | None:
    return axe_source()


@pytest.mark.needs("axe-core")
def test_that_people_with_a_disability_can_use_the_page_is_checked(axe: str | None) -> None:
    assert axe is not None


@pytest.fixture(scope="module")
def school(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClassWithPage]:
    with ClassWithPage(tmp_path_factory.mktemp("school")) as it:
        it.played()
        yield it


@pytest.fixture(scope="module")
def views(school: ClassWithPage) -> dict[str, str]:
    found = dict(PLAIN)
    for game in GAMES:
        for view, route in school.views(game).items():
            found[f"{game} {view}"] = route
    found["live"] = school.route("m", school.at_table()["ace_king_queen"])
    return found


Open = Callable[..., BrowserWindow]


@pytest.fixture(scope="module")
def windows(chromium: Browser, school: ClassWithPage, axe: str | None) -> Iterator[Open]:
    """Returns windows, opened once for each size and setting, and closed at the end."""
    opened: dict[str, BrowserWindow] = {}

    def window(size: tuple[int, int] = PROJECTOR, **taste: Any) -> BrowserWindow:
        key = f"{size} {taste}"
        if key not in opened:
            opened[key] = BrowserWindow(chromium, school.url, size, axe, **taste)
        return opened[key]

    yield window
    for look in opened.values():
        look.close()


@pytest.fixture(params=SIZES)
def look(request: pytest.FixtureRequest, windows: Open) -> Iterator[BrowserWindow]:
    """A window of either size, without a fault at the end of the test."""
    it = windows(SIZES[request.param])
    yield it
    it.sound("at the end")


@pytest.fixture
def wide(windows: Open) -> Iterator[BrowserWindow]:
    it = windows(PROJECTOR)
    yield it
    it.sound("at the end")


# ---- Every view


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_sound(look: BrowserWindow, views: dict[str, str], view: str) -> None:
    with look.expecting("404" if view.startswith("no ") else ""):
        page = look.to(views[view])
        look.sound(view)

    assert page.locator("h1").count() == 1
    assert page.title().endswith("arena")


@pytest.mark.parametrize("view", DARK)
def test_a_view_can_be_read_in_the_dark(windows: Open, views: dict[str, str], view: str) -> None:
    look = windows(PROJECTOR, color_scheme="dark")
    look.to(views[view])

    look.sound(view)


def test_nothing_moves_where_the_reader_asks_for_none(windows: Open, views: dict[str, str]) -> None:
    look = windows(PROJECTOR, reduced_motion="reduce")
    for view in ("lobby", "live", "gin_rummy match"):
        page = look.to(views[view])
        for _ in range(5):
            assert page.evaluate("() => document.getAnimations().length") == 0, view
    look.sound("without motion")


def test_the_whole_page_is_small(windows: Open, views: dict[str, str]) -> None:
    look = windows(PROJECTOR, color_scheme="dark")
    look.to(views["lobby"])
    plain = look.sizes(compressed=False)
    for view in views.values():
        look.to(view)
    sizes = look.sizes(compressed=True)

    assert sum(plain.values()) < MOST_BYTES, plain
    assert sum(sizes.values()) < MOST_BYTES, sizes
    assert any(path.endswith("blackjack.js") for path in sizes), "it saw all of it"


def test_the_documents_are_a_click_away(look: BrowserWindow) -> None:
    page = look.to("#/")
    page.get_by_role("link", name="Docs").click()
    page.get_by_role("heading", name="Card Arena").first.wait_for()
    look.sound("the documents")
    page.get_by_role("link", name="arena", exact=True).click()
    page.wait_for_function("() => document.querySelector('main h1')")

    assert page.url == f"{look.url}/"


# ---- The lobby and the competitions


def test_the_lobby_tells_what_goes_on(look: BrowserWindow, school: ClassWithPage) -> None:
    page = look.to("#/")
    competition = page.get_by_role("article").filter(has_text="ace_king_queen-live")

    assert competition.get_by_text("running").is_visible()
    assert page.get_by_text(LONG).first.is_visible()
    tables = page.locator(".panel", has=page.get_by_role("heading", name="At the tables"))
    tables.get_by_role("link", name="Slow").first.click()
    page.get_by_role("button", name="Watch live").wait_for()


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


INTERVAL = re.compile(r"[+−]?[\d.,]+ \[[+−]?[\d.,]+, [+−]?[\d.,]+\]")
NOTE = (
    "[…]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong; each is computed from"
)


def _column(page: Page, title: str) -> list[int]:
    standings = page.get_by_role("table", name="Standings")
    """The figures of a column, without those of bots that are out."""
    titles = [text.strip(" ▲▼\n") for text in standings.locator("thead th").all_inner_texts()]
    cells = standings.locator(f"tbody tr > :nth-child({titles.index(title) + 1})")
    texts = [text.replace("−", "-").replace(",", "") for text in cells.all_inner_texts()]
    return [int(text) for text in texts if text.strip()]


def test_a_cell_of_the_cross_table_opens_the_pairing_and_that_a_match(
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
    wide: BrowserWindow, views: dict[str, str]
) -> None:
    page = wide.to(views["ace_king_queen cross"])
    page.locator("a[data-at='0 1']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Home", "Enter"):
        page.keyboard.press(key)

    page.get_by_role("heading", name=" against ").wait_for()


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
    assert "all in" in verdict.inner_text(), "what came instead"
    verdict.get_by_role("link", name="step through the match").click()
    page.get_by_label("Step through the match").wait_for()


# ---- Tables


def test_a_live_table_goes_on_while_one_looks(look: BrowserWindow, views: dict[str, str]) -> None:
    page = look.to(views["live"])
    told = page.get_by_role("region", name="What happened")
    before = told.inner_text()
    page.wait_for_function(
        "before => document.querySelector('.steps').innerText !== before", arg=before
    )

    assert page.get_by_role("group", name="Ace-King-Queen table").is_visible()
    page.get_by_role("timer").first.wait_for()
    page.get_by_role("button", name="Watch live").click()
    assert page.get_by_role("button", name="Watch live").get_attribute("aria-pressed") == "false"


@EACH_GAME
def test_a_recorded_table_is_stepped_through_and_back(
    wide: BrowserWindow, views: dict[str, str], game: str
) -> None:
    page = wide.to(views[f"{game} match"])
    page.locator(".felt").wait_for()
    page.get_by_role("button", name="Last").click()
    page.get_by_role("button", name="Step").and_(page.locator(":disabled")).wait_for()
    most = 10_000 if game == "ace_king_queen" else 80
    back = page.evaluate(STEPS, ["Back", most])
    forth = page.evaluate(STEPS, ["Step", len(back) - 1])

    assert len(back) > 10
    assert forth == back[::-1]
    is_begun = page.get_by_role("button", name="First").is_disabled
    page.get_by_role("button", name="First").click()
    page.get_by_role("button", name="First").and_(page.locator(":disabled")).wait_for()
    assert is_begun()


def test_a_table_is_stepped_with_keys_and_linked_to(
    look: BrowserWindow, views: dict[str, str], chromium: Browser, school: ClassWithPage
) -> None:
    page = look.to(views["high_low match"])
    page.locator(".felt").wait_for()
    for key in ("n", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Copy link to this moment").click()
    page.get_by_text("copied").wait_for()
    link = page.evaluate("() => navigator.clipboard.readText()")
    shown = page.locator(".felt").inner_text()
    other = BrowserWindow(chromium, school.url, look.size)
    other.page.goto(link)
    other.page.locator(".felt").wait_for()

    assert link.endswith("/2/2")
    assert other.page.locator(".felt").inner_text() == shown
    other.sound("the link")
    other.close()


# ---- To play


@EACH_GAME
def test_a_round_is_played_by_clicking(look: BrowserWindow, game: str) -> None:
    person = sit_down(look, game, f"Pia {look.size[0]} {game}")
    looked_at = False
    while person.may_move():
        if not looked_at:
            look.sound(f"a question in {game}")
            looked_at = True
        person.move()

    look.sound(f"a round that is over in {game}")
    before = person.shown()
    person.go_on.click()
    person.changed(before)
    person.moves.or_(person.go_on).or_(person.result).first.wait_for()
    person.stand_up()


def test_a_match_is_played_by_keyboard_alone(windows: Open) -> None:
    look = windows(PROJECTOR, reduced_motion="reduce")
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
    look.sound("the record of what was played")


def test_who_goes_on_at_once_sees_the_next_round_and_the_result(
    chromium: Browser, school: ClassWithPage
) -> None:
    look = BrowserWindow(chromium, school.url)
    person = sit_down(look, "ace_king_queen", "Quick Kim", Hands=3)
    # A busy machine paints the button so late that it is pressed before its effects have run.
    person.page.evaluate(GO_ON_AT_ONCE)
    while person.may_move():
        person.move()

    person.result.wait_for()
    look.sound("the result")
    look.close()


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


def test_a_lost_connection_comes_back_to_the_same_table(wide: BrowserWindow) -> None:
    person = sit_down(wide, "ace_king_queen", "Lea")
    while not person.may_move():
        person.go_on.click()
    question = person.turn.inner_text()
    wide.page.reload()
    person.moves.first.wait_for()

    assert person.turn.inner_text() == question
    person.stand_up()


def test_two_guests_behind_one_address_sit_down_as_they_find_it(
    chromium: Browser, school: ClassWithPage
) -> None:
    looks = [BrowserWindow(chromium, school.url, PHONE) for _ in range(2)]
    people = [sit_down(look, "ace_king_queen") for look in looks]
    for person in people:
        person.may_move()

    tables = [person.page.locator(".felt").inner_text() for person in people]
    assert all("Guest" in table for table in tables)
    assert "Guest 2" in "".join(tables)
    for person in people:
        person.stand_up()
    for look in looks:
        look.sound("a guest")
        look.close()


def test_the_pace_is_shown_and_does_what_it_says(wide: BrowserWindow) -> None:
    page = sit_down(wide, "ace_king_queen", "Quinn").page
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


def test_every_choice_on_the_page_has_the_value_that_it_shows(
    wide: BrowserWindow, views: dict[str, str]
) -> None:
    for view in ("competitions", "gin_rummy match", "play", "live"):
        page = wide.to(views[view])
        page.locator("select").first.wait_for()
        assert page.evaluate(BLANK) == [], view


ASKED_ANEW = """async () => {
  document.querySelector("dialog button").click();
  await null;  // the page has drawn itself; the browser's own event of the closed dialog is yet to come
  await null;
  document.activeElement.click();
}"""
FOCUSED = "name => document.activeElement?.innerText.trim() === name"


def test_to_stand_up_is_asked_first_and_by_keyboard(look: BrowserWindow) -> None:
    person = sit_down(look, "ace_king_queen", f"Stan {look.size[0]}")
    page = person.page
    while not person.may_move():
        person.go_on.click()
    question = person.turn.inner_text()
    ask = page.get_by_role("button", name="Stand up…")
    dialog = page.get_by_role("dialog", name="Stand up?")
    ask.focus()
    for leave in ("Escape", "Enter"):  # the first button is the one that changes nothing
        page.keyboard.press("Enter")
        dialog.wait_for()
        look.sound("the question")
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


def test_ones_own_match_is_ones_own_in_a_new_tab(chromium: Browser, school: ClassWithPage) -> None:
    look = BrowserWindow(chromium, school.url, PROJECTOR)
    first = sit_down(look, "ace_king_queen")
    while not first.may_move():
        first.go_on.click()
    question = first.turn.inner_text()
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
    look.sound("the tabs")
    look.close()


# ---- To log in


@pytest.mark.parametrize("size", [(360, 640), PHONE, (1366, 768)])
def test_a_student_logs_in_at_the_top_for_all_tabs_and_out_again(
    chromium: Browser, school: ClassWithPage, axe: str | None, size: tuple[int, int]
) -> None:
    look = BrowserWindow(chromium, school.url, size, axe)
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
    look.close()


def test_an_owner_sees_its_cards_in_every_tab(chromium: Browser, school: ClassWithPage) -> None:
    look = BrowserWindow(chromium, school.url)
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
    look.close()


def test_a_wrong_token_is_one_clear_line(chromium: Browser, school: ClassWithPage) -> None:
    look = BrowserWindow(chromium, school.url)
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
    look.close()


# ---- The instructor


def test_an_instructor_has_all_of_it_done(
    chromium: Browser, school: ClassWithPage, axe: str | None
) -> None:
    look = BrowserWindow(chromium, school.url, PHONE, axe)
    page = look.to("#/instructor")
    page.get_by_label("Token").fill("a word that is none")
    with look.expecting("."):
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("expected a token").wait_for()
    page.get_by_label("Token").fill(school.instructor)
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("heading", name="Competitions that are on").wait_for()
    look.sound("the instructor's desk")

    page.get_by_role("button", name="Pause ace_king_queen-live").click()
    page.get_by_role("button", name="Resume ace_king_queen-live").click()
    page.get_by_role("button", name="Pause ace_king_queen-live").wait_for()

    before = school.at_table()["ace_king_queen"]
    page.get_by_label("The match's id").fill(before)
    page.get_by_role("button", name="Void it…").click()
    look.sound("a question that is asked first")
    page.get_by_role("dialog").get_by_role("button", name="Void it").click()
    school.until(lambda: school.at_table()["ace_king_queen"] != before, "another match")

    page.get_by_label("What").select_option("blackjack")
    page.get_by_label("Hands").fill("5")
    page.get_by_role("button", name="Start", exact=True).click()
    school.until(lambda: school.started() == len(GAMES) + 2, "one competition more")

    page.get_by_label("or as text").fill("name,team\nZoë,blue")
    page.get_by_role("button", name="Put on the roster").click()
    page.get_by_role("button", name="Show them here").click()
    assert "Zoë" in page.get_by_role("region", name="Tokens", exact=True).inner_text()

    page.get_by_label("Who", exact=True).fill("zoë")
    page.get_by_label("New name").fill("Zoe Zhang")
    page.get_by_role("button", name="Rename").click()
    page.get_by_text("Zoë is Zoe Zhang now", exact=True).wait_for()
    page.get_by_label("Who", exact=True).fill("Zoe Zhang")
    page.get_by_role("button", name="Take off the roster…").click()
    page.get_by_role("dialog").get_by_role("button", name="Take off").click()
    page.get_by_text("Zoe Zhang is on the roster no longer").wait_for()
    page.get_by_label("Who", exact=True).fill("Slow Sue")
    page.get_by_label("New name").fill("Sue")
    page.get_by_role("button", name="Rename").click()
    page.get_by_text("not in use: Slow Sue is connected").wait_for()

    page.get_by_role("button", name="See it").click()
    page.get_by_label("what the arena has told").get_by_text(ROGUE).first.wait_for()
    look.sound("the log")

    page.get_by_label("Bot", exact=True).fill("Slow Sue")
    page.get_by_role("button", name="Remove it…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
    school.until(lambda: "Slow Sue" in school.out("ace_king_queen-live"), "a verdict")

    where = page.get_by_label(re.compile(r"^From\s*every competition"))
    over = where.locator("optgroup option").last
    where.select_option(over.get_attribute("value"))
    page.get_by_label("Bot", exact=True).fill("nobody")
    page.get_by_role("button", name="Remove it…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
    page.get_by_text("expected a bot that is in").wait_for()
    look.close()
