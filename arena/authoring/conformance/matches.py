"""The matches of `arena check`: the real rules, the bot in one seat, strategies in the others.

A `CheckMatch` gives the next message to send, and takes the bot's answer. The cards come from a
seed and the seats' nonces, as in an arena, so that a bot may check the commitment. A `CheckSession`
plays such matches with the bot: `play` plays any number at once to their ends, the other methods
make single moves, for steps in which something happens between the moves.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from arena.authoring.conformance import Hint
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.diagnose import blame_of_answer
from arena.authoring.playout import AnyLegal, seeded
from arena.games.catalogue import game_named
from arena.games.match import MatchState
from arena.games.rules import EVERYONE, Game, Variation
from arena.games.shuffle import Stream, commitment, match_key
from arena.records.visibility import ending_for
from arena.referee.clock import QUICK_MS, CoreWait, SeatClock
from protocol import messages
from protocol.errors import ArenaError, IllegalAnswer
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    Ending,
    Hello,
    Limits,
    Over,
    Past,
    Ready,
    Reveal,
)
from protocol.session import ask_id
from protocol.strategy import Strategy, as_sent, find, house_bots
from protocol.vocabulary import News, Question

__all__ = ["CheckMatch", "CheckSession", "against_house", "house"]

_TRIES = 10_000  # the rarest first deal needed has odds of 1 in 1,250; takes half a second at most
_SETTLE_S = 0.05  # a bot that fails at a step's last message fails within this time
_TYPES = frozenset({Hint.NUMBERS, Hint.STRINGS})

Watch = Callable[[Question[Any]], None]


def house(game: str, number: int, rng: random.Random) -> tuple[str, Strategy]:
    """Return a house bot's name and strategy, or `AnyLegal`; `UnknownBot` if it does not load."""
    bots = _bots(game)
    if not bots:
        return "chance", AnyLegal(rng)
    name, cls = bots[number % len(bots)]
    return name, seeded(cls(), str(rng.getrandbits(64)))


@cache
def _bots(game: str) -> tuple[tuple[str, type[Any]], ...]:
    # Cached: finding the bots takes longer than some matches.
    return tuple((name, find(game, name)) for name in house_bots(game))


class CheckMatch:
    """One match, from its invitation to its end.

    Args:
        number: the number of the match in this check, a part of its id.
        variation: its settings, opponents and first deal.
        name: the bot's name.
        run: the beginning of the match's id.

    Attributes:
        id: the match's id for the bot's seat.
        ask: the question that the bot has not answered yet, if any.
        asked, rounds: the number of questions asked, and of finished rounds.
        clock: the bot's time for the match, as in an arena.
    """

    def __init__(
        self,
        number: int,
        game: Game,
        variation: Variation,
        seat: int,
        name: str,
        limits: Limits,
        rng: random.Random,
        run: str = "check",
    ) -> None:
        self.run = run
        self.id = f"{run}-{number}.{seat}"
        self.game, self.seat, self.limits = game, seat, limits
        self.settings = game.vocabulary.read_settings(variation.settings(seat))
        self.ask: Ask | None = None
        self.asked = self.rounds = 0
        self.clock = SeatClock(limits)
        self._rng = rng
        self._seed = rng.randbytes(32)
        self._wanted = variation.wanted
        self._others: dict[int, Strategy] = {}
        names = [name] * game.seats
        for other in (each for each in range(game.seats) if each != seat):
            if variation.chooses is None:
                names[other], self._others[other] = house(game.name, number + other, rng)
            else:
                names[other], self._others[other] = "chance", AnyLegal(rng, variation.chooses)
        self._names = tuple(names)
        self._match: MatchState | None = None
        self._nonces: tuple[str, ...] = ()
        self._news: list[News] = []

    @property
    def is_over(self) -> bool:
        """Whether the match is over."""
        return self._match is not None and self._match.termination is not None

    @property
    def invitation(self) -> messages.Match:
        """The match's invitation, the same at every call."""
        return messages.Match(
            match=self.id,
            game=self.game.name,
            seat=self.seat,
            seats=self._names,
            settings=msgspec.to_builtins(self.settings),
            limits=self.limits,
            commitment=commitment(self._seed),
        )

    def begin(self, nonce: str) -> None:
        """Deal with the nonce of the bot's first `ready`; does nothing at later ones."""
        if self._match is not None:
            return
        for _ in range(_TRIES):
            self._nonces = tuple(
                nonce if seat == self.seat else self._rng.randbytes(16).hex()
                for seat in range(self.game.seats)
            )
            stream = Stream(match_key(self._seed, self._nonces))
            if self._wanted is None or self._wanted(
                next(self.game.deals(self.settings, stream)), self.seat
            ):
                break
        for strategy in self._others.values():
            strategy.reset()
        self._match = MatchState(self.game, self.settings, seed=self._seed, nonces=self._nonces)

    def next(self) -> Ask | Over:
        """Return the bot's next question or `over`; raises `ArenaError` if a house bot fails."""
        match = self._running
        while True:
            for tell in match.take_news():
                if tell.seat in (self.seat, EVERYONE):
                    self._news.append(tell.news)
                    self.rounds += type(tell.news) is self.game.vocabulary.closes
                for seat, strategy in self._others.items():
                    if tell.seat in (seat, EVERYONE):
                        strategy.hear(tell.news)
            pending = match.pending
            if pending is None or pending.seat == self.seat:
                break
            try:
                match.answer(as_sent(self._others[pending.seat].decide(pending.question)))
            except IllegalAnswer as error:
                raise ArenaError(f"a house bot failed: {error}") from None
        news, self._news = tuple(self._news), []
        if pending is None:
            assert match.termination is not None, "there is no question left"
            # Only the offender, here another seat, may read the text of an offence.
            ended = ending_for(match.termination, [self.seat])
            reveal = Reveal(self._seed.hex(), self._nonces)
            return Over(self.id, news, match.scores, ended, reveal)
        self.asked += 1
        number, times = ask_id(self.id, self.asked), (self.clock.bank_ms, self.limits.decision_ms)
        self.ask = Ask(self.id, number, pending.question, news, *times)
        return self.ask

    def take(self, value: object) -> None:
        """Take the answer; raises `IllegalAnswer` if illegal, and the question then stays open."""
        assert self.ask is not None, "an answer follows a question"
        legal = self.ask.question.check(value)
        self.ask = None
        self._running.answer(legal)

    def past(self, first: int) -> list[Past]:
        """Return the bot's questions and answers after number `first`."""
        told = list(self._running.history_for(self.seat))
        return [
            Past(self.id, ask_id(self.id, number), question, news, answer)
            for number, (question, news, answer) in enumerate(told, start=1)
            if number > first
        ]

    def instead(self) -> None:
        """Take a random legal answer instead of the bot's."""
        assert self.ask is not None, "an answer follows a question"
        self.take(AnyLegal(self._rng).decide(self.ask.question))

    def end(self, kind: Ending, seat: int | None, text: str = "") -> Over:
        """End the match early: void, or for the offence of another seat."""
        self._running.end(kind, seat, text)
        self.ask, over = None, self.next()
        assert isinstance(over, Over), "it has ended"
        return over

    @property
    def _running(self) -> MatchState:
        assert self._match is not None, "the bot has said `ready`"
        return self._match


class CheckSession:
    """One check of one bot.

    Args:
        games: the games to check; empty for all that the bot offers.

    Attributes:
        times_ms: the wall time of every measured decision.
        bank_ms, wall_bank_ms: the most that one match took out of the bank of CPU time, and of
            wall time.
        played: the games that were played without a fault.
        run: the beginning of the matches' ids.
        until: when the check should be over, in seconds of the loop's clock.
        progress: the progress of the running step, in words.
        reads_arrays: whether the bot can read frames that hold arrays.
    """

    def __init__(
        self, bot: BotUnderTest, games: Sequence[str], rounds: int, rng: random.Random
    ) -> None:
        self.bot = bot
        self.rounds = rounds
        self.times_ms: list[float] = []
        self.bank_ms = self.wall_bank_ms = 0.0
        self.played: set[str] = set()
        self.reads_arrays = False
        self.until = math.inf
        self.progress = ""
        self.wanted = tuple(games)
        self.run = rng.randbytes(4).hex()
        self._rng = rng
        self._offered: tuple[str, ...] = ()
        self._matches = 0
        self._loop = asyncio.get_running_loop()

    @property
    def games(self) -> tuple[str, ...]:
        """The games that the bot offers, limited to those to check."""
        if self.bot.hello is not None:
            self._offered = tuple(dict.fromkeys(self.bot.hello.games))
        return tuple(game for game in self._offered if not self.wanted or game in self.wanted)

    @property
    def handy(self) -> str:
        """The offered game whose short matches have the fewest decisions."""
        return min(self.games, key=_decisions)

    @property
    def hello(self) -> Hello:
        """The bot's `hello`."""
        assert self.bot.hello is not None, "it is here"
        return self.bot.hello

    @property
    def now(self) -> float:
        """The time on the loop's clock, in seconds."""
        return self._loop.time()

    def short_match(self, game: str | None = None) -> CheckMatch:
        """Make a short match, by default of the game with the shortest matches."""
        game = game or self.handy
        return self.match(game, against_house(game_named(game).short))

    def match(self, game: str, variation: Variation, seat: int | None = None) -> CheckMatch:
        """Make a new match. Without `seat`, the bot's seat changes from match to match."""
        self._matches += 1
        bot, rules, number = self.bot, game_named(game), self._matches
        seat = number % rules.seats if seat is None else seat
        return CheckMatch(number, rules, variation, seat, bot.name, bot.limits, self._rng, self.run)

    async def fresh(self, name: str | None = None) -> None:
        """Restart the bot, under another name if given, and welcome it."""
        await self.bot.stop()
        await self.bot.launch(name)
        await self.bot.arrive()
        await self.bot.meet()

    async def settle(self, seconds: float = _SETTLE_S) -> None:
        """Wait `seconds`; raises `StepFailed` if the bot leaves or sends something meanwhile."""
        await self.bot.quiet(seconds)

    async def play(
        self,
        matches: Sequence[CheckMatch],
        *,
        joined: bool = False,
        measured: bool = False,
        lenient: bool = False,
        until: float | None = None,
        watch: Watch = lambda question: None,
    ) -> None:
        """Play matches to their ends, all at once; raises `StepFailed` at a fault of the bot.

        Args:
            joined: whether to send all waiting messages in one frame.
            measured: whether to charge the time of decisions; only for a single match.
            lenient: whether to check only the types of answers.
            until: when to stop early, in seconds of the loop's clock.
            watch: called with every question that was answered.
        """
        await self.invite(matches, joined=joined)
        going = {match.id: match for match in matches}
        moved, asked_at = [*matches], self.now
        while True:
            if len(moved) == len(going) or not self.bot.has_more:
                said = [match.next() for match in moved]
                going = {match.id: match for match in going.values() if not match.is_over}
                moved, asked_at = [], self.now
                await self.bot.say(*said, joined=joined)
            if not going:
                return
            match, value, charge = await self._answer(going)
            assert match.ask is not None, "it was answered"
            question = match.ask.question
            self.judge(match, value, lenient=lenient)
            watch(question)
            if measured:
                charge(asked_at)
            moved.append(match)
            if until is not None and self.now > until:
                for match in going.values():
                    await self.void(match, "the check has no more time for this match")
                return

    async def invite(
        self,
        matches: Sequence[CheckMatch],
        before: Sequence[ArenaMessage] = (),
        *,
        joined: bool = False,
    ) -> None:
        """Send invitations, after the messages `before`, and wait until all are answered."""
        await self.bot.say(*before, *(match.invitation for match in matches), joined=joined)
        waiting = {match.id: match for match in matches}
        while waiting:
            expected = f"`ready` for {', '.join(list(waiting)[:3])}"
            message, _ = await self.bot.hear(expected, Hint.NOT_READY, self.bot.limits.start_ms)
            if not isinstance(message, Ready) or message.match not in waiting:
                raise self.bot.failure(expected, self.bot.came, Hint.OUT_OF_TURN)
            waiting.pop(message.match).begin(message.nonce)

    async def begin_match(self, game: str | None = None) -> CheckMatch:
        """Invite the bot to a short match, and return it when the bot is ready."""
        match = self.short_match(game)
        await self.invite([match])
        return match

    async def invite_again(self, match: CheckMatch) -> None:
        """Repeat an invitation, and wait for `ready` again; a late answer may come before it."""
        await self.bot.say(match.invitation)
        expected = f"`ready` for {match.id}, again"
        while True:
            message, _ = await self.bot.hear(
                expected, Hint.NOT_READY, self.bot.limits.start_ms, even_repeated=True
            )
            if isinstance(message, Ready) and message.match == match.id:
                return
            if isinstance(message, Answer) and match.ask and match.ask.ask == message.ask:
                # A bot may repeat its answer if it does not know whether the first arrived.
                self.judge(match, message.value)

    async def ask(self, match: CheckMatch) -> Ask | None:
        """Send the next question and return it, or send `over`."""
        message = match.next()
        await self.bot.say(message)
        return message if isinstance(message, Ask) else None

    async def answer(self, match: CheckMatch) -> None:
        """Wait for the answer to the open question, and judge it."""
        self.judge(match, await self.value(match))

    async def value(self, match: CheckMatch) -> object:
        """Return the answer to the open question, but leave the question open."""
        return (await self._answer({match.id: match}))[1]

    async def move(self, match: CheckMatch) -> bool:
        """Ask the next question and judge the answer; False if the match is over instead."""
        if is_asked := await self.ask(match) is not None:
            await self.answer(match)
        return is_asked

    async def finish(self, match: CheckMatch) -> None:
        while await self.move(match):
            pass

    async def void(self, match: CheckMatch, text: str) -> None:
        """Make a match void, and tell the bot."""
        await self.bot.say(match.end(Ending.VOID, None, text))

    def judge(self, match: CheckMatch, value: object, *, lenient: bool = False) -> None:
        """Take an answer; raises `StepFailed` if it is not legal.

        If `lenient`, only a wrong type fails, and a legal answer replaces any other illegal one.
        """
        assert match.ask is not None, "an answer follows a question"
        question = match.ask.question
        try:
            match.take(value)
        except IllegalAnswer:
            hint = blame_of_answer(question, value)
            if lenient and hint not in _TYPES:
                match.instead()
                return
            where = f"question {match.asked:,} of {match.id}"
            expected = f"a legal answer to {question.kind}: {question.legal_text()}"
            fault = question.fault(value)
            came = f"{self.bot.came}, at {where}{f': {fault}' if fault else ''}"
            failed = self.bot.failure(expected, came, hint)
            if failed.hint is Hint.FAULT:
                said = question.advice(value)
                failed.advice = f"{said[:1].upper()}{said[1:]}."
            raise failed from None

    async def _answer(
        self, going: Mapping[str, CheckMatch]
    ) -> tuple[CheckMatch, object, Callable[[float], None]]:
        """Wait for the bot's next answer in any of these matches, as long as an arena would.

        Returns the match, the answer, and a function that charges the decision from its start time.
        """
        asks = [match.ask.ask for match in going.values() if match.ask is not None]
        expected = f"an answer to {', '.join(asks[:3])}"
        bot, began, before_ms = self.bot, self.now, self.bot.used_ms()
        core_wait = CoreWait(bot.waited_ms() or 0.0, began)
        count = max(1, len(asks))
        hard_ms = bot.limits.hard_ms * count
        # A bot charged by CPU time may sleep without cost.
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
        match, idle_ms = going[message.match], 0.0
        is_slow = bot.is_metered and took_ms > QUICK_MS
        if is_slow and (waited_ms := bot.waited_ms()) is not None:
            core_wait.look(waited_ms, arrived)
            idle_ms = max(0.0, took_ms - spent_ms - core_wait.total_ms)
        used_ms = spent_ms if bot.is_metered else None

        def charge(asked_at: float) -> None:
            self._charge(match.clock, (arrived - asked_at) * 1000, used_ms, idle_ms)

        return match, message.value, charge

    def _charge(
        self, clock: SeatClock, took_ms: float, used_ms: float | None, idle_ms: float
    ) -> None:
        """Charge a decision as an arena does: CPU time if it is measured, else wall time."""
        limits = self.bot.limits
        self.times_ms.append(took_ms)
        clock.wall_bank_ms -= idle_ms
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
    """Make the variation with these settings and house bots in the other seats."""
    return Variation(lambda seat: settings, chooses=None)


@cache
def _decisions(name: str) -> float:
    game = game_named(name)
    return game.decisions(game.vocabulary.read_settings(game.short))
