"""What browsers fetch from an arena in memory: which document, for whom, and the errors."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request

from arena.competitions.storage_watch import StorageWatch
from arena.records.visibility import Viewer
from arena.server.reply import Headers as RequestHeaders
from arena.server.reply import Reply, text
from arena.server.throttle import Throttle
from arena.server.visitors import Visitors
from arena.storage.tokens import Access, hashed
from arena.web.files import Files
from arena.web.manual_pages import ManualPages
from arena.web.questions import PageAnswer, SideQuestion
from arena.web.web import Web
from protocol.errors import StoreFailed, UsageError
from tests.arena.web.test_files import CONTENTS
from tests.support.arena_with_page import in_page_host
from tests.support.scripts import Case, Stage, cases, fields, like
from tests.support.virtual_time import all_done, memory_folder

pytestmark = pytest.mark.virtual_time

FILES = Files(CONTENTS)
MANUAL = ManualPages(FILES.version)


class FakeVisitor:
    """Records its one answer."""

    is_secure = False

    def __init__(self) -> None:
        self.address = "10.0.0.1"
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_cut = False

    def respond(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        assert not self.status, "one answer is enough"
        self.status, self.headers, self.body = status, dict(headers), body

    def cut(self) -> None:
        self.is_cut = True

    @property
    def error(self) -> str:
        said: dict[str, str] = json.loads(self.body)
        assert list(said) == ["error"]
        assert "\n" not in said["error"]
        return said["error"]


class FakeReader:
    """Gives the same document for all questions, after `holds` if that is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], Viewer]] = []
        self.packs: list[bool] = []
        self.found: Any = PageAnswer(200, b'{"id":"x"}', "v1")
        self.holds: asyncio.Event | None = None

    async def ask(self, _: str, question: SideQuestion) -> PageAnswer:
        self.asked.append((question.path, question.query, question.viewer))
        self.packs.append(question.packs)
        if self.holds is not None:
            await self.holds.wait()
        if isinstance(self.found, Exception):
            raise self.found
        assert isinstance(self.found, PageAnswer)
        return self.found


class FakeManual(ManualPages):
    """Returns what it was asked for, from a thread."""

    def __init__(self) -> None:
        pass

    def answer(self, path: str, query: str, headers: RequestHeaders) -> Reply:
        assert threading.current_thread() is not threading.main_thread()
        if query == "breaks":
            raise RuntimeError("a fault")
        return text(200, f"{path} {query} {headers.get_all('Accept-Encoding')}")


class SiteStage(Stage):
    """Requests to one of three places: some files, the manual, or an arena's page."""

    def __init__(self, web: Web, sources: FakeReader, patch: pytest.MonkeyPatch) -> None:
        self._at = "site"
        self._web = web
        self._sources = sources
        self._patch = patch
        self._blamed: list[str] = []
        patch.setattr(Throttle, "blame", lambda throttle, address: self._blamed.append(address))
        self._names = {"{version}": FILES.version}
        self._replies = [Reply(0, (), b"")]

    async def _answer(self, path: str, headers: Headers, method: str) -> Reply:
        if self._at == "files":
            return FILES.answer(path, headers)
        if self._at == "manual":
            return MANUAL.answer(*path.partition("?")[::2], headers)
        visitor = FakeVisitor()
        self._web.answer(visitor, Request(path, headers, method))
        await all_done()
        return Reply(visitor.status, tuple(visitor.headers.items()), visitor.body)

    def do_at(self, place: str) -> None:
        self._at = place

    def _named(self, text: str) -> str:
        for name, so in self._names.items():
            text = text.replace(name, so)
        return text

    async def do_get(self, text: str, method: str = "GET") -> None:
        path, *lines = self._named(text).split(" | ")
        said = [(name, so) for name, _, so in (line.partition(": ") for line in lines)]
        reply = await self._answer(path, Headers(said), method)
        self._replies.append(reply)
        self._names["{size}"] = str(len(reply.body))
        self._names["{tag}"] = dict(reply.headers).get("ETag", "")

    def do_is(self, text: str) -> None:
        status, _, lines = text.partition(" | ")
        assert self._replies[-1].status == int(status)
        if lines:
            self.do_has(lines)

    def do_has(self, text: str) -> None:
        """The latest answer has headers: as is said, not with a word after `!`, or `no Header`."""
        headers = dict(self._replies[-1].headers)
        for line in self._named(text).split(" | "):
            name, _, expected = line.partition(": ")
            if name.startswith("no "):
                assert name.removeprefix("no ") not in headers
            elif expected.startswith("!"):
                assert expected[1:] not in headers[name]
            else:
                assert like(headers[name], expected), headers[name]

    def do_body(self, text: str) -> None:
        body = self._replies[-1].body.decode().removesuffix("\n")
        assert like(body, self._named(text)), body

    def do_lacks(self, text: str) -> None:
        assert text not in self._replies[-1].body.decode()

    def do_error(self, text: str) -> None:
        said = json.loads(self._replies[-1].body)
        assert list(said) == ["error"]
        assert "\n" not in said["error"]
        assert like(said["error"], text), said["error"]

    def do_same(self, _: str) -> None:
        """The body is that of the answer before, packed or not."""
        before, now = self._replies[-2:]
        assert unpacked(now) == unpacked(before)

    async def by_refused(self, method: str, paths: str) -> None:
        """No such request is answered."""
        for path in paths.split():
            await self.do_get(path, method)
            self.do_is("405 | Allow: GET, HEAD")

    def do_finds(self, how: str) -> None:
        """From now on documents come packed, or without a tag."""
        tag = None if how == "untagged" else "v1"
        self._sources.found = PageAnswer(200, b"{}", tag, how == "packed")

    def do_packs(self, expected: str) -> None:
        """Who wanted a document packed."""
        assert " ".join(map(str, self._sources.packs)) == expected

    def do_tiny(self, size: str) -> None:
        """From this size on documents are packed."""
        self._patch.setattr("arena.server.reply._TINY_BYTES", int(size))

    def do_broken(self, text: str) -> None:
        self._patch.setattr(StorageWatch, "state", text)

    def do_served(self, text: str) -> None:
        assert self._web.served == {int(code): times for code, times in fields(text).items()}

    def do_asked(self, text: str) -> None:
        asked = [
            " ".join([path, *(f"{name}={so}" for name, so in query.items()), viewer.name]).strip()
            for path, query, viewer in self._sources.asked
        ]
        assert asked == (text.split(", ") if text else [])

    def do_blamed(self, times: str) -> None:
        assert self._blamed == ["10.0.0.1"] * int(times)


def unpacked(reply: Reply) -> bytes:
    is_packed = dict(reply.headers).get("Content-Encoding") == "gzip"
    return gzip.decompress(reply.body) if is_packed else reply.body


Get = Callable[..., Awaitable[FakeVisitor]]


@pytest.fixture
def sources() -> FakeReader:
    return FakeReader()


@pytest.fixture
async def site(sources: FakeReader, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Web]:
    """The page of an arena with one token."""
    with memory_folder() as folder:
        async with in_page_host(folder) as house:
            access = Access(names=frozenset({"ann"}), players={hashed("ann's"): "ann"})
            house.gateway.roster_changed(access)
            house.web._manual = FakeManual()
            monkeypatch.setattr(house.web.reader, "ask", sources.ask)
            yield house.web


@pytest.fixture
def get(site: Web) -> Get:
    """Returns a visitor with its answer, or without one if it `waits`."""

    async def get(
        path: str, *, method: str = "GET", waits: bool = False, **headers: str
    ) -> FakeVisitor:
        visitor = FakeVisitor()
        named = Headers({name.replace("_", "-"): value for name, value in headers.items()})
        site.answer(visitor, Request(path, named, method))
        if not waits:
            await all_done()
        return visitor

    return get


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("exchanges.cases")))
async def test_what_is_answered(
    site: Web, sources: FakeReader, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    await SiteStage(site, sources, monkeypatch).play(case)


@pytest.mark.parametrize(
    ("found", "status", "text"),
    [
        (PageAnswer(404, b'{"error":"no such match"}'), 404, "no such match"),
        (UsageError("expected a number"), 400, "expected a number"),
        (StoreFailed("cannot read it"), 500, "cannot read it"),
        (RuntimeError("a secret"), 500, "the arena failed at this document"),
    ],
)
async def test_why_there_is_no_document_is_told_in_one_line(
    get: Get, sources: FakeReader, found: object, status: int, text: str
) -> None:
    sources.found = found
    visitor = await get("/api/a.json")

    assert visitor.status == status
    assert visitor.error.startswith(text)
    assert "secret" not in visitor.error
    assert visitor.headers["Cache-Control"] == "no-store"
    assert "Content-Security-Policy" in visitor.headers


async def test_only_so_many_are_waited_for_and_then_others_may_ask_again(
    get: Get, sources: FakeReader, site: Web
) -> None:
    sources.holds = asyncio.Event()
    waiting = [await get(f"/api/{n}.json", waits=True) for n in range(256)]
    refused = await get("/api/one-more.json")

    assert refused.status == 503
    assert "try again" in refused.error
    assert (await get("/")).status == 200
    assert not any(visitor.status for visitor in waiting)

    sources.holds.set()
    await all_done()

    assert {visitor.status for visitor in waiting} == {200}
    assert (await get("/api/one-more.json")).status == 200
    assert not site._pending_near, "nothing is kept of those who have their answers"


async def test_nobody_is_answered_by_an_arena_that_has_closed(
    get: Get, sources: FakeReader, site: Web
) -> None:
    sources.holds = asyncio.Event()
    visitor = await get("/api/a.json")
    site._pending.cancel()
    sources.holds.set()
    await all_done()

    assert visitor.status == 0


# --- who does not read ---


def test_there_is_an_end_to_visitors_and_the_oldest_goes() -> None:
    visitors = Visitors()
    there = [FakeVisitor() for _ in range(2049)]
    for visitor in there:
        visitors.came(visitor)
        visitors.gets(visitor, 64 * 1024)  # which is small, and on nobody's account

    assert [visitor.is_cut for visitor in there] == [True] + [False] * 2048
    assert len(visitors) == 2048


def test_there_is_an_end_to_what_waits_for_them() -> None:
    visitors = Visitors()
    waits, slow, other, late = there = [FakeVisitor() for _ in range(4)]
    for visitor in there:
        visitors.came(visitor)
    for visitor in (slow, other, late):
        visitors.gets(visitor, 60 << 20)
    visitors.disconnected(other)
    visitors.disconnected(object())
    visitors.gets(waits, 60 << 20)

    assert [visitor.is_cut for visitor in there] == [False, True, False, False]


async def test_what_a_site_sends_is_on_the_account(
    get: Get, sources: FakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.visitors._MOST_BYTES", 150_000)
    sources.found = PageAnswer(200, bytes(100_000))
    slow, other = await get("/api/a.json"), await get("/api/a.json")

    assert (slow.is_cut, other.is_cut) == (True, False)


# --- who looks on ---


async def test_the_page_gives_a_browser_a_cookie_once(
    get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = await get("/"), await get("/")
    cookie, *attributes = first.headers["Set-Cookie"].split("; ")
    assert attributes == ["HttpOnly", "SameSite=Lax"]
    assert other.headers["Set-Cookie"].split("; ")[0] != cookie
    again = await get("/", Cookie=f"theme=dark; {cookie}")
    assert "Set-Cookie" not in again.headers
    odd = await get("/", Cookie="arena-browser=not one of ours")
    assert "Set-Cookie" in odd.headers
    monkeypatch.setattr(FakeVisitor, "is_secure", True)
    secure = await get("/")
    assert secure.headers["Set-Cookie"].endswith("; SameSite=Lax; Secure")
    for path in ("/api/lobby.json", "/healthz", "/nowhere"):
        assert "Set-Cookie" not in (await get(path)).headers
