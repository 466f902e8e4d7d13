"""The server's door: connections become players, frames become messages, and messages go to the matches they are about.

Everything from a frame that came in to the frames that go out happens in one synchronous pass; what is to be sent gathers in
the players' outboxes and is written one tick of the event loop later, so that a frame carries as much as possible (design §4).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import ssl
from collections.abc import Callable

from arena.conduct import FAULT, Conduct
from arena.connection import Connection
from arena.games import GAMES
from arena.player import Player
from protocol.codec import Encoding, decode_from_bot, encode
from protocol.errors import OutOfTurn, ProtocolError, Unreachable, one_line
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_DONE,
    CLOSE_PROTOCOL,
    CLOSE_REFUSED,
    CLOSE_REPLACED,
    VERSION,
    Answer,
    Ending,
    Goodbye,
    Hello,
    Limits,
    Ready,
    Refused,
    Welcome,
)

__all__ = ["Gateway"]

log = logging.getLogger(__name__)

_TICK_S = 0.02  # how exactly deadlines are kept; no bot notices a fiftieth of a second
_READ_BYTES = 64 * 1024
_MOST_STRANGERS = 256  # have yet to say hello: no class needs more, and a flood of them must not use up all sockets


class Gateway:
    """A server for bots on one address.

    Args:
        conduct: the matches; it is ticked as long as the gateway is open.
        limits: what `welcome` announces and connections are held to.
        on_change: called after a player has come or gone.
    """

    def __init__(
        self,
        conduct: Conduct,
        limits: Limits,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.conduct = conduct
        self.limits = limits
        self.on_change = on_change
        self.players: dict[str, Player] = {}
        self._of: dict[Connection, Player] = {}
        self._connections: set[Connection] = set()
        self._strangers: dict[Connection, None] = {}  # the oldest first
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._dirty: list[Player] = []
        self._server: asyncio.Server | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    async def open(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> int:
        """Listen; returns the port, which is a free one for port 0.

        Raises:
            Unreachable: the address cannot be listened on.
        """
        try:
            self._server = await self._loop.create_server(
                lambda: Connection(self, self.limits, self._buffer), host, port, ssl=tls
            )
        except OSError as error:
            why = (
                "another program uses that port; choose another with --port"
                if error.errno == errno.EADDRINUSE
                else (error.strerror or str(error))
            )
            raise Unreachable(f"cannot listen on {host}:{port}: {why}") from None
        self._ticking = asyncio.create_task(self._tick())
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    async def close(self) -> None:
        """Say that the arena is done to all who are connected, and stop listening."""
        if self._server is not None:
            self._server.close()
        if self._ticking is not None:
            self._ticking.cancel()
        self._flush()
        for connection in list(self._connections):
            connection.close(CLOSE_DONE, "the arena has closed")
        for _ in range(100):  # a close handshake is a round trip
            if not self._connections:
                break
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.cut()

    # --- what connections tell (the Owner's side) ---

    def connected(self, connection: Connection) -> None:
        """A new peer, which has yet to say who it is."""
        self._connections.add(connection)
        self._strangers[connection] = None
        if len(self._strangers) > _MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cut()

    def received(
        self, connection: Connection, frame: bytes, encoding: Encoding, arrived: float
    ) -> None:
        """A frame: all that its messages bring about, but for the writing."""
        if connection.encoding is None:
            connection.encoding = encoding
        try:
            for message in decode_from_bot(frame, encoding):
                player = self._of.get(connection)
                if player is None:
                    self._greet(connection, message)
                elif player.session.note(message):
                    self._take(player, message, arrived)
                if not connection.is_open:
                    return  # refused, or gone by itself: what follows does not count
        except ProtocolError as error:
            self.misbehaved(connection, error)
        except Exception:
            log.exception("the arena failed at a frame from %s", connection.peer)
            self._failed(connection)

    def misbehaved(self, connection: Connection, error: ProtocolError) -> None:
        """Refuse what came, rule on it, and close the connection."""
        player = self._of.get(connection)
        encoding = connection.encoding or Encoding.JSON
        if player is not None:
            player.flush(self._loop.time())
        connection.send(encode(Refused(error.code, str(error)), encoding), encoding)
        if player is not None:
            self._dismiss(
                player, Ending(error.code), f"sent what cannot be accepted: {error}"
            )
            player.flush(self._loop.time())
        connection.close(CLOSE_PROTOCOL, str(error))

    def overflowed(self, connection: Connection, waiting: int) -> None:
        """A reader so slow that too much waits for it is out."""
        player = self._of.get(connection)
        if player is not None:
            limit = self.limits.buffer_bytes
            self._dismiss(
                player,
                Ending.OVERFLOW,
                f"read too slowly: {waiting} bytes waited, at most {limit} may",
            )

    def lost(self, connection: Connection) -> None:
        """A connection is gone; its player may come back within the grace period."""
        self._connections.discard(connection)
        self._strangers.pop(connection, None)
        player = self._of.pop(connection, None)
        if player is None or player.connection is not connection:
            return
        player.disconnected(self._loop.time())
        if connection.close_code == CLOSE_CRASHED:
            reason = one_line(connection.close_reason) or "it gave no reason"
            self._dismiss(player, Ending.CRASH, f"crashed: {reason}")
        elif not player.leaving:
            self._loop.call_later(
                self.limits.grace_ms / 1000, self._grace_over, player, player.secret
            )
        self.on_change()

    def dismiss(self, name: str, kind: Ending, text: str) -> None:
        """Rule that a player is out of all its matches, from evidence that did not come over the wire."""
        player = self.players.get(name)
        if player is not None:
            self._dismiss(player, kind, text)

    # --- within ---

    def _greet(self, connection: Connection, message: object) -> None:
        """The first message of a connection must be a `hello` that can be accepted."""
        if not isinstance(message, Hello):
            raise OutOfTurn("expected hello as the first message")
        connection.hello_received()
        self._strangers.pop(connection, None)
        problem = self._problem(message)
        if problem is None and message.resume is not None:
            player = self._resumable(message)
            if player is None:
                problem = ("session", "no such session to resume; say hello without it")
            else:
                self._resume(player, message, connection)
                return
        if problem is not None:
            encoding = connection.encoding or Encoding.JSON
            connection.send(encode(Refused(*problem), encoding), encoding)
            connection.close(CLOSE_REFUSED, problem[1])
            return
        player = Player(message, connection, self.limits.tables, self._mark_dirty)
        self.players[player.name] = player
        self._welcome(player, message, connection)
        self.on_change()

    def _problem(self, hello: Hello) -> tuple[str, str] | None:
        """Why a hello cannot be accepted: a code and a sentence."""
        if hello.protocol != VERSION:
            return "version", f"expected protocol {VERSION}, got {hello.protocol}"
        unknown = sorted(set(hello.games) - set(GAMES))
        if unknown:
            known = ", ".join(GAMES)
            return "games", f"unknown game {unknown[0]!r}; expected some of: {known}"
        present = self.players.get(hello.name)
        if present is None or hello.resume is not None:
            return None
        if present.connection is not None:
            here = f"a bot named {hello.name!r} is here already"
            return "name", f"{here}; choose another name"
        if present.chairs:  # else it has nothing to lose, and may be this one
            away = f"a bot named {hello.name!r} has lost its connection"
            limit = f"{self.limits.grace_ms} ms to come back with its session"
            return "name", f"{away} and has {limit}; choose another name or wait"
        return None

    def _resumable(self, hello: Hello) -> Player | None:
        player = self.players.get(hello.name)
        given = (hello.resume or "").encode()
        if player is None or not secrets.compare_digest(player.secret.encode(), given):
            return None
        return player

    def _resume(self, player: Player, hello: Hello, connection: Connection) -> None:
        """The same bot over another connection, which replaces an earlier one."""
        former = player.connection
        if former is not None:
            self._of.pop(former, None)
            former.close(CLOSE_REPLACED, "the session goes on over another connection")
            player.disconnected(self._loop.time())
        player.resumed(hello, connection)
        self._welcome(player, hello, connection)
        player.repeat()
        self.on_change()

    def _welcome(self, player: Player, hello: Hello, connection: Connection) -> None:
        self._of[connection] = player
        player.session.note(hello)
        player.send(Welcome(VERSION, player.name, player.secret, self.limits))

    def _take(self, player: Player, message: object, arrived: float) -> None:
        """One message of a player that its session's table has let through."""
        if isinstance(message, Answer):
            self.conduct.answer(player, message, arrived)
        elif isinstance(message, Ready):
            self.conduct.ready(player, message)
        elif isinstance(message, Goodbye):
            self._dismiss(player, Ending.DISCONNECT, "left in the middle of the match")
            if player.connection is not None:
                player.flush(self._loop.time())
                player.connection.close(CLOSE_DONE, "goodbye")

    def _dismiss(self, player: Player, kind: Ending, text: str) -> None:
        """The player is gone for good; that is an offence in every match that it plays."""
        player.leaving = True
        self.conduct.offence(player, kind, text)
        if self.players.get(player.name) is player:
            del self.players[player.name]

    def _grace_over(self, player: Player, secret: str) -> None:
        if player.connection is None and player.secret == secret:
            grace_ms = self.limits.grace_ms
            text = f"lost its connection and did not come back within {grace_ms} ms"
            self._dismiss(player, Ending.DISCONNECT, text)
            self.on_change()

    def _failed(self, connection: Connection) -> None:
        """An error of the arena's own, met while it served this connection: never charged to a bot (J5)."""
        player = self._of.get(connection)
        if player is not None:
            for chair in list(player.chairs.values()):
                self.conduct.void(chair.table, FAULT)
            player.flush(self._loop.time())
        connection.close(CLOSE_CRASHED, "the arena failed; come back")

    def _mark_dirty(self, player: Player) -> None:
        if not self._dirty:
            self._loop.call_soon(self._flush)
        self._dirty.append(player)

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, []
        now = self._loop.time()
        for player in dirty:
            try:
                player.flush(now)
            except Exception:
                log.exception("the arena failed to write to %s", player.name)
                if player.connection is not None:
                    self._failed(player.connection)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                self.conduct.tick()
            except Exception:  # without the tick no deadline would be kept any more
                log.exception("the arena failed at a deadline")
