"""What holds of every game, whatever its rules are: random legal play-outs from any seed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, MatchState, Record
from arena.games.replay import replay
from arena.games.rules import EVERYONE
from bots.strategy import choose
from protocol.errors import BadDeck, IllegalAnswer
from protocol.messages import Ending
from tests.support.rule_oracle import WRONG

WRONG_ANYWHERE: tuple[object, ...] = (
    object(),
    b"bytes",
    float("nan"),
    1 << 70,
    -1,
    "",
    "raise",
    {},
    {1: 2},
)

EACH = pytest.mark.parametrize("name", GAMES)
STAKES = {"blackjack": 100, "three_card_poker": 100}
"""What an offence costs against the dealer, with the settings of short matches."""


def played_out(name: str, seed: bytes, rng: random.Random, nonce: str = "") -> MatchResult:
    """A match of random legal answers."""
    game = GAMES[name]
    read = game.vocabulary.read_settings({**game.rounds(5), **game.short})
    match = MatchState(game, read, seed=seed, nonces=(nonce,) * game.seats)
    while match.pending is not None:
        match.answer(choose(match.pending.question.choices, rng))
    return match.result()


@EACH
@settings(max_examples=15)
@given(seed=st.binary(min_size=32, max_size=32), chance=st.integers(0, 2**32))
def test_any_seed_is_played_to_its_end_and_replays(name: str, seed: bytes, chance: int) -> None:
    result = played_out(name, seed, random.Random(chance))
    written = result.record.to_json()
    again = replay(Record.from_json(written))

    assert result.termination.kind is Ending.COMPLETED
    assert (again, again.record.to_json()) == (result, written)
    assert played_out(name, seed, random.Random(chance)) == result


@EACH
def test_another_seed_or_nonce_deals_other_cards(name: str) -> None:
    game = GAMES[name]
    read = game.vocabulary.read_settings(game.short)

    def first_deal(seed: bytes, nonce: str) -> object:
        nonces = (nonce,) * game.seats
        match = MatchState(game, read, seed=seed, nonces=nonces, tells_deals=True)
        return [told.news for told in match.news][:7]

    deals = [first_deal(b"a" * 32, ""), first_deal(b"b" * 32, ""), first_deal(b"a" * 32, "n")]
    assert deals[0] == first_deal(b"a" * 32, "")
    assert name == "ace_king_queen" or len({repr(deal) for deal in deals}) == 3


@EACH
@settings(max_examples=10)
@given(st.data())
def test_J1_J3_an_illegal_answer_changes_nothing_until_the_end(
    name: str, data: st.DataObject
) -> None:
    game = GAMES[name]
    read = game.vocabulary.read_settings(game.short)
    match = MatchState(game, read, seed=b"s" * 32, nonces=("",) * game.seats)
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(0, 12))):
        if match.pending is not None:
            match.answer(choose(match.pending.question.choices, rng))
    if (asked := match.pending) is None:
        return
    scores, answers, points = match.scores, [*match.answers], match.points
    for wrong in (*WRONG_ANYWHERE, WRONG, [["As", "2s", True]]):
        with pytest.raises(IllegalAnswer, match=f"^seat {asked.seat + 1} answered"):
            match.answer(wrong)
        assert (match.pending, match.scores, match.answers) == (asked, scores, answers)
    match.end(Ending.ILLEGAL, asked.seat, "seat answered nonsense")
    result = match.result()

    lost = scores if name not in STAKES else (-STAKES[name],)
    assert (result.scores, result.points) == (lost, points)
    assert replay(Record.from_json(result.record.to_json())) == result


NO_DECKS: list[Any] = [None, 26, [3] * 30, [None] * 30, "As"]


@EACH
@pytest.mark.parametrize("deck", NO_DECKS, ids=str)
def test_a_deck_that_is_none_is_refused(name: str, deck: Any) -> None:
    game = GAMES[name]
    fair = {"shuffle": "uniform"} if name == "blackjack" else {}

    with pytest.raises(BadDeck):
        MatchState(game, game.vocabulary.read_settings(fair), decks=[deck])


@EACH
def test_every_seat_is_told_what_all_are_told(name: str) -> None:
    game = GAMES[name]
    read = game.vocabulary.read_settings(game.short)
    match = MatchState(game, read, seed=b"s" * 32)
    told = {news.seat for news in match.news}
    while match.pending is not None:
        match.answer(choose(match.pending.question.choices, random.Random(1)))
        told |= {news.seat for news in match.news}

    assert told <= {EVERYONE, *range(game.seats)}
    assert told
