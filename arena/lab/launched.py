"""Launches bots for one command, as programs in any language, and plays matches between them.

They play in a private arena, whose database is deleted afterwards. Unlike bots that play as objects
in this process (`in_process.py`):

- cards come from fresh seeds and the seats' nonces (J6), and cannot be dealt again;
- time and memory limits apply, and an offender is out by a verdict with evidence (J4); a bot that
  has not connected or has left is out as `absent` at its next match (J2);
- a bot gets a message `match` for every match instead of a reset; house bots and a FILE.py make a
  new strategy for each;
- several parts of an experiment are played at once if their bots have free tables.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Generic, TypeVar

import msgspec

from arena.competitions.live_arena import LiveArena
from arena.formats.spec import HOUSE_TABLES
from arena.games.match import MatchResult, MatchState
from arena.games.rules import Game
from arena.lab.matches import Experiment, MatchSpec, PlayedMatch, SampledGame, Summed
from arena.referee.bot_session import LiveMatch
from arena.referee.referee import MOST_VOIDS
from arena.sandbox.bot_spec import unused
from arena.sandbox.command import Program, strategy_program
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Verdict
from protocol.vocabulary import Settings

__all__ = ["BotPool", "PartPlayer", "PoolBot", "play_parts", "private_arena"]

_LONGEST_NAME = 56  # `hello` allows 64, and a number may be added

Part = TypeVar("Part")
Sums = TypeVar("Sums", bound=Summed)


class PoolBot(msgspec.Struct, frozen=True):
    """A bot with its name and command line; without one, the name is a house bot or a FILE.py."""

    name: str
    program: Program | None = None

    @property
    def is_house(self) -> bool:
        """Whether it is a house bot, which may play many matches at once in one process."""
        return self.program is None and not self.name.endswith(".py")


async def play_parts(
    experiment: Experiment[Part, Sums],
    bots: Sequence[PoolBot],
    parts: Iterable[Part],
    on_sums: Callable[[Sums], bool | None],
    *,
    limits: Limits,
    copies: int,
    tick: Callable[[], None],
    at_once: int | None = None,
    hidden: Sequence[Path] = (),
) -> None:
    """Play parts with processes until `on_sums` returns True, then stop all processes.

    `on_sums` gets the sums in the order of the parts. A bot that has offended plays no more (J3):
    its running matches are cancelled and do not count.

    Args:
        copies: how many seats each bot can take at once; a command is started that many times.
        tick: called after every unit.
        at_once: how many parts are played at once; None for as many as the bots' tables allow.
        hidden: files that no bot may see.

    Raises:
        UsageError: a bot's command can never work here.
        ArenaError: a bot cannot be started on this machine, or a match was void three times (J5).
    """
    async with private_arena(limits, hidden) as arena:
        pool = BotPool(arena, experiment.game)
        for bot in bots:
            await pool.launch(bot, copies)
        await pool.gather()
        await PartPlayer(experiment, pool, tick).play(parts, on_sums, at_once)


@contextlib.asynccontextmanager
async def private_arena(limits: Limits, hidden: Sequence[Path] = ()) -> AsyncIterator[LiveArena]:
    """Start an arena on a temporary database; its bots cannot see the files in `hidden`."""
    with (
        tempfile.TemporaryDirectory(prefix="arena-") as folder,
        Store(Path(folder) / "arena.db") as store,
    ):
        async with LiveArena(store, limits=limits, hidden=hidden) as arena:
            yield arena


class PartPlayer(Generic[Part, Sums]):
    """Plays each part as soon as all its bots have a free table."""

    def __init__(
        self, experiment: Experiment[Part, Sums], pool: BotPool, tick: Callable[[], None]
    ) -> None:
        self._experiment, self._pool, self._tick = experiment, pool, tick
        self._waiting: dict[int, Part] = {}
        self._running: dict[asyncio.Task[Sums], tuple[int, Part]] = {}
        self._sums: dict[int, Sums | None] = {}  # finished parts by number; None for one left out
        self._next = 0  # the number of the part to hand on next
        self._out: set[int] = set()

    async def play(
        self,
        parts: Iterable[Part],
        on_sums: Callable[[Sums], bool | None],
        at_once: int | None = None,
    ) -> None:
        """Play the parts; if one fails or the call is cancelled, stop the others."""
        left = enumerate(parts)
        try:
            while not self._hand_on(on_sums):
                self._begin(left, at_once)
                if not self._running:
                    assert not self._waiting, "every bot has a table free"
                    self._hand_on(on_sums)  # parts left out by an offence may now be passed over
                    return
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in self._running if task.done()]:
                    self._ended(task)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _hand_on(self, on_sums: Callable[[Sums], bool | None]) -> bool:
        """Pass finished sums to `on_sums` in order; return True once it asks to stop."""
        while self._next in self._sums:
            sums = self._sums.pop(self._next)
            self._next += 1
            if sums is not None and on_sums(sums):
                return True
        return False

    def _begin(self, left: Iterator[tuple[int, Part]], at_once: int | None) -> None:
        """Start every part that can be played; a part whose bots are busy does not delay others."""
        for number, part in chain(tuple(self._waiting.items()), left):
            self._waiting[number] = part
            bots = self._experiment.bots(part)
            if not self._out.isdisjoint(bots):
                del self._waiting[number]
                self._sums[number] = None
            elif at_once is not None and len(self._running) >= at_once:
                return
            elif (names := self._pool.seats(bots)) is not None:
                del self._waiting[number]
                task = asyncio.create_task(self._play_part(part, names))
                self._running[task] = number, part

    def _ended(self, task: asyncio.Task[Sums]) -> None:
        number, part = self._running.pop(task)
        sums = None if task.cancelled() else task.result()
        if sums is None or not self._out.isdisjoint(self._experiment.bots(part)):
            return  # cancelled by an offence, or finished together with it
        self._sums[number] = sums
        if sums.offence is None:
            return
        self._out.add(sums.offence.bot)
        for other, (number, part) in self._running.items():
            if sums.offence.bot in self._experiment.bots(part):
                other.cancel()
                self._sums[number] = None

    async def _play_part(self, part: Part, names: Sequence[str]) -> Sums:
        experiment, played = self._experiment, []
        try:
            for spec in experiment.specs(part):
                free: dict[int, list[str]] = {}
                for bot, name in zip(experiment.bots(part), names, strict=True):
                    free.setdefault(bot, []).append(name)
                by_number = {number: free[bot].pop(0) for number, bot in spec.by_number}
                seated = [by_number[number] for number in spec.numbers]
                match = await self._pool.play(spec, experiment.settings, seated, self._tick)
                played.append(match)
                if match.result.offender is not None:
                    break
        finally:
            self._pool.release(names)
        return experiment.summed(part, played)


class BotPool:
    """The processes of all bots, and the number of tables at which each sits.

    To take several seats at a table (A9), a bot is launched several times; a house bot is launched
    once, with several tables.
    """

    def __init__(self, arena: LiveArena, game: Game) -> None:
        self._arena = arena
        self._game = game
        self._processes: list[list[str]] = []  # by bot: the names of its processes
        self._launched: set[str] = set()
        self._came: set[str] = set()
        self._busy: Counter[str] = Counter()

    async def launch(self, bot: PoolBot, copies: int) -> None:
        """Start enough processes of a bot to take `copies` seats at a table."""
        if bot.is_house and self._arena.limits.tables >= copies:
            copies = 1
        names = [self._new_name(bot.name) for _ in range(copies)]
        self._processes.append(names)
        for name in names:
            await self._start(bot, name)

    async def gather(self) -> None:
        """Wait until all have connected or ended, at most `start_ms` + `hello_ms`."""
        self._came = await self._arena.wait_for_bots(self._launched, self._patience_ms / 1000)

    def seats(self, bots: Iterable[int]) -> tuple[str, ...] | None:
        """Reserve a process for each of these bots, by seat; None if one has no free table."""
        names: list[str] = []
        for bot in bots:
            for name in self._processes[bot]:
                if self._busy[name] + names.count(name) < self._tables(name):
                    names.append(name)
                    break
            else:
                return None
        self._busy.update(names)
        return tuple(names)

    def release(self, names: Iterable[str]) -> None:
        self._busy.subtract(names)

    async def play(
        self,
        spec: MatchSpec,
        settings: Settings,
        names: Sequence[str],
        tick: Callable[[], None] = lambda: None,
    ) -> PlayedMatch:
        """Play a match, again if it is void; raises `ArenaError` after three void matches (J5).

        `names` are the processes by seat; `tick` is called after every unit.
        """
        for _ in range(MOST_VOIDS):
            sampled = SampledGame(self._game, tick)
            result, verdict = await self._play_once(sampled.game, settings, names)
            if result.termination.kind is not Ending.VOID:
                return sampled.played(spec, result, verdict)
        raise ArenaError(
            f"{' against '.join(names)} was void {MOST_VOIDS} times by faults of the arena"
        )

    def _new_name(self, name: str) -> str:
        stem = PurePath(name).stem if name.endswith(".py") else name
        new = unused(stem[:_LONGEST_NAME].strip() or "bot", self._launched)
        self._launched.add(new)
        return new

    async def _start(self, bot: PoolBot, name: str) -> None:
        try:
            if bot.is_house:
                tables = min(HOUSE_TABLES, self._arena.limits.tables)
                await self._arena.supervisor.launch(
                    (self._game.name, bot.name), name, tables=tables
                )
            else:
                program = bot.program or strategy_program(bot.name, url=self._arena.url, name=name)
                await self._arena.supervisor.launch_program(program, name)
        except UsageError as error:
            raise UsageError(f"{bot.name}: {error}") from None
        except ArenaError as error:
            raise ArenaError(f"{bot.name}: {error}") from None

    @property
    def _patience_ms(self) -> int:
        return self._arena.limits.start_ms + self._arena.limits.hello_ms

    def _tables(self, name: str) -> int:
        """Return the number of tables at which a process may sit at once."""
        if self._missing(name) is not None:  # it loses its next match at once
            return self._game.seats
        return self._arena.gateway.players[name].tables

    def _missing(self, name: str) -> str | None:
        """Return why a process cannot play its match; None if it can."""
        player = self._arena.gateway.players.get(name)
        if player is None or player.leaving or player.session.finishing:
            why = self._arena.supervisor.ended.get(name)
            if name in self._came:
                return why or "left before the match"
            within = f"within {self._patience_ms:,} ms"
            late = self._arena.supervisor.no_hello(name, within)
            if why is None:
                return late
            lines = "; a program that speaks in lines needs `stdio:` before its command"
            return f"did not say hello: {why}{lines if why.endswith('exit status 0') else ''}"
        if self._game.name not in player.games:
            plays = ", ".join(sorted(player.games))
            return f"said hello for {plays}, expected {self._game.name} among its games"
        return None

    async def _play_once(
        self, game: Game, settings: Settings, names: Sequence[str]
    ) -> tuple[MatchResult, Verdict | None]:
        for seat, name in enumerate(names):
            if (why := self._missing(name)) is not None:
                match = MatchState(game, settings, seed=secrets.token_bytes(32), start=False)
                match.end(Ending.ABSENT, seat, why)
                return match.result(), None
        over: asyncio.Future[tuple[MatchResult, Verdict | None]]
        over = asyncio.get_running_loop().create_future()

        def on_over(table: LiveMatch, result: MatchResult, verdict: Verdict | None) -> None:
            if not over.done():  # done if the caller was cancelled; the match is void then
                over.set_result((result, verdict))

        arena = self._arena
        players = [arena.gateway.players[name] for name in names]
        table = arena.referee.open(game, settings, players, arena.limits, on_over)
        try:
            return await over
        finally:
            arena.referee.void(table, "it was stopped")
