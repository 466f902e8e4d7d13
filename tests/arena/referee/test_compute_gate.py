"""The gate limits how many submitted bots compute at once; `matches.cases` has its questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.referee.compute_gate import ComputeGate


@given(st.integers(1, 3), st.lists(st.integers(0, 8), max_size=60))
def test_at_most_so_many_compute_and_all_in_the_order_in_which_they_came(
    cores: int, steps: Sequence[int]
) -> None:
    gate = ComputeGate(cores)
    here: list[int] = []  # in the order in which they came
    began: list[int] = []
    for who in steps:
        if who in here:
            gate.leave(who)
            here.remove(who)
        else:
            here.append(who)
            gate.enter(who, partial(began.append, who))
        began[:] = [other for other in began if other in here]

        assert began == here[:cores]
        assert gate.waiting == len(here[cores:])


def test_who_is_not_here_may_leave() -> None:
    gate = ComputeGate(1)
    gate.leave("ann")

    assert gate.waiting == 0


@pytest.mark.parametrize(
    ("used_ms", "keeps"),
    [(0.0, False), (30.0, False), (60.0, True), (200.0, True)],
    ids=["sleeps", "hardly computes", "computes", "computes all the time"],
)
def test_who_sleeps_loses_its_core_to_the_next_one(used_ms: float, keeps: bool) -> None:
    gate, used, began = ComputeGate(1), [1000.0], list[str]()
    gate.enter("ann", partial(began.append, "ann"), lambda: used[0])
    gate.look(10.0)  # nobody waits
    gate.enter("ben", partial(began.append, "ben"))
    gate.look(10.2)
    used[0] += used_ms
    gate.look(10.4)

    assert began == (["ann"] if keeps else ["ann", "ben"])


def test_who_has_lost_its_core_enters_again_with_its_next_question() -> None:
    gate, began = ComputeGate(1), list[str]()
    gate.enter("ann", partial(began.append, "ann"), lambda: 0.0)
    gate.enter("ben", partial(began.append, "ben"))
    gate.look(10.0)
    gate.look(10.2)
    gate.leave("ann")
    gate.enter("ann", partial(began.append, "ann again"))
    gate.leave("ben")

    assert began == ["ann", "ben", "ann again"]
