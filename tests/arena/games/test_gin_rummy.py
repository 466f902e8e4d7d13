"""Gin rummy, paragraph by paragraph (rulebook, section G)."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import arena
from arena.engine.match import MatchState, Record
from arena.engine.rules import EVERYONE
from arena.engine.shuffle import Stream, match_key, seed_from_int
from arena.games.gin_rummy import GAME, deals, score, stacked
from arena.games.replay import replay
from bots.gin_rummy import Patient, Random, Simple
from protocol.cards import PACK
from protocol.errors import BadDeck, IllegalAnswer, OutOfDecks
from protocol.gin_melds import arrange, is_meld, points
from protocol.gin_rummy import (
    Dealt,
    Draw,
    GameOver,
    GinRummySettings,
    Melds,
    Offer,
    Offered,
    RoundOver,
    Turn,
    TurnAnswer,
    TurnTaken,
    turn_answers,
)

# Hands that meet nowhere with the up-card and the cards that are drawn below.
RUNS = "As 2s 3s 4h 5h 6h"
TEN = f"{RUNS} Ac 2d 3c 4d"  # exactly 10 deadwood
ELEVEN = f"{RUNS} Ac 2d 3c 5d"  # one too many
CHAINED = "5h 6h 7h Ks Kd Kc Ac 2d 2s 4c"  # 9, and a run that 4h, 3h and 8h can go on
GIN = "5h 6h 7h Ks Kd Kc 2s 2h 2d 2c"
TWENTY = "9h Th Jh Qs Qd Qc 2h 4c 6d 8c"  # nothing of it can be laid off on TEN
EQUAL = "9h Th Jh Qs Qd Qc Ad Ah 2h 6d"  # 10
SIXTEEN = "9s Ts Js Qh Qd Qc 3h 4h 8h Ad"  # 3h 4h 8h can be laid off on CHAINED
UP, DRAWN = "Jc", "8d"  # the up-card and the first card of the stock
NOTHING = "2h 4c 6d 8c Ts Qd Ah 3s 5d 7c"  # no melds


# ---- Helpers that read like play


def deck(zero: str, one: str, up: str = UP, stock: str = DRAWN, rest: bool = True) -> list[str]:
    """A deck with these hands; behind the cards of `stock` the others, or (`rest` false) none."""
    cards = [*zero.split(), *one.split(), up, *stock.split()]
    return cards + [card for card in PACK if card not in cards] * rest


def sit_down(*decks: list[str], **settings: Any) -> MatchState:
    """A match with one round per deck, unless somebody wins before."""
    settings.setdefault("max_rounds", len(decks))
    return MatchState(GAME, GinRummySettings(**settings), decks=decks)


def melds(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(meld.split()) for meld in text.split(",") if meld)


def say(match: MatchState, *answers: str | None) -> list[Any]:
    """Give answers and return what was told meanwhile.

    In a turn `8d` discards, `8d!` knocks too, and `8d! As 2s 3s, 4h 5h 6h` declares melds with it.
    """
    for answer in answers:
        asked = match.pending
        assert asked is not None
        value: Any = answer
        if isinstance(asked.question, Turn):
            assert answer is not None
            discard, bang, declared = answer.partition("!")
            value = TurnAnswer(discard, bool(bang), melds(declared) or None)
        elif isinstance(asked.question, Melds) and answer is not None:
            value = melds(answer)
        match.answer(value)
    return [tell.news for tell in match.take_news()]


def ask_of(match: MatchState) -> tuple[int, Any]:
    """Who is asked, and what."""
    assert match.pending is not None
    return match.pending.seat, match.pending.question


def last_round(news: Sequence[Any]) -> RoundOver:
    return [item for item in news if isinstance(item, RoundOver)][-1]


def knock(
    zero: str, one: str, declared: str = "", defence: str | None = None, drawn: str = DRAWN
) -> RoundOver:
    """Seat 0 draws the first card of the stock, throws it away again and knocks."""
    match = sit_down(deck(zero, one, stock=drawn))
    return last_round(say(match, "pass", "pass", f"{drawn}!{declared}", defence))


def tied_by_stock(number: int = 1, **settings: Any) -> MatchState:
    """A match of rounds that end at once: one card of stock, and nobody knocks."""
    short = deck(TEN, TWENTY, rest=False)
    return sit_down(*[short] * number, **settings)


def random_match(seed: int, **settings: Any) -> arena.MatchResult:
    bots = Random(), Random()
    for place, bot in enumerate(bots):
        bot.seed(f"{seed} {place}")
    return arena.play("gin_rummy", bots, settings=settings, seed=seed)


# ---- G1, G2: cards and melds (the arithmetic itself: tests/protocol/test_gin_melds.py)


def test_G1_the_ace_is_low_only() -> None:
    told = knock(TEN, "Qh Kh Ah 2h Qc Kc 9s 9d 7c 7s")

    assert told.melds[1] == ()
    assert told.points == (10 + 10 + 1 + 2 + 10 + 10 + 9 + 9 + 7 + 7 - 10, 0)


def test_G2_no_card_is_in_two_melds() -> None:
    told = knock(TEN, "7s 7d 7c 8c 9c Kh Qh Jd Th 2c")

    assert told.melds[1] == melds("7c 8c 9c")
    assert told.points == (7 + 7 + 10 + 10 + 10 + 10 + 2 - 10, 0)


# ---- G3: the deal


def test_G3_ten_cards_each_and_the_up_card() -> None:
    pack = list(PACK)
    match = sit_down(pack)

    told = match.take_news()
    assert [tell.seat for tell in told] == [0, 1]
    assert told[0].news == Dealt(1, 1, 0, tuple(pack[:10]), pack[20])
    assert told[1].news == Dealt(1, 1, 0, tuple(pack[10:20]), pack[20])


def test_G3_the_stock_is_drawn_in_the_order_of_the_deck() -> None:
    pack = list(PACK)
    match = sit_down(pack)

    say(match, "pass", "pass")
    drawn = []
    for _ in range(30):
        drawn.append(ask_of(match)[1].drawn)
        say(match, drawn[-1], "stock")
    assert [*drawn, ask_of(match)[1].drawn] == pack[21:]


@pytest.mark.parametrize(
    ("cards", "message"),
    [
        (list(PACK[:20]), "expected a deck of at least 21 cards, got 20"),
        ([*PACK[:30], PACK[0]], "comes twice"),
        ([*PACK[:30], "1s"], "'1s' is no card"),
        ([*PACK[:30], None], "None is no card"),
    ],
)
def test_G3_a_deck_that_is_none_is_refused(cards: Any, message: str) -> None:
    with pytest.raises(BadDeck, match=message):
        sit_down(cards)


def test_G3_decks_that_run_out_are_the_callers_error() -> None:
    match = tied_by_stock(1, max_rounds=2)

    with pytest.raises(OutOfDecks):
        say(match, "pass", "pass", DRAWN)
    with pytest.raises(ValueError, match="another deck"):
        sit_down(max_rounds=1)


def test_G3_dealt_decks_are_whole_packs() -> None:
    drawn = deals(GinRummySettings(), Stream(b"key"))

    assert all(sorted(next(drawn).deck) == sorted(PACK) for _ in range(20))


def test_G3_a_stacked_deck_is_dealt_as_it_is() -> None:
    assert list(stacked(GinRummySettings(), [list(PACK)])) == [PACK]


# ---- G4: who starts


def test_G4_with_stacked_decks_seat_0_starts() -> None:
    assert ask_of(sit_down(list(PACK))) == (0, Offer(PACK[20], PACK[:10]))


@pytest.mark.parametrize("starter", [0, 1])
def test_G4_the_setting_names_who_starts(starter: Any) -> None:
    match = sit_down(list(PACK), starter=starter)

    assert ask_of(match)[0] == starter
    dealt: Any = match.take_news()[0].news
    assert dealt.starter == starter
    for seed in range(5):
        dealt = MatchState(GAME, GinRummySettings(starter=starter), seed=seed_from_int(seed))
        assert ask_of(dealt)[0] == starter


def test_G4_by_chance_both_seats_start_about_equally_often() -> None:
    drawn = deals(GinRummySettings(), Stream(b"key"))

    starts = Counter(next(drawn).starter for _ in range(1000))
    assert abs(starts[0] - 500) < 4 * 1000**0.5 / 2


def test_G4_the_start_alternates_after_tied_rounds_too() -> None:
    match = tied_by_stock(5, starter=1)
    asked = []
    while match.pending:
        asked.append(match.pending.seat)
        say(match, "pass", "pass", DRAWN)

    assert asked == [1, 0, 1, 0, 1]


def test_G4_the_start_alternates_after_a_knock() -> None:
    match = sit_down(deck(TEN, TWENTY), deck(TEN, TWENTY))
    say(match, "pass", "pass", f"{DRAWN}!", None)

    assert ask_of(match)[0] == 1


def test_G4_chance_decides_at_the_start_of_every_game_and_only_there() -> None:
    listener = PassingPlayer()
    settings = GinRummySettings(games=6, max_rounds=3)
    arena.play("gin_rummy", [listener, Patient()], settings=msgspec.to_builtins(settings), seed=5)
    drawn = deals(settings, Stream(match_key(seed_from_int(5))))
    heard = [news for news in listener.heard if isinstance(news, Dealt)]

    first = None
    starts = set()
    for dealt in heard:
        chance = next(drawn).starter
        if dealt.game != first:
            first = dealt.game
            starts.add(chance)
            expected = chance
        assert dealt.starter == expected
        expected = 1 - expected
    assert starts == {0, 1}


# ---- G5: the up-card


def test_G5_the_starter_is_offered_the_up_card() -> None:
    match = sit_down(deck(TEN, TWENTY))

    assert ask_of(match) == (0, Offer(UP, tuple(TEN.split())))


def test_G5_the_starter_takes_it_and_finishes_its_turn() -> None:
    match = sit_down(deck(TEN, TWENTY))

    news = say(match, "take")
    assert news[2:] == [Offered(0, True)]
    seat, question = ask_of(match)
    assert (seat, question.drawn, question.hand) == (0, UP, (*TEN.split(), UP))
    assert say(match, "4d") == [TurnTaken(0, "discard", UP, "4d")]
    assert ask_of(match) == (1, Draw("4d", tuple(TWENTY.split())))


def test_G5_if_it_declines_the_other_seat_is_offered_it() -> None:
    match = sit_down(deck(TEN, TWENTY))

    assert say(match, "pass")[2:] == [Offered(0, False)]
    assert ask_of(match) == (1, Offer(UP, tuple(TWENTY.split())))


def test_G5_the_second_seat_takes_it_and_then_the_starter_moves() -> None:
    match = sit_down(deck(TEN, TWENTY))

    news = say(match, "pass", "take", "8c")
    assert news[2:] == [Offered(0, False), Offered(1, True), TurnTaken(1, "discard", UP, "8c")]
    assert ask_of(match) == (0, Draw("8c", tuple(TEN.split())))


def test_G5_if_both_decline_the_starter_draws_from_the_stock_unasked() -> None:
    match = sit_down(deck(TEN, TWENTY))

    assert say(match, "pass", "pass")[2:] == [Offered(0, False), Offered(1, False)]
    seat, question = ask_of(match)
    assert (seat, question.kind, question.drawn) == (0, "turn", DRAWN)
    assert say(match, DRAWN) == [TurnTaken(0, "stock", None, DRAWN)]


def test_G5_who_took_the_up_card_may_knock_at_once() -> None:
    match = sit_down(deck(ELEVEN, TWENTY, up="4d"))

    told = last_round(say(match, "take", "5d!", None))
    assert (told.knocker, told.points) == (0, (10, 0))


# ---- G6: turns


def test_G6_draw_from_the_stock() -> None:
    match = sit_down(deck(TEN, TWENTY, stock="8d Kh"))
    say(match, "pass", "pass", "8d")

    assert ask_of(match) == (1, Draw("8d", tuple(TWENTY.split())))
    say(match, "stock")
    assert ask_of(match)[1].drawn == "Kh"
    assert ask_of(match)[1].hand == (*TWENTY.split(), "Kh")


def test_G6_draw_from_the_discard_pile() -> None:
    match = sit_down(deck(TEN, TWENTY, stock="8d Kh"))
    say(match, "pass", "pass", "8d", "discard")

    assert ask_of(match)[1].drawn == "8d"
    assert say(match, "Qs") == [TurnTaken(1, "discard", "8d", "Qs")]
    assert ask_of(match) == (0, Draw("Qs", tuple(TEN.split())))
    say(match, "stock")
    assert ask_of(match)[1].drawn == "Kh"  # the stock went on where it was


def test_G6_the_card_just_taken_from_the_pile_may_be_discarded_again() -> None:
    match = sit_down(deck(TEN, TWENTY))

    assert say(match, "take", UP)[-1] == TurnTaken(0, "discard", UP, UP)
    say(match, "discard", UP)
    assert ask_of(match) == (0, Draw(UP, tuple(TEN.split())))


# ---- G7: knocking


def test_G7_exactly_ten_deadwood_may_knock() -> None:
    told = knock(TEN, TWENTY)

    assert (told.knocker, told.gin, told.reason) == (0, False, "knock")
    assert told.points == (20 - 10, 0)


def test_G7_eleven_may_not() -> None:
    match = sit_down(deck(ELEVEN, TWENTY))
    say(match, "pass", "pass")

    assert not any(answer.knock for answer in ask_of(match)[1].legal)
    with pytest.raises(IllegalAnswer, match=r"^seat 1 answered .*; legal: discard"):
        say(match, f"{DRAWN}!")


def test_G7_nobody_has_to_knock() -> None:
    match = sit_down(deck(GIN, TWENTY.replace("2h", "3d")))

    assert say(match, "pass", "pass", DRAWN)[-1] == TurnTaken(0, "stock", None, DRAWN)
    assert ask_of(match)[0] == 1


def test_G7_knocking_with_nothing_is_gin_without_another_call() -> None:
    told = knock(GIN, SIXTEEN)

    assert told.gin
    assert told.reason == "gin"


# ---- G8: what the other seat learns


def test_G8_a_turn_tells_the_pile_the_card_of_the_discard_pile_and_the_discard() -> None:
    match = sit_down(deck(TEN, TWENTY, stock="8d Kh"))
    say(match, "pass", "pass")

    match.answer({"discard": "4d"})
    told = match.take_news()
    assert [(tell.seat, tell.news) for tell in told] == [
        (EVERYONE, TurnTaken(0, "stock", None, "4d"))
    ]
    assert say(match, "discard", "8c") == [TurnTaken(1, "discard", "4d", "8c")]


def test_G8_the_discard_of_a_knock_is_told_too() -> None:
    match = sit_down(deck(TEN, TWENTY))
    say(match, "pass", "pass")

    assert say(match, f"{DRAWN}!") == [TurnTaken(0, "stock", None, DRAWN)]


# ---- G9: declarations


def test_G9_the_defender_is_asked_before_it_is_shown_the_knockers_melds() -> None:
    match = sit_down(deck(TEN, TWENTY))
    say(match, "pass", "pass")

    news = say(match, f"{DRAWN}! As 2s 3s, 4h 5h 6h")
    assert ask_of(match) == (1, Melds(tuple(TWENTY.split())))
    assert news == [TurnTaken(0, "stock", None, DRAWN)]


def test_G9_the_defender_is_asked_after_gin_too() -> None:
    match = sit_down(deck(GIN, SIXTEEN))
    say(match, "pass", "pass", f"{DRAWN}!")

    assert ask_of(match) == (1, Melds(tuple(SIXTEEN.split())))


def test_G9_null_leaves_both_hands_to_the_referee() -> None:
    told = knock(TEN, TWENTY)

    assert told.melds == (melds("As 2s 3s, 4h 5h 6h"), melds("Qs Qd Qc, 9h Th Jh"))


def test_G9_the_knockers_bad_melds_are_counted_as_given() -> None:
    hand = "As 2s 3s 4h 5h 6h 9s 9h 9d 2c"  # 2 deadwood at best

    assert knock(hand, TWENTY.replace("9h", "8h")).points == (10 + 10 + 8 + 20 - 2, 0)
    told = knock(hand, TWENTY.replace("9h", "8h"), " 4h 5h 6h, 9s 9h 9d")
    assert told.melds[0] == melds("4h 5h 6h, 9s 9h 9d")
    assert told.points == (48 - (1 + 2 + 3 + 2), 0)


def test_G9_gin_is_what_was_declared_not_what_was_held() -> None:
    told = knock(GIN, SIXTEEN, " 5h 6h 7h, Ks Kd Kc, 2s 2h 2d")

    assert not told.gin
    assert told.layoffs == (("4h", 0), ("8h", 0), ("3h", 0))
    assert (told.points, told.reason) == ((0, 25 + 2 - 1), "undercut")


def test_G9_a_knockers_declaration_must_leave_at_most_ten() -> None:
    match = sit_down(deck(TEN, TWENTY))
    say(match, "pass", "pass")

    with pytest.raises(IllegalAnswer):
        say(match, f"{DRAWN}! As 2s 3s")
    say(match, f"{DRAWN}! As 2s 3s, 4h 5h 6h")


@pytest.mark.parametrize("declared", ["4h 5h 7h", "Kh Kd Kc", "As 2s 3s, As 2s 3s"])
def test_G9_illegal_melds_are_an_illegal_answer(declared: str) -> None:
    match = sit_down(deck(TEN, TWENTY))
    say(match, "pass", "pass")

    with pytest.raises(IllegalAnswer):
        say(match, f"{DRAWN}! {declared}")
    say(match, f"{DRAWN}!")
    with pytest.raises(IllegalAnswer):
        say(match, declared)


@pytest.mark.parametrize(
    ("declared", "deadwood"), [("", 88), ("9h Th Jh", 59), ("Jh 9h Th, Qs Qd Qc", 29)]
)
def test_G9_the_defenders_declaration_is_taken_as_given(declared: str, deadwood: int) -> None:
    hand = "9h Th Jh Qs Qd Qc 9s 4c 8s 8c"
    assert points(hand.split()) == 88

    told = knock(TEN, hand, defence=declared)
    assert told.melds[1] == melds(declared)
    assert told.points == (deadwood - 10, 0)


def test_G9_the_defenders_null_is_the_arrangement_with_the_best_final_score() -> None:
    # Least deadwood would be both sets, 8h and Jd Qd left: 28. But 7h can be laid off, and then 8h
    # after it.
    defender = "7s 7h 7d 7c 8h 3s 3d 3c Jd Qd"
    knocker = "4h 5h 6h Ks Kh Kc As Ah 2c 2s"
    assert arrange(defender.split())[1] == 28

    told = knock(knocker, defender)
    assert told.melds[1] == melds("3s 3d 3c, 7s 7d 7c")
    assert told.layoffs == (("7h", 1), ("8h", 1))
    assert told.points == (20 - 6, 0)


# ---- G10: layoffs


def test_G10_chains_are_laid_off() -> None:
    told = knock(CHAINED, SIXTEEN)

    assert told.melds[0] == melds("Ks Kd Kc, 5h 6h 7h")
    assert told.layoffs == (("4h", 1), ("8h", 1), ("3h", 1))


def test_G10_what_the_defender_declared_unmelded_can_be_laid_off_too() -> None:
    told = knock(CHAINED, "8h 9h Th 4h Qs Qd Qh 4d 4s 9c", defence="Qs Qd Qh")

    assert told.layoffs == (("4h", 1), ("8h", 1), ("9h", 1), ("Th", 1))
    assert told.points == (4 + 4 + 9 - 9, 0)


def test_G10_nothing_is_laid_off_after_gin() -> None:
    told = knock(GIN, SIXTEEN)

    assert told.layoffs == ()
    assert told.points == (25 + 16, 0)


# ---- G11: the score


@pytest.mark.parametrize(
    ("knocker", "defender", "points", "reason"),
    [
        (10, 20, (10, 0), "knock"),
        (1, 2, (1, 0), "knock"),
        (10, 10, (0, 0), "tie"),
        (10, 9, (0, 26), "undercut"),
        (10, 0, (0, 35), "undercut"),
        (0, 16, (41, 0), "gin"),
        (0, 0, (25, 0), "gin"),
    ],
)
def test_G11_what_each_knock_is_worth(
    knocker: int, defender: int, points: tuple[int, int], reason: str
) -> None:
    assert score(knocker, defender) == (points, reason)


def test_G11_equal_deadwood_scores_nothing() -> None:
    told = knock(TEN, EQUAL)

    assert (told.points, told.reason, told.knocker) == ((0, 0), "tie", 0)


def test_G11_an_undercut_after_a_chain_of_layoffs() -> None:
    told = knock(CHAINED, SIXTEEN)  # 16 less 4, 3 and 8 is 1, against 9

    assert told.points == (0, 25 + 9 - 1)
    assert told.reason == "undercut"


def test_G11_gin_scores_twenty_five_and_the_defenders_deadwood() -> None:
    told = knock(GIN, SIXTEEN)

    assert (told.points, told.scores) == ((41, 0), (41, 0))


def test_G11_the_second_seat_scores_in_its_own_place() -> None:
    match = sit_down(deck(TWENTY, TEN, stock="8d Kh"))
    told = last_round(say(match, "pass", "pass", "8d", "stock", "Kh!", None))

    assert (told.knocker, told.points) == (1, (0, 10))
    assert told.melds[1] == melds("As 2s 3s, 4h 5h 6h")


# ---- G12: the stock is empty


def test_G12_an_empty_stock_and_no_knock_is_a_tie() -> None:
    match = tied_by_stock()

    told = last_round(say(match, "pass", "pass", DRAWN))
    assert (told.reason, told.knocker, told.points) == ("stock", None, (0, 0))


def test_G12_the_seat_that_drew_the_last_card_may_still_knock() -> None:
    match = sit_down(deck(TEN, TWENTY, rest=False))

    told = last_round(say(match, "pass", "pass", f"{DRAWN}!", None))
    assert (told.reason, told.points) == ("knock", (10, 0))


def test_G12_every_card_of_the_stock_is_drawn() -> None:
    match = sit_down(list(PACK))
    say(match, "pass", "pass")
    turns = 1
    while match.pending:
        _, question = ask_of(match)
        news = say(match, *([question.drawn] if turns == 1 else ["stock"]))
        if turns > 1:
            news = say(match, ask_of(match)[1].drawn)
        turns += 1

    assert turns - 1 == 31  # no two-card wall
    assert last_round(news).reason == "stock"


def test_G12_taking_discards_leaves_the_stock_as_it_is() -> None:
    match = sit_down(deck(NOTHING, "9h Th Jh Qs Qc 7d 6h 4d 2d As", rest=False))
    say(match, "pass", "take", UP)
    for _ in range(10):
        say(match, "discard", UP)

    assert ask_of(match)[1].kind == "draw"


@pytest.mark.parametrize(
    ("answers", "turns"), [(["pass", "pass"], 0), (["take", UP], 1), (["pass", "take", UP], 1)]
)
def test_G12_a_deck_may_have_no_stock_at_all(answers: list[str], turns: int) -> None:
    match = sit_down(deck(TEN, TWENTY, stock="", rest=False))

    news = say(match, *answers)
    assert sum(isinstance(item, TurnTaken) for item in news) == turns
    assert last_round(news).reason == "stock"
    assert match.termination is not None


# ---- G13: the turns are used up


def test_G13_a_round_is_a_tie_after_max_turns() -> None:
    match = sit_down(deck(TEN, TWENTY), max_turns=3)

    news = say(match, "take", UP, "discard", UP, "discard", UP)
    assert [type(item) for item in news[2:6]] == [Offered, *[TurnTaken] * 3]
    assert last_round(news).reason == "turns"
    assert last_round(news).points == (0, 0)


def test_G13_offers_do_not_count() -> None:
    match = sit_down(deck(TEN, TWENTY), max_turns=1)

    say(match, "pass", "pass")
    assert ask_of(match)[1].kind == "turn"
    assert last_round(say(match, DRAWN)).reason == "turns"


def test_G13_the_last_turn_may_knock() -> None:
    match = sit_down(deck(TEN, TWENTY), max_turns=1)

    assert last_round(say(match, "take", f"{UP}!", None)).reason == "knock"


def test_G13_two_hundred_turns_by_default() -> None:
    match = sit_down(deck(TEN, TWENTY))
    news = say(match, "take", UP)
    while match.pending:
        news += say(match, "discard", UP)

    assert sum(isinstance(item, TurnTaken) for item in news) == 200


# ---- G14: what both seats learn in the end


def test_G14_both_seats_learn_hands_melds_and_scores() -> None:
    match = sit_down(deck(CHAINED, SIXTEEN), target=30)
    say(match, "pass", "pass", f"{DRAWN}!")
    match.answer(None)

    told = match.take_news()
    assert [tell.seat for tell in told] == [EVERYONE, EVERYONE]
    assert told[0].news == RoundOver(
        knocker=0,
        gin=False,
        hands=(tuple(CHAINED.split()), tuple(SIXTEEN.split())),
        melds=(melds("Ks Kd Kc, 5h 6h 7h"), melds("Qh Qd Qc, 9s Ts Js")),
        layoffs=(("4h", 1), ("8h", 1), ("3h", 1)),
        points=(0, 33),
        scores=(0, 33),
        reason="undercut",
    )


def test_G14_after_a_tie_too() -> None:
    told = last_round(say(tied_by_stock(), "pass", "pass", "4d"))

    assert told.hands == ((*TEN.split()[:-1], DRAWN), tuple(TWENTY.split()))
    assert told.melds == (melds("As 2s 3s, 4h 5h 6h"), melds("Qs Qd Qc, 9h Th Jh"))
    assert told.layoffs == ()


def test_G14_scores_add_up_over_the_rounds_of_a_game() -> None:
    match = sit_down(*[deck(TEN, TWENTY, stock="8d Kh")] * 3)
    say(match, "pass", "pass", "8d!", None)

    news = say(match, "pass", "pass", "8d", "stock", "Kh!", None)
    assert (last_round(news).points, last_round(news).scores) == ((10, 0), (20, 0))


# ---- G15, G16: games, matches, pairings


def test_G15_a_game_ends_with_the_round_in_which_a_seat_reaches_the_target() -> None:
    decks = [deck(TEN, TWENTY, stock="8d Kh")] * 3
    match = sit_down(*decks, target=20, max_rounds=100)
    news = say(match, "pass", "pass", "8d!", None)
    assert not any(isinstance(item, GameOver) for item in news)

    news = say(match, "pass", "pass", "8d", "stock", "Kh!", None)
    assert news[-1] == GameOver(winner=0, scores=(20, 0), games=(1, 0))
    assert match.result().scores == (1, 0)
    assert match.result().points == (20, 0)
    assert match.result().winner == 0


def test_G15_one_point_short_is_not_enough() -> None:
    match = sit_down(deck(TEN, TWENTY), list(PACK), target=11, max_rounds=100)
    say(match, "pass", "pass", f"{DRAWN}!", None)

    assert match.pending is not None


def test_G15_a_game_undecided_after_max_rounds_is_drawn() -> None:
    match = sit_down(deck(TEN, TWENTY), deck(TEN, TWENTY, rest=False))
    say(match, "pass", "pass", f"{DRAWN}!", None)

    news = say(match, "pass", "pass", DRAWN)
    assert news[-1] == GameOver(winner=None, scores=(10, 0), games=(0, 0))
    assert match.result().scores == (0, 0)
    assert match.result().points == (10, 0)
    assert match.result().winner is None


def test_G15_two_that_never_knock_do_not_play_for_ever() -> None:
    listener = PassingPlayer()
    bots = [listener, PassingPlayer()]

    result = arena.play("gin_rummy", bots, seed=1, settings={"max_turns": 2})

    rounds = [news for news in listener.heard if isinstance(news, RoundOver)]
    assert len(rounds) == 100
    assert result.scores == (0, 0)


def test_G15_a_match_is_several_games_and_round_counts_all_its_deals() -> None:
    match = tied_by_stock(4, games=2, max_rounds=2)
    news = []
    while match.pending:
        news += say(match, "pass", "pass", DRAWN)

    dealt = [(item.game, item.round) for item in news if isinstance(item, Dealt)]
    assert dealt == [(1, 1)] * 2 + [(1, 2)] * 2 + [(2, 3)] * 2 + [(2, 4)] * 2
    assert [item.games for item in news if isinstance(item, GameOver)] == [(0, 0)] * 2


def test_G15_points_stand_beside_the_games_won() -> None:
    decks = deck(TEN, TWENTY), deck(SIXTEEN, GIN)
    match = sit_down(*decks, games=2, target=10, max_rounds=9)
    say(match, "pass", "pass", f"{DRAWN}!", None)
    assert match.scores == (1, 0)

    news = say(match, "pass", "take", f"{UP}!", None)
    assert news[-1] == GameOver(winner=1, scores=(0, 41), games=(1, 1))
    assert match.result().scores == (1, 1)
    assert match.result().points == (10, 41)


def test_G15_after_an_offence_the_games_stand_as_they_were() -> None:
    result = arena.play(
        "gin_rummy",
        [PassingPlayer(), Faulty()],
        decks=[deck(TEN, TWENTY)],
        settings={"max_turns": 2},
    )

    assert (result.termination.kind, result.termination.seat) == ("illegal", 1)
    assert result.scores == (0, 0)
    assert result.winner == 0


def test_G16_a_pairing_reports_the_games_of_each_seat() -> None:
    result = arena.play("gin", [Patient(), Simple()], seed=3, settings={"games": 15})

    assert sum(result.scores) == 15
    assert result.winner == (0 if result.scores[0] > result.scores[1] else 1)
    assert min(result.points) > 0


class PassingPlayer:
    """Passes, draws from the stock, throws it away, never knocks; remembers all it hears."""

    game = "gin_rummy"

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def decide(self, question: Any) -> object:
        if isinstance(question, Turn):
            return {"discard": question.drawn}
        return {"offer": "pass", "draw": "stock", "melds": None}[question.kind]

    def hear(self, news: Any) -> None:
        self.heard.append(news)

    def reset(self) -> None:
        self.heard = []


class Faulty(PassingPlayer):
    """Discards a card that it does not have."""

    def decide(self, question: Any) -> object:
        if isinstance(question, Turn):
            return {"discard": "Zz"}
        return super().decide(question)


# ---- Random play-outs

PLAYOUTS = examples(max_examples=15)
SEEDS = st.integers(0, 2**32)


def playout(seed: int, **settings: Any) -> Iterator[tuple[MatchState, Any]]:
    """A random match, step by step: before every answer the match, and the answer it will get."""
    rng = random.Random(seed)
    settings = {"games": 2, "target": 30, "max_rounds": 4, **settings}
    match = MatchState(GAME, GinRummySettings(**settings), seed=seed_from_int(seed))
    while match.pending:
        # Knocks are rare among the legal answers: take one when there is one, to see more of them.
        legal: Any = match.pending.question.choices
        value = legal[-1] if rng.random() < 0.3 else rng.choice(legal)
        yield match, value
        match.answer(value)
    yield match, None


@PLAYOUTS
@given(SEEDS)
def test_G6_G7_what_is_kept_of_a_hand_from_turn_to_turn_lists_what_its_cards_allow(
    seed: int,
) -> None:
    for match, _ in playout(seed):
        question: Any = match.pending and match.pending.question
        if isinstance(question, Turn):
            assert question.legal == turn_answers(question.hand)


def cards_in(*messages: Any) -> set[str]:
    text = msgspec.json.encode(messages).decode()
    return set(re.findall(r'"([2-9TJQKA][shdc])"', text))


@PLAYOUTS
@given(SEEDS)
def test_nobody_is_told_a_card_it_may_not_know(seed: int) -> None:
    may_know: list[set[str]] = [set(), set()]
    for match, _ in playout(seed):
        for tell in match.take_news():
            news = tell.news
            if isinstance(news, Dealt):
                may_know[tell.seat] = {*news.hand, news.upcard}
                assert len(news.hand) == 10
            elif isinstance(news, RoundOver):
                may_know = [set(PACK), set(PACK)]
            elif isinstance(news, TurnTaken):
                may_know[0].add(news.discarded)
                may_know[1].add(news.discarded)
            if tell.seat == EVERYONE:
                assert cards_in(news) <= may_know[0] & may_know[1]
            else:
                assert cards_in(news) <= may_know[tell.seat]
        if match.pending:
            seat, question = match.pending.seat, match.pending.question
            if isinstance(question, Turn):
                may_know[seat].add(question.drawn)
            assert cards_in(question) <= may_know[seat]


@PLAYOUTS
@given(SEEDS)
def test_points_go_to_one_seat_and_add_up(seed: int) -> None:
    totals, running = [0, 0], [0, 0]
    for match, _ in playout(seed):
        for tell in match.take_news():
            news = tell.news
            if isinstance(news, RoundOver):
                assert min(news.points) == 0
                assert news.gin == (news.reason == "gin")
                assert (news.knocker is None) == (news.reason in ("stock", "turns"))
                assert all(is_meld(meld) for side in news.melds for meld in side)
                assert all(len(set(hand)) == 10 for hand in news.hands)
                for seat in (0, 1):
                    totals[seat] += news.points[seat]
                    running[seat] += news.points[seat]
                assert news.scores == tuple(running)
            elif isinstance(news, GameOver):
                assert news.scores == tuple(running)
                assert news.games == match.scores
                assert (news.winner is None) == (max(running) < 30)
                running = [0, 0]
    assert match.result().points == tuple(totals)


@PLAYOUTS
@given(SEEDS)
def test_a_record_read_back_replays_to_the_same_result(seed: int) -> None:
    *_, (match, _) = playout(seed)
    result = match.result()

    written = result.record.to_json()
    again = replay(Record.from_json(written))
    assert again == result
    assert again.record.to_json() == written


def test_a_record_of_stacked_decks_and_declared_melds_replays_too() -> None:
    match = sit_down(deck(CHAINED, SIXTEEN), deck(TEN, TWENTY, rest=False))
    say(match, "pass", "pass", f"{DRAWN}! 5h 6h 7h, Ks Kd Kc", "9s Ts Js, Qh Qd Qc")
    say(match, "pass", "pass", DRAWN)
    written = match.result().record.to_json()

    assert replay(Record.from_json(written)) == match.result()
    assert replay(Record.from_json(written)).record.to_json() == written


@PLAYOUTS
@given(SEEDS)
def test_J1_an_illegal_answer_changes_nothing(seed: int) -> None:
    for number, (match, value) in enumerate(playout(seed, games=1, max_rounds=1)):
        if match.pending is None:
            break
        if number % 5:
            continue
        before = match.pending, list(match.news), list(match.answers), match.scores
        for wrong in wrong_answers(match.pending.question, value):
            with pytest.raises(IllegalAnswer):
                match.answer(wrong)
            now = match.pending, list(match.news), list(match.answers), match.scores
            assert now == before


def wrong_answers(question: Any, value: Any) -> list[Any]:
    """What looks like a legal answer and is none."""
    if isinstance(question, Turn):
        outside = next(card for card in PACK if card not in question.hand)
        return [
            value.discard,
            {"discard": outside},
            {"discard": value.discard, "knock": int(value.knock)},
            {"discard": value.discard, "knock": float(value.knock)},
            {"discard": value.discard, "knock": str(value.knock).lower()},
            {"discard": value.discard, "knock": value.knock, "melds": True},
            {"discard": value.discard, "knock": value.knock, "melds": ["As", "2s"]},
        ]
    if isinstance(question, Melds):
        return [True, 4.0, "4", {}, ["As"], [["As", "2s", True]]]
    return [True, 4.0, "4", None, [value], value.upper()]


def test_the_same_seed_gives_the_same_match_byte_for_byte() -> None:
    first, second = (random_match(seed=11, games=3, target=20) for _ in range(2))

    assert first == second
    assert first.record.to_json() == second.record.to_json()
    assert random_match(seed=12, games=3, target=20) != first
