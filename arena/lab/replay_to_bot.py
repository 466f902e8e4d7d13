"""Puts the questions of a finished match to a bot again, up to the first answer that differs.

The bot is a process as in a competition and speaks the real protocol, over a WebSocket or its
pipes. A `ReplayReferee` with one seat replaces the referee. The cards come from the seed and nonces
of the record, the other seats' answers from the record, so every question comes with the same news
as in the match. Only `bank_ms` differs: it is always full, as time is not charged here. A bot must
answer within `wall_ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from arena.competitions.arena_host import Host
from arena.engine.match import Record, questions_of
from arena.engine.shuffle import commitment
from arena.engine.verdict import Finding
from arena.games import game_named
from arena.games.replay import reopened
from arena.lab.bot_pool import private_arena
from arena.referee.bot_session import BotSession
from arena.referee.clock import Lag
from arena.referee.live_match import LiveMatch
from arena.referee.seat import MatchSeat
from arena.sandbox.command import Program, bot_command, strategy_program
from protocol import messages
from protocol.errors import ArenaError, IllegalAnswer, UsageError
from protocol.messages import Answer, Ending, Limits, Ready, Reveal, Verdict
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
    """The first question that was answered differently.

    Attributes:
        number: which of this seat's questions it is, from 1.
        recorded: the answer in the record; the text `no legal answer` if there was none.
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
        number: which of this seat's questions was open, from 1; 0 if none was.
        stderr: the end of what the bot wrote there, if it has ended.
    """

    text: str
    number: int = 0
    question: Question[Any] | None = None
    stderr: str = ""


class ReplayOutcome(msgspec.Struct, frozen=True):
    """How many answers were the same, and what ended the replay early."""

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

    Seats count from 0, and `players` are the names by seat. `start` gives the bot's command line
    for the arena's address and the bot's name.

    Raises:
        UsageError: it is no record of a match, there is no such seat, or the command can never work
            here.
        ArenaError: the bot cannot be started on this machine.
    """
    seats = game_named(record.game).seats
    if not 0 <= seat < seats:
        raise UsageError(f"expected a seat from 1 to {seats}, got {seat + 1}")
    async with private_arena(limits) as host:
        clock = asyncio.get_running_loop().time
        referee = ReplayReferee(record, seat, players, limits, clock, match)
        gateway: Any = host.gateway
        gateway.referee = gateway.dismissals.referee = referee
        name = players[seat]
        await host.launch_program(start(host.url, name), name)
        player = await _arrived(host, name, limits)
        if isinstance(player, BotFailed):
            return ReplayOutcome(0, player)
        referee.invite(player)
        return await referee.outcome


def program_of(game: str, bot: str, seed: str | None = None) -> Callable[[str, str], Program]:
    """The `start` of `replay_to_bot` for a house bot, by its name, or for a FILE.py."""

    def start(url: str, name: str) -> Program:
        if bot.endswith(".py"):
            program = strategy_program(bot, url=url, name=name)
        else:
            program = Program(tuple(bot_command((game, bot), url=url, name=name)))
        seeded = () if seed is None else ("--seed", seed)
        return msgspec.structs.replace(program, words=(*program.words, *seeded))

    return start


async def _arrived(host: Host, name: str, limits: Limits) -> BotSession | BotFailed:
    within_s = (limits.start_ms + limits.hello_ms) / 1000
    await host.wait_for_bots([name], within_s)
    player: BotSession | None = host.gateway.players.get(name)
    if player is None:
        late = f"did not say hello within {within_s:,.0f} s"
        return BotFailed(host.ended.get(name, late))
    return player


class ReplayReferee:
    """Replaces `Referee` for a gateway, with one seat of one match; `outcome` is its result."""

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
        if self._table is None or self.outcome.done():
            return ()
        return (self._table,)

    def invite(self, player: BotSession) -> None:
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

    # ---- Called by the gateway

    def ready(self, player: BotSession, message: Ready) -> None:
        chair = player.chairs.get(message.match)
        if chair is not None and chair.nonce is None:
            chair.nonce = message.nonce
            self._play_on(chair)

    def answer(self, chair: MatchSeat, message: Answer, arrived: float) -> None:
        """Compare an answer with the recorded one, and go on if it is the same."""
        question = chair.question
        if question is None or self.outcome.done():
            return
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
        chair.question = None
        chair.player.pending -= 1
        chair.player.last_answer = arrived
        self.decisions += 1
        self._play_on(chair)

    def offence(self, player: BotSession, finding: Finding) -> None:
        for chair in player.chairs.values():
            question = chair.question
            waited = 0 if question is None else chair.asked
            said = finding.stderr or ""
            self._end(BotFailed(finding.text, waited, question, said))

    def void(self, table: LiveMatch, text: str) -> None:
        """End the replay, as the arena itself has failed."""
        self._end(BotFailed(text))

    def tick(self) -> None:
        now = self._clock()
        self.lag.tick(now)
        if self._table is None or self.outcome.done():
            return
        chair = self._table.chairs[self._seat]
        waited_ms = (now - chair.asked_at) * 1000
        if chair.nonce is None and waited_ms > self._limits.start_ms:
            self._end(BotFailed(f"not ready within {self._limits.start_ms:,} ms after match"))
        elif chair.question is not None and waited_ms > self._limits.wall_ms:
            text = f"did not answer within {self._limits.wall_ms:,} ms"
            self._end(BotFailed(text, chair.asked, chair.question))

    # ---- Within

    def _play_on(self, chair: MatchSeat) -> None:
        """Go on to the seat's next question; the other seats answer as recorded."""
        try:
            number, question, news = next(self._questions)
        except (IllegalAnswer, ValueError) as error:
            self._end(ArenaError(f"the record cannot be played again: {error}"))
            return
        chair.news += news
        was_answered = number < len(self._record.answers)
        ended = self._record.termination
        was_offence = ended.is_offence and ended.seat == self._seat
        if question is not None and (was_answered or was_offence):
            self._ask(chair, question)
        else:  # the last question may be without an answer, as the match ended elsewhere
            self._over(chair)

    def _recorded(self, question: Question[Any]) -> tuple[Any] | None:
        """The recorded answer to the pending question; None if there is no legal one."""
        number = len(self._match.answers)
        if number >= len(self._record.answers):
            return None
        try:
            return (question.check(self._record.answers[number]),)
        except IllegalAnswer:
            return None

    def _ask(self, chair: MatchSeat, question: Question[Any]) -> None:
        chair.put(question, self._clock())
        chair.player.ask(chair)

    def _over(self, chair: MatchSeat) -> None:
        record = self._record
        reveal = Reveal(record.seed, record.nonces) if record.seed else None
        ended = record.termination
        if ended.seat != self._seat and ended.kind is not Ending.VOID:
            ended = messages.Termination(ended.kind, ended.seat)
        over = messages.Over(chair.id, chair.news, record.scores, ended, reveal)
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
