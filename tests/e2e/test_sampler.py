"""The sampler over real processes, below a supervisor as in an arena.

Every program prints `hello` when it is up and ends when its stdin does. Hogs hold at most 400 MiB,
and are killed at the end of the test.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from arena.games.verdict import Finding
from arena.sandbox import process_table
from arena.sandbox.process_table import LinuxProcesses, ProcessEntry, Processes, PsutilProcesses
from arena.sandbox.process_usage import MIB, tree_of
from arena.sandbox.sampler import Sampler
from protocol.messages import Limits
from tests.support.needs import skip_without, tool

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux"),
]

LIMITS = Limits(memory_mib=256, processes=8)
TIMEOUT_S = 300.0  # all of it takes some tenths of a second

SUPERVISOR = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
subprocess.Popen(sys.argv[1:])
sys.stdin.close()  # the bot's alone
try:
    while True: os.wait()
except ChildProcessError:
    pass
"""

HELLO = "print('hello', flush=True); input()"
HOG = "hoard = b'x' * (320 << 20); print('hello', flush=True); input()"


# Its main thread ends, another one goes on: the kernel calls such a process a zombie.
HEADLESS = """
    #include <iostream>
    #include <pthread.h>
    #include <vector>
    static void* work(void* main) {
        pthread_join(*static_cast<pthread_t*>(main), nullptr);
        std::vector<char> hoard(320u << 20, 1);
        std::cout << "hello" << std::endl;
        std::cin.get();
        _Exit(hoard[7] - 1);
    }
    int main() {
        static pthread_t self = pthread_self();
        pthread_t other;
        pthread_create(&other, nullptr, work, &self);
        pthread_exit(nullptr);
    }"""

FORK = "import os, signal, sys, time\n"
SAY = "print('hello', flush=True)\n"
MEMFD = """
def hoard(mib):
    file = os.memfd_create("hoard")
    for _ in range(mib): os.write(file, b'x' * (1 << 20))
    return file
"""
HOARD = FORK + MEMFD + "hoard(150); hoard(170)\n" + SAY + "input()"
SPIN = """
def spin(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds: pass
"""


def compiled(program: str, folder: Path) -> list[str]:
    """What runs a program in C++."""
    (folder / "bot.cc").write_text(program)
    words = [tool("g++"), "-O1", "-pthread", "-o", str(folder / "bot"), str(folder / "bot.cc")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [str(folder / "bot")]


def everything(reader: Processes) -> Collection[ProcessEntry]:
    """All processes of this machine."""
    return reader.entries(reader.pids()).values()


class SupervisedProgram:
    """A program below a supervisor, up to its `hello`."""

    def __init__(self, words: list[str]) -> None:
        self.supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SUPERVISOR, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def says(self, text: str = "hello") -> None:
        stream = self.supervisor.stdout
        assert stream is not None
        line = await asyncio.to_thread(stream.readline)
        assert line.strip() == text

    def go_on(self) -> None:
        """Send the line that it waits for."""
        assert self.supervisor.stdin is not None
        self.supervisor.stdin.write("\n")
        self.supervisor.stdin.flush()

    def end(self) -> None:
        """Kill the whole tree; the supervisor adopts orphans, so repeat until none is left."""
        for _ in range(100):
            tree, _ = tree_of(self.supervisor.pid, everything(LinuxProcesses()))
            if not tree:
                break
            for entry in tree:
                with suppress(ProcessLookupError):
                    os.kill(entry.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.supervisor.wait(0.05)
        self.supervisor.kill()
        self.supervisor.communicate()


@pytest.fixture
def keep() -> Iterator[Callable[[list[str]], SupervisedProgram]]:
    programs: list[SupervisedProgram] = []

    def call(words: list[str]) -> SupervisedProgram:
        programs.append(SupervisedProgram(words))
        return programs[-1]

    yield call
    for program in programs:
        program.end()


def python(program: str) -> list[str]:
    return [sys.executable, "-c", FORK + SPIN + program]


class WatchingSampler:
    """A sampler that watches one bot, `ann`."""

    def __init__(self, bot: SupervisedProgram, processes: Processes | None = None) -> None:
        self.found: list[tuple[str, str]] = []
        self._event = asyncio.Event()
        self.sampler = Sampler(LIMITS, self._note, processes or LinuxProcesses())
        self.sampler.start()
        self.sampler.watch("ann", bot.supervisor.pid)

    def _note(self, name: str, finding: Finding) -> None:
        assert name == "ann"
        self.found.append((finding.kind.value, finding.text))
        self._event.set()

    async def finds(self) -> tuple[str, str]:
        await self._event.wait()
        return self.found[0]

    async def samples(self, count: int) -> None:
        until = self.sampler.samples + count
        while self.sampler.samples < until:
            await asyncio.sleep(0.01)

    @property
    def cpu_ms(self) -> float:
        return self.sampler.cpu_ms("ann")


@asynccontextmanager
async def watched(
    bot: SupervisedProgram, processes: Processes | None = None
) -> AsyncIterator[tuple[SupervisedProgram, WatchingSampler]]:
    """A bot, and a sampler that watches it from its start."""
    watcher = WatchingSampler(bot, processes)
    try:
        yield bot, watcher
    finally:
        watcher.sampler.close()


async def is_fine(bot: SupervisedProgram, watcher: WatchingSampler) -> None:
    await bot.says()
    await watcher.samples(3)

    assert watcher.found == []


async def holds_too_much(
    bot: SupervisedProgram, watcher: WatchingSampler, least: int = 320
) -> None:
    kind, text = await watcher.finds()
    word, held, *rest = text.split()

    assert (kind, word) == ("memory", "memory")
    assert rest == ["MiB", ">", "256", "MiB", "(sampled)"]
    assert 256 < int(held) < 2 * least


Keep = Callable[[list[str]], SupervisedProgram]


# ---- Memory: of one, of a child and in a memfd is in `test_rogues`, as is a bomb of processes

_FORK = "os.fork() and (time.sleep(60), sys.exit())\n"
HOGS = {
    "a grandchild": _FORK * 2 + HOG,
    "left by its parents": (
        "os.fork() and os._exit(0)\nos.setsid()\nos.fork() and os._exit(0)\n" + HOG
    ),
    "a peak, free again": "hoard = b'x' * (320 << 20); del hoard\n" + SAY + "input()",
    "three together": "os.fork(); os.fork()\nhoard = b'x' * (100 << 20)\ntime.sleep(60)",
}


@pytest.mark.parametrize("hog", HOGS)
async def test_a_hog_is_found(keep: Keep, hog: str) -> None:
    async with watched(keep(python(HOGS[hog]))) as watching:
        await holds_too_much(*watching, 420 if hog == "three together" else 320)


FINE = {
    "threads are no processes": (
        "import threading\nfor _ in range(20): threading.Thread(target=input).start()\n" + SAY
    ),
    "a memfd that holds nothing, however long": (
        "file = os.memfd_create('sparse'); os.truncate(file, 1 << 40)\n" + SAY + "input()"
    ),
    "a memfd that is mapped counts once": (
        MEMFD
        + "import mmap\nfile = hoard(170)\nmapped = mmap.mmap(file, 170 << 20)\n"
        + "sum(mapped[at] for at in range(0, len(mapped), 4096))\n"
        + "os.fork() or time.sleep(60)\n"
        + SAY
        + "input()"
    ),
}


@pytest.mark.parametrize("what", FINE)
async def test_what_is_within_the_limits_is_not_found(keep: Keep, what: str) -> None:
    async with watched(keep(python(FINE[what]))) as watching:
        await is_fine(*watching)


async def test_a_hog_whose_main_thread_has_ended_is_found(keep: Keep, tmp_path: Path) -> None:
    async with watched(keep(compiled(HEADLESS, tmp_path))) as watching:
        await holds_too_much(*watching)


async def test_memory_that_children_share_counts_once(keep: Keep) -> None:
    shared = (
        "hoard = b'x' * (120 << 20)\n"
        "if os.fork() and os.fork() and os.fork(): print('hello', flush=True)\n"
        "time.sleep(60)"
    )

    async with watched(keep(python(shared))) as (bot, watcher):
        await bot.says()
        await watcher.samples(5)
        reader = LinuxProcesses()
        tree, _ = tree_of(bot.supervisor.pid, everything(reader))
        held = [memory.rss_bytes for pid in tree if (memory := reader.memory(pid.pid))]

        assert len(held) == 4
        assert sum(held) > 400 * MIB
        assert watcher.found == []


# ---- Files in memory


LOOK = """
import subprocess, sys
kept = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
kept.stdout.readline()
reader = LinuxProcesses()
found = [reader.files(pid) for pid in reader.pids()]
print(os.getuid(), *sorted(size >> 20 for files in found for size in files.values()))
kept.communicate(b"go on")
"""


@pytest.mark.parametrize(
    ("hides", "seen"),
    [("", ["150", "170"]), ("ctypes.CDLL(None).prctl(4, 0)\n", [])],
    ids=["as it is", "not dumpable"],
)
def test_memfds_are_seen_by_a_user_without_rights_unless_the_bot_hides(
    hides: str, seen: list[str]
) -> None:
    """An arena that is not root's, with bubblewrap's namespaces; the manual has the second case."""
    skip_without("bwrap", "root")
    wrapped = "--ro-bind / / --proc /proc --unshare-user --unshare-pid --disable-userns"
    program = "import ctypes\n" + HOARD.replace(SAY, hides + SAY)
    system = "/usr/bin/python3"  # the tests' own is root's alone
    done = subprocess.run(
        [
            *(tool("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"),
            *(system, "-c", Path(process_table.__file__).read_text() + LOOK),
            *(tool("bwrap"), *wrapped.split(), "--", system, "-c", program),
        ],
        capture_output=True,
        text=True,
        cwd="/tmp",
        timeout=TIMEOUT_S,
        check=False,
    )

    assert done.stdout.split() == ["65534", *seen], done.stderr


# ---- Processes


async def test_zombies_are_no_processes(keep: Keep) -> None:
    program = "for _ in range(20): os.fork() or os._exit(0)\n" + SAY + "input()"

    async with watched(keep(python(program))) as (bot, watcher):
        await is_fine(bot, watcher)
        tree, _ = tree_of(bot.supervisor.pid, everything(LinuxProcesses()))

        assert sum(entry.is_zombie for entry in tree) == 20


async def test_the_sandbox_is_no_process_of_the_bot(keep: Keep) -> None:
    skip_without("bwrap")
    frame = "--dev-bind / / --proc /proc --unshare-user --unshare-pid --die-with-parent"
    program = "for _ in range(7): os.fork() or time.sleep(60)\n" + SAY + "input()"
    bot = keep([tool("bwrap"), *frame.split(), "--", *python(program)])

    async with watched(bot) as (bot, watcher):
        await is_fine(bot, watcher)
        tree, structure = tree_of(bot.supervisor.pid, everything(LinuxProcesses()))

        assert (len(tree), len(structure)) == (10, 2)


# ---- CPU time


async def test_a_spinner_in_a_child_is_charged_and_a_sleeper_is_not(keep: Keep) -> None:
    program = SAY + "input()\n" + SAY + "os.fork() or spin(20)\ntime.sleep(60)"

    async with watched(keep(python(program))) as (bot, watcher):
        await bot.says()
        await watcher.samples(2)  # it gets from its print to its input
        began_ms = watcher.cpu_ms
        await watcher.samples(4)

        assert began_ms > 1, "Python does not start in less"
        assert watcher.cpu_ms - began_ms < 1
        bot.go_on()
        await bot.says()
        while (spun_ms := watcher.cpu_ms - began_ms) < 200:
            await watcher.samples(1)
        assert spun_ms < 1000 * TIMEOUT_S


ENDED = {
    "waited for": "os.fork() or (spin(.4), os._exit(0))\nos.wait()\n",
    "an orphan": (
        "if not os.fork():\n"
        "    os.fork() and os._exit(0)\n"
        "    spin(.4); os.write(ready[1], b'.'); os._exit(0)\n"
        "os.read(ready[0], 1)\n"
    ),
    "ignored": (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if not os.fork():\n"
        "    spin(.4); time.sleep(.5); os.write(ready[1], b'.'); os._exit(0)\n"
        "os.read(ready[0], 1)\n"
    ),
}


@pytest.mark.parametrize("how", sorted(ENDED))
async def test_a_child_that_has_ended_is_still_charged(keep: Keep, how: str) -> None:
    program = "ready = os.pipe()\n" + ENDED[how] + SAY + "input()"

    async with watched(keep(python(program))) as (bot, watcher):
        await bot.says()
        await watcher.samples(4)
        charged_ms = watcher.cpu_ms

        assert 380 <= charged_ms < 800
        await watcher.samples(4)
        assert charged_ms <= watcher.cpu_ms < charged_ms + 1


async def test_nothing_is_forgotten_when_the_whole_bot_has_ended(keep: Keep) -> None:
    async with watched(keep(python("spin(.3)\n" + SAY + "input()"))) as (bot, watcher):
        await bot.says()
        charged_ms = watcher.cpu_ms
        bot.go_on()
        bot.supervisor.wait(TIMEOUT_S)
        await watcher.samples(3)

        assert 300 <= charged_ms <= watcher.cpu_ms < charged_ms + 100
        assert watcher.found == []


# ---- psutil


async def test_psutil_finds_the_same(keep: Keep) -> None:
    skip_without("psutil")
    hog = "os.fork() and time.sleep(60)\n" + HOG

    async with watched(keep(python(hog)), PsutilProcesses()) as (bot, watcher):
        await holds_too_much(bot, watcher)

        assert watcher.cpu_ms > 1


async def test_psutil_finds_nothing_in_a_hello_world(keep: Keep) -> None:
    skip_without("psutil")
    async with watched(keep(python(HELLO)), PsutilProcesses()) as watching:
        await is_fine(*watching)
