"""Who has what analysed, when, and for how long it stands: the processes are scripts."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from arena.records.visibility import Viewer
from arena.storage.store import Store
from arena.web import analyses
from arena.web.analyses import Analyses
from arena.web.document_reader import DocumentReader
from arena.web.documents import error
from arena.web.questions import AnalysisKind, AnalysisTask, PageAnswer, SideQuestion
from arena.web.side_process import SideProcess
from tests.support.page_reader import INSTRUCTOR, PUBLIC, owner
from tests.support.scripts import Case, cases, fit
from tests.support.side_script import SideScript, SideStage, scripted

pytestmark = pytest.mark.virtual_time(limit_s=200_000)

ANN = owner("ann")
STRENGTH = "/api/competitions/c/strength.json"


class AnalysisStage(SideStage):
    """Who asks: owners by their names, `anybody`, and eva; of a match that `plays` so far."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self.script = SideScript()
        scripted(patch, SideScript(self._task), self.script)
        self.process = SideProcess(store, is_idle=True)
        self.reader = DocumentReader(store, fresh_s=0.0)
        self.analyses = Analyses(self.process, self.reader)
        self._patch = patch
        self._plays = 1
        self._hidden: dict[str, Viewer] = {}
        self._refused = ""

    async def close(self) -> None:
        await self.process.close()
        await self.reader.process.close()

    def _task(self, question: SideQuestion) -> PageAnswer:
        """What may be asked for, as the process that reads documents says it."""
        if self._hidden.get(question.path, question.viewer) != question.viewer:
            return PageAnswer(403, error("it is hidden"))
        _, _, _, id_, name = question.path.removesuffix(".json").split("/")
        kind = AnalysisKind(name)
        plays = self._plays if kind is AnalysisKind.STRENGTH else 0
        refused = self._refused
        return PageAnswer(
            200,
            msgspec.json.encode(
                AnalysisTask(
                    kind=kind, id=id_, bot="ann", last=plays, matches=plays, refused=refused
                )
            ),
        )

    async def ask(self, name: str, document: str, *, packs: bool = False) -> PageAnswer:
        """What one is told, who may ask from `anybody@10.0.0.2`."""
        name, _, address = name.partition("@")
        viewer = {"anybody": PUBLIC, "eva": INSTRUCTOR}.get(name, owner(name))
        question = SideQuestion(path=_path(document), viewer=viewer, packs=packs)
        answer = await self.analyses.ask(address or "10.0.0.1", question)
        await asyncio.sleep(0.001)  # the process has its turn
        return answer

    # --- what happens ---

    def do_set(self, text: str) -> None:
        name, number = text.split()
        self._patch.setattr(analyses, name, int(number))

    def do_hide(self, document: str) -> None:
        self._hidden[_path(document)] = ANN

    def do_refuses(self, text: str) -> None:
        self._refused = text

    def do_plays(self, matches: str) -> None:
        self._plays = int(matches)

    async def do_progress(self, text: str) -> None:
        done, of = text.split()
        self.script.news(int(done), int(of))
        await asyncio.sleep(0.001)

    async def do_babbles(self, _: str) -> None:
        """Say a line that does not end."""
        assert self.script.run is not None
        self.script.run.stdout.feed_data(b"x" * 200_000)
        await asyncio.sleep(0.001)

    async def do_tick(self, computing: str) -> None:
        self.process.give_way(computing=computing == "busy")
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
        asked = [question.task.id for question in self.script.asked if question.task]
        assert asked == ids.split()

    def do_idle(self, _: str) -> None:
        assert not self.process.is_busy

    def do_orders(self, orders: str) -> None:
        assert self.script.orders == orders.split()


def _path(document: str) -> str:
    return STRENGTH if document == "strength" else f"/api/matches/{document}/mistakes.json"


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AnalysisStage]:
    with Store(tmp_path / "arena.db") as store:
        stage = AnalysisStage(store, monkeypatch)
        yield stage
        await stage.close()


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("analyses.cases")))
async def test_what_is_analysed_and_when(stage: AnalysisStage, case: Case) -> None:
    await stage.play(case)


async def test_what_comes_compressed_is_unpacked_for_whoever_wants_that(
    stage: AnalysisStage,
) -> None:
    await stage.ask("ann", "m")
    await stage.do_does("")
    packed, plain = await stage.ask("ann", "m", packs=True), await stage.ask("ann", "m")

    assert (packed.is_packed, plain.is_packed) == (True, False)
    assert gzip.decompress(packed.body) == plain.body
    assert packed.etag == plain.etag == "tag"


async def test_it_waits_while_launched_bots_compute_but_for_one_second_in_ten(
    stage: AnalysisStage,
) -> None:
    await asyncio.sleep(5.0)
    stage.process.give_way(computing=True)
    await stage.by_asks("ann", "m queued: waits while bots play that the arena has launched")
    assert not stage.script.started, "not even a process is started"
    went_on = []
    for _ in range(600):
        await stage.do_tick("busy")
        went_on.append(stage.script.is_up and stage.script.orders[-1:] != ["pause"])

    assert 50 <= sum(went_on) <= 70
    assert went_on[0] is False
    stage.process.give_way(computing=False)
    await asyncio.sleep(1.0)
    stage.process.give_way(computing=False)
    assert stage.script.orders[-1] == "resume"
    await stage.by_asks("ann", 'm running text=""')
