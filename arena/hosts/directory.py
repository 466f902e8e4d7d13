"""The hosts that an arena knows from the bus, and asks for room."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Sequence

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

__all__ = ["SILENT_S", "HostDirectory", "KnownHost", "kind_key", "unfit"]

SILENT_S = 5.0
"""A host that has not reported for so long is gone: ten of its reports are missing."""

_LONGEST = 300


class KnownHost(msgspec.Struct, frozen=True, kw_only=True):
    """What a host has said last; `seen_at` is on the loop's clock."""

    report: HostReport
    seen_at: float

    def is_alive(self, now: float) -> bool:
        return now - self.seen_at <= SILENT_S


def kind_key(kind: HostKind) -> str:
    """The address on the bus of all hosts of a kind; no host is called so, for its dot."""
    return "kind." + hashlib.sha256(encode(kind)).hexdigest()[:16]


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
        ticket: with it a host may open its link at `url`, which `ca` is the certificate of.
        isolated: whether bots are isolated here, so that they have to be on hosts.
    """

    def __init__(
        self,
        bus: HostBus,
        arena: str,
        limits: Limits,
        url: str,
        ticket: str,
        ca: str = "",
        *,
        isolated: bool = True,
    ) -> None:
        self._bus = bus
        self._place = PlaceBots(arena=arena, bots=0, limits=limits, url=url, ticket=ticket, ca=ca)
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
        busy: Collection[str] = (),
    ) -> str:
        """The host that keeps room for all `bots` of a match; empty if none has it now.

        The host `warm_at` is asked first, as other bots of that match are warm there; then any host
        of each kind that can run the programs, those with most room first. Hosts that are `busy`
        with matches of this arena are left out.
        """
        wanted = encode(msgspec.structs.replace(self._place, bots=bots))
        fit = [
            report
            for report in self.alive()
            if report.host not in busy
            and not unfit(report.kind, programs, game, isolated=self._isolated)
        ]
        fit.sort(key=lambda report: (report.host != warm_at, -report.room))
        places = [report.host for report in fit if report.host == warm_at]
        places += dict.fromkeys(kind_key(report.kind) for report in fit if report.room >= bots)
        for where in places:
            try:
                answer: BotsPlaced = decode(await self._bus.place(where, wanted), BotsPlaced)
            except (BusDown, msgspec.DecodeError):
                continue
            if not answer.why:
                return answer.host
        return ""

    def _take(self, host: str, data: bytes) -> None:
        try:
            report: HostReport = decode(data, HostReport)
        except msgspec.DecodeError:  # of another version, or no report
            return
        error = one_line(report.last_error, _LONGEST)
        report = msgspec.structs.replace(report, host=host, last_error=error)
        self._known[host] = KnownHost(report=report, seen_at=self._loop.time())
