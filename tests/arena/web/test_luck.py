"""Luck on the page: measured after a match in a process of its own, and shown as J8 allows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.formats.schedule import Pairing
from arena.records.luck import luck_of
from arena.results.export import Options, export
from arena.results.match_sums import next_sums, recompute
from arena.storage.store import Store
from arena.web.luck_filler import LuckFiller
from arena.web.questions import PageAnswer
from arena.web.side_process import SideProcess
from arena.web.side_program import NICENESS
from tests.support.databases import rows
from tests.support.page_reader import PUBLIC, InProcessReader, owner
from tests.support.sample_database import SampleWriter, plan, play
from tests.support.side_script import SideScript, scripted

HANDS = {"hands": 100}
TIMEOUT_S = 60.0


def met(file: Path, matches: int, *, ends: bool = False, **more: Any) -> Path:
    """A database with a competition of ann, ben and cem, in which ann and ben have met."""
    with Store(file) as store:
        made = plan("ace_king_queen", settings=HANDS, **more)
        writer = SampleWriter(store, made, "c")
        for number in range(1, matches + 1):
            seats = ("ann", "ben") if number % 2 else ("ben", "ann")
            writer.finished(Pairing(number, seats), play(made.game, number, settings=HANDS))
        if ends:
            store.competition_finished("c", 1e4)
    return file


def measured(file: Path) -> InProcessReader:
    with Store(file, exclusive=True) as store:
        recompute(store)
    return InProcessReader(file)


def seen_by(reader: InProcessReader, viewer: Any) -> list[str]:
    return sorted(reader.get("competitions/c.json", viewer)["luck"])


def test_J8_when_it_is_over_everybody_sees_the_luck(tmp_path: Path) -> None:
    reader = measured(met(tmp_path / "arena.db", 2, ends=True))

    assert seen_by(reader, PUBLIC) == ["ann", "ben"]
    overview = reader.get("competitions/c.json")
    assert overview["luck_unit"] == "chip"
    line = overview["luck"]["ann"]
    assert (line["matches"], line["rounds"]) == (2, 200)
    match = reader.get("matches/ace_king_queen-1.json")
    assert match["luck"]["after"][-1] == 100
    assert len(match["luck"]["gains"]) == len(match["luck"]["without"]) == 100
    luck = luck_of(play("ace_king_queen", 1, settings=HANDS).record)
    assert match["luck"]["without"][-1] == pytest.approx(
        [gain - luck for gain, luck in zip(luck.gains, luck.luck, strict=True)]
    )


def test_an_export_has_the_luck_when_all_may_see_it(tmp_path: Path) -> None:
    for ends, name in ((False, "going_on"), (True, "over")):
        file = met(tmp_path / f"{name}.db", 2, ends=ends)
        measured(file)
        with Store(file) as store:
            export(store, tmp_path / name, ["c"])
            if not ends:
                export(store, tmp_path / "for_me", ["c"], Options(unfinished=True))

    assert not (tmp_path / "going_on/c/luck.csv").exists()
    assert (tmp_path / "for_me/c/luck.csv").exists()
    heading, *lines = (tmp_path / "over/c/luck.csv").read_text("utf-8-sig").splitlines()
    assert heading == "name,matches,rounds,gain,without_luck,low,high"
    assert [line.split(",")[:3] for line in lines] == [["ann", "2", "200"], ["ben", "2", "200"]]


def test_J8_two_looks_never_tell_an_owner_the_luck_of_one_match(tmp_path: Path) -> None:
    lines = []
    for matches in (20, 21, 39, 40):
        reader = measured(met(tmp_path / f"{matches}.db", matches))
        lines.append(reader.get("competitions/c.json", owner("ann"))["luck"]["ann"])

    assert [line["matches"] for line in lines] == [20, 20, 20, 40]
    assert lines[0] == lines[1] == lines[2] != lines[3]


# ---- The process that measures it


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_so():
            await asyncio.sleep(0.02)


def luck_in(file: Path) -> list[Any]:
    with Store(file, create=False) as store:
        return [played.sums and played.sums.luck for played in store.matches("c")]


@asynccontextmanager
async def filling(store: Store) -> AsyncIterator[tuple[LuckFiller, SideProcess]]:
    process = SideProcess(store, is_idle=True)
    filler = LuckFiller(store, process, pause_s=0.01, again_s=0.01)
    try:
        yield filler, process
    finally:
        filler.close()
        await process.close()


@pytest.mark.e2e
async def test_luck_is_filled_in_after_a_match_and_seen_by_those_who_look_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NICENESS, "0")  # on a busy machine nothing would be left for it
    file = met(tmp_path / "arena.db", 12, ends=True)
    reader = InProcessReader(file)
    assert seen_by(reader, PUBLIC) == []
    with Store(file, exclusive=True) as store:
        async with filling(store) as (filler, process):
            await asyncio.sleep(0.05)
            assert process.asked == 0  # nobody has played yet
            filler.match_finished()
            await until(lambda: None not in luck_in(file))

    expected = [
        luck_of(play("ace_king_queen", n, settings=HANDS).record).sums for n in range(1, 13)
    ]
    assert luck_in(file) == expected
    assert seen_by(reader, PUBLIC) == ["ann", "ben"]


@pytest.mark.virtual_time(limit_s=600)
async def test_what_fails_is_measured_later_and_no_more_after_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    script = SideScript()
    scripted(monkeypatch, SideScript(), script)
    with Store(met(tmp_path / "arena.db", 1), exclusive=True) as store:
        async with filling(store) as (filler, _):
            filler.match_finished()
            for said in ('{"last":7,"rows":[]}', "dies", '{"last":9,"rows":[]}', "dies", "dies"):
                before = len(script.asked)
                while len(script.asked) == before:
                    await asyncio.sleep(0.1)
                script.dies() if said == "dies" else script.says(PageAnswer(200, said.encode()))
            await asyncio.sleep(100)

    after = [question.query.get("after") for question in script.asked]
    assert after == [None, "7", "7", "9", "9"]
    assert "luck is measured no more" in caplog.messages[-1]


def test_a_damaged_record_is_left_out_and_the_next_has_its_turn(tmp_path: Path) -> None:
    file = met(tmp_path / "arena.db", 12)
    rows(str(file), "UPDATE matches SET record = CAST('{' AS BLOB) WHERE number = 3")
    with Store(file) as store:
        first = next_sums(store, 0)
        second = next_sums(store, first.last or 0)
        third = next_sums(store, second.last or 0)

    assert [len(batch.rows) for batch in (first, second, third)] == [9, 2, 0]
    assert third.last is None
    assert msgspec.json.decode(msgspec.json.encode(first), type=type(first)) == first
