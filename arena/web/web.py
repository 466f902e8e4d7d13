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
from arena.referee.live_match import Table
from arena.referee.transport import Caller, Wire
from arena.server.reply import Visitor, pack
from arena.storage.store import Store
from arena.web.files import page_files
from arena.web.lobby import Chronicle, lobby
from arena.web.manual_pages import ManualPages
from arena.web.metrics import Figures, exposition
from arena.web.play.tables import Parlour
from arena.web.reader_client import Answer, Reading
from arena.web.site import Site
from arena.web.spectators import Gallery
from arena.web.viewer_socket import Viewers, Watcher
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
        chronicle: what was played lately; the host tells it.
        upcoming: gives what is to be played.
        startable: gives what the instructor can choose for each game.
    """

    def __init__(self, host: Host, store: Store) -> None:
        self._host = host
        self._gateway = host.gateway
        self._store = store
        self._clock = asyncio.get_running_loop().time
        self._lobby_until = 0.0
        self.chronicle = Chronicle()
        self.upcoming: Callable[[], Sequence[Upcoming]] = tuple
        self.startable: Callable[[], Sequence[Startable]] = tuple
        self.people = Parlour(host)
        self._reading = Reading(store)
        self._gallery = Gallery(
            host.conduct, self._competition_of, self.lobby, self._clock
        )
        self._viewers = Viewers(self, self._gallery, self.people, self._clock())
        files, origins = page_files(), self._gateway.entrance.origins
        self._site = Site(files, ManualPages(files.version), self, origins)
        # Now, as the first takes long: it looks for all house bots that are installed.
        self._lobby = lobby(host, self._gallery)

    def matched(
        self, ledger: Ledger, match: str, pairing: Pairing, result: Result
    ) -> None:
        """A match is over and written down."""
        self.chronicle.matched(ledger, match, pairing, result)

    async def close(self) -> None:
        """Stop what has been started for it."""
        self._site.close()
        self.people.close()
        await self._reading.close()

    # --- what the entrance calls ---

    def answer(self, visitor: Visitor, request: Request) -> None:
        """Respond to what is fetched, now or later."""
        self._site.answer(visitor, request)

    def enter(self, caller: Caller, request: Request) -> None:
        """Let somebody watch, or respond why not."""
        self._viewers.enter(caller, request)

    def left(self, caller: Wire) -> None:
        """A connection is gone."""
        self._site.left(caller)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._viewers.tick(now)
        self._gallery.tick(now)

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

    def instruct(self, connection: Wire, message: Instruct, watcher: Watcher) -> None:
        """Have an instructor's word carried out and answered.

        Raises:
            Unwelcome: it is no instructor's.
        """
        self._gateway.reception.desk.heard(connection, message, watcher.tell)

    def spent(self, address: str) -> bool:
        """Something was done for somebody there; whether that is within reason."""
        return self._gateway.reception.strangers.spent(address)

    def blame(self, address: str) -> None:
        """Somebody there was refused."""
        self._gateway.reception.strangers.blame(address)

    def lost(self, connection: Wire) -> None:
        """A viewer's connection is gone."""
        self._gateway.lost(connection)

    def lobby(self) -> bytes:
        """The lobby's document, as it was within the last second."""
        now = self._clock()
        if now >= self._lobby_until:
            latest, upcoming = self.chronicle.latest, self.upcoming()
            made = lobby(self._host, self._gallery, latest, upcoming)
            if made != self._lobby:
                self._lobby = made
            self._lobby_until = now + _LOBBY_S
        return self._lobby

    def lobby_document(self, packs: bool) -> Answer:
        """The same, packed if that is wanted and worth it."""
        return _answer(self.lobby(), packs)

    def games_document(self, packs: bool) -> Answer:
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
        conduct, strangers = self._host.conduct, self._gateway.reception.strangers
        figures = Figures(
            version=__version__,
            here=players.here,
            away=len(players) - players.here,
            matches=len(conduct.tables),
            competitions=len(self._host.competitions),
            decisions=conduct.decisions,
            lag_s=conduct.lag.total_s(self._clock()),
            viewers=len(self._viewers),
            strangers=len(strangers),
            requests=self._site.served,
            failed=self.failure() is not None,
        )
        return exposition(figures)

    async def ask(
        self,
        path: str,
        query: Mapping[str, str],
        viewer: Viewer,
        address: str,
        packs: bool,
    ) -> Answer:
        """A document from the database, or of a match in the parlour.

        Raises:
            ArenaError: there is none, and why.
        """
        match = path.removeprefix(_MATCHES).partition("/")[0].removesuffix(".json")
        record = self.people.record(match) if path.startswith(_MATCHES) else None
        return await self._reading.ask(path, query, viewer, record, address, packs)

    # --- within ---

    def _competition_of(self, table: Table) -> str | None:
        competitions = self._host.competitions
        return next((one.id for one in competitions if one.table(table.id)), None)


def _answer(body: bytes, packs: bool) -> Answer:
    packed = _packed(body) if packs else None
    return Answer(200, body) if packed is None else Answer(200, packed, is_packed=True)


@lru_cache(maxsize=_KINDS)
def _packed(body: bytes) -> bytes | None:
    return pack(body, _EFFORT)
