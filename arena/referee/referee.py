"""Where a match meets time and the network: chairs are asked, answers are taken, deadlines are kept.

The hot path (design §4): an answer goes in, the rules advance, the next question is put into its player's outbox, all in one
synchronous pass and without a task, future or timer per decision. Deadlines lie in one heap that `tick` looks at. A chair is in it
once, with a time that is never later than its deadline: as deadlines mostly move on, most answers need not touch the heap, and
an entry whose chair has answered meanwhile is put back with its new deadline or dropped.

A seat's time (J7) begins with the writing of the frame that carries the question and ends with the arrival of the answer;
`arena/referee/seat.py` has what that costs.
"""

from __future__ import annotations

import heapq
import logging
import math
import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Any

from arena.engine.rules import EVERYONE, Game
from arena.engine.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.clock import Lag
from arena.referee.live_match import Forgives, LiveMatch, OnOver
from arena.referee.seat import MatchSeat
from protocol.errors import IllegalAnswer
from protocol.messages import (
    Answer,
    Ask,
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
from protocol.session import ask_id
from protocol.vocabulary import Question, Settings, shorten

__all__ = ["FAULT", "MOST_VOIDS", "Referee"]

log = logging.getLogger(__name__)

FAULT = "a fault of the arena; the match is played again"
"""What all seats are told when it was nobody's doing (J5)."""
MOST_VOIDS = 3
"""How often a match is played again; then it waits for the instructor (J5)."""


_LINK_S = 2.0  # between looks at the link of a bot that thinks for long (J7)
_SILENT_S = 1.0  # a slow network may take so long to acknowledge what was sent
_AGAIN_S = 0.25  # between looks at a bot whose connection is lost


class Referee:
    """All the matches that are being played.

    Args:
        clock: the loop's monotonic clock, in seconds.
        practice: an illegal answer is refused and can be given again, time running on, instead of ending the match.
        on_verdict: told of every elimination.

    Attributes:
        on_lost: told of a player whose connection is lost, and since when.
        on_heard: told of a player whose machine has acknowledged all that was sent, and the time.
        lag: how late the loop has been; `tick` measures it.
        decisions: how many answers have been played.
        page: the path under which browsers find the arena's page, ending in a slash; None if there is no page.
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
        self.on_heard: Callable[[BotSession, float], None] = lambda player, now: None
        self._tables: dict[str, LiveMatch] = {}
        self._deadlines: list[tuple[float, int, MatchSeat]] = []
        self._numbers = 0
        self._entries = 0  # breaks ties in the heap
        # Match ids differ from those of every earlier run of the arena.
        self._run = secrets.token_hex(4)
        self.decisions = 0
        self.page: str | None = None

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
    ) -> LiveMatch:
        """Invite players to a match, one per seat; `on_over` is called once, when its result is known.

        With `by_seat` each seat has limits of its own, as a person does not think as fast as a bot. `forgives` is asked what an
        offence costs.
        """
        self._numbers += 1
        table = LiveMatch(
            f"{self._run}-{self._numbers}",
            game,
            settings,
            players,
            limits,
            on_over,
            self._clock(),
            by_seat,
            forgives,
        )
        self._tables[table.id] = table
        page = None if self.page is None else f"{self.page}#/m/{table.id}"
        table.invite(page)
        for chair in table.chairs:
            chair.asked_at = table.opened_at
            chair.lag_s = self.lag.total_s(table.opened_at)
            self._watch(chair)
        return table

    def ready(self, player: BotSession, message: Ready) -> None:
        """A seat is set up; when all are, the cards are dealt."""
        chair = player.chairs.get(message.match)
        if chair is None or chair.nonce is not None:
            return
        plays = any(other.nonce is not None for other in player.chairs.values())
        chair.nonce = message.nonce
        if player.is_metered and not plays:
            player.cpu_ms = player.cpu_used_ms(self._clock())  # setting up was free
        table = chair.table
        if all(other.nonce is not None for other in table.chairs):
            try:
                table.begin()
            except Exception:
                self._failed(table)
            else:
                self._play_on(table, self._clock())

    def answer(self, player: BotSession, message: Answer, arrived: float) -> None:
        """Take an answer that the session's table has let through, and play on."""
        chair = player.chairs.get(message.match)
        if chair is None or chair.ask is None:
            return
        match = chair.table.match
        assert match is not None, "it is being played: something was asked"
        if self.practice and self._refuses(chair, message):
            return
        # Nearly all answers are so quick that they cost nothing.
        is_quick = arrived - chair.asked_at <= chair.free_until_s
        if not ((is_quick and not player.is_metered) or chair.charge(arrived, self.lag)):
            self._blame(chair, chair.too_late(), arrived)
            return
        self.decisions += 1
        try:
            # Whoever guesses what it will be asked has answered before.
            took_ms = max(0, int((arrived - chair.asked_at) * 1000))
            note = message.note and chair.note_within_limit(message.note)
            match.answer(message.value, note, took_ms)
        except IllegalAnswer as error:
            finding = Finding(
                kind=Ending.ILLEGAL,
                text=str(error),
                mechanism=Mechanism.RULES,
                got=shorten(message.value),
            )
            self._blame(chair, finding, arrived)
        except Exception:
            self._failed(chair.table)
        else:
            chair.ask = None
            player.pending -= 1
            if arrived != player.last_answer:
                player.note_first_answer(chair.asked_at, arrived)
            player.answers += 1
            player.last_answer = arrived
            if player.event:
                player.recovered(chair)
            self._play_on(chair.table, arrived)

    def offence(
        self, player: BotSession, finding: Finding, tables: Collection[LiveMatch] | None = None
    ) -> None:
        """Something that is no answer ends matches of this player: it left, crashed, sent garbage; all, or those given."""
        # Those that are asked come first: a competition keeps one verdict, and strikes the rest.
        chairs = sorted(player.chairs.values(), key=lambda chair: chair.ask is None)
        for chair in chairs:
            ends = tables is None or chair.table in tables
            if ends and not chair.table.is_over:  # it may sit at both sides of it
                self._blame(chair, finding, self._clock())

    def void(self, table: LiveMatch, text: str) -> None:
        """Stop a match that is nobody's fault or has lost its meaning."""
        if not table.is_over:
            self._end(table, Ending.VOID, None, text)
            self._finish(table, None)

    def tick(self) -> None:
        """Rule on every chair whose time is up."""
        now = self._clock()
        self.lag.tick(now)
        heap = self._deadlines
        while heap and heap[0][0] <= now:
            due, _, chair = heapq.heappop(heap)
            if due != chair.watched_until:
                continue  # an earlier deadline has taken this one's place
            chair.watched_until = math.inf
            waits = chair.ask is not None or chair.nonce is None
            if chair.table.is_over or not waits:
                continue
            silent_since = self._check_link(chair.player, now)
            if chair.table.is_over:  # the ping was too much for who does not read
                continue
            if chair.player.loss is not None:
                self._look(chair, now + _AGAIN_S)
                continue
            due = chair.next_check(now, self.lag)
            if due > now:
                self._look(chair, min(due, now + _LINK_S))
            elif silent_since is not None and now - due < _SILENT_S:
                self._look(chair, now + _AGAIN_S)  # it may turn out to be lost
            else:
                chair.charge(now, self.lag)
                self._blame(chair, chair.too_late(), now)

    # --- within ---

    def _check_link(self, player: BotSession, now: float) -> float | None:
        """Notice that a connection is lost, or is not any more (J7); since when its machine has acknowledged nothing, if it has not."""
        since = player.link_probe.look(now)
        if since is not None and now - since >= _SILENT_S:
            self.on_lost(player, since)
        elif since is None:
            self.on_heard(player, now)
        return since

    def _play_on(self, table: LiveMatch, now: float) -> None:
        """The rules have taken a step: pass on what they told, and ask what they wait for."""
        match = table.match
        assert match is not None, "it has begun"
        if match.news:
            for tell in match.take_news():
                if tell.seat == EVERYONE:
                    for chair in table.chairs:
                        chair.news.append(tell.news)
                else:
                    table.chairs[tell.seat].news.append(tell.news)
        if match.pending is None:
            self._finish(table, None)
        else:
            self._ask(table.chairs[match.pending.seat], match.pending.question, now)

    def _ask(self, chair: MatchSeat, question: Question[Any], now: float) -> None:
        player = chair.player
        chair.asked += 1
        chair.ask = Ask(
            chair.id,
            ask_id(chair.id, chair.asked),
            question,
            tuple(chair.news),
            chair.clock.bank_ms,
            chair.limits.decision_ms,
        )
        chair.news = []
        chair.asked_at = now  # until it is written
        chair.time_charge = None
        chair.waiting = player.pending
        player.pending += 1
        if not player.ask(chair):
            chair.lag_s = self.lag.total_s(now)
        self._watch(chair)

    def _watch(self, chair: MatchSeat) -> None:
        """See to it that a tick looks at the chair as soon as it can be late."""
        look_at = chair.asked_at + chair.free_until_s
        if look_at < chair.watched_until:
            self._look(chair, look_at)

    def _look(self, chair: MatchSeat, at: float) -> None:
        chair.watched_until = at
        self._entries += 1
        heapq.heappush(self._deadlines, (at, self._entries, chair))

    def _refuses(self, chair: MatchSeat, answer: Answer) -> bool:
        """In practice: say what is wrong with an illegal answer; the question stands and its time runs on."""
        assert chair.ask is not None, "it was answered"
        question = chair.ask.question
        try:
            question.check(answer.value)
        except IllegalAnswer as error:
            legal = question.choices
            ask = chair.ask.ask
            refused = Refused("illegal", str(error), chair.id, ask, legal=legal)
            chair.player.send(refused)
            return True
        return False

    def _blame(self, chair: MatchSeat, finding: Finding, now: float) -> None:
        """End a chair's match by its offence, with the evidence (J3, J4)."""
        table = chair.table
        event = chair.player.event_of(chair, finding.kind, now)
        verdict = chair.verdict(finding, event, now, self.lag)
        self._end(table, finding.kind, chair.seat, finding.text, (event,))
        self._finish(table, verdict)

    def _failed(self, table: LiveMatch) -> None:
        """The rules raised: that is never charged to a bot (J5)."""
        log.exception("the rules of %s failed in match %s", table.game.name, table.id)
        self.void(table, FAULT)

    def _end(
        self,
        table: LiveMatch,
        kind: Ending,
        seat: int | None,
        text: str,
        events: tuple[str, ...] = (),
    ) -> None:
        match = table.match or table.begin(start=False)
        match.end(kind, seat, text, events=events)

    def _finish(self, table: LiveMatch, verdict: Verdict | None) -> None:
        """Tell every seat, free the chairs, and hand the result on."""
        assert table.match is not None, "it is over"
        del self._tables[table.id]
        result = table.match.result()
        reveal = Reveal(table.seed.hex(), result.record.nonces)
        ended = result.termination
        for chair in table.chairs:
            player = chair.player
            del player.chairs[chair.id]
            if chair.ask is not None:
                chair.ask = None
                player.pending -= 1
            mine = verdict is not None and verdict.seat == chair.seat
            player.send(
                Over(
                    chair.id,
                    tuple(chair.news),
                    result.scores,
                    # Who it was and why, in one word, is all that the others learn.
                    ended if mine or verdict is None else Termination(ended.kind, ended.seat),
                    reveal,
                    verdict if mine else None,
                )
            )
        try:
            table.on_over(table, result, verdict)
        except Exception:  # it is no reason to stop the match of whoever's turn it is
            log.exception("the result of match %s was not taken", table.id)
        if verdict is not None:
            self.on_verdict(verdict)
