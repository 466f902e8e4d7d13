"""Instructors' requests: carried out at once or later, and answered."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable
from typing import NamedTuple, cast

import pytest

from arena.referee.sessions import BotSessions
from arena.referee.transport import Wire
from arena.server.admin_requests import AdminRequests
from arena.server.admission import Admission
from arena.storage.tokens import Access, hashed
from protocol.errors import UsageError
from protocol.messages import VERSION, Action, Done, Instruct, Limits, Refused

pytestmark = pytest.mark.virtual_time

ACCESS = Access(instructors={hashed("secret"): "Eva"})
WORD = Instruct(VERSION, "secret", Action.IMPORT)


class Hearing:
    """Instructors' requests, which take until the test completes them, and their answers."""

    def __init__(self) -> None:
        self.answers: list[Done | Refused] = []
        self.works: list[asyncio.Future[Done]] = []
        self.admin_requests = AdminRequests(Admission(BotSessions(), Limits(), ACCESS), self._does)
        self.wire = cast(Wire, object())

    def says(self, word: Instruct = WORD, wire: Wire | None = None) -> None:
        self.admin_requests.received(wire or self.wire, word, self.answers.append)

    def _does(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        assert who == "Eva"
        work: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self.works.append(work)
        return work


class Work(NamedTuple):
    """How a request ends that takes a while, and what comes of that."""

    ends: Done | Exception
    is_gone: bool  # its connection
    answers: list[Done | Refused]
    logged: list[str]


IN_LOG = ["arena.server.admin_requests"]
WORKS = {
    "it is answered when it is done": Work(Done("2 new"), False, [Done("2 new")], []),
    "what fails is refused": Work(
        UsageError("roster:2: expected a name"),
        False,
        [Refused("instruct", "roster:2: expected a name")],
        [],
    ),
    "a fault of ours is in the log": Work(
        KeyError("a fault"),
        False,
        [Refused("instruct", "the arena failed at this; see its log")],
        IN_LOG,
    ),
    "whoever has gone is told nothing": Work(Done("2 new"), True, [], []),
    "nor of what fails": Work(UsageError("expected a name"), True, [], []),
    "a fault of ours is in the log all the same": Work(KeyError("a fault"), True, [], IN_LOG),
}


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
async def test_what_takes_a_while_is_answered_when_it_is_done(
    work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    """And nothing is left for asyncio to complain of."""
    hearing = Hearing()
    hearing.says()
    await asyncio.sleep(1)
    assert hearing.answers == []

    if work.is_gone:
        hearing.admin_requests.disconnected(hearing.wire)
    if isinstance(work.ends, Exception):
        hearing.works.pop().set_exception(work.ends)
    else:
        hearing.works.pop().set_result(work.ends)
    await asyncio.sleep(1)
    gc.collect()

    assert hearing.answers == work.answers
    assert [record.name for record in caplog.records] == work.logged


async def test_one_word_at_a_time_on_a_connection_and_others_go_on() -> None:
    hearing = Hearing()
    hearing.says()
    hearing.says()
    [refused] = hearing.answers
    assert isinstance(refused, Refused)
    assert "one instruction at a time" in refused.text

    hearing.says(wire=cast(Wire, object()))
    assert len(hearing.works) == 2
    hearing.works[0].set_result(Done("done"))
    await asyncio.sleep(1)
    hearing.says()
    assert len(hearing.works) == 3
    for work in hearing.works:
        work.cancel()
    await asyncio.sleep(1)
    assert hearing.answers[1:] == [Done("done")]
