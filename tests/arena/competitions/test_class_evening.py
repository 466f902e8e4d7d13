"""An evening of a course, as an instructor has it: a class comes to three runs (K5).

The arena and its bots are real, in virtual time; the day before them is skipped by the clock.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from arena.competitions import scheduler
from arena.competitions.config import Config, read_config
from arena.competitions.scheduler import Scheduler
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from bots.client import Client
from protocol.strategy import find
from tests.support.arena_in_memory import HostArena, in_host

pytestmark = pytest.mark.virtual_time(limit_s=900)

MONDAY = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
COURSE = """
[[run]]
name = "warm-up"
game = "blackjack"
players = "roster"
settings = { hands = 5 }

[[run]]
name = "monday-akq"
game = "ace_king_queen"
at = 2026-11-23T18:00:00+00:00
players = "roster"
least = 10
with_itself = false
settings = { hands = 10 }

[[run]]
name = "cup"
game = "high_low"
at = 2026-11-23T18:00:00+00:00
players = "roster"
least = 8
settings = { max_shuffles = 2 }
"""
GAMES = {"ace_king_queen": "nash", "high_low": "counter", "blackjack": "simple"}


class Monday:
    """An arena with a scheduler whose clock can be set, and a class of twelve bots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.lines: list[str] = []
        self.reports: dict[str, Any] = {}
        self.heard = defaultdict[str, list[str]](list)  # by student, what its bot says of an end
        self.names = tuple(f"student-{n:02}" for n in range(12))
        self._folder = folder
        self.sets_clock(MONDAY)
        monkeypatch.setattr(scheduler, "local_now", self.now)

    def sets_clock(self, now: datetime) -> None:
        self._since = now - timedelta(seconds=asyncio.get_running_loop().time())

    def now(self) -> datetime:
        return self._since + timedelta(seconds=asyncio.get_running_loop().time())

    @property
    def config(self) -> Config:
        file = self._folder / "course.toml"
        file.write_text(COURSE)
        return read_config(file)

    async def plays(self, scenario: Callable[[], Any]) -> None:
        """Run the arena beside a scenario, until everything has been played."""
        with Store(self._folder / "arena.db") as store:
            new = Roster(store.engine).take([Student(name=name) for name in self.names]).new
            self._tokens = {issued.name: issued.token for issued in new}
        async with in_host(self._folder) as arena:
            self._arena: HostArena = arena
            played = Scheduler(
                arena.host,
                arena.store,
                self.config,
                on_start=lambda competition: None,
                on_report=lambda report: self.reports.update({report.run: report}),
                tell=self.lines.append,
                roster=lambda: (self.names, {}),
                once=True,
            ).run(self.config.runs, ())
            await asyncio.gather(played, scenario())
            await asyncio.sleep(1)  # until the bots have heard of the last end

    async def come(self, names: Sequence[str]) -> None:
        """Some students come, one after another."""
        strategies = {game: find(game, bot) for game, bot in GAMES.items()}
        for name in names:
            bot = Client(
                self._arena.url,
                name,
                strategies,
                token=self._tokens[name],
                tables=4,
                on_event=lambda line, name=name: self._bot_says(name, line),  # type: ignore[misc]
            )
            self._arena.beside(bot.run())
            await self._arena.until(lambda name=name: self._arena.plays(name))  # type: ignore[misc]

    def _bot_says(self, name: str, line: str) -> None:
        if " is over · " in line:
            self.heard[name].append(line.partition(" · http")[0])

    async def hears(self, text: str) -> None:
        """Wait until the arena tells that."""
        while not any(text in line for line in self.lines):
            await asyncio.sleep(0.5)


async def test_K5_the_class_comes_in_the_evening_and_nobody_is_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monday = Monday(monkeypatch, tmp_path)
    names = monday.names

    async def evening() -> None:
        await monday.hears("warm-up waits: 0 of 12 here, it starts with 12")
        for hour in range(11, 18):  # nobody is there the whole day
            monday.sets_clock(MONDAY.replace(hour=hour))
            await asyncio.sleep(20)
        monday.sets_clock(MONDAY.replace(hour=17, minute=50))
        await monday.come(names[:5])
        monday.sets_clock(MONDAY.replace(hour=18))
        await monday.hears("monday-akq waits until 19:00 UTC: 5 of 12 here, it starts with 10")
        assert monday.reports == {}
        await monday.come(names[5:8])
        await monday.hears("cup starts without student-08, student-09, student-10, student-11")
        monday.sets_clock(MONDAY.replace(hour=18, minute=1))
        await monday.hears("monday-akq waits until 19:00 UTC: 8 of 12 here")
        monday.sets_clock(MONDAY.replace(hour=18, minute=40))
        await monday.hears("8 of 12 here, it starts with 10")
        await monday.come(names[8:10])
        await monday.hears("monday-akq starts without student-10, student-11: not there")
        await monday.come(names[10:])  # who are late for that, but not for the warm-up

    await monday.plays(evening)
    assert {*monday.reports} == {"cup", "monday-akq", "warm-up"}
    assert [report.verdicts for report in monday.reports.values()] == [()] * 3
    akq, cup, warm = (monday.reports[run] for run in ("monday-akq", "cup", "warm-up"))
    assert [row.name for row in akq.standings if row.rank is None] == [*names[10:]]
    assert (akq.not_there, akq.played) == (names[10:], 45)
    assert cup.not_there == names[8:]
    assert {name for place in cup.ranking for name in place.names} == {*names[:8]}
    assert [row.name for row in warm.standings if row.rank is None] == []
    best, last = akq.standings[0], warm.standings[-1]
    first = f"monday-akq is over · rank 1 of 10 · {best.wins} wins in 9 matches, score"
    assert any(line.startswith(first) for line in monday.heard[best.name])
    place = f"warm-up is over · rank {last.rank} of 12 · final bankroll"
    assert any(line.startswith(place) for line in monday.heard[last.name])
    [winner, *_] = cup.ranking[0].names
    score = f"{cup.ranking[0].score:+}"
    assert f"cup is over · rank 1 of 8 · final · score {score}" in monday.heard[winner]
    assert {name: len(lines) for name, lines in monday.heard.items()} == {
        name: (name in names[:8]) + (name in names[:10]) + 1 for name in names
    }
