"""The reader process and the arena's side of it: questions, answers, and how either ends."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.storage.store import Store
from arena.web import reader_answers as answering
from arena.web import reader_client
from arena.web.answering_process import Header
from arena.web.reader_client import ReaderAnswer, ReaderClient
from arena.web.reader_client_process import ReaderProcess
from arena.web.reader_questions import ReaderQuestion
from tests.support import databases
from tests.support.arena_process import state
from tests.support.databases import Server
from tests.support.page_reader import INSTRUCTOR, PUBLIC, InProcessReader
from tests.support.sample_database import SampleWriter, personal_match, plan, write

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
LIST = "/api/competitions.json"
MATCH = "/api/matches/ace_king_queen-1.json"
RECORD = "/api/matches/gin_rummy-1/record.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "arena.db", ["ace_king_queen"])


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    with Store(file) as store:
        yield store


@asynccontextmanager
async def reading(store: Store, **options: Any) -> AsyncIterator[ReaderClient]:
    """A client that is closed at the end, and leaves no process."""
    reader = ReaderClient(store, **options)
    try:
        yield reader
        pid = reader.process.pid
    finally:
        await reader.close()
    assert pid is None or state(pid) == ""


@pytest.fixture
async def reader(store: Store) -> AsyncIterator[ReaderClient]:
    async with reading(store) as reader:
        yield reader


async def started(reader: ReaderClient) -> int:
    """Its process, which has answered once."""
    assert (await reader.ask(LIST, {}, PUBLIC)).status == 200
    assert reader.process.pid is not None
    return reader.process.pid


def line(answer: ReaderAnswer) -> str:
    text: str = msgspec.json.decode(answer.body)["error"]
    assert "\n" not in text
    return text


# ---- Questions and answers


async def test_it_answers_what_it_is_asked_and_starts_only_then(reader: ReaderClient) -> None:
    assert reader.process.pid is None
    answer = await reader.ask(LIST, {}, PUBLIC)
    again = await reader.ask("/api/competitions/ace_king_queen-00000000.json", {}, PUBLIC)
    none = await reader.ask("/api/competitions/none.json", {}, PUBLIC)

    assert answer.status == again.status == 200
    assert answer.etag is not None
    assert len(msgspec.json.decode(answer.body)["competitions"]) == 1
    assert (none.status, none.etag) == (404, None)
    assert "expected the id of a competition" in line(none)


async def test_the_process_gives_way_to_whoever_plays(reader: ReaderClient) -> None:
    priority = os.getpriority(os.PRIO_PROCESS, await started(reader))

    assert priority >= min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)


async def test_what_a_class_asks_for_at_once_is_asked_once(store: Store) -> None:
    async with reading(store, fresh_s=60.0) as reader:
        answers = await asyncio.gather(
            *(reader.ask(LIST, {}, PUBLIC) for _ in range(200)),
            *(reader.ask(LIST, {}, INSTRUCTOR) for _ in range(200)),
        )
        kept = await reader.ask(LIST, {}, PUBLIC)

        assert len({id(answer) for answer in answers}) == 2
        assert kept is answers[0]
        assert reader.asked == 2


async def test_a_document_comes_packed_for_whoever_wants_that(tmp_path: Path) -> None:
    with Store(write(tmp_path / "arena.db", ["gin_rummy"])) as store:
        async with reading(store, fresh_s=60.0) as reader:
            plain = await reader.ask(RECORD, {}, PUBLIC)
            packed = await reader.ask(RECORD, {}, PUBLIC, packs=True)
            tiny = await reader.ask(LIST, {}, PUBLIC, packs=True)
            bad = await reader.ask("/api/" + "x" * 2_000, {}, PUBLIC, packs=True)

            assert (plain.is_packed, packed.is_packed) == (False, True)
            assert len(packed.body) < len(plain.body) / 2
            assert gzip.decompress(packed.body) == plain.body
            assert packed.etag == plain.etag
            assert (tiny.status, tiny.is_packed) == (200, False)
            assert (bad.status, bad.is_packed) == (404, False), "it repeats what was asked"


async def test_a_viewer_never_gets_what_was_made_for_another(reader: ReaderClient) -> None:
    at = "/api/competitions/ace_king_queen-00000000.json"
    for viewer, actions in ((PUBLIC, None), (INSTRUCTOR, []), (PUBLIC, None)):
        answer = await reader.ask(at, {}, viewer)
        assert msgspec.json.decode(answer.body)["actions"] == actions


async def test_a_persons_match_goes_with_the_question(reader: ReaderClient) -> None:
    sat = personal_match("gin_rummy")

    answer = await reader.ask("/api/matches/p-1.json", {}, PUBLIC, sat)

    assert msgspec.json.decode(answer.body)["players"] == list(sat.players)


async def test_names_of_all_kinds_go_through_the_pipe(reader: ReaderClient) -> None:
    at = "/api/competitions/ace_king_queen-00000000/bot.json"
    for name in ("näh", "a\nb", "\u2028", "\x00", "x" * 5_000):
        answer = await reader.ask(at, {"name": name}, PUBLIC)
        assert answer.status == 404


async def test_what_cannot_even_be_asked_holds_nobody_up(reader: ReaderClient) -> None:
    bad, good = await asyncio.gather(
        reader.ask("/api/\ud800.json", {}, PUBLIC), reader.ask(LIST, {}, PUBLIC)
    )

    assert (bad.status, good.status) == (500, 200)


# ---- Ends


async def test_a_child_that_is_killed_costs_one_answer_at_most(reader: ReaderClient) -> None:
    pid = await started(reader)
    os.kill(pid, signal.SIGSTOP)
    first = asyncio.create_task(reader.ask(MATCH, {}, PUBLIC))
    others = [
        asyncio.create_task(reader.ask(f"/api/matches/none-{n}.json", {}, PUBLIC)) for n in range(5)
    ]
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    answer = await first

    assert answer.status == 500
    assert "starts again with the next question" in line(answer)
    assert [(await other).status for other in others] == [404] * 5
    assert (await reader.ask(MATCH, {}, PUBLIC)).status == 200


async def test_a_child_that_was_killed_while_it_was_idle_is_not_noticed(store: Store) -> None:
    async with reading(store, fresh_s=0.0) as reader:
        pid = await started(reader)
        os.kill(pid, signal.SIGKILL)
        while reader.process.pid is not None:  # the loop has heard of it
            await asyncio.sleep(0.01)

        assert (await reader.ask(MATCH, {}, PUBLIC)).status == 200
        assert reader.process.pid not in (None, pid)


async def test_what_takes_too_long_is_given_up(
    reader: ReaderClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = await started(reader)
    monkeypatch.setattr(reader_client, "_MOST_S", 0.2)
    os.kill(pid, signal.SIGSTOP)
    slow = await reader.ask(MATCH, {}, PUBLIC)
    monkeypatch.setattr(reader_client, "_MOST_S", TIMEOUT_S)

    assert slow.status == 503
    assert state(pid) == ""
    assert (await reader.ask(MATCH, {}, PUBLIC)).status == 200


async def test_a_child_that_cannot_start_is_one_line_and_is_not_tried_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    async with reading(store) as reader:
        first = await reader.ask(LIST, {}, PUBLIC)
        second = await reader.ask(MATCH, {}, PUBLIC)

        assert (first.status, second.status) == (503, 503)
        assert "does not start" in line(first)
        assert reader.process.started == 1


async def test_who_asks_for_much_holds_up_nobody_else(reader: ReaderClient) -> None:
    order: list[str] = []

    async def asks(name: str, address: str) -> None:
        await reader.ask(f"/api/competitions/{name}.json", {}, PUBLIC, None, address)
        order.append(name)

    much = (asks(f"much-{number}", "10.0.0.1") for number in range(20))
    await asyncio.gather(*much, asks("little", "10.0.0.2"))

    assert "little" in order[:3]


async def test_what_nobody_waits_for_any_more_is_not_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    asks = ReaderProcess.ask

    async def noting(child: ReaderProcess, question: ReaderQuestion) -> tuple[Header, bytes]:
        asked.append(question.path)
        return await asks(child, question)

    monkeypatch.setattr(ReaderProcess, "ask", noting)

    async with reading(store) as reader:
        pid = await started(reader)
        os.kill(pid, signal.SIGSTOP)
        first = asyncio.create_task(reader.ask(MATCH, {}, PUBLIC))
        await asyncio.sleep(0)
        gone = [
            asyncio.create_task(reader.ask(f"/api/matches/{n}.json", {}, PUBLIC)) for n in range(5)
        ]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await asyncio.wait(gone)
        os.kill(pid, signal.SIGCONT)

        assert (await first).status == 200
        assert (await reader.ask("/api/matches/0.json", {}, PUBLIC)).status == 404
        assert asked == [LIST, MATCH, "/api/matches/0.json"]


async def test_closing_answers_whoever_still_waits(reader: ReaderClient) -> None:
    os.kill(await started(reader), signal.SIGSTOP)
    waiting = asyncio.create_task(reader.ask(MATCH, {}, PUBLIC))
    await asyncio.sleep(0)
    await reader.close()

    assert (await waiting).status == 503
    assert (await reader.ask(MATCH, {}, PUBLIC)).status == 503


async def test_ctrl_c_is_for_the_arena(reader: ReaderClient) -> None:
    pid = await started(reader)
    os.kill(pid, signal.SIGINT)
    answer = await reader.ask(MATCH, {}, PUBLIC)

    assert answer.status == 200
    assert reader.process.pid == pid
    assert os.getpgid(pid) != os.getpgid(0)


def test_it_ends_with_its_input_whatever_it_is_doing(file: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "arena.web.reader_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"db": str(file)}).encode() + b"\n")
        question = {"id": 7, "path": LIST, "viewer": {"kind": "public"}}
        process.stdin.write(json.dumps(question).encode() + b"\n")
        process.stdin.flush()
        header = json.loads(process.stdout.readline())
        document = json.loads(process.stdout.read(header["bytes"]))
        process.stdin.close()

        assert header["id"] == 7
        assert document["competitions"]
        assert process.wait(TIMEOUT_S) == 0


def test_what_is_no_question_ends_it_with_a_line(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "arena.web.reader_process"],
        input=json.dumps({"db": str(file)}).encode() + b"\nnothing\n",
        capture_output=True,
        check=False,
    )

    assert done.returncode in (0, 1)  # its input may have ended before
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") <= 1


# ---- Databases


def test_a_database_that_is_locked_is_one_line_and_later_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "_BUSY_MS", 10)
    library = InProcessReader(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        library.get("competitions.json")
        other.execute("BEGIN EXCLUSIVE")
        status, text = library.refused("competitions.json")
        other.execute("ROLLBACK")

        assert status == 500
        assert "locked" in text
        assert library.get("competitions.json")["competitions"]
        assert len(library.log) == 1


def test_a_database_that_is_not_there_is_one_line_and_read_when_it_is(file: Path) -> None:
    away = file.rename(file.with_suffix(".away"))
    library = InProcessReader(file)
    status, text = library.refused("competitions.json")
    away.rename(file)

    assert (status, text) == (500, "the database of this arena cannot be read, its log says why")
    assert str(file) in library.log[0]
    assert library.get("competitions.json")["competitions"]


async def test_a_password_is_on_no_command_line_and_in_no_answer(postgres: Server) -> None:
    url = postgres.tcp(postgres.url())
    with Store(url) as store:
        async with reading(store) as reader:
            answer = await reader.ask(LIST, {}, PUBLIC)
            assert answer.status == 200
            words = Path(f"/proc/{reader.process.pid}/cmdline").read_bytes()
            surroundings = Path(f"/proc/{reader.process.pid}/environ").read_bytes()
            for secret in (databases.PASSWORD, databases.PASSWORD.replace(" ", "%20")):
                assert secret.encode() not in words
                assert secret.encode() not in surroundings


def test_a_server_that_cannot_be_reached_is_told_without_its_address(postgres: Server) -> None:
    address = postgres.url()
    with Store(address):
        pass
    for url in (
        postgres.tcp(address, "another"),
        postgres.tcp(address).replace(str(postgres.port), "1"),
    ):
        library = InProcessReader(url)
        status, text = library.refused("competitions.json")

        assert status == 500
        assert text == "the database of this arena cannot be read, its log says why"
        assert all("another" not in line for line in library.log)
        assert all(databases.PASSWORD not in line for line in library.log)
        library.close()


def test_a_server_is_read_like_a_file_and_does_not_wait_for_ever(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "_BUSY_MS", 10)
    url = postgres.url()
    with Store(url) as store:
        SampleWriter(store, plan("high_low"), "c").to_the_end()
        SampleWriter(store, plan("ace_king_queen"), "d").to_the_end()
        store.flush()
        library = InProcessReader(url)
        assert library.get("competitions/c.json")["ranking"]
        for path, query in (
            ("competitions.json", {}),
            ("competitions/d/cross.json", {}),
            ("competitions/d/bot.json", {"name": "ann"}),
            ("competitions/d/pairing.json", {"a": "ann", "b": "ben"}),
            ("competitions/d/matches.json", {"limit": "1"}),
            ("matches/high_low-1.json", {}),
            ("matches/high_low-1/record.json", {}),
        ):
            assert library.get(path, PUBLIC, **query)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE competitions")
            status, text = library.refused("competitions.json")
        library.close()

        assert status == 500
        assert "its log says why" in text
