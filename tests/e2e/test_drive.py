"""A small class under load and faults; `python -m tests.tools.drive` runs one of sixty."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import independent_audit
from tests.support.independent_audit import AuditedDatabase
from tests.support.needs import tool
from tests.tools.drive import Drive, DriveOptions, Report

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),  # of a machine that does much else: fifteen seconds if it does not
    pytest.mark.skipif(sys.platform != "linux", reason="it looks for orphans in /proc"),
]

ROBIN, CUP = "ace_king_queen", "high_low"


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    drive = Drive(
        tmp_path_factory.mktemp("drive"),
        DriveOptions(
            bots=5,
            kinds=("house", "house", "pipes", "launched", "python"),
            games=(ROBIN, CUP),
            rogues=2,
            matches=2,
            faults={"kill": 1, "stop": 1, "cut": 1},
            every_s=1.0,
            away_s=0.5,
            guesses=100,
            spectators=2,
        ),
    )
    return drive.database, drive.run()


def test_nobody_is_out_and_nothing_is_lost(driven: tuple[Path, Report]) -> None:
    report = driven[1]

    assert report.faults == []
    assert report.done == {"kill": 1, "stop": 1, "cut": 1}
    assert report.out.keys() == {"rogue-1", "rogue-2"}
    assert report.matches > 20
    assert sum(report.guesses.values()) == 100


def test_nothing_is_lost_when_hosts_and_the_bus_are_killed(tmp_path: Path) -> None:
    tool("nats-server")
    options = DriveOptions(
        bots=2,
        kinds=("submitted",),
        games=(ROBIN,),
        matches=4,
        faults={"host-kill": 1, "bus-kill": 1, "kill": 1},
        every_s=2.0,
        away_s=0.5,
        hosts=2,
    )

    report = Drive(tmp_path, options).run()

    assert report.faults == []
    assert report.done.items() >= {"host-kill": 1, "bus-kill": 1, "kill": 1}.items()


# --- the audit sees what is wrong ---


def faults(database: Path, before: AuditedDatabase) -> list[str]:
    """What an independent audit finds."""
    book = independent_audit.read(database)
    found = [*independent_audit.lost(before, book), *independent_audit.whole(book)]
    for competition in book.competitions:
        matches = book.of(competition.id)
        if competition.plan["form"] == "elimination":
            found += independent_audit.bracket(competition, matches)
        else:
            out = {bot for _, bot, *_ in book.verdicts}
            found += independent_audit.pairings(competition, matches, out, set())
    return found


COUNTED = "FROM matches WHERE game = :robin AND counts ORDER BY pairing LIMIT 1"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            "DELETE FROM matches WHERE id = (SELECT max(id) FROM matches WHERE game = :robin)",
            ["was there and is lost", "counts 1 times, expected 2"],
        ),
        (
            "UPDATE matches SET counts = 0 WHERE game = :cup AND pairing = 1",
            ["is not what it was", "table 1 of"],
        ),
        (
            'UPDATE seats SET score = -score WHERE "match" IN'
            " (SELECT id FROM matches WHERE game = :cup)",
            ["is not what it was", "expected"],
        ),
        (
            f"UPDATE matches SET record = (SELECT record {COUNTED})"
            f" WHERE id = (SELECT id {COUNTED} OFFSET 1)",
            ["is not what it was", "were dealt 2 times"],
        ),
    ],
    ids=["a lost match", "a table uncounted", "a changed score", "cards dealt twice"],
)
def test_the_second_look_sees_what_is_wrong(
    driven: tuple[Path, Report], tmp_path: Path, change: str, found: list[str]
) -> None:
    before = independent_audit.read(driven[0])
    copy = tmp_path / "copy.db"
    shutil.copy(driven[0], copy)
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute(change, {"robin": ROBIN, "cup": CUP} if ":" in change else {})

    text = "\n".join({*faults(copy, before)} - {*faults(driven[0], before)})
    for part in found:
        assert part in text
