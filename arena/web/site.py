"""What browsers fetch: the page's files, the documents, and two figures for whoever looks after the machine.

Everything is read-only and most of it is in memory. What has to be read from the database is asked of another process and answered
when it comes; the visitor may be gone by then, and there is only so much that is waited for at a time.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec
from websockets.http11 import Request

from arena.records.visibility import Viewer
from arena.server.admission import Unwelcome
from arena.server.background import BackgroundTasks
from arena.server.entrance import send
from arena.server.origin import Origins
from arena.server.reply import (
    NO_CACHE,
    NO_STORE,
    PACKED,
    Headers,
    Reply,
    Visitor,
    document,
    knows,
    problem,
    reply,
    takes_gzip,
    text,
    unchanged,
)
from arena.server.visitors import Visitors
from arena.web.files import Files
from arena.web.manual_pages import MANUAL, ManualPages
from arena.web.metrics import CONTENT_TYPE as METRICS
from arena.web.play.human_limits import browser_of, remembering
from arena.web.reader_client import ReaderAnswer
from protocol.errors import ArenaError, UsageError

__all__ = ["Site", "Sources"]

log = logging.getLogger(__name__)

_API = "/api/"
_LOBBY, _GAMES = "/api/lobby.json", "/api/games.json"
_ME = "/api/me.json"
_ANSWER_S = 30.0  # then nobody waits any more
_MOST_ASKED = 512  # that may be waited for at a time: a class that opens one document
_MOST_ASKED_NEAR = 256  # from one address
_MOST_FIELDS = 8
_VARY = ("Vary", "Authorization, Accept-Encoding")
_BUSY = "too much is being asked just now; try again in a moment"


class Sources(Protocol):
    """Where what is shown comes from."""

    def viewer(self, token: str | None) -> Viewer:
        """Whose token that is; raises `Unwelcome`."""

    def blame(self, address: str) -> None:
        """Somebody there was refused."""

    def lobby_document(self, packs: bool) -> ReaderAnswer:
        """The lobby's document, as it is now; packed if that is wanted and worth it."""

    def games_document(self, packs: bool) -> ReaderAnswer:
        """What can be chosen for each game, to start a competition; packed likewise."""

    def metrics(self) -> bytes:
        """Figures in Prometheus' format."""

    def failure(self) -> str | None:
        """Why results are not written any more, if so."""

    async def ask(
        self, path: str, query: Mapping[str, str], viewer: Viewer, address: str, packs: bool
    ) -> ReaderAnswer:
        """A document from the database for somebody there, packed if that is wanted and worth it; raises `ArenaError`."""


class _Wanted(NamedTuple):
    """What has to be waited for, and how it is found."""

    visitor: Visitor
    path: str
    find: Callable[[], Awaitable[Reply]]


class Site:
    """What there is to fetch.

    Args:
        files: of the page.
        manual: the documents for people.
        sources: of all the rest.
        origins: know by which names the arena goes.

    Attributes:
        served: how often there was which status.
    """

    def __init__(
        self, files: Files, manual: ManualPages, sources: Sources, origins: Origins
    ) -> None:
        self.served = Counter[int]()
        self._files = files
        self._manual = manual
        self._sources = sources
        self._origins = origins
        self._visitors = Visitors()
        self._asked = BackgroundTasks()
        self._near = Counter[str]()

    def answer(self, visitor: Visitor, request: Request) -> None:
        """Respond, now or later."""
        self._visitors.came(visitor)
        path, _, query = request.path.partition("?")
        if request.method not in ("GET", "HEAD"):
            line = f"expected GET or HEAD, got {request.method}"
            self._send(visitor, text(405, line, ("Allow", "GET, HEAD")))
        elif path.startswith(_API):
            self._document(visitor, path, query, request.headers)
        elif path == "/healthz":
            self._send(visitor, self._health())
        elif path == "/metrics":
            body = self._sources.metrics()
            self._send(visitor, reply(200, body, METRICS, NO_STORE))
        elif f"{path}/".startswith(MANUAL):
            find = partial(self._manual.answer, path, query, request.headers)
            self._ask(_Wanted(visitor, path, partial(asyncio.to_thread, find)))
        else:
            self._file(visitor, path, request.headers)

    def disconnected(self, gone: object) -> None:
        """Somebody is gone, who may have been a visitor."""
        self._visitors.disconnected(gone)

    def close(self) -> None:
        """Nobody is answered any more."""
        self._asked.cancel()

    # --- within ---

    def _send(self, visitor: Visitor, reply: Reply) -> None:
        self.served[reply.status] += 1
        self._visitors.gets(visitor, len(reply.body))
        send(visitor, reply)

    def _health(self) -> Reply:
        why = self._sources.failure()
        return text(200, "ok") if why is None else text(503, why)

    def _file(self, visitor: Visitor, path: str, headers: Headers) -> None:
        found = self._files.answer(path, headers)
        if path == "/" and not browser_of(headers):
            browser = secrets.token_urlsafe(16)
            cookie = remembering(browser, is_secure=visitor.is_secure)
            found = msgspec.structs.replace(found, headers=(*found.headers, cookie))
        self._send(visitor, found)

    def _document(self, visitor: Visitor, path: str, query: str, headers: Headers) -> None:
        if (why := self._origins.host_refusal(headers)) is not None:
            self._send(visitor, problem(403, why))
            return
        try:
            viewer = self._sources.viewer(_token(headers))
            fields = _fields(query)
            path = _path(path)
        except Unwelcome as error:
            self._sources.blame(visitor.address)
            self._send(visitor, problem(401, str(error)))
        except UsageError as error:
            self._send(visitor, problem(400, str(error)))
        else:
            if path == _LOBBY:
                found = self._sources.lobby_document(takes_gzip(headers))
                self._send(visitor, _reply(found, headers))
            elif path == _GAMES:
                found = self._sources.games_document(takes_gzip(headers))
                self._send(visitor, _reply(found, headers))
            elif path == _ME:
                body = msgspec.json.encode(viewer)
                self._send(visitor, document(200, body, NO_STORE))
            else:
                address = visitor.address
                find = partial(self._found, path, fields, viewer, address, headers)
                self._ask(_Wanted(visitor, path, find))

    async def _found(
        self, path: str, fields: Mapping[str, str], viewer: Viewer, address: str, headers: Headers
    ) -> Reply:
        packs = takes_gzip(headers)
        found = await self._sources.ask(path, fields, viewer, address, packs)
        return _reply(found, headers)

    def _ask(self, wanted: _Wanted) -> None:
        visitor, address = wanted.visitor, wanted.visitor.address
        near = self._near[address]
        if len(self._asked) >= _MOST_ASKED or near >= _MOST_ASKED_NEAR:
            self._send(visitor, problem(503, _BUSY))
            return
        self._near[address] += 1
        task = self._asked.start(self._later(wanted))
        # Its next request may come from elsewhere, through the same proxy.
        task.add_done_callback(lambda _: self._answered(address))

    def _answered(self, address: str) -> None:
        self._near[address] -= 1
        if not self._near[address]:
            del self._near[address]

    async def _later(self, wanted: _Wanted) -> None:
        visitor, path, find = wanted
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await find()
        except TimeoutError:
            line = f"this was not ready within {_ANSWER_S:.0f} s; try again"
            answer = problem(503, line)
        except UsageError as error:
            answer = problem(400, str(error))
        except ArenaError as error:
            answer = problem(500, str(error))
        except Exception:
            log.exception("the arena failed at %s", path)
            line = "the arena failed at this document; its log says why"
            answer = problem(500, line)
        self._send(visitor, answer)


def _reply(found: ReaderAnswer, headers: Headers) -> Reply:
    """A document is kept and asked for again; whatever it is not is of this moment."""
    if found.status != 200:
        return document(found.status, found.body, NO_STORE)
    packed = (PACKED,) if found.is_packed else ()
    if found.etag is None:
        return document(200, found.body, *packed, NO_STORE, _VARY)
    # Weak: packed and plain are the same document, but not the same bytes.
    tag = f'W/"{found.etag}"'
    more = (("ETag", tag), NO_CACHE, _VARY)
    if knows(headers, tag):
        return unchanged(*more)
    return document(200, found.body, *packed, *more)


def _token(headers: Headers) -> str | None:
    """The token of `Authorization: Bearer TOKEN`.

    Raises:
        UsageError: there is an authorization of another kind.
    """
    said = headers.get_all("Authorization")
    if not said:
        return None
    kind, _, token = said[0].strip().partition(" ")
    if len(said) > 1 or kind.lower() != "bearer" or not token.strip():
        raise UsageError("expected Authorization: Bearer TOKEN, got something else")
    return token.strip()


def _path(path: str) -> str:
    """A path as it is meant.

    Raises:
        UsageError: it is no text.
    """
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("expected UTF-8 behind % in the path") from None


def _fields(query: str) -> dict[str, str]:
    """The fields behind the question mark.

    Raises:
        UsageError: they are no text, or too many, or one is there twice.
    """
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except UnicodeDecodeError:
        raise UsageError("expected UTF-8 behind % in the query") from None
    except ValueError:
        raise UsageError(f"expected at most {_MOST_FIELDS} fields in the query") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise UsageError("expected every field of the query once")
    return fields
