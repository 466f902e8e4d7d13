"""The metrics of a running arena, in Prometheus' text format 0.0.4; none of them names a bot."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from protocol.instructions import HOST_STATES, HostView
from protocol.version import __version__

if TYPE_CHECKING:
    from arena.competitions.live_arena import LiveArena

__all__ = ["CONTENT_TYPE", "ArenaFigures"]

_TAKING = ("idle", "working")  # states in which hosts take bots

_STATM = Path("/proc/self/statm")
_STARTED = time.time()  # this module is imported when the arena starts


class ArenaFigures(Collector):
    """Collects an arena's metrics; their help texts below explain each.

    `viewers` are the watching browsers, `requests` the number of answers by status.
    """

    def __init__(self, arena: LiveArena, viewers: Sized, requests: Mapping[int, int]) -> None:
        self._arena = arena
        self._viewers = viewers
        self._requests = requests

    def text(self) -> bytes:
        """Return all metrics, with the CPU time and memory of this process."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        arena, referee = self._arena, self._arena.referee
        players = arena.gateway.players
        info = GaugeMetricFamily("arena_info", "The arena.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info
        bots = GaugeMetricFamily(
            "arena_bots", "Bots that are connected, or may come back.", labels=["state"]
        )
        bots.add_metric(["here"], players.here)
        bots.add_metric(["away"], len(players) - players.here)
        yield bots
        requests = CounterMetricFamily(
            "arena_http_requests", "Plain HTTP requests, by status.", labels=["code"]
        )
        for code, number in sorted(self._requests.items()):
            requests.add_metric([str(code)], number)
        yield requests
        if (directory := arena.host_directory) is not None:
            yield from _hosts(directory.views(), directory.lost)
        lag_s = referee.lag.total_s(asyncio.get_running_loop().time())
        for name, help_, value in (
            ("arena_decisions", "Answers of bots, all taken together.", referee.decisions),
            ("arena_lag_seconds", "How late the event loop has been.", lag_s),
            ("process_cpu_seconds", "CPU time used.", time.process_time()),
        ):
            yield CounterMetricFamily(name, help_, value)
        strangers, failed = len(arena.gateway.throttle), bool(arena.storage.state)
        for name, help_, value in (
            ("arena_matches", "Matches that are played now.", len(referee.tables)),
            ("arena_competitions", "Competitions that are on.", len(arena.competitions)),
            ("arena_viewers", "Browsers that watch.", len(self._viewers)),
            ("arena_strangers", "Connections that are nobody's yet.", strangers),
            ("arena_database_failed", "1 while results do not reach the database.", failed),
            ("process_start_time_seconds", "When it started, Unix time.", _STARTED),
        ):
            yield GaugeMetricFamily(name, help_, value)
        with suppress(OSError, ValueError, IndexError):  # only Linux has this file
            pages = int(_STATM.read_text().split()[1])
            held = pages * os.sysconf("SC_PAGE_SIZE")
            yield GaugeMetricFamily("process_resident_memory_bytes", "Memory held.", held)


def _hosts(views: Sequence[HostView], lost: int) -> Iterator[Metric]:
    by_state = Counter(view.state for view in views)
    cores = sum(view.cores for view in views if view.state in _TAKING)
    bots = sum(view.own_bots for view in views)
    hosts = GaugeMetricFamily("arena_hosts", "Machines that run bots, by state.", labels=["state"])
    for state in HOST_STATES:
        hosts.add_metric([state], by_state[state])
    yield hosts
    yield GaugeMetricFamily("arena_host_cores", "Cores of those that take bots.", cores)
    yield GaugeMetricFamily("arena_host_bots", "Bots of this arena on them.", bots)
    yield CounterMetricFamily("arena_host_lost", "Bots lost with a host.", lost)
