"""The processes of launched bots in one place: started for a match, kept warm between matches.

The place is this machine or a host. On this machine the pool has only submissions: house bots and
`[[bot]]`s connect here like other bots, and have tables.

A bot may play several matches at once, each with a process of its own. All of these have the same
public name; `process_name` tells them apart.

Seats are reserved before anything is started, so that no two matches wait for each other's seats.
When there is no room for more processes, idle ones end, the least recently used first.
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

_IDLE_LOOK_S, _IDLE_CPU_MS = 10.0, 2_000.0  # enough for a runtime to tidy up; more CPU ends it
_STARTS = 3  # a process that crashes this often before its first message has failed to start

OnStderr: TypeAlias = Callable[[int, str, str], None]
"""(submission, match, text): gets what a process wrote to stderr in that match."""

Launch: TypeAlias = Callable[[str], Awaitable[SupervisedBot]]
"""Starts a process under a `process_key`; raises as `BotSupervisor.launch_process` does, and
`HostLost` on a host."""


class SeatBot(NamedTuple):
    """The bot for a seat of a match.

    Attributes:
        name: its public name.
        submission: its number; None for a bot connected here, whose processes run on hosts.
    """

    name: str
    submission: int | None
    game: str


class StartFailed(Exception):
    """A bot cannot be seated; `finding` is the reason, with the end of its stderr."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


class SeatProcess:
    """A process of a bot, or the room for one: idle, or kept for one seat of one match.

    `is_retired` is set if it must not be used again. `instead` is an idle process that has to end
    before this one may start.
    """

    def __init__(self, pool: ProcessPool, bot: SeatBot) -> None:
        self.bot = bot
        self.key = ""  # its name among all processes
        self.supervised: SupervisedBot | None = None
        self.player: BotSession | None = None
        self.instead: SupervisedBot | None = None
        self.is_retired = False
        self.is_kept = True
        self.began = 0  # how many bytes of stderr are from earlier matches
        self.idle_ms = 0.0  # its CPU time when it was last checked while idle
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
        """How long it has computed since its start, or waited for a core."""
        waited_ms = None if self.supervised is None else self.supervised.waited_ms()
        return self.cpu_ms + (waited_ms or 0.0)

    async def session(self) -> BotSession:
        """Return its session, which has said `hello` and is free for the match it is kept for.

        Waits for the build, a core and the start. If the process ends while others are awaited,
        another call starts a new one; it returns at once if nothing has happened. Cancelling this
        is fine; call `release` afterwards.

        Raises:
            StartFailed: it crashed three times before its first message, or started too slowly.
            UsageError, ArenaError: the arena has no such program, or cannot start it.
        """
        if not self.is_usable:
            self.began = 0
            await self._pool._start(self)
        assert self.player is not None, "it has started"
        return self.player

    def release(self, match: str = "") -> None:
        """Give the process back; it stays warm unless it has offended. A second call does nothing.

        With the id of its match, `on_stderr` gets what it wrote in the match, if anything. Call
        this after the match, whether or not `session` succeeded.
        """
        if self.is_kept:
            self.is_kept = False
            self._pool._release(self, match)


class ProcessPool:
    """The processes of an arena's bots in one place; at most `most` run at once.

    Args:
        gate: shares the cores of this machine between them; a host has its own.
        prepared: finds how to launch a bot, whose program may have to be built again.
        most: how many processes fit into the memory there; None for as many as a host grants.
        on_stderr: called after a match in which a process has written to stderr.

    Attributes:
        on_room: called when a later `reserve` may succeed.
        at_once: the most matches that are played at once, counting only limited ones.
        playing: how many of these are being played.
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
        self._all: set[SeatProcess] = set()  # also ending ones, unless others replace them
        self._idle: dict[SeatProcess, None] = {}  # the least recently used first
        self._look_at_idle_at = 0.0
        self._looks: asyncio.TimerHandle | None = None
        self._look()

    def __len__(self) -> int:
        """Return how many processes there are, also starting and ending ones."""
        return len(self._all)

    def reserve(self, bots: Sequence[SeatBot]) -> tuple[SeatProcess, ...] | None:
        """Reserve processes for all these bots, or return None if there is no room now.

        Warm processes are taken first; idle ones of other bots make room. Raises `UsageError` if
        that number of processes never fits.
        """
        if len(bots) > self._most and not self._is_granted:
            raise UsageError(
                f"expected at most {self._most} submitted bots in a match, as many as fit into "
                f"this machine's memory, got {len(bots)}"
            )
        for process in tuple(self._idle):
            if not process.is_usable:  # it has closed its pipes, but still takes up room
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
        """End all processes of a submission after their matches, as it is built again."""
        self._retire(process for process in self._all if process.bot.submission == submission)

    def retire_others(self, needed: Collection[int]) -> None:
        """End the processes of all other submissions after their matches."""
        submitted = (each for each in self._all if each.bot.submission is not None)
        self._retire(each for each in submitted if each.bot.submission not in needed)

    def grant(self, processes: int) -> None:
        """Note that the host reserves room for this number of further processes."""
        self._most = max(self._most, len(self._all) + processes)

    def end_if_idle(self, key: str) -> None:
        """End one process if it is idle, as its room is needed."""
        for process in tuple(self._idle):
            if process.key == key:
                self._most -= 1
                self._end(process)

    def warm(self, bots: Iterable[SeatBot]) -> int:
        """Return for how many of these bots there is an idle process."""
        idle = Counter(process.bot for process in self._idle if process.is_usable)
        return (Counter(bots) & idle).total()

    def close(self) -> None:
        """Stop the regular checks of the gate and the processes."""
        if self._looks is not None:
            self._looks.cancel()

    # --- within ---

    def _look(self) -> None:
        # Schedule the next look first, as reading a process may fail now.
        self._looks = self._loop.call_later(LOOK_S, self._look)
        now = self._loop.time()
        self._gate.look(now)
        # Computed here, as stages ask for it far more often.
        self.restless = {process.bot.name for process in self._all if process.is_restless}
        if now >= self._look_at_idle_at:
            self._look_at_idle_at = now + _IDLE_LOOK_S
            self._look_at_idle()

    def _look_at_idle(self) -> None:
        """End processes that compute while they are idle, as nothing is charged then."""
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
        """Add a new process; if there is no other room, it waits for one that was `ended`."""
        process = SeatProcess(self, bot)
        process.instead = ended.pop() if ended else None
        self._all.add(process)
        return process

    def _make_room(self, process: SeatProcess) -> SupervisedBot:
        """End an idle process, whose room is another's at once."""
        assert process.supervised is not None, "it was used"
        del self._idle[process]
        self._all.discard(process)
        self._supervisor.dismiss(process.key)
        return process.supervised

    async def _start(self, process: SeatProcess) -> None:
        """Start a process until it has said `hello`; raises what `SeatProcess.session` raises."""
        launch = await self._prepared(process.bot)
        for start in range(1, _STARTS + 1):
            await self._until_gone(process)
            finding = await self._scarcity.outlast(partial(self._launch, process, launch))
            if finding is None:
                return
            if finding.kind is not Ending.CRASH or start == _STARTS:
                raise StartFailed(finding)

    async def _until_gone(self, process: SeatProcess) -> None:
        """Wait until the earlier process in the room of this one has ended."""
        if process.supervised is not None:  # an earlier process, which has crashed or hangs
            self._supervisor.dismiss(process.key)
        for former in (process.instead, process.supervised):
            if former is not None:
                await asyncio.shield(former.gone)
        process.instead = process.supervised = process.player = None

    async def _launch(self, process: SeatProcess, launch: Launch) -> Finding | None:
        """Start a process and wait for its `hello`; return why that has failed, or None."""
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
        # Only with text: most bots write nothing, and each call is a transaction in the database.
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
        """Forget a process that has ended while idle."""
        if process in self._idle and process.supervised is supervised:
            del self._idle[process]
            self._forget(process)

    def _forget(self, process: SeatProcess) -> None:
        self._all.discard(process)
        self.on_room()


_STOPPED = Finding(
    kind=Ending.ABSENT, text="was stopped before its hello", mechanism=Mechanism.SESSION
)
