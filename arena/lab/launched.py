"""Sittings and trials of launched bots: programs in any language, limited and refereed.

This module does in a private arena what `arena/lab/in_process.py` and `arena/lab/ruin.py` do with
objects, with the same `Series` and the same `Trials`. What differs:

- cards come from fresh seeds and the seats' nonces (J6), and cannot be dealt again;
- limits of time and space hold, and an offender is out by a verdict with its evidence (J4);
- a bot gets a message `match` for every match instead of being reset; house bots and a FILE.py
  make a new strategy for each;
- sittings of different bots run side by side, and so do the parts of a comparison.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count, takewhile
from pathlib import Path

from arena.engine.match import Record
from arena.engine.rules import Game
from arena.lab.bot_pool import BotPool, PoolBot, gathered
from arena.lab.compare import Matchup, MatchupGame, MatchupPart
from arena.lab.in_order import InOrder
from arena.lab.ruin import Attempt, Ruin, Trials
from arena.lab.series import Offence, Series, Sitting, reporting_units
from arena.sandbox.worker_pool import usable_cores
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = ["compare", "ruin", "sittings"]


async def sittings(
    game: Game,
    bots: Sequence[PoolBot],
    tables: Sequence[tuple[int, ...]],
    *,
    matches: int,
    settings: Settings,
    limits: Limits,
    tick: Callable[[], None],
    jobs: int | None = None,
    on_match: Callable[[tuple[int, ...], Record], None] | None = None,
) -> tuple[Sitting, ...]:
    """Play all tables, and return the sittings in the tables' order.

    An offender's tables are not played from then on, and those that are being played are broken off
    and left out. Tables are numbers in `bots`, `matches` is per table, and `tick` is called after
    every unit. At most `jobs` tables are played at once; None means as many as the bots take.
    `on_match` gets the record of every match, and who sat where, as numbers in `bots` by seat.

    Raises:
        UsageError: a bot's command can never work here.
        ArenaError: a bot cannot be started on this machine, or a match was void three times (J5).
    """
    copies = max(table.count(bot) for table in tables for bot in table)
    async with gathered(game, bots, limits, copies) as pool:
        runner = _SittingRunner(pool, game, tables, matches, settings, tick, jobs, on_match)
        return await runner.run()


async def ruin(
    attempt: Attempt,
    bot: PoolBot,
    *,
    trials: int,
    limits: Limits,
    tick: Callable[[], None],
    jobs: int = 1,
) -> tuple[Ruin, Offence | None]:
    """Let a bot try to turn a stake into a goal, again and again (T10), until it offends.

    It is started `jobs` times, and `jobs` trials are played side by side. Trials that are not over
    when it offends do not count. `tick` is called after every trial.

    Raises:
        What `sittings` raises.
    """
    done = Trials(attempt)
    numbers = iter(range(1, trials + 1))
    offences: list[Offence] = []

    async def play(pool: BotPool, names: Sequence[str]) -> None:
        for number in numbers:
            result, verdict = await pool.play(lambda: attempt.game, attempt.settings, names)
            if offences:
                return
            done.add(result.scores[0], result.termination)
            tick()
            if result.termination.is_offence:
                offences.append(Offence.of(result.termination, verdict, match=number))
                return

    async with gathered(attempt.game, (bot,), limits, copies=jobs) as pool:
        players: set[asyncio.Task[None]] = set()
        try:
            for _ in range(jobs):
                names = pool.seats((0,))
                assert names is not None, "there is a process for each"
                players.add(asyncio.create_task(play(pool, names)))
            while players and not offences:
                ended, players = await asyncio.wait(players, return_when=asyncio.FIRST_COMPLETED)
                for player in ended:
                    player.result()
        finally:
            for player in players:
                player.cancel()
            await asyncio.gather(*players, return_exceptions=True)
    return done.ruin(), offences[0] if offences else None


async def compare(
    matchup: Matchup,
    bots: Sequence[PoolBot],
    on_part: Callable[[MatchupPart], bool],
    *,
    limits: Limits,
    jobs: int | None = 1,
    hidden: Sequence[Path] = (),
) -> None:
    """Let two bots play parts until `on_part` says that it was the last; it gets them in order.

    Every bot is started as often as `jobs` tables need it, None for one per core, and does not see
    what is `hidden`. It raises what `sittings` raises.
    """
    tables = jobs or usable_cores()
    out: list[int] = []  # parts with an offence, after which no other is begun

    async def play(number: int) -> MatchupPart:
        names = [pool.seats((bot,) * matchup.copies) for bot in (0, 1)]
        taken = [each for each in names if each is not None]
        assert len(taken) == len(names), "there is a process for each"
        try:
            part = await _part(pool, matchup, taken)
        finally:
            for each in taken:
                pool.release(each)
        if part.offence is not None:
            out.append(number)
        return part

    async with gathered(matchup.game, bots, limits, matchup.copies * tables, hidden) as pool:
        numbers = takewhile(lambda _: not out, count())
        async with InOrder(play, numbers, tables) as parts:
            async for part in parts:
                if on_part(part):
                    return


async def _part(pool: BotPool, matchup: Matchup, names: Sequence[Sequence[str]]) -> MatchupPart:
    """Play a part; `names` are the processes of either bot at this table."""
    played: list[MatchupGame] = []
    for seats in matchup.seatings:
        free = [iter(processes) for processes in names]
        seated = [next(free[bot]) for bot in seats]
        payoffs: list[Sequence[float]] = []

        def begin(payoffs: list[Sequence[float]] = payoffs) -> Game:
            payoffs.clear()  # of a match that is played again (J5)
            return reporting_units(matchup.game, payoffs)

        result, verdict = await pool.play(begin, matchup.settings, seated)
        played.append(MatchupGame(seats, result, payoffs))
        if result.offender is not None:
            bot = seats[result.offender]
            return matchup.part(played, Offence.of(result.termination, verdict, bot, bot))
    return matchup.part(played, None)


class _SittingRunner:
    """Plays all sittings of one command, each as soon as all its bots have a table free."""

    def __init__(
        self,
        pool: BotPool,
        game: Game,
        tables: Sequence[tuple[int, ...]],
        matches: int,
        settings: Settings,
        tick: Callable[[], None],
        jobs: int | None = None,
        on_match: Callable[[tuple[int, ...], Record], None] | None = None,
    ) -> None:
        self._pool = pool
        self._game = game
        self._matches, self._settings, self._tick = matches, settings, tick
        self._jobs, self._on_match = jobs, on_match
        self._waiting = dict(enumerate(tables))
        self._running: dict[asyncio.Task[Sitting], int] = {}
        self._tables = tuple(tables)
        self._done: dict[int, Sitting] = {}
        self._out: set[int] = set()

    async def run(self) -> tuple[Sitting, ...]:
        """Play all; if one fails, or this is cancelled, the others are stopped."""
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
        assert not self._waiting, "with nothing running, every bot has a table free"
        return tuple(sitting for _, sitting in sorted(self._done.items()))

    def _start(self) -> None:
        for number, table in tuple(self._waiting.items()):
            if self._out & set(table):
                del self._waiting[number]
            elif self._jobs is not None and len(self._running) >= self._jobs:
                return
            elif (names := self._pool.seats(table)) is not None:
                del self._waiting[number]
                task = asyncio.create_task(self._sitting(table, names))
                self._running[task] = number

    def _ended(self, task: asyncio.Task[Sitting]) -> None:
        number = self._running.pop(task)
        if task.cancelled():
            return
        sitting = task.result()
        offence = sitting.offence
        if offence is None:
            self._done[number] = sitting
        elif offence.bot not in self._out:  # else it is out already, by another table
            self._done[number] = sitting
            self._out.add(offence.bot)
            for other, table in self._running.items():
                if offence.bot in self._tables[table]:
                    other.cancel()

    async def _sitting(self, table: tuple[int, ...], names: Sequence[str]) -> Sitting:
        series = Series(self._game, table, range(self._matches), self._tick)
        try:
            for seats in series:
                seated = [names[place] for place in seats]
                result, verdict = await self._pool.play(series.begin, self._settings, seated)
                series.add(result, verdict)
                if self._on_match is not None:
                    self._on_match(tuple(table[place] for place in seats), result.record)
        finally:
            self._pool.release(names)
        return series.sitting()
