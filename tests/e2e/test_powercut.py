"""An arena that is killed three times, and what its database holds then.

`python -m tests.tools.powercut` kills it thirty times.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import independent_audit
from tests.support.independent_audit import AuditedDatabase
from tests.tools.powercut import PowercutOutcome, powercut

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks for orphans in /proc"),
]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PowercutOutcome]:
    """Three kills: while bots connect, at a write, and after the end."""
    folder = tmp_path_factory.mktemp("powercut")
    return folder / "powercut.db", powercut(folder, kills=3, seed=4)


def faults(database: Path, before: AuditedDatabase) -> list[str]:
    """What an independent audit finds."""
    book = independent_audit.read(database)
    found = [*independent_audit.lost(before, book), *independent_audit.whole(book)]
    for competition in book.competitions:
        matches = book.of(competition.id)
        if competition.plan["form"] == "elimination":
            found += independent_audit.bracket(competition, matches)
        else:
            found += independent_audit.pairings(competition, matches, set(), {"stan", "rita"})
    return found


def test_a_killed_arena_goes_on_and_nothing_is_lost_or_counted_twice(
    outcome: tuple[Path, PowercutOutcome],
) -> None:
    assert outcome[1].faults == []
    assert len(outcome[1].kills) == 3
    assert outcome[1].matches > 100


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            "DELETE FROM matches WHERE game = 'ace_king_queen' AND pairing = 7",
            ["was there and is lost", "counts 3 times, expected 4"],
        ),
        (
            "UPDATE matches SET counts = 0 WHERE game = 'high_low' AND pairing = 2",
            ["is not what it was", "table 2 of"],
        ),
        (
            'UPDATE seats SET score = -score WHERE "match" IN'
            " (SELECT id FROM matches WHERE game = 'high_low' AND pairing = 1)",
            ["is not what it was", "expected"],
        ),
        (
            "UPDATE matches SET record = (SELECT record FROM matches WHERE pairing = 9)"
            " WHERE game = 'ace_king_queen' AND pairing = 8",
            ["is not what it was", "were dealt 2 times"],
        ),
    ],
    ids=["a lost match", "a table uncounted", "a changed score", "cards dealt twice"],
)
def test_the_second_look_sees_what_is_wrong(
    outcome: tuple[Path, PowercutOutcome], tmp_path: Path, change: str, found: list[str]
) -> None:
    before = independent_audit.read(outcome[0])
    copy = tmp_path / "copy.db"
    shutil.copy(outcome[0], copy)
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute(change)

    assert faults(outcome[0], before) == []
    text = "\n".join(faults(copy, before))
    for part in found:
        assert part in text
