"""A bot as the server sees it, its seats, and the network matches that it plays in.

A session is in one of four states. While it is HERE, the clocks of its seats run and it is given
matches. In every other state it uses up the grace or silence of each match that it plays (J7).

    state      connection  loss    what ends it
    HERE       some        None    it is silent → SILENT, it is closed → LOST
    SILENT     some        silent  anything is heard from it → HERE, it is closed → LOST
    LOST       None        closed  `resume` → TOLD, its time is over → it is gone
    TOLD       some        closed  all that it missed is written → HERE, it is closed → LOST

A bot in TOLD is sent the transcripts of its matches, if it asks for them, and then the messages
that were sent last; it ignores those that it has. A connection that was SILENT and is then LOST
continues with the grace: a laptop that has slept comes back with a closed socket. What follows if a
bot does not come back is in `arena/referee/losses.py`, and what time costs in `decision_time.py`.
"""

from __future__ import annotations

import math
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from arena.games.match import MatchResult, MatchState
from arena.games.names import alike, owner_of, public_name
from arena.games.rules import Game
from arena.games.shuffle import commitment
from arena.games.verdict import FORGIVABLE, Finding, advice
from arena.referee.budget import Budget, Share
from arena.referee.clock import LoopLag, RoundTripFloor
from arena.referee.decision_time import BotTime, ConnectionLoss, SeatTime
from arena.referee.table_limit import QUICK_S, tables_at_once
from arena.referee.transport import Gate, Wire
from protocol.codec import Encoding, FlatAsk, encode, encode_all, flat_ask
from protocol.errors import OutOfTurn
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Ending,
    Hello,
    Limits,
    Match,
    Over,
    Past,
    Ready,
    Verdict,
)
from protocol.session import SeatStanding, Session, State, ask_id
from protocol.vocabulary import News, Question, Settings

__all__ = ["NOTE_BYTES", "BotSession", "Forgives", "Inquiry", "LiveMatch", "MatchSeat", "OnOver"]

NOTE_BYTES = 256 * 1024
"""The most notes per seat in a record, as JSON: notes on a million answers fit into no database."""

# The largest batch: WebSocket libraries refuse more than 1 MiB (Perl's Mojolicious 256 KiB), and a
# slow bot can start on the first of several batches.
_FRAME_BYTES = 128 * 1024
_BATCH = 256  # messages per frame at most; they mostly total less than _FRAME_BYTES
_OPEN = State.OPEN  # a global, as Python before 3.12 takes long to find members of an enum
_QUICKEST_S = 1e-6  # the least time for an answer: no bot is quicker
_FEW_ANSWERS = 16  # fewer do not show how quick a bot is
_MANY_ANSWERS = 512  # then all so far are halved, so that the latest count most

_PAST_BYTES = 32 * 1024  # of transcripts at once: some milliseconds of rules
_STANDINGS = 8  # more competitions than end while a bot is away
_STEP_BYTES = 128  # a step that is not sent counts as this much

_PING_S = 5.0  # between pings once the link is known; until then each follows the last pong
_PING_MOST_S = 20.0  # the longest time between pings: each waits twice as long as the last
_LOOK_S = 2.0  # between pings while a bot thinks for longer than its free time (J7)
_LOOK_PINGS = 16  # that may be unanswered, as a thinking bot may read nothing
# An idle bot that leaves a ping unanswered for this long is gone. With `_PING_MOST_S` before the
# ping, that is noticed within a minute.
_SILENCE_S = 35.0
_SOON_S = 0.25  # between probes of a bot whose link is not known

OnOver: TypeAlias = Callable[["LiveMatch", MatchResult, Verdict | None], None]
Forgives: TypeAlias = Callable[[str, Ending, str], bool]
"""(bot, offence, event) → whether it costs the bot no more than the match (J3)."""


@dataclass(slots=True)
class _Pings:
    """The pings over one connection, which measure its link and detect a silent peer."""

    ping: tuple[bytes, float, float] | None = None  # unanswered: payload, time sent, lag then
    asks_then: int = 0  # the questions put to the bot by then
    asks_seen: int = 0
    due: float = 0.0
    wait_s: float = field(default_factory=lambda: _PING_S)
    looks: tuple[bytes, ...] = ()  # payloads of the pings sent while it thinks
    looked_at: float = 0.0


@dataclass(slots=True, eq=False, repr=False)
class BotSession(BotTime):
    """One bot, from its first `hello` until it is gone for good.

    Its connection may be lost in between. `mark_dirty` is called when there is something to write.
    """

    hello: InitVar[Hello]
    connection: Wire | None
    most_tables: InitVar[int]
    mark_dirty: Callable[[BotSession], None]
    assigned_name: InitVar[str | None] = None

    name: str = field(init=False)  # unique among the bots present
    public_name: str = field(init=False)  # shared with other processes of the same bot
    own_name: str = field(init=False)  # from its `hello`
    games: frozenset[str] = field(init=False)
    tables: int = field(init=False)  # the most matches that it accepts at once
    token: str | None = field(init=False)
    secret: str = field(init=False)
    session: Session = field(default_factory=Session, init=False)
    leaving: bool = field(default=False, init=False)
    has_offended: bool = field(default=False, init=False)  # in any match
    gate: Gate | None = field(default=None, init=False)  # where it waits for a core

    # Its open matches, by the id that `match` gave them.
    chairs: dict[str, MatchSeat] = field(default_factory=dict, init=False)
    held: int = field(default=0, init=False)  # tables kept free for matches that wait for others
    pending: int = field(default=0, init=False)  # open questions
    asks: int = field(default=0, init=False)  # questions sent so far
    answers: int = field(default=0, init=False)  # the latest ones, which took `_busy_s`
    # Not empty while an event has ended matches by a forgivable offence; see `event_of`.
    event: str = field(default="", init=False)

    # Called when its connection is lost or replaced.
    on_link: Callable[[BotSession], None] = field(default=lambda player: None, init=False)
    heard_at: float = field(default=-math.inf, init=False)  # last frame or pong, loop's clock
    # What is to be sent: nearly all asks, which are encoded one frame at a time.
    outbox: list[Raw | FlatAsk] = field(default_factory=list, init=False)
    budget: Budget | None = field(default=None, init=False)  # None before `welcome`
    share: Share | None = field(default=None, init=False)  # only for players at the page

    _asked: list[MatchSeat] = field(default_factory=list, init=False)
    _batch: bool = field(init=False)
    _busy_s: float = field(default=0.0, init=False)
    _encoding: Encoding = field(init=False)
    _event_at: float = field(default=-math.inf, init=False)
    _former_secret: str = field(default="", init=False)
    _latest_event: str = field(default="", init=False)
    _pings: _Pings = field(default_factory=_Pings, init=False)
    # What it still has to be sent of matches that it has forgotten.
    _transcripts: Iterator[Match | Past | None] | None = field(default=None, init=False)
    # Everything that it missed is in the outbox; its clocks continue when that is written.
    _is_repeated: bool = field(default=False, init=False)
    _overs: deque[Over] = field(init=False)  # the latest, which it may not have got
    _standings: deque[Over] = field(default_factory=lambda: deque(maxlen=_STANDINGS), init=False)
    _repeats: set[tuple[type[BotMessage], str]] = field(default_factory=set, init=False)

    def __post_init__(self, hello: Hello, most_tables: int, assigned_name: str | None) -> None:
        self.name = assigned_name or hello.name
        self.public_name = public_name(self.name)
        self.own_name = hello.name
        self.games = frozenset(hello.games)
        self.tables = min(hello.tables, most_tables)
        self.token = hello.token
        self.secret = new_secret()
        self.is_metered = self.process is not None and self.process.is_metered
        self._overs = deque(maxlen=self.tables)
        self._use(hello)

    @property
    def is_caught_up(self) -> bool:
        """Whether it is connected and has been told all that it had missed."""
        return self.connection is not None and self._transcripts is None

    @property
    def is_away(self) -> bool:
        """Whether its connection is lost or silent, or it is still told what it missed (J7)."""
        return self.loss is not None or not self.is_caught_up

    @property
    def takes_matches(self) -> bool:
        """Whether it is connected and has not said that it takes no further match (J10)."""
        return self.connection is not None and not self.session.finishing

    @property
    def is_free(self) -> bool:
        return self.has_room(1)

    def has_room(self, tables: int) -> bool:
        """Whether it can be given this many more matches now."""
        free = self.tables - len(self.chairs) - self.held
        return free >= tables and not (self.is_away or self.leaving or self.session.finishing)

    def free_tables(self, playing: int, progress: float, share: float = 1.0) -> int:
        """How many more matches of a competition to open with it now; 0 or less if none.

        It already plays `playing` of them, and they may have this `share` of its tables; for
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
        """Count the time of a frame's first answer, since its question or the answer before."""
        began = max(asked_at + self.link.floor_ms / 1000, self.last_answer)
        self._busy_s += max(0.0, arrived - began)
        if self.answers >= _MANY_ANSWERS:
            self.answers //= 2
            self._busy_s /= 2

    @property
    def is_unresponsive(self) -> bool:
        """Whether it was out of time and silent since; unknown on pipes, which have no pings."""
        connection = self.connection
        return self.event != "" and connection is not None and connection.has_link

    def handed(self, at: float, lag_s: float) -> None:
        """A host has handed it its question or invitation, so its time begins."""
        for chair in self.chairs.values():
            chair.asked_at, chair.lag_s = at, lag_s

    @property
    def enforced(self) -> str:
        """Which limits it is held to; on another machine only time can be measured."""
        return "time" if self.process is None else self.process.enforced

    def send(self, message: ArenaMessage) -> None:
        """Put a message into the outbox; a bot that is away gets it when it is back."""
        if type(message) is Over:
            (self._overs if message.standing is UNSET else self._standings).append(message)
            if self.leaving:
                self._transcripts = None  # otherwise its verdict would follow them, too late
        if self.is_caught_up:
            self._put(message)

    def answering(self, message: Answer) -> MatchSeat | None:
        """Note the answer to an open question, and return its seat.

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
        if self._transcripts is not None:
            self._tell_past(self._transcripts)
        outbox, self.outbox = self.outbox, []
        for chair in self._asked:
            chair.asked_at = now
            chair.lag_s = lag_s
        self._asked = []
        connection = self.connection
        if connection is None:
            return
        if self._is_repeated:
            self.connection_regained(now, lag_s)
        most = _BATCH if self._batch else 1
        for first in range(0, len(outbox), most):
            self._write(connection, outbox[first : first + most])

    # --- offences ---

    def event_of(self, chair: MatchSeat, kind: Ending, now: float) -> str:
        """The id of the event that ends a seat's match, the same for all matches that it ends.

        One lost connection, crash or freeze is one event. When it is first noticed, all open
        matches belong to it until the bot has answered a question asked later. The questions that
        were open then belong to it however late they are ruled on.
        """
        if kind not in FORGIVABLE:
            return chair.id
        was_open = chair.table.opened_at <= self._event_at
        waited = chair.asked_at <= self._event_at
        if not (was_open and (self.event or waited)):
            self._latest_event, self._event_at = chair.id, now
        self.event = self._latest_event
        return self.event

    def recovered(self, asked_at: float) -> None:
        """Note an answer in time; if its question came after the event, the event is over."""
        if asked_at > self._event_at:
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
        """Stop the clocks of its seats, as its connection is lost or the peer is silent.

        `lag_s` is the arena's total lag by now; `by_arena` says that a stall of the arena is the
        cause. A known loss keeps its beginning; a silent connection that is closed now is lost.
        """
        match = next((chair.table.id for chair in self.chairs.values()), "")
        loss = self.loss = self.loss or ConnectionLoss(since, lag_s, by_arena, by_ping, match)
        if self.connection is None and loss.is_silent:
            loss.closed = since if closed_at is None else closed_at, lag_s
        return loss

    def connection_regained(self, now: float, lag_s: float) -> None:
        """Let its clocks go on, as it is back and has its questions; the loss reduces its grace."""
        self._is_repeated = False
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
        """Note that the connection is gone; the bot keeps its seats."""
        self.connection = None
        self.outbox = []
        self._asked = []
        self._transcripts = None
        self._is_repeated = False
        self.session.disconnected()
        self.on_link(self)

    def resumed(self, hello: Hello, connection: Wire) -> None:
        """The same bot is back over another connection; what it may have missed is sent next."""
        self.connection = connection
        self._former_secret = hello.resume or ""
        self.secret = new_secret()
        # It may have moved to another network.
        self.link = RoundTripFloor(self.link.floor_ms)
        self._pings = _Pings()
        self._use(hello)
        self.on_link(self)

    @property
    def sessions(self) -> tuple[str, ...]:
        """The secrets of its latest session and, while still valid, of the one before."""
        return tuple(filter(None, (self.secret, self._former_secret)))

    def is_session(self, secret: str) -> bool:
        """Whether the secret is one of its `sessions`; compared in constant time."""
        given = secret.encode()
        return any(secrets.compare_digest(valid.encode(), given) for valid in self.sessions)

    def note_welcome_arrived(self) -> None:
        """Its message shows that it has the new secret, so the former one becomes invalid."""
        self._former_secret = ""

    # --- what it missed ---

    def resend_unseen(self, first: int | None = None) -> None:
        """After `resumed` and `welcome`: resend what the bot may not have got.

        `first` is how many questions of every match it remembers, or None if it remembers all.
        """
        # One `ready` per match may be repeated, and one answer per question, at however many
        # resumes.
        self._repeats = {(Ready, match) for match in self.chairs}
        for chair in self.chairs.values():
            if chair.repeated < chair.asked:
                chair.repeated = chair.asked
                self._repeats.add((Answer, chair.id))
        self.mark_dirty(self)  # even if there is nothing to resend: its clocks go on then
        if first is not None:
            self._transcripts = self._past(first)
            return
        self._is_repeated = True
        overs = (*self._overs, *self._standings)
        self._overs.clear()
        self._standings.clear()
        for over in overs:
            self.send(over)
        for chair in self.chairs.values():
            assert chair.invitation is not None, "seats are invited at once"
            self.send(chair.invitation)
            if (ask := chair.ask) is not None:
                self.send(ask)  # its time goes on when that is written

    def may_repeat(self, message: BotMessage) -> bool:
        """Whether a message without effect is a repetition due to `resume`; true once for each."""
        if not isinstance(message, Answer | Ready):
            return False
        key = type(message), message.match
        if key not in self._repeats:
            return False
        self._repeats.remove(key)
        return True

    # --- pings ---

    @property
    def unanswered_since(self) -> float:
        """When the unanswered ping was sent; call it only after `probe` returned None."""
        assert self._pings.ping is not None, "it was silent for too long"
        return self._pings.ping[1]

    def probe(self, now: float, lag_s: float = 0.0) -> float | None:
        """Measure the link if the bot is idle, and check that it answers.

        `lag_s` is the arena's total lag by `now`, which does not count as silence of the bot.
        Returns when to probe again, infinity for never; None if the bot was silent for too long.
        """
        pings, connection, is_known = self._pings, self.connection, self.link.is_known
        if connection is None or not connection.has_link:
            return math.inf
        soon = now + (pings.wait_s if is_known else _SOON_S)
        if self.pending or not self.is_caught_up:
            pings.due = soon if is_known else now
            return soon
        if pings.ping is None and now >= pings.due:
            payload = secrets.token_bytes(16)
            pings.ping = payload, now, lag_s
            pings.asks_then = pings.asks_seen = self.asks
            connection.ping(payload)
        if pings.ping is None:
            return pings.due
        # A thinking bot may be silent, as its clock runs, and it may have thought until now.
        if pings.asks_seen != self.asks:
            pings.asks_seen = self.asks
            pings.ping = pings.ping[0], now, lag_s
        _, sent_at, lag_then_s = pings.ping
        left_s = _SILENCE_S - (now - sent_at - (lag_s - lag_then_s))
        return min(soon, now + left_s) if left_s > 0 else None

    def look(self, now: float, *, at_once: bool = False) -> float | None:
        """Since when the machine of a thinking bot has been silent; None if it is not (J7).

        A ping goes out every `_LOOK_S`; the kernel acknowledges it, whatever the bot does. It goes
        out `at_once` where a seat's fate depends on whether the bot is here (J9).
        """
        pings, connection = self._pings, self.connection
        if connection is None or not connection.has_link:
            return None
        silent_since = connection.silent_since(now)
        if self.loss is None and (at_once or now - pings.looked_at >= _LOOK_S):
            pings.looked_at = now
            payload = secrets.token_bytes(16)
            pings.looks = (*pings.looks, payload)[-_LOOK_PINGS:]
            connection.ping(payload)
        return silent_since

    def ponged(self, payload: bytes, now: float) -> bool:
        """Whether a pong answers our ping; it is measured if the bot had nothing else to do."""
        pings = self._pings
        if payload in pings.looks:
            since = pings.looks.index(payload) + 1
            pings.looks = pings.looks[since:]
            self.event = ""
            return True
        if pings.ping is None or payload != pings.ping[0]:
            return False
        self.note_welcome_arrived()  # the welcome was sent before the ping
        self.event = ""
        sent_at = pings.ping[1]
        pings.ping = None
        if pings.asks_then == self.asks:
            self.link.measured((now - sent_at) * 1000)
        pings.due = now
        if self.link.is_known:
            pings.due += pings.wait_s
            pings.wait_s = min(2 * pings.wait_s, _PING_MOST_S)
        return True

    # --- within ---

    def _put(self, message: ArenaMessage) -> int:
        """Put a message into the outbox of a connected bot; returns its size in bytes."""
        try:
            self.session.note(message)
        except OutOfTurn as error:  # our mistake, not that of the bot whose frame is served
            raise AssertionError(f"the arena may not say this now: {error}") from error
        if not self.outbox:
            self.mark_dirty(self)
        part = encode(message, self._encoding)
        self.outbox.append(Raw(part))
        return len(part)

    def _tell_past(self, transcripts: Iterator[Match | Past | None]) -> None:
        """Send the next piece of the transcripts unless the bot is slow to read.

        After the last piece, send what else it missed, and what has happened meanwhile.
        """
        connection = self.connection
        assert connection is not None, "it has come back for it"
        size = 0
        while not connection.is_behind and size < _PAST_BYTES:
            try:
                message = next(transcripts)
            except StopIteration:
                self._transcripts = None
                self.resend_unseen()
                return
            size += _STEP_BYTES if message is None else self._put(message)
        if not connection.is_behind:
            self.mark_dirty(self)  # continues in the next turn of the loop

    def _past(self, first: int) -> Iterator[Match | Past | None]:
        """Yield the open matches, and their questions after the `first` ones, with answers.

        Yields None for each skipped question: it took a step of the rules, too, so the caller may
        pause.
        """
        for chair in tuple(self.chairs.values()):
            match = chair.table.match
            if chair.invitation is None or chair.table.is_over:
                continue
            yield chair.invitation
            past = () if match is None else match.history_for(chair.seat)
            for number, (question, news, answer) in enumerate(past, start=1):
                ask = ask_id(chair.id, number)
                skipped = number <= first
                yield None if skipped else Past(chair.id, ask, question, news, answer)

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


class Inquiry(NamedTuple):
    """All seats of a match were pinged, as one of them is away or late (J9)."""

    asked_at: float  # on the loop's clock
    lag_s: float  # the arena's total lag at that moment
    is_late: bool = True  # otherwise that seat still has time


@dataclass(slots=True, eq=False, repr=False)
class MatchSeat(SeatTime):
    """One seat of one match, and the bot that sits there."""

    table: LiveMatch
    seat: int
    player: BotSession
    id: str = field(init=False)  # the id of this seat of this match on the wire
    grace_s: float = field(init=False)  # how long its connection may still be lost
    silence_s: float = field(init=False)  # how long it may still be silent
    # Since when the seats of its match are asked whether they are here, while it is away or late.
    inquiry: Inquiry | None = field(default=None, init=False)
    standing: SeatStanding = field(init=False)  # in the player's session
    invitation: Match | None = field(default=None, init=False)
    question: Question[Any] | None = field(default=None, init=False)  # the pending one
    told: tuple[News, ...] = field(default=(), init=False)  # with the latest question
    news: tuple[News, ...] = field(default=(), init=False)  # since then
    asked: int = field(default=0, init=False)  # the number of questions so far
    ask_id: str = field(default="", init=False)  # of the latest question
    repeated: int = field(default=0, init=False)  # `asked` when a question was last resent
    is_queued: bool = field(default=False, init=False)  # not asked yet: the bot has no core
    notes_left: int = field(default=NOTE_BYTES, init=False)  # bytes of notes
    watched_until: float = field(default=math.inf, init=False)  # its entry in the referee's heap

    def __post_init__(self) -> None:
        SeatTime.__post_init__(self)  # `super()` does not know a class with slots
        self.id = f"{self.table.id}.{self.seat}"
        self.grace_s = self.limits.grace_ms / 1000
        self.silence_s = self.limits.silence_ms / 1000
        self.standing = self.player.session.standing(self.id)

    @property
    def ask(self) -> Ask | None:
        """The pending question as a message; None if there is none."""
        question, limits = self.question, self.limits
        if question is None:
            return None
        bank_ms = self.clock.bank_ms
        return Ask(self.id, self.ask_id, question, self.told, bank_ms, limits.decision_ms)

    def put(self, question: Question[Any], now: float) -> None:
        """Make this the pending question, sent with the news since the one before."""
        self.asked += 1
        self.ask_id = ask_id(self.id, self.asked)
        self.question = question
        self.told, self.news = self.news, ()
        self.asked_at = now  # until it is written
        self.time_charge = self.inquiry = None

    def invite(self, invitation: Match) -> None:
        """Seat the bot; a bot that waits for a core is told later."""
        self.invitation = invitation
        self.player.chairs[self.id] = self
        if self.player.gate is None:
            self.player.send(invitation)

    def note_within_limit(self, note: str | None) -> str | None:
        """The note if the record has room for it, else None."""
        if note is None:
            return None
        self.notes_left -= len(msgspec.json.encode(note))
        return note if self.notes_left >= 0 else None

    @property
    def has_been_away(self) -> bool:
        """Whether its connection was lost in this match, not by the arena's fault, and is back."""
        limits = self.limits
        return self.grace_s * 1000 < limits.grace_ms or self.silence_s * 1000 < limits.silence_ms

    def away_left_s(self, loss: ConnectionLoss, now: float, lag_s: float) -> float:
        """How long the connection may still be lost, or silent, until the seat's time is over (J9).

        Negative if the time is over.
        """
        silent_s, lost_s = loss.parts_s(self.table.opened_at, now, lag_s)
        if loss.is_silent:
            return (self.limits.silence_ms / 1000 if loss.by_arena else self.silence_s) - silent_s
        return (self.limits.grace_ms / 1000 if loss.by_arena else self.grace_s) - lost_s

    def go_on(self, loss: ConnectionLoss, now: float, lag_s: float) -> None:
        """Let the clock go on, as the connection is back; take the loss off grace and silence."""
        self.inquiry = None
        if not loss.by_arena:
            silent_s, lost_s = loss.parts_s(self.table.opened_at, now, lag_s)
            self.silence_s -= silent_s
            self.grace_s -= lost_s
        if self.asked_at < loss.since:
            self.asked_at += now - loss.since
            self.lag_s += lag_s - loss.lag_s
        else:
            self.asked_at, self.lag_s = now, lag_s

    def verdict(self, finding: Finding, event: str, now: float, lag: LoopLag) -> Verdict:
        """The evidence of this seat's offence (J4); `event` is the id of what caused it."""
        table, player = self.table, self.player
        waits = (self.question is not None or self.nonce is None) and not self.is_queued
        time_charge = (self.time_charge or self.measure(now, lag)) if waits else None
        waited_ms = round((self.clock_time(now) - self.asked_at) * 1000, 1)
        connection, process = player.connection, player.process
        question = self.question
        return Verdict(
            kind=finding.kind,
            match=table.id,
            game=table.game.name,
            bot=player.public_name,
            seat=self.seat,
            text=finding.text,
            advice=advice(finding, self.limits),
            mechanism=finding.mechanism,
            asked=None if question is None else msgspec.json.encode(question).decode(),
            legal=None if question is None else question.legal_text(),
            got=finding.got,
            taken_ms=None if time_charge is None else round(time_charge.taken_ms, 1),
            waited_ms=waited_ms if waits else None,
            credit_ms=None if time_charge is None else round(time_charge.credit_ms, 1),
            min_rtt_ms=None if connection is None else connection.min_rtt_ms,
            bank_ms=self.clock.bank_ms,
            exit_status=finding.exit_status,
            stderr=finding.stderr or (None if process is None else process.tail()),
            enforced=player.enforced,
            limits=self.limits,
            event=event,
            forgiven=table.forgives(player.public_name, finding.kind, event),
        )


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class LiveMatch:
    """One match over the network: invited, then played, then over; the referee plays it.

    Attributes:
        chairs: its seats; empty when it is over.
        names: the public names of the players, by seat.
        nonces: by seat, once it has begun; empty for a seat that was never ready.
        sides: by seat, the side of its bot: bots of one owner or team are one side (J9).
        versions: by seat, as in `Record.versions`; empty where no submissions are taken.
        spares_away: whether a bot that is away makes it void, instead of being blamed.
    """

    id: str
    game: Game
    settings: Settings
    players: InitVar[Sequence[BotSession]]
    limits: Limits
    on_over: OnOver
    opened_at: float
    by_seat: InitVar[Sequence[Limits]] = ()
    forgives: Forgives = lambda bot, kind, event: False
    versions: tuple[str, ...] = ()
    spares_away: bool = False
    teams: InitVar[Mapping[str, str]] = MappingProxyType({})

    seed: bytes = field(init=False)
    commitment: str = field(init=False)
    match: MatchState | None = field(default=None, init=False)
    names: tuple[str, ...] = field(init=False)
    sides: tuple[tuple[bool, str], ...] = field(init=False)
    nonces: tuple[str, ...] = field(default=(), init=False)
    chairs: list[MatchSeat] = field(init=False)

    def __post_init__(
        self, players: Sequence[BotSession], by_seat: Sequence[Limits], teams: Mapping[str, str]
    ) -> None:
        self.seed = secrets.token_bytes(32)
        self.commitment = commitment(self.seed)
        self.names = tuple(player.public_name for player in players)
        self.sides = tuple(
            (name in teams, teams.get(name) or alike(owner_of(name))) for name in self.names
        )
        self.chairs = [
            MatchSeat(player, by_seat[seat] if by_seat else self.limits, self, seat)
            for seat, player in enumerate(players)
        ]

    @property
    def is_over(self) -> bool:
        return self.match is not None and self.match.termination is not None

    @property
    def decisions(self) -> int:
        return 0 if self.match is None else len(self.match.answers)

    @property
    def progress(self) -> float:
        """How far it has come: 1 is the end of a match of usual length."""
        return self.decisions / max(1.0, self.game.decisions(self.settings))

    def invite(self, page: str | None) -> None:
        """Invite every seat; `page` is where a browser shows the match, if there is a page."""
        plain: dict[str, Any] = msgspec.to_builtins(self.settings)
        for chair in self.chairs:
            chair.invite(
                Match(
                    match=chair.id,
                    game=self.game.name,
                    seat=chair.seat,
                    seats=self.names,
                    settings=plain,
                    limits=chair.limits,
                    commitment=self.commitment,
                    page=page,
                )
            )

    def begin(self, start: bool = True) -> MatchState:
        """Create the match from the seed and the nonces that have come; `start` deals."""
        self.nonces = tuple(chair.nonce or "" for chair in self.chairs)
        self.match = MatchState(
            self.game,
            self.settings,
            seed=self.seed,
            nonces=self.nonces,
            start=False,
            enforced=tuple(chair.player.enforced for chair in self.chairs),
            commitment=self.commitment,
            versions=self.versions,
        )
        if start:
            self.match.start()
        return self.match

    def let_go(self) -> None:
        """Forget the seats when the match is over.

        They refer to it: a circle of match and seats would stay in memory until Python's garbage
        collector runs, which takes as long as playing a short match.
        """
        self.chairs = []


def new_secret() -> str:
    """The secret of a session: 128 random bits, with which it can be resumed."""
    return secrets.token_hex(16)
