"""The players of an arena: all bots that are connected or may come back.

`BotSessions` finds and counts them, `Outboxes` writes to them, and `Pings` checks whether they are
still there. Counts are updated as players come and go, so a join costs the same however many there
are.

The processes of submissions (`process_name`) are found only by their own names. They are not
counted or listed, they take nobody's name, and only the code that started them seats them.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, ValuesView
from itertools import chain
from typing import TypeAlias

from arena.games.names import Spellings, alike, is_process, owner_of
from arena.referee.bot_session import BotSession

__all__ = ["BotSessions", "Outboxes", "Pings"]

log = logging.getLogger(__name__)

_AT_ONCE = 64  # probes per tick: after a stall of the arena thousands are due
_LEAST_S = 0.01  # between two probes of the same player

_Key: TypeAlias = tuple[str, str]
"""What players are counted by: `game`, `token` or `address`, and its value."""


class BotSessions(Mapping[str, BotSession]):
    """Players by name, in the order of arrival; processes of submissions are not listed."""

    def __init__(self) -> None:
        self.spellings = Spellings()  # used by players, and by others that were added
        self.here = 0  # how many players are connected
        self._by_name: dict[str, BotSession] = {}
        self._processes: dict[str, BotSession] = {}
        self._by_game: dict[str, dict[str, BotSession]] = {}
        self._owners: Counter[tuple[str, str]] = Counter()  # the number of bots by game and owner
        self._unseen: dict[str, dict[str, BotSession]] = {}
        self._seen: dict[str, frozenset[BotSession]] = {}
        self._sessions: dict[str, BotSession] = {}
        self._entries: dict[BotSession, tuple[tuple[_Key, ...], tuple[str, ...]]] = {}
        self._counts: Counter[_Key] = Counter()
        self._moved: dict[str, None] = {}
        self._is_anonymous: Callable[[BotSession], bool] = lambda player: player.token is None

    def __getitem__(self, name: str) -> BotSession:
        return self._by_name[name] if name in self._by_name else self._processes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name or name in self._processes

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def values(self) -> ValuesView[BotSession]:
        """The players; faster than `Mapping.values`, which looks each of them up."""
        return self._by_name.values()

    def launched(self) -> Iterator[BotSession]:
        """The players that the arena has launched, processes of submissions included."""
        sessions = chain(self._by_name.values(), self._processes.values())
        return (session for session in sessions if session.process is not None)

    def like(self, name: str) -> BotSession | None:
        """The player with this name, or with one that looks like it."""
        return self.get(name) or self.get(self.spellings.of(name))

    # --- who comes and goes ---

    def add(self, player: BotSession) -> None:
        """Add a player, replacing any player of the same name."""
        if is_process(player.name):
            self._processes[player.name] = player
            return
        if (former := self.get(player.name)) is not None:
            self.remove(former)
        self.spellings.add(player.name)
        self._by_name[player.name] = player
        for game in player.games:
            self._by_game.setdefault(game, {})[player.name] = player
            self._owners[game, alike(owner_of(player.name))] += 1
        player.on_link = self.note
        self.note(player)

    def remove(self, player: BotSession) -> None:
        if self._processes.pop(player.name, None) is not None:
            return
        self.spellings.remove(player.name)
        del self._by_name[player.name]
        for game in player.games:
            del self._by_game[game][player.name]
            owner = game, alike(owner_of(player.name))
            self._owners[owner] -= 1
            if not self._owners[owner]:
                del self._owners[owner]
        player.on_link = lambda player: None
        self.note(player)

    def note(self, player: BotSession) -> None:
        """Update the counts for a player that was added, removed, connected or disconnected."""
        if is_process(player.name):
            return
        keys, sessions = self._entries.pop(player, ((), ()))
        self.here -= bool(keys)
        for key in keys:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
        for session in sessions:
            self._sessions.pop(session, None)
        self._moved[player.name] = None
        is_known = self.get(player.name) is player
        is_here = is_known and player.connection is not None
        for game in player.games:
            if is_here and player.takes_matches and player not in self._seen.get(game, ()):
                self._unseen.setdefault(game, {})[player.name] = player
            elif self._unseen.get(game, {}).get(player.name) is player:
                del self._unseen[game][player.name]
        if not is_known:
            return
        keys = tuple(self._keys(player)) if is_here else ()
        self.here += bool(keys)
        self._counts.update(keys)
        sessions = tuple(map(_key, player.sessions))
        self._sessions.update(dict.fromkeys(sessions, player))
        self._entries[player] = keys, sessions

    def take_moved(self) -> tuple[str, ...]:
        """The names of the players noted since the last call."""
        moved, self._moved = self._moved, {}
        return tuple(moved)

    def recount(self, is_anonymous: Callable[[BotSession], bool]) -> None:
        """From now on, count the players for which this is true by address."""
        self._is_anonymous = is_anonymous
        for player in self.values():
            self.note(player)

    # --- what others ask; counts are of connected players ---

    def with_token(self, token: str) -> int:
        return self._counts["token", token]

    def anonymous(self, address: str) -> int:
        return self._counts["address", address]

    def count(self, game: str) -> int:
        return self._counts["game", game]

    def of_game(self, game: str) -> Collection[BotSession]:
        """The players of a game in the order of arrival, connected or not."""
        return self._by_game.get(game, {}).values()

    def has_owner(self, game: str, owner: str) -> bool:
        """Whether an owner has a player of a game, connected or not."""
        return (game, alike(owner)) in self._owners

    def of_session(self, secret: str) -> BotSession | None:
        """The player whose session this may be; confirm it with its `is_session`."""
        return self._sessions.get(_key(secret))

    def unseen(self, game: str) -> Collection[str]:
        """The connected players of a game that were not in the latest call of `see`."""
        return self._unseen.get(game, {}).keys()

    def see(self, game: str, names: Collection[str]) -> None:
        """Note the players in a competition of a game; its other players are `unseen`."""
        seen = frozenset(self._by_name[name] for name in names)
        self._seen[game] = seen
        self._unseen[game] = {
            player.name: player
            for player in self.of_game(game)
            if player.takes_matches and player not in seen
        }

    # --- within ---

    def _keys(self, player: BotSession) -> Iterator[_Key]:
        assert player.connection is not None, "it is connected"
        if player.takes_matches:
            yield from (("game", game) for game in player.games)
        if player.token is not None:
            yield "token", player.token
        if self._is_anonymous(player):
            yield "address", player.connection.address


class Outboxes:
    """The outboxes of all players of a gateway, written one tick of the loop after they were used.

    So a frame carries as much as possible, and each connection has one writer.

    `on_here` is called with a player that has been told all that it had missed. `on_done` is called
    with one that has been told the end of its last match and takes no other (J10). `on_failed` is
    called with one to which the arena could not write, by its own fault.
    """

    def __init__(
        self,
        lag_s: Callable[[float], float],
        on_here: Callable[[BotSession], None],
        on_done: Callable[[BotSession], None],
        on_failed: Callable[[BotSession], None],
    ) -> None:
        self._lag_s = lag_s
        self._on_here = on_here
        self._on_done = on_done
        self._on_failed = on_failed
        self._dirty: dict[BotSession, None] = {}
        self._loop = asyncio.get_running_loop()

    def mark_dirty(self, player: BotSession) -> None:
        if not self._dirty:
            self._loop.call_soon(self.flush)
        self._dirty[player] = None

    def flush(self) -> None:
        dirty, self._dirty = self._dirty, {}
        now = self._loop.time()
        lag_s = self._lag_s(now)
        for player in dirty:
            was_away = player.is_away
            try:
                player.flush(now, lag_s)
                if was_away and not player.is_away:
                    self._on_here(player)
                if player.session.finishing and not player.chairs:
                    self._on_done(player)
            except Exception:
                log.exception("the arena failed to write to %s", player.public_name)
                self._on_failed(player)

    def flush_now(self, player: BotSession) -> None:
        """Write a player's outbox before its connection is closed."""
        now = self._loop.time()
        player.flush(now, self._lag_s(now))


class Pings:
    """When each player is probed; a tick costs only the probes that are due.

    `lag_s` returns the arena's total lag up to a time of the loop's clock.
    """

    def __init__(self, lag_s: Callable[[float], float]) -> None:
        self._lag_s = lag_s
        self._heap: list[tuple[float, int, BotSession]] = []
        self._due: dict[BotSession, float] = {}
        self._entries = 0  # breaks ties in the heap

    def add(self, player: BotSession, now: float) -> None:
        """Probe a player at `now`, then as often as `BotSession.probe` says."""
        self._due[player] = now
        self._entries += 1
        heapq.heappush(self._heap, (now, self._entries, player))

    def tick(self, now: float) -> Iterator[tuple[BotSession, float]]:
        """Probe the players that are due; yield those that must be gone, and since when."""
        lag_s = self._lag_s(now)
        for _ in range(_AT_ONCE):
            if not self._heap or self._heap[0][0] > now:
                return
            due, _, player = heapq.heappop(self._heap)
            if self._due.get(player) != due:
                continue  # it has come back meanwhile and has another entry
            del self._due[player]
            at = None if player.leaving else player.probe(now, lag_s)
            if at is not None and at < math.inf:
                self.add(player, max(at, now + _LEAST_S))
            elif at is None and not player.leaving:
                yield player, player.unanswered_since


def _key(secret: str) -> str:
    """The hash for finding a session: the time of a lookup reveals nothing of the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
