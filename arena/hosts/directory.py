"""The hosts that an arena knows from the bus, and asks for room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from arena.hosts.bus import BusDown, HostBus
from arena.hosts.messages import (
    BotsPlaced,
    Bundle,
    HostKind,
    HostReport,
    HouseBot,
    PlaceBots,
    SeatProgram,
    Source,
    decode,
    encode,
)
from protocol.errors import one_line
from protocol.messages import Limits
from protocol.version import __version__

__all__ = ["SILENT_S", "HostDirectory", "KnownHost", "unfit"]

SILENT_S = 5.0
"""A host that has not reported for so long is gone: ten of its reports are missing."""

_LONGEST = 300


class KnownHost(msgspec.Struct, frozen=True, kw_only=True):
    """What a host has said last; `seen_at` is on the loop's clock."""

    report: HostReport
    seen_at: float

    def is_alive(self, now: float) -> bool:
        return now - self.seen_at <= SILENT_S


def unfit(kind: HostKind, programs: Iterable[SeatProgram], game: str, *, isolated: bool) -> str:
    """Why hosts of a kind cannot run these programs, in a line; empty if they can.

    `game` is as in `HostKind.games`; `isolated` is whether bots are kept apart at the arena.
    """
    if kind.arena_version != __version__:
        return f"it has version {kind.arena_version}, the arena {__version__}"
    if isolated and not kind.isolation:
        return "it does not isolate bots"
    for program in programs:
        if isinstance(program, Source) and program.language not in kind.languages:
            return f"it lacks {program.language}"
        if isinstance(program, HouseBot | Bundle) and game not in kind.games:
            return f"it lacks the game {game}"
        if isinstance(program, Bundle) and program.needs and program.needs not in kind.commands:
            return f"it lacks {program.needs}"
    return ""


class HostDirectory:
    """The hosts of a bus.

    Args:
        arena: the name of this arena on the bus.
        ticket: gives what a host of that name may open its link with at `url`, of which `ca` is the
            certificate.
        isolated: whether bots are isolated here, so that they have to be on hosts.
    """

    def __init__(
        self,
        bus: HostBus,
        arena: str,
        limits: Limits,
        url: str,
        ticket: Callable[[str], str],
        ca: str = "",
        *,
        isolated: bool = True,
    ) -> None:
        self._bus = bus
        self._place = PlaceBots(arena=arena, bots=0, limits=limits, url=url, ticket="", ca=ca)
        self._ticket = ticket
        self._isolated = isolated
        self._known: dict[str, KnownHost] = {}
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Hear hosts from now on; raises `BusDown`."""
        await self._bus.on_reports(self._take)

    def hosts(self) -> tuple[KnownHost, ...]:
        """All that have reported since the arena began, by name."""
        return tuple(self._known[name] for name in sorted(self._known))

    def alive(self) -> tuple[HostReport, ...]:
        """The reports of hosts that are there and take bots."""
        now = self._loop.time()
        known = (host for host in self.hosts() if host.is_alive(now))
        return tuple(host.report for host in known if not host.report.is_draining)

    def misfit(self, kind: HostKind) -> str:
        """Why hosts of a kind can run no bot of this arena, in a line; empty if they can."""
        return unfit(kind, (), "", isolated=self._isolated)

    async def place(
        self,
        bots: int,
        programs: Sequence[SeatProgram],
        game: str,
        warm_at: str = "",
        load: Mapping[str, float] | None = None,
    ) -> str:
        """The host that keeps room for all `bots` of a match; empty if none has it now.

        The hosts that can run the programs are asked one after another: first `warm_at`, as other
        bots of that match are warm there; then those with room, then those that may have to end
        idle bots of other arenas for it. Of these who has the least `load` with matches of this
        arena comes first, from 0 to 1; with 1 it is not asked.
        """
        load = load or {}
        fit = [
            report
            for report in self.alive()
            if load.get(report.host, 0.0) < 1.0
            and not unfit(report.kind, programs, game, isolated=self._isolated)
        ]

        def rank(report: HostReport) -> tuple[bool, bool, float, int]:
            host, room = report.host, report.room
            return host != warm_at, room < bots, load.get(host, 0.0), -room

        for host in [report.host for report in sorted(fit, key=rank)]:
            ticket = self._ticket(host)
            wanted = encode(msgspec.structs.replace(self._place, bots=bots, ticket=ticket))
            try:
                answer: BotsPlaced = decode(await self._bus.place(host, wanted), BotsPlaced)
            except (BusDown, msgspec.DecodeError):
                continue
            if not answer.why:
                return host
        return ""

    def _take(self, host: str, data: bytes) -> None:
        try:
            report: HostReport = decode(data, HostReport)
        except msgspec.DecodeError:  # of another version, or no report
            return
        error = one_line(report.last_error, _LONGEST)
        report = msgspec.structs.replace(report, host=host, last_error=error)
        self._known[host] = KnownHost(report=report, seen_at=self._loop.time())
