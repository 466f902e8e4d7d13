"""What browsers fetch, without sockets: which document, for whom, and the errors."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request

from arena.records.visibility import Viewer, ViewerKind
from arena.server.admission import Unwelcome
from arena.server.gateway import Gateway
from arena.server.origin import Origins
from arena.server.reply import Headers as RequestHeaders
from arena.server.reply import Reply, text
from arena.server.visitors import Visitors
from arena.web.files import Files
from arena.web.manual_pages import ManualPages
from arena.web.reader_client import ReaderAnswer
from arena.web.site import Site
from protocol.errors import StoreFailed, UsageError
from tests.support.virtual_time import all_done

pytestmark = pytest.mark.virtual_time

LOBBY = b'{"bots":[]}'


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


class FakeGateway:
    """Knows one token, and counts refusals."""

    def __init__(self) -> None:
        self.blamed: list[str] = []
        self.admission = SimpleNamespace(viewer=self._viewer)
        self.login = SimpleNamespace(throttle=SimpleNamespace(blame=self.blamed.append))
        self.entrance = SimpleNamespace(origins=Origins())
        self.entrance.origins.listens("127.0.0.1")

    def _viewer(self, token: str | None) -> Viewer:
        match token:
            case None:
                return Viewer()
            case "ann's":
                return Viewer(ViewerKind.OWNER, "ann")
        raise Unwelcome("token", "expected a token")


class FakeSources:
    """Gives the same document for all questions, after `holds` if that is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], Viewer]] = []
        self.packs: list[bool] = []
        self.found: Any = ReaderAnswer(200, b'{"id":"x"}', "v1")
        self.holds: asyncio.Event | None = None
        self.broken: str | None = None

    def lobby_document(self, packs: bool) -> ReaderAnswer:
        return ReaderAnswer(200, b"packed", is_packed=True) if packs else ReaderAnswer(200, LOBBY)

    def games_document(self, packs: bool) -> ReaderAnswer:
        return ReaderAnswer(200, b'{"games":[]}')

    def metrics(self) -> bytes:
        return b"arena_info 1\n"

    def failure(self) -> str | None:
        return self.broken

    async def ask(
        self, path: str, query: Mapping[str, str], viewer: Viewer, address: str, packs: bool
    ) -> ReaderAnswer:
        self.asked.append((path, dict(query), viewer))
        self.packs.append(packs)
        if self.holds is not None:
            await self.holds.wait()
        if isinstance(self.found, Exception):
            raise self.found
        assert isinstance(self.found, ReaderAnswer)
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


Get = Callable[..., Awaitable[FakeVisitor]]


@pytest.fixture
def sources() -> FakeSources:
    return FakeSources()


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
async def site(sources: FakeSources, gateway: FakeGateway) -> AsyncIterator[Site]:
    site = Site(Files({"index.html": b"<html>"}), FakeManual(), sources, cast(Gateway, gateway))
    yield site
    site.close()


@pytest.fixture
def get(site: Site) -> Get:
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


async def test_each_path_has_its_place(get: Get, site: Site) -> None:
    assert (await get("/")).body == b"<html>"
    assert (await get("/?x=1")).body == b"<html>"
    assert (await get("/healthz")).body == b"ok\n"
    assert (await get("/metrics")).body == b"arena_info 1\n"
    assert "version=0.0.4" in (await get("/metrics")).headers["Content-Type"]
    assert (await get("/api/lobby.json")).body == b'{"bots":[]}'
    assert (await get("/api/games.json")).body == b'{"games":[]}'
    assert (await get("/api/x.json")).body == b'{"id":"x"}'
    assert (await get("/x")).status == 404
    assert site.served == {200: 8, 404: 1}


async def test_the_manual_is_read_in_a_thread(get: Get, site: Site) -> None:
    for path in ("/docs", "/docs/", "/docs/a/b.md"):
        visitor = await get(f"{path}?q=x", Accept_Encoding="gzip")

        assert visitor.body.decode() == f"{path} q=x ['gzip']\n"
    assert (await get("/docsx")).status == 404
    broken = await get("/docs/?breaks")
    assert (broken.status, "the arena failed" in broken.error) == (500, True)
    assert site.served == {200: 3, 404: 1, 500: 1}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
async def test_nothing_but_get_and_head_is_answered(
    get: Get, sources: FakeSources, method: str
) -> None:
    for path in ("/", "/api/lobby.json", "/api/x.json", "/healthz"):
        visitor = await get(path, method=method)

        assert (visitor.status, visitor.headers["Allow"]) == (405, "GET, HEAD")
    assert not sources.asked


async def test_a_database_that_takes_nothing_is_no_good_health(
    get: Get, sources: FakeSources
) -> None:
    sources.broken = "cannot write the database a.db: disk full"
    visitor = await get("/healthz")

    assert visitor.status == 503
    assert visitor.body.decode() == f"{sources.broken}\n"


async def test_a_document_is_for_whoever_has_the_token(get: Get, sources: FakeSources) -> None:
    await get("/api/a%2Db.json?name=%C3%A9&x=", Authorization="bearer ann's")
    await get("/api/a.json")

    assert sources.asked == [
        ("/api/a-b.json", {"name": "é", "x": ""}, Viewer(ViewerKind.OWNER, "ann")),
        ("/api/a.json", {}, Viewer()),
    ]


async def test_a_wrong_token_is_told_and_counted(
    get: Get, sources: FakeSources, gateway: FakeGateway
) -> None:
    for path in ("/api/a.json", "/api/lobby.json", "/api/me.json"):
        visitor = await get(path, Authorization="Bearer guessed")

        assert (visitor.status, visitor.error) == (401, "expected a token")
    assert gateway.blamed == ["10.0.0.1"] * 3
    assert not sources.asked


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/a.json?" + "&".join(f"a{n}=1" for n in range(20)), {}),
        ("/api/a.json?a=1&a=2", {}),
        ("/api/a.json?a=%ff", {}),
        ("/api/%ff.json", {}),
        ("/api/a.json", {"Authorization": "Basic YW5uOmFubg=="}),
        ("/api/a.json", {"Authorization": "Bearer"}),
    ],
)
async def test_what_cannot_be_meant_is_told(
    get: Get, sources: FakeSources, path: str, said: dict[str, str]
) -> None:
    visitor = await get(path, **said)

    assert visitor.status == 400
    assert visitor.error.startswith("expected ")
    assert not sources.asked


async def test_a_name_that_was_made_to_point_here_learns_nothing(get: Get) -> None:
    visitor = await get("/api/a.json", Host="evil.example:7700")

    assert visitor.status == 403
    assert "loopback" in visitor.error
    assert (await get("/api/a.json", Host="localhost:7700")).status == 200


async def test_a_document_that_is_known_is_not_sent_again(get: Get) -> None:
    first = await get("/api/a.json")
    again = await get("/api/a.json", If_None_Match=first.headers["ETag"])

    assert first.headers["ETag"] == 'W/"v1"'
    assert first.headers["Cache-Control"] == "no-cache"
    assert first.headers["Vary"] == "Authorization, Accept-Encoding"
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("found", "status", "text"),
    [
        (ReaderAnswer(404, b'{"error":"no such match"}'), 404, "no such match"),
        (UsageError("expected a number"), 400, "expected a number"),
        (StoreFailed("cannot read it"), 500, "cannot read it"),
        (RuntimeError("a secret"), 500, "the arena failed at this document"),
    ],
)
async def test_why_there_is_no_document_is_told_in_one_line(
    get: Get, sources: FakeSources, found: object, status: int, text: str
) -> None:
    sources.found = found
    visitor = await get("/api/a.json")

    assert visitor.status == status
    assert visitor.error.startswith(text)
    assert "secret" not in visitor.error
    assert visitor.headers["Cache-Control"] == "no-store"
    assert "Content-Security-Policy" in visitor.headers


async def test_only_so_many_are_waited_for_and_then_others_may_ask_again(
    get: Get, sources: FakeSources, site: Site
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
    get: Get, sources: FakeSources, site: Site
) -> None:
    sources.holds = asyncio.Event()
    visitor = await get("/api/a.json")
    site.close()
    sources.holds.set()
    await all_done()

    assert visitor.status == 0


async def test_two_tokens_are_none(sources: FakeSources, site: Site) -> None:
    said = Headers()
    said["Authorization"] = "Bearer ann's"
    said["Authorization"] = "Bearer ann's"
    visitor = FakeVisitor()
    site.answer(visitor, Request("/api/a.json", said, "GET"))

    assert visitor.status == 400
    assert not sources.asked


async def test_what_a_token_shows_is_not_kept_for_others(get: Get, sources: FakeSources) -> None:
    for etag in ("v1", None):
        sources.found = ReaderAnswer(200, b"{}", etag)

        vary = (await get("/api/a.json")).headers["Vary"]
        assert vary == "Authorization, Accept-Encoding"


async def test_who_takes_gzip_may_get_it_and_the_tag_is_good_for_both(
    get: Get, sources: FakeSources
) -> None:
    plain = await get("/api/a.json")
    sources.found = ReaderAnswer(200, b"packed", "v1", True)
    packed = await get("/api/a.json", Accept_Encoding="br, gzip")
    again = await get("/api/a.json", If_None_Match=packed.headers["ETag"])
    refused = await get("/api/a.json", Accept_Encoding="gzip;q=0")

    assert sources.packs == [False, True, False, False]
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Content-Length"] == "6"
    assert packed.headers["ETag"] == plain.headers["ETag"]
    assert "Content-Encoding" not in plain.headers
    assert again.status == 304
    assert refused.status == 200


async def test_the_lobby_may_be_packed_too(get: Get) -> None:
    plain = await get("/api/lobby.json")
    packed = await get("/api/lobby.json", Accept_Encoding="gzip")

    assert (plain.body, "Content-Encoding" in plain.headers) == (LOBBY, False)
    assert packed.headers["Content-Encoding"] == "gzip"
    for lobby in (plain, packed):
        assert lobby.headers["Vary"] == "Authorization, Accept-Encoding"
        assert lobby.headers["Cache-Control"] == "no-store"


# --- who does not read ---


def test_there_is_an_end_to_visitors_and_the_oldest_goes() -> None:
    visitors = Visitors()
    there = [FakeVisitor() for _ in range(2049)]
    for visitor in there:
        visitors.came(visitor)

    assert [visitor.is_cut for visitor in there].index(False) == 1
    assert len(visitors) == 2048


def test_there_is_an_end_to_what_waits_for_them() -> None:
    visitors = Visitors()
    waits, slow, other, late = (FakeVisitor() for _ in range(4))
    for visitor in (waits, slow, other, late):
        visitors.came(visitor)
    for visitor in (slow, other, late):
        visitors.gets(visitor, 60 << 20)

    assert (waits.is_cut, slow.is_cut, other.is_cut) == (False, True, False)

    visitors.disconnected(other)
    visitors.disconnected(object())
    visitors.gets(waits, 60 << 20)

    assert not late.is_cut


async def test_what_a_site_sends_is_on_the_account(
    get: Get, sources: FakeSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.visitors._MOST_BYTES", 150_000)

    sources.found = ReaderAnswer(200, bytes(100_000))
    slow, other = await get("/api/a.json"), await get("/api/a.json")

    assert (slow.is_cut, other.is_cut) == (True, False)


def test_what_is_small_is_on_nobodys_account() -> None:
    visitors = Visitors()
    there = [FakeVisitor() for _ in range(2048)]
    for visitor in there:
        visitors.came(visitor)
        visitors.gets(visitor, 64 * 1024)

    assert not any(visitor.is_cut for visitor in there)


# --- who looks on ---


async def test_a_viewer_is_told_whose_its_token_is(get: Get) -> None:
    own = await get("/api/me.json", Authorization="Bearer ann's")
    assert own.status == 200
    assert json.loads(own.body) == {"kind": "owner", "name": "ann"}
    public = await get("/api/me.json")
    assert json.loads(public.body) == {"kind": "public", "name": ""}


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
