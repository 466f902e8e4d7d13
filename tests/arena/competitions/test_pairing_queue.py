from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest

from arena.competitions.pairing_queue import PairingQueue
from arena.formats.schedule import Pairing

BOTS = ("ann", "ben", "cem", "dora", "eve")


def queue_of(*players: tuple[str, ...]) -> PairingQueue:
    queue = PairingQueue(lambda name: None)
    for number, names in enumerate(players, start=1):
        queue.add(Pairing(number, names))
    return queue


def opponents(queue: PairingQueue, name: str, free: set[str], **had: int) -> list[str]:
    """Whom a bot meets first, next and so on; itself is there, too."""
    lineups = queue.lineups(name, Counter(had), free | {name})
    return ["".join(lineup - {name}) or name for lineup in lineups]


@pytest.fixture
def queue() -> PairingQueue:
    return queue_of(*combinations(BOTS, 2), ("ann", "ann"))


@pytest.mark.parametrize(
    ("name", "free", "had", "met"),
    [
        # Only bots with a free table are met.
        ("ann", BOTS, {}, "ben cem dora eve ann"),
        ("ann", ("eve", "ben"), {}, "ben eve ann"),
        ("eve", ("ann",), {}, "ann"),
        ("eve", (), {}, ""),
        # Those that have had the fewest matches are first.
        ("cem", BOTS, {"ann": 2, "ben": 1, "dora": 2}, "eve ben ann dora"),
        ("cem", ("ann", "ben"), {"ann": 2, "ben": 1}, "ben ann"),
    ],
)
def test_whom_a_bot_meets_next(
    queue: PairingQueue, name: str, free: Sequence[str], had: dict[str, int], met: str
) -> None:
    assert " ".join(opponents(queue, name, set(free), **had)) == met


def test_of_equals_those_that_have_not_met_for_longest_are_first(queue: PairingQueue) -> None:
    queue.move_to_end(frozenset(("ann", "ben")))

    assert opponents(queue, "ann", {"ben", "dora"}) == ["dora", "ann", "ben"]
    assert opponents(queue, "ann", set(BOTS)) == ["cem", "dora", "eve", "ann", "ben"]

    queue.discard(Pairing(1, ("ann", "ben")))  # it does not wait any more

    assert opponents(queue, "ann", {"ben", "cem"}) == ["cem", "ann"]


def test_lineups_of_three_need_all_three() -> None:
    queue = queue_of(("ann", "ben", "cem"), ("ann", "dora"), ("ann", "eve"), ("ann", "ben"))
    lineups = queue.lineups("ann", Counter(), {"ann", "ben"})

    assert [set(lineup) for lineup in lineups] == [{"ann", "ben"}]

    lineups = queue.lineups("ann", Counter(), {"ann", "ben", "cem"})

    assert [set(lineup) for lineup in lineups] == [{"ann", "ben", "cem"}, {"ann", "ben"}]


def test_who_has_no_table_free_meets_nobody(queue: PairingQueue) -> None:
    assert not list(queue.lineups("ann", Counter(), {"ben", "cem"}))
