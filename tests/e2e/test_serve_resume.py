"""`arena serve` that is stopped, killed and started again on its database: schedules of faults.

A schedule is a life a cell: what is waited for and done to the arena, in words. After every life,
whatever was done, the same must hold; what is peculiar to a schedule stands in its row.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support import independent_audit
from tests.support.in_process import run_here
from tests.support.pipe_bot import bot, slow, write_bots

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there"),
]

CONFIG = """
[serve]
port = {port}
db = "x.db"
once = true
[[run]]
name = "evening"
game = "ace_king_queen"
"""
RUN = 'least = 2\nhouse = ["nash", "honest"]\nwith_itself = false\nsettings = { hands = 50 }\n'
SETTLING = (
    'least = 3\nhouse = ["nash", "honest", "bluffer"]\nsettle = "pairs"\nmatches = 6\n'
    "most = 20\nsettings = { hands = 10 }\n"
)
STOPPED = "x.db, and the same command goes on from there"


def printed(*words: str) -> Any:
    """What `arena WORDS --json` prints."""
    return run_here(*words, "--json").document


class Schedule(NamedTuple):
    """What is served, what is done in each life, and how many pairings count at the end."""

    what: str | int  # the lines of its run, or so many bots that are launched
    lives: tuple[str, ...]
    pairings: int | None = None  # None is as many as it takes
    ago_min: int | None = None  # when the run was due
    also: str = ""


SCHEDULES = {
    "ctrl-c, then without its bots": Schedule(2, ("completed ^C", "alone ends"), 18),
    "ctrl-c in a pause": Schedule(2, ("completed pause ^C", "paused resume ends"), 18),
    "void, remove, kill -9": Schedule(3, ("completed void remove kill", "ends"), also="eve is out"),
    "settling, killed in two blocks": Schedule(
        SETTLING, ("completed*8 kill", "completed*20 kill", "ends"), also="forged"
    ),
    "played already": Schedule(RUN + "matches = 2", ("ends", "ends"), 2, also="not again"),
    "due before a ctrl-c": Schedule(
        RUN + "matches = 60", ("completed ^C", "ends", "ends"), 60, ago_min=20
    ),
    "long past": Schedule(RUN + "matches = 2", ("ends",), 0, ago_min=120, also="was not played at"),
}


class Lives:
    """Plays a schedule, and looks after every life whether all is as it must be."""

    def __init__(self, it: Schedule, folder: Path, port: int, start: Callable[..., Any]) -> None:
        self.it, self.folder, self.start, self.db = it, folder, start, folder / "x.db"
        self.due = None if it.ago_min is None else (
            datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=it.ago_min)
        )  # fmt: skip
        write_bots(folder, bot=slow(0.005, tables=2))
        self.words: tuple[str, ...] = ("--config", "class.toml")
        at = f"\nat = {self.due.isoformat()}" if self.due else ""
        (folder / "class.toml").write_text(CONFIG.format(port=port) + str(it.what) + at)
        self.bots: tuple[str, ...] = ()
        if isinstance(it.what, int):
            self.words = ("akq", "--once", "--json", "--matches", "6", "--set", "hands=12")
            self.words += ("--port", str(port), "--db", "x.db", "--players", str(it.what))
            self.bots = tuple(
                word for name in ("ann", "ben", "eve")[: it.what] for word in bot("bot.py", name)
            )
        token = printed("roster", "instructor", "prof", "--db", str(self.db))["token"]
        self.to = ("--url", f"ws://127.0.0.1:{port}", "--token", token)
        self.voided: str | None = None

    def counted(self) -> list[int]:
        """The pairings that count, of the one competition that there may be."""
        book = independent_audit.read(self.db)
        assert [*independent_audit.whole(book)] == []
        return [match.pairing for each in book.competitions for match in book.of(each.id)]

    def eliminated(self, name: str) -> Any:
        """How that bot was eliminated, as the standings in the database say."""
        rows = printed("standings", "--db", str(self.db))["standings"]
        return next(row["eliminated"] for row in rows if row["name"] == name)

    def live(self, life: str) -> str:
        """One life, and what the arena has said in it."""
        before = self.counted()
        words = () if "alone" in life else self.bots
        arena: StartedProgram = self.start(
            "arena", "serve", "--log", "-", *self.words, *words, cwd=self.folder
        )
        for act in life.split():
            name, _, times = act.partition("*")
            if name == "completed":
                for _ in range(int(times or 1)):
                    line = arena.until(" completed")
            elif name in ("pause", "resume"):
                state = {"pause": "paused", "resume": "running"}[name]
                assert printed(name, *self.to)["competitions"][0]["state"] == state
            elif name == "paused":
                arena.until("(paused)")
                [progress] = printed("status", *self.to)["competitions"]
                assert (progress["state"], progress["settled"]) == ("paused", len(before))
            elif name == "void":
                self.voided = line.split()[5]  # after date, time, zone and competition
                printed("void", self.voided, *self.to)
                while independent_audit.read(self.db).matches[self.voided].counts:
                    time.sleep(0.05)  # it is answered before it is written
            elif name == "remove":
                printed("remove", "eve", *self.to)
                while self.eliminated("eve") is None:
                    time.sleep(0.05)  # so is this
        if life.endswith("kill"):
            arena.kill()
            said, is_over = arena.said, False
        else:
            if life.endswith("^C"):
                arena.process.send_signal(signal.SIGINT)
            status, self.out, said = arena.ends()
            is_over = life.endswith("ends")
            assert status == (0 if is_over else 130), said
            assert is_over or (self.out, said.endswith(f"{STOPPED}\n")) == ("", True)
        after = self.counted()
        assert "Traceback" not in said
        assert len(set(after)) == len(after), "a pairing counts twice"
        assert set(before) <= set(after), "what counted is lost"
        if self.voided is None:
            told, played = said.count(" completed"), len(after) - len(before)
            if is_over:
                assert told == played, said
            elif life.endswith("^C"):  # what came last may be written and not yet told
                assert told <= played, said
            goes_on = re.findall(r"goes on: .*?(\d+)(?: of \d+)? matches played", said)
            is_begun = 0 < len(before) < (self.it.pairings or 10**9)
            assert goes_on == [str(len(before))] * is_begun, said
        return said


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_pairing_counts_once_whatever_happens(
    name: str, start: Callable[..., StartedProgram], tmp_path: Path, free_port: int
) -> None:
    it = SCHEDULES[name]
    lives = Lives(it, tmp_path, free_port, start)
    for life in it.lives:
        said = lives.live(life)
    book = independent_audit.read(lives.db)
    counted = lives.counted()
    if not it.also.startswith("eve"):
        assert counted == [*range(1, (len(counted) if it.pairings is None else it.pairings) + 1)]
    assert printed("verify", str(lives.db))["failed"] == []
    assert [each.state for each in book.competitions] == ["finished"] * (it.pairings != 0)
    if lives.due and book.competitions:
        assert book.competitions[0].plan["due_at"] == lives.due.timestamp()
    match it.also:
        case "eve is out":
            [row] = book.competitions
            assert [*independent_audit.pairings(row, book.of(row.id), {"eve"}, set())] == []
            assert lives.voided is not None
            assert not book.matches[lives.voided].counts
            rows = {each["name"]: each["eliminated"] for each in json.loads(lives.out)["standings"]}
            assert (rows["eve"]["kind"], rows["ann"], rows["ben"]) == ("removed", None, None)
        case "forged":
            assert len(counted) > 36, "a third block"
            rows = printed("standings", "--db", str(lives.db))["standings"]
            assert all(each["rank_low"] <= each["rank"] <= each["rank_high"] for each in rows)
            forged(lives.db, len(counted))
            done = run_here("verify", str(lives.db))
            assert (done.status, "asks for no pairing 1000" in done.out) == (1, True)
        case "not again":
            assert "evening is not played again: it was akq-" in said
        case "was not played at":
            assert f"evening was not played at {lives.due.astimezone():%a %d %b %H:%M}" in said  # type: ignore[union-attr]


def forged(file: Path, last: int) -> None:
    import sqlite3

    with sqlite3.connect(file) as database:
        database.execute("UPDATE matches SET pairing = 1000 WHERE pairing = ?", (last,))
