"""The manual in a real Chromium: on screens of two sizes, in the dark, on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from arena.web.manual.documents import documents
from tests.support.browser import PHONE, PROJECTOR, SIZES, BrowserWindow
from tests.support.page_of_documents import URL, manual_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.e2e.page.conftest import Windows

pytestmark = pytest.mark.e2e

MANUAL = f"{URL}/docs"
SHEET = (720, 1000)
GATHER = """pages => pages.map((text) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const part of ["main", "nav"]) document.querySelector(part).append(...page.querySelector(part).childNodes);
  return page.title;
})"""
CUT = """() => [...document.querySelectorAll("main :is(pre, .wide, td)")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1
    || box.getBoundingClientRect().right > innerWidth + 1)
  .map((box) => box.innerText.slice(0, 60))"""


@pytest.fixture(params=SIZES)
def look(request: pytest.FixtureRequest, windows: Windows) -> BrowserWindow:
    """A window of either size."""
    return windows.of(None, SIZES[request.param])


def open_page(look: BrowserWindow, path: str = "") -> Page:
    look.page.goto(f"{MANUAL}/{path}")
    return look.page


def test_every_document_is_sound_on_screens_and_on_paper(windows: Windows) -> None:
    """All in one page, each below the one before: to load and draw 49 pages takes long."""
    look = windows.of(None)
    page = open_page(look)
    titles = page.evaluate(GATHER, [manual_page(path) for path in documents()])
    assert len(titles) > 20
    assert titles == [f"{document.title} · arena" for document in documents().values()]
    for size in (PROJECTOR, PHONE):
        look.resize(size)
        look.sound("the manual", axe=False)
    page.emulate_media(media="print")
    look.resize(SHEET)
    assert page.evaluate(CUT) == []
    assert not page.get_by_role("navigation").is_visible()


@pytest.mark.parametrize(
    "path", ["", "LICENSE", "bots/examples/python/README.md", "?q=bank", "no.md"]
)
def test_everybody_can_use_it(windows: Windows, path: str) -> None:
    look = windows.of(None)
    with look.expecting("404" if path == "no.md" else ""):
        page = open_page(look, path)
        look.sound(path, colours=False)
        look.resize(PHONE)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            look.sound(f"{path}, {scheme}")


def test_the_search_leads_to_the_place(look: BrowserWindow) -> None:
    page = open_page(look, "bots/examples/README.md")
    box = page.get_by_role("searchbox")
    box.fill("bank_ms")
    box.press("Enter")
    page.get_by_role("heading", name="Search: bank_ms").wait_for()
    assert page.locator("mark").first.inner_text() == "bank_ms"
    look.sound("hits")
    page.locator(".hits a").first.click()
    page.wait_for_url("**#*")
    anchor = page.url.partition("#")[2]

    assert page.locator(f"[id='{anchor}']").is_visible()


def test_the_readme_leads_to_the_others(look: BrowserWindow) -> None:
    page = open_page(look)
    page.locator("main a[href$='bots/README.md']").first.click()
    page.get_by_role("heading", level=1).wait_for()

    assert page.url == f"{MANUAL}/bots/README.md"


def test_on_a_phone_the_list_of_documents_is_one_touch_away(windows: Windows) -> None:
    look = windows.of(None, PHONE)
    page = open_page(look, "protocol/README.md")
    page.get_by_role("link", name="Contents", exact=True).first.click()
    page.get_by_role("navigation").get_by_role("link", name="Changelog").click()
    page.get_by_role("heading", name="Changelog").wait_for()

    look.sound("after it")
