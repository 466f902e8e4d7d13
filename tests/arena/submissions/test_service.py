"""The service of submissions on a real database: what arrives, what it becomes, what is in play."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.storage.submissions import SubmissionState
from arena.submissions.settings import SubmissionSettings
from protocol.errors import UsageError
from tests.support.descriptors import no_descriptors
from tests.support.not_none import not_none
from tests.support.submitting import FakeFollower, RunningSubmissions, strategy

NASH = strategy("ace_king_queen")
BOTH = strategy("ace_king_queen", "blackjack")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningSubmissions]:
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work") as running:
        yield running


async def test_a_program_is_built_again_if_its_build_is_lost(running: RunningSubmissions) -> None:
    one = await running.decided(await running.hand_in("ann", NASH))
    kept = await running.service.program(one.number)
    await running.service._builds.folders.forget(one.program)
    assert kept.folder is not None
    was_there = kept.folder.exists()

    made = await running.service.program(one.number)

    assert not was_there
    assert made == kept
    assert made.sealed
    assert (kept.folder / "bot.py").read_bytes() == NASH


async def test_processes_that_run_have_their_files_while_it_is_built_again(
    running: RunningSubmissions,
) -> None:
    one = await running.decided(await running.hand_in("ann", NASH))
    folder = not_none((await running.service.program(one.number)).folder)
    seen = os.open(folder, os.O_RDONLY)
    try:
        await running.service.rebuild(one.number)
        await running.decided(one)

        assert os.listdir(seen) == os.listdir(folder) == ["bot.py"]
        assert not os.path.samestat(os.fstat(seen), folder.stat())
    finally:
        os.close(seen)


async def test_what_competitions_still_play_makes_room_for_nothing(
    running: RunningSubmissions,
) -> None:
    service = running.service
    service._builds.folders.most_bytes = 0
    one = await running.decided(await running.hand_in("ann", NASH))
    service.in_use = lambda: (one.number,)
    built = not_none((await service.program(one.number)).folder)
    await running.decided(await running.hand_in("ann", BOTH))
    await service._builds.folders.drop(one.program)
    assert built.exists()

    service.in_use = lambda: ()
    await running.decided(await running.hand_in("bob", strategy("blackjack")))
    assert not built.exists()


async def test_an_instructor_does_not_wait_for_the_build_of_another_one(
    running: RunningSubmissions,
) -> None:
    one = await running.decided(await running.hand_in("ann", NASH))
    async with asyncio.timeout(20), running.service._builds._building:
        await running.service.rebuild(one.number)

    assert (await running.decided(one)).version == 1


async def test_one_that_is_to_be_built_again_as_it_is_decided_is(
    running: RunningSubmissions,
) -> None:
    service = running.service
    rebuilds: list[asyncio.Task[None]] = []

    def again() -> None:
        if not rebuilds:
            rebuilds.append(asyncio.create_task(service.rebuild(1)))

    changed = service._changed

    async def slow() -> None:
        await changed()
        await asyncio.gather(*rebuilds)

    service.on_change.append(again)
    service.pipeline._on_decided = slow
    one = await running.hand_in("ann", NASH)
    async with asyncio.timeout(20):
        while not rebuilds or (await service.get(one.number)).state.is_decided:
            await asyncio.sleep(0.01)
        done = await running.decided(one)

    assert done.version == 1


async def test_a_restarted_arena_goes_on_with_what_is_undecided(tmp_path: Path) -> None:
    where, folder = tmp_path / "a.db", tmp_path / "work"
    async with RunningSubmissions(where, folder) as running:
        slow = await running.hand_in("ann", strategy("sleeps", "ace_king_queen"))
        other = await running.hand_in("bob", NASH)
        follower = FakeFollower()
        running.service.pipeline.follow(slow.number, follower.tell)
        while "checking" not in follower.states:
            await asyncio.sleep(0.01)
    (folder / "builds" / ".half").mkdir()
    (folder / "uploads" / "half").touch()

    settings = msgspec.structs.replace(SubmissionSettings(), check_s=0.5)
    async with RunningSubmissions(where, folder, settings, owners=()) as running:
        left = [*(folder / "uploads").iterdir(), *(folder / "builds").glob(".*")]
        first = await running.decided(slow)
        second = await running.decided(other)

    assert left == []
    assert first.state is SubmissionState.REFUSED
    assert second.version == 1


async def test_versions_have_labels_that_are_in_play_or_of_competitions_that_go_on(
    tmp_path: Path,
) -> None:
    where, folder = tmp_path / "a.db", tmp_path / "work"
    async with RunningSubmissions(where, folder) as running:
        await running.decided(await running.hand_in("ann", NASH))
        await running.decided(await running.hand_in("ann", strategy("ace_king_queen", "again")))
    async with RunningSubmissions(where, folder, owners=()) as running:
        service, lost = running.service, 99
        assert service.in_play("ace_king_queen") == {"ann": 2}
        assert (service.label(1), service.label(2)) == ("", "v2")
        await service.learn([1, 2, lost])

        assert [service.label(number) for number in (1, 2, lost)] == ["v1", "v2", ""]


async def on_a_full_disk(program: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("lacks", ["a lock", "descriptors", "room on the disk"])
async def test_what_cannot_be_decided_now_is_decided_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    monkeypatch.setattr("arena.storage.schema._BUSY_S", 0)
    monkeypatch.setattr("arena.submissions.pipeline._AGAIN_S", 0.01)
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work") as running:
        is_locked, tried_again = asyncio.Event(), asyncio.Event()
        decided = running.service.pipeline._decide

        async def decide(one: Any) -> bool:
            if is_locked.is_set():
                tried_again.set()
            await is_locked.wait()
            return await decided(one)

        running.service.pipeline._decide = decide  # type: ignore[method-assign]
        with ExitStack() as until:
            one = await running.hand_in("ann", NASH)
            if lacks == "a lock":
                other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
                until.enter_context(closing(other)).execute("BEGIN IMMEDIATE")
            elif lacks == "descriptors":
                until.enter_context(no_descriptors())
            else:
                full = until.enter_context(pytest.MonkeyPatch.context())
                full.setattr(running.service.pipeline._builds, "built", on_a_full_disk)
            is_locked.set()
            await tried_again.wait()
        done = await running.decided(one)

    assert (done.state, done.version) == (SubmissionState.ACCEPTED, 1)


async def test_hand_ins_are_refused_while_results_do_not_reach_the_disk(
    running: RunningSubmissions,
) -> None:
    def refuses() -> None:
        raise UsageError("expected a database that is written")

    running.service.check_storage = refuses
    with pytest.raises(UsageError, match="expected a database that is written"):
        await running.hand_in("ann", NASH)


async def test_stderr_of_matches_is_kept_for_the_owner(running: RunningSubmissions) -> None:
    one = await running.decided(await running.hand_in("ann", NASH))

    running.service.note_stderr(one.number, "akq-1", "oops")
    running.service.note_stderr(99, "akq-2", "of one who is gone")
    await running.service.close()

    [kept] = running.service.submissions.stderr("ann")
    assert (kept.match, kept.version, kept.text) == ("akq-1", 1, "oops")


async def test_a_callback_that_fails_stops_nothing(
    running: RunningSubmissions, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise RuntimeError("no such stage")

    running.service.on_change.insert(0, fails)
    done = await running.decided(await running.hand_in("ann", NASH))

    assert done.version == 1
    assert "no such stage" in caplog.text
