"""The transcript of blackjack, line by line (B13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arena
from arena.games.blackjack.script import drive
from bots.blackjack import Counting, PlayerStrategy, Simple
from protocol.blackjack import HandOver
from protocol.errors import BadDeck, BadSettings, IllegalAnswer, OutOfDecks, UsageError

HALVES = [26, 0, 0, 0, 0, 0, 0]  # 2c 2s 3c 3s 4c 4s … Kc Ks Ac As 2d 2h …
UNCUT = [0] * 7  # 2s 3s 4s 5s 6s …


def cut_once(n: int) -> list[int]:
    return [n, 0, 0, 0, 0, 0, 0]


class BetsAndDraws(PlayerStrategy):
    """Bets and draws as it is told to."""

    def __init__(self, *script: int | str) -> None:
        self.script = iter(script)

    def bet(self, bankroll: int, minimum: int) -> Any:
        return np.int64(next(self.script))

    def draw(self, upcard: str, hand: tuple[str, ...], total: int, soft: bool) -> bool:
        return next(self.script) == "hit"


def transcript(
    cuts: list[int], *script: int | str, bankroll: int = 100, hands: int = 1
) -> list[str]:
    return list(drive(bankroll, hands, BetsAndDraws(*script), cuts=cuts))


def test_B13_a_hand_from_the_shuffle_to_the_last_line() -> None:
    assert transcript(HALVES, 5, "hit", "hit", "stand") == [
        "Shuffling the deck",
        "cut at 26",
        "cut at 0",
        "cut at 0",
        "cut at 0",
        "cut at 0",
        "cut at 0",
        "cut at 0",
        "Hand 1 bankroll 100",
        "Player bets 5",
        "Player dealt Two of Clubs",
        "Dealer dealt Two of Spades",
        "Player dealt Three of Clubs",
        "Player dealt Four of Clubs",
        "Player dealt Four of Spades",
        "Player's total is 13",
        "Dealer's hole card is Three of Spades",
        "Dealer dealt Five of Clubs",
        "Dealer dealt Five of Spades",
        "Dealer dealt Six of Clubs",
        "Dealer's total is 21",
        "Dealer wins",
        "Player has 95 after 1 hands",
    ]


def test_B13_a_bust_has_its_total_and_no_hole_card() -> None:
    lines = transcript(UNCUT, 7, "hit", "hit", "hit")

    assert lines[8:] == [
        "Hand 1 bankroll 100",
        "Player bets 7",
        "Player dealt Two of Spades",
        "Dealer dealt Three of Spades",
        "Player dealt Four of Spades",
        "Player dealt Six of Spades",
        "Player dealt Seven of Spades",
        "Player dealt Eight of Spades",
        "Player's total is 27",
        "Player busts",
        "Player has 93 after 1 hands",
    ]


@pytest.mark.parametrize(
    ("cut", "answers", "last"),
    [
        (
            11,
            (5,),
            "Player dealt Ace of Spades|Player dealt natural 21|Player has 107 after 1 hands",
        ),
        (8, (5, "stand"), "Dealer's total is 19|Player wins|Player has 105 after 1 hands"),
        (3, (5, "stand"), "Dealer's total is 24|Dealer busts|Player has 105 after 1 hands"),
        (7, (5, "stand"), "Dealer's total is 19|Push|Player has 100 after 1 hands"),
    ],
)
def test_B13_a_hand_ends_by_its_outcome(
    cut: int, answers: tuple[int | str, ...], last: str
) -> None:
    assert transcript(cut_once(cut), *answers)[-3:] == last.split("|")


def test_B13_the_hands_line_comes_before_a_reshuffle() -> None:
    # From 2c 2s 3c 3s … five busts take 33 cards, which leaves 19.
    script: list[int | str] = []
    for hits in (4, 2, 1, 1, 5):
        script += [5, *["hit"] * hits]

    lines = transcript([*HALVES, 0, 1, 2, 3, 4, 5, 52], *script, 5, "stand", hands=6)

    start = lines.index("Hand 6 bankroll 75")
    assert lines[start - 1 : start + 10] == [
        "Player busts",
        "Hand 6 bankroll 75",
        "Shuffling the deck",
        "cut at 0",
        "cut at 1",
        "cut at 2",
        "cut at 3",
        "cut at 4",
        "cut at 5",
        "cut at 52",
        "Player bets 5",
    ]
    assert lines.count("Shuffling the deck") == 2


@pytest.mark.parametrize(("bankroll", "hands"), [(4, 10), (0, 10), (100, 0)])
def test_B13_the_first_shuffle_is_printed_even_if_no_hand_is_played(
    bankroll: int, hands: int
) -> None:
    assert transcript(UNCUT, bankroll=bankroll, hands=hands) == [
        "Shuffling the deck",
        *["cut at 0"] * 7,
        f"Player has {bankroll} after 0 hands",
    ]


def test_B13_the_last_line_counts_hands_really_played() -> None:
    lines = transcript(UNCUT, 9, "stand", bankroll=9, hands=1000)

    assert lines[-2:] == ["Dealer wins", "Player has 0 after 1 hands"]


def test_B14_without_cuts_the_seed_deals_as_arena_play_does() -> None:
    class Recording(Counting):
        hands = 0
        bankroll = 0

        def hand_over(self, hand: HandOver) -> None:
            self.hands += 1
            self.bankroll = hand.bankroll

    player = Recording()
    arena.play("blackjack", [player], settings={"hands": 200}, seed=7)

    lines = list(drive(100, 200, Counting(), seed=7))

    assert lines[-1] == f"Player has {player.bankroll} after {player.hands} hands"
    assert lines == list(drive(100, 200, Counting(), seed=7))


def test_B14_a_transcripts_own_cuts_give_it_again() -> None:
    lines = list(drive(1000, 100, Simple()))
    cuts = [int(line.split()[2]) for line in lines if line.startswith("cut at ")]

    assert all(13 <= cut <= 39 for cut in cuts)
    assert len(cuts) == 7 * lines.count("Shuffling the deck") > 7
    assert list(drive(1000, 100, Simple(), cuts=cuts)) == lines


def test_the_player_is_reset_first() -> None:
    player = Counting()
    player.count = 40

    lines = list(drive(100, 1, player, cuts=UNCUT))

    assert lines[9] == "Player bets 5"


def test_lines_come_as_the_match_is_played() -> None:
    script = BetsAndDraws(5)
    lines = drive(100, 1, script, cuts=UNCUT)

    for line in lines:
        if line == "Hand 1 bankroll 100":
            break
    assert list(script.script) == [5]


def test_what_cannot_be_played_is_refused_at_once() -> None:
    with pytest.raises(BadSettings):
        drive(-1, 10, Simple())
    with pytest.raises(UsageError, match="cuts or a seed"):
        drive(100, 10, Simple(), cuts=UNCUT, seed=1)
    with pytest.raises(OutOfDecks):
        drive(100, 10, Simple(), cuts=[26] * 6)
    with pytest.raises(BadDeck, match="cut from 0 to 52, got 60"):
        drive(100, 10, Simple(), cuts=[60])


def test_running_out_of_cuts_later_is_the_callers_error_too() -> None:
    with pytest.raises(OutOfDecks):
        list(drive(1000, 100, Simple(), cuts=[20] * 7))


def test_an_illegal_answer_is_raised() -> None:
    with pytest.raises(IllegalAnswer, match="seat 1 answered 4 to bet"):
        list(drive(100, 1, BetsAndDraws(4), cuts=UNCUT))
