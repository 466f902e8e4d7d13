"""Which process plays which match, and when one is started, kept or ended: `process_pool.cases`.

A process is `ann#1`, by its bot and its number. `>` is what was said, and which processes run then.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arena.competitions.bot_supervisor import BotSupervisor, SupervisedBot
from arena.competitions.process_pool import Launch, ProcessPool, SeatBot, SeatProcess
from arena.games.names import is_process, process_name, public_name
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.compute_gate import ComputeGate
from arena.referee.transport import Gate
from arena.sandbox.process import StderrTail
from arena.sandbox.scarcity import PAUSE_S
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Mechanism
from tests.support.cases import CaseFile, wrapped
from tests.support.fake_bots import ANY_GAME, FakeBot
from tests.support.virtual_time import all_done, run_in_virtual_time

pytestmark = pytest.mark.virtual_time(limit_s=600)

CASES = CaseFile(Path(__file__).with_name("process_pool.cases"))

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

    async def launch(self, name: str) -> SupervisedBot:
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

    def changes(self) -> None:
        self._changed.set()


class PoolCase:
    """A pool of fake processes, and what the lines of a case do to it."""

    def __init__(self) -> None:
        self.arena = ArenaOfProcesses()
        self._said: list[str] = []
        self._seats: dict[str, tuple[SeatProcess, ...]] = {}  # of matches, by their names
        self._starting: dict[str, asyncio.Future[Any]] = {}
        self._shown = ""
        self._makes(most=9)

    def _makes(self, most: int, cores: int = 9) -> None:
        gate = ComputeGate(cores)
        self.pool = ProcessPool(
            cast(BotSupervisor, self.arena), gate, self._prepared, most, self._wrote
        )
        self.pool.on_room = lambda: self._said.append("has room")
        self._gate = gate

    def _wrote(self, submission: int, match: str, text: str) -> None:
        shown = text if len(text) < 99 else f"{len(text):,} letters, the last {text[-3:]!r}"
        self._said.append(f"{match} of {submission} wrote: {shown.strip()}")

    async def _prepared(self, bot: SeatBot) -> Launch:
        if bot.submission == 404:
            raise UsageError("no such submission")
        return self.arena.launch

    async def plays(self, lines: Sequence[str]) -> list[str]:
        out: list[str] = []
        for line in lines:
            out.append(line)
            for words in map(str.split, line.split(" · ")):
                try:
                    await self._does(words)
                except ArenaError as error:
                    self._said.append(f"error: {error}")
                await all_done()
            out += wrapped(" · ".join([*dict.fromkeys(self._said), *self._news()]))
            self._said.clear()
        self.pool.close()
        return out

    def _news(self) -> Iterator[str]:
        running = " ".join(map(_shown, self.arena.running))
        ending = len(self.pool) - len(self.arena.running)
        waiting = self._gate.waiting
        shown = f"runs {running or '-'}"
        shown += f", {ending} more" * bool(ending) + f", {waiting} at the gate" * bool(waiting)
        if shown != self._shown:
            self._shown = shown
            yield shown

    async def _does(self, words: list[str]) -> None:
        arena, pool = self.arena, self.pool
        match words:
            case ["pool", *sizes]:
                pool.close()
                self._makes(*map(int, sizes))
            case ["wait", seconds]:
                await asyncio.sleep(float(seconds))
            case ["reserve", name, *bots]:
                seats = pool.reserve([*map(_bot, bots)])
                if seats is None:
                    self._said.append("no room")
                else:
                    self._seats[name] = seats
            case ["start", *names]:
                for name in names:
                    sessions = [seat.session() for seat in self._seats[name]]
                    self._starting[name] = asyncio.gather(*sessions, return_exceptions=True)
                await all_done()
                for name in names:
                    if self._starting[name].done():
                        self._said.append(f"{name}: {self._sessions(name)}")
            case ["started", name]:
                await self._starting[name]
                self._said.append(f"{name}: {self._sessions(name)}")
            case ["release", name, *match_]:
                for seat in self._seats[name]:
                    seat.release(*match_)
            case ["play", *bots]:
                for act in (
                    ["reserve", "m", *bots],
                    ["start", "m"],
                    ["started", "m"],
                    ["release", "m"],
                ):
                    await self._does(act)
            case ["call", "off", *names]:
                for name in names:
                    self._starting[name].cancel()
                    await asyncio.wait([self._starting[name]])
                    await self._does(["release", name])
            case ["next", *endings]:
                full = ArenaError("cannot start ann")
                known: dict[str, Finding | ArenaError] = {
                    "crash": CRASH,
                    "memory": TOO_LARGE,
                    "full": full,
                }
                full.__cause__ = BlockingIOError(errno.EAGAIN, "No more processes")
                arena.starts = [known[each] for each in endings]
            case ["slow"]:
                arena.is_slow = True
            case ["quick"]:
                arena.is_slow = False
                arena.changes()
            case ["lingering"]:
                arena.ends_late = True
            case ["retire", number]:
                pool.retire(int(number))
            case ["needed", *numbers]:
                pool.retire_others({*map(int, numbers)})
            case ["warm", *bots]:
                self._said.append(f"{pool.warm(map(_bot, bots))} warm")
            case [process, what, *more]:
                self._happens(
                    next(key for key in arena.running if _shown(key) == process), what, more
                )

    def _happens(self, key: str, what: str, more: list[str]) -> None:
        arena = self.arena
        match what:
            case "ends" | "crashes":
                arena.end(key, CRASH if what == "crashes" else None)
            case "offends":
                arena.players[key].has_offended = True
            case "leaves":  # it closes its pipes, and goes on
                arena.players[key].leaving = True
            case "lost":
                arena.running[key].lost = "the host h1 was lost"
                arena.end(key)
            case "computes":
                arena.running[key].used_ms = float(more[0])
            case "says":
                text = "x" * int(more[0]) + "end" if more[0].isdigit() else f"{' '.join(more)}\n"
                arena.running[key].launched.stderr.add(text.encode())

    def _sessions(self, name: str) -> str:
        """The processes of a match, or why one of them has none."""
        found = self._starting[name].result()
        assert all(each.gate is self._gate for each in found if isinstance(each, BotSession))
        shown = (
            _shown(each.name) if isinstance(each, BotSession) else f"{type(each).__name__} {each}"
            for each in found
        )
        return " ".join(shown)


def _bot(text: str) -> SeatBot:
    name, _, number = text.partition(":")
    return SeatBot(name, int(number), ANY_GAME)


def _shown(key: str) -> str:
    """A process by its public name and its number among all that were started."""
    return f"{public_name(key)}#{key.removeprefix(process_name(public_name(key), 0)[:-1])}"


@pytest.mark.parametrize("title", CASES.titles)
def test_processes_of_a_pool(title: str) -> None:
    async def plays(lines: Sequence[str]) -> list[str]:
        return await PoolCase().plays(lines)

    CASES.check_whole(title, lambda lines: run_in_virtual_time(plays(lines), limit_s=600))


async def test_a_start_waits_until_the_machine_has_room_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case, loop = PoolCase(), asyncio.get_running_loop()
    began = loop.time()
    await case.plays(["next full full full full full full full full full", "play ann:1"])

    assert (case.arena.launched, (loop.time() - began) // PAUSE_S) == (10, 9)
    [line] = caplog.messages
    assert line == "no program can be started (no more processes): its match waits"
