"""Three card poker, paragraph by paragraph (rulebook, section T)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import arena
from arena.engine.match import MatchState, Record
from arena.engine.shuffle import Stream
from arena.games import game_named
from arena.games.replay import replay
from arena.games.three_card_poker import GAME, deals, stacked
from bots.strategy import choose
from protocol.cards import PACK
from protocol.errors import BadDeck, IllegalAnswer, OutOfDecks
from protocol.messages import Ending
from protocol.three_card_poker import Ante, Play, RoundOver, ThreeCardPokerSettings
from protocol.vocabulary import Question, Range

PLAY, FOLD = "play", "fold"

ACES_UP = "As Ah Kd"
NINES = "9s 9h 5d"
JUNK = "7s 5h 2d"
LEAST_DEALER = "Qc 3c 2h"
BEST_DEALER_OUT = "Jc Td 8c"


class ScriptedPokerPlayer:
    """Gives the answers it was made with, and keeps what it was asked and told."""

    def __init__(self, answers: Iterable[object]) -> None:
        self.answers = iter(answers)
        self.asked: list[Question[Any]] = []
        self.heard: list[RoundOver] = []

    def decide(self, question: Question[Any]) -> object:
        self.asked.append(question)
        return next(self.answers)

    def hear(self, news: Any) -> None:
        self.heard.append(news)

    def reset(self) -> None:
        pass


def deal(player: str, dealer: str) -> list[str]:
    """The deck in which the player and then the dealer get these cards."""
    return player.split() + dealer.split()


def sit_down(
    *rounds: tuple[int, str, str, str], **settings: object
) -> tuple[arena.MatchResult, ScriptedPokerPlayer]:
    """A match of rounds (ante, player's hand, decision, dealer's hand)."""
    player = ScriptedPokerPlayer(
        answer for ante, _, choice, _ in rounds for answer in (ante, choice)
    )
    result = arena.play(
        "three_card_poker",
        [player],
        settings={"rounds": len(rounds)} | settings,
        decks=[deal(hand, dealer) for _, hand, _, dealer in rounds],
    )
    return result, player


def outcome(hand: str, choice: str, dealer: str, **settings: object) -> int:
    """What one round brings, in antes."""
    result, player = sit_down((10, hand, choice, dealer), **settings)
    assert result.scores == (10 * player.heard[0].outcome,)
    return player.heard[0].outcome


# T1


def test_T1_cards_1_to_3_go_to_the_player_and_4_to_6_to_the_dealer() -> None:
    player = ScriptedPokerPlayer([10, PLAY])

    arena.play(
        "tcp", [player], settings={"rounds": 1}, decks=[["2c", "3c", "5d", "Qs", "Jh", "9d", "As"]]
    )

    assert player.asked[1] == Play(("2c", "3c", "5d"), 10, 1000)
    assert player.heard[0].dealer == ("Qs", "Jh", "9d")


def test_T1_all_52_cards_are_dealt_from() -> None:
    dealt = deals(ThreeCardPokerSettings(), Stream(b"any"))

    assert len({card for _ in range(200) for card in next(dealt)}) == 52


def test_T1_a_deal_is_the_start_of_a_shuffle_read_from_its_back() -> None:
    shuffled = Stream(b"any").shuffled(PACK)

    assert Stream(b"any").dealt(PACK, 52) == shuffled[::-1]
    assert Stream(b"any").dealt(PACK, 6) == shuffled[:-7:-1]
    assert Stream(b"any").dealt(PACK, 0) == []


@pytest.mark.parametrize(
    ("deck", "says"),
    [
        (deal(ACES_UP, NINES)[:5], "at least 6 cards, got 5"),
        (deal(ACES_UP, "As 9h 5d"), "'As' comes twice"),
        (deal(ACES_UP, "1s 9h 5d"), "'1s' is no card"),
        ([*deal(ACES_UP, NINES)[:5], 7], "7 is no card"),
    ],
)
def test_T1_a_deck_that_is_none_is_refused(deck: list[Any], says: str) -> None:
    with pytest.raises(BadDeck, match=says):
        list(stacked(ThreeCardPokerSettings(), [deck]))


def test_T1_too_few_decks_are_the_callers_error() -> None:
    with pytest.raises(OutOfDecks):
        sit_down((10, ACES_UP, PLAY, NINES), rounds=2)


# T2-T4: how hands compare is tested with protocol.three_card_poker; here that they decide


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("2s 3s 4s", "Kh Kd Kc"),
        ("2s 2h 2d", "Ah Kd Qc"),
        ("As 2h 3d", "Ah Kh 9h"),
        ("5s 3s 2s", "Ah Ad Kc"),
        ("2s 2h 3d", "Ah Kd Jc"),
    ],
)
def test_T2_the_higher_category_wins(better: str, worse: str) -> None:
    assert outcome(better, PLAY, worse) == 2
    assert outcome(worse, PLAY, better) == -2


def test_T2_king_ace_two_is_no_straight_and_loses_to_a_pair() -> None:
    assert outcome("Ks Ah 2d", PLAY, "2s 2h 3d") == -2
    assert outcome("Qs Kh Ad", PLAY, "2s 2h 3d") == 2


def test_T3_ace_two_three_loses_to_two_three_four() -> None:
    assert outcome("As 2h 3d", PLAY, "2s 3h 4d") == -2


def test_T3_the_lowest_of_three_ranks_can_decide() -> None:
    assert outcome("As Qh 3d", PLAY, "Ah Qd 2c") == 2
    assert outcome("As Qh 3d", PLAY, "Ah Qd 3c") == 0


def test_T4_nine_nine_five_ties_nine_nine_four_by_default() -> None:
    assert outcome("9s 9h 5d", PLAY, "9d 9c 4s") == 0
    assert outcome("9d 9c 4s", PLAY, "9s 9h 5d") == 0


def test_T4_pair_kicker_compares_the_odd_card() -> None:
    assert outcome("9s 9h 5d", PLAY, "9d 9c 4s", pair_kicker=True) == 2
    assert outcome("9d 9c 4s", PLAY, "9s 9h 5d", pair_kicker=True) == -2


def test_T4_the_highest_card_of_each_hand_may_be_the_odd_one() -> None:
    assert outcome("9s 9h Ad", PLAY, "9d 9c Ks") == 2
    assert outcome("9s 9h 5d", PLAY, "9d 9c Ks") == -2


# T5


def test_T5_the_ante_is_named_before_any_card_is_seen() -> None:
    _, player = sit_down((10, ACES_UP, PLAY, NINES))

    assert player.asked[0] == Ante(round=1, cash=1000, legal=Range(1, 500))


@pytest.mark.parametrize(("cash", "most"), [(2, 1), (3, 1), (100, 50), (101, 50)])
def test_T5_the_play_bet_can_always_be_paid(cash: int, most: int) -> None:
    result, player = sit_down((most, JUNK, PLAY, NINES), stake=cash)

    assert player.asked[0].choices == Range(1, most)
    assert result.scores == (-2 * most,)


@pytest.mark.parametrize("ante", [0, 51, -1, True, 4.0, "4", None])
def test_T5_no_other_ante_is_legal(ante: object) -> None:
    result = arena.play(
        "tcp", [ScriptedPokerPlayer([ante])], settings={"stake": 100}, decks=[deal(ACES_UP, NINES)]
    )

    assert result.termination.kind is Ending.ILLEGAL
    assert result.termination.seat == 0
    assert result.termination.text.startswith("seat 1 answered")
    assert result.scores == (-100,)  # J3: the whole stake


def test_T5_then_the_player_sees_its_hand_and_plays_or_folds() -> None:
    _, player = sit_down((10, ACES_UP, FOLD, NINES))

    assert player.asked[1] == Play(("As", "Ah", "Kd"), ante=10, cash=1000)
    assert player.asked[1].choices == (PLAY, FOLD)


# T6


def test_T6_a_fold_loses_the_ante() -> None:
    assert outcome(JUNK, FOLD, NINES) == -1


def test_T6_a_fold_loses_the_ante_even_if_the_dealer_does_not_qualify() -> None:
    assert outcome(ACES_UP, FOLD, BEST_DEALER_OUT) == -1


def test_T6_jack_ten_eight_does_not_qualify_and_the_better_hand_wins_one_ante() -> None:
    assert outcome(ACES_UP, PLAY, BEST_DEALER_OUT) == 1


def test_T6_jack_ten_eight_does_not_qualify_and_the_worse_hand_wins_one_ante() -> None:
    assert outcome(JUNK, PLAY, BEST_DEALER_OUT) == 1


def test_T6_queen_three_two_just_qualifies() -> None:
    assert outcome(ACES_UP, PLAY, LEAST_DEALER) == 2
    assert outcome(JUNK, PLAY, LEAST_DEALER) == -2


def test_T6_a_low_pair_qualifies() -> None:
    assert outcome(JUNK, PLAY, "2s 2h 3d") == -2


def test_T6_the_better_hand_wins_two_antes() -> None:
    assert outcome(ACES_UP, PLAY, NINES) == 2


def test_T6_the_worse_hand_loses_two_antes() -> None:
    assert outcome(NINES, PLAY, ACES_UP) == -2


def test_T6_a_tie_brings_nothing() -> None:
    assert outcome("Qs 3h 2d", PLAY, "Qh 3d 2c") == 0


# T7


@pytest.mark.parametrize("choice", [PLAY, FOLD])
def test_T7_the_dealers_hand_is_told_after_a_fold_too(choice: str) -> None:
    _, player = sit_down((10, JUNK, choice, NINES))

    assert player.heard[0].dealer == ("9s", "9h", "5d")


def test_T7_the_round_is_told_with_hand_ante_outcome_and_cash() -> None:
    _, player = sit_down((10, ACES_UP, PLAY, NINES), (7, JUNK, FOLD, NINES))

    assert player.heard == [
        RoundOver(("As", "Ah", "Kd"), ("9s", "9h", "5d"), 10, 2, 1020),
        RoundOver(("7s", "5h", "2d"), ("9s", "9h", "5d"), 7, -1, 1013),
    ]


# T8


def test_T8_a_match_has_1000_chips_and_1000_rounds_unless_said_otherwise() -> None:
    result = arena.play("tcp", [ScriptedPokerPlayer([1, PLAY] * 1000)], seed=1)

    assert result.record.settings == {
        "stake": 1000,
        "rounds": 1000,
        "goal": None,
        "pair_kicker": False,
    }
    assert len(result.record.answers) == 2000


def test_T8_rounds_are_numbered_and_the_cash_is_carried_on() -> None:
    result, player = sit_down(
        (10, ACES_UP, PLAY, NINES), (50, NINES, PLAY, ACES_UP), (3, JUNK, PLAY, BEST_DEALER_OUT)
    )

    antes = [question for question in player.asked if isinstance(question, Ante)]
    assert antes == [
        Ante(1, 1000, Range(1, 500)),
        Ante(2, 1020, Range(1, 510)),
        Ante(3, 920, Range(1, 460)),
    ]
    assert result.scores == (20 - 100 + 3,)
    assert result.termination.kind is Ending.COMPLETED


def test_T8_a_match_ends_when_the_cash_is_gone() -> None:
    result, player = sit_down((500, JUNK, PLAY, NINES), rounds=1000)

    assert player.heard[-1].cash == 0
    assert result.scores == (-1000,)
    assert result.termination.kind is Ending.COMPLETED


def test_T8_a_last_chip_cannot_be_played() -> None:
    result, player = sit_down((1, JUNK, PLAY, NINES), stake=3, rounds=1000)

    assert player.heard[-1].cash == 1
    assert result.scores == (-2,)


def test_T8_two_chips_play_on() -> None:
    result, _ = sit_down((1, JUNK, FOLD, NINES), (1, ACES_UP, PLAY, NINES), stake=3, rounds=2)

    assert result.scores == (1,)


def test_T8_a_match_ends_at_its_goal() -> None:
    result, _ = sit_down((50, ACES_UP, PLAY, NINES), stake=100, goal=200, rounds=1000)

    assert result.scores == (100,)
    assert result.termination.kind is Ending.COMPLETED


def test_T8_one_chip_below_the_goal_plays_on() -> None:
    result, _ = sit_down(
        (50, ACES_UP, PLAY, NINES), (1, ACES_UP, FOLD, NINES), stake=100, goal=201, rounds=2
    )

    assert result.scores == (99,)


def test_T8_a_goal_that_is_there_already_ends_the_match_before_its_first_round() -> None:
    result, player = sit_down(stake=100, goal=100, rounds=1000)

    assert result.scores == (0,)
    assert player.asked == []


@pytest.mark.parametrize(
    "settings", [{"stake": 0}, {"stake": 1}, {"rounds": 0}, {"goal": 0}], ids=str
)
def test_T8_a_match_may_have_no_rounds(settings: dict[str, Any]) -> None:
    result, player = sit_down(**{"rounds": 1000, **settings})

    assert result.scores == (0,)
    assert result.termination.kind is Ending.COMPLETED
    assert player.asked == []


# The referee (J1-J3) and the properties of every game


def test_an_offence_costs_the_whole_stake_whatever_the_cash() -> None:
    result, _ = sit_down((50, ACES_UP, PLAY, NINES), (10, ACES_UP, "raise", NINES), stake=100)

    assert result.termination.kind is Ending.ILLEGAL
    assert 'answered "raise" to play; legal: play, fold' in result.termination.text
    assert result.scores == (-100,)


def test_the_alias_names_the_same_game() -> None:
    assert game_named("tcp") is game_named("three_card_poker") is GAME


settings_of_short_matches = st.fixed_dictionaries(
    {
        "stake": st.integers(2, 60),
        "rounds": st.integers(1, 30),
        "goal": st.none() | st.integers(2, 120),
        "pair_kicker": st.booleans(),
    }
)

IMPOSTORS: Sequence[object] = (True, 4.0, "4", 0, "PLAY", "", None, ("play",), {})


@given(settings_of_short_matches, st.integers(0, 2**32))
def test_random_play_keeps_the_rules(settings: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    match = MatchState(GAME, GAME.vocabulary.read_settings(settings), seed=seed.to_bytes(32, "big"))
    stake, goal = settings["stake"], settings["goal"]
    cash, rounds, ante = stake, 0, 0

    while match.pending is not None:
        question = match.pending.question
        refuses_impostors(match)
        if isinstance(question, Ante):
            rounds += 1
            assert (question.round, question.cash) == (rounds, cash)
            assert goal is None or cash < goal
            match.answer(ante := choose(question.choices, rng))
            continue
        assert isinstance(question, Play)
        assert (question.ante, question.cash) == (ante, cash)
        assert match.news == []  # the dealer's hand is not out before the decision
        choice = choose(question.choices, rng)
        match.answer(choice)
        [told] = match.take_news()
        news = told.news
        assert isinstance(news, RoundOver)
        assert (news.hand, news.ante) == (question.hand, ante)
        assert len({*news.hand, *news.dealer}) == 6
        assert news.outcome == -1 if choice == FOLD else news.outcome in (-2, 0, 1, 2)
        cash += news.outcome * ante
        assert news.cash == cash >= 0
        assert match.scores == (cash - stake,)

    assert rounds == settings["rounds"] or cash < 2 or cash >= goal
    result = match.result()
    assert result.termination.kind is Ending.COMPLETED
    assert replay(Record.from_json(result.record.to_json())) == result


def refuses_impostors(match: MatchState) -> None:
    """Answers that only look legal change nothing."""
    before = match.pending, list(match.news), list(match.answers), match.scores
    for impostor in IMPOSTORS:
        with pytest.raises(IllegalAnswer):
            match.answer(impostor)
    assert before == (match.pending, match.news, match.answers, match.scores)


@given(st.integers(0, 2**32), st.integers(0, 40))
def test_a_match_that_an_offence_ended_replays(seed: int, legal_answers: int) -> None:
    player = ScriptedPokerPlayer([*([1, FOLD] * 20)[:legal_answers], "nonsense"])

    result = arena.play("tcp", [player], settings={"stake": 50}, seed=seed)

    assert result.termination.kind is Ending.ILLEGAL
    assert result.scores == (-50,)
    assert replay(Record.from_json(result.record.to_json())) == result


def test_the_same_seed_gives_the_same_record() -> None:
    first, again, other = (
        arena.play("tcp", [ScriptedPokerPlayer([5, PLAY] * 50)], settings={"rounds": 50}, seed=seed)
        for seed in (7, 7, 8)
    )

    assert first.record.to_json() == again.record.to_json()
    assert first.record.to_json() != other.record.to_json()
