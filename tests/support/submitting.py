"""What tests of submissions need: a service on a database, a quick check, and a submitter."""

from __future__ import annotations

import asyncio
import io
import sys
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from arena.games.catalogue import game_named
from arena.referee.sessions import BotSessions
from arena.sandbox.build import BuildOutcome
from arena.sandbox.manifest import ProgramManifest
from arena.server.admission import Admission
from arena.server.gateway import Gateway
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from arena.storage.submissions import Submission
from arena.submissions.check_process import CheckJob, CheckStep, CheckVerdict
from arena.submissions.service import SubmissionService
from arena.submissions.settings import SubmissionSettings
from arena.submissions.socket import SubmitterSockets
from arena.submissions.uploads import Upload
from protocol.messages import Limits
from protocol.submitting import (
    FRAME_BYTES,
    PIECE_BYTES,
    Enter,
    Piece,
    Progressing,
    Send,
    StarterFiles,
    Submit,
    ToSubmitter,
    decode_to_submitter,
)
from tests.support.page_sockets import FakePageConnection, PageSockets

__all__ = [
    "QUICK_CHECK",
    "FakeFollower",
    "FakeSubmitterConnection",
    "RunningSubmissions",
    "SubmitterSurroundings",
    "bot_zip",
    "in_submissions",
    "pass_time",
    "strategy",
    "timed",
]

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
say(type="step", step="starts", status="begun")
say(type="step", step="starts", status="ok", text="at once", lines=[" 1 starts ok"])
games = [word for word in ("ace_king_queen", "blackjack") if word in text]
why = "" if games else "starts: it plays nothing. Play."
say(type="verdict", games=games, why=why, lines=["1 step"])
"""
QUICK_CHECK = (sys.executable, "-I", "-S", "-c", _CHECK)
"""In place of the process that checks a program: it plays the games that its text names."""

_OWNERS = ("ann", "bob", "cem", "dan", "eve", "fay")


def strategy(*words: str) -> bytes:
    """A FILE.py that is taken for a strategy, with these words in it."""
    return f"# {' '.join(words)}\nclass Bot:\n    pass\n".encode()


def timed(build_s: float, check_s: float = 0.0, about: str = "") -> bytes:
    """A program whose build and check take that long where `pass_time` was called."""
    build = f'build = "sleep {build_s}"\nrun = "python3 bot.py"'
    return bot_zip(bot_toml=build, bot_py=f"{check_s} # {about}")


def pass_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have builds and checks pass virtual time: processes have a clock of their own."""

    async def build(source: Path, manifest: ProgramManifest, *, into: Path, **_: Any) -> Any:
        await asyncio.sleep(float(manifest.build[-1]))
        with tarfile.open(into, "w", format=tarfile.GNU_FORMAT) as tar:
            for path in source.iterdir():
                tar.add(path, path.name)
        return BuildOutcome("a warning", "")

    async def check(_: object, job: CheckJob, __: float, tell: Callable[[CheckStep], None]) -> Any:
        tell(CheckStep("starts", "ok", "at once", ()))
        await asyncio.sleep(float(Path(job.folder, "bot.py").read_text().split()[0]))
        return CheckVerdict(("ace_king_queen",), "", ())

    monkeypatch.setattr("arena.sandbox.build_cache.build", build)
    monkeypatch.setattr("arena.submissions.pipeline.check", check)


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
        self.tokens["Eva"] = Roster(self.store.engine).instructor("Eva")
        self.folder = folder
        self.service = SubmissionService(
            self.store.engine,
            settings or SubmissionSettings(),
            Limits(),
            folder,
            hidden=(),
            check=check,
            games=("ace_king_queen",),
            starter=_starter,
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


class FakeSubmitterConnection(FakePageConnection):
    """A connection at `/submit`."""

    decode = decode_to_submitter
    frame_bytes = FRAME_BYTES
    buffer_bytes = 4 * 1024 * 1024

    async def hands_in(self, data: bytes, name: str = "bot.py") -> int:
        """Upload a program; the number of the submission that has arrived."""
        self.says(Submit(name, len(data)))
        await self.hears(Send)
        pieces = range(0, len(data), PIECE_BYTES)
        self.says(*(Piece(data[at : at + PIECE_BYTES]) for at in pieces))
        return (await self.hears(Progressing)).submission


class SubmitterSurroundings(PageSockets[FakeSubmitterConnection]):
    """The sockets at `/submit` over a running service, and a fake gateway around them.

    `gone` is how many connections the gateway was told to forget.
    """

    def __init__(self, running: RunningSubmissions) -> None:
        super().__init__(FakeSubmitterConnection)
        self.running = running
        self.admission = Admission(BotSessions(), Limits(), Roster(running.store.engine).access())
        self.throttle = self
        self.gone = 0
        self.owner = self.sockets = SubmitterSockets(cast(Gateway, self), running.service, self.now)

    def lost(self, connection: FakeSubmitterConnection) -> None:
        """As the gateway."""
        self.gone += 1

    def enters(self, owner: str) -> FakeSubmitterConnection:
        """A connection that has shown its token."""
        return self.opens().says(Enter(self.running.tokens[owner]))

    def roster_changes(self) -> None:
        self.admission.change(Roster(self.running.store.engine).access())
        self.sockets.roster_changed()


@asynccontextmanager
async def in_submissions(folder: Path, **settings: Any) -> AsyncIterator[SubmitterSurroundings]:
    """The sockets over a service for six owners; settings are those of the course file."""
    chosen = msgspec.structs.replace(SubmissionSettings(), **settings)
    running = RunningSubmissions(folder / "a.db", folder / "work", chosen, owners=_OWNERS)
    async with running:
        arena = SubmitterSurroundings(running)
        yield arena
        await arena.sockets.close()


def _starter(game: str, language: str) -> StarterFiles:
    return StarterFiles({"bot.py": f"{game_named(game).name}-{language}"}, "bot.py")
