"""The bus on a real nats-server: what each user may do, and what is left after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nats")

from arena.competitions.elsewhere import BusAddress
from arena.hosts import nats_connection
from arena.hosts.bus import BusDown
from arena.hosts.bus_setup import set_up
from arena.hosts.directory import HostDirectory
from arena.hosts.hosted_bots import BotHost, HostedBots
from arena.hosts.messages import BotLink, DrainHost, Source, encode
from arena.hosts.nats_connection import NatsConnection, serve
from protocol.messages import Limits
from tests.support.fake_bots import ANY_GAME
from tests.support.hosted_arena import report_of
from tests.support.nats_server import NatsServer, nats_server
from tests.support.silent_link import SilentLink
from tests.support.stalling_proxy import StallingProxy

__all__ = ["nats_server"]

SOON_S = 20.0
BOTS = [Source("k", 1, "python")] * 2

NOT_FOR_HOSTS = {
    "report as another": "arena.host.h2",
    "ask another for room": "arena.place.h2",
    "drain another": "arena.drain.h2",
    "answer another": "_INBOX.h2.x",
    "answer an arena unasked": "_INBOX.arena.x",
    "answer itself, with what another hears": "_INBOX.h1.x",
    "have something kept": "$JS.API.STREAM.CREATE.x",
}
NOT_TO_BE_HEARD = {
    "everything": ">",
    "reports": "arena.host.*",
    "requests to another": "arena.place.h2",
    "all requests": "arena.place.*",
    "orders to another": "arena.drain.h2",
    "replies to another": "_INBOX.h2.>",
    "replies to an arena": "_INBOX.arena.>",
}


class BusUsers:
    """Connections to a server, which are closed at the end, and hosts that serve on them."""

    def __init__(self, server: NatsServer) -> None:
        self.server = server
        self._opened: list[NatsConnection] = []
        self._serving: list[asyncio.Task[None]] = []

    async def join(self, user: str, port: int | None = None) -> NatsConnection:
        connection = NatsConnection(self.server.address(user, port), user, user)
        await connection.open()
        self._opened.append(connection)
        return connection

    async def arena(self) -> tuple[NatsConnection, HostDirectory]:
        bus = await self.join("arena")
        directory = HostDirectory(bus, "a1", Limits(), "ws://a1", lambda host: "ticket")
        await directory.open()
        return bus, directory

    async def serve(self, name: str, port: int | None = None) -> None:
        """Have a host with room for two bots on the bus."""
        host = BotHost(report_of(name), lambda limits: 2, _not_started, (), _never_lost)
        connection = await self.join(name, port)
        self._serving.append(asyncio.create_task(serve(connection, host)))

    async def close(self) -> None:
        for task in self._serving:
            task.cancel()
        for connection in self._opened:
            await connection.close()


async def _not_started(*wanted: object) -> Any:
    raise AssertionError("nothing is started")


async def _never_lost(
    url: str, ticket: str, ca: str, opened: Callable[[BotLink], HostedBots]
) -> None:
    opened(SilentLink())
    await asyncio.Event().wait()


@pytest.fixture
async def users(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BusUsers]:
    monkeypatch.setattr(nats_connection, "PING_S", 0.1)
    users = BusUsers(nats_server)
    yield users
    await users.close()


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():
            await asyncio.sleep(0.02)


def names(directory: HostDirectory) -> set[str]:
    """The hosts that are there and take bots."""
    return {report.host for report in directory.alive()}


# ---- What each may do


async def test_hosts_report_answer_and_drain(users: BusUsers) -> None:
    bus, directory = await users.arena()
    for name in ("h1", "h2"):
        await users.serve(name)
    await until(lambda: names(directory) == {"h1", "h2"})

    first = await directory.place(2, BOTS, ANY_GAME)
    [other] = names(directory) - {first}
    assert await directory.place(2, BOTS, ANY_GAME, warm_at=other) == other
    assert await directory.place(2, BOTS, ANY_GAME) == "", "both are full"
    await bus.drain("h1", encode(DrainHost(is_draining=True)))
    await until(lambda: names(directory) == {"h2"})


async def refusal(connection: NatsConnection, call: Callable[[], Awaitable[object]]) -> str:
    """What the server says to it; empty if it allows it."""
    connection.last_error = ""
    await call()
    for _ in range(2):  # in order behind it
        await connection._up().flush()
    return connection.last_error.lower()


async def test_a_host_may_send_nothing_else(users: BusUsers) -> None:
    host = await users.join("h1")
    assert await refusal(host, lambda: host.publish("arena.host.h1", b"")) == ""
    for what, subject in NOT_FOR_HOSTS.items():
        said = await refusal(host, lambda subject=subject: host.publish(subject, b"{}"))  # type: ignore[misc]
        assert f'permissions violation for publish to "{subject.lower()}"' in said, what


async def test_a_host_hears_nothing_else(users: BusUsers) -> None:
    host = await users.join("h1")

    async def nothing(_message: object) -> None:
        pytest.fail("it was heard")

    for what, subject in NOT_TO_BE_HEARD.items():
        said = await refusal(host, lambda subject=subject: host.listen(subject, nothing))  # type: ignore[misc]
        assert f'permissions violation for subscription to "{subject.lower()}"' in said, what


async def test_a_key_is_good_for_one_name_alone(nats_server: NatsServer) -> None:
    connection = NatsConnection(nats_server.address("h1"), "h2", "h2")
    with pytest.raises(BusDown, match="this key is not that of h2"):
        await connection.open()


async def test_who_has_a_key_may_join_on_reload(users: BusUsers, nats_server: NatsServer) -> None:
    files = set_up(nats_server.files.folder, [], ["h3"])
    key = nats_server.address("h1")
    files.key("h1").rename(files.folder / "h1.old")
    set_up(nats_server.files.folder, [], [])
    nats_server.reload()

    async with asyncio.timeout(SOON_S):
        while True:
            with suppress(BusDown):
                await users.join("h3")
                break
    old = BusAddress(key.url, files.folder / "h1.old", key.ca)
    with pytest.raises(BusDown, match="know this key"):
        await NatsConnection(old, "h1", "h1").open()


@pytest.mark.parametrize(
    ("is_of_our_key", "why"), [(False, "know this key"), (True, "verify failed.*own ca.pem")]
)
async def test_a_stranger_is_refused_with_one_line(
    nats_server: NatsServer, tmp_path: Path, is_of_our_key: bool, why: str
) -> None:
    """A host with a key of another bus, and a server of another CA."""
    other, ours = set_up(tmp_path / "another", ["localhost"], ["h1"]), nats_server.address("h1")
    key, ca = (ours.key, other.ca) if is_of_our_key else (other.key("h1"), ours.ca)

    with pytest.raises(BusDown, match=why):
        await NatsConnection(BusAddress(ours.url, key, ca), "h1", "h1").open()


# ---- Losses


async def test_all_go_on_when_the_bus_is_back(users: BusUsers, nats_server: NatsServer) -> None:
    _, directory = await users.arena()
    await users.serve("h1")
    await until(lambda: names(directory))
    nats_server.kill()
    assert await directory.place(2, BOTS, ANY_GAME) == ""
    with pytest.raises(BusDown, match=str(nats_server.port)):
        await users.join("h2")
    nats_server.start()

    async with asyncio.timeout(SOON_S):
        while await directory.place(2, BOTS, ANY_GAME) != "h1":
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("user", ["arena", "h1"])
async def test_who_is_cut_off_without_a_word_comes_back(
    users: BusUsers, nats_server: NatsServer, user: str
) -> None:
    proxy = StallingProxy(nats_server.port)
    connection = await users.join(user, proxy.port)
    heard: asyncio.Queue[object] = asyncio.Queue()
    subject = "arena.drain.h1" if user == "h1" else "arena.host.h1"
    await connection.listen(subject, heard.put)

    proxy.cut()
    await until(lambda: not connection.is_up)
    proxy.go_on()
    await until(lambda: connection.is_up)

    other = await users.join("arena" if user == "h1" else "h1")
    await other.publish(subject, b"")
    await asyncio.wait_for(heard.get(), SOON_S)
    proxy.close()
