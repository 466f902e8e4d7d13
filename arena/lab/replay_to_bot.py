"""Puts the questions of a finished match to a bot again, up to the first answer that differs.

The cards come from the seed and nonces of the record, the other seats' answers from the record, so
every question comes with the same news as in the match. How the bot is asked stands in
`arena/lab/seat_referee.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from arena.engine.match import Record, questions_of
from arena.engine.shuffle import commitment
from arena.games import game_named
from arena.games.replay import reopened
from arena.lab.bot_pool import private_arena
from arena.lab.seat_referee import AskedSeat, BotFailed, arrived, referee_of
from arena.sandbox.command import Program, bot_command, strategy_program
from protocol.errors import ArenaError, IllegalAnswer, UsageError
from protocol.messages import Ending, Limits, Over, Reveal, Termination
from protocol.vocabulary import News, Question

__all__ = [
    "BotFailed",
    "FirstDifference",
    "RecordedSeat",
    "ReplayOutcome",
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
        referee, recorded = referee_of(host), RecordedSeat(record, seat, players)
        name = players[seat]
        await host.launch_program(start(host.url, name), name)
        player = await arrived(host, name, limits)
        if isinstance(player, BotFailed):
            return ReplayOutcome(0, player)
        failed = await referee.put(player, recorded, match)
        return ReplayOutcome(recorded.same, failed or recorded.difference)


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


class RecordedSeat(AskedSeat):
    """A seat of a finished match; the others answer as they did.

    Attributes:
        same: how many answers were as recorded.
        difference: the first that was not.
    """

    def __init__(self, record: Record, seat: int, players: Sequence[str]) -> None:
        hidden = commitment(bytes.fromhex(record.seed)) if record.seed else ""
        super().__init__(reopened(record), seat, players, record.commitment or hidden)
        self.same = 0
        self.difference: FirstDifference | None = None
        self._record = record
        self._questions = questions_of(seat, self.match.steps(record.answers))

    def proceed(self) -> tuple[Question[Any] | None, tuple[News, ...]]:
        try:
            number, question, news = next(self._questions)
        except (IllegalAnswer, ValueError) as error:
            raise ArenaError(f"the record cannot be played again: {error}") from None
        was_answered = number < len(self._record.answers)
        ended = self._record.termination
        was_offence = ended.is_offence and ended.seat == self.seat
        # The last question may be without an answer, as the match ended elsewhere.
        return (question if was_answered or was_offence else None), news

    def take(self, number: int, question: Question[Any], given: Any) -> bool:
        """Compare an answer with the recorded one, and go on if it is the same."""
        recorded = self._recorded(question)
        if recorded is None or recorded[0] != given:
            answer = "no legal answer" if recorded is None else recorded[0]
            self.difference = FirstDifference(number, question, answer, given)
            return False
        self.same += 1
        return True

    def over(self, match: str, news: tuple[News, ...]) -> Over:
        record = self._record
        reveal = Reveal(record.seed, record.nonces) if record.seed else None
        ended = record.termination
        if ended.seat != self.seat and ended.kind is not Ending.VOID:
            ended = Termination(ended.kind, ended.seat)
        return Over(match, news, record.scores, ended, reveal)

    def _recorded(self, question: Question[Any]) -> tuple[Any] | None:
        """The recorded answer to the pending question; None if there is no legal one."""
        number = len(self.match.answers)
        if number >= len(self._record.answers):
            return None
        try:
            return (question.check(self._record.answers[number]),)
        except IllegalAnswer:
            return None
