"""Instructors' requests: carried out at once or later, and answered."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from arena.referee.sessions import BotSessions
from arena.referee.transport import Wire
from arena.server.admission import Admission, Unwelcome
from arena.server.login import AdminRequests
from arena.storage.tokens import Access, hashed
from protocol.errors import UsageError
from protocol.messages import VERSION, Action, Done, Instruct, Limits, Refused
from tests.support.fake_host import turns

ACCESS = Access(revision=1, instructors={hashed("secret"): "Eva"})
WORD = Instruct(VERSION, "secret", Action.IMPORT)


class Hearing:
    """Instructors' requests, which take until the test completes them, and their answers."""

    def __init__(self) -> None:
        self.answers: list[Done | Refused] = []
        self.works: list[asyncio.Future[Done]] = []
        self.at_once: Callable[[], Done] | None = None
        self.admin_requests = AdminRequests(Admission(BotSessions(), Limits(), ACCESS), self._does)
        self.wire = cast(Wire, object())

    def says(self, word: Instruct = WORD, wire: Wire | None = None) -> None:
        self.admin_requests.received(wire or self.wire, word, self.answers.append)

    def _does(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        assert who == "Eva"
        if self.at_once is not None:
            return self.at_once()
        work: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self.works.append(work)
        return work


async def test_what_takes_a_while_is_answered_when_it_is_done() -> None:
    hearing = Hearing()
    hearing.says()
    await turns()
    assert hearing.answers == []

    hearing.works[0].set_result(Done("2 new"))
    await turns()
    assert hearing.answers == [Done("2 new")]


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
    await turns()
    hearing.says()
    assert len(hearing.works) == 3
    for work in hearing.works:
        work.cancel()
    await turns()
    assert hearing.answers[1:] == [Done("done")]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UsageError("roster:2: expected a name"), "roster:2: expected a name"),
        (KeyError("a fault"), "the arena failed at this; see its log"),
    ],
)
async def test_what_fails_in_a_while_is_refused(error: Exception, text: str) -> None:
    hearing = Hearing()
    hearing.says()
    hearing.works[0].set_exception(error)
    await turns()
    assert hearing.answers == [Refused("instruct", text)]


async def test_what_cannot_be_done_is_refused_at_once() -> None:
    def refuses() -> Done:
        raise UsageError("expected a competition")

    hearing = Hearing()
    hearing.at_once = refuses
    hearing.says()
    assert hearing.answers == [Refused("instruct", "expected a competition")]


async def test_whoever_has_gone_is_told_nothing() -> None:
    hearing = Hearing()
    hearing.says()
    hearing.admin_requests.disconnected(hearing.wire)
    hearing.works[0].set_result(Done("2 new"))
    await turns()
    assert hearing.answers == []


@pytest.mark.parametrize(
    ("error", "said"),
    [(UsageError("expected a name"), []), (KeyError("a fault"), ["arena.server.login"])],
)
async def test_what_fails_when_whoever_wanted_it_has_gone_is_for_the_log_at_most(
    error: Exception, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """And nothing is left for asyncio to complain of."""

    hearing = Hearing()
    hearing.says()
    hearing.admin_requests.disconnected(hearing.wire)
    hearing.works.pop().set_exception(error)
    await turns()
    gc.collect()

    assert hearing.answers == []
    assert [record.name for record in caplog.records] == said


async def test_nobody_else_is_heard() -> None:
    hearing = Hearing()
    with pytest.raises(Unwelcome):
        hearing.says(Instruct(VERSION, "guessed", Action.IMPORT))
    assert hearing.works == []
