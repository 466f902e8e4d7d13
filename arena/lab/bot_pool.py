"""The launched bots of one command, in a private arena: started, awaited, seated and stopped.

The database of that arena is thrown away. A bot that has not come or has gone is out at its first
match, as `absent` (J2); the referee judges everything else. `arena/lab/launched.py` decides what
is played.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path, PurePath

import msgspec

from arena.competitions.live_arena import LiveArena
from arena.engine.match import MatchResult, MatchState
from arena.engine.rules import Game
from arena.formats.spec import HOUSE_TABLES
from arena.referee.live_match import LiveMatch
from arena.referee.referee import MOST_VOIDS
from arena.sandbox.bot_spec import unused
from arena.sandbox.command import Program, strategy_program
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Verdict
from protocol.vocabulary import Settings

__all__ = ["BotPool", "PoolBot", "gathered", "private_arena"]

_LONGEST_NAME = 56  # `hello` takes 64, and a number may follow


class PoolBot(msgspec.Struct, frozen=True):
    """A bot by name and command line, or without one by house name or the FILE.py of a strategy."""

    name: str
    program: Program | None = None

    @property
    def is_house(self) -> bool:
        """Whether it is a house bot, which may play many matches at once in one process."""
        return self.program is None and not self.name.endswith(".py")


@contextlib.asynccontextmanager
async def private_arena(limits: Limits, hidden: Sequence[Path] = ()) -> AsyncIterator[LiveArena]:
    """Start an arena on a temporary database; its bots do not see the files in `hidden`."""
    with (
        tempfile.TemporaryDirectory(prefix="arena-") as folder,
        Store(Path(folder) / "arena.db") as store,
    ):
        async with LiveArena(store, limits=limits, hidden=hidden) as arena:
            yield arena


@contextlib.asynccontextmanager
async def gathered(
    game: Game, bots: Sequence[PoolBot], limits: Limits, copies: int, hidden: Sequence[Path] = ()
) -> AsyncIterator[BotPool]:
    """Start a private arena with these bots, and stop all of them at the end.

    Each bot can take `copies` seats at a table, and does not see the files in `hidden`.

    Raises:
        UsageError: a bot's command can never work here.
        ArenaError: a bot cannot be started on this machine.
    """
    async with private_arena(limits, hidden) as arena:
        pool = BotPool(arena, game)
        for bot in bots:
            await pool.launch(bot, copies)
        await pool.gather()
        yield pool


class BotPool:
    """The processes of all bots, and at how many tables each process sits.

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
        """Start a bot, often enough to take this many seats at a table."""
        if bot.is_house and self._arena.limits.tables >= copies:
            copies = 1
        names = [self._new_name(bot.name) for _ in range(copies)]
        self._processes.append(names)
        for name in names:
            await self._start(bot, name)

    async def gather(self) -> None:
        """Wait until all have come or ended, at most `start_ms` and `hello_ms` together."""
        self._came = await self._arena.wait_for_bots(self._launched, self._patience_ms / 1000)

    def seats(self, bots: Iterable[int]) -> tuple[str, ...] | None:
        """Reserve a process of each of these bots, by seat; None if one has no table free."""
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
        self, game: Callable[[], Game], settings: Settings, names: Sequence[str]
    ) -> tuple[MatchResult, Verdict | None]:
        """Play a match, and again while it is void; after three times raise `ArenaError` (J5).

        `game` is called before each attempt; `names` are the processes by seat.
        """
        for _ in range(MOST_VOIDS):
            result, verdict = await self._play_once(game(), settings, names)
            if result.termination.kind is not Ending.VOID:
                return result, verdict
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
        """At how many tables a process may sit at once."""
        if self._missing(name) is not None:  # it loses its first match, without a wait
            return self._game.seats
        return self._arena.gateway.players[name].tables

    def _missing(self, name: str) -> str | None:
        """Why a process cannot play its match; None if it can."""
        player = self._arena.gateway.players.get(name)
        if player is None or player.leaving or player.session.finishing:
            why = self._arena.supervisor.ended.get(name)
            if name in self._came:
                return why or "left before the match"
            within = f"within {self._patience_ms:,} ms"
            late = self._arena.supervisor.no_hello(name, within)
            return late if why is None else f"did not say hello: {why}"
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
            if not over.done():  # else the caller was cancelled, and the match is void
                over.set_result((result, verdict))

        arena = self._arena
        players = [arena.gateway.players[name] for name in names]
        table = arena.referee.open(game, settings, players, arena.limits, on_over)
        try:
            return await over
        finally:
            arena.referee.void(table, "it was stopped")
