"""The hosts of an arena as its people see them: what each does, and who was lost with one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from arena.engine.names import public_name
from arena.hosts.bus import BusDown, HostBus
from arena.hosts.directory import HostDirectory, KnownHost
from arena.hosts.messages import DrainHost, encode
from protocol.errors import UsageError
from protocol.instructions import HostView, LostBot

__all__ = ["HostControl"]

_TRIES = 3  # an order may be lost on the bus; the instructor's client gives up after 10 s
_OBEYS_S = 2.0  # a host reports twice a second
_LOOK_S = 0.1


class HostControl:
    """Shows and drains the hosts of a bus, and counts the bots that were lost with them.

    Nothing is ruled by these counts: a bot may have bad luck with its hosts.

    Args:
        own_bots: returns how many bots of this arena are on a host.

    Attributes:
        lost: how often a process of a bot was on a host when that was lost.
    """

    def __init__(
        self, directory: HostDirectory, bus: HostBus, own_bots: Callable[[str], int]
    ) -> None:
        self.lost = 0
        self._directory = directory
        self._bus = bus
        self._own_bots = own_bots
        self._starts: Counter[str] = Counter()  # by the bots' public names, as the losses
        self._losses: Counter[str] = Counter()
        self._clock = asyncio.get_running_loop().time

    def views(self) -> tuple[HostView, ...]:
        """All hosts that have reported since the arena began, by name."""
        now = self._clock()
        return tuple(self._view(host, now) for host in self._directory.hosts())

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
        there = [each.report.host for each in self._directory.hosts() if each.is_alive(now)]
        if host not in there:  # else it would obey when it comes back
            names = ", ".join(there) or "none"
            raise UsageError(f"expected a host that reports ({names}), got {host!r}")
        for _ in range(_TRIES):
            try:
                await self._bus.drain(host, encode(DrainHost(is_draining)))
            except BusDown as error:
                raise UsageError(f"expected a bus that carries the order: {error}") from None
            if await self._obeys(host, is_draining):
                return
        raise UsageError(f"expected a host that obeys, {host} was told {_TRIES} times")

    # --- within ---

    async def _obeys(self, host: str, is_draining: bool) -> bool:
        """Wait until a host reports what it was told; False if it does not."""
        until = self._clock() + _OBEYS_S
        while self._clock() < until:
            await asyncio.sleep(_LOOK_S)
            for known in self._directory.hosts():
                if known.report.host == host and known.report.is_draining is is_draining:
                    return True
        return False

    def _view(self, known: KnownHost, now: float) -> HostView:
        report, kind = known.report, known.report.kind
        state, why = "working" if report.bots else "idle", report.last_error
        if not known.is_alive(now):
            gone = "" if self._bus.is_up else ", as the bus is gone"
            state, why = "silent", f"it has not reported for {now - known.seen_at:.0f} s{gone}"
        elif misfit := self._directory.misfit(kind):
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
