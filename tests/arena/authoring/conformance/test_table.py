"""Matches of `arena check`: the real rules, whole, with everybody else in this process."""

from __future__ import annotations

import random
from typing import Any

import pytest

from arena.authoring.conformance.legal_shapes import SHORT
from arena.authoring.conformance.table import AnyLegal, CheckMatch, house, seed_of
from arena.engine.match import MatchState
from arena.engine.shuffle import Stream, commitment, match_key
from arena.games import GAMES, game_named
from protocol.errors import IllegalAnswer
from protocol.games import VOCABULARIES
from protocol.high_low import Bid
from protocol.messages import Ask, Ending, Limits, Over
from protocol.strategy import house_bots
from protocol.vocabulary import Range

EACH_GAME = pytest.mark.parametrize("game", GAMES)


def table(game: str = "ace_king_queen", seat: int = 0, number: int = 1) -> CheckMatch:
    rules, rng = game_named(game), random.Random(number)
    return CheckMatch(number, rules, SHORT[game], seat, "ann", Limits(), rng)


def played(table: CheckMatch) -> tuple[list[Any], Over]:
    """What a bot answers that takes any legal answer, and the end."""
    table.begin("nonce")
    values: list[Any] = []
    chance = AnyLegal(random.Random(0))
    while isinstance(message := table.next(), Ask):
        values.append(message.question.check(chance.decide(message.question)))
        table.take(values[-1])
    return values, message


@EACH_GAME
def test_a_match_goes_from_its_invitation_to_its_end(game: str) -> None:
    for seat in range(game_named(game).seats):
        one = table(game, seat)
        values, over = played(one)

        assert one.invitation.seat == seat
        assert one.invitation.seats[seat] == "ann"
        assert over.termination.kind is Ending.COMPLETED
        assert one.asked == len(values) > 0
        assert one.rounds > 0
        assert one.ask is None


@EACH_GAME
def test_the_cards_come_from_the_seed_that_was_committed_to(game: str) -> None:
    one = table(game)
    _, over = played(one)
    reveal = over.reveal

    assert reveal is not None
    assert commitment(bytes.fromhex(reveal.seed)) == one.invitation.commitment
    assert reveal.nonces[0] == "nonce"
    again = MatchState(
        one.game, one.settings, seed=bytes.fromhex(reveal.seed), nonces=reveal.nonces
    )
    assert again.pending == table_after_ready(reveal.nonces[0], game).pending


def table_after_ready(nonce: str, game: str) -> MatchState:
    """The match of the same table, as it stands before the first answer."""
    one = table(game)
    one.begin(nonce)
    return one._running


def test_the_first_nonce_stands() -> None:
    one, other = table(), table()
    one.begin("first")
    one.begin("second")
    other.begin("first")

    assert one.next() == other.next()


def test_an_answer_that_is_not_legal_changes_nothing() -> None:
    one = table()
    one.begin("nonce")
    asked = one.next()

    with pytest.raises(IllegalAnswer):
        one.take("raise")
    assert one.ask is asked
    one.instead()
    assert one.ask is None


def test_only_the_question_that_waits_is_waited_for() -> None:
    one = table()
    one.begin("nonce")
    one.next()

    assert one.waits_for(f"{one.id}:1")
    assert not one.waits_for(f"{one.id}:2")
    one.instead()
    assert not one.waits_for(f"{one.id}:1")


def test_a_match_can_end_early() -> None:
    one = table()
    one.begin("nonce")
    one.next()
    over = one.end(Ending.VOID, None, "why")

    assert over.termination.text == "why"
    assert over.termination.seat is None


def test_of_anothers_offence_the_word_is_told_and_no_more() -> None:
    one = table()
    one.begin("nonce")
    one.next()
    over = one.end(Ending.CRASH, 1, "what it did")

    assert (over.termination.kind, over.termination.seat) == (Ending.CRASH, 1)
    assert not over.termination.text


def test_what_is_left_in_the_bank_is_told() -> None:
    one = table()
    one.begin("nonce")
    one.bank_ms = 1234.5
    ask = one.next()

    assert isinstance(ask, Ask)
    assert ask.bank_ms == 1234


@EACH_GAME
def test_house_bots_take_turns(game: str) -> None:
    names = [house(game, number, random.Random(1))[0] for number in range(10)]

    assert set(names) == set(house_bots(game))


def test_where_there_are_no_house_bots_chance_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.authoring.conformance.table._bots", lambda game: ())
    name, strategy = house("high_low", 0, random.Random(1))

    assert name == "chance"
    assert isinstance(strategy, AnyLegal)


def test_chance_stays_within_what_is_legal() -> None:
    rng = random.Random(1)
    bid = Bid("As", "2s", (None,) * 4, ("quit", 8, 10))
    bids = {AnyLegal(rng).decide(bid) for _ in range(50)}
    ante = VOCABULARIES["three_card_poker"].questions["ante"]
    antes = {AnyLegal(rng).decide(ante(1, 6, Range(1, 3))) for _ in range(50)}

    assert bids == {"quit", 8, 10}
    assert antes == {1, 2, 3}


def test_the_same_seed_gives_the_same_table() -> None:
    assert seed_of(7).random() == seed_of(7).random() != seed_of(8).random()
    stream = Stream(match_key(b"x"))
    assert stream.below(6) in range(6)
