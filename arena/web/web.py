"""The page of an arena: what browsers fetch, and the sockets of people who watch and play.

It answers requests with a file, a page of the manual, a document, `/healthz` or `/metrics`.
Everything is read-only, and most of it is in memory. What must be read from the database comes from
a process beside the arena (`arena/web/document_reader.py`); another one does analyses and the luck
of matches on idle cores. Such answers come later: the visitor may be gone by then, and the number
of pending requests is limited.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

import msgspec
from websockets.http11 import Request

from arena.competitions.attendance import Upcoming
from arena.competitions.start import Startable
from arena.formats.schedule import Pairing
from arena.games.match import Result
from arena.referee.bot_session import LiveMatch
from arena.referee.transport import Caller, Wire
from arena.server.admission import Unwelcome
from arena.server.background import BackgroundTasks
from arena.server.entrance import send
from arena.server.reply import (
    NO_CACHE,
    NO_STORE,
    PACKED,
    Headers,
    Reply,
    Visitor,
    document,
    knows,
    pack,
    problem,
    reply,
    takes_gzip,
    text,
    unchanged,
)
from arena.server.visitors import Visitors
from arena.storage.store import Store
from arena.web.analyses import Analyses
from arena.web.document_reader import DocumentReader
from arena.web.files import page_files
from arena.web.lobby import LatestMatches, lobby
from arena.web.luck_filler import LuckFiller
from arena.web.manual_pages import MANUAL, ManualPages
from arena.web.metrics import CONTENT_TYPE as METRICS
from arena.web.metrics import ArenaFigures
from arena.web.play.people import browser_of, remembering
from arena.web.play.tables import PeopleTables
from arena.web.questions import PageAnswer, SideQuestion, is_analysis
from arena.web.side_process import SideProcess
from arena.web.spectators import Spectators
from arena.web.viewer_socket import Viewers
from protocol.errors import ArenaError, UsageError

if TYPE_CHECKING:
    from arena.competitions.ledger import Ledger
    from arena.competitions.live_arena import LiveArena

__all__ = ["Web"]

log = logging.getLogger(__name__)

_API, _MATCHES = "/api/", "/api/matches/"
_ANSWER_S = 30.0  # after which the visitor is told to try again
_LOBBY_S = 1.0  # how long the lobby's document is cached
_EFFORT = 1  # of 9: this process compresses while it runs matches
_KINDS = 2  # documents compressed here, lobby and games, each once until it changes
_MOST_PENDING = 512  # requests; enough for a class that opens a document at once
_MOST_PENDING_NEAR = 256  # from one address
_MOST_FIELDS = 8  # of a query; no document has more than two
_VARY = ("Vary", "Authorization, Accept-Encoding")
_BUSY = "too much is being asked just now; try again in a moment"


class Web:
    """The page of one arena.

    Attributes:
        upcoming: returns the planned runs.
        startable: returns what an instructor can choose for each game, to start a competition.
        people: the tables of people who play on the page.
        reader: reads documents from the database.
        served: the number of answers by status.
    """

    def __init__(self, arena: LiveArena, store: Store) -> None:
        self.upcoming: Callable[[], Sequence[Upcoming]] = tuple
        self.startable: Callable[[], Sequence[Startable]] = tuple
        self.people = PeopleTables(arena)
        self.served = Counter[int]()
        self._arena = arena
        self._gateway = arena.gateway
        self._clock = asyncio.get_running_loop().time
        self.reader = DocumentReader(store)
        self._idle_work = SideProcess(store, is_idle=True)
        self._luck = LuckFiller(store, self._idle_work)
        self._analyses = Analyses(self._idle_work, self.reader)
        self._asks = 0  # of launched bots, at the last check
        self._latest = LatestMatches()
        self._spectators = Spectators(arena.referee, self._competition_of, self.lobby, self._clock)
        self._viewers = Viewers(self._gateway, self._spectators, self.people, self._clock())
        self._figures = ArenaFigures(arena, self._viewers, self.served)
        self._files = page_files()
        self._manual = ManualPages(self._files.version)
        self._visitors = Visitors()
        self._pending = BackgroundTasks()
        self._pending_near = Counter[str]()
        self._lobby_until = 0.0
        # Made at the start, as the first one is slow: it finds all installed house bots.
        self._lobby = lobby(arena, self._spectators)

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        self._latest.match_finished(ledger, match, pairing, result)
        self._luck.match_finished()

    async def close(self) -> None:
        """Cancel all pending requests without an answer, and end the processes."""
        self._pending.cancel()
        self.people.close()
        self._luck.close()
        await self._idle_work.close()
        await self.reader.process.close()

    def lobby(self) -> bytes:
        """Return the lobby's document, at most one second old."""
        now = self._clock()
        if now >= self._lobby_until:
            self._lobby = lobby(self._arena, self._spectators, self._latest, self.upcoming())
            self._lobby_until = now + _LOBBY_S
        return self._lobby

    # --- called by the entrance ---

    def answer(self, visitor: Visitor, request: Request) -> None:
        """Respond to a request, now or later."""
        self._visitors.came(visitor)
        path, _, query = request.path.partition("?")
        if request.method not in ("GET", "HEAD"):
            line = f"expected GET or HEAD, got {request.method}"
            self._send(visitor, text(405, line, ("Allow", "GET, HEAD")))
        elif path.startswith(_API):
            self._answer_document(visitor, path, query, request.headers)
        elif path == "/healthz":
            state = self._arena.storage.state  # contains no path or server name
            why = f"{state}; the arena's log says why"
            self._send(visitor, text(503, why) if state else text(200, "ok"))
        elif path == "/metrics":
            foreign = self._gateway.entrance.origins.host_refusal(request.headers)
            figures = reply(200, self._figures.text(), METRICS, NO_STORE)
            self._send(visitor, text(403, foreign) if foreign else figures)
        elif f"{path}/".startswith(MANUAL):
            find = partial(self._manual.answer, path, query, request.headers)
            self._answer_later(visitor, path, partial(asyncio.to_thread, find))
        else:
            self._answer_file(visitor, path, request.headers)

    def enter(self, caller: Caller, request: Request) -> None:
        self._viewers.enter(caller, request)

    def disconnected(self, caller: Wire) -> None:
        self._visitors.disconnected(caller)

    def tick(self, now: float) -> None:
        self._viewers.tick(now)
        self._spectators.tick(now)
        if self._idle_work.is_busy:
            self._idle_work.give_way(computing=self._bots_compute())

    def roster_changed(self) -> None:
        self._viewers.roster_changed()

    # --- documents ---

    def _answer_document(self, visitor: Visitor, path: str, query: str, headers: Headers) -> None:
        if (why := self._gateway.entrance.origins.host_refusal(headers)) is not None:
            self._send(visitor, problem(403, why))
            return
        try:
            viewer = self._gateway.admission.viewer(_token(headers))
            path, fields = _asked(path, query)
        except Unwelcome as error:
            self._gateway.throttle.blame(visitor.address)
            self._send(visitor, problem(401, str(error)))
            return
        except UsageError as error:
            self._send(visitor, problem(400, str(error)))
            return
        match path:
            case "/api/lobby.json":
                self._send(visitor, _made_here(self.lobby(), headers))
            case "/api/games.json":
                games = msgspec.json.encode({"games": self.startable()})
                self._send(visitor, _made_here(games, headers))
            case "/api/me.json":
                self._send(visitor, document(200, msgspec.json.encode(viewer), NO_STORE))
            case _:
                question = SideQuestion(
                    path=path, query=fields, viewer=viewer, packs=takes_gzip(headers)
                )
                find = partial(self._read, visitor.address, question, headers)
                self._answer_later(visitor, path, find)

    async def _read(self, address: str, question: SideQuestion, headers: Headers) -> Reply:
        """Read a document from the database, or about a match that a person played recently."""
        path = question.path
        if path.startswith(_MATCHES):
            match_ = path.removeprefix(_MATCHES).partition("/")[0].removesuffix(".json")
            played = self.people.record(match_)
            question = msgspec.structs.replace(question, personal_match=played)
        source = self._analyses if is_analysis(path) else self.reader
        return _reply(await source.ask(address, question), headers)

    def _answer_later(
        self, visitor: Visitor, path: str, find: Callable[[], Awaitable[Reply]]
    ) -> None:
        # Read now: behind a proxy, the connection's next request may be another client's.
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

    # --- internal ---

    def _send(self, visitor: Visitor, reply: Reply) -> None:
        self.served[reply.status] += 1
        self._visitors.gets(visitor, len(reply.body))
        send(visitor, reply)

    def _answer_file(self, visitor: Visitor, path: str, headers: Headers) -> None:
        answer = self._files.answer(path, headers)
        if path == "/" and not browser_of(headers):
            browser = secrets.token_urlsafe(16)
            cookie = remembering(browser, is_secure=visitor.is_secure)
            answer = msgspec.structs.replace(answer, headers=(*answer.headers, cookie))
        self._send(visitor, answer)

    def _bots_compute(self) -> bool:
        """Whether a launched bot has an open question, or was asked one since the last check."""
        launched = tuple(self._gateway.players.launched())
        before, self._asks = self._asks, sum(player.asks for player in launched)
        return self._asks != before or any(player.pending for player in launched)

    def _competition_of(self, table: LiveMatch) -> str | None:
        for competition in self._arena.competitions:
            if competition.table(table.id):
                return competition.id
        return None


@lru_cache(maxsize=_KINDS)
def _packed(body: bytes) -> bytes | None:
    return pack(body, _EFFORT)


def _made_here(body: bytes, headers: Headers) -> Reply:
    """Answer with a document from the arena's memory, compressed if that is worthwhile."""
    packed = _packed(body) if takes_gzip(headers) else None
    return _reply(PageAnswer(200, packed or body, is_packed=packed is not None), headers)


def _reply(answer: PageAnswer, headers: Headers) -> Reply:
    """Make a reply; a document with a tag is cached and validated each time, others are not."""
    if answer.status != 200:
        return document(answer.status, answer.body, NO_STORE)
    packed = (PACKED,) if answer.is_packed else ()
    if answer.etag is None:
        return document(200, answer.body, *packed, NO_STORE, _VARY)
    # A weak tag: the compressed and the plain document have the same content, but other bytes.
    tag = f'W/"{answer.etag}"'
    more = (("ETag", tag), NO_CACHE, _VARY)
    if knows(headers, tag):
        return unchanged(*more)
    return document(200, answer.body, *packed, *more)


def _token(headers: Headers) -> str | None:
    """Return the token of `Authorization: Bearer TOKEN`; `UsageError` for any other scheme."""
    values = headers.get_all("Authorization")
    if not values:
        return None
    kind, _, token = values[0].strip().partition(" ")
    if len(values) > 1 or kind.lower() != "bearer" or not token.strip():
        raise UsageError("expected Authorization: Bearer TOKEN, got something else")
    return token.strip()


def _asked(path: str, query: str) -> tuple[str, dict[str, str]]:
    """Decode the path and the fields of a query; raises `UsageError` if they are invalid."""
    part = "query"
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
        part = "path"
        path = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise UsageError(f"expected UTF-8 behind % in the {part}") from None
    except ValueError:
        raise UsageError(f"expected at most {_MOST_FIELDS} fields in the query") from None
    if len(fields := dict(pairs)) < len(pairs):
        raise UsageError("expected every field of the query once")
    return path, fields
