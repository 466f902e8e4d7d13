"""A process that reads for the page as the arena holds it: started, asked, ended.

It is the reader, or the one that analyses, and is asked one question at a time. Its input is a pipe
that only the arena holds, so the process ends with the arena. The address of the database goes
through that pipe, as other users can read command lines.

It is not a `ProcessPoolExecutor(1)`. That ended with the arena too, if spawned with a watch on its
parent. But its five semaphores stayed in `/dev/shm` when all of the arena's processes were killed
at once, as systemd does, and it needs a second process to clean up after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable

import msgspec

from arena.server.background import BackgroundTasks
from arena.web.analysis_tasks import AnalysisQuestion
from arena.web.answering_process import PROCESSING, Database, Header
from arena.web.reader_questions import ReaderQuestion
from protocol.errors import one_line

__all__ = ["ReaderDied", "ReaderProcess"]

log = logging.getLogger(__name__)

_END_S = 1.0  # for the process to end after its input; it needs a moment
_LONGEST = 500  # letters of a line for the log


class ReaderDied(Exception):
    """The reader process has ended, or does not answer as it should."""


class ReaderProcess:
    """Starts the reader process, asks it, and ends it; `started` says how often it was started.

    `where` is a file, or `postgresql+psycopg://…` with its password, `module` what the process
    runs, and `title` its name in the log. `has_answered` says whether the process that was started
    last has answered anything.
    """

    def __init__(
        self, where: str, module: str = "arena.web.reader_process", title: str = "reader"
    ) -> None:
        self.started = 0
        self._module, self._title = module, title
        self.has_answered = False
        self._where = where
        self._process: Process | None = None
        self._listeners = BackgroundTasks()

    @property
    def pid(self) -> int | None:
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    async def start(self) -> None:
        """Start it, and end the previous one; raises `OSError`, for instance without memory."""
        await self.end()
        self.has_answered = False
        self.started += 1
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self._module),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,  # Ctrl-C and a terminal that is closed are for the arena
        )
        self._listeners.start(_log_errors(process, self._title))
        assert process.stdin is not None, "it was started with one"
        process.stdin.write(msgspec.json.encode(Database(self._where)) + b"\n")

    def order(self, line: bytes) -> None:
        """Send it a line that has no answer; without a process this does nothing."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(line)

    async def ask(
        self,
        question: ReaderQuestion | AnalysisQuestion,
        on_news: Callable[[bytes], None] = lambda body: None,
    ) -> tuple[Header, bytes]:
        """The answer to a question; raises `ReaderDied` if there is none, or another's.

        `on_news` is called with what comes before it.
        """
        process = self._process
        assert process is not None, "it was started"
        assert process.stdin is not None, "it was started with one"
        assert process.stdout is not None, "it was started with one"
        try:
            process.stdin.write(msgspec.json.encode(question) + b"\n")
            await process.stdin.drain()
            while True:
                line = await process.stdout.readline()
                header = msgspec.json.decode(line, type=Header)
                body = await process.stdout.readexactly(header.bytes)
                if header.id != question.id:
                    raise ReaderDied
                self.has_answered = True
                if header.status != PROCESSING:
                    return header, body
                on_news(body)
        except (OSError, EOFError, msgspec.DecodeError) as error:
            raise ReaderDied from error

    async def end(self, *, at_once: bool = False) -> None:
        """Close its input, kill it if it does not end then or `at_once`, and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None, "it was started with one"
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 0.0 if at_once else _END_S)
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def close(self) -> None:
        """End it, and wait until its last line is logged."""
        await self.end()
        await self._listeners.ended()


async def _log_errors(process: Process, title: str) -> None:
    assert process.stderr is not None, "it was started with one"
    while True:
        try:
            line = await process.stderr.readline()
        except ValueError:  # longer than the buffer of the stream
            continue
        if not line:
            return
        text = line.decode(errors="replace").rstrip()
        log.warning("the page's %s: %s", title, one_line(text, _LONGEST))
