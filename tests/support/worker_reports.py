"""Reports of workers that exist in tests only."""

from __future__ import annotations

from typing import Any

from arena.workers.messages import WorkerKind, WorkerReport

__all__ = ["report_of"]

_KIND = WorkerKind(
    arena_version="1.0",
    system="linux",
    machine="x86_64",
    isolation="bubblewrap",
    languages=("python",),
    commands=(),
    games=("gin_rummy",),
)


def report_of(worker: str, **about: Any) -> WorkerReport:
    """The report of a worker with two cores, which is idle if nothing else is said."""
    usual: dict[str, Any] = {
        "session": "s1",
        "kind": _KIND,
        "speed": 3.5,
        "cores": 2,
        "slots": 4,
        "memory_mib": 8_000,
    }
    return WorkerReport(worker=worker, **{**usual, **about})
