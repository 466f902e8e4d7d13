"""Pings: how quick each bot's link is, and whether the bot is still there.

`LinkProbe` probes one bot; `Pings` has a heap of the probes that are due, so that a tick costs what
is due and not what is connected. What a link's floor is worth is in `arena/referee/clock.py`.
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
_LOOK_PINGS = 16  # that may be unanswered, as a bot that thinks may read nothing
# An idle bot that has not answered a ping for so long is gone: with `_PING_MOST_S` before it, that
# is noticed within a minute.
_SILENCE_S = 35.0
_SOON_S = 0.25  # between probes of a bot whose link is not known
_AT_ONCE = 64  # probes in a tick: after a stall of the arena thousands are due
_LEAST_S = 0.01  # between two probes of the same player


class LinkProbe:
    """Measures the link of one bot over one connection, and notices when nobody is there."""

    def __init__(self, player: BotSession) -> None:
        self._player = player
        self._ping: tuple[bytes, float, float] | None = None  # payload, sent at, lag then
        self._asks_at_ping = self._asks_seen = 0  # the questions put to it by then
        self._due = 0.0
        self._wait_s = _PING_S
        self._look_pings: tuple[bytes, ...] = ()  # sent while it thinks
        self._looked_at = 0.0

    @property
    def unanswered_since(self) -> float:
        """When the ping was sent that it has not answered; only after `probe` returned None."""
        assert self._ping is not None, "it was silent for too long"
        return self._ping[1]

    def probe(self, now: float, lag_s: float = 0.0) -> float | None:
        """Measure the link if the bot is idle, and check that it answers.

        `lag_s` is the arena's total lag by `now`, which does not count as silence of the bot.
        Returns when to probe again, infinity for never; None if the bot was silent for too long.
        """
        player = self._player
        connection, is_known = player.connection, player.link.is_known
        if connection is None or not connection.has_link:
            return math.inf
        soon = now + (self._wait_s if is_known else _SOON_S)
        if player.pending or not player.is_caught_up:
            self._due = soon if is_known else now
            if self._ping is not None:  # a bot that thinks may be silent, as its clock runs
                self._ping = self._ping[0], now, lag_s
            return soon
        if self._ping is None and now >= self._due:
            payload = secrets.token_bytes(16)
            self._ping = payload, now, lag_s
            self._asks_at_ping = self._asks_seen = player.asks
            connection.ping(payload)
        if self._ping is None:
            return self._due
        if self._asks_seen != player.asks:  # it was asked meanwhile, and may have thought until now
            self._asks_seen = player.asks
            self._ping = self._ping[0], now, lag_s
        _, sent_at, lag_then_s = self._ping
        left_s = _SILENCE_S - (now - sent_at - (lag_s - lag_then_s))
        return min(soon, now + left_s) if left_s > 0 else None

    def look(self, now: float) -> float | None:
        """Since when the machine of a bot that thinks has been silent; None if it is not (J7).

        A ping goes out every `_LOOK_S`: the kernel acknowledges it, whatever the bot does.
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

    def ask(self, now: float) -> None:
        """Ping it, whatever it does: its seat's fate depends on whether it is here (J9)."""
        self._looked_at = -math.inf
        self.look(now)

    def ponged(self, payload: bytes, now: float) -> bool:
        """Whether a pong answers our ping; it is measured if the bot had nothing else to do."""
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
    """All players' probes; `lag_s` gives the arena's total lag up to a time of the loop's clock."""

    def __init__(self, lag_s: Callable[[float], float]) -> None:
        self._lag_s = lag_s
        self._heap: list[tuple[float, int, BotSession]] = []
        self._due: dict[BotSession, float] = {}
        self._entries = 0  # breaks ties in the heap

    def add(self, player: BotSession, now: float) -> None:
        """Probe a player at `now`, then as often as its `LinkProbe` says."""
        self._due[player] = now
        self._entries += 1
        heapq.heappush(self._heap, (now, self._entries, player))

    def tick(self, now: float) -> Iterator[tuple[BotSession, float]]:
        """Probe those that are due; yields those that cannot be there any more, and since when."""
        lag_s = self._lag_s(now)
        for _ in range(_AT_ONCE):
            if not self._heap or self._heap[0][0] > now:
                return
            due, _, player = heapq.heappop(self._heap)
            if self._due.get(player) != due:
                continue  # it has come back meanwhile and has another entry
            del self._due[player]
            at = None if player.leaving else player.link_probe.probe(now, lag_s)
            if at is not None and at < math.inf:
                self.add(player, max(at, now + _LEAST_S))
            elif at is None and not player.leaving:
                yield player, player.link_probe.unanswered_since
