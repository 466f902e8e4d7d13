"""A competition that plays until it is settled, on the page in a real Chromium: rank ranges as bars
that narrow, and the marks of the pairings (K6).
"""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import arena_process
from tests.support.browser import PHONE, PROJECTOR, BrowserWindow, axe_source, browser

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="the arena is ended by a signal"),
]

READY_S = 60.0
RUN = """
[serve]
port = 0
db = "class.db"

[[run]]
name = "evening"
game = "ace_king_queen"
least = 4
house = ["nash", "honest", "bluffer", "random"]
settle = "first"
matches = 10
most = 60
settings = { hands = 60 }
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def axe() -> str | None:
    return axe_source()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "class.toml").write_text(RUN)
    words = ("-m", "arena", "serve", "--config", "class.toml")
    arena = arena_process.start(tmp_path, "arena.err", *words)
    said = tmp_path / "arena.err"
    try:
        end = time.monotonic() + READY_S
        while "the page is at " not in said.read_text() and arena.poll() is None:
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.05)
        yield said.read_text().partition("the page is at ")[2].split()[0].rstrip("/")
    finally:
        arena.terminate()
        arena.wait(20)


def read(url: str, path: str, query: str = "") -> Any:
    with urllib.request.urlopen(f"{url}/api/{path}.json{query}") as answer:
        return json.load(answer)


def test_rank_ranges_are_bars_that_narrow_and_the_cross_table_has_marks(
    chromium: Browser, axe: str | None, url: str
) -> None:
    end = time.monotonic() + READY_S
    while not (lines := read(url, "competitions")["competitions"]):
        assert time.monotonic() < end
    id_ = lines[0]["id"]
    ranges: list[dict[str, tuple[int, int]]] = []
    while not ranges or read(url, f"competitions/{id_}")["state"] != "finished":
        assert time.monotonic() < end
        rows = read(url, f"competitions/{id_}")["standings"]
        ranges.append({row["name"]: (row["rank_low"], row["rank_high"]) for row in rows})
    document = read(url, f"competitions/{id_}")
    rows = {row["name"]: row for row in document["standings"]}
    width = {name: row["rank_high"] - row["rank_low"] for name, row in rows.items()}

    assert document["settle"] == {"goal": "first", "level": 2.0, "most": 60}
    assert document["scheduled"] is None
    assert rows["random"]["rank_low"] > 1, "it loses to everybody"
    assert min(width.values()) < 3

    for size in (PROJECTOR, PHONE):
        look = BrowserWindow(chromium, url, size, axe)
        try:
            page = look.to(f"#/c/{id_}/standings")
            bars = page.locator(".rankbar")
            bars.first.wait_for()
            widths = [
                float(bar.get_attribute("width") or "") for bar in bars.locator(".possible").all()
            ]
            order = page.locator("tbody .rankbar .figure").all_inner_texts()
            text = page.locator("body").inner_text()

            assert sorted(widths) == sorted(25.0 * (1 + one) for one in width.values())
            assert all(re.fullmatch(r"\d(–\d)?", one) for one in order)
            assert "All rank ranges together are right in 95 of 100 competitions." in text
            assert "Played on until it is clear who is first, at most 60 times each." in text

            look.sound("standings")
            page = look.to(f"#/c/{id_}/cross")
            page.get_by_role("grid").wait_for()
            cross = read(url, f"competitions/{id_}/cross")
            shown = [
                cell
                for cell in page.locator("table.heat tbody td").all_inner_texts()
                if cell.strip()
            ]

            assert len(shown) == len(cross["marks"]) == 12
            assert sorted(cell.strip()[0] for cell in shown) == sorted(cross["marks"])
            assert "Each mark is wrong at most once in 20" in page.locator("body").inner_text()
            look.sound("cross")

            pairing = read(url, f"competitions/{id_}/pairing", "?a=random&b=nash")
            page = look.to(f"#/c/{id_}/pairing/random/nash")
            page.locator(".chart .band").wait_for()
            widths = [high - low for _, _, low, high in pairing["band"] if low is not None]
            assert len(widths) > 10
            assert widths[-1] < widths[0], "it narrows"
            cell = pairing["cell"]
            assert pairing["band"][-1] == [cell["played"], cell["mean"], *cell["interval"]]
            assert "and its 95 % interval" in page.locator("figcaption").first.inner_text()
            look.sound("pairing")
        finally:
            look.close()
