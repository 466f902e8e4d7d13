"""The hosts that an arena knows from the bus: asked for room, shown and drained.

It counts the bots that were lost with one. Nothing is ruled by these counts: a bot may have bad
luck with its hosts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from arena.games.names import public_name
from arena.hosts import messages
from arena.hosts.bus import BusDown, HostBus
from arena.hosts.messages import HostKind, HostReport, SeatProgram, decode, encode
from protocol.errors import UsageError, one_line
from protocol.instructions import HostView, LostBot
from protocol.messages import Limits
from protocol.version import __version__

__all__ = ["SILENT_S", "HostDirectory", "KnownHost", "unfit"]

SILENT_S = 5.0
"""A host that has not reported for so long is gone: ten of its reports are missing."""

_LONGEST = 300
_TRIES = 3  # an order may be lost on the bus; the instructor's client gives up after 10 s
_OBEYS_S = 2.0  # a host reports twice a second
_LOOK_S = 0.1


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
        if isinstance(program, messages.Source) and program.language not in kind.languages:
            return f"it lacks {program.language}"
        if isinstance(program, messages.HouseBot | messages.Bundle) and game not in kind.games:
            return f"it lacks the game {game}"
        needs = program.needs if isinstance(program, messages.Bundle) else ""
        if needs and needs not in kind.commands:
            return f"it lacks {needs}"
    return ""


class HostDirectory:
    """The hosts of a bus.

    Args:
        arena: the name of this arena on the bus.
        ticket: gives what a host of that name may open its link with at `url`, of which `ca` is the
            certificate.
        own_bots: returns how many bots of this arena are on a host.
        isolated: whether bots are isolated here, so that they have to be on hosts.

    Attributes:
        lost: how often a process of a bot was on a host when that was lost.
    """

    def __init__(
        self,
        bus: HostBus,
        arena: str,
        limits: Limits,
        url: str,
        ticket: Callable[[str], str],
        own_bots: Callable[[str], int] = lambda host: 0,
        ca: str = "",
        *,
        isolated: bool = True,
    ) -> None:
        self.lost = 0
        self._bus = bus
        self._place = messages.PlaceBots(
            arena=arena, bots=0, limits=limits, url=url, ticket="", ca=ca
        )
        self._ticket = ticket
        self._own_bots = own_bots
        self._isolated = isolated
        self._known: dict[str, KnownHost] = {}
        self._starts: Counter[str] = Counter()  # by the bots' public names, as the losses
        self._losses: Counter[str] = Counter()
        self._clock = asyncio.get_running_loop().time

    async def open(self) -> None:
        """Hear hosts from now on; raises `BusDown`."""
        await self._bus.on_reports(self._take)

    def hosts(self) -> tuple[KnownHost, ...]:
        """All that have reported since the arena began, by name."""
        return tuple(self._known[name] for name in sorted(self._known))

    def alive(self) -> tuple[HostReport, ...]:
        """The reports of hosts that are there and take bots."""
        now = self._clock()
        known = (host for host in self.hosts() if host.is_alive(now))
        return tuple(host.report for host in known if not host.report.is_draining)

    # --- placing ---

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
                answer = decode(await self._bus.place(host, wanted), messages.BotsPlaced)
            except (BusDown, msgspec.DecodeError):
                continue
            if not answer.why:
                return host
        return ""

    # --- what people see and order ---

    def views(self) -> tuple[HostView, ...]:
        """All hosts that have reported since the arena began, by name."""
        now = self._clock()
        return tuple(self._view(host, now) for host in self.hosts())

    def lost_bots(self) -> tuple[LostBot, ...]:
        """The bots that were lost with a host; first who was more often than the others are."""
        starts = self._starts.total()
        rows = []
        for bot, lost in self._losses.items():
            of = self._starts[bot]
            others = starts - of
            expected = of * (self.lost - lost) / others if others else 0.0
            rows.append(LostBot(bot, lost, of, round(expected, 2)))
        return tuple(sorted(rows, key=lambda row: (row.expected - row.lost, row.bot)))

    def started(self, bot: str) -> None:
        """A process of a bot is being started on a host."""
        self._starts[public_name(bot)] += 1

    def was_lost(self, bot: str) -> None:
        """A host was lost with a process of a bot on it."""
        self._losses[public_name(bot)] += 1
        self.lost += 1

    async def drain(self, host: str, is_draining: bool) -> None:
        """Have a host take no more bots of any arena, or take them again.

        It returns once the host says so. Raises UsageError if no host of that name reports, or it
        cannot be told.
        """
        now = self._clock()
        there = [each.report.host for each in self.hosts() if each.is_alive(now)]
        if host not in there:  # else it would obey when it comes back
            names = ", ".join(there) or "none"
            raise UsageError(f"expected a host that reports ({names}), got {host!r}")
        for _ in range(_TRIES):
            try:
                await self._bus.drain(host, encode(messages.DrainHost(is_draining)))
            except BusDown as error:
                raise UsageError(f"expected a bus that carries the order: {error}") from None
            until = self._clock() + _OBEYS_S
            while self._clock() < until:
                await asyncio.sleep(_LOOK_S)
                if self._known[host].report.is_draining is is_draining:
                    return
        raise UsageError(f"expected a host that obeys, {host} was told {_TRIES} times")

    # --- within ---

    def _view(self, known: KnownHost, now: float) -> HostView:
        report, kind = known.report, known.report.kind
        state, why = "working" if report.bots else "idle", report.last_error
        if not known.is_alive(now):
            gone = "" if self._bus.is_up else ", as the bus is gone"
            state, why = "silent", f"it has not reported for {now - known.seen_at:.0f} s{gone}"
        elif misfit := unfit(kind, (), "", isolated=self._isolated):
            state, why = "unfit", misfit
        elif report.is_draining:
            state = "draining"
        return HostView(
            host=report.host,
            state=state,
            why=why,
            cores=report.cores,
            memory_mib=report.memory_mib,
            bots=report.bots,
            own_bots=self._own_bots(report.host),
            room=report.room,
            isolation=kind.isolation,
            languages=kind.languages,
            lag_ms=report.lag_ms,
            version=kind.arena_version,
        )

    def _take(self, host: str, data: bytes) -> None:
        try:
            report = decode(data, HostReport)
        except msgspec.DecodeError:  # of another version, or no report
            return
        error = one_line(report.last_error, _LONGEST)
        report = msgspec.structs.replace(report, host=host, last_error=error)
        self._known[host] = KnownHost(report=report, seen_at=self._clock())
