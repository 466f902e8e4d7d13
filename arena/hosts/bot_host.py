"""A host: runs bots on this machine for the arenas of a bus, and judges nothing.

It says twice a second what it is and has. An arena asks for room for all launched bots of a match;
a host that has it keeps it for some seconds, and opens a link to that arena. When memory is short,
arenas are served in turn, and processes that have nothing to do are asked to make room.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from arena.hosts.hosted_bots import HostedBots, Launches, Programs
from arena.hosts.link import BotLink
from arena.hosts.messages import BotsPlaced, DrainHost, HostReport, PlaceBots, decode, encode
from arena.referee.clock import TICK_S, Lag
from arena.referee.compute_gate import LOOK_S, ComputeGate
from arena.sandbox.launcher import Launcher
from arena.server.background import BackgroundTasks
from protocol.errors import ArenaError
from protocol.messages import Limits

__all__ = ["BotHost", "LinkHandler", "OpenLink"]

REPORT_S = 0.5
KEPT_S = 10.0
"""For how long room is kept for bots that an arena has asked for."""
_WAITS_S = 3.0  # an arena that was refused asks again each second


class LinkHandler(Protocol):
    """Who takes what comes over a link."""

    def piece(self, frame: bytes) -> None: ...

    def message(self, frame: bytes) -> None: ...


class OpenLink(Protocol):
    """Opens the link to an arena and serves it until it is lost."""

    async def __call__(
        self, url: str, ticket: str, ca: str, opened: Callable[[BotLink], LinkHandler]
    ) -> None:
        """Call `opened` with the link, and its result with what comes; raises `ArenaError`."""


class _Guest:
    """An arena that is served here."""

    def __init__(self, arena: str, limits: Limits) -> None:
        self.arena = arena
        self.limits = limits
        self.bots: HostedBots | None = None
        self.kept: list[float] = []  # until when room is kept for each bot that is to come
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def taken(self, now: float) -> int:
        """For how many bots it has room."""
        self.kept = [until for until in self.kept if until > now]
        return len(self.kept) + (0 if self.bots is None else len(self.bots))


class BotHost:
    """One host; `report` is what it says of itself, as far as that does not change.

    Args:
        fitting: returns how many bots with these limits fit into the machine's memory.
        programs: fetches and builds; raises `ArenaError` for what cannot be started here.
        hidden: files that no bot sees.
        shortage: returns what this machine has too little of just now, in words; empty if nothing.
        tell: called with a line for the operator.
    """

    def __init__(
        self,
        report: HostReport,
        fitting: Callable[[Limits], int],
        programs: Programs,
        hidden: Sequence[Path],
        open_link: OpenLink,
        shortage: Callable[[], str] = lambda: "",
        tell: Callable[[str], None] = lambda line: None,
        launches: Launches = Launcher,
    ) -> None:
        self.is_draining = False  # as an operator says
        self._left_at = math.inf  # when it was told to leave
        self._link_error = ""  # why the last link could not be opened
        self.gate = ComputeGate(report.cores)
        self._report = report
        self._fitting = fitting
        self._programs = programs
        self._hidden = hidden
        self._open_link = open_link
        self._shortage = shortage
        self._tell = tell
        self._launches = launches
        self._guests: dict[str, _Guest] = {}
        self._refused: dict[str, float] = {}  # when each arena was refused that asks again
        self._served: list[str] = []  # arenas, the one that was given room last at the end
        self._loop = asyncio.get_running_loop()
        self._lag = Lag(self._loop.time())
        self._tasks = BackgroundTasks()

    @property
    def is_leaving(self) -> bool:
        """Whether it ends when its bots have played."""
        return self._left_at < math.inf

    @property
    def bots(self) -> int:
        """How many there are, of all arenas."""
        return sum(len(guest.bots) for guest in self._guests.values() if guest.bots is not None)

    @property
    def programs_in_use(self) -> tuple[str, ...]:
        """The keys of the programs of all bots that are there; may be read in a thread."""
        hosted = [guest.bots for guest in tuple(self._guests.values())]
        return tuple(key for bots in hosted if bots is not None for key in bots.programs)

    @property
    def report(self) -> HostReport:
        return msgspec.structs.replace(
            self._report,
            bots=self.bots,
            room=max(0, self._room(Limits())),
            is_draining=self.is_draining or self.is_leaving,
            lag_ms=round(1000 * self._lag.stalled_s(self._loop.time() - 5, self._loop.time()), 1),
            last_error=self._shortage() or self._link_error,
        )

    async def run(self, publish: Callable[[bytes], Awaitable[None]]) -> None:
        """Report, measure and share the cores, for ever."""
        report_at = look_at = self._loop.time()
        while True:
            now = self._loop.time()
            self._lag.tick(now)
            if now >= look_at:
                look_at = now + LOOK_S
                self.gate.look(now)
            if now >= report_at:
                report_at = now + REPORT_S
                await publish(encode(self.report))
            await asyncio.sleep(TICK_S)

    async def place(self, data: bytes) -> bytes:
        """Answer an arena that asks for room: a `Placed`."""
        try:
            wanted: PlaceBots = decode(data, PlaceBots)
        except msgspec.DecodeError as error:
            return encode(BotsPlaced(self._report.host, f"expected a request for room: {error}"))
        why = self._refusal(wanted)
        if not why:
            try:
                await self._serve(wanted)
            except ArenaError as error:
                why = str(error)
                if why != self._link_error:  # the arena asks again each second
                    self._tell(why)
                self._link_error = why
        return encode(BotsPlaced(self._report.host, why))

    def drain(self, data: bytes) -> None:
        """Take no more bots, or take them again, as an operator says."""
        was_draining = self.is_draining
        self.is_draining = decode(data, DrainHost).is_draining
        if self.is_draining is not was_draining:
            self._tell("takes no more bots" if self.is_draining else "takes bots again")

    def leave(self) -> None:
        """Take no more bots, for good."""
        self._left_at = self._loop.time()

    def retire_idle(self) -> None:
        """Ask arenas to end all bots that have nothing to do."""
        for guest in self._guests.values():
            if guest.bots is not None:
                guest.bots.ask_to_retire(len(guest.bots))

    async def close(self) -> None:
        """End all bots and links."""
        self._tasks.cancel()
        await self._tasks.ended()

    # --- within ---

    def _room(self, limits: Limits) -> int:
        now = self._loop.time()
        return self._fitting(limits) - sum(guest.taken(now) for guest in self._guests.values())

    def _refusal(self, wanted: PlaceBots) -> str:
        """Why an arena gets no room now; empty if it does."""
        now, arena = self._loop.time(), wanted.arena
        if self.is_draining or self.is_leaving:
            return "it takes no more bots"
        if shortage := self._shortage():
            return f"it has {shortage}"
        self._refused = {name: at for name, at in self._refused.items() if now - at < _WAITS_S}
        missing = wanted.bots - self._room(wanted.limits)
        if missing > 0:
            self._refused[arena] = now
            self._make_room(missing, arena)
            return "it has no memory left for them"
        first = next((name for name in self._served if name in self._refused), arena)
        if first != arena and self._served.index(first) < self._turn(arena):
            self._refused[arena] = now
            return f"it is the turn of {first}"
        return ""

    def _turn(self, arena: str) -> int:
        return self._served.index(arena) if arena in self._served else -1

    def _make_room(self, count: int, arena: str) -> None:
        """Ask the other arena with the most bots to end some that have nothing to do.

        The one that asks has replaced its own before it asks.
        """
        others = [guest for guest in self._guests.values() if guest.arena != arena]
        guests = [guest for guest in others if guest.bots is not None]
        most = max(guests, key=lambda guest: len(guest.bots or ()), default=None)
        if most is not None and most.bots is not None:
            most.bots.ask_to_retire(count)

    async def _serve(self, wanted: PlaceBots) -> None:
        """Keep room for an arena's bots, and have a link to it."""
        arena = wanted.arena
        guest = self._guests.get(arena)
        if guest is None:
            guest = self._guests[arena] = _Guest(arena, wanted.limits)
            self._tasks.start(self._link(guest, wanted))
        kept = [self._loop.time() + KEPT_S] * wanted.bots
        guest.kept += kept
        self._refused.pop(arena, None)
        self._served = [name for name in self._served if name != arena] + [arena]
        await asyncio.shield(guest.is_open)

    async def _link(self, guest: _Guest, wanted: PlaceBots) -> None:
        """Keep the link to an arena; when it is lost, nothing is left of its bots."""

        def opened(link: BotLink) -> HostedBots:
            guest.bots = HostedBots(
                link,
                wanted.limits,
                self.gate,
                self._programs,
                self._hidden,
                lambda: self._lag.all_stalls_s(self._loop.time()),
                lambda has_come: self._changed(guest, has_come),
                self._launches,
                lambda: self._left_at,
            )
            guest.is_open.set_result(None)
            self._link_error = ""
            self._tell(f"runs bots for {guest.arena}")
            return guest.bots

        try:
            await self._open_link(wanted.url, wanted.ticket, wanted.ca, opened)
        except ArenaError as error:
            if not guest.is_open.done():
                guest.is_open.set_exception(error)
                guest.is_open.exception()  # nobody may wait any more
        finally:
            if not guest.is_open.done():
                guest.is_open.set_exception(ArenaError("the link was closed"))
                guest.is_open.exception()
            del self._guests[guest.arena]
            if guest.bots is not None:
                await asyncio.shield(guest.bots.close())
                self._tell(f"has ended all bots of {guest.arena}")

    def _changed(self, guest: _Guest, has_come: bool) -> None:
        """A bot has come, for which room may have been kept, or is gone."""
        if has_come and guest.kept:
            guest.kept.pop(0)
