"""Does anything leak? `python -m tests.tools.soak --minutes 20` finds out; it is no part of CI.

Honest bots and rogues of all kinds and games come, play, misbehave and go, in one arena with a real
database, and in real competitions. The honest are of two sorts, as processes of their own: a crowd
that stays and loses its connection now and then, and visitors that leave again. Rogues
(tests/support/rogues/rogue.py) connect by themselves or are launched by the arena, at random.

It prints what the arena's process holds as it runs, and at the end what it held after the warm-up,
at the end, and when all had left. Exit status 1 if an honest bot was eliminated, if anything is
left of a bot that has gone, or if memory grew faster than `--bound` allows. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import shlex
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from arena.competitions.arena_host import Host
from arena.formats.spec import plan_of
from arena.games import GAMES
from arena.sandbox.launcher import read_program
from arena.sandbox.process_table import LinuxProcesses
from arena.sandbox.process_usage import tree_of
from arena.storage.store import Store
from protocol.messages import Limits, Verdict
from protocol.strategy import house_bots
from tests.support.rogues import rogue
from tests.support.rogues.rogue import KINDS
from tests.tools.soak_outcome import ProcessSample, SoakOutcome, document, line, show

__all__ = ["Soak", "main", "soak"]

MIB = 1 << 20
LIMITS = Limits(
    decision_ms=2_000,
    bank_ms=3_000,
    hard_ms=4_000,
    wall_ms=6_000,
    start_ms=6_000,
    grace_ms=2_000,
    hello_ms=3_000,
    frame_bytes=16 * 1024,
    buffer_bytes=64 * 1024,
    unanswered=5_000,
    memory_mib=128,
    processes=16,
)
_ROUNDS = 20
HONEST = "honest"  # how their names begin
_CROWD_NAME = f"{HONEST} crowd"

_ROGUE = str(Path(rogue.__file__).resolve())
_CONNECTED = [name for name, kind in KINDS.items() if not kind.launched]
_LAUNCHED = [name for name, kind in KINDS.items() if kind.launched]
_CROWD = 8  # honest bots that stay
_RESTLESS_S = 15.0  # on average, until one of them loses its connection
_VISITORS = 3  # at once
_STAY_S = 5.0, 25.0  # how long a visitor stays
_ROGUE_EVERY_S = 1.0  # on average
_LAUNCH_EVERY_S = 4.0
_LIFE_S = 60.0  # a rogue that still lives then is ended
_FIELD = 6  # bots in a competition
_ROGUES = 3  # of them, at most
_LEAVE_S = 60.0  # for competitions to end, and for everybody to leave
_POOL = 5  # connections that SQLAlchemy keeps open once so many were needed at a time


class Soak:
    """One soak.

    Args:
        host: the arena; it tells `ruled` of its verdicts.
        store: where that writes.
        database: its file.
        minutes: for how long bots come.
        every_s: between two samples.
    """

    def __init__(
        self, host: Host, store: Store, database: Path, minutes: float, every_s: float
    ) -> None:
        self.competitions = 0
        self.came: Counter[str] = Counter()
        self.eliminated: Counter[str] = Counter()
        self.wronged: list[str] = []
        self._host = host
        self._store = store
        self._database = database
        self._every_s = every_s
        self._random = random.Random()
        self._began = time.monotonic()
        self._minutes = minutes
        self._actors: set[asyncio.subprocess.Process] = set()
        # The process may have other children already, such as the database server of a test.
        self._before = _below(os.getpid(), LinuxProcesses(), set())
        self._playing: Counter[str] = Counter()  # competitions that a bot is in
        self._retired: set[str] = set()  # not to be dealt to any more
        self._awaited: list[tuple[str, str]] = []  # game, name: may never come

    def ruled(self, verdict: Verdict) -> None:
        """Count an elimination."""
        self.eliminated[verdict.kind.value] += 1
        if verdict.bot.startswith((HONEST, "house-")):  # those are the arena's own
            what = f"{verdict.bot} in {verdict.game} ({verdict.kind.value})"
            self.wronged.append(f"{what}: {verdict.text}")

    async def run(self, as_json: bool = False) -> SoakOutcome:
        await self._warm_up()
        before = self.sample()
        samples: list[ProcessSample] = []
        crowd = await self._start(
            *("-m", "tests.support.crowd", "--url", self._host.url),
            *("--count", str(_CROWD), "--name", _CROWD_NAME, "--tables", "4"),
            *("--restless", str(_RESTLESS_S)),
            *(word for game in GAMES for word in ("--game", game)),
            is_heard=True,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(samples, as_json))
            group.create_task(self._rogues())
            group.create_task(self._launches())
            for game in GAMES:
                group.create_task(self._compete(game, with_rogues=True))
                group.create_task(self._compete(game, with_rogues=False))
            for _ in range(_VISITORS):
                group.create_task(self._visitors())
        for number in range(_CROWD):
            if (name := f"{_CROWD_NAME} {number}") not in self._host.gateway.players:
                self.wronged.append(f"{name} is not there any more")
        with contextlib.suppress(ProcessLookupError):
            crowd.terminate()
        await self._all_leave()
        return SoakOutcome(
            before,
            tuple(samples),
            self.sample(),
            self.competitions,
            dict(self.came),
            dict(self.eliminated),
            tuple(self.wronged),
        )

    async def _warm_up(self) -> None:
        """Start what is started once and stays: threads, connections, what a first bot needs."""
        await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.05) for _ in range(64)))
        with contextlib.ExitStack() as stack:
            for _ in range(_POOL):
                stack.enter_context(self._store.engine.connect())
        words = sys.executable, "-c", "pass"
        await self._host.launch_program(read_program(shlex.join(words)), "first")
        while "first" not in self._host.ended or self.sample().launched:
            await asyncio.sleep(0.05)

    # ---- Samples

    @property
    def _is_over(self) -> bool:
        return self._minute >= self._minutes

    @property
    def _minute(self) -> float:
        return (time.monotonic() - self._began) / 60

    def sample(self) -> ProcessSample:
        """What the arena holds now."""
        processes = LinuxProcesses()
        memory = processes.memory(os.getpid())
        assert memory is not None, "we are there"
        ours = {actor.pid for actor in self._actors}
        below = _below(os.getpid(), processes, ours | self._before)
        gateway = self._host.gateway
        return ProcessSample(
            minute=round(self._minute, 2),
            rss_mib=round(memory.rss_bytes / MIB, 1),
            descriptors=len(os.listdir("/proc/self/fd")),
            launched=len(below),
            actors=len(self._actors),
            threads=threading.active_count(),
            tasks=len(asyncio.all_tasks()),
            tables=len(gateway.referee.tables),
            players=len(gateway.players),
            database_mib=round(_size_mib(self._database), 1),
            decisions=gateway.referee.decisions,
        )

    async def _watch(self, samples: list[ProcessSample], as_json: bool) -> None:
        if not as_json:
            print("  ".join(ProcessSample._fields), flush=True)
        while not self._is_over:
            await asyncio.sleep(self._every_s)
            samples.append(self.sample())
            if not as_json:
                print(line(samples[-1]), flush=True)

    # ---- Competitions

    async def _compete(self, game: str, *, with_rogues: bool) -> None:
        """One competition of a game after another, among the honest only or not."""
        rules = GAMES[game]
        settings = rules.vocabulary.read_settings(rules.rounds(_ROUNDS))
        while not self._is_over:
            rogues = self._waiting_rogues(game) if with_rogues else []
            names = self._field(game, rogues)
            if len(names) < max(2, rules.seats) or (with_rogues and not rogues):
                await asyncio.sleep(0.2)
                continue
            wait_s = (LIMITS.start_ms + LIMITS.grace_ms) / 1000
            plan = plan_of(rules, settings, names, limits=LIMITS, wait_s=wait_s)
            self._playing.update(names)
            await self._host.play(self._host.compete(plan))
            self._playing.subtract(names)
            self.competitions += 1

    def _waiting_rogues(self, game: str) -> list[str]:
        """Some rogues that have not played yet; each plays once."""
        here = [
            name
            for name in self._host.presence.names(game)
            if not name.startswith(HONEST) and name not in self._retired
        ]
        awaited = [name for of, name in self._awaited if of == game]
        rogues = list(dict.fromkeys((*awaited, *here)))[:_ROGUES]
        self._awaited = [entry for entry in self._awaited if entry[1] not in rogues]
        self._retired.update(rogues)
        return rogues

    def _field(self, game: str, rogues: list[str]) -> tuple[str, ...]:
        """The players of the next competition."""
        honest = [
            name
            for name in self._host.presence.names(game)
            if name.startswith(HONEST) and name not in self._retired
        ]
        self._random.shuffle(honest)
        return tuple((rogues + honest)[:_FIELD])

    # ---- Bots

    async def _start(self, *words: str, is_heard: bool = False) -> asyncio.subprocess.Process:
        """Start a bot; with `is_heard` its stderr is ours."""
        null = asyncio.subprocess.DEVNULL
        actor = await asyncio.create_subprocess_exec(
            *("nice", "-n", "5", sys.executable, *words),  # the arena goes first
            stdin=null,
            stdout=null,
            stderr=None if is_heard else null,
        )
        self._actors.add(actor)
        return actor

    async def _ends(self, actor: asyncio.subprocess.Process) -> None:
        """Wait for its end, and end it if it lives too long."""
        try:
            await asyncio.wait_for(actor.wait(), _LIFE_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                actor.kill()
            await actor.wait()
        self._actors.discard(actor)

    async def _pause(self, mean_s: float) -> None:
        await asyncio.sleep(self._random.uniform(0.2, 1.8) * mean_s)

    async def _visitors(self) -> None:
        """One honest visitor after another."""
        while not self._is_over:
            game = self._random.choice([*GAMES])
            bot = self._random.choice([*house_bots(game)])
            self.came["visitor"] += 1
            name = f"{HONEST} {bot} {self.came['visitor']}"
            actor = await self._start(
                *("-m", "bots", game, bot, "--url", self._host.url, "--name", name),
                *("--tables", "4", "--quiet", "--no-session"),
            )
            await asyncio.sleep(self._random.uniform(*_STAY_S))
            self._retired.add(name)
            while self._playing[name] > 0:
                await asyncio.sleep(0.1)
            with contextlib.suppress(ProcessLookupError):
                actor.terminate()
            await self._ends(actor)

    async def _rogues(self) -> None:
        """Rogues that connect by themselves."""
        rogues = []
        async with asyncio.TaskGroup() as lives:
            while not self._is_over:
                await self._pause(_ROGUE_EVERY_S)
                game = self._random.choice([*GAMES])
                kind = self._random.choice(_CONNECTED)
                self.came["rogue"] += 1
                name = f"rogue {kind} {self.came['rogue']}"
                words = [_ROGUE, kind, "--url", self._host.url, "--game", game]
                actor = await self._start(*words, "--name", name)
                lives.create_task(self._ends(actor))
                rogues.append(actor)
            for actor in rogues:  # those that still wait would never play
                with contextlib.suppress(ProcessLookupError):
                    actor.kill()

    async def _launches(self) -> None:
        """Rogues that the arena launches."""
        while not self._is_over:
            await self._pause(_LAUNCH_EVERY_S)
            game = self._random.choice([*GAMES])
            kind = self._random.choice(_LAUNCHED)
            self.came["launched"] += 1
            name = f"launched {kind} {self.came['launched']}"
            words = sys.executable, _ROGUE, kind, "--game", game
            await self._host.launch_program(read_program(shlex.join(words)), name)
            self._awaited.append((game, name))

    async def _all_leave(self) -> None:
        """Wait until all have gone, but not for ever."""
        for actor in tuple(self._actors):
            await self._ends(actor)
        until = time.monotonic() + _LEAVE_S
        while time.monotonic() < until:
            gc.collect()
            now = self.sample()
            if not (now.tables or now.players or now.launched):
                return
            await asyncio.sleep(0.5)


def _below(pid: int, processes: LinuxProcesses, without: set[int]) -> set[int]:
    """All processes below one, without some and those below them."""
    table = [entry for entry in processes.table().values() if entry.pid not in without]
    return {entry.pid for entry in tree_of(pid, table)[0]}


def _size_mib(database: Path) -> float:
    files = database.parent.glob(f"{database.name}*")
    return sum(file.stat().st_size for file in files) / MIB


async def soak(minutes: float, every_s: float, as_json: bool) -> SoakOutcome:
    """Run a soak in an arena with a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "soak.db"
        verdicts: list[Soak] = []

        def ruled(verdict: Verdict) -> None:
            verdicts[0].ruled(verdict)

        with Store(database) as store:
            async with Host(store, limits=LIMITS, on_verdict=ruled) as host:
                verdicts.append(Soak(host, store, database, minutes, every_s))
                outcome = await verdicts[0].run(as_json)
            await store.flushed()
    return outcome


def main() -> int:
    """Soak, and print what was found; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--every", type=float, default=10.0, help="s between samples")
    parser.add_argument(
        "--bound", type=float, default=0.5, help="MiB a minute that memory may grow"
    )
    parser.add_argument("--json", action="store_true", help="one document at the end")
    options = parser.parse_args()
    outcome = asyncio.run(soak(options.minutes, options.every, options.json))
    faults = outcome.faults(options.bound)
    if options.json:
        print(json.dumps(document(outcome, faults)))
    else:
        show(outcome)
        print("\n".join(["", *faults] if faults else ["nothing is left, nobody wronged"]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
