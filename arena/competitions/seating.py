"""Finds the seats of matches that need processes: reserved together, started before the match.

A seat is a free table of a bot that is connected here, or a process of a pool, on this machine or
on a host. A match has all of its seats or none. If they are not free, it waits. Later matches may
be seated meanwhile, but not for ever (`_MOST_OVERTAKEN`).

The pool's `at_once` limits how many matches of launched bots are played at once: more could not
compute at the same time, and each keeps a process for every seat. A match without room here is
played on a host with room for all its seats, if hosts can start all its bots.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from arena.competitions.elsewhere import HostLost, Hosts
from arena.competitions.process_pool import ProcessPool, SeatBot, SeatProcess, StartFailed
from arena.games.verdict import UNCOUNTED, Finding
from arena.referee.bot_session import BotSession
from arena.referee.referee import FAULT
from arena.server.background import BackgroundTasks
from protocol.errors import UsageError

__all__ = ["Seating", "WantedSeats"]

log = logging.getLogger(__name__)

# How many later matches may start before one that waits for room. Without a limit, a match of four
# seats would never find four processes free among matches of two.
_MOST_OVERTAKEN = 16
# Starting a process takes as long as a short match. So matches whose processes are warm come first,
# but not for ever. Otherwise a class larger than the memory would start two for every match.
_MOST_PASSED_OVER = 100


class _NotHere(Exception):
    """A bot that has to be here is not; the text says which."""


class WantedSeats(msgspec.Struct, eq=False):
    """The seats of one match, from the request until the match is over.

    Exactly one of three functions is called, once: `seated` with the sessions by seat; `refused`
    with a seat and why its bot could not be started, which is its offence; or `failed` with why the
    match is void.

    Attributes:
        match: the id of the match if it is lost before it is opened.
        bots: by seat.
        is_portable: whether hosts can start all of them.
        is_limited: whether it counts among the matches that a pool plays at once; matches of bots
            that connected by themselves do not.
    """

    match: str
    bots: Sequence[SeatBot]
    is_portable: bool
    is_limited: bool
    seated: Callable[[Sequence[BotSession]], None]
    refused: Callable[[int, Finding], None]
    failed: Callable[[str], None]
    overtaken: int = 0
    passed_over: int = 0  # by matches whose processes were warm
    held: Sequence[BotSession] = ()  # bots that each keep a table free for it
    processes: dict[int, SeatProcess] = {}  # by seat
    pool: ProcessPool | None = None  # the pool of these processes
    task: asyncio.Task[None] | None = None

    @property
    def submitted(self) -> Sequence[SeatBot]:
        return [bot for bot in self.bots if bot.submission is not None]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(bot.name for bot in self.bots)


class Seating:
    """Gives matches their seats.

    Attributes:
        pool: the processes of submissions here; None if the arena takes none.
        hosts: the processes on hosts; None without a bus.
    """

    def __init__(self, players: Mapping[str, BotSession]) -> None:
        self.pool: ProcessPool | None = None
        self.hosts: Hosts | None = None
        self._players = players
        self._waiting: dict[WantedSeats, None] = {}  # in the order of the requests
        self._is_due = False
        self._tasks = BackgroundTasks()

    @property
    def at_once(self) -> int:
        """How many matches of launched bots can be played at once, here and on hosts."""
        here = 1 if self.pool is None else max(1, self.pool.at_once)
        return here + (0 if self.hosts is None else self.hosts.at_once)

    @property
    def restless(self) -> Collection[str]:
        """The submitted bots on this machine that compute out of turn; see `BotGate`."""
        return () if self.pool is None else self.pool.restless

    def want(self, wanted: WantedSeats) -> None:
        """Seat a match soon, or when there is room; call `give_back` afterwards."""
        self._waiting[wanted] = None
        self.look()

    def give_back(self, wanted: WantedSeats, match: str = "") -> None:
        """Give back the seats of a match that is over or will not be played.

        `match` is its id, if it has begun. Seats that it still waits for are cancelled.
        """
        self._waiting.pop(wanted, None)
        if wanted.task is not None:
            wanted.task.cancel()
        self._let_go(wanted)
        if wanted.pool is not None:
            wanted.pool.playing -= wanted.is_limited
        for process in wanted.processes.values():
            process.release(match)
        self.look()

    def fail(self, wanted: WantedSeats, why: str) -> None:
        """Give back the seats of a match that is void before it was opened, and report why."""
        self.give_back(wanted)
        wanted.failed(why)

    def look(self) -> None:
        """Seat waiting matches soon, as a table or a process may be free, or a bot gone."""
        if self._waiting and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._seat_all)

    def close(self) -> None:
        """Start no more processes."""
        self._tasks.cancel()

    # --- within ---

    def _seat_all(self) -> None:
        """Seat the matches whose seats are free, the oldest first."""
        self._is_due = False
        for prefers_warm in (True, False):
            self._seat_waiting(prefers_warm)

    def _seat_waiting(self, prefers_warm: bool) -> None:
        passed: list[WantedSeats] = []  # matches without room
        cold: list[WantedSeats] = []
        for wanted in tuple(self._waiting):
            if wanted not in self._waiting:
                continue  # it has been given back meanwhile
            if prefers_warm and self._can_wait(wanted):
                cold.append(wanted)
                continue
            is_held = any(other.overtaken >= _MOST_OVERTAKEN for other in passed)
            try:
                if (is_held and self._is_busy) or not self._reserve(wanted):
                    passed.append(wanted)
                    if self.hosts is not None and wanted.is_portable:
                        self.hosts.ask(wanted.bots)
                    continue
            except _NotHere as error:
                self.fail(wanted, str(error))
                continue
            except Exception:
                log.exception("%s cannot be seated", " and ".join(wanted.names))
                self.fail(wanted, FAULT)
                continue
            for other in passed:
                other.overtaken += 1
            for other in cold:
                other.passed_over += 1
            del self._waiting[wanted]
            wanted.task = self._tasks.start(self._start(wanted))

    def _can_wait(self, wanted: WantedSeats) -> bool:
        """Return whether a match needs a new process and has not been passed over too often."""
        if wanted.passed_over >= _MOST_PASSED_OVER:
            return False
        submitted, bots = wanted.submitted, wanted.bots
        is_warm_here = self.pool is not None and self.pool.warm(submitted) == len(submitted)
        return not is_warm_here and all(pool.warm(bots) < len(bots) for pool in self._far)

    @property
    def _far(self) -> Sequence[ProcessPool]:
        """The pools on hosts."""
        return () if self.hosts is None else self.hosts.pools

    @property
    def _is_busy(self) -> bool:
        here = () if self.pool is None else (self.pool,)
        return any(pool.playing for pool in (*here, *self._far))

    def _reserve(self, wanted: WantedSeats) -> bool:
        """Reserve all seats of a match or none, where most of its bots are warm."""
        far = self._far if wanted.is_portable else ()
        warm = {pool: pool.warm(wanted.bots) for pool in far}
        tables = len(wanted.bots) - len(wanted.submitted)
        here = tables + (0 if self.pool is None else self.pool.warm(wanted.submitted))
        best = sorted(far, key=lambda pool: -warm[pool])
        before = [pool for pool in best if warm[pool] > here]
        return (
            any(self._reserve_at(wanted, pool, wanted.bots) for pool in before)
            or self._reserve_here(wanted)
            or any(self._reserve_at(wanted, pool, wanted.bots) for pool in best[len(before) :])
        )

    def _reserve_here(self, wanted: WantedSeats) -> bool:
        connected = [self._here(bot.name, wanted) for bot in wanted.bots if bot.submission is None]
        for player in connected:
            if len(player.chairs) + player.held + connected.count(player) > player.tables:
                return False
        if wanted.submitted:
            assert self.pool is not None, "an arena without a pool takes no submissions"
            try:
                if not self._reserve_at(wanted, self.pool, wanted.submitted):
                    return False
            except UsageError:  # the match is too large for this machine
                if self.hosts is None or not wanted.is_portable:
                    raise
                return False
        for player in connected:
            player.held += 1
        wanted.held = connected
        return True

    def _reserve_at(self, wanted: WantedSeats, pool: ProcessPool, bots: Sequence[SeatBot]) -> bool:
        """Reserve processes of a pool for these bots, unless it plays enough matches already."""
        if wanted.is_limited and pool.playing >= pool.at_once:
            return False
        seats = pool.reserve(bots)
        if seats is None:
            return False
        pool.playing += wanted.is_limited
        wanted.pool = pool
        places = [seat for seat, bot in enumerate(wanted.bots) if bot in bots]
        wanted.processes = dict(zip(places, seats, strict=True))
        return True

    def _here(self, name: str, wanted: WantedSeats) -> BotSession:
        """Return the bot of that name; raises `_NotHere` if it is away, instead of waiting."""
        player = self._players.get(name)
        if player is None or player.leaving or player.session.finishing:
            raise _NotHere(f"{name} is not here")
        if wanted.submitted and (player.is_away or player.is_unresponsive):
            raise _NotHere(f"{name} is away")
        return player

    async def _start(self, wanted: WantedSeats) -> None:
        """Wait for the processes of a match, and then open it."""
        processes = wanted.processes
        began: list[BotSession | BaseException] = []
        for _ in processes:  # the second time all are there, unless one has ended meanwhile
            began = await asyncio.gather(
                *(process.session() for process in processes.values()), return_exceptions=True
            )
            if any(isinstance(each, BaseException) for each in began):
                break
        wanted.task = None
        came = dict(zip(processes, began, strict=True))
        for seat, session in came.items():
            if isinstance(session, StartFailed):
                self.give_back(wanted, wanted.match)
                wanted.refused(seat, session.finding)
                return
        for session in came.values():
            if isinstance(session, HostLost):
                log.warning("a bot cannot be started: %s", session)
                self.fail(wanted, f"{session}{UNCOUNTED}")
                return
            if isinstance(session, BaseException):
                log.error("a bot cannot be started", exc_info=session)
                self.fail(wanted, FAULT)
                return
        started = {seat: each for seat, each in came.items() if isinstance(each, BotSession)}
        try:
            sessions = [
                started[seat] if seat in started else self._here(bot.name, wanted)
                for seat, bot in enumerate(wanted.bots)
            ]
        except _NotHere as error:
            self.fail(wanted, str(error))
            return
        self._let_go(wanted)
        wanted.seated(sessions)

    def _let_go(self, wanted: WantedSeats) -> None:
        """Stop keeping tables free for a match."""
        held, wanted.held = wanted.held, ()
        for player in held:
            player.held -= 1
