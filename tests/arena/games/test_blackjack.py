"""Blackjack by the rulebook: a test for every paragraph of section B that is the referee's (B12 and
B13 have files of their own).

The tests of B1–B3 take the deck's class from a fixture; `test_blackjack_mutants.py` runs them
against faulty ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arena
from arena.engine.match import MatchResult, MatchState, Record
from arena.engine.shuffle import Stream, seed_from_int
from arena.games.blackjack import GAME, Deck
from arena.games.replay import replay
from protocol.blackjack import (
    MINIMUM,
    NEW_DECK,
    Bet,
    BlackjackSettings,
    Draw,
    Exposed,
    HandOver,
    Shuffled,
)
from protocol.errors import BadDeck, DeckEmpty, IllegalAnswer, OutOfDecks
from protocol.vocabulary import News, Question, Range


class ScriptedPlayer:
    """A player that follows a script, and notes all that it is asked and told.

    Its script is a bet (a number) and then `hit` and `stand`, hand by hand.
    """

    def __init__(self, *script: object) -> None:
        self._script = list(script)
        self.heard: list[News] = []
        self.asked: list[Question[Any]] = []

    def decide(self, question: Question[Any]) -> object:
        self.asked.append(question)
        return self._script.pop(0)

    def hear(self, news: News) -> None:
        self.heard.append(news)

    def reset(self) -> None:
        pass

    @property
    def hands(self) -> list[HandOver]:
        return [news for news in self.heard if isinstance(news, HandOver)]

    @property
    def hand(self) -> HandOver:
        (only,) = self.hands
        return only

    @property
    def seen(self) -> list[str]:
        """The exposed cards, the dealer's in brackets."""
        return [
            news.card if news.to == "player" else f"({news.card})"
            for news in self.heard
            if isinstance(news, Exposed)
        ]

    @property
    def story(self) -> list[str]:
        """Kinds of all that was told, and of what was asked, without the cards."""
        return [news.kind for news in self.heard if not isinstance(news, Exposed)]


def play(
    deck: str | Iterable[str], *script: object, bankroll: int = 100, hands: int = 0
) -> ScriptedPlayer:
    """Play hands from fairly shuffled decks that read `player dealer player hole draws…`."""
    decks = [deck] if isinstance(deck, str) else deck
    table = ScriptedPlayer(*script)
    bets = sum(isinstance(answer, int) for answer in script)
    result = arena.play(
        "blackjack",
        [table],
        settings={"bankroll": bankroll, "hands": hands or bets, "shuffle": "uniform"},
        decks=[cards.split() for cards in decks],
    )
    assert result.termination.kind == "completed"
    assert result.scores == (sum(hand.payoff for hand in table.hands),)
    return table


def riffle(
    cuts: Iterable[int], *script: object, bankroll: int = 100, hands: int = 1
) -> tuple[ScriptedPlayer, MatchResult]:
    table = ScriptedPlayer(*script)
    result = arena.play(
        "blackjack", [table], settings={"bankroll": bankroll, "hands": hands}, decks=cuts
    )
    return table, result


def dealt(deck: Deck, n: int = 52) -> str:
    return " ".join(deck.deal() for _ in range(n))


@pytest.fixture
def deck_class() -> type[Deck]:
    return Deck


# --- B1-B3: the deck ---


def test_B1_the_two_of_spades_is_dealt_first(deck_class: type[Deck]) -> None:
    assert dealt(deck_class(), 14) == "2s 3s 4s 5s 6s 7s 8s 9s Ts Js Qs Ks As 2h"


def test_B1_then_hearts_clubs_and_diamonds(deck_class: type[Deck]) -> None:
    deck = deck_class()
    cards = dealt(deck).split()

    assert [card[1] for card in cards[::13]] == ["s", "h", "c", "d"]
    assert cards[26:28] == ["2c", "3c"]
    assert cards[51] == "Ad"


def test_B1_reset_takes_a_new_deck(deck_class: type[Deck]) -> None:
    deck = deck_class()
    deck.shuffle(26)
    dealt(deck, 10)

    deck.reset()

    assert deck.cards_left == 52
    assert dealt(deck, 3) == "2s 3s 4s"


def test_B2_cut_in_half_a_new_deck_interleaves_right_left(deck_class: type[Deck]) -> None:
    deck = deck_class()

    deck.shuffle(26)

    cards = dealt(deck)
    assert cards.startswith("2c 2s 3c 3s 4c 4s")
    assert cards.endswith("Kd Kh Ad Ah")


def test_B2_what_remains_of_a_longer_right_part_follows(deck_class: type[Deck]) -> None:
    deck = deck_class()

    deck.shuffle(3)

    assert dealt(deck, 10) == "5s 2s 6s 3s 7s 4s 8s 9s Ts Js"
    assert dealt(deck, 42).endswith("Kd Ad")


def test_B2_what_remains_of_a_longer_left_part_follows(deck_class: type[Deck]) -> None:
    deck = deck_class()

    deck.shuffle(50)

    assert dealt(deck, 8) == "Kd 2s Ad 3s 4s 5s 6s 7s"
    assert dealt(deck, 44).endswith("Jd Qd")


def test_B2_cutting_0_or_52_changes_nothing(deck_class: type[Deck]) -> None:
    deck = deck_class()

    deck.shuffle(0)
    deck.shuffle(52)

    assert dealt(deck, 52) == " ".join(NEW_DECK)


def test_B2_restores_dealt_cards_in_the_order_dealt(deck_class: type[Deck]) -> None:
    deck = deck_class()
    dealt(deck, 30)

    deck.shuffle(0)

    assert deck.cards_left == 52
    assert dealt(deck, 52) == " ".join(NEW_DECK)


def test_B2_a_second_shuffle_goes_on_from_the_first(deck_class: type[Deck]) -> None:
    deck = deck_class()
    deck.shuffle(26)
    dealt(deck, 5)

    deck.shuffle(26)

    assert dealt(deck, 6) == "2d 2c 2h 2s 3d 3c"


def test_B2_no_card_is_lost_whatever_the_cut(deck_class: type[Deck]) -> None:
    deck = deck_class()
    for cut in range(53):
        deck.shuffle(cut)
        assert sorted(dealt(deck).split()) == sorted(NEW_DECK)


def test_B2_refuses_a_cut_outside_0_to_52(deck_class: type[Deck]) -> None:
    deck = deck_class()
    wrong: list[Any] = [-1, 53, 26.0, "26", True, None]
    for cut in wrong:
        with pytest.raises(ValueError, match="cut from 0 to 52"):
            deck.shuffle(cut)

    assert dealt(deck) == " ".join(NEW_DECK)


def test_B3_dealing_from_an_empty_deck_is_an_error_of_its_own(deck_class: type[Deck]) -> None:
    deck = deck_class()
    dealt(deck, 52)

    for _ in range(2):
        with pytest.raises(DeckEmpty, match="all 52 are dealt"):
            deck.deal()
    assert deck.cards_left == 0


def test_B3_cards_left_counts_the_undealt(deck_class: type[Deck]) -> None:
    deck = deck_class()
    left = [deck.cards_left]
    for _ in range(52):
        deck.deal()
        left.append(deck.cards_left)

    assert left == list(range(52, -1, -1))


# --- B5, B6: a match ---


def test_B5_the_deck_is_shuffled_by_seven_cuts_before_hand_1() -> None:
    table, result = riffle([26, 0, 0, 0, 0, 0, 0], 5, "stand")

    # 2c 2s 3c 3s 4c 4s 5c: the dealer has 2+3 and draws 4, 4, 5.
    assert table.seen == ["2c", "(2s)", "3c", "(3s)", "(4c)", "(4s)", "(5c)"]
    assert isinstance(table.heard[0], Shuffled)
    assert result.record.decks == (26, 0, 0, 0, 0, 0, 0)


def test_B5_each_cut_is_13_to_39_at_random() -> None:
    cuts = GAME.deals(BlackjackSettings(), Stream(seed_from_int(1)))
    drawn = Counter(islice(cuts, 27_000))

    assert sorted(drawn) == list(range(13, 40))
    assert all(abs(times - 1000) < 6 * 1000**0.5 for times in drawn.values())


def test_B5_a_bankroll_of_exactly_5_plays() -> None:
    table = play("Ts Th 8s 9h", 5, "stand", bankroll=5)

    assert table.hand.bankroll == 0


def test_B5_a_bankroll_below_5_plays_no_hand() -> None:
    table = play("", bankroll=4, hands=3)

    assert table.story == ["shuffled"]
    assert table.asked == []


def test_B5_the_match_ends_when_the_bankroll_is_below_5() -> None:
    table = play("Ts Th 8s 9h", 5, "stand", bankroll=9, hands=10)

    assert [hand.bankroll for hand in table.hands] == [4]


def test_B5_the_match_ends_after_its_hands() -> None:
    table = play("Ts Th 8s 9h Js Jh 9s 8h", 5, "stand", 5, "stand", hands=2)

    assert [hand.bankroll for hand in table.hands] == [95, 100]


def test_B5_no_hands_is_a_match_too() -> None:
    table, result = riffle([0] * 7, hands=0)

    assert table.story == ["shuffled"]
    assert result.scores == (0,)


# Eight hands of four cards each: the player stands on 20 or less, the dealer has 17 or 18.
EIGHT_HANDS = (
    "2s Ts 3s 7s 4s Th 5s 7h 6s Tc 2h 7c 3h Td 4h 7d "
    "5h Js 6h 8s 2c Jh 3c 8h 4c Jc 5c 8c 6c Jd 2d 8d"
)
LAST_20 = "3d 4d 5d 6d 9s 9h 9c 9d Qs Qh Qc Qd Ks Kh Kc Kd As Ah Ac Ad"


def test_B6_with_exactly_20_cards_left_the_deck_is_not_shuffled() -> None:
    nine = [5, "stand"] * 9

    table = play(f"{EIGHT_HANDS} {LAST_20}", *nine)

    assert table.story == ["shuffled"] + ["hand_over"] * 9
    # The ninth hand came from the cards that were left: 3+5 against 4+6, 9.
    assert table.hands[8].player == ("3d", "5d")
    assert table.hands[8].dealer == ("4d", "6d", "9s")


def test_B6_with_19_cards_left_the_deck_is_shuffled_before_the_bet() -> None:
    script = [5, "stand"] * 7 + [5, "hit", "stand"] + [5, "stand"]

    table = play([f"{EIGHT_HANDS} {LAST_20}", "Ts Th 8s 9h"], *script)

    assert table.story == ["shuffled"] + ["hand_over"] * 8 + ["shuffled", "hand_over"]
    assert table.hands[7].player == ("6c", "2d", "3d")
    assert table.hands[8].player == ("Ts", "8s")


def test_B6_a_reshuffle_keeps_the_order_in_which_the_deck_stands() -> None:
    cuts = [26, 0, 0, 0, 0, 0, 0] + [0] * 7
    # From 2c 2s 3c 3s … five busts take 8 + 6 + 5 + 5 + 9 = 33 cards.
    busts = [answer for hits in (4, 2, 1, 1, 5) for answer in (5, *["hit"] * hits)]

    table, result = riffle(cuts, *busts, 5, "stand", hands=6)

    assert [hand.outcome for hand in table.hands] == ["bust"] * 5 + ["lose"]
    assert table.story[-3:] == ["hand_over", "shuffled", "hand_over"]
    # Not 2s 3s 4s 5s, as from a new deck.
    assert table.hands[5].player == ("2c", "3c")
    assert table.hands[5].dealer == ("2s", "3s", "4c", "4s", "5c")
    assert result.record.decks == tuple(cuts)


def test_B6_a_bet_is_asked_from_the_minimum_to_the_bankroll() -> None:
    table = play("Ts Th 8s 9h Js Jh 9s 8h", 30, "stand", 5, "stand")

    bets = [question for question in table.asked if isinstance(question, Bet)]
    assert bets == [Bet(1, 100, Range(5, 100)), Bet(2, 70, Range(5, 70))]


def test_B6_the_whole_bankroll_may_be_bet() -> None:
    assert play("Ts Th 9s 8h", 100, "stand").hand.bankroll == 200


# --- B7-B11: a hand ---


def test_B7_cards_go_to_player_dealer_player_and_face_down_to_the_dealer() -> None:
    table = play("Ts Th 9s 8h", 5, "stand")

    assert table.seen == ["Ts", "(Th)", "9s", "(8h)"]
    assert table.asked[1] == Draw("Th", ("Ts", "9s"), 19, False)


def test_B8_a_natural_on_a_bet_of_5_pays_7() -> None:
    hand = play("As 9h Ks 2c", 5).hand

    assert (hand.outcome, hand.payoff, hand.bankroll) == ("natural", 7, 107)


def test_B8_a_natural_on_a_bet_of_10_pays_15() -> None:
    assert play("Ts 9h As 2c", 10).hand.payoff == 15


def test_B8_a_natural_is_paid_against_a_natural() -> None:
    hand = play("As Ah Ks Kh", 5).hand

    assert (hand.outcome, hand.payoff) == ("natural", 7)


def test_B8_a_natural_is_not_asked_and_the_hole_card_not_shown() -> None:
    table = play("As Ah Ks Kh", 5)

    assert [question.kind for question in table.asked] == ["bet"]
    assert table.seen == ["As", "(Ah)", "Ks"]
    assert table.hand.dealer == ("Ah",)


def test_B8_a_21_of_three_cards_is_no_natural() -> None:
    hand = play("7s Th 7h 8h 7c", 5, "hit", "stand").hand

    assert (hand.outcome, hand.payoff) == ("win", 5)


def test_B9_the_player_hits_until_it_stands() -> None:
    table = play("2s Th 3s 8h 4s 5s", 5, "hit", "hit", "stand")

    assert table.asked[1:] == [
        Draw("Th", ("2s", "3s"), 5, False),
        Draw("Th", ("2s", "3s", "4s"), 9, False),
        Draw("Th", ("2s", "3s", "4s", "5s"), 14, False),
    ]


def test_B9_a_bust_loses_at_once_and_the_hole_card_is_not_shown() -> None:
    # The dealer's 16 would have busted on the next card.
    table = play("Ts Th 6s 6h Ks Qs", 5, "hit")

    assert table.seen == ["Ts", "(Th)", "6s", "Ks"]
    assert table.hand == HandOver(5, ("Ts", "6s", "Ks"), ("Th",), "bust", -5, 95)


def test_B9_at_21_the_player_is_still_asked() -> None:
    table = play("Ts Th 6s 8h 5s", 5, "hit", "stand")

    assert table.asked[2] == Draw("Th", ("Ts", "6s", "5s"), 21, False)
    assert table.hand.outcome == "win"


def test_B9_hitting_a_hard_21_busts() -> None:
    assert play("Ts Th 6s 8h 5s As", 5, "hit", "hit").hand.outcome == "bust"


def test_B9_a_soft_hand_does_not_bust_on_a_ten() -> None:
    table = play("As Th 7s 8h Ks", 5, "hit", "stand")

    draws = [q for q in table.asked if isinstance(q, Draw)]
    assert [(q.total, q.soft) for q in draws] == [(18, True), (18, False)]


def test_B10_the_dealer_hits_16() -> None:
    hand = play("Ts Th 8s 6h 2c", 5, "stand").hand

    assert hand.dealer == ("Th", "6h", "2c")
    assert (hand.outcome, hand.payoff) == ("push", 0)


def test_B10_the_dealer_hits_a_soft_16() -> None:
    assert play("Ts Ah 8s 5h 5c", 5, "stand").hand.dealer == ("Ah", "5h", "5c")


def test_B10_the_dealer_stands_on_hard_17() -> None:
    hand = play("Ts Th 8s 7h", 5, "stand").hand

    assert (hand.dealer, hand.outcome) == (("Th", "7h"), "win")


def test_B10_the_dealer_stands_on_soft_17() -> None:
    hand = play("Ts Ah 8s 6h", 5, "stand").hand

    assert (hand.dealer, hand.outcome) == (("Ah", "6h"), "win")


def test_B10_the_dealer_stands_on_soft_18() -> None:
    hand = play("Ts Ah 9s 7h", 5, "stand").hand

    assert (hand.dealer, hand.outcome) == (("Ah", "7h"), "win")


def test_B10_the_dealer_busts() -> None:
    hand = play("2s Th 3s 6h Kc", 8, "stand").hand

    assert (hand.outcome, hand.payoff, hand.bankroll) == ("dealer_busts", 8, 108)


def test_B10_the_dealer_busts_with_exactly_22() -> None:
    hand = play("Ts Th Js 6h 6c", 8, "stand").hand

    assert hand.dealer == ("Th", "6h", "6c")
    assert (hand.outcome, hand.payoff, hand.bankroll) == ("dealer_busts", 8, 108)


def test_B10_the_dealer_does_not_bust_with_exactly_21() -> None:
    hand = play("Ts Th Js 6h 5c", 8, "stand").hand

    assert (hand.outcome, hand.payoff, hand.bankroll) == ("lose", -8, 92)


def test_B10_the_lower_total_loses() -> None:
    hand = play("Ts Th 8s 9h", 8, "stand").hand

    assert (hand.outcome, hand.payoff, hand.bankroll) == ("lose", -8, 92)


def test_B10_a_dealers_natural_is_a_21_like_any_other() -> None:
    hand = play("7s Ah 7h Kh 7c", 5, "hit", "stand").hand

    assert (hand.outcome, hand.payoff) == ("push", 0)


def test_B11_the_player_is_told_its_own_cards_and_the_dealers_as_they_are_shown() -> None:
    table = play("2s 3h 9s 4h 8s 5h Kd", 5, "hit", "stand")

    assert table.seen == ["2s", "(3h)", "9s", "8s", "(4h)", "(5h)", "(Kd)"]


def test_B11_the_hole_card_is_not_told_before_the_player_stands() -> None:
    match = MatchState(GAME, BlackjackSettings(shuffle="uniform"), decks=["2s 3h 9s Kh 8s".split()])
    for answer in (5, "hit"):
        match.answer(answer)

    assert not any("Kh" in str(tell) for tell in match.take_news())


def test_B11_shuffles_are_told_but_not_the_cuts() -> None:
    table, _ = riffle([26, 13, 39, 20, 30, 25, 14], 5, "stand")

    assert table.heard[0] == Shuffled()
    assert Shuffled.__struct_fields__ == ()


def test_B14_cuts_can_be_supplied() -> None:
    one, _ = riffle([20, 21, 22, 23, 24, 25, 26], 5, "stand")
    other, _ = riffle(iter([20, 21, 22, 23, 24, 25, 26]), 5, "stand")

    assert one.heard == other.heard


def test_B14_uniform_deals_whole_decks_and_riffle_cuts() -> None:
    stream = Stream(seed_from_int(1))
    fair = GAME.deals(BlackjackSettings(shuffle="uniform"), stream)
    first, second = next(fair), next(fair)

    assert sorted(first) == sorted(second) == sorted(NEW_DECK)
    assert first != second
    assert type(next(GAME.deals(BlackjackSettings(), stream))) is int


# --- What is given from outside ---


@pytest.mark.parametrize("cut", [-1, 53, 26.0, "26", True, None, ["As"]])
def test_a_cut_that_is_none_is_refused(cut: Any) -> None:
    with pytest.raises(BadDeck, match="cut from 0 to 52"):
        riffle([26] * 6 + [cut], 5, "stand")


@pytest.mark.parametrize("deck", [26, ["1x"], ["As", "As"], "As", [3], None])
def test_a_deck_that_is_none_is_refused(deck: Any) -> None:
    settings = BlackjackSettings(shuffle="uniform")

    with pytest.raises(BadDeck):
        MatchState(GAME, settings, decks=[deck])


def test_too_few_cuts_are_the_callers_error() -> None:
    with pytest.raises(OutOfDecks):
        riffle([26] * 6, 5, "stand")


def test_a_deck_may_be_short_but_not_shorter_than_what_is_dealt() -> None:
    with pytest.raises(DeckEmpty, match="all 5 are dealt"):
        play("Ts Th 2s 2h 4d", 5, "stand")


def test_an_offence_costs_the_whole_bankroll() -> None:
    result = arena.play(
        "blackjack",
        [ScriptedPlayer(50, "stand", 4)],
        settings={"shuffle": "uniform"},
        decks=["Ts Th 9s 8h".split()],
    )

    assert (result.termination.kind, result.termination.seat) == ("illegal", 0)
    assert result.scores == (-100,)


# --- Properties of any match ---

WRONG_BETS: st.SearchStrategy[object] = st.sampled_from([4, 10**9, True, 5.0, "5", None, -5, [5]])
WRONG_DRAWS: st.SearchStrategy[object] = st.sampled_from(
    [True, 1, "HIT", b"hit", None, 17, ["hit"], {}]
)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60), st.sampled_from(["riffle", "uniform"]), st.data())
def test_random_matches_keep_the_rules(
    seed: int, bankroll: int, shuffle: Any, data: st.DataObject
) -> None:
    rules = BlackjackSettings(bankroll=bankroll, hands=12, shuffle=shuffle)
    match = MatchState(GAME, rules, seed=seed_from_int(seed))
    told: list[News] = []
    chips = bankroll
    stood = False
    while True:
        news = [tell.news for tell in match.take_news()]
        told += news
        for item in news:
            if isinstance(item, HandOver):
                _check_hand_over(item, told, chips, stood)
                chips = item.bankroll
        assert match.scores == (chips - bankroll,)
        if match.pending is None:
            break
        question = match.pending.question
        if isinstance(question, Bet):
            assert (question.bankroll, question.legal.max) == (chips, chips)
            told = []
            answer: object = data.draw(st.integers(MINIMUM, min(chips, 20)))
            _refuses(match, data.draw(WRONG_BETS))
        else:
            # Until it stands, one of the dealer's cards alone is seen: the hole card is not.
            assert sum(isinstance(n, Exposed) and n.to == "dealer" for n in told) == 1
            answer = data.draw(st.sampled_from(["hit", "stand"]))
            _refuses(match, data.draw(WRONG_DRAWS))
        stood = answer == "stand"
        match.answer(answer)

    result = match.result()
    assert chips >= 0
    again = replay(Record.from_json(result.record.to_json()))
    assert again == result


def _check_hand_over(over: HandOver, told: list[News], chips: int, stood: bool) -> None:
    """A hand pays what its outcome says, and its cards are those that were exposed."""
    exposed = [news for news in told if isinstance(news, Exposed)]
    assert over.player == tuple(n.card for n in exposed if n.to == "player")
    assert over.dealer == tuple(n.card for n in exposed if n.to == "dealer")
    assert (len(over.dealer) > 1) == stood
    assert over.bankroll == chips + over.payoff
    assert over.payoff in (-over.bet, 0, over.bet, over.bet * 3 // 2)


def _refuses(match: MatchState, value: object) -> None:
    """An illegal answer changes nothing."""
    before = match.pending, list(match.news), list(match.answers), match.scores
    with pytest.raises(IllegalAnswer):
        match.answer(value)
    after = match.pending, list(match.news), list(match.answers), match.scores
    assert before == after


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 52), min_size=70, max_size=70))
def test_a_replay_from_the_cuts_gives_the_same_result(cuts: list[int]) -> None:
    match = MatchState(GAME, BlackjackSettings(hands=8), decks=cuts)
    while match.pending is not None:
        match.answer(5 if isinstance(match.pending.question, Bet) else "stand")
    result = match.result()

    assert replay(Record.from_json(result.record.to_json())) == result
