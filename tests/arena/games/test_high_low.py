"""High-low, paragraph by paragraph (rules H)."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.engine.match import MatchResult, MatchState, Record
from arena.engine.rules import EVERYONE, TellSeat
from arena.games.high_low import GAME, advancing, payoffs, survivors
from arena.games.replay import replay
from arena.lab.in_process import play
from bots.high_low import Random
from protocol.cards import PACK
from protocol.errors import BadDeck, IllegalAnswer, OutOfDecks
from protocol.high_low import Bid, Bidding, Dealt, RoundOver, Swap, Swapped
from protocol.messages import Ending

KEEP = ("keep",) * 4
QUIT: tuple[Bidding, ...] = ("quit",) * 4
SHORT = {"gap": 1, "max_shuffles": 1}


# ---- Helpers that read like play


def shuffle_of(*rounds: str) -> list[str]:
    """A deck that begins with these rounds, each of five cards, and goes on anyhow."""
    cards = " ".join(rounds).split()
    return cards + [card for card in PACK if card not in cards]


class SteppedMatch:
    """A match with stacked decks, played answer by answer."""

    def __init__(self, *decks: Sequence[str], **values: int) -> None:
        self.match = MatchState(GAME, GAME.vocabulary.read_settings(values), decks=iter(decks))
        self.told: list[TellSeat] = []
        self._listen()

    def say(self, *answers: object) -> SteppedMatch:
        """Give the answers of those who are asked, one after another."""
        for answer in answers:
            self.match.answer(answer)
            self._listen()
        return self

    def rounds(self, *bids: Sequence[Bidding]) -> SteppedMatch:
        """Rounds without swaps, and the bids in speaking order."""
        for four in bids:
            self.say(*KEEP, *four)
        return self

    @property
    def asked(self) -> tuple[int, Any]:
        """The seat whose turn it is and its question."""
        assert self.match.pending is not None
        return self.match.pending.seat, self.match.pending.question

    def heard(self, seat: int, kind: type[Any]) -> list[Any]:
        """All news of a kind that a seat has heard."""
        return [
            tell.news
            for tell in self.told
            if tell.seat in (seat, EVERYONE) and type(tell.news) is kind
        ]

    @property
    def over(self) -> RoundOver:
        """How the last round ended."""
        last: RoundOver = self.heard(0, RoundOver)[-1]
        return last

    def _listen(self) -> None:
        self.told += self.match.take_news()


def one_round(cards: str, bids: Sequence[Bidding], swaps: Sequence[str] = KEEP) -> RoundOver:
    """The end of a round in which seat 0 speaks first; the fifth card is the dealer-card."""
    return SteppedMatch(shuffle_of(cards)).say(*swaps, *bids).over


def lone_stayers(*shuffles: str, **values: int) -> tuple[int, tuple[int, ...]]:
    """Play a match and count its shuffles: "0011------" says who stays alone in each round, - is
    nobody.

    A lone stayer gains 8 on the others, whoever stayed alone in whatever round.
    """
    match = MatchState(GAME, GAME.vocabulary.read_settings(values), seed=b"any cards do")
    played = 0
    for plan in shuffles:
        assert match.pending is not None, f"over after {played} shuffles"
        played += 1
        for stayer in plan:
            for _ in range(4):
                match.answer("keep")
            for _ in range(4):
                asked = match.pending
                match.answer(2 if stayer == str(asked.seat) else "quit")
    assert match.termination is not None, f"goes on after {played} shuffles"
    return played, match.scores


# ---- H1: the cards


def test_H1_aces_are_high() -> None:
    over = one_round("As Kd 2c 9h 7h", (4, 4, 4, 4))

    assert over.payoffs == (+4, -4, +4, -4)


def test_H1_of_two_aces_the_suit_decides_who_is_highest() -> None:
    over = one_round("Ah As 2c 9h 7h", (4, 4, 4, 4))

    assert over.payoffs == (-4, +4, +4, -4)


def test_H1_suits_from_spades_down_to_clubs() -> None:
    over = one_round("9d 9s 9h 9c 7h", (2, 2, 2, 2))

    assert over.payoffs == (-2, +2, -2, +2)


def test_H1_of_two_twos_the_suit_decides_who_is_lowest() -> None:
    over = one_round("2d 9s 2c 9h 7h", (6, 6, 6, 6))

    assert over.payoffs == (-6, +6, +6, -6)


# ---- H2: shuffles, rounds and cards


def test_H2_one_card_to_each_position_and_the_fifth_is_the_dealer_card() -> None:
    table = SteppedMatch(shuffle_of("As Kd 5h 9c 2s"))

    assert [table.heard(seat, Dealt) for seat in range(4)] == [
        [Dealt(1, 1, 0, "As", "2s")],
        [Dealt(1, 1, 0, "Kd", "2s")],
        [Dealt(1, 1, 0, "5h", "2s")],
        [Dealt(1, 1, 0, "9c", "2s")],
    ]


def test_H2_every_round_takes_the_next_five_cards() -> None:
    table = SteppedMatch(shuffle_of("As Kd 5h 9c 2s", "3s 4s 5s 6s 7s"))

    table.rounds(QUIT)

    assert [table.heard(seat, Dealt)[1].card for seat in range(4)] == ["3s", "4s", "5s", "6s"]
    assert table.heard(0, Dealt)[1].dealer_card == "7s"


def test_H2_a_shuffle_is_ten_rounds_and_two_cards_stay_unused() -> None:
    table = SteppedMatch(PACK, PACK[::-1]).rounds(*[QUIT] * 10)

    dealt = [table.heard(seat, Dealt) for seat in range(4)]
    assert [news.shuffle for news in dealt[0]] == [1] * 10 + [2]
    first = [news for seat in dealt for news in seat if news.shuffle == 1]
    seen = {news.card for news in first} | {news.dealer_card for news in first}
    assert seen == set(PACK[:50])


def test_H2_the_next_shuffle_is_of_all_the_cards() -> None:
    table = SteppedMatch(PACK, PACK[::-1]).rounds(*[QUIT] * 10)

    assert table.heard(0, Dealt)[-1] == Dealt(2, 11, 2, PACK[-1], PACK[-5])


def test_H2_fifty_cards_are_deck_enough() -> None:
    result = play("high_low", [Random() for _ in range(4)], decks=[PACK[:50]] * 11, settings=SHORT)

    assert result.termination.kind is Ending.COMPLETED


def test_H2_a_deck_that_runs_off_is_the_callers_error() -> None:
    table = SteppedMatch(PACK[:14]).rounds(QUIT)

    with pytest.raises(BadDeck, match=r"round 3 of a shuffle needs 5 cards, .* has 4"):
        table.rounds(QUIT)


def test_H2_too_few_decks_are_the_callers_error() -> None:
    table = SteppedMatch(PACK).rounds(*[QUIT] * 9)

    with pytest.raises(OutOfDecks):
        table.rounds(QUIT)


@pytest.mark.parametrize(
    ("deck", "message"),
    [
        (["As", "10s"], "'10s' is no card"),
        (["As", 7], "7 is no card"),
        (["As", "As"], "the card 'As' comes twice"),
        ([], "round 1 of a shuffle needs 5 cards"),
    ],
)
def test_H2_a_deck_that_is_none_is_refused(deck: list[str], message: str) -> None:
    with pytest.raises(BadDeck, match=message):
        SteppedMatch(deck)


# ---- H3: positions and who starts


def speaking_order(table: SteppedMatch) -> list[int]:
    """Play a round in which all quit, and see who was asked."""
    seats = []
    for answer in (*KEEP, *QUIT):
        seats.append(table.asked[0])
        table.say(answer)
    return seats


def test_H3_position_1_starts_and_the_start_rotates_by_one_every_round() -> None:
    table = SteppedMatch(PACK)

    assert [speaking_order(table) for _ in range(5)] == [
        [0, 1, 2, 3] * 2,
        [1, 2, 3, 0] * 2,
        [2, 3, 0, 1] * 2,
        [3, 0, 1, 2] * 2,
        [0, 1, 2, 3] * 2,
    ]


def test_H3_a_shuffle_does_not_reset_the_start() -> None:
    table = SteppedMatch(PACK, PACK, PACK).rounds(*[QUIT] * 20)

    dealt = table.heard(0, Dealt)
    assert [news.starter for news in dealt] == [*[0, 1, 2, 3] * 5, 0]
    assert [news.round for news in dealt] == list(range(1, 22))
    assert dealt[10].shuffle == 2
    assert dealt[10].starter == 2


def test_H3_positions_are_fixed_whoever_starts() -> None:
    table = SteppedMatch(shuffle_of("As Kd 5h 9c 2s", "3s 4s 5s 6s 7s")).rounds(QUIT)

    assert table.asked == (1, Swap("4s", "7s"))


# ---- H4: what a player sees


def test_H4_a_player_sees_its_own_card_and_the_dealer_card() -> None:
    table = SteppedMatch(shuffle_of("As Kd 5h 9c 2s"))

    assert table.asked == (0, Swap("As", "2s"))


# ---- H5: swaps


def test_H5_the_old_card_is_the_new_dealer_card_and_everybody_sees_it() -> None:
    table = SteppedMatch(shuffle_of("As Kd 5h 9c 2s")).say("keep", "swap")

    assert [table.heard(seat, Swapped) for seat in range(4)] == [
        [Swapped(0, False, "2s"), Swapped(1, True, "Kd")]
    ] * 4
    assert table.asked == (2, Swap("5h", "Kd"))


def test_H5_each_player_is_asked_once_in_speaking_order() -> None:
    table = SteppedMatch(shuffle_of("As Kd 5h 9c 2s"))

    asked = []
    for _ in range(4):
        asked.append(table.asked)
        table.say("swap")

    assert asked == [
        (0, Swap("As", "2s")),
        (1, Swap("Kd", "As")),
        (2, Swap("5h", "Kd")),
        (3, Swap("9c", "5h")),
    ]
    assert type(table.asked[1]) is Bid


def test_H5_the_card_taken_is_the_card_that_counts() -> None:
    over = one_round("8s Kd 5h 9c As", (4, 4, 4, 4), swaps=("swap", "keep", "keep", "keep"))

    assert over.cards == ("As", "Kd", "5h", "9c")
    assert over.payoffs == (+4, -4, +4, -4)


def test_H5_bidders_hold_what_they_swapped_for() -> None:
    table = SteppedMatch(shuffle_of("As Kd 5h 9c 2s")).say("keep", "keep", "keep", "swap")

    table.say(2, 2, 2)

    seat, question = table.asked
    assert (seat, question.card, question.dealer_card) == (3, "2s", "9c")


# ---- H6: bids


def test_H6_a_bid_tells_what_each_seat_has_said_so_far() -> None:
    table = SteppedMatch(PACK).rounds(QUIT).say(*KEEP)  # seat 1 starts

    bids = []
    for answer in ("quit", 4, 6, "quit"):
        bids.append(table.asked[1].bids)
        table.say(answer)

    assert bids == [
        (None, None, None, None),
        (None, "quit", None, None),
        (None, "quit", 4, None),
        (None, "quit", 4, 6),
    ]


def test_H6_a_number_must_be_at_least_every_number_before_it() -> None:
    table = SteppedMatch(PACK).say(*KEEP, 6)

    assert table.asked[1].legal == ("quit", 6, 8, 10)
    with pytest.raises(IllegalAnswer, match=r"^seat 2 answered 4 to bid; legal: quit"):
        table.say(4)


def test_H6_quit_binds_nobody() -> None:
    table = SteppedMatch(PACK).say(*KEEP, "quit")

    assert table.asked[1].legal == ("quit", 2, 4, 6, 8, 10)


def test_H6_quit_does_not_lift_what_a_number_bound() -> None:
    table = SteppedMatch(PACK).say(*KEEP, 8, "quit")

    assert table.asked[1].legal == ("quit", 8, 10)


def test_H6_quit_is_bound_by_nothing() -> None:
    over = one_round("As Kd 5h 9c 2s", (10, "quit", 10, "quit"))

    assert over.payoffs == (+2, -2, +2, -2)


def test_H6_each_player_bids_once() -> None:
    table = SteppedMatch(PACK).say(*KEEP, 2, 4, 6, 8)

    assert table.over.last_bid == 8
    assert type(table.asked[1]) is Swap


# ---- H7: the last bid and the total


def test_H7_the_last_bid_is_the_highest_number() -> None:
    assert one_round("As Kd 5h 9c 2s", (2, 6, "quit", "quit")).last_bid == 6


def test_H7_the_total_is_two_for_a_quitter_and_the_last_bid_for_a_stayer() -> None:
    over = one_round("As Kd 5h 9c 2s", (4, 8, 8, "quit"))

    total = 2 * 1 + 8 * 3
    assert over.payoffs == (total // 2 - 8, -8, total // 2 - 8, -2)


# ---- H8: who pays whom


def test_H8_the_highest_and_the_lowest_win_half_the_pot() -> None:
    over = one_round("As Kd 5h 9c 2s", (10, 10, 10, 10))

    assert over.payoffs == (+10, -10, +10, -10)


def test_H8_the_last_bid_is_charged_to_a_lower_bidder() -> None:
    # Seat 1 said 2, and pays the 6 of seat 3. Of t = 2 + 18 each half is 10.
    over = one_round("As 9d 2h Kc 7s", (2, 2, "quit", 6))

    assert over.payoffs == (+4, +4, -2, -6)


def test_H8_a_lower_bidder_wins_by_the_last_bid_too() -> None:
    over = one_round("As Kd 2h 9c 7s", (2, 4, 6, 8))

    assert over.payoffs == (+8, -8, +8, -8)


def test_H8_a_quitter_loses_two_whatever_it_held() -> None:
    over = one_round("As Kd 2h 9c 7s", ("quit", 10, "quit", 10))

    assert over.payoffs == (-2, +2, -2, +2)


def test_H8_payoffs_add_up_in_the_scores() -> None:
    table = SteppedMatch(shuffle_of("As Kd 2h 9c 7s", "Ah 3d 2c 9s 7c"))

    table.rounds((4, 4, 4, 4), ("quit", 2, 2, 2))  # in the second, seat 1 starts

    # Second round: seat 1 quits; of t = 8 each half is 4.
    assert table.over.payoffs == (+2, -2, +2, -2)
    assert table.over.scores == (+6, -6, +6, -6)
    assert table.match.scores == (+6, -6, +6, -6)


@pytest.mark.parametrize("last_bid", [2, 4, 6, 8, 10])
@pytest.mark.parametrize("stays", list(itertools.product([False, True], repeat=4))[1:])
def test_H8_halves_are_whole_and_payoffs_sum_to_zero(
    stays: tuple[bool, ...], last_bid: int
) -> None:
    cards: Any = [
        card if stay else None for card, stay in zip(["As", "9h", "9d", "3c"], stays, strict=True)
    ]

    paid = payoffs(cards, last_bid)

    stayers = sum(stays)
    total = Fraction(2 * (4 - stayers) + last_bid * stayers)
    win = {+6} if stayers == 1 else {total / 2 - last_bid}
    assert sum(paid) == 0
    assert all(type(points) is int for points in paid)
    assert {paid[seat] for seat in range(4) if not stays[seat]} <= {-2}
    won = [paid[seat] for seat in range(4) if stays[seat]]
    assert {won[0], won[-1]} == win  # the cards go from the highest to the lowest
    assert set(won[1:-1]) <= {-last_bid}


# ---- H9: one stayer, or none


@pytest.mark.parametrize("number", [2, 4, 6, 8, 10])
def test_H9_a_lone_stayer_wins_six(number: Bidding) -> None:
    over = one_round("As 9d 2h Kc 7s", ("quit", number, "quit", "quit"))

    assert over.payoffs == (-2, +6, -2, -2)


def test_H9_four_quitters_lose_two_each() -> None:
    over = one_round("As 9d 2h Kc 7s", QUIT)

    assert over.payoffs == (-2, -2, -2, -2)
    assert over.last_bid is None


# ---- H10: what stays hidden


def test_H10_everybody_learns_the_cards_of_those_who_stayed() -> None:
    table = SteppedMatch(shuffle_of("As 9d 2h Kc 7s")).say(*KEEP, 4, "quit", 4, 4)

    for seat in range(4):
        assert table.heard(seat, RoundOver)[0].cards == ("As", None, "2h", "Kc")


def test_H10_quitters_cards_stay_hidden_from_everybody() -> None:
    table = SteppedMatch(shuffle_of("As 9d 2h Kc 7s")).rounds(*[QUIT] * 2)

    assert all(news.cards == (None,) * 4 for news in table.heard(0, RoundOver))
    told = [cards_in(tell.news) for tell in table.told if tell.seat != 1]
    assert "9d" not in set().union(*told)


def test_H10_a_quitters_old_card_was_seen_when_it_was_swapped() -> None:
    table = SteppedMatch(shuffle_of("As 9d 2h Kc 7s")).say("keep", "swap", "keep", "keep")
    table.say(2, "quit", 2, 2)

    assert table.heard(0, Swapped)[1].dealer_card == "9d"
    assert table.over.cards == ("As", None, "2h", "Kc")


# ---- H11: the end of a match


def test_H11_ends_after_a_shuffle_with_second_and_third_a_gap_apart() -> None:
    assert lone_stayers("01--------", gap=8) == (1, (-12, -12, -20, -20))


def test_H11_goes_on_while_they_are_less_than_a_gap_apart() -> None:
    assert lone_stayers("01--------", "01--------", gap=9)[0] == 2


def test_H11_the_first_score_does_not_matter() -> None:
    assert lone_stayers("0000000---", "1---------", gap=8)[0] == 2


def test_H11_looks_at_the_scores_after_a_shuffle_only() -> None:
    assert lone_stayers("01------23", "01--------", gap=8)[0] == 2


def test_H11_ends_after_max_shuffles_with_a_smaller_gap() -> None:
    assert lone_stayers("01--------", "----------", max_shuffles=2) == (2, (-32, -32, -40, -40))


def test_H11_the_default_gap_is_a_hundred() -> None:
    # Twelve times 8 is 96, and the thirteenth time makes it 104.
    played, scores = lone_stayers(
        "0101010101", "0101010101", "0101------", "0---------", "1---------"
    )

    assert played == 5
    assert sorted(scores)[2] - sorted(scores)[1] == 104


def test_H11_the_default_is_fifty_shuffles() -> None:
    assert lone_stayers("01--------", *["----------"] * 49)[0] == 50


@pytest.mark.parametrize(
    ("scores", "seats"),
    [
        ((30, 20, -20, -30), (0, 1)),
        ((-30, 20, -20, 30), (1, 3)),
        ((5, 5, -5, -5), (0, 1)),
        ((-4, -3, -2, -1), (2, 3)),
        ((7, 0, 7, 7), (0, 2, 3)),
    ],
)
def test_H11_the_two_lowest_are_eliminated(scores: tuple[int, ...], seats: tuple[int, ...]) -> None:
    assert advancing(scores) == seats


# ---- H12: second and third level


NOBODY = "-" * 10


def test_H12_level_at_the_end_one_more_shuffle_is_played() -> None:
    assert lone_stayers(NOBODY, "01--------", max_shuffles=1)[0] == 2


def test_H12_any_difference_ends_the_extra_shuffles() -> None:
    played, scores = lone_stayers(
        "2---------", "2---------", "2---------", "1---------", max_shuffles=2, gap=100
    )

    assert (played, scores) == (4, (-80, -72, -56, -80))


def test_H12_at_most_ten_more_shuffles() -> None:
    played, scores = lone_stayers(*[NOBODY] * 13, max_shuffles=3)

    assert played == 13
    assert advancing(scores) == (0, 1, 2, 3)


def test_H12_the_tenth_extra_shuffle_may_still_decide() -> None:
    played, scores = lone_stayers(*[NOBODY] * 10, "13--------", max_shuffles=1)

    assert played == 11
    assert advancing(scores) == (1, 3)


def test_H12_first_and_second_level_is_no_tie_at_the_cut() -> None:
    assert lone_stayers("01--------", max_shuffles=1)[0] == 1


def test_H12_third_and_fourth_level_is_no_tie_at_the_cut() -> None:
    assert lone_stayers("001-------", max_shuffles=1)[0] == 1


@pytest.mark.parametrize(
    ("scores", "seats"),
    [
        ((9, 5, 5, 1), (0, 1, 2)),
        ((1, 5, 9, 5), (1, 2, 3)),
        ((9, 5, 5, 5), (0, 1, 2, 3)),
        ((0, 0, 0, 0), (0, 1, 2, 3)),
    ],
)
def test_H12_all_who_tie_at_the_cut_advance(
    scores: tuple[int, ...], seats: tuple[int, ...]
) -> None:
    assert advancing(scores) == seats


# ---- H13: an offence


class Offender(Random):
    """Bids 3 in the first round, when it is its turn."""

    def decide(self, question: Any) -> object:
        return 3 if type(question) is Bid else "keep"


def test_H13_an_offence_ends_the_match_at_once() -> None:
    result = play("high_low", [Random(), Random(), Offender(), Random()], seed=1)

    assert (result.termination.kind, result.termination.seat) == (Ending.ILLEGAL, 2)
    assert len(result.record.answers) == 6
    assert result.scores == (0, 0, 0, 0)


def test_H13_the_scores_are_as_they_stood() -> None:
    table = SteppedMatch(PACK).rounds((2, "quit", "quit", "quit")).say("keep")

    table.match.end(Ending.TIMEOUT, 2, "seat 3 was out of time")

    assert table.match.result().scores == (+6, -2, -2, -2)


def test_H13_the_other_three_advance_whatever_the_scores() -> None:
    assert survivors((100, 50, 0, -150), offender=0) == (1, 2, 3)
    assert survivors((100, 50, 0, -150), offender=3) == (0, 1, 2)
    assert survivors((0, 0, 0, 0), offender=2) == (0, 1, 3)


def test_H13_without_an_offence_the_scores_decide() -> None:
    assert survivors((100, 50, 0, -150)) == (0, 1)
    assert survivors((9, 5, 5, 1), None) == (0, 1, 2)


# ---- Any match: random legal play-outs


def cards_in(message: object) -> set[str]:
    """All cards that a question or news mentions."""
    text = msgspec.json.encode(message).decode()
    return set(re.findall(r'"([2-9TJQKA][shdc])"', text))


class MatchChecker:
    """Follows a match from its decks and answers alone, and checks all that anybody is told."""

    def __init__(self, decks: Sequence[Sequence[str]]) -> None:
        self.cards = iter(card for deck in decks for card in deck[:50])
        self.round = self.shuffle = 0
        self.hands: list[str] = []
        self.dealer_card = ""
        self.may_know: list[set[str]] = [set() for _ in range(4)]
        self.bids: dict[int, Bidding] = {}
        self.scores = [0] * 4

    def tell(self, tell: TellSeat) -> None:
        """Keep the books, then see that nobody is told more than it may know."""
        news: Any = tell.news
        if type(news) is Dealt and news.round > self.round:
            self._deal(news)
        elif type(news) is Swapped and news.swapped:
            old = self.hands[news.seat]
            self.hands[news.seat], self.dealer_card = self.dealer_card, old
            self._show([old])
        elif type(news) is RoundOver:
            self._end(news)
        for seat in range(4):
            if tell.seat in (seat, EVERYONE):
                assert cards_in(news) <= self.may_know[seat]

    def ask(self, seat: int, question: Any) -> None:
        """A question shows a seat the two cards that it sees at that moment."""
        assert (question.card, question.dealer_card) == (self.hands[seat], self.dealer_card)
        assert cards_in(question) <= self.may_know[seat]

    def _deal(self, news: Dealt) -> None:
        assert news.round == self.round + 1
        if news.shuffle != self.shuffle:
            self.may_know = [set() for _ in range(4)]  # of this shuffle
        self.round, self.shuffle = news.round, news.shuffle
        self.hands = list(itertools.islice(self.cards, 4))
        self.dealer_card = next(self.cards)
        self.bids = {}
        self._show([self.dealer_card])
        for seat in range(4):
            self.may_know[seat].add(self.hands[seat])

    def _end(self, news: RoundOver) -> None:
        stayers = [seat for seat in range(4) if self.bids[seat] != "quit"]
        assert [seat for seat in range(4) if news.cards[seat] is not None] == stayers
        self._show([self.hands[seat] for seat in stayers])
        assert sum(news.payoffs) == (0 if stayers else -8)
        self.scores = [sum(both) for both in zip(self.scores, news.payoffs, strict=True)]
        assert news.scores == tuple(self.scores)

    def _show(self, cards: Iterable[str]) -> None:
        for known in self.may_know:
            known.update(cards)


ILLEGAL = [True, False, 4.0, "4", "2", 0, 3, 12, None, "fold", [], ["keep"], {}]


def refuses(match: MatchState) -> None:
    """No illegal answer changes anything."""
    asked = match.pending
    assert asked is not None
    before = (asked, list(match.news), list(match.answers), match.scores)
    wrong = ILLEGAL + [bid for bid in (2, 4, 6, 8) if bid not in asked.question.legal]  # type: ignore[attr-defined]
    for answer in wrong:
        with pytest.raises(IllegalAnswer):
            match.answer(answer)
    assert (match.pending, match.news, match.answers, match.scores) == before
    assert match.termination is None


def play_out(seed: int, max_shuffles: int, curious: float) -> MatchResult:
    """A match of random legal answers, watched."""
    rng = random.Random(seed)
    decks = [rng.sample(PACK, 52) for _ in range(max_shuffles + 10)]
    values = {"gap": 30, "max_shuffles": max_shuffles}
    watcher = MatchChecker(decks)
    match = MatchState(GAME, GAME.vocabulary.read_settings(values), decks=decks)
    while True:
        for tell in match.take_news():
            watcher.tell(tell)
        if match.pending is None:
            return match.result()
        seat, question = match.pending.seat, match.pending.question
        watcher.ask(seat, question)
        if rng.random() < curious:
            refuses(match)
        answer: Any = rng.choice(question.choices)  # type: ignore[arg-type]
        if type(question) is Bid:
            watcher.bids[seat] = answer
        match.answer(answer)


@given(seed=st.integers(0, 2**32), max_shuffles=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_H10_nobody_is_told_a_card_it_may_not_know_and_points_are_conserved(
    seed: int, max_shuffles: int
) -> None:
    result = play_out(seed, max_shuffles, curious=0.1)

    assert result.termination.kind is Ending.COMPLETED
    assert replay(Record.from_json(result.record.to_json())) == result


def test_the_same_seed_and_answers_give_the_same_bytes() -> None:
    def once() -> bytes:
        bots = [Random() for _ in range(4)]
        for number, bot in enumerate(bots):
            bot.seed(number)
        result = play("high_low", bots, seed=7, settings=SHORT)
        assert replay(Record.from_json(result.record.to_json())) == result
        return result.record.to_json()

    assert once() == once()
