"""What happens at the sockets at `/submit`: submitters without sockets, at a service that runs."""

from __future__ import annotations

import asyncio
import io
import threading
import zipfile
from collections.abc import AsyncIterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from arena.sandbox.build import LOG_BYTES
from arena.server import peer_sockets
from arena.storage import submissions as quota
from arena.storage.roster import Roster
from arena.storage.submissions import MOST_STDERR, STDERR_BYTES, Submission
from arena.submissions import socket, uploads
from arena.submissions.socket import _BUFFER_BYTES, SubmitterSockets
from protocol.submitting import (
    PIECE_BYTES,
    Download,
    Enter,
    GetLog,
    Got,
    LogText,
    Piece,
    Progressing,
    Send,
    Submit,
    encode_to_submitter,
)
from tests.support.page_sockets import PageSocketStage
from tests.support.rule_cases import value, words_of
from tests.support.scripts import Case, cases, fields
from tests.support.submitting import (
    FakeSubmitterConnection,
    SubmitterSurroundings,
    bot_zip,
    in_submissions,
    strategy,
)

PLACES = {"peer_sockets": peer_sockets, "quota": quota, "socket": socket, "uploads": uploads}
PROGRAMS = {
    "hello": b"hello",
    "noise": b"PK no zip",
    "unbuildable": bot_zip(
        bot_toml='build = "sh -c \'echo all-wrong; exit 3\'"\nrun = "python3 bot.py"',
        bot_py="import sys",
    ),
    "unstartable": bot_zip(bot_toml="run = './bot'\nbuild = 'true'\n"),
}


def program(words: str) -> bytes:
    """One of `PROGRAMS`, or else a strategy with words in it: `akq+more`."""
    return PROGRAMS.get(words) or strategy(*words.replace("akq", "ace_king_queen").split("+"))


class SubmitStage(PageSocketStage[FakeSubmitterConnection]):
    """Submitters by their names. A submitter enters when it is first named, if it has a token."""

    def __init__(
        self,
        arena: SubmitterSurroundings,
        patch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        super().__init__(arena)
        self._arena = arena
        self._patch = patch
        self._caplog = caplog

    def opened(self, name: str) -> FakeSubmitterConnection:
        owner = name.rstrip("0123456789")
        return (
            self._arena.enters(owner)
            if owner in self._arena.running.tokens
            else super().opened(name)
        )

    def do_set(self, text: str) -> None:
        name, _, number = text.partition(" ")
        place, _, attribute = name.partition(".")
        self._patch.setattr(PLACES[place], attribute, value(number))

    def do_break(self, path: str) -> None:
        owner, _, name = path.rpartition(".")
        self._patch.setattr(attrgetter(owner)(self._arena), name, None)

    def do_revoke(self, owner: str) -> None:
        Roster(self._arena.running.store.engine).revoke(owner)
        self._arena.roster_changes()

    async def do_close(self, _: str) -> None:
        await self._arena.sockets.close()

    def by_enters(self, name: str, owner: str) -> None:
        self.of(name).says(Enter(self._arena.running.tokens[owner]))

    def by_sends(self, name: str, text: str) -> None:
        """Send a piece: a program, or a number of bytes."""
        for word in words_of(text):
            self.of(name).says(Piece(b"#" * int(word) if word.isdigit() else program(word)))

    async def by_hands(self, name: str, text: str) -> None:
        _, words, *more = text.split(" ")
        options = fields(" ".join(more))
        number = await self.of(name).hands_in(program(words), options.get("file", "bot.py"))
        assert number == options.get("as", number)

    async def by_has(self, name: str, words: str) -> None:
        """Hand a program in, and wait until it is a version."""
        await self.of(name).hands_in(program(words))
        await self.by_awaits(name, "progress state=accepted")

    def do_gone(self, connections: str) -> None:
        """How many connections the gateway was told to forget."""
        assert self._arena.gone == int(connections)

    def do_empty(self, folder: str) -> None:
        assert [*(self._arena.running.folder / folder).iterdir()] == []

    def do_logged(self, text: str) -> None:
        assert text in self._caplog.text


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("submitting.cases")))
async def test_what_happens_at_the_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, case: Case
) -> None:
    async with in_submissions(tmp_path, **case.given) as arena:
        await SubmitStage(arena, monkeypatch, caplog).play(case)


NASH = strategy("ace_king_queen")


@pytest.fixture
async def arena(tmp_path: Path) -> AsyncIterator[SubmitterSurroundings]:
    async with in_submissions(tmp_path) as arena:
        yield arena


async def accepted(owner: FakeSubmitterConnection, data: bytes = NASH) -> int:
    """Hand a program in; its number once it is a version."""
    number = await owner.hands_in(data)
    await owner.hears(Progressing, lambda said: said.version is not None)
    return number


@pytest.mark.parametrize("piece_bytes", [4096, PIECE_BYTES])
async def test_a_program_comes_in_pieces_that_do_not_count_as_messages(
    arena: SubmitterSurroundings, piece_bytes: int
) -> None:
    data = NASH + b"#" * (piece_bytes * 100)
    ann = arena.enters("ann").says(Submit("bot.py", len(data), "large"))

    assert (await ann.hears(Send)).piece_bytes == PIECE_BYTES
    ann.says(*(Piece(data[at : at + piece_bytes]) for at in range(0, len(data), piece_bytes)))
    await ann.hears(Got, lambda got: got.bytes == len(data))
    done = await ann.hears(Progressing, lambda said: said.version is not None)

    assert (done.submission, done.version) == (1, 1)
    [kept] = arena.running.service.submissions.of("ann")
    assert (kept.name, kept.message) == ("bot.py", "large")


@pytest.mark.parametrize("slow", ["receive", "get"])
async def test_who_hands_in_hears_what_was_decided_before_it_could_follow(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    service = arena.running.service
    done = getattr(service, slow)

    async def done_slowly(given: Any) -> Submission:
        found: Submission = await done(given)
        with monkeypatch.context() as patch:
            patch.setattr(service, slow, done)
            await arena.running.decided(found)
        return found

    monkeypatch.setattr(service, slow, done_slowly)
    ann = arena.enters("ann").says(Submit("bot.py", len(NASH)))
    await ann.hears(Send)
    ann.says(Piece(NASH))

    assert (await ann.hears(Progressing)).version == 1


async def test_the_log_has_the_steps_and_the_stderr_of_matches(
    arena: SubmitterSurroundings,
) -> None:
    ann = arena.enters("ann")
    number = await accepted(ann)
    await arena.running.service._note_stderr(number, "akq-1", 1.5, "oops")

    log = await ann.says(GetLog(number)).hears(LogText)

    assert log.check == " 1 starts ok\n1 step"
    assert [(line.match, line.version, line.text) for line in log.stderr] == [("akq-1", 1, "oops")]


async def test_the_longest_log_can_be_sent(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")
    number = await accepted(ann)
    submissions = arena.running.service.submissions
    for match in range(MOST_STDERR):
        submissions.note_stderr(number, f"akq-{match}", 1.0, "\x01\n\\\x1b" * STDERR_BYTES)
    submissions.log(number, "build", "\x00" * LOG_BYTES)

    log = await ann.says(GetLog(number)).hears(LogText)

    assert {len(line.text) for line in log.stderr} == {STDERR_BYTES}
    assert set(log.stderr[0].text) == {"?", "\n", "\\"}
    assert len(encode_to_submitter(log)) < 3 * 1024 * 1024 < _BUFFER_BYTES


@pytest.mark.parametrize("who", ["ann", "Eva"])
async def test_a_program_can_be_downloaded_as_a_zip(arena: SubmitterSurroundings, who: str) -> None:
    number = await accepted(arena.enters("ann"), NASH + b"# more\n" * 20_000)
    reader = arena.enters(who)

    reader.says(Download(number))
    data = b""
    while piece := (await reader.hears(Piece)).data:
        data += piece

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.read("bot.py").startswith(NASH)


async def test_a_download_is_not_packed_for_who_is_gone(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await accepted(arena.enters("ann"))
    has_begun, goes_on = asyncio.Event(), threading.Event()
    loop, packed = asyncio.get_running_loop(), list[str]()

    def zip_slowly(_: SubmitterSockets, sha256: str, __: object) -> None:
        packed.append(sha256)
        loop.call_soon_threadsafe(has_begun.set)
        goes_on.wait(60)

    monkeypatch.setattr(SubmitterSockets, "_zip", zip_slowly)
    first = arena.enters("ann").says(Download(number))
    await has_begun.wait()
    gone, last = (arena.enters("ann").says(Download(number)) for _ in range(2))
    gone.leaves()
    goes_on.set()
    await first.hears(Piece)
    await last.hears(Piece)

    assert len(packed) == 2
