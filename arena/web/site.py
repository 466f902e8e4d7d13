"""What browsers fetch: the page's files, its documents, the manual, `/healthz` and `/metrics`.

Everything is read-only, and most of it is in memory. The reader process answers what has to be read
from the database. The visitor may be gone by then, and the number of pending requests is limited.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol
from urllib.parse import parse_qsl, unquote

import msgspec
from websockets.http11 import Request

from arena.records.visibility import Viewer
from arena.server.admission import Unwelcome
from arena.server.background import BackgroundTasks
from arena.server.entrance import send
from arena.server.gateway import Gateway
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
_ANSWER_S = 30.0  # then the visitor is told to try again
_MOST_PENDING = 512  # requests: a class that opens one document
_MOST_PENDING_NEAR = 256  # from one address
_MOST_FIELDS = 8  # of a query; no document has more than two
_VARY = ("Vary", "Authorization, Accept-Encoding")
_BUSY = "too much is being asked just now; try again in a moment"


class Sources(Protocol):
    """Where the documents come from; with `packs` they are compressed where that is worth it."""

    def lobby_document(self, packs: bool) -> ReaderAnswer: ...

    def games_document(self, packs: bool) -> ReaderAnswer:
        """What an instructor can choose for each game, to start a competition."""

    def metrics(self) -> bytes: ...

    def failure(self) -> str | None:
        """Why results are not written any more, or None."""

    async def ask(
        self, path: str, query: Mapping[str, str], viewer: Viewer, address: str, packs: bool
    ) -> ReaderAnswer:
        """A document from the database, asked for from an address; raises `ArenaError`."""


class Site:
    """Answers all requests for files and documents; `served` counts the answers by status."""

    def __init__(
        self, files: Files, manual: ManualPages, sources: Sources, gateway: Gateway
    ) -> None:
        self.served = Counter[int]()
        self._files = files
        self._manual = manual
        self._sources = sources
        self._gateway = gateway
        self._visitors = Visitors()
        self._pending = BackgroundTasks()
        self._pending_near = Counter[str]()

    def answer(self, visitor: Visitor, request: Request) -> None:
        """Respond to a request, now or later."""
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
            self._answer_later(visitor, path, partial(asyncio.to_thread, find))
        else:
            self._file(visitor, path, request.headers)

    def disconnected(self, gone: object) -> None:
        """Forget a connection, which may have been a visitor's."""
        self._visitors.disconnected(gone)

    def close(self) -> None:
        """Cancel all pending requests, without an answer."""
        self._pending.cancel()

    # --- within ---

    def _send(self, visitor: Visitor, reply: Reply) -> None:
        self.served[reply.status] += 1
        self._visitors.gets(visitor, len(reply.body))
        send(visitor, reply)

    def _health(self) -> Reply:
        why = self._sources.failure()
        return text(200, "ok") if why is None else text(503, why)

    def _file(self, visitor: Visitor, path: str, headers: Headers) -> None:
        answer = self._files.answer(path, headers)
        if path == "/" and not browser_of(headers):
            browser = secrets.token_urlsafe(16)
            cookie = remembering(browser, is_secure=visitor.is_secure)
            answer = msgspec.structs.replace(answer, headers=(*answer.headers, cookie))
        self._send(visitor, answer)

    def _document(self, visitor: Visitor, path: str, query: str, headers: Headers) -> None:
        if (why := self._gateway.entrance.origins.host_refusal(headers)) is not None:
            self._send(visitor, problem(403, why))
            return
        try:
            viewer = self._gateway.admission.viewer(_token(headers))
            fields = _fields(query)
            path = _path(path)
        except Unwelcome as error:
            self._gateway.login.throttle.blame(visitor.address)
            self._send(visitor, problem(401, str(error)))
        except UsageError as error:
            self._send(visitor, problem(400, str(error)))
        else:
            packs = takes_gzip(headers)
            if path == _LOBBY:
                self._send(visitor, _reply(self._sources.lobby_document(packs), headers))
            elif path == _GAMES:
                self._send(visitor, _reply(self._sources.games_document(packs), headers))
            elif path == _ME:
                self._send(visitor, document(200, msgspec.json.encode(viewer), NO_STORE))
            else:
                address = visitor.address

                async def read() -> Reply:
                    answer = await self._sources.ask(path, fields, viewer, address, packs)
                    return _reply(answer, headers)

                self._answer_later(visitor, path, read)

    def _answer_later(
        self, visitor: Visitor, path: str, find: Callable[[], Awaitable[Reply]]
    ) -> None:
        # Read now: the connection's next request may come from elsewhere, through the same proxy.
        address = visitor.address
        near = self._pending_near
        if len(self._pending) >= _MOST_PENDING or near[address] >= _MOST_PENDING_NEAR:
            self._send(visitor, problem(503, _BUSY))
            return

        def answered(_: object) -> None:
            near[address] -= 1
            if not near[address]:
                del near[address]

        near[address] += 1
        self._pending.start(self._find(visitor, path, find)).add_done_callback(answered)

    async def _find(
        self, visitor: Visitor, path: str, find: Callable[[], Awaitable[Reply]]
    ) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await find()
        except TimeoutError:
            answer = problem(503, f"this was not ready within {_ANSWER_S:.0f} s; try again")
        except UsageError as error:
            answer = problem(400, str(error))
        except ArenaError as error:
            answer = problem(500, str(error))
        except Exception:
            log.exception("the arena failed at %s", path)
            answer = problem(500, "the arena failed at this document; its log says why")
        self._send(visitor, answer)


def _reply(answer: ReaderAnswer, headers: Headers) -> Reply:
    """A document with a tag may be cached and is validated each time; nothing else is cached."""
    if answer.status != 200:
        return document(answer.status, answer.body, NO_STORE)
    packed = (PACKED,) if answer.is_packed else ()
    if answer.etag is None:
        return document(200, answer.body, *packed, NO_STORE, _VARY)
    # Weak: packed and plain are the same document, but not the same bytes.
    tag = f'W/"{answer.etag}"'
    more = (("ETag", tag), NO_CACHE, _VARY)
    if knows(headers, tag):
        return unchanged(*more)
    return document(200, answer.body, *packed, *more)


def _token(headers: Headers) -> str | None:
    """The token of `Authorization: Bearer TOKEN`; raises `UsageError` at any other kind."""
    values = headers.get_all("Authorization")
    if not values:
        return None
    kind, _, token = values[0].strip().partition(" ")
    if len(values) > 1 or kind.lower() != "bearer" or not token.strip():
        raise UsageError("expected Authorization: Bearer TOKEN, got something else")
    return token.strip()


def _path(path: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("expected UTF-8 behind % in the path") from None


def _fields(query: str) -> dict[str, str]:
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
