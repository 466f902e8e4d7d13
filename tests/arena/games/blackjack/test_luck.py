"""The luck of the cards of blackjack: fair for every card, by all that has not been seen."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import pytest

from arena.games.blackjack.luck import BlackjackLuckMeter, HandValues
from arena.games.blackjack.rules import GAME
from arena.games.match import MatchState
from arena.games.rules import AskSeat, TellSeat
from protocol.blackjack import (
    MINIMUM,
    NEW_DECK,
    Bet,
    BlackjackSettings,
    Exposed,
    HandOver,
    Shuffled,
    Side,
)
from protocol.cards import Card
from protocol.vocabulary import News, Range

UNIFORM = BlackjackSettings(shuffle="uniform", hands=2)
DEALT = ["Ts p", "9h d", "5c p"]  # a player's 15 against a nine

Stage = Sequence[str]
"""Cards and whom they go to, `p` or `d`."""


def bet(meter: BlackjackLuckMeter, chips: int) -> None:
    asked = AskSeat(0, Bet(1, 1000, Range(MINIMUM, 1000)))
    meter.asked(asked)
    meter.answered(asked, chips)


def tell(meter: BlackjackLuckMeter, news: News) -> None:
    meter.told(TellSeat(0, news))


def show(meter: BlackjackLuckMeter, stage: Stage) -> None:
    for card, to in map(str.split, stage):
        side: Side = "player" if to == "p" else "dealer"
        tell(meter, Exposed(card, side))


def luck_so_far(hand: Stage, *, before: Stage = (), chips: int = 5) -> float:
    """The luck of a hand up to its last card, in chips; `before` was shown in a hand before."""
    meter = BlackjackLuckMeter(UNIFORM)
    tell(meter, Shuffled())
    bet(meter, 5)
    show(meter, before)
    tell(meter, HandOver(5, (), (), "push", 0, 1000))
    bet(meter, chips)
    show(meter, hand)
    tell(meter, HandOver(chips, (), (), "push", 0, 1000))
    return meter.rounds[-1].luck[0]


def unseen(*stages: Stage) -> list[Card]:
    seen = {shown.split()[0] for stage in stages for shown in stage}
    return [card for card in NEW_DECK if card not in seen]


@pytest.mark.parametrize("before", [(), ("Ah p", "Kh d", "Kd p")], ids=["fresh", "after_a_natural"])
@pytest.mark.parametrize(
    ("hand", "to"),
    [
        pytest.param([], "p", id="first"),
        pytest.param(["As p"], "d", id="upcard"),
        pytest.param(["As p", "6h d"], "p", id="second"),
        pytest.param(DEALT, "p", id="hit"),
        pytest.param(DEALT, "d", id="hole"),
        pytest.param([*DEALT, "4h d"], "d", id="dealers_draw"),
        pytest.param([*DEALT, "Ac p", "2h d"], "d", id="dealer_after_a_hit"),
    ],
)
def test_a_card_is_no_luck_on_average_over_all_that_are_unseen(
    before: Stage, hand: Stage, to: str
) -> None:
    cards = unseen(before, hand)
    luck = [luck_so_far([*hand, f"{card} {to}"], before=before) for card in cards]
    until_then = luck_so_far(hand, before=before)

    assert fmean(luck) == pytest.approx(until_then, abs=1e-12)
    assert max(luck) > until_then > min(luck)


def test_B8_a_natural_is_worth_what_it_pays_rounded_down() -> None:
    hand = ["As p", "6h d"]
    natural = luck_so_far([*hand, "Ks p"], chips=5)
    twenty = luck_so_far([*hand, "9s p"], chips=5)

    assert natural - twenty == pytest.approx(7 - 5 * HandValues().play(6, 10, True))


def test_luck_is_as_large_as_the_bet() -> None:
    hand = [*DEALT, "6d p"]

    assert luck_so_far(hand, chips=40) == pytest.approx(4 * luck_so_far(hand, chips=10))


def test_B9_a_bust_is_worth_the_bet_that_it_costs() -> None:
    hit = HandValues().hit(9, 15, False)

    assert hit[7] == -1.0
    assert hit[6] > 0.5


def test_B10_the_dealer_busts_as_often_as_is_known() -> None:
    # Without end, standing on 12 wins if the dealer busts and loses otherwise; the chances of a
    # bust, a natural of the dealer's not excluded, are in every book.
    known = {2: 0.3536, 3: 0.3739, 4: 0.3945, 5: 0.4164, 6: 0.4232, 7: 0.2617, 8: 0.2447}
    values = HandValues()
    for upcard, busts in known.items():
        stands = sum(
            chance * worth
            for worth, chance in zip(
                values.dealt(12, upcard, False), [0, *[1 / 13] * 9, 4 / 13], strict=True
            )
        )

        assert (stands + 1) / 2 == pytest.approx(busts, abs=2e-3)


def luck_of_deck(cards: Sequence[Card]) -> list[float]:
    """The luck by hand of a bot that always stands and bets the minimum, with this deck."""
    match = MatchState(GAME, UNIFORM, decks=[cards])
    meter = BlackjackLuckMeter(UNIFORM)
    while (asked := match.pending) is not None:
        for told in match.take_news():
            meter.told(told)
        answer = MINIMUM if type(asked.question) is Bet else "stand"
        match.answer(answer)
        meter.answered(asked, match.answers[-1])
    for told in match.take_news():
        meter.told(told)
    return [played.luck[0] for played in meter.rounds]


def test_B8_a_hole_card_that_was_never_shown_is_still_among_the_unseen() -> None:
    dealt = "As 9h Ks 2c Th 8d Tc 7c".split()  # a natural, then 20 against 15 and what comes
    deck = [*dealt, *unseen(dealt)]
    other = [*deck]
    other[3], other[-1] = other[-1], other[3]

    assert deck[3] != other[3]
    assert len(luck_of_deck(deck)) == 2
    assert luck_of_deck(deck) == luck_of_deck(other)


def test_B11_after_a_shuffle_all_cards_may_come_again() -> None:
    def first_card(*, shuffles: bool) -> float:
        meter = BlackjackLuckMeter(UNIFORM)
        tell(meter, Shuffled())
        bet(meter, 5)
        show(meter, ["Ah p", "Ad d", "Ac p"])
        tell(meter, HandOver(5, (), (), "push", 0, 1000))
        if shuffles:
            tell(meter, Shuffled())
        bet(meter, 5)
        show(meter, ["As p"])
        tell(meter, HandOver(5, (), (), "push", 0, 1000))
        return meter.rounds[-1].luck[0]

    assert first_card(shuffles=True) == luck_so_far(["As p"])
    assert first_card(shuffles=False) > first_card(shuffles=True)  # aces are rarer then


@pytest.mark.parametrize(("shuffle", "is_refused"), [("riffle", True), ("uniform", False)])
def test_B14_a_riffle_of_a_known_deck_is_not_fair_chance(shuffle: str, is_refused: bool) -> None:
    assert GAME.luck is not None
    settings = GAME.vocabulary.read_settings({"shuffle": shuffle})

    assert (GAME.luck.refuses(settings) is not None) == is_refused
