"""Who has what analysed, when, and for how long it stands: with a process that is a double."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from arena.records.visibility import Viewer
from arena.storage.store import Store
from arena.web import analysis_client
from arena.web.analysis_client import AnalysisClient
from arena.web.analysis_process import PAUSE, RESUME
from arena.web.analysis_tasks import AnalysisKind, AnalysisQuestion, AnalysisTask
from arena.web.answering_process import Header
from arena.web.documents import error
from arena.web.reader_client import ReaderAnswer, ReaderClient
from arena.web.reader_client_process import ReaderDied, ReaderProcess
from tests.support.page_reader import INSTRUCTOR, PUBLIC, owner
from tests.support.virtual_time import in_virtual_time

ANN, BEN = owner("ann"), owner("ben")
STRENGTH = "/api/competitions/c/strength.json"


class FakeReader:
    """Gives a task for every path, of a match that `plays` so far; hides what is in `hidden`."""

    def __init__(self) -> None:
        self.plays = 1
        self.hidden: dict[str, Viewer] = {}
        self.refused = ""

    async def ask(
        self, path: str, query: Mapping[str, str], viewer: Viewer, *more: object
    ) -> ReaderAnswer:
        if self.hidden.get(path, viewer) != viewer:
            return ReaderAnswer(403, error("it is hidden"))
        _, _, _, id_, name = path.removesuffix(".json").split("/")
        kind = AnalysisKind(name)
        plays = self.plays if kind is AnalysisKind.STRENGTH else 0
        task = AnalysisTask(
            kind=kind, id=id_, bot="ann", last=plays, matches=plays, refused=self.refused
        )
        return ReaderAnswer(200, msgspec.json.encode(task))


class FakeProcess:
    """Answers when it is told to; `asked` has the ids of what it was asked, in order."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.has_answered = False
        self.does_start = True
        self.asked: list[str] = []
        self.orders: list[bytes] = []
        self._answers: asyncio.Queue[Callable[[AnalysisQuestion], bytes]] = asyncio.Queue()
        self._on_news: Callable[[bytes], None] = lambda news: None

    async def start(self) -> None:
        if not self.does_start:
            raise OSError("no memory")
        self.pid, self.has_answered = 1, False

    def order(self, line: bytes) -> None:
        if self.pid is not None:
            self.orders.append(line)

    async def ask(
        self, question: AnalysisQuestion, on_news: Callable[[bytes], None]
    ) -> tuple[Header, bytes]:
        self.asked.append(question.task.id)
        self.has_answered = True
        self._on_news = on_news
        answered = await self._answers.get()
        body = gzip.compress(answered(question))
        return Header(question.id, 200, "tag", len(body), True), body

    async def end(self, *, at_once: bool = False) -> None:
        self.pid = None

    async def close(self) -> None:
        await self.end()

    async def does_it(self, took_s: float = 0.0) -> None:
        """End the task that it does."""
        await asyncio.sleep(took_s)
        self._answers.put_nowait(
            lambda question: b'{"state":"done","of":%d}' % question.task.matches
        )
        await asyncio.sleep(0.001)

    async def dies(self, error: type[Exception] = ReaderDied) -> None:
        def die(question: AnalysisQuestion) -> bytes:
            raise error

        self._answers.put_nowait(die)
        await asyncio.sleep(0.001)

    def has_done(self, done: int, of: int) -> None:
        self._on_news(msgspec.json.encode((done, of)))


class AnalysisStage:
    """A client between both doubles."""

    def __init__(self, store: Store) -> None:
        self.reader, self.process = FakeReader(), FakeProcess()
        self.client = AnalysisClient(store, cast(ReaderClient, self.reader))
        self.client.process = cast(ReaderProcess, self.process)

    async def ask(self, path: str, viewer: Viewer = ANN, address: str = "10.0.0.1") -> Any:
        answer = await self.client.ask(path, {}, viewer, None, address)
        await asyncio.sleep(0.001)  # the worker has its turn
        return msgspec.json.decode(answer.body)

    async def mistakes(self, match: str, viewer: Viewer = ANN, address: str = "10.0.0.1") -> Any:
        return await self.ask(f"/api/matches/{match}/mistakes.json", viewer, address)

    async def state(self, match: str, viewer: Viewer = ANN, address: str = "10.0.0.1") -> str:
        answer = await self.mistakes(match, viewer, address)
        return f"{answer['state']} {answer.get('place') or ''}".strip()


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[AnalysisStage]:
    with Store(folder / "arena.db") as store:
        stage = AnalysisStage(store)
        yield stage
        await stage.client.close()


# ---- States


@in_virtual_time
async def test_it_is_queued_then_runs_with_its_progress_and_is_done(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        first = await stage.mistakes("m")
        stage.process.has_done(3, 9)
        second = await stage.mistakes("m")
        await stage.process.does_it()
        third = await stage.mistakes("m")

        nothing: dict[str, Any] = {"place": None, "done": 0, "of": 0, "text": "", "mistakes": None}
        assert first == {**nothing, "state": "queued", "place": 1}
        assert second == {**nothing, "state": "running", "done": 3, "of": 9}
        assert third["state"] == "done"


@in_virtual_time
async def test_what_cannot_be_done_or_is_hidden_is_not_queued(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.reader.hidden["/api/matches/m/mistakes.json"] = ANN
        hidden = await stage.client.ask("/api/matches/m/mistakes.json", {}, BEN)
        stage.reader.refused = "there is no judge"
        refused = await stage.mistakes("m")

        assert hidden.status == 403
        assert (refused["state"], refused["text"]) == ("refused", "there is no judge")
        assert not stage.client.is_busy
        assert stage.process.asked == []


@in_virtual_time
async def test_J8_what_was_made_for_one_is_not_shown_to_another(tmp_path: Path) -> None:
    path = "/api/matches/m/mistakes.json"
    async with staged(tmp_path) as stage:
        stage.reader.hidden[path] = ANN
        await stage.ask(path)
        await stage.process.does_it()

        assert (await stage.ask(path))["state"] == "done"
        for viewer in (BEN, PUBLIC):
            assert (await stage.client.ask(path, {}, viewer)).status == 403


@in_virtual_time
async def test_what_comes_compressed_is_unpacked_for_whoever_wants_that(tmp_path: Path) -> None:
    path = "/api/matches/m/mistakes.json"
    async with staged(tmp_path) as stage:
        await stage.ask(path)
        await stage.process.does_it()
        packed = await stage.client.ask(path, {}, ANN, packs=True)
        plain = await stage.client.ask(path, {}, ANN)

        assert (packed.is_packed, plain.is_packed) == (True, False)
        assert gzip.decompress(packed.body) == plain.body
        assert packed.etag == plain.etag == "tag"


# ---- The queue


@in_virtual_time
async def test_two_who_ask_for_the_same_share_it(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for viewer in (ANN, BEN, PUBLIC, INSTRUCTOR):
            await stage.mistakes("m", viewer)
        await stage.process.does_it()
        states = [await stage.state("m", viewer) for viewer in (ANN, BEN, PUBLIC, INSTRUCTOR)]

        assert states == ["done"] * 4
        assert stage.process.asked == ["m"]


@in_virtual_time
async def test_three_of_a_person_wait_and_no_more(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        states = [await stage.state(f"m{number}") for number in range(5)]
        more = await stage.mistakes("m4")
        other = await stage.state("n", BEN)
        known = await stage.state("m3")
        await stage.process.does_it()

        assert states == ["queued 1", "queued 1", "queued 2", "queued 3", "refused"]
        assert more["text"].startswith("3 of your analyses wait already")
        assert other == "queued 2", "people take turns"
        assert known == "queued 4"
        assert await stage.state("m4") == "queued 4", "there is room again"


@in_virtual_time
async def test_those_without_a_login_count_by_address(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        here = [await stage.state(f"m{number}", PUBLIC, "10.0.0.1") for number in range(5)]
        there = await stage.state("n", PUBLIC, "10.0.0.2")
        named = await stage.state("o", owner("10.0.0.1"), "10.0.0.1")

        assert here[-1] == "refused"
        assert there.startswith("queued")
        assert named.startswith("queued")


@in_virtual_time
async def test_so_many_wait_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis_client, "_MOST_WAITING", 2)
    async with staged(tmp_path) as stage:
        states = [await stage.state(f"m{number}", owner(f"o{number}")) for number in range(4)]

        assert states == ["queued 1", "queued 1", "queued 2", "refused"]


@in_virtual_time
async def test_who_has_many_addresses_leaves_room_for_those_with_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_client, "_MOST_PUBLIC", 2)
    async with staged(tmp_path) as stage:
        states = [
            await stage.state(f"m{number}", PUBLIC, f"10.0.0.{number}") for number in range(4)
        ]
        named = await stage.state("n", ANN)

        assert states == ["queued 1", "queued 1", "queued 2", "refused"]
        assert named == "queued 3"


@in_virtual_time
async def test_what_nobody_asks_for_any_more_is_not_done(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for match in ("m", "gone", "n"):
            await stage.mistakes(match)
        await asyncio.sleep(100.0)
        await stage.mistakes("n")
        await asyncio.sleep(100.0)
        await stage.process.does_it()
        await stage.process.does_it()

        assert stage.process.asked == ["m", "n"]
        assert not stage.client.is_busy
        assert await stage.state("gone") == "queued 1"


# ---- How long results stand


@in_virtual_time
async def test_a_match_is_judged_once(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.mistakes("m")
        await stage.process.does_it()
        await asyncio.sleep(86_400.0)

        assert await stage.state("m") == "done"
        assert stage.process.asked == ["m"]


@in_virtual_time
async def test_a_bots_strength_is_made_anew_after_new_matches_and_not_at_each(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        await stage.ask(STRENGTH)
        stage.reader.plays = 2
        await stage.process.does_it(took_s=20.0)
        stage.reader.plays = 3
        first = await stage.ask(STRENGTH)
        await asyncio.sleep(9 * 20.0 + 1.0)
        second = await stage.ask(STRENGTH)
        await stage.process.does_it()
        third = await stage.ask(STRENGTH)
        await asyncio.sleep(86_400.0)
        fourth = await stage.ask(STRENGTH)

        assert [first["state"], first["of"]] == ["done", 1]
        assert second["state"] == "queued"
        assert [third["state"], third["of"]] == ["done", 3]
        assert third == fourth
        assert stage.process.asked == ["c", "c"]


# ---- Failures


@in_virtual_time
async def test_a_task_that_ends_the_process_twice_is_not_tried_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for line in ("ask again", "twice"):
            await stage.mistakes("m")
            await stage.mistakes("n", BEN)
            await stage.process.dies()
            failed = await stage.mistakes("m")
            assert failed["state"] == "failed"
            assert line in failed["text"]
            await stage.process.does_it()
            assert await stage.state("n", BEN) == "done", "the other one is not harmed"
            await asyncio.sleep(60.0)
        await asyncio.sleep(86_400.0)

        assert await stage.state("m") == "failed"
        assert stage.process.asked == ["m", "n", "m"]


@in_virtual_time
async def test_a_process_that_does_not_start_is_no_tasks_fault(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.process.does_start = False
        for _ in range(3):
            await stage.mistakes("m")
            failed = await stage.mistakes("m")
            assert failed["state"] == "failed"
            assert "does not start" in failed["text"]
            await asyncio.sleep(60.0)
        stage.process.does_start = True
        await stage.mistakes("m")
        await stage.process.does_it()

        assert await stage.state("m") == "done"


@in_virtual_time
async def test_a_fault_of_the_arena_holds_up_no_other_task(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.mistakes("m")
        await stage.mistakes("n")
        await stage.process.dies(RuntimeError)
        failed = await stage.mistakes("m")
        await stage.process.does_it()

        assert (failed["state"], failed["text"]) == ("failed", analysis_client._FAILED)
        assert await stage.state("n") == "done"


@in_virtual_time
async def test_the_process_ends_when_there_is_nothing_to_do_and_comes_back(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        assert stage.process.pid is None
        await stage.mistakes("m")
        await stage.process.does_it()
        assert stage.process.pid is not None
        await asyncio.sleep(61.0)
        assert stage.process.pid is None
        await stage.mistakes("n")
        await stage.process.does_it()

        assert await stage.state("n") == "done"


# ---- While bots compute


@in_virtual_time
async def test_it_waits_while_launched_bots_compute_but_for_one_second_in_ten(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        await asyncio.sleep(5.0)
        stage.client.tick(computing=True)
        waits = await stage.mistakes("m")
        assert waits["state"] == "queued"
        assert "the arena has launched" in waits["text"]
        assert stage.process.pid is None, "not even a process is started"
        went_on = [await computing(stage) for _ in range(300)]

        assert 25 <= sum(went_on) <= 35
        assert went_on[0] is False
        stage.client.tick(computing=False)
        await asyncio.sleep(1.0)
        stage.client.tick(computing=False)
        assert stage.process.orders[-1] == RESUME
        assert (await stage.mistakes("m"))["text"] == ""


async def computing(stage: AnalysisStage) -> bool:
    """A tenth of a second in which bots compute; whether the process may go on."""
    stage.client.tick(computing=True)
    await asyncio.sleep(0.1)
    orders = stage.process.orders
    return stage.process.pid is not None and (not orders or orders[-1] != PAUSE)


@in_virtual_time
async def test_between_two_questions_bots_are_not_thought_to_rest(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.mistakes("m")
        await asyncio.sleep(5.0)
        for computes in (True, False, False, True, False):
            stage.client.tick(computes)
            await asyncio.sleep(0.05)

        assert stage.process.orders == [PAUSE]
