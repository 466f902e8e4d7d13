"""The gateway turns connections into players, and their frames into messages to the referee.

The first message of a connection must make it a player's or an instructor's; otherwise it is
closed. `arena/server/admission.py` decides who may log in, and `arena/server/throttle.py` how long
a peer has to wait before that.

A frame is processed in one synchronous pass. Outgoing messages gather in the players' outboxes,
which are written in the next turn of the event loop, so that a frame carries as much as possible.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from functools import partial

import msgspec
from msgspec import UNSET

from arena.games.verdict import FORGIVABLE, Finding
from arena.referee.bot_session import BotSession
from arena.referee.budget import Budget, Flood
from arena.referee.losses import Losses
from arena.referee.referee import FAULT, Referee
from arena.referee.sessions import BotSessions, Outboxes, Pings
from arena.referee.timers import Ticker, Timers
from arena.referee.transport import Wire
from arena.server.admin_requests import AdminRequests, OnInstruct
from arena.server.admission import Admission, Known, Unwelcome
from arena.server.entrance import Entrance
from arena.server.listener import Listeners
from arena.server.tcp import ConnectionContext
from arena.server.throttle import Throttle
from arena.server.websocket import Connection
from arena.storage.tokens import Access, hashed
from protocol.codec import Encoding, decode_from_bot, encode
from protocol.errors import OutOfTurn, ProtocolError, one_line
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_DONE,
    CLOSE_PROTOCOL,
    CLOSE_REFUSED,
    CLOSE_REPLACED,
    FAILED,
    KEEPALIVE_REASONS,
    VERSION,
    Answer,
    ArenaMessage,
    BotMessage,
    Ending,
    Goodbye,
    Hello,
    Instruct,
    Limits,
    Mechanism,
    Ready,
    Refused,
    Welcome,
)

__all__ = ["ArenaAddress", "Gateway", "crash_reason"]

log = logging.getLogger(__name__)

_LOOPBACK = "127.0.0.1"
_PROBE_S = 0.05  # between two ticks of the page
_FRAME_S = 0.000_15  # measured: reading a frame from its socket and writing the next one
_USELESS_BYTES = 256  # a useless message counts once per this many bytes, the size of an answer
_LARGE_BYTES = (
    4 * 1024
)  # decoding larger frames may be slow; of useful ones only an imported class list is larger
_READ_BYTES = 16 * 1024
_SHOWN_BYTES = 200  # of a frame, as evidence
_MOST_BUDGETS = 4096  # remembered; the least recently used one is dropped


class Gateway:
    """A server for bots on one or more addresses; the referee is ticked as long as it is open.

    `welcome` announces the `limits`, and connections are held to them. `on_change` is called after
    a player has come or gone, `on_offence` once a player is out of all its matches and they have
    ended. `on_leaving` is called with a player that leaves between matches, and returns a line on
    what that costs it (J10). `note` returns a line for a bot's author, sent in `welcome`. `players`
    has, by name, the players that are connected or may come back.
    """

    def __init__(
        self,
        referee: Referee,
        limits: Limits,
        on_change: Callable[[], None] = lambda: None,
        on_offence: Callable[[str, Finding], None] = lambda name, finding: None,
        on_leaving: Callable[[str], str] = lambda name: "",
        *,
        access: Access | None = None,
        requires_token: bool = False,
        on_instruct: OnInstruct | None = None,
    ) -> None:
        self.referee = referee
        self.limits = limits
        self.on_change = on_change
        self.on_offence = on_offence
        self._on_leaving = on_leaving
        self._connections: set[Wire] = set()
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._listeners = Listeners()
        self._probe_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._ticker = Ticker(self._loop, self._tick)
        self.timers = Timers(self._loop, referee.lag.total_s)
        self._outboxes = Outboxes(
            referee.lag.total_s, self._is_here, self._leave, self._failed_to_write
        )
        self._pings = Pings(referee.lag.total_s)
        self.note: Callable[[BotSession], str] = lambda player: ""
        self.players = BotSessions()
        self.admission = Admission(self.players, limits, access, requires_token)
        self.admin_requests = AdminRequests(self.admission, on_instruct)
        self.throttle = Throttle(limits, lambda: bool(referee.tables), self._loop.time)
        self._session_by_connection: dict[Wire, BotSession] = {}
        self._known_by_address: dict[str, Known] = {}
        self._budgets: dict[str, Budget] = {}  # by the hash of a token
        gone, is_here = self._gone, self._is_here
        self._losses = Losses(referee, limits, self._loop.time, self.timers, gone, is_here)
        self.admission.left_s = self._losses.left_s
        self.entrance = Entrance(self.throttle)

    async def open(
        self, host: str, port: int, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> int:
        """Listen on one more address; return the port, a free one if `port` is 0.

        `tls` makes the TLS context of a new connection. Raises `Unreachable` if listening fails.
        """
        self.entrance.origins.listens(host)
        context = ConnectionContext(self, self.limits, self.timers, self._buffer, self.entrance)
        listening = await self._listeners.open(
            lambda: Connection(context, None if tls is None else tls()), host, port
        )
        self._ticker.start()
        return listening

    async def close(self, code: int = CLOSE_DONE, reason: str = "the arena has closed") -> None:
        """Stop listening, and close all connections with a code and a reason."""
        self._listeners.close()
        self._ticker.stop()
        self._outboxes.flush()
        for connection in list(self._connections):
            connection.close(code, reason)
        for _ in range(100):  # a close handshake takes a round trip
            if not self._connections:
                break
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.cut()

    # --- events of connections: `ConnectionOwner` ---

    def connected(self, connection: Wire) -> None:
        self._connections.add(connection)
        if isinstance(connection, Connection):  # not a launched bot's pipe
            self.throttle.connected(connection)

    def was_read(self, connection: Wire, took_s: float) -> None:
        """Charge the loop's time to a peer that is not a player."""
        self.throttle.was_read(connection, took_s)

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        player = self._session_by_connection.get(connection)
        if player is None or player.share is None:
            self._receive(connection, player, frame, encoding, arrived)
            return
        began_s = time.thread_time()
        self._receive(connection, player, frame, encoding, arrived)
        took_s = time.thread_time() - began_s + _FRAME_S
        now = self._loop.time()
        until = player.share.spend(now, took_s)
        # Not a house bot's: it plays with many people, and is silent while these are not read.
        if until is not None and player.process is None:
            connection.rest(max(until, connection.budget.rests_until(now) or until))

    def _receive(
        self,
        connection: Wire,
        player: BotSession | None,
        frame: bytes,
        encoding: Encoding,
        arrived: float,
    ) -> None:
        if connection.encoding is None:
            connection.encoding = encoding
        # Reading the thread's clock takes longer than many messages. So only large frames are
        # measured, and frames of a peer that has just sent something useless.
        is_measured = connection.useless or len(frame) > _LARGE_BYTES
        began_s = time.thread_time() if is_measured else None
        count = useless = 0
        try:
            if player is not None:
                player.heard_at = arrived
                if player.loss is not None:
                    self._losses.heard(player, arrived)
            messages = decode_from_bot(frame, encoding)
            count = len(messages)
            for message in messages:
                if (
                    type(message) is Answer
                    and player is not None
                    and (chair := player.answering(message)) is not None
                ):
                    connection.useless = 0
                    self.referee.answer(chair, message, arrived)
                else:
                    useless += not self._heard(connection, player, message)
                    player = self._session_by_connection.get(connection)
                if not connection.is_open:
                    return  # refused or gone: the rest of this frame does not count
        except ProtocolError as error:
            self.misbehaved(connection, error, frame)
            count = useless = 1
        except Exception:
            log.exception("the arena failed at a frame from %s", connection.peer)
            self._failed(connection)
            return
        padding = len(frame) - count * _LARGE_BYTES
        if useless or not count or padding > 0:
            took_s = 0.0 if began_s is None else time.thread_time() - began_s
            # Reading a large message takes as long as many small ones.
            if useless or not count:
                share = useless / count if count else 1.0
                each = 1 + len(frame) // max(1, count) // _USELESS_BYTES
                wasted = max(1, useless) * each
            else:
                share, wasted = padding / len(frame), 1 + padding // _USELESS_BYTES
            self._waste(connection, wasted, share * took_s, frame)

    def _heard(self, connection: Wire, player: BotSession | None, message: BotMessage) -> bool:
        """Process a message that is no answer; False if it was useless: too late or repeated."""
        if player is None:
            self._log_in(connection, message)
        elif player.session.note(message):
            connection.useless = 0
            self._take(player, message)
        else:
            return player.may_repeat(message)
        return True

    def on_trivial_frame(self, connection: Wire) -> None:
        """Charge a frame without a message to the connection's budget."""
        self._waste(connection, 1)

    def _waste(
        self, connection: Wire, messages: int, cpu_s: float = 0.0, frame: bytes | None = None
    ) -> None:
        """Charge useless messages; a peer over its budget is not read for a while, or is out."""
        connection.useless += messages
        try:  # also for a peer that is out: it may come back to the same budget
            until = connection.budget.spend(self._loop.time(), messages, cpu_s)
        except Flood as error:
            if connection.is_open:
                self.misbehaved(connection, error, frame)
        else:
            if until is not None:
                connection.rest(until)

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        """Handle a pong, which need not answer a ping of ours."""
        player = self._session_by_connection.get(connection)
        was_silent = player is not None and player.event != ""
        if player is not None:
            self._losses.heard(player, arrived)
        if player is not None and player.ponged(payload, arrived):
            player.probe(arrived, self.referee.lag.total_s(arrived))
            if was_silent:
                self._is_here(player)  # it was out of time, and can be given matches again
        else:
            self.on_trivial_frame(connection)

    def drained(self, connection: Wire) -> None:
        player = self._session_by_connection.get(connection)
        if player is not None:
            self._outboxes.mark_dirty(player)

    def misbehaved(
        self, connection: Wire, error: ProtocolError, frame: bytes | None = None
    ) -> None:
        """Refuse a frame, rule on it, close; in practice mode, a player stays if it was whole."""
        player = self._session_by_connection.get(connection)
        if player is not None:
            self._outboxes.flush_now(player)
        self._tell(connection, Refused(error.code, str(error)))
        is_known = player is not None and frame is not None
        if self.referee.practice and is_known and not isinstance(error, Flood):
            return
        finding = Finding(
            kind=Ending(error.code),
            text=f"sent what cannot be accepted: {error}",
            mechanism=Mechanism.WIRE,
            got=None if frame is None else _shown(frame),
        )
        if player is not None:
            self._rule_out(player, finding)
            self._outboxes.flush_now(player)
        else:
            self._stranger_offends(connection, finding)
        connection.close(CLOSE_PROTOCOL, str(error))

    def overflowed(self, connection: Wire, waiting: int) -> None:
        player = self._session_by_connection.get(connection)
        if player is not None:
            limit = self.limits.buffer_bytes
            text = f"read too slowly: {waiting:,} bytes waited, at most {limit:,} may"
            self._rule_out(player, _on_wire(Ending.OVERFLOW, text))

    def lost(self, connection: Wire) -> None:
        """Handle the loss of a connection; its player may come back within the grace."""
        self._connections.discard(connection)
        self.entrance.disconnected(connection)
        if self.referee.lag.follows_stall(self._loop.time()):
            self.throttle.known(connection)  # not its own failure: the arena did not answer
        else:
            self.throttle.disconnected(connection)
        self.admin_requests.disconnected(connection)
        self._known_by_address.pop(connection.address, None)
        player = self._session_by_connection.pop(connection, None)
        if player is None or player.connection is not connection:
            return
        player.disconnected()
        if self._has_crashed(connection, player):
            reason = one_line(crash_reason(connection.close_reason)) or "it gave no reason"
            self._rule_out(player, _on_wire(Ending.CRASH, f"crashed: {reason}"))
        elif not player.leaving:
            self._losses.begin(player, self._loop.time())
        self.on_change()

    def roster_changed(self, access: Access) -> None:
        """Take a new roster; dismiss those whose token is no longer valid."""
        for player, text, is_out in self.admission.change(access):
            if player.connection is not None:
                player.send(Refused("token", text))
            finding = Finding(kind=Ending.REMOVED, text=text, mechanism=Mechanism.INSTRUCTOR)
            if is_out:
                self.dismiss(player.name, finding, CLOSE_REFUSED)
            else:
                self._send_away(player, text)
        for connection in self.admin_requests.former():
            connection.close(CLOSE_REFUSED, "the token was replaced")
        self.entrance.roster_changed()

    def dismiss(self, name: str, finding: Finding, code: int = CLOSE_DONE) -> None:
        """Rule a player out on outside evidence, and close its connection."""
        player = self.players.get(name)
        if player is not None:
            self._rule_out(player, finding)
            self._outboxes.flush_now(player)
            if player.connection is not None:
                player.connection.close(code, finding.text)

    # --- login ---

    def preauthenticate(self, address: str, known: Known) -> None:
        """Log a known bot in when it says `hello` from this address."""
        self._known_by_address[address] = known

    def _log_in(self, connection: Wire, message: BotMessage) -> None:
        """Take a first `hello`, or `instruct` at any time; all else raises `OutOfTurn`."""
        try:
            if isinstance(message, Instruct):
                self.admin_requests.received(connection, message, partial(self._tell, connection))
                self._is_known(connection)
            elif isinstance(message, Hello):
                self._enter(connection, message)
            else:
                raise OutOfTurn("expected hello as the first message")
        except Unwelcome as why:
            self._tell(connection, Refused(why.code, str(why)))
            connection.close(CLOSE_REFUSED, str(why))
            text = f"its {type(message).__name__.lower()} was refused: {why}"
            finding = Finding(kind=Ending.ABSENT, text=text, mechanism=Mechanism.SESSION)
            self._stranger_offends(connection, finding)

    def _tell(self, connection: Wire, message: ArenaMessage) -> None:
        """Send a message at once to a peer that is not a player."""
        encoding = connection.encoding or Encoding.JSON
        connection.send(encode(message, encoding), encoding)

    def _stranger_offends(self, connection: Wire, finding: Finding) -> None:
        """Note an offence of a peer that is not a player; its address identifies a launched bot."""
        self.throttle.failed(connection)
        if (known := self._known_by_address.get(connection.address)) is not None:
            name, process = known
            enforced = "time" if process is None else process.enforced
            self.on_offence(name, msgspec.structs.replace(finding, enforced=enforced))

    def _enter(self, connection: Wire, hello: Hello) -> None:
        """Make a new player, or resume a session; raises `Unwelcome` if the bot is refused."""
        former = self.admission.resumed(hello)
        if former is None:
            name, process = self.admission.admitted(
                hello, self._known_by_address.get(connection.address), connection.address
            )
        self._is_known(connection)
        if former is not None:
            self._resume(former, hello, connection)
            return
        player = BotSession(
            hello, connection, self.limits.tables, self._outboxes.mark_dirty, name, process=process
        )
        self.players.add(player)
        self._welcome(player, hello, connection)
        self.on_change()

    def _resume(self, player: BotSession, hello: Hello, connection: Wire) -> None:
        """Continue a session over another connection, which replaces the earlier one."""
        former = player.connection
        since = now = self._loop.time()
        if former is not None:
            self._session_by_connection.pop(former, None)
            since = former.silent_since(now) or now
            former.close(CLOSE_REPLACED, "the session goes on over another connection")
            player.disconnected()
        self.referee.on_lost(player, since)  # a silent connection counts as closed from now on
        player.resumed(hello, connection)
        self._welcome(player, hello, connection)
        player.resend_unseen(hello.from_)
        self.on_change()

    def _welcome(self, player: BotSession, hello: Hello, connection: Wire) -> None:
        self._session_by_connection[connection] = player
        self._pings.add(player, self._loop.time())
        now = self._loop.time()
        connection.budget = player.budget = self._budget_of(player, connection)
        if (until := player.budget.rests_until(now)) is not None:
            connection.rest(until)
        player.session.note(hello)
        practice = self.referee.practice
        name, secret = player.public_name, player.secret
        note = self.note(player) or UNSET
        player.send(Welcome(VERSION, name, secret, self.limits, practice, finish=True, note=note))

    def _budget_of(self, player: BotSession, connection: Wire) -> Budget:
        """Return the session's budget, or the token's: a new connection brings no new budget."""
        if player.budget is not None or player.token is None:
            return player.budget or connection.budget
        key = hashed(player.token)
        self._budgets[key] = budget = self._budgets.pop(key, connection.budget)
        if len(self._budgets) > _MOST_BUDGETS:
            del self._budgets[next(iter(self._budgets))]
        return budget

    def _is_known(self, connection: Wire) -> None:
        self.throttle.known(connection)
        connection.hello_received()

    # --- players ---

    def _take(self, player: BotSession, message: BotMessage) -> None:
        """Process a player's message that is in turn and no answer."""
        if isinstance(message, Ready):
            player.note_welcome_arrived()
            self.referee.ready(player, message)
        elif isinstance(message, Goodbye) and message.finish:
            self.players.note(player)
            self._outboxes.mark_dirty(player)
            self.on_change()
        elif isinstance(message, Goodbye):
            self._leave(player)

    def _leave(self, player: BotSession) -> None:
        """Handle a player's goodbye, which is an offence only in the middle of a match."""
        text, costs = "said goodbye", ""
        if player.chairs:
            text += " in the middle of the match"
        else:
            costs = self._on_leaving(player.name)
        self._rule_out(player, _on_wire(Ending.DISCONNECT, text))
        if player.connection is not None:
            self._outboxes.flush_now(player)
            player.connection.close(CLOSE_DONE, costs or "goodbye")

    def _rule_out(self, player: BotSession, finding: Finding) -> None:
        """Remove a player for good; this is an offence in every match that it is playing."""
        player.leaving = True
        self.referee.offence(player, finding)
        if self.players.get(player.name) is player:
            self.players.remove(player)
            event = player.event if finding.kind in FORGIVABLE else ""
            self.on_offence(
                player.name, msgspec.structs.replace(finding, enforced=player.enforced, event=event)
            )

    def _send_away(self, player: BotSession, text: str) -> None:
        """Remove a player that is not to blame: its matches are void; it may log in again."""
        player.leaving = True
        for chair in tuple(player.chairs.values()):
            self.referee.void(chair.table, f"{player.public_name}: {text}")
        if self.players.get(player.name) is player:
            self.players.remove(player)
        self._outboxes.flush_now(player)
        if player.connection is not None:
            player.connection.close(CLOSE_REFUSED, text)
        self.on_change()

    def _has_crashed(self, connection: Wire, player: BotSession) -> bool:
        """Return whether a close reports a crash (J7); for a launched bot its exit decides."""
        if connection.close_code != CLOSE_CRASHED or player.process is not None:
            return False
        reason = connection.close_reason.casefold()
        if reason.startswith(FAILED):
            return True
        is_of_the_link = any(text in reason for text in KEEPALIVE_REASONS)
        return not (is_of_the_link or self.referee.lag.follows_stall(self._loop.time()))

    def _gone(self, player: BotSession, finding: Finding) -> None:
        """Rule out a player that has not come back in time."""
        connection = player.connection
        self._rule_out(player, finding)
        if connection is not None:  # still open, but silent for too long
            connection.cut()
        self.on_change()

    def _failed(self, connection: Wire) -> None:
        """Void the matches of a connection that the arena failed to serve (J5)."""
        player = self._session_by_connection.get(connection)
        if player is not None:
            for chair in list(player.chairs.values()):
                self.referee.void(chair.table, FAULT)
            self._outboxes.flush_now(player)
        connection.close(CLOSE_CRASHED, "the arena failed; come back")

    def _is_here(self, player: BotSession) -> None:
        """Note that a player is back and has got all that it had missed."""
        self.players.note(player)
        self.on_change()

    def _failed_to_write(self, player: BotSession) -> None:
        if player.connection is not None:
            self._failed(player.connection)

    def _cut_silent(self, player: BotSession, since: float) -> None:
        """Cut a bot that answers no pings; its session counts as silent, not as closed."""
        connection = player.connection
        if connection is not None:
            self._losses.begin(player, since, by_ping=True)
            self._session_by_connection.pop(connection, None)
            player.disconnected()
            connection.cut()
            self.on_change()

    def _tick(self) -> None:
        try:
            self.referee.tick()
            self.throttle.tick()
            now = self._loop.time()
            for player, since in self._pings.tick(now):
                self._cut_silent(player, since)
            if now >= self._probe_at:
                self._probe_at = now + _PROBE_S
                self.entrance.tick(now)
        except Exception:  # without a next tick, no deadline would be enforced
            log.exception("the arena failed at a deadline")


def _shown(frame: bytes) -> str:
    return one_line(frame[:_SHOWN_BYTES].decode(errors="replace"), _SHOWN_BYTES)


class ArenaAddress:
    """The address of one arena: `port` 0 means a free one; `url` is empty until it is open.

    `tls` makes the TLS context of a new connection. With TLS, bots on this machine use another port
    on loopback, without TLS.
    """

    def __init__(self, interface: str, port: int, tls: Callable[[], ssl.SSLContext] | None) -> None:
        self.url = ""
        self._interface, self._port, self._tls = interface, port, tls
        self._near_port = 0

    async def open(self, gateway: Gateway) -> None:
        """Start to listen; raises `Unreachable` if that is impossible."""
        port = await gateway.open(self._interface, self._port, self._tls)
        host = f"[{self._interface}]" if ":" in self._interface else self._interface
        self.url = f"{'ws' if self._tls is None else 'wss'}://{host}:{port}"
        if gateway.entrance.base_path != "/":
            self.url += gateway.entrance.base_path
        if self._tls is not None:  # the certificate need not be valid for loopback
            self._near_port = await gateway.open(_LOOPBACK, 0)

    @property
    def near_url(self) -> str:
        """The URL for a bot on this machine, whatever interface the arena listens on."""
        if self._near_port:
            return f"ws://{_LOOPBACK}:{self._near_port}"
        for everywhere, here in (("//0.0.0.0:", "//127.0.0.1:"), ("//[::]:", "//[::1]:")):
            if everywhere in self.url:
                return self.url.replace(everywhere, here)
        return self.url


def crash_reason(reason: str) -> str:
    """Return what a bot says of its crash, without the prefix `failed:`."""
    is_marked = reason.casefold().startswith(FAILED)
    return reason[len(FAILED) :].lstrip() if is_marked else reason


def _on_wire(kind: Ending, text: str) -> Finding:
    """Make a finding about what came, or did not come, over a connection."""
    return Finding(kind=kind, text=text, mechanism=Mechanism.WIRE)
