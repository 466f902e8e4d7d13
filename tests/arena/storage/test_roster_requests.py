"""Requests to the arena on a database: done once or not at all, and answered in one line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from arena.storage.roster import Roster
from arena.storage.roster_requests import Request, RequestStatus, RosterRequests
from arena.storage.roster_watch import RosterWatch
from arena.storage.schema import META, open_database
from protocol.errors import ArenaError, Unreachable, UsageError
from protocol.messages import Action
from tests.arena.storage.test_roster import ANN
from tests.support.databases import Server, rows

RENAME = Request(action=Action.RENAME, name="ann", new="anna")


@pytest.fixture
def requests(engine: sa.Engine) -> RosterRequests:
    return RosterRequests(engine)


def asks(requests: RosterRequests, meanwhile: Callable[[], object]) -> str:
    """Ask; something happens after the first look, and each look takes a second of a fake clock."""
    now = iter(range(1000))
    to_do = [meanwhile]

    def sleep(_: float) -> None:
        for happens in to_do:
            happens()
        to_do.clear()

    return requests.ask(RENAME, clock=lambda: float(next(now)), sleep=sleep)


def answered(ask: Callable[[], str]) -> tuple[str, bool]:
    """What was said, and whether it was done."""
    try:
        return ask(), True
    except UsageError as error:
        return str(error), False


def left(database: str) -> list[object]:
    """The keys of the requests that are still there."""
    return rows(database, "SELECT key FROM meta WHERE length(key) > 12")


def claimed(requests: RosterRequests) -> tuple[str, Request]:
    """Claim the one request that waits."""
    [(key, request)] = requests.waiting()
    assert request == RENAME
    assert requests.claim(key, request)
    return key, request


@pytest.mark.parametrize("is_done", [True, False])
def test_who_asks_gets_the_answer(requests: RosterRequests, database: str, is_done: bool) -> None:
    def arena() -> None:
        key, request = claimed(requests)
        assert requests.waiting() == ()
        requests.answer(key, request, "said", is_done=is_done)

    assert answered(lambda: asks(requests, arena)) == ("said", is_done)
    assert left(database) == []


def test_an_arena_that_does_not_answer_has_changed_nothing(
    requests: RosterRequests, database: str
) -> None:
    claims: list[bool] = []

    with pytest.raises(Unreachable, match="does not answer; nothing has changed"):
        asks(requests, lambda: None)
    assert left(database) == []

    def late() -> None:
        [(key, request)] = requests.waiting()
        requests.clear()
        claims.append(requests.claim(key, request))

    with pytest.raises(Unreachable, match="nothing has changed"):
        asks(requests, late)
    assert claims == [False], "what was withdrawn is not done"


def test_an_arena_that_ends_before_it_answers_leaves_a_doubt_which_is_told(
    requests: RosterRequests, database: str
) -> None:
    with pytest.raises(Unreachable, match="has begun with it"):
        asks(requests, lambda: claimed(requests))
    assert left(database) == []


@pytest.mark.parametrize("is_done", [True, False])
def test_an_answer_that_comes_when_the_time_is_over_is_heard(
    requests: RosterRequests, database: str, is_done: bool
) -> None:
    times = iter([0.0, 0.0])

    def clock() -> float:
        now = next(times, None)
        if now is None:  # after the last look
            requests.answer(*claimed(requests), "said", is_done=is_done)
        return 100.0 if now is None else now

    asked = answered(lambda: requests.ask(RENAME, clock=clock, sleep=lambda _: None))
    assert asked == ("said", is_done)
    assert left(database) == []


def test_an_arena_that_is_started_again_in_the_middle_leaves_a_doubt_which_is_told(
    requests: RosterRequests,
) -> None:
    steps = iter([lambda: claimed(requests), requests.clear])

    def sleep(_: float) -> None:
        next(steps)()

    with pytest.raises(Unreachable, match="not known whether it was done"):
        requests.ask(RENAME, clock=lambda: 0.0, sleep=sleep)


def test_what_is_being_claimed_is_not_withdrawn_as_if_it_were_not(postgres: Server) -> None:
    """With PostgreSQL, where a reader does not wait for a writer."""
    engine, _ = open_database(postgres.url(), create=True)
    requests = RosterRequests(engine)
    text = msgspec.json.encode(replace(RENAME, status=RequestStatus.CLAIMED))
    is_over = [False]
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as arena:

            def asks_on(_: float) -> None:
                [(key, _request)] = requests.waiting()
                update = META.update().where(META.c.key == key)
                arena.execute(update.values(value=text.decode()))
                is_over[0] = True

            asking = pool.submit(
                requests.ask, RENAME, clock=lambda: 100.0 if is_over[0] else 0.0, sleep=asks_on
            )
            locks = "SELECT 1 FROM pg_locks WHERE NOT granted"
            while not postgres.execute(locks) and not asking.done():
                pass
        with pytest.raises(Unreachable, match="not known whether it was done"):
            asking.result()
    engine.dispose()


class AnsweringArena:
    """An arena that polls its roster and carries out requests."""

    def __init__(self, engine: sa.Engine, error: Exception | None = None) -> None:
        self.roster = Roster(engine)
        self.roster.take([ANN])
        self.requests = RosterRequests(engine)
        self.error = error
        self.seen: list[frozenset[str]] = []

    async def carries_out(self, request: Request) -> str:
        if self.error is not None:
            raise self.error
        assert request.new is not None
        return await asyncio.to_thread(self.roster.rename, request.name, request.new)

    async def said(self) -> str:
        watch = RosterWatch(
            self.roster,
            lambda access: self.seen.append(access.names),
            self.roster.revision(),
            every_s=0.01,
            requests=self.requests,
            on_request=self.carries_out,
        )
        watching = asyncio.create_task(watch.run())
        try:
            return await asyncio.to_thread(self.requests.ask, RENAME)
        finally:
            watching.cancel()


async def test_the_arena_carries_out_what_is_asked_and_it_is_in_effect_when_it_is_answered(
    engine: sa.Engine,
) -> None:
    arena = AnsweringArena(engine)

    assert await arena.said() == "ann"
    assert arena.seen[-1] == {"anna"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ArenaError("ann is connected"), "ann is connected"),
        (KeyError("a fault"), "the arena failed at this; see its log"),
    ],
)
async def test_the_arena_says_why_it_does_not(
    engine: sa.Engine, error: Exception, said: str
) -> None:
    arena = AnsweringArena(engine, error)

    with pytest.raises(UsageError, match=rf"^{said}$"):
        await arena.said()
    assert [one.name for one in arena.roster.members()] == ["ann"]
