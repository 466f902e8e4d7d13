"""Bots as processes of ours: started with the arena's address, watched, and stopped at the end.

The arena never imports a bot's code to play over the network: `python -m bots` is a program like any student's. What a process wrote to
stderr last is kept, so that a crash can be explained.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence

from protocol.codec import Encoding

__all__ = ["Launcher", "bot_command"]

_TAIL_BYTES = 2_000  # of stderr: the end of a traceback
_STOP_S = 1.0  # from SIGTERM to SIGKILL; the closing arena has told them before
_PATIENCE_S = 5  # a bot of ours whose arena has died goes away by itself

OnExit = Callable[[str, int, str], None]


def bot_command(
    bot: Sequence[str],
    *,
    url: str,
    name: str,
    tables: int = 1,
    encoding: Encoding = Encoding.JSON,
) -> list[str]:
    """The command line that connects a bot, given as GAME NAME or FILE.py."""
    options = {
        "--url": url,
        "--name": name,
        "--tables": str(tables),
        "--encoding": encoding.value,
        "--patience": str(_PATIENCE_S),
    }
    # -P: a folder `bots` in the present directory is not the package.
    words = [word for option in options.items() for word in option]
    return [sys.executable, "-P", "-m", "bots", *bot, *words, "--quiet"]


class Launcher:
    """The processes that this arena has started.

    Args:
        on_exit: told the name, exit status and last words of a process that ended by itself.
    """

    def __init__(self, on_exit: OnExit = lambda name, status, tail: None) -> None:
        self._on_exit = on_exit
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = False

    async def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program under a name of ours."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the arena, which then stops its bots in order
        )
        self._processes[name] = process
        self._watchers[name] = asyncio.create_task(self._watch(name, process))

    async def stop(self) -> None:
        """End all processes: politely, then not."""
        self._stopping = True
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        if not self._watchers:
            return
        _, late = await asyncio.wait(self._watchers.values(), timeout=_STOP_S)
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if late:
            await asyncio.wait(late)

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None, "it is a pipe"
        tail = b""
        while chunk := await process.stderr.read(65536):
            tail = (tail + chunk)[-_TAIL_BYTES:]
        status = await process.wait()
        del self._processes[name]
        if not self._stopping:
            self._on_exit(name, status, tail.decode(errors="replace"))
