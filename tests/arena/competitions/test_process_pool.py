"""Which process plays which match, and when one is started, kept or ended."""

from __future__ import annotations

import asyncio
import errno
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arena.competitions.bot_supervisor import BotSupervisor, SupervisedBot
from arena.competitions.process_pool import ProcessPool, SeatBot, SeatProcess, StartFailed
from arena.games.names import is_process, process_name, public_name
from arena.games.verdict import Finding
from arena.hosts.remote_bot import HostLost, RemoteLauncher
from arena.referee.bot_session import BotSession
from arena.referee.compute_gate import ComputeGate
from arena.referee.transport import Gate
from arena.sandbox.launcher import Program
from arena.sandbox.process import StderrTail
from arena.sandbox.scarcity import PAUSE_S
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Mechanism
from tests.support.fake_bots import ANY_GAME, FakeBot
from tests.support.not_none import not_none
from tests.support.virtual_time import all_done

pytestmark = pytest.mark.virtual_time(limit_s=600)

PROGRAM = Program(("bot",), stdio=True)
CRASH = Finding(kind=Ending.CRASH, text="crashed: exit status 1", mechanism=Mechanism.EXIT)
TOO_LARGE = Finding(kind=Ending.MEMORY, text="memory 9 MiB > 8 MiB", mechanism=Mechanism.SAMPLED)


class FakeSupervisedBot:
    def __init__(self) -> None:
        self.finding: Finding | None = None
        self.lost = ""
        self.gone = asyncio.get_running_loop().create_future()
        self.launched = SimpleNamespace(stderr=StderrTail(64 * 1024))
        self.used_ms = 0.0

    def cpu_ms(self) -> float:
        return self.used_ms

    def attach(self, session: BotSession, gate: Gate) -> None:
        session.gate = gate


class ArenaOfProcesses:
    """Stands in for a supervisor: processes say hello at once, and end in the next turn.

    Attributes:
        starts: what happens to the next ones instead: they end so.
        is_slow: processes say no hello until this is over.
        ends_late: processes that are dismissed stay until `end`.
    """

    def __init__(self) -> None:
        self.players: dict[str, BotSession] = {}
        self.running: dict[str, FakeSupervisedBot] = {}
        self.starts: list[Finding | ArenaError] = []
        self.launched = 0
        self.most = 0
        self.ends_late = False
        self.is_slow = False
        self._numbers = count(1)
        self._changed = asyncio.Event()

    def process_key(self, name: str) -> str:
        return process_name(name, next(self._numbers))

    async def launch_process(
        self, name: str, program: Program, launcher: RemoteLauncher | None = None
    ) -> SupervisedBot:
        assert is_process(name)
        self.launched += 1
        start = self.starts.pop(0) if self.starts else None
        if isinstance(start, ArenaError):
            raise start
        process = self.running[name] = FakeSupervisedBot()
        self.most = max(self.most, len(self.running))
        if start is not None:
            self.end(name, start)
        return cast(SupervisedBot, process)

    async def arrived(self, name: str) -> BotSession | None:
        while self.is_slow and name in self.running:
            self._changed.clear()
            await self._changed.wait()
        if name in self.running:
            player = FakeBot(public_name(name)).player
            player.name = name
            self.players[name] = player
        return self.players.get(name)

    def dismiss(self, name: str) -> None:
        if name in self.running and not self.ends_late:
            asyncio.get_running_loop().call_soon(self.end, name)

    def end(self, name: str, finding: Finding | None = None) -> None:
        process = self.running.pop(name, None)
        if process is None:
            return
        process.finding = finding
        if (player := self.players.pop(name, None)) is not None:
            player.leaving = True
        process.gone.set_result(None)
        self._changed.set()

    def crash(self, session: BotSession) -> None:
        self.end(session.name, CRASH)

    def says(self, session: BotSession, text: str) -> None:
        self.running[session.name].launched.stderr.add(text.encode())


class PoolOfFakes(ProcessPool):
    def __init__(self, arena: ArenaOfProcesses, most: int, cores: int = 9) -> None:
        self.gate = ComputeGate(cores)
        self.stderr: list[tuple[Any, ...]] = []
        self.rooms = 0
        super().__init__(
            cast(BotSupervisor, arena),
            self.gate,
            self.program,
            most,
            lambda *told: self.stderr.append(told),
        )
        self.on_room = self.room

    async def program(self, bot: SeatBot) -> Program:
        if bot.submission == 404:
            raise UsageError("no such submission")
        return PROGRAM

    def room(self) -> None:
        self.rooms += 1


@pytest.fixture
async def arena() -> ArenaOfProcesses:
    return ArenaOfProcesses()


def seat_bots(*seats: tuple[str, int]) -> list[SeatBot]:
    """The bots of these seats, each a public name and a submission."""
    return [SeatBot(name, number, ANY_GAME) for name, number in seats]


def reserved(pool: ProcessPool, *seats: tuple[str, int]) -> tuple[SeatProcess, ...]:
    return not_none(pool.reserve(seat_bots(*seats)))


async def seated(pool: ProcessPool, name: str, number: int = 1) -> tuple[SeatProcess, BotSession]:
    """One seat of a match, and the process that has it."""
    [seat] = reserved(pool, (name, number))
    return seat, await seat.session()


async def played(pool: ProcessPool, *seats: tuple[str, int]) -> list[str]:
    """Play a match; the names of its processes."""
    found = reserved(pool, *seats)
    names = [(await seat.session()).name for seat in found]
    for seat in found:
        seat.release()
    await all_done()
    return names


async def test_a_process_stays_warm_for_the_next_match(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 4)
    first = await played(pool, ("ann", 1), ("ben", 2))
    second = await played(pool, ("ben", 2), ("ann", 1))

    assert second == first[::-1]
    assert [public_name(name) for name in first] == ["ann", "ben"]
    assert arena.launched == 2


async def test_one_that_computes_while_it_is_idle_is_ended(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, most=2)
    await played(pool, ("ann", 1), ("ben", 2))
    quiet, burning = arena.running
    await asyncio.sleep(60)
    arena.running[burning].used_ms = 2_001.0
    await asyncio.sleep(60)

    assert list(arena.running) == [quiet]
    assert len(pool) == 1


async def test_a_process_plays_one_match_at_a_time(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 4)
    seats = [*reserved(pool, ("ann", 1), ("ann", 1)), *reserved(pool, ("ann", 1))]
    sessions = [await seat.session() for seat in seats]

    assert len({session.name for session in sessions}) == 3
    assert {session.public_name for session in sessions} == {"ann"}
    assert all(session.gate is pool.gate for session in sessions)


async def test_there_are_never_more_than_fit_and_all_seats_or_none(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 3)
    first = reserved(pool, ("ann", 1), ("ben", 2))

    assert pool.reserve(seat_bots(("cem", 3), ("dov", 4))) is None
    assert pool.reserve(seat_bots(("cem", 3))) is not None
    for seat in first:
        seat.release()
    await all_done()
    assert pool.rooms
    assert pool.reserve(seat_bots(("cem", 3), ("dov", 4))) is not None


async def test_more_seats_than_ever_fit_are_a_mistake(arena: ArenaOfProcesses) -> None:
    with pytest.raises(UsageError, match="at most 1 submitted bots in a match"):
        PoolOfFakes(arena, 1).reserve(seat_bots(("ann", 1), ("ben", 2)))


async def test_the_least_recently_used_is_gone_before_the_next_starts(
    arena: ArenaOfProcesses,
) -> None:
    pool = PoolOfFakes(arena, 3)
    [ann] = await played(pool, ("ann", 1))
    [ben] = await played(pool, ("ben", 2))
    [cem] = await played(pool, ("cem", 3))
    assert await played(pool, ("ann", 1)) == [ann]
    arena.ends_late = True
    [seat] = reserved(pool, ("dov", 4))
    starting = asyncio.create_task(seat.session())
    await all_done()
    assert set(arena.running) == {ann, ben, cem}, "ben's is told to end"
    arena.end(ben)
    dov = await starting

    assert set(arena.running) == {ann, cem, dov.name}
    assert arena.most == 3
    assert len(pool) == 3


async def test_who_has_offended_is_started_again_for_its_next_match(
    arena: ArenaOfProcesses,
) -> None:
    pool = PoolOfFakes(arena, 1)
    seat, session = await seated(pool, "ann")
    session.has_offended = True
    seat.release()
    assert pool.reserve(seat_bots(("ann", 1))) is None, "it is not gone yet"
    await all_done()

    assert await played(pool, ("ann", 1)) != [session.name]


async def test_a_crash_between_matches_is_no_offence(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 2)
    await played(pool, ("ann", 1))
    arena.crash(next(iter(arena.players.values())))
    await all_done()
    assert len(pool) == 0

    seat, first = await seated(pool, "ann")
    arena.crash(first)  # while the other seat is waited for
    second = await seat.session()
    assert second is not first
    assert await seat.session() is second


async def test_three_crashes_before_a_hello_are_one(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 2)
    arena.starts = [CRASH, CRASH]
    assert await played(pool, ("ann", 1))
    arena.starts = [CRASH] * 3
    [seat] = reserved(pool, ("ben", 2))
    with pytest.raises(StartFailed, match="crashed: exit status 1") as failed:
        await seat.session()
    seat.release()
    await all_done()

    assert failed.value.finding is CRASH
    assert (arena.launched, len(pool)) == (6, 1)
    assert pool.gate.waiting == 0


async def test_a_start_waits_until_the_machine_has_room_for_it(
    arena: ArenaOfProcesses, caplog: pytest.LogCaptureFixture
) -> None:
    loop, full = asyncio.get_running_loop(), ArenaError("cannot start ann")
    full.__cause__ = BlockingIOError(errno.EAGAIN, "No more processes")
    pool, began = PoolOfFakes(arena, 1, cores=1), loop.time()
    arena.starts = [full] * 9

    assert await played(pool, ("ann", 1))
    assert (arena.launched, (loop.time() - began) // PAUSE_S, pool.gate.waiting) == (10, 9, 0)
    [line] = caplog.messages
    assert line == "no program can be started (no more processes): its match waits"


async def test_what_is_no_crash_is_not_tried_again(arena: ArenaOfProcesses) -> None:
    arena.starts = [TOO_LARGE]
    [seat] = reserved(PoolOfFakes(arena, 2), ("ann", 1))
    with pytest.raises(StartFailed, match="memory"):
        await seat.session()

    assert arena.launched == 1


async def test_who_is_lost_with_its_host_before_its_hello_has_not_failed(
    arena: ArenaOfProcesses,
) -> None:
    arena.is_slow = True
    [seat] = reserved(PoolOfFakes(arena, 2), ("ann", 1))
    starting = asyncio.create_task(seat.session())
    await all_done()
    [(name, process)] = arena.running.items()
    process.lost = "the host h1 was lost"
    arena.end(name)

    with pytest.raises(HostLost, match="the host h1 was lost"):
        await starting


async def test_a_submission_that_is_not_there_leaves_its_room(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 1)
    [seat] = reserved(pool, ("ann", 404))
    with pytest.raises(UsageError):
        await seat.session()
    seat.release()
    seat.release()
    await all_done()

    assert await played(pool, ("ann", 1))


async def test_a_start_takes_a_core_until_its_hello(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 4, cores=1)
    arena.is_slow = True
    seats = reserved(pool, ("ann", 1), ("ben", 2))
    starts = [asyncio.create_task(seat.session()) for seat in seats]
    await all_done()
    assert (arena.launched, pool.gate.waiting) == (1, 1)
    arena.is_slow = False
    arena._changed.set()
    await asyncio.gather(*starts)

    assert arena.launched == 2


async def test_a_match_that_is_called_off_leaves_room_and_core(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 2, cores=1)
    arena.is_slow = True
    seats = reserved(pool, ("ann", 1), ("ben", 2))
    starts = [asyncio.create_task(seat.session()) for seat in seats]
    await all_done()
    for start in starts:
        start.cancel()
    await asyncio.gather(*starts, return_exceptions=True)
    for seat in seats:
        seat.release()
    await all_done()

    assert (len(pool), pool.gate.waiting, arena.running) == (0, 0, {})


async def test_an_idle_process_that_has_left_makes_room(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 1)
    seat, session = await seated(pool, "ann")
    seat.release()
    session.leaving = True  # its pipes are closed, and it goes on
    assert pool.reserve(seat_bots(("ben", 2))) is None
    await all_done()

    assert await played(pool, ("ben", 2))


async def test_another_version_ends_idle_ones_now_and_others_later(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 4)
    await played(pool, ("ann", 1), ("ann", 1), ("ben", 2))
    seat, session = await seated(pool, "ann")
    pool.retire_others({2})
    await all_done()
    assert {public_name(name) for name in arena.running} == {"ann", "ben"}
    assert not session.leaving
    seat.release()
    await all_done()
    assert {public_name(name) for name in arena.running} == {"ben"}

    assert await played(pool, ("ann", 1)) == await played(pool, ("ann", 1)), "a run goes on with it"


async def test_a_warm_process_plays_for_its_own_version_alone(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 4)
    first = await played(pool, ("ann", 1))

    assert not pool.warm(seat_bots(("ann", 2)))
    assert await played(pool, ("ann", 2)) != first
    assert await played(pool, ("ann", 1)) == first


async def test_what_is_built_again_is_started_again(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 4)
    before = await played(pool, ("ann", 1))
    pool.retire(1)
    await all_done()
    assert not arena.running

    assert await played(pool, ("ann", 1)) != before


async def test_stderr_of_a_match_is_what_was_written_from_its_start(
    arena: ArenaOfProcesses,
) -> None:
    pool = PoolOfFakes(arena, 1)
    for match in ("m1", "m2"):
        seat, session = await seated(pool, "ann")
        arena.says(session, f"this is {match}\n")
        seat.release(match)
        arena.says(session, "between matches\n")
    seat, _ = await seated(pool, "ann")
    seat.release("of which nothing is kept")

    assert pool.stderr == [(1, "m1", "this is m1\n"), (1, "m2", "this is m2\n")]


async def test_stderr_of_a_match_is_at_most_64_kib(arena: ArenaOfProcesses) -> None:
    pool = PoolOfFakes(arena, 1)
    seat, session = await seated(pool, "ann")
    arena.says(session, "x" * 70_000 + "end")
    seat.release("m1")

    [(_, _, text)] = pool.stderr
    assert text == "x" * (64 * 1024 - 3) + "end"
