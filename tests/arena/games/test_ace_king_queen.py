"""Ace-King-Queen, paragraph by paragraph (rulebook, section A)."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arena
from arena.engine.match import MatchState, Record
from arena.engine.rules import EVERYONE, AskSeat
from arena.engine.shuffle import Stream
from arena.games.ace_king_queen import GAME, deals, stacked
from arena.games.replay import replay
from bots.ace_king_queen import Learner, Nash
from protocol.ace_king_queen import AceKingQueenSettings, HandOver, Open, Respond
from protocol.errors import BadDeck, BadSettings, IllegalAnswer, OutOfDecks

BET: Literal["bet"] = "bet"
CHECK: Literal["check"] = "check"
CALL: Literal["call"] = "call"
FOLD: Literal["fold"] = "fold"

DEALS = ["".join(deck) for deck in itertools.permutations("AKQ", 2)]


# ---- Helpers that read like play


def sit_down(*decks: str, hands: int | None = None) -> MatchState:
    """A match with these decks, the first letter seat 0's card and the second seat 1's."""
    settings = AceKingQueenSettings(hands=len(decks) if hands is None else hands)
    return MatchState(GAME, settings, decks=decks)


def say(match: MatchState, *answers: str) -> MatchState:
    for answer in answers:
        match.answer(answer)
    return match


def play(deck: str, *answers: str) -> tuple[int, ...]:
    """What each seat nets in one hand in which seat 0 is the betting player."""
    return say(sit_down(deck), *answers).result().scores


def play_second(deck: str, *answers: str) -> tuple[int, ...]:
    """The same for a hand in which seat 1 is the betting player."""
    match = say(sit_down("AK", deck), CHECK, *answers)
    told: Any = match.take_news()[-1].news
    scores: tuple[int, ...] = told.payoffs
    return scores


def heard(match: MatchState) -> list[HandOver]:
    """What both seats have heard since the last time."""
    news = match.take_news()
    assert all(tell.seat == EVERYONE for tell in news)
    return [tell.news for tell in news if isinstance(tell.news, HandOver)]


class Calm:
    """Always checks and always calls; counts its resets."""

    def __init__(self) -> None:
        self.resets = 0
        self.heard: list[Any] = []

    def decide(self, question: Any) -> object:
        return question.legal[1] if isinstance(question, Open) else CALL

    def hear(self, news: Any) -> None:
        self.heard.append(news)

    def reset(self) -> None:
        self.resets += 1


# ---- A1


@pytest.mark.parametrize("deck", ["AK", "AQ", "KQ"])
def test_A1_ace_beats_king_beats_queen(deck: str) -> None:
    assert play(deck, CHECK) == (+1, -1)
    assert play(deck[::-1], CHECK) == (-1, +1)


def test_A1_the_first_card_of_a_stacked_deck_goes_to_seat_0() -> None:
    match = sit_down("KA")

    assert match.pending == AskSeat(0, Open(1, "K"))
    say(match, BET)
    assert match.pending == AskSeat(1, Respond(1, "A"))


def test_A1_the_third_card_may_be_in_the_deck_or_not() -> None:
    assert play("AKQ", CHECK) == play("AK", CHECK)


@pytest.mark.parametrize("deck", ["AA", "A", "", "AX", "ak", "AKQA", "As Ks".split()])
def test_A1_there_are_three_cards(deck: str) -> None:
    with pytest.raises(BadDeck):
        sit_down(deck)


def test_A1_all_six_deals_are_equally_likely() -> None:
    stream = deals(AceKingQueenSettings(), Stream(b"A1"))
    counts = Counter("".join(next(stream)[:2]) for _ in range(6000))

    assert set(counts) == set(DEALS)
    assert all(abs(count - 1000) < 4 * 29 for count in counts.values())  # √(6000·5/36)


# ---- A2


def test_A2_both_ante_one_chip() -> None:
    assert play("AK", CHECK) == (+1, -1)


def test_A2_the_roles_alternate_every_hand() -> None:
    match = sit_down("AK", "AK", "AK", "AK")
    openers = []
    while match.pending is not None:
        openers.append(match.pending.seat)
        say(match, CHECK)

    assert openers == [0, 1, 0, 1]


def test_A2_the_roles_alternate_after_bets_and_folds_too() -> None:
    match = say(sit_down("AK", "AK", "AK"), BET, FOLD, BET, CALL)

    assert match.pending == AskSeat(0, Open(3, "A"))


def test_A2_the_second_betting_player_is_shown_its_own_card() -> None:
    match = say(sit_down("AK", "QA"), CHECK)

    assert match.pending == AskSeat(1, Open(2, "A"))
    say(match, BET)
    assert match.pending == AskSeat(0, Respond(2, "Q"))


# ---- A3


def test_A3_the_betting_player_sees_its_card_and_bets_or_checks() -> None:
    assert sit_down("QA").pending == AskSeat(0, Open(1, "Q", legal=(BET, CHECK)))


@pytest.mark.parametrize("answer", [CALL, FOLD, "raise", "Bet", "", 1, True, None, 0])
def test_A3_anything_else_is_illegal(answer: object) -> None:
    match = sit_down("AK")

    with pytest.raises(IllegalAnswer):
        match.answer(answer)
    assert match.answers == []


# ---- A4


def test_A4_after_a_bet_the_calling_player_calls_or_folds() -> None:
    match = say(sit_down("QA"), BET)

    assert match.pending == AskSeat(1, Respond(1, "A", legal=(CALL, FOLD)))


def test_A4_after_a_check_it_is_not_asked() -> None:
    assert say(sit_down("QA"), CHECK).pending is None


def test_A4_a_call_costs_one_chip_more() -> None:
    assert play("AK", BET, CALL) == (+2, -2)


@pytest.mark.parametrize("answer", [BET, CHECK, "CALL", 2, False])
def test_A4_anything_else_is_illegal(answer: object) -> None:
    match = say(sit_down("AK"), BET)

    with pytest.raises(IllegalAnswer):
        match.answer(answer)


# ---- A5


@pytest.mark.parametrize("deck", DEALS)
def test_A5_after_a_fold_the_betting_player_takes_the_pot(deck: str) -> None:
    assert play(deck, BET, FOLD) == (+1, -1)
    assert play_second(deck, BET, FOLD) == (-1, +1)


@pytest.mark.parametrize("deck", DEALS)
@pytest.mark.parametrize(("answers", "stake"), [((CHECK,), 1), ((BET, CALL), 2)])
def test_A5_else_the_higher_card_does(deck: str, answers: tuple[str, ...], stake: int) -> None:
    first_is_higher = deck in ("AK", "AQ", "KQ")
    net = (stake, -stake) if first_is_higher else (-stake, stake)

    assert play(deck, *answers) == net
    assert play_second(deck, *answers) == net


# ---- A6


def test_A6_a_fold_still_reveals_both_cards() -> None:
    match = say(sit_down("QK"), BET, FOLD)

    assert heard(match) == [HandOver(1, 0, ("Q", "K"), BET, FOLD, (1, -1), (1, -1))]


def test_A6_a_called_bet_reveals_both_cards_and_actions() -> None:
    match = say(sit_down("QK"), BET, CALL)

    assert heard(match) == [HandOver(1, 0, ("Q", "K"), BET, CALL, (-2, 2), (-2, 2))]


def test_A6_after_a_check_the_callers_action_is_none() -> None:
    match = say(sit_down("QK"), CHECK)

    assert heard(match) == [HandOver(1, 0, ("Q", "K"), CHECK, None, (-1, 1), (-1, 1))]


def test_A6_cards_and_scores_are_by_seat_whoever_bets() -> None:
    match = say(sit_down("AK", "AK"), CHECK, BET, FOLD)

    assert heard(match)[1] == HandOver(2, 1, ("A", "K"), BET, FOLD, (-1, 1), (0, 0))


def test_A6_nothing_is_told_while_the_hand_is_on() -> None:
    match = say(sit_down("QK"), BET)

    assert heard(match) == []


# ---- A7


def test_A7_scores_start_at_zero() -> None:
    assert sit_down("AK").scores == (0, 0)


def test_A7_scores_add_up_and_may_go_negative() -> None:
    match = say(sit_down("KA", "KA", "KA"), BET, CALL, CHECK, BET, CALL)

    assert match.result().scores == (-5, +5)
    assert match.result().winner == 1


@given(st.randoms(use_true_random=False))
def test_A7_scores_always_sum_to_zero(rng: random.Random) -> None:
    match = sit_down(*rng.choices(DEALS, k=10))
    while match.pending is not None:
        say(match, rng.choice(match.pending.question.choices))  # type: ignore[arg-type]

        assert sum(match.scores) == 0
    assert all(sum(news.payoffs) == sum(news.scores) == 0 for news in heard(match))


# ---- A8


def test_A8_a_match_is_a_thousand_hands_by_default() -> None:
    result = arena.play("ace_king_queen", [Calm(), Calm()], seed=1)

    assert len(result.record.answers) == 1000


@pytest.mark.parametrize("hands", [0, 1, 2, 7])
def test_A8_a_match_has_as_many_hands_as_are_set(hands: int) -> None:
    match = sit_down(*["AK"] * hands)
    say(match, *[CHECK] * hands)

    assert match.pending is None
    assert match.termination is not None


def test_A8_both_bet_equally_often_in_an_even_number_of_hands() -> None:
    first, second = Calm(), Calm()
    arena.play("akq", [first, second], settings={"hands": 10}, seed=1)

    assert Counter(news.bettor for news in first.heard) == {0: 5, 1: 5}
    assert first.heard == second.heard


@pytest.mark.parametrize("hands", [-1, True, 2.0, "2", None, 10**9])
def test_A8_a_number_of_hands_that_cannot_be_is_refused(hands: object) -> None:
    with pytest.raises(BadSettings):
        GAME.vocabulary.read_settings({"hands": hands})


def test_A8_too_few_decks_are_no_result() -> None:
    match = sit_down("AK", hands=2)

    with pytest.raises(OutOfDecks):
        say(match, CHECK)


# ---- A9


def test_A9_a_strategy_is_reset_once_before_a_match() -> None:
    strategies = [Calm(), Calm()]
    arena.play("akq", strategies, settings={"hands": 50}, seed=1)

    assert [strategy.resets for strategy in strategies] == [1, 1]


@pytest.mark.parametrize("cls", [Nash, Learner, Calm])
def test_A9_two_instances_of_one_class_may_play_each_other(cls: type[Any]) -> None:
    result = arena.play("akq", [cls(), cls()], settings={"hands": 100}, seed=1)

    assert result.termination.kind == "completed"
    assert sum(result.scores) == 0


def test_A9_one_instance_may_not_play_itself() -> None:
    both = Calm()

    with pytest.raises(ValueError, match="two instances"):
        arena.play("akq", [both, both])
    assert both.resets == 0


# ---- A10: the cross table's own test is with the tables; what it rests on is here


def test_A10_every_strategy_can_meet_every_strategy_and_itself() -> None:
    classes = [Nash, Learner, Calm]
    for first, second in itertools.product(classes, repeat=2):
        pair: list[Any] = [first(), second()]
        result = arena.play("akq", pair, settings={"hands": 10}, seed=1)

        assert result.termination.kind == "completed"


# ---- Properties


def check_legal_play(match: MatchState, rng: random.Random) -> None:
    """Play to the end at random, and look at everything on the way."""
    known: dict[int, set[str]] = {0: set(), 1: set()}
    hands = 0
    while match.pending is not None:
        seat, question = match.pending.seat, match.pending.question
        assert isinstance(question, Open | Respond)
        for wrong in (True, 4.0, "4", None, "raise", (), question):
            before = (match.pending, list(match.answers), match.scores, list(match.news))
            with pytest.raises(IllegalAnswer):
                match.answer(wrong)
            assert before == (match.pending, match.answers, match.scores, match.news)
        known[seat].add(question.card)
        assert all(len(cards) <= 1 for cards in known.values()), "its own card only"
        assert seat == (hands if isinstance(question, Open) else hands + 1) % 2
        match.answer(rng.choice(question.legal))
        for news in heard(match):
            hands += 1
            for which in (0, 1):
                assert known[which] <= {news.cards[which]}
                known[which] = set()
            assert sum(news.payoffs) == 0
            assert abs(news.payoffs[0]) in (1, 2)
            assert news.round == hands
            assert (news.response is None) == (news.open == CHECK)


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_any_legal_play_keeps_the_rules(rng: random.Random, hands: int) -> None:
    match = sit_down(*rng.choices(DEALS, k=hands))
    check_legal_play(match, rng)

    result = match.result()
    again = replay(Record.from_json(result.record.to_json()))
    assert again.record.to_json() == result.record.to_json()
    assert again.scores == result.scores


@given(st.binary(min_size=32, max_size=32), st.randoms(use_true_random=False))
def test_any_seed_can_be_played_and_replayed(seed: bytes, rng: random.Random) -> None:
    match = MatchState(GAME, AceKingQueenSettings(hands=6), seed=seed, nonces=("a", "b"))
    check_legal_play(match, rng)

    assert replay(match.result().record) == match.result()


def test_every_play_of_a_hand_is_one_of_eighteen() -> None:
    """Six deals, each checked, folded or called: the sum over all of them is hand-worked."""
    total = Counter[tuple[str, ...]]()
    for deck in DEALS:
        for answers in [(CHECK,), (BET, FOLD), (BET, CALL)]:
            total[answers] += play(deck, *answers)[0]

    assert total == {(CHECK,): 0, (BET, FOLD): 6, (BET, CALL): 0}


def test_stacked_decks_are_handed_on_one_at_a_time() -> None:
    decks = stacked(AceKingQueenSettings(), iter(["AK", ["K", "Q", "A"]]))

    assert list(decks) == [("A", "K"), ("K", "Q", "A")]


def test_settings_and_messages_carry_no_more_than_they_say() -> None:
    assert msgspec.to_builtins(AceKingQueenSettings()) == {"hands": 1000}
