"""One connection to a NATS server, made again for ever whenever it is lost.

A client of nats-py lives as long as its TCP connection, and a fresh one follows it: nothing that
was buffered for the old one is sent late, and no state survives in which its own reconnection ends
(a refused login, an error while reading). A heartbeat to ourselves, by the way of all replies, says
whether it hears: the server may be gone behind a proxy, or nats-py may have lost the subscription
of its replies (its issue 667). Requests are few at once, so that it hardly comes to that.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec
import nats.aio.client
import nats.errors
import nkeys  # type: ignore[import-untyped]  # it says nothing of its types
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.client import JetStreamContext

from arena.workers.bus import BusDown
from protocol.errors import UsageError, one_line

__all__ = ["BusAddress", "NatsConnection", "seed_of"]

log = logging.getLogger(__name__)

T = TypeVar("T")

CONNECT_S = 5.0  # TCP, TLS and login
RETRY_S = 0.25  # between attempts to connect
HEARTBEAT_S = 1.0
HEARD_WITHIN_S = 3.0  # of a heartbeat; a busy machine may take a second
CLOSE_S = 1.0  # of a connection that may be dead: TLS would wait 30 s for the other side
REQUESTS_AT_ONCE = 64
REPLY_S = 10.0
TOO_LATE = b'-NAK {"delay": 0}'
_NO_MESSAGE = ("404", "408")  # none there, or none came


class BusAddress(msgspec.Struct, frozen=True):
    """Where a bus is: `tls://HOST:PORT`, the key file of a user, and the CA of the server."""

    url: str
    key: Path | None = None
    ca: Path | None = None


@contextmanager
def _errors_as_bus_down(doing: str) -> Iterator[None]:
    """Raise `BusDown` for what nats-py raises while we do this."""
    try:
        yield
    except nats.errors.NoRespondersError:
        raise BusDown(f"{doing}: nobody answers on the bus") from None
    except TimeoutError:
        raise BusDown(f"{doing}: no answer from the bus") from None
    except (nats.errors.Error, OSError) as error:
        raise BusDown(f"{doing}: {one_line(str(error), 300)}") from None


class NatsConnection:
    """The connection of one user, whose replies come to subjects below `inbox` alone."""

    def __init__(self, address: BusAddress, name: str, inbox: str) -> None:
        self.address = address
        self.name = name
        self.inbox = inbox
        self.on_up: Callable[[], None] = lambda: None
        self._seed = None if address.key is None else seed_of(address.key)
        self._tls = _tls_of(address)
        self._client: nats.aio.client.Client | None = None
        self._lost = asyncio.Event()
        self._last_error = ""
        self._listening: dict[str, Callable[[Msg], Awaitable[None]]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._pulls: dict[str, asyncio.Future[Msg]] = {}
        self._pull_count = 0
        self._room = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._keeping: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        return self._client is not None and self._client.is_connected and not self._lost.is_set()

    async def open(self) -> None:
        """Connect; raises `BusDown`, with the reason, if that does not succeed at once."""
        client = await self._connect()
        self._keeping = asyncio.create_task(self._keep(client))

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None

    # --- what is done with it; all raise `BusDown` ---

    async def publish(self, subject: str, data: bytes) -> None:
        client = self._up()
        with _errors_as_bus_down("sending"):
            await client.publish(subject, data)

    async def request(
        self, subject: str, data: bytes, doing: str, *, timeout_s: float = REPLY_S
    ) -> bytes:
        """Send a request, and wait for its reply."""
        reply = await self._call(
            doing, lambda client: client.request(subject, data, timeout=timeout_s)
        )
        return reply.data

    async def streams(
        self, doing: str, call: Callable[[JetStreamContext], Coroutine[object, object, T]]
    ) -> T:
        """Await a call to JetStream, which is given up when the connection is lost."""
        return await self._call(doing, lambda client: call(client.jetstream(timeout=REPLY_S)))

    async def _call(
        self, doing: str, call: Callable[[nats.aio.client.Client], Coroutine[object, object, T]]
    ) -> T:
        async with self._room:
            return await self._race(call(self._up()), doing)

    async def listen(self, subject: str, call: Callable[[Msg], Awaitable[None]]) -> None:
        """Call this with each message on a subject, one after another, on all connections."""
        self._listening[subject] = call
        client = self._up()
        with _errors_as_bus_down(f"listening to {subject}"):
            self._subscriptions[subject] = await client.subscribe(subject, cb=call)
            await client.flush(timeout=int(REPLY_S))

    async def deafen(self, subject: str) -> None:
        """Listen to a subject no longer."""
        self._listening.pop(subject, None)
        if (subscription := self._subscriptions.pop(subject, None)) and self.is_up:
            with suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async def pull(self, stream: str, consumer: str, wait_s: float) -> Msg | None:
        """The next message of a consumer; None if none has come.

        What is delivered when nobody waits for it any more is given back at once.
        """
        client = self._up()
        self._pull_count += 1
        token = str(self._pull_count)
        future = self._pulls[token] = asyncio.get_running_loop().create_future()
        expires_ns = int(max(wait_s, 0.01) * 1e9)
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        doing = f"the queue {consumer}"
        try:
            with _errors_as_bus_down(doing):
                await client.publish(
                    subject,
                    json.dumps({"batch": 1, "expires": expires_ns}).encode(),
                    reply=self._pull_subject(client, token),
                )
            message = await self._race(asyncio.wait_for(future, wait_s + REPLY_S), doing)
        except BaseException:
            if future.done() and not future.cancelled():
                await self._give_back(future.result())
            raise
        finally:
            del self._pulls[token]
        return self._pulled(message, doing)

    def _pulled(self, message: Msg, doing: str) -> Msg | None:
        status = None if message.headers is None else message.headers.get("Status")
        if status is None:
            return message
        if status in _NO_MESSAGE:
            return None
        why = "is not there" if status == "503" else (message.headers or {}).get("Description", "")
        raise BusDown(f"{doing} {why}".rstrip())

    async def _give_back(self, message: Msg) -> None:
        if message.reply:
            with suppress(BusDown):
                await self.publish(message.reply, TOO_LATE)

    async def _race(self, call: Awaitable[T], doing: str) -> T:
        task = asyncio.ensure_future(call)
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise BusDown(f"{doing}: the connection was lost")
            with _errors_as_bus_down(doing):
                return task.result()
        finally:
            for one in (task, lost):
                one.cancel()
            await asyncio.gather(task, lost, return_exceptions=True)

    def _up(self) -> nats.aio.client.Client:
        if self._client is None or not self.is_up:
            why = f": {self._last_error}" if self._last_error else ""
            raise BusDown(f"{self.address.url} cannot be reached{why}")
        return self._client

    # --- how it is kept ---

    async def _keep(self, client: nats.aio.client.Client) -> None:
        try:
            while True:
                await self._until_lost(client)
                self._lost.set()
                await _drop(client)
                client = await self._connect_again()
                self.on_up()
        finally:
            self._lost.set()
            await _drop(client)

    async def _connect_again(self) -> nats.aio.client.Client:
        while True:
            await asyncio.sleep(RETRY_S)
            try:
                return await self._connect()
            except BusDown as error:
                log.debug("%s", error)

    async def _until_lost(self, client: nats.aio.client.Client) -> None:
        """Return when the connection is closed, or two heartbeats in turn were not heard."""
        unheard = 0
        while client.is_connected and unheard < 2:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._lost.wait()
                    return
            try:
                await client.request(self._echo(client), timeout=HEARD_WITHIN_S / 2)
                unheard = 0
            except (nats.errors.Error, OSError):
                unheard += 1

    async def _connect(self) -> nats.aio.client.Client:
        client = nats.aio.client.Client()
        self._last_error = ""
        lost = asyncio.Event()

        async def on_error(error: Exception) -> None:
            self._last_error = _reason(error)
            log.debug("bus: %s", self._last_error)

        async def on_closed() -> None:
            lost.set()

        try:
            async with asyncio.timeout(CONNECT_S):
                await client.connect(
                    self.address.url,
                    name=self.name,
                    error_cb=on_error,
                    closed_cb=on_closed,
                    disconnected_cb=on_closed,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,  # 0 would be for ever
                    reconnect_time_wait=0,
                    connect_timeout=int(CONNECT_S),
                    tls=self._tls,
                    nkeys_seed_str=self._seed,
                    inbox_prefix=self.inbox,
                )
                await self._listen_again(client)
        except (nats.errors.Error, OSError) as error:
            await _drop(client)
            self._last_error = self._last_error or _reason(error)
            raise BusDown(f"{self.address.url}: {self._last_error}") from None
        except BaseException:
            await _drop(client)
            raise
        self._client, self._lost, self._last_error = client, lost, ""
        return client

    async def _listen_again(self, client: nats.aio.client.Client) -> None:
        """Subscribe to all, and see whether this user is allowed to."""

        async def echo(message: Msg) -> None:
            await client.publish(message.reply, b"")

        await client.subscribe(self._echo(client), cb=echo)
        await client.subscribe(self._pull_subject(client, "*"), cb=self._on_pulled)
        for subject, call in self._listening.items():
            self._subscriptions[subject] = await client.subscribe(subject, cb=call)
        await client.request(self._echo(client), timeout=CONNECT_S)
        if "ermissions" in self._last_error:
            raise nats.errors.Error(self._last_error)

    async def _on_pulled(self, message: Msg) -> None:
        future = self._pulls.get(message.subject.rpartition(".")[2])
        if future is not None and not future.done():
            future.set_result(message)
        elif message.headers is None or "Status" not in message.headers:
            await self._give_back(message)

    def _echo(self, client: nats.aio.client.Client) -> str:
        return f"{self.inbox}.echo.{client.client_id}"

    def _pull_subject(self, client: nats.aio.client.Client, token: str) -> str:
        return f"{self.inbox}.pull.{client.client_id}.{token}"


async def _drop(client: nats.aio.client.Client) -> None:
    """Close a connection; one whose other side is silent is cut off."""
    with suppress(nats.errors.Error, OSError):
        async with asyncio.timeout(CLOSE_S):
            await client.close()
    for writer in ("_io_writer", "_bare_io_writer"):
        stream: asyncio.StreamWriter | None = getattr(client._transport, writer, None)
        if stream is not None:
            stream.transport.abort()


def _reason(error: Exception) -> str:
    text = one_line(str(error), 300) or type(error).__name__
    if "uthorization" in text:
        return "the bus does not know this key"
    if isinstance(error, TimeoutError):
        return "no answer"
    return text


def seed_of(file: Path) -> str:
    """The seed in a key file, whose other lines are comments; raises `UsageError`."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        seed = next(line.strip() for line in lines if line.strip() and not line.startswith("#"))
        nkeys.from_seed(bytearray(seed.encode()))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    except Exception:  # nkeys raises several that have no root of their own
        raise UsageError(f"expected a key of `arena bus init`, {file} has none") from None
    return seed


def _tls_of(address: BusAddress) -> ssl.SSLContext | None:
    if not address.url.startswith("tls://"):
        return None
    try:
        return ssl.create_default_context(cafile=address.ca)
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(f"cannot read {address.ca}: {error.strerror or error}") from None
