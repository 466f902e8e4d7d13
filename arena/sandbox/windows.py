"""One bot as a process without a keeper, for systems that have neither process groups nor pipes to wait for: Windows.

Threads wait here instead. What the bot has started is ended with it as far as the system knows it for its child; when the
arena is killed, its bots find out by themselves. Elsewhere it is `arena/sandbox/process.py`, which has the same face.
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

from arena.sandbox.process import TAIL_BYTES
from protocol.errors import ArenaError, UsageError

__all__ = ["PlainProcess"]

_GRACE_S = 1.0  # from the request to the end; and again after it
_CHUNK_BYTES = 1 << 16


class PlainProcess:
    """A started program; `start` makes one.

    `ended` and `gone` are as those of `arena.sandbox.process.Process`; here both are done when the program itself has ended. There is no
    keeper, so nothing can be sampled, and no pipes to talk over.
    """

    keeper_pid = None
    stdin_fd = None
    stdout_fd = None

    def __init__(
        self, command: Sequence[str], scratch: Path, environment: Mapping[str, str]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int | None] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._tail = b""
        self._process = subprocess.Popen(
            command,
            cwd=scratch,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # Ctrl-C is for the arena, which then stops its bots in order.
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
        command: Sequence[str],
        *,
        scratch: Path,
        environment: Mapping[str, str],
        stdio: bool = False,
    ) -> PlainProcess:
        """Start a program.

        Raises:
            UsageError: it is one that talks over its pipes.
            ArenaError: it cannot be executed.
        """
        if stdio:
            raise UsageError("expected a bot that connects: stdio needs Linux or macOS")
        program = command[0]
        if os.path.dirname(program):  # relative to where it runs, not to where we do
            program = str(scratch / program)
        try:
            return cls([program, *command[1:]], scratch, environment)
        except OSError as error:
            raise ArenaError(f"cannot start {command[0]}: {error.strerror}") from error

    @property
    def tail(self) -> str:
        """The end of what it wrote to stderr so far."""
        return self._tail.decode(errors="replace")

    def kill(self) -> None:
        """End it and its children at once; does not wait for that."""
        if sys.platform == "win32":
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(self.pid)], capture_output=True, check=False
            )
        elif not self.ended.done():
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """End it and its children: politely where there is a way, then not."""
        if sys.platform != "win32":  # there, `terminate` is not polite either, and for one
            self._process.terminate()
            await asyncio.wait([self.ended], timeout=_GRACE_S)
        self.kill()
        await asyncio.wait([self.ended], timeout=_GRACE_S)

    # ---- In threads of their own

    def _drain(self) -> None:
        assert self._process.stderr is not None, "it is a pipe"
        pipe = self._process.stderr.fileno()
        with contextlib.suppress(OSError):
            while said := os.read(pipe, _CHUNK_BYTES):
                self._tail = (self._tail + said)[-TAIL_BYTES:]

    def _wait(self) -> None:
        status = self._process.wait()
        # The last words are on their way; a child that holds the pipe is not waited for.
        self._reader.join(_GRACE_S)
        if not self._reader.is_alive() and self._process.stderr is not None:
            self._process.stderr.close()

        def tell() -> None:
            self.ended.set_result(status)
            self.gone.set_result(None)

        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(tell)
