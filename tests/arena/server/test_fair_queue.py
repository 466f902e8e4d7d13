"""The queue that serves its users in turn."""

from __future__ import annotations

from arena.server.fair_queue import FairQueue


def test_whose_turn_has_been_gets_behind_the_others() -> None:
    turns = FairQueue[str]()
    for item in ("a1", "a2", "a3", "b1"):
        turns.put(item[0], item)
    first = turns.take()
    turns.put("c", "c1")

    assert len(turns) == 4
    assert list(turns) == ["b1", "a2", "c1", "a3"]
    assert (first, *(turns.take() for _ in range(4))) == ("a1", "b1", "a2", "c1", "a3")
    assert not turns


def test_who_has_used_least_comes_first() -> None:
    used = {"a": 5.0, "b": 10.0}
    queue = FairQueue[str](used)
    for item in ("a1", "a2", "b1", "c1", "c2"):
        queue.put(item[0], item)

    assert list(queue) == ["c1", "c2", "a1", "a2", "b1"]
    assert list(queue.in_order(4.0)) == ["c1", "c2", "a1", "a2", "b1"]
    assert list(queue.in_order(8.0)) == ["c1", "a1", "c2", "b1", "a2"]
    assert queue.take() == "c1"
    used["c"] = 8.0
    assert [queue.take() for _ in range(4)] == ["a1", "a2", "c2", "b1"]
