"""Lost connections: how long a bot may be away, and what follows if it does not come back (J7).

A connection is lost from its close, or since the peer's machine acknowledges nothing, until the
pending questions are written again (`arena/referee/bot_session.py`). Meanwhile the clocks of its
seats stand and the grace of every match that it plays is used up (`arena/referee/seat.py`); the
timers here end the match when it is over. A bot without a match keeps its session for as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from arena.engine.verdict import Finding
from arena.referee.timers import Timers
from protocol.messages import Ending, Limits, Mechanism

if TYPE_CHECKING:
    from arena.referee.bot_session import BotSession
    from arena.referee.referee import Referee

__all__ = ["ConnectionLoss", "Losses"]


@dataclass(slots=True, eq=False)
class ConnectionLoss:
    """A lost connection, until the pending questions are written again (J7)."""

    since: float  # on the loop's clock
    lag_s: float  # the arena's total lag at that moment
    is_silent: bool  # it is open, but the peer's machine acknowledges nothing
    by_arena: bool  # a stall of the arena caused it: no seat's grace is used up


class Losses:
    """The lost connections of one gateway.

    A player without a match has the `grace_ms` of `limits`. `on_gone` is called with a player that
    has not come back in time, `on_back` with one that was silent and is heard again.
    """

    def __init__(
        self,
        referee: Referee,
        limits: Limits,
        clock: Callable[[], float],
        timers: Timers,
        on_gone: Callable[[BotSession, Finding], None],
        on_back: Callable[[BotSession], None],
    ) -> None:
        self._referee = referee
        self._grace_ms = limits.grace_ms
        self._timers = timers
        self._on_gone = on_gone
        self._on_back = on_back
        self._clock = clock

    def begin(self, player: BotSession, since: float) -> None:
        """A connection is lost, or silent; a known loss keeps its beginning if it is closed now."""
        is_new = player.loss is None
        now = self._clock()
        lag = self._referee.lag
        by_arena = lag.follows_stall(now)
        # A stall counts as the arena's lag: a loss during it begins when it ends.
        loss = player.connection_lost(now if by_arena else since, lag.total_s(now), by_arena)
        if is_new:
            self._wait(player, loss)

    def end_silence(self, player: BotSession, now: float) -> None:
        """The peer of a silent connection is heard again; nothing that was sent is lost."""
        if player.loss is not None and player.loss.is_silent:
            player.connection_regained(now, self._referee.lag.total_s(now))
            self._on_back(player)

    def left_s(self, player: BotSession) -> float:
        """How long a lost player may still come back: its name is reserved for so long."""
        if player.loss is None:
            return self._grace_ms / 1000
        return max(0.0, *self._left_s(player, player.loss))

    def _wait(self, player: BotSession, loss: ConnectionLoss) -> None:
        """Wait until the first grace is over: a seat's, or the session's."""
        session_s, *left_s = self._left_s(player, loss)
        if session_s > 0 or not left_s:
            left_s.append(session_s)
        self._timers.after(max(0.0, min(left_s)), partial(self._over, player, loss))

    def _left_s(self, player: BotSession, loss: ConnectionLoss) -> Iterator[float]:
        """What is left of the session's grace, and then of each seat's."""
        now = self._clock()
        lag_s = self._referee.lag.total_s(now)
        yield self._grace_ms / 1000 - (now - loss.since) + lag_s - loss.lag_s
        for chair in player.chairs.values():
            yield chair.grace_left_s(loss, now, lag_s)

    def _over(self, player: BotSession, loss: ConnectionLoss) -> None:
        """A grace is over: the player is out of those matches, and gone if it has no others."""
        now = self._clock()
        connection = player.connection
        if loss.is_silent and connection and connection.silent_since(now) is None:
            self.end_silence(player, now)
        if player.loss is not loss or player.leaving:
            return
        session_s, *left_s = self._left_s(player, loss)
        chairs = tuple(player.chairs.values())
        over = [chair for chair, left in zip(chairs, left_s, strict=True) if left <= 0]
        grace_ms = over[0].limits.grace_ms if over else self._grace_ms
        text = f"lost its connection and did not come back within {grace_ms:,} ms"
        if over:
            text += " in all"
        finding = Finding(kind=Ending.DISCONNECT, text=text, mechanism=Mechanism.SESSION)
        if session_s > 0 or len(over) < len(chairs):
            tables = [chair.table for chair in over]
            self._referee.offence(player, finding, tables)
            self._wait(player, loss)
        else:
            self._on_gone(player, finding)
