"""Jobs in one process: in which order they are taken, and that each is done once."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from arena.competitions.jobs import MatchJob, unplayed
from arena.competitions.local_jobs import LocalJobs
from arena.engine.match import MatchResult
from arena.referee.live_match import Forgives
from protocol.messages import Ending, Limits, Verdict

IDS = st.sampled_from("abcd")


def a_job(name: str = "a") -> MatchJob:
    return MatchJob(
        id=name,
        game="gin_rummy",
        settings={},
        limits=Limits(),
        players=("ann", "ben"),
        submissions=(1, 2),
    )


class FakeWatcher:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.ended: list[tuple[str, str]] = []  # match, and why if it is void

    @property
    def forgives(self) -> Forgives:
        return lambda bot, kind, event: bot == "ann"

    def lost(self, job: str, match: str) -> None:
        raise AssertionError("nothing is lost in process")

    def progressed(self, job: str, match: str, decisions: int) -> None:
        self.came.append(decisions)

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        self.ended.append((match, result.termination.text or ""))


RESULT = unplayed(a_job(), "")


async def test_a_taker_that_is_cancelled_takes_nothing_with_it() -> None:
    jobs = LocalJobs()
    taker = asyncio.ensure_future(jobs.take())
    await asyncio.sleep(0)
    jobs.put(a_job(), FakeWatcher())
    taker.cancel()
    await asyncio.gather(taker, return_exceptions=True)

    assert (await jobs.take()).id == "a"


async def test_put_again_it_is_played_once_for_the_later_watcher() -> None:
    jobs, earlier, later = LocalJobs(), FakeWatcher(), FakeWatcher()
    jobs.put(a_job(), earlier)
    await jobs.take()
    jobs.put(a_job(), later)
    jobs.progress("a", "m", 3)
    jobs.done("a", "m", RESULT, None)
    jobs.done("a", "m", RESULT, None)

    assert (earlier.came, earlier.ended) == ([], [])
    assert (later.came, later.ended) == ([3], [("m", "")])


async def test_J3_who_has_put_a_job_says_what_is_forgiven() -> None:
    jobs = LocalJobs()
    jobs.put(a_job(), FakeWatcher())

    assert jobs.forgives("a")("ann", Ending.CRASH, "e")
    assert not jobs.forgives("a")("ben", Ending.CRASH, "e")
    assert not jobs.forgives("another")("ann", Ending.CRASH, "e")


async def taken_now(jobs: LocalJobs) -> str | None:
    """The job that a taker gets at once, if any."""
    taking = asyncio.ensure_future(jobs.take())
    await asyncio.sleep(0)
    if taking.done():
        return taking.result().id
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    return None


class JobsInAnyOrder(RuleBasedStateMachine):
    """Whatever is done in whatever order: no job is lost, and none is done twice."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.jobs = LocalJobs()
        self.watchers: dict[str, FakeWatcher] = {}
        self.puts: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.order: list[str] = []
        self.playing: set[str] = set()
        self.jobs.on_cancel(lambda job, why: self.jobs.done(job, "", RESULT, None))

    def ended(self, job: str, watcher: FakeWatcher) -> None:
        assert self.watchers.pop(job) is watcher, "only the latest watcher is told"
        self.ends[job] += 1
        self.playing.discard(job)
        self.order = [other for other in self.order if other != job]

    def teardown(self) -> None:
        self.loop.close()

    @rule(job=IDS)
    def put(self, job: str) -> None:
        if job not in self.watchers:
            self.puts[job] += 1
            self.order.append(job)
        self.watchers[job] = CountingWatcher(self)
        self.jobs.put(a_job(job), self.watchers[job])

    @rule()
    def take(self) -> None:
        expected = self.order.pop(0) if self.order else None
        if expected is not None:
            self.playing.add(expected)

        assert self.loop.run_until_complete(taken_now(self.jobs)) == expected

    @rule(job=IDS)
    def done(self, job: str) -> None:
        before = self.ends[job]
        was_playing = job in self.playing
        self.jobs.done(job, "m", RESULT, None)

        assert self.ends[job] == before + was_playing

    @rule(job=IDS)
    def cancel(self, job: str) -> None:
        is_on = job in self.watchers
        before = self.ends[job]
        self.jobs.cancel(job, "why")

        assert self.ends[job] == before + is_on

    @invariant()
    def each_is_done_at_most_once_and_none_is_lost(self) -> None:
        for job, puts in self.puts.items():
            assert self.ends[job] + (job in self.watchers) == puts
        assert self.watchers.keys() == {*self.order, *self.playing}


class CountingWatcher(FakeWatcher):
    """Tells the machine of its end."""

    def __init__(self, machine: JobsInAnyOrder) -> None:
        super().__init__()
        self._machine = machine

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        self._machine.ended(job, self)


TestJobsInAnyOrder = JobsInAnyOrder.TestCase
