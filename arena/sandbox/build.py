"""Builds a submission in the sandbox: without network, in bounded time, memory, files and output.

The build sees the program and the system, as the program will later (`sealed_program`), and writes
into a directory in memory, which disappears with it. Its result comes back as a tar through a pipe
(`arena/sandbox/build_driver.py`), and is only as trustworthy as its author: `archive.unpack` checks
it. On a machine without bubblewrap it runs as other programs do there.
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
"""How much of a build's output is kept: half from its beginning, half from its end."""

_PROCESSES = 256  # a build starts a compiler per core, each with some helpers
# Of a tar: what `archive.unpack` accepts, with the headers of that many files.
_MOST_BYTES = 208 << 20
_CHUNK_BYTES = 1 << 16
_WHY_BYTES = 1_000


class BuildOutcome(msgspec.Struct, frozen=True):
    """The output of a build, and why it failed; empty if it succeeded."""

    log: str
    why: str


class BuildLog(StderrTail):
    """The beginning and the end of a build's output, at most `LOG_BYTES` together."""

    def __init__(self) -> None:
        super().__init__()
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        """Add output, and drop what is then in the middle."""
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
        """The whole text, with a line where something was dropped."""
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
    """Build the program in `folder`, which is not changed, and write a tar of the result.

    The build may take `build_s` seconds, and `build_mib` of memory and as much of files. It sees
    nothing of `hidden`. When this returns or is cancelled, nothing of the build is left but the
    file `into`, which is usable only if the outcome has no `why`. Raises ArenaError if this machine
    has no room for a build now, which is not the program's fault.
    """
    # The kernel also counts the files in memory; the sampler does not.
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
    """Write the build's result to a file; False if it is too large."""
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
    """Why a build that ended with this finding failed; empty if it did not."""
    if finding.kind is not Ending.CRASH:
        return finding.text
    if finding.exit_status == 0:
        return ""
    with into.open("rb") as file:
        said = file.read(_WHY_BYTES).decode(errors="replace")
    return said if finding.exit_status == 1 and said.isprintable() else finding.text
