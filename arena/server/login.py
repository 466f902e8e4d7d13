"""The first words of a connection: a stranger becomes a player, or is an instructor, or has to go (design §5).

What an instructor wants is carried out by whoever runs the competitions. Who may come in is the admission's to say, and how long strangers are heard is for `arena/server/throttle.py`; here what they say is done.
What a player says after its `welcome` is the gateway's business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

import msgspec

from arena.engine.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.budget import Budget
from arena.referee.pings import Pings
from arena.referee.referee import Referee
from arena.referee.sessions import BotSessions
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

_MOST_BUDGETS = 4096  # remembered; that which was used longest ago goes first

OnInstruct: TypeAlias = Callable[[Instruct, str], Done | Awaitable[Done]]
"""Does what an instructor wants, given the name on the token; raises `ArenaError` if that cannot be done.

What has to wait for the database is done later, so that matches go on meanwhile.
"""


class Login:
    """Where everybody comes in; the arguments are the gateway's.

    Attributes:
        players: by name, those that are connected or may come back.
        session_by_connection: whose a connection is, if it is a player's.
        admission: who may come in.
        throttle: those who have not said who they are.
        admin_requests: where instructors are heard.
        on_change: called after a player has come or gone.
        on_offence: told the name of a player who is out, and why.
    """

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
        self._vouched: dict[str, Known] = {}
        self._budgets: dict[str, Budget] = {}  # by the hash of a token
        self._loop = asyncio.get_running_loop()
        self.throttle = Throttle(limits, lambda: bool(referee.tables), self._loop.time)

    def preauthenticate(self, address: str, known: Known) -> None:
        """Whoever says `hello` from this address is known."""
        self._vouched[address] = known

    def connected(self, connection: Wire) -> None:
        """Somebody has come, who has yet to say anything."""
        if isinstance(connection, Connection):  # else we have launched it
            self.throttle.connected(connection)

    def disconnected(self, connection: Wire) -> None:
        """A connection is gone, whoever's it was."""
        if self._referee.lag.follows_stall(self._loop.time()):
            self.throttle.known(connection)  # it was we who did not answer
        else:
            self.throttle.disconnected(connection)
        self.admin_requests.disconnected(connection)
        self._vouched.pop(connection.address, None)

    def received(self, connection: Wire, message: BotMessage) -> None:
        """The first message of a connection must be a `hello` that can be accepted, or an instructor's word.

        Raises:
            OutOfTurn: it is neither.
        """
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
        """Say something to who is no player."""
        encoding = connection.encoding or Encoding.JSON
        connection.send(encode(message, encoding), encoding)

    def offended(self, connection: Wire, finding: Finding) -> None:
        """Somebody who is no player did what cannot be accepted; one that we have launched is known all the same."""
        self.throttle.failed(connection)
        if (known := self._vouched.get(connection.address)) is not None:
            name, process = known
            enforced = "time" if process is None else process.enforced
            self.on_offence(name, msgspec.structs.replace(finding, enforced=enforced))

    # --- within ---

    def _enter(self, connection: Wire, hello: Hello) -> None:
        """A bot that is welcome becomes a player, or is the one that it was.

        Raises:
            Unwelcome: it is not.
        """
        former = self.admission.resumed(hello)
        if former is None:
            name, process = self.admission.admitted(
                hello, self._vouched.get(connection.address), connection.address
            )
        self._known(connection)
        if former is not None:
            self._resume(former, hello, connection)
            return
        player = BotSession(hello, connection, self._limits.tables, self._mark_dirty, name, process)
        self.players.add(player)
        self._welcome(player, hello, connection)
        self.on_change()

    def _resume(self, player: BotSession, hello: Hello, connection: Wire) -> None:
        """The same bot over another connection, which replaces an earlier one."""
        former = player.connection
        if former is not None:
            self.session_by_connection.pop(former, None)
            now = self._loop.time()
            since = former.silent_since(now) or now
            former.close(CLOSE_REPLACED, "the session goes on over another connection")
            player.disconnected()
            self._referee.on_lost(player, since)
        player.resumed(hello, connection)
        self._welcome(player, hello, connection)
        player.missed.resend_unseen(hello.from_)
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
        player.send(Welcome(VERSION, player.name, player.secret, self._limits, practice))

    def _budget_of(self, player: BotSession, connection: Wire) -> Budget:
        """What it, or another bot with its token, has left to spend: or coming back would be a way to another budget."""
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
    """The instructors who are connected.

    Args:
        admission: knows their tokens.
        on_instruct: carries their words out; without one none can be.
    """

    def __init__(self, admission: Admission, on_instruct: OnInstruct | None) -> None:
        self._admission = admission
        self._on_instruct = on_instruct or _nothing_to_instruct
        self._tokens: dict[Wire, str] = {}
        self._busy: set[Wire] = set()
        self._tasks = BackgroundTasks()

    def received(
        self, connection: Wire, message: Instruct, tell: Callable[[Done | Refused], None]
    ) -> None:
        """Have done what an instructor wants; every message has the token, and a connection may bring many.

        Args:
            connection: where it came from.
            message: what is wanted.
            tell: is given the answer, now or once it is done; not if the connection has gone by then.

        Raises:
            Unwelcome: it is no instructor.
        """
        who = self._admission.instructs(message)
        self._tokens[connection] = message.token
        try:
            if connection in self._busy:
                raise UsageError("expected one word at a time, the last one goes on")
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
        """A connection is gone, whoever's it was; what it wants done is done all the same."""
        self._tokens.pop(connection, None)

    def former(self) -> Iterator[Wire]:
        """The connections whose token is good no longer."""
        for connection, token in tuple(self._tokens.items()):
            if not self._admission.is_instructors(token):
                yield connection

    # --- within ---

    async def _work(
        self, connection: Wire, done: Awaitable[Done], tell: Callable[[Done | Refused], None]
    ) -> None:
        """Wait for what is done later, and tell what came of it."""
        answer: Done | Refused
        try:
            answer = await done
        except ArenaError as error:
            answer = Refused("instruct", str(error))
        except Exception:  # the log should have it, whoever is still there
            log.exception("an instructor's word failed")
            answer = Refused("instruct", "the arena failed at this; see its log")
        finally:
            self._busy.discard(connection)
        if connection in self._tokens:
            tell(answer)


def _nothing_to_instruct(message: Instruct, who: str) -> Done:
    raise UsageError("expected an arena with competitions to instruct, here are none")
