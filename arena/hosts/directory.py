"""The hosts that an arena knows from the bus: it places bots on them, shows and drains them.

The directory also counts the bots that were lost with a host. These counts decide nothing: a bot
may just have bad luck with its hosts.
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
"""A host that has not reported for this long counts as gone: ten of its reports are missing."""

_LONGEST = 300  # letters of a host's error
_TRIES = 3  # an order may be lost on the bus; the instructor's client gives up after 10 s
_OBEYS_S = 2.0  # how long to wait for the effect of an order; a host reports twice a second
_LOOK_S = 0.1


class KnownHost(msgspec.Struct, frozen=True, kw_only=True):
    """The last report of a host; `seen_at` is on the loop's clock."""

    report: HostReport
    seen_at: float

    def is_alive(self, now: float) -> bool:
        return now - self.seen_at <= SILENT_S


def unfit(kind: HostKind, programs: Iterable[SeatProgram], game: str, *, isolated: bool) -> str:
    """Return a line on why hosts of a kind cannot run these programs; empty if they can.

    `game` is as in `HostKind.games`; `isolated` says whether the arena isolates its own bots.
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
        ticket: returns the ticket with which a host of that name opens its link.
        url: where hosts open their links; `ca` is the certificate for it.
        own_bots: returns how many bots of this arena are on a host.
        isolated: whether bots are isolated here, and so have to be on hosts, too.

    Attributes:
        lost: how often a bot's process was lost with its host.
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
        self._starts: Counter[str] = Counter()  # by the bots' public names, like the losses
        self._losses: Counter[str] = Counter()
        self._clock = asyncio.get_running_loop().time

    async def open(self) -> None:
        """Receive the reports of hosts from now on; raises `BusDown`."""
        await self._bus.on_reports(self._take)

    def hosts(self) -> tuple[KnownHost, ...]:
        """Return all hosts that have reported since the arena began, by name."""
        return tuple(self._known[name] for name in sorted(self._known))

    def alive(self) -> tuple[HostReport, ...]:
        """Return the reports of hosts that are alive and take bots."""
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
        """Return a host that reserves room for all `bots` of a match; empty if none has it now.

        The hosts that can run the programs are asked one after another: first `warm_at`, where
        other bots of that match are warm; then hosts with room; then those that may have to end
        idle bots of other arenas for it. Among equals the one with the least `load` comes first.
        That is the load by matches of this arena, from 0 to 1; a host with 1 is not asked.
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
        """Return all hosts that have reported since the arena began, by name."""
        now = self._clock()
        return tuple(self._view(host, now) for host in self.hosts())

    def lost_bots(self) -> tuple[LostBot, ...]:
        """Return the bots that were lost with a host, those with the most excess losses first."""
        starts = self._starts.total()
        rows = []
        for bot, lost in self._losses.items():
            of = self._starts[bot]
            others = starts - of
            expected = of * (self.lost - lost) / others if others else 0.0
            rows.append(LostBot(bot, lost, of, round(expected, 2)))
        return tuple(sorted(rows, key=lambda row: (row.expected - row.lost, row.bot)))

    def started(self, bot: str) -> None:
        """Count a start of a bot's process on a host."""
        self._starts[public_name(bot)] += 1

    def was_lost(self, bot: str) -> None:
        """Count a process of a bot that was lost with its host."""
        self._losses[public_name(bot)] += 1
        self.lost += 1

    async def drain(self, host: str, is_draining: bool) -> None:
        """Tell a host to take no more bots of any arena, or to take them again.

        This returns once the host reports that. Raises UsageError if no host of that name reports,
        or if it cannot be reached or does not obey.
        """
        now = self._clock()
        there = [each.report.host for each in self.hosts() if each.is_alive(now)]
        if host not in there:  # a silent host would obey only when it comes back
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
        except msgspec.DecodeError:  # from another version, or no report
            return
        error = one_line(report.last_error, _LONGEST)
        report = msgspec.structs.replace(report, host=host, last_error=error)
        self._known[host] = KnownHost(report=report, seen_at=self._clock())
