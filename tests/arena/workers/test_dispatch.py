"""Which class of workers gets which job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.workers.dispatch import Dispatch, JobNeed, WorkerPower, missing, need_of, worker_class
from arena.workers.messages import Bundle, HouseBot, SeatProgram, Source
from tests.support.bus_stage import GAME, KIND, a_job

NEED = JobNeed(game=GAME.name, languages=("python",))
RUST = JobNeed(game=GAME.name, languages=("rust",))
RUST_KIND = msgspec.structs.replace(KIND, languages=("python", "rust"))
SLOW, FAST = WorkerPower(KIND, 10.0, 1), WorkerPower(KIND, 40.0, 2)
GROUP = ("c", frozenset(("ann", "ben")))
OTHERS = ("c", frozenset(("ann", "cem")))


def class_of(power: WorkerPower) -> str:
    return worker_class(power.kind, power.speed)


def dispatch_to(*workers: WorkerPower) -> Dispatch:
    dispatch = Dispatch()
    dispatch.workers_are(workers)
    return dispatch


def sent(dispatch: Dispatch) -> list[tuple[str, str]]:
    """All that goes onto the bus now."""
    return list(iter(dispatch.next, None))


def a_bundle(**more: Any) -> Bundle:
    fields = {"key": "k", "size": 1, "words": ("x",), "stdio": True, "needs": ""}
    return msgspec.convert({"type": "bundle", **fields, "is_native": False, **more}, Bundle)


def test_workers_of_one_kind_and_about_one_speed_are_a_class() -> None:
    assert worker_class(KIND, 10.0) == worker_class(KIND, 10.5)
    assert worker_class(KIND, 10.0) != worker_class(KIND, 16.0)
    assert worker_class(KIND, 10.0) != worker_class(RUST_KIND, 10.0)


@given(st.floats(0.01, 1e6), st.floats(1.0, 1e3))
def test_a_class_spans_a_factor_of_one_and_a_half(speed: float, factor: float) -> None:
    if worker_class(KIND, speed) == worker_class(KIND, speed * factor):
        assert factor <= 1.5 + 1e-6


ISOLATED = msgspec.structs.replace(KIND, isolation="namespaces")
PYTHON, NATIVE = Source("k", 1, "python"), a_bundle(is_native=True)


@pytest.mark.parametrize(
    ("programs", "more", "lacks"),
    [
        ((HouseBot("h"), PYTHON), {}, ""),
        ((HouseBot("h"), Source("k", 1, "rust")), {}, "programs in rust"),
        ((a_bundle(needs="node"),), {}, "the program node"),
        ((NATIVE,), {"machine": "linux aarch64"}, "a machine of linux aarch64"),
        ((NATIVE,), {"machine": "linux x86_64"}, ""),
        ((), {"package": "leduc 1.0"}, "the game leduc 1.0"),
        ((HouseBot("h"),), {"is_isolated": True}, ""),
        ((PYTHON,), {"is_isolated": True}, "isolation of bots"),
        ((PYTHON,), {"is_isolated": True, "kind": ISOLATED}, ""),
    ],
)
def test_a_worker_lacks_what_a_program_needs(
    programs: tuple[SeatProgram, ...], more: dict[str, Any], lacks: str
) -> None:
    about = {"machine": "", "package": None, "is_isolated": False, "kind": KIND, **more}
    job = a_job(package=about["package"])
    need = need_of(job, programs, about["machine"], is_isolated=about["is_isolated"])

    assert missing(about["kind"], need) == lacks


def test_jobs_on_the_bus_are_the_oldest_two_for_each_slot() -> None:
    dispatch = dispatch_to(SLOW)
    for job in "abcd":
        dispatch.add(job, NEED)

    assert sent(dispatch) == [("a", class_of(SLOW)), ("b", class_of(SLOW))]
    dispatch.again("a")
    assert sent(dispatch) == [("a", class_of(SLOW))], "it comes before those put later"
    dispatch.remove("b")
    assert sent(dispatch) == [("c", class_of(SLOW))]


def test_who_finishes_sooner_gets_more() -> None:
    dispatch = dispatch_to(SLOW, FAST)
    for number in range(100):
        dispatch.add(str(number), NEED)
    on_bus = sent(dispatch)
    for _ in range(10):  # the fast one is done with all, the slow one with none
        for job, name in on_bus:
            if name == class_of(FAST):
                dispatch.remove(job)
        on_bus = sent(dispatch)

        assert [name for _, name in on_bus] == [class_of(FAST)] * 4


def test_a_job_goes_to_who_can_play_it_or_is_taken_out() -> None:
    able = WorkerPower(RUST_KIND, 10.0, 1)
    dispatch = dispatch_to(SLOW, able)
    dispatch.add("r", RUST)
    assert sent(dispatch) == [("r", class_of(able))]

    dispatch.workers_are((SLOW,))
    dispatch.again("r")
    assert sent(dispatch) == []
    assert dispatch.homeless(1.0, 3.0) == []
    assert dispatch.homeless(4.0, 3.0) == [("r", RUST)]
    assert "r" not in dispatch
    assert dispatch.why_not(RUST) == "no worker has programs in rust"


def test_jobs_on_the_queue_of_a_class_that_is_gone_are_found() -> None:
    dispatch = dispatch_to(SLOW)
    dispatch.add("a", NEED)
    sent(dispatch)
    dispatch.workers_are((FAST,))

    assert list(dispatch.on_bus()) == [("a", class_of(SLOW), False)]
    dispatch.again("a")
    assert sent(dispatch) == [("a", class_of(FAST))]


@pytest.mark.parametrize("before", [None, 9], ids=["", "as before a restart"])
def test_alike_matches_of_the_same_bots_go_to_one_speed(before: int | None) -> None:
    dispatch = dispatch_to(SLOW, FAST)
    if before is not None:
        dispatch.plays_at(GROUP, before)
    for number in range(60):
        dispatch.add(str(number), NEED, GROUP if number % 2 else OTHERS)
    classes: dict[int, set[str]] = {0: set(), 1: set()}
    while on_bus := sent(dispatch):
        for job, name in on_bus:
            classes[int(job) % 2].add(name)
            dispatch.remove(job)

    assert [len(names) for names in classes.values()] == [1, 1]
    assert before is None or classes[1] == {class_of(FAST)}


def test_alike_matches_wait_for_their_speed_and_that_is_said_once() -> None:
    dispatch = dispatch_to(SLOW)
    dispatch.add("a", NEED, GROUP)
    sent(dispatch)
    dispatch.workers_are((FAST,))
    dispatch.again("a")
    dispatch.add("b", NEED, GROUP)
    text = "a worker of speed class 5 (7.6 to 11.4 calibrations/s): none is here"

    assert sent(dispatch) == []
    assert dispatch.homeless(0.0, 0.0) == []
    assert dispatch.waiting_alike(9.0, 0.0) == [("a", text)]
    assert dispatch.waiting_alike(9.0, 0.0) == []
    dispatch.workers_are((SLOW,))
    assert sent(dispatch) == [("a", class_of(SLOW)), ("b", class_of(SLOW))]


def test_alike_matches_that_the_arena_has_begun_stay_there() -> None:
    dispatch = dispatch_to()
    dispatch.add("a", NEED, GROUP)

    assert dispatch.homeless(0.0, 0.0) == [("a", NEED)]
    dispatch.workers_are((SLOW,))
    assert not dispatch.add("b", NEED, GROUP)
    assert dispatch.add("c", NEED, OTHERS)
