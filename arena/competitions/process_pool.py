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
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from arena.competitions.bot_supervisor import BotSupervisor, SupervisedBot
from arena.competitions.elsewhere import HostLost
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.compute_gate import LOOK_S, ComputeGate
from arena.sandbox.launcher import LaunchedBot
from arena.sandbox.process import StderrTail
from arena.sandbox.scarcity import NO_PROGRAM, Scarcity
from protocol.errors import UsageError
from protocol.messages import Ending, Mechanism

__all__ = ["Launch", "OnStderr", "ProcessPool", "SeatBot", "SeatProcess", "StartFailed"]

_IDLE_LOOK_S, _IDLE_CPU_MS = 10.0, 2_000.0  # a runtime tidies up; what computes on is ended
_STARTS = 3  # a process that crashes so often before its first message does not start

OnStderr: TypeAlias = Callable[[int, str, str], None]
"""(submission, match, text): what a process wrote to stderr in that match."""

Launch: TypeAlias = Callable[[str], Awaitable[SupervisedBot]]
"""Starts a process under a `process_key`; raises as `BotSupervisor.launch_process` does, and
`HostLost` on a host."""


class SeatBot(NamedTuple):
    """Who plays in a seat of a match.

    Attributes:
        name: the public one.
        submission: its number; None for a bot that is connected here, whose processes run on hosts.
    """

    name: str
    submission: int | None
    game: str


class StartFailed(Exception):
    """A bot cannot be seated: `finding` says why, with the end of its stderr."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


class SeatProcess:
    """A process of a bot, or the room for one: idle, or kept for one seat of one match.

    `is_retired` is set when it is not to be used again. `instead` is an idle one that has to end
    before it may start.
    """

    def __init__(self, pool: ProcessPool, bot: SeatBot) -> None:
        self.bot = bot
        self.key = ""  # its name among all processes
        self.supervised: SupervisedBot | None = None
        self.player: BotSession | None = None
        self.instead: SupervisedBot | None = None
        self.is_retired = False
        self.is_kept = True
        self.began = 0  # how much stderr is of earlier matches
        self.idle_ms = 0.0  # its CPU time at the last look while it is idle
        self._pool = pool

    @property
    def is_usable(self) -> bool:
        """Whether it can be given a match now."""
        player = self.player
        return player is not None and player.is_free and not player.has_offended

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

    @property
    def start_ms(self) -> float:
        """For how long it has computed since its start, or had no core for it."""
        waited_ms = None if self.supervised is None else self.supervised.waited_ms()
        return self.cpu_ms + (waited_ms or 0.0)

    async def session(self) -> BotSession:
        """Its session, which has said `hello` and is free for the match that it is kept for.

        Waits for the build, a core and the start. If it ends while others are waited for, another
        call starts a new one, and returns at once if nothing has happened. Cancelling it is fine;
        `release` is then due.

        Raises:
            StartFailed: it crashed three times before its first message, or took too long or too
                much to start.
            UsageError, ArenaError: the arena has no such program, or cannot start it.
        """
        if not self.is_usable:
            self.began = 0
            await self._pool._start(self)
        assert self.player is not None, "it has started"
        return self.player

    def release(self, match: str = "") -> None:
        """Give it back, which stays warm unless it has offended; once more does nothing.

        With the id of the match that it was for, `on_stderr` gets what it wrote meanwhile, if it
        did. To be called whatever `session` did, after the match is over.
        """
        if self.is_kept:
            self.is_kept = False
            self._pool._release(self, match)


class ProcessPool:
    """The processes of an arena's bots in one place; at most `most` run at once.

    Args:
        gate: shares the cores of this machine between them; a host has its own.
        prepared: finds what launches a bot, whose program may have to be built again.
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
        gate: ComputeGate,
        prepared: Callable[[SeatBot], Awaitable[Launch]],
        most: int | None,
        on_stderr: OnStderr,
    ) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.at_once = sys.maxsize
        self.playing = 0
        self.restless: set[str] = set()
        self._supervisor = supervisor
        self._gate = gate
        self._prepared = prepared
        self._is_granted = most is None
        self._most = most or 0
        self._on_stderr = on_stderr
        self._scarcity = Scarcity(NO_PROGRAM)
        self._loop = asyncio.get_running_loop()
        self._all: set[SeatProcess] = set()  # also those that end, unless others replace them
        self._idle: dict[SeatProcess, None] = {}  # the least recently used first
        self._look_at_idle_at = 0.0
        self._looks: asyncio.TimerHandle | None = None
        self._look()

    def __len__(self) -> int:
        """How many processes there are, with those that are starting or ending."""
        return len(self._all)

    def reserve(self, bots: Sequence[SeatBot]) -> tuple[SeatProcess, ...] | None:
        """Processes for these bots, or None if there is no room just now.

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
        taken: list[SeatProcess | None] = []
        for bot in bots:
            warm = next((process for process in reversed(idle) if process.bot == bot), None)
            if warm is not None:
                del idle[warm]
            taken.append(warm)
        too_many = len(self._all) + taken.count(None) - self._most
        if too_many > len(idle):
            return None
        self._idle = idle
        ended = [self._make_room(process) for process in tuple(idle)[: max(0, too_many)]]
        for process in filter(None, taken):
            process.is_kept, process.began = True, process.stderr.written
        return tuple(
            process or self._add(bot, ended) for process, bot in zip(taken, bots, strict=True)
        )

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
        now = self._loop.time()
        self._gate.look(now)
        # Stages ask for it far more often.
        self.restless = {process.bot.name for process in self._all if process.is_restless}
        if now >= self._look_at_idle_at:
            self._look_at_idle_at = now + _IDLE_LOOK_S
            self._look_at_idle()

    def _look_at_idle(self) -> None:
        """End processes that compute while they are idle: nothing is charged then."""
        for process in tuple(self._idle):
            before_ms, process.idle_ms = process.idle_ms, process.cpu_ms
            if process.idle_ms - before_ms > _IDLE_CPU_MS:
                self._end(process)

    def _retire(self, processes: Iterable[SeatProcess]) -> None:
        for process in tuple(processes):
            process.is_retired = True
            if process in self._idle:
                self._end(process)

    def _add(self, bot: SeatBot, ended: list[SupervisedBot]) -> SeatProcess:
        """Room for a new process, that of one which has `ended` if there is no other."""
        process = SeatProcess(self, bot)
        process.instead = ended.pop() if ended else None
        self._all.add(process)
        return process

    def _make_room(self, process: SeatProcess) -> SupervisedBot:
        """End an idle process; its room is that of another at once."""
        assert process.supervised is not None, "it was used"
        del self._idle[process]
        self._all.discard(process)
        self._supervisor.dismiss(process.key)
        return process.supervised

    async def _start(self, process: SeatProcess) -> None:
        """Start a process until it has said `hello`, or raise as `SeatProcess.session` does."""
        launch = await self._prepared(process.bot)
        for start in range(1, _STARTS + 1):
            await self._until_gone(process)
            finding = await self._scarcity.outlast(partial(self._launch, process, launch))
            if finding is None:
                return
            if finding.kind is not Ending.CRASH or start == _STARTS:
                raise StartFailed(finding)

    async def _until_gone(self, process: SeatProcess) -> None:
        """Wait until what had the room of a process has left it."""
        if process.supervised is not None:  # a former one, which has crashed or hangs
            self._supervisor.dismiss(process.key)
        for former in (process.instead, process.supervised):
            if former is not None:
                await asyncio.shield(former.gone)
        process.instead = process.supervised = process.player = None

    async def _launch(self, process: SeatProcess, launch: Launch) -> Finding | None:
        """Start a process and wait for its `hello`; returns why that has failed."""
        process.key = key = self._supervisor.process_key(process.bot.name)
        turn = asyncio.Event()
        self._gate.enter(turn, turn.set, lambda: process.start_ms)
        try:
            await turn.wait()
            process.supervised = supervised = await launch(key)
            player = await self._supervisor.arrived(key)
        finally:
            self._gate.leave(turn)
        if player is None:
            if supervised.lost:
                raise HostLost(supervised.lost)
            return supervised.finding or _STOPPED
        supervised.attach(player, self._gate)
        process.player = player
        supervised.gone.add_done_callback(lambda _: self._ended(process, supervised))
        return None

    def _release(self, process: SeatProcess, match: str) -> None:
        # Most bots write nothing, and each call is a transaction beside those of results.
        submission = process.bot.submission
        if match and submission is not None and (text := process.stderr.since(process.began)):
            self._on_stderr(submission, match, text)
        self._idle[process] = None
        process.idle_ms = process.cpu_ms
        if process.is_retired or not process.is_usable:
            self._end(process)
        else:
            self._loop.call_soon(self.on_room)

    def _end(self, process: SeatProcess) -> None:
        """End an idle process; there is room when it is gone."""
        self._idle.pop(process, None)
        process.is_retired = True
        self._supervisor.dismiss(process.key)
        former = process.supervised or process.instead
        if former is None or former.gone.done():
            self._loop.call_soon(self._forget, process)
        else:
            former.gone.add_done_callback(lambda _: self._forget(process))

    def _ended(self, process: SeatProcess, supervised: SupervisedBot) -> None:
        """A process has ended; one that was idle is forgotten."""
        if process in self._idle and process.supervised is supervised:
            del self._idle[process]
            self._forget(process)

    def _forget(self, process: SeatProcess) -> None:
        self._all.discard(process)
        self.on_room()


_STOPPED = Finding(
    kind=Ending.ABSENT, text="was stopped before its hello", mechanism=Mechanism.SESSION
)
