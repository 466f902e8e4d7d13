"""Bots as real processes: what they see, how they end, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

import bots
from arena.competitions.live_arena import LiveArena
from arena.games.verdict import Finding
from arena.sandbox import process, supervisor
from arena.sandbox.cgroup import Cgroup
from arena.sandbox.launcher import LaunchedBot, Launcher, Program, bot_command, read_program
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits
from tests.support.bot_processes import living
from tests.support.needs import skip_without

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

TIMEOUT_S = 300.0  # nothing here takes more than a second or two
CLOSE_S = 100.0  # what closing may take at worst on a loaded machine; bots sleep far longer
BOTH_WAYS = pytest.mark.parametrize("isolate", [False, True], ids=["open", "isolated"])

# Leaves the family in every way there is, and holds on to all pipes.
ESCAPE = """
import os, signal, sys, time
if not os.fork():
    os.setsid()
    if not os.fork():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("up", file=sys.stderr, flush=True)
        time.sleep(1000)
    os._exit(0)
os.wait()
"""
STAY = "\ntime.sleep(1000)\n"

# Tells what it sees as JSON on stderr.
LOOK = """
import json, os, sys
def read(path):
    try:
        with open(path) as file: return file.read()
    except OSError as error: return type(error).__name__
def write(path):
    try:
        with open(path, "w") as file: return "written"
    except OSError as error: return type(error).__name__
probes = "--probe" in sys.argv
print(json.dumps({
    "cwd": os.getcwd(), "names": sorted(os.listdir()), "environment": dict(os.environ),
    "read": {path: read(path) for path in sys.argv[1:]},
    "listed": {path: os.listdir(path) for path in ("/", os.path.dirname(os.getcwd())) if probes},
    "written": {
        path: write(path) for path in ("mine", "bot.py", "/etc/x", "/usr/x", "/x") if probes
    },
    "caps": [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")][0],
}), file=sys.stderr)
"""


def until(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"expected {what}"
        time.sleep(0.01)


class LaunchingArena:
    """Starts bots from a folder, and records the findings."""

    def __init__(
        self, folder: Path, hidden: Sequence[Path], limits: Limits, *, isolate: bool
    ) -> None:
        self.folder = folder
        self.findings: asyncio.Queue[tuple[str, Finding]] = asyncio.Queue()
        self.launcher = Launcher(
            limits, hidden, lambda *found: self.findings.put_nowait(found), isolate=isolate
        )

    async def start(
        self, text: str, *, name: str | None = None, url: str = "", token: str = ""
    ) -> LaunchedBot:
        """Start a command line, in which `python` is our interpreter, under a unique name."""
        line = text.replace("python ", f"{sys.executable} ", 1)
        program = read_program(line, self.folder)
        return await self.launcher.start(name or f"bot-{uuid4()}", program, url=url, token=token)

    async def runs(self, source: str, *arguments: str, stdio: bool = False) -> LaunchedBot:
        """Start a Python program from its text."""
        (self.folder / "bot.py").write_text(source)
        words = (sys.executable, "bot.py", *arguments)
        program = Program(words=words, stdio=stdio, folder=self.folder)
        return await self.launcher.start(f"bot-{uuid4()}", program)

    async def found(self) -> Finding:
        """The next finding."""
        async with asyncio.timeout(TIMEOUT_S):
            return (await self.findings.get())[1]

    async def said(self, bot: LaunchedBot, word: str) -> None:
        """Wait until a bot has written something to stderr."""
        async with asyncio.timeout(TIMEOUT_S):
            while word not in self.launcher.tail(bot.name):
                await asyncio.sleep(0.01)


@asynccontextmanager
async def arena(
    folder: Path,
    *,
    isolate: bool = False,
    hidden: Sequence[Path] = (),
    limits: Limits | None = None,
) -> AsyncIterator[LaunchingArena]:
    if isolate:
        skip_without("bwrap")
    here = LaunchingArena(folder, hidden, limits or Limits(), isolate=isolate)
    try:
        yield here
    finally:
        began_s = time.monotonic()
        await here.launcher.close()
        assert time.monotonic() - began_s < CLOSE_S


# ---- What it sees


@BOTH_WAYS
async def test_it_runs_in_a_directory_of_its_own_with_nothing_of_ours(
    tmp_path: Path, isolate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_DATABASE", "secret")
    monkeypatch.setenv("LC_NUMERIC", "C")
    (tmp_path / ".env").touch()
    (tmp_path / "arena.db").write_text("secret")
    (tmp_path / "arena.db-wal").write_text("secret")
    (tmp_path / "bot.py").write_text(LOOK)

    hidden = [tmp_path / "arena.db"]
    async with arena(tmp_path, isolate=isolate, hidden=hidden) as here:
        bot = await here.start("python bot.py", url="ws://x", token="once")
        saw = json.loads((await here.found()).stderr or "")

        assert saw["names"] == ["bot.py"]
        environment = saw["environment"]
        assert environment["ARENA_URL"] == "ws://x"
        assert environment["ARENA_TOKEN"] == "once"
        assert environment["ARENA_NAME"] == bot.name
        assert environment["HOME"] == environment["TMPDIR"] == saw["cwd"]
        assert environment["LC_NUMERIC"] == "C"
        assert "secret" not in environment.values()
        assert set(environment) <= {
            *("ARENA_URL", "ARENA_TOKEN", "ARENA_NAME", "HOME", "TMPDIR", "PWD"),
            *("PATH", "TZ", "LANG", "LANGUAGE", "JAVA_HOME"),
            *(key for key in environment if key.startswith("LC_")),
        }
        isolation = "isolated (bubblewrap)" if isolate else "not isolated"
        assert bot.enforced.startswith("time, memory and processes (")
        assert bot.enforced.endswith(f", {isolation}")
    assert not os.path.exists(saw["cwd"])
    assert not os.path.exists(os.path.dirname(saw["cwd"]))


@BOTH_WAYS
async def test_a_command_that_names_a_folder_sees_that_folder(
    tmp_path: Path, isolate: bool
) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "bot.py").write_text("import helper" + LOOK)
    (tmp_path / "ann" / "helper.py").touch()
    (tmp_path / "ben").mkdir()

    async with arena(tmp_path, isolate=isolate) as here:
        await here.start("python ann/bot.py")
        saw = json.loads((await here.found()).stderr or "")

        assert saw["names"] == ["ann"]


async def test_in_a_sandbox_the_arenas_files_and_other_bots_are_out_of_sight(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "arena.db"
    secret.write_text("secret")

    async with arena(tmp_path, isolate=True, hidden=[secret]) as here:
        other = await here.runs(ESCAPE + STAY)
        await here.said(other, "up")
        home = next(Path(f"/proc/{pid}/cwd").readlink() for pid in living(other.name))
        (home / "record").write_text("secret")
        paths = [str(secret), str(home / "record"), "/etc/shadow"]
        # Once without naming them in the command line, once with that.
        await here.runs(LOOK.replace("sys.argv[1:]", repr(paths)), "--probe")
        saw = json.loads((await here.found()).stderr or "")
        await here.runs(LOOK, *paths)
        named = json.loads((await here.found()).stderr or "")["read"]
        ours = f"/proc/{os.getpid()}/environ"
        await here.runs(LOOK.replace("sys.argv[1:]", repr([ours])))
        assert json.loads((await here.found()).stderr or "")["read"] == {ours: "FileNotFoundError"}

        for path in paths[:2]:
            assert saw["read"][path] == named[path] == "FileNotFoundError"
        # Without the right to read it, or with nothing in it.
        assert saw["read"]["/etc/shadow"] in ("PermissionError", "", "FileNotFoundError")
        assert home.name not in saw["listed"][str(home.parent)]
        shown = {Path(where).parts[1] for where in (sys.prefix, sys.base_prefix, bots.__file__)}
        assert not ({"home", "var", "srv", "run", "sys"} - shown) & set(saw["listed"]["/"])
        assert saw["written"] == {
            "mine": "written",
            **dict.fromkeys(("bot.py", "/etc/x", "/usr/x", "/x"), "OSError"),
        }
        assert int(saw["caps"], 16) == 0


async def test_what_the_arena_writes_later_is_out_of_sight_too(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "bot.py").write_text(
        "import os, sys\ninput()\nprint(os.listdir(), os.listdir('ann'), flush=True)"
    )
    hidden = [tmp_path / "arena.db", tmp_path / "ann" / "arena.db"]

    async with arena(tmp_path, isolate=True, hidden=hidden) as here:
        bot = await here.start("stdio: python ann/bot.py")
        for path in hidden:
            path.touch()

        assert await talk(bot, b"now\n") == b"['ann'] ['bot.py']\n"


async def test_a_stdio_program_in_a_sandbox_has_no_network(tmp_path: Path) -> None:
    skip_without("bwrap")
    source = """
import socket
input()
print(sorted(name for _, name in socket.if_nameindex()), flush=True)
"""

    async with arena(tmp_path, isolate=True) as here:
        bot = await here.runs(source, stdio=True)

        assert await talk(bot, b"\n") in (b"['lo']\n", b"[]\n")


# ---- Programs


@BOTH_WAYS
async def test_a_house_bot_from_a_file_connects(tmp_path: Path, isolate: bool) -> None:
    source = "from bots.ace_king_queen import Nash\nclass Mine(Nash): pass\n"
    (tmp_path / "mine.py").write_text(source)
    words = bot_command(("mine.py",), url="ws://127.0.0.1:1", name="ann")
    words[words.index("--patience") + 1] = "0"
    words += ("--wait", "0")

    async with arena(tmp_path, isolate=isolate) as here:
        program = Program(words=tuple(words), folder=tmp_path)
        await here.launcher.start("ann", program)
        finding = await here.found()

        assert finding.exit_status == 1
        assert "127.0.0.1:1" in (finding.stderr or "")  # nobody is there


async def test_where_nothing_can_be_sampled_a_bot_runs_and_its_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.sandbox.launcher.probe", lambda: "there is no /proc")
    monkeypatch.setattr("arena.sandbox.cgroup.make", lambda name, limits: None)

    async with arena(tmp_path) as here:
        bot = await here.runs("import time\ntime.sleep(1000)")

        assert (bot.enforced, bot.is_metered) == ("time, not isolated", False)
        assert (bot.cpu_ms(), bot.peak()) == (0, (0, 0))


async def talk(bot: LaunchedBot, line: bytes) -> bytes:
    """Write a line to a stdio program, close the pipe, and read all that it answers."""
    assert bot.pipes is not None
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    outcome, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(bot.pipes.stdout_fd, "rb")
    )
    income, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(bot.pipes.stdin_fd, "wb"))
    income.write(line)
    income.close()
    async with asyncio.timeout(TIMEOUT_S):
        said = await reader.read()
    outcome.close()
    return said


# ---- How it ends


@BOTH_WAYS
async def test_a_program_that_ends_by_itself_has_crashed(tmp_path: Path, isolate: bool) -> None:
    source = "import sys\nsys.stderr.buffer.write(b'x' * 5_000_000 + b'\\xff!')\nsys.exit(1)"

    async with arena(tmp_path, isolate=isolate) as here:
        bot = await here.runs(source)
        finding = await here.found()

        assert finding.kind is Ending.CRASH
        assert finding.text == "crashed: exit status 1"
        assert finding.mechanism == "exit"
        assert finding.exit_status == 1
        assert finding.stderr == "x" * 1998 + "\N{REPLACEMENT CHARACTER}!"
        assert bot.cpu_ms() > 0
        await here.launcher.stop(bot.name)
        assert here.findings.empty()


@BOTH_WAYS
@pytest.mark.parametrize(
    ("ends", "status", "text"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, "killed by SIGSEGV"),
        *((f"sys.exit({status})", status, f"exit status {status}") for status in (127, 201, 255)),
    ],
)
async def test_a_signal_has_its_name_and_a_high_exit_status_is_none(
    tmp_path: Path, isolate: bool, ends: str, status: int, text: str
) -> None:
    async with arena(tmp_path, isolate=isolate) as here:
        await here.runs(f"import os, signal, sys\n{ends}")
        finding = await here.found()

    assert (finding.exit_status, finding.text) == (status, f"crashed: {text}")


async def test_a_program_that_cannot_be_executed_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "bot").write_bytes(b"\x7fELF but not really")
    (tmp_path / "bot").chmod(0o755)

    async with arena(tmp_path) as here:
        with pytest.raises(ArenaError, match="Exec format error"):
            await here.start("./bot", name="ann")

        assert here.findings.empty()
        until(lambda: not living("ann"), "its supervisor has ended")  # which has just said so
        (tmp_path / "bot").write_text("#!/bin/sh\nexit 5\n")
        await here.start("./bot", name="ann")
        assert (await here.found()).exit_status == 5


async def test_two_bots_do_not_have_one_name_but_one_after_another_do(tmp_path: Path) -> None:
    async with arena(tmp_path) as here:
        line = "python -c 'import time; time.sleep(1000)'"
        await here.start(line, name="ann")
        with pytest.raises(UsageError, match="expected a name that no bot has"):
            await here.start(line, name="ann")
        await here.launcher.stop("ann")
        await here.launcher.stop("nobody")
        await here.start(line, name="ann")
        await here.launcher.close()
        with pytest.raises(ArenaError, match="the arena is closing"):
            await here.start(line, name="ben")

        assert here.findings.empty()


async def test_with_a_control_group_the_kernel_has_the_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Cgroup(tmp_path / "group", Limits(memory_mib=64))
    group.path.mkdir()
    (group.path / "memory.events").write_text("oom 1\noom_kill 1\n")
    (group.path / "cpu.stat").write_text("usage_usec 1500\n")
    monkeypatch.setattr("arena.sandbox.cgroup.make", lambda name, limits: group)
    source = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    (tmp_path / "bots").mkdir()
    joined = []

    async with arena(tmp_path / "bots") as here:
        bot = await here.runs(source)
        joined.append(group.procs.read_text())
        finding = await here.found()

        assert bot.enforced == "time, memory and processes (cgroup), not isolated"
        assert joined == [str(bot.pid)]
        assert bot.cpu_ms() == 1.5
        assert (finding.kind, finding.mechanism) == (Ending.MEMORY, "cgroup")
        assert finding.exit_status == -signal.SIGKILL


async def test_a_bot_that_cannot_join_its_control_group_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Cgroup(tmp_path / "gone", Limits())
    monkeypatch.setattr("arena.sandbox.cgroup.make", lambda name, limits: group)

    async with arena(tmp_path) as here:
        with pytest.raises(ArenaError, match=r"No such file .*gone/cgroup\.procs"):
            await here.runs("")

        assert here.findings.empty()


@pytest.mark.parametrize(("option", "is_advised"), [("", True), ("-Xmx700m ", False)])
async def test_java_without_a_heap_limit_is_advised_to_set_one(
    tmp_path: Path, option: str, is_advised: bool
) -> None:
    skip_without("javac")
    (tmp_path / "Hog.java").write_text(
        "class Hog { public static void main(String[] given) throws Exception { byte one = 1;"
        " byte[] kept = new byte[600 << 20]; java.util.Arrays.fill(kept, one);"
        " Thread.sleep(60_000); } }"
    )
    with Store(tmp_path / "arena.db") as store:
        async with LiveArena(store, limits=Limits(memory_mib=256)) as host:
            program = read_program(f"java {option}Hog.java", tmp_path)
            await host.supervisor.launch_program(program, "hog")
            await host.wait_for_bots(["hog"], 100)
            ended = host.supervisor.ended["hog"]
    assert " MiB" in ended
    assert ("; limit Java's heap, as in `java -Xmx128m`" in ended) is is_advised


# ---- Nothing is left


@BOTH_WAYS
async def test_a_bot_is_asked_before_it_is_killed(tmp_path: Path, isolate: bool) -> None:
    source = """
import signal, sys, time
def leave(*_):
    print("bye", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, leave)
print("up", file=sys.stderr, flush=True)
time.sleep(1000)
"""

    async with arena(tmp_path, isolate=isolate) as here:
        bot = await here.runs(source, stdio=True)
        await here.said(bot, "up")
        await here.launcher.stop(bot.name)

        assert bot.pipes is not None
        assert os.read(bot.pipes.stdout_fd, 100) == b"bye\n"
        os.close(bot.pipes.stdout_fd)
        os.close(bot.pipes.stdin_fd)


@BOTH_WAYS
async def test_who_has_left_the_family_and_holds_stderr_does_not_hold_up_the_end(
    tmp_path: Path, isolate: bool
) -> None:
    async with arena(tmp_path, isolate=isolate) as here:
        bot = await here.runs(ESCAPE + STAY)
        await here.said(bot, "up")
        assert len(living(bot.name)) >= 3
        began_s = time.monotonic()
        await here.launcher.close()

        assert time.monotonic() - began_s < CLOSE_S
        assert living(bot.name) == []
        assert here.findings.empty()


async def test_an_arena_whose_tasks_were_all_cancelled_closes(tmp_path: Path) -> None:
    """As at the end of a loop that a failure has stopped: it once looked for its bots for ever."""
    async with arena(tmp_path) as here:
        bot = await here.runs(ESCAPE + STAY)
        await here.said(bot, "up")
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        async with asyncio.timeout(CLOSE_S):
            await here.launcher.close()

        assert living(bot.name) == []


@BOTH_WAYS
async def test_what_a_bot_leaves_behind_goes_with_it(tmp_path: Path, isolate: bool) -> None:
    source = ESCAPE + "time.sleep(0.1)\nsys.exit(7)"

    async with arena(tmp_path, isolate=isolate) as here:
        bot = await here.runs(source)

        assert (await here.found()).exit_status == 7
        await asyncio.to_thread(until, lambda: not living(bot.name), "no process")


@BOTH_WAYS
async def test_who_forks_all_the_time_is_ended_all_the_same(
    tmp_path: Path, isolate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_PATIENCE_S", -supervisor.GRACE_S)  # SIGKILL is due at once
    # Each process soon forks a successor with a session of its own: at most some dozens at once.
    source = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(15):
    if not os.fork():
        while True:
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.002)
print("up", file=sys.stderr, flush=True)
time.sleep(1000)
"""

    limits = Limits(processes=500)
    async with arena(tmp_path, isolate=isolate, limits=limits) as here:
        bot = await here.runs(source)
        await here.said(bot, "up")
        await here.launcher.stop(bot.name)

        assert living(bot.name) == []


async def test_a_bot_that_is_starting_when_the_arena_closes_is_ended_too(tmp_path: Path) -> None:
    async with arena(tmp_path) as here:
        line = "python -c 'import time; time.sleep(1000)'"
        starting = asyncio.create_task(here.start(line, name="late"))
        await asyncio.sleep(0)  # its folder is being prepared, by a thread
        await here.launcher.close()
        with pytest.raises(ArenaError, match="the arena is closing"):
            await starting

        assert living("late") == []
        assert here.findings.empty()


async def test_the_supervisor_ends_a_bot_that_has_stopped_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_KILLING_S", 10 * CLOSE_S)
    stops = "os.kill(os.getppid(), signal.SIGSTOP)\nprint('stopped', file=sys.stderr, flush=True)"
    async with arena(tmp_path) as here, asyncio.timeout(CLOSE_S):
        bot = await here.runs(ESCAPE + stops + STAY)
        await here.said(bot, "stopped")
        await here.launcher.stop(bot.name)

        assert living(bot.name) == []


async def test_a_bot_that_kills_its_supervisor_does_not_get_away(tmp_path: Path) -> None:
    source = ESCAPE + "os.kill(os.getppid(), signal.SIGKILL)" + STAY

    async with arena(tmp_path) as here:
        bot = await here.runs(source)
        finding = await here.found()

        assert finding.kind is Ending.CRASH
        assert finding.exit_status is None
        assert "its supervisor was killed" in finding.text
        await asyncio.to_thread(until, lambda: not living(bot.name), "no process")


ARENA = """
import asyncio, sys
from pathlib import Path
from arena.sandbox.launcher import Launcher, read_program
from protocol.messages import Limits

async def main():
    launcher = Launcher(Limits(), (), print, isolate=sys.argv[2] == "isolate")
    program = read_program(sys.executable + " bot.py", Path.cwd())
    await launcher.start(sys.argv[1], program)
    while "up" not in launcher.tail(sys.argv[1]):
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@BOTH_WAYS
def test_when_the_arena_is_killed_its_bots_go_with_it(tmp_path: Path, isolate: bool) -> None:
    if isolate:
        skip_without("bwrap")
    (tmp_path / "bot.py").write_text(ESCAPE + STAY)
    name = f"bot-{uuid4()}"
    with subprocess.Popen(
        [sys.executable, "-c", ARENA, name, "isolate" if isolate else ""],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        [home] = {os.readlink(f"/proc/{pid}/cwd") for pid in living(name)}
        assert len(living(name)) >= 3
        process.kill()

    until(lambda: not living(name), "no process of the bot to be left")
    assert not os.path.exists(home)
    assert not os.path.exists(os.path.dirname(home))
