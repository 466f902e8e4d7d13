"""The gate limits how many submitted bots compute at once; `matches.cases` has its questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.referee.compute_gate import LOOK_S, BotGate, ComputeGate


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


class ComputingFake:
    """A bot that has run for `spent_ms` and waited for `waits_ms`; a clock goes with it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.spent_ms = self.waits_ms = 0.0
        self.reads = 0
        self.found: list[tuple[int, int]] = []
        self.told = 0

    @property
    def is_restless(self) -> bool:
        return bool(self.found)

    def cpu_ms(self) -> float:
        self.reads += 1
        return self.spent_ms

    def waited_ms(self) -> float | None:
        return self.waits_ms

    def sampled_cpu_ms(self) -> float:
        return self.spent_ms

    def is_found_restless(self, used_ms: float, of_ms: float) -> None:
        self.found.append((round(used_ms), round(of_ms)))

    def tell_owner(self) -> None:
        self.told += 1

    def passes(self, ms: float, threads: float) -> None:
        """So much time passes, in which it would run so many threads, and half a core is free."""
        self.now += ms / 1000
        self.spent_ms += min(threads, 0.5) * ms
        self.waits_ms += max(0.0, threads - 0.5) * ms


class WatchedGate:
    """One bot at a gate; it is asked as each test says."""

    def __init__(self) -> None:
        self.bot = ComputingFake()
        self.gate = ComputeGate(1)
        self.its_gate = BotGate(self.gate, self.bot, lambda: self.bot.now)

    def plays(self, asked: float, rests: float, at_rest: float, looks: int) -> None:
        """It has a question for `asked` ms, and none for `rests`, in turn; so many looks pass.

        It runs a thread while it has one, and `at_rest` threads else.
        """
        for _ in range(looks):
            for _ in range(round(1000 * LOOK_S / (asked + rests))):
                if asked:
                    self.its_gate.enter("match", lambda: None)
                    self.bot.passes(asked, 1.0)
                    self.its_gate.leave("match")
                self.bot.passes(rests, at_rest)
            self.gate.look(self.bot.now)


@pytest.mark.parametrize(
    ("asked", "rests", "at_rest", "found"),
    [
        (0.0, 200.0, 2.0, [(400, 200)]),
        (0.5, 0.5, 2.0, [(200, 100)]),  # asked all the time
        (19.0, 1.0, 2.0, [(40, 20)]),
        (0.5, 0.5, 0.52, [(52, 100)]),
        (0.0, 200.0, 0.48, []),  # a runtime tidies up
        (0.5, 0.5, 0.48, []),
        (20.0, 0.0, 0.0, []),  # it thinks for as long as it may
        (0.0, 200.0, 0.0, []),
    ],
)
def test_who_computes_without_a_question_is_restless(
    asked: float, rests: float, at_rest: float, found: Sequence[tuple[int, int]]
) -> None:
    watched = WatchedGate()
    watched.plays(asked, rests, at_rest, looks=40)

    assert watched.bot.found == found


@pytest.mark.parametrize("asked", [0.0, 0.5])
def test_who_computes_for_a_second_as_a_runtime_that_compiles_is_not(asked: float) -> None:
    watched = WatchedGate()
    for looks, at_rest in ((5, 2.0), (1, 0.0), (6, 2.0)):
        watched.plays(asked, 1.0 - asked, at_rest, looks)

    assert not watched.bot.found


@pytest.mark.parametrize(("asked", "most"), [(0.04, 0), (0.5, 5 * 400)])
def test_who_rests_is_read_seldom_or_never(asked: float, most: int) -> None:
    """Two hundred questions at each of a hundred looks; those of one in 25 are read."""
    watched = WatchedGate()
    watched.plays(asked, 1.0 - asked, 0.0, looks=100)

    assert watched.bot.reads <= most


def test_nobody_waits_for_who_is_restless() -> None:
    watched, began = WatchedGate(), list[str]()
    watched.its_gate.enter("its match", lambda: None)
    watched.gate.enter("ann", partial(began.append, "ann"))
    watched.bot.found.append((1, 1))
    watched.gate.look(0.2)
    assert began == ["ann"], "its core is free"
    watched.its_gate.enter("its other match", partial(began.append, "it"))

    assert began == ["ann", "it"], "without a core"
    assert watched.bot.told == 1, "in a match"
