"""The questions of a match that is over, put to a bot once more: it stops at the first answer that is another than then.

The bot is a process like in a competition and speaks the real protocol, over a WebSocket or its pipes. In the place of the referee
stands a `ReplayReferee` with one chair: its cards come from the record's seed and nonces, what the other seats answered from the record, and
so every question comes with the same news as then. What differs is `bank_ms`, which is always full: nobody is charged for time
here, but a bot must have answered within `wall_ms`.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from arena.competitions.arena_host import Host
from arena.engine.match import Record, questions_of
from arena.engine.shuffle import commitment
from arena.engine.verdict import Finding
from arena.games import game_named
from arena.games.replay import reopened
from arena.referee.bot_session import BotSession
from arena.referee.clock import Lag
from arena.referee.live_match import LiveMatch
from arena.referee.seat import MatchSeat
from arena.sandbox.command import Program, bot_command, strategy_program
from arena.storage.store import Store
from protocol import messages
from protocol.errors import ArenaError, IllegalAnswer, UsageError
from protocol.messages import Answer, Ask, Ending, Limits, Ready, Reveal, Verdict
from protocol.session import ask_id
from protocol.vocabulary import Question

__all__ = [
    "BotFailed",
    "FirstDifference",
    "ReplayOutcome",
    "ReplayReferee",
    "program_of",
    "replay_to_bot",
]


class FirstDifference(msgspec.Struct, frozen=True):
    """The first question that was answered in another way.

    Attributes:
        number: which of this seat's questions it is, from 1.
        question: what was asked.
        recorded: the answer then; None, as text, where none that was legal came.
        given: the answer now.
    """

    number: int
    question: Question[Any]
    recorded: Any
    given: Any


class BotFailed(msgspec.Struct, frozen=True):
    """The bot could not go on.

    Attributes:
        text: why, in a line.
        number: which of this seat's questions waited, from 1; 0 if none did.
        question: what it was.
        stderr: the end of what it wrote there, if it has ended.
    """

    text: str
    number: int = 0
    question: Question[Any] | None = None
    stderr: str = ""


class ReplayOutcome(msgspec.Struct, frozen=True):
    """What came of a rehearsal: how many answers were the same, and what ended it early."""

    same: int
    ended: FirstDifference | BotFailed | None = None


async def replay_to_bot(
    record: Record,
    seat: int,
    players: Sequence[str],
    start: Callable[[str, str], Program],
    limits: Limits,
    match: str = "replay",
) -> ReplayOutcome:
    """Put a seat's questions to a bot.

    Args:
        record: the match.
        seat: whose questions, from 0.
        players: who sat where.
        start: gives the bot's command line for the arena's address and the name that it will have.
        limits: what it is held to.
        match: the id of the match.

    Raises:
        UsageError: it is no record of a match, there is no such seat, or the command can never work here.
        ArenaError: the bot cannot be started on this machine.
    """
    seats = game_named(record.game).seats
    if not 0 <= seat < seats:
        raise UsageError(f"expected a seat from 1 to {seats}, got {seat + 1}")
    with (
        tempfile.TemporaryDirectory(prefix="arena-") as folder,
        Store(Path(folder) / "arena.db") as store,
    ):
        async with Host(store, limits=limits) as host:
            clock = asyncio.get_running_loop().time
            rehearsal = ReplayReferee(record, seat, players, limits, clock, match)
            gateway: Any = host.gateway
            gateway.referee = gateway.dismissals.referee = rehearsal
            name = players[seat]
            await host.launch_program(start(host.url, name), name)
            player = await _arrived(host, name, limits)
            if isinstance(player, BotFailed):
                return ReplayOutcome(0, player)
            rehearsal.invite(player)
            return await rehearsal.outcome


def program_of(game: str, bot: str, seed: str | None = None) -> Callable[[str, str], Program]:
    """How a bot of ours, or a FILE.py, is started: by its name among the house bots, or by its file."""

    def start(url: str, name: str) -> Program:
        if bot.endswith(".py"):
            program = strategy_program(bot, url=url, name=name)
        else:
            program = Program(tuple(bot_command((game, bot), url=url, name=name)))
        seeded = () if seed is None else ("--seed", seed)
        return msgspec.structs.replace(program, words=(*program.words, *seeded))

    return start


async def _arrived(host: Host, name: str, limits: Limits) -> BotSession | BotFailed:
    """The bot, when it has said hello."""
    within_s = (limits.start_ms + limits.hello_ms) / 1000
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while name not in host.gateway.players:
                if (why := host.ended.get(name)) is not None:
                    return BotFailed(why)
                await host.wait_for_change()
    player: BotSession | None = host.gateway.players.get(name)
    if player is None:
        return BotFailed(f"did not say hello within {within_s:,.0f} s")
    return player


class ReplayReferee:
    """Stands in the place of `Conduct`, as far as a gateway sees it, with one chair of one match.

    Attributes:
        outcome: what came of it, once that is known.
        practice: an illegal answer is not refused.
        lag: how late the loop has been.
    """

    practice = False

    def __init__(
        self,
        record: Record,
        seat: int,
        players: Sequence[str],
        limits: Limits,
        clock: Callable[[], float],
        match: str,
    ) -> None:
        self.lag = Lag(clock())
        self.outcome: asyncio.Future[ReplayOutcome] = asyncio.Future()
        self.on_verdict: Callable[[Verdict], None] = lambda verdict: None
        self.decisions = 0
        self._record, self._seat, self._limits = record, seat, limits
        self._players, self._clock, self._id = tuple(players), clock, match
        self._match = reopened(record)
        self._questions = questions_of(seat, self._match.steps(record.answers))
        self._table: LiveMatch | None = None

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        """The one match, as long as it goes on."""
        if self._table is None or self.outcome.done():
            return ()
        return (self._table,)

    def invite(self, player: BotSession) -> None:
        """Have a player take the chair."""
        record, game = self._record, self._match.game
        if game.name not in player.games:
            plays = ", ".join(sorted(player.games))
            self._end(BotFailed(f"said hello for {plays}, expected {game.name}"))
            return
        self._table = table = LiveMatch(
            self._id,
            game,
            self._match.settings,
            [player] * game.seats,
            self._limits,
            lambda *_: None,
            self._clock(),
        )
        table.match = self._match
        chair = table.chairs[self._seat]
        hidden = commitment(bytes.fromhex(record.seed)) if record.seed else ""
        chair.invite(
            messages.Match(
                match=chair.id,
                game=game.name,
                seat=chair.seat,
                seats=self._players,
                settings=record.settings,
                limits=self._limits,
                commitment=record.commitment or hidden,
            )
        )
        chair.asked_at = self._clock()

    # --- what a gateway calls ---

    def ready(self, player: BotSession, message: Ready) -> None:
        """The bot is set up: the first question."""
        chair = player.chairs.get(message.match)
        if chair is not None and chair.nonce is None:
            chair.nonce = message.nonce
            self._play_on(chair)

    def answer(self, player: BotSession, message: Answer, arrived: float) -> None:
        """Compare an answer with the recorded one, and go on if it is the same."""
        chair = player.chairs.get(message.match)
        if chair is None or chair.ask is None or self.outcome.done():
            return
        question = chair.ask.question
        try:
            given = question.check(message.value)
        except IllegalAnswer as error:
            self._end(BotFailed(str(error), chair.asked, question))
            return
        recorded = self._recorded(question)
        if recorded is None or recorded[0] != given:
            answer = "no legal answer" if recorded is None else recorded[0]
            self._end(FirstDifference(chair.asked, question, answer, given))
            return
        chair.ask = None
        player.pending -= 1
        player.last_answer = arrived
        self.decisions += 1
        self._play_on(chair)

    def offence(self, player: BotSession, finding: Finding) -> None:
        """The bot has gone, or said what cannot be read."""
        for chair in player.chairs.values():
            question = None if chair.ask is None else chair.ask.question
            waited = 0 if question is None else chair.asked
            said = finding.stderr or ""
            self._end(BotFailed(finding.text, waited, question, said))

    def void(self, table: LiveMatch, text: str) -> None:
        """The arena itself has failed."""
        self._end(BotFailed(text))

    def tick(self) -> None:
        """See whether the bot has taken too long."""
        now = self._clock()
        self.lag.tick(now)
        if self._table is None or self.outcome.done():
            return
        chair = self._table.chairs[self._seat]
        waited_ms = (now - chair.asked_at) * 1000
        if chair.nonce is None and waited_ms > self._limits.start_ms:
            limit = f"{self._limits.start_ms:,} ms"
            self._end(BotFailed(f"not ready within {limit} after match"))
        elif chair.ask is not None and waited_ms > self._limits.wall_ms:
            text = f"did not answer within {self._limits.wall_ms:,} ms"
            self._end(BotFailed(text, chair.asked, chair.ask.question))

    # --- within ---

    def _play_on(self, chair: MatchSeat) -> None:
        """Go on to the seat's next question, the others answering as they did."""
        try:
            number, question, news = next(self._questions)
        except (IllegalAnswer, ValueError) as error:
            text = f"the record cannot be played again: {error}"
            self._end(ArenaError(text))
            return
        chair.news += news
        was_answered = number < len(self._record.answers)
        if question is not None and (was_answered or self._offended):
            self._ask(chair, question)
        else:  # a question that was never answered is not put: the match had ended
            self._over(chair)

    @property
    def _offended(self) -> bool:
        """Whether the match ended by an answer of this seat's, or by none."""
        ended = self._record.termination
        return ended.is_offence and ended.seat == self._seat

    def _recorded(self, question: Question[Any]) -> tuple[Any] | None:
        """The answer that was given to the pending question; None if none that was legal was."""
        number = len(self._match.answers)
        if number >= len(self._record.answers):
            return None
        try:
            return (question.check(self._record.answers[number]),)
        except IllegalAnswer:
            return None

    def _ask(self, chair: MatchSeat, question: Question[Any]) -> None:
        chair.asked += 1
        chair.ask = Ask(
            chair.id,
            ask_id(chair.id, chair.asked),
            question,
            tuple(chair.news),
            self._limits.bank_ms,
            self._limits.decision_ms,
        )
        chair.news = []
        chair.asked_at = self._clock()
        chair.player.pending += 1
        chair.player.ask(chair)

    def _over(self, chair: MatchSeat) -> None:
        """Tell the bot that it is done, as it was told then."""
        record = self._record
        reveal = Reveal(record.seed, record.nonces) if record.seed else None
        ended = record.termination
        if ended.seat != self._seat and ended.kind is not Ending.VOID:
            ended = messages.Termination(ended.kind, ended.seat)
        over = messages.Over(chair.id, tuple(chair.news), record.scores, ended, reveal)
        del chair.player.chairs[chair.id]
        chair.player.send(over)
        self._end(None)

    def _end(self, ended: FirstDifference | BotFailed | ArenaError | None) -> None:
        if self.outcome.done():
            return
        if isinstance(ended, ArenaError):
            self.outcome.set_exception(ended)
        else:
            self.outcome.set_result(ReplayOutcome(self.decisions, ended))
