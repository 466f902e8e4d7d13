"""What is counted of a bot in gin rummy: knocks, cards taken, turns."""

from __future__ import annotations

import arena
from arena.games.analysis import Chart, ChartCell, SeatMatch
from arena.games.catalogue import GAMES
from arena.records.habits import habits_of
from arena.records.seat_document import seat_match
from bots.gin_rummy import Patient, Simple
from protocol.gin_rummy import Draw, Offer, Offered, RoundOver, Turn

GAME = GAMES["gin_rummy"]
MATCHES = [
    arena.play("gin_rummy", [Simple(), Patient()], settings={"games": 2}, seed=seed).record
    for seed in range(3)
]


def cells(chart: Chart, column: int = 0) -> dict[str, ChartCell]:
    found = {row: cells[column] for row, cells in zip(chart.rows, chart.cells, strict=True)}
    return {row: cell for row, cell in found.items() if cell is not None}


def seen(seat: int) -> list[SeatMatch]:
    return [seat_match(record, seat) for record in MATCHES]


def rounds(seat: int) -> list[RoundOver]:
    told = [news for match in seen(seat) for one in match.decisions for news in one.news]
    told += [news for match in seen(seat) for news in match.news]
    return [news for news in told if isinstance(news, RoundOver)]


def test_knocks_are_counted_by_their_deadwood_and_their_turn() -> None:
    for seat in 0, 1:
        deadwood, _, turns = habits_of(GAME, seen(seat)).charts
        knocks = [news for news in rounds(seat) if news.knocker == seat]

        for chart in deadwood, turns:
            spread = cells(chart)
            all_knocks = spread.pop("it knocks at all")
            assert (all_knocks.count, all_knocks.of) == (len(knocks), len(rounds(seat)))
            assert spread.pop("on average").of == len(knocks)
            assert sum(cell.count for cell in spread.values()) == len(knocks) > 0
        gins = cells(deadwood)["0 (gin)"]
        assert gins.count == sum(news.gin for news in knocks)
        assert gins.low is not None
        assert gins.share is not None
        assert gins.low <= gins.share


def test_patient_knocks_with_gin_alone_and_less_often() -> None:
    simple, patient = (habits_of(GAME, seen(seat)).charts for seat in (0, 1))

    assert cells(patient[0])["0 (gin)"].share == 1
    assert cells(patient[0])["on average"].text == "0.0"
    first, second = (cells(charts[0])["it knocks at all"].share for charts in (simple, patient))
    assert first is not None
    assert second is not None
    assert first > second


def test_open_cards_are_counted_by_what_they_are_good_for() -> None:
    taken = habits_of(GAME, seen(0)).charts[1]

    assert cells(taken, 0)["lowers the deadwood only"].share == 1, "simple takes them"
    assert cells(taken, 1)["lowers the deadwood only"].share == 1
    assert cells(taken, 1)["does neither"].share == 0
    offers, draws = (
        [one.question for match in seen(0) for one in match.decisions if type(one.question) is kind]
        for kind in (Offer, Draw)
    )
    assert sum(cell.of for cell in cells(taken, 0).values()) == len(offers)
    assert sum(cell.of for cell in cells(taken, 1).values()) == len(draws)
    patient = habits_of(GAME, seen(1)).charts[1]
    assert cells(patient, 1)["lowers the deadwood only"].share == 0


def test_the_turn_of_a_knock_is_the_seats_own() -> None:
    match = seen(0)[0]
    turns, knocks = 0, []
    for decision in match.decisions:
        if any(isinstance(news, Offered | RoundOver) for news in decision.news):
            turns = 0
        if type(decision.question) is Turn:
            turns += 1
            if decision.answer.knock:
                knocks.append(turns)

    chart = habits_of(GAME, [match]).charts[2]

    assert cells(chart)["on average"].text == f"{sum(knocks) / len(knocks):.1f}"


def test_nothing_that_was_not_seen_has_a_share() -> None:
    deadwood, taken, turns = habits_of(GAME, []).charts

    for chart in deadwood, taken, turns:
        assert len(chart.rows) == len(chart.cells) > 1
        assert {cell.share for row in chart.cells for cell in row if cell} == {None}
