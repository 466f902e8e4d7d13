"""Who may come in: what a `hello` or an `instruct` needs to be accepted, who it turns out to be, and who looks on.

Nothing here sends or closes anything; whoever is not welcome is told why by the gateway. Tokens come first: who needs one and has none
that is good is told just that, in words that depend on nothing that the arena knows, before any name, game or session is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TypeAlias

from arena.engine.names import Spellings, alike, owner_of
from arena.games import GAMES
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.bot_session import BotSession
from arena.referee.sessions import BotSessions
from arena.referee.transport import LaunchedProcess
from arena.storage.tokens import Access, hashed
from protocol.messages import VERSION, Hello, Instruct, Limits

__all__ = ["GUEST", "TOKEN_NEEDED", "Admission", "Known", "Unwelcome"]

TOKEN_NEEDED = "expected a token that the instructor of this arena has given out"
"""All that a stranger learns: whether its token is missing, wrong or revoked."""

GUEST = "guest-"
"""What the tokens of people begin with, who have a chair for a while: who comes too late with one is no bot."""

Known: TypeAlias = tuple[str, LaunchedProcess | None]
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
        access: the roster; without one nobody has a name of its own, and nobody instructs.
        requires_token: nobody comes in without a token; else only names of the roster need theirs.
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
        self._requires_token = requires_token
        self._expected: dict[str, Known] = {}
        self._used: set[str] = set()
        self._ours: set[str] = set()  # what these names look like
        # How long a player that is lost may still come back; the gateway knows it better.
        self.left_s: Callable[[BotSession], float] = lambda _: limits.grace_ms / 1000
        self._set(access or Access())

    @property
    def requires_token(self) -> bool:
        """Whether nobody comes in without a token."""
        return self._requires_token

    def expect(self, name: str, token: str, process: LaunchedProcess | None = None) -> None:
        """Keep a name for whoever says `hello` with a token, once; nobody else gets it meanwhile.

        Args:
            name: what the bot will be called.
            token: a secret.
            process: the bot's, if the arena has launched it.
        """
        self._expected[hashed(token)] = (name, process)
        self._ours.add(alike(name))

    def forget(self, name: str, *, keeps_name: bool = False, token: str = "") -> None:
        """Nobody is expected under that name any more; who is known by its connection keeps it.

        With the token of a person who has left: it is not known to have been good either, as there are many people.
        """
        self._used.discard(hashed(token))
        if not keeps_name:
            self._ours.discard(alike(name))
        for key, (expected, _) in tuple(self._expected.items()):
            if expected == name:
                del self._expected[key]

    def change(self, access: Access) -> tuple[tuple[BotSession, str, bool], ...]:
        """The roster has changed: who of those that are in may stay no longer, why, and whether it is out for good.

        Whoever has been given another token has done nothing, and may come back with that.
        """
        before = self._access.players
        self._set(access)
        gone = []
        for player in self._players.values():
            token = hashed(player.token or "")
            owner = self._owner(player.name)
            now = access.players.get(token)
            if token in before and now not in (None, before[token]):
                # It came while the name was changed, and may come back with its token.
                gone.append((player, f"its name on the roster is {now!r} now", False))
            elif token in before and now is None:
                was_replaced = before[token] in access.players.values()
                text = "replaced" if was_replaced else "revoked"
                gone.append((player, f"its token was {text}", not was_replaced))
            elif owner is not None and alike(player.name) not in self._ours and now != owner:
                gone.append((player, "its name is on the roster now", False))
        return tuple(gone)

    def instructs(self, message: Instruct) -> str:
        """The name of the instructor who says this.

        Raises:
            Unwelcome: no instructor has that token, or it is another version.
        """
        name = self._access.instructors.get(hashed(message.token))
        if name is None:
            raise Unwelcome("token", TOKEN_NEEDED)
        _check_version(message.protocol)
        return name

    def is_instructors(self, token: str) -> bool:
        """Whether an instructor has that token now."""
        return hashed(token) in self._access.instructors

    def viewer(self, token: str | None) -> Viewer:
        """Who looks on with that token; without one anybody.

        Raises:
            Unwelcome: it is nobody's.
        """
        if token is None:
            return Viewer()
        key = hashed(token)
        if (name := self._access.instructors.get(key)) is not None:
            return Viewer(ViewerKind.INSTRUCTOR, name)
        if (owner := self._access.players.get(key)) is not None:
            return Viewer(ViewerKind.OWNER, owner)
        raise Unwelcome("token", TOKEN_NEEDED)

    def check_guest(self, name: str, viewer: Viewer) -> None:
        """See that a person who has come by the page may be called so.

        Args:
            name: what it wants to be called.
            viewer: who it is, by its token.

        Raises:
            Unwelcome: it needs a token, or the name is somebody else's.
        """
        owner = self.check_owner(name, viewer)
        _check_letters(name)
        self._check_name(self._spelled(name, owner), None, owner)

    def check_owner(self, name: str, viewer: Viewer) -> str | None:
        """See that a person has the token that it needs for a name, whoever is called so just now; its own name on the roster.

        Raises:
            Unwelcome: it has not.
        """
        is_unknown = self._requires_token and viewer.kind is ViewerKind.PUBLIC
        owner = viewer.name if viewer.kind is ViewerKind.OWNER else None
        if is_unknown or self._owner(name) not in (None, owner):
            raise Unwelcome("token", TOKEN_NEEDED)
        return owner

    def resumed(self, hello: Hello) -> BotSession | None:
        """Whose session a bot wants to go on with; None if it does not.

        Raises:
            Unwelcome: it needs a token, there is no such session, it began with another token, or this is another version.
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
        """What a new bot is called, and its process if it is ours.

        Args:
            hello: what it said.
            known: who it is, if its connection leaves no doubt.
            address: where it comes from.

        Raises:
            Unwelcome: it needs a token; another version, an unknown game, a name that is taken, or too many with its token or
                from its address.
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

    # --- within ---

    def _check_needed(self, hello: Hello) -> None:
        """A token is needed where nobody comes in without, and for a name that is somebody's."""
        token = hashed(hello.token or "")
        good = self._access.players, self._expected, self._used
        if any(token in tokens for tokens in good):
            return
        if (hello.token or "").startswith(GUEST):
            raise Unwelcome("token", "this chair is not kept any more; sit down again")
        is_listed = self._owner(hello.name) is not None
        # With a roster a token that is nobody's is a mistake: its bot would play under another name.
        is_wrong = hello.token is not None and bool(self._access.names)
        if self._requires_token or is_listed or is_wrong:
            raise Unwelcome("token", TOKEN_NEEDED)

    def _set(self, access: Access) -> None:
        """Go by another roster."""
        self._access = access
        self._listed = Spellings(sorted(access.names))
        self._players.recount(self._is_anonymous)

    def _owner(self, name: str) -> str | None:
        """Who on the roster is called so, or has this name for one of its programs; None if it is nobody's."""
        owner = self._listed.of(owner_of(name))
        return owner if owner in self._access.names else None

    def _is_anonymous(self, player: BotSession) -> bool:
        """Whether it is counted by its address: a whole class may sit behind one, and whoever has a token is not counted."""
        if player.process is not None:
            return False
        if not self._access.names:
            return player.token is None
        return self._owner(player.name) is None  # what is not on the roster is no token

    def _spelled(self, name: str, owner: str | None) -> str:
        """A name as it was first written, by whoever is here or takes part in what is played; an owner's begins as on the roster."""
        first = self._players.spellings.of(name)
        return first if owner is None or owner_of(first) == owner else name

    def _check_token(self, token: str) -> None:
        if self._players.with_token(token) >= self._limits.per_token:
            raise Unwelcome(
                "token", f"expected at most {self._limits.per_token} connections with one token"
            )

    def _check_address(self, address: str) -> None:
        if self._players.anonymous(address) >= self._limits.per_address:
            raise Unwelcome(
                "address",
                f"expected at most {self._limits.per_address} connections without a token from one address",
            )

    def _check_name(self, name: str, token: str | None, owner: str | None) -> None:
        another = "choose another name" if owner is None else f"call this one {owner + '/…'!r}"
        if alike(name) in self._ours:
            kept = f"{name!r} is kept for a bot that the arena has launched, which says its ARENA_TOKEN as `token`"
            ask = "ask the instructor to rename the [[bot]] in the arena's config that has this name, or "
            raise Unwelcome("name", f"{kept}; {ask if owner else ''}{another}")
        present = self._players.get(name)
        if present is None:
            return
        if present.connection is not None:
            raise Unwelcome("name", f"a bot named {name!r} is here already; {another}")
        is_other = present.token != token or present.process is not None
        if present.chairs or is_other:  # else it has nothing to lose, and may be this
            away = f"a bot named {name!r} has lost its connection"
            free = f"the name is free again in {ceil(self.left_s(present))} s"
            raise Unwelcome("name", f"{away}: {free}, or go on with `resume`; or {another}")


def _called(said: str, owner: str) -> str:
    """What the bot of somebody on the roster is called: as it says, if that is a name of its owner's."""
    first, slash, rest = said.partition("/")
    return owner + slash + rest if alike(rest) and alike(first) == alike(owner) else owner


def _check_letters(name: str) -> None:
    """Names that nobody can read, or that pretend to be somebody's."""
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
        some = ", ".join(GAMES)
        raise Unwelcome("games", f"unknown game {unknown[0]!r}; expected some of: {some}")
