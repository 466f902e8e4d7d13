"""A worker as it is shown: what it does, and whether it is there."""

from __future__ import annotations

import msgspec
import pytest

from arena.workers.known_worker import SILENT_S, KnownWorker
from arena.workers.messages import RunningAttempt
from protocol.instructions import WORKER_STATES
from tests.support.worker_reports import report_of

PLAYED = RunningAttempt(arena="a", job="j1", attempt="t1", has_begun=True)
HANDED_IN = msgspec.structs.replace(PLAYED, attempt="t2", is_over=True)


def known(refused: str = "", name: str = "w1", **about: object) -> KnownWorker:
    return KnownWorker(report=report_of(name, **about), seen_at=100.0, refused=refused)


@pytest.mark.parametrize(
    ("worker", "after_s", "state"),
    [
        (known(), 0.5, "idle"),
        (known(attempts=(PLAYED,)), 0.5, "working"),
        (known(attempts=(HANDED_IN,)), 0.5, "idle"),
        (known(attempts=(PLAYED,), is_draining=True), 0.5, "draining"),
        (known(attempts=(PLAYED,)), SILENT_S + 0.1, "silent"),
        (known("another version"), 0.5, "refused"),
        (known("another version"), 60.0, "refused"),
    ],
)
def test_a_worker_is_in_one_state(worker: KnownWorker, after_s: float, state: str) -> None:
    assert worker.view(100.0 + after_s).state == state
    assert state in WORKER_STATES


def test_a_view_says_what_was_reported() -> None:
    view = known(attempts=(PLAYED, HANDED_IN), last_error="the disk is full").view(102.5)

    assert (view.name, view.running, view.slots, view.cores) == ("w1", 1, 4, 2)
    assert (view.system, view.speed, view.seen_s) == ("linux x86_64", 3.5, 2.5)
    assert view.last_error == "the disk is full"
    assert view.why == ""
