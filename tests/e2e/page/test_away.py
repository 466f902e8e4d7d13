"""What the page does while the arena is away, or a part of it cannot be fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.browser import WAITS
from tests.support.page_of_documents import route

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests.e2e.page.conftest import Windows
    from tests.support.page_reader import AnalysisReader

pytestmark = pytest.mark.e2e

AWAY_MS = 2_000  # until the page is loaded again
AGAIN_MS = 5_000  # until the page asks for a document again
FAILED = "net::ERR_FAILED"
ASKED = "() => fetch('./', { cache: 'no-store' }).then((answer) => answer.text())"


def refuse(route: Route) -> None:
    route.abort()


def test_a_view_that_was_opened_while_the_arena_was_away_comes_back(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = windows.of(reader, is_new=True)
    page = look.to("#/nowhere")
    with look.expecting(FAILED):
        page.route("**", refuse)
        page.evaluate("location.hash = '#/competitions'")
        page.get_by_text("could not be fetched").wait_for()
        page.unroute("**", refuse)
        page.get_by_role("heading", name="Competitions", exact=True).wait_for()


@pytest.mark.parametrize("part", ["app.js", "views/competitions.js"])
def test_a_part_of_the_page_that_was_cut_off_is_fetched_again(
    windows: Windows, reader: AnalysisReader, part: str
) -> None:
    look = windows.of(reader, is_new=True)
    asked: list[str] = []

    def refuse_once(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.abort()
        else:
            route.fallback()

    with look.expecting(FAILED):
        look.page.route(f"**/{part}", refuse_once)
        page = look.to("#/competitions")
        page.get_by_role("heading", name="Competitions", exact=True).wait_for()
    look.sound("the competitions", axe=False)
    assert len(asked) > 1


def test_a_part_that_is_never_fetched_does_not_load_the_page_without_end(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = windows.of(reader, is_new=True)
    asked: list[str] = []

    def refuse_it(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    with look.expecting(FAILED):
        look.page.add_init_script(f"({WAITS})()")
        look.page.route("**/views/competitions.js", refuse_it)
        page = look.to("#/competitions")
        with page.expect_navigation():
            page.get_by_text("could not be fetched").wait_for()
            assert AWAY_MS in page.evaluate("() => window.waits")
        page.get_by_text("could not be fetched").wait_for()
        page.evaluate(ASKED)  # after the page itself has asked whether the arena is back
        assert AWAY_MS not in page.evaluate("() => window.waits")
    assert len(asked) == 2


def test_a_document_that_is_read_once_comes_back(windows: Windows, reader: AnalysisReader) -> None:
    look = windows.of(reader, is_new=True)
    look.page.clock.install()
    page = look.to(route("c", "gin_rummy-cup"))
    with look.expecting(FAILED):
        page.route("**/api/**", refuse)
        page.get_by_role("link", name="Cross table").click()
        page.get_by_text("does not answer").wait_for()
        page.unroute("**/api/**", refuse)
        page.clock.fast_forward(AGAIN_MS)
        page.get_by_role("grid", name="Cross table").wait_for()


def test_without_a_connection_the_bar_fits_windows_of_all_widths(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = windows.of(reader)
    look.to("#/competitions").get_by_text("no connection").wait_for()
    for width in range(360, 1_000, 40):
        look.resize((width, 700))
        look.sound(f"the bar at {width}", axe=False)
