"""What tests of submissions need: a service on a database, a quick check, and a submitter."""

from __future__ import annotations

import asyncio
import io
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from websockets.datastructures import Headers
from websockets.http11 import Request

from arena.referee.budget import Budget
from arena.referee.sessions import BotSessions
from arena.referee.transport import ConnectionOwner
from arena.server.admission import Admission
from arena.server.throttle import Throttle
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from arena.storage.submissions import Submission
from arena.submissions.requests import SubmissionRequests
from arena.submissions.service import SubmissionService
from arena.submissions.settings import SubmissionSettings
from arena.submissions.socket import SubmitterSockets
from arena.submissions.uploads import Upload
from protocol.codec import Encoding
from protocol.messages import Limits
from protocol.submitting import (
    FRAME_BYTES,
    PIECE_BYTES,
    Enter,
    FromSubmitter,
    Piece,
    Progressing,
    Send,
    StarterFiles,
    Submit,
    ToSubmitter,
    decode_to_submitter,
    encode_from_submitter,
)

__all__ = [
    "QUICK_CHECK",
    "FakeFollower",
    "FakeSubmitterConnection",
    "RunningSubmissions",
    "SubmitterSurroundings",
    "bot_zip",
    "strategy",
]

Told = TypeVar("Told")

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


_COMPARE = """
import json, sys, time
job = json.loads(sys.stdin.readline())
first, second = (version["name"] for version in job["versions"])
if job["game"] == "blackjack":
    sys.exit("no cards")
print(json.dumps({"type": "comparing", "text": "not known yet"}), flush=True)
text = f"{first} is better than {second}"
print(json.dumps({"type": "comparing", "text": text, "is_over": True}), flush=True)
time.sleep(600)
"""
QUICK_COMPARE = (sys.executable, "-I", "-S", "-c", _COMPARE)
"""In place of the process that compares two programs: the first is better."""


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
        self.tokens["Eva"] = Roster(self.store.engine).instructor("Eva")
        self.folder = folder
        self.service = SubmissionService(
            self.store.engine,
            settings or SubmissionSettings(),
            Limits(),
            folder,
            hidden=(),
            check=check,
            compare=QUICK_COMPARE,
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


class FakeSubmitterConnection:
    """A connection at `/submit` that records what it is sent; `hears` waits for a message."""

    has_link = True
    is_secure = False

    def __init__(self, arena: SubmitterSurroundings, number: int) -> None:
        self.peer = f"10.0.0.1:{number}"
        self.address = "10.0.0.1"
        self.encoding: Encoding | None = None
        self.is_open = self.is_behind = self.is_cut = False
        self.useless = self.pings = self.status = 0
        self.budget = Budget(1)
        self.closed: tuple[int, str] | None = None
        self.heard: list[Any] = []
        self.close_code: int | None = None
        self.close_reason = ""
        self.min_rtt_ms: float | None = None
        self._arena = arena
        self._news = asyncio.Event()

    def accept(self, request: Request) -> None:
        self.is_open = "Sec-WebSocket-Key" in request.headers

    def respond(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        self.status = status

    def hand_to(self, owner: ConnectionOwner, *, frame_bytes: int, buffer_bytes: int) -> None:
        assert owner is self._arena.sockets
        assert frame_bytes == FRAME_BYTES < buffer_bytes

    def silent_since(self, now: float) -> float | None:
        return None

    def send(self, frame: bytes, encoding: Encoding) -> None:
        assert encoding is Encoding.JSON
        if self.is_open:
            self.heard.append(decode_to_submitter(frame))
            self._news.set()

    def ping(self, payload: bytes) -> None:
        self.pings += 1

    def close(self, code: int, reason: str = "") -> None:
        self.closed, self.is_open = (code, reason), False
        self._news.set()

    def cut(self) -> None:
        self.is_cut, self.is_open = True, False

    def hello_received(self) -> None:
        raise AssertionError("it is no bot")

    def rest(self, until: float) -> None:
        raise AssertionError("it is no bot")

    def says(self, *messages: FromSubmitter | bytes) -> FakeSubmitterConnection:
        """Send messages, or frames, at the present time."""
        for message in messages:
            frame = message if isinstance(message, bytes) else encode_from_submitter(message)
            self._arena.sockets.received(self, frame, Encoding.JSON, self._arena.now)
        return self

    def leaves(self) -> None:
        self.is_open = False
        self._arena.sockets.lost(self)

    async def hears(self, kind: type[Told], is_it: Callable[[Told], bool] = lambda _: True) -> Told:
        """The first message of a type, which may have come before; it and those before are gone."""
        async with asyncio.timeout(20):
            while True:
                for at, message in enumerate(self.heard):
                    if isinstance(message, kind) and is_it(message):
                        del self.heard[: at + 1]
                        return message
                self._news.clear()
                await self._news.wait()

    async def hands_in(self, data: bytes, name: str = "bot.py") -> int:
        """Upload a program; the number of the submission that has arrived."""
        self.says(Submit(name, len(data)))
        await self.hears(Send)
        pieces = range(0, len(data), PIECE_BYTES)
        self.says(*(Piece(data[at : at + PIECE_BYTES]) for at in pieces))
        return (await self.hears(Progressing)).submission


class SubmitterSurroundings:
    """The sockets at `/submit` over a running service, and a fake gateway around them."""

    def __init__(self, running: RunningSubmissions) -> None:
        self.now = 100.0
        self.running = running
        self.blamed = 0
        self.admission = Admission(BotSessions(), Limits(), Roster(running.store.engine).access())
        self.requests = SubmissionRequests(
            running.service,
            ("ace_king_queen",),
            lambda game, language: StarterFiles({"bot.py": f"{game} {language}"}, "bot.py"),
        )
        self.sockets = SubmitterSockets(
            self.admission, cast(Throttle, self), self.requests, self.now
        )
        self._number = 0

    def opens(self, **headers: str) -> FakeSubmitterConnection:
        """A connection that has said nothing yet."""
        self._number += 1
        connection = FakeSubmitterConnection(self, self._number)
        said = Headers({"Sec-WebSocket-Key": "x", **headers})
        self.sockets.enter(connection, Request("/submit", said))
        return connection

    def enters(self, owner: str) -> FakeSubmitterConnection:
        """A connection that has shown its token."""
        return self.opens().says(Enter(self.running.tokens[owner]))

    def passes(self, seconds: float) -> None:
        """Let time pass, with a tick a second."""
        for _ in range(round(seconds)):
            self.now += 1
            self.sockets.tick(self.now)

    def roster_changes(self) -> None:
        self.admission.change(Roster(self.running.store.engine).access())
        self.sockets.roster_changed()

    def blame(self, address: str) -> None:
        """As the throttle."""
        self.blamed += 1
