"""Three card poker (section T): any match beside the rules told once more.

`rules.cases` shows rule by rule.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arena.games.shuffle import Stream
from arena.games.three_card_poker.rules import GAME, deals
from bots.strategy import choose
from protocol.cards import PACK
from protocol.three_card_poker import ThreeCardPokerSettings
from protocol.vocabulary import Range
from tests.support.poker_hands import worth
from tests.support.rule_oracle import WRONG, Ask, Tell, play_beside


def three_card_poker(
    decks: Iterator[Any], agreed: ThreeCardPokerSettings, ask: Ask, tell: Tell
) -> list[int]:
    cash, number = agreed.stake, 0
    goal = 10**15 if agreed.goal is None else agreed.goal
    while number < agreed.rounds and 2 <= cash < goal:
        number += 1
        deck = next(decks)
        hand, dealer = tuple(deck[:3]), tuple(deck[3:6])
        ante = ask(0, "ante", round=number, cash=cash, legal=Range(1, cash // 2))
        decision = ask(0, "play", hand=hand, ante=ante, cash=cash, legal=("play", "fold"))
        mine, theirs = worth(hand, agreed.pair_kicker), worth(dealer, agreed.pair_kicker)
        if decision == "fold":
            outcome = -1
        elif theirs < (0, 12, 3, 2):
            outcome = 1
        else:
            outcome = 2 * (mine > theirs) - 2 * (mine < theirs)
        cash += outcome * ante
        tell(0, "round_over", hand=hand, dealer=dealer, ante=ante, outcome=outcome, cash=cash)
    return [cash - agreed.stake]


@settings(max_examples=50)
@given(
    st.integers(0, 2**32),
    st.integers(0, 60) | st.just(10**9),
    st.integers(0, 30),
    st.none() | st.integers(0, 120),
    st.booleans(),
)
def test_T1_to_T8_whatever_is_played_is_as_the_rules_say(
    seed: int, stake: int, rounds: int, goal: int | None, kicker: bool
) -> None:
    rng = random.Random(seed)
    # Few ranks, so that equal categories meet.
    ranks = rng.sample("23456789TJQKA", rng.choice((4, 5, 13)))
    pack = [card for card in PACK if card[0] in ranks]
    decks = [rng.sample(pack, 6) for _ in range(rounds)]
    agreed = {"stake": stake, "rounds": rounds, "goal": goal, "pair_kicker": kicker}
    play_beside(
        *(GAME, three_card_poker, rng, decks, agreed),
        choose=lambda rng, question: choose(question.choices, rng),
        wrong=[answer for answer in WRONG if type(answer) is not int or answer > 100],
    )


def test_T1_all_52_cards_are_dealt_from() -> None:
    dealt = deals(ThreeCardPokerSettings(), Stream(b"any"))

    assert len({card for _ in range(200) for card in next(dealt)}) == 52


def test_T1_a_deal_is_the_start_of_a_shuffle_read_from_its_back() -> None:
    shuffled = Stream(b"any").shuffled(PACK)

    assert Stream(b"any").dealt(PACK, 52) == shuffled[::-1]
    assert Stream(b"any").dealt(PACK, 6) == shuffled[:-7:-1]
    assert Stream(b"any").dealt(PACK, 0) == []
