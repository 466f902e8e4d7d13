"""Gin rummy (section G): any match beside the rules told once more, and what chance deals.

`rules.cases` shows rule by rule; melds and layoffs are searched for by brute force in
`tests/protocol/test_gin_melds.py`, and taken from `protocol/gin_melds.py` here.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arena
from arena.games.gin_rummy.rules import GAME, deals, score
from arena.games.match import MatchState
from arena.games.rules import EVERYONE
from arena.games.shuffle import Stream, match_key, seed_from_int
from bots.gin_rummy import Patient, Random, Simple
from protocol.cards import PACK
from protocol.errors import IllegalAnswer
from protocol.gin_melds import arrange, best_defence, deadwood, lay_off, points
from protocol.gin_rummy import GinRummySettings, TurnAnswer
from protocol.messages import Ending
from tests.support.rule_oracle import WRONG, Ask, Tell, play_beside

# ---- The rules once more


def without(hand: Sequence[str], card: str) -> list[str]:
    return [other for other in hand if other != card]


def unmelded(hand: Sequence[str], melds: Sequence[Sequence[str]]) -> list[str]:
    return [card for card in hand if not any(card in meld for meld in melds)]


def turn_answers(hand: Sequence[str]) -> tuple[TurnAnswer, ...]:
    may = [card for card in hand if deadwood(without(hand, card)) <= 10]
    knocks = [TurnAnswer(card, True) for card in may]
    return (*[TurnAnswer(card) for card in hand], *knocks)


def a_knock(hands: list[list[str]], knocker: int, declared: Any, ask: Ask) -> dict[str, Any]:
    """What the round brings when `knocker` has knocked (G9–G11)."""
    mine, theirs = hands[knocker], hands[1 - knocker]
    answered = ask(1 - knocker, "melds", hand=tuple(theirs), legal=(None,))
    melds = arrange(mine)[0] if declared is None else declared
    own = points(unmelded(mine, melds))
    on = melds if own else ()
    if answered is None:
        defence, layoffs, left = best_defence(theirs, on)
    else:
        layoffs, rest = lay_off(unmelded(theirs, answered), on)
        defence, left = answered, points(rest)
    won = (25 + left, 0) if not own else (left - own, 0) if left > own else (0, 25 + own - left)
    reason = "gin" if not own else "knock" if left > own else "undercut"
    if own and left == own:
        won, reason = (0, 0), "tie"
    by_seat = slice(None, None, -1 if knocker else 1)
    pairs = {"melds": (melds, defence)[by_seat], "points": won[by_seat]}
    return {"knocker": knocker, "gin": not own, "layoffs": layoffs, "reason": reason, **pairs}


def a_round(
    deck: Sequence[str], starter: int, most: int, ask: Ask, tell: Tell
) -> tuple[list[list[str]], dict[str, Any]]:
    """The hands at the end and what the round brings (G5–G13)."""
    hands = [list(deck[:10]), list(deck[10:20])]
    stock, pile = list(deck[21:]), deck[20]
    seat, first = starter, "stock"
    for offered in (starter, 1 - starter):
        asked = {"upcard": pile, "hand": tuple(hands[offered])}
        took = ask(offered, "offer", legal=("take", "pass"), **asked) == "take"
        tell(EVERYONE, "offered", seat=offered, took=took)
        if took:
            seat, first = offered, "discard"
            break
    for turn in range(most):
        hand, drew = hands[seat], first
        if turn:
            asked = {"discard": pile, "hand": tuple(hand)}
            drew = ask(seat, "draw", legal=("stock", "discard"), **asked)
        elif drew == "stock" and not stock:
            break
        card = stock.pop(0) if drew == "stock" else pile
        hand.append(card)
        answer = ask(seat, "turn", drawn=card, hand=tuple(hand), legal=turn_answers(hand))
        pile = answer.discard
        hand.remove(pile)
        shown = card if drew == "discard" else None
        tell(EVERYONE, "turn", seat=seat, drew=drew, card=shown, discarded=pile)
        if answer.knock:
            return hands, a_knock(hands, seat, answer.melds, ask)
        if not stock:
            break
        seat = 1 - seat
    melds = arrange(hands[0])[0], arrange(hands[1])[0]
    tied = {"knocker": None, "gin": False, "melds": melds, "layoffs": (), "points": (0, 0)}
    return hands, {**tied, "reason": "turns" if stock else "stock"}


def gin_rummy(
    decks: Iterator[Any], agreed: GinRummySettings, ask: Ask, tell: Tell
) -> tuple[int, int]:
    games, number = [0, 0], 0
    for game in range(1, agreed.games + 1):
        scores = (0, 0)
        starter: int = agreed.starter or 0
        for _ in range(agreed.max_rounds):
            number += 1
            deck = next(decks)
            for seat in (0, 1):
                hand = tuple(deck[10 * seat : 10 * seat + 10])
                which = {"game": game, "round": number, "starter": starter}
                tell(seat, "dealt", hand=hand, upcard=deck[20], **which)
            hands, over = a_round(deck, starter, agreed.max_turns, ask, tell)
            scores = (scores[0] + over["points"][0], scores[1] + over["points"][1])
            held = tuple(hands[0]), tuple(hands[1])
            tell(EVERYONE, "round_over", hands=held, scores=scores, **over)
            starter = 1 - starter
            if max(scores) >= agreed.target:
                break
        winner = None if max(scores) < agreed.target else scores.index(max(scores))
        if winner is not None:
            games[winner] += 1
        tell(EVERYONE, "game_over", winner=winner, scores=scores, games=tuple(games))
    return games[0], games[1]


# ---- Any match


def choose(rng: random.Random, question: Any) -> object:
    """Any legal answer; knocks, which are rare, more often, and melds that are declared."""
    legal = question.choices
    if question.kind not in ("turn", "melds"):
        return rng.choice(legal)
    picked = legal[-1] if rng.random() < 0.3 else rng.choice(legal)
    ten = question.hand if question.kind == "melds" else without(question.hand, picked.discard)
    melds = [meld for meld in arrange(ten)[0] if rng.random() < 0.7][:: rng.choice((1, -1))]
    if question.kind == "melds":
        return None if rng.random() < 0.5 else melds
    if not picked.knock or rng.random() < 0.5 or points(unmelded(ten, melds)) > 10:
        return picked
    return {"discard": picked.discard, "knock": True, "melds": melds}


def a_deck(rng: random.Random) -> list[str]:
    """A deck in which hands of few ranks are nearly melded; its stock ends somewhere."""
    pack = list(PACK)
    rng.shuffle(pack)
    if rng.random() < 0.7:
        ranks = rng.sample("A23456789TJQK", 6)
        pack.sort(key=lambda card: card[0] not in ranks)
        hands = pack[:20]
        rng.shuffle(hands)
        pack[:20] = hands
    return pack[: rng.choice((21, 22, 30, 52))]


@pytest.mark.stats
@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([1, 3, 200]),
    st.sampled_from([1, 20, 50]),
)
def test_G3_to_G15_whatever_is_played_is_as_the_rules_say(
    seed: int, starter: int | None, max_turns: int, target: int
) -> None:
    rng = random.Random(seed)
    decks = [a_deck(rng) for _ in range(6)]
    chosen = {"starter": starter, "max_turns": max_turns, "target": target}
    wrong = [answer for answer in WRONG if answer not in (None, [])]
    settings = {**chosen, "games": 2, "max_rounds": 3}
    play_beside(GAME, gin_rummy, rng, decks, settings, choose=choose, wrong=wrong)


@pytest.mark.parametrize(
    "answer",
    [
        "8d",
        {"discard": "Zz"},
        {"discard": "9h"},
        {"discard": "8d", "knock": 1},
        {"discard": "8d", "knock": 1.0},
        {"discard": "8d", "knock": "true"},
        {"discard": "8d", "knock": True, "melds": True},
        {"discard": "8d", "knock": True, "melds": ["As", "2s"]},
        {"discard": "8d", "melds": [["As", "2s", "3s"]]},
        {"discard": "8d", "card": "8d"},
    ],
    ids=str,
)
def test_J1_what_looks_like_the_answer_of_a_turn_and_is_none(answer: object) -> None:
    ten = "As 2s 3s 4h 5h 6h Ac 2d 3c 4d 9h Th Jh Qs Qd Qc 2h 4c 6d 8c Jc 8d".split()
    match = MatchState(GAME, GinRummySettings(max_rounds=1), decks=[ten])
    match.answer("pass")
    match.answer("pass")

    with pytest.raises(IllegalAnswer, match=r"^seat 1 answered"):
        match.answer(answer)
    match.answer({"discard": "8d", "knock": True})


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


# ---- What chance deals, and a pairing


def test_G3_G4_decks_are_whole_packs_and_the_start_is_by_chance() -> None:
    drawn = deals(GinRummySettings(), Stream(b"key"))
    some = [next(drawn) for _ in range(1000)]

    assert all(sorted(deal.deck) == sorted(PACK) for deal in some)
    starts = Counter(deal.starter for deal in some)
    assert abs(starts[0] - 500) < 4 * 1000**0.5 / 2


@pytest.mark.parametrize("starter", [None, 0, 1])
def test_G4_chance_or_the_setting_decides_who_starts_a_game(starter: Any) -> None:
    settings = GinRummySettings(starter=starter, games=6, max_rounds=3, max_turns=1)
    match = MatchState(GAME, settings, seed=seed_from_int(5))
    drawn = deals(settings, Stream(match_key(seed_from_int(5))))
    starts = []
    for _ in range(6):
        chance, _, _ = (next(drawn).starter for _ in range(3))
        first = chance if starter is None else starter
        starts.append(first)
        for seat in (first, 1 - first, first):
            assert match.pending is not None
            assert match.pending.seat == seat
            for answer in ("pass", "pass"):
                match.answer(answer)
            asked: Any = match.pending.question
            match.answer(asked.legal[0])
    assert match.pending is None
    assert set(starts) == ({0, 1} if starter is None else {starter})


def test_G15_after_an_offence_the_games_stand_as_they_were() -> None:
    match = MatchState(GAME, GinRummySettings(), decks=[PACK])
    match.end(Ending.ILLEGAL, 1, "seat 2 answered nonsense")

    assert (match.result().scores, match.result().winner) == ((0, 0), 0)


def test_G16_a_pairing_reports_the_games_of_each_seat() -> None:
    result = arena.play("gin", [Patient(), Simple()], seed=3, settings={"games": 15})

    assert sum(result.scores) == 15
    assert result.winner == (0 if result.scores[0] > result.scores[1] else 1)
    assert min(result.points) > 0


def test_a_random_bot_plays_to_the_end() -> None:
    result = arena.play("gin", [Random(), Random()], seed=11, settings={"target": 20})

    assert result.termination.kind is Ending.COMPLETED
