"""The program beside an arena as a script: it answers when a test says so, in virtual time."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from arena.web.questions import PageAnswer, SideQuestion
from arena.web.side_program import IDLE, PAUSE, PROCESSING, RESUME, Header
from tests.support.scripts import Stage

__all__ = ["SideScript", "SideStage", "scripted"]


class _SideRun:
    """One process, as `asyncio.subprocess.Process` is used; its input is its script's."""

    pid = 1

    def __init__(self, script: SideScript) -> None:
        self.stdin, self.script = self, script
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self.returncode: int | None = None
        self.has_database = False
        self._has_ended = asyncio.Event()

    def write(self, line: bytes) -> None:
        if not self.has_database:
            self.has_database = True
        elif line in (PAUSE, RESUME):
            self.script.orders.append(line.decode().strip())
        else:
            self.script.hears(msgspec.json.decode(line, type=SideQuestion))

    async def drain(self) -> None:
        pass

    def kill(self) -> None:
        self.returncode = -9
        self.stdout.feed_eof()
        self.stderr.feed_eof()
        self._has_ended.set()

    close = kill

    async def wait(self) -> int:
        await self._has_ended.wait()
        return self.returncode or 0


class SideScript:
    """All processes of a kind, one after another; questions are answered at once by `at_once`."""

    def __init__(self, at_once: Callable[[SideQuestion], PageAnswer] | None = None) -> None:
        self.run: _SideRun | None = None
        self.does_start = True
        self.started = 0
        self.asked: list[SideQuestion] = []
        self.orders: list[str] = []
        self._at_once = at_once

    async def start(self) -> _SideRun:
        self.started += 1
        if not self.does_start:
            raise OSError("no memory")
        self.run = _SideRun(self)
        return self.run

    def hears(self, question: SideQuestion) -> None:
        self.asked.append(question)
        if question.task is not None:
            self.news(0, 0)
        if self._at_once is not None:
            self.says(self._at_once(question))

    def says(self, answer: PageAnswer) -> None:
        """Answer the latest question, or say how far it is."""
        assert self.run is not None
        header = Header(self.asked[-1].id, answer.status, "tag", len(answer.body), answer.is_packed)
        self.run.stdout.feed_data(msgspec.json.encode(header) + b"\n" + answer.body)

    def news(self, done: int, of: int) -> None:
        self.says(PageAnswer(PROCESSING, msgspec.json.encode((done, of))))

    def dies(self) -> None:
        assert self.run is not None
        self.run.kill()

    @property
    def is_up(self) -> bool:
        return self.run is not None and self.run.returncode is None


class SideStage(Stage):
    """What the script of a process does; each stage says who asks it what."""

    script: SideScript

    async def do_wait(self, seconds: str) -> None:
        await asyncio.sleep(float(seconds))

    async def do_does(self, took_s: str) -> None:
        """End what the process does."""
        await asyncio.sleep(float(took_s or 0))
        self.script.says(self.document(self.script.asked[-1]))
        await asyncio.sleep(0.001)

    def document(self, question: SideQuestion) -> PageAnswer:
        """What the process answers."""
        body = b'{"state":"done","of":%d}' % (question.task.matches if question.task else 0)
        return PageAnswer(200, gzip.compress(body), is_packed=True)

    async def do_dies(self, _: str) -> None:
        self.script.dies()
        await asyncio.sleep(0.001)

    def do_start(self, how: str) -> None:
        self.script.does_start = how == "works"

    def do_started(self, times: str) -> None:
        assert self.script.started == int(times)

    def do_process(self, state: str) -> None:
        assert self.script.is_up == (state == "up")


def scripted(patch: pytest.MonkeyPatch, documents: SideScript, idle: SideScript) -> None:
    """Let scripts run in place of both processes."""

    async def start(*command: str, **_: Any) -> _SideRun:
        return await (idle if IDLE in command else documents).start()

    patch.setattr(asyncio, "create_subprocess_exec", start)
