"""How often a bot of three card poker plays its hands."""

from __future__ import annotations

import arena
from arena.games.analysis import Chart, ChartCell, heard_by
from arena.games.three_card_poker.rules import GAME
from arena.games.three_card_poker.table import GROUPS, LINE, group_of, hand_classes
from arena.records.seat_document import seat_match
from bots.three_card_poker import Q64, Always, PlayerStrategy
from protocol.three_card_poker import Decision, Hand, Play, ThreeCardPokerSettings

ROUNDS = {"rounds": 400, "stake": 10_000}


def chart_of(*bots: PlayerStrategy) -> Chart:
    assert GAME.habits is not None
    meter = GAME.habits()
    for seed, bot in enumerate(bots):
        played = arena.play("three_card_poker", [bot], settings=ROUNDS, seed=seed)
        heard_by(seat_match(played.record, 0), meter)
    (chart,) = meter.charts()
    return chart


def chart_of_answers(*answers: tuple[Hand, Decision]) -> Chart:
    assert GAME.habits is not None
    meter = GAME.habits()
    meter.begin(ThreeCardPokerSettings(), 0)
    for hand, answer in answers:
        meter.decided(Play(hand, 10, 1000), answer)
    return meter.charts()[0]


def cells(chart: Chart) -> dict[str, ChartCell]:
    found = {}
    for row, (cell,) in zip(chart.rows, chart.cells, strict=True):
        assert cell is not None
        found[row] = cell
    return found


def test_q64_plays_what_is_above_the_line_and_nothing_below() -> None:
    chart = chart_of(Q64(), Q64())
    shown = cells(chart)

    assert chart.rows == GROUPS
    assert chart.line == LINE
    assert chart.rows[LINE] == "queen-high below Q-6-4"
    assert sum(cell.of for cell in shown.values()) == 800
    for row, cell in shown.items():
        assert cell.mark == (GROUPS.index(row) < LINE)
        if cell.of:
            assert cell.share == cell.mark
            assert cell.cost == 0
            assert cell.low is not None
            assert cell.high is not None
            assert cell.low <= cell.share <= cell.high


def test_hands_are_counted_in_their_groups_with_what_they_cost() -> None:
    pair: Hand = ("9s", "9h", "5s")
    junk: Hand = ("7s", "5h", "2d")
    shown = cells(chart_of_answers((pair, "play"), (pair, "fold"), (junk, "play"), (junk, "play")))
    gains = {one.hand: one.gain / 18_424 for one in hand_classes(False)}
    of_pair = next(gains[one.hand] for one in hand_classes(False) if ranks(one.hand) == "9-9-5")

    assert (shown["pairs"].count, shown["pairs"].of, shown["pairs"].share) == (1, 2, 0.5)
    assert shown["ten-high or lower"].share == 1
    assert shown["pairs"].cost is not None
    assert abs(shown["pairs"].cost - 100 * of_pair / 4) < 1
    assert GROUPS[group_of(junk)] == "ten-high or lower"


def ranks(hand: Hand) -> str:
    return "-".join(sorted((card[0] for card in hand), reverse=True))


def test_a_group_that_was_never_dealt_is_not_seen() -> None:
    shown = cells(chart_of_answers((("7s", "5h", "2d"), "fold")))

    assert shown["pairs"] == ChartCell(mark=1.0)
    assert shown["ten-high or lower"].of == 1


def test_all_bots_have_the_same_labels() -> None:
    one, other = chart_of(Q64()), chart_of(Always())

    assert (one.title, one.rows, one.columns) == (other.title, other.rows, other.columns)
