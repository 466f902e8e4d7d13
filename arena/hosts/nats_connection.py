"""One connection to a NATS server, made again for ever whenever it is lost.

A client of nats-py lives as long as its TCP connection, and a fresh one follows it: nothing that
was buffered for the old one is sent late, and no state survives in which its own reconnection ends
(a refused login, an error while reading). A heartbeat says whether it hears: the server may be gone
behind a proxy. That of an arena is a request to itself, by the way of all replies, as nats-py may
have lost the subscription of these (its issue 667); requests are few at once, so that it hardly
comes to that. A host may send itself nothing, and asks nobody: its heartbeat is a ping.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import nats.aio.client
import nats.errors
import nkeys  # type: ignore[import-untyped]  # it says nothing of its types
from nats.aio.msg import Msg

from arena.hosts.bus import ARENA_USER, BusAddress, BusDown
from protocol.errors import UsageError, one_line
from protocol.text_files import read_text

__all__ = ["NatsConnection", "seed_of"]

log = logging.getLogger(__name__)
# nats-py makes a stream that does not know of TLS, of which asyncio warns at each loss.
logging.getLogger("asyncio").addFilter(lambda entry: "eof_received" not in str(entry.msg))

T = TypeVar("T")

CONNECT_S = 3.0  # TCP, TLS and login; so late is a connection after a partition
RETRY_S = 0.25  # between attempts to connect
HEARTBEAT_S = 1.0
HEARD_WITHIN_S = 3.0  # of a heartbeat; a busy machine may take a second
CLOSE_S = 1.0  # of a connection that may be dead: TLS would wait 30 s for the other side
REQUESTS_AT_ONCE = 64
REPLY_S = 10.0


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
    """The connection of one user, whose replies come to subjects below `_INBOX.USER` alone."""

    def __init__(self, address: BusAddress, name: str, user: str) -> None:
        self.address = address
        self.name = name
        self.user = user
        self.echo = f"_INBOX.{user}.echo.{secrets.token_hex(8)}"  # where an arena asks itself
        self.last_error = ""  # what the server said to this connection
        self._seed = None if address.key is None else seed_of(address.key)
        self._tls = _tls_of(address)
        self._client: nats.aio.client.Client | None = None
        self._lost = asyncio.Event()
        self._is_closed = False
        self._listening: dict[str, Callable[[Msg], Awaitable[None]]] = {}
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
        """Close it for good; what waits for the bus raises `BusDown`."""
        self._is_closed = True
        self._lost.set()
        if self._keeping is not None:
            await asyncio.wait((self._keeping,))

    # --- what is done with it; all raise `BusDown` ---

    async def publish(self, subject: str, data: bytes) -> None:
        client = self._up()
        await self._race(client.publish(subject, data), "sending")

    async def request(self, subject: str, data: bytes, doing: str) -> bytes:
        """Send a request, and wait for its reply."""
        async with self._room:
            asking = self._up().request(subject, data, timeout=REPLY_S)
            return (await self._race(asking, doing)).data

    async def listen(self, subject: str, call: Callable[[Msg], Awaitable[None]]) -> None:
        """Call this with each message on a subject, one after another, on all connections."""
        self._listening[subject] = call
        client, doing = self._up(), f"listening to {subject}"
        await self._race(client.subscribe(subject, cb=call), doing)
        await self._race(_heard(client, REPLY_S), doing)

    async def _race(self, call: Coroutine[object, object, T], doing: str) -> T:
        """Await it in a task of its own: `wait_for`, which nats-py uses, may swallow our cancel."""
        task = asyncio.create_task(call)
        lost = asyncio.create_task(self._lost.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise BusDown(f"{doing}: the connection was lost")
            with _errors_as_bus_down(doing):
                return task.result()
        finally:
            lost.cancel()
            if not task.done():
                task.cancel()
                task.add_done_callback(_note_nothing)

    def _up(self) -> nats.aio.client.Client:
        if self._client is None or not self.is_up:
            why = f": {self.last_error}" if self.last_error else ""
            raise BusDown(f"{self.address.url} cannot be reached{why}")
        return self._client

    # --- how it is kept ---

    async def _keep(self, client: nats.aio.client.Client) -> None:
        while True:
            await self._until_lost(client)
            self._lost.set()
            await _drop(client)
            while True:
                if self._is_closed:
                    return
                await asyncio.sleep(RETRY_S)
                try:
                    client = await self._connect()
                    break
                except BusDown as error:
                    log.debug("%s", error)

    async def _until_lost(self, client: nats.aio.client.Client) -> None:
        """Return when the connection is closed, or two heartbeats in turn were not heard."""
        unheard = 0
        while client.is_connected and unheard < 2 and not self._is_closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._lost.wait()
                    return
            try:
                await self._beat(client)
                unheard = 0
            except Exception:  # whatever nats-py raises: it was not heard
                unheard += 1

    async def _beat(self, client: nats.aio.client.Client) -> None:
        """Raise what nats-py raises if this connection does not hear."""
        if self.user == ARENA_USER:
            await client.request(self.echo, timeout=HEARD_WITHIN_S / 2)
        else:
            await _ping(client, HEARD_WITHIN_S)

    async def _connect(self) -> nats.aio.client.Client:
        client = nats.aio.client.Client()
        self.last_error = ""
        lost = asyncio.Event()

        async def on_error(error: Exception) -> None:
            self.last_error = _reason(error)
            log.debug("bus: %s", self.last_error)

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
                    inbox_prefix=f"_INBOX.{self.user}",
                )
                await self._listen_again(client)
        except Exception as error:  # whatever nats-py raises: this is tried for ever
            await _drop(client)
            said = self.last_error if isinstance(error, nats.errors.NoServersError) else ""
            self.last_error = said or _reason(error)
            raise BusDown(f"{self.address.url}: {self.last_error}") from None
        except BaseException:
            await _drop(client)
            raise
        # They end in an error where `close` cannot write; it is said by the loss itself.
        for task in (client._reading_task, client._flusher_task, client._ping_interval_task):
            if task is not None:
                task.add_done_callback(_note_nothing)
        self._client, self._lost, self.last_error = client, lost, ""
        return client

    async def _listen_again(self, client: nats.aio.client.Client) -> None:
        """Subscribe to all, and see whether this user is allowed to."""

        async def echo(message: Msg) -> None:
            await client.publish(message.reply, b"")

        await client.subscribe(self.echo, cb=echo)
        for subject, call in self._listening.items():
            await client.subscribe(subject, cb=call)
        await _heard(client, CONNECT_S)
        if "ermissions" in self.last_error:
            raise nats.errors.Error(f"this key is not that of {self.user}: {self.last_error}")


async def _heard(client: nats.aio.client.Client, within_s: float) -> None:
    """Wait until the server has answered what was sent.

    The first ping of nats-py overtakes what it has not written yet; the second one does not.
    """
    for _ in range(2):
        await _ping(client, within_s)


async def _ping(client: nats.aio.client.Client, within_s: float) -> None:
    """Raise `TimeoutError` if the server does not answer.

    To `flush` of nats-py an answer that comes later is an error, which ends the connection.
    """
    answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    await client._send_ping(answered)
    await asyncio.wait((answered,), timeout=within_s)
    if not answered.done() or answered.cancelled():
        raise TimeoutError


def _note_nothing(task: asyncio.Task[T]) -> None:
    """Take the error of a task that nobody awaits any more."""
    if not task.cancelled():
        task.exception()


async def _drop(client: nats.aio.client.Client) -> None:
    """Close a connection; one whose other side is silent is cut off."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await client.close()
    for subscription in list(client._subs.values()):  # `close` leaves them if it cannot write
        subscription._stop_processing()
    for writer in ("_io_writer", "_bare_io_writer"):
        stream: asyncio.StreamWriter | None = getattr(client._transport, writer, None)
        if stream is not None:
            stream.transport.abort()


def _reason(error: Exception) -> str:
    text = one_line(str(error), 300) or type(error).__name__
    if "uthorization" in text:
        return "the bus does not know this key"
    if isinstance(error, (BrokenPipeError, ConnectionResetError)):
        # What the server wrote before it closed the connection is lost where we wrote meanwhile.
        return f"{text}: the bus has closed the connection; does it know this key?"
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{text}: expected the bus's own ca.pem, and a name of its certificate"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return f"no bus answers: {text}"
    return text


def seed_of(file: Path) -> str:
    """The seed in a key file, whose other lines are comments; raises `UsageError`."""
    try:
        lines = read_text(file).splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    try:
        seed = next(line.strip() for line in lines if line.strip() and not line.startswith("#"))
        nkeys.from_seed(bytearray(seed.encode()))
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
