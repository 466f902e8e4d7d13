"""The bus on a real nats-server: what each role may do, and what is left after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import pytest
from arena.workers.bus_setup import set_up

from arena.hosts.nats_connection import NatsConnection
from arena.workers.bus import BusAddress, BusDown, ResultDelivery
from arena.workers.nats_bus import NatsBus, connect
from arena.workers.nats_deliveries import NatsResult
from tests.support.bus_listener import SOON_S, BusListener
from tests.support.nats_server import NatsServer, nats_server
from tests.support.not_none import not_none
from tests.support.stalling_proxy import StallingProxy

__all__ = ["nats_server"]

T = TypeVar("T")

NOT_FOR_WORKERS = {
    "make a queue": "$JS.API.CONSUMER.DURABLE.CREATE.ARENA_JOBS.mine",
    "make a queue that passes": "$JS.API.CONSUMER.CREATE.ARENA_RESULTS",
    "list streams": "$JS.API.STREAM.LIST",
    "name streams": "$JS.API.STREAM.NAMES",
    "look at a stream": "$JS.API.STREAM.INFO.ARENA_RESULTS",
    "make a stream": "$JS.API.STREAM.CREATE.MINE",
    "remove a stream": "$JS.API.STREAM.DELETE.ARENA_JOBS",
    "empty a stream": "$JS.API.STREAM.PURGE.ARENA_JOBS",
    "read a result": "$JS.API.STREAM.MSG.GET.ARENA_RESULTS",
    "take a result": "$JS.API.CONSUMER.MSG.NEXT.ARENA_RESULTS.a1",
    "acknowledge a result": "$JS.ACK.ARENA_RESULTS.a1.1.1.1.1.0",
    "read the record of another": "$JS.API.STREAM.MSG.GET.OBJ_records-w2",
    "write the record of another": "$O.records-w2.C.x",
    "put a job": "arena.jobs.c1.a1.j1",
    "command a worker": "arena.command.w2",
    "report as another": "arena.report.w2",
    "announce as another": "arena.announce.a1.w2",
    "ask for a program as another": "arena.program.a1.w2",
    "show frames as another": "arena.frames.a1.w2.m1",
    "hand in as another": "arena.results.a1.w2.m1",
    "answer for an arena": "_INBOX.w2.x",
}
NOT_TO_BE_REPLIED_TO = {
    "command a worker": "arena.command.w2",
    "hand in as another": "arena.results.a1.w2.m1",
    "remove a stream": "$JS.API.STREAM.DELETE.ARENA_RESULTS",
    "empty a stream": "$JS.API.STREAM.PURGE.ARENA_RESULTS",
    "remove the records of another": "$JS.API.STREAM.DELETE.OBJ_records-w2",
    "remove a queue": "$JS.API.CONSUMER.DELETE.ARENA_RESULTS.a1",
}
NOT_TO_BE_HEARD = {
    "everything": ">",
    "replies to another": "_INBOX.w2.>",
    "replies to an arena": "_INBOX.arena.>",
    "commands to another": "arena.command.w2",
    "commands to all": "arena.command.*",
    "announcements": "arena.announce.>",
    "program requests": "arena.program.>",
    "jobs": "arena.jobs.>",
    "results": "arena.results.>",
    "frames": "arena.frames.>",
    "records of another": "$O.records-w2.>",
}

Connect: TypeAlias = Callable[..., Awaitable[NatsBus]]


@pytest.fixture
async def joined(nats_server: NatsServer) -> AsyncIterator[Connect]:
    """Makes clients of the server, or of a proxy before it."""
    clients: list[NatsBus] = []

    async def client(user: str, port: int | None = None) -> NatsBus:
        address = nats_server.address(user, port)
        clients.append(await connect(address, user, user, ack_wait_s=2.0))
        return clients[-1]

    yield client
    for bus in clients:
        await bus.close()


class OpenBus(NamedTuple):
    """An arena with a queue of jobs `c1`, what it hears, and its worker."""

    arena: NatsBus
    worker: NatsBus
    listener: BusListener


@pytest.fixture
async def opened(joined: Connect) -> OpenBus:
    opened = OpenBus(await joined("arena"), await joined("w1"), BusListener())
    await opened.listener.open(opened.arena, "a1")
    await opened.arena.open_class("c1")
    await opened.arena.open_worker("w1")
    return opened


async def becomes(bus: NatsBus, *, up: bool) -> None:
    """Wait until a client is connected, or is not."""
    async with asyncio.timeout(SOON_S):
        while bus.is_up is not up:
            await asyncio.sleep(0.01)


async def repeated(call: Callable[[], Awaitable[T]]) -> T:
    """Call until the bus takes it, as those who use a bus do."""
    async with asyncio.timeout(SOON_S):
        while True:
            with suppress(BusDown):
                return await call()
            await asyncio.sleep(0.05)


# ---- Permissions


class RawClient:
    """A client of nats-py with the key of a worker, which does as it likes."""

    def __init__(self, server: NatsServer, user: str) -> None:
        self.connection = NatsConnection(server.address(user), user, user)

    async def refused(self, call: Callable[[], Awaitable[object]]) -> str:
        """What the server says to it; empty if it allows it."""
        await call()
        await self.connection.request(self.connection.echo, b"", "an echo")  # in order behind it
        return self.connection.last_error


@pytest.fixture
async def w1(nats_server: NatsServer) -> AsyncIterator[RawClient]:
    client = RawClient(nats_server, "w1")
    await client.connection.open()
    yield client
    await client.connection.close()


@pytest.mark.parametrize("subject", NOT_FOR_WORKERS.values(), ids=NOT_FOR_WORKERS)
async def test_a_worker_may_not(w1: RawClient, subject: str) -> None:
    said = await w1.refused(lambda: w1.connection.publish(subject, b"{}"))

    assert f'permissions violation for publish to "{subject.lower()}"' in said.lower()


@pytest.mark.parametrize("subject", NOT_TO_BE_HEARD.values(), ids=NOT_TO_BE_HEARD)
async def test_a_worker_does_not_hear(w1: RawClient, subject: str) -> None:
    async def nothing(_message: object) -> None:
        pytest.fail("it was heard")

    said = await w1.refused(lambda: w1.connection.listen(subject, nothing))

    assert f'permissions violation for subscription to "{subject.lower()}"' in said.lower()


async def test_a_worker_may_report(w1: RawClient) -> None:
    assert not await w1.refused(lambda: w1.connection.publish("arena.report.w1", b"here"))


@pytest.mark.parametrize("subject", NOT_TO_BE_REPLIED_TO.values(), ids=NOT_TO_BE_REPLIED_TO)
async def test_no_reply_is_sent_elsewhere(joined: Connect, w1: RawClient, subject: str) -> None:
    """The subject of a reply is the asker's choice, and the server's word goes anywhere."""
    arena, other, told = await joined("arena"), await joined("w2"), list[bytes]()
    listener = await BusListener().open(arena, "a1")
    await arena.open_class("c1")
    await arena.open_worker("w2")
    await other.on_command("w2", told.append)
    await other.hand_in("a1", "w2", "m0", bytes(1 << 20))
    result = await listener.result()
    asked = "$JS.API.CONSUMER.MSG.NEXT.ARENA_JOBS.c1"

    client = w1.connection._up()
    await client.publish(asked, b'{"batch": 1, "no_wait": true}', reply=subject)
    await client.publish("arena.announce.a1.w1", b"x", reply=subject)
    await w1.refused(client.flush)
    await asyncio.sleep(0.3)

    assert await result.read() == bytes(1 << 20)
    await arena.command("w2", b"the only one")
    async with asyncio.timeout(SOON_S):
        while not told:
            await asyncio.sleep(0.01)
    assert told == [b"the only one"]
    assert listener.results.empty()
    streams = arena._connection.streams
    results = await streams("a look", lambda each: each.stream_info("ARENA_RESULTS"))
    assert (results.state.messages, results.state.consumer_count) == (1, 1)


async def test_a_key_is_good_for_one_name_alone(nats_server: NatsServer) -> None:
    with pytest.raises(BusDown, match="this key is not that of w2"):
        await connect(nats_server.address("w1"), "w2", "w2")


async def test_an_added_worker_may_join_on_reload(joined: Connect, nats_server: NatsServer) -> None:
    arena, worker = await joined("arena"), await joined("w1")
    await BusListener().open(arena, "a1")
    set_up(nats_server.files.folder, [], ["w3"])

    nats_server.reload()

    await repeated(lambda: joined("w3"))
    await becomes(worker, up=True)
    assert await repeated(lambda: worker.announce("a1", "w1", b"x")) == b"granted w1 x"


@pytest.mark.parametrize(
    ("is_of_our_key", "why"), [(False, "know this key"), (True, "certificate verify failed")]
)
async def test_a_stranger_is_refused_with_one_line(
    nats_server: NatsServer, tmp_path: Path, is_of_our_key: bool, why: str
) -> None:
    """A worker with a key of another bus, and a server of another CA."""
    other, ours = set_up(tmp_path / "another", ["localhost"], ["w1"]), nats_server.address("w1")
    key, ca = (ours.key, other.ca) if is_of_our_key else (other.key("w1"), ours.ca)

    with pytest.raises(BusDown, match=why):
        await connect(BusAddress(ours.url, key, ca), "w1", "w1")


async def test_a_bus_that_is_not_there_is_said_at_once(nats_server: NatsServer) -> None:
    nats_server.kill()

    with pytest.raises(BusDown, match=str(nats_server.port)):
        await connect(nats_server.address("w1"), "w1", "w1")


# ---- Losses


async def test_jobs_and_results_outlive_kill_9(opened: OpenBus, nats_server: NatsServer) -> None:
    arena, worker, listener = opened
    await arena.put("c1", "j1", b"a job")
    await worker.hand_in("a1", "w1", "m1", b"a result")
    await (await listener.result()).give_back(0.0)

    nats_server.kill()
    await becomes(worker, up=False)
    nats_server.start()
    await becomes(worker, up=True)
    await becomes(arena, up=True)

    assert await fetched(worker) == b"a job"
    assert await (await listener.result()).read() == b"a result"


async def test_all_is_made_again_when_it_is_wiped(opened: OpenBus, nats_server: NatsServer) -> None:
    arena, worker, listener = opened
    await arena.put("c1", "j1", b"a job")
    waiting = asyncio.create_task(worker.fetch("c2", SOON_S))

    nats_server.kill(wipe=True)
    with pytest.raises(BusDown):
        await waiting
    nats_server.start()

    await repeated(lambda: arena.put("c1", "j1", b"again"))
    assert await fetched(worker) == b"again"
    large = bytes(1 << 20)
    await repeated(lambda: worker.hand_in("a1", "w1", "m1", large))
    assert await (await listener.result()).read() == large
    assert await worker.announce("a1", "w1", b"x") == b"granted w1 x"


async def fetched(worker: NatsBus) -> bytes:
    """The job that is fetched, once the bus takes that."""
    job = not_none(await repeated(lambda: worker.fetch("c1", SOON_S)))
    return job.data


async def test_a_stream_that_somebody_removes_is_made_again(
    opened: OpenBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, worker, listener = opened

    await arena._connection.request("$JS.API.STREAM.DELETE.ARENA_RESULTS", b"", "removing it")

    monkeypatch.setattr("arena.hosts.nats_connection.REPLY_S", 0.5)
    await repeated(lambda: worker.hand_in("a1", "w1", "m1", b"a result"))
    assert await (await listener.result()).read() == b"a result"


async def test_an_object_that_is_lost_is_said_and_none_is_left(opened: OpenBus) -> None:
    arena, worker, listener = opened
    await worker.hand_in("a1", "w1", "m1", bytes(1 << 20))
    result = await listener.result()

    await arena._connection.request("$JS.API.STREAM.PURGE.OBJ_records-w1", b"", "emptying it")

    with pytest.raises(BusDown, match="the bus has lost the record of m1"):
        await result.read()
    await result.give_back(0.0)
    again = await listener.result()
    await worker.hand_in("a1", "w1", "m1", bytes(1 << 20))
    assert await again.read() == bytes(1 << 20)
    await again.ack()
    info = await arena._connection.request("$JS.API.STREAM.INFO.OBJ_records-w1", b"", "asking")
    assert b'"messages":0' in info


async def test_a_client_cut_off_comes_back(joined: Connect, nats_server: NatsServer) -> None:
    proxy = StallingProxy(nats_server.port)
    arena, worker = await joined("arena"), await joined("w1", proxy.port)
    await BusListener().open(arena, "a1")
    await arena.open_class("c1")
    waiting = asyncio.create_task(worker.fetch("c1", SOON_S))
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    await worker.on_command("w1", heard.put_nowait)

    proxy.cut()
    with pytest.raises(BusDown):
        await waiting
    proxy.go_on()
    await becomes(worker, up=True)

    await arena.command("w1", b"go")
    assert await asyncio.wait_for(heard.get(), SOON_S) == b"go"
    await worker.close()
    proxy.close()


async def test_a_connection_that_hears_no_replies_is_made_again(joined: Connect) -> None:
    worker = await joined("w1")
    connection = worker._connection
    client = not_none(connection._client)
    await connection.request(connection.echo, b"", "an echo")
    replies = next(sub for sub in client._subs.values() if sub._cb == client._request_sub_callback)

    client._remove_sub(replies._id)  # as nats-py loses it: #667

    await becomes(worker, up=False)
    await becomes(worker, up=True)
    assert connection._client is not client
    await connection.request(connection.echo, b"", "an echo")


async def test_a_result_is_held_meanwhile(joined: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    arena, worker = await joined("arena"), await joined("w1")
    said: asyncio.Queue[None] = asyncio.Queue()
    given: list[str] = []
    checked = asyncio.Event()
    in_progress = NatsResult.in_progress

    async def saying(result: NatsResult) -> None:
        await in_progress(result)
        said.put_nowait(None)

    class SlowListener(BusListener):
        async def on_result(self, result: ResultDelivery) -> None:
            given.append(result.attempt)
            await checked.wait()

    monkeypatch.setattr(NatsResult, "in_progress", saying)
    await SlowListener().open(arena, "a1")
    await worker.hand_in("a1", "w1", "m1", b"a result")

    for _ in range(4):  # a third of `ack_wait_s` each
        await asyncio.wait_for(said.get(), SOON_S)
    assert given == ["m1"]
    checked.set()
