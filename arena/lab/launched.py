"""Sittings and trials of bots that are processes: programs in any language, launched, limited and refereed as in a competition.

What `arena/lab/in_process.py` and `arena/lab/ruin.py` do with objects is done here with an arena of its own, which nobody else knows
and whose database is thrown away. The matches are those of the same `Series`, the trials those of the same `Trials`. What differs:

- cards come from fresh seeds and the seats' nonces (J6), and cannot be drawn again;
- the limits hold, of time and of space, and an offence puts a bot out by a verdict with its evidence (J4);
- for every match a bot is told that it begins, instead of being reset; house bots, and a FILE.py, have a new strategy then;
- sittings of different bots run side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from arena.engine.rules import Game
from arena.lab.bot_pool import BotPool, PoolBot, gathered
from arena.lab.ruin import Attempt, Ruin, Trials
from arena.lab.series import Offence, Series, Sitting
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = ["ruin", "sittings"]


async def sittings(
    game: Game,
    bots: Sequence[PoolBot],
    tables: Sequence[tuple[int, ...]],
    *,
    matches: int,
    settings: Settings,
    limits: Limits,
    tick: Callable[[], None],
) -> tuple[Sitting, ...]:
    """Play all tables, without those that have offended from then on; in the tables' order.

    A sitting that is broken off because one of its bots has offended elsewhere is left out.

    Args:
        game: what is played.
        bots: the bots.
        tables: who sits with whom, as numbers in `bots`.
        matches: per sitting.
        settings: of every match.
        limits: what the bots are held to.
        tick: called after every unit, as it happens.

    Raises:
        UsageError: a bot's command can never work here.
        ArenaError: a bot cannot be started on this machine, or a match was void three times (J5).
    """
    copies = max(table.count(bot) for table in tables for bot in table)
    async with gathered(game, bots, limits, copies) as field:
        play = _SittingRunner(field, game, tables, matches, settings, tick)
        return await play.all_of_them()


async def ruin(
    attempt: Attempt, bot: PoolBot, *, trials: int, limits: Limits, tick: Callable[[], None]
) -> tuple[Ruin, Offence | None]:
    """Let a bot try to turn a stake into a goal, again and again (T10), until it offends: then it is out, and that trial is its last.

    Args:
        attempt: what it tries.
        bot: the bot.
        trials: how often, at most.
        limits: what it is held to.
        tick: called after every trial.

    Raises:
        UsageError: the bot's command can never work here.
        ArenaError: it cannot be started on this machine, or a match was void three times (J5).
    """
    done = Trials(attempt)
    async with gathered(attempt.game, (bot,), limits, copies=1) as field:
        names = field.seats((0,))
        assert names is not None, "it has nothing else to do"
        for number in range(1, trials + 1):
            result, verdict = await field.play(lambda: attempt.game, attempt.settings, names)
            done.add(result.scores[0], result.termination)
            tick()
            if result.termination.is_offence:
                offence = Offence.of(result.termination, verdict, match=number)
                return done.ruin(), offence
    return done.ruin(), None


class _SittingRunner:
    """All sittings of one command, each played as soon as all its bots have time."""

    def __init__(
        self,
        field: BotPool,
        game: Game,
        tables: Sequence[tuple[int, ...]],
        matches: int,
        settings: Settings,
        tick: Callable[[], None],
    ) -> None:
        self._field = field
        self._game = game
        self._matches, self._settings, self._tick = matches, settings, tick
        self._waiting = dict(enumerate(tables))
        self._running: dict[asyncio.Task[Sitting], int] = {}
        self._tables = tuple(tables)
        self._done: dict[int, Sitting] = {}
        self._out: set[int] = set()

    async def all_of_them(self) -> tuple[Sitting, ...]:
        """Play them; cancelled, or if one fails, all that run are stopped."""
        try:
            self._start()
            while self._running:
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in self._running if task.done()]:
                    self._ended(task)
                self._start()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
        assert not self._waiting, "whoever has no table has time for the next"
        return tuple(sitting for _, sitting in sorted(self._done.items()))

    def _start(self) -> None:
        """Open what can be opened, and drop what will never be played."""
        for number, table in tuple(self._waiting.items()):
            if self._out & set(table):
                del self._waiting[number]
            elif (names := self._field.seats(table)) is not None:
                del self._waiting[number]
                task = asyncio.create_task(self._sitting(table, names))
                self._running[task] = number

    def _ended(self, task: asyncio.Task[Sitting]) -> None:
        """Keep what a sitting came to, and stop the others of an offender."""
        number = self._running.pop(task)
        if task.cancelled():
            return
        sitting = task.result()
        offence = sitting.offence
        if offence is None:
            self._done[number] = sitting
        elif offence.bot not in self._out:  # else it was the same at another table
            self._done[number] = sitting
            self._out.add(offence.bot)
            for other, table in self._running.items():
                if offence.bot in self._tables[table]:
                    other.cancel()

    async def _sitting(self, table: tuple[int, ...], names: Sequence[str]) -> Sitting:
        series = Series(self._game, table, self._matches, self._tick)
        try:
            for seats in series:
                seated = [names[place] for place in seats]
                series.add(*await self._field.play(series.begin, self._settings, seated))
        finally:
            self._field.stand_up(names)
        return series.sitting()
