"""The bus in NATS: one connection to a server, renewed for ever whenever it is lost.

- `arena.host.HOST`: a host's reports; they may be lost.
- `arena.place.HOST`: requests for room.
- `arena.drain.HOST`: an operator's order.

Nothing is stored on the bus. Names of hosts are words without dots and spaces.

A client of nats-py is used for one TCP connection only, and a fresh one follows. So nothing that
was buffered for the old connection is sent late, and no error (a refused login, one while reading)
ends the reconnecting. The client pings the server, which may be gone behind a proxy. Each request
has its own subscription for the reply, as nats-py may lose one that all requests share (its issue
667).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import nats.aio.client
import nats.errors
import nkeys  # type: ignore[import-untyped]  # it has no type hints
from nats.aio.msg import Msg

from arena.competitions.elsewhere import BusAddress
from arena.hosts.bus import BusDown
from arena.server.background import ignore_error
from protocol.errors import UsageError, one_line
from protocol.text_files import read_text

if TYPE_CHECKING:  # `arena bus init` imports this module only to read a key's seed
    from arena.hosts.hosted_bots import BotHost

__all__ = ["NatsConnection", "seed_of", "serve"]

log = logging.getLogger(__name__)
# nats-py's stream does not know of TLS, so asyncio would warn at each loss.
logging.getLogger("asyncio").addFilter(lambda entry: "eof_received" not in str(entry.msg))

T = TypeVar("T")

CONNECT_S = 3.0  # for TCP, TLS and login; after a partition a connection is as late as this
RETRY_S = 0.25  # between attempts to connect
PING_S = 1
MOST_PINGS = 5  # without an answer; a busy machine may take a second for one
CLOSE_S = 1.0  # for a connection that may be dead: TLS would wait 30 s for the other side
REPLY_S = 10.0


class NatsConnection:
    """The connection of one user, who gets replies only on subjects below `_INBOX.USER`.

    An arena's connection is its `HostBus`.
    """

    def __init__(self, address: BusAddress, name: str, user: str) -> None:
        self.address = address
        self.name = name
        self.user = user
        self.last_error = ""  # the server's last error on this connection
        self._seed = None if address.key is None else seed_of(address.key)
        self._tls = _tls_of(address)
        self._client: nats.aio.client.Client | None = None
        self._lost = asyncio.Event()
        self._is_closed = False
        self._listening: dict[str, Callable[[Msg], Awaitable[None]]] = {}
        self._keeping: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        return self._client is not None and self._client.is_connected and not self._lost.is_set()

    async def open(self) -> None:
        """Connect; raises `BusDown`, with the reason, if that does not succeed at once."""
        client = await self._connect()
        self._keeping = asyncio.create_task(self._keep(client))

    async def close(self) -> None:
        """Close the connection for good; calls that wait for the bus raise `BusDown`."""
        self._is_closed = True
        self._lost.set()
        if self._keeping is not None:
            await asyncio.wait((self._keeping,))

    # --- operations; all raise `BusDown` ---

    async def publish(self, subject: str, data: bytes) -> None:
        client = self._up()
        await self._race(client.publish(subject, data), "sending")

    async def listen(self, subject: str, call: Callable[[Msg], Awaitable[None]]) -> None:
        """Call `call` with each message on a subject, one by one, also after a reconnection."""
        self._listening[subject] = call
        await self._race(self._up().subscribe(subject, cb=call), f"listening to {subject}")

    async def on_reports(self, call: Callable[[str, bytes], None]) -> None:
        async def reported(message: Msg) -> None:
            call(message.subject.rpartition(".")[2], message.data)

        await self.listen("arena.host.*", reported)

    async def place(self, host: str, data: bytes) -> bytes:
        subject = f"arena.place.{host}"
        asking = self._up().request(subject, data, timeout=REPLY_S, old_style=True)
        return (await self._race(asking, f"the host {host}")).data

    async def drain(self, host: str, data: bytes) -> None:
        await self.publish(f"arena.drain.{host}", data)

    async def _race(self, call: Coroutine[object, object, T], doing: str) -> T:
        """Await in a separate task: nats-py's `wait_for` could swallow our own cancellation."""
        task = asyncio.create_task(call)
        lost = asyncio.create_task(self._lost.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise BusDown(f"{doing}: the connection was lost")
            return task.result()
        except nats.errors.NoRespondersError:
            raise BusDown(f"{doing}: nobody answers on the bus") from None
        except TimeoutError:
            raise BusDown(f"{doing}: no answer from the bus") from None
        except (nats.errors.Error, OSError) as error:
            raise BusDown(f"{doing}: {one_line(str(error), 300)}") from None
        finally:
            lost.cancel()
            task.cancel()
            task.add_done_callback(ignore_error)

    def _up(self) -> nats.aio.client.Client:
        if self._client is None or not self.is_up:
            why = f": {self.last_error}" if self.last_error else ""
            raise BusDown(f"{self.address.url} cannot be reached{why}")
        return self._client

    # --- keeping the connection ---

    async def _keep(self, client: nats.aio.client.Client) -> None:
        while True:
            # nats-py reports a silent server late, as it first waits for the close.
            while client.is_connected and not (self._lost.is_set() or self._is_closed):
                with suppress(TimeoutError):
                    async with asyncio.timeout(PING_S):
                        await self._lost.wait()
            self._lost.set()
            await _drop(client)
            while not client.is_connected:
                if self._is_closed:
                    return
                await asyncio.sleep(RETRY_S)
                with suppress(BusDown):
                    client = await self._connect()

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
                    ping_interval=PING_S,
                    max_outstanding_pings=MOST_PINGS,
                    tls=self._tls,
                    nkeys_seed_str=self._seed,
                    inbox_prefix=f"_INBOX.{self.user}",
                )
                await client.subscribe(f"_INBOX.{self.user}.key")  # refused for another user's key
                for subject, call in self._listening.items():
                    await client.subscribe(subject, cb=call)
                # The ping of a flush may overtake unwritten data; that of a second one does not.
                for _ in range(2):
                    await client.flush()
                if "ermissions" in self.last_error:
                    raise nats.errors.Error(
                        f"this key is not that of {self.user}: {self.last_error}"
                    )
        except BaseException as error:  # any error of nats-py: connecting is retried for ever
            await _drop(client)
            if not isinstance(error, Exception):
                raise
            said = self.last_error if isinstance(error, nats.errors.NoServersError) else ""
            self.last_error = said or _reason(error)
            raise BusDown(f"{self.address.url}: {self.last_error}") from None
        # These tasks fail if `close` cannot write; the loss itself is reported already.
        for task in (client._reading_task, client._flusher_task, client._ping_interval_task):
            if task is not None:
                task.add_done_callback(ignore_error)
        self._client, self._lost, self.last_error = client, lost, ""
        return client


async def serve(connection: NatsConnection, host: BotHost) -> None:
    """Let a host report and answer on the bus, until it has left.

    Raises `BusDown` if the bus is not there now. If it goes later, the links go on without it.
    """
    name = host.report.host

    async def place(message: Msg) -> None:
        await connection.publish(message.reply, await host.place(message.data))

    async def drain(message: Msg) -> None:
        host.drain(message.data)

    async def publish(data: bytes) -> None:
        with suppress(BusDown):  # the next report is half a second away
            await connection.publish(f"arena.host.{name}", data)

    await connection.listen(f"arena.place.{name}", place)
    await connection.listen(f"arena.drain.{name}", drain)
    await host.run(publish)


async def _drop(client: nats.aio.client.Client) -> None:
    """Close a connection; cut it off if the other side is silent."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await client.close()
    for subscription in list(client._subs.values()):  # `close` leaves these if it cannot write
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
        # If we were writing, the server's last words before it closed the connection are lost.
        return f"{text}: the bus has closed the connection; does it know this key?"
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{text}: expected the bus's own ca.pem, and a name of its certificate"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return f"no bus answers: {text}"
    return text


def seed_of(file: Path) -> str:
    """Return the seed in a key file, whose other lines are comments; raises `UsageError`."""
    try:
        lines = read_text(file).splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    try:
        seed = next(line.strip() for line in lines if line.strip() and not line.startswith("#"))
        nkeys.from_seed(bytearray(seed.encode()))
    except Exception:  # nkeys raises several errors without a common base
        raise UsageError(f"expected a key of `arena bus init`, {file} has none") from None
    return seed


def _tls_of(address: BusAddress) -> ssl.SSLContext | None:
    if not address.url.startswith("tls://"):
        return None
    try:
        return ssl.create_default_context(cafile=address.ca)
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(f"cannot read {address.ca}: {error.strerror or error}") from None
