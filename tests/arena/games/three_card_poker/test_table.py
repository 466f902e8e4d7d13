"""The shipped table of three card poker, and the groups of hands."""

from __future__ import annotations

from importlib.resources import files
from itertools import combinations

import pytest

from arena.games.three_card_poker.luck import DEALERS_HANDS, HANDS, play_values
from arena.games.three_card_poker.table import (
    CLASSES,
    GROUPS,
    LINE,
    OUTCOMES,
    TABLE_FILE,
    class_of,
    group_of,
    hand_classes,
    members,
)
from protocol.cards import PACK
from protocol.three_card_poker import Hand
from tests.tools.three_card_poker_table import packed

EACH_KICKER = pytest.mark.parametrize("pair_kicker", [False, True])
ROW = 2 * len(OUTCOMES)


def test_every_hand_is_in_one_class_whatever_the_order_of_its_cards() -> None:
    hands = [hand for one in members() for hand in one]

    assert len(members()) == CLASSES
    assert {*hands} == {*combinations(PACK, 3)}
    assert len(hands) == HANDS
    assert class_of(("9s", "9h", "5s")) == class_of(("5d", "9c", "9d"))
    assert class_of(("9s", "9h", "5s")) != class_of(("9s", "9h", "5d"))
    assert class_of(("As", "Kd", "2c")) == class_of(("2h", "As", "Kd"))
    assert class_of(("As", "Ks", "2c")) != class_of(("As", "Kc", "2c"))


@EACH_KICKER
def test_what_is_shipped_is_what_the_program_makes(pair_kicker: bool) -> None:
    shipped = files("arena.games.three_card_poker").joinpath(TABLE_FILE).read_bytes()
    some = range(pair_kicker, CLASSES, 7)
    rows = [shipped[at * ROW : (at + 1) * ROW] for at in range(len(shipped) // ROW)]

    assert len(rows) == 2 * CLASSES
    assert b"".join(rows[pair_kicker * CLASSES + number] for number in some) == packed(
        pair_kicker, [members()[number][0] for number in some]
    )


@EACH_KICKER
def test_the_table_and_inclusion_and_exclusion_find_the_same(pair_kicker: bool) -> None:
    values = play_values(pair_kicker)
    for one in hand_classes(pair_kicker):
        total = sum(outcome * count for outcome, count in zip(OUTCOMES, one.counts, strict=True))

        assert sum(one.counts) == DEALERS_HANDS
        assert total == values.total(one.hand) == one.gain - DEALERS_HANDS


@EACH_KICKER
def test_the_best_play_is_to_play_the_groups_above_the_line(pair_kicker: bool) -> None:
    assert all((one.gain > 0) == (one.group < LINE) for one in hand_classes(pair_kicker))
    assert {one.group for one in hand_classes(pair_kicker)} == {*range(len(GROUPS))}


@pytest.mark.parametrize(
    ("hand", "group"),
    [
        ("4s 3s 2s", "straight flushes"),
        ("2s 2h 2d", "three of a kind"),
        ("As 3h 2d", "straights"),
        ("5s 3s 2s", "flushes"),
        ("2s 2h 3d", "pairs"),
        ("As 4h 2d", "ace-high"),
        ("Ks 3h 2d", "king-high"),
        ("Qs 7h 2d", "queen-high from Q-7-2"),
        ("Qs 6h 5d", "Q-6-5 and Q-6-4"),
        ("Qs 6h 4d", "Q-6-5 and Q-6-4"),
        ("Qs 6h 3d", "queen-high below Q-6-4"),
        ("Js 9h 8d", "jack-high"),
        ("Ts 8h 7d", "ten-high or lower"),
        ("5s 3h 2d", "ten-high or lower"),
    ],
)
def test_a_hand_is_in_the_group_that_people_say(hand: str, group: str) -> None:
    a, b, c = hand.split()
    cards: Hand = (c, a, b)

    assert GROUPS[group_of(cards)] == group
