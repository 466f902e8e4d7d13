"""The manual in a real Chromium, as `arena docs` serves it: on screens of two sizes, on paper."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from arena.manual.documents import documents
from tests.support.browser import PHONE, SIZES, BrowserWindow, axe_source, browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e

CUT = """() => [...document.querySelectorAll("main :is(pre, .wide, td)")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1
    || box.getBoundingClientRect().right > innerWidth + 1)
  .map((box) => box.innerText.slice(0, 60))"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def axe() -> str | None:
    return axe_source()


@pytest.fixture(scope="module")
def url(chromium: Browser) -> Iterator[str]:
    """The address of the manual, without its last slash."""
    words = (sys.executable, "-m", "arena", "docs", "--no-browser", "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None, "it is a pipe"
        yield json.loads(process.stdout.readline())["url"].rstrip("/")
        process.kill()


@pytest.fixture(params=SIZES)
def look(request: pytest.FixtureRequest, chromium: Browser, url: str) -> Iterator[BrowserWindow]:
    """A window of either size; by the end of the test nothing may have gone wrong in it."""
    window = BrowserWindow(chromium, url, SIZES[request.param])
    yield window
    window.sound("at the end")
    window.close()


def open_page(look: BrowserWindow, path: str = "") -> Page:
    look.page.goto(f"{look.url}/{path}")
    return look.page


def test_every_document_is_sound(look: BrowserWindow) -> None:
    for path, document in documents().items():
        page = open_page(look, path)

        look.sound(path)
        assert page.title() == f"{document.title} · arena"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_everybody_can_use_it(
    size: str, scheme: str, chromium: Browser, url: str, axe: str | None
) -> None:
    look = BrowserWindow(chromium, url, SIZES[size], axe, color_scheme=scheme)
    for path in ("", "LICENSE", "bots/examples/python/README.md", "?q=bank", "no.md"):
        with look.expecting("404" if path == "no.md" else ""):
            open_page(look, path)
            look.sound(path)
    look.close()


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

    assert page.url == f"{look.url}/bots/README.md"


def test_on_a_phone_the_list_of_documents_is_one_touch_away(chromium: Browser, url: str) -> None:
    look = BrowserWindow(chromium, url, PHONE)
    page = open_page(look, "protocol/README.md")
    page.get_by_role("link", name="Contents", exact=True).first.click()
    page.get_by_role("navigation").get_by_role("link", name="Changelog").click()
    page.get_by_role("heading", name="Changelog").wait_for()

    look.sound("after it")
    look.close()


def test_nothing_is_cut_off_on_paper(chromium: Browser, url: str) -> None:
    look = BrowserWindow(chromium, url, (720, 1000))
    for path in documents():
        page = open_page(look, path)
        page.emulate_media(media="print")

        assert page.evaluate(CUT) == [], path
        assert not page.get_by_role("navigation").is_visible()
    look.close()
