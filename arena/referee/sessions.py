"""The players of an arena: everybody who is connected or may come back, and the figures that others ask of all of them.

Nothing here looks at all players to answer: counts and lists are kept up to date as somebody comes and goes, so that a join costs the
same however many are there.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, ValuesView
from typing import TypeAlias

from arena.engine.names import Spellings
from arena.referee.bot_session import BotSession

__all__ = ["BotSessions"]

_Key: TypeAlias = tuple[str, str]
"""What is counted: `game`, `token` or `address`, and which."""


class BotSessions(Mapping[str, BotSession]):
    """Players by name, in the order in which they came.

    Attributes:
        spellings: the names that are in use: of those who are here, and of whoever else is told to it.
        here: how many are connected.
    """

    def __init__(self) -> None:
        self.spellings = Spellings()
        self.here = 0
        self._by_name: dict[str, BotSession] = {}
        self._by_game: dict[str, dict[str, BotSession]] = {}
        self._unseen: dict[str, dict[str, BotSession]] = {}
        self._seen: dict[str, frozenset[BotSession]] = {}
        self._sessions: dict[str, BotSession] = {}
        self._entries: dict[BotSession, tuple[tuple[_Key, ...], tuple[str, ...]]] = {}
        self._counts: Counter[_Key] = Counter()
        self._moved: dict[str, None] = {}
        self._is_anonymous: Callable[[BotSession], bool] = lambda one: one.token is None

    def __getitem__(self, name: str) -> BotSession:
        """The player of exactly that name."""
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        """Whether somebody has exactly that name."""
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._by_name)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_name)

    def values(self) -> ValuesView[BotSession]:
        """All of them."""
        return self._by_name.values()

    def like(self, name: str) -> BotSession | None:
        """The player of that name, or of one that looks like it."""
        return self.get(name) or self.get(self.spellings.of(name))

    # --- who comes and goes ---

    def add(self, player: BotSession) -> None:
        """Somebody new; who had the name before is gone."""
        if (former := self.get(player.name)) is not None:
            self.remove(former)
        self.spellings.add(player.name)
        self._by_name[player.name] = player
        for game in player.games:
            self._by_game.setdefault(game, {})[player.name] = player
        player.on_link = self.note
        self.note(player)

    def remove(self, player: BotSession) -> None:
        """Somebody has gone for good."""
        self.spellings.remove(player.name)
        del self._by_name[player.name]
        for game in player.games:
            del self._by_game[game][player.name]
        player.on_link = lambda player: None
        self.note(player)

    def note(self, player: BotSession) -> None:
        """Somebody has come or gone, has lost its connection, or hears again what is said: count it as it is now."""
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
            if is_here and player not in self._seen.get(game, ()):
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
        """The names of those who have been noted since this was asked last."""
        moved, self._moved = self._moved, {}
        return tuple(moved)

    def recount(self, is_anonymous: Callable[[BotSession], bool]) -> None:
        """From now on those of whom this is true are counted by address."""
        self._is_anonymous = is_anonymous
        for player in self.values():
            self.note(player)

    # --- what others ask ---

    def with_token(self, token: str) -> int:
        """How many are connected with a token."""
        return self._counts["token", token]

    def anonymous(self, address: str) -> int:
        """How many are connected from an address, of those who are counted by it."""
        return self._counts["address", address]

    def count(self, game: str) -> int:
        """How many are connected and play a game."""
        return self._counts["game", game]

    def of_game(self, game: str) -> Collection[BotSession]:
        """All who play a game, in the order in which they came, those too who have lost their connections."""
        return self._by_game.get(game, {}).values()

    def of_session(self, secret: str) -> BotSession | None:
        """Whose session may be that one; whether it is, the player says.

        A hash is looked up, as nobody can choose a guess by its hash: how long that takes tells nothing of a secret.
        """
        return self._sessions.get(_key(secret))

    def unseen(self, game: str) -> Collection[str]:
        """Who is connected, plays a game, and was not among those `see` was told of last."""
        return self._unseen.get(game, {}).keys()

    def see(self, game: str, names: Collection[str]) -> None:
        """These take part in what is played now."""
        seen = frozenset(self._by_name[name] for name in names)
        self._seen[game] = seen
        self._unseen[game] = {
            player.name: player
            for player in self.of_game(game)
            if player.connection is not None and player not in seen
        }

    # --- within ---

    def _keys(self, player: BotSession) -> Iterator[_Key]:
        """What a connected player counts for."""
        assert player.connection is not None, "it is connected"
        yield from (("game", game) for game in player.games)
        if player.token is not None:
            yield "token", player.token
        if self._is_anonymous(player):
            yield "address", player.connection.address


def _key(secret: str) -> str:
    """A session under which it is looked up: how long that takes tells nothing of the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
