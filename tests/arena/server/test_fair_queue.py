"""The queue that serves its users in turn."""

from __future__ import annotations

from arena.server.fair_queue import FairQueue


def test_who_has_much_waits_for_it_and_nobody_else_does() -> None:
    turns = FairQueue[str]()
    for item in ("a1", "a2", "a3"):
        turns.put("a", item)
    turns.put("b", "b1")
    turns.put("c", "c1")

    assert len(turns) == 5
    assert [turns.take() for _ in range(5)] == ["a1", "b1", "c1", "a2", "a3"]
    assert not turns


def test_whose_turn_has_been_gets_behind_the_others() -> None:
    turns = FairQueue[str]()
    turns.put("a", "a1")
    turns.put("a", "a2")
    turns.put("b", "b1")
    first = turns.take()
    turns.put("c", "c1")

    assert (first, turns.take(), turns.take(), turns.take()) == ("a1", "b1", "a2", "c1")


def test_it_lists_its_items_in_the_order_of_their_turns() -> None:
    queue = FairQueue[str]()
    for user, item in (("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b1"), ("cem", "c1")):
        queue.put(user, item)

    listed = list(queue)

    assert listed == [queue.take() for _ in range(5)] == ["a1", "b1", "c1", "a2", "a3"]
