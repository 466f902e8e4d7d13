"""Decides whether a `hello` or `instruct` is accepted, under which name, and who a viewer is.

Nothing here sends or closes anything: the gateway tells a peer why it was refused. Tokens are
checked first. A peer that needs a valid token and has none always gets the same text. The text does
not depend on what the arena knows of its name, game or session, so it gives nothing away.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TypeAlias

from arena.games.catalogue import GAMES
from arena.games.names import Spellings, alike, owner_of
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.bot_session import BotSession
from arena.referee.sessions import BotSessions
from arena.referee.transport import LaunchedProcess
from arena.storage.tokens import Access, hashed
from protocol.errors import TOKEN_NEEDED
from protocol.messages import VERSION, Hello, Instruct, Limits

__all__ = ["GUEST", "Admission", "Known", "Unwelcome"]

GUEST = "guest-"
"""Prefix of the one-time tokens for people at the page; it selects a refusal text for people."""

Known: TypeAlias = tuple[str, LaunchedProcess | None]
"""A bot's name, and its process if the arena has launched it."""


class Unwelcome(Exception):
    """A peer is refused, with a code for programs and a sentence for people."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Admission:
    """Decides who is admitted to `players`, the sessions that are connected or may be resumed.

    `access` is the roster; without it no name is reserved, and nobody can instruct. If
    `requires_token`, everybody needs a token, else only names on the roster do.
    """

    def __init__(
        self,
        players: BotSessions,
        limits: Limits,
        access: Access | None = None,
        requires_token: bool = False,
    ) -> None:
        self._players = players
        self._limits = limits
        self.requires_token = requires_token
        self._expected: dict[str, Known] = {}
        self._used: set[str] = set()
        self._ours: set[str] = set()  # folded names (`alike`) of launched bots
        # Returns how long a lost session may still be resumed; the gateway replaces it.
        self.left_s: Callable[[BotSession], float] = lambda _: limits.grace_ms / 1000
        self._set(access or Access())

    def expect(self, name: str, token: str, process: LaunchedProcess | None = None) -> None:
        """Reserve a name for the bot whose `hello` has this token, once, whatever name it says."""
        self._expected[hashed(token)] = (name, process)
        self._ours.add(alike(name))

    def forget(self, name: str, *, keeps_name: bool = False, token: str = "") -> None:
        """Stop expecting a bot of that name.

        With `keeps_name` the name stays reserved, as its bot is identified by its connection. If a
        person has left, `token` need no longer be remembered as used.
        """
        self._used.discard(hashed(token))
        if not keeps_name:
            self._ours.discard(alike(name))
        for key, (expected, _) in tuple(self._expected.items()):
            if expected == name:
                del self._expected[key]

    @property
    def has_roster(self) -> bool:
        return bool(self._access.names)

    def change(self, access: Access) -> tuple[tuple[BotSession, str, bool], ...]:
        """Take a new roster; return who may not stay, the reason, and whether it is out for good.

        A bot whose token or name was replaced may come back.
        """
        before = self._access.players
        self._set(access)
        gone = []
        for player in self._players.values():
            token = hashed(player.token or "")
            owner = self._owner(player.name)
            now = access.players.get(token)
            if token in before and now not in (None, before[token]):
                # The session began while the name was being changed.
                gone.append((player, f"its name on the roster is {now!r} now", False))
            elif token in before and now is None:
                was_replaced = before[token] in access.players.values()
                text = "replaced" if was_replaced else "revoked"
                gone.append((player, f"its token was {text}", not was_replaced))
            elif owner is not None and alike(player.name) not in self._ours and now != owner:
                gone.append((player, "its name is on the roster now", False))
        return tuple(gone)

    def instructs(self, message: Instruct) -> str:
        """Return the sender's name; raises `Unwelcome` for a wrong token or version."""
        name = self._access.instructors.get(hashed(message.token))
        if name is None:
            student = self._access.players.get(hashed(message.token))
            if student is None:
                raise Unwelcome("token", TOKEN_NEEDED)
            text = f"expected an instructor's token, got that of {student}"
            raise Unwelcome("token", f"{text}; `arena roster instructor` makes one")
        _check_version(message.protocol)
        return name

    def is_instructors(self, token: str) -> bool:
        return hashed(token) in self._access.instructors

    def viewer(self, token: str | None) -> Viewer:
        """Return the viewer with a token, or the public without one; `Unwelcome` if unknown."""
        if token is None:
            return Viewer()
        key = hashed(token)
        if (name := self._access.instructors.get(key)) is not None:
            return Viewer(ViewerKind.INSTRUCTOR, name)
        if (owner := self._access.players.get(key)) is not None:
            return Viewer(ViewerKind.OWNER, owner)
        raise Unwelcome("token", TOKEN_NEEDED)

    def check_guest(self, name: str, viewer: Viewer) -> None:
        """Raise `Unwelcome` if the name of a person at the page needs a token, or is taken."""
        owner = self.check_owner(name, viewer)
        _check_letters(name)
        self._check_name(self._spelled(name, owner), None, owner)

    def check_owner(self, name: str, viewer: Viewer) -> str | None:
        """Return the viewer's name if it is on the roster; `Unwelcome` if `name` needs a token."""
        is_unknown = self.requires_token and viewer.kind is ViewerKind.PUBLIC
        owner = viewer.name if viewer.kind is ViewerKind.OWNER else None
        if is_unknown or self._owner(name) not in (None, owner):
            raise Unwelcome("token", TOKEN_NEEDED)
        return owner

    def resumed(self, hello: Hello) -> BotSession | None:
        """Return the session that a `hello` resumes; None if it asks for a new one.

        Raises `Unwelcome` if there is no such session, or for a wrong token or version.
        """
        if hello.resume is None:
            return None
        player = self._players.of_session(hello.resume)
        if player is not None and player.is_session(hello.resume):
            names = (player.name, player.own_name)
            if player.token == hello.token and hello.name in names:
                _check_version(hello.protocol)
                return player
        self._check_needed(hello)
        raise Unwelcome("session", "no such session to resume; say hello without it")

    def admitted(self, hello: Hello, known: Known | None = None, address: str = "") -> Known:
        """Return the name of a new bot, and its process if the arena has launched it.

        `known` is the same, if the connection identifies the bot. Raises `Unwelcome` for a wrong
        token or version, an unknown game, a taken name, or too many connections with one token or
        address.
        """
        if known is None:
            self._check_needed(hello)
        _check_version(hello.protocol)
        _check_games(hello)
        if known is not None:
            return known
        name, token = hello.name, hashed(hello.token or "")
        if token in self._used:
            raise Unwelcome("token", "this token was for once; go on with `resume`")
        if token in self._expected:
            self._used.add(token)
            return self._expected.pop(token)
        _check_letters(name)
        if (owner := self._access.players.get(token)) is not None:
            name = _called(name, owner)
        name = self._spelled(name, owner)
        if hello.token is not None:
            self._check_token(hello.token)
        if owner is None and (hello.token is None or self._access.names):
            self._check_address(address)
        self._check_name(name, hello.token, owner)
        return name, None

    def _check_needed(self, hello: Hello) -> None:
        """Refuse a `hello` that needs a token and has no valid one."""
        token = hashed(hello.token or "")
        good = self._access.players, self._expected, self._used
        if any(token in tokens for tokens in good):
            return
        if (hello.token or "").startswith(GUEST):
            raise Unwelcome("token", "this chair is not kept any more; sit down again")
        is_listed = self._owner(hello.name) is not None
        # With a roster, an unknown token is a mistake: the bot would play under a wrong name.
        is_wrong = hello.token is not None and bool(self._access.names)
        if self.requires_token or is_listed or is_wrong:
            raise Unwelcome("token", TOKEN_NEEDED)

    def _set(self, access: Access) -> None:
        self._access = access
        self._listed = Spellings(sorted(access.names))
        self._players.recount(self._is_anonymous)

    def _owner(self, name: str) -> str | None:
        """Return who on the roster owns a name, perhaps a program's, such as `ann/left`."""
        owner = self._listed.of(owner_of(name))
        return owner if owner in self._access.names else None

    def _is_anonymous(self, player: BotSession) -> bool:
        """Return whether a bot counts toward its address's limit, as it has no valid token."""
        if player.process is not None:
            return False
        if not self.has_roster:
            return player.token is None
        return self._owner(player.name) is None  # with a roster, only its tokens are valid

    def _spelled(self, name: str, owner: str | None) -> str:
        """Return the spelling by which a name is known here; an owner's begins as on the roster."""
        first = self._players.spellings.of(name)
        return first if owner is None or owner_of(first) == owner else name

    def _check_token(self, token: str) -> None:
        if self._players.with_token(token) >= self._limits.per_token:
            most = self._limits.per_token
            raise Unwelcome("token", f"expected at most {most} connections with one token")

    def _check_address(self, address: str) -> None:
        if self._players.anonymous(address) >= self._limits.per_address:
            most = self._limits.per_address
            text = f"expected at most {most} connections without a token from one address"
            raise Unwelcome("address", text)

    def _check_name(self, name: str, token: str | None, owner: str | None) -> None:
        another = "choose another name" if owner is None else f"call this one {owner + '/…'!r}"
        if alike(name) in self._ours:
            text = (
                f"{name!r} is kept for a bot that the arena has launched, "
                "which says its ARENA_TOKEN as `token`; "
            )
            if owner is not None:
                text += (
                    "ask the instructor to rename the [[bot]] in the arena's config "
                    "that has this name, or "
                )
            raise Unwelcome("name", text + another)
        present = self._players.get(name)
        if present is None:
            return
        if present.connection is not None:
            raise Unwelcome("name", f"a bot named {name!r} is here already; {another}")
        is_other = present.token != token or present.process is not None
        # Without matches and with the same token, it has nothing to lose or is this very bot.
        if present.chairs or is_other:
            away = f"a bot named {name!r} has lost its connection"
            free = f"the name is free again in {ceil(self.left_s(present))} s"
            raise Unwelcome("name", f"{away}: {free}, or go on with `resume`; or {another}")


def _called(said: str, owner: str) -> str:
    """Return the name of an owner's bot: the requested one if it is of the form `owner/…`."""
    first, slash, rest = said.partition("/")
    return owner + slash + rest if alike(rest) and alike(first) == alike(owner) else owner


def _check_letters(name: str) -> None:
    """Refuse names that are invisible or look like others."""
    if not alike(name):
        raise Unwelcome("name", "expected a name with letters that can be seen")
    if alike(name).count("/") != name.count("/"):
        raise Unwelcome("name", f"expected a plain '/' in a name, got {name!a}")


def _check_version(version: int) -> None:
    if version != VERSION:
        raise Unwelcome("version", f"expected protocol {VERSION}, got {version}")


def _check_games(hello: Hello) -> None:
    unknown = sorted(set(hello.games) - set(GAMES))
    if unknown:
        known = ", ".join(GAMES)
        raise Unwelcome("games", f"unknown game {unknown[0]!r}; expected some of: {known}")
