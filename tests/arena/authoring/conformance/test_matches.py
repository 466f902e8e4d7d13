"""Matches of `arena check`: whole matches by the real rules, with all opponents in this process."""

from __future__ import annotations

import random
from typing import Any

import pytest

from arena.authoring.conformance.matches import CheckMatch, against_house, house
from arena.authoring.playout import AnyLegal
from arena.engine.match import MatchState
from arena.engine.rules import Variation
from arena.engine.shuffle import commitment
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
    return CheckMatch(number, rules, against_house(rules.short), seat, "ann", Limits(), rng)


def asked_table() -> CheckMatch:
    """A match whose first question is open."""
    match = table()
    match.begin("nonce")
    match.next()
    return match


def played(table: CheckMatch) -> tuple[list[Any], Over]:
    """The answers of a bot that plays at random, and the end."""
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
        match = table(game, seat)
        values, over = played(match)

        assert match.invitation.seat == seat
        assert match.invitation.seats[seat] == "ann"
        assert over.termination.kind is Ending.COMPLETED
        assert match.asked == len(values) > 0
        assert match.rounds > 0
        assert match.ask is None


@EACH_GAME
def test_the_cards_come_from_the_seed_that_was_committed_to(game: str) -> None:
    match = table(game)
    _, over = played(match)
    reveal = over.reveal

    assert reveal is not None
    seed = bytes.fromhex(reveal.seed)
    assert commitment(seed) == match.invitation.commitment
    assert reveal.nonces[0] == "nonce"
    again = MatchState(match.game, match.settings, seed=seed, nonces=reveal.nonces)
    fresh = table(game)
    fresh.begin("nonce")
    assert again.pending == fresh._running.pending


def test_the_first_nonce_stands() -> None:
    match, other = table(), table()
    match.begin("first")
    match.begin("second")
    other.begin("first")

    assert match.next() == other.next()


def test_an_answer_that_is_not_legal_changes_nothing() -> None:
    match = asked_table()
    asked = match.ask

    with pytest.raises(IllegalAnswer):
        match.take("raise")
    assert match.ask is asked


@pytest.mark.parametrize(
    ("kind", "seat", "text"),
    [(Ending.VOID, None, "why"), (Ending.CRASH, 1, "")],  # the text is for the offender alone
)
def test_a_match_can_end_early(kind: Ending, seat: int | None, text: str) -> None:
    ended = asked_table().end(kind, seat, "why").termination

    assert (ended.kind, ended.seat, ended.text) == (kind, seat, text)


def test_what_is_left_in_the_bank_is_told() -> None:
    match = table()
    match.begin("nonce")
    match.clock.bank_ms = 1234
    ask = match.next()

    assert isinstance(ask, Ask)
    assert ask.bank_ms == 1234


@EACH_GAME
def test_every_shape_of_legal_comes_up_in_the_matches_of_the_variations(game: str) -> None:
    rules, rng = game_named(game), random.Random(game)
    missing = [*rules.vocabulary.legal_shapes]
    variations = rules.variations or (Variation(lambda seat: rules.rounds(10)),)
    for number in range(6):
        variation, seat = variations[number % len(variations)], number % rules.seats
        match = CheckMatch(number, rules, variation, seat, "ann", Limits(), rng)
        match.begin("nonce")
        while isinstance(message := match.next(), Ask):
            missing = [shape for shape in missing if not shape.is_of(message.question)]
            match.instead()

    assert not missing


@EACH_GAME
@pytest.mark.parametrize("rounds", [1, 7, 30])
def test_a_match_has_at_most_so_many_rounds_or_nearly(game: str, rounds: int) -> None:
    rules = game_named(game)
    settings = against_house(rules.rounds(rounds))
    match = CheckMatch(1, rules, settings, 0, "ann", Limits(), random.Random(1))
    played(match)

    assert 0 < match.rounds < rounds + 10


@EACH_GAME
def test_house_bots_take_turns(game: str) -> None:
    names = [house(game, number, random.Random(1))[0] for number in range(10)]

    assert set(names) == set(house_bots(game))


def test_where_there_are_no_house_bots_chance_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.authoring.conformance.matches._bots", lambda game: ())
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
