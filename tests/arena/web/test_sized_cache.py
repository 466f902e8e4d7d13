"""The cache of limited size: what it drops, and when."""

from __future__ import annotations

from arena.web.sized_cache import SizedCache


def test_what_was_used_longest_ago_is_dropped_first() -> None:
    cache = SizedCache[str, str](2)
    cache.put("a", "A")
    cache.put("b", "B")
    assert cache.get("a") == "A"
    cache.put("c", "C")

    assert [cache.get(key) for key in "abc"] == ["A", None, "C"]


def test_sizes_add_up_and_the_latest_value_stays_whatever_its_size() -> None:
    cache = SizedCache[str, str](5, len)
    cache.put("a", "12")
    cache.put("a", "123")  # instead of the value before
    cache.put("b", "45")
    assert len(cache) == 2

    cache.put("c", "1234567")
    assert (len(cache), cache.get("c")) == (1, "1234567")
    cache.drop("c")
    cache.drop("c")  # nothing happens
    cache.put("d", "12345")
    assert len(cache) == 1
