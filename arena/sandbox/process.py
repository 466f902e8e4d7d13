"""One bot as a process of the operating system: started through its keeper, its stderr drained, its end noticed.

Nothing here blocks the event loop longer than starting a program takes, and nothing waits for a pipe to close that a
process of the bot's may hold open: what counts is the keeper's word, and the keeper's own end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from arena.sandbox import supervisor
from protocol.errors import ArenaError

__all__ = ["TAIL_BYTES", "Process"]

TAIL_BYTES = 2_000  # of stderr: the end of a traceback
_CHUNK_BYTES = 1 << 16
_REST_S = 0.01  # after a whole chunk of stderr: a bot that floods it waits, not the arena
_POLL_S = 0.005  # for a keeper that has closed its pipe to be gone
_START_S = 20.0  # to execute it, on a machine that is starting a hundred others
_PATIENCE_S = 1.0  # beyond the keeper's own grace, and again after each harder measure


class Process:
    """A started program; `start` makes one.

    `ended` is done when it has ended by whatever cause and nothing of its tree is left, with its exit status, negative for a
    signal, or None if its keeper was killed and nobody knows; `gone` when the keeper is gone too and its directory removed.

    Attributes:
        pid: of the program, or of the sandbox around it.
        keeper_pid: of its keeper, whose descendants are the program's tree.
        stdin_fd: our end of its standard input if it was started with `stdio`; who asked for it closes it.
        stdout_fd: the same of its standard output.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        scratch: Path,
        environment: Mapping[str, str],
        stdio: bool,
        isolated: bool,
        procs: Path | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._scratch = scratch
        self.ended: asyncio.Future[int | None] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.pid = 0
        self.stdin_fd: int | None = None
        self.stdout_fd: int | None = None
        self._started: asyncio.Future[int] = self._loop.create_future()
        # Whoever waits for it may have been cancelled: then nobody asks.
        self._started.add_done_callback(lambda it: it.cancelled() or it.exception())
        self._tail = self._said = b""
        self._rest: asyncio.TimerHandle | None = None
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            self._control, control = _pipe(ours, theirs, outward=True)
            self._status, status = _pipe(ours, theirs, outward=False)
            self._stderr, stderr = _pipe(ours, theirs, outward=False)
            stdin = stdout = subprocess.DEVNULL
            if stdio:
                self.stdin_fd, stdin = _pipe(ours, theirs, outward=True)
                self.stdout_fd, stdout = _pipe(ours, theirs, outward=False)
            self._keeper = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", supervisor.__file__),
                    *(str(control), str(status), str(scratch), str(procs or "")),
                    "isolated" if isolated else "open",
                    *command,
                ],
                cwd=scratch,
                env=dict(environment),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(control, status),
                start_new_session=True,  # Ctrl-C is for the arena, which then stops its bots in order
            )
            ours.pop_all()
        self.keeper_pid = self._keeper.pid
        self._loop.add_reader(self._status, self._hear)
        self._loop.add_reader(self._stderr, self._drain)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        scratch: Path,
        environment: Mapping[str, str],
        stdio: bool = False,
        isolated: bool = False,
        procs: Path | None = None,
    ) -> Process:
        """Start a program, and wait until it is executed.

        Args:
            command: the program, looked up on the PATH of its environment, and its arguments.
            scratch: where it runs; the keeper removes this directory at the end.
            environment: all of its environment.
            stdio: whether we talk to it through its standard input and output.
            isolated: whether the command is a sandbox, which ends with the program in it.
            procs: the file of its control group that takes process ids.

        Raises:
            ArenaError: it cannot be executed, or the machine has no process or descriptor left for it.
        """
        try:
            process = cls(
                command,
                scratch=scratch,
                environment=environment,
                stdio=stdio,
                isolated=isolated,
                procs=procs,
            )
        except OSError as error:
            raise ArenaError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            async with asyncio.timeout(_START_S):
                process.pid = await asyncio.shield(process._started)
        except TimeoutError:
            await process._give_up()
            raise ArenaError(
                f"cannot start {command[0]}: not executed within {_START_S:.0f} s"
            ) from None
        except BaseException:
            await process._give_up()
            raise
        return process

    async def _give_up(self) -> None:
        """Nobody will have it."""
        for descriptor in (self.stdin_fd, self.stdout_fd):
            if descriptor is not None:
                os.close(descriptor)
        self.kill()
        await self.stop()

    @property
    def tail(self) -> str:
        """The end of what it wrote to stderr so far."""
        return self._tail.decode(errors="replace")

    # ---- To end it

    def kill(self) -> None:
        """End its whole tree at once; does not wait for that."""
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    async def stop(self) -> None:
        """End its whole tree: politely, then not; comes back within some seconds whatever happens."""
        self._keeper.terminate()
        patience_s = supervisor.GRACE_S + _PATIENCE_S
        for harder in (self.kill, self._keeper.kill, lambda: None):
            await asyncio.wait([self.gone], timeout=patience_s)
            if self.gone.done():
                return
            harder()
            patience_s = _PATIENCE_S
        self._close()  # it is in the kernel's hands

    # ---- What comes from it

    def _hear(self) -> None:
        """Lines from the keeper, or its end."""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._status, 4096)
            self._said += said
            *lines, self._said = self._said.split(b"\n")
            for line in lines:
                self._note(line.decode(errors="replace"))
            if not said:
                self._loop.remove_reader(self._status)
                self._after_keeper()

    def _note(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "started":
            self._started.set_result(int(rest))
        elif word == "failed":
            self._started.set_exception(ArenaError(f"cannot start it: {rest}"))
            self.ended.set_result(None)
        else:
            self._drain_all()
            self.ended.set_result(-int(rest) if word == "signal" else int(rest))

    def _after_keeper(self) -> None:
        """The keeper has closed its pipe; once it is gone, so is everything, or it was killed."""
        if self._keeper.poll() is None:
            self._loop.call_later(_POLL_S, self._after_keeper)
        elif self.ended.done():
            self._close()
        else:
            task = self._loop.run_in_executor(None, supervisor.end_strays, str(self._scratch))
            task.add_done_callback(self._after_strays)

    def _after_strays(self, task: asyncio.Future[None]) -> None:
        if self.gone.done():
            return
        task.result()
        self._drain_all()
        if not self._started.done():
            said = self.tail.strip() or "its keeper was killed"
            self._started.set_exception(ArenaError(f"cannot start it: {said}"))
        if not self.ended.done():
            self.ended.set_result(None)
        self._close()

    def _drain(self) -> None:
        """Read what is there of stderr, up to a chunk."""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._stderr, _CHUNK_BYTES)
            self._tail = (self._tail + said)[-TAIL_BYTES:]
            if said:  # a pipe may have been made small: how much came says nothing
                self._loop.remove_reader(self._stderr)
                self._rest = self._loop.call_later(_REST_S, self._go_on)
            elif not said:  # closed by all: there is no more to come
                self._loop.remove_reader(self._stderr)

    def _go_on(self) -> None:
        self._loop.add_reader(self._stderr, self._drain)

    def _drain_all(self) -> None:
        """The rest of stderr: all who could write to it are gone, so it is at most what a pipe holds."""
        with contextlib.suppress(BlockingIOError):
            while said := os.read(self._stderr, _CHUNK_BYTES):
                self._tail = (self._tail + said)[-TAIL_BYTES:]

    def _close(self) -> None:
        if self.gone.done():
            return
        self.kill()
        if self._rest is not None:
            self._rest.cancel()
        for descriptor in (self._status, self._stderr):
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        if not self._started.done():
            self._started.set_exception(ArenaError("cannot start it: it does not answer"))
        if not self.ended.done():
            self.ended.set_result(None)
        self.gone.set_result(None)


def _pipe(
    ours: contextlib.ExitStack, theirs: contextlib.ExitStack, *, outward: bool
) -> tuple[int, int]:
    """Our end of a new pipe and theirs, each closed when its side is unwound."""
    reader, writer = os.pipe()
    mine, other = (writer, reader) if outward else (reader, writer)
    os.set_blocking(mine, False)
    ours.callback(os.close, mine)
    theirs.callback(os.close, other)
    return mine, other
