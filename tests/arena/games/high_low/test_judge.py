"""What bids in high-low cost, against all hidden cards one by one, and from what others did."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

import arena
from arena.games.analysis import Judge, Judgement
from arena.games.catalogue import GAMES
from arena.games.high_low.rules import payoffs
from arena.records.seat_document import seat_match
from bots.high_low import Counter, Random
from protocol.cards import PACK, Card
from protocol.errors import NoAnalysis
from protocol.high_low import (
    Bid,
    Bidding,
    BidMade,
    Bids,
    Cards,
    Dealt,
    HighLowSettings,
    RoundOver,
    Swap,
    Swapped,
    legal_bids,
)
from tests.support.not_none import not_none

GAME = GAMES["high_low"]


def new_judge(seat: int) -> Judge:
    return not_none(GAME.judging).judge(HighLowSettings(), seat)


def deal(judge: Judge, card: Card, *swaps: Card | None, number: int = 1, dealer: Card) -> Card:
    """Deal a round that seat 0 starts; by seat, the card that it swaps for the dealer-card."""
    judge.heard(Dealt((number - 1) // 10 + 1, number, 0, card, dealer))
    for seat, given in enumerate(swaps):
        dealer = given or dealer
        judge.heard(Swapped(seat, given is not None, dealer))
    return dealer


def bid(judge: Judge, *bids: Bidding) -> None:
    for seat, said in enumerate(bids):
        judge.heard(BidMade(seat, said))


def rounds(judge: Judge, number: int, bids: tuple[Bidding, ...], cards: Cards) -> None:
    """So many rounds without a swap, each of them alike."""
    last = max((said for said in bids if said != "quit"), default=None)
    for each in range(1, number + 1):
        deal(judge, "7c", None, None, None, None, number=each, dealer="7d")
        bid(judge, *bids)
        judge.heard(RoundOver(cards, last, payoffs(cards, last), (0, 0, 0, 0)))


def asked(card: Card, bids: Bids, highest: int | None = None) -> Bid:
    return Bid(card, "8d", bids, legal_bids(highest))


def enumerated(
    card: Card, known: dict[int, Card], hidden: list[int], seen: set[Card], say: Bidding
) -> Fraction:
    """What the last seat's answer brings on average, over all hands of those who stay."""
    if say == "quit":
        return Fraction(-2)
    total = count = 0
    for drawn in permutations([other for other in PACK if other not in seen], len(hidden)):
        held = {**known, **dict(zip(hidden, drawn, strict=True)), 3: card}
        shown: Any = tuple(held.get(seat) for seat in range(4))
        total += payoffs(shown, say)[3]
        count += 1
    return Fraction(total, count)


@pytest.mark.parametrize("card", ["As", "Qs", "8c", "3h", "2c"])
@pytest.mark.parametrize(
    ("bids", "known", "hidden"),
    [
        ((2, 4, 4), {0: "7c"}, [1, 2]),
        ((2, 4, "quit"), {0: "7c"}, [1]),
        (("quit", 4, 6), {}, [1, 2]),
        (("quit", "quit", "quit"), {}, []),
        ((8, "quit", "quit"), {0: "7c"}, []),
    ],
)
def test_the_last_speakers_bid_costs_what_all_hidden_cards_say(
    card: Card, bids: tuple[Bidding, ...], known: dict[int, Card], hidden: list[int]
) -> None:
    judge = new_judge(3)
    # The first seat has taken the seven of clubs, and so the eight of diamonds lies there.
    deal(judge, card, "8d", None, None, None, dealer="7c")
    bid(judge, *bids)
    highest = max((said for said in bids if said != "quit"), default=None)
    question = asked(card, (bids[0], bids[1], bids[2], None), highest)
    means = {
        say: enumerated(card, known, hidden, {card, "7c", "8d"}, say) for say in question.legal
    }

    for say, mean in means.items():
        judgement = not_none(judge.judged(question, say))
        assert judgement.cost == pytest.approx(float(max(means.values()) - mean), abs=1e-9)
        assert means[judgement.best] == max(means.values())
        assert judgement.error is None
        assert judgement.grade == sum(judgement.cost > least for least in (0, 1, 3))


def cost_of_staying(judge: Judge) -> float:
    """Of the last speaker with a card from the middle, after two hidden cards."""
    bid(judge, 10, 10, "quit")
    judgement = not_none(judge.judged(asked("9c", (10, 10, "quit", None), 10), 10))
    return judgement.cost


def test_cards_that_were_seen_in_the_shuffle_are_not_hidden() -> None:
    fresh, later, after_a_shuffle = new_judge(3), new_judge(3), new_judge(3)
    shown: Cards = ("2c", "3c", "4c", "5c")  # without them there are more cards that are higher
    for judge, number in (later, 1), (after_a_shuffle, 10):
        deal(judge, "5c", None, None, None, None, number=number, dealer="6c")
        judge.heard(RoundOver(shown, 10, (0, 0, 0, 0), (0, 0, 0, 0)))
    for judge, number in (fresh, 1), (later, 2), (after_a_shuffle, 11):
        deal(judge, "9c", None, None, None, None, number=number, dealer="8d")
    costs = [cost_of_staying(judge) for judge in (fresh, later, after_a_shuffle)]

    assert costs[0] == costs[2] != costs[1]


def test_a_swap_is_not_judged() -> None:
    judge = new_judge(0)
    deal(judge, "7c", dealer="As")

    assert judge.judged(Swap("7c", "As"), "keep") is None


# ---- Where others still have to bid


def test_nothing_is_said_before_others_were_seen_to_answer() -> None:
    judge = new_judge(0)
    rounds(judge, 9, (10, "quit", "quit", "quit"), ("7c", None, None, None))
    deal(judge, "9c", None, None, None, None, dealer="8d")

    for say in "quit", 10:
        assert judge.judged(asked("9c", (None,) * 4), say) is None


def test_one_whom_nobody_follows_wins_what_the_others_left() -> None:
    judge = new_judge(0)
    rounds(judge, 12, (10, "quit", "quit", "quit"), ("7c", None, None, None))
    deal(judge, "9c", None, None, None, None, dealer="8d")
    question = asked("9c", (None,) * 4)

    # Six for a lone stayer (H9), instead of two that it costs to quit.
    quits = not_none(judge.judged(question, "quit"))
    stays = not_none(judge.judged(question, 10))
    assert (quits.cost, quits.best, quits.grade) == (8, 10, 3)
    assert (stays.cost, stays.best, stays.grade) == (0, 10, 0)
    assert quits.error == stays.error == pytest.approx(8 / 13)
    # Nobody has answered to a bid of 2.
    assert judge.judged(question, 2) is None


def test_those_who_follow_hold_what_they_have_shown() -> None:
    judge = new_judge(1)
    rounds(judge, 12, (8, 8, 8, 10), ("As", "7c", "Ks", "2c"))
    deal(judge, "Kd", None, None, None, None, dealer="8d")
    bid(judge, 8)

    # All come along, with an ace and a two among them: 10 are lost for sure.
    judgement = not_none(judge.judged(asked("Kd", (8, None, None, None), 8), 8))

    assert (judgement.cost, judgement.best, judgement.grade) == (8, "quit", 3)


def test_one_who_has_swapped_holds_what_it_took() -> None:
    judge = new_judge(2)
    for number in range(1, 13):
        deal(judge, "7c", "Kc", None, None, "6h", number=number, dealer="As")
        bid(judge, 10, "quit", 10, 10)
        judge.heard(RoundOver(("As", None, "7c", "Kc"), 10, (0, 0, 0, 0), (0, 0, 0, 0)))
    deal(judge, "9c", "2d", None, None, "6h", number=13, dealer="As")
    bid(judge, 10, "quit")

    # The last seat has always stayed after a swap, now with the two. Its kings were no lower.
    judgement = not_none(judge.judged(asked("9c", (10, "quit", None, None), 10), 10))

    assert (judgement.best, judgement.cost) == ("quit", 8)


def test_nothing_is_said_where_a_hidden_card_was_never_shown() -> None:
    judge = new_judge(2)
    rounds(judge, 12, ("quit", "quit", 10, "quit"), (None, None, "7c", None))
    deal(judge, "9c", None, None, None, None, dealer="8d")
    bid(judge, 10, "quit")

    assert judge.judged(asked("9c", (10, "quit", None, None), 10), 10) is None


def test_an_estimate_that_is_not_sure_is_level() -> None:
    judge = new_judge(2)
    for number in range(1, 21):
        deal(judge, "9c", None, None, None, None, number=number, dealer="8d")
        bid(judge, 10, "quit", 10, "quit" if number % 2 else 10)
        fourth = None if number % 2 else "2c"
        judge.heard(RoundOver(("As", None, "9c", fourth), 10, (0, 0, 0, 0), (0, 0, 0, 0)))
    deal(judge, "9c", None, None, None, None, dealer="8d")
    bid(judge, 10, "quit")
    question = asked("9c", (10, "quit", None, None), 10)

    # Two points are won if the last seat quits, and ten are lost if it stays.
    stays = not_none(judge.judged(question, 10))
    quits = not_none(judge.judged(question, "quit"))

    assert 0 < stays.cost < 5
    assert not_none(stays.error) > 1
    assert (stays.is_level, stays.grade) == (True, 0)
    assert (quits.cost, quits.is_level) == (0, False)
    assert judge.judged(question, 10) == stays, "what was judged before makes no difference"
    judge.decided(question, 10)
    assert judge.judged(question, 10) != stays, "each decision has draws of its own"


def test_the_last_speaker_makes_no_mistake_that_the_cards_shown_before_deny() -> None:
    judge = new_judge(3)
    rounds(judge, 12, (10, 10, "quit", "quit"), ("As", "2c", None, None))
    deal(judge, "Ks", None, None, None, None, dealer="8d")
    bid(judge, 10, 10, "quit")

    judgement = not_none(judge.judged(asked("Ks", (10, 10, "quit", None), 10), "quit"))

    # Against any two cards a king should stay; but these two have always had the ace and the two.
    assert (judgement.best, judgement.is_level, judgement.grade) == (10, True, 0)
    assert judgement.cost > 1


# ---- Whole matches


def judged(seat: int) -> list[Judgement]:
    bots = [Counter(), Random(), Counter(), Random()]
    for number, bot in enumerate(bots):
        bot.seed(number)
    match = arena.play("high_low", bots, settings={"max_shuffles": 15, "gap": 10_000}, seed=4)
    seen = seat_match(match.record, seat)
    judge = new_judge(seat)
    judgements = []
    for decision in seen.decisions:
        for news in decision.news:
            judge.heard(news)
        judgements.append(judge.judged(decision.question, decision.answer))
    return [judgement for judgement in judgements if judgement is not None]


@pytest.mark.stats
def test_a_bot_that_counts_gives_away_less_than_one_that_plays_at_random() -> None:
    counter, random = judged(0), judged(1)

    assert judged(1) == random  # always alike, in spite of what is drawn
    lost = [
        sum(judgement.cost for judgement in judgements if not judgement.is_level)
        for judgements in (counter, random)
    ]

    assert min(len(counter), len(random)) > 40
    assert all(judgement.cost >= 0 for judgement in counter + random)
    assert lost[0] < lost[1] / 5


def test_a_bot_has_no_value_among_four() -> None:
    analysing = not_none(GAME.analysing)
    reason = not_none(analysing.refuses(HighLowSettings()))

    assert reason.startswith("a bot has no value at a table of four")
    with pytest.raises(NoAnalysis, match="at a table of four"):
        analysing.probe(HighLowSettings(), 1, [])
