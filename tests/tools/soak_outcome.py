"""What a soak (tests/tools/soak.py) has found: samples of the arena's process, and the faults.

It is pure. Memory may grow a little while the arena is warming up; all that was there for a bot
must be gone with it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

__all__ = ["LEFT", "ProcessSample", "SoakOutcome", "document", "line", "show", "trend_mib"]

_WARM_UP = 0.25  # of the time, in which memory grows as it should
_WARM_UP_MINUTES = 3.0  # at least: so long it takes for all kinds to have been there


class ProcessSample(NamedTuple):
    """What the arena's process holds at a moment.

    Attributes:
        minute: since the start.
        descriptors: its open files and sockets.
        launched: processes that the arena has started, with all below them.
        actors: processes that the soak has started beside the arena.
        tables: matches that are being played.
        players: bots that are connected or may come back.
        database_mib: the size of the database, which may grow.
        decisions: so far.
    """

    minute: float
    rss_mib: float
    descriptors: int
    launched: int
    actors: int
    threads: int
    tasks: int
    tables: int
    players: int
    database_mib: float
    decisions: int


LEFT = "descriptors", "launched", "actors", "threads", "tasks", "tables", "players"
"""What must be at the end as it was before anybody came."""


class SoakOutcome(NamedTuple):
    """The result of a soak.

    Attributes:
        before: before the first bot came.
        after: when all had left.
        competitions: how many were played.
        came: how many bots came, by sort.
        eliminated: how many were out, by the word of J2.
        wronged: verdicts on honest bots, which are faults.
    """

    before: ProcessSample
    samples: tuple[ProcessSample, ...]
    after: ProcessSample
    competitions: int
    came: dict[str, int]
    eliminated: dict[str, int]
    wronged: tuple[str, ...]

    @property
    def counted(self) -> tuple[ProcessSample, ...]:
        """The samples after the warm-up; none of a short soak, which says nothing about memory."""
        if not self.samples:
            return ()
        warm = max(_WARM_UP_MINUTES, self.samples[-1].minute * _WARM_UP)
        return tuple(sample for sample in self.samples if sample.minute >= warm)

    @property
    def growth_mib(self) -> float:
        """How much memory grew per minute after the warm-up."""
        return trend_mib(self.counted)

    def faults(self, bound_mib: float) -> list[str]:
        """What is wrong, in a line each; memory may grow by `bound_mib` a minute."""
        faults = [f"an honest bot was eliminated: {text}" for text in self.wronged]
        for name in LEFT:
            was, now = getattr(self.before, name), getattr(self.after, name)
            if now > was:
                faults.append(f"expected {was} {name} when all had left, got {now}")
        if self.growth_mib > bound_mib:
            grown = f"{self.growth_mib:.2f} MiB a minute"
            faults.append(f"expected memory to grow by {bound_mib} at most, got {grown}")
        return faults


def trend_mib(samples: Sequence[ProcessSample]) -> float:
    """The growth of memory in MiB a minute: the median over all pairs, so that peaks do not count."""
    slopes = [
        (late.rss_mib - early.rss_mib) / (late.minute - early.minute)
        for early, late in combinations(samples, 2)
        if late.minute > early.minute
    ]
    return statistics.median(slopes) if slopes else 0.0


# ---- Showing it


def line(sample: ProcessSample) -> str:
    """A sample under the names of its fields."""
    return "  ".join(
        f"{value:>{len(name)}}" for name, value in zip(ProcessSample._fields, sample, strict=True)
    )


def show(outcome: SoakOutcome) -> None:
    """The figures before, after the warm-up, at the end, and when all had left."""
    start, *_ = outcome.counted or outcome.samples
    columns = outcome.before, start, outcome.samples[-1], outcome.after
    print(f"\n{'':14}{'before':>10}{'warm':>10}{'end':>10}{'all left':>10}")
    for name in ProcessSample._fields:
        values = "".join(f"{getattr(column, name):>10,}" for column in columns)
        print(f"{name:14}{values}")
    print(f"memory grew by {outcome.growth_mib:.2f} MiB a minute after the warm-up")
    print(f"{outcome.competitions:,} competitions; came: {_counts(outcome.came)}")
    print(f"eliminated: {_counts(outcome.eliminated)}")


def _counts(counted: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counted.items()))


def document(outcome: SoakOutcome, faults: list[str]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "before": outcome.before._asdict(),
        "samples": [sample._asdict() for sample in outcome.samples],
        "after": outcome.after._asdict(),
        "growth_mib_per_minute": round(outcome.growth_mib, 3),
        "competitions": outcome.competitions,
        "came": outcome.came,
        "eliminated": outcome.eliminated,
        "faults": faults,
    }
