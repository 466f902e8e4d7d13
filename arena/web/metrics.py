"""The figures of a running arena, in Prometheus' text format 0.0.4; none of them names a bot."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from protocol.instructions import HOST_STATES, HostView

__all__ = ["CONTENT_TYPE", "Figures", "exposition"]

_TAKING = ("idle", "working")  # states of hosts that take bots

_STATM = Path("/proc/self/statm")
_STARTED = time.time()  # of this module, which is imported when the arena starts


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What an arena counts; the help texts below say what each figure is."""

    version: str
    here: int
    away: int
    matches: int
    competitions: int
    decisions: int
    lag_s: float
    viewers: int
    strangers: int
    requests: Mapping[int, int]
    failed: bool
    hosts: Sequence[HostView] | None = None  # None where no other machine may run bots
    lost: int = 0


def exposition(figures: Figures) -> bytes:
    """All figures as text, with the CPU time and memory of this process."""
    return generate_latest(_FiguresCollector(figures))


class _FiguresCollector(Collector):
    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        info = GaugeMetricFamily("arena_info", "The arena.", labels=["version"])
        info.add_metric([figures.version], 1)
        yield info
        bots = GaugeMetricFamily(
            "arena_bots", "Bots that are connected, or may come back.", labels=["state"]
        )
        bots.add_metric(["here"], figures.here)
        bots.add_metric(["away"], figures.away)
        yield bots
        requests = CounterMetricFamily(
            "arena_http_requests", "Plain HTTP requests, by status.", labels=["code"]
        )
        for code, number in sorted(figures.requests.items()):
            requests.add_metric([str(code)], number)
        yield requests
        if figures.hosts is not None:
            yield from _hosts(figures, figures.hosts)
        for name, help_, value in (
            ("arena_decisions", "Answers of bots, all taken together.", figures.decisions),
            ("arena_lag_seconds", "How late the event loop has been.", figures.lag_s),
            ("process_cpu_seconds", "CPU time used.", time.process_time()),
        ):
            yield CounterMetricFamily(name, help_, value)
        for name, help_, value in (
            ("arena_matches", "Matches that are played now.", figures.matches),
            ("arena_competitions", "Competitions that are on.", figures.competitions),
            ("arena_viewers", "Browsers that watch.", figures.viewers),
            ("arena_strangers", "Connections that are nobody's yet.", figures.strangers),
            ("arena_database_failed", "1 while results do not reach the database.", figures.failed),
            ("process_start_time_seconds", "When it started, Unix time.", _STARTED),
        ):
            yield GaugeMetricFamily(name, help_, value)
        with suppress(OSError, ValueError, IndexError):  # only Linux has this file
            pages = int(_STATM.read_text().split()[1])
            held = pages * os.sysconf("SC_PAGE_SIZE")
            yield GaugeMetricFamily("process_resident_memory_bytes", "Memory held.", held)


def _hosts(figures: Figures, views: Sequence[HostView]) -> Iterator[Metric]:
    by_state = Counter(view.state for view in views)
    cores = sum(view.cores for view in views if view.state in _TAKING)
    bots = sum(view.own_bots for view in views)
    hosts = GaugeMetricFamily("arena_hosts", "Machines that run bots, by state.", labels=["state"])
    for state in HOST_STATES:
        hosts.add_metric([state], by_state[state])
    yield hosts
    yield GaugeMetricFamily("arena_host_cores", "Cores of those that take bots.", cores)
    yield GaugeMetricFamily("arena_host_bots", "Bots of this arena on them.", bots)
    yield CounterMetricFamily("arena_host_lost", "Bots lost with a host.", figures.lost)
