"""Decisions, luck and counts of gin rummy: true means, and an appraiser whose opinion is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import sqrt
from random import Random
from statistics import fmean, stdev, variance
from typing import Any

import pytest

import arena
from arena.games.analysis import Chart, ChartCell, Judgement, SeatMatch
from arena.games.evaluator import Answered
from arena.games.gin_rummy import evaluator as gin_rummy_evaluator
from arena.games.gin_rummy.evaluator import (
    CHOOSE,
    MEASURE,
    TERMS,
    GinRummyEvaluator,
    at_stake,
    deadwoods_with,
    draw_terms,
    win_chance,
)
from arena.games.gin_rummy.rules import GAME
from arena.games.rules import EVERYONE, AskSeat, LuckMeter, TellSeat
from arena.records.habits import habits_of
from arena.records.mistakes import judged, mistakes_of
from arena.records.seat_document import seat_match
from bots.gin_rummy import Patient, Simple
from bots.gin_rummy import Random as RandomBot
from protocol.cards import PACK
from protocol.gin_melds import CARD_BITS, card_mask, discard_deadwoods
from protocol.gin_rummy import (
    DISCARDS,
    Dealt,
    Draw,
    GameOver,
    GinRummySettings,
    Melds,
    Offer,
    Offered,
    RoundOver,
    Turn,
    TurnAnswer,
    turn_answers,
)
from protocol.vocabulary import Question
from tests.support.fake_appraiser import FakeAppraiser
from tests.support.long import sized
from tests.support.not_none import not_none
from tests.tools.luck_tables import MeasuredTable, samples

SETTINGS = GinRummySettings()
JUDGING = not_none(GAME.judging)

# ---- Luck


def new_meter() -> LuckMeter:
    return not_none(GAME.luck).meter(SETTINGS)


def told_deal(
    first: Sequence[str], second: Sequence[str], upcard: str, *, starter: int = 0
) -> list[TellSeat]:
    """What both seats hear of a deal."""
    return [
        TellSeat(seat, Dealt(1, 1, starter, tuple(hand), upcard))
        for seat, hand in enumerate((first, second))
    ]


def luck_of(meter: LuckMeter, winner: int | None = 0) -> float:
    """Seat 0's luck in a game that ends now."""
    meter.told(TellSeat(EVERYONE, GameOver(winner, (0, 0), (0, 0))))
    return meter.rounds[-1].luck[0]


def dealt_meter(cards: Sequence[str], *, starter: int = 0) -> LuckMeter:
    meter = new_meter()
    for told in told_deal(cards[:10], cards[10:20], cards[20], starter=starter):
        meter.told(told)
    return meter


def drawing(hand: Sequence[str], card: str, seat: int = 0) -> AskSeat:
    eleven = (*hand, card)
    return AskSeat(seat, Turn(card, eleven, turn_answers(eleven)))


def shuffled(seed: int) -> list[str]:
    return Random(seed).sample(PACK, 52)


# ---- Each mean is the true one


@pytest.mark.parametrize("seed", range(3))
def test_luck_of_the_up_card_is_0_in_the_mean_over_all_that_may_be(seed: int) -> None:
    deck = shuffled(seed)
    hands, unseen = deck[:20], deck[20:]
    lucks = [luck_of(dealt_meter([*hands, upcard])) for upcard in unseen]
    swapped = [*hands[10:], *hands[:10]]
    others = [luck_of(dealt_meter([*swapped, upcard])) for upcard in unseen]

    assert len(set(lucks)) > 1
    assert fmean(lucks + others) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_luck_of_a_draw_is_0_in_the_mean_over_all_cards_of_the_stock(seed: int, seat: int) -> None:
    deck = shuffled(seed)
    hand = deck[10 * seat : 10 * seat + 10]
    without = luck_of(dealt_meter(deck))
    lucks = []
    for card in deck[21:]:
        meter = dealt_meter(deck)
        meter.asked(drawing(hand, card, seat))
        lucks.append(luck_of(meter) - without)

    assert len(set(lucks)) > 5
    assert fmean(lucks) == pytest.approx(0, abs=1e-12)


def test_a_later_draw_is_compared_with_the_cards_that_are_still_there() -> None:
    deck = shuffled(5)
    first, hand = deck[21], deck[:10]

    def before() -> LuckMeter:
        meter = dealt_meter(deck)
        meter.asked(drawing(hand, first))
        meter.answered(drawing(hand, first), TurnAnswer(first))
        return meter

    without, lucks = luck_of(before()), []
    for card in deck[22:]:
        meter = before()
        meter.asked(drawing(deck[10:20], card, 1))
        lucks.append(luck_of(meter) - without)

    assert len(set(lucks)) > 5
    assert fmean(lucks) == pytest.approx(0, abs=1e-12)


def test_a_card_from_the_pile_is_no_luck() -> None:
    deck = shuffled(7)
    meter = dealt_meter(deck)
    meter.asked(drawing(deck[:10], deck[20]))

    assert luck_of(meter) == luck_of(dealt_meter(deck))


def test_the_hand_of_a_seat_is_what_it_has_after_its_discard() -> None:
    deck = shuffled(8)
    kept, card = deck[:9], deck[21]
    later = drawing([*kept, card], deck[30])
    meter, same = GinRummyEvaluator(SETTINGS), GinRummyEvaluator(SETTINGS)
    for each, hand in (meter, deck[:10]), (same, [*kept, card]):
        for told in told_deal(hand, deck[10:20], deck[20]):
            each.heard(told)
    meter.heard(drawing(deck[:10], card))
    meter.heard(Answered(0, drawing(deck[:10], card).question, TurnAnswer(deck[9])))
    same.heard(drawing(deck[10:20], deck[9], 1))  # so that it is not in the stock

    assert meter.luck(later) == same.luck(later)
    assert not_none(meter.luck(later))[0] != 0


# ---- What the terms are


@pytest.mark.parametrize("seed", range(20))
def test_deadwood_with_a_card_is_that_after_the_best_discard(seed: int) -> None:
    deck = shuffled(seed)
    # Half of the hands have many melds.
    hand = sorted(deck[:10]) if seed % 2 else sorted(PACK, key=lambda card: card[0])[seed:][:10]
    cards = [card for card in PACK if card not in hand]

    found = deadwoods_with(card_mask(hand), [CARD_BITS[card] for card in cards])

    assert found == [min(discard_deadwoods((*hand, card))) for card in cards]


def test_near_gin_the_card_that_makes_it_is_the_luckiest() -> None:
    hand = ["2s", "3s", "4s", "7h", "7d", "7c", "Js", "Jh", "Jd", "9c"]
    others = ["Ks", "Kh", "Qd", "Qc", "9s", "8h", "6d", "6c", "5h", "Ad"]
    dealt, lucks = luck_of(dealt_meter([*hand, *others, "8s"])), {}
    for card in PACK:
        if card not in (*hand, *others, "8s"):
            meter = dealt_meter([*hand, *others, "8s"])
            meter.asked(drawing(hand, card))
            lucks[card] = luck_of(meter) - dealt
    best = sorted(lucks, key=lambda card: -lucks[card])[:4]

    assert set(best) == {"As", "5s", "7s", "Jc"}
    assert lucks["Jc"] > 0 > lucks["Kc"]


@pytest.mark.parametrize(
    ("other", "sign"),
    [
        ("2h 4h 6h 8d Td Qd Ac 3c 5c Kh", 1),
        ("2h 3h 4h 8d 9d Td 5c 6c 7c 6d", 0),  # the same deadwood
        ("2h 3h 4h 8d 9d Td 5c 6c 7c Ad", -1),  # an undercut
    ],
)
def test_a_knock_counts_as_what_it_would_change_now(other: str, sign: int) -> None:
    hand = "2s 3s 4s 7h 7d 7c Js Jh Jd Kc"
    [terms] = draw_terms(
        card_mask(hand.split()), card_mask(other.split()), [CARD_BITS["6s"]], (50, 50)
    )
    knock = dict(zip(list(TERMS)[-len(terms) :], terms, strict=True))["knock"]

    assert (knock > 0) - (knock < 0) == sign


def test_a_seat_that_needs_nothing_has_won() -> None:
    assert win_chance(0, 30) == 1
    assert win_chance(-5, 1) == 1
    assert win_chance(30, 0) == 0


@pytest.mark.parametrize("needs", [(50, 50), (10, 50), (1, 1), (700, 900)])
def test_the_chances_of_both_seats_are_1_in_sum(needs: tuple[int, int]) -> None:
    mine, theirs = needs

    assert win_chance(mine, theirs) + win_chance(theirs, mine) == pytest.approx(1)
    assert at_stake(mine, theirs) == pytest.approx(at_stake(theirs, mine))


# ---- Games


def scored(meter: LuckMeter, scores: tuple[int, int]) -> None:
    """End a round with these scores."""
    nothing: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    news = RoundOver(None, False, nothing, ((), ()), (), (0, 0), scores, "stock")
    meter.told(TellSeat(EVERYONE, news))


def test_luck_weighs_by_the_score_and_a_new_game_begins_at_0() -> None:
    deck = shuffled(3)

    def next_deal(meter: LuckMeter) -> float:
        for told in told_deal(deck[:10], deck[10:20], deck[20]):
            meter.told(told)
        return luck_of(meter)

    at_first, level, apart = (new_meter() for _ in range(3))
    scored(level, (45, 45))
    scored(apart, (45, 0))
    usual, late = next_deal(at_first), next_deal(level)

    assert late / usual == pytest.approx(at_stake(5, 5) / at_stake(50, 50))
    assert next_deal(apart) / usual == pytest.approx(at_stake(5, 50) / at_stake(50, 50))
    assert next_deal(level) == usual
    assert len(level.rounds) == 2


@pytest.mark.parametrize(
    ("winner", "gains"), [(0, (1.0, 0.0)), (1, (0.0, 1.0)), (None, (0.0, 0.0))]
)
def test_a_game_gains_1_for_the_winner_and_the_luck_is_0_in_sum(
    winner: int | None, gains: tuple[float, float]
) -> None:
    meter = dealt_meter(shuffled(4))
    luck_of(meter, winner)

    assert meter.rounds[0].gains == gains
    assert sum(meter.rounds[0].luck) == 0 != meter.rounds[0].luck[0]


@pytest.mark.stats
def test_luck_is_0_in_the_mean_and_explains_a_third_of_the_games() -> None:
    """Games that the weights were not fitted on."""
    table = MeasuredTable("gin_rummy", ("simple", "simple"), {"games": 10}, per_round=True)
    values = [value[0] for seed in range(sized(15, 5)) for value in samples(table, 500 + seed)]
    luck = [one.luck for one in values]

    assert abs(fmean(luck)) < 3.5 * stdev(luck) / sqrt(len(luck))
    assert variance([one.without for one in values]) < 0.7 * variance([one.gain for one in values])


# ---- Decisions

DRAW = Draw("5h", ("As", "2s", "3s", "7d", "7h", "7c", "9d", "Th", "Jc", "Kd"))


@pytest.fixture
def appraiser(monkeypatch: pytest.MonkeyPatch) -> type[FakeAppraiser]:
    kind = type("Master", (FakeAppraiser,), {})
    monkeypatch.setattr(gin_rummy_evaluator, "find", lambda game, name: kind)
    monkeypatch.setattr(gin_rummy_evaluator, "house_bots", lambda game, slow: {"master": kind})
    return kind


def judgement(question: Question[Any], answer: Any) -> Judgement:
    return not_none(JUDGING.judge(SETTINGS, 0).judged(question, answer))


@pytest.mark.parametrize(("ahead", "grade"), [(0.02, 1), (0.05, 2), (0.15, 3)])
def test_a_mistake_is_measured_in_percent_of_the_game(
    appraiser: type[FakeAppraiser], ahead: float, grade: int
) -> None:
    appraiser.ahead, appraiser.noise = ahead, 0.01

    found = judgement(DRAW, "discard")

    assert found.cost == pytest.approx(100 * ahead, abs=0.5)
    assert found.error == pytest.approx(100 * 0.01 * (2 / MEASURE) ** 0.5, rel=0.2)
    assert (found.best, found.is_level, found.grade) == ("stock", False, grade)


def test_melds_that_were_declared_with_a_knock_are_among_the_answers(
    appraiser: type[FakeAppraiser],
) -> None:
    hand = ("As", "2s", "3s", "7d", "7h", "7c", "9d", "9h", "9c", "Kd", "Qd")
    legal = (*map(DISCARDS.__getitem__, hand), TurnAnswer("Kd", True), TurnAnswer("Qd", True))
    answer = TurnAnswer("Kd", True, (("As", "2s", "3s"), ("7d", "7h", "7c"), ("9d", "9h", "9c")))
    appraiser.ahead = 0.2

    assert judgement(Turn("Qd", hand, legal), answer).best == DISCARDS["As"]


def test_the_appraiser_hears_the_match_of_its_seat(appraiser: type[FakeAppraiser]) -> None:
    record = arena.play("gin_rummy", [Simple(), RandomBot()], seed=4).record
    found = list(judged(record, 0))
    calls = appraiser.made.calls
    match = seat_match(record, 0)
    answers = [one.answer for one in match.decisions]

    assert len(found) > 10
    assert [what for call, what in calls if call == "recall"] == answers
    assert [what for call, what in calls if call == "hear"] == [
        news for one in match.decisions for news in one.news
    ]
    assert ("appraise", MEASURE) in calls
    assert calls.count(("appraise", CHOOSE)) == len(found)
    assert JUDGING.judge(SETTINGS, 0).judged(Melds(DRAW.hand), None) is None
    assert [one.judgement for one in found] == [one.judgement for one in judged(record, 0)]


def test_at_most_five_mistakes_of_a_game_are_shown(appraiser: type[FakeAppraiser]) -> None:
    appraiser.ahead, appraiser.noise = 0.1, 0.01
    record = arena.play("gin_rummy", [Simple(), Simple()], settings={"games": 2}, seed=1).record

    found = mistakes_of(record, 0)

    [total] = found.totals
    assert total.count > 20
    assert [one.unit for one in found.mistakes] == [1] * 5 + [2] * 5
    numbers = [one.number for one in found.mistakes]
    assert numbers == sorted(numbers)
    assert total.unit == "% of the game"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (GinRummySettings(target=60), "in games to 50 points, not 60"),
        (GinRummySettings(max_rounds=9), "in games of 10 rounds and more"),
        (GinRummySettings(max_turns=30), "of 31 turns and more"),
    ],
)
def test_games_of_another_kind_are_refused(
    appraiser: type[FakeAppraiser], settings: GinRummySettings, why: str
) -> None:
    assert why in not_none(JUDGING.refuses(settings))
    assert JUDGING.refuses(SETTINGS) is None


def test_without_the_house_bot_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gin_rummy_evaluator, "house_bots", lambda game, slow: {})

    assert JUDGING.refuses(SETTINGS) == "the house bot master is not installed, which judges"


@pytest.mark.stats
def test_G12_a_round_that_goes_on_to_the_last_card_of_the_stock_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gin_rummy_evaluator, "CHOOSE", 2)
    monkeypatch.setattr(gin_rummy_evaluator, "MEASURE", 2)
    settings = {"max_rounds": 10, "max_turns": 60}
    bots = RandomBot(), RandomBot()
    for bot in bots:
        bot.seed(1)
    record = arena.play("gin_rummy", bots, settings=settings, seed=1).record
    first = list(takewhile(lambda one: one.round == 1, judged(record, 0)))

    assert len(first) > 30, "it takes no short cut"


# ---- Charts

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
