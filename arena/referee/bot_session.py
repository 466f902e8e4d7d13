"""A bot as the server sees it: its session, connection and seats, and what is to be sent to it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING

from msgspec import Raw

from arena.games.names import public_name
from arena.games.verdict import FORGIVABLE
from arena.referee.budget import Budget, Share
from arena.referee.clock import LoopLag, RoundTripFloor
from arena.referee.losses import ConnectionLoss
from arena.referee.missed_messages import MissedMessages
from arena.referee.pings import LinkProbe
from arena.referee.table_limit import QUICK_S, tables_at_once
from arena.referee.transport import Gate, LaunchedProcess, Wire
from protocol.codec import Encoding, FlatAsk, encode, encode_all, flat_ask
from protocol.errors import OutOfTurn
from protocol.messages import Answer, ArenaMessage, Ending, Hello, Over
from protocol.session import Session, State

if TYPE_CHECKING:
    from arena.referee.seat import MatchSeat

__all__ = ["BotSession"]

# Of a batch at most: WebSocket libraries refuse more than 1 MiB (Perl's Mojolicious 256 KiB), and a
# slow bot can start on the first of several.
_FRAME_BYTES = 128 * 1024
_BATCH = 256  # messages of a frame at most, which are mostly less than _FRAME_BYTES
_OPEN = State.OPEN  # looked up here, as an enum's members take long to find before Python 3.12
_CPU_TICK_S = 0.01  # Linux counts CPU time in hundredths of a second
_QUICKEST_S = 1e-6  # for an answer: no bot is quicker
_FEW_ANSWERS = 16  # fewer say nothing about how quick a bot is
_MANY_ANSWERS = 512  # then all so far count half, so that the latest count most


@dataclass(slots=True, eq=False, repr=False)
class BotSession:
    """One bot, from its first `hello` until it is gone for good.

    It may lose its connection in between. `mark_dirty` is called when there is something to write.
    """

    hello: InitVar[Hello]
    connection: Wire | None
    most_tables: InitVar[int]
    mark_dirty: Callable[[BotSession], None]
    assigned_name: InitVar[str | None] = None
    process: LaunchedProcess | None = None  # if the arena has launched it

    name: str = field(init=False)  # unique among those present
    public_name: str = field(init=False)  # that it is known by, as other processes of a bot are
    own_name: str = field(init=False)  # what it calls itself
    games: frozenset[str] = field(init=False)
    tables: int = field(init=False)  # the most matches that it takes at once
    token: str | None = field(init=False)
    secret: str = field(init=False)
    session: Session = field(default_factory=Session, init=False)
    leaving: bool = field(default=False, init=False)
    has_offended: bool = field(default=False, init=False)  # in some match
    gate: Gate | None = field(default=None, init=False)  # it waits there for a core

    # by the id that `match` gave them, those that are not over
    chairs: dict[str, MatchSeat] = field(default_factory=dict, init=False)
    held: int = field(default=0, init=False)  # tables kept free for matches that wait for others
    pending: int = field(default=0, init=False)  # questions without an answer
    asks: int = field(default=0, init=False)  # questions put to it so far
    answers: int = field(default=0, init=False)  # the latest, of which `_busy_s` is the time
    # A bot is one worker, however many tables it has. On the loop's clock.
    last_answer: float = field(default=0.0, init=False)
    is_metered: bool = field(init=False)  # charged CPU time, not the time on the wall
    cpu_ms: float = field(default=0.0, init=False)  # what it had used at its last answer
    # for how long it had had no core at its last answer that was not quick
    waited_ms: float | None = field(default=None, init=False)
    # While it is set, an event has ended matches by a forgivable offence; see `event_of`.
    event: str = field(default="", init=False)

    # called when its connection is lost, or another one is there
    on_link: Callable[[BotSession], None] = field(default=lambda player: None, init=False)
    link: RoundTripFloor = field(default_factory=RoundTripFloor, init=False)
    link_probe: LinkProbe = field(init=False)
    loss: ConnectionLoss | None = field(default=None, init=False)  # while its connection is lost
    heard_at: float = field(default=-math.inf, init=False)  # a frame or pong, on the loop's clock
    missed: MissedMessages = field(init=False)
    # What is to be sent. Nearly all of it are asks, which are encoded a frame at a time.
    outbox: list[Raw | FlatAsk] = field(default_factory=list, init=False)
    budget: Budget | None = field(default=None, init=False)  # None until it is welcome
    share: Share | None = field(default=None, init=False)  # only of who plays at the page

    _asked: list[MatchSeat] = field(default_factory=list, init=False)
    _batch: bool = field(init=False)
    _busy_s: float = field(default=0.0, init=False)
    _cpu_read_at: float = field(default=-math.inf, init=False)
    _cpu_read_ms: float = field(default=0.0, init=False)
    _encoding: Encoding = field(init=False)
    _event_at: float = field(default=-math.inf, init=False)
    _former_secret: str = field(default="", init=False)
    _latest_event: str = field(default="", init=False)

    def __post_init__(self, hello: Hello, most_tables: int, assigned_name: str | None) -> None:
        self.name = assigned_name or hello.name
        self.public_name = public_name(self.name)
        self.own_name = hello.name
        self.games = frozenset(hello.games)
        self.tables = min(hello.tables, most_tables)
        self.token = hello.token
        self.secret = new_secret()
        self.is_metered = self.process is not None and self.process.is_metered
        self.link_probe = LinkProbe(self)
        self.missed = MissedMessages(self)
        self._use(hello)

    @property
    def is_caught_up(self) -> bool:
        """Whether it is connected and has been told all that it had missed."""
        return self.connection is not None and self.missed.transcripts is None

    @property
    def is_away(self) -> bool:
        """Whether its connection is lost or silent, or it is still told what it missed (J7)."""
        return self.loss is not None or not self.is_caught_up

    @property
    def takes_matches(self) -> bool:
        """Whether it is connected, and has not said that it takes no further match (J10)."""
        return self.connection is not None and not self.session.finishing

    @property
    def is_free(self) -> bool:
        return self.has_room(1)

    def has_room(self, tables: int) -> bool:
        """Whether it can be given so many more matches now."""
        free = self.tables - len(self.chairs) - self.held
        return free >= tables and not (self.is_away or self.leaving or self.session.finishing)

    def free_tables(self, playing: int, progress: float, share: float = 1.0) -> int:
        """How many more matches of a competition to open with it now; 0 or less if none.

        It plays `playing` of them already, and they may have this `share` of its tables; for
        `progress` see `tables_at_once`.
        """
        if self.session.finishing:
            return 0
        answer_s, link_s = QUICK_S, self.link.floor_ms / 1000
        if self.answers >= _FEW_ANSWERS:
            answer_s = max(self._busy_s / self.answers, _QUICKEST_S)
        most = tables_at_once(1.0, self.tables, answer_s, link_s)
        enough = math.ceil(share * most)
        if progress < 1.0:
            enough = min(enough, tables_at_once(progress, self.tables, answer_s, link_s))
        return min(most - len(self.chairs) - self.held, enough - playing)

    def note_first_answer(self, asked_at: float, arrived: float) -> None:
        """Count the time to the first answer of a frame, from its question or the answer before."""
        began = max(asked_at + self.link.floor_ms / 1000, self.last_answer)
        self._busy_s += max(0.0, arrived - began)
        if self.answers >= _MANY_ANSWERS:
            self.answers //= 2
            self._busy_s /= 2

    @property
    def is_unresponsive(self) -> bool:
        """Whether it was out of time and not heard since; unknown on pipes, which have no pings."""
        connection = self.connection
        return self.event != "" and connection is not None and connection.has_link

    def cpu_used_ms(self, now: float) -> float:
        """The CPU time of its processes; not read more often than the kernel counts."""
        assert self.process is not None, "only of what the arena has launched"
        if now - self._cpu_read_at >= _CPU_TICK_S:
            self._cpu_read_at = now
            self._cpu_read_ms = self.process.cpu_ms()
        return self._cpu_read_ms

    def handed(self, at: float, lag_s: float) -> None:
        """A host has given it its question or invitation: the time of that begins."""
        for chair in self.chairs.values():
            chair.asked_at, chair.lag_s = at, lag_s

    def lag(self, by_arena: LoopLag) -> LoopLag:
        """How late is what comes from it: as the arena is, or its host."""
        own = None if self.process is None else self.process.lag
        return own or by_arena

    def used_ms(self) -> float:
        """For how long its processes have computed, or were ready to and had no core."""
        process = self.process
        return 0.0 if process is None else process.cpu_ms() + (process.waited_ms() or 0.0)

    @property
    def enforced(self) -> str:
        """Which limits it is held to; on another machine only the time can be measured."""
        return "time" if self.process is None else self.process.enforced

    def send(self, message: ArenaMessage) -> None:
        """Put a message into the outbox; a bot that is away gets it when it is back."""
        if type(message) is Over:
            self.missed.add(message)
        if self.is_caught_up:
            self.put(message)

    def answering(self, message: Answer) -> MatchSeat | None:
        """Note the answer to a question that waits, and return its seat.

        None for any other answer: `Session.note` says whether it is late or out of turn.
        """
        chair = self.chairs.get(message.match)
        if chair is None or self.session.state is not _OPEN:
            return None
        return chair if chair.standing.note_answer(message.ask) else None

    def ask(self, chair: MatchSeat) -> bool:
        """Send a seat's question if the bot is here; its time then starts with the frame."""
        question, ask_id = chair.question, chair.ask_id
        assert question is not None, "only called with a question"
        self.asks += 1
        chair.waiting = self.pending
        self.pending += 1
        if not self.is_caught_up:
            return False
        if not chair.standing.note_ask(ask_id):
            raise AssertionError(f"the arena may not ask {ask_id!r} now")
        if not self.outbox:
            self.mark_dirty(self)
        bank_ms, decision_ms = chair.clock.bank_ms, chair.limits.decision_ms
        ask = flat_ask(chair.id, ask_id, question, chair.told, bank_ms, decision_ms)
        self.outbox.append(ask)
        self._asked.append(chair)
        return True

    def flush(self, now: float, lag_s: float = 0.0) -> None:
        """Write the outbox in as few frames as possible; `lag_s` is the arena's lag up to now."""
        if self.missed.transcripts is not None:
            self.missed.tell()
        outbox, self.outbox = self.outbox, []
        for chair in self._asked:
            chair.asked_at = now
            chair.lag_s = lag_s
        self._asked = []
        connection = self.connection
        if connection is None:
            return
        if self.missed.is_repeated:
            self.connection_regained(now, lag_s)
        most = _BATCH if self._batch else 1
        for first in range(0, len(outbox), most):
            self._write(connection, outbox[first : first + most])

    # --- offences ---

    def event_of(self, chair: MatchSeat, kind: Ending, now: float) -> str:
        """The id of the event that ends a seat's match, the same for all matches that it ends.

        One lost connection, crash or freeze is one event. The matches that were open when it was
        first noticed belong to it, until the bot has answered a question that came later; and the
        questions that waited then, however late they are ruled on.
        """
        if kind not in FORGIVABLE:
            return chair.id
        was_open = chair.table.opened_at <= self._event_at
        waited = chair.asked_at <= self._event_at
        if not (was_open and (self.event or waited)):
            self._latest_event, self._event_at = chair.id, now
        self.event = self._latest_event
        return self.event

    def recovered(self, chair: MatchSeat) -> None:
        """A seat's question was answered in time; if it came after the event, that is over."""
        if chair.asked_at > self._event_at:
            self.event = ""

    # --- losing the connection and coming back ---

    def connection_lost(
        self,
        since: float,
        lag_s: float,
        by_arena: bool = False,
        by_ping: bool = False,
        closed_at: float | None = None,
    ) -> ConnectionLoss:
        """The connection is lost or its peer silent: the clocks of its seats stand.

        `lag_s` is the arena's total lag by now; `by_arena` says that a stall of it is the cause.
        A known loss keeps its beginning; if it was silent and is closed now, it goes on as lost.
        """
        match = next((chair.table.id for chair in self.chairs.values()), "")
        loss = self.loss = self.loss or ConnectionLoss(since, lag_s, by_arena, by_ping, match)
        if self.connection is None and loss.is_silent:
            loss.closed = since if closed_at is None else closed_at, lag_s
        return loss

    def connection_regained(self, now: float, lag_s: float) -> None:
        """It is back and has its questions: its clocks go on, its grace is less by the loss."""
        self.missed.is_repeated = False
        loss, self.loss = self.loss, None
        if loss is None:
            return
        loss.end()
        self.heard_at = now
        if self.last_answer < loss.since:
            self.last_answer += now - loss.since
        for chair in self.chairs.values():
            chair.go_on(loss, now, lag_s)

    def disconnected(self) -> None:
        """The connection is gone; the bot keeps its seats."""
        self.connection = None
        self.outbox = []
        self._asked = []
        self.missed.disconnected()
        self.session.disconnected()
        self.on_link(self)

    def resumed(self, hello: Hello, connection: Wire) -> None:
        """The same bot is back over another connection; what it may have missed is sent next."""
        self.connection = connection
        self._former_secret = hello.resume or ""
        self.secret = new_secret()
        # It may have moved to another network.
        self.link = RoundTripFloor(self.link.floor_ms)
        self.link_probe = LinkProbe(self)
        self._use(hello)
        self.on_link(self)

    @property
    def sessions(self) -> tuple[str, ...]:
        """The secrets of its latest session and, while that is still valid, of the one before."""
        return tuple(filter(None, (self.secret, self._former_secret)))

    def is_session(self, secret: str) -> bool:
        """Whether the secret is that of one of its `sessions`; compared in constant time."""
        given = secret.encode()
        return any(secrets.compare_digest(valid.encode(), given) for valid in self.sessions)

    def note_welcome_arrived(self) -> None:
        """What it sent shows that it has its new secret: the one before is not valid any more."""
        self._former_secret = ""

    # --- within ---

    def put(self, message: ArenaMessage) -> int:
        """Put a message into the outbox of a bot that is connected; returns its size in bytes."""
        try:
            self.session.note(message)
        except OutOfTurn as error:  # our mistake, not that of the bot whose frame is served
            raise AssertionError(f"the arena may not say this now: {error}") from error
        if not self.outbox:
            self.mark_dirty(self)
        part = encode(message, self._encoding)
        self.outbox.append(Raw(part))
        return len(part)

    def _write(self, connection: Wire, parts: list[Raw | FlatAsk]) -> None:
        """Write messages in one frame, or in several if that would be too long."""
        frame = encode_all(parts, self._encoding)
        if len(frame) <= _FRAME_BYTES or len(parts) == 1:
            connection.send(frame, self._encoding)
        else:
            half = len(parts) // 2
            self._write(connection, parts[:half])
            self._write(connection, parts[half:])

    def _use(self, hello: Hello) -> None:
        assert self.connection is not None, "the hello came over it"
        self._batch = hello.batch
        self._encoding = self.connection.encoding or Encoding.JSON


def new_secret() -> str:
    """The secret of a session: 128 random bits, with which it can be resumed."""
    return secrets.token_hex(16)
