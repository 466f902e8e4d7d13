"""What other machines play, on the page in a real Chromium: watched, and drained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.arena_with_workers import ArenaWithWorkers
from tests.support.browser import PHONE, SIZES

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.e2e.page.conftest import Windows
    from tests.support.browser import BrowserWindow

# The arena is a thread of this process, and starts its reader again when it has to.
pytestmark = [pytest.mark.e2e, pytest.mark.shares_processes]

SAMPLES = 3
LINE = "played on another machine: you see more of it when it is over"


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaWithWorkers]:
    with ArenaWithWorkers(tmp_path_factory.mktemp("arena")) as arena:
        yield arena


def logged_in(look: BrowserWindow, token: str) -> Page:
    look.to("#/")
    look.page.evaluate("token => localStorage.setItem('arena.token', token)", token)
    look.page.reload()
    look.page.wait_for_function("() => document.querySelector('main h1')")
    return look.page


def shown_decisions(page: Page) -> int:
    found = re.search(r"([\d,]+) decision", page.locator(".facts").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def test_the_instructor_sees_the_workers_and_drains_one(
    windows: Windows, arena: ArenaWithWorkers
) -> None:
    look = windows.at(arena.url)
    logged_in(look, arena.instructor)
    page = look.to("#/instructor")
    row = page.get_by_role("row").filter(has_text="w1")
    row.get_by_text("working").wait_for()
    for size in SIZES.values():
        look.resize(size)
        look.sound("the workers", colours=size == PHONE)

    assert "1 of 4" in row.inner_text()
    assert "ann, ben lost on w2: w2 has not reported for 5 s" in page.locator("main").inner_text()
    page.get_by_role("button", name="Drain w1").click()
    page.get_by_text("w1 takes no more matches", exact=True).wait_for()
    row.get_by_text("draining").wait_for()
    page.get_by_role("button", name="Resume w1").click()
    row.get_by_text("working").wait_for()


def test_a_match_of_another_machine_is_watched_while_it_goes_on(
    windows: Windows, arena: ArenaWithWorkers
) -> None:
    look = windows.at(arena.url, is_new=True)
    page = look.to("#/")
    page.locator(f"a[href='#/m/{arena.match}']").first.click()
    page.get_by_role("heading", name="Ace-King-Queen").wait_for()
    page.locator(".felt").wait_for()
    for _ in range(SAMPLES):
        wanted = arena.decisions
        while shown_decisions(page) < wanted:
            page.wait_for_timeout(10)
    look.sound("a match of another machine")
    shown = page.locator("main").inner_text()

    assert LINE not in shown
    assert "as a spectator sees it" in shown
    assert not any("workers" in path for path in look.fetched), "fetched by instructors alone"


def test_those_who_may_see_more_are_told_that_they_will(
    windows: Windows, arena: ArenaWithWorkers
) -> None:
    look = windows.at(arena.url, PHONE)
    logged_in(look, arena.owner)
    page = look.to(f"#/m/{arena.match}")
    page.get_by_text(LINE).wait_for()
    page.get_by_text("as a spectator sees it").wait_for()
    look.sound("a match of another machine for its owner")
