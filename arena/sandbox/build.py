"""Builds a submission in the sandbox: without network, in bounded time, memory, files and output.

The build sees the program and the system, as the program itself will (`sealed_program`), and writes
into a directory in memory, which is gone with it. What it has made comes back as a tar through a
pipe (`arena/sandbox/build_driver.py`), and is only as trustworthy as its author: `archive.unpack`
checks it. Where this machine has no bubblewrap it runs as other programs do there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from arena.games.verdict import Finding
from arena.sandbox import cgroup
from arena.sandbox.command import Program
from arena.sandbox.launcher import LaunchedBot, Launcher
from arena.sandbox.manifest import ProgramManifest
from arena.sandbox.process import StderrTail
from arena.sandbox.scarcity import is_scarce
from protocol.errors import ArenaError
from protocol.messages import Ending, Limits

__all__ = ["LOG_BYTES", "BuildLog", "BuildOutcome", "build"]

LOG_BYTES = 256 << 10
"""Of a build's output is kept: half of it the beginning, half the end."""

_PROCESSES = 256  # a build starts a compiler per core, each with some helpers
# Of a tar: what `archive.unpack` takes, with the headers of so many files.
_MOST_BYTES = 208 << 20
_CHUNK_BYTES = 1 << 16
_WHY_BYTES = 1_000


class BuildOutcome(msgspec.Struct, frozen=True):
    """What has come of a build: its output, and why it has failed, empty if it has not."""

    log: str
    why: str


class BuildLog(StderrTail):
    """The beginning and the end of what a build has written, `LOG_BYTES` at most together."""

    def __init__(self) -> None:
        super().__init__()
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        """Add output, and forget what is then in the middle."""
        super().add(chunk)
        half = LOG_BYTES // 2
        room = half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        surplus = max(0, len(self._tail) - half)
        self._left_out += surplus
        del self._tail[:surplus]

    @property
    def text(self) -> str:
        """It all, with a line where something was left out."""
        gap = f"\n[… {self._left_out:,} bytes are left out …]\n" if self._left_out else ""
        head, tail = bytes(self._head), bytes(self._tail)
        if not gap:
            return (head + tail).decode(errors="replace")
        return head.decode(errors="replace") + gap + tail.decode(errors="replace")


async def build(
    folder: Path,
    manifest: ProgramManifest,
    *,
    build_s: float,
    build_mib: int,
    into: Path,
    hidden: Iterable[Path] = (),
    isolate: bool = True,
) -> BuildOutcome:
    """Build the program in `folder`, which stays as it is, and write a tar of the result.

    It may take `build_s` seconds, hold `build_mib` of memory and as much of files; of `hidden` it
    sees nothing. When this returns or is cancelled, nothing of the build is left but the file
    `into`, which is of use only if the outcome has no `why`. Raises ArenaError if this machine has
    no room for a build now, which is not the program's fault.
    """
    # The kernel counts the files in memory too; the sampler does not.
    memory_mib = build_mib if cgroup.probe() else 2 * build_mib
    limits = Limits(memory_mib=memory_mib, processes=_PROCESSES)
    ended: asyncio.Future[Finding] = asyncio.get_running_loop().create_future()

    def end(_name: str, finding: Finding) -> None:
        if not ended.done():
            ended.set_result(finding)

    launcher = Launcher(limits, hidden, end, isolate=isolate, scratch_mib=build_mib)
    program = Program(
        manifest.build, stdio=True, folder=folder.resolve(), sealed=True, script=_DRIVER
    )
    log = BuildLog()
    try:
        async with asyncio.timeout(build_s):
            with into.open("wb") as tar:
                bot = await launcher.start("build", program, stderr_tail=log)
                is_whole = await _receive(bot, tar)
            why = _why(await ended, into) if is_whole else _TOO_MUCH
    except TimeoutError:
        why = f"not done after {build_s:g} s"
    except ArenaError as error:
        if is_scarce(error):
            raise
        why = str(error)
    finally:
        await launcher.close()
    return BuildOutcome(log.text, why)


_DRIVER = Path(__file__).with_name("build_driver.py").resolve()
_TOO_MUCH = (
    f"expected at most {_MOST_BYTES >> 20} MiB after the build, got more; remove what the program "
    "does not need to run"
)


async def _receive(bot: LaunchedBot, tar: BinaryIO) -> bool:
    """Write what the build hands out to a file; False if it is too much."""
    assert bot.pipes is not None, "its streams are pipes"
    unused, source = bot.pipes
    os.close(unused)
    loop = asyncio.get_running_loop()
    has_more = asyncio.Event()
    loop.add_reader(source, has_more.set)
    try:
        while tar.tell() <= _MOST_BYTES:
            await has_more.wait()
            has_more.clear()
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(source, _CHUNK_BYTES)
                if not chunk:
                    return True
                tar.write(chunk)
        return False
    finally:
        loop.remove_reader(source)
        os.close(source)


def _why(finding: Finding, into: Path) -> str:
    """Why a build has failed that has ended with this; empty if it has not."""
    if finding.kind is not Ending.CRASH:
        return finding.text
    if finding.exit_status == 0:
        return ""
    with into.open("rb") as file:
        said = file.read(_WHY_BYTES).decode(errors="replace")
    return said if finding.exit_status == 1 and said.isprintable() else finding.text
