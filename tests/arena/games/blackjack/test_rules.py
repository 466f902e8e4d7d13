"""Blackjack (section B): any match beside the rules told once more, and the deck by itself.

`rules.cases` shows rule by rule; B12 is tested with the bots, B13 in `test_script.py`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.games.blackjack.rules import GAME, Deck
from arena.games.shuffle import Stream, seed_from_int
from protocol.blackjack import NEW_DECK, BlackjackSettings, Shuffled
from protocol.errors import BadDeck, DeckEmpty
from protocol.vocabulary import Range
from tests.support.rule_oracle import WRONG, Ask, Tell, play_beside

# ---- The rules once more


def new_deck() -> list[str]:
    return [rank + suit for suit in "shcd" for rank in "23456789TJQKA"]


def riffled(deck: Sequence[str], cut: int) -> list[str]:
    left, right = list(deck[:cut]), list(deck[cut:])
    both: list[str] = []
    while left and right:
        both += [right.pop(0), left.pop(0)]
    return both + left + right


def counted(cards: Sequence[str]) -> tuple[int, bool]:
    """The count of a hand, and whether it is soft (B4)."""
    least = sum(1 if c[0] == "A" else 10 if c[0] in "TJQK" else int(c[0]) for c in cards)
    soft = least <= 11 and any(card[0] == "A" for card in cards)
    return least + 10 * soft, soft


def blackjack(given: Iterator[Any], agreed: BlackjackSettings, ask: Ask, tell: Tell) -> list[int]:
    order, dealt = new_deck(), 0
    chips = agreed.bankroll

    def shuffle() -> None:
        nonlocal order, dealt
        dealt = 0
        if agreed.shuffle == "uniform":
            order = list(next(given))
        else:
            for cut in islice(given, 7):
                order = riffled(order, cut)
        tell(0, "shuffled")

    def draw(cards: list[str], side: str | None) -> None:
        nonlocal dealt
        cards.append(order[dealt])
        dealt += 1
        if side:
            tell(0, "exposed", card=cards[-1], to=side)

    shuffle()
    for number in range(1, agreed.hands + 1):
        if chips < 5:
            break
        if 52 - dealt < 20:
            shuffle()
        bet = ask(0, "bet", round=number, bankroll=chips, legal=Range(5, chips))
        mine: list[str] = []
        dealer: list[str] = []
        hole: list[str] = []
        for cards, side in (mine, "player"), (dealer, "dealer"), (mine, "player"), (hole, None):
            draw(cards, side)
        outcome, paid = "natural", bet * 3 // 2
        if counted(mine)[0] != 21:
            action = "hit"
            while action == "hit" and (total := counted(mine)[0]) <= 21:
                asked: dict[str, Any] = {"upcard": dealer[0], "hand": tuple(mine)}
                total, soft = counted(mine)
                action = ask(0, "draw", total=total, soft=soft, legal=("hit", "stand"), **asked)
                if action == "hit":
                    draw(mine, "player")
            if total > 21:
                outcome, paid = "bust", -bet
            else:
                dealer += hole
                tell(0, "exposed", card=hole[0], to="dealer")
                while counted(dealer)[0] < 17:
                    draw(dealer, "dealer")
                theirs = counted(dealer)[0]
                if theirs > 21:
                    outcome, paid = "dealer_busts", bet
                elif theirs == total:
                    outcome, paid = "push", 0
                else:
                    outcome, paid = ("win", bet) if total > theirs else ("lose", -bet)
        chips += paid
        hands = {"player": tuple(mine), "dealer": tuple(dealer)}
        tell(0, "hand_over", bet=bet, outcome=outcome, payoff=paid, bankroll=chips, **hands)
    return [chips - agreed.bankroll]


def bets_and_draws(rng: random.Random, question: Any) -> object:
    if question.kind == "draw":
        return rng.choice(question.legal)
    return rng.choice([5, rng.randint(5, question.legal.max)])


@settings(max_examples=50)
@given(
    st.integers(0, 2**32),
    st.integers(0, 60) | st.just(10**9),
    st.sampled_from(["riffle", "uniform"]),
)
def test_B1_to_B11_whatever_is_played_is_as_the_rules_say(
    seed: int, bankroll: int, shuffle: Literal["riffle", "uniform"]
) -> None:
    rng = random.Random(seed)
    if shuffle == "riffle":
        decks: list[Any] = [rng.randint(0, 52) for _ in range(7 * 10)]
    else:
        decks = [rng.sample(NEW_DECK, 52) for _ in range(10)]
    play_beside(
        *(GAME, blackjack, rng, decks, {"bankroll": bankroll, "hands": 12, "shuffle": shuffle}),
        choose=bets_and_draws,
        wrong=[answer for answer in WRONG if type(answer) is not int or not 5 <= answer < 100],
    )


# ---- B1 to B3: the deck


def dealt(deck: Deck, number: int = 52) -> str:
    return " ".join(deck.deal() for _ in range(number))


def test_B1_a_new_deck_is_spades_hearts_clubs_diamonds() -> None:
    deck = Deck()
    assert dealt(deck) == " ".join(new_deck()) == " ".join(NEW_DECK)
    deck.shuffle(26)
    dealt(deck, 10)
    deck.reset()
    assert (deck.cards_left, dealt(deck)) == (52, " ".join(NEW_DECK))


@pytest.mark.parametrize(
    ("cut", "first", "last"),
    [
        (26, "2c 2s 3c 3s 4c 4s", "Kd Kh Ad Ah"),
        (3, "5s 2s 6s 3s 7s 4s 8s 9s Ts Js", "Kd Ad"),  # what remains of the right part
        (50, "Kd 2s Ad 3s 4s 5s 6s 7s", "Jd Qd"),  # of the left part
        (0, "2s 3s", "Ad"),
        (52, "2s 3s", "Ad"),
    ],
)
def test_B2_a_cut_interleaves_right_left_and_the_rest_follows(
    cut: int, first: str, last: str
) -> None:
    deck = Deck()
    deck.shuffle(cut)
    cards = dealt(deck)
    assert cards.startswith(first)
    assert cards.endswith(last)
    assert cards == " ".join(riffled(new_deck(), cut))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 52), st.integers(0, 52)), max_size=4))
def test_B2_dealt_cards_are_restored_in_the_order_dealt(shuffles: list[tuple[int, int]]) -> None:
    deck, order = Deck(), new_deck()
    for number, cut in shuffles:
        assert dealt(deck, number).split() == order[:number]
        deck.shuffle(cut)
        order = riffled(order, cut)
    assert deck.cards_left == 52
    assert dealt(deck).split() == order


@pytest.mark.parametrize("cut", [-1, 53, 26.0, "26", True, None, ["As"]])
def test_B2_a_cut_outside_0_to_52_is_refused(cut: Any) -> None:
    deck = Deck()
    with pytest.raises(BadDeck, match="cut from 0 to 52"):
        deck.shuffle(cut)
    assert dealt(deck) == " ".join(NEW_DECK)


def test_B3_cards_left_counts_and_an_empty_deck_says_so() -> None:
    deck = Deck()
    for left in range(52, 0, -1):
        assert deck.cards_left == left
        deck.deal()
    for _ in range(2):
        with pytest.raises(DeckEmpty, match="all 52 are dealt"):
            deck.deal()
    assert deck.cards_left == 0


# ---- What chance deals


def test_B5_each_cut_is_13_to_39_at_random() -> None:
    cuts = GAME.deals(BlackjackSettings(), Stream(seed_from_int(1)))
    drawn = Counter(islice(cuts, 27_000))

    assert sorted(drawn) == list(range(13, 40))
    assert all(abs(times - 1000) < 6 * 1000**0.5 for times in drawn.values())


def test_B11_a_shuffle_is_told_without_its_cuts() -> None:
    assert Shuffled.__struct_fields__ == ()


def test_B14_a_uniform_shuffle_deals_whole_decks() -> None:
    fair = GAME.deals(BlackjackSettings(shuffle="uniform"), Stream(seed_from_int(1)))
    first, second = next(fair), next(fair)

    assert sorted(first) == sorted(second) == sorted(NEW_DECK)
    assert first != second
