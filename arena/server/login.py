"""Login: the first message of a connection makes it a player's or an instructor's, or it is closed.

Who may come in is decided in `arena/server/admission.py`, and how long a peer has to wait before it
in `arena/server/throttle.py`. The gateway processes what a player sends after its `welcome`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

import msgspec
from msgspec import UNSET

from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.budget import Budget
from arena.referee.referee import Referee
from arena.referee.sessions import BotSessions, Pings
from arena.referee.transport import Wire
from arena.server.admission import Admission, Known, Unwelcome
from arena.server.background import BackgroundTasks
from arena.server.throttle import Throttle
from arena.server.websocket import Connection
from arena.storage.tokens import Access, hashed
from protocol.codec import Encoding, encode
from protocol.errors import ArenaError, OutOfTurn, UsageError
from protocol.messages import (
    CLOSE_REFUSED,
    CLOSE_REPLACED,
    VERSION,
    ArenaMessage,
    BotMessage,
    Done,
    Ending,
    Hello,
    Instruct,
    Limits,
    Mechanism,
    Refused,
    Welcome,
)

__all__ = ["AdminRequests", "Login", "OnInstruct"]

log = logging.getLogger(__name__)

_MOST_BUDGETS = 4096  # remembered; the least recently used one is dropped

OnInstruct: TypeAlias = Callable[[Instruct, str], Done | Awaitable[Done]]
"""Carries out an instructor's request, given the name on the token; may raise `ArenaError`.

What needs the database is awaited, so that matches go on meanwhile.
"""


class Login:
    """Logs the peers of one gateway in; the arguments and `players` are the gateway's."""

    def __init__(
        self,
        referee: Referee,
        limits: Limits,
        mark_dirty: Callable[[BotSession], None],
        pings: Pings,
        *,
        on_change: Callable[[], None],
        on_offence: Callable[[str, Finding], None],
        access: Access | None,
        requires_token: bool,
        on_instruct: OnInstruct | None,
    ) -> None:
        self.players = BotSessions()
        self.session_by_connection: dict[Wire, BotSession] = {}
        self.admission = Admission(self.players, limits, access, requires_token)
        self.admin_requests = AdminRequests(self.admission, on_instruct)
        self._referee = referee
        self._limits = limits
        self._mark_dirty = mark_dirty
        self._pings = pings
        self.on_change = on_change
        self.on_offence = on_offence
        self.note: Callable[[BotSession], str] = lambda player: ""  # for a bot's author
        self._known_by_address: dict[str, Known] = {}
        self._budgets: dict[str, Budget] = {}  # by the hash of a token
        self._loop = asyncio.get_running_loop()
        self.throttle = Throttle(limits, lambda: bool(referee.tables), self._loop.time)

    def preauthenticate(self, address: str, known: Known) -> None:
        """Log a known bot in when it says `hello` from this address."""
        self._known_by_address[address] = known

    def connected(self, connection: Wire) -> None:
        """Throttle a new connection, unless it is the pipe of a launched bot."""
        if isinstance(connection, Connection):
            self.throttle.connected(connection)

    def disconnected(self, connection: Wire) -> None:
        if self._referee.lag.follows_stall(self._loop.time()):
            self.throttle.known(connection)  # no failure of its own: the arena did not answer
        else:
            self.throttle.disconnected(connection)
        self.admin_requests.disconnected(connection)
        self._known_by_address.pop(connection.address, None)

    def received(self, connection: Wire, message: BotMessage) -> None:
        """Take a first `hello`, or `instruct` at any time; all else raises `OutOfTurn`."""
        try:
            if isinstance(message, Instruct):
                self.admin_requests.received(connection, message, partial(self.tell, connection))
                self._known(connection)
            elif isinstance(message, Hello):
                self._enter(connection, message)
            else:
                raise OutOfTurn("expected hello as the first message")
        except Unwelcome as why:
            self.tell(connection, Refused(why.code, str(why)))
            connection.close(CLOSE_REFUSED, str(why))
            text = f"its {type(message).__name__.lower()} was refused: {why}"
            finding = Finding(kind=Ending.ABSENT, text=text, mechanism=Mechanism.SESSION)
            self.offended(connection, finding)

    def tell(self, connection: Wire, message: ArenaMessage) -> None:
        """Send a message at once to a peer that is no player."""
        encoding = connection.encoding or Encoding.JSON
        connection.send(encode(message, encoding), encoding)

    def offended(self, connection: Wire, finding: Finding) -> None:
        """Note an offence of a peer that is no player; a launched bot is known by its address."""
        self.throttle.failed(connection)
        if (known := self._known_by_address.get(connection.address)) is not None:
            name, process = known
            enforced = "time" if process is None else process.enforced
            self.on_offence(name, msgspec.structs.replace(finding, enforced=enforced))

    def _enter(self, connection: Wire, hello: Hello) -> None:
        """Make a new player, or resume one; raises `Unwelcome` if the bot is refused."""
        former = self.admission.resumed(hello)
        if former is None:
            name, process = self.admission.admitted(
                hello, self._known_by_address.get(connection.address), connection.address
            )
        self._known(connection)
        if former is not None:
            self._resume(former, hello, connection)
            return
        tables = self._limits.tables
        player = BotSession(hello, connection, tables, self._mark_dirty, name, process=process)
        self.players.add(player)
        self._welcome(player, hello, connection)
        self.on_change()

    def _resume(self, player: BotSession, hello: Hello, connection: Wire) -> None:
        """Go on with a session over another connection, which replaces the earlier one."""
        former = player.connection
        since = now = self._loop.time()
        if former is not None:
            self.session_by_connection.pop(former, None)
            since = former.silent_since(now) or now
            former.close(CLOSE_REPLACED, "the session goes on over another connection")
            player.disconnected()
        self._referee.on_lost(player, since)  # one that was silent counts as closed from now on
        player.resumed(hello, connection)
        self._welcome(player, hello, connection)
        player.resend_unseen(hello.from_)
        self.on_change()

    def _welcome(self, player: BotSession, hello: Hello, connection: Wire) -> None:
        self.session_by_connection[connection] = player
        self._pings.add(player, self._loop.time())
        now = self._loop.time()
        connection.budget = player.budget = self._budget_of(player, connection)
        if (until := player.budget.rests_until(now)) is not None:
            connection.rest(until)
        player.session.note(hello)
        practice = self._referee.practice
        name, secret = player.public_name, player.secret
        note = self.note(player) or UNSET
        player.send(Welcome(VERSION, name, secret, self._limits, practice, finish=True, note=note))

    def _budget_of(self, player: BotSession, connection: Wire) -> Budget:
        """Its session's budget, or its token's, so that a new connection brings no new budget."""
        if player.budget is not None or player.token is None:
            return player.budget or connection.budget
        key = hashed(player.token)
        self._budgets[key] = budget = self._budgets.pop(key, connection.budget)
        if len(self._budgets) > _MOST_BUDGETS:
            del self._budgets[next(iter(self._budgets))]
        return budget

    def _known(self, connection: Wire) -> None:
        self.throttle.known(connection)
        connection.hello_received()


class AdminRequests:
    """The requests of the connected instructors; without `on_instruct` all are refused."""

    def __init__(self, admission: Admission, on_instruct: OnInstruct | None) -> None:
        self._admission = admission
        self._on_instruct = on_instruct or _refuse
        self._tokens: dict[Wire, str] = {}
        self._busy: set[Wire] = set()
        self._tasks = BackgroundTasks()

    def received(
        self, connection: Wire, message: Instruct, tell: Callable[[Done | Refused], None]
    ) -> None:
        """Carry out a request; a connection may send many, each with an instructor's token.

        `tell` is called with the answer, now or once it is done; not if the connection is gone by
        then. Raises `Unwelcome` if the token is no instructor's.
        """
        who = self._admission.instructs(message)
        self._tokens[connection] = message.token
        try:
            if connection in self._busy:
                raise UsageError("expected one instruction at a time; the last is still running")
            done = self._on_instruct(message, who)
        except ArenaError as error:
            tell(Refused("instruct", str(error)))
            return
        if isinstance(done, Done):
            tell(done)
            return
        self._busy.add(connection)
        self._tasks.start(self._work(connection, done, tell))

    def disconnected(self, connection: Wire) -> None:
        """A connection is gone; a request that it has sent is carried out all the same."""
        self._tokens.pop(connection, None)

    def former(self) -> Iterator[Wire]:
        """The connections whose token is no longer valid."""
        for connection, token in tuple(self._tokens.items()):
            if not self._admission.is_instructors(token):
                yield connection

    async def _work(
        self, connection: Wire, done: Awaitable[Done], tell: Callable[[Done | Refused], None]
    ) -> None:
        answer: Done | Refused
        try:
            answer = await done
        except ArenaError as error:
            answer = Refused("instruct", str(error))
        except Exception:  # logged, as the instructor may be gone
            log.exception("an instruction failed")
            answer = Refused("instruct", "the arena failed at this; see its log")
        finally:
            self._busy.discard(connection)
        if connection in self._tokens:
            tell(answer)


def _refuse(message: Instruct, who: str) -> Done:
    raise UsageError("expected an arena with competitions to instruct, here are none")
