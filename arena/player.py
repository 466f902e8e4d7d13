"""A bot as the server sees it: its session, its connection if it has one, its chairs, and what waits to be sent to it."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from arena.connection import Connection
from protocol.codec import Encoding, encode, join
from protocol.errors import OutOfTurn
from protocol.messages import ArenaMessage, Hello, Over
from protocol.session import Session

if TYPE_CHECKING:
    from arena.conduct import Chair

__all__ = ["Player"]

_FRAME_BYTES = 256 * 1024
"""Batches are cut there: many WebSocket libraries refuse more than 1 MiB, and a slow bot can start on the first."""


class Player:
    """One bot, from its first `hello` until it is gone for good; it may lose its connection in between.

    Attributes:
        name: what it calls itself; unique among those present.
        games: what it plays.
        tables: how many matches it takes at once.
        chairs: by the id that `match` gave them, those that are not over.
        pending: how many questions it has not answered yet.
        last_answer: when its latest answer came, on the loop's clock; a bot is one worker, however many tables it has.
    """

    def __init__(
        self,
        hello: Hello,
        connection: Connection,
        most_tables: int,
        mark_dirty: Callable[[Player], None],
    ) -> None:
        self.name = hello.name
        self.games = frozenset(hello.games)
        self.tables = min(hello.tables, most_tables)
        self.secret = new_secret()
        self.session = Session()
        self.connection: Connection | None = connection
        self.chairs: dict[str, Chair] = {}
        self.pending = 0
        self.last_answer = 0.0
        self.lost_at: float | None = None
        self.leaving = False
        self._batch = hello.batch
        self._encoding = connection.encoding or Encoding.JSON
        self._outbox: list[bytes] = []
        self._asked: list[Chair] = []
        self._overs: deque[Over] = deque(maxlen=self.tables)
        self._mark_dirty = mark_dirty

    @property
    def is_free(self) -> bool:
        """Whether another match can be opened with it now."""
        return (
            self.connection is not None
            and not self.leaving
            and len(self.chairs) < self.tables
        )

    def send(self, message: ArenaMessage) -> None:
        """Put a message into the outbox; without a connection it is for `repeat` to send it."""
        if type(message) is Over:
            self._overs.append(message)
        if self.connection is None:
            return
        try:
            self.session.note(message)
        except OutOfTurn as error:  # ours, not that of whoever's frame we are serving
            raise AssertionError(f"the arena may not say this now: {error}") from error
        if not self._outbox:
            self._mark_dirty(self)
        self._outbox.append(encode(message, self._encoding))

    def ask(self, chair: Chair) -> None:
        """Send a chair's question; its time starts when the frame is written."""
        assert chair.ask is not None, "only called with a question"
        self.send(chair.ask)
        if self.connection is not None:  # else its time has started already
            self._asked.append(chair)

    def flush(self, now: float) -> None:
        """Write what waits in the outbox, as few frames as possible."""
        outbox, self._outbox = self._outbox, []
        for chair in self._asked:
            chair.asked_at = now
        self._asked = []
        connection = self.connection
        if connection is None:
            return
        if not self._batch or len(outbox) == 1:
            for part in outbox:
                connection.send(part, self._encoding)
            return
        while outbox:
            size = count = 0
            while count < len(outbox) and size < _FRAME_BYTES:
                size += len(outbox[count])
                count += 1
            connection.send(join(outbox[:count], self._encoding), self._encoding)
            del outbox[:count]

    def disconnected(self, now: float) -> None:
        """The connection is gone; the chairs stay."""
        self.connection = None
        self.lost_at = now
        self._outbox = []
        self._asked = []
        self.session.disconnected()

    def resumed(self, hello: Hello, connection: Connection) -> None:
        """The same bot is back over another connection; its next messages are those that it may have missed."""
        self.connection = connection
        self.lost_at = None
        self.secret = new_secret()
        self._batch = hello.batch
        self._encoding = connection.encoding or Encoding.JSON

    def repeat(self) -> None:
        """After `resumed` and `welcome`: send again what the bot may not have got; it ignores what it has."""
        overs = tuple(self._overs)
        self._overs.clear()
        for over in overs:
            self.send(over)
        for chair in self.chairs.values():
            chair.repeat()


def new_secret() -> str:
    """128 random bits, for a session: whoever has them can go on in its place."""
    return secrets.token_hex(16)
