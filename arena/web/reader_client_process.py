"""The reader process as the arena holds it: started, asked one thing at a time, ended.

Its input is a pipe that only the arena holds: when the arena is gone, so is the reader. The address of the database goes through that pipe,
as command lines can be read by others.

It is not a `ProcessPoolExecutor(1)`: spawned with a watch on its parent that ended with the arena too, but its five semaphores stayed in
`/dev/shm` when all of the arena's processes were killed at once, as systemd does, and it needs a second process to look after them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE, Process

import msgspec

from arena.server.background import BackgroundTasks
from arena.web.reader_process import Database, Header
from arena.web.reader_questions import ReaderQuestion
from protocol.errors import one_line

__all__ = ["ReaderDied", "ReaderProcess"]

log = logging.getLogger(__name__)

_END_S = 1.0  # for the process to end with its input; it needs a moment
_WORDS = 500  # of a line that it has for the log


class ReaderDied(Exception):
    """The process is gone."""


class ReaderProcess:
    """The process, which is started by the first question, and by the first one after its end.

    Args:
        where: the database.

    Attributes:
        started: how often it was started.
        has_answered: whether it has said anything since it was started.
    """

    def __init__(self, where: str) -> None:
        self.started = 0
        self.has_answered = False
        self._where = where
        self._process: Process | None = None
        self._listeners = BackgroundTasks()

    @property
    def pid(self) -> int | None:
        """Its number, if it runs."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    async def start(self) -> None:
        """Start it.

        Raises:
            OSError: there is no memory for it, say.
        """
        await self.end()
        self.has_answered = False
        self.started += 1
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arena.web.reader_process"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,  # Ctrl-C and a terminal that is closed are for the arena
        )
        self._listeners.start(_listen(process))
        assert process.stdin is not None, "it was started with one"
        process.stdin.write(msgspec.json.encode(Database(self._where)) + b"\n")

    async def ask(self, question: ReaderQuestion) -> tuple[Header, bytes]:
        """What it says to a question.

        Raises:
            Died: nothing, and it will not say anything any more.
        """
        process = self._process
        assert process is not None, "it was started"
        assert process.stdin is not None, "it was started with one"
        assert process.stdout is not None, "it was started with one"
        try:
            process.stdin.write(msgspec.json.encode(question) + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
            header = msgspec.json.decode(line, type=Header)
            body = await process.stdout.readexactly(header.bytes)
        except (OSError, EOFError, msgspec.DecodeError) as error:
            raise ReaderDied from error
        if header.id != question.id:  # it answers something else
            raise ReaderDied
        self.has_answered = True
        return header, body

    async def end(self, *, at_once: bool = False) -> None:
        """End it, if it is there, by the end of its input, or else; and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None, "it was started with one"
        process.stdin.close()
        patience_s = 0.0 if at_once else _END_S
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience_s)
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def close(self) -> None:
        """End it for good."""
        await self.end()
        await self._listeners.ended()


async def _listen(process: Process) -> None:
    """Pass on what it has for the log, until it has closed that."""
    assert process.stderr is not None, "it was started with one"
    while True:
        try:
            line = await process.stderr.readline()
        except ValueError:  # longer than anybody reads
            continue
        if not line:
            return
        log.warning(
            "the page's reader: %s", one_line(line.decode(errors="replace").rstrip(), _WORDS)
        )
