"""Where a match meets time and the network: asks seats, takes answers, enforces deadlines.

The hot path: an answer comes in, the rules advance, and the next question is put into its player's
outbox, all in one synchronous pass, without a task, future or timer per decision. Deadlines are in
one heap that `tick` looks at. Each seat is in it once, with a time that is never later than its
deadline. As deadlines mostly move later, most answers need not touch the heap; when the entry of a
seat that has answered comes up, it is put back with the new deadline or dropped.

A seat's time (J7) begins when the frame with the question is written and ends when the answer
arrives; `arena/referee/decision_time.py` computes what that costs.
"""

from __future__ import annotations

import heapq
import logging
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from arena.games.rules import EVERYONE, Game
from arena.games.verdict import OUTAGE, UNCOUNTED, Finding
from arena.referee.bot_session import BotSession, Forgives, LiveMatch, MatchSeat, OnOver
from arena.referee.clock import Lag
from arena.referee.transport import Gate
from protocol.errors import IllegalAnswer
from protocol.messages import (
    Answer,
    Ending,
    Limits,
    Mechanism,
    Over,
    Ready,
    Refused,
    Reveal,
    Termination,
    Verdict,
)
from protocol.vocabulary import Settings, shorten

__all__ = ["FAULT", "MOST_VOIDS", "Referee"]

log = logging.getLogger(__name__)

FAULT = f"a fault of the arena{UNCOUNTED}"
"""What all seats are told when no bot is to blame (J5)."""
MOST_VOIDS = 3
"""How often a match is replayed after being void; then it waits for the instructor (J5)."""

_LINK_S = 2.0  # between checks of the link of a bot that thinks for long (J7)
_SILENT_S = 1.0  # how long a slow network may take to acknowledge what was sent
_AGAIN_S = 0.25  # between checks of a bot whose connection is lost


class Referee:
    """All the matches that are being played.

    `on_verdict` is called with every elimination. In `practice` an illegal answer does not end the
    match: it is refused, and the seat's time keeps running.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        practice: bool = False,
        on_verdict: Callable[[Verdict], None] = lambda verdict: None,
    ) -> None:
        self.practice = practice
        self.lag = Lag(clock())
        self._clock = clock
        self.on_verdict = on_verdict
        self.on_lost: Callable[[BotSession, float], None] = lambda player, since: None
        # Called with a player whose machine has acknowledged all that was sent, and the time.
        self.on_heard: Callable[[BotSession, float], None] = lambda player, now: None
        # Called with a seat that thinks for long, and whether it is late. Returns true if a late
        # seat may be away, so that it is not ruled on now, or if its match became void.
        self.check_outage: Callable[[MatchSeat, float, bool], bool] = lambda chair, now, is_late: (
            False
        )
        self._tables: dict[str, LiveMatch] = {}
        self._deadlines: list[tuple[float, int, MatchSeat]] = []
        self._numbers = 0
        self._entries = 0  # breaks ties in the heap
        # Makes match ids differ from those of every earlier run of the arena.
        self._run = secrets.token_hex(4)
        self.decisions = 0
        self.page: str | None = None  # the path of the arena's page, ending in a slash

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        """The matches that are not over."""
        return tuple(self._tables.values())

    def open(
        self,
        game: Game,
        settings: Settings,
        players: Sequence[BotSession],
        limits: Limits,
        on_over: OnOver,
        by_seat: Sequence[Limits] = (),
        forgives: Forgives = lambda bot, kind, event: False,
        versions: Sequence[str] = (),
        spares_away: bool = False,
        teams: Mapping[str, str] = {},
    ) -> LiveMatch:
        """Invite players to a match, one per seat; `on_over` is called once, with its result.

        With `by_seat` each seat has its own limits, as a person does not think as fast as a bot.
        `forgives` says whether an offence costs no more than the match, `versions` by seat which
        version of its bot plays (`Record.versions`), and `teams` the team of each bot that has one.
        With `spares_away` a bot that is away makes the match void instead of being blamed.
        """
        self._numbers += 1
        now = self._clock()
        table = LiveMatch(
            f"{self._run}-{self._numbers}",
            game,
            settings,
            players,
            limits,
            on_over,
            now,
            by_seat,
            forgives,
            tuple(versions),
            spares_away,
            teams,
        )
        self._tables[table.id] = table
        table.invite(None if self.page is None else f"{self.page}#/m/{table.id}")
        for chair in table.chairs:
            if (gate := chair.player.gate) is not None:
                self._queue(gate, chair)
                continue
            self._invited(chair, table.opened_at)
        return table

    def ready(self, player: BotSession, message: Ready) -> None:
        """Note that a seat is ready; deal the cards when all are."""
        chair = player.chairs.get(message.match)
        if chair is None or chair.nonce is not None:
            return
        plays = any(other.nonce is not None for other in player.chairs.values())
        chair.nonce, chair.inquiry = message.nonce, None
        if player.is_metered and not plays:
            player.cpu_ms = player.cpu_used_ms(self._clock())  # setting up is charged separately
        if player.gate is not None:
            player.gate.leave(chair)
        table = chair.table
        if all(other.nonce is not None for other in table.chairs):
            try:
                table.begin()
            except Exception:
                self._failed(table)
            else:
                self._play_on(table, self._clock())

    def answer(self, chair: MatchSeat, message: Answer, arrived: float) -> None:
        """Take the answer to a seat's question, which its session has accepted, and play on."""
        player, match, question = chair.player, chair.table.match, chair.question
        assert match is not None, "it is being played: something was asked"
        assert question is not None, "it waited for this answer"
        if self.practice and self._refuses(chair, message):
            return
        asked_at = chair.asked_at
        # Nearly all answers are quick enough to cost nothing.
        is_quick = arrived - asked_at <= chair.free_until_s
        if not ((is_quick and not player.is_metered) or chair.charge(arrived, self.lag)):
            self._blame(chair, chair.too_late(), arrived)
            return
        self.decisions += 1
        try:
            # A bot that guesses its question may answer before it is asked.
            took_ms = int((arrived - asked_at) * 1000) if arrived > asked_at else 0
            note = message.note and chair.note_within_limit(message.note)
            match.answer(message.value, note, took_ms)
        except IllegalAnswer as error:
            finding = Finding(
                kind=Ending.ILLEGAL,
                text=str(error),
                mechanism=Mechanism.RULES,
                got=shorten(message.value),
                advice=question.advice(message.value),
            )
            self._blame(chair, finding, arrived)
        except Exception:
            self._failed(chair.table)
        else:
            chair.question = None
            player.pending -= 1
            if arrived != player.last_answer:
                player.note_first_answer(asked_at, arrived)
            player.answers += 1
            player.last_answer = arrived
            if player.event:
                player.recovered(asked_at)
            if player.gate is not None:
                player.gate.leave(chair)
            self._play_on(chair.table, arrived)

    def offence(
        self,
        player: BotSession,
        finding: Finding,
        tables: Mapping[LiveMatch, Sequence[MatchSeat]] | None = None,
    ) -> None:
        """End matches of a player that left, crashed or sent garbage: all, or those in `tables`.

        `tables` names for each match the seats that are out with the player.
        """
        # A competition stores only the first verdict, and that of a seat with a question says the
        # most.
        chairs = sorted(player.chairs.values(), key=lambda chair: chair.question is None)
        for chair in chairs:
            ends = tables is None or chair.table in tables
            if ends and not chair.table.is_over:  # it may play against itself
                also = () if tables is None else tables[chair.table]
                self._blame(chair, finding, self._clock(), also)

    def void(self, table: LiveMatch, text: str, away: tuple[int, ...] = ()) -> None:
        """Stop a match without a result; `away` are the seats whose outage is the reason (J9)."""
        if not table.is_over:
            match = table.match or table.begin(start=False)
            match.end(Ending.VOID, None, text, away=away)
            self._finish(table, None)

    def tick(self) -> None:
        """Rule on every seat whose time is up."""
        now = self._clock()
        self.lag.tick(now)
        heap = self._deadlines
        while heap and heap[0][0] <= now:
            due, _, chair = heapq.heappop(heap)
            if due != chair.watched_until:
                continue  # replaced by an earlier deadline
            chair.watched_until = math.inf
            waits = chair.question is not None or chair.nonce is None
            if chair.table.is_over or not waits or chair.is_queued:
                continue
            silent_since = self._check_link(chair.player, now)
            if chair.table.is_over:  # a ping may overflow the buffer of a bot that does not read
                continue
            if chair.player.loss is not None:
                self._look(chair, now + _AGAIN_S)
                continue
            due = chair.next_check(now, self.lag)
            if due > now:
                self.check_outage(chair, now, False)
                self._look(chair, min(due, now + _LINK_S))
            elif silent_since is not None and now - due < _SILENT_S:
                self._look(chair, now + _AGAIN_S)  # its connection may turn out to be lost
            elif self.check_outage(chair, now, True):
                if not chair.table.is_over:
                    self._look(chair, now + _AGAIN_S)
            else:
                chair.charge(now, self.lag)
                self._blame(chair, chair.too_late(), now)

    # --- within ---

    def _check_link(self, player: BotSession, now: float) -> float | None:
        """Notice a lost or regained connection (J7); returns since when its machine is silent."""
        since = player.look(now)
        if since is not None and now - since >= _SILENT_S:
            self.on_lost(player, since)
        elif since is None:
            self.on_heard(player, now)
        return since

    def _play_on(self, table: LiveMatch, now: float) -> None:
        """Pass on the news after a step of the rules, and ask the next question."""
        match = table.match
        assert match is not None, "it has begun"
        if match.news:
            for tell in match.take_news():
                if tell.seat == EVERYONE:
                    for chair in table.chairs:
                        chair.news += (tell.news,)
                else:
                    table.chairs[tell.seat].news += (tell.news,)
        pending = match.pending
        if pending is None:
            self._finish(table, None)
            return
        chair = table.chairs[pending.seat]
        chair.put(pending.question, now)
        player = chair.player
        if player.gate is not None:
            self._queue(player.gate, chair)
            return
        if not player.ask(chair):
            chair.lag_s = self.lag.total_s(now)
        self._watch(chair, now)

    def _queue(self, gate: Gate, chair: MatchSeat) -> None:
        """Invite or ask a seat once there is a core for its bot; no time runs before."""
        chair.is_queued = True
        gate.enter(chair, partial(self._begin, chair), chair.player.used_ms)

    def _begin(self, chair: MatchSeat) -> None:
        """Invite or ask a queued seat, now that its bot has a core."""
        if chair.table.is_over:
            return  # it will leave the gate in a moment
        now = self._clock()
        chair.is_queued = False
        if chair.question is None:
            assert chair.invitation is not None, "seats are invited at once"
            chair.player.send(chair.invitation)
            self._invited(chair, now)
        else:
            chair.asked_at, chair.lag_s = now, self.lag.total_s(now)  # until it is written
            chair.player.ask(chair)
            self._watch(chair, now)

    def _invited(self, chair: MatchSeat, now: float) -> None:
        """Start the time in which an invited seat must be ready."""
        chair.asked_at, chair.lag_s = now, self.lag.total_s(now)
        if chair.player.is_metered:
            chair.cpu_ms = chair.player.cpu_used_ms(now)
        self._watch(chair, now)

    def _watch(self, chair: MatchSeat, now: float) -> None:
        """Let a tick check this seat, which is asked now, as soon as it can be late."""
        look_at = now + chair.free_until_s
        if look_at < chair.watched_until:
            self._look(chair, look_at)

    def _look(self, chair: MatchSeat, at: float) -> None:
        chair.watched_until = at
        self._entries += 1
        heapq.heappush(self._deadlines, (at, self._entries, chair))

    def _refuses(self, chair: MatchSeat, answer: Answer) -> bool:
        """In practice, refuse an illegal answer; the question stands and its time keeps running."""
        question = chair.question
        assert question is not None, "it was answered"
        try:
            question.check(answer.value)
        except IllegalAnswer as error:
            text, legal = str(error), question.choices
            refused = Refused("illegal", text, chair.id, chair.ask_id, legal=legal)
            chair.player.send(refused)
            return True
        return False

    def _blame(
        self, chair: MatchSeat, finding: Finding, now: float, also: Sequence[MatchSeat] = ()
    ) -> None:
        """End a seat's match by its offence, with the evidence (J3, J4); `also` are out with it."""
        table = chair.table
        is_away = finding.kind in (Ending.ABSENT, Ending.DISCONNECT)
        if table.spares_away and is_away and finding.mechanism is not Mechanism.WIRE:
            text = f"{OUTAGE}{chair.player.public_name} {finding.text}{UNCOUNTED}"
            self.void(table, text, (chair.seat,))
            return
        verdicts = []
        for each in (chair, *also):
            each.player.has_offended = True
            event = each.player.event_of(each, finding.kind, now)
            verdicts.append(each.verdict(finding, event, now, self.lag))
        match = table.match or table.begin(start=False)
        events = tuple(verdict.event for verdict in verdicts)
        also_out = tuple(each.seat for each in also)
        match.end(finding.kind, chair.seat, finding.text, also_out, events)
        self._finish(table, *verdicts)

    def _failed(self, table: LiveMatch) -> None:
        """Void a match whose rules raised an exception, which is never a bot's fault (J5)."""
        log.exception("the rules of %s failed in match %s", table.game.name, table.id)
        self.void(table, FAULT)

    def _finish(self, table: LiveMatch, verdict: Verdict | None, *others: Verdict) -> None:
        """Tell every seat the end, free the seats, and pass the result on."""
        assert table.match is not None, "it is over"
        del self._tables[table.id]
        result = table.match.result()
        if others:
            result = msgspec.structs.replace(result, others=others)
        evidence = {each.seat: each for each in (verdict, *others) if each is not None}
        reveal = Reveal(table.seed.hex(), result.record.nonces)
        ended = result.termination
        for chair in table.chairs:
            player = chair.player
            del player.chairs[chair.id]
            was_queued = chair.is_queued
            if player.gate is not None:
                chair.is_queued = False
                player.gate.leave(chair)
            if was_queued and chair.question is None:
                continue  # it was never told of the match
            if chair.question is not None:
                chair.question = None
                player.pending -= not was_queued
            # The other seats only learn who it was, and the reason in one word.
            is_told = ended.seat in (None, chair.seat)
            told = ended if is_told else Termination(ended.kind, ended.seat)
            mine = evidence.get(chair.seat)
            player.send(Over(chair.id, chair.news, result.scores, told, reveal, mine))
        try:
            table.on_over(table, result, verdict)
        except Exception:  # it may run while another match is served, which must go on
            log.exception("the result of match %s was not taken", table.id)
        table.let_go()
        for each in evidence.values():
            self.on_verdict(each)
