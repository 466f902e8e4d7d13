"""A competition that plays until it is settled, on the page: rank ranges as bars, and marks (K6)."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from arena.formats.formats import open_stages
from arena.formats.schedule import Outcome
from arena.formats.spec import Settling
from arena.games.match import MatchResult
from arena.games.settle import Goal
from arena.storage.store import Store
from tests.support.browser import PHONE, SIZES
from tests.support.page_of_documents import route
from tests.support.page_reader import AnalysisReader
from tests.support.sample_database import SampleWriter, plan
from tests.support.written_competition import COMPLETED, RECORD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.page.conftest import Windows

pytestmark = pytest.mark.e2e

SETTLE = Settling(goal=Goal.FIRST, level=2.0, most=60)
STRENGTH = {"nash": 0.6, "honest": 0.2, "bluffer": 0.0, "random": -2.0}


def write_settled(file: Path) -> None:
    """A competition to its end, in which the stronger of two wins more often."""
    rng = random.Random(1)
    with Store(file) as store:
        made = plan("ace_king_queen", players=tuple(STRENGTH), settle=SETTLE, matches=10)
        writer, stages = SampleWriter(store, made, "akq"), open_stages(made)
        while stage := stages.oldest:
            outcomes = []
            for pairing in stage:
                one, two = pairing.players
                score = round(10 * (rng.gauss(0, 1) + STRENGTH[one] - STRENGTH[two]))
                result = MatchResult((score, -score), (0, 0), COMPLETED, record=RECORD)
                writer.finished(pairing, result)
                outcomes.append(Outcome(pairing, result))
            stages.hear(tuple(outcomes))
        store.competition_finished("akq", 9_000.0)


def test_rank_ranges_are_bars_that_narrow_and_cells_have_marks(
    windows: Windows, tmp_path: Path
) -> None:
    write_settled(tmp_path / "arena.db")
    reader = AnalysisReader(tmp_path / "arena.db")
    document = reader.get("competitions/akq.json")
    rows, marks = document["standings"], reader.get("competitions/akq/cross.json")["marks"]
    band = reader.get("competitions/akq/pairing.json", a="random", b="nash")["band"]
    spans = [high - low for _, _, low, high in band if low is not None]

    assert document["settle"] == {"goal": "first", "level": 2.0, "most": 60}
    assert len(marks) == 12
    assert len(spans) > 10
    assert spans[-1] < spans[0], "it narrows"
    look = windows.of(reader, is_new=True)
    for size in SIZES.values():
        look.resize(size)
        are_new = size == PHONE
        page = look.to(route("c", "akq", "standings"))
        bars = page.locator(".rankbar")
        bars.first.wait_for()
        widths = [
            float(bar.get_attribute("width") or "") for bar in bars.locator(".possible").all()
        ]
        ranks = [25.0 * (1 + row["rank_high"] - row["rank_low"]) for row in rows]
        figures = page.locator("tbody .rankbar .figure").all_inner_texts()
        text = page.locator("body").inner_text()
        assert sorted(widths) == sorted(ranks)
        assert min(widths) < 75.0
        assert len(figures) == len(rows)
        assert all(re.fullmatch(r"\d(–\d)?", each) for each in figures)
        assert "All rank ranges together are right in 95 of 100 competitions." in text
        assert "Played on until it is clear who is first, at most 60 times each." in text
        look.sound("standings", colours=are_new)

        page = look.to(route("c", "akq", "cross"))
        page.get_by_role("grid").wait_for()
        cells = page.locator("table.heat tbody td").all_inner_texts()
        assert sorted(cell.strip()[0] for cell in cells if cell.strip()) == sorted(marks)
        assert "Each mark is wrong at most once in 20" in page.locator("body").inner_text()
        look.sound("cross", colours=are_new)

        page = look.to(route("c", "akq", "pairing", "random", "nash"))
        page.locator(".chart .band").wait_for()
        assert "and its 95 % interval" in page.locator("figcaption").first.inner_text()
        look.sound("pairing", colours=are_new)
