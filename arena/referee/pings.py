"""Pings: how quick each bot's link is, whether somebody is there, and whose link is looked at next.

`LinkProbe` says what a look at one bot means, and `Pings` when each is due: one heap, so that a tick costs what is due and not what is
connected. What a link's floor is worth is in `arena/referee/clock.py`.
"""

from __future__ import annotations

import heapq
import math
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arena.referee.bot_session import BotSession

__all__ = ["LinkProbe", "Pings"]

_PING_S = 5.0  # between pings once the link is known; before that one follows the other
_PING_MOST_S = 20.0  # between pings in the end: each waits twice as long as the last
_LOOK_S = 2.0  # between pings while a bot thinks for longer than is free (J7)
_LOOK_PINGS = 16  # that may be unanswered, as one who thinks reads nothing
_SILENCE_S = 35.0
"""An idle bot that has not answered a ping for so long is not there: with the longest wait for a ping it is missed within a minute."""
_SOON_S = 0.25  # until a bot is looked at again whose link is not known
_AT_ONCE = 64  # looks in a tick: after a stall of the arena thousands are due
_LEAST_S = 0.01  # between two looks at the same player


class LinkProbe:
    """Measures the link of one bot over one connection, and sees whether somebody is there."""

    __slots__ = (
        "_asks_at_ping",
        "_asks_seen",
        "_due",
        "_look_pings",
        "_looked_at",
        "_ping",
        "_player",
        "_wait_s",
    )

    def __init__(self, player: BotSession) -> None:
        self._player = player
        self._ping: tuple[bytes, float, float] | None = None
        self._asks_at_ping = self._asks_seen = 0  # the questions put to it by then
        self._due = 0.0
        self._wait_s = _PING_S
        self._look_pings: tuple[bytes, ...] = ()
        self._looked_at = 0.0  # whether the peer's machine is there

    def probe(self, now: float, lag_s: float = 0.0) -> float | None:
        """Measure the link if the bot is idle, and see that somebody is there.

        Args:
            now: the time.
            lag_s: how late the arena has been in all up to now: meanwhile nobody can have been heard.

        Returns:
            When to look again, never if there is nothing to look at; None if it has been silent for so long that it cannot be there.
        """
        player = self._player
        connection, is_known = player.connection, player.link.is_known
        if connection is None or not connection.has_link:
            return math.inf
        soon = now + (self._wait_s if is_known else _SOON_S)
        if player.pending or not player.is_caught_up:
            self._due = soon if is_known else now
            if self._ping is not None:  # who thinks may be silent: that is the clock's
                self._ping = self._ping[0], now, lag_s
            return soon
        if self._ping is None and now >= self._due:
            payload = secrets.token_bytes(16)
            self._ping = payload, now, lag_s
            self._asks_at_ping = self._asks_seen = player.asks
            connection.ping(payload)
        if self._ping is None:
            return self._due
        if self._asks_seen != player.asks:  # it was asked, and may have thought until now
            self._asks_seen = player.asks
            self._ping = self._ping[0], now, lag_s
        _, sent_at, lag_then_s = self._ping
        left_s = _SILENCE_S - (now - sent_at - (lag_s - lag_then_s))
        return min(soon, now + left_s) if left_s > 0 else None

    def look(self, now: float) -> float | None:
        """Look whether the peer's machine is there while the bot thinks; since when it is silent, if it is (J7).

        A ping goes out every `_LOOK_S`, so that there is something to be acknowledged: by the kernel, whatever the bot does.
        """
        connection = self._player.connection
        if connection is None or not connection.has_link:
            return None
        silent_since = connection.silent_since(now)
        if self._player.loss is None and now - self._looked_at >= _LOOK_S:
            self._looked_at = now
            payload = secrets.token_bytes(16)
            self._look_pings = (*self._look_pings, payload)[-_LOOK_PINGS:]
            connection.ping(payload)
        return silent_since

    def ponged(self, payload: bytes, now: float) -> bool:
        """A pong came: whether it answers our ping. It counts if the bot had nothing else to do meanwhile."""
        player = self._player
        if payload in self._look_pings:
            since = self._look_pings.index(payload) + 1
            self._look_pings = self._look_pings[since:]
            player.event = ""
            return True
        if self._ping is None or payload != self._ping[0]:
            return False
        player.note_welcome_arrived()  # it was sent before the ping
        player.event = ""
        sent_at = self._ping[1]
        self._ping = None
        if self._asks_at_ping == player.asks:
            player.link.measured((now - sent_at) * 1000)
        self._due = now
        if player.link.is_known:
            self._due += self._wait_s
            self._wait_s = min(2 * self._wait_s, _PING_MOST_S)
        return True


class Pings:
    """The looks that are due, of all players with a connection.

    Args:
        lag_s: how late the arena has been in all up to a time of the loop's clock.
    """

    def __init__(self, lag_s: Callable[[float], float]) -> None:
        self._lag_s = lag_s
        self._heap: list[tuple[float, int, BotSession]] = []
        self._due: dict[BotSession, float] = {}
        self._entries = 0  # breaks ties in the heap

    def add(self, player: BotSession, now: float) -> None:
        """A player has a new connection: look at it at once, then as often as it says."""
        self._due[player] = now
        self._entries += 1
        heapq.heappush(self._heap, (now, self._entries, player))

    def tick(self, now: float) -> Iterator[BotSession]:
        """Look at those that are due; yields those that cannot be there any more."""
        lag_s = self._lag_s(now)
        for _ in range(_AT_ONCE):
            if not self._heap or self._heap[0][0] > now:
                return
            due, _, player = heapq.heappop(self._heap)
            if self._due.get(player) != due:
                continue  # it has come back meanwhile, and stands elsewhere
            del self._due[player]
            at = None if player.leaving else player.link_probe.probe(now, lag_s)
            if at is not None and at < math.inf:
                self.add(player, max(at, now + _LEAST_S))
            elif at is None and not player.leaving:
                yield player
