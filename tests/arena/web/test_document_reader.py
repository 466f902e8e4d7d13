"""Who reads which document, and what a process costs that fails: the process is a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from arena.storage.store import Store
from arena.web import document_reader
from arena.web.document_reader import DocumentReader
from arena.web.documents import error
from arena.web.questions import PageAnswer, SideQuestion
from tests.support.page_reader import INSTRUCTOR, PUBLIC
from tests.support.scripts import Case, cases, like
from tests.support.side_script import SideScript, SideStage, scripted

pytestmark = pytest.mark.virtual_time(limit_s=600)


class ReaderStage(SideStage):
    """Who asks: anybody by a name, the instructor as `eva=instructor`, from `ben@10.0.0.2`."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self.script = SideScript()
        scripted(patch, self.script, SideScript())
        self.reader = DocumentReader(store)
        self._patch = patch
        self._asking: dict[str, asyncio.Task[PageAnswer]] = {}

    def document(self, question: SideQuestion) -> PageAnswer:
        """An answer that says for whom it was made."""
        return PageAnswer(200, error(question.viewer.kind.value))

    async def by_asks(self, name: str, path: str) -> None:
        name, _, address = name.partition("@")
        name, _, kind = name.partition("=")
        viewer = INSTRUCTOR if kind else PUBLIC
        question = SideQuestion(path=path.replace("\\ud800", "\ud800"), viewer=viewer)
        ask = self.reader.ask(address or "10.0.0.1", question)
        self._asking[name] = asyncio.create_task(ask)
        await asyncio.sleep(0.001)

    async def by_hears(self, name: str, text: str) -> None:
        status, _, line = text.partition(": ")
        answer = await self._asking.pop(name)
        assert answer.status == int(status), answer.body
        said = msgspec.json.decode(answer.body)["error"]
        assert like(said, line) or not line, said

    async def by_leaves(self, name: str, _: str) -> None:
        self._asking.pop(name).cancel()
        await asyncio.sleep(0.001)

    async def do_confused(self, _: str) -> None:
        """Answer a question of before."""
        self.script.asked.append(self.script.asked[0])
        await self.do_does("")

    def do_set(self, text: str) -> None:
        name, number = text.split()
        self._patch.setattr(document_reader, name, int(number))

    async def do_close(self, _: str) -> None:
        await self.reader.process.close()

    def do_asked(self, paths: str) -> None:
        assert [question.path for question in self.script.asked] == paths.split()


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ReaderStage]:
    with Store(tmp_path / "arena.db") as store:
        stage = ReaderStage(store, monkeypatch)
        yield stage
        await stage.reader.process.close()


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("reader.cases")))
async def test_what_is_read_and_when(stage: ReaderStage, case: Case) -> None:
    await stage.play(case)
