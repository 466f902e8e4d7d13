"""High-low strategies: the interface, and what each house bot does."""

from __future__ import annotations

from typing import Any

import pytest

from arena.lab.in_process import play
from bots.high_low import Bold, Counter, PlayerStrategy, Timid, extremity, halves, worth
from protocol.cards import PACK
from protocol.high_low import Bidding, Bids, Dealt, RoundOver, Swap, Swapped, legal_bids

ONE_SHUFFLE = {"gap": 1, "max_shuffles": 1}
NO_BIDS: Bids = (None, None, None, None)


# ---- the interface


def test_a_strategy_knows_its_seat_until_it_is_reset() -> None:
    class NotesSeat(PlayerStrategy):
        def __init__(self) -> None:
            self.seats: list[int | None] = []

        def swap(self, *args: Any) -> bool:
            self.seats.append(self.seat)
            return False

    bots = [NotesSeat() for _ in range(4)]
    play("high_low", bots, seed=1, settings=ONE_SHUFFLE)
    assert [set(bot.seats) for bot in bots] == [{0}, {1}, {2}, {3}]

    play("high_low", bots[::-1], seed=1, settings=ONE_SHUFFLE)
    assert bots[0].seats[-1] == 3
    bots[0].reset()
    assert bots[0].seat is None


def test_the_default_strategy_swaps_for_an_end_and_bids_as_little_as_it_may() -> None:
    bot = PlayerStrategy()

    assert bot.swap("8s", "2c")
    assert not bot.swap("Ac", "8s")
    assert bot.bid("8s", "2c", NO_BIDS, legal_bids(6)) == 6


def test_extremity_is_the_distance_from_the_middle() -> None:
    assert extremity("As") == extremity("2c") == 51
    assert extremity("8h") == extremity("8d") == 1
    assert extremity("8s") == extremity("8c") == 3


# ---- house bots


def test_timid_quits_without_an_ace_king_three_or_two() -> None:
    bids = {card: Timid().bid(card, "8s", NO_BIDS, legal_bids(4)) for card in PACK}

    assert {card for card in PACK if bids[card] != "quit"} == {
        card for card in PACK if card[0] in "AK32"
    }
    assert set(bids.values()) == {"quit", 4}


def test_bold_bids_high_and_seldom_quits_and_only_in_the_middle() -> None:
    bot = Bold()
    bot.seed(1)
    with_any = [bot.bid("5s", "8s", NO_BIDS, legal_bids(None)) for _ in range(200)]
    in_the_middle = [bot.bid("8s", "8h", NO_BIDS, legal_bids(None)) for _ in range(400)]

    assert set(with_any) == {8, 10}
    assert 0 < in_the_middle.count("quit") < 200
    assert bot.bid("5s", "8s", NO_BIDS, legal_bids(10)) == 10


# ---- the counter


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ([], 2.0),  # a lone stayer has both halves
        ([0.3], 1.0),  # one of two stayers is the higher, the other the lower
        ([1.0, 0.0], 0.0),
        ([1.0, 1.0, 1.0], 1.0),
        ([0.5, 0.5, 0.5], 0.25),
    ],
)
def test_halves_of_the_pot(below: list[float], expected: float) -> None:
    assert halves(below) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("below", "last_bid", "payoff"),
    [
        ([], 10, +6),
        ([0.3], 10, +2),
        ([1.0, 0.0], 8, -8),
        ([1.0, 1.0], 8, +5),
        ([0.0, 0.0, 0.0], 8, +8),
        ([0.5, 0.5, 0.5], 8, -4),
    ],
)
def test_what_staying_is_worth(below: list[float], last_bid: int, payoff: float) -> None:
    assert worth(below, last_bid) == pytest.approx(payoff)


def counter_at(seat: int, *news_or_question: Any) -> Counter:
    """A counter that has been told all this, and that has been asked to swap."""
    bot = Counter()
    for item in news_or_question:
        if type(item) is Swap:
            bot.decide(item)
        else:
            bot.hear(item)
    assert bot.seat == seat
    return bot


def started(card: str, dealer_card: str) -> Counter:
    """A counter in seat 0 that starts the first round."""
    return counter_at(0, Dealt(1, 1, 0, card, dealer_card), Swap(card, dealer_card))


@pytest.mark.parametrize(
    ("card", "dealer_card", "bids", "answer"),
    [
        pytest.param("As", "8h", 2, 10, id="raises to the limit with the highest card"),
        pytest.param("8h", "8d", 10, "quit", id="quits from the middle against high bids"),
        pytest.param("8h", "8d", 2, 2, id="stays for two as quitting costs no less"),
    ],
)
def test_counter_answers_bids(card: str, dealer_card: str, bids: int, answer: Bidding) -> None:
    made: Bids = (None, bids, bids, bids)  # type: ignore[assignment]

    assert started(card, dealer_card).bid(card, dealer_card, made, legal_bids(bids)) == answer


def test_counter_stays_against_three_quitters() -> None:
    bids: Bids = (None, "quit", "quit", "quit")

    assert started("8h", "8d").bid("8h", "8d", bids, legal_bids(None)) != "quit"


@pytest.mark.parametrize(
    ("dealer_card", "last_swap", "answer"),
    [
        ("As", Swapped(0, True, "8h"), "quit"),  # seat 0 holds the ace of spades
        ("8h", Swapped(0, False, "8h"), 10),
    ],
)
def test_counter_knows_the_card_of_one_who_swapped(
    dealer_card: str, last_swap: Swapped, answer: Bidding
) -> None:
    bot = counter_at(
        1,
        Dealt(1, 3, 2, "Ks", dealer_card),
        Swapped(2, False, dealer_card),
        Swapped(3, False, dealer_card),
        last_swap,
        Swap("Ks", "8h"),
    )

    bids: Bids = (10, None, 10, "quit")
    assert bot.bid("Ks", "8h", bids, legal_bids(10)) == answer


def test_counter_remembers_the_cards_of_the_shuffle() -> None:
    """A jack is worth more than a three once nearly all that beats it has been seen."""
    bot = Counter()
    seen = ["As Ah", "Ad Ac", "Ks Kh", "Kd Kc", "Qs Qh", "Qd Qc"]
    for number, pair in enumerate(seen, start=1):
        bot.hear(Dealt(1, number, 0, *pair.split()))

    bot.hear(Dealt(1, 7, 0, "3s", "Js"))
    assert bot.decide(Swap("3s", "Js")) == "swap"

    bot.hear(Dealt(2, 11, 0, "3s", "Js"))  # another shuffle: all are back
    assert bot.decide(Swap("3s", "Js")) == "keep"


def test_counter_strikes_off_what_swaps_and_a_showdown_show() -> None:
    """Three twos are below the three of clubs; seven unseen cards are above the queen."""
    swaps = [Swapped(1, True, "As"), Swapped(2, True, "Ks")]
    showdown = RoundOver(("Ac", "Kh", "Ah", None), 2, (2, -2, 2, -2), (2, -2, 2, -2))

    def after(*news: Any) -> object:
        bot = Counter()
        for item in (Dealt(1, 1, 0, "Ad", "2d"), *news, Dealt(1, 2, 0, "3c", "Qs")):
            bot.hear(item)
        return bot.decide(Swap("3c", "Qs"))

    assert after() == after(*swaps) == after(showdown) == "keep"
    assert after(*swaps, showdown) == "swap"
