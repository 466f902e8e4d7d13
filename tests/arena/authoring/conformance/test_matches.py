"""Matches of `arena check`: whole matches by the real rules, with all opponents in this process."""

from __future__ import annotations

import random

import pytest

from arena.authoring.conformance.matches import CheckMatch, against_house, house
from arena.authoring.playout import AnyLegal
from arena.games.catalogue import GAMES, game_named
from arena.games.match import MatchState
from arena.games.rules import Variation
from arena.games.shuffle import commitment
from protocol.errors import IllegalAnswer
from protocol.high_low import Bid
from protocol.messages import Ask, Ending, Limits, Over
from protocol.strategy import house_bots
from protocol.three_card_poker import Ante
from protocol.vocabulary import Range

EACH_GAME = pytest.mark.parametrize("game", GAMES)


def begun(game: str = "ace_king_queen", seat: int = 0, nonce: str = "nonce") -> CheckMatch:
    rules, rng = game_named(game), random.Random(1)
    match = CheckMatch(1, rules, against_house(rules.short), seat, "ann", Limits(), rng)
    match.begin(nonce)
    return match


def played(match: CheckMatch) -> Over:
    """The end, after answers of a bot that plays at random."""
    while isinstance(message := match.next(), Ask):
        match.instead()
    return message


@EACH_GAME
def test_a_match_goes_from_its_invitation_to_its_end(game: str) -> None:
    for seat in range(game_named(game).seats):
        match = begun(game, seat)
        over, invitation = played(match), match.invitation
        reveal = over.reveal

        assert (invitation.seat, invitation.seats[seat]) == (seat, "ann")
        assert over.termination.kind is Ending.COMPLETED
        assert match.asked > 0
        assert match.rounds > 0
        assert match.ask is None
        # The cards come from the seed that was committed to, and from the nonces.
        assert reveal is not None
        assert commitment(bytes.fromhex(reveal.seed)) == invitation.commitment
        assert reveal.nonces[seat] == "nonce"
        again = MatchState(
            match.game, match.settings, seed=bytes.fromhex(reveal.seed), nonces=reveal.nonces
        )
        fresh, asked = begun(game, seat), again.pending
        if isinstance(first := fresh.next(), Ask) and asked is not None and asked.seat == seat:
            assert first.question == asked.question


def test_the_first_nonce_stands() -> None:
    match = begun("gin_rummy", nonce="first")
    match.begin("second")

    assert match.next() == begun("gin_rummy", nonce="first").next()


def test_an_answer_that_is_not_legal_changes_nothing() -> None:
    match = begun()
    match.clock.bank_ms = 1234
    asked = match.next()

    with pytest.raises(IllegalAnswer):
        match.take("raise")
    assert match.ask is asked
    assert isinstance(asked, Ask)
    assert asked.bank_ms == 1234  # what is left in the bank is told


@pytest.mark.parametrize(
    ("kind", "seat", "text"),
    [(Ending.VOID, None, "why"), (Ending.CRASH, 1, "")],  # the text is for the offender alone
)
def test_a_match_can_end_early(kind: Ending, seat: int | None, text: str) -> None:
    match = begun()
    match.next()
    ended = match.end(kind, seat, "why").termination

    assert (ended.kind, ended.seat, ended.text) == (kind, seat, text)
    assert match.ask is None


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
    variation = against_house(rules.rounds(rounds))
    match = CheckMatch(1, rules, variation, 0, "ann", Limits(), random.Random(1))
    match.begin("nonce")
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
    chance = AnyLegal(random.Random(1))
    bid = Bid("As", "2s", (None,) * 4, ("quit", 8, 10))

    assert {chance.decide(bid) for _ in range(50)} == {"quit", 8, 10}
    assert {chance.decide(Ante(1, 6, Range(1, 3))) for _ in range(50)} == {1, 2, 3}
