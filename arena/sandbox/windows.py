"""A bot's process without a supervisor: for Windows, where there are no process groups.

Threads wait instead. The bot's children end with it as far as the system knows them as its
children. When the arena is killed, its bots have to notice that themselves. On other systems
`arena/sandbox/process.py` does this, with the same interface.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from arena.sandbox.process import StderrTail
from arena.sandbox.workdir import PreparedBot
from protocol.errors import ArenaError, UsageError

__all__ = ["PlainProcess"]

_GRACE_S = 1.0  # from the request to the end; and again after that
_CHUNK_BYTES = 1 << 16


class PlainProcess:
    """A started program; `start` makes one.

    `ended` and `gone` are as in `Process`, but both are done when the program itself has ended.
    Without a supervisor nothing is sampled, and there are no pipes to the program.
    """

    supervisor_pid = None
    pipes = None

    def __init__(
        self,
        command: Sequence[str],
        scratch: Path,
        environment: Mapping[str, str],
        stderr_tail: StderrTail | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int | None] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.stderr = stderr_tail or StderrTail()
        self._process = subprocess.Popen(
            command,
            cwd=scratch,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # Ctrl-C must only reach the arena, which stops its bots.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, daemon=True).start()

    @classmethod
    async def start(
        cls,
        prepared: PreparedBot,
        environment: Mapping[str, str],
        *,
        stdio: bool = False,
        stderr_tail: StderrTail | None = None,
    ) -> PlainProcess:
        """Start a program; raises `UsageError` for `stdio`, `ArenaError` if it does not start."""
        if stdio:
            raise UsageError("expected a bot that connects: stdio needs Linux or macOS")
        program, *arguments = prepared.command
        path = program
        if os.path.dirname(program):  # relative to the program's directory, not to ours
            path = str(prepared.scratch / program)
        try:
            return cls([path, *arguments], prepared.scratch, environment, stderr_tail)
        except OSError as error:
            raise ArenaError(f"cannot start {program}: {error.strerror}") from error

    def drain(self) -> None:
        """Do nothing: a thread reads its stderr."""

    def kill(self) -> None:
        if sys.platform == "win32":
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(self.pid)], capture_output=True, check=False
            )
        elif not self.ended.done():
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """End it and its children: with SIGTERM where that exists, then at once."""
        if sys.platform != "win32":  # there `terminate` kills, and only the program
            self._process.terminate()
            await asyncio.wait([self.ended], timeout=_GRACE_S)
        self.kill()
        await asyncio.wait([self.ended], timeout=_GRACE_S)

    # ---- Threads

    def _drain(self) -> None:
        assert self._process.stderr is not None, "it is a pipe"
        pipe = self._process.stderr.fileno()
        with contextlib.suppress(OSError):
            while chunk := os.read(pipe, _CHUNK_BYTES):
                self.stderr.add(chunk)

    def _wait(self) -> None:
        status = self._process.wait()
        # Wait for the rest of stderr, but not for a child that holds the pipe open.
        self._reader.join(_GRACE_S)
        if not self._reader.is_alive() and self._process.stderr is not None:
            self._process.stderr.close()

        def tell() -> None:
            self.ended.set_result(status)
            self.gone.set_result(None)

        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(tell)
