"""Where a match meets time and the network: chairs are asked, answers are taken, deadlines are kept.

The hot path (design §4): an answer goes in, the rules advance, the next question is put into its player's outbox, all in one
synchronous pass and without a task, future or timer per decision. Deadlines lie in one heap that `tick` looks at. A chair is in it
once, with a time that is never later than its deadline: as deadlines mostly move on, most answers need not touch the heap, and
an entry whose chair has answered meanwhile is put back with its new deadline or dropped.

A seat's time (J7) runs from the writing of the frame that carries the question, or from the bot's latest answer if that is
later, as a bot with many tables is one worker, to the arrival of the answer.
"""

from __future__ import annotations

import heapq
import logging
import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from arena.chance import commitment
from arena.clock import Clock
from arena.match import Match, MatchResult
from arena.player import Player
from arena.rules import EVERYONE, Game
from protocol import messages
from protocol.errors import IllegalAnswer
from protocol.messages import Answer, Ask, Ending, Limits, Over, Ready, Reveal, Verdict
from protocol.session import ask_id
from protocol.vocabulary import News, Question, Settings, shorten

__all__ = ["FAULT", "Chair", "Conduct", "OnOver", "Table"]

log = logging.getLogger(__name__)

FAULT = "a fault of the arena; the match is played again"
"""What all seats are told when it was nobody's doing (J5)."""


class Chair:
    """One seat of one match, and the bot that sits there."""

    __slots__ = (
        "ask",
        "asked",
        "asked_at",
        "clock",
        "id",
        "invitation",
        "news",
        "nonce",
        "pending_before",
        "player",
        "seat",
        "table",
        "watched_until",
    )

    def __init__(self, table: Table, seat: int, player: Player, limits: Limits) -> None:
        self.table = table
        self.seat = seat
        self.player = player
        self.id = f"{table.id}.{seat}"
        self.clock = Clock(limits)
        self.news: list[News] = []
        self.nonce: str | None = None
        self.invitation: messages.Match | None = None
        self.ask: Ask | None = None
        self.asked = 0
        self.asked_at = 0.0
        self.pending_before = 0
        self.watched_until = math.inf

    def repeat(self) -> None:
        """Send the invitation or the question again to a bot that has come back."""
        assert self.invitation is not None, "chairs are invited at once"
        self.player.send(self.invitation)
        if self.ask is not None:
            self.player.send(self.ask)  # its time runs on from the first time

    def due_at(self) -> float:
        """When this chair is out of time, on the loop's clock; only while something is asked of it."""
        limits = self.table.limits
        if self.nonce is None:
            return self.asked_at + limits.start_ms / 1000
        charged_from = max(self.asked_at, self.player.last_answer)
        return min(
            charged_from + self.clock.allowed_ms / 1000,
            self.asked_at + (self.pending_before + 1) * limits.hard_ms / 1000,
        )


OnOver: TypeAlias = Callable[["Table", MatchResult, Verdict | None], None]


class Table:
    """One match over the network: invited, then played, then over."""

    def __init__(
        self,
        table_id: str,
        game: Game,
        settings: Settings,
        players: Sequence[Player],
        limits: Limits,
        on_over: OnOver,
        now: float,
    ) -> None:
        self.id = table_id
        self.game = game
        self.settings = settings
        self.limits = limits
        self.on_over = on_over
        self.opened_at = now
        # Whatever is answered by then is in time and costs nothing, so that only then a look at the clock is due.
        self.look_s = min(limits.decision_ms, limits.hard_ms, limits.start_ms) / 1000
        self.seed = secrets.token_bytes(32)
        self.match: Match | None = None
        self.chairs = [
            Chair(self, seat, player, limits) for seat, player in enumerate(players)
        ]

    @property
    def is_over(self) -> bool:
        """Whether the result is known."""
        return self.match is not None and self.match.termination is not None

    def begin(self, start: bool = True) -> Match:
        """Set the match up from the seed and all the nonces there will be; `start` deals."""
        nonces = tuple(chair.nonce or "" for chair in self.chairs)
        self.match = Match(
            self.game, self.settings, seed=self.seed, nonces=nonces, start=False
        )
        if start:
            self.match.start()
        return self.match


class Conduct:
    """All the matches that are being played.

    Args:
        clock: the loop's monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tables: dict[str, Table] = {}
        self._deadlines: list[tuple[float, int, Chair]] = []
        self._numbers = 0
        self._entries = 0  # breaks ties in the heap
        self._run = secrets.token_hex(
            3
        )  # match ids differ from those of an earlier run of the arena
        self.decisions = 0

    @property
    def tables(self) -> tuple[Table, ...]:
        """The matches that are not over."""
        return tuple(self._tables.values())

    def open(
        self,
        game: Game,
        settings: Settings,
        players: Sequence[Player],
        limits: Limits,
        on_over: OnOver,
    ) -> Table:
        """Invite players to a match, one per seat; `on_over` is called once, when its result is known."""
        self._numbers += 1
        table = Table(
            f"{self._run}-{self._numbers}",
            game,
            settings,
            players,
            limits,
            on_over,
            self._clock(),
        )
        self._tables[table.id] = table
        names = tuple(player.name for player in players)
        plain: dict[str, Any] = msgspec.to_builtins(settings)
        for chair in table.chairs:
            chair.invitation = messages.Match(
                match=chair.id,
                game=game.name,
                seat=chair.seat,
                seats=names,
                settings=plain,
                limits=limits,
                commitment=commitment(table.seed),
            )
            chair.asked_at = table.opened_at
            chair.player.chairs[chair.id] = chair
            chair.player.send(chair.invitation)
            self._watch(chair)
        return table

    def ready(self, player: Player, message: Ready) -> None:
        """A seat is set up; when all are, the cards are dealt."""
        chair = player.chairs.get(message.match)
        if chair is None or chair.nonce is not None:
            return
        chair.nonce = message.nonce
        table = chair.table
        if all(other.nonce is not None for other in table.chairs):
            try:
                table.begin()
            except Exception:
                self._failed(table)
            else:
                self._play_on(table)

    def answer(self, player: Player, message: Answer, arrived: float) -> None:
        """Take an answer that the session's table has let through, and play on."""
        chair = player.chairs.get(message.match)
        if chair is None or chair.ask is None:
            return
        match = chair.table.match
        assert match is not None, "it is being played: something was asked"
        taken_ms = (arrived - max(chair.asked_at, player.last_answer)) * 1000
        in_time = arrived - chair.asked_at <= chair.table.look_s or (
            arrived <= chair.due_at() and chair.clock.charge(taken_ms)
        )
        player.last_answer = arrived
        if not in_time:
            self._late(chair, arrived)
            return
        self.decisions += 1
        try:
            match.answer(message.value, message.note)
        except IllegalAnswer as error:
            self._blame(
                chair, Ending.ILLEGAL, str(error), got=message.value, taken_ms=taken_ms
            )
        except Exception:
            self._failed(chair.table)
        else:
            chair.ask = None
            player.pending -= 1
            self._play_on(chair.table)

    def offence(self, player: Player, kind: Ending, text: str) -> None:
        """Something that is no answer ends all matches of this player: it left, crashed, sent garbage."""
        for chair in list(player.chairs.values()):
            if not chair.table.is_over:  # the player may sit at both sides of it
                self._blame(chair, kind, f"seat {chair.seat + 1} {text}")

    def void(self, table: Table, text: str) -> None:
        """Stop a match that is nobody's fault or has lost its meaning."""
        if not table.is_over:
            self._end(table, Ending.VOID, None, text)
            self._finish(table, None)

    def tick(self) -> None:
        """Rule on every chair whose time is up."""
        now = self._clock()
        heap = self._deadlines
        while heap and heap[0][0] <= now:
            due, _, chair = heapq.heappop(heap)
            if due != chair.watched_until:
                continue  # an earlier deadline has taken this one's place
            chair.watched_until = math.inf
            waits = chair.ask is not None or chair.nonce is None
            if chair.table.is_over or not waits:
                continue
            due = chair.due_at()
            if due > now:
                self._look(chair, due)
            else:
                self._late(chair, now)

    # --- within ---

    def _play_on(self, table: Table) -> None:
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
            self._ask(table.chairs[match.pending.seat], match.pending.question)

    def _ask(self, chair: Chair, question: Question[Any]) -> None:
        player = chair.player
        chair.asked += 1
        chair.ask = Ask(
            chair.id,
            ask_id(chair.id, chair.asked),
            question,
            tuple(chair.news),
            chair.clock.bank_ms,
            chair.table.limits.decision_ms,
        )
        chair.news = []
        chair.asked_at = self._clock()
        chair.pending_before = player.pending
        player.pending += 1
        player.ask(chair)
        self._watch(chair)

    def _watch(self, chair: Chair) -> None:
        """See to it that a tick looks at the chair as soon as it can be late."""
        look_at = chair.asked_at + chair.table.look_s
        if look_at < chair.watched_until:
            self._look(chair, look_at)

    def _look(self, chair: Chair, at: float) -> None:
        chair.watched_until = at
        self._entries += 1
        heapq.heappush(self._deadlines, (at, self._entries, chair))

    def _late(self, chair: Chair, now: float) -> None:
        taken_ms = (now - max(chair.asked_at, chair.player.last_answer)) * 1000
        seat = f"seat {chair.seat + 1}"
        if chair.nonce is None:
            limit = chair.table.limits.start_ms
            text = f"{seat} was not ready within {limit} ms after `match`"
            self._blame(chair, Ending.ABSENT, text, taken_ms=taken_ms)
            return
        assert chair.ask is not None, "only late with something"
        text = (
            f"{seat} did not answer {chair.ask.question.kind} in time: waited {taken_ms:.0f} ms; "
            f"allowed {chair.table.limits.decision_ms} ms and a bank of {chair.clock.bank_ms} ms, "
            f"at most {chair.table.limits.hard_ms} ms"
        )
        self._blame(chair, Ending.TIMEOUT, text, taken_ms=taken_ms)

    def _blame(
        self,
        chair: Chair,
        kind: Ending,
        text: str,
        *,
        got: object = None,
        taken_ms: float | None = None,
    ) -> None:
        """End a chair's match by its offence, with the evidence (J3, J4)."""
        table = chair.table
        question = None if chair.ask is None else chair.ask.question
        verdict = Verdict(
            kind=kind,
            match=table.id,
            game=table.game.name,
            bot=chair.player.name,
            seat=chair.seat,
            text=text,
            asked=None if question is None else msgspec.json.encode(question).decode(),
            legal=None if question is None else question.legal_text(),
            got=shorten(got) if kind is Ending.ILLEGAL else None,
            taken_ms=None if taken_ms is None else round(taken_ms, 1),
            bank_ms=chair.clock.bank_ms,
            limits=table.limits,
        )
        self._end(table, kind, chair.seat, text)
        self._finish(table, verdict)

    def _failed(self, table: Table) -> None:
        """The rules raised: that is never charged to a bot (J5)."""
        log.exception("the rules of %s failed in match %s", table.game.name, table.id)
        self.void(table, FAULT)

    def _end(self, table: Table, kind: Ending, seat: int | None, text: str) -> None:
        match = table.match or table.begin(start=False)
        match.end(kind, seat, text)

    def _finish(self, table: Table, verdict: Verdict | None) -> None:
        """Tell every seat, free the chairs, and hand the result on."""
        assert table.match is not None, "it is over"
        del self._tables[table.id]
        result = table.match.result()
        reveal = Reveal(table.seed.hex(), result.record.nonces)
        for chair in table.chairs:
            player = chair.player
            del player.chairs[chair.id]
            if chair.ask is not None:
                chair.ask = None
                player.pending -= 1
            player.send(
                Over(
                    chair.id,
                    tuple(chair.news),
                    result.scores,
                    result.termination,
                    reveal,
                )
            )
        try:
            table.on_over(table, result, verdict)
        except Exception:  # it is no reason to stop the match of whoever's turn it is
            log.exception("the result of match %s was not taken", table.id)
