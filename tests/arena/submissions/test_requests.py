"""What is answered to owners and instructors; `submitting.cases` has what fits into a line."""

from __future__ import annotations

import asyncio
import io
import threading
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arena.sandbox.build import LOG_BYTES
from arena.storage.submissions import MOST_STDERR, STDERR_BYTES, Submission
from arena.submissions.requests import SubmissionRequests
from arena.submissions.socket import _BUFFER_BYTES
from arena.submissions.uploads import Upload
from protocol.submitting import (
    PIECE_BYTES,
    Compare,
    Comparing,
    Download,
    GetLog,
    Got,
    LogText,
    Piece,
    Progressing,
    Send,
    Submit,
    encode_to_submitter,
)
from tests.support.submitting import (
    FakeSubmitterConnection,
    SubmitterSurroundings,
    in_submissions,
    strategy,
)

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


async def test_who_hands_in_hears_what_was_decided_before_it_could_follow(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = arena.running.service
    receive = service.receive

    async def slow(upload: Upload) -> Submission:
        return await arena.running.decided(await receive(upload))

    monkeypatch.setattr(service, "receive", slow)
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

    def zip_slowly(_: SubmissionRequests, sha256: str, __: object) -> None:
        packed.append(sha256)
        loop.call_soon_threadsafe(has_begun.set)
        goes_on.wait(60)

    monkeypatch.setattr(SubmissionRequests, "_zip", zip_slowly)
    first = arena.enters("ann").says(Download(number))
    await has_begun.wait()
    gone, last = (arena.enters("ann").says(Download(number)) for _ in range(2))
    gone.leaves()
    goes_on.set()
    await first.hears(Piece)
    await last.hears(Piece)

    assert len(packed) == 2


async def test_one_comparison_is_played_at_a_time(arena: SubmitterSurroundings) -> None:
    comparisons = arena.running.service._comparisons
    turn = asyncio.Event()
    comparisons._queue.append(turn)
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, NASH + b"\n")

    waits = await ann.says(Compare("ace_king_queen", 1, 2)).hears(Comparing)
    comparisons._queue.remove(turn)
    comparisons._queue[0].set()

    assert waits.position == 1
    assert (await ann.hears(Comparing, lambda said: said.is_over)).position is None


async def test_a_comparison_ends_with_its_connection(arena: SubmitterSurroundings) -> None:
    comparisons = arena.running.service._comparisons
    comparisons._queue.append(asyncio.Event())
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, NASH + b"\n")
    await ann.says(Compare("ace_king_queen", 1, 2)).hears(Comparing)
    [task] = arena.requests._comparing.values()

    ann.leaves()
    await asyncio.wait([task])

    assert len(comparisons._queue) == 1
