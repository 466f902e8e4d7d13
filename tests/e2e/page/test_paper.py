"""The page on paper: a class of forty, whose documents are made up."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browser import BrowserWindow
from tests.support.page_of_documents import route

if TYPE_CHECKING:
    from tests.e2e.page.conftest import Windows
    from tests.support.page_reader import AnalysisReader

pytestmark = pytest.mark.e2e

LAPTOP = (1366, 768)
SHEET = 718  # CSS pixels between the margins of a sheet of A4
NAMES = [f"student number {n} of the class" for n in range(40)]
WIDER = """() => [...document.querySelectorAll("main *")]
  .filter((one) => { const { right, width } = one.getBoundingClientRect(); return width && right > innerWidth + 1; })
  .map((one) => `${one.localName}.${one.getAttribute("class")}`)"""
CUT = """() => [...document.querySelectorAll("main :is(.name, td, th, .wide, .box)")]
  .filter((one) => getComputedStyle(one).overflow !== "visible" && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
  .map((one) => `${one.localName}.${one.getAttribute("class")}: ${one.innerText.slice(0, 30)}`)"""


def large_cross() -> dict[str, Any]:
    """A cross table in which the later bot wins."""
    count = range(len(NAMES))
    cells = [
        [row, column, 2, 1, 0, 1, row - column, (row - column) / 2, 0.1]
        for row in count
        for column in count
        if row != column
    ]
    return {"names": NAMES, "cells": cells}


def large_bracket() -> list[dict[str, Any]]:
    """An elimination in which the first two of every table advance."""
    left, pairing = NAMES, 0
    stages: list[dict[str, Any]] = []
    while len(left) > 4:
        tables, through = [], []
        for at in range(0, len(left) // 4 * 4, 4):
            players, pairing = left[at : at + 4], pairing + 1
            tables.append(_table(pairing, players, players[:2], players[2:]))
            through += players[:2]
        byes = left[len(left) // 4 * 4 :]
        stages.append({"stage": len(stages) + 1, "final": False, "tables": tables, "byes": byes})
        left = through + byes
    last = _table(pairing + 1, left, None, None)
    return [*stages, {"stage": len(stages) + 1, "final": True, "tables": [last], "byes": []}]


def _table(pairing: int, players: list[str], advanced: Any, out: Any) -> dict[str, Any]:
    return {
        "pairing": pairing,
        "match": None,
        "players": players,
        "house": [],
        "state": "over",
        "scores": [30, 10, -15, -25][: len(players)],
        "advanced": advanced,
        "out": out,
        "offender": None,
    }


def large(
    windows: Windows, reader: AnalysisReader, game: str, *tab: str, **taste: Any
) -> BrowserWindow:
    """A window at the game's cup, as if forty bots had played in it."""
    path = f"competitions/{game}-cup.json"
    document = reader.get(path)
    if document["form"] == "elimination":
        document["bracket"] = large_bracket()
    else:
        rows = [row for row in document["standings"] if row["rank"] is not None]
        many = [{**rows[n % len(rows)], "name": name} for n, name in enumerate(NAMES)]
        document["standings"] = many
    look = windows.of(reader, LAPTOP, **taste)
    look.page.route(f"**/{path}", lambda route: route.fulfill(json=document))
    look.page.route("**/cross.json", lambda route: route.fulfill(json=large_cross()))
    look.to(route("c", f"{game}-cup", *tab))
    look.page.get_by_text(NAMES[-1]).first.wait_for(state="attached")
    return look


def sheets(pdf: bytes) -> tuple[int, bool, set[tuple[int, ...]]]:
    """The number of sheets of a PDF, whether all are wide, and the colours of filled areas."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    colours: set[tuple[int, ...]] = set()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            drawn = zlib.decompress(stream)
        except zlib.error:
            continue
        for filled in re.findall(rb"([\d.]+ [\d.]+ [\d.]+) rg", drawn):
            colours.add(tuple(round(255 * float(part)) for part in filled.split()))
    return len(boxes), all(float(wide) > float(high) for wide, high in boxes), colours


@pytest.mark.parametrize(
    ("game", "tab"),
    [("ace_king_queen", ["cross"]), ("ace_king_queen", ["standings"]), ("high_low", [])],
    ids=["cross table", "standings", "bracket"],
)
def test_nothing_is_cut_off_on_paper(
    windows: Windows, reader: AnalysisReader, game: str, tab: list[str]
) -> None:
    look = large(windows, reader, game, *tab)
    page = look.page
    page.emulate_media(media="print")
    look.resize((SHEET, 1000))

    assert page.evaluate(WIDER) == []
    assert page.evaluate(CUT) == []
    printed = page.locator("main").inner_text()
    assert all(name in printed for name in NAMES)
    if "standings" in tab:  # each sheet has the heads of the columns
        head = page.get_by_role("table", name="Standings").locator("thead")
        heads = head.locator("th").all_inner_texts()
        assert {"Bot", "Won", "Lost", "Score"} <= {each.strip(" ▲▼") for each in heads}
        assert page.locator("thead button:visible").count() == 0, "which are not repeated"
        assert head.evaluate("it => getComputedStyle(it).display") == "table-header-group"


def test_a_cross_table_is_printed_in_its_colours_on_wide_sheets(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = large(windows, reader, "ace_king_queen", "cross", color_scheme="dark")
    look.page.locator("tbody tr").nth(len(NAMES) - 1).wait_for()
    count, are_wide, colours = sheets(look.page.pdf(prefer_css_page_size=True))

    assert (count, are_wide) == (2, True)
    assert (10, 86, 173) in colours, "who is ahead"
    assert (196, 84, 14) in colours, "who is behind"


def test_a_bracket_of_forty_is_printed_on_wide_sheets(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = large(windows, reader, "high_low")
    look.page.locator(".stage").nth(4).wait_for()
    count, are_wide, _ = sheets(look.page.pdf(prefer_css_page_size=True))

    assert count >= 2
    assert are_wide
