"""At most so many submitted bots compute at once, and nobody's clock runs before its turn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.engine.verdict import Finding
from arena.referee.compute_gate import ComputeGate
from protocol.messages import Ask, Ending, Match, Mechanism, Over, Ready

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena, FakeBot

CRASH = Finding(kind=Ending.CRASH, text="crashed: exit status 1", mechanism=Mechanism.EXIT)


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


# --- questions ---


def gated(house: FakeArena, gate: ComputeGate, *names: str) -> list[FakeBot]:
    bots = [house.launched(name) for name in names]
    for bot in bots:
        bot.player.gate = gate
    return bots


def alone(house: FakeArena, *bots: FakeBot) -> None:
    """A match against the dealer for each of them."""
    for bot in bots:
        house.open(bot, game="three_card_poker")


def heard(bots: Sequence[FakeBot], kind: type) -> list[str]:
    """Who has just read a message of this kind; it does not answer."""
    return [
        bot.player.name for bot in bots if any(isinstance(message, kind) for message in bot.reads())
    ]


def readies(house: FakeArena, *bots: FakeBot) -> None:
    for bot in bots:
        [match] = bot.player.chairs
        house.say(bot, Ready(match, "nonce"))


def test_one_bot_after_another_is_invited_and_asked(house: FakeArena) -> None:
    ann, ben = bots = gated(house, ComputeGate(1), "ann", "ben")
    alone(house, ann, ben)
    assert heard(bots, Match) == ["ann"]
    readies(house, ann)  # it will be asked once it is its turn again
    assert heard(bots, Match) == ["ben"]
    readies(house, ben)

    [ask] = ann.asks()
    assert ben.reads() == []
    house.answer(ann, ask)
    assert len(ben.asks()) == 1
    assert ann.reads() == []


def asked(house: FakeArena, bot: FakeBot) -> Ask:
    """The first question of a match against the dealer, which is not answered yet."""
    alone(house, bot)
    bot.reads()
    readies(house, bot)
    [ask] = bot.asks()
    return ask


def test_no_time_runs_while_a_question_waits_for_a_core(house: FakeArena) -> None:
    gate = ComputeGate(2)
    ann, ben = gated(house, gate, "ann", "ben")
    questions = [asked(house, bot) for bot in (ann, ben)]
    gate.cores = 1
    house.answer(ben, questions[1])  # its next one waits for ann
    house.passes(0.9)
    house.answer(ann, questions[0])
    house.passes(0.9)
    [ask] = ben.asks()
    house.computes(ben, 0.5)
    house.answer(ben, ask)

    assert house.results == []
    assert [chair.clock.bank_ms for bot in (ann, ben) for chair in bot.player.chairs.values()] == [
        3000,
        3000,
    ]


def test_a_question_that_waits_has_no_deadline(house: FakeArena) -> None:
    gate = ComputeGate(1)
    gate.enter("another", lambda: None)
    [ann] = gated(house, gate, "ann")
    alone(house, ann)
    assert ann.process is not None
    before = ann.process.looks
    house.passes(100)
    assert (house.results, ann.reads(), ann.process.looks) == ([], [], before)

    gate.leave("another")
    assert heard([ann], Match) == ["ann"]
    house.passes(30.1)
    [(_, _, verdict)] = house.results
    assert verdict is not None
    assert (verdict.kind, verdict.mechanism) == (Ending.ABSENT, Mechanism.WALL_CAP)
    assert verdict.taken_ms == pytest.approx(30_000, abs=100)


def test_the_end_of_a_match_frees_the_core(house: FakeArena) -> None:
    gate = ComputeGate(1)
    ann, ben = gated(house, gate, "ann", "ben")
    asked(house, ann)
    alone(house, ben)
    assert ben.reads() == []
    house.referee.offence(ann.player, CRASH)

    assert heard([ben], Match) == ["ben"]
    assert ann.player.pending == 0


def test_who_ends_while_its_question_waits_is_blamed_and_waits_no_more(house: FakeArena) -> None:
    gate = ComputeGate(2)
    ann, ben = gated(house, gate, "ann", "ben")
    asked(house, ann)
    ask = asked(house, ben)
    gate.cores = 1
    house.answer(ben, ask)
    assert gate.waiting == 1
    house.passes(5)
    house.referee.offence(ben.player, CRASH)
    [(_, _, verdict)] = house.results

    assert verdict is not None
    assert (verdict.kind, verdict.waited_ms, verdict.taken_ms) == (Ending.CRASH, None, None)
    assert verdict.asked is not None
    assert gate.waiting == 0
    assert (ann.player.pending, ben.player.pending) == (1, 0)


def test_who_has_not_heard_of_a_match_does_not_hear_of_its_end(house: FakeArena) -> None:
    gate = ComputeGate(1)
    ann, ben = gated(house, gate, "ann", "ben")
    house.open(ann, ben)
    assert heard([ann, ben], Match) == ["ann"]
    house.referee.offence(ann.player, CRASH)

    assert heard([ann], Over) == ["ann"]
    assert ben.reads() == []
    assert gate.waiting == 0


def test_a_bot_on_a_gate_of_one_can_meet_itself(house: FakeArena) -> None:
    gate = ComputeGate(1)
    ann, ann2 = gated(house, gate, "ann", "ben")
    house.open(ann, ann2)
    house.sit(ann)
    house.sit(ann2)
    house.play_out(ann, ann2)

    [(_, result, _)] = house.results
    assert result.termination.kind is Ending.COMPLETED
