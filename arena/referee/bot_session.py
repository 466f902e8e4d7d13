"""A bot as the server sees it: its session, its connection if it has one, its chairs, and what waits to be sent to it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from arena.engine.verdict import FORGIVABLE
from arena.referee.budget import Budget, Share
from arena.referee.clock import RoundTripFloor
from arena.referee.losses import ConnectionLoss
from arena.referee.missed_messages import MissedMessages
from arena.referee.pings import LinkProbe
from arena.referee.table_limit import QUICK_S, tables_at_once
from arena.referee.transport import LaunchedProcess, Wire
from protocol.codec import Encoding, encode, join
from protocol.errors import OutOfTurn
from protocol.messages import ArenaMessage, Ending, Hello, Over
from protocol.session import Session

if TYPE_CHECKING:
    from arena.referee.seat import MatchSeat

__all__ = ["BotSession"]

_FRAME_BYTES = 128 * 1024
"""No batch is longer: WebSocket libraries refuse more than 1 MiB, or 256 KiB as Perl's Mojolicious, and a slow bot can start on the first."""
_AROUND_BYTES = 8  # what `join` puts around a batch at most
_CPU_TICK_S = 0.01  # Linux counts CPU time in hundredths
_QUICKEST_S = 1e-6  # for an answer; no bot is quicker
_FEW_ANSWERS = 16  # say nothing of how quick a bot is
_MANY_ANSWERS = 512  # after so many the older half counts half


class BotSession:
    """One bot, from its first `hello` until it is gone for good; it may lose its connection in between.

    Args:
        hello: what it said.
        connection: over which.
        most_tables: how many it may have at once.
        mark_dirty: called when there is something to write.
        name: what it is called, if it does not say so itself.
        process: if the arena has launched it.

    Attributes:
        name: what it is called; unique among those present.
        own_name: what it calls itself.
        games: what it plays.
        tables: how many matches it takes at once.
        chairs: by the id that `match` gave them, those that are not over.
        pending: how many questions it has not answered yet.
        answers: how many of its latest answers `note_first_answer` knows of.
        last_answer: when its latest answer came, on the loop's clock; a bot is one worker, however many tables it has.
        is_metered: whether it is charged CPU time and not the time on the wall.
        cpu_ms: what its processes had used at that moment, if they are ours.
        on_link: called when its connection is lost, or another one is there.
        asks: how many questions have been put to it.
        link: how quick its connection is at best.
        link_probe: measures that, and sees that somebody is there.
        loss: that of its connection, while it is lost.
        missed: what it may have missed meanwhile.
        outbox: the messages that are to be written next, encoded.
        budget: how much of what it says may come to nothing; None until it is welcome.
        share: of the arena's time that it is served from, if it plays at the page or with those who do; bots have none.
        event: the id of the event that has ended matches of it by a forgivable offence, until it is heard of again; else empty.
    """

    __slots__ = (
        "_asked",
        "_batch",
        "_busy_s",
        "_cpu_read_at",
        "_cpu_read_ms",
        "_encoding",
        "_event_at",
        "_former_secret",
        "_latest_event",
        "answers",
        "asks",
        "budget",
        "chairs",
        "connection",
        "cpu_ms",
        "event",
        "games",
        "is_metered",
        "last_answer",
        "leaving",
        "link",
        "link_probe",
        "loss",
        "mark_dirty",
        "missed",
        "name",
        "on_link",
        "outbox",
        "own_name",
        "pending",
        "process",
        "secret",
        "session",
        "share",
        "tables",
        "token",
    )

    def __init__(
        self,
        hello: Hello,
        connection: Wire,
        most_tables: int,
        mark_dirty: Callable[[BotSession], None],
        name: str | None = None,
        process: LaunchedProcess | None = None,
    ) -> None:
        self.name = name or hello.name
        self.own_name = hello.name
        self.games = frozenset(hello.games)
        self.tables = min(hello.tables, most_tables)
        self.token = hello.token
        self.process = process
        self.is_metered = process is not None and process.is_metered
        self.secret = new_secret()
        self._former_secret = ""
        self.session = Session()
        self.connection: Wire | None = connection
        self.chairs: dict[str, MatchSeat] = {}
        self.pending = 0
        self.last_answer = 0.0
        self.answers = 0
        self._busy_s = 0.0
        self.cpu_ms = 0.0
        self.asks = 0
        self.link = RoundTripFloor()
        self.link_probe = LinkProbe(self)
        self.budget: Budget | None = None
        self.share: Share | None = None
        self.loss: ConnectionLoss | None = None
        self.leaving = False
        self.event = ""
        self._latest_event = ""
        self._event_at = -math.inf
        self._cpu_read_at = -math.inf
        self._cpu_read_ms = 0.0
        self._batch = hello.batch
        self._encoding = connection.encoding or Encoding.JSON
        self.outbox: list[bytes] = []
        self._asked: list[MatchSeat] = []
        self.missed = MissedMessages(self)
        self.mark_dirty = mark_dirty
        self.on_link: Callable[[BotSession], None] = lambda player: None

    @property
    def is_caught_up(self) -> bool:
        """Whether it is connected and hears what is said now; not while it is still told what was before."""
        return self.connection is not None and self.missed.transcripts is None

    @property
    def is_away(self) -> bool:
        """Whether its connection is lost, or silent, or it is still told what it has missed (J7)."""
        return self.loss is not None or not self.is_caught_up

    @property
    def is_free(self) -> bool:
        """Whether another match can be opened with it now."""
        if self.is_away or self.leaving:
            return False
        return len(self.chairs) < self.tables

    def free_tables(self, playing: int, come: float, share: float = 1.0) -> int:
        """How many matches more of a competition are to be opened with it now; below 0 if it has more than keep it busy.

        Args:
            playing: at how many of that competition it sits.
            come: how far the first of them have come; see `tables_at_once`.
            share: which part of its tables is that competition's.
        """
        answer_s, link_s = QUICK_S, self.link.floor_ms / 1000
        if self.answers >= _FEW_ANSWERS:
            answer_s = max(self._busy_s / self.answers, _QUICKEST_S)
        most = tables_at_once(1.0, self.tables, answer_s, link_s)
        now = tables_at_once(come, self.tables, answer_s, link_s)
        enough = min(now, math.ceil(share * most))
        return min(most - len(self.chairs), enough - playing)

    def note_first_answer(self, asked_at: float, arrived: float) -> None:
        """The first answer of a frame has come: what has passed since the one before, or since the question was there, was its time."""
        began = max(asked_at + self.link.floor_ms / 1000, self.last_answer)
        self._busy_s += max(0.0, arrived - began)
        if self.answers >= _MANY_ANSWERS:
            self.answers //= 2
            self._busy_s /= 2

    @property
    def is_unresponsive(self) -> bool:
        """Whether it was out of time and has not been heard since; of a bot on its pipes, which answers no pings, nobody knows."""
        connection = self.connection
        return self.event != "" and connection is not None and connection.has_link

    def cpu_used_ms(self, now: float) -> float:
        """What the processes of a bot of ours have used; read no oftener than the kernel counts."""
        assert self.process is not None, "only of what the arena has launched"
        if now - self._cpu_read_at >= _CPU_TICK_S:
            self._cpu_read_at = now
            self._cpu_read_ms = self.process.cpu_ms()
        return self._cpu_read_ms

    @property
    def enforced(self) -> str:
        """Which limits it is held to; of what runs on another machine, only the time can be measured."""
        return "time" if self.process is None else self.process.enforced

    def send(self, message: ArenaMessage) -> None:
        """Put a message into the outbox; without a connection it is sent when the bot is back."""
        if type(message) is Over:
            self.missed.add(message)
        if self.is_caught_up:
            self.put(message)

    def ask(self, chair: MatchSeat) -> bool:
        """Send a chair's question; whether its time starts only when the frame is written, as the bot is here."""
        assert chair.ask is not None, "only called with a question"
        self.asks += 1
        is_here = self.is_caught_up
        if is_here:
            self.put(chair.ask)
            self._asked.append(chair)
        return is_here

    def flush(self, now: float, lag_s: float = 0.0) -> None:
        """Write what waits in the outbox, as few frames as possible; `lag_s` is the arena's own up to now."""
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
        if not self._batch or len(outbox) == 1:
            for part in outbox:
                connection.send(part, self._encoding)
            return
        while outbox:
            size, count = _AROUND_BYTES + len(outbox[0]), 1
            while count < len(outbox):
                size += len(outbox[count]) + 1  # a comma
                if size > _FRAME_BYTES:
                    break
                count += 1
            connection.send(join(outbox[:count], self._encoding), self._encoding)
            del outbox[:count]

    # --- offences ---

    def event_of(self, chair: MatchSeat, kind: Ending, now: float) -> str:
        """The id of the event that ends a chair's match: one for all that a lost connection, a crash or a freeze brings about.

        To an event belong the matches that were open when it was first noticed, until the bot has answered a question that came
        later; and the questions that waited then, however late they are ruled on.
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
        """A chair's question was answered in time: if it came after the event, that is over."""
        if chair.asked_at > self._event_at:
            self.event = ""

    # --- losing the connection and coming back ---

    def connection_lost(self, since: float, lag_s: float, by_arena: bool = False) -> ConnectionLoss:
        """The connection is lost, or its peer has been silent, since then: the clocks of its seats stand.

        Args:
            since: a time of the loop's clock.
            lag_s: the arena's lag in all by now.
            by_arena: whether a stall of the arena brought it about.
        """
        is_silent = self.connection is not None
        if self.loss is None:
            self.loss = ConnectionLoss(since, lag_s, is_silent, by_arena)
        self.loss.is_silent = is_silent  # else it was silent first, and is closed now
        return self.loss

    def connection_regained(self, now: float, lag_s: float) -> None:
        """It is there again and has its questions: its clocks go on where they stood, and its grace is less by what it took."""
        self.missed.is_repeated = False
        loss, self.loss = self.loss, None
        if loss is None:
            return
        if self.last_answer < loss.since:
            self.last_answer += now - loss.since
        for chair in self.chairs.values():
            chair.go_on(loss, now, lag_s)

    def disconnected(self) -> None:
        """The connection is gone; the chairs stay."""
        self.connection = None
        self.outbox = []
        self._asked = []
        self.missed.disconnected()
        self.session.disconnected()
        self.on_link(self)

    def resumed(self, hello: Hello, connection: Wire) -> None:
        """The same bot is back over another connection; its next messages are those that it may have missed."""
        self.connection = connection
        self._former_secret = hello.resume or ""
        self.secret = new_secret()
        # It may have moved to another network.
        self.link = RoundTripFloor(self.link.floor_ms)
        self.link_probe = LinkProbe(self)
        self._batch = hello.batch
        self._encoding = connection.encoding or Encoding.JSON
        self.on_link(self)

    @property
    def sessions(self) -> tuple[str, ...]:
        """The secrets of its latest session and, as long as it may go on with that, of the one before."""
        return tuple(filter(None, (self.secret, self._former_secret)))

    def is_session(self, secret: str) -> bool:
        """Whether somebody who says that is this bot: it is the latest session, or the one before as long as the bot may not have
        heard of the latest.
        """
        given = secret.encode()
        former = self._former_secret
        return secrets.compare_digest(self.secret.encode(), given) or (
            former != "" and secrets.compare_digest(former.encode(), given)
        )

    def note_welcome_arrived(self) -> None:
        """What the bot has sent shows it: from now on only its latest session counts."""
        self._former_secret = ""

    # --- within ---

    def put(self, message: ArenaMessage) -> None:
        """Put a message into the outbox of a bot that is connected."""
        try:
            self.session.note(message)
        except OutOfTurn as error:  # ours, not that of whoever's frame we are serving
            raise AssertionError(f"the arena may not say this now: {error}") from error
        if not self.outbox:
            self.mark_dirty(self)
        self.outbox.append(encode(message, self._encoding))


def new_secret() -> str:
    """128 random bits, for a session: whoever has them can go on in its place."""
    return secrets.token_hex(16)
