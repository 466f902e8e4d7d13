"""What the steps of `arena check` share: the bot at its tables, asked and heard, and what its decisions took.

`play` is the heart: any number of matches at once, each to its end. The other methods are the same in single moves, for steps in which
something happens between them.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from arena.authoring.conformance import Hint, StepFailed
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.diagnose import blame_of_answer, fault_of
from arena.authoring.conformance.table import CheckMatch
from arena.games import game_named
from protocol.errors import IllegalAnswer
from protocol.messages import Answer, ArenaMessage, Ask, Ending, Over, Ready
from protocol.strategy import Strategy
from protocol.vocabulary import Question

__all__ = ["CheckSession"]

_SETTLE_S = 0.05  # what fails at the last message of a step fails then
_MOST_MS = 90_000.0  # all that waits at many tables may be answered in one frame
_TYPES = frozenset({Hint.NUMBERS, Hint.STRINGS})

Watch = Callable[[Question[Any]], None]


class _TimedAnswer(NamedTuple):
    """An answer, when it came, in seconds of the loop's clock, and the CPU time since it was waited for; None if that is not measured."""

    table: CheckMatch
    answer: Answer
    arrived: float
    used_ms: float | None


class CheckSession:
    """One check.

    Args:
        bot: what is checked.
        games: those of its games that are; empty for all that it offers.
        rounds: how many are played of each.
        rng: where seeds, the order of opponents and their chance come from.

    Attributes:
        times_ms: what every measured decision took.
        bank_ms: the most that was taken out of the bank in a match.
        wanted: the games that are to be checked; empty for all.
        played: the games that were played without a fault.
        run: what the ids of its matches begin with.
        until: when the check should be over, in seconds of the loop's clock.
        progress: how far the step is that runs, in words.
        reads_arrays: whether it has read frames that hold arrays.
    """

    def __init__(
        self, bot: BotUnderTest, games: Sequence[str], rounds: int, rng: random.Random
    ) -> None:
        self.bot = bot
        self.rounds = rounds
        self.rng = rng
        self.times_ms: list[float] = []
        self.bank_ms = 0.0
        self.played: set[str] = set()
        self.reads_arrays = False
        self.until = math.inf
        self.progress = ""
        self._was_silent = False
        self.wanted = tuple(games)
        self._offered: tuple[str, ...] = ()
        self.run = rng.randbytes(4).hex()
        self._matches = 0
        self._loop = asyncio.get_running_loop()

    @property
    def games(self) -> tuple[str, ...]:
        """What it offers, as far as it is to be checked."""
        if self.bot.hello is not None:
            self._offered = tuple(dict.fromkeys(self.bot.hello.games))
        return tuple(game for game in self._offered if not self.wanted or game in self.wanted)

    @property
    def handy(self) -> str:
        """The game with the shortest matches."""
        games = self.games
        short = ("ace_king_queen", "three_card_poker", "blackjack", "high_low")
        return next((game for game in short if game in games), games[0])

    def table(
        self,
        game: str,
        settings: Mapping[str, object],
        seat: int | None = None,
        others: Callable[[random.Random], Strategy] | None = None,
        wanted: Callable[[Any, int], bool] | None = None,
    ) -> CheckMatch:
        """A new match, as `CheckMatch`; without a `seat` the bot sits in another one each time."""
        self._matches += 1
        rules = game_named(game)
        if seat is None:
            seat = self._matches % rules.seats
        bot = self.bot
        return CheckMatch(
            self._matches,
            rules,
            settings,
            seat,
            bot.name,
            bot.limits,
            self.rng,
            others,
            wanted,
            self.run,
        )

    @property
    def now(self) -> float:
        """The loop's clock, in seconds."""
        return self._loop.time()

    async def fresh(self, name: str | None = None) -> None:
        """Start the bot anew, by another name than usual if one is given, and let it in.

        Raises:
            Failed: it does not come as it should.
        """
        await self.bot.stop()
        await self.bot.launch(name)
        await self.bot.arrive()
        await self.bot.meet()

    async def settle(self, seconds: float | None = None) -> None:
        """It says nothing, and stays.

        Raises:
            Failed: it does not.
        """
        quiet_s = _SETTLE_S if seconds is None else seconds
        await self.bot.quiet("nothing, until it is asked", quiet_s)

    # ---- Whole matches

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
        """Play matches, all at once, to their ends.

        Args:
            tables: the matches.
            joined: all that waits to be sent goes into one frame.
            measured: what the decisions take counts; only with one match.
            lenient: only the types of answers matter.
            until: when to break off, in seconds of the loop's clock.
            watch: told of every question that was answered.

        Raises:
            Failed: the bot does something wrong.
        """
        await self.invite(tables, joined=joined)
        going = {table.id: table for table in tables}
        asked_at = await self._move(tables, going, joined=joined)
        moved: list[CheckMatch] = []
        while going:
            heard = await self._answer(going)
            table, answer = heard.table, heard.answer
            assert table.ask is not None, "it was answered"
            question = table.ask.question
            self.judge(table, answer.value, lenient=lenient)
            watch(question)
            if measured:
                took_ms = (heard.arrived - asked_at) * 1000
                self._charge(table, took_ms, heard.used_ms)
            moved.append(table)
            if until is not None and self.now > until:
                await self._break_off(going)
                return
            if not self.bot.has_more:
                asked_at = await self._move(moved, going, joined=joined)
                moved = []

    async def _move(
        self, tables: Sequence[CheckMatch], going: dict[str, CheckMatch], *, joined: bool
    ) -> float:
        """Send every table's next message; when that was, in seconds of the loop's clock."""
        messages: list[ArenaMessage] = []
        for table in tables:
            message = table.next()
            messages.append(message)
            if isinstance(message, Over):
                del going[table.id]
        began = self.now
        await self.bot.say(*messages, joined=joined)
        return began

    async def _break_off(self, going: dict[str, CheckMatch]) -> None:
        text = "the check has no more time for this match"
        for table in going.values():
            await self.bot.say(table.end(Ending.VOID, None, text))

    # ---- Single moves

    async def invite(
        self,
        tables: Sequence[CheckMatch],
        before: Sequence[ArenaMessage] = (),
        *,
        joined: bool = False,
    ) -> None:
        """Send invitations, behind other messages if there are any, and wait until all are answered."""
        invitations = [table.invitation for table in tables]
        await self.bot.say(*before, *invitations, joined=joined)
        waiting = {table.id: table for table in tables}
        while waiting:
            ids = ", ".join(list(waiting)[:3])
            expected = f"`ready` for {ids}"
            within_ms = self.bot.limits.start_ms
            message, _ = await self.bot.hear(expected, Hint.NOT_READY, within_ms)
            if not isinstance(message, Ready) or message.match not in waiting:
                raise self._unexpected(expected)
            waiting.pop(message.match).begin(message.nonce)

    async def remind(self, table: CheckMatch, first: int) -> None:
        """Tell a bot that has lost its memory what it was asked in a match, but for the first so many questions."""
        await self.bot.say(table.invitation, *table.past(first))

    async def invite_again(self, table: CheckMatch) -> None:
        """Repeat an invitation, and wait for another `ready`; an answer that comes again before it is taken."""
        await self.bot.say(table.invitation)
        expected = f"`ready` for {table.id}, again"
        within_ms = self.bot.limits.start_ms
        while True:
            message, _ = await self.bot.hear(
                expected, Hint.NOT_READY, within_ms, even_repeated=True
            )
            if isinstance(message, Ready) and message.match == table.id:
                return
            if isinstance(message, Answer) and table.waits_for(message.ask):
                self.judge(table, message.value)  # who was not sure sends it again

    async def change_over(self, table: CheckMatch, following: CheckMatch) -> None:
        """End one match and begin another in the same frame, and play that to its end."""
        over = table.end(Ending.VOID, None, "it ends here")
        expected = f"`ready` for {following.id}"
        await self.bot.say(over, following.invitation, joined=True)
        message, _ = await self.bot.hear(expected, Hint.NOT_READY, self.bot.limits.start_ms)
        if not isinstance(message, Ready) or message.match != following.id:
            raise self._unexpected(expected)
        following.begin(message.nonce)
        await self.finish(following)

    async def ask(self, table: CheckMatch) -> bool:
        """Send its next question; False if the match is over, which is told then."""
        message = table.next()
        await self.bot.say(message)
        return isinstance(message, Ask)

    async def answer(self, table: CheckMatch) -> None:
        """Wait for the answer to the question that waits, and judge it."""
        heard = await self._answer({table.id: table})
        self.judge(table, heard.answer.value)

    async def value(self, table: CheckMatch) -> object:
        """Wait for the answer to the question that waits, which still waits afterwards."""
        return (await self._answer({table.id: table})).answer.value

    async def finish(self, table: CheckMatch) -> None:
        """Play a match that has begun to its end."""
        while await self.ask(table):
            await self.answer(table)

    def judge(self, table: CheckMatch, value: object, *, lenient: bool = False) -> None:
        """Take an answer.

        Raises:
            Failed: it is not legal; if it is to be judged leniently, only where its type is wrong.
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
            fault = fault_of(question, value)
            came = f"{self.bot.came}, at {where}{f': {fault}' if fault else ''}"
            raise self.bot.failure(expected, came, hint) from None

    async def _answer(self, going: Mapping[str, CheckMatch]) -> _TimedAnswer:
        """The next answer to one of these matches, in the time that an arena grants."""
        waiting = [table.ask for table in going.values() if table.ask is not None]
        asks = ", ".join(ask.ask for ask in waiting[:3])
        expected = f"an answer to {asks}"
        bot, began, used_ms = self.bot, self.now, self.bot.used_ms()
        count = max(1, len(waiting))
        hard_ms = bot.limits.hard_ms * count
        # What we have started may sleep. Who has slept for too long once is not waited for as long again.
        is_patient = bot.is_metered and not self._was_silent
        one_ms = bot.limits.wall_ms if is_patient else bot.limits.hard_ms
        within_ms = min(one_ms * count, max(one_ms, _MOST_MS))

        def late() -> str | None:
            """What it has computed, if that is too much."""
            spent_ms = bot.used_ms() - used_ms
            if spent_ms <= hard_ms:
                return None
            return f"{spent_ms:,.0f} ms of CPU time, and no end"

        try:
            message, arrived = await bot.hear(
                expected, Hint.SILENT, within_ms, Hint.SLOW, look=late
            )
        except StepFailed:
            self._was_silent |= (self.now - began) * 1000 >= within_ms
            raise
        if not isinstance(message, Answer) or message.match not in going:
            raise self._unexpected(expected)
        spent_ms = bot.used_ms() - used_ms
        if spent_ms > hard_ms:
            came = f"{bot.came} after {spent_ms:,.0f} ms of CPU time"
            raise bot.failure(expected, came, Hint.SLOW)
        measured_ms = spent_ms if bot.is_metered else None
        return _TimedAnswer(going[message.match], message, arrived, measured_ms)

    def _unexpected(self, expected: str) -> StepFailed:
        return self.bot.failure(expected, self.bot.came, Hint.OUT_OF_TURN)

    def _charge(self, table: CheckMatch, took_ms: float, used_ms: float | None) -> None:
        """Count what a decision took, as an arena does: CPU time where it is measured, else the time on the wall."""
        limits = self.bot.limits
        self.times_ms.append(took_ms)
        cost_ms = took_ms if used_ms is None else used_ms
        table.bank_ms -= max(0.0, cost_ms - limits.decision_ms)
        self.bank_ms = max(self.bank_ms, limits.bank_ms - table.bank_ms)
        if table.bank_ms < 0:
            of = "" if used_ms is None else " of CPU time"
            expected = f"decisions that take at most {limits.decision_ms:,} ms{of}, and {limits.bank_ms:,} ms more in a match"
            came = f"one that took {cost_ms:,.0f} ms when the bank was empty"
            raise self.bot.failure(expected, came, Hint.SLOW)
