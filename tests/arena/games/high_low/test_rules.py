"""High-low (section H): any match beside the rules told once more, and who advances.

`rules.cases` shows rule by rule.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.games.high_low.rules import GAME, survivors
from arena.games.match import MatchState
from arena.games.rules import EVERYONE
from protocol.cards import PACK
from protocol.high_low import HighLowSettings
from protocol.messages import Ending
from tests.support.rule_oracle import WRONG, Ask, Choose, Tell, play_beside


def high_low(decks: Iterator[Any], agreed: HighLowSettings, ask: Ask, tell: Tell) -> list[int]:
    scores, number = [0] * 4, 0
    for shuffle, deck in enumerate(decks, 1):
        for at in range(0, 50, 5):
            number += 1
            order = [(number - 1 + turn) % 4 for turn in range(4)]
            hand, dealer = list(deck[at : at + 4]), deck[at + 4]
            for seat in range(4):
                start = {"shuffle": shuffle, "round": number, "starter": order[0]}
                tell(seat, "dealt", card=hand[seat], dealer_card=dealer, **start)
            for seat in order:
                seen = {"card": hand[seat], "dealer_card": dealer}
                swaps = ask(seat, "swap", legal=("swap", "keep"), **seen) == "swap"
                if swaps:
                    hand[seat], dealer = dealer, hand[seat]
                tell(EVERYONE, "swapped", seat=seat, swapped=swaps, dealer_card=dealer)
            bids: list[Any] = [None] * 4
            for seat in order:
                least = max((bid for bid in bids if type(bid) is int), default=2)
                legal = ("quit", *range(least, 11, 2))
                seen = {"card": hand[seat], "dealer_card": dealer}
                bids[seat] = ask(seat, "bid", bids=tuple(bids), legal=legal, **seen)
                tell(EVERYONE, "bid", seat=seat, bid=bids[seat])
            stay = [seat for seat in range(4) if bids[seat] != "quit"]
            last: Any = max((bids[seat] for seat in stay), default=None)
            paid = [last if seat in stay else 2 for seat in range(4)]
            gains = [-each for each in paid]
            by_card = sorted(
                stay,
                key=lambda seat: (
                    "23456789TJQKA".index(hand[seat][0]),
                    "cdhs".index(hand[seat][1]),
                ),
            )
            for winner in (by_card[0], by_card[-1]) if stay else ():
                gains[winner] += sum(paid) // 2
            scores = [old + more for old, more in zip(scores, gains, strict=True)]
            shown = tuple(hand[seat] if seat in stay else None for seat in range(4))
            ended = {"payoffs": tuple(gains), "scores": tuple(scores)}
            tell(EVERYONE, "round_over", cards=shown, last_bid=last, **ended)
        _, third, second, _ = sorted(scores)
        most = agreed.max_shuffles
        if shuffle < most and second - third >= agreed.gap:
            break
        if shuffle >= most and (second > third or shuffle == most + 10):
            break
    return scores


def bold(stays: float) -> Choose:
    """Stays as often as that, and swaps at random."""

    def choose(rng: random.Random, question: Any) -> object:
        if question.kind == "swap":
            return rng.choice(question.legal)
        return rng.choice(question.legal[1:]) if rng.random() < stays else "quit"

    return choose


@pytest.mark.stats
@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 8, 16, 30, 10**9]),
    st.integers(1, 3),
    st.sampled_from([0, 0.02, 0.1, 0.9]),
)
def test_H1_to_H12_whatever_is_played_is_as_the_rules_say(
    seed: int, gap: int, most: int, stays: float
) -> None:
    rng = random.Random(seed)
    decks = [rng.sample(PACK, rng.choice((50, 52))) for _ in range(most + 10)]
    settings = {"gap": gap, "max_shuffles": most}
    wrong = (*WRONG, 12, 11, 5, "swapped")
    play_beside(GAME, high_low, rng, decks, settings, choose=bold(stays), wrong=wrong)


@pytest.mark.parametrize(
    ("scores", "offender", "seats"),
    [
        ((30, 20, -20, -30), None, (0, 1)),
        ((-30, 20, -20, 30), None, (1, 3)),
        ((-4, -3, -2, -1), None, (2, 3)),
        ((7, 0, 7, 7), None, (0, 2, 3)),
        ((9, 5, 5, 1), None, (0, 1, 2)),
        ((0, 0, 0, 0), None, (0, 1, 2, 3)),
        ((100, 50, 0, -150), 0, (1, 2, 3)),
        ((100, 50, 0, -150), 3, (0, 1, 2)),
        ((0, 0, 0, 0), 2, (0, 1, 3)),
    ],
)
def test_H11_H12_H13_who_advances(
    scores: tuple[int, ...], offender: int | None, seats: tuple[int, ...]
) -> None:
    assert survivors(scores, offender) == seats


def test_H13_an_offence_leaves_the_scores_as_they_stood() -> None:
    match = MatchState(GAME, HighLowSettings(), decks=[PACK])
    for answer in ("keep",) * 4 + (2, "quit", "quit", "quit", "keep"):
        match.answer(answer)
    match.end(Ending.TIMEOUT, 2, "seat 3 was out of time")
    assert match.result().scores == (6, -2, -2, -2)
    assert match.pending is None
