"""Builds in the sandbox, of honest and of hostile programs: what comes of them, and what remains."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from arena.sandbox import archive, build
from arena.sandbox.build import LOG_BYTES, BuildLog, BuildOutcome
from arena.sandbox.manifest import ProgramManifest
from tests.support.bot_processes import living
from tests.support.needs import skip_without

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

BUILD_S = 60.0  # nothing here takes more than a second or two

# Tries everything, and says as JSON what came of it.
LOOK = """
import json, os, socket, sys
def tried(deed):
    try:
        deed()
    except OSError as error:
        return type(error).__name__
    return "got in"
secret, other, port, arena = sys.argv[1:]
print(json.dumps({
    "read the database": tried(lambda: open(secret).read()),
    "list its folder": tried(lambda: os.listdir(os.path.dirname(secret))),
    "list another build": tried(lambda: os.listdir(other)),
    "list a home": tried(lambda: os.listdir("/home") and os.listdir(os.path.expanduser("~root"))),
    "connect to this machine": tried(lambda: socket.create_connection(("127.0.0.1", int(port)), 5)),
    "connect to another": tried(lambda: socket.create_connection(("192.0.2.1", 80), 5)),
    "signal the arena": tried(lambda: os.kill(int(arena), 0)),
    "read its environment": tried(lambda: open(f"/proc/{arena}/environ").read()),
    "write into the program": tried(lambda: open("../../build.py", "a")),
    "write elsewhere": tried(lambda: open("/etc/x", "w")),
    "set the machine": tried(lambda: open("/proc/sys/kernel/core_pattern", "a")),
    "mount": tried(lambda: os.unshare(os.CLONE_NEWUSER)) if hasattr(os, "unshare") else "",
}))
"""
# Leaves a process behind, in a session of its own, that ignores SIGTERM.
LEAVE = """
import os, signal, time
if not os.fork():
    os.setsid()
    if not os.fork():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    os._exit(0)
os.wait()
"""


class Workshop:
    """Builds programs of one file, `build.py`, and sees that nothing remains."""

    def __init__(self, folder: Path) -> None:
        self.source, self.tar = folder / "source", folder / "built.tar"
        self.secret = folder / "arena" / "arena.db"
        self.source.mkdir()
        self.secret.parent.mkdir()
        self.secret.write_text("secret")

    async def build(
        self,
        script: str,
        *arguments: str,
        build_s: float = BUILD_S,
        build_mib: int = 256,
        isolate: bool = True,
    ) -> BuildOutcome:
        if isolate:
            skip_without("bwrap")
        (self.source / "build.py").write_text(script)
        words = (sys.executable, "build.py", *arguments)
        manifest = ProgramManifest("python", ("python3", "bot.py"), stdio=True, build=words)
        try:
            return await build.build(
                self.source,
                manifest,
                build_s=build_s,
                build_mib=build_mib,
                into=self.tar,
                hidden=[self.secret],
                isolate=isolate,
            )
        finally:
            assert living("build") == []
            assert list(Path(tempfile.gettempdir()).glob("arena-*")) == []

    def unpacked(self, folder: Path) -> dict[str, bytes]:
        """The files of the result."""
        folder.mkdir()
        with self.tar.open("rb") as tar:
            archive.unpack(tar, folder)
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    scratch = tmp_path / "scratch"  # so that what remains is ours
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return Workshop(tmp_path)


@pytest.mark.parametrize("isolate", [True, False], ids=["isolated", "open"])
async def test_what_a_build_makes_comes_back(
    workshop: Workshop, tmp_path: Path, isolate: bool
) -> None:
    (workshop.source / "lib").mkdir()
    (workshop.source / "lib" / ".data").write_bytes(b"0" * 10_000)
    script = (
        "import os, pathlib\n"
        "pathlib.Path('lib/made').write_text('#!/bin/sh')\n"
        "os.chmod('lib/made', 0o755)\n"
        "os.symlink('lib/made', 'also')\n"
        "os.symlink('lib', 'folder')\n"
        "os.mkfifo('pipe')\n"
        "pathlib.Path(os.environ['HOME'], 'cache').touch()\n"
        "pathlib.Path(os.environ['TMPDIR'], 'scrap').touch()\n"
        "print('built')\n"
    )
    outcome = await workshop.build(script, isolate=isolate)
    files = workshop.unpacked(tmp_path / "built")

    assert outcome.why == ""
    lines = outcome.log.splitlines()
    assert sorted(lines) == [
        "built",
        "left out, as it is no plain file or folder: folder",
        "left out, as it is no plain file or folder: pipe",
    ]
    assert files == {
        "build.py": script.encode(),
        "lib/.data": b"0" * 10_000,
        "lib/made": b"#!/bin/sh",
        "also": b"#!/bin/sh",
    }
    assert (tmp_path / "built" / "lib" / "made").stat().st_mode & stat.S_IXUSR
    assert sorted(path.name for path in workshop.source.iterdir()) == ["build.py", "lib"]


WRONG: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "fails": (
        *("import sys; print('no rule to make bot'); sys.exit(2)", {}),
        *("PYTHON ended with exit status 2", "no rule to make bot\n"),
    ),
    "is killed": ("import os; os.kill(os.getpid(), 9)", {}, "PYTHON was ended by signal 9", ""),
    "runs for ever": (
        *("print('on and on', flush=True)\nwhile True: pass", {"build_s": 5}),
        *("not done after 5 s", "on and on\n"),
    ),
    "forks": (
        "import os, time\nfor _ in range(400):\n    if not os.fork(): time.sleep(1000)\n"
        "time.sleep(1000)",
        *({}, r"processes \d+ > 256 .*", ""),
    ),
    "hoards memory": (
        "import time; hoard = b'x' * (400 << 20); time.sleep(1000)",
        *({"build_mib": 64}, r"memory .*MiB.*", ""),
    ),
    "fills its directory": (
        "file = open('large', 'wb')\nwhile True: file.write(bytes(1 << 20))",
        {"build_mib": 32},
        "PYTHON ended with exit status 1; the 32 MiB for its files are full",
        "No space left on device",
    ),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_build_that_goes_wrong_says_why(workshop: Workshop, what: str) -> None:
    script, limits, why, said = WRONG[what]
    outcome = await workshop.build(script, **limits)

    assert re.fullmatch(why.replace("PYTHON", re.escape(sys.executable)), outcome.why)
    assert said in outcome.log


async def test_a_program_that_has_no_room_is_not_built(workshop: Workshop) -> None:
    (workshop.source / "large").write_bytes(bytes(20 << 20))
    outcome = await workshop.build("", build_mib=16)

    assert outcome.why.startswith("it cannot be copied: ")


async def test_of_a_long_log_the_beginning_and_the_end_are_kept(workshop: Workshop) -> None:
    outcome = await workshop.build("print('first')\nprint('x' * 2_000_000)\nprint('last')")

    assert outcome.why == ""
    assert outcome.log.startswith("first\nxxx")
    assert outcome.log.endswith("xxx\nlast\n")
    left_out = 2_000_000 + len("first\n\nlast\n") - LOG_BYTES
    assert f"\n[… {left_out:,} bytes are left out …]\n" in outcome.log


async def test_a_result_without_end_is_not_taken(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build writes past the driver, into the arena's pipe."""
    monkeypatch.setattr(build, "_MOST_BYTES", 1 << 20)
    outcome = await workshop.build(
        "import os\nfile = open(f'/proc/{os.getppid()}/fd/1', 'wb')\n"
        "while True: file.write(bytes(1 << 16))"
    )

    assert outcome.why.startswith("expected at most ")
    assert workshop.tar.stat().st_size < 2 << 20


async def test_a_build_sees_nothing_of_anybody_else(workshop: Workshop, tmp_path: Path) -> None:
    other = tmp_path / "other build"
    other.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outcome = await workshop.build(
            LOOK, str(workshop.secret), str(other), str(port), str(os.getpid())
        )

    assert outcome.why == "", outcome.log
    saw = json.loads(outcome.log)
    assert len(saw) == 12
    assert "got in" not in saw.values(), saw


async def test_what_a_build_leaves_running_ends_with_it(workshop: Workshop) -> None:
    began_s = time.monotonic()
    outcome = await workshop.build(LEAVE)

    assert outcome.why == ""
    assert time.monotonic() - began_s < BUILD_S / 2


@pytest.mark.needs("bwrap")
async def test_a_build_that_is_cancelled_leaves_nothing(workshop: Workshop) -> None:
    building = asyncio.create_task(workshop.build(LEAVE + "time.sleep(1000)"))
    while not living("build"):
        assert not building.done(), building.result().why
        await asyncio.sleep(0.01)
    building.cancel()

    with pytest.raises(asyncio.CancelledError):
        await building


async def test_a_command_that_is_not_there(workshop: Workshop) -> None:
    manifest = ProgramManifest("c++", ("./bot",), stdio=True, build=("no-such-make",))
    outcome = await build.build(
        workshop.source, manifest, build_s=BUILD_S, build_mib=64, into=workshop.tar
    )

    assert outcome.why == "no-such-make cannot be started: No such file or directory"


def test_a_short_log_is_whole() -> None:
    log = BuildLog()
    for piece in (b"Zo\xc3", b"\xab", b"!" * (LOG_BYTES - 4)):
        log.add(piece)

    assert log.text == "Zoë" + "!" * (LOG_BYTES - 4)
