"""Submissions as they are played: built, sealed off, behind the relay; honest ones and hostile ones."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import Mock
from uuid import uuid4

import pytest

from arena.authoring.starter import starter
from arena.competitions.live_arena import LiveArena
from arena.games.catalogue import GAMES
from arena.games.verdict import Finding
from arena.referee.timers import Timers
from arena.sandbox import bubblewrap
from arena.sandbox.command import sealed_program
from arena.sandbox.languages import Language
from arena.sandbox.launcher import Launcher
from arena.sandbox.manifest import ProgramManifest
from arena.server.stdio import Pipe
from arena.storage.store import Store
from protocol.messages import Ending, Limits
from tests.e2e.test_build import LEAVE, LOOK
from tests.support.bot_processes import living
from tests.support.needs import skip_without
from tests.support.submitted import play, submitted
from tests.tools.starters import NEEDS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

TIMEOUT_S = 60.0
# Connects as a bot does, and then does its deed.
CONNECT = """
import os, warnings
from websockets.sync.client import connect
warnings.simplefilter("ignore")  # it is not closed
websocket = connect(os.environ["ARENA_URL"], compression=None)
websocket.send("{}")
"""


@asynccontextmanager
async def launched(
    folder: Path, script: str, *arguments: str, limits: Limits | None = None
) -> AsyncIterator[Finding]:
    """What is found of a submission with this script; in the end nothing of it is left."""
    skip_without("bwrap")
    (folder / "bot.py").write_text(script)
    (folder / ".data").touch()
    findings: asyncio.Queue[Finding] = asyncio.Queue()
    launcher = Launcher(
        limits or Limits(),
        [folder.parent / "arena" / "arena.db"],
        lambda _, found: findings.put_nowait(found),
    )
    name = f"sealed-{uuid4()}"
    manifest = ProgramManifest("python", (sys.executable, "bot.py", *arguments), stdio=False)
    try:
        bot = await launcher.start(name, sealed_program(folder, manifest))
        assert bot.pipes is not None
        timers = Timers(asyncio.get_running_loop())
        await Pipe.open(Mock(), Limits(), timers, name, bot.pipes)
        async with asyncio.timeout(TIMEOUT_S):
            yield await findings.get()
    finally:
        await launcher.close()
        assert living(name) == []
        assert list(Path(tempfile.gettempdir()).glob("arena-*")) == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a submission lies, beside a database and another submission."""
    for name in ("scratch", "arena", "ann", "ben"):
        (tmp_path / name).mkdir()
    (tmp_path / "arena" / "arena.db").write_text("secret")
    (tmp_path / "ben" / "bot.py").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path / "ann"


# ---- Hostile ones


async def test_it_sees_its_own_files_and_reaches_nobody(folder: Path) -> None:
    look = LOOK.replace("print(json.dumps({", 'print(json.dumps({"mine": sorted(os.listdir()),')
    targets = (str(folder.parent / "arena" / "arena.db"), str(folder.parent / "ben"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        async with launched(folder, CONNECT + look, *targets, port, str(os.getpid())) as finding:
            saw = json.loads(finding.stderr or "")

    assert saw.pop("mine") == [".data", "bot.py"]
    del saw["write into the program"]  # it looks for that elsewhere, in a /tmp of its own
    assert "got in" not in saw.values(), saw


@pytest.mark.skipif(not os.access("/opt", os.W_OK), reason="a private file is put there")
async def test_it_does_not_see_what_our_account_alone_may_read_below_opt(folder: Path) -> None:
    look = "import sys; sys.exit(repr(open(sys.argv[1]).read()))"
    with tempfile.NamedTemporaryFile("w", dir="/opt") as file:
        file.write("secret")
        file.flush()
        bubblewrap._secrets.cache_clear()
        async with launched(folder, CONNECT + look, file.name) as finding:
            assert "secret" not in (finding.stderr or "")
        bubblewrap._secrets.cache_clear()


HOSTILE = {
    "forks": ("for _ in range(60):\n    if not os.fork(): time.sleep(1000)", Ending.PROCESSES, ""),
    "hoards memory": ("hoard = b'x' * (200 << 20)", Ending.MEMORY, ""),
    "fills its directory, not the disk": (
        "file = open('large', 'wb')\nwhile True: file.write(bytes(1 << 20))",
        *(Ending.CRASH, "No space left on device"),
    ),
    "changes its own files": (
        *("open('bot.py', 'a')", Ending.CRASH),
        "OSError: [Errno 30] Read-only file system",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_submission_is_found(folder: Path, what: str) -> None:
    deed, kind, said = HOSTILE[what]
    script = f"{CONNECT}import time\n{deed}\ntime.sleep(1000)"
    async with launched(folder, script, limits=Limits(memory_mib=64)) as finding:
        assert finding.kind is kind
        assert said in (finding.stderr or "")


async def test_the_relay_is_not_one_of_its_processes(folder: Path) -> None:
    """One process is what it may have; it crashes by itself, later than the sampler would look."""
    script = f"{CONNECT}import time; time.sleep(0.5); raise SystemExit('enough')"
    async with launched(folder, script, limits=Limits(processes=1)) as finding:
        assert finding.text == "crashed: exit status 1"
        assert finding.stderr == "enough\n"


async def test_a_close_with_1011_is_a_crash_whatever_its_exit_status_is(
    tmp_path: Path, folder: Path
) -> None:
    skip_without("bwrap")
    script = CONNECT.replace('websocket.send("{}")', "websocket.close(1011, 'failed: by zero')")
    (folder / "bot.py").write_text(script)
    manifest = ProgramManifest("python", (sys.executable, "bot.py"), stdio=False)
    with Store(tmp_path / "arena.db") as store:
        async with asyncio.timeout(TIMEOUT_S), LiveArena(store) as host:
            await host.supervisor.launch_program(sealed_program(folder, manifest), "ann")
            while "ann" not in host.supervisor.ended:
                await asyncio.sleep(0.01)

    assert host.supervisor.ended["ann"] == "crashed: by zero"


async def test_one_that_leaves_processes_takes_them_along(folder: Path) -> None:
    async with launched(folder, CONNECT + LEAVE) as finding:
        assert finding.text == "ended by itself: exit status 0"


# ---- Starters


@pytest.mark.parametrize("language", [Language.PYTHON, Language.JAVA])
async def test_a_starter_is_built_and_plays(
    tmp_path: Path, folder: Path, language: Language
) -> None:
    skip_without("bwrap", *NEEDS[language])
    game = GAMES["ace_king_queen"]
    program = await submitted(starter(game, language, "mine").files, folder)

    with Store(tmp_path / "arena.db") as store:
        async with asyncio.timeout(TIMEOUT_S), LiveArena(store) as host:
            report = await play(host, game, program)
        await store.flushed()

        assert report.verdicts == ()
        [competition] = [found.id for found in store.competitions()]
        assert {row.result.termination.kind for row in store.matches(competition)} == {
            Ending.COMPLETED
        }
