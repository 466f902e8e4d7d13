"""Games from outside without a view of their own, for 1 and 6 seats, in a real Chromium.

A person plays each to its end while somebody watches, and then steps through the record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import PHONE
from tests.support.class_with_page import TOYS
from tests.support.page_player import PagePlayer, sit_down
from tests.support.toy_games import toy_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.e2e.page.conftest import Windows
    from tests.support.class_with_page import ClassWithPage

pytestmark = pytest.mark.e2e

LINE = "() => [...document.querySelectorAll('.steps .text')].map((one) => one.innerText)"
CARDS = "() => document.querySelectorAll('.felt .card').length"


@pytest.fixture(scope="module")
def url(school: ClassWithPage) -> Iterator[str]:
    """The page of an arena with a bot for each toy that needs one."""
    bots = []
    for seats in TOYS[1:]:
        name = toy_name(seats)
        where = ("--url", school.url.replace("http", "ws"), "--token", school.tokens[name])
        line = ("-m", "bots", name, "bold", "--name", name, *where, "--tables", "9")
        bots.append(school.start(*line))
    yield school.url
    for bot in bots:
        bot.terminate()
        bot.wait()


def plays_a_round(person: PagePlayer) -> None:
    person.to_the_end_of_the_round()
    if not person.result.is_visible():
        before = person.shown()
        person.go_on.click()
        person.changed(before)


def waits_for_line(page: Page, pattern: str) -> None:
    page.wait_for_function(f"() => ({LINE})().some((text) => /{pattern}/.test(text))")


def match_of(school: ClassWithPage, game: str) -> str:
    """The match of that game that is being played."""
    found: list[str] = []

    def is_there() -> bool:
        matches = school.document("/api/lobby.json")["matches"]
        found.extend(one["match"] for one in matches if one["game"] == game)
        return bool(found)

    school.until(is_there, f"a match of {game}")
    return found[0]


@pytest.mark.parametrize("seats", [1, 6])
def test_a_game_without_a_view_is_watched_played_and_stepped(
    windows: Windows, school: ClassWithPage, url: str, seats: int
) -> None:
    game, look, other = toy_name(seats), windows.at(url), windows.at(url, PHONE)
    axe = seats == 6  # of fewer seats it is the same
    person = sit_down(look, game, "Pia", against=game if seats > 1 else "")
    page = person.page
    page.get_by_label("Pace").select_option("at once")
    assert person.may_move()
    question = person.turn.locator(".question").inner_text()
    assert re.fullmatch(r"Pia has [2-9TJQKA][shdc]\.", question), "the game's words"
    assert page.locator(".felt .plate").count() == seats
    assert page.evaluate(CARDS) == 1, "its own card, and no other"
    look.sound(f"a question in {game}", axe=axe)

    watched = other.to(school.route("m", match_of(school, game)))
    watched.get_by_role("button", name="Watch live").wait_for()
    watched.locator(".on-turn").get_by_text("Pia").wait_for()
    assert watched.evaluate(CARDS) == (1 if seats == 1 else 0), "cards are the seats' own"
    person.move()
    waits_for_line(watched, "^shown are ")
    other.sound(f"{game}, watched", axe=axe)
    other.to("#/")

    person.go_on.wait_for()
    assert page.evaluate(CARDS) == seats, "all cards are shown at the end of a round"
    assert "Pia is dealt" in page.locator(".log").inner_text()
    assert "everybody" not in page.locator(".log").inner_text()
    assert "Pia bids 0" in page.locator(".log").inner_text()
    assert "shown are" in page.locator(".log").inner_text()
    look.sound(f"a round that is over in {game}", axe=axe)
    while not person.result.is_visible():
        plays_a_round(person)
    look.sound(f"the result of {game}", axe=axe)

    page.get_by_role("link", name="Step through the record").click()
    page.get_by_label("Step through the match").wait_for()
    page.locator(".felt").wait_for()
    waits_for_line(page, "^Pia bids 0$")
    page.keyboard.press("End")
    page.get_by_role("button", name="Step").and_(page.locator(":disabled")).wait_for()
    last = page.evaluate(LINE)
    steps = 1 + seats + seats + 1 + 1
    assert len(last) == steps, "the beginning, the deals, the bids, the cards, the end"
    assert last[-1] == "the match is over"
    scores = page.locator(".facts .scores-now b").all_inner_texts()
    assert page.locator(".felt .score").count() == seats
    on_plates = {text.lstrip("+") for text in page.locator(".felt .score").all_inner_texts()}
    assert on_plates == set(scores), "gains add up to the arena's scores"
    for _ in last:
        page.keyboard.press("ArrowLeft")
    assert page.get_by_label("Go to round").input_value() == "2"
    look.sound(f"the record of {game}", axe=axe)


def test_the_page_says_of_a_game_from_outside_what_it_says_of_ours(
    windows: Windows, url: str
) -> None:
    look = windows.at(url, PHONE)
    page = look.to(f"#/play/{toy_name(3)}")

    assert page.get_by_text("Toy for three").first.is_visible()
    assert page.get_by_text("Everybody has a card and bids 0 to 3").is_visible()
    assert page.get_by_label("Opponent").count() == 2
    look.sound("the form")


def test_who_loads_the_page_again_goes_on_where_it_was(windows: Windows, url: str) -> None:
    look = windows.at(url)
    person = sit_down(look, toy_name(2), "Rea", against=toy_name(2))
    plays_a_round(person)
    assert person.may_move()
    told = person.page.locator(".log").inner_text()
    person.page.reload()
    again = PagePlayer(person.page)
    again.moves.or_(again.go_on).first.wait_for()
    if again.go_on.is_visible():  # the end of a round comes with the next question
        again.go_on.click()

    assert again.may_move()
    assert person.page.locator(".log").inner_text() == told
    again.stand_up()
