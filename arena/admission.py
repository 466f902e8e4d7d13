"""Who may come in: what a `hello` needs to be accepted, and who it turns out to be.

Nothing here sends or closes anything; whoever is not welcome is told why by the gateway.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import TypeAlias

from arena.games import GAMES
from arena.player import Player, Process
from protocol.messages import VERSION, Hello, Limits

__all__ = ["Admission", "Known", "Unwelcome"]


Known: TypeAlias = tuple[str, Process | None]
"""What a bot is called, and its process if the arena has launched it."""


class Unwelcome(Exception):
    """A `hello` cannot be accepted: a code for programs, and a sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Admission:
    """The rules of the door.

    Args:
        players: those that are here or may come back, by name; the gateway keeps them.
        limits: of connections.
    """

    def __init__(self, players: Mapping[str, Player], limits: Limits) -> None:
        self._players = players
        self._limits = limits
        self._expected: dict[bytes, Known] = {}
        self._used: set[bytes] = set()
        self._ours: set[str] = set()

    def expect(self, name: str, token: str, process: Process | None = None) -> None:
        """Keep a name for whoever says `hello` with a token, once; nobody else gets it meanwhile.

        Args:
            name: what the bot will be called.
            token: a secret.
            process: the bot's, if the arena has launched it.
        """
        self._expected[_hashed(token)] = (name, process)
        self._ours.add(name)

    def forget(self, name: str, *, keeps_name: bool = False) -> None:
        """Nobody is expected under that name any more; who is known by its connection keeps it."""
        if not keeps_name:
            self._ours.discard(name)
        for token, (expected, _) in tuple(self._expected.items()):
            if expected == name:
                del self._expected[token]

    def resumed(self, hello: Hello) -> Player | None:
        """Whose session a bot wants to go on with; None if it does not.

        Raises:
            Unwelcome: there is no such session, or it began with another token.
        """
        if hello.resume is None:
            return None
        given = hello.resume.encode()
        for player in self._players.values():
            known = secrets.compare_digest(player.secret.encode(), given)
            names = (player.name, player.own_name)
            if known and player.token == hello.token and hello.name in names:
                return player
        raise Unwelcome("session", "no such session to resume; say hello without it")

    def admitted(
        self, hello: Hello, known: Known | None = None, address: str = ""
    ) -> Known:
        """What a new bot is called, and its process if it is ours.

        Args:
            hello: what it said.
            known: who it is, if its connection leaves no doubt.
            address: where it comes from.

        Raises:
            Unwelcome: another version, an unknown game, a name that is taken, or too many with its token or from its address.
        """
        if hello.protocol != VERSION:
            raise Unwelcome(
                "version", f"expected protocol {VERSION}, got {hello.protocol}"
            )
        unknown = sorted(set(hello.games) - set(GAMES))
        if unknown:
            some = ", ".join(GAMES)
            raise Unwelcome(
                "games", f"unknown game {unknown[0]!r}; expected some of: {some}"
            )
        if known is not None:
            return known
        if hello.token is not None:
            token = _hashed(hello.token)
            if token in self._used:
                text = "this token was for once; go on with `resume`"
                raise Unwelcome("token", text)
            if token in self._expected:
                self._used.add(token)
                return self._expected.pop(token)
            self._check_token(hello.token)
        else:
            self._check_address(address)
        self._check_name(hello.name, hello.token)
        return hello.name, None

    def _check_token(self, token: str) -> None:
        here = sum(
            player.token == token and player.connection is not None
            for player in self._players.values()
        )
        if here >= self._limits.per_token:
            raise Unwelcome(
                "token",
                f"expected at most {self._limits.per_token} connections with one token",
            )

    def _check_address(self, address: str) -> None:
        """A whole class may sit behind one address; whoever has a token is not counted."""
        here = sum(
            player.token is None
            and player.connection is not None
            and player.connection.address == address
            for player in self._players.values()
        )
        if here >= self._limits.per_address:
            raise Unwelcome(
                "address",
                f"expected at most {self._limits.per_address} connections without a token from one address",
            )

    def _check_name(self, name: str, token: str | None) -> None:
        if name in self._ours:
            raise Unwelcome(
                "name",
                f"{name!r} is kept for a bot that the arena has launched, which says its ARENA_TOKEN as `token`",
            )
        present = self._players.get(name)
        if present is None:
            return
        if present.connection is not None:
            here = f"a bot named {name!r} is here already"
            raise Unwelcome("name", f"{here}; choose another name")
        is_other = present.token != token or present.process is not None
        if present.chairs or is_other:  # else it has nothing to lose, and may be this
            away = f"a bot named {name!r} has lost its connection"
            limit = f"{self._limits.grace_ms} ms to come back with its session"
            raise Unwelcome(
                "name", f"{away} and has {limit}; choose another name or wait"
            )


def _hashed(token: str) -> bytes:
    """What is kept of a token: enough to know it again."""
    return hashlib.sha256(token.encode()).digest()
