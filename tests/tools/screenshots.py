"""Pictures of every view of the page, for people to look at: `python -m tests.tools.screenshots
DIR`; `--frames` measures how smooth it is.

A real arena with a class of bots, a real Chromium; all games, on a projector and on a phone,
light and dark. What is looked at by a program alone is in tests/e2e/test_page.py.

`--frames` prints how long the frames take while the standings of 200 bots and a cross table of 60 ×
60 are scrolled and sorted, and after how long the page can be used. Nothing is asserted: a machine
that is busy is slow."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.browser import PROJECTOR, SIZES, BrowserWindow, browser
from tests.support.class_with_page import GAMES, ClassWithPage
from tests.support.needs import missing
from tests.support.page_player import sit_down

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["main"]

_SCHEMES = ("light", "dark")
_BOTS, _CROSS = 200, 60
_MOVES = 3  # of a person, before its table is pictured
_SCROLLED_PX, _TIMES = 300, 40
_SETTLE_MS = 600  # for a view that is fetching, and a picture that nobody asserts on

_RECORD = """() => {
  const frames = (window.frames_ms = []);
  let last = performance.now();
  const tick = (now) => {
    if (window.frames_ms !== frames) return;
    frames.push(now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""


def main() -> int:
    """Read the command line, and look."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR")
    parser.add_argument("--frames", action="store_true")
    parser.add_argument("--only", default="", help="views whose names contain this")
    options = parser.parse_args()
    if what := missing("playwright", "chromium"):
        parser.error(what)
    if options.frames:
        _frames()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        _pictures(options.folder, options.only)
    return 0


# ---- Pictures


def _pictures(folder: Path, only: str) -> None:
    with ExitStack() as stack:
        chromium = stack.enter_context(browser())
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        school = stack.enter_context(ClassWithPage(work, tuple(GAMES)))
        school.played()
        views = {name: it for name, it in _views(school).items() if only in name}
        for size_name, size in SIZES.items():
            for scheme in _SCHEMES:
                look = BrowserWindow(chromium, school.url, size, color_scheme=scheme)
                for name, route in views.items():
                    page = look.to(route)
                    page.wait_for_timeout(_SETTLE_MS)
                    _shoot(page, folder / f"{name}_{size_name}_{scheme}.png")
                _at_tables(look, folder, f"{size_name}_{scheme}", only)
                for fault in look.faults:
                    print(f"{size_name}, {scheme}: {fault}", file=sys.stderr)
                look.close()


def _views(school: ClassWithPage) -> dict[str, str]:
    views = {
        "lobby": "#/",
        "competitions": "#/competitions",
        "play": "#/play",
        "instructor": "#/instructor",
        "lost": "#/nowhere/at/all",
        "missing": "#/m/nothing",
    }
    for game in GAMES:
        for view, route in school.views(game).items():
            views[f"{game}_{view}"] = route
            if view == "match":
                views[f"{game}_step"] = f"{route}/1/3"
    for game, match in school.at_table().items():
        views[f"{game}_live"] = school.route("m", match)
    return views


def _shoot(page: Page, file: Path) -> None:
    page.screenshot(path=file)


def _at_tables(look: BrowserWindow, folder: Path, what: str, only: str) -> None:
    """A person at a table of every game, after some moves and at the end of the round."""
    for game in GAMES:
        if only not in f"{game}_played":
            continue
        person = sit_down(look, game, f"Pia {game} {what}")
        for number in range(_MOVES):
            if not person.may_move():
                break
            _shoot(look.page, folder / f"{game}_played_{number}_{what}.png")
            person.move()
        with suppress(AssertionError):
            person.to_the_end_of_the_round()
        look.page.wait_for_timeout(_SETTLE_MS)
        _shoot(look.page, folder / f"{game}_played_end_{what}.png")
        person.stand_up()


# ---- Frames


def _frames() -> None:
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with ExitStack() as stack:
        chromium = stack.enter_context(browser())
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        school = stack.enter_context(ClassWithPage(work, ()))
        school.played()
        _first_use(chromium, school)
        _smoothness(chromium, school)


def _first_use(chromium: Browser, school: ClassWithPage) -> None:
    """How long it takes from the address to something that can be used, each time in a window that
    has nothing yet.
    """
    taken = []
    for _ in range(5):
        look = BrowserWindow(chromium, school.url)
        began = time.perf_counter()
        look.page.goto(school.url + "/#/")
        look.page.get_by_role("heading", name="Lobby").wait_for()
        taken.append(1000 * (time.perf_counter() - began))
        look.close()
    print(f"page to its first use: {statistics.median(taken):.0f} ms (of 5)")


def _smoothness(chromium: Browser, school: ClassWithPage) -> None:
    look = BrowserWindow(chromium, school.url, PROJECTOR)
    page = look.page
    big = school.competitions()["ace_king_queen-cup"]["id"]
    document = school.document(f"/api/competitions/{big}.json")
    cross = school.document(f"/api/competitions/{big}/cross.json")
    page.route(f"**/api/competitions/{big}.json", _answers(_many_rows(document)))
    page.route(f"**/api/competitions/{big}/cross.json", _answers(_many_cells(cross)))

    look.to(school.route("c", big, "standings"))
    page.locator("tbody tr").nth(_BOTS - 1).wait_for()
    _told(f"standings of {_BOTS}, scrolled", page, _scroll(page))
    _told(f"standings of {_BOTS}, sorted", page, _sort(page))
    look.to(school.route("c", big, "cross"))
    page.locator("tbody tr").nth(_CROSS - 1).wait_for()
    _told(f"cross table of {_CROSS} × {_CROSS}, scrolled", page, _scroll(page))
    _told(f"cross table of {_CROSS} × {_CROSS}, pointed at", page, _point(page))
    look.close()


def _told(what: str, page: Page, doing: Iterator[None]) -> None:
    """Record the frames while something is done."""
    page.evaluate(_RECORD)
    for _ in doing:
        page.wait_for_timeout(16)
    frames = sorted(page.evaluate("() => window.frames_ms"))
    p95, late = frames[int(len(frames) * 0.95)], sum(one > 50 for one in frames)
    print(
        f"{what}: {len(frames)} frames, median {statistics.median(frames):.1f} ms, "
        f"95 % within {p95:.1f} ms, longest {frames[-1]:.0f} ms, {late} over 50 ms"
    )


def _scroll(page: Page) -> Iterator[None]:
    width, height = PROJECTOR
    page.mouse.move(width / 2, height / 2)
    for number in range(_TIMES):
        page.mouse.wheel(0, _SCROLLED_PX if number < _TIMES / 2 else -_SCROLLED_PX)
        yield


def _sort(page: Page) -> Iterator[None]:
    buttons = page.locator("button.sort")
    for number in range(_TIMES // 4):
        buttons.nth(number % buttons.count()).click()
        yield


def _point(page: Page) -> Iterator[None]:
    box = page.locator("table").bounding_box()
    assert box is not None, "it is on the screen"
    for number in range(_TIMES):
        share = number / _TIMES
        page.mouse.move(box["x"] + 300 + 1200 * share, box["y"] + 100 + 600 * share)
        yield


def _answers(document: Any) -> Callable[[Any], None]:
    return lambda route: route.fulfill(json=document)


def _many_rows(document: dict[str, Any]) -> dict[str, Any]:
    """The standings of a class that is larger than any that is quickly played."""
    rows = [row for row in document["standings"] if row["rank"] is not None]
    many = [{**rows[n % len(rows)], "name": f"bot number {n}", "rank": n + 1} for n in range(_BOTS)]
    return {**document, "standings": many}


def _many_cells(cross: dict[str, Any]) -> dict[str, Any]:
    cells = [cell[2:] for cell in cross["cells"]]
    many = [
        [row, column, *cells[(row * 7 + column) % len(cells)]]
        for row in range(_CROSS)
        for column in range(_CROSS)
        if row != column
    ]
    return {"names": [f"bot number {n}" for n in range(_CROSS)], "cells": many}


if __name__ == "__main__":
    sys.exit(main())
