"""What decisions cost: which are mistakes, where they stand, and what cannot be said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from arena.games.catalogue import GAMES
from arena.records.mistakes import JudgedSeat, UnitTotal, added, dearest, judged, mistakes_of
from protocol.errors import NoAnalysis
from protocol.messages import Ending
from tests.support.judged_toys import install_judged_toy, play_in_pairs, toy_record


@pytest.fixture
def game(monkeypatch: pytest.MonkeyPatch) -> str:
    return install_judged_toy(monkeypatch).name


def test_a_mistake_costs_something_and_is_not_level(game: str) -> None:
    record = toy_record(game, (3, 2, 1, 0, 3, 2), "Ah Kd Qh 2h As Js")

    found = mistakes_of(record, 1)

    assert (found.seat, found.version) == (1, 7)
    assert (found.decisions, found.judged) == (6, 5)
    costs = [(one.round, one.judgement.cost, one.judgement.grade) for one in found.mistakes]
    assert costs == [(3, 2.0, 2), (5, 3.0, 3), (6, 2.0, 2)]
    assert found.totals == (UnitTotal("chips", 3, 7.0),)


def test_a_decision_says_where_it_stands(game: str) -> None:
    record = toy_record(game, (3, 0, 0), "Ah 2d Qh")
    progress: list[tuple[int, int]] = []

    first, last = judged(record, 1, lambda done, of: progress.append((done, of)))

    assert (first.number, first.index, first.round, first.unit) == (1, 1, 1, 1)
    assert (last.number, last.index, last.round, last.unit) == (3, 5, 3, 3)
    assert (first.turn, last.turn) == (1, 1), "of its round"
    assert record.answers[last.index] == last.answer == 0
    assert last.judgement.best == 3
    assert (first.is_mistake, last.is_mistake) == (False, True)
    assert progress == [(1, 3), (2, 3), (3, 3)]


def test_only_the_dearest_of_a_unit_are_shown_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = install_judged_toy(monkeypatch, most=1)
    record = toy_record(game.name, (3, 1, 0, 1), "As Kd Qh Jh")

    assert [one.round for one in mistakes_of(record, 1).mistakes] == [1, 2, 3, 4], "one of a round"

    play_in_pairs(monkeypatch, game)
    found = mistakes_of(record, 1)

    assert [(one.round, one.unit, one.judgement.cost) for one in found.mistakes] == [
        (1, 1, 3.0),
        (3, 2, 3.0),
    ]
    assert found.totals == (UnitTotal("chips", 4, 10.0),)


def test_units_are_judged_in_any_order_those_first_that_were_lost_highest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = install_judged_toy(monkeypatch)
    play_in_pairs(monkeypatch, game)
    seat = JudgedSeat(toy_record(game.name, (3, 1, 0, 3, 2, 1), "As Kd Qh Jh Ah 2s"), 1)

    units = [(unit.number, unit.decisions, unit.margin) for unit in seat.lost_first]
    assert units == [(2, 2, -1), (3, 2, 0), (1, 2, 1)]
    progress: list[tuple[int, int]] = []
    found = list(seat.judged(seat.lost_first[:2], lambda done, of: progress.append((done, of))))
    assert [(one.unit, one.number) for one in found] == [(2, 3), (2, 4), (3, 5)]
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [one.number for one in seat.judged(seat.units[::-1])] == [5, 3, 4, 1, 2]
    mistakes = seat.mistakes(found)
    assert (mistakes.decisions, mistakes.judged) == (6, 3)


def test_the_dearest_come_first(game: str) -> None:
    found = list(judged(toy_record(game, (1, 0, 2), "Ah Kd Qs"), 1))

    assert [one.judgement.cost for one in dearest(found)] == [3.0, 2.0, 2.0]
    assert [one.round for one in dearest(found, 2)] == [2, 1]


def test_a_match_that_was_stopped_is_judged_as_far_as_it_went(game: str) -> None:
    record = toy_record(game, (0, 0), "Ah Kd Qh", rounds=3)

    found = mistakes_of(record, 1)

    assert record.termination.kind is Ending.CRASH
    assert found.decisions == 2
    assert [each.count for each in found.totals] == [2]
    assert mistakes_of(record, 0).totals == ()


def test_a_match_without_a_decision_has_no_mistakes(game: str) -> None:
    found = mistakes_of(toy_record(game, (), "Ah", rounds=1), 1)

    assert (found.decisions, found.judged, found.totals, found.mistakes) == (0, 0, (), ())


def test_what_is_not_judged_is_refused_with_the_reason(
    game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = toy_record(game, (0,), "Ah", rounds=91)

    with pytest.raises(NoAnalysis, match="more than 90 rounds are too many"):
        mistakes_of(record, 1)

    unjudged = replace(GAMES[game], judging=None)
    monkeypatch.setitem(GAMES, game, unjudged)
    with pytest.raises(NoAnalysis, match=f"^{game} does not say what decisions cost$"):
        mistakes_of(record, 1)


def test_costs_in_two_units_are_not_added() -> None:
    totals = [
        UnitTotal("chips", 1, 2.0),
        UnitTotal("% of a goal", 1, 5.0),
        UnitTotal("chips", 2, 1.5),
    ]

    assert added(totals) == (UnitTotal("chips", 3, 3.5), UnitTotal("% of a goal", 1, 5.0))
