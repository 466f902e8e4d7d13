"""Who has what analysed, when, and for how long it stands: with a process that is a double."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import cast

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
from tests.support.scripts import Case, Stage, cases, fit

pytestmark = pytest.mark.virtual_time(limit_s=200_000)

ANN = owner("ann")
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


class AnalysisStage(Stage):
    """A client between both doubles, and who asks it: owners by their names, `anybody`, and eva."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self.reader, self.process = FakeReader(), FakeProcess()
        self.client = AnalysisClient(store, cast(ReaderClient, self.reader))
        self.client.process = cast(ReaderProcess, self.process)
        self._patch = patch

    async def ask(self, name: str, document: str) -> ReaderAnswer:
        """What one is told, who may ask from `anybody@10.0.0.2`."""
        name, _, address = name.partition("@")
        viewer = {"anybody": PUBLIC, "eva": INSTRUCTOR}.get(name, owner(name))
        answer = await self.client.ask(_path(document), {}, viewer, None, address or "10.0.0.1")
        await asyncio.sleep(0.001)  # the worker has its turn
        return answer

    # --- what happens ---

    def do_set(self, text: str) -> None:
        name, number = text.split()
        self._patch.setattr(analysis_client, name, int(number))

    def do_hide(self, document: str) -> None:
        self.reader.hidden[_path(document)] = ANN

    def do_refuses(self, text: str) -> None:
        self.reader.refused = text

    def do_plays(self, matches: str) -> None:
        self.reader.plays = int(matches)

    def do_start(self, how: str) -> None:
        self.process.does_start = how == "works"

    def do_progress(self, text: str) -> None:
        done, of = text.split()
        self.process.has_done(int(done), int(of))

    async def do_wait(self, seconds: str) -> None:
        await asyncio.sleep(float(seconds))

    async def do_does(self, took_s: str) -> None:
        await self.process.does_it(float(took_s or 0))

    async def do_dies(self, how: str) -> None:
        await self.process.dies(RuntimeError if how == "by a fault" else ReaderDied)

    async def do_tick(self, computing: str) -> None:
        self.client.tick(computing == "busy")
        await asyncio.sleep(0.05)

    # --- what is so ---

    async def by_asks(self, name: str, text: str) -> None:
        """Ask for a document, and hold the answer against what follows its id, if anything does."""
        document, _, expected = text.partition(" ")
        answer = await self.ask(name, document)
        if expected:
            state, place, rest = re.fullmatch(r"(\w+)(?: (\d+))?(.*)", expected).groups()  # type: ignore[union-attr]
            fit(msgspec.json.decode(answer.body), f"state={state}{rest}")
            assert place is None or f'"place":{place},' in answer.body.decode()

    async def by_denied(self, name: str, document: str) -> None:
        assert (await self.ask(name, document)).status == 403

    def do_asked(self, ids: str) -> None:
        assert self.process.asked == ids.split()

    def do_idle(self, _: str) -> None:
        assert not self.client.is_busy

    def do_process(self, state: str) -> None:
        assert (self.process.pid is not None) == (state == "up")

    def do_orders(self, orders: str) -> None:
        assert [order.decode().strip() for order in self.process.orders] == orders.split()


def _path(document: str) -> str:
    return STRENGTH if document == "strength" else f"/api/matches/{document}/mistakes.json"


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AnalysisStage]:
    with Store(tmp_path / "arena.db") as store:
        stage = AnalysisStage(store, monkeypatch)
        yield stage
        await stage.client.close()


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("analyses.cases")))
async def test_what_is_analysed_and_when(stage: AnalysisStage, case: Case) -> None:
    await stage.play(case)


async def test_what_comes_compressed_is_unpacked_for_whoever_wants_that(
    stage: AnalysisStage,
) -> None:
    path = "/api/matches/m/mistakes.json"
    await stage.client.ask(path, {}, ANN)
    await stage.process.does_it()
    packed = await stage.client.ask(path, {}, ANN, packs=True)
    plain = await stage.client.ask(path, {}, ANN)

    assert (packed.is_packed, plain.is_packed) == (True, False)
    assert gzip.decompress(packed.body) == plain.body
    assert packed.etag == plain.etag == "tag"


async def test_it_waits_while_launched_bots_compute_but_for_one_second_in_ten(
    stage: AnalysisStage,
) -> None:
    await asyncio.sleep(5.0)
    stage.client.tick(computing=True)
    waits = msgspec.json.decode((await stage.ask("ann", "m")).body)
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
    assert msgspec.json.decode((await stage.ask("ann", "m")).body)["text"] == ""


async def computing(stage: AnalysisStage) -> bool:
    """A tenth of a second in which bots compute; whether the process may go on."""
    stage.client.tick(computing=True)
    await asyncio.sleep(0.1)
    orders = stage.process.orders
    return stage.process.pid is not None and (not orders or orders[-1] != PAUSE)
