"""Games from outside without a view of their own, for 1, 2, 3 and 6 seats, in a real Chromium.

A person plays each to its end while somebody watches, and then steps through the record.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support import arena_process
from tests.support.browser import PHONE, PROJECTOR, BrowserWindow, axe_source, browser
from tests.support.page_player import PagePlayer, sit_down
from tests.support.toy_games import toy_name, write_toy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="the arena is ended by a signal"),
]

SEATS = (1, 2, 3, 6)
EACH_SIZE = pytest.mark.parametrize("seats", SEATS)
READY_S = 60.0
LINE = "() => [...document.querySelectorAll('.steps .text')].map((one) => one.innerText)"
CARDS = "() => document.querySelectorAll('.felt .card').length"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def axe() -> str | None:
    return axe_source()


@pytest.fixture(scope="module")
def url(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of an arena with the toys beside it, and a bot for each that needs one."""
    folder, toys = tmp_path_factory.mktemp("arena"), tmp_path_factory.mktemp("toys")
    for seats in SEATS:
        write_toy(toys, seats)
    words = ("-m", "arena", "serve", "--port", "0", "--db", "toys.db")
    arena = arena_process.start(folder, "arena.err", *words, beside=[toys])
    said = folder / "arena.err"
    bots: list[subprocess.Popen[bytes]] = []
    try:
        end = time.monotonic() + READY_S
        while "arena at " not in said.read_text() and arena.poll() is None:
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.05)
        address = said.read_text().partition("arena at ")[2].split()[0]
        for seats in SEATS[1:]:
            name = toy_name(seats)
            line = ("-m", "bots", name, "bold", "--name", name, "--url", address, "--tables", "9")
            bots.append(arena_process.start(folder, "bots.err", *line, beside=[toys]))
        yield address.replace("ws", "http", 1)
    finally:
        for process in (*bots, arena):
            process.terminate()
            process.wait(20)


@contextmanager
def window(
    chromium: Browser, url: str, size: tuple[int, int], axe: str | None = None
) -> Iterator[BrowserWindow]:
    look = BrowserWindow(chromium, url.rstrip("/"), size, axe)
    try:
        yield look
    finally:
        look.close()


def plays_a_round(person: PagePlayer) -> None:
    person.to_the_end_of_the_round()
    if not person.result.is_visible():
        before = person.shown()
        person.go_on.click()
        person.changed(before)


def waits_for_line(page: Page, pattern: str) -> None:
    page.wait_for_function(f"() => ({LINE})().some((text) => /{pattern}/.test(text))")


@EACH_SIZE
def test_a_game_without_a_view_is_watched_played_to_the_end_and_stepped(
    chromium: Browser, url: str, axe: str | None, seats: int
) -> None:
    game = toy_name(seats)
    with window(chromium, url, PROJECTOR, axe) as look, window(chromium, url, PHONE, axe) as other:
        person = sit_down(look, game, "Pia", against=game if seats > 1 else "")
        page = person.page
        page.get_by_label("Pace").select_option("at once")
        assert person.may_move()
        question = person.turn.locator(".question").inner_text()
        assert re.fullmatch(r"Pia has [2-9TJQKA][shdc]\.", question), "the game's words"
        assert page.locator(".felt .plate").count() == seats
        assert page.evaluate(CARDS) == 1, "its own card, and no other"
        look.sound(f"a question in {game}")

        watched = other.to("#/")
        watched.locator("a[href^='#/m/']", has_text="Pia").first.click()
        watched.get_by_role("button", name="Watch live").wait_for()
        watched.locator(".on-turn").get_by_text("Pia").wait_for()
        assert watched.evaluate(CARDS) == (1 if seats == 1 else 0), "cards are the seats' own"
        person.move()
        waits_for_line(watched, "^shown are ")
        other.sound(f"{game}, watched")

        person.go_on.wait_for()
        assert page.evaluate(CARDS) == seats, "all cards are shown at the end of a round"
        assert "Pia is dealt" in page.locator(".log").inner_text()
        assert "everybody" not in page.locator(".log").inner_text()
        assert "Pia bids 0" in page.locator(".log").inner_text()
        assert "shown are" in page.locator(".log").inner_text()
        look.sound(f"a round that is over in {game}")
        while not person.result.is_visible():
            plays_a_round(person)
        look.sound(f"the result of {game}")

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
        for _ in range(len(last)):
            page.keyboard.press("ArrowLeft")
        assert page.get_by_label("Go to round").input_value() == "19"
        look.sound(f"the record of {game}")


def test_the_page_says_of_a_game_from_outside_what_it_says_of_ours(
    chromium: Browser, url: str
) -> None:
    with window(chromium, url, PHONE) as look:
        page = look.to(f"#/play/{toy_name(3)}")

        assert page.get_by_text("Toy for three").first.is_visible()
        assert page.get_by_text("Everybody has a card and bids 0 to 3").is_visible()
        assert page.get_by_label("Opponent").count() == 2
        look.sound("the form")


def test_who_loads_the_page_again_goes_on_where_it_was(chromium: Browser, url: str) -> None:
    with window(chromium, url, PROJECTOR) as look:
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
        look.sound("the form")
