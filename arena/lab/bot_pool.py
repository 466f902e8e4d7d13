"""The bots of one command as processes, in an arena of their own: launched, waited for, seated and stopped.

Nobody else knows that arena, and its database is thrown away. A bot that has not come or has gone is out at its first match, as
`absent` (J2); everything else is the referee's business. What is played, and what it adds up to, is `arena/lab/launched.py`'s.
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

from arena.competitions.arena_host import Host
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

__all__ = ["BotPool", "PoolBot", "gathered"]

_LONGEST_NAME = 56  # `hello` takes 64, and there may be a number behind it


class PoolBot(msgspec.Struct, frozen=True):
    """A bot that takes part: what people call it, and its command line.

    Without one it is named by what it is: a house bot, or the FILE.py of a strategy.
    """

    name: str
    program: Program | None = None

    @property
    def is_house(self) -> bool:
        """Whether it is a bot of ours, which may play many matches at once in one process."""
        return self.program is None and not self.name.endswith(".py")


@contextlib.asynccontextmanager
async def gathered(
    game: Game, bots: Sequence[PoolBot], limits: Limits, copies: int
) -> AsyncIterator[BotPool]:
    """An arena of our own in which all these bots are, as far as they come; all are stopped in the end.

    Args:
        game: what they are there for.
        bots: the bots.
        limits: what they are held to.
        copies: how many seats at a table each must be able to take.

    Raises:
        UsageError: a bot's command can never work here.
        ArenaError: a bot cannot be started on this machine.
    """
    with (
        tempfile.TemporaryDirectory(prefix="arena-") as folder,
        Store(Path(folder) / "arena.db") as store,
    ):
        async with Host(store, limits=limits) as host:
            field = BotPool(host, game)
            for bot in bots:
                await field.launch(bot, copies)
            await field.gather()
            yield field


class BotPool:
    """The processes of all bots, and which of them are at how many tables.

    A bot sits at a table as often as it has to (A9) by being launched several times, or, if it is a house bot, by having
    several tables.
    """

    def __init__(self, host: Host, game: Game) -> None:
        self._host = host
        self._game = game
        self._processes: list[list[str]] = []  # by bot: the host's names for them
        self._launched: set[str] = set()
        self._came: set[str] = set()
        self._busy: Counter[str] = Counter()

    async def launch(self, bot: PoolBot, copies: int) -> None:
        """Start a bot, often enough to have so many seats at a table."""
        if bot.is_house and self._host.limits.tables >= copies:
            copies = 1
        names = [self._new_name(bot.name) for _ in range(copies)]
        self._processes.append(names)
        for name in names:
            await self._start(bot, name)

    async def gather(self) -> None:
        """Wait for all to be here, or to have ended, but not longer than they have to be ready for a match."""
        coming = set(self._launched)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience_ms / 1000):
                while True:
                    self._came.update(self._host.gateway.players)
                    coming.difference_update(self._came, self._host.ended)
                    if not coming:
                        return
                    await self._host.wait_for_change()

    def seats(self, bots: Iterable[int]) -> tuple[str, ...] | None:
        """Processes of these bots that can sit down together now, and are busy from then on; None if one has no time."""
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

    def stand_up(self, names: Iterable[str]) -> None:
        """These have time again."""
        self._busy.subtract(names)

    async def play(
        self, game: Callable[[], Game], settings: Settings, names: Sequence[str]
    ) -> tuple[MatchResult, Verdict | None]:
        """Play a match, and again while it is void (J5).

        Args:
            game: called before each, for what is played.
            settings: of the match.
            names: the processes, by seat.

        Raises:
            ArenaError: it was void three times.
        """
        for _ in range(MOST_VOIDS):
            result, verdict = await self._play_once(game(), settings, names)
            if result.termination.kind is not Ending.VOID:
                return result, verdict
        raise ArenaError(
            f"{' against '.join(names)} was void {MOST_VOIDS} times by faults of the arena"
        )

    # --- within ---

    def _new_name(self, name: str) -> str:
        """What a process is called: like its bot, but short, and by a name of its own."""
        first = PurePath(name).stem if name.endswith(".py") else name
        short = first[:_LONGEST_NAME].strip() or "bot"
        found = unused(short, self._launched)
        self._launched.add(found)
        return found

    async def _start(self, bot: PoolBot, name: str) -> None:
        try:
            if bot.is_house:
                tables = min(HOUSE_TABLES, self._host.limits.tables)
                house = self._game.name, bot.name
                await self._host.launch(house, name, tables=tables)
            else:
                program = bot.program or strategy_program(bot.name, url=self._host.url, name=name)
                await self._host.launch_program(program, name)
        except UsageError as error:
            raise UsageError(f"{bot.name}: {error}") from None
        except ArenaError as error:
            raise ArenaError(f"{bot.name}: {error}") from None

    @property
    def _patience_ms(self) -> int:
        return self._host.limits.start_ms + self._host.limits.hello_ms

    def _tables(self, name: str) -> int:
        """At how many tables a process may sit at once; whoever is not here is out at the first, and holds up nobody."""
        if self._missing(name) is not None:
            return self._game.seats
        return self._host.gateway.players[name].tables

    def _missing(self, name: str) -> str | None:
        """Why a process cannot come to its match, if so."""
        player = self._host.gateway.players.get(name)
        if player is None or player.leaving:
            why = self._host.ended.get(name)
            if name in self._came:
                return why or "left before the match"
            late = f"did not say hello within {self._patience_ms:,} ms"
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
            if not over.done():  # else we have stopped it ourselves
                over.set_result((result, verdict))

        players = [self._host.gateway.players[name] for name in names]
        limits = self._host.limits
        table = self._host.referee.open(game, settings, players, limits, on_over)
        try:
            return await over
        finally:
            self._host.referee.void(table, "it was stopped")
