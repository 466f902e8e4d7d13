"""Starts a program that speaks the protocol in lines over standard input and output.

This module does not read the lines. A thread copies the program's standard error to ours, so that a
slow terminal blocks nothing. The last bytes of it are stored, for the error message when the
program ends by itself.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Mapping

from protocol.errors import ArenaError, UsageError, one_line

__all__ = ["STDIO", "LineProgram", "ProgramFailed", "read_command"]

STDIO = "stdio:"  # comes before the command of a program that speaks in lines

_LINE_BYTES = 1 << 20  # the arena's default `frame_bytes`
_SPACE = b" \t\r\n"
_MARK = codecs.BOM_UTF8  # C# and PowerShell begin their output with it
_END_S, _TERM_S = 2.0, 1.0  # the same as for bots started by an arena
_TAIL_BYTES = 2000  # stored of standard error, as by an arena


class ProgramFailed(ArenaError):
    """The program has ended by itself, or its output is not valid; exit with `status`."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def read_command(text: str) -> tuple[str, ...]:
    """Split `stdio: ./mybot --fast` into words, quoted as in a shell.

    A program in this folder needs no `./`.

    Raises:
        UsageError: there is no command, its quotes are not closed, or there is no such program.
    """
    line = text.strip().removeprefix(STDIO)
    try:
        words = shlex.split(line, posix=os.name == "posix")
    except ValueError:
        raise UsageError(f"expected a command with its quotes closed, got {text!r}") from None
    if not words or not words[0] or "\0" in line:
        raise UsageError(f"expected a command such as 'stdio: ./mybot', got {text!r}")
    program = words[0]
    if not os.path.dirname(program) and shutil.which(program) is None:
        program = os.path.join(os.curdir, program)
    if not os.path.isfile(shutil.which(program) or program):
        raise UsageError(f"expected a program on PATH or a path to one, got {words[0]!r}")
    if shutil.which(program) is None:
        raise UsageError(
            f"expected a program, got {words[0]!r}, which is not executable; "
            "start it as in 'stdio: python3 bot.py', or chmod +x it"
        )
    return program, *words[1:]


class LineProgram:
    """The process of the program; call `start` first and `end` last."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._process: asyncio.subprocess.Process | None = None
        self._tail = bytearray()
        self._copying: threading.Thread | None = None

    async def start(self, environment: Mapping[str, str]) -> None:
        """Start the process, with our environment and these variables.

        It has a process group of its own, so that Ctrl-C reaches only us: we say goodbye before it
        ends.

        Raises:
            UsageError: the program cannot be executed.
        """
        reads, writes = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=writes,
                limit=_LINE_BYTES,
                start_new_session=True,
                env={**os.environ, **environment},
            )
        except (OSError, ValueError) as error:
            os.close(reads)
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"cannot start {self._words[0]!r}: {why}") from None
        finally:
            os.close(writes)
        self._copying = threading.Thread(target=self._copy, args=(reads,), daemon=True)
        self._copying.start()

    async def read(self) -> bytes | None:
        """Return the next non-empty line; None at the end of the output.

        Raises:
            ProgramFailed: the line is too long.
        """
        stdout = self._running.stdout
        assert stdout is not None, "it is a pipe"
        while True:
            try:
                line = await stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                return error.partial.removeprefix(_MARK).strip(_SPACE) or None
            except asyncio.LimitOverrunError:
                raise ProgramFailed(
                    f"expected lines of at most {_LINE_BYTES} bytes from the program, "
                    "got a longer one"
                ) from None
            if stripped := line.removeprefix(_MARK).strip(_SPACE):
                return stripped

    async def write(self, message: bytes) -> None:
        """Write one message as a line, and wait until the program reads.

        Does nothing if the program has closed its input.
        """
        stdin = self._running.stdin
        assert stdin is not None, "it is a pipe"
        # A line break in JSON is only white space, as it is escaped within strings.
        line = message.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
        with contextlib.suppress(ConnectionError):
            stdin.write(line)
            await stdin.drain()

    async def end(self, patience_s: float = _END_S) -> int:
        """Close the program's input, wait, and kill it if it does not end.

        Returns its exit status, negative for a signal.
        """
        if self._process is None:
            return 0
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
            for wait_s, then in ((patience_s, "SIGTERM"), (_TERM_S, "SIGKILL")):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._exited()
                        break
                self._signal(then)
            else:
                await self._exited()
        finally:
            self._signal("SIGKILL")  # for its remaining children, or after a second Ctrl-C
        if self._copying is not None:
            await asyncio.to_thread(self._copying.join, _TERM_S)
        status = self._process.returncode
        assert status is not None, "it has ended"
        return status

    def failure(self, status: int) -> ProgramFailed:
        """Make the error for an unexpected end, with the last line of standard error."""
        if status < 0:
            with contextlib.suppress(ValueError):
                name = signal.Signals(-status).name
                return self._failed(f"was ended by {name}", 128 - status)
        return self._failed(f"has ended with status {status}", status or 1)

    def _failed(self, what: str, status: int) -> ProgramFailed:
        lines = self._tail.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        told = f"; the end of its standard error: {one_line(last.strip())}"
        return ProgramFailed(f"the program {what}{told if last else ''}", status)

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "it was started"
        return self._process

    async def _exited(self) -> None:
        """Wait for the program's end, and drop its output: `wait` needs the output's end."""
        process = self._running
        assert process.stdout is not None, "it is a pipe"
        waiting = asyncio.create_task(process.wait())
        try:
            while process.returncode is None and await process.stdout.read(1 << 16):
                pass
            await waiting
        finally:
            waiting.cancel()

    def _signal(self, name: str) -> None:
        process = self._running
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, getattr(signal, name))

    def _copy(self, reads: int) -> None:
        with open(reads, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                self._tail += chunk
                del self._tail[:-_TAIL_BYTES]
                with contextlib.suppress(OSError, ValueError):  # our stderr may be closed
                    sys.stderr.write(chunk.decode(errors="replace"))
                    sys.stderr.flush()
