"""Who comes first when many hand in at once, and that a run waits for them all; in virtual time."""

from __future__ import annotations

import asyncio
import errno
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arena.cli._arena_connection import SubmissionProgress, SubmissionStep
from arena.competitions import scheduler
from arena.competitions.config import read_config
from arena.competitions.live_arena import LiveArena
from arena.competitions.scheduler import Scheduler
from arena.submissions import pipeline
from arena.submissions.check_process import CheckJob, CheckVerdict
from arena.submissions.settings import SubmissionSettings
from tests.support.fake_submissions import FakeSeatPool
from tests.support.submitting import FakeFollower, RunningSubmissions, pass_time, timed

pytestmark = pytest.mark.virtual_time(limit_s=7_200, tick_s=1)


@pytest.fixture(autouse=True)
def time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    pass_time(monkeypatch)


def class_of(folder: Path, *owners: str, wait_s: float = 600) -> RunningSubmissions:
    settings = SubmissionSettings(wait_s=wait_s)
    return RunningSubmissions(folder / "a.db", folder / "work", settings, owners=owners)


@pytest.mark.parametrize(
    ("handed_in", "decided"),
    [
        # Nothing is known of others: they wait for 120 s.
        ("0 eve 290 · 2 eve 290 · 3 ann 40 · 4 bob 40", "ann 160 · bob 200 · eve 490 · eve 780"),
        ("0 eve 290 · 200 ann 40", "ann 240 · eve 530"),
        ("0 eve 290 · 5 eve 10", "eve 290 · eve 300"),
        ("0 ann 200 · 1 bob 200 · 2 cem 200", "bob 320 · cem 520 · ann 720"),
        # Those who have used less come first.
        (
            "0 ann 60 · 1 ann 10 · 2 bob 30 · 3 bob 30 · 4 cem 5",
            "ann 60 · bob 90 · cem 95 · bob 125 · ann 135",
        ),
        (
            "0 ann 10 · 1 ann 10 · 2 ann 10 · 3 ann 10 · 4 ann 10 · 35 bob 38",
            "ann 10 · ann 20 · ann 30 · ann 40 · bob 78 · ann 88",
        ),
        # What takes longer than twice the median of the others is begun again after them.
        ("0 ann 10 · 1 bob 10 · 2 eve 50 · 3 cem 10", "ann 10 · bob 20 · cem 50 · eve 100"),
        (
            "0 ann 10 · 1 eve 50 · 2 bob 10 · 3 bob 15 · 4 ann 15",
            "ann 10 · bob 40 · ann 55 · bob 70 · eve 120",
        ),
        ("0 eve 90 · 100 ann 10 · 101 eve 90 · 102 bob 10", "eve 90 · ann 110 · bob 140 · eve 230"),
        # It may then take twice as long.
        (
            "0 ann 10 · 1 eve 50 · 2 bob 10 · 3 bob 10 · 4 bob 10 · 5 bob 10 · 6 bob 10",
            "ann 10 · bob 40 · bob 50 · bob 100 · bob 110 · bob 120 · eve 170",
        ),
    ],
    ids="unknown late alone slow least still_least median seconds own_are_none doubled".split(),
)
async def test_owners_take_turns_by_the_seconds_they_use(
    tmp_path: Path, handed_in: str, decided: str
) -> None:
    clock = asyncio.get_running_loop().time
    start, seen = clock(), list[str]()

    async def hand_in(at: str, owner: str, takes_s: str) -> None:
        await asyncio.sleep(float(at))
        one = await running.hand_in(owner, timed(float(takes_s), about=f"{at} {owner}"), "bot.zip")
        await running.decided(one)
        seen.append(f"{owner} {clock() - start:.0f}")

    async with class_of(tmp_path, "ann", "bob", "cem", "eve") as running:
        await asyncio.gather(*(hand_in(*each.split()) for each in handed_in.split(" · ")))

    assert " · ".join(seen) == decided


async def test_a_turn_that_ends_for_want_of_processes_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = asyncio.get_running_loop().time
    start, lacking, check = clock(), ["eve"], vars(pipeline)["check"]

    async def checked(command: Any, job: CheckJob, *more: Any) -> CheckVerdict:
        verdict: CheckVerdict = await check(command, job, *more)
        if job.name in lacking:
            lacking.remove(job.name)
            raise OSError(errno.EAGAIN, "no process is left")
        return verdict

    monkeypatch.setattr(pipeline, "check", checked)
    async with class_of(tmp_path, "ann", "eve") as running:
        handed_in = [
            await running.hand_in(owner, timed(0, takes_s, about=f"{n}"), "bot.zip")
            for n, (owner, takes_s) in enumerate((("ann", 10), ("eve", 15), ("ann", 10)))
        ]
        decided = [(await running.decided(one), clock() - start)[1] for one in handed_in[::-1]]

    assert decided == pytest.approx([40, 55, 55])


async def test_one_may_be_handed_in_while_another_is_being_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = asyncio.get_running_loop().time
    start, check = clock(), vars(pipeline)["check"]

    async def ends_slowly(*words: Any) -> CheckVerdict:
        try:
            verdict: CheckVerdict = await check(*words)
        finally:
            await asyncio.sleep(5)
        return verdict

    monkeypatch.setattr(pipeline, "check", ends_slowly)
    async with class_of(tmp_path, "ann", "bob", "eve") as running:
        await running.hand_in("eve", timed(0, 290), "bot.zip")
        await running.hand_in("ann", timed(0, 10), "bot.zip")
        await asyncio.sleep(122)  # it is interrupted after 120 s
        late = await running.hand_in("bob", timed(0, 10), "bot.zip")
        await running.decided(late)

    assert clock() - start == pytest.approx(155)


async def test_what_is_begun_again_waits_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who follows hears all of it to the end."""
    follower, late = FakeFollower(), FakeFollower()
    async with class_of(tmp_path, "ann", "bob", "eve", wait_s=100) as running:
        pipeline = running.service.pipeline
        slow = await running.hand_in("eve", timed(0, 290), "bot.zip")
        pipeline.follow(slow.number, follower.tell)
        await asyncio.sleep(10)
        ann, more, bob = [
            await running.hand_in(owner, timed(40, about=f"{n}"), "bot.zip")
            for n, owner in enumerate(("ann", "ann", "bob"))
        ]
        expected_s = [pipeline.expected_s(one.number) for one in (slow, bob)]
        places = [pipeline.position(one.number) for one in (slow, ann, more, bob)]
        undecided = [running.service.undecided_before(math.inf)]
        await asyncio.sleep(95)  # the queue has stood still for 105 s
        undecided.append(running.service.undecided_before(math.inf))
        await running.decided(ann)
        undecided.append(running.service.undecided_before(math.inf))
        again = await running.service.get(slow.number)
        pipeline.follow(slow.number, late.tell)
        [waits] = late.told
        expected_s += [pipeline.expected_s(one.number) for one in (bob, more, slow)]
        await running.decided(slow)
        assert not pipeline.follow(slow.number, late.tell)
        assert running.service.submissions.logs(slow.number)["build"] == "a warning"

    assert undecided == [("ann", "bob", "eve"), (), ("ann", "bob", "eve")]
    assert places == [None, 1, 3, 2]
    assert expected_s == [None, None, 40, 80, 120]
    assert (again.state, waits.position) == ("waiting", 3)
    assert waits.text.startswith("it takes longer than others")
    assert follower.states == [*2 * ("waiting", "building", "checking"), "accepted"]
    assert follower.told[-1].text == "v1 is in play in ace_king_queen"
    shown, told = SubmissionProgress(quiet=True), iter(follower.told)
    [(outcome, _)] = shown.follow(
        cast(Any, SimpleNamespace(url="ws://arena", receive=lambda _: next(told)))
    )
    assert outcome.steps == (SubmissionStep("starts", "ok", "at once"),)


COURSE = """
[submissions]
[[run]]
name = "cup"
game = "ace_king_queen"
at = {at}
players = "roster"
take = "submitted"
"""


async def test_K5_slow_submissions_of_one_owner_shut_nobody_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A class of 27 hands in its C++ starters within the last ten minutes."""
    loop, since = asyncio.get_running_loop(), datetime.now(UTC)
    begun = loop.time()
    passed = lambda: since + timedelta(seconds=loop.time() - begun)  # noqa: E731
    monkeypatch.setattr(scheduler, "local_now", passed)
    at = since + timedelta(seconds=600)
    (tmp_path / "course.toml").write_text(COURSE.format(at=at.isoformat()))
    config = read_config(tmp_path / "course.toml")
    names = [f"student-{n:02}" for n in range(1, 28)]
    lines, started = list[str](), loop.create_future()
    running = class_of(tmp_path, "eve", *names)
    async with LiveArena(running.store, submissions=running.service) as host:
        host.take_submissions(running.service, cast(Any, FakeSeatPool(cast(Any, None))), 1)
        runs = Scheduler(
            host,
            running.store,
            config,
            on_start=started.set_result,
            on_report=lambda report: None,
            tell=lines.append,
            roster=lambda: (["eve", *names], {}),
        ).run(config.runs, ())
        played = asyncio.create_task(runs)
        for n in range(2):
            await running.hand_in("eve", timed(290, 290, f"{n}"), "bot.zip")
        for name in names:
            await asyncio.sleep(21)
            await running.hand_in(name, timed(40, 15, name), "bot.zip")
        players = (await started).plan.players
        waited_s = loop.time() - begun - 600
        played.cancel()
        await asyncio.wait([played])
    running.store.close()

    assert players == ("eve", *names)
    assert "it starts when what eve, student-27 handed in before is checked" in "".join(lines)
    assert waited_s < 3_600
