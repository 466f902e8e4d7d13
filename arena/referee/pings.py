"""When each link is looked at next: one heap, so that a tick costs what is due and not what is connected.

What a look means is the player's to say (`Player.probe`); here is only when.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator

from arena.referee.bot_session import Player

__all__ = ["Pings"]

_AT_ONCE = 64  # looks in a tick: after a stall of the arena thousands are due
_LEAST_S = 0.01  # between two looks at the same player


class Pings:
    """The looks that are due, of all players with a connection.

    Args:
        lag_s: how late the arena has been in all up to a time of the loop's clock.
    """

    def __init__(self, lag_s: Callable[[float], float]) -> None:
        self._lag_s = lag_s
        self._heap: list[tuple[float, int, Player]] = []
        self._due: dict[Player, float] = {}
        self._entries = 0  # breaks ties in the heap

    def add(self, player: Player, now: float) -> None:
        """A player has a new connection: look at it at once, then as often as it says."""
        self._due[player] = now
        self._entries += 1
        heapq.heappush(self._heap, (now, self._entries, player))

    def tick(self, now: float) -> Iterator[Player]:
        """Look at those that are due; yields those that cannot be there any more."""
        lag_s = self._lag_s(now)
        for _ in range(_AT_ONCE):
            if not self._heap or self._heap[0][0] > now:
                return
            due, _, player = heapq.heappop(self._heap)
            if self._due.get(player) != due:
                continue  # it has come back meanwhile, and stands elsewhere
            del self._due[player]
            at = None if player.leaving else player.probe(now, lag_s)
            if at is not None and at < math.inf:
                self.add(player, max(at, now + _LEAST_S))
            elif at is None and not player.leaving:
                yield player
