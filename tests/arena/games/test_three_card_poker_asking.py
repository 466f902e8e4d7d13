"""What is put to a bot of three card poker, and how it is found that it adapts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from random import Random

import pytest

from arena.engine.analysis import ProbedMatch
from arena.games.three_card_poker import GAME
from arena.games.three_card_poker_asking import MOST_CASHES, Asking, dependence, differing
from arena.games.three_card_poker_luck import HANDS
from arena.lab.probe import begin
from protocol.cards import PACK
from protocol.three_card_poker import Ante, Hand, Play, RoundOver, ThreeCardPokerSettings, strength

SETTINGS = ThreeCardPokerSettings(stake=40, goal=60)
Decider = Callable[[int, Play, RoundOver | None], bool]
"""Whether to play: the round's number, the question, and what came of the round before."""


def asked(decides: Decider, ante: int = 1, seed: int = 1) -> tuple[Asking, Asking]:
    """Two askings that a bot has answered, which is a function."""
    return answered(Asking(SETTINGS, 1, seed), decides, ante), answered(
        Asking(SETTINGS, 2, seed), decides, ante
    )


def answered(asking: Asking, decides: Decider, ante: int) -> Asking:
    match, news, number = begin(GAME, asking.match()), None, 0
    while match.pending is not None:
        question = match.pending.question
        for tell in match.news:
            news = tell.news
        match.news = []
        if type(question) is Ante:
            number = question.round
            match.answer(min(ante, question.legal.max))
        else:
            assert news is None or type(news) is RoundOver
            match.answer("play" if decides(number, question, news) else "fold")
    asking.note(ProbedMatch([], match.answers, match.scores))
    return asking


def is_good(hand: Hand) -> bool:
    return strength(hand) >= strength(("Qs", "6h", "4d"))


def test_every_hand_is_asked_once_in_an_order_of_its_own() -> None:
    hands: list[list[Hand]] = [[], []]
    cashes: list[list[int]] = [[], []]

    def decides(number: int, question: Play, news: RoundOver | None) -> bool:
        hands[not at_first].append(question.hand)
        cashes[not at_first].append(question.cash)
        return True

    at_first = True
    first = answered(Asking(SETTINGS, 1, 7), decides, 1)
    at_first = False
    second = answered(Asking(SETTINGS, 2, 7), decides, 1)

    for some in hands:
        assert sorted(map(sorted, some)) == sorted(map(sorted, combinations(PACK, 3)))
    assert hands[0] != hands[1]
    assert cashes[0][0] == cashes[1][0] == 40
    assert cashes[0] != cashes[1]
    assert {*cashes[0]} == {*cashes[1]} == {*range(2, 60)}
    assert differing(first, second) == []
    assert dependence(first, second) == ""


def test_of_many_cashes_some_are_asked() -> None:
    settings = ThreeCardPokerSettings(stake=10**9, goal=2 * 10**9)
    seen: list[int] = []
    answered(
        Asking(settings, 1, 1), lambda number, question, news: bool(seen.append(question.cash)), 1
    )

    assert seen[0] == 10**9
    assert MOST_CASHES - 1 <= len({*seen}) <= MOST_CASHES + 1
    assert max(seen) > 1.9 * 10**9


def test_a_bot_that_decides_by_its_hand_alone_answers_the_same() -> None:
    first, second = asked(lambda number, question, news: is_good(question.hand))

    assert differing(first, second) == []
    assert sum(first.plays.values()) < HANDS


@pytest.mark.parametrize("seed", [1, 2])
def test_a_bot_that_draws_lots_is_not_said_to_adapt(seed: int) -> None:
    random = Random(seed)
    likely = {True: 0.9, False: 0.3}
    first, second = asked(lambda *case: random.random() < likely[is_good(case[1].hand)], seed=seed)

    assert len(differing(first, second)) > 1000
    assert dependence(first, second) == ""


@pytest.mark.parametrize(
    ("decides", "what"),
    [
        (lambda number, question, news: number > 15, "late in a match"),
        (lambda number, question, news: is_good(question.hand) or question.cash > 55, "more cash"),
        (lambda number, question, news: is_good(question.hand) or question.cash < 5, "less cash"),
        (
            lambda number, question, news: is_good(question.hand) or (news and news.outcome < 0),
            "after a worse round",
        ),
    ],
)
def test_a_bot_that_adapts_is_found(decides: Decider, what: str) -> None:
    sentence = dependence(*asked(decides))

    assert "hands differently when asked again: it plays more" in sentence
    assert sentence.endswith(what)


def test_a_bot_that_has_learnt_between_the_askings_is_found() -> None:
    asking: list[int] = []

    def decides(number: int, question: Play, news: RoundOver | None) -> bool:
        asking[:] = [*asking, number] if number == 1 else asking
        return is_good(question.hand) or len(asking) > 1

    assert dependence(*asked(decides)).endswith("when it is asked again")
