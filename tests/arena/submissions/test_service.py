"""The service of submissions on a real database: what arrives, what it becomes, what is in play."""

from __future__ import annotations

import asyncio
import io
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from arena.sandbox.archive import BadArchive
from arena.storage.submissions import SubmissionState
from arena.submissions.settings import SubmissionSettings
from protocol.errors import UsageError
from protocol.submitting import Progressing
from tests.support.submitting import FakeFollower, RunningSubmissions, bot_zip, strategy

NASH = strategy("ace_king_queen")
BOTH = strategy("ace_king_queen", "blackjack")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningSubmissions]:
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work") as running:
        yield running


async def test_what_passes_is_the_next_version_and_in_play(running: RunningSubmissions) -> None:
    first = await running.decided(await running.hand_in("ann", NASH, message="the first"))
    second = await running.decided(await running.hand_in("ann", BOTH))

    assert (first.version, second.version) == (1, 2)
    assert first.message == "the first"
    assert second.games == ("ace_king_queen", "blackjack")
    assert {owner: row.version for owner, row in running.service.in_play("blackjack").items()} == {
        "ann": 2
    }
    logs = running.service.submissions.logs(first.number)
    assert logs["check"] == " 1 starts ok\n1 step"


async def test_what_is_refused_says_why_and_what_stays_in_play(running: RunningSubmissions) -> None:
    nothing = await running.decided(await running.hand_in("ann", strategy("nothing")))
    await running.decided(await running.hand_in("ann", NASH))
    again = await running.decided(await running.hand_in("ann", strategy("nothing")))

    assert nothing.state is SubmissionState.REFUSED
    assert nothing.text == "starts: it plays nothing. Play; nothing of yours is in play yet"
    assert again.text == "starts: it plays nothing. Play; v1 stays in play"
    assert again.version is None


async def test_what_is_no_bot_is_refused(running: RunningSubmissions) -> None:
    done = await running.decided(await running.hand_in("ann", b"hello", "notes.txt"))

    assert done.state is SubmissionState.REFUSED
    assert "notes.txt" in done.text


async def test_what_is_no_archive_never_arrives(running: RunningSubmissions) -> None:
    with pytest.raises(BadArchive):
        await running.hand_in("ann", b"PK no zip", "bot.zip")

    assert running.service.submissions.of("ann") == ()
    assert [*(running.folder / "uploads").iterdir()] == []


async def test_a_check_that_breaks_is_no_fault_of_the_arena_s(running: RunningSubmissions) -> None:
    done = await running.decided(await running.hand_in("ann", strategy("breaks")))

    assert done.text == "the check has failed: the check broke; nothing of yours is in play yet"


async def test_a_check_ends_after_its_time(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SubmissionSettings(), check_s=0.05)
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work", settings) as running:
        done = await running.decided(await running.hand_in("ann", strategy("sleeps")))

    assert "the check took longer than 0 s" in done.text


async def test_a_build_that_fails_is_refused_with_its_log(running: RunningSubmissions) -> None:
    toml = 'build = "sh -c \'echo all wrong; exit 3\'"\nrun = "python3 bot.py"'
    sent = bot_zip(bot_toml=toml, bot_py="import sys")

    done = await running.decided(await running.hand_in("ann", sent, "ann.zip"))

    assert done.text.startswith("the build failed: ")
    assert "all wrong" in running.service.submissions.logs(done.number)["build"]
    assert [*(running.folder / "builds").iterdir()] == []


async def test_a_build_that_makes_no_program_is_refused_in_a_line(
    running: RunningSubmissions,
) -> None:
    sent = bot_zip(bot_toml="run = './bot'\nbuild = 'true'\n")
    refused = await running.decided(await running.hand_in("ann", sent, "ann.zip"))

    assert refused.text == (
        "what starts it was not built: expected a program on PATH or in its folder, got './bot', "
        "which is in neither; nothing of yours is in play yet"
    )


async def test_only_the_languages_of_the_file_are_taken(tmp_path: Path) -> None:
    settings = SubmissionSettings(languages=("go",))
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work", settings) as running:
        done = await running.decided(await running.hand_in("ann", NASH))
        languages = await running.service.languages()

    assert done.text.startswith("expected a bot in go, got one in python; ")
    assert [one.name for one in languages] == ["go"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"opens": time.time() + 3600}, "submissions open at 20"),
        ({"closes": time.time() - 1}, "submissions were closed at 20"),
    ],
)
async def test_it_is_open_between_two_moments(
    tmp_path: Path, settings: dict[str, float], why: str
) -> None:
    chosen = SubmissionSettings(**settings)  # type: ignore[arg-type]
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work", chosen) as running:
        with pytest.raises(UsageError, match=why):
            await running.hand_in("ann", NASH)


async def test_an_owner_hands_in_so_often_a_day(tmp_path: Path) -> None:
    settings = SubmissionSettings(a_day=1)
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work", settings) as running:
        await running.hand_in("ann", NASH)
        with pytest.raises(UsageError, match="at most 1 submissions a day"):
            await running.hand_in("ann", NASH)
        other = await running.hand_in("bob", NASH)
        left = await running.service.left_today("ann")

    assert (other.owner, left) == ("bob", 0)


async def test_one_that_has_made_room_for_another_counts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.quota.MOST_VERSIONS", 1)
    settings = SubmissionSettings(a_day=3)
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work", settings) as running:
        for number in range(2):
            await running.decided(await running.hand_in("ann", strategy(f"nothing {number}")))
        await running.hand_in("ann", strategy("nothing 2"))
        stored = running.service.submissions.of("ann")
        left = await running.service.left_today("ann")

    assert (len(stored), left) == (1, 0)


@pytest.mark.parametrize("data", [b"", b"x" * (16 * 1024 * 1024 + 1)], ids=["none", "too many"])
async def test_so_many_bytes_are_no_program(running: RunningSubmissions, data: bytes) -> None:
    with pytest.raises(UsageError, match="expected at most 16 MiB"):
        await running.hand_in("ann", data)


async def test_an_earlier_version_can_be_used_again(running: RunningSubmissions) -> None:
    await running.decided(await running.hand_in("ann", BOTH))
    await running.decided(
        await running.hand_in("ann", strategy("ace_king_queen", "x", "blackjack"))
    )
    changes: list[int] = []
    running.service.on_change.append(lambda: changes.append(1))

    await running.service.use("ann", 1, "blackjack")

    assert running.service.in_play("blackjack")["ann"].version == 1
    assert running.service.in_play("ace_king_queen")["ann"].version == 2
    assert changes == [1]


async def test_a_disabled_one_is_not_in_play_until_it_may_again(
    running: RunningSubmissions,
) -> None:
    one = await running.decided(await running.hand_in("ann", NASH))
    await running.service.disable(one.number, "Eva", again=False)
    disabled = running.service.in_play("ace_king_queen")
    await running.service.disable(one.number, "Eva", again=True)

    assert disabled == {}
    assert running.service.in_play("ace_king_queen")["ann"].submission == one.number


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
    folder = (await running.service.program(one.number)).folder
    assert folder is not None
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
    built = (await service.program(one.number)).folder
    assert built is not None
    await running.decided(await running.hand_in("ann", BOTH))
    await service._builds.folders.drop(one.program)
    assert built.exists()

    service.in_use = lambda: ()
    await running.decided(await running.hand_in("bob", strategy("blackjack")))
    assert not built.exists()


async def test_a_version_that_is_built_again_keeps_its_number(running: RunningSubmissions) -> None:
    one = await running.decided(await running.hand_in("ann", NASH))

    await running.service.rebuild(one.number)
    done = await running.decided(one)

    assert (done.version, done.state) == (1, SubmissionState.ACCEPTED)
    assert running.service.in_play("ace_king_queen")["ann"].version == 1


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


async def test_owners_take_turns_and_are_told_their_places(running: RunningSubmissions) -> None:
    follower = FakeFollower()
    pipeline = running.service.pipeline
    slow = await running.hand_in("ann", strategy("sleeps"))
    while pipeline.position(slow.number) is not None:  # until it is taken
        await asyncio.sleep(0.01)
    ann = await running.hand_in("ann", NASH)
    more = await running.hand_in("ann", BOTH)
    bob = await running.hand_in("bob", NASH)

    assert pipeline.feed.follow(more.number, follower)

    places = [pipeline.position(one.number) for one in (slow, ann, more, bob)]
    assert places == [None, 1, 3, 2]
    assert [one.number for one in running.service.undecided_before(bob.arrived_at)] == [
        slow.number,
        ann.number,
        more.number,
    ]
    assert isinstance(follower.told[-1], Progressing)
    assert follower.told[-1].position == places[2]


async def test_who_follows_hears_every_step_to_the_end(running: RunningSubmissions) -> None:
    follower = FakeFollower()
    one = await running.hand_in("ann", NASH)
    running.service.pipeline.feed.follow(one.number, follower)

    await running.decided(one)

    assert follower.states == ["waiting", "building", "checking", "accepted"]
    assert [(said.step, said.status) for said in follower.told if said.step] == [
        ("starts", "begun"),
        ("starts", "ok"),
    ]
    assert follower.told[-1].text == "v1 is in play in ace_king_queen"
    assert not running.service.pipeline.feed.follow(one.number, follower)


async def test_what_is_expected_is_the_mean_of_the_latest(running: RunningSubmissions) -> None:
    one = await running.hand_in("ann", NASH)
    before = running.service.pipeline.expected_s(one.number)
    await running.decided(one)
    two = await running.hand_in("ann", BOTH)
    after = running.service.pipeline.expected_s(two.number)

    assert before is None
    assert after is not None
    assert 0 <= after < 60


async def test_a_restarted_arena_goes_on_with_what_is_undecided(tmp_path: Path) -> None:
    where, folder = tmp_path / "a.db", tmp_path / "work"
    async with RunningSubmissions(where, folder) as running:
        slow = await running.hand_in("ann", strategy("sleeps", "ace_king_queen"))
        other = await running.hand_in("bob", NASH)
        follower = FakeFollower()
        running.service.pipeline.feed.follow(slow.number, follower)
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


async def test_stderr_of_matches_is_kept_for_the_owner(running: RunningSubmissions) -> None:
    one = await running.decided(await running.hand_in("ann", NASH))

    running.service.note_stderr(one.number, "akq-1", "oops")
    running.service.note_stderr(99, "akq-2", "of one who is gone")
    await running.service.close()

    [kept] = running.service.submissions.stderr("ann")
    assert (kept.match, kept.version, kept.text) == ("akq-1", 1, "oops")


async def test_the_program_can_be_had_as_it_was_handed_in(running: RunningSubmissions) -> None:
    one = await running.hand_in("ann", NASH)
    tar = io.BytesIO()

    await asyncio.to_thread(running.service.open_program, one.program, tar)

    assert NASH in tar.getvalue()


async def test_a_callback_that_fails_stops_nothing(
    running: RunningSubmissions, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise RuntimeError("no such stage")

    running.service.on_change.insert(0, fails)
    done = await running.decided(await running.hand_in("ann", NASH))

    assert done.version == 1
    assert "no such stage" in caplog.text
