"""One Chromium, one arena with a class, and one database for all tests of the page.

They end with the last test of this folder: while Chromium is driven no coroutine can be run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from arena.games.catalogue import GAMES
from tests.support.browser import PROJECTOR, BrowserWindow, axe_source, browser
from tests.support.class_with_page import TOYS, ClassWithPage
from tests.support.page_of_documents import documents_window, write_class
from tests.support.page_reader import AnalysisReader
from tests.support.toy_games import toy_name, write_toy

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="package")
def axe() -> str | None:
    return axe_source()


@pytest.fixture(scope="package")
def school(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClassWithPage]:
    """An arena in which slow bots play all games; the class has played one cup."""
    folder, toys = tmp_path_factory.mktemp("school"), tmp_path_factory.mktemp("toys")
    for seats in TOYS:
        write_toy(toys, seats)
    guests = [toy_name(seats) for seats in TOYS]
    with ClassWithPage(
        folder, tuple(GAMES), cups=["ace_king_queen"], beside=[toys], guests=guests
    ) as school:
        school.played()
        yield school


@pytest.fixture(scope="package")
def reader(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> AnalysisReader:
    """The documents of a class that has played cups in all games."""
    file = tmp_path_factory.mktemp("class") / "class.db"
    write_class(file)
    return AnalysisReader(file)


class Windows:
    """Opens windows at the arena's page, or at one of documents only.

    A window that a test is done with serves the next test: to open one and load the page costs half
    a second of the processor. With `is_new` it is opened for this test and closed after it. Other
    options are media that playwright emulates, such as `color_scheme` and `reduced_motion`.
    """

    def __init__(self, chromium: Browser, axe: str | None) -> None:
        self._chromium = chromium
        self._axe = axe
        self._free: dict[str, list[BrowserWindow]] = {}
        self._used: list[tuple[str, BrowserWindow]] = []

    def at(self, url: str, size: tuple[int, int] = PROJECTOR, **media: Any) -> BrowserWindow:
        """A window at an arena's page."""
        return self._open(partial(BrowserWindow, self._chromium, url), url, size, media)

    def of(
        self, reader: AnalysisReader | None, size: tuple[int, int] = PROJECTOR, **media: Any
    ) -> BrowserWindow:
        """A window at a page with the documents of a reader."""
        opens = partial(documents_window, self._chromium, reader)
        return self._open(opens, str(id(reader)), size, media)

    def end_test(self) -> None:
        """Close new windows. The others must be without a fault, and are ready for the next test."""
        while self._used:
            key, window = self._used.pop()
            if not key:
                window.close()
                continue
            self._free.setdefault(key, []).append(window)
            try:
                window.sound("at the end", axe=False)
            finally:
                window.reset()

    def _open(
        self,
        opens: Callable[..., BrowserWindow],
        where: str,
        size: tuple[int, int],
        media: dict[str, Any],
    ) -> BrowserWindow:
        key = "" if media.pop("is_new", False) else where
        free = self._free.get(key)
        window = free.pop() if free else opens(size, self._axe)
        self._used.append((key, window))
        window.resize(size)
        window.page.emulate_media(**media)
        return window


@pytest.fixture(scope="package")
def all_windows(chromium: Browser, axe: str | None) -> Windows:
    return Windows(chromium, axe)


@pytest.fixture
def windows(all_windows: Windows) -> Iterator[Windows]:
    yield all_windows
    all_windows.end_test()
