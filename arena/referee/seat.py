"""One seat of one match and the bot that sits there: what it was asked, when, and what its decisions cost (J7).

The arithmetic is in `arena/referee/clock.py`; here is what it is about. A bot that connected by itself is charged the time on the wall, less the
floor of its link and the arena's own lag. A bot that the arena has launched is charged the CPU time of its processes since its
latest answer, so that neither load nor thinking while others decide makes a difference, and the time on the wall is a cap.
Nothing here reads a clock: `now` comes in, in seconds of the loop's monotonic clock.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from arena.engine.verdict import Finding, advice, out_of_time
from arena.referee.clock import Lag, SeatClock, charged_from
from protocol import messages
from protocol.messages import Ask, Ending, Limits, Mechanism, Past, Verdict
from protocol.session import ask_id
from protocol.vocabulary import News

if TYPE_CHECKING:
    from arena.referee.bot_session import BotSession
    from arena.referee.live_match import LiveMatch
    from arena.referee.losses import ConnectionLoss

__all__ = ["NOTE_BYTES", "MatchSeat", "TimeCharge"]

NOTE_BYTES = 256 * 1024
"""Of notes, as JSON, that a record keeps per seat: a match of a million answers with notes would fit into no database."""

_CORES = os.cpu_count() or 1
_LEAST_LOOK_S = 0.05  # CPU time is looked at no more often than that


class TimeCharge(NamedTuple):
    """What a decision took, and what it might.

    Attributes:
        kind: the offence if it is too much.
        taken_ms: the time, credit included.
        limit_ms: the most that it may be, credit apart.
        credit_ms: what is taken off.
        mechanism: what was measured.
    """

    kind: Ending
    taken_ms: float
    limit_ms: float
    credit_ms: float
    mechanism: Mechanism

    @property
    def left_ms(self) -> float:
        """How much more it may take; negative if it is too late."""
        return self.limit_ms + self.credit_ms - self.taken_ms


class MatchSeat:
    """One seat of one match.

    Attributes:
        id: what the wire calls this chair in this match.
        ask: the question that waits here.
        asked: how many there have been.
        repeated: how many there had been when the bot last came back to a new one.
        asked_at: when the frame with it was written, or the invitation.
        limits: of time, of whoever sits here.
        grace_s: for how long its connection may still be lost in this match, in seconds.
        free_until_s: whatever is answered by then is in time and costs nothing, so that only then a look at the clock is due.
        lag_s: the arena's lag in all at that moment.
        waiting: how many other questions the bot had then.
        news: what has been told to this seat since its latest question.
        nonce: its word for the cards, once it is ready.
        notes_left: how many bytes of notes the record still has room for.
        time_charge: of the latest decision, unless it was so quick that nobody looked.
    """

    __slots__ = (
        "ask",
        "asked",
        "asked_at",
        "clock",
        "free_until_s",
        "grace_s",
        "id",
        "invitation",
        "lag_s",
        "limits",
        "news",
        "nonce",
        "notes_left",
        "player",
        "repeated",
        "seat",
        "table",
        "time_charge",
        "waiting",
        "watched_until",
    )

    def __init__(self, table: LiveMatch, seat: int, player: BotSession, limits: Limits) -> None:
        self.table = table
        self.seat = seat
        self.player = player
        self.id = f"{table.id}.{seat}"
        self.limits = limits
        self.free_until_s = min(limits.decision_ms, limits.hard_ms, limits.start_ms) / 1000
        self.clock = SeatClock(limits)
        self.grace_s = limits.grace_ms / 1000
        self.news: list[News] = []
        self.nonce: str | None = None
        self.notes_left = NOTE_BYTES
        self.invitation: messages.Match | None = None
        self.ask: Ask | None = None
        self.asked = self.repeated = 0
        self.asked_at = 0.0
        self.lag_s = 0.0
        self.waiting = 0
        self.time_charge: TimeCharge | None = None
        self.watched_until = math.inf

    def invite(self, invitation: messages.Match) -> None:
        """Have the bot take this seat."""
        self.invitation = invitation
        self.player.chairs[self.id] = self
        self.player.send(invitation)

    def note_within_limit(self, note: str | None) -> str | None:
        """The note, if the record has room for it."""
        if note is None:
            return None
        self.notes_left -= len(msgspec.json.encode(note))
        return note if self.notes_left >= 0 else None

    def resend(self) -> None:
        """Send the invitation or the question again to a bot that has come back."""
        assert self.invitation is not None, "chairs are invited at once"
        self.player.send(self.invitation)
        if self.ask is not None:
            self.player.send(self.ask)  # its time goes on when that is written

    def questions_after(self, first: int) -> Iterator[Past | None]:
        """What has been asked here after the first so many questions, with its answers."""
        match = self.table.match
        if match is None:
            return
        for number, told in enumerate(match.history_for(self.seat), start=1):
            if number <= first:
                yield None  # a step of the rules all the same: whoever sends it may pause
            else:
                question, news, answer = told
                ask = ask_id(self.id, number)
                yield Past(self.id, ask, question, news, answer)

    # --- time ---

    @property
    def has_been_away(self) -> bool:
        """Whether its connection was lost in this match, other than by the arena, and is there again."""
        return self.grace_s < self.limits.grace_ms / 1000

    def grace_left_s(self, loss: ConnectionLoss, now: float, lag_s: float) -> float:
        """For how long the connection may still be lost before this seat is out; negative if that is over (J7)."""
        whole_s = self.limits.grace_ms / 1000
        left_s = whole_s if loss.by_arena else self.grace_s
        return left_s - self._lost_s(loss, now, lag_s)

    def go_on(self, loss: ConnectionLoss, now: float, lag_s: float) -> None:
        """The connection is there again: the clock goes on, and the grace is less by what the loss has used."""
        if not loss.by_arena:
            self.grace_s -= self._lost_s(loss, now, lag_s)
        if self.asked_at < loss.since:
            self.asked_at += now - loss.since
            self.lag_s += lag_s - loss.lag_s
        else:
            self.asked_at, self.lag_s = now, lag_s

    def clock_time(self, now: float) -> float:
        """What this seat's clock shows: the present, unless it stands as the connection is lost."""
        loss = self.player.loss
        return now if loss is None else max(loss.since, self.asked_at)

    def _lost_s(self, loss: ConnectionLoss, now: float, lag_s: float) -> float:
        """What a loss has used of the grace so far: not the time in which the arena stood still, nor what was before the match."""
        return max(0.0, now - max(loss.since, self.table.opened_at) - (lag_s - loss.lag_s))

    def measure(self, now: float, lag: Lag) -> TimeCharge:
        """What the decision that is waited for has taken so far."""
        player, limits = self.player, self.limits
        loss = player.loss
        lag_s = lag.total_s(now) if loss is None else loss.lag_s
        lag_ms = max(0.0, lag_s - self.lag_s) * 1000
        now = self.clock_time(now)
        credit_ms = player.link.floor_ms + lag_ms
        if self.nonce is None:
            waited_ms = (now - self.asked_at) * 1000
            limit_ms = limits.start_ms
            return TimeCharge(Ending.ABSENT, waited_ms, limit_ms, credit_ms, Mechanism.WALL_CLOCK)
        allowed_ms = self.clock.allowed_ms
        if not player.is_metered:
            took_ms = self._since(now, limits.decision_ms)
            return TimeCharge(Ending.TIMEOUT, took_ms, allowed_ms, credit_ms, Mechanism.WALL_CLOCK)
        on_wall_ms = self._since(now, limits.wall_ms)
        if on_wall_ms - credit_ms > limits.wall_ms:
            limit_ms = limits.wall_ms
            return TimeCharge(Ending.TIMEOUT, on_wall_ms, limit_ms, credit_ms, Mechanism.WALL_CAP)
        used_ms = player.cpu_used_ms(now) - player.cpu_ms
        return TimeCharge(Ending.CPU, used_ms, allowed_ms, 0.0, Mechanism.CPU_CLOCK)

    def charge(self, now: float, lag: Lag) -> bool:
        """Have the decision paid for that has been taken now; False if it came too late."""
        self.time_charge = time_charge = self.measure(now, lag)
        player = self.player
        if player.is_metered:
            player.cpu_ms = player.cpu_used_ms(now)
            if time_charge.mechanism is Mechanism.WALL_CAP:
                return False  # its bank is of CPU time
        return (
            self.clock.charge(time_charge.taken_ms, time_charge.credit_ms)
            and time_charge.left_ms >= 0
        )

    def next_check(self, now: float, lag: Lag) -> float:
        """When to look whether it is too late; it is now if that is not later than now."""
        time_charge = self.measure(now, lag)
        left_s = time_charge.left_ms / 1000
        if time_charge.kind is not Ending.CPU or left_s <= 0:
            return now + left_s
        wall_ms = self.limits.wall_ms
        wall_left_s = (wall_ms - self._since(now, wall_ms)) / 1000
        # All cores can be at work for it, so that it cannot be too late before.
        return now + max(_LEAST_LOOK_S, min(left_s / _CORES, wall_left_s))

    def too_late(self) -> Finding:
        """What is found when the bill is more than the seat can pay."""
        time_charge = self.time_charge
        assert time_charge is not None, "it has been measured"
        if time_charge.kind is Ending.ABSENT:
            text = f"not ready within {time_charge.limit_ms:,.0f} ms after match"
        else:
            text = out_of_time(
                time_charge.taken_ms,
                time_charge.limit_ms,
                time_charge.credit_ms,
                None if time_charge.mechanism is Mechanism.WALL_CAP else self.clock.bank_ms,
                "CPU" if time_charge.kind is Ending.CPU else "",
            )
        return Finding(kind=time_charge.kind, text=text, mechanism=time_charge.mechanism)

    def verdict(self, finding: Finding, event: str, now: float, lag: Lag) -> Verdict:
        """The evidence of an offence of this seat's (J4); `event` is the id of what brought it about."""
        table, player = self.table, self.player
        waits = self.ask is not None or self.nonce is None
        time_charge = (self.time_charge or self.measure(now, lag)) if waits else None
        waited_ms = round((self.clock_time(now) - self.asked_at) * 1000, 1)
        connection, process = player.connection, player.process
        question = None if self.ask is None else self.ask.question
        return Verdict(
            kind=finding.kind,
            match=table.id,
            game=table.game.name,
            bot=player.name,
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
            forgiven=table.forgives(player.name, finding.kind, event),
        )

    def _since(self, now: float, turn_ms: int) -> float:
        """For how many milliseconds this question has been the bot's business (J7)."""
        last_answer = self.player.last_answer
        return (now - charged_from(self.asked_at, last_answer, self.waiting, turn_ms)) * 1000
