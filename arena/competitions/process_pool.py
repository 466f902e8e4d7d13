"""The processes of launched bots in one place: started for a match, kept warm between matches.

The place is this machine, or a host. On this machine only submissions are in the pool: house bots
and `[[bot]]`s connect here like others, and have tables.

A bot may play several matches at once, each with a process of its own. All of them have the same
public name; `process_name` tells them apart.

Seats are reserved before anything is started, so that no two matches wait for each other's half.
When all processes that fit are there, idle ones make room, the least recently used first.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from arena.competitions.bot_supervisor import BotSupervisor, SupervisedBot
from arena.engine.verdict import Finding
from arena.hosts.remote_bot import HostLost
from arena.referee.bot_session import BotSession
from arena.referee.compute_gate import LOOK_S, ComputeGate
from arena.sandbox.launcher import LaunchedBot, Program
from arena.sandbox.process import StderrTail
from arena.sandbox.scarcity import NO_PROGRAM, Scarcity
from arena.server.gateway import Gateway
from protocol.errors import UsageError
from protocol.messages import Ending, Mechanism

__all__ = [
    "STDERR_BYTES",
    "Launch",
    "OnStderr",
    "ProcessPool",
    "ReservedSeat",
    "SeatBot",
    "StartFailed",
    "launches_here",
]

STDERR_BYTES = 64 * 1024
"""Of a match's stderr, its end."""

_IDLE_LOOK_S, _IDLE_CPU_MS = 10.0, 2_000.0  # a runtime tidies up; what computes on is ended
_STARTS = 3  # a process that crashes so often before its first message does not start

OnStderr: TypeAlias = Callable[[int, str, str], None]
"""(submission, match, text): what a process wrote to stderr in that match."""


class SeatBot(NamedTuple):
    """Who plays in a seat of a match.

    Attributes:
        name: the public one.
        submission: its number; None for a bot that is connected here, whose processes run on hosts.
    """

    name: str
    submission: int | None
    game: str


Launch: TypeAlias = Callable[[str], Awaitable[SupervisedBot]]
"""Starts a process of that name."""


def launches_here(
    supervisor: BotSupervisor, program: Callable[[int], Awaitable[Program]]
) -> Callable[[SeatBot], Awaitable[Launch]]:
    """What starts a submission on this machine, once its program is built."""

    async def launches(bot: SeatBot) -> Launch:
        assert bot.submission is not None, "others are connected here"
        return partial(supervisor.launch_process, await program(bot.submission), STDERR_BYTES)

    return launches


class StartFailed(Exception):
    """A bot cannot be seated: `finding` says why, with the end of its stderr."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


class _PooledProcess:
    """Room for a process of a bot, and the process once it was started.

    `is_retired` is set when it is not to be used again. `instead` is an idle one that has to end
    before it may start.
    """

    def __init__(self, bot: SeatBot) -> None:
        self.bot = bot
        self.key = ""  # its name among all processes
        self.supervised: SupervisedBot | None = None
        self.session: BotSession | None = None
        self.instead: SupervisedBot | None = None
        self.is_retired = False
        self.released = 0  # how often it was given back

    @property
    def is_usable(self) -> bool:
        """Whether it can be given a match now."""
        session = self.session
        return session is not None and session.is_free and not session.has_offended

    @property
    def is_restless(self) -> bool:
        launched = None if self.supervised is None else self.supervised.launched
        return isinstance(launched, LaunchedBot) and launched.is_restless

    @property
    def stderr(self) -> StderrTail:
        launched = None if self.supervised is None else self.supervised.launched
        return StderrTail() if launched is None else launched.stderr

    @property
    def cpu_ms(self) -> float:
        return 0.0 if self.supervised is None else self.supervised.cpu_ms()


class ReservedSeat:
    """A process, or the room for one, that is kept for one seat of one match."""

    def __init__(self, pool: ProcessPool, process: _PooledProcess) -> None:
        self.bot = process.bot
        self._pool = pool
        self._process = process
        self._began = process.stderr.written  # its stderr before is of other matches
        self._is_released = False

    async def session(self) -> BotSession:
        """The session of its process, which has said `hello` and is free for this match.

        Waits for the build, a core and the start. If its process ends while others are waited for,
        another call starts a new one, and returns at once if nothing has happened. Cancelling it is
        fine; `release` is then due.

        Raises:
            StartFailed: it crashed three times before its first message, or took too long or too
                much to start.
            UsageError, ArenaError: the arena has no such program, or cannot start it.
        """
        process = self._process
        if not process.is_usable:
            self._began = 0
            await self._pool._start(process)
        assert process.session is not None, "it has started"
        return process.session

    def release(self, match: str = "") -> None:
        """Give the process back, which stays warm unless it has offended; once more does nothing.

        With the id of the match that it was for, `on_stderr` gets what it wrote meanwhile, if it
        did. To be called whatever `session` did, after the match is over.
        """
        if self._is_released:
            return
        self._is_released = True
        self._pool._release(self._process, match, self._began)


class ProcessPool:
    """The processes of an arena's bots in one place; at most `most` run at once.

    Args:
        gate: shares the cores of this machine between them; a host has its own.
        launches: what starts a bot, whose program may have to be built again.
        most: how many processes fit into the memory there; None for as many as a host grants.
        on_stderr: called when a match is over in which a process has written to stderr.

    Attributes:
        on_room: called when a later `reserve` may succeed.
        at_once: how many matches are played at once, of those that are limited by that.
        playing: how many are.
        restless: the public names of bots that were found to compute without a question.
    """

    def __init__(
        self,
        supervisor: BotSupervisor,
        gateway: Gateway,
        gate: ComputeGate,
        launches: Callable[[SeatBot], Awaitable[Launch]],
        most: int | None,
        on_stderr: OnStderr,
    ) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.at_once = sys.maxsize
        self.playing = 0
        self.restless: set[str] = set()
        self._supervisor = supervisor
        self._gateway = gateway
        self._gate = gate
        self._launches = launches
        self._is_granted = most is None
        self._most = most or 0
        self._on_stderr = on_stderr
        self._scarcity = Scarcity(NO_PROGRAM)
        self._loop = asyncio.get_running_loop()
        self._all: set[_PooledProcess] = set()  # also those that end, unless others replace them
        self._idle: dict[_PooledProcess, None] = {}  # the least recently used first
        self._looks: asyncio.TimerHandle | None = None
        self._look()

    def __len__(self) -> int:
        """How many processes there are, with those that are starting or ending."""
        return len(self._all)

    def reserve(self, bots: Sequence[SeatBot]) -> tuple[ReservedSeat, ...] | None:
        """Seats for these bots, or None if there is no room just now.

        All or none. Warm processes are taken first; idle ones of other bots make room. Raises
        `UsageError` if this number never fits.
        """
        if len(bots) > self._most and not self._is_granted:
            raise UsageError(
                f"expected at most {self._most} submitted bots in a match, as many as fit into "
                f"this machine's memory, got {len(bots)}"
            )
        for process in tuple(self._idle):
            if not process.is_usable:  # it has closed its pipes, and would hold its room
                self._end(process)
        idle = dict(self._idle)
        taken: list[_PooledProcess | None] = []
        for bot in bots:
            warm = next((process for process in reversed(idle) if process.bot == bot), None)
            if warm is not None:
                del idle[warm]
            taken.append(warm)
        too_many = len(self._all) + taken.count(None) - self._most
        if too_many > len(idle):
            return None
        ended = [self._make_room(process) for process in itertools.islice(idle, max(0, too_many))]
        return tuple(
            ReservedSeat(self, process or self._add(bot, ended))
            for process, bot in zip(self._take(taken), bots, strict=True)
        )

    def are_warm(self, bots: Sequence[SeatBot]) -> bool:
        """Whether `reserve` would start no process for these bots."""
        return self.warm(bots) == len(bots)

    def retire(self, submission: int) -> None:
        """End all processes of a submission, after their matches: it is built again."""
        self._retire(process for process in self._all if process.bot.submission == submission)

    def retire_others(self, needed: Collection[int]) -> None:
        """End the processes of all submissions but these, after their matches."""
        submitted = (each for each in self._all if each.bot.submission is not None)
        self._retire(each for each in submitted if each.bot.submission not in needed)

    def grant(self, processes: int) -> None:
        """Its host keeps room for this number of further processes."""
        self._most = max(self._most, len(self._all) + processes)

    def end_if_idle(self, key: str) -> None:
        """End one process if it has nothing to do, as its room is needed."""
        for process in tuple(self._idle):
            if process.key == key:
                self._most -= 1
                self._end(process)

    def warm(self, bots: Iterable[SeatBot]) -> int:
        """For how many of these bots a process is idle."""
        idle = Counter(process.bot for process in self._idle if process.is_usable)
        return (Counter(bots) & idle).total()

    def close(self) -> None:
        """Look after the gate no more."""
        if self._looks is not None:
            self._looks.cancel()

    # --- within ---

    def _look(self) -> None:
        # First, as a process may not be readable now.
        self._looks = self._loop.call_later(LOOK_S, self._look)
        self._gate.look(self._loop.time())
        # Stages ask for it far more often.
        self.restless = {process.bot.name for process in self._all if process.is_restless}

    def _retire(self, processes: Iterable[_PooledProcess]) -> None:
        for process in tuple(processes):
            process.is_retired = True
            if process in self._idle:
                self._end(process)

    def _take(self, taken: Sequence[_PooledProcess | None]) -> Sequence[_PooledProcess | None]:
        for process in taken:
            if process is not None:
                del self._idle[process]
        return taken

    def _add(self, bot: SeatBot, ended: list[SupervisedBot]) -> _PooledProcess:
        """Room for a new process, that of one which has `ended` if there is no other."""
        process = _PooledProcess(bot)
        process.instead = ended.pop() if ended else None
        self._all.add(process)
        return process

    def _make_room(self, process: _PooledProcess) -> SupervisedBot:
        """End an idle process; its room is that of another at once."""
        assert process.supervised is not None, "it was used"
        del self._idle[process]
        self._all.discard(process)
        self._supervisor.dismiss(process.key)
        return process.supervised

    async def _start(self, process: _PooledProcess) -> None:
        """Start a process until it has said `hello`, or raise as `ReservedSeat.session` does."""
        launch = await self._launches(process.bot)
        for start in range(1, _STARTS + 1):
            await self._until_gone(process)
            finding = await self._scarcity.outlast(partial(self._launch, process, launch))
            if finding is None:
                return
            if finding.kind is not Ending.CRASH or start == _STARTS:
                raise StartFailed(finding)

    async def _until_gone(self, process: _PooledProcess) -> None:
        """Wait until what had the room of a process has left it."""
        if process.supervised is not None:  # a former one, which has crashed or hangs
            self._supervisor.dismiss(process.key)
        for former in (process.instead, process.supervised):
            if former is not None:
                await asyncio.shield(former.gone)
        process.instead = process.supervised = process.session = None

    async def _launch(self, process: _PooledProcess, launch: Launch) -> Finding | None:
        """Start a process and wait for its `hello`; returns why that has failed."""
        process.key = key = self._supervisor.process_key(process.bot.name)
        turn = asyncio.Event()
        self._gate.enter(turn, turn.set, lambda: _used_ms(process))
        try:
            await turn.wait()
            process.supervised = supervised = await launch(key)
            await self._supervisor.arrived(key)
        finally:
            self._gate.leave(turn)
        session = self._gateway.players.get(key)
        if session is None:
            if supervised.lost:
                raise HostLost(supervised.lost)
            return supervised.finding or _STOPPED
        supervised.attach(session, self._gate)
        process.session = session
        supervised.gone.add_done_callback(lambda _: self._ended(process, supervised))
        return None

    def _release(self, process: _PooledProcess, match: str, began: int) -> None:
        # Most bots write nothing, and each call is a transaction beside those of results.
        submission = process.bot.submission
        if match and submission is not None and (text := process.stderr.since(began)):
            self._on_stderr(submission, match, text)
        self._idle[process] = None
        if process.is_retired or not process.is_usable:
            self._end(process)
        else:
            self._loop.call_soon(self.on_room)
            process.released += 1
            self._look_later(process)

    def _look_later(self, process: _PooledProcess) -> None:
        """End a process that computes while it is idle: nothing is charged then."""
        released, used_ms = process.released, process.cpu_ms

        def look() -> None:
            nonlocal used_ms
            if process not in self._idle or process.released != released:
                return
            before_ms, used_ms = used_ms, process.cpu_ms
            if used_ms - before_ms > _IDLE_CPU_MS:
                self._end(process)
            else:
                self._loop.call_later(_IDLE_LOOK_S, look)

        self._loop.call_later(_IDLE_LOOK_S, look)

    def _end(self, process: _PooledProcess) -> None:
        """End an idle process; there is room when it is gone."""
        self._idle.pop(process, None)
        process.is_retired = True
        self._supervisor.dismiss(process.key)
        former = process.supervised or process.instead
        if former is None or former.gone.done():
            self._loop.call_soon(self._forget, process)
        else:
            former.gone.add_done_callback(lambda _: self._forget(process))

    def _ended(self, process: _PooledProcess, supervised: SupervisedBot) -> None:
        """A process has ended; one that was idle is forgotten."""
        if process in self._idle and process.supervised is supervised:
            del self._idle[process]
            self._forget(process)

    def _forget(self, process: _PooledProcess) -> None:
        self._all.discard(process)
        self.on_room()


def _used_ms(process: _PooledProcess) -> float:
    """For how long a process that starts has computed, or had no core for it."""
    supervised = process.supervised
    return 0.0 if supervised is None else supervised.cpu_ms() + (supervised.waited_ms() or 0.0)


_STOPPED = Finding(
    kind=Ending.ABSENT, text="was stopped before its hello", mechanism=Mechanism.SESSION
)
