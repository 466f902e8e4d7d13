"""One seat of one match: what its bot was asked, when, and what its decisions cost (J7).

A bot that connected by itself is charged the time on the wall, less the floor of its link and the
arena's own lag. A bot that the arena has launched is charged the CPU time of its processes since
its latest answer, so that neither load nor thinking while others decide makes a difference. For it
the time on the wall is a cap, which grows by the time for which its processes were ready to run and
had no core. `now` is in seconds of the loop's monotonic clock.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from arena.engine.verdict import Finding, advice, out_of_time
from arena.referee.clock import CoreWait, Lag, SeatClock, charged_from, start_cap_ms
from protocol import messages
from protocol.messages import Ask, Ending, Limits, Mechanism, Past, Verdict
from protocol.session import SeatStanding, ask_id
from protocol.vocabulary import News, Question

if TYPE_CHECKING:
    from arena.referee.bot_session import BotSession
    from arena.referee.live_match import LiveMatch
    from arena.referee.losses import ConnectionLoss

__all__ = ["NOTE_BYTES", "Inquiry", "MatchSeat", "TimeCharge"]

NOTE_BYTES = 256 * 1024
"""Of notes per seat in a record, as JSON: notes with a million answers fit into no database."""

_CORES = os.cpu_count() or 1
_LEAST_LOOK_S = 0.05  # between looks at CPU time


class TimeCharge(NamedTuple):
    """What a decision has taken, and what it may take."""

    kind: Ending  # the offence if it is too much
    taken_ms: float  # credit included
    limit_ms: float  # without the credit
    credit_ms: float
    mechanism: Mechanism

    @property
    def left_ms(self) -> float:
        """How much more it may take; negative if it is too late."""
        return self.limit_ms + self.credit_ms - self.taken_ms


class Inquiry(NamedTuple):
    """All seats of a match were pinged, as one of them is away or late (J9)."""

    asked_at: float  # on the loop's clock
    lag_s: float  # the arena's total lag at that moment
    is_late: bool = True  # else the time of that seat is not over yet


@dataclass(slots=True, eq=False, repr=False)
class MatchSeat:
    """One seat of one match, and the bot that sits there."""

    table: LiveMatch
    seat: int
    player: BotSession
    limits: Limits  # of time, of who sits here
    id: str = field(init=False)  # what the wire calls this seat of this match
    free_until_s: float = field(init=False)  # a quicker answer costs nothing: no clock is read
    grace_s: float = field(init=False)  # for how long its connection may still be lost
    silence_s: float = field(init=False)  # and be silent
    # Since when the seats of its match are asked whether they are here, while it is away or late
    inquiry: Inquiry | None = field(default=None, init=False)
    clock: SeatClock = field(init=False)
    standing: SeatStanding = field(init=False)  # of the player's session
    invitation: messages.Match | None = field(default=None, init=False)
    nonce: str | None = field(default=None, init=False)  # None until the seat is ready
    question: Question[Any] | None = field(default=None, init=False)  # that is pending
    told: tuple[News, ...] = field(default=(), init=False)  # with the latest question
    news: tuple[News, ...] = field(default=(), init=False)  # since then
    asked: int = field(default=0, init=False)  # how many questions there have been
    ask_id: str = field(default="", init=False)  # of the latest question
    repeated: int = field(default=0, init=False)  # `asked` when the bot was last told one again
    asked_at: float = field(default=0.0, init=False)  # when the question or invitation was written
    lag_s: float = field(default=0.0, init=False)  # the arena's total lag at that moment
    waiting: int = field(default=0, init=False)  # other questions that the bot had then
    is_queued: bool = field(default=False, init=False)  # the bot is not asked yet: it has no core
    cpu_ms: float = field(default=0.0, init=False)  # of a metered bot when it was invited
    notes_left: int = field(default=NOTE_BYTES, init=False)  # bytes of notes
    # of the latest decision, unless it was so quick that nobody looked
    time_charge: TimeCharge | None = field(default=None, init=False)
    watched_until: float = field(default=math.inf, init=False)  # its time in the referee's heap
    _cap_ms: float = field(default=0.0, init=False)  # the cap on the wall at the latest look
    # since a first look at its question, if it had to be looked at, and which question that is
    _core_wait: CoreWait | None = field(default=None, init=False)
    _waited_for: tuple[int, float] = field(default=(0, 0.0), init=False)

    def __post_init__(self) -> None:
        limits = self.limits
        self.id = f"{self.table.id}.{self.seat}"
        self.free_until_s = min(limits.decision_ms, limits.hard_ms, limits.start_ms) / 1000
        self.grace_s = limits.grace_ms / 1000
        self.silence_s = limits.silence_ms / 1000
        self.clock = SeatClock(limits)
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
        """Make this the pending question; with it go the news since the one before."""
        self.asked += 1
        self.ask_id = ask_id(self.id, self.asked)
        self.question = question
        self.told, self.news = self.news, ()
        self.asked_at = now  # until it is written
        self.time_charge = self.inquiry = None

    def invite(self, invitation: messages.Match) -> None:
        """Seat the bot; one that has to wait for a core is told later."""
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

    def resend(self) -> None:
        """Send the invitation or the question again to a bot that has come back."""
        assert self.invitation is not None, "seats are invited at once"
        self.player.send(self.invitation)
        if (ask := self.ask) is not None:
            self.player.send(ask)  # its time goes on when that is written

    def questions_after(self, first: int) -> Iterator[Past | None]:
        """The questions after the first so many, with answers; None for each that is skipped."""
        match = self.table.match
        if match is None:
            return
        for number, told in enumerate(match.history_for(self.seat), start=1):
            if number <= first:
                yield None  # it took a step of the rules all the same, after which one may pause
            else:
                question, news, answer = told
                yield Past(self.id, ask_id(self.id, number), question, news, answer)

    # --- time ---

    @property
    def has_been_away(self) -> bool:
        """Whether its connection was lost in this match, other than by the arena, and is back."""
        limits = self.limits
        return self.grace_s * 1000 < limits.grace_ms or self.silence_s * 1000 < limits.silence_ms

    def away_left_s(self, loss: ConnectionLoss, now: float, lag_s: float) -> float:
        """How long the connection may still be as it is before the seat's time is over (J9).

        That is lost, or silent; negative if the time is over.
        """
        silent_s, lost_s = loss.parts_s(self.table.opened_at, now, lag_s)
        if loss.is_silent:
            return (self.limits.silence_ms / 1000 if loss.by_arena else self.silence_s) - silent_s
        return (self.limits.grace_ms / 1000 if loss.by_arena else self.grace_s) - lost_s

    def go_on(self, loss: ConnectionLoss, now: float, lag_s: float) -> None:
        """The connection is back: the clock goes on, and grace and silence are less by the loss."""
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

    def clock_time(self, now: float) -> float:
        """The time on this seat's clock: now, unless it stands as the connection is lost."""
        loss = self.player.loss
        return now if loss is None else max(loss.since, self.asked_at)

    def measure(self, now: float, lag: Lag) -> TimeCharge:
        player, limits = self.player, self.limits
        loss = player.loss
        lag_s = lag.total_s(now) if loss is None else loss.lag_s
        lag_ms = max(0.0, lag_s - self.lag_s) * 1000
        now = self.clock_time(now)
        credit_ms = player.link.floor_ms + lag_ms
        is_starting = self.nonce is None
        late = Ending.ABSENT if is_starting else Ending.TIMEOUT
        allowed_ms = limits.start_ms if is_starting else self.clock.allowed_ms
        if not player.is_metered:
            took_ms = self._on_wall_ms(now, limits.decision_ms)
            return TimeCharge(late, took_ms, allowed_ms, credit_ms, Mechanism.WALL_CLOCK)
        on_wall_ms = self._on_wall_ms(now, limits.wall_ms)
        self._cap_ms = start_cap_ms(limits) if is_starting else limits.wall_ms
        if on_wall_ms - credit_ms > self._cap_ms:
            self._cap_ms += self._look_at_waits(now)
            if on_wall_ms - credit_ms > self._cap_ms:
                cap = Mechanism.WALL_CAP
                return TimeCharge(late, on_wall_ms, self._cap_ms, credit_ms, cap)
        if is_starting:
            # What it used since `match`, and since its latest answer if it plays elsewhere, too.
            used_ms = player.cpu_used_ms(now) - max(self.cpu_ms, player.cpu_ms)
            return TimeCharge(Ending.ABSENT, used_ms, allowed_ms, 0.0, Mechanism.CPU_CLOCK)
        used_ms = player.cpu_used_ms(now) - player.cpu_ms
        return TimeCharge(Ending.CPU, used_ms, allowed_ms, 0.0, Mechanism.CPU_CLOCK)

    def charge(self, now: float, lag: Lag) -> bool:
        """Charge the decision that was just taken; False if it came too late."""
        self.time_charge = time_charge = self.measure(now, lag)
        player = self.player
        if player.is_metered:
            player.cpu_ms = player.cpu_used_ms(now)
            if time_charge.mechanism is Mechanism.WALL_CAP:
                return False  # the bank holds CPU time and cannot pay for time on the wall
        in_time = self.clock.charge(time_charge.taken_ms, time_charge.credit_ms)
        return in_time and time_charge.left_ms >= 0

    def next_check(self, now: float, lag: Lag) -> float:
        """When to check again whether it is too late; it is too late if that is not after `now`."""
        if self.player.is_metered:
            self._look_at_waits(now)
        time_charge = self.measure(now, lag)
        left_s = time_charge.left_ms / 1000
        if time_charge.mechanism is not Mechanism.CPU_CLOCK or left_s <= 0:
            return now + left_s
        wall_left_s = (self._cap_ms - self._on_wall_ms(now, self.limits.wall_ms)) / 1000
        # With all cores at work it uses the time that is left so many times as fast.
        return now + max(_LEAST_LOOK_S, min(left_s / _CORES, wall_left_s))

    def too_late(self) -> Finding:
        """The finding for a decision that was charged and came too late."""
        time_charge = self.time_charge
        assert time_charge is not None, "it has been measured"
        if time_charge.kind is Ending.ABSENT:
            of_cpu = " of CPU" if time_charge.mechanism is Mechanism.CPU_CLOCK else ""
            text = f"not ready within {time_charge.limit_ms:,.0f} ms{of_cpu} after match"
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

    def _on_wall_ms(self, now: float, turn_ms: int) -> float:
        """For how many milliseconds the bot has been charged with its question (J7)."""
        if self.nonce is None:  # the question is whether it is ready
            return (now - self.asked_at) * 1000
        last_answer = self.player.last_answer
        return (now - charged_from(self.asked_at, last_answer, self.waiting, turn_ms)) * 1000

    def _look_at_waits(self, now: float) -> float:
        """For how many ms its bot has had no core since the first look at its question."""
        process = self.player.process
        assert process is not None, "only of launched bots"
        which = self.asked, self.player.last_answer
        if self._core_wait is None or self._waited_for != which:
            self._core_wait, self._waited_for = CoreWait(process.waited_ms(), now), which
        else:
            self._core_wait.look(process.waited_ms(), now)
        return self._core_wait.total_ms
