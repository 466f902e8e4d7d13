from __future__ import annotations

import pytest
from msgspec.structs import replace

import arena
from arena.games.catalogue import GAMES
from arena.records.luck import luck_of
from arena.records.mistakes import judged
from protocol.errors import IllegalAnswer, NoAnalysis, NoLuck
from tests.support.random_matches import played

EACH_GAME = pytest.mark.parametrize("game", [*GAMES])


@EACH_GAME
def test_luck_sums_to_that_of_the_match(game: str) -> None:
    record = played(game)
    made = [*arena.decisions(record)]
    try:
        rounds = luck_of(record).rounds
    except NoLuck:
        assert all(each.luck is None for each in made)
        return
    for seat in range(GAMES[game].seats):
        mine = [each for each in made if each.seat == seat]
        asked = len(rounds)
        if game == "ace_king_queen":  # in the hands after its last decision it is not asked
            asked = mine[-1].round
            assert len({each.round for each in mine}) < asked
        expected = sum(over.luck[seat] for over in rounds[:asked])
        assert sum(each.luck or 0 for each in mine) == pytest.approx(expected)


def test_cards_that_somebody_gave_are_no_luck() -> None:
    from bots.ace_king_queen import Bluffer, Honest

    decks = [("A", "Q"), ("K", "A")]
    result = arena.play("akq", [Honest(), Bluffer()], decks=decks, settings={"hands": 2})

    assert {each.luck for each in arena.decisions(result.record)} == {None}


def test_a_record_is_replayed_a_round_at_a_time() -> None:
    record = played("three_card_poker")
    damaged = replace(record, answers=(*record.answers[:-1], "nonsense"))
    made = arena.decisions(damaged)

    assert [next(made).question.kind for _ in range(2)] == ["ante", "play"]
    with pytest.raises(IllegalAnswer, match="nonsense"):
        list(made)


def test_costs_are_those_of_the_mistakes() -> None:
    record = played("ace_king_queen")
    made = [*arena.decisions(record, costs=True)]

    for seat in (0, 1):
        assert [(each.number, each.cost) for each in made if each.seat == seat] == [
            (each.number, each.judgement) for each in judged(record, seat)
        ]
    assert {each.cost for each in arena.decisions(record)} == {None}


def test_costs_that_a_game_cannot_say_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAMES, "high_low", replace(GAMES["high_low"], judging=None))

    with pytest.raises(NoAnalysis, match="high_low does not say what decisions cost"):
        arena.decisions(played("high_low"), costs=True)
