"""What tests of submissions need: a service on a database, a quick check, and a submitter."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from arena.storage.submissions import Submission
from arena.submissions.service import SubmissionService
from arena.submissions.settings import SubmissionSettings
from arena.submissions.uploads import Upload
from protocol.messages import Limits
from protocol.submitting import Progressing, Send, Submit, ToSubmitter

__all__ = ["QUICK_CHECK", "FakeFollower", "RunningSubmissions", "bot_zip", "strategy"]

_CHECK = """
import json, sys, time
job = json.loads(sys.stdin.readline())
text = open(job["folder"] + "/bot.py").read()
if "sleeps" in text:
    time.sleep(600)
if "breaks" in text:
    sys.exit("the check broke")
def say(**said):
    print(json.dumps(said), flush=True)
say(type="begun", step="starts")
say(type="done", step="starts", status="ok", text="at once", lines=[" 1 starts ok"])
games = [word for word in ("ace_king_queen", "blackjack") if word in text]
why = "" if games else "starts: it plays nothing. Play."
say(type="verdict", games=games, why=why, lines=["1 step"])
"""
QUICK_CHECK = (sys.executable, "-I", "-S", "-c", _CHECK)
"""In place of the process that checks a program: it plays the games that its text names."""


def strategy(*words: str) -> bytes:
    """A FILE.py that is taken for a strategy, with these words in it."""
    return f"# {' '.join(words)}\nclass Bot:\n    pass\n".encode()


def bot_zip(**files: str) -> bytes:
    """A zip archive; `bot_toml` is the file bot.toml."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return out.getvalue()


class FakeFollower:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, message: ToSubmitter) -> None:
        self.told.append(message)

    @property
    def states(self) -> list[str]:
        """The states that it was told, each once in a row."""
        told = [one.state for one in self.told if isinstance(one, Progressing)]
        return [state for n, state in enumerate(told) if told[:n][-1:] != [state]]


class RunningSubmissions:
    """A service on a database; use it as an asynchronous context."""

    def __init__(
        self,
        where: str | Path,
        folder: Path,
        settings: SubmissionSettings | None = None,
        check: Sequence[str] = QUICK_CHECK,
        owners: Sequence[str] = ("ann", "bob"),
    ) -> None:
        self.store = Store(where)
        self.tokens = {
            one.name: one.token
            for one in Roster(self.store.engine).take([Student(name=name) for name in owners]).new
        }
        self.folder = folder
        self.service = SubmissionService(
            self.store.engine,
            settings or SubmissionSettings(),
            Limits(),
            folder,
            hidden=(),
            check=check,
        )

    async def __aenter__(self) -> RunningSubmissions:
        self._changed = asyncio.Event()
        self.service.on_change.append(self._changed.set)
        await self.service.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.service.close()
        self.store.close()

    async def hand_in(
        self, owner: str, data: bytes, name: str = "bot.py", message: str = ""
    ) -> Submission:
        """Send a program as a socket does, to its arrival."""

        def tell(said: ToSubmitter) -> None:
            if isinstance(said, Send):
                upload.feed(data)

        upload = Upload(owner, Submit(name, len(data), message), tell)
        return await self.service.receive(upload)

    async def decided(self, submission: Submission) -> Submission:
        """Wait until a submission is decided."""
        while not (found := await self.service.get(submission.number)).state.is_decided:
            await self._changed.wait()
            self._changed.clear()
        return found
