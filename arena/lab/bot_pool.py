"""The launched bots of one command, in a private arena: started, awaited, seated and stopped.

The database of that arena is thrown away. A bot that has not come or has gone is out at its first
match, as `absent` (J2); the referee judges everything else. Matches are jobs, which are played here
at once, or with a `Carrier` by workers on other machines too. `arena/lab/launched.py` decides what
is played.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePath
from typing import TypeAlias

import msgspec

from arena.competitions.arena_host import Host
from arena.competitions.job_runner import JobRunner
from arena.competitions.jobs import Jobs, MatchJob
from arena.competitions.local_jobs import LocalJobs
from arena.engine.match import MatchResult, MatchState, Record
from arena.engine.rules import Game
from arena.formats.spec import HOUSE_TABLES
from arena.games.replay import reopened
from arena.referee.live_match import Forgives
from arena.referee.referee import MOST_VOIDS
from arena.sandbox.bot_spec import unused
from arena.sandbox.command import Program, strategy_program
from arena.sandbox.worker_pool import usable_cores
from arena.server.background import BackgroundTasks
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Verdict
from protocol.vocabulary import Settings

__all__ = ["BotPool", "Carrier", "PoolBot", "gathered", "private_arena"]

Carrier: TypeAlias = Callable[[Host, Store], AbstractAsyncContextManager[Jobs]]
"""Opens what carries the jobs of an arena to other machines; what they cannot play stays here."""

_STOPPED = "it was stopped"
_WORKERS_S = 2.0  # workers report twice a second; without one, matches begin here
_LOOK_S = 0.1
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
async def private_arena(limits: Limits, hidden: Sequence[Path] = ()) -> AsyncIterator[Host]:
    """Start an arena on a temporary database; its bots do not see the files in `hidden`."""
    async with _arena_and_store(limits, hidden) as (host, _):
        yield host


@contextlib.asynccontextmanager
async def _arena_and_store(
    limits: Limits, hidden: Sequence[Path]
) -> AsyncIterator[tuple[Host, Store]]:
    with (
        tempfile.TemporaryDirectory(prefix="arena-") as folder,
        Store(Path(folder) / "arena.db") as store,
    ):
        async with Host(store, limits=limits, hidden=hidden) as host:
            yield host, store


@contextlib.asynccontextmanager
async def gathered(
    game: Game,
    bots: Sequence[PoolBot],
    limits: Limits,
    copies: int,
    hidden: Sequence[Path] = (),
    carrier: Carrier | None = None,
) -> AsyncIterator[BotPool]:
    """Start a private arena with these bots, and stop all of them at the end.

    Each bot can take `copies` seats at a table. With a `carrier` other machines play as well.

    Raises:
        UsageError: a bot's command can never work here.
        ArenaError: a bot cannot be started on this machine, or the carrier cannot be reached.
    """
    async with contextlib.AsyncExitStack() as stack:
        host, store = await stack.enter_async_context(_arena_and_store(limits, hidden))
        jobs = None if carrier is None else await stack.enter_async_context(carrier(host, store))
        pool = BotPool(host, game, jobs)
        stack.callback(pool.close)
        for bot in bots:
            await pool.launch(bot, copies)
        await pool.gather()
        yield pool


class BotPool:
    """The processes of all bots, and at how many tables each process sits.

    To take several seats at a table (A9), a bot is launched several times; a house bot is launched
    once, with several tables.

    With `jobs` that other machines take, a process here stands for any number of processes there:
    no tables are counted, and what is played here after all waits for a table. The units of a match
    are then reported when it is over, from its record.

    Attributes:
        is_carried: whether other machines may play as well.
    """

    def __init__(self, host: Host, game: Game, jobs: Jobs | None = None) -> None:
        self._host = host
        self.is_carried = jobs is not None
        self._game = game
        self._processes: list[list[str]] = []  # by bot: the names of its processes
        self._launched: set[str] = set()
        self._came: set[str] = set()
        self._busy: Counter[str] = Counter()
        self._jobs = jobs or LocalJobs()
        self._rules: dict[str, Game] = {}  # by job, as the game of a match may report what happens
        self._runner = JobRunner(
            self._jobs, host.gateway.players, host.referee, lambda job: self._rules[job.id]
        )
        self._tasks = BackgroundTasks()

    async def launch(self, bot: PoolBot, copies: int) -> None:
        """Start a bot, often enough to take this many seats at a table."""
        if bot.is_house and self._host.limits.tables >= copies:
            copies = 1
        names = [self._new_name(bot.name) for _ in range(copies)]
        self._processes.append(names)
        for name in names:
            await self._start(bot, name)

    async def gather(self) -> None:
        """Wait until all have come or ended, at most `start_ms` and `hello_ms` together."""
        self._came = await self._host.wait_for_bots(self._launched, self._patience_ms / 1000)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WORKERS_S):
                while self.is_carried and not self._jobs.at_once:
                    await asyncio.sleep(_LOOK_S)

    def room(self, most: int | None) -> int | None:
        """How many matches to play at once, at most `most`; None stands for the bots' tables.

        Other machines are given twice what they play, so that none waits for its next job.
        """
        if not self.is_carried:
            return most
        room = max(2 * self._jobs.at_once, usable_cores())
        return room if most is None else min(room, most)

    def seats(self, bots: Iterable[int]) -> tuple[str, ...] | None:
        """Reserve a process of each of these bots, by seat; None if one has no table free."""
        names: list[str] = []
        for bot in bots:
            for name in self._processes[bot]:
                busy = 0 if self.is_carried else self._busy[name]
                if busy + names.count(name) < self._tables(name):
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

        `game` is called before each attempt, or when the match is over; `names` are the processes
        by seat. What another machine has lost counts as void.
        """
        voids = 0
        while voids < MOST_VOIDS:
            rules = self._game if self.is_carried else game()
            result, verdict, lost = await self._play_once(rules, settings, names)
            if result.termination.kind is not Ending.VOID:
                if self.is_carried:
                    # A thousand rounds of a long game take more than a second.
                    await asyncio.to_thread(_report, result.record, game())
                return result, verdict
            voids += max(lost, 1)
        raise ArenaError(
            f"{' against '.join(names)} was void {MOST_VOIDS} times by faults of the arena"
        )

    def close(self) -> None:
        """Stop playing."""
        self._tasks.cancel()
        self._runner.close(_STOPPED)

    def _new_name(self, name: str) -> str:
        stem = PurePath(name).stem if name.endswith(".py") else name
        new = unused(stem[:_LONGEST_NAME].strip() or "bot", self._launched)
        self._launched.add(new)
        return new

    async def _start(self, bot: PoolBot, name: str) -> None:
        try:
            if bot.is_house:
                tables = min(HOUSE_TABLES, self._host.limits.tables)
                await self._host.launch((self._game.name, bot.name), name, tables=tables)
            else:
                # Elsewhere its address is another: it finds that in its environment.
                url = None if self.is_carried else self._host.url
                program = bot.program or strategy_program(bot.name, url=url, name=name)
                await self._host.launch_program(program, name)
        except UsageError as error:
            raise UsageError(f"{bot.name}: {error}") from None
        except ArenaError as error:
            raise ArenaError(f"{bot.name}: {error}") from None

    @property
    def _patience_ms(self) -> int:
        return self._host.limits.start_ms + self._host.limits.hello_ms

    def _tables(self, name: str) -> int:
        """At how many tables a process may sit at once."""
        if self._missing(name) is not None:  # it loses its first match, without a wait
            return self._game.seats
        return self._host.gateway.players[name].tables

    def _missing(self, name: str) -> str | None:
        """Why a process cannot play its match; None if it can."""
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
    ) -> tuple[MatchResult, Verdict | None, int]:
        """The result of an attempt, and how many attempts other machines have lost before it."""
        for seat, name in enumerate(names):
            if (why := self._missing(name)) is not None:
                match = MatchState(game, settings, seed=secrets.token_bytes(32), start=False)
                match.end(Ending.ABSENT, seat, why)
                return match.result(), None, 0
        if not self._tasks:
            self._tasks.start(self._runner.run())
        job = MatchJob(
            id=secrets.token_hex(8),
            game=game.name,
            settings=msgspec.to_builtins(settings),
            limits=self._host.limits,
            players=tuple(names),
            submissions=(None,) * len(names),
            package=None if game.package is None else str(game.package),
        )
        watcher = _AwaitedJob()
        self._rules[job.id] = game
        self._jobs.put(job, watcher)
        try:
            result, verdict = await watcher.over
            return result, verdict, watcher.losses
        finally:
            self._jobs.cancel(job.id, _STOPPED)
            del self._rules[job.id]


def _report(record: Record, game: Game) -> None:
    """Let the rules of a game report the events of a match that is over."""
    for _ in reopened(record, game=game).steps(record.answers):
        pass


class _AwaitedJob:
    """Waits for the end of a job."""

    def __init__(self) -> None:
        self.losses = 0
        self.over: asyncio.Future[tuple[MatchResult, Verdict | None]]
        self.over = asyncio.get_running_loop().create_future()

    @property
    def forgives(self) -> Forgives:
        return lambda bot, kind, event: False

    def progressed(self, job: str, match: str, decisions: int) -> None:
        """Ignore the progress: only the end is awaited."""

    def lost(self, job: str, match: str) -> None:
        self.losses += 1

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        if not self.over.done():  # else the caller was cancelled
            self.over.set_result((result, verdict))
