"""What is told apart, which ranks are possible, and what is still open (K6)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import combinations

import pytest

from arena.games.settle import Goal, LeagueRace, Mark, Meeting, PairRace, RankRange, block_size
from tests.support.long import sized
from tests.tools.settled_standings import equal_bots, marks, tournament

NAMES = ("ann", "ben", "cem")


def race(*blocks: Iterable[Meeting], goal: Goal = Goal.ORDER, level: float = 0.02) -> PairRace:
    found = PairRace(NAMES, goal, level)
    for block in blocks:
        found.add(block)
    return found


def block(count: int, *won: float) -> list[Meeting]:
    """Each two meet so often; of these ann has won against ben, against cem, and ben against cem."""
    return [
        Meeting(first, second, of, count)
        for (first, second), of in zip(combinations(NAMES, 2), won, strict=True)
    ]


# --- blocks ---


def test_blocks_grow_by_a_tenth_and_have_an_even_number_for_both_seats() -> None:
    sizes, done = [], 0
    while size := block_size(done, 10, 300):
        sizes.append(size)
        done += size

    assert sizes[:4] == [10, 2, 2, 2]
    assert all(size % 2 == 0 for size in sizes)
    assert sizes[-2] == 26
    assert sum(sizes) == 300


def test_no_block_is_left_when_the_most_has_been_played() -> None:
    assert block_size(20, 20, 20) == 0
    assert block_size(0, 20, 10) == 10


# --- marks ---


def test_a_pairing_is_open_until_it_is_told_apart() -> None:
    assert race(block(10, 6, 5, 5)).mark("ann", "ben") is Mark.OPEN
    assert race(block(40, 34, 20, 20)).mark("ann", "ben") is Mark.BETTER
    assert race(block(40, 34, 20, 20)).mark("ben", "ann") is Mark.WORSE


def test_a_pairing_is_level_when_both_are_surely_within_the_level_of_a_half() -> None:
    assert race(block(100, 50, 50, 50)).mark("ann", "ben") is Mark.OPEN
    assert race(block(10_000, 5_000, 5_000, 5_000)).mark("ann", "ben") is Mark.LEVEL
    assert race(block(100, 50, 50, 50), level=0.25).mark("ann", "ben") is Mark.LEVEL


def test_a_mark_that_was_made_stays() -> None:
    found = race(block(40, 34, 20, 20), block(40, 0, 20, 20))

    assert found.mark("ann", "ben") is Mark.BETTER


# --- ranks ---


def test_without_matches_every_rank_is_possible() -> None:
    assert race().ranges() == dict.fromkeys(NAMES, RankRange(1, 3))


def test_who_surely_leads_another_is_before_it() -> None:
    found = race(block(1_000, 800, 800, 500)).ranges()

    assert found == {"ann": RankRange(1, 1), "ben": RankRange(2, 3), "cem": RankRange(2, 3)}


def test_a_block_in_which_a_bot_has_not_met_all_others_equally_often_ranks_it_not() -> None:
    """Else one that meets only weak opponents would seem to be strong."""
    partly = [Meeting("ann", "cem", 900, 1_000), Meeting("ben", "cem", 900, 1_000)]
    uneven = [*block(10, 5, 5, 5), Meeting("ann", "cem", 1_000, 1_000)]

    assert race(partly).ranges()["ann"] == RankRange(1, 3)
    assert race(uneven).ranges()["ann"] == RankRange(1, 3)
    assert race(partly).mark("ann", "cem") is Mark.BETTER


def test_who_is_struck_leaves_the_others_as_if_it_had_never_played() -> None:
    found = race(block(200, 140, 10, 190), goal=Goal.ORDER)
    found.strike(["cem"])
    two = PairRace(("ann", "ben"), Goal.ORDER, 0.02)
    two.add([Meeting("ann", "ben", 140, 200)])

    assert found.ranges() == two.ranges() == {"ann": RankRange(1, 1), "ben": RankRange(2, 2)}
    assert "cem" not in found.names


def test_who_is_not_there_cannot_be_struck() -> None:
    found = race(block(1_000, 800, 800, 500))
    before = found.ranges()
    found.strike(["nobody"])

    assert found.ranges() == before


# --- what is open ---


def test_where_each_is_surely_behind_another_no_first_place_is_open() -> None:
    class Circle(PairRace):
        def _lead(self, first: str, second: str) -> float:
            return 1.0 if f"{first} {second}" in ("ann ben", "ben cem", "cem ann") else -1.0

    assert Circle(NAMES, Goal.FIRST, 0.02).open_bots() == frozenset()


def test_for_pairs_only_open_pairings_play_on() -> None:
    found = race(block(100, 90, 50, 50), goal=Goal.PAIRS)

    assert found.open_pairs() == [("ann", "cem"), ("ben", "cem")]


def test_for_the_first_place_only_those_who_may_have_it_play_on_with_all_others() -> None:
    found = race(block(300, 150, 250, 250), goal=Goal.FIRST)

    assert found.open_bots() == {"ann", "ben"}
    assert found.open_pairs() == [*combinations(NAMES, 2)]


def test_a_first_place_that_matters_to_nobody_is_settled() -> None:
    even = block(300, 150, 250, 250)

    assert race(even, goal=Goal.FIRST, level=0.2).open_bots() == frozenset()
    assert race(block(1_000, 800, 800, 500), goal=Goal.FIRST).open_bots() == frozenset()


def test_for_the_whole_order_those_behind_play_on_too() -> None:
    first = block(1_000, 800, 800, 500)

    assert race(first, goal=Goal.ORDER).open_bots() == {"ben", "cem"}


def test_a_league_has_an_interval_for_each_bot() -> None:
    rng = random.Random(1)
    means = {"ann": 1_500, "ben": 1_000, "cem": 980}
    found = LeagueRace(NAMES, Goal.FIRST, 20.0, is_share=False)
    few = LeagueRace(NAMES, Goal.FIRST, 20.0, is_share=False)
    values = [
        (name, mean + rng.uniform(-300, 300)) for name, mean in means.items() for _ in range(100)
    ]
    found.add(values)
    few.add([(name, 1_000.0) for name in NAMES for _ in range(19)])

    assert found.ranges()["ann"] == RankRange(1, 1)
    assert found.ranges()["ben"] == RankRange(2, 3)
    assert found.open_bots() == frozenset()
    assert few.open_bots() == {*NAMES}, "too few to say"
    found.strike(["ann"])
    assert found.open_bots() == {"ben", "cem"}


def test_a_league_of_shares_is_told_apart() -> None:
    found = LeagueRace(NAMES, Goal.ORDER, 0.02, is_share=True)
    found.add(
        [
            (name, float(n < won))
            for name, won in zip(NAMES, (90, 50, 5), strict=True)
            for n in range(100)
        ]
    )

    assert [found.ranges()[name] for name in NAMES] == [RankRange(n, n) for n in (1, 2, 3)]
    assert found.open_bots() == frozenset()


def test_a_league_leaves_out_whom_it_strikes_and_matches_without_a_value() -> None:
    found = LeagueRace(NAMES, Goal.ORDER, 0.02, is_share=True)
    found.add([(name, float(name == "ann")) for name in NAMES for _ in range(100)])
    found.add([("ann", None)])
    found.strike(["cem"])

    assert found.ranges() == {"ann": RankRange(1, 1), "ben": RankRange(2, 2)}


def test_shares_that_contradict_what_came_before_count_as_they_are_now() -> None:
    found = LeagueRace(("ann", "ben"), Goal.ORDER, 0.0, is_share=True)
    found.add([("ann", 1.0)] * 200 + [("ben", 0.5)] * 200)
    assert found.ranges()["ann"] == RankRange(1, 1)

    found.add([("ann", 0.0)] * 4_000 + [("ben", 0.5)] * 4_000)
    assert found.ranges()["ann"] == RankRange(2, 2)


# --- short forms of `tests/tools/settled_standings.py` ---


def test_two_equal_bots_are_marked_wrongly_at_most_once_in_20() -> None:
    found = marks(0.5, 100, seed=2, most=300)

    assert found.wrong <= 5


@pytest.mark.parametrize(("share", "most"), [(0.645, 130), (0.73, 65)])
def test_a_difference_is_found_soon(share: float, most: int) -> None:
    found = marks(share, 100, seed=3)

    assert found.games <= most
    assert found.wrong <= 5


def test_a_rank_range_of_equal_bots_is_wrong_in_at_most_5_percent_of_tournaments() -> None:
    assert equal_bots(8, sized(60, 6), seed=4, most=200) <= sized(3, 0)


def test_who_is_first_of_40_costs_few_games() -> None:
    rng = random.Random(5)
    found = tournament([rng.gauss(0, 0.5) for _ in range(40)], Goal.FIRST, rng)

    assert (found.is_settled, found.wrong) == (True, False)
    assert found.games <= 0.12 * 780 * 1_000


def test_chips_that_happened_to_be_alike_at_first_do_not_keep_a_range_for_ever() -> None:
    found = LeagueRace(("ann", "ben"), Goal.ORDER, 0.0, is_share=False)
    found.add(
        [(name, start + n % 2) for name, start in (("ann", 110), ("ben", 100)) for n in range(20)]
    )
    assert found.ranges()["ann"] == RankRange(1, 1)

    found.add([(name, value) for name in ("ann", "ben") for value in (0.0, 240.0) * 200])

    assert found.ranges()["ann"] == found.ranges()["ben"] == RankRange(1, 2)
