"""All that a browser finds at an arena, put together: the site, those who watch, the parlour, and the process that reads.

Each of them knows nothing of the others; here they get what they need of a host.
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
from arena.web.files import page_files
from arena.web.lobby import LatestMatches, lobby
from arena.web.manual_pages import ManualPages
from arena.web.metrics import Figures, exposition
from arena.web.play.tables import PeopleTables
from arena.web.reader_client import ReaderAnswer, ReaderClient
from arena.web.site import Site
from arena.web.spectators import Spectators
from arena.web.viewer_socket import Viewers, ViewerSocket
from protocol.errors import StoreFailed, UsageError
from protocol.messages import Instruct
from protocol.version import __version__

if TYPE_CHECKING:
    from arena.competitions.arena_host import Host
    from arena.competitions.ledger import Ledger

__all__ = ["Web"]

_LOBBY_S = 1.0  # for so long the lobby's document is good
_EFFORT = 1  # of 9, as it is packed while matches are played
_KINDS = 2  # of documents that are packed here: each once, until it changes
_MATCHES = "/api/matches/"
_UNWRITTEN = "results are not written down any more; the arena's log says why"


class Web:
    """The page of one host.

    Args:
        host: the arena.
        store: its database.

    Attributes:
        people: those who play here.
        latest_matches: what was played lately; the host tells it.
        upcoming: gives what is to be played.
        startable: gives what the instructor can choose for each game.
    """

    def __init__(self, host: Host, store: Store) -> None:
        self._host = host
        self._gateway = host.gateway
        self._store = store
        self._clock = asyncio.get_running_loop().time
        self._lobby_until = 0.0
        self.latest_matches = LatestMatches()
        self.upcoming: Callable[[], Sequence[Upcoming]] = tuple
        self.startable: Callable[[], Sequence[Startable]] = tuple
        self.people = PeopleTables(host)
        self._reader = ReaderClient(store)
        self._spectators = Spectators(host.referee, self._competition_of, self.lobby, self._clock)
        self._viewers = Viewers(self, self._spectators, self.people, self._clock())
        files, origins = page_files(), self._gateway.entrance.origins
        self._site = Site(files, ManualPages(files.version), self, origins)
        # Now, as the first takes long: it looks for all house bots that are installed.
        self._lobby = lobby(host, self._spectators)

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """A match is over and written down."""
        self.latest_matches.match_finished(ledger, match, pairing, result)

    async def close(self) -> None:
        """Stop what has been started for it."""
        self._site.close()
        self.people.close()
        await self._reader.close()

    # --- what the entrance calls ---

    def answer(self, visitor: Visitor, request: Request) -> None:
        """Respond to what is fetched, now or later."""
        self._site.answer(visitor, request)

    def enter(self, caller: Caller, request: Request) -> None:
        """Let somebody watch, or respond why not."""
        self._viewers.enter(caller, request)

    def disconnected(self, caller: Wire) -> None:
        """A connection is gone."""
        self._site.disconnected(caller)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._viewers.tick(now)
        self._spectators.tick(now)

    def roster_changed(self) -> None:
        """Tokens may have come to mean something else."""
        self._viewers.roster_changed()

    # --- what the site and the viewers ask for ---

    def viewer(self, token: str | None) -> Viewer:
        """Whose token that is.

        Raises:
            Unwelcome: it is nobody's.
        """
        return self._gateway.admission.viewer(token)

    def instruct(self, connection: Wire, message: Instruct, watcher: ViewerSocket) -> None:
        """Have an instructor's word carried out and answered.

        Raises:
            Unwelcome: it is no instructor's.
        """
        self._gateway.login.admin_requests.received(connection, message, watcher.tell)

    def spent(self, address: str) -> bool:
        """Something was done for somebody there; whether that is within reason."""
        return self._gateway.login.throttle.spent(address)

    def blame(self, address: str) -> None:
        """Somebody there was refused."""
        self._gateway.login.throttle.blame(address)

    def lost(self, connection: Wire) -> None:
        """A viewer's connection is gone."""
        self._gateway.lost(connection)

    def lobby(self) -> bytes:
        """The lobby's document, as it was within the last second."""
        now = self._clock()
        if now >= self._lobby_until:
            latest, upcoming = self.latest_matches.latest, self.upcoming()
            made = lobby(self._host, self._spectators, latest, upcoming)
            if made != self._lobby:
                self._lobby = made
            self._lobby_until = now + _LOBBY_S
        return self._lobby

    def lobby_document(self, packs: bool) -> ReaderAnswer:
        """The same, packed if that is wanted and worth it."""
        return _answer(self.lobby(), packs)

    def games_document(self, packs: bool) -> ReaderAnswer:
        """What can be chosen for each game, packed likewise."""
        return _answer(msgspec.json.encode({"games": self.startable()}), packs)

    def failure(self) -> str | None:
        """That results are not written any more, if so; where the database is, strangers need not know."""
        try:
            self._store.flush(0)
        except TimeoutError:  # it is at it
            return None
        except (StoreFailed, UsageError):
            return _UNWRITTEN
        return None

    def metrics(self) -> bytes:
        """Figures in Prometheus' format."""
        players = self._gateway.players
        referee, throttle = self._host.referee, self._gateway.login.throttle
        figures = Figures(
            version=__version__,
            here=players.here,
            away=len(players) - players.here,
            matches=len(referee.tables),
            competitions=len(self._host.competitions),
            decisions=referee.decisions,
            lag_s=referee.lag.total_s(self._clock()),
            viewers=len(self._viewers),
            strangers=len(throttle),
            requests=self._site.served,
            failed=self.failure() is not None,
        )
        return exposition(figures)

    async def ask(
        self, path: str, query: Mapping[str, str], viewer: Viewer, address: str, packs: bool
    ) -> ReaderAnswer:
        """A document from the database, or of a match in the parlour.

        Raises:
            ArenaError: there is none, and why.
        """
        match = path.removeprefix(_MATCHES).partition("/")[0].removesuffix(".json")
        record = self.people.record(match) if path.startswith(_MATCHES) else None
        return await self._reader.ask(path, query, viewer, record, address, packs)

    # --- within ---

    def _competition_of(self, table: LiveMatch) -> str | None:
        competitions = self._host.competitions
        return next((one.id for one in competitions if one.table(table.id)), None)


def _answer(body: bytes, packs: bool) -> ReaderAnswer:
    packed = _packed(body) if packs else None
    return ReaderAnswer(200, body) if packed is None else ReaderAnswer(200, packed, is_packed=True)


@lru_cache(maxsize=_KINDS)
def _packed(body: bytes) -> bytes | None:
    return pack(body, _EFFORT)
