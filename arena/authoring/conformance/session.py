"""One run of `arena check`: the bot in its matches, and what its decisions took.

`play` plays any number of matches at once, each to its end. The other methods make single moves,
for steps in which something happens between the moves.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from arena.authoring.conformance import Hint
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.diagnose import blame_of_answer
from arena.authoring.conformance.table import CheckMatch
from arena.games.catalogue import game_named
from arena.games.rules import Variation
from arena.referee.clock import QUICK_MS, CoreWait
from protocol.errors import IllegalAnswer
from protocol.messages import Answer, ArenaMessage, Ask, Ending, Ready
from protocol.vocabulary import Question

__all__ = ["CheckSession", "against_house"]

_SETTLE_S = 0.05  # a bot that fails at the last message of a step fails within that time
_TYPES = frozenset({Hint.NUMBERS, Hint.STRINGS})

Watch = Callable[[Question[Any]], None]


class _TimedAnswer(NamedTuple):
    table: CheckMatch
    answer: Answer
    arrived: float  # in seconds of the loop's clock
    used_ms: float | None  # CPU time; None if it is not measured
    idle_ms: float  # what it costs the bank of clock time


class CheckSession:
    """One check of one bot.

    Args:
        games: the games to check; empty for all that the bot offers.

    Attributes:
        times_ms: the wall time of every measured decision.
        bank_ms, wall_bank_ms: the most that one match took out of the bank, and out of that of
            clock time.
        played: the games that were played without a fault.
        run: what the ids of the matches begin with.
        until: when the check should be over, in seconds of the loop's clock.
        progress: how far the running step is, in words.
        reads_arrays: whether the bot has read frames that hold arrays.
    """

    def __init__(
        self, bot: BotUnderTest, games: Sequence[str], rounds: int, rng: random.Random
    ) -> None:
        self.bot = bot
        self.rounds = rounds
        self.rng = rng
        self.times_ms: list[float] = []
        self.bank_ms = self.wall_bank_ms = 0.0
        self.played: set[str] = set()
        self.reads_arrays = False
        self.until = math.inf
        self.progress = ""
        self.wanted = tuple(games)
        self._offered: tuple[str, ...] = ()
        self.run = rng.randbytes(4).hex()
        self._matches = 0
        self._loop = asyncio.get_running_loop()

    @property
    def games(self) -> tuple[str, ...]:
        """The games that the bot offers, or those of them that are wanted."""
        if self.bot.hello is not None:
            self._offered = tuple(dict.fromkeys(self.bot.hello.games))
        return tuple(game for game in self._offered if not self.wanted or game in self.wanted)

    @property
    def handy(self) -> str:
        """The game whose short matches have the fewest decisions."""
        return min(self.games, key=_decisions)

    def short_match(self, game: str | None = None) -> CheckMatch:
        """A short match, by default of the game with the shortest ones."""
        game = game or self.handy
        return self.table(game, against_house(game_named(game).short))

    def table(self, game: str, variation: Variation, seat: int | None = None) -> CheckMatch:
        """A new match. Without a `seat` the bot sits in another one each time."""
        self._matches += 1
        bot, rules, number = self.bot, game_named(game), self._matches
        seat = number % rules.seats if seat is None else seat
        return CheckMatch(number, rules, variation, seat, bot.name, bot.limits, self.rng, self.run)

    @property
    def now(self) -> float:
        """The time by the loop's clock, in seconds."""
        return self._loop.time()

    async def fresh(self, name: str | None = None) -> None:
        """Start the bot again, under another name if one is given, and welcome it."""
        await self.bot.stop()
        await self.bot.launch(name)
        await self.bot.arrive()
        await self.bot.meet()

    async def settle(self, seconds: float = _SETTLE_S) -> None:
        """Wait so long; raises `StepFailed` if the bot leaves or says something meanwhile."""
        await self.bot.quiet("nothing, until it is asked", seconds)

    async def play(
        self,
        tables: Sequence[CheckMatch],
        *,
        joined: bool = False,
        measured: bool = False,
        lenient: bool = False,
        until: float | None = None,
        watch: Watch = lambda question: None,
    ) -> None:
        """Play matches, all at once, to their ends; raises `StepFailed` if the bot does wrong.

        Args:
            joined: whether to send all waiting messages in one frame.
            measured: whether to charge the time of decisions; only for a single match.
            lenient: whether only the types of answers matter.
            until: when to break off, in seconds of the loop's clock.
            watch: called with every question that was answered.
        """
        await self.invite(tables, joined=joined)
        going = {table.id: table for table in tables}
        moved, asked_at = [*tables], self.now
        while True:
            if len(moved) == len(going) or not self.bot.has_more:
                messages = [table.next() for table in moved]
                going = {table.id: table for table in going.values() if not table.is_over}
                moved, asked_at = [], self.now
                await self.bot.say(*messages, joined=joined)
            if not going:
                return
            heard = await self._answer(going)
            table, answer = heard.table, heard.answer
            assert table.ask is not None, "it was answered"
            question = table.ask.question
            self.judge(table, answer.value, lenient=lenient)
            watch(question)
            if measured:
                self._charge(heard, (heard.arrived - asked_at) * 1000)
            moved.append(table)
            if until is not None and self.now > until:
                for match in going.values():
                    text = "the check has no more time for this match"
                    await self.bot.say(match.end(Ending.VOID, None, text))
                return

    async def invite(
        self,
        tables: Sequence[CheckMatch],
        before: Sequence[ArenaMessage] = (),
        *,
        joined: bool = False,
    ) -> None:
        """Send invitations, after the messages `before`, and wait until all are answered."""
        await self.bot.say(*before, *(table.invitation for table in tables), joined=joined)
        waiting = {table.id: table for table in tables}
        while waiting:
            expected = f"`ready` for {', '.join(list(waiting)[:3])}"
            message, _ = await self.bot.hear(expected, Hint.NOT_READY, self.bot.limits.start_ms)
            if not isinstance(message, Ready) or message.match not in waiting:
                raise self.bot.failure(expected, self.bot.came, Hint.OUT_OF_TURN)
            waiting.pop(message.match).begin(message.nonce)

    async def begin_match(self, game: str | None = None) -> CheckMatch:
        """A short match for which the bot is ready."""
        table = self.short_match(game)
        await self.invite([table])
        return table

    async def invite_again(self, table: CheckMatch) -> None:
        """Repeat an invitation, and wait for another `ready`; a late answer may come first."""
        await self.bot.say(table.invitation)
        expected = f"`ready` for {table.id}, again"
        while True:
            message, _ = await self.bot.hear(
                expected, Hint.NOT_READY, self.bot.limits.start_ms, even_repeated=True
            )
            if isinstance(message, Ready) and message.match == table.id:
                return
            if isinstance(message, Answer) and table.ask and table.ask.ask == message.ask:
                # A bot that does not know whether its answer arrived may send it again.
                self.judge(table, message.value)

    async def ask(self, table: CheckMatch) -> Ask | None:
        """Send the next question and return it, or send `over`."""
        message = table.next()
        await self.bot.say(message)
        return message if isinstance(message, Ask) else None

    async def answer(self, table: CheckMatch) -> None:
        """Wait for the answer to the open question, and judge it."""
        self.judge(table, await self.value(table))

    async def value(self, table: CheckMatch) -> object:
        """Wait for the answer to the open question, and leave the question open."""
        return (await self._answer({table.id: table})).answer.value

    async def finish(self, table: CheckMatch) -> None:
        while await self.ask(table):
            await self.answer(table)

    def judge(self, table: CheckMatch, value: object, *, lenient: bool = False) -> None:
        """Take an answer; raises `StepFailed` if it is not legal.

        A lenient judge objects only to a wrong type, and puts a legal answer in place of others.
        """
        assert table.ask is not None, "an answer follows a question"
        question = table.ask.question
        try:
            table.take(value)
        except IllegalAnswer:
            hint = blame_of_answer(question, value)
            if lenient and hint not in _TYPES:
                table.instead()
                return
            where = f"question {table.asked:,} of {table.id}"
            expected = f"a legal answer to {question.kind}: {question.legal_text()}"
            fault = question.fault(value)
            came = f"{self.bot.came}, at {where}{f': {fault}' if fault else ''}"
            failed = self.bot.failure(expected, came, hint)
            if failed.hint is Hint.FAULT:
                said = question.advice(value)
                failed.advice = f"{said[:1].upper()}{said[1:]}."
            raise failed from None

    async def _answer(self, going: Mapping[str, CheckMatch]) -> _TimedAnswer:
        """Wait for the bot's next answer in any of these matches, as long as an arena would."""
        asks = [table.ask.ask for table in going.values() if table.ask is not None]
        expected = f"an answer to {', '.join(asks[:3])}"
        bot, began, before_ms = self.bot, self.now, self.bot.used_ms()
        core_wait = CoreWait(bot.waited_ms() or 0.0, began)
        count = max(1, len(asks))
        hard_ms = bot.limits.hard_ms * count
        # A bot with metered CPU time may sleep.
        one_ms = bot.limits.wall_ms if bot.is_metered else bot.limits.hard_ms

        def late() -> str | None:
            core_wait.look(bot.waited_ms() or 0.0, self.now)
            spent_ms = bot.used_ms() - before_ms
            return f"{spent_ms:,.0f} ms of CPU time, and no end" if spent_ms > hard_ms else None

        message, arrived = await bot.hear(
            expected, Hint.SILENT, one_ms * count, Hint.SLOW, look=late
        )
        if not isinstance(message, Answer) or message.match not in going:
            raise bot.failure(expected, bot.came, Hint.OUT_OF_TURN)
        spent_ms, took_ms = bot.used_ms() - before_ms, (arrived - began) * 1000
        if spent_ms > hard_ms:
            came = f"{bot.came} after {spent_ms:,.0f} ms of CPU time"
            raise bot.failure(expected, came, Hint.SLOW)
        idle_ms = 0.0
        is_slow = bot.is_metered and took_ms > QUICK_MS
        if is_slow and (waited_ms := bot.waited_ms()) is not None:
            core_wait.look(waited_ms, arrived)
            idle_ms = max(0.0, took_ms - spent_ms - core_wait.total_ms)
        used_ms = spent_ms if bot.is_metered else None
        return _TimedAnswer(going[message.match], message, arrived, used_ms, idle_ms)

    def _charge(self, heard: _TimedAnswer, took_ms: float) -> None:
        """Charge a decision as an arena does: CPU time where it is measured, else wall time."""
        limits, clock, used_ms = self.bot.limits, heard.table.clock, heard.used_ms
        self.times_ms.append(took_ms)
        clock.wall_bank_ms -= heard.idle_ms
        self.wall_bank_ms = max(self.wall_bank_ms, limits.wall_bank_ms - clock.wall_bank_ms)
        if clock.wall_bank_ms < 0:
            expected = (
                f"decisions that take at most {limits.wall_bank_ms:,} ms in a match "
                "by the clock on the wall beyond their CPU time"
            )
            came = f"one that took {took_ms:,.0f} ms when that bank was empty"
            raise self.bot.failure(expected, came, Hint.SLOW)
        cost_ms = took_ms if used_ms is None else used_ms
        in_time = clock.charge(cost_ms)
        self.bank_ms = max(self.bank_ms, limits.bank_ms - clock.bank_ms)
        if not in_time:
            of = "" if used_ms is None else " of CPU time"
            expected = (
                f"decisions that take at most {limits.decision_ms:,} ms{of}, "
                f"and {limits.bank_ms:,} ms more in a match"
            )
            came = f"one that took {cost_ms:,.0f} ms when the bank was empty"
            raise self.bot.failure(expected, came, Hint.SLOW)


def against_house(settings: Mapping[str, object]) -> Variation:
    """A match with these settings, with house bots in the other seats."""
    return Variation(lambda seat: settings, chooses=None)


@cache
def _decisions(name: str) -> float:
    game = game_named(name)
    return game.decisions(game.vocabulary.read_settings(game.short))
