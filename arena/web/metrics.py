"""Figures of a running arena for Prometheus: its text format 0.0.4, and which figures there are.

They are read when they are asked for, from what is counted anyway; none of them names a bot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

__all__ = ["KIND", "Figures", "Metric", "exposition", "metrics"]

KIND = "text/plain; version=0.0.4; charset=utf-8"
"""The content type that says so."""

_STATM = Path("/proc/self/statm")
_STARTED = time.time()  # of this module, which is early enough

Labels: TypeAlias = Mapping[str, str]


class Metric(msgspec.Struct, frozen=True):
    """One figure, or one for every set of labels.

    Attributes:
        name: with its unit; a counter's ends in `_total`.
        help: what it is.
        values: by labels, in order.
    """

    name: str
    help: str
    values: Sequence[tuple[Labels, float]]

    @property
    def kind(self) -> str:
        """Whether it only ever rises."""
        return "counter" if self.name.endswith("_total") else "gauge"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What an arena counts.

    Attributes:
        version: its own.
        here: bots that are connected.
        away: those that may come back.
        matches: that are played now.
        competitions: that are on.
        decisions: answers that have been played.
        lag_s: how late the event loop has been in all.
        viewers: browsers that watch.
        strangers: connections that have not said who they are.
        requests: plain HTTP requests by the status of their answers.
        failed: whether the database takes nothing any more.
    """

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


def metrics(figures: Figures) -> Sequence[Metric]:
    """All there is to know, this process's own needs included."""
    bots = [({"state": "here"}, figures.here), ({"state": "away"}, figures.away)]
    requests = [
        ({"code": str(code)}, n) for code, n in sorted(figures.requests.items())
    ]
    return (
        Metric("arena_info", "The arena.", [({"version": figures.version}, 1)]),
        Metric("arena_bots", "Bots that are connected, or may come back.", bots),
        _one("arena_matches", "Matches that are played now.", figures.matches),
        _one("arena_competitions", "Competitions that are on.", figures.competitions),
        _one(
            "arena_decisions_total",
            "Answers of bots, all taken together.",
            figures.decisions,
        ),
        _one(
            "arena_lag_seconds_total",
            "How late the event loop has been.",
            figures.lag_s,
        ),
        _one("arena_viewers", "Browsers that watch.", figures.viewers),
        _one(
            "arena_strangers", "Connections that are nobody's yet.", figures.strangers
        ),
        Metric(
            "arena_http_requests_total", "Plain HTTP requests, by status.", requests
        ),
        _one("arena_database_failed", "1 if nothing can be written.", figures.failed),
        _one("process_cpu_seconds_total", "CPU time used.", time.process_time()),
        _one("process_start_time_seconds", "When it started, Unix time.", _STARTED),
        *_memory(),
    )


def exposition(metrics: Iterable[Metric]) -> str:
    """The text of them."""
    lines = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for labels, value in metric.values:
            inner = ",".join(
                f'{name}="{_escaped(said)}"' for name, said in labels.items()
            )
            where = f"{{{inner}}}" if inner else ""
            lines.append(f"{metric.name}{where} {_number(value)}")
    return "\n".join(lines) + "\n"


def _one(name: str, help_: str, value: float) -> Metric:
    return Metric(name, help_, [({}, value)])


def _memory() -> Iterable[Metric]:
    """What we hold, where the system tells."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(_STATM.read_text().split()[1])
        held = pages * os.sysconf("SC_PAGE_SIZE")
        yield _one("process_resident_memory_bytes", "Memory held.", held)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
