"""A bot's process: started through its supervisor, its stderr drained, its end noticed.

Nothing blocks the event loop longer than starting a program takes. Nothing waits for a pipe to
close that the bot's processes may hold open: the supervisor's report and its own end count.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

from arena.sandbox import supervisor
from arena.sandbox.workdir import PreparedBot
from protocol.errors import ArenaError

__all__ = ["TAIL_BYTES", "BotPipes", "Process", "StderrTail"]

TAIL_BYTES = 2_000  # of stderr: the end of a traceback
_CHUNK_BYTES = 1 << 16
_REST_S = 0.01  # between two reads of stderr, so that a bot that floods it waits and not the arena
_POLL_S = 0.005  # between checks until a supervisor that has closed its pipe is gone
_START_S = 20.0  # to execute it, on a machine that is starting a hundred others
_PATIENCE_S = 1.0  # beyond the supervisor's own grace, and after it is killed
# How long the supervisor may take, on a loaded machine, to kill a tree that keeps forking. It is
# not killed earlier, as only the supervisor can end such a tree.
_KILLING_S = 20.0


class StderrTail:
    """The end of a program's stderr, `keeps` bytes at most.

    `written` is how many bytes the program has written in all.
    """

    def __init__(self, keeps: int = TAIL_BYTES) -> None:
        self.written = 0
        self.keeps = keeps
        self._end = b""

    def add(self, chunk: bytes) -> None:
        self.written += len(chunk)
        self._end = (self._end + chunk)[-self.keeps :]

    def since(self, written: int) -> str:
        """What the program wrote after its first `written` bytes, as far as it is kept."""
        new = min(self.written - written, len(self._end))
        return self._end[len(self._end) - new :].decode(errors="replace")

    @property
    def tail(self) -> str:
        """The part that a verdict shows."""
        return self._end[-TAIL_BYTES:].decode(errors="replace")


class BotPipes(NamedTuple):
    """Our ends of a bot's pipes, named as the bot sees them: we write to `stdin_fd`."""

    stdin_fd: int
    stdout_fd: int

    async def connect(self, inward: asyncio.Protocol, outward: asyncio.BaseProtocol) -> None:
        """Pass the bot's output to `inward`, and let `outward` write its input.

        The pipes are closed with their transports.
        """
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as undo:
            writer = undo.enter_context(open(self.stdin_fd, "wb", buffering=0))
            reader = undo.enter_context(open(self.stdout_fd, "rb", buffering=0))
            # In this order, so that incoming messages can be answered.
            transport, _ = await loop.connect_write_pipe(lambda: outward, writer)
            undo.callback(transport.abort)
            await loop.connect_read_pipe(lambda: inward, reader)
            undo.pop_all()

    def clock(self, now: float) -> float | None:
        """When the output that comes now was written: always now."""
        return now


class Process:
    """A started program; `start` makes one. `pid` may be that of the sandbox around it.

    `ended` is done when nothing is left below `supervisor_pid`. Its result is the exit status,
    negative for a signal, or None if it is unknown because the supervisor was killed. `gone` is
    done when the supervisor is gone too, and the scratch directory removed. For a program started
    with `stdio`, `pipes` are our ends of its streams, non-blocking; their user closes them.
    """

    def __init__(
        self,
        prepared: PreparedBot,
        environment: Mapping[str, str],
        *,
        stdio: bool,
        stderr_tail: StderrTail | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._scratch = prepared.scratch
        self.ended: asyncio.Future[int | None] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.pid = 0
        self.pipes: BotPipes | None = None
        self._started: asyncio.Future[int] = self._loop.create_future()
        # If `start` was cancelled, nobody reads the exception, and asyncio would log that.
        self._started.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.stderr = stderr_tail or StderrTail()
        self._half_line = b""
        self._rest: asyncio.TimerHandle | None = None
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            self._control, control = _pipe(ours, theirs, outward=True)
            self._status, status = _pipe(ours, theirs, outward=False)
            self._stderr, stderr = _pipe(ours, theirs, outward=False)
            stdin = stdout = subprocess.DEVNULL
            if stdio:
                inward, stdin = _pipe(ours, theirs, outward=True)
                outward, stdout = _pipe(ours, theirs, outward=False)
                self.pipes = BotPipes(inward, outward)
            self._supervisor = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", supervisor.__file__),
                    *(str(control), str(status), str(prepared.scratch)),
                    str(prepared.group.procs if prepared.group else ""),
                    "isolated" if prepared.isolated else "open",
                    *prepared.command,
                ],
                cwd=prepared.scratch,
                env=dict(environment),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(control, status),
                start_new_session=True,  # Ctrl-C must only reach the arena, which stops its bots
            )
            ours.pop_all()
        self.supervisor_pid = self._supervisor.pid
        self._loop.add_reader(self._status, self._on_status)
        self._loop.add_reader(self._stderr, self._drain)

    @classmethod
    async def start(
        cls,
        prepared: PreparedBot,
        environment: Mapping[str, str],
        *,
        stdio: bool = False,
        stderr_tail: StderrTail | None = None,
    ) -> Process:
        """Start a program, with pipes to it if `stdio` is set, and wait until it is executed.

        Its command is looked up on the PATH of `environment`, which is its whole environment; the
        supervisor removes its directory at the end. Its stderr goes to `stderr_tail`. Raises
        `ArenaError` if it cannot be executed, or if the machine has no process or descriptor left.
        """
        program = prepared.command[0]
        try:
            process = cls(prepared, environment, stdio=stdio, stderr_tail=stderr_tail)
        except OSError as error:
            raise ArenaError(f"cannot start {program}: {error.strerror}") from error
        try:
            async with asyncio.timeout(_START_S):
                process.pid = await asyncio.shield(process._started)
        except TimeoutError:
            await process._give_up()
            raise ArenaError(
                f"cannot start {program}: not executed within {_START_S:.0f} s"
            ) from None
        except BaseException:
            await process._give_up()
            raise
        return process

    async def _give_up(self) -> None:
        for descriptor in self.pipes or ():
            os.close(descriptor)
        self.kill()
        await self.stop()

    # ---- End

    def kill(self) -> None:
        """End the whole process tree at once, without waiting for its end."""
        # The supervisor kills the tree when this pipe is closed.
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    async def stop(self) -> None:
        """End the whole process tree: with SIGTERM, then SIGKILL.

        It returns within some seconds, or within 25 if the tree keeps forking.
        """
        self._supervisor.terminate()
        self._supervisor.send_signal(signal.SIGCONT)  # the bot may have stopped it
        for patience_s, harder in (
            (supervisor.GRACE_S + _PATIENCE_S, self.kill),
            (_KILLING_S, self._supervisor.kill),
            (_PATIENCE_S, lambda: None),
        ):
            await asyncio.wait([self.gone], timeout=patience_s)
            if self.gone.done():
                return
            harder()
        self._close()  # not even SIGKILL ended it, as in uninterruptible sleep

    # ---- The supervisor's report, and stderr

    def _on_status(self) -> None:
        """Read lines from the supervisor, or notice its end."""
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(self._status, 4096)
            *lines, self._half_line = (self._half_line + chunk).split(b"\n")
            for line in lines:
                self._on_line(line.decode(errors="replace"))
            if not chunk:
                self._loop.remove_reader(self._status)
                self._after_supervisor()

    def _on_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "started":
            self._started.set_result(int(rest))
        elif word == "failed":
            self._started.set_exception(ArenaError(f"cannot start it: {rest}"))
            self.ended.set_result(None)
        else:
            self._drain_all()
            self.ended.set_result(-int(rest) if word == "signal" else int(rest))

    def _after_supervisor(self) -> None:
        """Wait until the supervisor, which has closed its pipe, is gone."""
        if self._supervisor.poll() is None:
            self._loop.call_later(_POLL_S, self._after_supervisor)
        elif self.ended.done():
            self._close()
        else:  # it was killed, and the bot's processes may still run
            task = self._loop.run_in_executor(None, supervisor.end_strays, str(self._scratch))
            task.add_done_callback(self._after_strays)

    def _after_strays(self, task: asyncio.Future[None]) -> None:
        if self.gone.done():
            return
        task.result()
        self._drain_all()
        self._close(self.stderr.tail.strip() or "its supervisor was killed")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(self._stderr, _CHUNK_BYTES)
            self.stderr.add(chunk)
            self._loop.remove_reader(self._stderr)
            # After every chunk, even a small one, as the bot may have made its pipe small.
            if chunk:
                self._rest = self._loop.call_later(
                    _REST_S, self._loop.add_reader, self._stderr, self._drain
                )

    def drain(self) -> None:
        """Read what the bot has just written to stderr, at most as much as a pipe holds."""
        if not self.gone.done():
            with contextlib.suppress(BlockingIOError):
                self.stderr.add(os.read(self._stderr, _CHUNK_BYTES))

    def _drain_all(self) -> None:
        """Read the rest of stderr: at most what a pipe holds, as all its writers are gone."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._stderr, _CHUNK_BYTES):
                self.stderr.add(chunk)

    def _close(self, why: str = "it does not answer") -> None:
        if self.gone.done():
            return
        self.kill()
        if self._rest is not None:
            self._rest.cancel()
        for descriptor in (self._status, self._stderr):
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        if not self._started.done():
            self._started.set_exception(ArenaError(f"cannot start it: {why}"))
        if not self.ended.done():
            self.ended.set_result(None)
        self.gone.set_result(None)


def _pipe(
    ours: contextlib.ExitStack, theirs: contextlib.ExitStack, *, outward: bool
) -> tuple[int, int]:
    """Make a pipe: our end and the other end, each closed when its stack is unwound."""
    reader, writer = os.pipe()
    mine, other = (writer, reader) if outward else (reader, writer)
    os.set_blocking(mine, False)
    ours.callback(os.close, mine)
    theirs.callback(os.close, other)
    return mine, other
