"""Builds the web page of an arena: the site, the spectators, the people's tables and the reader.

The reader is a process of its own, and so are the one that measures luck and the one that analyses.
The parts do not know each other. `Web` gives each of them what it needs from the host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from websockets.http11 import Request

from arena.competitions.attendance import Upcoming
from arena.competitions.start import Startable
from arena.engine.match import Result
from arena.formats.schedule import Pairing
from arena.records.visibility import Viewer
from arena.referee.live_match import LiveMatch
from arena.referee.transport import Caller, Wire
from arena.server.reply import Visitor, pack
from arena.storage.store import Store
from arena.web.analysis_client import AnalysisClient
from arena.web.analysis_tasks import is_analysis
from arena.web.files import page_files
from arena.web.lobby import LatestMatches, lobby
from arena.web.luck_filler import LuckFiller
from arena.web.manual_pages import ManualPages
from arena.web.metrics import Figures, exposition
from arena.web.play.tables import PeopleTables
from arena.web.reader_client import ReaderAnswer, ReaderClient
from arena.web.site import Site
from arena.web.spectators import Spectators
from arena.web.viewer_socket import Viewers
from protocol.version import __version__

if TYPE_CHECKING:
    from arena.competitions.ledger import Ledger
    from arena.competitions.live_arena import LiveArena

__all__ = ["Web"]

_LOBBY_S = 1.0  # how long the lobby's document is cached
_EFFORT = 1  # of 9: this process compresses while it runs matches
_KINDS = 2  # of documents that are compressed here, lobby and games: each once, until it changes
_MATCHES = "/api/matches/"


class Web:
    """The page of one host; `upcoming` gives the runs to come, `startable` what can be chosen."""

    def __init__(self, arena: LiveArena, store: Store) -> None:
        self._arena = arena
        self._gateway = arena.gateway
        self._store = store
        self._clock = asyncio.get_running_loop().time
        self._lobby_until = 0.0
        self._latest = LatestMatches()
        self.upcoming: Callable[[], Sequence[Upcoming]] = tuple
        self.startable: Callable[[], Sequence[Startable]] = tuple
        self.people = PeopleTables(arena)
        self._reader = ReaderClient(store)
        self._luck = LuckFiller(store)
        self._analyses = AnalysisClient(store, self._reader)
        self._asks = 0  # of launched bots, at the last look
        self._spectators = Spectators(arena.referee, self._competition_of, self.lobby, self._clock)
        self._viewers = Viewers(self._gateway, self._spectators, self.people, self._clock())
        files = page_files()
        self._site = Site(files, ManualPages(files.version), self, self._gateway)
        # At the start, as the first one is slow: it looks for all installed house bots.
        self._lobby = lobby(arena, self._spectators)

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        self._latest.match_finished(ledger, match, pairing, result)
        self._luck.match_finished()

    async def close(self) -> None:
        self._site.close()
        self.people.close()
        await self._luck.close()
        await self._analyses.close()
        await self._reader.close()

    # --- what the entrance calls ---

    def answer(self, visitor: Visitor, request: Request) -> None:
        self._site.answer(visitor, request)

    def enter(self, caller: Caller, request: Request) -> None:
        self._viewers.enter(caller, request)

    def disconnected(self, caller: Wire) -> None:
        self._site.disconnected(caller)

    def tick(self, now: float) -> None:
        self._viewers.tick(now)
        self._spectators.tick(now)
        if self._analyses.is_busy:
            self._analyses.tick(self._bots_compute())

    def roster_changed(self) -> None:
        self._viewers.roster_changed()

    # --- what the site asks for ---

    def lobby(self) -> bytes:
        """The lobby's document, at most one second old."""
        now = self._clock()
        if now >= self._lobby_until:
            self._lobby = lobby(self._arena, self._spectators, self._latest, self.upcoming())
            self._lobby_until = now + _LOBBY_S
        return self._lobby

    def lobby_document(self, packs: bool) -> ReaderAnswer:
        return _answer(self.lobby(), packs)

    def games_document(self, packs: bool) -> ReaderAnswer:
        return _answer(msgspec.json.encode({"games": self.startable()}), packs)

    def failure(self) -> str | None:
        """A line if results do not reach the disk, else None; it names no path or server."""
        state = self._arena.storage.state
        return f"{state}; the arena's log says why" if state else None

    def metrics(self) -> bytes:
        players = self._gateway.players
        referee, throttle = self._arena.referee, self._gateway.login.throttle
        directory = self._arena.host_directory
        figures = Figures(
            version=__version__,
            here=players.here,
            away=len(players) - players.here,
            matches=len(referee.tables),
            competitions=len(self._arena.competitions),
            decisions=referee.decisions,
            lag_s=referee.lag.total_s(self._clock()),
            viewers=len(self._viewers),
            strangers=len(throttle),
            requests=self._site.served,
            failed=self.failure() is not None,
            hosts=None if directory is None else directory.views(),
            lost=0 if directory is None else directory.lost,
        )
        return exposition(figures)

    async def ask(
        self, path: str, query: Mapping[str, str], viewer: Viewer, address: str, packs: bool
    ) -> ReaderAnswer:
        """A document from the database, or about a match that a person has played lately."""
        match = path.removeprefix(_MATCHES).partition("/")[0].removesuffix(".json")
        record = self.people.record(match) if path.startswith(_MATCHES) else None
        source = self._analyses if is_analysis(path) else self._reader
        return await source.ask(path, query, viewer, record, address, packs)

    # --- within ---

    def _bots_compute(self) -> bool:
        """Whether a bot that the arena has launched is to answer, or was since the last look."""
        launched = tuple(self._gateway.players.launched())
        before, self._asks = self._asks, sum(player.asks for player in launched)
        return self._asks != before or any(player.pending for player in launched)

    def _competition_of(self, table: LiveMatch) -> str | None:
        for competition in self._arena.competitions:
            if competition.table(table.id):
                return competition.id
        return None


def _answer(body: bytes, packs: bool) -> ReaderAnswer:
    packed = _packed(body) if packs else None
    return ReaderAnswer(200, body) if packed is None else ReaderAnswer(200, packed, is_packed=True)


@lru_cache(maxsize=_KINDS)
def _packed(body: bytes) -> bytes | None:
    return pack(body, _EFFORT)
